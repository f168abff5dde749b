// The connection with the emulator: a Unix socket for requests, and the arena, whose file the
// emulator sends when the first call of the program arrives. Where the emulator is in the process of
// the program (`wavecast_serve`), requests are calls of a function, and the arena is there already.
#define _GNU_SOURCE
#include "runtime.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdarg.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

Session session;
static int connection = -1;
static pthread_mutex_t lock;
static pthread_once_t lock_made = PTHREAD_ONCE_INIT;
static __thread hipError_t last_error;

// What the emulator in this process serves with. `answer` writes the status of a request, the bytes
// of an answer that `take` copies, and the thread and class of an exception of Python, or zeros.
typedef struct {
    void (*answer)(unsigned kind, const void *head, size_t head_bytes, const void *tail,
                   size_t tail_bytes, unsigned long long *answer);
    void (*take)(void *data);
    int (*has_interpreter)(void);
    void *(*release_interpreter)(void);
    void (*take_interpreter)(void *);
    int (*enter_interpreter)(void);
    void (*leave_interpreter)(int);
    int (*raise)(unsigned long thread, void *exception);
} Server;
static Server server;
static bool started, in_process;

// From now on `emulator` answers, for another GPU than before; NULL: nobody does, and requests fail.
API void wavecast_serve(const Server *emulator) {
    static const Server nobody;
    in_process = true;
    server = emulator ? *emulator : nobody;
    if (emulator) started = false;
}
bool is_in_process(void) { return in_process; }

void end(int code, const char *message) {
    fflush(NULL);
    fprintf(stderr, "wavecast: %s\n", message);
    fflush(stderr);
    _exit(code);
}

void fail(const char *format, ...) {
    char message[1024];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(message, sizeof message, format, arguments);
    va_end(arguments);
    end(2, message);
}

void *new_memory(size_t bytes) {
    void *made = calloc(1, bytes ? bytes : 1);
    if (!made) fail("no memory for %zu bytes", bytes);
    return made;
}

static void make_lock(void) {
    pthread_mutexattr_t attributes;
    pthread_mutexattr_init(&attributes);
    pthread_mutexattr_settype(&attributes, PTHREAD_MUTEX_RECURSIVE);
    pthread_mutex_init(&lock, &attributes);
}

static void send_all(const void *data, size_t bytes) {
    const char *next = data;
    while (bytes) {
        ssize_t sent = send(connection, next, bytes, MSG_NOSIGNAL);
        if (sent < 0 && errno == EINTR) continue;
        if (sent <= 0) fail("the emulator has ended");
        next += sent, bytes -= sent;
    }
}

static void receive_all(void *data, size_t bytes) {
    char *next = data;
    while (bytes) {
        ssize_t got = recv(connection, next, bytes, 0);
        if (got < 0 && errno == EINTR) continue;
        if (got <= 0) fail("the emulator has ended");
        next += got, bytes -= got;
    }
}

// The exception that Python raises when the call of this thread is over, and its thread.
static __thread unsigned long long exception, exception_thread;
static char *unraised;  // its text

// A program may end at an error of HIP, before Python raises the reason.
__attribute__((destructor)) static void print_unraised(void) {
    if (unraised) fprintf(stderr, "wavecast: %s\n", unraised);
}

API void wavecast_raised(void) {
    free(unraised);
    unraised = NULL;
}

static void raise_exception(void) {
    int state = server.enter_interpreter();
    server.raise(exception_thread, (void *)(size_t)exception);
    server.leave_interpreter(state);
    exception = 0;
}

static Reply request_here(enum HostRequest kind, const void *head, size_t head_bytes,
                          const void *tail, size_t tail_bytes) {
    unsigned long long answer[4] = {0};
    if (!server.answer || exception) return (Reply){1, 0, new_memory(1)};
    server.answer(kind, head, head_bytes, tail, tail_bytes, answer);
    Reply reply = {(unsigned)answer[0], answer[1], new_memory(answer[1] + 1)};
    if (reply.bytes) server.take(reply.data);
    exception_thread = answer[2], exception = answer[3];
    if (exception) free(unraised), unraised = strdup(reply.data);
    return reply;
}

Reply request(enum HostRequest kind, const void *head, size_t head_bytes, const void *tail,
              size_t tail_bytes) {
    if (in_process) return request_here(kind, head, head_bytes, tail, tail_bytes);
    unsigned long long words[2] = {kind, head_bytes + tail_bytes}, answer[2];
    send_all(words, sizeof words);
    send_all(head, head_bytes);
    send_all(tail, tail_bytes);
    receive_all(answer, sizeof answer);
    Reply reply = {(unsigned)answer[0], answer[1], new_memory(answer[1] + 1)};
    receive_all(reply.data, reply.bytes);
    return reply;
}

static int receive_arena(void) {
    char byte, space[CMSG_SPACE(sizeof(int))];
    struct iovec part = {&byte, 1};
    struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1, .msg_control = space,
                             .msg_controllen = sizeof space};
    ssize_t got = recvmsg(connection, &message, MSG_CMSG_CLOEXEC);
    if (got == 1 && byte == 'B')
        fail("another process of this program uses HIP already: eight at once can, one with "
             "--check, --predict or --trace");
    struct cmsghdr *header = got == 1 ? CMSG_FIRSTHDR(&message) : NULL;
    if (!header) fail("the emulator has ended");
    int file;
    memcpy(&file, CMSG_DATA(header), sizeof file);
    return file;
}

static void greet(void) {
    Reply reply = request(HELLO, "", 0, "", 0);
    if (reply.status && !in_process) fail("%s", reply.data);
    if (reply.status)
        session.devices = 0;  // calls fail, and Python raises the reason
    else
        read_properties(reply.data);
    free(reply.data);
    started = !reply.status;
}

static void connect_program(void) {
    const char *path = getenv(SOCKET);
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    if (!path || strlen(path) >= sizeof address.sun_path)
        fail("this is Wavecast's libamdhip64: start the program with `wavecast run PROGRAM`");
    strcpy(address.sun_path, path);
    connection = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (connect(connection, (struct sockaddr *)&address, sizeof address))
        fail("cannot reach the emulator at %s: %s", path, strerror(errno));
    int file = receive_arena();
    greet();
    void *mapped = mmap(session.mapping, session.mapping_bytes, PROT_READ | PROT_WRITE,
                        MAP_SHARED | MAP_NORESERVE | MAP_FIXED_NOREPLACE, file, 0);
    if (mapped != session.mapping)
        fail("the addresses from %p on, where GPU memory would be, are in use", session.mapping);
    close(file);
}

void ensure_session(void) {
    if (started && !in_process && session.process != getpid())
        fail("a fork of a process that has used HIP cannot use it: fork before the first call");
    if (started) return;
    session.process = getpid();
    if (in_process)
        greet();
    else
        connect_program();
}

static __thread unsigned depth;
static __thread char *called_from;

// A thread of Python that waits for another one gives that the interpreter, which it may need.
static void take_lock(void) {
    if (!pthread_mutex_trylock(&lock)) return;
    bool waits_for_python = server.answer && server.has_interpreter();
    void *state = waits_for_python ? server.release_interpreter() : NULL;
    pthread_mutex_lock(&lock);
    if (waits_for_python) server.take_interpreter(state);
}

void enter_from(void *address) {
    pthread_once(&lock_made, make_lock);
    take_lock();
    if (!depth++) called_from = address;
    ensure_session();
}

bool is_inside(void) { return depth; }

unsigned long long in_file(unsigned long long address) {
    Dl_info info;
    if (!address || !dladdr((void *)(size_t)address, &info)) return 0;
    return address - (size_t)info.dli_fbase;
}

unsigned long long caller(void) { return in_file((size_t)called_from); }

hipError_t leave(hipError_t error) {
    if (error) last_error = error;
    if (depth) --depth;
    pthread_mutex_unlock(&lock);
    if (!depth && exception) raise_exception();
    return error;
}

API hipError_t hipGetLastError(void) {
    hipError_t error = last_error;
    last_error = hipSuccess;
    return error;
}

API hipError_t hipPeekAtLastError(void) { return last_error; }

API hipError_t hipGetProcAddress(const char *symbol, void **function, int version,
                                 unsigned long long flags,
                                 hipDriverProcAddressQueryResult *status) {
    (void)version, (void)flags;
    enter();
    if (!symbol || !function) return leave(hipErrorInvalidValue);
    *function = dlsym(RTLD_DEFAULT, symbol);
    if (status)
        *status = *function ? HIP_GET_PROC_ADDRESS_SUCCESS : HIP_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
    return leave(*function ? hipSuccess : hipErrorInvalidValue);
}

// What functions do that are there for programs that never call them: end a program, and raise an
// exception of Python in a process with the emulator.
API int wavecast_unsupported(const char *function) {
    enter();
    if (!in_process) fail("%s is not supported (docs/hip.md lists what is)", function);
    free(request(UNSUPPORTED, function, strlen(function), "", 0).data);
    return leave(hipErrorNotSupported);
}
