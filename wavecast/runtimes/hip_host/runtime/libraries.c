// Calls of hipBLAS, hipFFT and others, which the emulator's process computes on the host in order
// with the work of their stream. The headers of the libraries pass their arguments
// (`wavecast/library_call.h`).
#include "runtime.h"

#include <stdarg.h>
#include <wavecast/library_call.h>

enum { INVALID_VALUE = 3 };  // HIPBLAS_STATUS_INVALID_VALUE, which the headers translate
typedef struct {
    void *result;  // what the answer's content is copied to
    size_t bytes;
    char message[];  // name with its zero, then words
} Call;

void send_allocations(void) {
    static unsigned long long sent;
    if (sent == memory_version() + 1) return;
    sent = memory_version() + 1;
    size_t count = allocation_count();
    unsigned long long *ranges = new_memory(16 * count);
    for (size_t index = 0; index < count; ++index) {
        const Allocation *one = &allocations()[index];
        ranges[2 * index] = (size_t)one->address;
        ranges[2 * index + 1] = (size_t)one->address + one->bytes;
    }
    free(request(ALLOCATIONS, ranges, 16 * count, "", 0).data);
    free(ranges);
}

static int perform(const Call *call) {
    send_allocations();
    Reply reply = request(LIBRARY, call->message, call->bytes, "", 0);
    if (reply.status && !is_in_process()) end(reply.status, reply.data);
    int status = 1;  // the emulator here has the reason
    if (!reply.status) memcpy(&status, reply.data, sizeof status);
    if (call->result && !reply.status) memcpy(call->result, reply.data + 8, reply.bytes - 8);
    free(reply.data);
    return status;
}
static void perform_captured(void *call) { perform(call); }

API int __wavecast_library(void *stream, const char *function, unsigned element_bytes,
                           const char *format, ...) {
    unsigned long long words[64];
    int is_sparse = !strncmp(function, "hipsparse.", 10), has_zero = 0, lacks_one = 0;
    size_t count = 0, name_bytes = strlen(function) + 1;
    void *result = NULL;
    va_list arguments;
    enter();
    va_start(arguments, format);
    for (; *format; ++format) {
        if (count > 60) fail("%s has too many arguments", function);
        words[count] = 0;
        if (*format == 'i') {
            words[count++] = va_arg(arguments, int);
            has_zero |= !words[count - 1];
        } else if (*format == 'l') {
            words[count++] = va_arg(arguments, long long);
            has_zero |= !words[count - 1];
        } else if (*format == 'd') {
            double value = va_arg(arguments, double);
            memcpy(&words[count++], &value, 8);
        } else if (*format == 'r') {
            result = va_arg(arguments, void *);
            lacks_one |= !result;
        } else {
            void *pointer = va_arg(arguments, void *);
            unsigned bytes = *format == 'h' ? element_bytes / 2 : element_bytes;
            lacks_one |= !pointer && *format != 'p';
            if (*format == 'p' || *format == 'P') {
                char *alias = device_alias(pointer);
                words[count++] = alias ? (size_t)alias : (size_t)pointer;
                continue;
            }
            words[count + 1] = 0;
            if (pointer) memcpy(&words[count], pointer, bytes);
            count += 2;
        }
    }
    va_end(arguments);
    if (lacks_one && (is_sparse || !has_zero)) {  // BLAS needs no scalars for nothing to do
        leave(hipSuccess);
        return INVALID_VALUE;
    }
    size_t bytes = name_bytes + 8 * count;
    Call *call = new_memory(sizeof *call + bytes);
    call->result = result, call->bytes = bytes;
    memcpy(call->message, function, name_bytes);
    memcpy(call->message + name_bytes, words, 8 * count);
    int status = 0;
    if (is_capturing(stream)) {  // the graph keeps the call
        Work work = {.kind = HOST_WORK};
        work.host.call = perform_captured, work.host.data = call;
        submit(stream, &work);
    } else {
        status = perform(call);
        free(call);
    }
    leave(hipSuccess);
    return status;
}
