// CUDA's complex numbers, which are those of HIP.
#pragma once

#include <cuda_runtime.h>
#include <hip/hip_complex.h>

#define cuFloatComplex hipFloatComplex
#define cuDoubleComplex hipDoubleComplex
#define cuComplex hipComplex
#define make_cuFloatComplex make_hipFloatComplex
#define make_cuDoubleComplex make_hipDoubleComplex
#define make_cuComplex make_hipComplex
#define cuComplexDoubleToFloat hipComplexDoubleToFloat
#define cuComplexFloatToDouble hipComplexFloatToDouble
#define cuCreal hipCreal
#define cuCrealf hipCrealf
#define cuCimag hipCimag
#define cuCimagf hipCimagf
#define cuConj hipConj
#define cuConjf hipConjf
#define cuCabs hipCabs
#define cuCabsf hipCabsf
#define cuCadd hipCadd
#define cuCaddf hipCaddf
#define cuCsub hipCsub
#define cuCsubf hipCsubf
#define cuCmul hipCmul
#define cuCmulf hipCmulf
#define cuCdiv hipCdiv
#define cuCdivf hipCdivf
#define cuCfma hipCfma
#define cuCfmaf hipCfmaf
