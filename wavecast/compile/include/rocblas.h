#include <rocblas/rocblas.h>
