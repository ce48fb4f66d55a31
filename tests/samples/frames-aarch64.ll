; Functions whose frames differ, of AArch64 alone: see frames.ll. SPDX-License-Identifier: MIT

declare void @use(ptr)
declare <4 x i32> @vector(<4 x i32>)

; The size of its frame is known when it runs: its CFA is an expression.
define void @scalable() #0 {
  %a = alloca <vscale x 2 x i64>
  call void @use(ptr %a)
  ret void
}

; Keeps v8 to v23 whole.
define aarch64_vector_pcs <4 x i32> @keeps_vectors(<4 x i32> %a) #0 {
  %b = call <4 x i32> @vector(<4 x i32> %a)
  ret <4 x i32> %b
}

attributes #0 = { uwtable "target-features"="+sve" }
