// How the headers of hipBLAS, hipFFT and others call the runtime, which computes on the host.
//
// `format` has a letter per argument: i int, l long long, d double, p pointer that the function reads
// or writes on the device (P: never null), s pointer to a scalar of `element_bytes` on host or device (h: of half of
// them), r pointer to what the function returns, on host or device. The value is 0, or an error of
// the function that `wavecast/runtimes/hip_host/libraries` has.
#pragma once

#include <hip/hip_runtime_api.h>
#include <stdint.h>
#include <stdlib.h>

#ifdef __cplusplus
extern "C"
#endif
int __wavecast_library(void *stream, const char *function, unsigned element_bytes,
                       const char *format, ...);

// Functions of libraries: inline in programs, exported where the library itself is compiled.
#ifndef WC_LIBRARY_FN
#define WC_LIBRARY_FN static inline __attribute__((unused))
#endif
