; Patch points with and without a target, with the C and the anyreg convention. Nothing is called
; after them, so that LLVM's record of what lives across them can stay on.

declare void @llvm.experimental.patchpoint.void(i64, i32, ptr, i32, ...)
declare i64 @llvm.experimental.patchpoint.i64(i64, i32, ptr, i32, ...)

define i64 @calling(i64 %a, i64 %b, i64 %c) {
  %sum = add i64 %a, %b
  %result = call i64 (i64, i32, ptr, i32, ...) @llvm.experimental.patchpoint.i64(i64 10, i32 48, ptr inttoptr (i64 4096 to ptr), i32 2, i64 %a, i64 %b, i64 %sum, i64 %c, i64 77)
  %all = add i64 %result, %sum
  ret i64 %all
}

define i64 @without_target(i64 %a) {
  call void (i64, i32, ptr, i32, ...) @llvm.experimental.patchpoint.void(i64 11, i32 40, ptr null, i32 0, i64 %a)
  ret i64 %a
}

define i64 @any_register(i64 %a, i64 %b) {
  %result = call anyregcc i64 (i64, i32, ptr, i32, ...) @llvm.experimental.patchpoint.i64(i64 12, i32 40, ptr null, i32 2, i64 %a, i64 %b, i64 %b)
  ret i64 %result
}

; Twice the same ID, as after inlining.
define void @twice(i64 %a) {
  call void (i64, i32, ptr, i32, ...) @llvm.experimental.patchpoint.void(i64 13, i32 40, ptr null, i32 0, i64 %a)
  call void (i64, i32, ptr, i32, ...) @llvm.experimental.patchpoint.void(i64 13, i32 40, ptr null, i32 0, i64 %a)
  ret void
}
