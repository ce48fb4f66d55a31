; Functions with sites, for check_elfv1.c, which copies the section that they are in. The targets are
; a function descriptor at an address that the linker is told, and none.

declare i64 @llvm.experimental.patchpoint.i64(i64, i32, ptr, i32, ...)
declare void @llvm.experimental.stackmap(i64, i32, ...)

; Read through the TOC, behind the call.
@caller_canary = external global i64

define i64 @calls(i64 %x) section "cairn_code" {
  %r = call i64 (i64, i32, ptr, i32, ...) @llvm.experimental.patchpoint.i64(i64 1, i32 48, ptr inttoptr (i64 536870912 to ptr), i32 1, i64 %x)
  %c = load volatile i64, ptr @caller_canary
  %s = add i64 %r, %c
  ret i64 %s
}

define i64 @calls_at_smallest_size(i64 %x) section "cairn_code" {
  %r = call i64 (i64, i32, ptr, i32, ...) @llvm.experimental.patchpoint.i64(i64 2, i32 40, ptr inttoptr (i64 536870912 to ptr), i32 1, i64 %x)
  %c = load volatile i64, ptr @caller_canary
  %s = add i64 %r, %c
  ret i64 %s
}

define i64 @calls_nothing(i64 %x) section "cairn_code" {
  %r = call i64 (i64, i32, ptr, i32, ...) @llvm.experimental.patchpoint.i64(i64 3, i32 16, ptr null, i32 1, i64 %x)
  %c = load volatile i64, ptr @caller_canary
  %s = add i64 %r, %c
  ret i64 %s
}

; Adds what it finds through the TOC that it was called with.
define i64 @adds_canary(i64 %x) noinline section "cairn_code" {
  %c = load volatile i64, ptr @caller_canary
  %s = add i64 %x, %c
  ret i64 %s
}

define i64 @has_shadow(i64 %x) section "cairn_code" {
  call void (i64, i32, ...) @llvm.experimental.stackmap(i64 4, i32 4)
  %s = add i64 %x, 5
  %t = notail call i64 @adds_canary(i64 %s)
  ret i64 %t
}
