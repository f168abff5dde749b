#pragma once
#error tensor core fragments (mma.h) are for NVIDIA GPUs: guard the code with #ifndef __HIP_DEVICE_COMPILE__
