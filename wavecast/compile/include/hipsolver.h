#include <hipsolver/hipsolver.h>
