; SPDX-License-Identifier: MIT
; A statepoint with five deopt values, two GC pairs and two allocas (typed pointers, for LLVM 14).
declare void @callee()
declare void @use(i8 addrspace(1)*)
declare token @llvm.experimental.gc.statepoint.p0f_isVoidf(i64, i32, void ()*, i32, i32, ...)
declare i8 addrspace(1)* @llvm.experimental.gc.relocate.p1i8(token, i32, i32)

define i8 addrspace(1)* @f(i8 addrspace(1)* %base, i64 %n, i32 %x, double %d) gc "statepoint-example" {
  %slot = alloca i64
  %slots = alloca [4 x i64]
  store i64 %n, i64* %slot
  %derived = getelementptr i8, i8 addrspace(1)* %base, i64 %n
  %token = call token (i64, i32, void ()*, i32, i32, ...) @llvm.experimental.gc.statepoint.p0f_isVoidf(i64 7, i32 0, void ()* @callee, i32 0, i32 0, i32 0, i32 0) [ "deopt"(i32 %x, i64 81985529216486895, double %d, i32 -3, i64* %slot), "gc-live"(i8 addrspace(1)* %base, i8 addrspace(1)* %derived, i64* %slot, [4 x i64]* %slots) ]
  %new_base = call i8 addrspace(1)* @llvm.experimental.gc.relocate.p1i8(token %token, i32 0, i32 0)
  %new_derived = call i8 addrspace(1)* @llvm.experimental.gc.relocate.p1i8(token %token, i32 0, i32 1)
  call void @use(i8 addrspace(1)* %new_base)
  ret i8 addrspace(1)* %new_derived
}

; Nothing but the call.
define void @g() gc "statepoint-example" {
  %token = call token (i64, i32, void ()*, i32, i32, ...) @llvm.experimental.gc.statepoint.p0f_isVoidf(i64 8, i32 0, void ()* @callee, i32 0, i32 2, i32 0, i32 0)
  ret void
}
