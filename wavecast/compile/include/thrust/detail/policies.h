// Where algorithms execute: kernels in a stream, or one thread.
#pragma once

#include <thrust/detail/iterators.h>

namespace thrust {

struct __wc_policy {};
template <typename Self, bool Device> struct execution_policy : __wc_policy {
    static constexpr bool device = Device;
};
struct __wc_sequential : execution_policy<__wc_sequential, false> {
    static constexpr hipStream_t stream = nullptr;
};
struct __wc_parallel_policy : execution_policy<__wc_parallel_policy, true> {
    hipStream_t stream = nullptr;
    __host__ __device__ __wc_parallel_policy on(hipStream_t s) const {
        __wc_parallel_policy result;
        result.stream = s;
        return result;
    }
    // The workspace is wavecast's own; an allocator of the program is not asked.
    template <typename Allocator>
    __host__ __device__ __wc_parallel_policy operator()(const Allocator &) const {
        return *this;
    }
};
static constexpr __wc_sequential seq, host;
static constexpr __wc_parallel_policy device;

namespace hip {
static constexpr __wc_parallel_policy par, par_nosync;
}
#ifdef WAVECAST_CUDA
namespace cuda = hip;
#endif

template <typename P>
using __wc_if_policy = std::enable_if_t<std::is_base_of_v<__wc_policy, std::decay_t<P>>, int>;
template <typename P>
using __wc_unless_policy = std::enable_if_t<!std::is_base_of_v<__wc_policy, std::decay_t<P>>, int>;

// The policy of algorithms on these iterators.
template <typename... It>
using __wc_policy_of =
    std::conditional_t<(__wc_on_device<std::decay_t<It>>::value || ...), __wc_parallel_policy,
                       __wc_sequential>;

}  // namespace thrust
