; The sparse products of gfx950 for wavecast/kernels/sparse/instructions.py, made of
; the instruction table by `python -m tests.kernels.sparse_libraries --write`.

define internal <2 x i64> @wavecast_v_smfmac_f32_16x16x64_bf16(i64 %a0, i64 %a1, i64 %a2, i64 %a3, i64 %b0, i64 %b1, i64 %b2, i64 %b3, i64 %b4, i64 %b5, i64 %b6, i64 %b7, i64 %c0, i64 %c1, i32 %index) alwaysinline {
  %a.0 = insertelement <4 x i64> poison, i64 %a0, i32 0
  %a.1 = insertelement <4 x i64> %a.0, i64 %a1, i32 1
  %a.2 = insertelement <4 x i64> %a.1, i64 %a2, i32 2
  %a = insertelement <4 x i64> %a.2, i64 %a3, i32 3
  %b.0 = insertelement <8 x i64> poison, i64 %b0, i32 0
  %b.1 = insertelement <8 x i64> %b.0, i64 %b1, i32 1
  %b.2 = insertelement <8 x i64> %b.1, i64 %b2, i32 2
  %b.3 = insertelement <8 x i64> %b.2, i64 %b3, i32 3
  %b.4 = insertelement <8 x i64> %b.3, i64 %b4, i32 4
  %b.5 = insertelement <8 x i64> %b.4, i64 %b5, i32 5
  %b.6 = insertelement <8 x i64> %b.5, i64 %b6, i32 6
  %b = insertelement <8 x i64> %b.6, i64 %b7, i32 7
  %c.0 = insertelement <2 x i64> poison, i64 %c0, i32 0
  %c = insertelement <2 x i64> %c.0, i64 %c1, i32 1
  %sum0 = bitcast <2 x i64> %c to <4 x float>
  %a.part0 = shufflevector <4 x i64> %a, <4 x i64> poison, <2 x i32> <i32 0, i32 1>
  %a.step0 = bitcast <2 x i64> %a.part0 to <8 x bfloat>
  %b.part0 = shufflevector <8 x i64> %b, <8 x i64> poison, <4 x i32> <i32 0, i32 1, i32 2, i32 3>
  %b.step0 = bitcast <4 x i64> %b.part0 to <16 x bfloat>
  %index0.low = lshr i32 %index, 0
  %index0 = or i32 %index0.low, 0
  %sum1 = call <4 x float> @llvm.amdgcn.smfmac.f32.16x16x64.bf16(<8 x bfloat> %a.step0, <16 x bfloat> %b.step0, <4 x float> %sum0, i32 %index0, i32 0, i32 0)
  %a.part1 = shufflevector <4 x i64> %a, <4 x i64> poison, <2 x i32> <i32 2, i32 3>
  %a.step1 = bitcast <2 x i64> %a.part1 to <8 x bfloat>
  %b.part1 = shufflevector <8 x i64> %b, <8 x i64> poison, <4 x i32> <i32 4, i32 5, i32 6, i32 7>
  %b.step1 = bitcast <4 x i64> %b.part1 to <16 x bfloat>
  %index1.low = lshr i32 %index, 0
  %index1 = or i32 %index1.low, 0
  %sum2 = call <4 x float> @llvm.amdgcn.smfmac.f32.16x16x64.bf16(<8 x bfloat> %a.step1, <16 x bfloat> %b.step1, <4 x float> %sum1, i32 %index1, i32 0, i32 1)
  %parts = bitcast <4 x float> %sum2 to <2 x i64>
  ret <2 x i64> %parts
}

define i64 @wavecast_v_smfmac_f32_16x16x64_bf16_0(i64 %a0, i64 %a1, i64 %a2, i64 %a3, i64 %b0, i64 %b1, i64 %b2, i64 %b3, i64 %b4, i64 %b5, i64 %b6, i64 %b7, i64 %c0, i64 %c1, i32 %index) alwaysinline {
  %parts = call <2 x i64> @wavecast_v_smfmac_f32_16x16x64_bf16(i64 %a0, i64 %a1, i64 %a2, i64 %a3, i64 %b0, i64 %b1, i64 %b2, i64 %b3, i64 %b4, i64 %b5, i64 %b6, i64 %b7, i64 %c0, i64 %c1, i32 %index)
  %part = extractelement <2 x i64> %parts, i32 0
  ret i64 %part
}

define i64 @wavecast_v_smfmac_f32_16x16x64_bf16_1(i64 %a0, i64 %a1, i64 %a2, i64 %a3, i64 %b0, i64 %b1, i64 %b2, i64 %b3, i64 %b4, i64 %b5, i64 %b6, i64 %b7, i64 %c0, i64 %c1, i32 %index) alwaysinline {
  %parts = call <2 x i64> @wavecast_v_smfmac_f32_16x16x64_bf16(i64 %a0, i64 %a1, i64 %a2, i64 %a3, i64 %b0, i64 %b1, i64 %b2, i64 %b3, i64 %b4, i64 %b5, i64 %b6, i64 %b7, i64 %c0, i64 %c1, i32 %index)
  %part = extractelement <2 x i64> %parts, i32 1
  ret i64 %part
}

define internal <2 x i64> @wavecast_v_smfmac_f32_16x16x64_f16(i64 %a0, i64 %a1, i64 %a2, i64 %a3, i64 %b0, i64 %b1, i64 %b2, i64 %b3, i64 %b4, i64 %b5, i64 %b6, i64 %b7, i64 %c0, i64 %c1, i32 %index) alwaysinline {
  %a.0 = insertelement <4 x i64> poison, i64 %a0, i32 0
  %a.1 = insertelement <4 x i64> %a.0, i64 %a1, i32 1
  %a.2 = insertelement <4 x i64> %a.1, i64 %a2, i32 2
  %a = insertelement <4 x i64> %a.2, i64 %a3, i32 3
  %b.0 = insertelement <8 x i64> poison, i64 %b0, i32 0
  %b.1 = insertelement <8 x i64> %b.0, i64 %b1, i32 1
  %b.2 = insertelement <8 x i64> %b.1, i64 %b2, i32 2
  %b.3 = insertelement <8 x i64> %b.2, i64 %b3, i32 3
  %b.4 = insertelement <8 x i64> %b.3, i64 %b4, i32 4
  %b.5 = insertelement <8 x i64> %b.4, i64 %b5, i32 5
  %b.6 = insertelement <8 x i64> %b.5, i64 %b6, i32 6
  %b = insertelement <8 x i64> %b.6, i64 %b7, i32 7
  %c.0 = insertelement <2 x i64> poison, i64 %c0, i32 0
  %c = insertelement <2 x i64> %c.0, i64 %c1, i32 1
  %sum0 = bitcast <2 x i64> %c to <4 x float>
  %a.part0 = shufflevector <4 x i64> %a, <4 x i64> poison, <2 x i32> <i32 0, i32 1>
  %a.step0 = bitcast <2 x i64> %a.part0 to <8 x half>
  %b.part0 = shufflevector <8 x i64> %b, <8 x i64> poison, <4 x i32> <i32 0, i32 1, i32 2, i32 3>
  %b.step0 = bitcast <4 x i64> %b.part0 to <16 x half>
  %index0.low = lshr i32 %index, 0
  %index0 = or i32 %index0.low, 0
  %sum1 = call <4 x float> @llvm.amdgcn.smfmac.f32.16x16x64.f16(<8 x half> %a.step0, <16 x half> %b.step0, <4 x float> %sum0, i32 %index0, i32 0, i32 0)
  %a.part1 = shufflevector <4 x i64> %a, <4 x i64> poison, <2 x i32> <i32 2, i32 3>
  %a.step1 = bitcast <2 x i64> %a.part1 to <8 x half>
  %b.part1 = shufflevector <8 x i64> %b, <8 x i64> poison, <4 x i32> <i32 4, i32 5, i32 6, i32 7>
  %b.step1 = bitcast <4 x i64> %b.part1 to <16 x half>
  %index1.low = lshr i32 %index, 0
  %index1 = or i32 %index1.low, 0
  %sum2 = call <4 x float> @llvm.amdgcn.smfmac.f32.16x16x64.f16(<8 x half> %a.step1, <16 x half> %b.step1, <4 x float> %sum1, i32 %index1, i32 0, i32 1)
  %parts = bitcast <4 x float> %sum2 to <2 x i64>
  ret <2 x i64> %parts
}

define i64 @wavecast_v_smfmac_f32_16x16x64_f16_0(i64 %a0, i64 %a1, i64 %a2, i64 %a3, i64 %b0, i64 %b1, i64 %b2, i64 %b3, i64 %b4, i64 %b5, i64 %b6, i64 %b7, i64 %c0, i64 %c1, i32 %index) alwaysinline {
  %parts = call <2 x i64> @wavecast_v_smfmac_f32_16x16x64_f16(i64 %a0, i64 %a1, i64 %a2, i64 %a3, i64 %b0, i64 %b1, i64 %b2, i64 %b3, i64 %b4, i64 %b5, i64 %b6, i64 %b7, i64 %c0, i64 %c1, i32 %index)
  %part = extractelement <2 x i64> %parts, i32 0
  ret i64 %part
}

define i64 @wavecast_v_smfmac_f32_16x16x64_f16_1(i64 %a0, i64 %a1, i64 %a2, i64 %a3, i64 %b0, i64 %b1, i64 %b2, i64 %b3, i64 %b4, i64 %b5, i64 %b6, i64 %b7, i64 %c0, i64 %c1, i32 %index) alwaysinline {
  %parts = call <2 x i64> @wavecast_v_smfmac_f32_16x16x64_f16(i64 %a0, i64 %a1, i64 %a2, i64 %a3, i64 %b0, i64 %b1, i64 %b2, i64 %b3, i64 %b4, i64 %b5, i64 %b6, i64 %b7, i64 %c0, i64 %c1, i32 %index)
  %part = extractelement <2 x i64> %parts, i32 1
  ret i64 %part
}

define internal <2 x i64> @wavecast_v_smfmac_f32_16x16x128_fp8_fp8(i64 %a0, i64 %a1, i64 %a2, i64 %a3, i64 %b0, i64 %b1, i64 %b2, i64 %b3, i64 %b4, i64 %b5, i64 %b6, i64 %b7, i64 %c0, i64 %c1, i64 %index) alwaysinline {
  %a.0 = insertelement <4 x i64> poison, i64 %a0, i32 0
  %a.1 = insertelement <4 x i64> %a.0, i64 %a1, i32 1
  %a.2 = insertelement <4 x i64> %a.1, i64 %a2, i32 2
  %a = insertelement <4 x i64> %a.2, i64 %a3, i32 3
  %b.0 = insertelement <8 x i64> poison, i64 %b0, i32 0
  %b.1 = insertelement <8 x i64> %b.0, i64 %b1, i32 1
  %b.2 = insertelement <8 x i64> %b.1, i64 %b2, i32 2
  %b.3 = insertelement <8 x i64> %b.2, i64 %b3, i32 3
  %b.4 = insertelement <8 x i64> %b.3, i64 %b4, i32 4
  %b.5 = insertelement <8 x i64> %b.4, i64 %b5, i32 5
  %b.6 = insertelement <8 x i64> %b.5, i64 %b6, i32 6
  %b = insertelement <8 x i64> %b.6, i64 %b7, i32 7
  %c.0 = insertelement <2 x i64> poison, i64 %c0, i32 0
  %c = insertelement <2 x i64> %c.0, i64 %c1, i32 1
  %sum0 = bitcast <2 x i64> %c to <4 x float>
  %a.part0 = shufflevector <4 x i64> %a, <4 x i64> poison, <2 x i32> <i32 0, i32 1>
  %a.step0 = bitcast <2 x i64> %a.part0 to <4 x i32>
  %b.part0 = shufflevector <8 x i64> %b, <8 x i64> poison, <4 x i32> <i32 0, i32 1, i32 2, i32 3>
  %b.step0 = bitcast <4 x i64> %b.part0 to <8 x i32>
  %index0.low = lshr i64 %index, 0
  %index0 = trunc i64 %index0.low to i32
  %sum1 = call <4 x float> @llvm.amdgcn.smfmac.f32.16x16x128.fp8.fp8(<4 x i32> %a.step0, <8 x i32> %b.step0, <4 x float> %sum0, i32 %index0, i32 0, i32 0)
  %a.part1 = shufflevector <4 x i64> %a, <4 x i64> poison, <2 x i32> <i32 2, i32 3>
  %a.step1 = bitcast <2 x i64> %a.part1 to <4 x i32>
  %b.part1 = shufflevector <8 x i64> %b, <8 x i64> poison, <4 x i32> <i32 4, i32 5, i32 6, i32 7>
  %b.step1 = bitcast <4 x i64> %b.part1 to <8 x i32>
  %index1.low = lshr i64 %index, 32
  %index1 = trunc i64 %index1.low to i32
  %sum2 = call <4 x float> @llvm.amdgcn.smfmac.f32.16x16x128.fp8.fp8(<4 x i32> %a.step1, <8 x i32> %b.step1, <4 x float> %sum1, i32 %index1, i32 0, i32 0)
  %parts = bitcast <4 x float> %sum2 to <2 x i64>
  ret <2 x i64> %parts
}

define i64 @wavecast_v_smfmac_f32_16x16x128_fp8_fp8_0(i64 %a0, i64 %a1, i64 %a2, i64 %a3, i64 %b0, i64 %b1, i64 %b2, i64 %b3, i64 %b4, i64 %b5, i64 %b6, i64 %b7, i64 %c0, i64 %c1, i64 %index) alwaysinline {
  %parts = call <2 x i64> @wavecast_v_smfmac_f32_16x16x128_fp8_fp8(i64 %a0, i64 %a1, i64 %a2, i64 %a3, i64 %b0, i64 %b1, i64 %b2, i64 %b3, i64 %b4, i64 %b5, i64 %b6, i64 %b7, i64 %c0, i64 %c1, i64 %index)
  %part = extractelement <2 x i64> %parts, i32 0
  ret i64 %part
}

define i64 @wavecast_v_smfmac_f32_16x16x128_fp8_fp8_1(i64 %a0, i64 %a1, i64 %a2, i64 %a3, i64 %b0, i64 %b1, i64 %b2, i64 %b3, i64 %b4, i64 %b5, i64 %b6, i64 %b7, i64 %c0, i64 %c1, i64 %index) alwaysinline {
  %parts = call <2 x i64> @wavecast_v_smfmac_f32_16x16x128_fp8_fp8(i64 %a0, i64 %a1, i64 %a2, i64 %a3, i64 %b0, i64 %b1, i64 %b2, i64 %b3, i64 %b4, i64 %b5, i64 %b6, i64 %b7, i64 %c0, i64 %c1, i64 %index)
  %part = extractelement <2 x i64> %parts, i32 1
  ret i64 %part
}

define internal <2 x i64> @wavecast_v_smfmac_f32_16x16x128_fp8_bf8(i64 %a0, i64 %a1, i64 %a2, i64 %a3, i64 %b0, i64 %b1, i64 %b2, i64 %b3, i64 %b4, i64 %b5, i64 %b6, i64 %b7, i64 %c0, i64 %c1, i64 %index) alwaysinline {
  %a.0 = insertelement <4 x i64> poison, i64 %a0, i32 0
  %a.1 = insertelement <4 x i64> %a.0, i64 %a1, i32 1
  %a.2 = insertelement <4 x i64> %a.1, i64 %a2, i32 2
  %a = insertelement <4 x i64> %a.2, i64 %a3, i32 3
  %b.0 = insertelement <8 x i64> poison, i64 %b0, i32 0
  %b.1 = insertelement <8 x i64> %b.0, i64 %b1, i32 1
  %b.2 = insertelement <8 x i64> %b.1, i64 %b2, i32 2
  %b.3 = insertelement <8 x i64> %b.2, i64 %b3, i32 3
  %b.4 = insertelement <8 x i64> %b.3, i64 %b4, i32 4
  %b.5 = insertelement <8 x i64> %b.4, i64 %b5, i32 5
  %b.6 = insertelement <8 x i64> %b.5, i64 %b6, i32 6
  %b = insertelement <8 x i64> %b.6, i64 %b7, i32 7
  %c.0 = insertelement <2 x i64> poison, i64 %c0, i32 0
  %c = insertelement <2 x i64> %c.0, i64 %c1, i32 1
  %sum0 = bitcast <2 x i64> %c to <4 x float>
  %a.part0 = shufflevector <4 x i64> %a, <4 x i64> poison, <2 x i32> <i32 0, i32 1>
  %a.step0 = bitcast <2 x i64> %a.part0 to <4 x i32>
  %b.part0 = shufflevector <8 x i64> %b, <8 x i64> poison, <4 x i32> <i32 0, i32 1, i32 2, i32 3>
  %b.step0 = bitcast <4 x i64> %b.part0 to <8 x i32>
  %index0.low = lshr i64 %index, 0
  %index0 = trunc i64 %index0.low to i32
  %sum1 = call <4 x float> @llvm.amdgcn.smfmac.f32.16x16x128.fp8.bf8(<4 x i32> %a.step0, <8 x i32> %b.step0, <4 x float> %sum0, i32 %index0, i32 0, i32 0)
  %a.part1 = shufflevector <4 x i64> %a, <4 x i64> poison, <2 x i32> <i32 2, i32 3>
  %a.step1 = bitcast <2 x i64> %a.part1 to <4 x i32>
  %b.part1 = shufflevector <8 x i64> %b, <8 x i64> poison, <4 x i32> <i32 4, i32 5, i32 6, i32 7>
  %b.step1 = bitcast <4 x i64> %b.part1 to <8 x i32>
  %index1.low = lshr i64 %index, 32
  %index1 = trunc i64 %index1.low to i32
  %sum2 = call <4 x float> @llvm.amdgcn.smfmac.f32.16x16x128.fp8.bf8(<4 x i32> %a.step1, <8 x i32> %b.step1, <4 x float> %sum1, i32 %index1, i32 0, i32 0)
  %parts = bitcast <4 x float> %sum2 to <2 x i64>
  ret <2 x i64> %parts
}

define i64 @wavecast_v_smfmac_f32_16x16x128_fp8_bf8_0(i64 %a0, i64 %a1, i64 %a2, i64 %a3, i64 %b0, i64 %b1, i64 %b2, i64 %b3, i64 %b4, i64 %b5, i64 %b6, i64 %b7, i64 %c0, i64 %c1, i64 %index) alwaysinline {
  %parts = call <2 x i64> @wavecast_v_smfmac_f32_16x16x128_fp8_bf8(i64 %a0, i64 %a1, i64 %a2, i64 %a3, i64 %b0, i64 %b1, i64 %b2, i64 %b3, i64 %b4, i64 %b5, i64 %b6, i64 %b7, i64 %c0, i64 %c1, i64 %index)
  %part = extractelement <2 x i64> %parts, i32 0
  ret i64 %part
}

define i64 @wavecast_v_smfmac_f32_16x16x128_fp8_bf8_1(i64 %a0, i64 %a1, i64 %a2, i64 %a3, i64 %b0, i64 %b1, i64 %b2, i64 %b3, i64 %b4, i64 %b5, i64 %b6, i64 %b7, i64 %c0, i64 %c1, i64 %index) alwaysinline {
  %parts = call <2 x i64> @wavecast_v_smfmac_f32_16x16x128_fp8_bf8(i64 %a0, i64 %a1, i64 %a2, i64 %a3, i64 %b0, i64 %b1, i64 %b2, i64 %b3, i64 %b4, i64 %b5, i64 %b6, i64 %b7, i64 %c0, i64 %c1, i64 %index)
  %part = extractelement <2 x i64> %parts, i32 1
  ret i64 %part
}

define internal <2 x i64> @wavecast_v_smfmac_f32_16x16x128_bf8_fp8(i64 %a0, i64 %a1, i64 %a2, i64 %a3, i64 %b0, i64 %b1, i64 %b2, i64 %b3, i64 %b4, i64 %b5, i64 %b6, i64 %b7, i64 %c0, i64 %c1, i64 %index) alwaysinline {
  %a.0 = insertelement <4 x i64> poison, i64 %a0, i32 0
  %a.1 = insertelement <4 x i64> %a.0, i64 %a1, i32 1
  %a.2 = insertelement <4 x i64> %a.1, i64 %a2, i32 2
  %a = insertelement <4 x i64> %a.2, i64 %a3, i32 3
  %b.0 = insertelement <8 x i64> poison, i64 %b0, i32 0
  %b.1 = insertelement <8 x i64> %b.0, i64 %b1, i32 1
  %b.2 = insertelement <8 x i64> %b.1, i64 %b2, i32 2
  %b.3 = insertelement <8 x i64> %b.2, i64 %b3, i32 3
  %b.4 = insertelement <8 x i64> %b.3, i64 %b4, i32 4
  %b.5 = insertelement <8 x i64> %b.4, i64 %b5, i32 5
  %b.6 = insertelement <8 x i64> %b.5, i64 %b6, i32 6
  %b = insertelement <8 x i64> %b.6, i64 %b7, i32 7
  %c.0 = insertelement <2 x i64> poison, i64 %c0, i32 0
  %c = insertelement <2 x i64> %c.0, i64 %c1, i32 1
  %sum0 = bitcast <2 x i64> %c to <4 x float>
  %a.part0 = shufflevector <4 x i64> %a, <4 x i64> poison, <2 x i32> <i32 0, i32 1>
  %a.step0 = bitcast <2 x i64> %a.part0 to <4 x i32>
  %b.part0 = shufflevector <8 x i64> %b, <8 x i64> poison, <4 x i32> <i32 0, i32 1, i32 2, i32 3>
  %b.step0 = bitcast <4 x i64> %b.part0 to <8 x i32>
  %index0.low = lshr i64 %index, 0
  %index0 = trunc i64 %index0.low to i32
  %sum1 = call <4 x float> @llvm.amdgcn.smfmac.f32.16x16x128.bf8.fp8(<4 x i32> %a.step0, <8 x i32> %b.step0, <4 x float> %sum0, i32 %index0, i32 0, i32 0)
  %a.part1 = shufflevector <4 x i64> %a, <4 x i64> poison, <2 x i32> <i32 2, i32 3>
  %a.step1 = bitcast <2 x i64> %a.part1 to <4 x i32>
  %b.part1 = shufflevector <8 x i64> %b, <8 x i64> poison, <4 x i32> <i32 4, i32 5, i32 6, i32 7>
  %b.step1 = bitcast <4 x i64> %b.part1 to <8 x i32>
  %index1.low = lshr i64 %index, 32
  %index1 = trunc i64 %index1.low to i32
  %sum2 = call <4 x float> @llvm.amdgcn.smfmac.f32.16x16x128.bf8.fp8(<4 x i32> %a.step1, <8 x i32> %b.step1, <4 x float> %sum1, i32 %index1, i32 0, i32 0)
  %parts = bitcast <4 x float> %sum2 to <2 x i64>
  ret <2 x i64> %parts
}

define i64 @wavecast_v_smfmac_f32_16x16x128_bf8_fp8_0(i64 %a0, i64 %a1, i64 %a2, i64 %a3, i64 %b0, i64 %b1, i64 %b2, i64 %b3, i64 %b4, i64 %b5, i64 %b6, i64 %b7, i64 %c0, i64 %c1, i64 %index) alwaysinline {
  %parts = call <2 x i64> @wavecast_v_smfmac_f32_16x16x128_bf8_fp8(i64 %a0, i64 %a1, i64 %a2, i64 %a3, i64 %b0, i64 %b1, i64 %b2, i64 %b3, i64 %b4, i64 %b5, i64 %b6, i64 %b7, i64 %c0, i64 %c1, i64 %index)
  %part = extractelement <2 x i64> %parts, i32 0
  ret i64 %part
}

define i64 @wavecast_v_smfmac_f32_16x16x128_bf8_fp8_1(i64 %a0, i64 %a1, i64 %a2, i64 %a3, i64 %b0, i64 %b1, i64 %b2, i64 %b3, i64 %b4, i64 %b5, i64 %b6, i64 %b7, i64 %c0, i64 %c1, i64 %index) alwaysinline {
  %parts = call <2 x i64> @wavecast_v_smfmac_f32_16x16x128_bf8_fp8(i64 %a0, i64 %a1, i64 %a2, i64 %a3, i64 %b0, i64 %b1, i64 %b2, i64 %b3, i64 %b4, i64 %b5, i64 %b6, i64 %b7, i64 %c0, i64 %c1, i64 %index)
  %part = extractelement <2 x i64> %parts, i32 1
  ret i64 %part
}

define internal <2 x i64> @wavecast_v_smfmac_f32_16x16x128_bf8_bf8(i64 %a0, i64 %a1, i64 %a2, i64 %a3, i64 %b0, i64 %b1, i64 %b2, i64 %b3, i64 %b4, i64 %b5, i64 %b6, i64 %b7, i64 %c0, i64 %c1, i64 %index) alwaysinline {
  %a.0 = insertelement <4 x i64> poison, i64 %a0, i32 0
  %a.1 = insertelement <4 x i64> %a.0, i64 %a1, i32 1
  %a.2 = insertelement <4 x i64> %a.1, i64 %a2, i32 2
  %a = insertelement <4 x i64> %a.2, i64 %a3, i32 3
  %b.0 = insertelement <8 x i64> poison, i64 %b0, i32 0
  %b.1 = insertelement <8 x i64> %b.0, i64 %b1, i32 1
  %b.2 = insertelement <8 x i64> %b.1, i64 %b2, i32 2
  %b.3 = insertelement <8 x i64> %b.2, i64 %b3, i32 3
  %b.4 = insertelement <8 x i64> %b.3, i64 %b4, i32 4
  %b.5 = insertelement <8 x i64> %b.4, i64 %b5, i32 5
  %b.6 = insertelement <8 x i64> %b.5, i64 %b6, i32 6
  %b = insertelement <8 x i64> %b.6, i64 %b7, i32 7
  %c.0 = insertelement <2 x i64> poison, i64 %c0, i32 0
  %c = insertelement <2 x i64> %c.0, i64 %c1, i32 1
  %sum0 = bitcast <2 x i64> %c to <4 x float>
  %a.part0 = shufflevector <4 x i64> %a, <4 x i64> poison, <2 x i32> <i32 0, i32 1>
  %a.step0 = bitcast <2 x i64> %a.part0 to <4 x i32>
  %b.part0 = shufflevector <8 x i64> %b, <8 x i64> poison, <4 x i32> <i32 0, i32 1, i32 2, i32 3>
  %b.step0 = bitcast <4 x i64> %b.part0 to <8 x i32>
  %index0.low = lshr i64 %index, 0
  %index0 = trunc i64 %index0.low to i32
  %sum1 = call <4 x float> @llvm.amdgcn.smfmac.f32.16x16x128.bf8.bf8(<4 x i32> %a.step0, <8 x i32> %b.step0, <4 x float> %sum0, i32 %index0, i32 0, i32 0)
  %a.part1 = shufflevector <4 x i64> %a, <4 x i64> poison, <2 x i32> <i32 2, i32 3>
  %a.step1 = bitcast <2 x i64> %a.part1 to <4 x i32>
  %b.part1 = shufflevector <8 x i64> %b, <8 x i64> poison, <4 x i32> <i32 4, i32 5, i32 6, i32 7>
  %b.step1 = bitcast <4 x i64> %b.part1 to <8 x i32>
  %index1.low = lshr i64 %index, 32
  %index1 = trunc i64 %index1.low to i32
  %sum2 = call <4 x float> @llvm.amdgcn.smfmac.f32.16x16x128.bf8.bf8(<4 x i32> %a.step1, <8 x i32> %b.step1, <4 x float> %sum1, i32 %index1, i32 0, i32 0)
  %parts = bitcast <4 x float> %sum2 to <2 x i64>
  ret <2 x i64> %parts
}

define i64 @wavecast_v_smfmac_f32_16x16x128_bf8_bf8_0(i64 %a0, i64 %a1, i64 %a2, i64 %a3, i64 %b0, i64 %b1, i64 %b2, i64 %b3, i64 %b4, i64 %b5, i64 %b6, i64 %b7, i64 %c0, i64 %c1, i64 %index) alwaysinline {
  %parts = call <2 x i64> @wavecast_v_smfmac_f32_16x16x128_bf8_bf8(i64 %a0, i64 %a1, i64 %a2, i64 %a3, i64 %b0, i64 %b1, i64 %b2, i64 %b3, i64 %b4, i64 %b5, i64 %b6, i64 %b7, i64 %c0, i64 %c1, i64 %index)
  %part = extractelement <2 x i64> %parts, i32 0
  ret i64 %part
}

define i64 @wavecast_v_smfmac_f32_16x16x128_bf8_bf8_1(i64 %a0, i64 %a1, i64 %a2, i64 %a3, i64 %b0, i64 %b1, i64 %b2, i64 %b3, i64 %b4, i64 %b5, i64 %b6, i64 %b7, i64 %c0, i64 %c1, i64 %index) alwaysinline {
  %parts = call <2 x i64> @wavecast_v_smfmac_f32_16x16x128_bf8_bf8(i64 %a0, i64 %a1, i64 %a2, i64 %a3, i64 %b0, i64 %b1, i64 %b2, i64 %b3, i64 %b4, i64 %b5, i64 %b6, i64 %b7, i64 %c0, i64 %c1, i64 %index)
  %part = extractelement <2 x i64> %parts, i32 1
  ret i64 %part
}

define internal <2 x i64> @wavecast_v_smfmac_i32_16x16x128_i8(i64 %a0, i64 %a1, i64 %a2, i64 %a3, i64 %b0, i64 %b1, i64 %b2, i64 %b3, i64 %b4, i64 %b5, i64 %b6, i64 %b7, i64 %c0, i64 %c1, i64 %index) alwaysinline {
  %a.0 = insertelement <4 x i64> poison, i64 %a0, i32 0
  %a.1 = insertelement <4 x i64> %a.0, i64 %a1, i32 1
  %a.2 = insertelement <4 x i64> %a.1, i64 %a2, i32 2
  %a = insertelement <4 x i64> %a.2, i64 %a3, i32 3
  %b.0 = insertelement <8 x i64> poison, i64 %b0, i32 0
  %b.1 = insertelement <8 x i64> %b.0, i64 %b1, i32 1
  %b.2 = insertelement <8 x i64> %b.1, i64 %b2, i32 2
  %b.3 = insertelement <8 x i64> %b.2, i64 %b3, i32 3
  %b.4 = insertelement <8 x i64> %b.3, i64 %b4, i32 4
  %b.5 = insertelement <8 x i64> %b.4, i64 %b5, i32 5
  %b.6 = insertelement <8 x i64> %b.5, i64 %b6, i32 6
  %b = insertelement <8 x i64> %b.6, i64 %b7, i32 7
  %c.0 = insertelement <2 x i64> poison, i64 %c0, i32 0
  %c = insertelement <2 x i64> %c.0, i64 %c1, i32 1
  %sum0 = bitcast <2 x i64> %c to <4 x i32>
  %a.part0 = shufflevector <4 x i64> %a, <4 x i64> poison, <2 x i32> <i32 0, i32 1>
  %a.step0 = bitcast <2 x i64> %a.part0 to <4 x i32>
  %b.part0 = shufflevector <8 x i64> %b, <8 x i64> poison, <4 x i32> <i32 0, i32 1, i32 2, i32 3>
  %b.step0 = bitcast <4 x i64> %b.part0 to <8 x i32>
  %index0.low = lshr i64 %index, 0
  %index0 = trunc i64 %index0.low to i32
  %sum1 = call <4 x i32> @llvm.amdgcn.smfmac.i32.16x16x128.i8(<4 x i32> %a.step0, <8 x i32> %b.step0, <4 x i32> %sum0, i32 %index0, i32 0, i32 0)
  %a.part1 = shufflevector <4 x i64> %a, <4 x i64> poison, <2 x i32> <i32 2, i32 3>
  %a.step1 = bitcast <2 x i64> %a.part1 to <4 x i32>
  %b.part1 = shufflevector <8 x i64> %b, <8 x i64> poison, <4 x i32> <i32 4, i32 5, i32 6, i32 7>
  %b.step1 = bitcast <4 x i64> %b.part1 to <8 x i32>
  %index1.low = lshr i64 %index, 32
  %index1 = trunc i64 %index1.low to i32
  %sum2 = call <4 x i32> @llvm.amdgcn.smfmac.i32.16x16x128.i8(<4 x i32> %a.step1, <8 x i32> %b.step1, <4 x i32> %sum1, i32 %index1, i32 0, i32 0)
  %parts = bitcast <4 x i32> %sum2 to <2 x i64>
  ret <2 x i64> %parts
}

define i64 @wavecast_v_smfmac_i32_16x16x128_i8_0(i64 %a0, i64 %a1, i64 %a2, i64 %a3, i64 %b0, i64 %b1, i64 %b2, i64 %b3, i64 %b4, i64 %b5, i64 %b6, i64 %b7, i64 %c0, i64 %c1, i64 %index) alwaysinline {
  %parts = call <2 x i64> @wavecast_v_smfmac_i32_16x16x128_i8(i64 %a0, i64 %a1, i64 %a2, i64 %a3, i64 %b0, i64 %b1, i64 %b2, i64 %b3, i64 %b4, i64 %b5, i64 %b6, i64 %b7, i64 %c0, i64 %c1, i64 %index)
  %part = extractelement <2 x i64> %parts, i32 0
  ret i64 %part
}

define i64 @wavecast_v_smfmac_i32_16x16x128_i8_1(i64 %a0, i64 %a1, i64 %a2, i64 %a3, i64 %b0, i64 %b1, i64 %b2, i64 %b3, i64 %b4, i64 %b5, i64 %b6, i64 %b7, i64 %c0, i64 %c1, i64 %index) alwaysinline {
  %parts = call <2 x i64> @wavecast_v_smfmac_i32_16x16x128_i8(i64 %a0, i64 %a1, i64 %a2, i64 %a3, i64 %b0, i64 %b1, i64 %b2, i64 %b3, i64 %b4, i64 %b5, i64 %b6, i64 %b7, i64 %c0, i64 %c1, i64 %index)
  %part = extractelement <2 x i64> %parts, i32 1
  ret i64 %part
}

declare <4 x float> @llvm.amdgcn.smfmac.f32.16x16x64.bf16(<8 x bfloat>, <16 x bfloat>, <4 x float>, i32, i32 immarg, i32 immarg)

declare <4 x float> @llvm.amdgcn.smfmac.f32.16x16x64.f16(<8 x half>, <16 x half>, <4 x float>, i32, i32 immarg, i32 immarg)

declare <4 x float> @llvm.amdgcn.smfmac.f32.16x16x128.fp8.fp8(<4 x i32>, <8 x i32>, <4 x float>, i32, i32 immarg, i32 immarg)

declare <4 x float> @llvm.amdgcn.smfmac.f32.16x16x128.fp8.bf8(<4 x i32>, <8 x i32>, <4 x float>, i32, i32 immarg, i32 immarg)

declare <4 x float> @llvm.amdgcn.smfmac.f32.16x16x128.bf8.fp8(<4 x i32>, <8 x i32>, <4 x float>, i32, i32 immarg, i32 immarg)

declare <4 x float> @llvm.amdgcn.smfmac.f32.16x16x128.bf8.bf8(<4 x i32>, <8 x i32>, <4 x float>, i32, i32 immarg, i32 immarg)

declare <4 x i32> @llvm.amdgcn.smfmac.i32.16x16x128.i8(<4 x i32>, <8 x i32>, <4 x i32>, i32, i32 immarg, i32 immarg)
