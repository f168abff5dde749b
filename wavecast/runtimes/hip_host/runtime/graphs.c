// Graphs: work in the order of its capture, or of the calls that add nodes, each of which names only
// nodes that are there as its predecessors.
#include "runtime.h"

struct hipGraphNode {
    Work work;
};
struct ihipGraph {
    size_t count, room;
    hipGraphNode_t *nodes;
};
struct hipGraphExec {
    size_t count;
    Work *works;
};

hipGraph_t graph_new(void) { return new_memory(sizeof(struct ihipGraph)); }

static hipGraphNode_t added(hipGraph_t graph, const Work *work) {
    if (graph->count == graph->room) {
        graph->room = graph->room ? 2 * graph->room : 16;
        graph->nodes = realloc(graph->nodes, graph->room * sizeof *graph->nodes);
        if (!graph->nodes) fail("no memory for a graph of %zu nodes", graph->room);
    }
    hipGraphNode_t node = graph->nodes[graph->count++] = new_memory(sizeof *node);
    node->work = *work;
    return node;
}
void graph_append(hipGraph_t graph, const Work *work) { added(graph, work); }

static char *copied(const char *segment, size_t bytes) {
    char *copy = new_memory(bytes);
    memcpy(copy, segment, bytes);
    return copy;
}

API hipError_t hipGraphCreate(hipGraph_t *graph, unsigned flags) {
    enter();
    if (!graph || flags) return leave(hipErrorInvalidValue);
    *graph = graph_new();
    return leave(hipSuccess);
}
API hipError_t hipGraphDestroy(hipGraph_t graph) {
    enter();
    if (!graph) return leave(hipErrorInvalidValue);
    for (size_t index = 0; index < graph->count; ++index) {
        Work *work = &graph->nodes[index]->work;
        if (work->kind == KERNEL_WORK) free(work->launch.segment);
        free(graph->nodes[index]);
    }
    free(graph->nodes), free(graph);
    return leave(hipSuccess);
}
API hipError_t hipGraphGetNodes(hipGraph_t graph, hipGraphNode_t *nodes, size_t *count) {
    enter();
    if (!graph || !count) return leave(hipErrorInvalidValue);
    size_t wanted = nodes && *count < graph->count ? *count : graph->count;
    if (nodes) memcpy(nodes, graph->nodes, wanted * sizeof *nodes);
    *count = nodes ? wanted : graph->count;
    return leave(hipSuccess);
}
API hipError_t hipGraphInstantiateWithFlags(hipGraphExec_t *executable, hipGraph_t graph,
                                            unsigned long long flags) {
    (void)flags;
    enter();
    if (!executable || !graph) return leave(hipErrorInvalidValue);
    hipGraphExec_t made = new_memory(sizeof *made);
    made->count = graph->count;
    made->works = new_memory(graph->count * sizeof *made->works);
    for (size_t index = 0; index < graph->count; ++index) {
        Work *work = &made->works[index];
        *work = graph->nodes[index]->work;
        if (work->kind == KERNEL_WORK)
            work->launch.segment =
                copied(work->launch.segment, work->launch.kernel->kernarg_bytes);
    }
    *executable = made;
    return leave(hipSuccess);
}
API hipError_t hipGraphInstantiate(hipGraphExec_t *executable, hipGraph_t graph,
                                   hipGraphNode_t *error_node, char *log, size_t log_bytes) {
    if (error_node) *error_node = NULL;
    if (log && log_bytes) *log = 0;
    return hipGraphInstantiateWithFlags(executable, graph, 0);
}
API hipError_t hipGraphExecDestroy(hipGraphExec_t executable) {
    enter();
    if (!executable) return leave(hipErrorInvalidValue);
    for (size_t index = 0; index < executable->count; ++index)
        if (executable->works[index].kind == KERNEL_WORK)
            free(executable->works[index].launch.segment);
    free(executable->works), free(executable);
    return leave(hipSuccess);
}
API hipError_t hipGraphLaunch(hipGraphExec_t executable, hipStream_t stream) {
    enter();
    if (!executable || !is_stream(stream)) return leave(hipErrorInvalidValue);
    for (size_t index = 0; index < executable->count; ++index) {
        hipError_t error = execute(stream, &executable->works[index]);
        if (error) return leave(error);
    }
    return leave(hipSuccess);
}

static hipError_t add_node(hipGraphNode_t *node, hipGraph_t graph, const Work *work) {
    *node = added(graph, work);
    return hipSuccess;
}
API hipError_t hipGraphAddKernelNode(hipGraphNode_t *node, hipGraph_t graph,
                                     const hipGraphNode_t *after, size_t count,
                                     const hipKernelNodeParams *parameters) {
    (void)after, (void)count;
    enter();
    if (!node || !graph || !parameters) return leave(hipErrorInvalidValue);
    Kernel *kernel = kernel_of(parameters->func);
    if (!kernel) return leave(hipErrorInvalidDeviceFunction);
    hipError_t error = check_launch(kernel, parameters->gridDim, parameters->blockDim,
                                    parameters->sharedMemBytes);
    if (error) return leave(error);
    Work work = {.kind = KERNEL_WORK};
    work.launch.kernel = kernel, work.launch.device = current_device;
    work.launch.grid = parameters->gridDim, work.launch.block = parameters->blockDim;
    work.launch.dynamic_lds = parameters->sharedMemBytes;
    work.launch.segment = new_memory(kernel->kernarg_bytes);
    if (!pack_arguments(kernel, parameters->kernelParams, parameters->extra, work.launch.segment)) {
        free(work.launch.segment);
        return leave(hipErrorInvalidValue);
    }
    return leave(add_node(node, graph, &work));
}
API hipError_t hipGraphAddMemcpyNode1D(hipGraphNode_t *node, hipGraph_t graph,
                                       const hipGraphNode_t *after, size_t count, void *to,
                                       const void *from, size_t bytes, hipMemcpyKind kind) {
    (void)after, (void)count, (void)kind;
    enter();
    if (!node || !graph || !to || !from || accessible(to, bytes) || accessible(from, bytes))
        return leave(hipErrorInvalidValue);
    Work work = {.kind = COPY_WORK};
    work.copy.to = to, work.copy.from = from;
    work.copy.to_pitch = work.copy.from_pitch = work.copy.width = bytes;
    work.copy.height = 1;
    return leave(add_node(node, graph, &work));
}
API hipError_t hipGraphAddMemcpyNode(hipGraphNode_t *node, hipGraph_t graph,
                                     const hipGraphNode_t *after, size_t count,
                                     const hipMemcpy3DParms *copy) {
    (void)after, (void)count;
    enter();
    bool plain = copy && !copy->srcArray && !copy->dstArray && copy->extent.depth == 1 &&
                 !copy->srcPos.z && !copy->dstPos.z;
    if (!node || !graph || !plain) return leave(hipErrorInvalidValue);
    Work work = {.kind = COPY_WORK};
    work.copy.to = (char *)copy->dstPtr.ptr + copy->dstPos.y * copy->dstPtr.pitch + copy->dstPos.x;
    work.copy.from = (char *)copy->srcPtr.ptr + copy->srcPos.y * copy->srcPtr.pitch + copy->srcPos.x;
    work.copy.to_pitch = copy->dstPtr.pitch, work.copy.from_pitch = copy->srcPtr.pitch;
    work.copy.width = copy->extent.width, work.copy.height = copy->extent.height;
    return leave(add_node(node, graph, &work));
}
API hipError_t hipGraphAddMemsetNode(hipGraphNode_t *node, hipGraph_t graph,
                                     const hipGraphNode_t *after, size_t count,
                                     const hipMemsetParams *parameters) {
    (void)after, (void)count;
    enter();
    if (!node || !graph || !parameters) return leave(hipErrorInvalidValue);
    Work work = {.kind = SET_WORK};
    work.set.pointer = parameters->dst, work.set.pitch = parameters->pitch;
    work.set.width = parameters->width, work.set.height = parameters->height;
    work.set.element_bytes = parameters->elementSize, work.set.value = parameters->value;
    return leave(add_node(node, graph, &work));
}
API hipError_t hipGraphAddHostNode(hipGraphNode_t *node, hipGraph_t graph,
                                   const hipGraphNode_t *after, size_t count,
                                   const hipHostNodeParams *parameters) {
    (void)after, (void)count;
    enter();
    if (!node || !graph || !parameters) return leave(hipErrorInvalidValue);
    Work work = {.kind = HOST_WORK};
    work.host.call = parameters->fn, work.host.data = parameters->userData;
    return leave(add_node(node, graph, &work));
}
API hipError_t hipGraphAddEmptyNode(hipGraphNode_t *node, hipGraph_t graph,
                                    const hipGraphNode_t *after, size_t count) {
    (void)after, (void)count;
    enter();
    if (!node || !graph) return leave(hipErrorInvalidValue);
    Work work = {.kind = EMPTY_WORK};
    return leave(add_node(node, graph, &work));
}
