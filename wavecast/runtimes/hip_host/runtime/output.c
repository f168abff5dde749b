// What kernels print. Device code (wavecast/program.h) appends records to a buffer of the arena:
// words of 64 bits, first their number, then the format, then one word per argument.
#include "runtime.h"

typedef unsigned long long word;
#define OUTPUT ((word *)session.arena)
#define HEAP (session.arena + OUTPUT_BYTES)
#define FIRST 2  // the buffer starts with the words used and the words there are

static void set_address(Module *module, const char *name, const void *address) {
    Variable *variable = variable_named(module, name);
    if (variable) memcpy(variable->address, &address, sizeof address);
}

void prepare_module(Module *module) {
    OUTPUT[1] = OUTPUT_BYTES / 8 - FIRST;
    ((word *)HEAP)[1] = HEAP_BYTES - 64;
    set_address(module, "__wc_output", OUTPUT);
    set_address(module, "__wc_heap", HEAP);
}

// Prints one conversion, `%…d`, and returns the text after it.
static const char *print_conversion(const char *start, word value) {
    char format[64], *end = format;
    const char *next = start;
    *end++ = *next++;
    while (*next && strchr("-+ #0123456789.", *next) && end < format + 48) *end++ = *next++;
    while (*next && strchr("hlLqjzt", *next)) ++next;  // words are of 64 bits
    char kind = *next;
    if (strchr("diouxX", kind)) *end++ = 'l', *end++ = 'l';
    *end++ = kind, *end = 0;
    double number;
    memcpy(&number, &value, sizeof number);
    const char *text = (const char *)value;
    if (kind && strchr("diouxXc", kind))
        printf(format, kind == 'c' ? (word)(int)value : value);
    else if (kind && strchr("fFeEgGaA", kind))
        printf(format, number);
    else if (kind == 's')
        printf(format, text ? text : "(null)");
    else if (kind == 'p')
        printf(format, (void *)value);
    else
        fwrite(start, 1, next + (kind != 0) - start, stdout);
    return kind ? next + 1 : next;
}

static void print_record(const word *record, word count) {
    const char *format = (const char *)record[0];
    word used = 1;
    while (*format) {
        if (*format != '%') {
            putchar(*format++);
        } else if (format[1] == '%') {
            putchar('%');
            format += 2;
        } else {
            format = print_conversion(format, used < count ? record[used] : 0);
            ++used;
        }
    }
}

void print_output(void) {
    word used = OUTPUT[0], there = OUTPUT[1], next = 0;
    if (!used) return;
    if (used > there) used = there;
    while (next < used) {
        word count = OUTPUT[FIRST + next];
        if (!count || next + 1 + count > there) break;
        print_record(&OUTPUT[FIRST + next + 1], count);
        next += 1 + count;
    }
    fflush(stdout);
    if (OUTPUT[0] > there)
        fprintf(stderr, "wavecast: kernels printed more than %u MiB; the rest is lost\n",
                OUTPUT_BYTES >> 20);
    memset(&OUTPUT[FIRST], 0, 8 * used);
    OUTPUT[0] = 0;
}
