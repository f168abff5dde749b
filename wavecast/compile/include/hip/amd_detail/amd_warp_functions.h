#include <wavecast/cross_lane.h>
