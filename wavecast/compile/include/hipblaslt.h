#include <hipblaslt/hipblaslt.h>
