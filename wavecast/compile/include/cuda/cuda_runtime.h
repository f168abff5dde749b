// CUDA C++ for AMD GPUs: the part of CUDA that HIP has too (docs/hip.md).
#pragma once

#include <wavecast/cuda_api.h>
#include <wavecast/cuda_device.h>
