// Allocations in the arena. Addresses are used again only when the arena is full, so that an access
// of freed memory is one of no allocation.
#define _GNU_SOURCE
#include "runtime.h"

#include <sys/mman.h>
#include <unistd.h>

#define PAGE ((size_t)4096)
#define APART PAGE  // unused addresses between allocations: an overrun hits none of the next
#define PITCH ((size_t)256)
#define FILLED ((size_t)1 << 30)  // of an allocation: pools reserve the memory of a whole GPU

static Allocation *live;
static size_t count, room;
static size_t cursor;
static unsigned long long version;
static size_t used[MAXIMUM_DEVICES];

size_t allocation_count(void) { return count; }
const Allocation *allocations(void) { return live; }
unsigned long long memory_version(void) { return version; }

static size_t rounded(size_t value, size_t unit) { return (value + unit - 1) / unit * unit; }

// The number of the first allocation that ends after an address.
static size_t index_of(const char *address) {
    size_t low = 0, high = count;
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (live[middle].address + live[middle].bytes <= address)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

bool in_arena(const void *pointer) {
    const char *address = pointer;
    return address >= session.arena && address < session.arena + session.arena_bytes;
}

// Memory that another process of the program has allocated.
static bool of_other_process(const void *pointer) {
    const char *address = pointer;
    return address >= session.mapping && address < session.mapping + session.mapping_bytes &&
           !in_arena(pointer);
}

// Memory of a process with the emulator in it is that of its GPU, too: tensors are there.
bool is_device_memory(const void *pointer) {
    return in_arena(pointer) || of_other_process(pointer) || is_in_process() ||
           device_alias((void *)pointer);
}

Allocation *allocation_of(const void *pointer) {
    size_t index = index_of(pointer);
    bool found = index < count && live[index].address <= (const char *)pointer;
    return found ? &live[index] : NULL;
}

// The allocation of an address; that of a tensor, where kernels share memory with the process.
static bool memory_of(const void *pointer, Allocation *memory) {
    Allocation *there = allocation_of(pointer);
    if (there) *memory = *there;
    if (there || !is_in_process()) return there;
    unsigned long long address = (size_t)pointer, range[2] = {0};
    Reply reply = request(RANGE, &address, sizeof address, "", 0);
    if (!reply.status) memcpy(range, reply.data, sizeof range);
    free(reply.data);
    *memory = (Allocation){(char *)(size_t)range[0], range[1], hipMemoryTypeDevice, 0, 0, NULL};
    return range[1];
}

hipError_t accessible(const void *pointer, size_t bytes) {
    if (!bytes) return hipSuccess;
    if (!pointer) return hipErrorInvalidValue;
    bool own = in_arena(pointer);
    if ((!own && !of_other_process(pointer)) ||
        (own && (char *)pointer < session.arena + session.first_allocation))
        return hipSuccess;  // host memory, or data of a module
    Allocation *found = allocation_of(pointer);
    if (!found) return hipErrorInvalidValue;
    size_t offset = (const char *)pointer - found->address;
    return offset + bytes <= found->bytes ? hipSuccess : hipErrorInvalidValue;
}

static size_t free_offset(size_t bytes) {
    size_t end = session.arena_bytes;
    if (!cursor) cursor = session.first_allocation;
    if (bytes <= end - cursor) return cursor;
    size_t offset = session.first_allocation;
    for (size_t index = 0; index < count; ++index) {
        size_t first = live[index].address - session.arena;
        if (first >= offset + bytes) break;
        offset = rounded(first + live[index].bytes, PAGE) + APART;
    }
    return offset + bytes <= end ? offset : 0;
}

static void fill(char *address, size_t bytes) {
    if (bytes > FILLED) bytes = FILLED;
    for (size_t offset = 0; offset < bytes; offset += 8)
        memcpy(address + offset, &session.canary, bytes - offset < 8 ? bytes - offset : 8);
}

void insert_allocation(Allocation made) {
    if (count == room) {
        room = room ? 2 * room : 256;
        live = realloc(live, room * sizeof *live);
        if (!live) fail("no memory for %zu allocations", room);
    }
    size_t index = index_of(made.address);
    memmove(live + index + 1, live + index, (count - index) * sizeof *live);
    live[index] = made;
    if (made.type == hipMemoryTypeDevice) used[made.device] += made.bytes;
    ++count, ++version;
}

char *reserve_addresses(size_t bytes) {
    size_t reserved = rounded(bytes, PAGE) + APART, offset = free_offset(reserved);
    if (!offset) return NULL;
    cursor = offset + reserved > cursor ? offset + reserved : cursor;
    return session.arena + offset;
}

hipError_t allocate(void **pointer, size_t bytes, hipMemoryType type, unsigned flags) {
    if (!pointer) return hipErrorInvalidValue;
    *pointer = NULL;
    if (!bytes) return hipSuccess;
    size_t total = session.properties.totalGlobalMem;
    bool on_device = type == hipMemoryTypeDevice;
    if (bytes > total || (on_device && bytes > total - used[current_device]))
        return hipErrorOutOfMemory;
    char *address = reserve_addresses(bytes);
    if (!address) return hipErrorOutOfMemory;
    insert_allocation((Allocation){address, bytes, type, current_device, flags, NULL});
    if (!on_device) tell(HOST_MEMORY, 0, (size_t)address, bytes, 0, 0, 0);
    if (type == hipMemoryTypeHost && flags & hipHostMallocNonCoherent)
        tell(GRAIN, 0, (size_t)address, bytes, 1, 0, 0);
    if (on_device && flags & hipDeviceMallocUncached)  // or fine-grained: a bit of it
        tell(GRAIN, 0, (size_t)address, bytes, 0, 0, 0);
    if (session.canary) fill(address, bytes);
    *pointer = address;
    return hipSuccess;
}

static void remove_at(size_t index) {
    Allocation gone = live[index];
    if (gone.type == hipMemoryTypeDevice) used[gone.device] -= gone.bytes;
    memmove(live + index, live + index + 1, (count - index - 1) * sizeof *live);
    --count, ++version;
    if (in_arena(gone.address))
        madvise(gone.address, rounded(gone.bytes, PAGE), MADV_REMOVE);  // gives pages back
}

hipError_t release(void *pointer) {
    if (!pointer) return hipSuccess;
    Allocation *found = allocation_of(pointer);
    if (!found || found->address != pointer || found->registered) return hipErrorInvalidValue;
    remove_at(found - live);
    return hipSuccess;
}

void release_all(void) {
    for (size_t index = count; index--;)
        if (live[index].type == hipMemoryTypeDevice) remove_at(index);
}

void *device_alias(void *host) {
    for (size_t index = 0; index < count; ++index) {
        char *first = live[index].registered;
        if (first && (char *)host >= first && (char *)host < first + live[index].bytes)
            return live[index].address + ((char *)host - first);
    }
    return NULL;
}

static hipError_t allocated(void **pointer, size_t bytes, hipMemoryType type, unsigned flags) {
    enter();
    return leave(allocate(pointer, bytes, type, flags));
}

API hipError_t hipMalloc(void **pointer, size_t bytes) {
    return allocated(pointer, bytes, hipMemoryTypeDevice, 0);
}
API hipError_t hipExtMallocWithFlags(void **pointer, size_t bytes, unsigned flags) {
    return allocated(pointer, bytes, hipMemoryTypeDevice, flags);
}
API hipError_t hipMallocManaged(void **pointer, size_t bytes, unsigned flags) {
    return allocated(pointer, bytes, hipMemoryTypeManaged, flags);
}
API hipError_t hipHostMalloc(void **pointer, size_t bytes, unsigned flags) {
    return allocated(pointer, bytes, hipMemoryTypeHost, flags);
}
API hipError_t hipHostAlloc(void **pointer, size_t bytes, unsigned flags) {
    return allocated(pointer, bytes, hipMemoryTypeHost, flags);
}
API hipError_t hipMallocHost(void **pointer, size_t bytes) {
    return allocated(pointer, bytes, hipMemoryTypeHost, 0);
}
API hipError_t hipMallocAsync(void **pointer, size_t bytes, hipStream_t stream) {
    (void)stream;
    return allocated(pointer, bytes, hipMemoryTypeDevice, 0);
}
API hipError_t hipMallocPitch(void **pointer, size_t *pitch, size_t width, size_t height) {
    if (!pitch) return hipErrorInvalidValue;
    *pitch = rounded(width, PITCH);
    return allocated(pointer, *pitch * height, hipMemoryTypeDevice, 0);
}
API hipError_t hipMalloc3D(hipPitchedPtr *pointer, hipExtent extent) {
    if (!pointer) return hipErrorInvalidValue;
    pointer->xsize = extent.width, pointer->ysize = extent.height;
    size_t height = extent.height * (extent.depth ? extent.depth : 1);
    return hipMallocPitch(&pointer->ptr, &pointer->pitch, extent.width, height);
}

static inline __attribute__((always_inline)) hipError_t freed(void *pointer) {
    enter();
    tell(HOST_WAITS_DEVICE, 0, 0, 0, 0, 0, 0);  // hipFree waits for all work
    return leave(release(pointer));
}
API hipError_t hipFree(void *pointer) { return freed(pointer); }
API hipError_t hipHostFree(void *pointer) { return freed(pointer); }
API hipError_t hipFreeHost(void *pointer) { return freed(pointer); }
API hipError_t hipFreeAsync(void *pointer, hipStream_t stream) {
    enter();
    if (!pointer) return leave(hipErrorInvalidValue);
    Allocation *found = allocation_of(pointer);
    size_t bytes = found && found->address == pointer ? found->bytes : 0;
    if (session.canary) send_allocations();
    if (bytes) tell(FREES, 0, stream_id(stream), (size_t)pointer, bytes, 0, 0);
    return leave(release(pointer));
}

// Registered memory gets pages of the arena: the same bytes under the host's address and under one
// that kernels can use.
API hipError_t hipHostRegister(void *pointer, size_t bytes, unsigned flags) {
    enter();
    if (!pointer || !bytes) return leave(hipErrorInvalidValue);
    if (in_arena(pointer) || device_alias(pointer))
        return leave(hipErrorHostMemoryAlreadyRegistered);
    if (is_in_process()) {  // kernels reach it where it is
        if (allocation_of(pointer)) return leave(hipErrorHostMemoryAlreadyRegistered);
        insert_allocation((Allocation){pointer, bytes, hipMemoryTypeHost, current_device, flags, NULL});
        return leave(hipSuccess);
    }
    char *first = (char *)((size_t)pointer / PAGE * PAGE);
    size_t whole = rounded((char *)pointer + bytes - first, PAGE);
    void *made;
    hipError_t error = allocate(&made, whole, hipMemoryTypeHost, flags);
    if (error) return leave(error);
    memcpy(made, first, whole);
    // mremap of a shared mapping with an old size of 0 maps the same pages a second time.
    if (mremap(made, 0, whole, MREMAP_MAYMOVE | MREMAP_FIXED, first) != first) {
        release(made);
        return leave(hipErrorInvalidValue);
    }
    allocation_of(made)->registered = first;
    return leave(hipSuccess);
}

API hipError_t hipHostUnregister(void *pointer) {
    enter();
    Allocation *here = is_in_process() ? allocation_of(pointer) : NULL;
    if (here && here->address == pointer && !in_arena(pointer))
        return leave(release(pointer));
    char *alias = device_alias(pointer);
    if (!alias) return leave(hipErrorHostMemoryNotRegistered);
    Allocation *found = allocation_of(alias);
    char *host = found->registered;
    size_t whole = found->bytes;
    char *kept = new_memory(whole);
    memcpy(kept, host, whole);
    if (mmap(host, whole, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) !=
        host)
        fail("hipHostUnregister: the system has no memory");
    memcpy(host, kept, whole);
    free(kept);
    found->registered = NULL;
    return leave(release(found->address));
}

API hipError_t hipHostGetDevicePointer(void **device, void *host, unsigned flags) {
    (void)flags;
    enter();
    if (!device) return leave(hipErrorInvalidValue);
    *device = in_arena(host) || is_in_process() ? host : device_alias(host);
    return leave(*device ? hipSuccess : hipErrorInvalidValue);
}

API hipError_t hipHostGetFlags(unsigned *flags, void *host) {
    enter();
    Allocation *found = allocation_of(host);
    if (!found || !flags || found->type != hipMemoryTypeHost) return leave(hipErrorInvalidValue);
    *flags = found->flags;
    return leave(hipSuccess);
}

API hipError_t hipMemGetInfo(size_t *available, size_t *total) {
    enter();
    if (available) *available = session.properties.totalGlobalMem - used[current_device];
    if (total) *total = session.properties.totalGlobalMem;
    return leave(hipSuccess);
}

API hipError_t hipMemPtrGetInfo(void *pointer, size_t *bytes) {
    enter();
    Allocation memory;
    if (!bytes || !memory_of(pointer, &memory)) return leave(hipErrorInvalidValue);
    *bytes = memory.bytes;
    return leave(hipSuccess);
}

API hipError_t hipMemGetAddressRange(hipDeviceptr_t *base, size_t *bytes, hipDeviceptr_t pointer) {
    enter();
    Allocation memory;
    if (!memory_of(pointer, &memory)) return leave(hipErrorNotFound);
    if (base) *base = memory.address;
    if (bytes) *bytes = memory.bytes;
    return leave(hipSuccess);
}

API hipError_t hipPointerGetAttributes(hipPointerAttribute_t *attributes, const void *pointer) {
    enter();
    if (!attributes || !pointer) return leave(hipErrorInvalidValue);
    Allocation memory;
    memset(attributes, 0, sizeof *attributes);
    attributes->device = -2;
    if (!memory_of(pointer, &memory)) return leave(hipSuccess);
    attributes->type = memory.type;
    attributes->device = memory.device;
    attributes->devicePointer = (void *)pointer;
    if (memory.type != hipMemoryTypeDevice) attributes->hostPointer = (void *)pointer;
    attributes->isManaged = memory.type == hipMemoryTypeManaged;
    attributes->allocationFlags = memory.flags;
    return leave(hipSuccess);
}

API hipError_t hipPointerGetAttribute(void *value, hipPointer_attribute attribute,
                                      hipDeviceptr_t pointer) {
    enter();
    Allocation memory;
    if (!value || !pointer) return leave(hipErrorInvalidValue);
    if (!memory_of(pointer, &memory)) return leave(hipErrorInvalidValue);
    bool on_device = memory.type == hipMemoryTypeDevice;
    switch (attribute) {
        case HIP_POINTER_ATTRIBUTE_MEMORY_TYPE: *(unsigned *)value = memory.type; break;
        case HIP_POINTER_ATTRIBUTE_DEVICE_POINTER: *(void **)value = pointer; break;
        case HIP_POINTER_ATTRIBUTE_HOST_POINTER:
            *(void **)value = on_device ? NULL : pointer;
            return leave(on_device ? hipErrorInvalidValue : hipSuccess);
        case HIP_POINTER_ATTRIBUTE_IS_MANAGED:
            *(bool *)value = memory.type == hipMemoryTypeManaged;
            break;
        case HIP_POINTER_ATTRIBUTE_DEVICE_ORDINAL: *(int *)value = memory.device; break;
        case HIP_POINTER_ATTRIBUTE_IS_LEGACY_HIP_IPC_CAPABLE: *(bool *)value = on_device; break;
        case HIP_POINTER_ATTRIBUTE_RANGE_START_ADDR: *(void **)value = memory.address; break;
        case HIP_POINTER_ATTRIBUTE_RANGE_SIZE: *(size_t *)value = memory.bytes; break;
        case HIP_POINTER_ATTRIBUTE_MAPPED: *(bool *)value = true; break;
        default: return leave(hipErrorNotSupported);
    }
    return leave(hipSuccess);
}

// --- memory of another process: all processes of a program map the arenas of all
#define IPC_MAGIC 0x6362697077617665ull
typedef struct {
    unsigned long long magic, address, bytes;
    int process;
} IpcContent;

API hipError_t hipIpcGetMemHandle(hipIpcMemHandle_t *handle, void *pointer) {
    enter();
    Allocation memory;
    if (!handle || !memory_of(pointer, &memory) || memory.type != hipMemoryTypeDevice)
        return leave(hipErrorInvalidValue);
    memset(handle, 0, sizeof *handle);
    IpcContent content = {IPC_MAGIC, (size_t)memory.address, memory.bytes, getpid()};
    memcpy(handle, &content, sizeof content);
    return leave(hipSuccess);
}

API hipError_t hipIpcOpenMemHandle(void **pointer, hipIpcMemHandle_t handle, unsigned flags) {
    (void)flags;
    enter();
    IpcContent content;
    memcpy(&content, &handle, sizeof content);
    char *address = (char *)(size_t)content.address;
    if (!pointer || content.magic != IPC_MAGIC) return leave(hipErrorInvalidValue);
    if (is_in_process() && content.process != getpid())
        fail("hipIpcOpenMemHandle: memory of another process cannot be opened");
    if (of_other_process(address)) {  // opened again it is the same memory, to be closed as often
        if (!allocation_of(address))
            insert_allocation((Allocation){address, content.bytes, hipMemoryTypeDevice,
                                           current_device, 0, NULL});
        allocation_of(address)->opened++;
    }
    *pointer = address;
    return leave(hipSuccess);
}
API hipError_t hipIpcCloseMemHandle(void *pointer) {
    enter();
    Allocation *memory = pointer ? allocation_of(pointer) : NULL;
    if (memory && of_other_process(memory->address) && !--memory->opened) remove_at(memory - live);
    return leave(pointer ? hipSuccess : hipErrorInvalidValue);
}

API hipError_t hipMemPrefetchAsync(const void *pointer, size_t bytes, int device,
                                   hipStream_t stream) {
    (void)stream;
    enter();
    if (device != hipCpuDeviceId && !is_device(device)) return leave(hipErrorInvalidDevice);
    return leave(accessible(pointer, bytes));
}

API hipError_t hipMemAdvise(const void *pointer, size_t bytes, hipMemoryAdvise advice, int device) {
    if (advice == hipMemAdviseSetCoarseGrain || advice == hipMemAdviseUnsetCoarseGrain)
        tell(GRAIN, 0, (size_t)pointer, bytes, advice == hipMemAdviseSetCoarseGrain, 0, 0);
    return hipMemPrefetchAsync(pointer, bytes, device, NULL);
}

// --- pools: one per device, and those a program makes; memory is that of hipMalloc
struct ihipMemPoolHandle_t {
    int device;
    unsigned long long values[9];
};
static struct ihipMemPoolHandle_t defaults[MAXIMUM_DEVICES];

API hipError_t hipDeviceGetDefaultMemPool(hipMemPool_t *pool, int device) {
    enter();
    if (!pool || !is_device(device)) return leave(hipErrorInvalidValue);
    defaults[device].device = device;
    *pool = &defaults[device];
    return leave(hipSuccess);
}
API hipError_t hipDeviceGetMemPool(hipMemPool_t *pool, int device) {
    return hipDeviceGetDefaultMemPool(pool, device);
}
API hipError_t hipDeviceSetMemPool(int device, hipMemPool_t pool) {
    enter();
    return leave(pool && is_device(device) ? hipSuccess : hipErrorInvalidValue);
}
API hipError_t hipMemPoolCreate(hipMemPool_t *pool, const hipMemPoolProps *properties) {
    enter();
    if (!pool || !properties || !is_device(properties->location.id))
        return leave(hipErrorInvalidValue);
    *pool = new_memory(sizeof **pool);
    (*pool)->device = properties->location.id;
    return leave(hipSuccess);
}
API hipError_t hipMemPoolDestroy(hipMemPool_t pool) {
    enter();
    if (!pool) return leave(hipErrorInvalidValue);
    if (pool < defaults || pool >= defaults + MAXIMUM_DEVICES) free(pool);
    return leave(hipSuccess);
}
API hipError_t hipMemPoolTrimTo(hipMemPool_t pool, size_t bytes) {
    (void)bytes;
    enter();
    return leave(pool ? hipSuccess : hipErrorInvalidValue);
}
static bool is_flag(hipMemPoolAttr attribute) {
    return attribute <= hipMemPoolReuseAllowInternalDependencies;
}
API hipError_t hipMemPoolSetAttribute(hipMemPool_t pool, hipMemPoolAttr attribute, void *value) {
    enter();
    if (!pool || !value || attribute < 1 || attribute > 8) return leave(hipErrorInvalidValue);
    pool->values[attribute] = is_flag(attribute) ? *(unsigned *)value : *(size_t *)value;
    return leave(hipSuccess);
}
API hipError_t hipMemPoolGetAttribute(hipMemPool_t pool, hipMemPoolAttr attribute, void *value) {
    enter();
    if (!pool || !value || attribute < 1 || attribute > 8) return leave(hipErrorInvalidValue);
    if (attribute == hipMemPoolAttrUsedMemCurrent || attribute == hipMemPoolAttrReservedMemCurrent)
        pool->values[attribute] = used[pool->device];
    if (is_flag(attribute))
        *(unsigned *)value = pool->values[attribute];
    else
        *(size_t *)value = pool->values[attribute];
    return leave(hipSuccess);
}
API hipError_t hipMallocFromPoolAsync(void **pointer, size_t bytes, hipMemPool_t pool,
                                      hipStream_t stream) {
    (void)stream;
    if (!pool) return hipErrorInvalidValue;
    return allocated(pointer, bytes, hipMemoryTypeDevice, 0);
}
