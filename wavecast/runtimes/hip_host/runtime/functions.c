// Attributes and occupancy of kernels.
#include "runtime.h"

// The handle of a kernel of the program is the kernel, as of one of a module.
API hipError_t hipGetFuncBySymbol(hipFunction_t *function, const void *symbol) {
    enter();
    if (!function || !symbol) return leave(hipErrorInvalidValue);
    *function = kernel_of(symbol);
    return leave(*function ? hipSuccess : hipErrorInvalidDeviceFunction);
}

API hipError_t hipFuncGetAttributes(hipFuncAttributes *attributes, const void *function) {
    enter();
    Kernel *kernel = kernel_of(function);
    if (!kernel || !attributes) return leave(hipErrorInvalidDeviceFunction);
    memset(attributes, 0, sizeof *attributes);
    attributes->binaryVersion = attributes->ptxVersion = 10 * session.properties.major;
    attributes->localSizeBytes = kernel->scratch_bytes;
    attributes->maxThreadsPerBlock = kernel->max_threads;
    attributes->numRegs = kernel->vgprs;
    attributes->sharedSizeBytes = kernel->lds_bytes;
    attributes->maxDynamicSharedSizeBytes =
        session.properties.sharedMemPerBlock - kernel->lds_bytes;
    return leave(hipSuccess);
}

API hipError_t hipFuncSetAttribute(const void *function, hipFuncAttribute attribute, int value) {
    enter();
    Kernel *kernel = kernel_of(function);
    if (!kernel) return leave(hipErrorInvalidDeviceFunction);
    if (attribute == hipFuncAttributePreferredSharedMemoryCarveout) return leave(hipSuccess);
    size_t most = session.properties.sharedMemPerBlock;
    bool fits = attribute == hipFuncAttributeMaxDynamicSharedMemorySize && value >= 0 &&
                kernel->lds_bytes + (size_t)value <= most;
    if (fits) kernel->dynamic_lds = value;
    return leave(fits ? hipSuccess : hipErrorInvalidValue);
}
API hipError_t hipFuncSetCacheConfig(const void *function, hipFuncCache_t config) {
    (void)config;
    enter();
    return leave(kernel_of(function) ? hipSuccess : hipErrorInvalidDeviceFunction);
}
API hipError_t hipFuncSetSharedMemConfig(const void *function, hipSharedMemConfig config) {
    (void)config;
    enter();
    return leave(kernel_of(function) ? hipSuccess : hipErrorInvalidDeviceFunction);
}

int blocks_per_unit(const Kernel *kernel, int block_size, size_t dynamic_lds) {
    OccupancyMessage message = {module_id(kernel->module), kernel->index, block_size, dynamic_lds};
    unsigned blocks = 0;
    Reply reply = request(OCCUPANCY, &message, sizeof message, "", 0);
    if (reply.status && !is_in_process()) fail("%s", reply.data);
    if (!reply.status) memcpy(&blocks, reply.data, sizeof blocks);
    free(reply.data);
    return blocks;
}

static hipError_t active_blocks(int *blocks, Kernel *kernel, int block_size, size_t dynamic_lds) {
    if (!kernel) return hipErrorInvalidDeviceFunction;
    if (!blocks || block_size < 1) return hipErrorInvalidValue;
    bool fits = block_size <= session.properties.maxThreadsPerBlock &&
                kernel->lds_bytes + dynamic_lds <= session.properties.sharedMemPerBlock;
    *blocks = fits ? blocks_per_unit(kernel, block_size, dynamic_lds) : 0;
    return hipSuccess;
}

// The block with the most waves per unit, of several the largest one.
static hipError_t best_block(int *grid_size, int *block_size, Kernel *kernel, size_t dynamic_lds,
                             int limit) {
    if (!kernel) return hipErrorInvalidDeviceFunction;
    if (!grid_size || !block_size) return hipErrorInvalidValue;
    int most = kernel->max_threads, wave = session.properties.warpSize, best = 0;
    if (limit > 0 && limit < most) most = limit;
    for (int size = most / wave * wave; size >= wave; size -= wave) {
        int blocks;
        active_blocks(&blocks, kernel, size, dynamic_lds);
        if (blocks * size <= best) continue;
        best = blocks * size;
        *block_size = size, *grid_size = blocks * session.properties.multiProcessorCount;
    }
    return best ? hipSuccess : hipErrorInvalidValue;
}

API hipError_t hipOccupancyMaxActiveBlocksPerMultiprocessor(int *blocks, const void *function,
                                                            int block_size, size_t dynamic_lds) {
    enter();
    return leave(active_blocks(blocks, kernel_of(function), block_size, dynamic_lds));
}
API hipError_t hipOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int *blocks,
                                                                     const void *function,
                                                                     int block_size,
                                                                     size_t dynamic_lds,
                                                                     unsigned flags) {
    (void)flags;
    return hipOccupancyMaxActiveBlocksPerMultiprocessor(blocks, function, block_size, dynamic_lds);
}
API hipError_t hipOccupancyMaxPotentialBlockSize(int *grid_size, int *block_size,
                                                 const void *function, size_t dynamic_lds,
                                                 int limit) {
    enter();
    return leave(best_block(grid_size, block_size, kernel_of(function), dynamic_lds, limit));
}
API hipError_t hipModuleOccupancyMaxActiveBlocksPerMultiprocessor(int *blocks,
                                                                  hipFunction_t function,
                                                                  int block_size,
                                                                  size_t dynamic_lds) {
    enter();
    return leave(active_blocks(blocks, function, block_size, dynamic_lds));
}
API hipError_t hipModuleOccupancyMaxPotentialBlockSize(int *grid_size, int *block_size,
                                                       hipFunction_t function, size_t dynamic_lds,
                                                       int limit) {
    enter();
    return leave(best_block(grid_size, block_size, function, dynamic_lds, limit));
}
