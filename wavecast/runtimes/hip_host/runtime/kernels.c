// Code: what programs register at their start and load as modules, and launches of its kernels.
#include "runtime.h"

#define WRAPPER_MAGIC 0x48495046u
#define BUNDLE_MAGIC "__CLANG_OFFLOAD_BUNDLE__"

struct Module {
    const void *image;
    bool loaded;
    unsigned long long id;
    Kernel *kernels;
    Variable *variables;
    unsigned kernel_count, variable_count;
};
struct ihipModule_t {
    Module module;
};

// What the host's code knows something of the device's code by.
typedef struct Registered {
    const void *host;
    char *name;
    Module *module;
    struct Registered *next;
} Registered;

static Registered *functions, *symbols;

typedef struct {
    unsigned magic, version;
    const void *image;
    void *unused;
} Wrapper;

// Bytes of an offload bundle. LLVM, "Clang Offload Bundler", "Bundled Code Object Layout".
static size_t image_bytes(const char *image) {
    if (!memcmp(image, BUNDLE_MAGIC, strlen(BUNDLE_MAGIC))) {
        const char *next = image + strlen(BUNDLE_MAGIC);
        unsigned long long entries, fields[3], end = 0;
        memcpy(&entries, next, 8);
        for (next += 8; entries--; next += 24 + fields[2]) {
            memcpy(fields, next, 24);
            if (fields[0] + fields[1] > end) end = fields[0] + fields[1];
        }
        return end;
    }
    if (!memcmp(image, "CCOB", 4)) {  // version 2: 32-bit size of the file; 3: 64-bit
        unsigned short version;
        unsigned long long bytes = 0;
        memcpy(&version, image + 4, 2);
        if (version < 2) fail("a compressed offload bundle of version 1 does not tell its size");
        memcpy(&bytes, image + 8, version == 2 ? 4 : 8);
        return bytes;
    }
    if (!memcmp(image, "\177ELF", 4)) {  // section headers are last in what linkers write
        unsigned long long sections;
        unsigned short size, number;
        memcpy(&sections, image + 40, 8);
        memcpy(&size, image + 58, 2), memcpy(&number, image + 60, 2);
        return sections + (size_t)size * number;
    }
    return 0;
}

static unsigned read_u32(const char **next) {
    unsigned value;
    memcpy(&value, *next, 4);
    *next += 4;
    return value;
}
static unsigned long long read_u64(const char **next) {
    unsigned long long value;
    memcpy(&value, *next, 8);
    *next += 8;
    return value;
}
static char *read_name(const char **next) {
    unsigned length = read_u32(next);
    char *name = new_memory(length + 1);
    memcpy(name, *next, length);
    *next += length;
    return name;
}

static hipError_t load(Module *module) {
    if (module->loaded) return hipSuccess;
    size_t bytes = image_bytes(module->image);
    if (!bytes) return hipErrorInvalidImage;
    Reply reply = request(LOAD, module->image, bytes, "", 0);
    if (reply.status) {
        if (!is_in_process()) fprintf(stderr, "wavecast: %s\n", reply.data);
        free(reply.data);
        return reply.status;
    }
    const char *next = reply.data;
    module->id = read_u64(&next);
    module->kernel_count = read_u32(&next);
    module->kernels = new_memory(module->kernel_count * sizeof *module->kernels);
    for (unsigned index = 0; index < module->kernel_count; ++index) {
        Kernel *kernel = &module->kernels[index];
        kernel->module = module, kernel->index = index;
        kernel->name = read_name(&next);
        kernel->kernarg_bytes = read_u32(&next), kernel->max_threads = read_u32(&next);
        kernel->lds_bytes = read_u32(&next), kernel->vgprs = read_u32(&next);
        kernel->scratch_bytes = read_u32(&next), kernel->argument_count = read_u32(&next);
        kernel->arguments = new_memory(kernel->argument_count * sizeof *kernel->arguments);
        for (unsigned number = 0; number < kernel->argument_count; ++number) {
            kernel->arguments[number].offset = read_u32(&next);
            kernel->arguments[number].bytes = read_u32(&next);
        }
    }
    module->variable_count = read_u32(&next);
    module->variables = new_memory(module->variable_count * sizeof *module->variables);
    for (unsigned index = 0; index < module->variable_count; ++index) {
        Variable *variable = &module->variables[index];
        variable->name = read_name(&next);
        variable->address = (char *)read_u64(&next), variable->bytes = read_u64(&next);
    }
    free(reply.data);
    module->loaded = true;
    prepare_module(module);
    return hipSuccess;
}

static void registered(Registered **list, const void *host, const char *name, Module *module) {
    Registered *made = new_memory(sizeof *made);
    *made = (Registered){host, strdup(name), module, *list};
    *list = made;
}
static Registered *registered_as(Registered *list, const void *host) {
    while (list && list->host != host) list = list->next;
    return list;
}

unsigned long long module_id(const Module *module) { return module->id; }

static Kernel *kernel_named(Module *module, const char *name) {
    for (unsigned index = 0; index < module->kernel_count; ++index)
        if (!strcmp(module->kernels[index].name, name)) return &module->kernels[index];
    return NULL;
}
Variable *variable_named(Module *module, const char *name) {
    for (unsigned index = 0; index < module->variable_count; ++index)
        if (!strcmp(module->variables[index].name, name)) return &module->variables[index];
    return NULL;
}

Kernel *kernel_of(const void *function) {
    Registered *found = registered_as(functions, function);
    if (found) return load(found->module) ? NULL : kernel_named(found->module, found->name);
    return NULL;
}
Variable *variable_of(const void *symbol) {
    Registered *found = registered_as(symbols, symbol);
    if (!found || load(found->module)) return NULL;
    return variable_named(found->module, found->name);
}

// --- what clang's code calls
API void **__hipRegisterFatBinary(const void *data) {
    const Wrapper *wrapper = data;
    if (wrapper->magic != WRAPPER_MAGIC) fail("the program's device code has an unknown format");
    Module *module = new_memory(sizeof *module);
    module->image = wrapper->image;
    return (void **)module;
}
API void __hipUnregisterFatBinary(void **handle) { (void)handle; }
API void __hipRegisterFunction(void **handle, const void *host, char *device, const char *name,
                               unsigned limit, void *thread, void *block, void *block_size,
                               void *grid_size, int *wave) {
    (void)device, (void)limit, (void)thread, (void)block, (void)block_size, (void)grid_size;
    (void)wave;
    registered(&functions, host, name, (Module *)handle);
}
API void __hipRegisterVar(void **handle, void *host, char *device, char *name, int is_extern,
                          size_t bytes, int is_constant, int is_global) {
    (void)device, (void)is_extern, (void)bytes, (void)is_constant, (void)is_global;
    registered(&symbols, host, name, (Module *)handle);
}
API void __hipRegisterManagedVar(void **handle, void **pointer, void *initial, const char *name,
                                 size_t bytes, unsigned alignment) {
    (void)alignment;
    enter();
    Module *module = (Module *)handle;
    if (load(module)) fail("the code of the managed variable %s cannot be loaded", name);
    void *made;
    if (allocate(&made, bytes, hipMemoryTypeManaged, hipMemAttachGlobal))
        fail("no memory for the managed variable %s", name);
    memcpy(made, initial, bytes);
    *pointer = made;
    Variable *variable = variable_named(module, name);
    if (variable) memcpy(variable->address, &made, sizeof made);
    registered(&symbols, pointer, name, module);
    leave(hipSuccess);
}

// --- modules
API hipError_t hipModuleLoadData(hipModule_t *module, const void *image) {
    enter();
    if (!module || !image) return leave(hipErrorInvalidValue);
    size_t bytes = image_bytes(image);
    if (!bytes) return leave(hipErrorInvalidImage);
    hipModule_t made = new_memory(sizeof *made);
    char *copy = new_memory(bytes);
    memcpy(copy, image, bytes);
    made->module.image = copy;
    hipError_t error = load(&made->module);
    if (error)
        free(copy), free(made);
    else
        *module = made;
    return leave(error);
}
API hipError_t hipModuleLoadDataEx(hipModule_t *module, const void *image, unsigned count,
                                   int *options, void **values) {
    (void)count, (void)options, (void)values;
    return hipModuleLoadData(module, image);
}
API hipError_t hipModuleLoad(hipModule_t *module, const char *path) {
    enter();
    FILE *file = path ? fopen(path, "rb") : NULL;
    if (!file) return leave(hipErrorFileNotFound);
    fseek(file, 0, SEEK_END);
    long bytes = ftell(file);
    rewind(file);
    char *image = new_memory(bytes > 64 ? bytes : 64);
    bool complete = bytes > 64 && fread(image, 1, bytes, file) == (size_t)bytes;
    fclose(file);
    bool fits = complete && image_bytes(image) && image_bytes(image) <= (size_t)bytes;
    hipError_t error = fits ? hipModuleLoadData(module, image) : hipErrorInvalidImage;
    free(image);
    return leave(error);
}
API hipError_t hipModuleUnload(hipModule_t module) {
    enter();
    if (!module) return leave(hipErrorInvalidResourceHandle);
    free(request(UNLOAD, &module->module.id, 8, "", 0).data);
    for (unsigned index = 0; index < module->module.kernel_count; ++index) {
        free(module->module.kernels[index].name);
        free(module->module.kernels[index].arguments);
    }
    for (unsigned index = 0; index < module->module.variable_count; ++index)
        free(module->module.variables[index].name);
    free(module->module.kernels), free(module->module.variables);
    free((void *)module->module.image), free(module);
    return leave(hipSuccess);
}
API hipError_t hipModuleGetFunction(hipFunction_t *function, hipModule_t module, const char *name) {
    enter();
    if (!function || !module || !name) return leave(hipErrorInvalidValue);
    *function = kernel_named(&module->module, name);
    return leave(*function ? hipSuccess : hipErrorNotFound);
}
API hipError_t hipModuleGetGlobal(hipDeviceptr_t *pointer, size_t *bytes, hipModule_t module,
                                  const char *name) {
    enter();
    if (!module || !name) return leave(hipErrorInvalidValue);
    Variable *variable = variable_named(&module->module, name);
    if (!variable) return leave(hipErrorNotFound);
    if (pointer) *pointer = variable->address;
    if (bytes) *bytes = variable->bytes;
    return leave(hipSuccess);
}

// --- launches
bool pack_arguments(const Kernel *kernel, void **arguments, void **extra, char *segment) {
    if (extra) {
        const void *buffer = NULL;
        size_t bytes = 0;
        for (; *extra != HIP_LAUNCH_PARAM_END; extra += 2) {
            if (*extra == HIP_LAUNCH_PARAM_BUFFER_POINTER) buffer = extra[1];
            if (*extra == HIP_LAUNCH_PARAM_BUFFER_SIZE) bytes = *(size_t *)extra[1];
        }
        if (!buffer && bytes) return false;
        memcpy(segment, buffer, bytes < kernel->kernarg_bytes ? bytes : kernel->kernarg_bytes);
        return true;
    }
    if (!arguments && kernel->argument_count) return false;
    for (unsigned number = 0; number < kernel->argument_count; ++number) {
        const Argument *argument = &kernel->arguments[number];
        memcpy(segment + argument->offset, arguments[number], argument->bytes);
    }
    return true;
}

hipError_t check_launch(const Kernel *kernel, dim3 grid, dim3 block, size_t dynamic_lds) {
    size_t threads = (size_t)block.x * block.y * block.z;
    if (!threads || !grid.x || !grid.y || !grid.z) return hipErrorInvalidConfiguration;
    if (threads > (size_t)session.properties.maxThreadsPerBlock)
        return hipErrorInvalidConfiguration;
    if (threads > kernel->max_threads) return hipErrorLaunchFailure;
    if (kernel->lds_bytes + dynamic_lds > session.properties.sharedMemPerBlock)
        return hipErrorInvalidValue;
    return hipSuccess;
}

hipError_t launch(const Work *work, double *seconds) {
    Kernel *kernel = work->launch.kernel;
    Variable *barrier = variable_named(kernel->module, "__wc_grid_arrivals");
    if (barrier) memset(barrier->address, 0, barrier->bytes);
    send_allocations();
    dim3 grid = work->launch.grid, block = work->launch.block, cluster = work->launch.cluster;
    LaunchMessage message = {
        .module = kernel->module->id,
        .kernel = kernel->index,
        .grid = {grid.x, grid.y, grid.z},
        .block = {block.x, block.y, block.z},
        .cluster = {cluster.x, cluster.y, cluster.z},
        .dynamic_lds = work->launch.dynamic_lds,
        .device = work->launch.device,
        .segment_bytes = kernel->kernarg_bytes,
    };
    Reply reply = request(LAUNCH, &message, sizeof message, work->launch.segment,
                          kernel->kernarg_bytes);
    print_output();
    if (reply.status && !is_in_process()) end(reply.status, reply.data);
    if (!reply.status) memcpy(seconds, reply.data, 8);
    free(reply.data);
    return reply.status ? hipErrorLaunchFailure : hipSuccess;  // the emulator here has the reason
}

// How a kernel is launched. `cluster` is 0 where the kernel's own holds.
typedef struct {
    dim3 grid, block;
    size_t dynamic_lds;
    hipStream_t stream;
    bool cooperative;
    dim3 cluster;
} Launch;

static hipError_t launch_kernel(Kernel *kernel, Launch how, void **arguments, void **extra) {
    hipError_t error = check_launch(kernel, how.grid, how.block, how.dynamic_lds);
    if (error) return error;
    if (how.cooperative) {
        int threads = how.block.x * how.block.y * how.block.z;
        size_t most = (size_t)blocks_per_unit(kernel, threads, how.dynamic_lds) *
                      session.properties.multiProcessorCount;
        if ((size_t)how.grid.x * how.grid.y * how.grid.z > most)
            return hipErrorCooperativeLaunchTooLarge;
    }
    Work work = {.kind = KERNEL_WORK};
    work.launch.kernel = kernel, work.launch.grid = how.grid, work.launch.block = how.block;
    work.launch.cluster = how.cluster;
    work.launch.dynamic_lds = how.dynamic_lds, work.launch.device = current_device;
    work.launch.cooperative = how.cooperative;
    work.launch.segment = new_memory(kernel->kernarg_bytes);
    if (!pack_arguments(kernel, arguments, extra, work.launch.segment)) {
        free(work.launch.segment);
        return hipErrorInvalidValue;
    }
    return submit(how.stream, &work);
}

static hipError_t launch_module(hipFunction_t function, Launch how, void **arguments,
                                void **extra) {
    enter();
    if (!function) return leave(hipErrorInvalidResourceHandle);
    return leave(launch_kernel(function, how, arguments, extra));
}
static hipError_t launch_function(const void *function, Launch how, void **arguments) {
    enter();
    Kernel *kernel = kernel_of(function);
    if (!kernel) return leave(hipErrorInvalidDeviceFunction);
    return leave(launch_kernel(kernel, how, arguments, NULL));
}
API hipError_t hipLaunchKernel(const void *function, dim3 grid, dim3 block, void **arguments,
                               size_t dynamic_lds, hipStream_t stream) {
    return launch_function(function, (Launch){grid, block, dynamic_lds, stream}, arguments);
}
API hipError_t hipLaunchCooperativeKernel(const void *function, dim3 grid, dim3 block,
                                          void **arguments, unsigned dynamic_lds,
                                          hipStream_t stream) {
    return launch_function(function, (Launch){grid, block, dynamic_lds, stream, true}, arguments);
}
API hipError_t hipExtLaunchKernel(const void *function, dim3 grid, dim3 block, void **arguments,
                                  size_t dynamic_lds, hipStream_t stream, hipEvent_t start,
                                  hipEvent_t stop, int flags) {
    (void)flags;
    hipError_t error = start ? hipEventRecord(start, stream) : hipSuccess;
    if (!error) error = hipLaunchKernel(function, grid, block, arguments, dynamic_lds, stream);
    return error || !stop ? error : hipEventRecord(stop, stream);
}
API hipError_t hipModuleLaunchKernel(hipFunction_t function, unsigned grid_x, unsigned grid_y,
                                     unsigned grid_z, unsigned block_x, unsigned block_y,
                                     unsigned block_z, unsigned dynamic_lds, hipStream_t stream,
                                     void **arguments, void **extra) {
    Launch how = {{grid_x, grid_y, grid_z}, {block_x, block_y, block_z}, dynamic_lds, stream};
    return launch_module(function, how, arguments, extra);
}
API hipError_t hipModuleLaunchCooperativeKernel(hipFunction_t function, unsigned grid_x,
                                                unsigned grid_y, unsigned grid_z, unsigned block_x,
                                                unsigned block_y, unsigned block_z,
                                                unsigned dynamic_lds, hipStream_t stream,
                                                void **arguments) {
    Launch how = {{grid_x, grid_y, grid_z}, {block_x, block_y, block_z}, dynamic_lds, stream, true};
    return launch_module(function, how, arguments, NULL);
}

// Takes what the attributes of a launch say of it; the others are hints.
static void read_attributes(const hipLaunchAttribute *attributes, unsigned count, Launch *how) {
    for (; count; --count, ++attributes) {
        if (attributes->id == hipLaunchAttributeCooperative)
            how->cooperative = attributes->val.cooperative;
        if (attributes->id == hipLaunchAttributeClusterDimension)
            memcpy(&how->cluster, attributes->val.pad, sizeof how->cluster);
    }
}
API hipError_t hipDrvLaunchKernelEx(const HIP_LAUNCH_CONFIG *launch, hipFunction_t function,
                                    void **arguments, void **extra) {
    if (!launch) return enter(), leave(hipErrorInvalidValue);
    Launch how = {{launch->gridDimX, launch->gridDimY, launch->gridDimZ},
                  {launch->blockDimX, launch->blockDimY, launch->blockDimZ},
                  launch->sharedMemBytes, launch->hStream};
    read_attributes(launch->attrs, launch->numAttrs, &how);
    return launch_module(function, how, arguments, extra);
}
API hipError_t hipLaunchKernelExC(const hipLaunchConfig_t *launch, const void *function,
                                  void **arguments) {
    if (!launch) return enter(), leave(hipErrorInvalidValue);
    Launch how = {launch->gridDim, launch->blockDim, launch->dynamicSmemBytes, launch->stream};
    read_attributes(launch->attrs, launch->numAttrs, &how);
    return launch_function(function, how, arguments);
}
// Sizes are those of the whole grid in work-items, as OpenCL counts.
API hipError_t hipExtModuleLaunchKernel(hipFunction_t function, unsigned items_x, unsigned items_y,
                                        unsigned items_z, unsigned block_x, unsigned block_y,
                                        unsigned block_z, size_t dynamic_lds, hipStream_t stream,
                                        void **arguments, void **extra, hipEvent_t start,
                                        hipEvent_t stop, unsigned flags) {
    (void)flags;
    enter();
    if (!block_x || !block_y || !block_z) return leave(hipErrorInvalidConfiguration);
    if (items_x % block_x || items_y % block_y || items_z % block_z)
        fail("hipExtModuleLaunchKernel: a grid of %u x %u x %u work-items is not whole workgroups",
             items_x, items_y, items_z);
    Launch how = {{items_x / block_x, items_y / block_y, items_z / block_z},
                  {block_x, block_y, block_z}, dynamic_lds, stream};
    hipError_t error = start ? hipEventRecord(start, stream) : hipSuccess;
    if (!error) error = launch_module(function, how, arguments, extra);
    return leave(error || !stop ? error : hipEventRecord(stop, stream));
}

static __thread struct {
    dim3 grid, block;
    size_t dynamic_lds;
    hipStream_t stream;
    unsigned long long site;
} configured[16];
static __thread unsigned configured_count;

API hipError_t __hipPushCallConfiguration(dim3 grid, dim3 block, size_t dynamic_lds,
                                          hipStream_t stream) {
    if (configured_count == 16) fail("launches within the arguments of 16 launches");
    configured[configured_count].grid = grid, configured[configured_count].block = block;
    configured[configured_count].dynamic_lds = dynamic_lds;
    configured[configured_count].site = (size_t)__builtin_return_address(0);
    configured[configured_count++].stream = stream;
    return hipSuccess;
}
API hipError_t __hipPopCallConfiguration(dim3 *grid, dim3 *block, size_t *dynamic_lds,
                                         hipStream_t *stream) {
    if (!configured_count) return hipErrorMissingConfiguration;
    --configured_count;
    *grid = configured[configured_count].grid, *block = configured[configured_count].block;
    *dynamic_lds = configured[configured_count].dynamic_lds;
    *stream = configured[configured_count].stream;
    launch_site = configured[configured_count].site;
    return hipSuccess;
}
