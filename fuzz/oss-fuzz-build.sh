#!/bin/bash -eu
# Builds the fuzz targets as OSS-Fuzz does: with $CC, $CFLAGS and $LIB_FUZZING_ENGINE from the
# environment, into $OUT, each with its part of the corpus. Run it in an empty build folder.
# SPDX-License-Identifier: MIT
source=$(cd "$(dirname "$0")/.." && pwd)
test -x "$source/configure" || (cd "$source" && ./bootstrap)
"$source/configure" --quiet --without-llvm --disable-shared
make --quiet -j"$(nproc)" fuzz-targets LIB_FUZZING_ENGINE="$LIB_FUZZING_ENGINE"
for path in fuzz/fuzz_*; do
    test -x "$path" || continue
    target=${path#fuzz/fuzz_}
    cp "$path" "$OUT/fuzz_$target"
    (cd "$source/fuzz/corpus/$target" && zip --quiet --junk-paths - ./*) >"$OUT/fuzz_${target}_seed_corpus.zip"
done
