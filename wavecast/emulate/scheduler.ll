; The loop over workgroups: takes numbers from a shared counter and runs the waves of each workgroup
; in turns between barriers. Job words (64 bit), written by engine.py:
;   0 counter*   1 workgroups   2 grid x     3 grid y      4 waves       5 words per wave
;   6 template*  7 words copied 8 states*    9 context*   10 flags*     11 word of id x
;  12 word of y 13 word of z   14 packed y,z 15 status     16 workgroup  17 wave
;  18 scratch*  19 scratch bytes per wave   20 budget    21 failed*
;  22 numbers of the workgroups to run* (0: all)

declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)

define i64 @field(ptr %job, i64 %index) alwaysinline {
  %at = getelementptr i64, ptr %job, i64 %index
  %value = load i64, ptr %at
  ret i64 %value
}

define void @place(ptr %state, i64 %word, i64 %value) alwaysinline {
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

define void @work(ptr %wave, ptr %job) {
entry:
  %counter.n = call i64 @field(ptr %job, i64 0)
  %counter = inttoptr i64 %counter.n to ptr
  %total = call i64 @field(ptr %job, i64 1)
  %grid.x = call i64 @field(ptr %job, i64 2)
  %grid.y = call i64 @field(ptr %job, i64 3)
  %waves = call i64 @field(ptr %job, i64 4)
  %words = call i64 @field(ptr %job, i64 5)
  %template.n = call i64 @field(ptr %job, i64 6)
  %template = inttoptr i64 %template.n to ptr
  %copied = call i64 @field(ptr %job, i64 7)
  %copied.bytes = shl i64 %copied, 2
  %states.n = call i64 @field(ptr %job, i64 8)
  %states = inttoptr i64 %states.n to ptr
  %context.n = call i64 @field(ptr %job, i64 9)
  %context = inttoptr i64 %context.n to ptr
  %flags.n = call i64 @field(ptr %job, i64 10)
  %flags = inttoptr i64 %flags.n to ptr
  %word.x = call i64 @field(ptr %job, i64 11)
  %word.y = call i64 @field(ptr %job, i64 12)
  %word.z = call i64 @field(ptr %job, i64 13)
  %packed = call i64 @field(ptr %job, i64 14)
  %scratch = call i64 @field(ptr %job, i64 18)
  %scratch.bytes = call i64 @field(ptr %job, i64 19)
  %budget = call i64 @field(ptr %job, i64 20)
  %failed.n = call i64 @field(ptr %job, i64 21)
  %failed = inttoptr i64 %failed.n to ptr
  %chosen.n = call i64 @field(ptr %job, i64 22)
  %chosen = inttoptr i64 %chosen.n to ptr
  %all = icmp eq i64 %chosen.n, 0
  %scratch.slot = getelementptr i64, ptr %context, i64 4
  %budget.slot = getelementptr i64, ptr %context, i64 6
  %group.now = getelementptr i64, ptr %context, i64 10
  %wave.now = getelementptr i64, ptr %context, i64 11
  %turn.now = getelementptr i64, ptr %context, i64 12
  br label %next

next:
  %stop = load atomic i64, ptr %failed monotonic, align 8
  %stopped = icmp ne i64 %stop, 0
  br i1 %stopped, label %leave, label %take
take:
  %taken = atomicrmw add ptr %counter, i64 1 monotonic
  %over = icmp uge i64 %taken, %total
  br i1 %over, label %leave, label %pick
pick:
  br i1 %all, label %start, label %look.up
look.up:
  %listed = getelementptr i64, ptr %chosen, i64 %taken
  %from.list = load i64, ptr %listed
  br label %start
start:
  %number = phi i64 [ %taken, %pick ], [ %from.list, %look.up ]
  store i64 %number, ptr %group.now
  store i64 0, ptr %turn.now
  %id.x = urem i64 %number, %grid.x
  %rest = udiv i64 %number, %grid.x
  %id.y = urem i64 %rest, %grid.y
  %id.z = udiv i64 %rest, %grid.y
  br label %setup

setup:
  %w = phi i64 [ 0, %start ], [ %w.next, %setup.done ]
  %offset = mul i64 %w, %words
  %state = getelementptr i32, ptr %states, i64 %offset
  %from.offset = mul i64 %w, %copied
  %from = getelementptr i32, ptr %template, i64 %from.offset
  call void @llvm.memcpy.p0.p0.i64(ptr %state, ptr %from, i64 %copied.bytes, i1 false)
  call void @place(ptr %state, i64 %word.x, i64 %id.x)
  %is.packed = icmp ne i64 %packed, 0
  br i1 %is.packed, label %setup.packed, label %setup.plain
setup.packed:
  %z.high = shl i64 %id.z, 16
  %both = or i64 %id.y, %z.high
  call void @place(ptr %state, i64 %word.y, i64 %both)
  br label %setup.done
setup.plain:
  call void @place(ptr %state, i64 %word.y, i64 %id.y)
  call void @place(ptr %state, i64 %word.z, i64 %id.z)
  br label %setup.done
setup.done:
  %flag = getelementptr i8, ptr %flags, i64 %w
  store i8 0, ptr %flag
  %w.next = add i64 %w, 1
  %w.more = icmp ult i64 %w.next, %waves
  br i1 %w.more, label %setup, label %turn

turn:
  br label %run
run:
  %r = phi i64 [ 0, %turn ], [ %r.next, %run.next ]
  %alive = phi i64 [ 0, %turn ], [ %alive.next, %run.next ]
  %r.flag = getelementptr i8, ptr %flags, i64 %r
  %done = load i8, ptr %r.flag
  %is.done = icmp ne i8 %done, 0
  br i1 %is.done, label %run.next, label %run.wave
run.wave:
  %r.offset = mul i64 %r, %words
  %r.state = getelementptr i32, ptr %states, i64 %r.offset
  %r.scratch = mul i64 %r, %scratch.bytes
  %r.base = add i64 %scratch, %r.scratch
  store i64 %r.base, ptr %scratch.slot
  store i64 %budget, ptr %budget.slot
  store i64 %r, ptr %wave.now
  %status = call i32 %wave(ptr %r.state, ptr %context)
  switch i32 %status, label %broken [ i32 0, label %ended
                                      i32 1, label %waiting ]
ended:
  store i8 1, ptr %r.flag
  br label %run.next
waiting:
  br label %run.next
run.next:
  %more.alive = phi i64 [ 0, %run ], [ 0, %ended ], [ 1, %waiting ]
  %alive.next = add i64 %alive, %more.alive
  %r.next = add i64 %r, 1
  %r.more = icmp ult i64 %r.next, %waves
  br i1 %r.more, label %run, label %turned
turned:
  %turns = load i64, ptr %turn.now
  %turns.next = add i64 %turns, 1
  store i64 %turns.next, ptr %turn.now
  %again = icmp ne i64 %alive.next, 0
  br i1 %again, label %turn, label %next

broken:
  store atomic i64 1, ptr %failed monotonic, align 8
  %status.wide = zext i32 %status to i64
  %status.slot = getelementptr i64, ptr %job, i64 15
  store i64 %status.wide, ptr %status.slot
  %group.slot = getelementptr i64, ptr %job, i64 16
  store i64 %number, ptr %group.slot
  %wave.slot = getelementptr i64, ptr %job, i64 17
  store i64 %r, ptr %wave.slot
  br label %leave
leave:
  ret void
}
