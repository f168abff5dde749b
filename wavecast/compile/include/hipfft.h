#include <hipfft/hipfft.h>
