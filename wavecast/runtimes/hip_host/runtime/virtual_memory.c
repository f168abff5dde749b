// Virtual memory: addresses, memory, and which memory is at which addresses. Memory is at one place at
// a time, and moves with its content when it is mapped elsewhere.
#include "runtime.h"

#define GRANULARITY ((size_t)2 << 20)

struct ihipMemGenericAllocationHandle {
    size_t bytes;
    unsigned references;  // of the program, and of its place
    hipMemAllocationProp properties;
    char *place;    // where it is mapped, or NULL
    char *content;  // while it is mapped nowhere; NULL: never written
    struct ihipMemGenericAllocationHandle *next;
};
static hipMemGenericAllocationHandle_t handles;

static void drop(hipMemGenericAllocationHandle_t handle) {
    if (--handle->references) return;
    hipMemGenericAllocationHandle_t *link = &handles;
    while (*link != handle) link = &(*link)->next;
    *link = handle->next;
    free(handle->content);
    free(handle);
}

static hipMemGenericAllocationHandle_t handle_at(const void *pointer) {
    const char *address = pointer;
    for (hipMemGenericAllocationHandle_t one = handles; one; one = one->next)
        if (one->place && address >= one->place && address < one->place + one->bytes) return one;
    return NULL;
}

API hipError_t hipMemGetAllocationGranularity(size_t *bytes, const hipMemAllocationProp *properties,
                                              hipMemAllocationGranularity_flags option) {
    (void)option;
    enter();
    if (!bytes || !properties) return leave(hipErrorInvalidValue);
    *bytes = GRANULARITY;
    return leave(hipSuccess);
}

API hipError_t hipMemAddressReserve(void **pointer, size_t bytes, size_t alignment, void *address,
                                    unsigned long long flags) {
    (void)address;
    enter();
    if (!pointer || !bytes || bytes % GRANULARITY || flags) return leave(hipErrorInvalidValue);
    if (alignment < GRANULARITY) alignment = GRANULARITY;
    char *first = reserve_addresses(bytes + alignment);
    if (!first) return leave(hipErrorOutOfMemory);
    *pointer = (void *)(((size_t)first + alignment - 1) / alignment * alignment);
    return leave(hipSuccess);
}
API hipError_t hipMemAddressFree(void *pointer, size_t bytes) {
    enter();
    return leave(in_arena(pointer) && bytes && !handle_at(pointer) ? hipSuccess
                                                                   : hipErrorInvalidValue);
}

API hipError_t hipMemCreate(hipMemGenericAllocationHandle_t *handle, size_t bytes,
                            const hipMemAllocationProp *properties, unsigned long long flags) {
    enter();
    if (!handle || !properties || !bytes || bytes % GRANULARITY || flags ||
        properties->type != hipMemAllocationTypePinned || !is_device(properties->location.id))
        return leave(hipErrorInvalidValue);
    if (bytes > session.properties.totalGlobalMem) return leave(hipErrorOutOfMemory);
    *handle = new_memory(sizeof **handle);
    (*handle)->bytes = bytes, (*handle)->properties = *properties, (*handle)->references = 1;
    (*handle)->next = handles, handles = *handle;
    return leave(hipSuccess);
}
API hipError_t hipMemRelease(hipMemGenericAllocationHandle_t handle) {
    enter();
    if (!handle) return leave(hipErrorInvalidValue);
    drop(handle);
    return leave(hipSuccess);
}

API hipError_t hipMemMap(void *pointer, size_t bytes, size_t offset,
                         hipMemGenericAllocationHandle_t handle, unsigned long long flags) {
    enter();
    if (!handle || !in_arena(pointer) || flags || bytes != handle->bytes || offset)
        return leave(hipErrorInvalidValue);
    if (handle->place) return leave(hipErrorNotSupported);  // the same bytes at two addresses
    if (allocation_of(pointer)) return leave(hipErrorInvalidValue);
    insert_allocation((Allocation){pointer, bytes, hipMemoryTypeDevice, handle->properties.location.id,
                                   0, NULL});
    if (handle->content) memcpy(pointer, handle->content, bytes);
    free(handle->content);
    handle->content = NULL, handle->place = pointer;
    ++handle->references;
    return leave(hipSuccess);
}
API hipError_t hipMemUnmap(void *pointer, size_t bytes) {
    enter();
    char *next = pointer, *end = next + bytes;
    while (next < end) {
        hipMemGenericAllocationHandle_t handle = handle_at(next);
        if (!handle || handle->place != next || next + handle->bytes > end)
            return leave(hipErrorInvalidValue);
        next += handle->bytes;
        if (handle->references > 1) {
            handle->content = new_memory(handle->bytes);
            memcpy(handle->content, handle->place, handle->bytes);
        }
        release(handle->place);
        handle->place = NULL;
        drop(handle);
    }
    return leave(hipSuccess);
}

API hipError_t hipMemSetAccess(void *pointer, size_t bytes, const hipMemAccessDesc *access,
                               size_t count) {
    enter();
    bool valid = handle_at(pointer) && bytes && access && count;
    return leave(valid ? hipSuccess : hipErrorInvalidValue);
}
API hipError_t hipMemGetAccess(unsigned long long *flags, const hipMemLocation *location,
                               void *pointer) {
    enter();
    if (!flags || !location || !handle_at(pointer)) return leave(hipErrorInvalidValue);
    *flags = hipMemAccessFlagsProtReadWrite;
    return leave(hipSuccess);
}
API hipError_t hipMemGetAllocationPropertiesFromHandle(hipMemAllocationProp *properties,
                                                       hipMemGenericAllocationHandle_t handle) {
    enter();
    if (!properties || !handle) return leave(hipErrorInvalidValue);
    *properties = handle->properties;
    return leave(hipSuccess);
}
API hipError_t hipMemRetainAllocationHandle(hipMemGenericAllocationHandle_t *handle,
                                            void *pointer) {
    enter();
    hipMemGenericAllocationHandle_t there = handle_at(pointer);
    if (!handle || !there) return leave(hipErrorInvalidValue);
    ++there->references;
    *handle = there;
    return leave(hipSuccess);
}
