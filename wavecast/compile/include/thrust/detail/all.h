// Every header of thrust includes all of it; complex numbers are apart.
#pragma once

#include <thrust/detail/random.h>
#include <thrust/detail/vector.h>

#define THRUST_VERSION 200800
#define THRUST_MAJOR_VERSION 2
#define THRUST_MINOR_VERSION 8
#define THRUST_SUBMINOR_VERSION 0
