// Math for device code: AMD's device library where it is linked, else code of wavecast.
//
// Hardware and LLVM do sqrt, exp, exp2, log, log2, log10 of floats and everything exact; the rest
// is argument reduction and a polynomial (Chebyshev fits over the intervals named, Taylor series).
// Measured errors stand in docs/hip.md. Very large arguments of sin, cos, and tan lose accuracy.
#pragma once

#include <wavecast/math_base.h>
#ifdef WAVECAST_DEVICE_LIBRARY
#include <wavecast/math_library.h>
#else
#include <wavecast/math_double.h>
#include <wavecast/math_float.h>
#endif

#define __WC_FN static __device__ __wc_inline

// Single precision under the plain names, and whole numbers as double
#define __WC_PLAIN(name) __WC_FN float name(float x) { return name##f(x); }
__WC_PLAIN(exp) __WC_PLAIN(exp2) __WC_PLAIN(expm1) __WC_PLAIN(log) __WC_PLAIN(log2)
__WC_PLAIN(log10) __WC_PLAIN(log1p) __WC_PLAIN(sin) __WC_PLAIN(cos) __WC_PLAIN(tan)
__WC_PLAIN(tanh) __WC_PLAIN(sinh) __WC_PLAIN(cosh) __WC_PLAIN(asin) __WC_PLAIN(acos)
__WC_PLAIN(atan) __WC_PLAIN(erf) __WC_PLAIN(erfc) __WC_PLAIN(cbrt)
#ifdef WAVECAST_DEVICE_LIBRARY
__WC_PLAIN(tgamma) __WC_PLAIN(lgamma) __WC_PLAIN(asinh) __WC_PLAIN(acosh) __WC_PLAIN(atanh)
__WC_PLAIN(erfinv) __WC_PLAIN(sinpi) __WC_PLAIN(cospi)
#endif
#undef __WC_PLAIN
#define __WC_WHOLE(name) __WC_FOR_INTEGERS(T) __WC_FN double name(T x) { return name((double)x); }
__WC_WHOLE(exp) __WC_WHOLE(exp2) __WC_WHOLE(log) __WC_WHOLE(log2) __WC_WHOLE(log10)
__WC_WHOLE(sin) __WC_WHOLE(cos) __WC_WHOLE(tan) __WC_WHOLE(tanh) __WC_WHOLE(rsqrt)
#undef __WC_WHOLE
__WC_FN float pow(float x, float y) { return powf(x, y); }
__WC_FN float pow(float x, int n) { return powif(x, n); }
__WC_FN double pow(double x, int n) { return pow(x, (double)n); }
__WC_FN double pow(float x, double y) { return pow((double)x, y); }
__WC_FN double pow(double x, float y) { return pow(x, (double)y); }
__WC_FN float atan2(float y, float x) { return atan2f(y, x); }
__WC_FN float hypot(float x, float y) { return hypotf(x, y); }

// The same in namespace std. <cmath> adds functions for the host; device code prefers these.
namespace std {
using ::fabs; using ::abs; using ::floor; using ::ceil; using ::trunc; using ::rint;
using ::nearbyint; using ::round; using ::sqrt; using ::exp; using ::exp2; using ::expm1;
using ::log; using ::log2; using ::log10; using ::log1p; using ::sin; using ::cos; using ::tan;
using ::tanh; using ::sinh; using ::cosh; using ::asin; using ::acos; using ::atan; using ::atan2;
using ::erf; using ::erfc; using ::cbrt; using ::fma; using ::fmin; using ::fmax; using ::fmod;
using ::copysign; using ::pow; using ::ldexp; using ::isnan; using ::isinf; using ::isfinite;
using ::signbit;
}  // namespace std

#undef __WC_FOR_INTEGERS
#undef __WC_FN
