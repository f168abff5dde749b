// CUDA's driver API is not translated; programs of the runtime API often include its header.
#pragma once
#include <cuda_runtime.h>
