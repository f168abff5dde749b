// HIP for reading device code: everything an ordinary kernel file includes this header for.
//
// Device functions are real; host functions are declared only, so that a file with both compiles
// for the device. See docs/hip.md for what is covered and how math functions differ from ROCm's.
#pragma once

#include <hip/hip_runtime_api.h>

#ifdef __cplusplus  // C has the functions of the host alone
#include <hip/hip_vector_types.h>
#include <wavecast/index.h>
#include <wavecast/integer.h>
#include <wavecast/math.h>
#include <wavecast/rounding.h>
#include <wavecast/cross_lane.h>
#include <wavecast/sync.h>
#include <wavecast/atomics.h>

// As ROCm's header, after the functions of the device; `compile/hip.py` says for which sources.
#if defined(WAVECAST_STD)
#include <cmath>
#include <cstdint>
#include <tuple>
#endif
#endif
