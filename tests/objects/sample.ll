; What a JIT's IR has in addition to C: stack maps, patch points, PC sections, relative references.
; SPDX-License-Identifier: MIT
@number = global i32 5
@hidden = hidden global i32 6
@internal = internal global i32 7
@external = external global i32
@local_external = external dso_local global i32
@weak = extern_weak global i32
@got = private unnamed_addr constant ptr @external
@relative = constant i32 trunc (i64 sub (i64 ptrtoint (ptr @callee to i64), i64 ptrtoint (ptr @relative to i64)) to i32)
@relative_internal = internal constant i32 trunc (i64 sub (i64 ptrtoint (ptr @internal to i64), i64 ptrtoint (ptr @relative_internal to i64)) to i32)
@relative_got = constant i32 trunc (i64 sub (i64 ptrtoint (ptr @got to i64), i64 ptrtoint (ptr @relative_got to i64)) to i32)
@relative_plt = constant i32 trunc (i64 sub (i64 ptrtoint (ptr dso_local_equivalent @callee to i64), i64 ptrtoint (ptr @relative_plt to i64)) to i32)
@relative_wide = constant i64 sub (i64 ptrtoint (ptr @callee to i64), i64 ptrtoint (ptr @relative_wide to i64))
@narrow = constant i32 ptrtoint (ptr @internal to i32)
@block = constant ptr blockaddress(@branches, %two)
@offset = constant ptr getelementptr (i8, ptr @external, i64 123456)
@llvm.global_ctors = appending global [1 x { i32, ptr, ptr }] [{ i32, ptr, ptr } { i32 65535, ptr @construct, ptr null }]
$comdat = comdat any
@in_comdat = linkonce_odr global i32 9, comdat($comdat)
define linkonce_odr i32 @comdat(i32 %x) comdat { %r = call i32 @callee(i32 %x)  ret i32 %r }
declare i32 @callee(i32)
declare dso_local i32 @near_callee(i32)
declare void @llvm.experimental.stackmap(i64, i32, ...)
declare i64 @llvm.experimental.patchpoint.i64(i64, i32, ptr, i32, ...)
declare token @llvm.experimental.gc.statepoint.p0(i64, i32, ptr, i32, i32, ...)
define internal void @construct() { store i32 1, ptr @internal  ret void }
define i32 @loads(i32 %x) uwtable {
  %a = load i32, ptr @number
  %b = load i32, ptr @hidden
  %c = load i32, ptr @internal
  %d = load i32, ptr @external
  %e = load i32, ptr @local_external
  %f = load i32, ptr @in_comdat
  %p = icmp eq ptr @weak, null
  %g = zext i1 %p to i32
  %s1 = add i32 %a, %b
  %s2 = add i32 %s1, %c
  %s3 = add i32 %s2, %d
  %s4 = add i32 %s3, %e
  %s5 = add i32 %s4, %f
  %s6 = add i32 %s5, %g
  %r = call i32 @callee(i32 %s6), !pcsections !0
  %r1 = call i32 @near_callee(i32 %r)
  %r2 = call i32 @comdat(i32 %r1)
  ret i32 %r2
}
define void @stores(i8 %b, i16 %h, i64 %d, <2 x i64> %q) {
  store i8 %b, ptr @internal
  store i16 %h, ptr @number
  store i64 %d, ptr @w64
  store <2 x i64> %q, ptr @w128
  ret void
}
@w64 = internal global i64 0
@w128 = internal global <2 x i64> zeroinitializer
define i64 @maps(i64 %x) uwtable !pcsections !0 {
  call void (i64, i32, ...) @llvm.experimental.stackmap(i64 1, i32 16, i64 %x)
  %r = call i64 (i64, i32, ptr, i32, ...) @llvm.experimental.patchpoint.i64(i64 2, i32 40, ptr inttoptr (i64 81985529216486895 to ptr), i32 1, i64 %x)
  ret i64 %r
}
define <4 x i32> @vectors(<4 x i32> %v, float %f) {
  %a = add <4 x i32> %v, <i32 1, i32 -7, i32 99, i32 1234567>
  %b = shufflevector <4 x i32> %a, <4 x i32> poison, <4 x i32> <i32 3, i32 1, i32 2, i32 0>
  ret <4 x i32> %b
}
define double @floats(double %x) { %r = fmul double %x, 0x3FF3C0CA428C59FB  %t = call double @llvm.sin.f64(double %r)  ret double %t }
declare double @llvm.sin.f64(double)
define i32 @branches(i32 %x, ptr %p) {
  indirectbr ptr %p, [label %one, label %two]
one:
  ret i32 1
two:
  switch i32 %x, label %rest [ i32 0, label %a i32 1, label %b i32 2, label %c i32 3, label %d i32 4, label %e ]
a:
  %ra = call i32 @callee(i32 1)
  ret i32 %ra
b:
  ret i32 44
c:
  %rc = call i32 @callee(i32 2)
  ret i32 %rc
d:
  %rd = tail call i32 @callee(i32 3)
  ret i32 %rd
e:
  ret i32 99
rest:
  unreachable
}
define ptr @addresses(i32 %x) {
  %c = icmp eq i32 %x, 0
  %r = select i1 %c, ptr @callee, ptr getelementptr (i8, ptr @internal, i64 70000)
  ret ptr %r
}
define i64 @indirect(ptr %f, i64 %x) { %r = tail call i64 %f(i64 %x)  ret i64 %r }
!0 = !{!"seci", !1, !"secw"}
!1 = !{i32 7}
