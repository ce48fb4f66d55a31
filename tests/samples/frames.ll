; Functions whose frames differ: tests/check_call_frame_rows.pl compiles them for all architectures and
; compares their rows. SPDX-License-Identifier: MIT

declare void @use(ptr)
declare void @done()
declare i64 @value(i64)
declare double @number(double)
declare <4 x i32> @vector(<4 x i32>)
declare ptr @llvm.stacksave()
declare void @llvm.stackrestore(ptr)
declare i32 @__gxx_personality_v0(...)

define void @leaf() #0 {
  ret void
}

define void @calls() #0 {
  call void @done()
  ret void
}

define i64 @tail(i64 %a) #0 {
  %b = tail call i64 @value(i64 %a)
  ret i64 %b
}

define i64 @tail_with_frame(i64 %a) #0 {
  %b = call i64 @value(i64 %a)
  %c = add i64 %a, %b
  %d = tail call i64 @value(i64 %c)
  ret i64 %d
}

define void @small_frame() #0 {
  %a = alloca [40 x i8]
  call void @use(ptr %a)
  ret void
}

define void @page_frame() #0 {
  %a = alloca [5000 x i8]
  call void @use(ptr %a)
  ret void
}

define void @big_frame() #0 {
  %a = alloca [70000 x i8]
  call void @use(ptr %a)
  ret void
}

define void @huge_frame() #0 {
  %a = alloca [20000000 x i8]
  call void @use(ptr %a)
  ret void
}

define void @dynamic(i64 %n) #0 {
  %a = alloca i8, i64 %n
  call void @use(ptr %a)
  ret void
}

define void @dynamic_in_loop(i64 %n) #0 {
entry:
  br label %loop
loop:
  %i = phi i64 [ 0, %entry ], [ %j, %loop ]
  %s = call ptr @llvm.stacksave()
  %a = alloca i8, i64 %i
  call void @use(ptr %a)
  call void @llvm.stackrestore(ptr %s)
  %j = add i64 %i, 1
  %c = icmp ult i64 %j, %n
  br i1 %c, label %loop, label %end
end:
  ret void
}

define void @realigned() #0 {
  %a = alloca [64 x i8], align 128
  call void @use(ptr %a)
  ret void
}

define void @realigned_and_dynamic(i64 %n) #0 {
  %a = alloca [64 x i8], align 256
  %b = alloca i8, i64 %n
  call void @use(ptr %a)
  call void @use(ptr %b)
  ret void
}

define i64 @many_values(i64 %a, i64 %b, i64 %c, i64 %d, i64 %e, i64 %f) #0 {
  %v1 = call i64 @value(i64 %a)
  %v2 = call i64 @value(i64 %b)
  %v3 = call i64 @value(i64 %c)
  %v4 = call i64 @value(i64 %d)
  %v5 = call i64 @value(i64 %e)
  %v6 = call i64 @value(i64 %f)
  %v7 = call i64 @value(i64 %v1)
  %v8 = call i64 @value(i64 %v2)
  %v9 = call i64 @value(i64 %v3)
  %w0 = call i64 @value(i64 %v4)
  %w1 = call i64 @value(i64 %v5)
  %w2 = call i64 @value(i64 %v6)
  %s1 = add i64 %v1, %v2
  %s2 = xor i64 %s1, %v3
  %s3 = add i64 %s2, %v4
  %s4 = xor i64 %s3, %v5
  %s5 = add i64 %s4, %v6
  %s6 = xor i64 %s5, %v7
  %s7 = add i64 %s6, %v8
  %s8 = xor i64 %s7, %v9
  %s9 = add i64 %s8, %w0
  %t0 = xor i64 %s9, %w1
  %t1 = add i64 %t0, %w2
  %t2 = xor i64 %t1, %a
  %t3 = add i64 %t2, %b
  %t4 = xor i64 %t3, %c
  %t5 = add i64 %t4, %d
  %t6 = xor i64 %t5, %e
  %t7 = add i64 %t6, %f
  ret i64 %t7
}

define double @many_numbers(double %a, double %b, double %c) #0 {
  %v1 = call double @number(double %a)
  %v2 = call double @number(double %b)
  %v3 = call double @number(double %c)
  %v4 = call double @number(double %v1)
  %v5 = call double @number(double %v2)
  %v6 = call double @number(double %v3)
  %s1 = fadd double %v1, %v2
  %s2 = fmul double %s1, %v3
  %s3 = fadd double %s2, %v4
  %s4 = fmul double %s3, %v5
  %s5 = fadd double %s4, %v6
  %s6 = fmul double %s5, %a
  %s7 = fadd double %s6, %b
  %s8 = fmul double %s7, %c
  ret double %s8
}

define <4 x i32> @many_vectors(<4 x i32> %a, <4 x i32> %b) #0 {
  %v1 = call <4 x i32> @vector(<4 x i32> %a)
  %v2 = call <4 x i32> @vector(<4 x i32> %b)
  %v3 = call <4 x i32> @vector(<4 x i32> %v1)
  %s1 = add <4 x i32> %v1, %v2
  %s2 = xor <4 x i32> %s1, %v3
  %s3 = add <4 x i32> %s2, %a
  %s4 = xor <4 x i32> %s3, %b
  ret <4 x i32> %s4
}

define i64 @clobbers_everything(i64 %a) #0 {
  call void asm sideeffect "", "~{memory}"()
  %b = call i64 @value(i64 %a)
  ret i64 %b
}

; A frame on one way only: shrink-wrapping.
define i64 @shrink_wrapped(i64 %a, i64 %b) #0 {
entry:
  %early = icmp ult i64 %a, 100
  br i1 %early, label %fast, label %slow
slow:
  %c = call i64 @value(i64 %b)
  %d = call i64 @value(i64 %c)
  %e = add i64 %c, %d
  %f = add i64 %e, %a
  ret i64 %f
fast:
  ret i64 %b
}

define i64 @two_ways_out(i64 %a, i64 %b) #0 {
entry:
  %c = call i64 @value(i64 %a)
  %odd = icmp ult i64 %c, 7
  br i1 %odd, label %one, label %other
one:
  %d = call i64 @value(i64 %b)
  %e = add i64 %d, %c
  ret i64 %e
other:
  %f = call i64 @value(i64 %c)
  %g = xor i64 %f, %a
  ret i64 %g
}

; A condition that lives across calls: condition register fields on PPC64.
define i64 @lasting_condition(i64 %a, i64 %b) #0 {
entry:
  %x = icmp slt i64 %a, %b
  %y = icmp eq i64 %a, 12345
  %c = call i64 @value(i64 %a)
  br i1 %x, label %one, label %other
one:
  %d = call i64 @value(i64 %c)
  br label %other
other:
  %e = phi i64 [ %c, %entry ], [ %d, %one ]
  %f = call i64 @value(i64 %e)
  %g = select i1 %y, i64 %f, i64 %e
  ret i64 %g
}

define void @many_arguments(i64 %a) #0 {
  call void (i64, ...) @varied(i64 %a, i64 1, i64 2, i64 3, i64 4, i64 5, i64 6, i64 7, i64 8, i64 9, i64 10, i64 11)
  call void (i64, ...) @varied(i64 %a, i64 1, i64 2, i64 3, i64 4, i64 5, i64 6, i64 7, i64 8, i64 9, i64 10)
  ret void
}
declare void @varied(i64, ...)

define void @catches() #0 personality ptr @__gxx_personality_v0 {
  invoke void @done() to label %end unwind label %pad
pad:
  %l = landingpad { ptr, i32 } cleanup
  call void @done()
  resume { ptr, i32 } %l
end:
  ret void
}

define preserve_mostcc void @keeps_most() #0 {
  call void @done()
  ret void
}

define void @does_not_return() #1 {
  call void @done()
  unreachable
}

attributes #0 = { uwtable }
attributes #1 = { uwtable noreturn }
