// Copies and fills: of the arena, of host memory, and of symbols.
#include "runtime.h"

#define INLINED static inline __attribute__((always_inline))  // for the address of the caller

static Work copy_of(void *to, size_t to_pitch, const void *from, size_t from_pitch, size_t width,
                    size_t height) {
    Work work = {.kind = COPY_WORK};
    work.copy.to = to, work.copy.from = from;
    work.copy.to_pitch = to_pitch, work.copy.from_pitch = from_pitch;
    work.copy.width = width, work.copy.height = height;
    return work;
}

static hipError_t submitted(hipStream_t stream, Work *work, bool waits) {
    hipError_t error = submit(stream, work);
    if (waits && !error) tell(HOST_WAITS_STREAM, 0, stream_id(stream), 0, 0, 0, 0);
    return error;
}

// Bytes from the first to after the last of rows.
static size_t extent(size_t pitch, size_t width, size_t height) {
    return width && height ? pitch * (height - 1) + width : 0;
}

INLINED hipError_t copy_rows(void *to, size_t to_pitch, const void *from, size_t from_pitch,
                             size_t width, size_t height, hipMemcpyKind kind, hipStream_t stream,
                             bool waits) {
    enter();
    if ((unsigned)kind > hipMemcpyDefault && kind != hipMemcpyDeviceToDeviceNoCU)
        return leave(hipErrorInvalidMemcpyDirection);
    if (width > to_pitch || width > from_pitch) return leave(hipErrorInvalidPitchValue);
    hipError_t error = accessible(to, extent(to_pitch, width, height));
    if (!error) error = accessible(from, extent(from_pitch, width, height));
    bool device_to = kind == hipMemcpyHostToDevice || kind == hipMemcpyDeviceToDevice;
    bool device_from = kind == hipMemcpyDeviceToHost || kind == hipMemcpyDeviceToDevice;
    if (!error && width && height &&
        ((device_to && !is_device_memory(to)) || (device_from && !is_device_memory(from))))
        error = hipErrorInvalidValue;
    if (error) return leave(error);
    Work work = copy_of(to, to_pitch, from, from_pitch, width, height);
    return leave(submitted(stream, &work, waits));
}

API hipError_t hipMemcpy(void *to, const void *from, size_t bytes, hipMemcpyKind kind) {
    return copy_rows(to, bytes, from, bytes, bytes, 1, kind, NULL, true);
}
API hipError_t hipMemcpyAsync(void *to, const void *from, size_t bytes, hipMemcpyKind kind,
                              hipStream_t stream) {
    return copy_rows(to, bytes, from, bytes, bytes, 1, kind, stream, false);
}
API hipError_t hipMemcpyWithStream(void *to, const void *from, size_t bytes, hipMemcpyKind kind,
                                   hipStream_t stream) {
    return copy_rows(to, bytes, from, bytes, bytes, 1, kind, stream, true);
}
#define COPY(name, target, source, kind)                                                           \
    API hipError_t name(target to, source from, size_t bytes) {                                    \
        return copy_rows(to, bytes, from, bytes, bytes, 1, kind, NULL, true);                            \
    }                                                                                              \
    API hipError_t name##Async(target to, source from, size_t bytes, hipStream_t stream) {         \
        return copy_rows(to, bytes, from, bytes, bytes, 1, kind, stream, false);                   \
    }
COPY(hipMemcpyHtoD, hipDeviceptr_t, void *, hipMemcpyHostToDevice)
COPY(hipMemcpyDtoH, void *, hipDeviceptr_t, hipMemcpyDeviceToHost)
COPY(hipMemcpyDtoD, hipDeviceptr_t, hipDeviceptr_t, hipMemcpyDeviceToDevice)

API hipError_t hipMemcpyPeerAsync(void *to, int device, const void *from, int from_device,
                                  size_t bytes, hipStream_t stream) {
    enter();
    bool known = is_device(device) && is_device(from_device);
    if (!known) return leave(hipErrorInvalidDevice);
    return leave(copy_rows(to, bytes, from, bytes, bytes, 1, hipMemcpyDeviceToDevice, stream, false));
}
API hipError_t hipMemcpyPeer(void *to, int device, const void *from, int from_device,
                             size_t bytes) {
    return hipMemcpyPeerAsync(to, device, from, from_device, bytes, NULL);
}
API hipError_t hipMemcpy2D(void *to, size_t to_pitch, const void *from, size_t from_pitch,
                           size_t width, size_t height, hipMemcpyKind kind) {
    return copy_rows(to, to_pitch, from, from_pitch, width, height, kind, NULL, true);
}
API hipError_t hipMemcpy2DAsync(void *to, size_t to_pitch, const void *from, size_t from_pitch,
                                size_t width, size_t height, hipMemcpyKind kind,
                                hipStream_t stream) {
    return copy_rows(to, to_pitch, from, from_pitch, width, height, kind, stream, false);
}

static char *position(hipPitchedPtr pointer, hipPos offset, size_t slice) {
    size_t row = (offset.z + slice) * pointer.ysize + offset.y;
    return (char *)pointer.ptr + row * pointer.pitch + offset.x;
}
API hipError_t hipMemcpy3DAsync(const hipMemcpy3DParms *copy, hipStream_t stream) {
    enter();
    if (!copy || copy->srcArray || copy->dstArray) return leave(hipErrorInvalidValue);
    for (size_t slice = 0; slice < copy->extent.depth; ++slice) {
        char *to = position(copy->dstPtr, copy->dstPos, slice);
        char *from = position(copy->srcPtr, copy->srcPos, slice);
        hipError_t error = copy_rows(to, copy->dstPtr.pitch, from, copy->srcPtr.pitch,
                                     copy->extent.width, copy->extent.height, copy->kind, stream,
                                     false);
        if (error) return leave(error);
    }
    return leave(hipSuccess);
}
API hipError_t hipMemcpy3D(const hipMemcpy3DParms *copy) {
    enter();
    hipError_t error = hipMemcpy3DAsync(copy, NULL);
    if (!error) tell(HOST_WAITS_STREAM, 0, 0, 0, 0, 0, 0);
    return leave(error);
}

// --- fills
INLINED hipError_t set_rows(void *pointer, size_t pitch, unsigned value, unsigned element,
                            size_t width, size_t height, hipStream_t stream) {
    enter();
    size_t bytes = width * element;
    if (bytes > pitch) return leave(hipErrorInvalidValue);
    if (width && height && !is_device_memory(pointer))
        return leave(hipErrorInvalidValue);
    hipError_t error = accessible(pointer, extent(pitch, bytes, height));
    if (error) return leave(error);
    Work work = {.kind = SET_WORK};
    work.set.pointer = pointer, work.set.pitch = pitch;
    work.set.width = width, work.set.height = height;
    work.set.element_bytes = element, work.set.value = value;
    return leave(submit(stream, &work));
}

API hipError_t hipMemset(void *pointer, int value, size_t bytes) {
    return set_rows(pointer, bytes, value, 1, bytes, 1, NULL);
}
API hipError_t hipMemsetAsync(void *pointer, int value, size_t bytes, hipStream_t stream) {
    return set_rows(pointer, bytes, value, 1, bytes, 1, stream);
}
API hipError_t hipMemset2D(void *pointer, size_t pitch, int value, size_t width, size_t height) {
    return set_rows(pointer, pitch, value, 1, width, height, NULL);
}
API hipError_t hipMemset2DAsync(void *pointer, size_t pitch, int value, size_t width, size_t height,
                                hipStream_t stream) {
    return set_rows(pointer, pitch, value, 1, width, height, stream);
}
API hipError_t hipMemsetD8(hipDeviceptr_t pointer, unsigned char value, size_t count) {
    return set_rows(pointer, count, value, 1, count, 1, NULL);
}
API hipError_t hipMemsetD16(hipDeviceptr_t pointer, unsigned short value, size_t count) {
    return set_rows(pointer, 2 * count, value, 2, count, 1, NULL);
}
API hipError_t hipMemsetD32(hipDeviceptr_t pointer, int value, size_t count) {
    return set_rows(pointer, 4 * count, value, 4, count, 1, NULL);
}
API hipError_t hipMemsetD8Async(hipDeviceptr_t pointer, unsigned char value, size_t count,
                                hipStream_t stream) {
    return set_rows(pointer, count, value, 1, count, 1, stream);
}
API hipError_t hipMemsetD16Async(hipDeviceptr_t pointer, unsigned short value, size_t count,
                                 hipStream_t stream) {
    return set_rows(pointer, 2 * count, value, 2, count, 1, stream);
}
API hipError_t hipMemsetD32Async(hipDeviceptr_t pointer, int value, size_t count,
                                 hipStream_t stream) {
    return set_rows(pointer, 4 * count, value, 4, count, 1, stream);
}

// --- symbols: variables of device code
INLINED hipError_t copy_symbol(const void *symbol, size_t offset, void *to, const void *from,
                               size_t bytes, hipStream_t stream, bool waits) {
    enter();
    Variable *variable = variable_of(symbol);
    if (!variable) return leave(hipErrorInvalidSymbol);
    if (offset + bytes > variable->bytes) return leave(hipErrorInvalidValue);
    void *other = to ? to : (void *)from;
    hipError_t error = accessible(other, bytes);
    if (error || (!other && bytes)) return leave(error ? error : hipErrorInvalidValue);
    char *address = variable->address + offset;
    Work work = copy_of(to ? to : address, bytes, to ? address : from, bytes, bytes, 1);
    return leave(submitted(stream, &work, waits));
}

API hipError_t hipMemcpyToSymbolAsync(const void *symbol, const void *from, size_t bytes,
                                      size_t offset, hipMemcpyKind kind, hipStream_t stream) {
    if (kind == hipMemcpyDeviceToHost || kind == hipMemcpyHostToHost)
        return enter(), leave(hipErrorInvalidMemcpyDirection);
    return copy_symbol(symbol, offset, NULL, from, bytes, stream, false);
}
API hipError_t hipMemcpyToSymbol(const void *symbol, const void *from, size_t bytes, size_t offset,
                                 hipMemcpyKind kind) {
    if (kind == hipMemcpyDeviceToHost || kind == hipMemcpyHostToHost)
        return enter(), leave(hipErrorInvalidMemcpyDirection);
    return copy_symbol(symbol, offset, NULL, from, bytes, NULL, true);
}
API hipError_t hipMemcpyFromSymbolAsync(void *to, const void *symbol, size_t bytes, size_t offset,
                                        hipMemcpyKind kind, hipStream_t stream) {
    if (kind == hipMemcpyHostToDevice || kind == hipMemcpyHostToHost)
        return enter(), leave(hipErrorInvalidMemcpyDirection);
    if (!to) return enter(), leave(hipErrorInvalidValue);
    return copy_symbol(symbol, offset, to, NULL, bytes, stream, false);
}
API hipError_t hipMemcpyFromSymbol(void *to, const void *symbol, size_t bytes, size_t offset,
                                   hipMemcpyKind kind) {
    if (kind == hipMemcpyHostToDevice || kind == hipMemcpyHostToHost)
        return enter(), leave(hipErrorInvalidMemcpyDirection);
    if (!to) return enter(), leave(hipErrorInvalidValue);
    return copy_symbol(symbol, offset, to, NULL, bytes, NULL, true);
}
API hipError_t hipGetSymbolAddress(void **pointer, const void *symbol) {
    enter();
    Variable *variable = variable_of(symbol);
    if (!variable || !pointer) return leave(hipErrorInvalidSymbol);
    *pointer = variable->address;
    return leave(hipSuccess);
}
API hipError_t hipGetSymbolSize(size_t *bytes, const void *symbol) {
    enter();
    Variable *variable = variable_of(symbol);
    if (!variable || !bytes) return leave(hipErrorInvalidSymbol);
    *bytes = variable->bytes;
    return leave(hipSuccess);
}
