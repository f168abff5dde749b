// Streams and events. Work is executed when it is submitted; a stream has the time at which a GPU
// would have finished it, in seconds, from predictions.
#define _GNU_SOURCE
#include "runtime.h"

#include <time.h>

#define STREAM_MAGIC 0x77637374u
#define EVENT_MAGIC 0x77636576u

struct ihipStream_t {
    unsigned magic, flags;
    unsigned long long id;
    int device, priority;
    double now;
    hipGraph_t capture;
    struct ihipStream_t *next;
};
struct ihipEvent_t {
    unsigned magic, flags;
    unsigned long long id;
    bool recorded;
    double device_time, host_time;
    hipGraph_t capture;  // of the stream that recorded it
};

static struct ihipStream_t null_stream = {.magic = STREAM_MAGIC};
static struct ihipStream_t *streams;
static unsigned long long last_id;  // of streams and events; the null stream has 0

static hipStream_t stream_of(hipStream_t stream) {
    bool null = !stream || stream == hipStreamLegacy || stream == hipStreamPerThread;
    return null ? &null_stream : stream;
}
unsigned long long stream_id(hipStream_t stream) { return stream_of(stream)->id; }
bool is_stream(hipStream_t stream) { return stream_of(stream)->magic == STREAM_MAGIC; }
bool is_capturing(hipStream_t stream) { return stream_of(stream)->capture; }

// The null stream waits for all others that are not created as non-blocking, and they for it.
void stream_advance(hipStream_t stream, double seconds) {
    stream = stream_of(stream);
    if (stream == &null_stream)
        for (struct ihipStream_t *one = streams; one; one = one->next) {
            if (!(one->flags & hipStreamNonBlocking) && one->now > stream->now)
                stream->now = one->now;
        }
    else if (!(stream->flags & hipStreamNonBlocking) && null_stream.now > stream->now)
        stream->now = null_stream.now;
    stream->now += seconds;
}

static void copy_work(const Work *work) {
    const char *from = work->copy.from;
    char *to = work->copy.to;
    for (size_t row = 0; row < work->copy.height; ++row) {
        memmove(to, from, work->copy.width);
        to += work->copy.to_pitch, from += work->copy.from_pitch;
    }
}

static void set_work(const Work *work) {
    unsigned size = work->set.element_bytes;
    for (size_t row = 0; row < work->set.height; ++row) {
        char *first = work->set.pointer + row * work->set.pitch;
        if (size == 1) {
            memset(first, work->set.value, work->set.width);
            continue;
        }
        for (size_t column = 0; column < work->set.width; ++column)
            memcpy(first + column * size, &work->set.value, size);
    }
}

hipError_t execute(hipStream_t stream, const Work *work) {
    double seconds;
    hipError_t error = hipSuccess;
    if (work->kind == KERNEL_WORK) tell_work(stream_id(stream), work);
    switch (work->kind) {
        case KERNEL_WORK:
            error = launch(work, &seconds);
            if (!error) stream_advance(stream, seconds);
            tell(LAUNCHED, 0, 0, 0, 0, 0, 0);
            break;
        case COPY_WORK:
            copy_work(work);
            tell_work(stream_id(stream), work);  // protects pages that the copy has used
            break;
        case SET_WORK:
            set_work(work);
            tell_work(stream_id(stream), work);
            break;
        case HOST_WORK:
            work->host.call(work->host.data);
            break;
        case EMPTY_WORK:
            break;
    }
    return error;
}

hipError_t submit(hipStream_t stream, Work *work) {
    if (!is_stream(stream)) return hipErrorInvalidHandle;
    hipGraph_t graph = stream_of(stream)->capture;
    if (graph) {
        graph_append(graph, work);
        return hipSuccess;
    }
    hipError_t error = execute(stream, work);
    if (work->kind == KERNEL_WORK) free(work->launch.segment);
    return error;
}

static hipError_t create_stream(hipStream_t *stream, unsigned flags, int priority) {
    enter();
    if (!stream || flags > hipStreamNonBlocking) return leave(hipErrorInvalidValue);
    hipStream_t made = new_memory(sizeof *made);
    made->magic = STREAM_MAGIC, made->flags = flags, made->priority = priority;
    made->device = current_device, made->next = streams;
    made->id = ++last_id;
    streams = *stream = made;
    tell(STREAM, 0, made->id, flags, 0, 0, 0);
    return leave(hipSuccess);
}
API hipError_t hipStreamCreate(hipStream_t *stream) { return create_stream(stream, 0, 0); }
API hipError_t hipStreamCreateWithFlags(hipStream_t *stream, unsigned flags) {
    return create_stream(stream, flags, 0);
}
API hipError_t hipStreamCreateWithPriority(hipStream_t *stream, unsigned flags, int priority) {
    return create_stream(stream, flags, priority < -1 ? -1 : priority > 1 ? 1 : priority);
}
API hipError_t hipStreamDestroy(hipStream_t stream) {
    enter();
    struct ihipStream_t **link = &streams;
    while (*link && *link != stream) link = &(*link)->next;
    if (!*link) return leave(hipErrorInvalidResourceHandle);
    *link = stream->next;
    stream->magic = 0;
    free(stream);
    return leave(hipSuccess);
}
static hipError_t waited(hipStream_t stream) {
    enter();
    if (!is_stream(stream)) return leave(hipErrorInvalidHandle);
    if (stream_of(stream)->capture) return leave(hipErrorStreamCaptureUnsupported);
    tell(HOST_WAITS_STREAM, 0, stream_id(stream), 0, 0, 0, 0);
    return leave(hipSuccess);
}
API hipError_t hipStreamSynchronize(hipStream_t stream) { return waited(stream); }
API hipError_t hipStreamQuery(hipStream_t stream) { return waited(stream); }
API hipError_t hipStreamGetFlags(hipStream_t stream, unsigned *flags) {
    enter();
    if (!flags || !is_stream(stream)) return leave(hipErrorInvalidValue);
    *flags = stream_of(stream)->flags;
    return leave(hipSuccess);
}
API hipError_t hipStreamGetPriority(hipStream_t stream, int *priority) {
    enter();
    if (!priority || !is_stream(stream)) return leave(hipErrorInvalidValue);
    *priority = stream_of(stream)->priority;
    return leave(hipSuccess);
}
API hipError_t hipStreamGetDevice(hipStream_t stream, hipDevice_t *device) {
    enter();
    if (!device || !is_stream(stream)) return leave(hipErrorInvalidValue);
    *device = stream_of(stream)->device;
    return leave(hipSuccess);
}
API hipError_t hipStreamWaitEvent(hipStream_t stream, hipEvent_t event, unsigned flags) {
    (void)flags;
    enter();
    if (!event || event->magic != EVENT_MAGIC || !is_stream(stream))
        return leave(hipErrorInvalidHandle);
    stream = stream_of(stream);
    if (event->capture) stream->capture = event->capture;  // it joins the capture
    if (event->recorded && event->device_time > stream->now) stream->now = event->device_time;
    if (event->recorded) tell(STREAM_WAITS, 0, stream->id, event->id, 0, 0, 0);
    return leave(hipSuccess);
}
API hipError_t hipLaunchHostFunc(hipStream_t stream, hipHostFn_t call, void *data) {
    enter();
    if (!call) return leave(hipErrorInvalidValue);
    Work work = {.kind = HOST_WORK};
    work.host.call = call, work.host.data = data;
    return leave(submit(stream, &work));
}
API hipError_t hipStreamAddCallback(hipStream_t stream, hipStreamCallback_t call, void *data,
                                    unsigned flags) {
    enter();
    if (!call || flags || !is_stream(stream)) return leave(hipErrorInvalidValue);
    if (stream_of(stream)->capture) return leave(hipErrorStreamCaptureUnsupported);
    call(stream, hipSuccess, data);
    return leave(hipSuccess);
}
API hipError_t hipStreamAttachMemAsync(hipStream_t stream, void *pointer, size_t bytes,
                                       unsigned flags) {
    (void)bytes, (void)flags;
    enter();
    bool known = is_stream(stream) && allocation_of(pointer);
    return leave(known ? hipSuccess : hipErrorInvalidValue);
}
API hipError_t hipDeviceSynchronize(void) {
    enter();
    tell(HOST_WAITS_DEVICE, 0, 0, 0, 0, 0, 0);
    return leave(hipSuccess);
}

// --- capture
API hipError_t hipStreamBeginCapture(hipStream_t stream, hipStreamCaptureMode mode) {
    enter();
    if (!is_stream(stream) || mode > hipStreamCaptureModeRelaxed)
        return leave(hipErrorInvalidValue);
    stream = stream_of(stream);
    if (stream == &null_stream) return leave(hipErrorStreamCaptureUnsupported);
    if (stream->capture) return leave(hipErrorIllegalState);
    stream->capture = graph_new();
    return leave(hipSuccess);
}
API hipError_t hipStreamEndCapture(hipStream_t stream, hipGraph_t *graph) {
    enter();
    if (!graph || !is_stream(stream)) return leave(hipErrorInvalidValue);
    hipGraph_t captured = stream_of(stream)->capture;
    if (!captured) return leave(hipErrorIllegalState);
    for (struct ihipStream_t *one = streams; one; one = one->next)
        if (one->capture == captured) one->capture = NULL;
    *graph = captured;
    return leave(hipSuccess);
}
API hipError_t hipStreamIsCapturing(hipStream_t stream, hipStreamCaptureStatus *status) {
    enter();
    if (!status || !is_stream(stream)) return leave(hipErrorInvalidValue);
    *status = stream_of(stream)->capture ? hipStreamCaptureStatusActive : hipStreamCaptureStatusNone;
    return leave(hipSuccess);
}

// --- events
API hipError_t hipEventCreateWithFlags(hipEvent_t *event, unsigned flags) {
    enter();
    if (!event) return leave(hipErrorInvalidValue);
    *event = new_memory(sizeof **event);
    (*event)->magic = EVENT_MAGIC, (*event)->flags = flags, (*event)->id = ++last_id;
    return leave(hipSuccess);
}
API hipError_t hipEventCreate(hipEvent_t *event) { return hipEventCreateWithFlags(event, 0); }
static bool is_event(hipEvent_t event) { return event && event->magic == EVENT_MAGIC; }
API hipError_t hipEventDestroy(hipEvent_t event) {
    enter();
    if (!is_event(event)) return leave(hipErrorInvalidHandle);
    event->magic = 0;
    free(event);
    return leave(hipSuccess);
}
API hipError_t hipEventRecord(hipEvent_t event, hipStream_t stream) {
    enter();
    if (!is_event(event) || !is_stream(stream)) return leave(hipErrorInvalidHandle);
    stream_advance(stream, 0);
    stream = stream_of(stream);
    event->capture = stream->capture;
    if (stream->capture) return leave(hipSuccess);
    if (is_in_process() && !(event->flags & hipEventDisableTiming))
        free(request(EVENT, "", 0, "", 0).data);
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    event->recorded = true, event->device_time = stream->now;
    event->host_time = now.tv_sec + 1e-9 * now.tv_nsec;
    tell(RECORD, 0, event->id, stream->id, 0, 0, 0);
    return leave(hipSuccess);
}
static hipError_t finished(hipEvent_t event) {
    enter();
    if (!is_event(event)) return leave(hipErrorInvalidHandle);
    if (event->recorded) tell(HOST_WAITS_EVENT, 0, event->id, 0, 0, 0, 0);
    return leave(hipSuccess);
}
API hipError_t hipEventSynchronize(hipEvent_t event) { return finished(event); }
API hipError_t hipEventQuery(hipEvent_t event) { return finished(event); }
API hipError_t hipEventElapsedTime(float *milliseconds, hipEvent_t start, hipEvent_t stop) {
    enter();
    if (!milliseconds) return leave(hipErrorInvalidValue);
    if (!is_event(start) || !is_event(stop) || !start->recorded || !stop->recorded ||
        (start->flags | stop->flags) & hipEventDisableTiming)
        return leave(hipErrorInvalidHandle);
    double seconds = session.predicts ? stop->device_time - start->device_time
                                      : stop->host_time - start->host_time;
    *milliseconds = 1e3 * seconds;
    return leave(hipSuccess);
}
