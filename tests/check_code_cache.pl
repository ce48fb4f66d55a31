# Tests examples/code_cache: its second process does not call LLVM, and a program that is not linked with LLVM
# loads what it has compiled.
#
# Runs in the build folder.
#
# SPDX-License-Identifier: MIT
use strict;
use warnings;
use Cwd qw(abs_path);
use FindBin;
use Test::More;
use lib $FindBin::Bin;
use CommandTest;

skip_test 'left to the native build' if ($ENV{CAIRN_TEST_RUNNER} // '') ne '';

my ($writer, $reader) = map { -x ? abs_path($_) : undef } 'examples/code_cache', 'examples/load_object';
skip_test 'the examples were not built' if !defined $writer || !defined $reader;
my $object = "$folder/cached.o";

sub run { return run_with('/dev/null', @_) }

# Returns the functions of LLVM that the program was linked with while it ran: those that it has called, unless
# it was linked before it began.
sub llvm_functions {
    my @words = @_;
    local $ENV{LD_DEBUG} = 'bindings';
    local $ENV{LD_DEBUG_OUTPUT} = "$folder/bindings";
    my ($status, $out) = run(@words);
    my %found;
    for my $file (glob "$folder/bindings.*") {
        $found{$_} = 1 for slurp($file) =~ m{binding file \S*(?:code_cache|libcairn-llvm\S*) \[\d+\] to \S+ \[\d+\]: normal symbol `(LLVM\w+)'}g;
        unlink $file;
    }
    return ($status, $out, sort keys %found);
}

my ($first_status, $first, @first_calls) = llvm_functions($writer, $object);
is $first_status, 0, 'the first process';
is $first, "compiled: compute(6) is 42, and the site saw 6\n", 'compiles';
my ($second_status, $second, @second_calls) = llvm_functions($writer, $object);
is $second_status, 0, 'the second process';
is $second, "loaded from the cache: compute(6) is 42, and the site saw 6\n", 'does not';
SKIP: {
    my %compiles = map { $_ => 1 } grep { /ParseIR|EmitToFile/ } @first_calls;
    skip 'functions are bound before the program begins', 2 if grep { $compiles{$_} } @second_calls && !%compiles;
    cmp_ok scalar keys %compiles, '>', 0, 'the first process calls LLVM';
    is_deeply [grep { /ParseIR|EmitToFile|Create/ } @second_calls], [], 'the second process does not';
}

my ($linked) = (run('ldd', $reader))[1];
like $linked, qr/libcairn\.so/, 'a program that is linked with libcairn';
unlike $linked, qr/LLVM/, 'and not with LLVM';
is((run($reader, $object, 'compute'))[1], "compute(6) is 42\n", 'loads the same object');

# An object that is not what it was is compiled again.
my $bytes = slurp($object);
spit('cached.o', substr($bytes, 0, length($bytes) / 2));
my ($status, $out) = run($writer, $object);
like $out, qr/cannot be used: .*\ncompiled: compute\(6\) is 42/, 'a damaged object is compiled again';
is $status, 0, 'and used';
done_testing;
