// What a failed allocation does: in programs without exceptions it ends them.
#pragma once

#include <cstdlib>
#include <new>

namespace thrust {
[[noreturn]] inline void __wc_no_memory() {
#ifdef __cpp_exceptions
    throw std::bad_alloc();
#else
    std::abort();
#endif
}
}  // namespace thrust
