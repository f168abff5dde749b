// What orders the works of a program, told to the emulator where it checks: streams, events and the
// host's waits. The emulator answers with the memory that the host may not touch yet, because works
// that it has not waited for do. Its pages are protected until then; an access is reported.
#define _GNU_SOURCE
#include "runtime.h"

#include <signal.h>
#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>

#define PAGE ((size_t)4096)

typedef struct {
    unsigned long long first, end, written;  // read by the works if 0: the host may read too
} Pending;

__thread unsigned long long launch_site;
static Pending *pending;
static size_t pending_count;
static bool installed;

bool is_ordering(void) { return session.orders; }

static void set_rights(const Pending *one, int rights) {
    size_t first = one->first / PAGE * PAGE, end = (one->end + PAGE - 1) / PAGE * PAGE;
    mprotect((void *)first, end - first, rights);
}

// What works have touched and the host has not waited for.
static void replace_pending(Reply reply) {
    for (size_t index = 0; index < pending_count; ++index)
        set_rights(&pending[index], PROT_READ | PROT_WRITE);
    free(pending);
    pending = (Pending *)reply.data, pending_count = reply.bytes / sizeof *pending;
    for (size_t index = 0; index < pending_count; ++index)
        if (!pending[index].written) set_rights(&pending[index], PROT_READ);
    for (size_t index = 0; index < pending_count; ++index)
        if (pending[index].written) set_rights(&pending[index], PROT_NONE);
}

static void on_fault(int number, siginfo_t *info, void *context) {
    unsigned long long address = (size_t)info->si_addr;
    size_t page = address / PAGE * PAGE;
    bool mine = false, touched = false;
    for (size_t index = 0; index < pending_count; ++index) {
        Pending *one = &pending[index];
        mine |= page + PAGE > one->first && page < one->end;
        touched |= address >= one->first && address < one->end;
    }
    if (!mine) {  // an access that is wrong without us, too
        signal(number, SIG_DFL);
        return;
    }
    if (touched && !is_inside()) {
        unsigned long long at = 0;
#if defined(__x86_64__)
        at = ((ucontext_t *)context)->uc_mcontext.gregs[REG_RIP];
#elif defined(__aarch64__)
        at = ((ucontext_t *)context)->uc_mcontext.pc;
#endif
        tell(HOST_ACCESS, at, address, 0, 0, 0, 0);
    }
    mprotect((void *)page, PAGE, PROT_READ | PROT_WRITE);
}

static void install(void) {
    struct sigaction action = {.sa_flags = SA_SIGINFO | SA_NODEFER};
    action.sa_sigaction = on_fault;
    sigaction(SIGSEGV, &action, NULL);
    sigaction(SIGBUS, &action, NULL);
    installed = true;
}

void tell(enum OrderEvent event, unsigned long long at, unsigned long long a, unsigned long long b,
          unsigned long long c, unsigned long long d, unsigned long long e) {
    if (!is_ordering()) return;
    if (!installed) install();
    OrderMessage message = {event, current_device, at ? in_file(at) : caller(), {a, b, c, d, e}};
    Reply reply = request(ORDER, &message, sizeof message, "", 0);
    if (reply.status) end(reply.status, reply.data);
    if (event == HOST_ACCESS)
        free(reply.data);
    else
        replace_pending(reply);
}

static unsigned long long arena_address(const void *pointer) {
    if (in_arena(pointer)) return (size_t)pointer;
    return (size_t)device_alias((void *)pointer);  // 0 for memory that only the host has
}

void tell_work(unsigned long long stream, const Work *work) {
    if (!is_ordering()) return;
    send_allocations();
    if (work->kind == KERNEL_WORK) tell(LAUNCHES, launch_site, stream, 0, 0, 0, 0);
    launch_site = 0;
    if (work->kind == COPY_WORK) {
        unsigned long long to = arena_address(work->copy.to), width = work->copy.width;
        unsigned long long from = arena_address(work->copy.from), rows = work->copy.height;
        if (from) tell(READS, 0, stream, from, work->copy.from_pitch, width, rows);
        if (to) tell(WRITES, 0, stream, to, work->copy.to_pitch, width, rows);
        if (!to) tell(HOST_WAITS_STREAM, 0, stream, 0, 0, 0, 0);  // returns with the data
    }
    if (work->kind == SET_WORK)
        tell(FILLS, 0, stream, arena_address(work->set.pointer), work->set.pitch,
             work->set.width * work->set.element_bytes, work->set.height);
}
