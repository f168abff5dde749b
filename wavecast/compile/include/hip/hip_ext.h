// Launches with events before and after them.
#pragma once

#include <hip/hip_runtime.h>

#ifdef __cplusplus
template <typename... Parameters, typename... Arguments>
void hipExtLaunchKernelGGL(void (*kernel)(Parameters...), dim3 grid, dim3 block, unsigned dynamic_lds,
                           hipStream_t stream, hipEvent_t start, hipEvent_t stop, unsigned flags,
                           Arguments... arguments) {
    (void)flags;
    if (start) (void)hipEventRecord(start, stream);
    kernel<<<grid, block, dynamic_lds, stream>>>(arguments...);
    if (stop) (void)hipEventRecord(stop, stream);
}
#endif
