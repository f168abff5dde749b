// Contexts of the driver API. As in HIP, one is its device: a thread has a stack of them, and the
// device of the runtime API is that of the top.
#include "runtime.h"

struct ihipCtx_t {
    int device;
    unsigned references;  // of a primary context
};
static struct ihipCtx_t primary[MAXIMUM_DEVICES];
static __thread hipCtx_t stack[32];
static __thread unsigned depth;

static void switch_to(hipCtx_t context) {
    if (context) current_device = context->device;
}
static hipCtx_t current(void) {
    if (depth) return stack[depth - 1];
    primary[current_device].device = current_device;
    return &primary[current_device];
}

API hipError_t hipCtxCreate(hipCtx_t *context, unsigned flags, hipDevice_t device) {
    (void)flags;
    enter();
    if (!context) return leave(hipErrorInvalidValue);
    if (!is_device(device)) return leave(hipErrorInvalidDevice);
    if (depth == sizeof stack / sizeof *stack) return leave(hipErrorOutOfMemory);
    *context = new_memory(sizeof **context);
    (*context)->device = device;
    stack[depth++] = *context;
    switch_to(*context);
    return leave(hipSuccess);
}
API hipError_t hipCtxDestroy(hipCtx_t context) {
    enter();
    if (!context) return leave(hipErrorInvalidValue);
    unsigned kept = 0;
    for (unsigned at = 0; at < depth; ++at)
        if (stack[at] != context) stack[kept++] = stack[at];
    depth = kept;
    bool is_primary = context >= primary && context < primary + MAXIMUM_DEVICES;
    if (!is_primary) free(context);
    switch_to(current());
    return leave(hipSuccess);
}
API hipError_t hipCtxPushCurrent(hipCtx_t context) {
    enter();
    if (!context) return leave(hipErrorInvalidContext);
    if (depth == sizeof stack / sizeof *stack) return leave(hipErrorOutOfMemory);
    stack[depth++] = context;
    switch_to(context);
    return leave(hipSuccess);
}
API hipError_t hipCtxPopCurrent(hipCtx_t *context) {
    enter();
    if (!depth) return leave(hipErrorInvalidContext);
    hipCtx_t top = stack[--depth];
    if (context) *context = top;
    if (depth) switch_to(stack[depth - 1]);
    return leave(hipSuccess);
}
API hipError_t hipCtxSetCurrent(hipCtx_t context) {
    enter();
    if (depth) --depth;
    if (context) stack[depth++] = context, switch_to(context);
    return leave(hipSuccess);
}
API hipError_t hipCtxGetCurrent(hipCtx_t *context) {
    enter();
    if (!context) return leave(hipErrorInvalidValue);
    *context = current();
    return leave(hipSuccess);
}
API hipError_t hipCtxGetDevice(hipDevice_t *device) {
    enter();
    if (!device) return leave(hipErrorInvalidValue);
    *device = current()->device;
    return leave(hipSuccess);
}
API hipError_t hipCtxSynchronize(void) { return hipDeviceSynchronize(); }

API hipError_t hipDevicePrimaryCtxRetain(hipCtx_t *context, hipDevice_t device) {
    enter();
    if (!context) return leave(hipErrorInvalidValue);
    if (!is_device(device)) return leave(hipErrorInvalidDevice);
    primary[device].device = device, ++primary[device].references;
    *context = &primary[device];
    return leave(hipSuccess);
}
API hipError_t hipDevicePrimaryCtxRelease(hipDevice_t device) {
    enter();
    if (!is_device(device)) return leave(hipErrorInvalidDevice);
    if (primary[device].references) --primary[device].references;
    return leave(hipSuccess);
}
API hipError_t hipDevicePrimaryCtxSetFlags(hipDevice_t device, unsigned flags) {
    (void)flags;
    enter();
    return leave(is_device(device) ? hipSuccess : hipErrorInvalidDevice);
}
API hipError_t hipDevicePrimaryCtxGetState(hipDevice_t device, unsigned *flags, int *active) {
    enter();
    if (!flags || !active) return leave(hipErrorInvalidValue);
    if (!is_device(device)) return leave(hipErrorInvalidDevice);
    *flags = 0, *active = primary[device].references > 0;
    return leave(hipSuccess);
}
