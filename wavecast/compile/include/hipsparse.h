#include <hipsparse/hipsparse.h>
