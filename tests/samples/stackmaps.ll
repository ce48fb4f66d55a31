; Stack maps only: every kind of location, a frame of dynamic size, several functions, a function
; without records. Pointers are written so that LLVM 14 takes them as well when "ptr" is replaced
; by its byte pointer.

declare void @llvm.experimental.stackmap(i64, i32, ...)
declare i64 @outside(i64)

; Register, Direct, Constant, ConstantIndex.
define i64 @kinds(i64 %a, i64 %b) {
  %slot = alloca i8, i64 16
  %sum = add i64 %a, %b
  call void (i64, i32, ...) @llvm.experimental.stackmap(i64 1, i32 0, i64 %a, i64 %sum, ptr %slot, i64 5, i64 -7, i64 2147483647, i64 -2147483648, i64 1311768467463790320, i64 -4294967296)
  ret i64 %sum
}

; More values than registers live across a call: Indirect.
define i64 @spills(i64 %x) {
  %v1 = add i64 %x, 3
  %v2 = add i64 %v1, %x
  %v3 = xor i64 %v2, %v1
  %v4 = add i64 %v3, %v2
  %v5 = xor i64 %v4, %v3
  %v6 = add i64 %v5, %v4
  %v7 = xor i64 %v6, %v5
  %v8 = add i64 %v7, %v6
  %v9 = xor i64 %v8, %v7
  %v10 = add i64 %v9, %v8
  %v11 = xor i64 %v10, %v9
  %v12 = add i64 %v11, %v10
  %v13 = xor i64 %v12, %v11
  %v14 = add i64 %v13, %v12
  %v15 = xor i64 %v14, %v13
  %v16 = add i64 %v15, %v14
  %r = call i64 @outside(i64 %v16)
  call void (i64, i32, ...) @llvm.experimental.stackmap(i64 18446744073709551615, i32 4, i64 %v1, i64 %v2, i64 %v3, i64 %v4, i64 %v5, i64 %v6, i64 %v7, i64 %v8, i64 %v9)
  call void (i64, i32, ...) @llvm.experimental.stackmap(i64 9007199254740992, i32 0, i64 %v10, i64 %v11, i64 %v12, i64 %v13, i64 %v14, i64 %v15, i64 %v16)
  call void (i64, i32, ...) @llvm.experimental.stackmap(i64 9007199254740991, i32 0)
  ret i64 %r
}

; LLVM gives no size for a frame that grows.
define void @grows(i64 %count) {
  %buffer = alloca i8, i64 %count
  store volatile i8 1, ptr %buffer
  call void (i64, i32, ...) @llvm.experimental.stackmap(i64 4, i32 0, ptr %buffer, i64 %count)
  ret void
}

define i64 @nothing(i64 %x) {
  ret i64 %x
}

; Local: its address is relocated by its section.
define internal void @hidden(i64 %x) noinline {
  call void (i64, i32, ...) @llvm.experimental.stackmap(i64 5, i32 8, i64 %x, i64 1311768467463790320)
  ret void
}

define void @calls_hidden() {
  call void @hidden(i64 3)
  ret void
}
