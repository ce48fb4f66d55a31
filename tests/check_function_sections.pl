# Compares the stack sizes and coverage points that `cairn lookup` prints with llvm-readobj and with what programs
# get from SanitizerCoverage's callback: objects of all architectures, linked files, truncated and changed sections.
#
# Runs in the build folder, in the first build only, because all builds read the same files.
#
# SPDX-License-Identifier: MIT
use strict;
use warnings;
no warnings qw(portable); # numbers of 64 bits
use FindBin;
use JSON::PP;
use Test::More;
use lib $FindBin::Bin;
use CommandTest;

skip_test 'left to the first build'
    if ($ENV{CAIRN_TEST_RUNNER} // '') ne '' || defined $ENV{CAIRN_TEST_REPEATED};
skip_test 'there is no cairn' if !defined $cairn;

my @versions = grep { -x "$llvm{$_}/clang" && -x "$llvm{$_}/llvm-readobj" } sort { $a <=> $b } keys %llvm;
skip_test 'no LLVM has both clang and llvm-readobj' if !@versions;
my $newest = $versions[-1];

sub run { return run_with('/dev/null', @_) }

sub output_of {
    my ($status, $output, $complaints) = run(@_);
    is $status, 0, "$_[0] runs" or diag "@_\n$complaints";
    return $output;
}

sub lookup {
    my ($file, @words) = @_;
    return @{decode_json(output_of($cairn, 'lookup', '--json', $file, @words))};
}

my @options = qw(-w -O1 -ffreestanding -fstack-size-section);
my $source = spit('source.c', <<'END');
int g(int *p);
__attribute__((noinline)) int f(int n) { int a[20]; for (int i = 0; i < n; i++) a[i % 20] = i; return g(a); }
__attribute__((noinline)) static int h(int x) { return x ? f(x) : f(-x) + 1; }
__attribute__((noinline)) int g(int *p) { return p[3]; }
int dynamic(int n) { int a[n]; return g(a); }
int main(int c, char **v) { return h(c) == 4711; }
END

# ---- Stack sizes ----

# Returns llvm-readobj's list: stack sizes by the function's name.
sub sizes_of_readobj {
    my ($version, $file) = @_;
    my (%sizes, @names);
    for (split /\n/, output_of("$llvm{$version}/llvm-readobj", '--stack-sizes', $file)) {
        @names = split /, /, $1 if /Functions: \[(.*)\]/;
        @sizes{@names} = (hex $1) x @names if /Size: (0x\w+)/;
    }
    return \%sizes;
}

# All functions have a size, but for those whose frame has no constant size.
sub check_sizes {
    my ($version, $file) = @_;
    my $sizes = sizes_of_readobj($version, $file);
    my @names = grep { /^[a-z]+$/ } sort keys %$sizes;
    cmp_ok @names, '>=', 4, 'there are functions';
    my %found = map { $_->{symbol} => $_->{stack_size} } lookup($file, map { "$_+1" } @names, 'dynamic');
    is_deeply \%found, {(map { $_ => $sizes->{$_} } @names), dynamic => undef}, 'stack sizes';
}

for my $version (@versions) {
    for my $machine (qw(x86_64 aarch64 powerpc64le powerpc64 s390x riscv64)) {
        subtest "stack sizes, $machine, clang $version" => sub {
            for my $sections ([], ['-ffunction-sections']) {
                my $object = "$folder/object.o";
                unlink $object;
                run("$llvm{$version}/clang", "--target=$machine-linux-gnu", @options, @$sections, '-c', $source,
                    '-o', $object);
                plan skip_all => 'clang cannot compile for it' if !-s $object;
                # llvm-readobj does not find functions of RISC-V's labels, nor those behind descriptors.
                my $reader = $machine =~ /^(riscv64|powerpc64)$/ ? undef : $version;
                check_sizes($version, $object) if defined $reader;
                my ($answer) = lookup($object, "f+8");
                cmp_ok $answer->{stack_size}, ">=", 80, 'of the function with an array';
            }
        };
    }
}

# ---- Coverage points of running programs ----

my $callbacks = spit('callbacks.c', <<'END');
#include <stdint.h>
#include <stdio.h>
extern char __executable_start[];
void __sanitizer_cov_trace_pc_guard(uint32_t *guard) {}
void __sanitizer_cov_trace_pc_guard_init(uint32_t *begin, uint32_t *end) {}
void __sanitizer_cov_8bit_counters_init(char *begin, char *end) {}
void __sanitizer_cov_pcs_init(const uintptr_t *begin, const uintptr_t *end)
{
    uintptr_t base = IS_PIE ? (uintptr_t)__executable_start : 0;
    for (; begin < end; begin += 2)
        printf("%lx %lu\n", (unsigned long)(begin[0] - base), (unsigned long)begin[1]);
}
END

sub check_points {
    my ($version, $is_pie, $mode, @link) = @_;
    my $program = "$folder/program";
    my $callbacks_object = "$folder/callbacks.o";
    unlink $program;
    output_of("$llvm{$version}/clang", '-O1', '-w', "-DIS_PIE=$is_pie", '-c', $callbacks, '-o', $callbacks_object);
    output_of("$llvm{$version}/clang", @options, "-fsanitize-coverage=$mode,pc-table", '-c', $source, '-o',
        "$folder/source.o", $is_pie ? '-fPIE' : '-fno-pie');
    my ($status) = run("$llvm{$version}/clang", "$folder/source.o", $callbacks_object, '-o', $program,
        $is_pie ? '-pie' : '-no-pie', @link);
    plan skip_all => 'clang cannot link it' if $status ne "0";
    my @told = map { [split] } split /\n/, output_of($program);
    cmp_ok @told, '>', 6, 'there are points';
    my @answers = lookup($program, map { "0x$_->[0]" } @told);
    for my $i (0 .. $#told) {
        my ($point) = grep { $_->{point} == $i } @{$answers[$i]{coverage}};
        is_deeply $point, {point => $i, flags => $told[$i][1] + 0,
            function_entry => $told[$i][1] ? JSON::PP::true : JSON::PP::false}, "point $i";
        is $answers[$i]{offset}, 0, 'at the beginning of its function' if $told[$i][1];
    }
    my ($beyond) = lookup($program, 'f+1');
    is_deeply $beyond->{coverage}, [], 'no point elsewhere';
    check_sizes($version, $program) if -x "$llvm{$version}/llvm-readobj";
}

for my $version (@versions) {
    my @lld = -x "$llvm{$version}/ld.lld" ? ('-fuse-ld=lld') : ();
    subtest "coverage, clang $version" => sub { check_points($version, 1, 'trace-pc-guard') };
    subtest "counters, clang $version, not position-independent" => sub { check_points($version, 0, 'inline-8bit-counters') };
    subtest "coverage, clang $version, lld" => sub { check_points($version, 1, 'trace-pc-guard', @lld) } if @lld;
}
subtest 'packed relative relocations' => sub {
    check_points($newest, 1, 'trace-pc-guard', '-fuse-ld=lld', '-Wl,-z,pack-relative-relocs');
};

for my $machine (qw(x86_64 aarch64 powerpc64le powerpc64 s390x riscv64)) {
    subtest "points of an object, $machine" => sub {
        my $object = "$folder/object.o";
        unlink $object;
        run("$llvm{$newest}/clang", "--target=$machine-linux-gnu", @options, '-c', $source, '-o', $object,
            '-fsanitize-coverage=trace-pc-guard,pc-table');
        plan skip_all => 'clang cannot compile for it' if !-s $object;
        my @entries = lookup($object, qw(f+0 h g main));
        is scalar(grep { @{$_->{coverage}} > 0 && $_->{coverage}[0]{function_entry} } @entries), 4, 'entries';
        my ($all) = output_of($cairn, 'lookup', $object, 'main');
        like $all, qr/^  stack size of \d+ bytes?\n  coverage point \d+, function entry$/m, 'as text';
    };
}

# ---- Invalid sections ----

my $object = "$folder/changed.o";
run("$llvm{$newest}/clang", @options, '-c', $source, '-o', "$folder/whole.o", '--target=x86_64-linux-gnu',
    '-fsanitize-coverage=trace-pc-guard,pc-table');

# Replaces the contents of a section in a linked file, so that no relocation refers to it.
sub with_contents {
    my ($name, $bytes) = @_;
    my $contents = spit('contents', $bytes);
    my $linker = -x "$llvm{$newest}/ld.lld" ? "$llvm{$newest}/ld.lld" : 'ld';
    output_of($linker, '-shared', '-m', 'elf_x86_64', '--unresolved-symbols=ignore-all', "$folder/whole.o", '-o', "$folder/whole.so");
    output_of("$llvm{$newest}/llvm-objcopy", "--remove-section=$name", "$folder/whole.so", "$folder/less.so");
    output_of("$llvm{$newest}/llvm-objcopy", "--add-section=$name=$contents", "$folder/less.so", "$folder/changed.so");
    return "$folder/changed.so";
}

subtest 'a truncated stack size' => sub {
    my $file = with_contents('.stack_sizes', pack('Q<C Q<C', 0x1000, 8, 0x2000, 0x80));
    my ($status, $output, $complaints) = run($cairn, 'lookup', $file, '1000');
    is $status, 1, 'exit status';
    like $complaints, qr/\Acairn: \S+changed\.so: \.stack_sizes, byte 17: the stack size at byte 9, of the function 0x2000: the number \(ULEB128\) goes beyond the section's end\n\z/, 'the error message';
};

subtest 'a truncated coverage point' => sub {
    my $file = with_contents('__sancov_pcs', pack('Q<Q<Q<', 0x1000, 1, 0x2000));
    my ($status, $output, $complaints) = run($cairn, 'lookup', $file, '1000');
    is $status, 1, 'exit status';
    like $complaints, qr/\Acairn: \S+changed\.so: __sancov_pcs, byte 16: the section ends inside coverage point 1: 8 bytes are left of 16\n\z/, 'the error message';
};

subtest 'many points at one address' => sub {
    my ($f) = lookup("$folder/whole.so", 'f+0');
    my $file = with_contents('__sancov_pcs', pack('Q<Q<', $f->{address}, 6) x 1000);
    my ($answer) = lookup($file, 'f+0');
    is scalar @{$answer->{coverage}}, 64, 'the first ones are printed';
    is $answer->{more_coverage}, 1000 - 64, 'and the number of the others';
    like output_of($cairn, 'lookup', $file, 'f+0'),
        qr/^  coverage point 63, unknown flags 0x6\n  and 936 more coverage points$/m, 'also as text';
};

subtest 'bytes changed at random' => sub {
    my $bytes = slurp("$folder/whole.o");
    for my $round (1 .. 60) {
        my $changed = $bytes;
        substr($changed, int rand length $changed, 1) = chr int rand 256 for 1 .. 1 + rand 20;
        my ($status, undef, $complaints) = run($cairn, 'lookup', spit('changed.o', $changed), 'f+0', '.text:0');
        next if $status eq "0" || $status eq "1" && $complaints =~ /^cairn: /;
        fail "round $round: status $status" or diag $complaints;
    }
    pass 'none was fatal';
};

done_testing;
