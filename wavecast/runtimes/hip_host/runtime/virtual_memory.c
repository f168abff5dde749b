// Virtual memory: addresses of the arena are reserved, and memory is mapped to them, all of a
// handle at one place. Access is not restricted: every device of the program has it.
#include "runtime.h"

#define GRANULE ((size_t)2 << 20)
#define MAGIC 0x6d656d68

typedef struct {
    unsigned magic;
    int device;
    size_t bytes;
    bool mapped, released;
} PhysicalMemory;
typedef struct {  // hipMemAllocationProp and hipMemAccessDesc begin so
    int type, handle_types, location, device;
} AllocationProperties;

static bool is_granular(size_t bytes) { return bytes && bytes % GRANULE == 0; }
static bool is_memory(const PhysicalMemory *memory) { return memory && memory->magic == MAGIC; }
static hipError_t drop(PhysicalMemory *memory) {
    if (memory->released && !memory->mapped) {
        memory->magic = 0;
        free(memory);
    }
    return hipSuccess;
}

// What is mapped where, to find the memory of an address that is unmapped.
typedef struct Mapping {
    char *address;
    PhysicalMemory *memory;
    struct Mapping *next;
} Mapping;
static Mapping *mappings;

API hipError_t hipMemGetAllocationGranularity(size_t *granularity, const void *properties,
                                              int option) {
    (void)properties, (void)option;
    enter();
    if (!granularity) return leave(hipErrorInvalidValue);
    *granularity = GRANULE;
    return leave(hipSuccess);
}

API hipError_t hipMemAddressReserve(void **pointer, size_t bytes, size_t align, void *wish,
                                    unsigned long long flags) {
    (void)wish;
    enter();
    if (!pointer || !is_granular(bytes) || flags || align & (align - 1))
        return leave(hipErrorInvalidValue);
    *pointer = reserve_addresses(bytes, align > GRANULE ? align : GRANULE);
    return leave(*pointer ? hipSuccess : hipErrorOutOfMemory);
}
API hipError_t hipMemAddressFree(void *pointer, size_t bytes) {
    enter();
    return leave(in_arena(pointer) && is_granular(bytes) ? hipSuccess : hipErrorInvalidValue);
}

API hipError_t hipMemCreate(PhysicalMemory **handle, size_t bytes,
                            const AllocationProperties *properties, unsigned long long flags) {
    enter();
    if (!handle || !properties || !is_granular(bytes) || flags) return leave(hipErrorInvalidValue);
    if (properties->device < 0 || (unsigned)properties->device >= session.devices)
        return leave(hipErrorInvalidDevice);
    if (bytes > session.properties.totalGlobalMem) return leave(hipErrorOutOfMemory);
    *handle = new_memory(sizeof **handle);
    **handle = (PhysicalMemory){MAGIC, properties->device, bytes, false, false};
    return leave(hipSuccess);
}
API hipError_t hipMemRelease(PhysicalMemory *handle) {
    enter();
    if (!is_memory(handle) || handle->released) return leave(hipErrorInvalidValue);
    handle->released = true;
    return leave(drop(handle));
}

API hipError_t hipMemMap(void *pointer, size_t bytes, size_t offset, PhysicalMemory *handle,
                         unsigned long long flags) {
    enter();
    if (!is_memory(handle) || !in_arena(pointer) || flags || offset || bytes != handle->bytes)
        return leave(hipErrorInvalidValue);
    if (handle->mapped) return leave(hipErrorNotSupported);  // the same bytes at two addresses
    Mapping *mapping = new_memory(sizeof *mapping);
    *mapping = (Mapping){pointer, handle, mappings};
    mappings = mapping;
    handle->mapped = true;
    return leave(map_memory(pointer, bytes, handle->device));
}
API hipError_t hipMemUnmap(void *pointer, size_t bytes) {
    enter();
    tell(HOST_WAITS_DEVICE, 0, 0, 0, 0, 0, 0);
    for (Mapping **at = &mappings; *at; at = &(*at)->next) {
        Mapping *mapping = *at;
        if (mapping->address != pointer) continue;
        if (mapping->memory->bytes != bytes) break;
        hipError_t error = release(pointer);
        mapping->memory->mapped = false;
        drop(mapping->memory);
        *at = mapping->next;
        free(mapping);
        return leave(error);
    }
    return leave(hipErrorInvalidValue);
}
API hipError_t hipMemSetAccess(void *pointer, size_t bytes, const void *description, size_t count) {
    enter();
    bool right = in_arena(pointer) && bytes && description && count;
    return leave(right ? hipSuccess : hipErrorInvalidValue);
}
