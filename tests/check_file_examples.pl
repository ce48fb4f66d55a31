#!/usr/bin/perl
# examples/sections and examples/objects print as much of files that clang and llc have compiled as `cairn`
# finds in them.
#
# Runs in the build folder. Skipped without LLVM 19 or later, which writes all of these sections.
# SPDX-License-Identifier: MIT
use strict;
use warnings;
use FindBin;
use JSON::PP;
use Test::More;
use lib $FindBin::Bin;
use CommandTest;

skip_test 'reads the same bytes on every host' if ($ENV{CAIRN_TEST_RUNNER} // '') ne '';
skip_test 'the examples or cairn are not built' if !-x 'examples/sections' || !-x 'examples/objects' || !defined $cairn;
my $clang_version = llvm_version('clang', 19);
my $llc_version = llvm_version('llc', 19);
skip_test 'no clang 19 or later' if !defined $clang_version || !defined $llc_version;
my ($clang, $llc) = ("$llvm{$clang_version}/clang", "$llvm{$llc_version}/llc");

spit('input', '');
sub output_of {
    my @words = @_;
    my ($status, $out, $err) = run_with("$folder/input", @words);
    is $status, 0, "$words[0] runs" or diag $err;
    return $out;
}

sub json_of { return decode_json(output_of($cairn, @_)) }

# How many lines of the text match.
sub count_of { my @found = $_[0] =~ /$_[1]/g; return scalar @found }

# ---- What clang writes ----

spit('clang.c', <<'END');
_Atomic long counter;
long outside(long);
__attribute__((noinline)) long f(long n)
{
    long s = n;
    for (long i = 0; i < n; i++)
        s = i % 3 == 0 ? s + outside(i) : (s ^ n) + counter++;
    return s;
}
int main(void) { return (int)f(3); }
END
my @options = qw(-O1 --target=x86_64-linux-gnu -ffreestanding -fPIC -fbasic-block-address-map -fstack-size-section
    -fsanitize-coverage=trace-pc-guard -fsanitize-coverage=pc-table -fexperimental-sanitize-metadata=all -c);
output_of($clang, @options, "$folder/clang.c", '-o', "$folder/clang.o");

my $printed = output_of('examples/sections', "$folder/clang.o");
my $maps = json_of('bbmap', '--json', "$folder/clang.o");
is count_of($printed, qr/^  function at /m), scalar @$maps, 'all functions with basic-block address maps';
my @blocks = map { @{$_->{blocks}} } map { @{$_->{ranges}} } @$maps;
is count_of($printed, qr/^    block \d+: \d+ bytes/m), scalar @blocks, '… and their blocks';
is count_of($printed, qr/^    block \d+: frequency/m), scalar @blocks, '… which the table has, too';
is count_of($printed, qr/^    entered at block 0$/m), scalar @$maps, '… and finds by the address';
is count_of($printed, qr/, a call ends at/m), scalar(map { @{$_->{callsite_end_offsets} // []} } @blocks), '… and their calls';
is count_of($printed, qr/^coverage point \d+, a function's entry$/m), 2, 'the coverage points of two functions';
cmp_ok count_of($printed, qr/^frame of \d+ bytes$/m), '>=', 2, 'sizes of frames';

my $objects = output_of('examples/objects', "$folder/clang.o");
like $objects, qr/^  section \d+: \.text\.?\w*, \d+ bytes$/m, 'the section table';
like $objects, qr/^  main: \d+ bytes at 0x/m, 'a function';
like $objects, qr/^  main\+\d+ refers to f$/m, 'a reference';

my $linker_version = llvm_version('ld.lld');
SKIP: {
    skip 'no ld.lld', 3 if !defined $linker_version;
    output_of("$llvm{$linker_version}/ld.lld", '-shared', "$folder/clang.o", '-o', "$folder/clang.so");
    my $linked = output_of('examples/sections', "$folder/clang.so");
    my $covered = json_of('sanmd', '--json', "$folder/clang.so");
    is count_of($linked, qr/^covered function at /m), scalar(grep { defined $_->{address} } @$covered), 'sanitizer metadata';
}

# ---- What llc writes ----

spit('llc.ll', <<'END');
declare void @llvm.experimental.stackmap(i64, i32, ...)
declare void @f()
define i64 @stack_map(i64 %x) {
  call void (i64, i32, ...) @llvm.experimental.stackmap(i64 7, i32 8, i64 %x, i64 100000000000)
  call void (i64, i32, ...) @llvm.experimental.stackmap(i64 8, i32 8, i64 %x)
  ret i64 %x
}
define i64 @fault(ptr %p) {
  %null = icmp eq ptr %p, null
  br i1 %null, label %is_null, label %there, !make.implicit !0
there:
  %v = load i64, ptr %p
  ret i64 %v
is_null:
  ret i64 -1
}
define i64 @line(ptr %p) {
  %v = load volatile i64, ptr %p, !pcsections !1
  ret i64 %v
}
declare token @llvm.experimental.gc.statepoint.p0(i64, i32, ptr, i32, i32, ...)
define ptr addrspace(1) @statepoint(ptr addrspace(1) %p) gc "statepoint-example" {
  %token = call token (i64, i32, ptr, i32, i32, ...) @llvm.experimental.gc.statepoint.p0(i64 9, i32 0,
      ptr elementtype(void ()) @f, i32 0, i32 0, i32 0, i32 0) ["gc-live"(ptr addrspace(1) %p)]
  %moved = call ptr addrspace(1) @llvm.experimental.gc.relocate.p1(token %token, i32 0, i32 0)
  ret ptr addrspace(1) %moved
}
declare ptr addrspace(1) @llvm.experimental.gc.relocate.p1(token, i32, i32)
!0 = !{}
!1 = !{!"lines", !2}
!2 = !{i32 4711}
END
output_of($llc, qw(-mtriple=x86_64-linux-gnu -filetype=obj -relocation-model=pic -enable-implicit-null-checks),
    "$folder/llc.ll", '-o', "$folder/llc.o");
$printed = output_of('examples/sections', '--pc-section', 'lines', 'instruction 4 u32', "$folder/llc.o");
is count_of($printed, qr/^  record [789] at offset/m), 3, 'all records';
is count_of($printed, qr/^  constant 0: 100000000000$/m), 1, 'the constant';
is count_of($printed, qr/^  statepoint 9: 1 pointers$/m), 1, 'the statepoint';
like $printed, qr/^  last but 0: record 9\n  last but 1: record 8\n  last but 2: record 7\n(?!  last)/m, 'records from the last one on';
is count_of($printed, qr/^  0x[0-9a-f]+: record [789], frame of \d+ bytes/m), 3, 'records by address';
is count_of($printed, qr/^  load at \+\d+ continues at \+\d+$/m), 1, 'the fault';
is count_of($printed, qr/^  0x[0-9a-f]+ continues at 0x/m), 1, '… by its address';
is count_of($printed, qr/^  0x[0-9a-f]+: 4711$/m), 1, 'the entry of the PC section';
is count_of($printed, qr/^  0x[0-9a-f]+: 1 entries$/m), 1, '… by its address';

$objects = output_of('examples/objects', "$folder/llc.o");
is count_of($objects, qr/^  stack map of (?:stack_map|statepoint), in section [1-9]/m), 2, 'the functions that a stack map names';

# ---- Archives ----

my $ar_version = llvm_version('llvm-ar');
SKIP: {
    skip 'no llvm-ar', 6 if !defined $ar_version;
    output_of("$llvm{$ar_version}/llvm-ar", 'rcs', "$folder/both.a", "$folder/clang.o", "$folder/llc.o");
    my $members = output_of('examples/objects', "$folder/both.a");
    is count_of($members, qr/^(?:clang|llc)\.o: \d+ bytes$/m), 2, 'the members of an archive';
    my ($status, $out) = run_with("$folder/both.a", 'examples/objects', '-');
    is $status, 0, 'an archive from standard input';
    is $out, $members =~ s/^.*both\.a:\n//r, '… has the same members';
}
done_testing();
