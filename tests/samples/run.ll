; Functions to call by `cairn run`: one for each type, and mixes.

declare i64 @strlen(ptr)
declare i32 @puts(ptr)
declare void @llvm.experimental.stackmap(i64, i32, ...)
declare i64 @llvm.experimental.patchpoint.i64(i64, i32, ptr, i32, ...)

@counter = global i64 41

define i1 @negate(i1 %x) {
  %r = xor i1 %x, true
  ret i1 %r
}

define i8 @byte(i8 %x) {
  ret i8 %x
}

define zeroext i8 @unsigned_byte(i8 zeroext %x) {
  ret i8 %x
}

define i16 @half_word(i16 %x) {
  %r = add i16 %x, 1
  ret i16 %r
}

define i32 @word(i32 %x) {
  %r = mul i32 %x, 3
  ret i32 %r
}

define i33 @odd_width(i33 %x) {
  %r = add i33 %x, 1
  ret i33 %r
}

define i64 @long_word(i64 %x) {
  ret i64 %x
}

define float @single(float %x) {
  %r = fadd float %x, 2.500000e-01
  ret float %r
}

define double @twice(double %x) {
  %r = fmul double %x, 2.000000e+00
  ret double %r
}

define ptr @pointer(ptr %x) {
  ret ptr %x
}

define i64 @length(ptr %text) {
  %r = call i64 @strlen(ptr %text)
  ret i64 %r
}

define void @say(ptr %text) {
  %r = call i32 @puts(ptr %text)
  ret void
}

; More of each kind than registers take.
define double @mix(i8 %a, double %b, i32 %c, float %d, i64 %e, i16 %f, i64 %g, i64 %h, i64 %i, double %j, double %k, double %l, double %m, double %n, double %o, double %p, double %q, float %r) {
  %a1 = sitofp i8 %a to double
  %c1 = sitofp i32 %c to double
  %d1 = fpext float %d to double
  %e1 = sitofp i64 %e to double
  %f1 = sitofp i16 %f to double
  %g1 = sitofp i64 %g to double
  %h1 = sitofp i64 %h to double
  %i1 = sitofp i64 %i to double
  %r1 = fpext float %r to double
  %a2 = fmul double %a1, 1.000000e+00
  %c2 = fmul double %c1, 1.000000e+01
  %s1 = fadd double %a2, %b
  %s2 = fadd double %s1, %c2
  %s3 = fadd double %s2, %d1
  %s4 = fadd double %s3, %e1
  %s5 = fadd double %s4, %f1
  %s6 = fadd double %s5, %g1
  %s7 = fadd double %s6, %h1
  %s8 = fadd double %s7, %i1
  %s9 = fadd double %s8, %j
  %s10 = fadd double %s9, %k
  %s11 = fadd double %s10, %l
  %s12 = fadd double %s11, %m
  %s13 = fadd double %s12, %n
  %s14 = fadd double %s13, %o
  %s15 = fadd double %s14, %p
  %s16 = fadd double %s15, %q
  %s17 = fadd double %s16, %r1
  ret double %s17
}

; One managed patch point, one stack map with a shadow, one without.
define i64 @sites(i64 %x) {
  %y = add i64 %x, 5
  %r = call i64 (i64, i32, ptr, i32, ...) @llvm.experimental.patchpoint.i64(i64 100, i32 24, ptr null, i32 1, i64 %x, i64 %y, double 1.000000e+00, i1 true)
  call void (i64, i32, ...) @llvm.experimental.stackmap(i64 101, i32 0, i64 %y)
  ret i64 %y
}

; Too small for a patch word.
define i64 @small(i64 %x) {
  %r = call i64 (i64, i32, ptr, i32, ...) @llvm.experimental.patchpoint.i64(i64 102, i32 3, ptr null, i32 0)
  ret i64 %x
}

define internal i64 @internal_one() {
  ret i64 1
}

define i64 @uses_internal_one() {
  %r = call i64 @internal_one()
  ret i64 %r
}
