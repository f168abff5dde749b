// OpenMP's functions for host code that is compiled without OpenMP: its regions have one thread.
#if defined(_OPENMP)
#include_next <omp.h>
#else
#pragma once

#include <time.h>

#define __WC_FN static inline __attribute__((unused))
typedef int omp_lock_t;
typedef int omp_nest_lock_t;

__WC_FN int omp_get_thread_num(void) { return 0; }
__WC_FN int omp_get_num_threads(void) { return 1; }
__WC_FN int omp_get_max_threads(void) { return 1; }
__WC_FN int omp_get_num_procs(void) { return 1; }
__WC_FN int omp_get_num_devices(void) { return 0; }
__WC_FN int omp_get_initial_device(void) { return 0; }
__WC_FN int omp_get_default_device(void) { return 0; }
__WC_FN int omp_is_initial_device(void) { return 1; }
__WC_FN int omp_in_parallel(void) { return 0; }
__WC_FN int omp_get_level(void) { return 0; }
__WC_FN void omp_set_num_threads(int count) { (void)count; }
__WC_FN void omp_set_dynamic(int on) { (void)on; }
__WC_FN void omp_set_nested(int on) { (void)on; }
__WC_FN double omp_get_wtime(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec + 1e-9 * now.tv_nsec;
}
__WC_FN double omp_get_wtick(void) { return 1e-9; }
__WC_FN void omp_init_lock(omp_lock_t *lock) { *lock = 0; }
__WC_FN void omp_destroy_lock(omp_lock_t *lock) { (void)lock; }
__WC_FN void omp_set_lock(omp_lock_t *lock) { *lock = 1; }
__WC_FN void omp_unset_lock(omp_lock_t *lock) { *lock = 0; }
__WC_FN int omp_test_lock(omp_lock_t *lock) { return *lock ? 0 : (*lock = 1); }
#undef __WC_FN
#endif
