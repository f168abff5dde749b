; The loop over workgroups of one host thread: takes numbers from a shared counter and runs the waves
; of each workgroup in rounds. In a round every wave that can run does so until it ends, waits at a
; barrier, or pauses because its slice is used up; when all that have not ended wait, they resume.
; job.py has the words of the job ($STATUS), the flags of waves, and what is returned.

declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)

define i64 @field(ptr %job, i64 %index) alwaysinline {
  %at = getelementptr i64, ptr %job, i64 %index
  %value = load i64, ptr %at
  ret i64 %value
}

define void @set_word(ptr %state, i64 %word, i64 %value) alwaysinline {
  %skip = icmp slt i64 %word, 0
  br i1 %skip, label %out, label %write
write:
  %at = getelementptr i32, ptr %state, i64 %word
  %small = trunc i64 %value to i32
  store i32 %small, ptr %at
  br label %out
out:
  ret void
}

; A workgroup within its cluster, and the largest numbers, as TTMP6 has them: 4 bits each.
define i64 @within(i64 %x, i64 %y, i64 %z, i64 %a, i64 %b, i64 %c) alwaysinline {
  %own.x = urem i64 %x, %a
  %own.y = urem i64 %y, %b
  %own.z = urem i64 %z, %c
  %most.x = sub i64 %a, 1
  %most.y = sub i64 %b, 1
  %most.z = sub i64 %c, 1
  %ab = mul i64 %a, %b
  %abc = mul i64 %ab, %c
  %most = sub i64 %abc, 1
  %own.y.bits = shl i64 %own.y, 4
  %own.z.bits = shl i64 %own.z, 8
  %most.x.bits = shl i64 %most.x, 12
  %most.y.bits = shl i64 %most.y, 16
  %most.z.bits = shl i64 %most.z, 20
  %most.bits = shl i64 %most, 24
  %1 = or i64 %own.x, %own.y.bits
  %2 = or i64 %1, %own.z.bits
  %3 = or i64 %2, %most.x.bits
  %4 = or i64 %3, %most.y.bits
  %5 = or i64 %4, %most.z.bits
  %6 = or i64 %5, %most.bits
  ret i64 %6
}

define i64 @work(ptr %wave, ptr %job) {
entry:
  %counter.n = call i64 @field(ptr %job, i64 $COUNTER)
  %counter = inttoptr i64 %counter.n to ptr
  %total = call i64 @field(ptr %job, i64 $GROUPS)
  %grid.x = call i64 @field(ptr %job, i64 $GRID_X)
  %grid.y = call i64 @field(ptr %job, i64 $GRID_Y)
  %waves = call i64 @field(ptr %job, i64 $WAVES)
  %words = call i64 @field(ptr %job, i64 $STATE_WORDS)
  %template.n = call i64 @field(ptr %job, i64 $TEMPLATE)
  %template = inttoptr i64 %template.n to ptr
  %copied = call i64 @field(ptr %job, i64 $COPIED_WORDS)
  %copied.bytes = shl i64 %copied, 2
  %states.n = call i64 @field(ptr %job, i64 $STATES)
  %states = inttoptr i64 %states.n to ptr
  %context.n = call i64 @field(ptr %job, i64 $CONTEXT)
  %context = inttoptr i64 %context.n to ptr
  %flags.n = call i64 @field(ptr %job, i64 $FLAGS)
  %flags = inttoptr i64 %flags.n to ptr
  %word.x = call i64 @field(ptr %job, i64 $ID_X)
  %word.y = call i64 @field(ptr %job, i64 $ID_Y)
  %word.z = call i64 @field(ptr %job, i64 $ID_Z)
  %word.cluster = call i64 @field(ptr %job, i64 $ID_CLUSTER)
  %cluster.x = call i64 @field(ptr %job, i64 $CLUSTER_X)
  %cluster.y = call i64 @field(ptr %job, i64 $CLUSTER_Y)
  %cluster.z = call i64 @field(ptr %job, i64 $CLUSTER_Z)
  %barriers = call i64 @field(ptr %job, i64 $CLUSTER_BARRIERS)
  %barrier.now = getelementptr i64, ptr %context, i64 14
  %packed = call i64 @field(ptr %job, i64 $PACKED)
  %scratch = call i64 @field(ptr %job, i64 $SCRATCH)
  %scratch.bytes = call i64 @field(ptr %job, i64 $SCRATCH_BYTES)
  %limit = call i64 @field(ptr %job, i64 $BUDGET)
  %used.n = call i64 @field(ptr %job, i64 $EXECUTED)
  %used = inttoptr i64 %used.n to ptr
  %slice = call i64 @field(ptr %job, i64 $SLICE)
  %active.slot = getelementptr i64, ptr %job, i64 $ACTIVE
  %quantum.slot = getelementptr i64, ptr %job, i64 $QUANTUM
  %cut = call i64 @field(ptr %job, i64 $CUT)
  %cuts = icmp ne i64 %cut, 0
  %order.n = call i64 @field(ptr %job, i64 $ORDER)
  %order = inttoptr i64 %order.n to ptr
  %ordered = icmp ne i64 %order.n, 0
  %failed.n = call i64 @field(ptr %job, i64 $FAILED)
  %failed = inttoptr i64 %failed.n to ptr
  %chosen.n = call i64 @field(ptr %job, i64 $CHOSEN)
  %chosen = inttoptr i64 %chosen.n to ptr
  %all = icmp eq i64 %chosen.n, 0
  %scratch.slot = getelementptr i64, ptr %context, i64 4
  %budget.slot = getelementptr i64, ptr %context, i64 6
  %group.now = getelementptr i64, ptr %context, i64 10
  %wave.now = getelementptr i64, ptr %context, i64 11
  %phase.now = getelementptr i64, ptr %context, i64 12
  %active = load i64, ptr %active.slot
  %is.active = icmp ne i64 %active, 0
  br i1 %is.active, label %phase, label %next

next:
  %stop = load atomic i64, ptr %failed monotonic, align 8
  %stopped = icmp ne i64 %stop, 0
  br i1 %stopped, label %empty, label %take
take:
  %taken = atomicrmw add ptr %counter, i64 1 monotonic
  %over = icmp uge i64 %taken, %total
  br i1 %over, label %empty, label %pick
pick:
  br i1 %all, label %start, label %look.up
look.up:
  %listed = getelementptr i64, ptr %chosen, i64 %taken
  %from.list = load i64, ptr %listed
  br label %start
start:
  %number = phi i64 [ %taken, %pick ], [ %from.list, %look.up ]
  store i64 %number, ptr %group.now
  store i64 0, ptr %phase.now
  store i64 1, ptr %active.slot
  %group.x = urem i64 %number, %grid.x
  %rest = udiv i64 %number, %grid.x
  %group.y = urem i64 %rest, %grid.y
  %group.z = udiv i64 %rest, %grid.y
  %id.x = udiv i64 %group.x, %cluster.x
  %id.y = udiv i64 %group.y, %cluster.y
  %id.z = udiv i64 %group.z, %cluster.z
  %within = call i64 @within(i64 %group.x, i64 %group.y, i64 %group.z, i64 %cluster.x, i64 %cluster.y, i64 %cluster.z)
  %clusters.x = udiv i64 %grid.x, %cluster.x
  %clusters.y = udiv i64 %grid.y, %cluster.y
  %plane = mul i64 %id.z, %clusters.y
  %row = add i64 %plane, %id.y
  %before = mul i64 %row, %clusters.x
  %cluster = add i64 %before, %id.x
  %cluster.bytes = shl i64 %cluster, 4
  %cluster.barrier = add i64 %barriers, %cluster.bytes
  %has.clusters = icmp ne i64 %barriers, 0
  %barrier = select i1 %has.clusters, i64 %cluster.barrier, i64 0
  store i64 %barrier, ptr %barrier.now
  br label %setup

setup:
  %w = phi i64 [ 0, %start ], [ %w.next, %setup.done ]
  %offset = mul i64 %w, %words
  %state = getelementptr i32, ptr %states, i64 %offset
  %from.offset = mul i64 %w, %copied
  %from = getelementptr i32, ptr %template, i64 %from.offset
  call void @llvm.memcpy.p0.p0.i64(ptr %state, ptr %from, i64 %copied.bytes, i1 false)
  call void @set_word(ptr %state, i64 %word.x, i64 %id.x)
  call void @set_word(ptr %state, i64 %word.cluster, i64 %within)
  %is.packed = icmp ne i64 %packed, 0
  br i1 %is.packed, label %setup.packed, label %setup.plain
setup.packed:
  %z.high = shl i64 %id.z, 16
  %both = or i64 %id.y, %z.high
  call void @set_word(ptr %state, i64 %word.y, i64 %both)
  br label %setup.done
setup.plain:
  call void @set_word(ptr %state, i64 %word.y, i64 %id.y)
  call void @set_word(ptr %state, i64 %word.z, i64 %id.z)
  br label %setup.done
setup.done:
  %flag = getelementptr i8, ptr %flags, i64 %w
  store i8 0, ptr %flag
  %used.start = getelementptr i64, ptr %used, i64 %w
  store i64 0, ptr %used.start
  %w.next = add i64 %w, 1
  %w.more = icmp ult i64 %w.next, %waves
  br i1 %w.more, label %setup, label %phase

phase:
  br label %run
run:
  %index = phi i64 [ 0, %phase ], [ %index.next, %run.next ]
  %waiting = phi i64 [ 0, %phase ], [ %waiting.next, %run.next ]
  %paused = phi i64 [ 0, %phase ], [ %paused.next, %run.next ]
  br i1 %ordered, label %run.ordered, label %run.next.wave
run.ordered:
  %order.slot = getelementptr i64, ptr %order, i64 %index
  %from.order = load i64, ptr %order.slot
  br label %run.next.wave
run.next.wave:
  %r = phi i64 [ %index, %run ], [ %from.order, %run.ordered ]
  %r.flag = getelementptr i8, ptr %flags, i64 %r
  %flag.now = load i8, ptr %r.flag
  switch i8 %flag.now, label %run.wave [ i8 1, label %run.next
                                         i8 2, label %still ]
run.wave:
  %r.offset = mul i64 %r, %words
  %r.state = getelementptr i32, ptr %states, i64 %r.offset
  %r.scratch = mul i64 %r, %scratch.bytes
  %r.base = add i64 %scratch, %r.scratch
  store i64 %r.base, ptr %scratch.slot
  %r.used = getelementptr i64, ptr %used, i64 %r
  %used.before = load i64, ptr %r.used
  %rest.allowed = sub i64 %limit, %used.before
  %short = icmp slt i64 %rest.allowed, %slice
  %given = select i1 %short, i64 %rest.allowed, i64 %slice
  store i64 %given, ptr %budget.slot
  store i64 %r, ptr %wave.now
  %status = call i32 %wave(ptr %r.state, ptr %context)
  %left = load i64, ptr %budget.slot
  %spent = sub i64 %given, %left
  %used.after = add i64 %used.before, %spent
  store i64 %used.after, ptr %r.used
  %quantum = load i64, ptr %quantum.slot
  %quantum.left = sub i64 %quantum, %spent
  store i64 %quantum.left, ptr %quantum.slot
  switch i32 %status, label %broken [ i32 0, label %ended
                                      i32 1, label %stopped.here
                                      i32 6, label %slice.over ]
ended:
  store i8 1, ptr %r.flag
  br label %run.next
stopped.here:
  store i8 2, ptr %r.flag
  br label %still
still:
  br label %run.next
slice.over:
  br i1 %short, label %used.all, label %run.next
used.all:
  br i1 %cuts, label %ended, label %broken
run.next:
  %one.waits = phi i64 [ 0, %run.next.wave ], [ 0, %ended ], [ 1, %still ], [ 0, %slice.over ]
  %one.paused = phi i64 [ 0, %run.next.wave ], [ 0, %ended ], [ 0, %still ], [ 1, %slice.over ]
  %waiting.next = add i64 %waiting, %one.waits
  %paused.next = add i64 %paused, %one.paused
  %index.next = add i64 %index, 1
  %r.more = icmp ult i64 %index.next, %waves
  br i1 %r.more, label %run, label %round.over
round.over:
  %any.paused = icmp ne i64 %paused.next, 0
  br i1 %any.paused, label %pause, label %phase.over
phase.over:
  %phases = load i64, ptr %phase.now
  %phases.next = add i64 %phases, 1
  store i64 %phases.next, ptr %phase.now
  %none.waits = icmp eq i64 %waiting.next, 0
  br i1 %none.waits, label %group.done, label %release
group.done:
  store i64 0, ptr %active.slot
  %quantum.done = load i64, ptr %quantum.slot
  %used.up = icmp slt i64 %quantum.done, 0
  br i1 %used.up, label %pause, label %next
release:
  %w2 = phi i64 [ 0, %phase.over ], [ %w2.next, %release ]
  %flag.slot = getelementptr i8, ptr %flags, i64 %w2
  %flag.old = load i8, ptr %flag.slot
  %flag.new = and i8 %flag.old, 1
  store i8 %flag.new, ptr %flag.slot
  %w2.next = add i64 %w2, 1
  %w2.more = icmp ult i64 %w2.next, %waves
  br i1 %w2.more, label %release, label %released
released:
  %quantum.now = load i64, ptr %quantum.slot
  %quantum.over = icmp slt i64 %quantum.now, 0
  br i1 %quantum.over, label %pause, label %phase

broken:
  %code = phi i32 [ %status, %run.wave ], [ 3, %used.all ]
  store atomic i64 1, ptr %failed monotonic, align 8
  %status.wide = zext i32 %code to i64
  %status.slot = getelementptr i64, ptr %job, i64 $STATUS
  store i64 %status.wide, ptr %status.slot
  %group.slot = getelementptr i64, ptr %job, i64 $GROUP
  %group.failed = load i64, ptr %group.now
  store i64 %group.failed, ptr %group.slot
  %wave.slot = getelementptr i64, ptr %job, i64 $WAVE
  store i64 %r, ptr %wave.slot
  ret i64 $RETURN_BROKEN
empty:
  ret i64 $RETURN_NONE_LEFT
pause:
  ret i64 $RETURN_ACTIVE
}
