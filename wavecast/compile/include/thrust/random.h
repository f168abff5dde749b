#pragma once
#include <thrust/detail/all.h>
