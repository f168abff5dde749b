#include <hip/hip_bfloat16.h>
