; Functions to call by `cairn run` that have other types than integers of up to 64 bits, float,
; double and pointers; most of them return what they are given.

%record = type { i8, { ptr, [2 x double] }, <2 x i16> }

define half @half(half %x) {
  ret half %x
}

define x86_fp80 @extended(x86_fp80 %x) {
  ret x86_fp80 %x
}

; One third, and others.
define x86_fp80 @third(x86_fp80 %x) {
  %r = fdiv x86_fp80 %x, 0xK4000C000000000000000
  ret x86_fp80 %r
}

define fp128 @quadruple(fp128 %x) {
  ret fp128 %x
}

define i128 @wide(i128 %x) {
  ret i128 %x
}

define i65 @beyond_a_register(i65 %x) {
  ret i65 %x
}

define zeroext i7 @small_unsigned(i7 zeroext %x) {
  ret i7 %x
}

define <4 x float> @doubled(<4 x float> %x) {
  %r = fadd <4 x float> %x, %x
  ret <4 x float> %r
}

define <3 x i1> @flags(<3 x i1> %x) {
  ret <3 x i1> %x
}

define %record @change(%record %x, i8 %y) {
  %r = insertvalue %record %x, i8 %y, 0
  ret %record %r
}

define { i64, i64 } @pair(i64 %x, i64 %y) {
  %a = insertvalue { i64, i64 } undef, i64 %x, 0
  %b = insertvalue { i64, i64 } %a, i64 %y, 1
  ret { i64, i64 } %b
}

define [5 x i64] @in_memory(i64 %x) {
  %r = insertvalue [5 x i64] zeroinitializer, i64 %x, 4
  ret [5 x i64] %r
}

define {} @empty({} %x) {
  ret {} %x
}

define fastcc i64 @fast(i64 %x) {
  ret i64 %x
}

define coldcc i64 @cold(i64 %x) {
  ret i64 %x
}

define i32 @variable(i32 %x, ...) {
  ret i32 %x
}

define void @nothing() {
  ret void
}

; What cannot be passed.

define i256 @too_wide(i256 %x) {
  ret i256 %x
}

define i32 @too_long([300 x i8] %x) {
  ret i32 1
}

define i32 @by_value(ptr inreg %x) {
  ret i32 1
}

define ghccc void @other_convention() {
  ret void
}
