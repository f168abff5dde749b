// What programs need of the C++ library, so that it is not built for them: with -fno-exceptions.
#include <cstdlib>
#include <new>

__attribute__((weak)) void *operator new(std::size_t size) { return std::malloc(size); }
__attribute__((weak)) void *operator new(std::size_t size, const std::nothrow_t &) noexcept {
    return std::malloc(size);
}
__attribute__((weak)) void operator delete(void *at) noexcept { std::free(at); }
__attribute__((weak)) void operator delete(void *at, std::size_t) noexcept { std::free(at); }

namespace std {
__attribute__((weak)) const nothrow_t nothrow{};
inline namespace __1 {
__attribute__((weak)) void __libcpp_verbose_abort(const char *, ...) noexcept { abort(); }
}
}
