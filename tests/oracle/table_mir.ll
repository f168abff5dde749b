declare i32 @llvm.amdgcn.workitem.id.x()
declare i32 @llvm.amdgcn.workgroup.id.x()
declare i32 @llvm.amdgcn.readfirstlane.i32(i32)
declare i32 @llvm.amdgcn.ds.bpermute(i32, i32)
declare void @llvm.amdgcn.s.barrier()
declare float @llvm.sqrt.f32(float)
declare float @llvm.exp2.f32(float)
declare float @llvm.fma.f32(float, float, float)
declare <2 x half> @llvm.fma.v2f16(<2 x half>, <2 x half>, <2 x half>)
declare i64 @llvm.ctpop.i64(i64)
declare i32 @llvm.ctlz.i32(i32, i1)
declare i32 @llvm.umin.i32(i32, i32)
declare float @llvm.maxnum.f32(float, float)

@tile = internal addrspace(3) global [1024 x float] poison, align 16

define amdgpu_kernel void @arithmetic(ptr addrspace(1) noalias %out, ptr addrspace(1) noalias %in, i32 %n, i64 %wide) {
entry:
  %lane = call i32 @llvm.amdgcn.workitem.id.x()
  %group = call i32 @llvm.amdgcn.workgroup.id.x()
  %base = mul i32 %group, %n
  %index = add i32 %base, %lane
  %inside = icmp ult i32 %index, %n
  br i1 %inside, label %body, label %done
body:
  %offset = sext i32 %index to i64
  %source = getelementptr float, ptr addrspace(1) %in, i64 %offset
  %x = load float, ptr addrspace(1) %source, align 4
  %ahead = getelementptr float, ptr addrspace(1) %source, i64 4
  %y = load float, ptr addrspace(1) %ahead, align 4
  %quotient = fdiv float %x, %y
  %root = call float @llvm.sqrt.f32(float %quotient)
  %power = call float @llvm.exp2.f32(float %root)
  %sum = call float @llvm.fma.f32(float %power, float %x, float %y)
  %positive = fcmp ogt float %sum, 0.0
  %chosen = select i1 %positive, float %sum, float %y
  %bits = bitcast float %chosen to i32
  %long = zext i32 %bits to i64
  %product = mul i64 %long, %wide
  %shifted = lshr i64 %product, 7
  %divided = udiv i64 %shifted, %wide
  %count = call i64 @llvm.ctpop.i64(i64 %divided)
  %low = trunc i64 %count to i32
  %zeros = call i32 @llvm.ctlz.i32(i32 %low, i1 false)
  %least = call i32 @llvm.umin.i32(i32 %zeros, i32 %bits)
  %double = sitofp i32 %least to double
  %halves = bitcast i32 %least to <2 x half>
  %packed = call <2 x half> @llvm.fma.v2f16(<2 x half> %halves, <2 x half> %halves, <2 x half> <half 1.0, half 2.0>)
  %inverse = fdiv double 1.0, %double
  %single = fptrunc double %inverse to float
  %half = fptrunc float %single to half
  %upper = insertelement <2 x half> %packed, half %half, i32 1
  %target = getelementptr <2 x half>, ptr addrspace(1) %out, i64 %offset
  store <2 x half> %upper, ptr addrspace(1) %target, align 4
  %far = getelementptr double, ptr addrspace(1) %out, i64 %wide
  store double %inverse, ptr addrspace(1) %far, align 8
  br label %done
done:
  ret void
}

define amdgpu_kernel void @reduction(ptr addrspace(1) noalias %out, ptr addrspace(1) noalias %in, i32 %n) {
entry:
  %lane = call i32 @llvm.amdgcn.workitem.id.x()
  br label %loop
loop:
  %i = phi i32 [ 0, %entry ], [ %next, %loop ]
  %acc = phi <4 x float> [ zeroinitializer, %entry ], [ %total, %loop ]
  %row = add i32 %i, %lane
  %wide = sext i32 %row to i64
  %source = getelementptr <4 x float>, ptr addrspace(1) %in, i64 %wide
  %value = load <4 x float>, ptr addrspace(1) %source, align 16
  %total = fadd <4 x float> %acc, %value
  %next = add i32 %i, 64
  %more = icmp slt i32 %next, %n
  br i1 %more, label %loop, label %after
after:
  %first = extractelement <4 x float> %total, i32 0
  %second = extractelement <4 x float> %total, i32 1
  %sum = fadd float %first, %second
  %slot = getelementptr [1024 x float], ptr addrspace(3) @tile, i32 0, i32 %lane
  store float %sum, ptr addrspace(3) %slot, align 4
  fence syncscope("workgroup") release
  call void @llvm.amdgcn.s.barrier()
  fence syncscope("workgroup") acquire
  %mirror = xor i32 %lane, 63
  %other = getelementptr [1024 x float], ptr addrspace(3) @tile, i32 0, i32 %mirror
  %partner = load float, ptr addrspace(3) %other, align 4
  %both = call float @llvm.maxnum.f32(float %partner, float %sum)
  %raw = bitcast float %both to i32
  %address = shl i32 %lane, 2
  %moved = call i32 @llvm.amdgcn.ds.bpermute(i32 %address, i32 %raw)
  %uniform = call i32 @llvm.amdgcn.readfirstlane.i32(i32 %moved)
  %odd = and i32 %uniform, 1
  %is_odd = icmp eq i32 %odd, 0
  br i1 %is_odd, label %add, label %swap
add:
  %old = atomicrmw add ptr addrspace(1) %out, i32 %moved syncscope("agent") monotonic
  %again = getelementptr i32, ptr addrspace(1) %out, i64 1
  store i32 %old, ptr addrspace(1) %again, align 4
  br label %done
swap:
  %pair = cmpxchg ptr addrspace(1) %out, i32 %raw, i32 %moved syncscope("agent") acq_rel monotonic
  %seen = extractvalue { i32, i1 } %pair, 0
  %lds = atomicrmw umax ptr addrspace(3) %slot, i32 %seen syncscope("workgroup") monotonic
  %both_seen = add i32 %lds, %uniform
  %third = getelementptr i32, ptr addrspace(1) %out, i64 2
  store i32 %both_seen, ptr addrspace(1) %third, align 4
  br label %done
done:
  ret void
}

declare i64 @llvm.amdgcn.ballot.i64(i1)
declare i32 @llvm.amdgcn.readlane.i32(i32, i32)
declare i32 @llvm.amdgcn.writelane.i32(i32, i32, i32)
declare i32 @llvm.amdgcn.update.dpp.i32(i32, i32, i32, i32, i32, i1)
declare i32 @llvm.amdgcn.mbcnt.lo(i32, i32)
declare ptr addrspace(8) @llvm.amdgcn.make.buffer.rsrc.p8.p1(ptr addrspace(1), i16, i64, i32)
declare <4 x i32> @llvm.amdgcn.raw.ptr.buffer.load.v4i32(ptr addrspace(8), i32, i32, i32)
declare void @llvm.amdgcn.raw.ptr.buffer.store.v4i32(<4 x i32>, ptr addrspace(8), i32, i32, i32)
declare i32 @llvm.amdgcn.raw.ptr.buffer.atomic.add.i32(i32, ptr addrspace(8), i32, i32, i32)
declare double @llvm.fma.f64(double, double, double)
declare float @llvm.rint.f32(float)
declare float @llvm.sin.f32(float)
declare float @llvm.ldexp.f32.i32(float, i32)
declare i32 @llvm.fshr.i32(i32, i32, i32)
declare i32 @llvm.bitreverse.i32(i32)
declare i64 @llvm.abs.i64(i64, i1)
declare i32 @llvm.sadd.sat.i32(i32, i32)
declare { i32, i1 } @llvm.uadd.with.overflow.i32(i32, i32)
declare void @llvm.amdgcn.s.sleep(i32)

define amdgpu_kernel void @lanes(ptr addrspace(1) noalias %out, i32 %u, i64 %w) {
entry:
  %lane = call i32 @llvm.amdgcn.workitem.id.x()
  %odd = and i32 %lane, 1
  %is_odd = icmp ne i32 %odd, 0
  %votes = call i64 @llvm.amdgcn.ballot.i64(i1 %is_odd)
  %fourth = call i32 @llvm.amdgcn.readlane.i32(i32 %lane, i32 %u)
  %patched = call i32 @llvm.amdgcn.writelane.i32(i32 %fourth, i32 3, i32 %lane)
  %rotated = call i32 @llvm.amdgcn.update.dpp.i32(i32 %patched, i32 %lane, i32 273, i32 15, i32 15, i1 false)
  %before = call i32 @llvm.amdgcn.mbcnt.lo(i32 %u, i32 %rotated)
  %rsrc = call ptr addrspace(8) @llvm.amdgcn.make.buffer.rsrc.p8.p1(ptr addrspace(1) %out, i16 0, i64 65536, i32 159744)
  %bytes = shl i32 %lane, 4
  %four = call <4 x i32> @llvm.amdgcn.raw.ptr.buffer.load.v4i32(ptr addrspace(8) %rsrc, i32 %bytes, i32 0, i32 0)
  %one = extractelement <4 x i32> %four, i32 1
  %old = call i32 @llvm.amdgcn.raw.ptr.buffer.atomic.add.i32(i32 %one, ptr addrspace(8) %rsrc, i32 %bytes, i32 0, i32 0)
  %turned = call i32 @llvm.fshr.i32(i32 %old, i32 %one, i32 %u)
  %reversed = call i32 @llvm.bitreverse.i32(i32 %turned)
  %capped = call i32 @llvm.sadd.sat.i32(i32 %reversed, i32 %before)
  %carry = call { i32, i1 } @llvm.uadd.with.overflow.i32(i32 %capped, i32 %one)
  %carried = extractvalue { i32, i1 } %carry, 1
  %flag = zext i1 %carried to i32
  %three = insertelement <4 x i32> %four, i32 %flag, i32 2
  call void @llvm.amdgcn.raw.ptr.buffer.store.v4i32(<4 x i32> %three, ptr addrspace(8) %rsrc, i32 %bytes, i32 4096, i32 0)
  %votes_low = and i64 %votes, %w
  %size = call i64 @llvm.abs.i64(i64 %votes_low, i1 false)
  %place = getelementptr i64, ptr addrspace(1) %out, i64 %size
  store i64 %size, ptr addrspace(1) %place, align 8
  ret void
}

define double @horner(double %x, float %y, i32 %k) noinline {
  %p0 = call double @llvm.fma.f64(double %x, double 3.0, double 1.0)
  %p1 = call double @llvm.fma.f64(double %p0, double %x, double 2.5)
  %big = fcmp oge double %p1, 100.0
  %r0 = call float @llvm.rint.f32(float %y)
  %r1 = call float @llvm.sin.f32(float %r0)
  %r2 = call float @llvm.ldexp.f32.i32(float %r1, i32 %k)
  %wide = fpext float %r2 to double
  %scaled = fmul double %p1, %wide
  %result = select i1 %big, double %scaled, double %p1
  ret double %result
}

define amdgpu_kernel void @private_memory(ptr addrspace(1) noalias %out, i32 %choice, double %x, float %y) {
entry:
  %array = alloca [64 x i32], align 16, addrspace(5)
  %lane = call i32 @llvm.amdgcn.workitem.id.x()
  %slot = and i32 %lane, 63
  %cell = getelementptr [64 x i32], ptr addrspace(5) %array, i32 0, i32 %slot
  store volatile i32 %choice, ptr addrspace(5) %cell, align 4
  switch i32 %choice, label %other [
    i32 1, label %call
    i32 2, label %short
    i32 7, label %wait
  ]
call:
  %value = call double @horner(double %x, float %y, i32 %lane)
  %spot = getelementptr double, ptr addrspace(1) %out, i32 %lane
  store double %value, ptr addrspace(1) %spot, align 8
  br label %other
short:
  %half_cell = getelementptr i16, ptr addrspace(1) %out, i32 %lane
  %half = load i16, ptr addrspace(1) %half_cell, align 2
  %doubled = mul i16 %half, 3
  %bigger = add i16 %doubled, 7
  store i16 %bigger, ptr addrspace(1) %half_cell, align 2
  br label %other
wait:
  call void @llvm.amdgcn.s.sleep(i32 2)
  br label %other
other:
  %again = load volatile i32, ptr addrspace(5) %cell, align 4
  %quotient = sdiv i32 %again, %choice
  %rest = urem i32 %quotient, 10
  %end = getelementptr i32, ptr addrspace(1) %out, i32 %rest
  store i32 %quotient, ptr addrspace(1) %end, align 4
  ret void
}
