// hipcub's algorithms of warps, blocks and arrays (docs/hip.md says which).
#pragma once

#include <hip/hip_runtime.h>
#include <hipcub/block_data.hpp>
#include <hipcub/device.hpp>
#include <hipcub/device_sort.hpp>
#include <hipcub/operators.hpp>
#include <hipcub/warp_block.hpp>
