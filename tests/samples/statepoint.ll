; SPDX-License-Identifier: MIT
; A statepoint with five deopt values, two GC pairs and two allocas (LLVM 15 and later).
declare void @callee()
declare void @use(ptr addrspace(1))
declare token @llvm.experimental.gc.statepoint.p0(i64, i32, ptr, i32, i32, ...)
declare ptr addrspace(1) @llvm.experimental.gc.relocate.p1(token, i32, i32)

define ptr addrspace(1) @f(ptr addrspace(1) %base, i64 %n, i32 %x, double %d) gc "statepoint-example" {
  %slot = alloca i64
  %slots = alloca [4 x i64]
  store i64 %n, ptr %slot
  %derived = getelementptr i8, ptr addrspace(1) %base, i64 %n
  %token = call token (i64, i32, ptr, i32, i32, ...) @llvm.experimental.gc.statepoint.p0(i64 7, i32 0, ptr elementtype(void ()) @callee, i32 0, i32 0, i32 0, i32 0) [ "deopt"(i32 %x, i64 81985529216486895, double %d, i32 -3, ptr %slot), "gc-live"(ptr addrspace(1) %base, ptr addrspace(1) %derived, ptr %slot, ptr %slots) ]
  %new_base = call ptr addrspace(1) @llvm.experimental.gc.relocate.p1(token %token, i32 0, i32 0)
  %new_derived = call ptr addrspace(1) @llvm.experimental.gc.relocate.p1(token %token, i32 0, i32 1)
  call void @use(ptr addrspace(1) %new_base)
  ret ptr addrspace(1) %new_derived
}

; Nothing but the call.
define void @g() gc "statepoint-example" {
  %token = call token (i64, i32, ptr, i32, i32, ...) @llvm.experimental.gc.statepoint.p0(i64 8, i32 0, ptr elementtype(void ()) @callee, i32 0, i32 2, i32 0, i32 0)
  ret void
}
