#include <hip/hip_complex.h>
