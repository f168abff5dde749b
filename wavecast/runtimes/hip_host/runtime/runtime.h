// What the parts of wavecast's libamdhip64 share.
//
// Memory of all kinds is allocated in one arena, a shared mapping that has the same addresses in
// the process of the emulator. Work is executed at once, in the order of the calls: streams keep
// that order, and capture it.
#pragma once

#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <hip/hip_runtime_api.h>
#include "protocol.h"  // requests, events and messages, made of protocol.py

#include <sys/types.h>

#define API __attribute__((visibility("default")))
#define MAXIMUM_DEVICES 64

// --- connection.c
typedef struct {
    hipDeviceProp_t properties;
    int devices;
    unsigned long long canary;  // fills new memory; 0: none
    bool orders;                // the emulator compares works by their order
    bool predicts;              // launches have predicted times
    char *arena, *mapping;                 // that of this process, in what all processes map
    size_t arena_bytes, mapping_bytes;
    size_t first_allocation;               // what is before it is the system's and modules'
    pid_t process;                         // a fork has no session
} Session;

typedef struct {
    unsigned status;  // 0, or how it failed; data is the message then
    size_t bytes;
    char *data;  // the caller frees it
} Reply;

extern Session session;
void ensure_session(void);
bool is_in_process(void);  // the emulator is in the process of the program
Reply request(enum HostRequest kind, const void *head, size_t head_bytes, const void *tail,
              size_t tail_bytes);
_Noreturn void end(int code, const char *message);  // of the program
_Noreturn void fail(const char *format, ...) __attribute__((format(printf, 1, 2)));
// connects where needed, and takes the lock
#define enter() enter_from(__builtin_return_address(0))
void enter_from(void *address);
unsigned long long in_file(unsigned long long address);  // counted from the start of its file
unsigned long long caller(void);                         // where the program called, in its file
bool is_inside(void);             // whether this thread is in a call of the API
hipError_t leave(hipError_t error);
void *new_memory(size_t bytes);  // zeros; ends the program without memory

// --- devices.c
extern __thread int current_device;
bool is_device(int device);
void read_properties(const char *text);

// --- memory.c
typedef struct {
    char *address;
    size_t bytes;
    hipMemoryType type;
    int device;
    unsigned flags;
    char *registered;  // host memory that hipHostRegister made an alias of, or NULL
    unsigned opened;   // how often this process has opened memory of another
} Allocation;

hipError_t allocate(void **pointer, size_t bytes, hipMemoryType type, unsigned flags);
void insert_allocation(Allocation allocation);
char *reserve_addresses(size_t bytes);  // of the arena, of no allocation; NULL where it is full
hipError_t release(void *pointer);
void release_all(void);
Allocation *allocation_of(const void *pointer);
bool in_arena(const void *pointer);
bool is_device_memory(const void *pointer);  // kernels can use the address
hipError_t accessible(const void *pointer, size_t bytes);
size_t allocation_count(void);
const Allocation *allocations(void);
unsigned long long memory_version(void);  // changes with the allocations
void *device_alias(void *host);           // the address kernels use for registered host memory

// --- kernels.c
typedef struct {
    unsigned offset, bytes;
} Argument;
typedef struct Module Module;
typedef struct ihipModuleSymbol_t {
    Module *module;
    unsigned index;
    char *name;
    unsigned kernarg_bytes, max_threads, lds_bytes, vgprs, scratch_bytes, argument_count;
    Argument *arguments;
    unsigned dynamic_lds;  // the most that hipFuncSetAttribute asked for
} Kernel;
typedef struct {
    char *name;
    char *address;
    size_t bytes;
} Variable;

unsigned long long module_id(const Module *module);
Kernel *kernel_of(const void *function);  // NULL for an unknown function
Variable *variable_of(const void *symbol);
Variable *variable_named(Module *module, const char *name);
bool pack_arguments(const Kernel *kernel, void **arguments, void **extra, char *segment);
hipError_t check_launch(const Kernel *kernel, dim3 grid, dim3 block, size_t dynamic_lds);
int blocks_per_unit(const Kernel *kernel, int block_size, size_t dynamic_lds);

// --- streams.c
typedef enum { KERNEL_WORK, COPY_WORK, SET_WORK, HOST_WORK, EMPTY_WORK } WorkKind;
typedef struct {
    WorkKind kind;
    union {
        struct {
            Kernel *kernel;
            dim3 grid, block, cluster;
            unsigned dynamic_lds;
            int device;
            bool cooperative;
            char *segment;
        } launch;
        struct {
            char *to;
            const char *from;
            size_t to_pitch, from_pitch, width, height;
        } copy;
        struct {
            char *pointer;
            size_t pitch, width, height;  // width in elements
            unsigned element_bytes, value;
        } set;
        struct {
            hipHostFn_t call;
            void *data;
        } host;
    };
} Work;

hipError_t submit(hipStream_t stream, Work *work);  // executes or captures; owns work's segment
hipError_t execute(hipStream_t stream, const Work *work);
hipError_t launch(const Work *work, double *seconds);  // on the device, 0 without predictions
bool is_stream(hipStream_t stream);
bool is_capturing(hipStream_t stream);
void stream_advance(hipStream_t stream, double seconds);

// --- order.c
bool is_ordering(void);
extern __thread unsigned long long launch_site;  // of the kernel<<<…>>> at hand, or 0
void tell(enum OrderEvent event, unsigned long long at, unsigned long long a, unsigned long long b,
          unsigned long long c, unsigned long long d, unsigned long long e);
void tell_work(unsigned long long stream, const Work *work);
unsigned long long stream_id(hipStream_t stream);

// --- libraries.c
void send_allocations(void);  // to the emulator, where they have changed

// --- graphs.c
void graph_append(hipGraph_t graph, const Work *work);
hipGraph_t graph_new(void);

// --- output.c
void prepare_module(Module *module);  // tells device code where output and heap are
void print_output(void);              // what kernels printed since the last call
