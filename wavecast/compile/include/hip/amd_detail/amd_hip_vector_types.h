#include <hip/hip_vector_types.h>
