// hipRTC. The emulator's process compiles; a program here is what it was made of, and the answer.
#include "runtime.h"

#include <hip/hiprtc.h>

typedef struct {
    size_t count, room;
    char **texts;
} Texts;
struct _hiprtcProgram {
    Texts sources, headers, expressions, options, lowered;  // headers: name, content, name, …
    char *log, *code;
    size_t code_bytes;
    bool compiled;
};

static void add(Texts *texts, const char *text) {
    if (texts->count == texts->room) {
        texts->room = texts->room ? 2 * texts->room : 8;
        texts->texts = realloc(texts->texts, texts->room * sizeof *texts->texts);
        if (!texts->texts) fail("no memory for %zu texts", texts->room);
    }
    char *copy = new_memory(strlen(text) + 1);
    texts->texts[texts->count++] = strcpy(copy, text);
}
static void clear(Texts *texts) {
    for (size_t index = 0; index < texts->count; ++index) free(texts->texts[index]);
    free(texts->texts);
    memset(texts, 0, sizeof *texts);
}

API const char *hiprtcGetErrorString(hiprtcResult result) {
    static const char *const names[] = {
        "HIPRTC_SUCCESS", "HIPRTC_ERROR_OUT_OF_MEMORY", "HIPRTC_ERROR_PROGRAM_CREATION_FAILURE",
        "HIPRTC_ERROR_INVALID_INPUT", "HIPRTC_ERROR_INVALID_PROGRAM",
        "HIPRTC_ERROR_INVALID_OPTION", "HIPRTC_ERROR_COMPILATION",
        "HIPRTC_ERROR_BUILTIN_OPERATION_FAILURE",
        "HIPRTC_ERROR_NO_NAME_EXPRESSIONS_AFTER_COMPILATION",
        "HIPRTC_ERROR_NO_LOWERED_NAMES_BEFORE_COMPILATION",
        "HIPRTC_ERROR_NAME_EXPRESSION_NOT_VALID", "HIPRTC_ERROR_INTERNAL_ERROR",
    };
    if (result == HIPRTC_ERROR_LINKING) return "HIPRTC_ERROR_LINKING";
    return (unsigned)result < 12 ? names[result] : "Invalid HIPRTC error code";
}
API hiprtcResult hiprtcVersion(int *major, int *minor) {
    if (!major || !minor) return HIPRTC_ERROR_INVALID_INPUT;
    *major = HIP_VERSION_MAJOR, *minor = HIP_VERSION_MINOR;
    return HIPRTC_SUCCESS;
}
API hiprtcResult hiprtcCreateProgram(hiprtcProgram *program, const char *source, const char *name,
                                     int header_count, const char *const *headers,
                                     const char *const *header_names) {
    if (!program || !source || header_count < 0 || (header_count && (!headers || !header_names)))
        return HIPRTC_ERROR_INVALID_INPUT;
    *program = new_memory(sizeof **program);
    add(&(*program)->sources, name ? name : "");
    add(&(*program)->sources, source);
    for (int index = 0; index < header_count; ++index) {
        add(&(*program)->headers, header_names[index]);
        add(&(*program)->headers, headers[index]);
    }
    return HIPRTC_SUCCESS;
}
API hiprtcResult hiprtcDestroyProgram(hiprtcProgram *program) {
    if (!program || !*program) return HIPRTC_ERROR_INVALID_INPUT;
    clear(&(*program)->sources), clear(&(*program)->headers), clear(&(*program)->expressions);
    clear(&(*program)->options), clear(&(*program)->lowered);
    free((*program)->log), free((*program)->code), free(*program);
    *program = NULL;
    return HIPRTC_SUCCESS;
}
API hiprtcResult hiprtcAddNameExpression(hiprtcProgram program, const char *expression) {
    if (!program || !expression) return HIPRTC_ERROR_INVALID_INPUT;
    if (program->compiled) return HIPRTC_ERROR_NO_NAME_EXPRESSIONS_AFTER_COMPILATION;
    add(&program->expressions, expression);
    return HIPRTC_SUCCESS;
}

// Four counts, and all texts with their zeros.
static Reply compile(hiprtcProgram program) {
    const Texts *all[] = {&program->sources, &program->headers, &program->expressions,
                          &program->options};
    unsigned counts[4];
    size_t bytes = sizeof counts;
    for (int kind = 0; kind < 4; ++kind) {
        counts[kind] = all[kind]->count;
        for (size_t at = 0; at < all[kind]->count; ++at) bytes += strlen(all[kind]->texts[at]) + 1;
    }
    char *message = new_memory(bytes), *next = message + sizeof counts;
    memcpy(message, counts, sizeof counts);
    for (int kind = 0; kind < 4; ++kind)
        for (size_t at = 0; at < all[kind]->count; ++at)
            next = stpcpy(next, all[kind]->texts[at]) + 1;
    Reply reply = request(COMPILE, message, bytes, "", 0);
    free(message);
    return reply;
}
API hiprtcResult hiprtcCompileProgram(hiprtcProgram program, int option_count,
                                      const char *const *options) {
    if (!program || option_count < 0 || (option_count && !options))
        return HIPRTC_ERROR_INVALID_INPUT;
    clear(&program->options);
    for (int index = 0; index < option_count; ++index) add(&program->options, options[index]);
    enter();
    Reply reply = compile(program);
    leave(hipSuccess);
    // The lowered names and the log with their zeros, then the code.
    char *next = reply.data;
    clear(&program->lowered);
    for (size_t at = 0; !reply.status && at < program->expressions.count; ++at) {
        add(&program->lowered, next);
        next += strlen(next) + 1;
    }
    free(program->log), free(program->code);
    program->log = strcpy(new_memory(strlen(next) + 1), next);
    program->code = NULL, program->code_bytes = 0, program->compiled = !reply.status;
    if (!reply.status) {
        next += strlen(next) + 1;
        program->code_bytes = reply.data + reply.bytes - next;
        program->code = memcpy(new_memory(program->code_bytes), next, program->code_bytes);
    }
    free(reply.data);
    return reply.status ? HIPRTC_ERROR_COMPILATION : HIPRTC_SUCCESS;
}
API hiprtcResult hiprtcGetLoweredName(hiprtcProgram program, const char *expression,
                                      const char **lowered) {
    if (!program || !expression || !lowered) return HIPRTC_ERROR_INVALID_INPUT;
    if (!program->compiled) return HIPRTC_ERROR_NO_LOWERED_NAMES_BEFORE_COMPILATION;
    for (size_t at = 0; at < program->expressions.count; ++at)
        if (!strcmp(program->expressions.texts[at], expression)) {
            *lowered = program->lowered.texts[at];
            return HIPRTC_SUCCESS;
        }
    return HIPRTC_ERROR_NAME_EXPRESSION_NOT_VALID;
}
API hiprtcResult hiprtcGetProgramLogSize(hiprtcProgram program, size_t *bytes) {
    if (!program || !bytes) return HIPRTC_ERROR_INVALID_INPUT;
    *bytes = program->log ? strlen(program->log) + 1 : 1;
    return HIPRTC_SUCCESS;
}
API hiprtcResult hiprtcGetProgramLog(hiprtcProgram program, char *log) {
    if (!program || !log) return HIPRTC_ERROR_INVALID_INPUT;
    strcpy(log, program->log ? program->log : "");
    return HIPRTC_SUCCESS;
}
API hiprtcResult hiprtcGetCodeSize(hiprtcProgram program, size_t *bytes) {
    if (!program || !bytes) return HIPRTC_ERROR_INVALID_INPUT;
    if (!program->code) return HIPRTC_ERROR_INVALID_PROGRAM;
    *bytes = program->code_bytes;
    return HIPRTC_SUCCESS;
}
API hiprtcResult hiprtcGetCode(hiprtcProgram program, char *code) {
    if (!program || !code) return HIPRTC_ERROR_INVALID_INPUT;
    if (!program->code) return HIPRTC_ERROR_INVALID_PROGRAM;
    memcpy(code, program->code, program->code_bytes);
    return HIPRTC_SUCCESS;
}
