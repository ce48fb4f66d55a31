# Tests `cairn profile --propeller`: a program is compiled, profiled with branches that were made up, and
# compiled again with the directives.
#
# SPDX-License-Identifier: MIT
use strict;
use warnings;
no warnings qw(portable); # addresses have 64 bits
use FindBin;
use Test::More;
use lib $FindBin::Bin;
use CommandTest;

skip_test 'reads the same bytes on every host' if ($ENV{CAIRN_TEST_RUNNER} // '') ne '';
skip_test 'the first build has it' if ($ENV{CAIRN_TEST_REPEATED} // '') ne '';
chomp(my $machine = `uname -m`);
skip_test "the program is compiled for x86-64, not $machine" if $machine ne 'x86_64';
skip_test 'no nm' if !defined find_in_path('nm');

my %labels = (14 => '-fbasic-block-sections=labels', 16 => '-fbasic-block-sections=labels',
    map { $_ => '-fbasic-block-address-map' } 19, 21, 22);
my @versions = grep { find_in_path("clang-$_") && -x "/usr/lib/llvm-$_/bin/ld.lld" && -x "/usr/lib/llvm-$_/bin/llvm-readobj" }
    sort keys %labels;
skip_test 'no clang that has lld and llvm-readobj of the same version' if !@versions;

my $source = spit('program.c', <<'C');
#include <stdio.h>
__attribute__((noinline)) int rare(int x) { return printf("%d\n", x); }
__attribute__((noinline)) int often(int x) {
    if (x % 1000 == 7) return rare(x) + 2;
    return x * 3;
}
__attribute__((noinline)) static int unused(int x) { return printf("none %d\n", x); }
int main(int count, char **words) {
    int sum = 0;
    (void)words;
    for (int i = 0; i < 2000 * count; i++) sum += often(i);
    return count > 5 ? unused(sum) : sum & 1;
}
C

sub compile {
    my ($version, $name, @more) = @_;
    my ($status, undef, $err) = run_with('/dev/null', find_in_path("clang-$version"), '-O1', '-no-pie', '-fno-pic',
        "--ld-path=/usr/lib/llvm-$version/bin/ld.lld", '-Wl,--build-id', @more, $source, '-o', "$folder/$name");
    is $status, 0, "clang $version @more" or diag $err;
    return "$folder/$name";
}

# Returns the addresses of functions and of their parts.
sub symbols_of {
    my ($file) = @_;
    my (undef, $out) = run_with('/dev/null', find_in_path('nm'), $file);
    return map { /^(\w+) [Tt] (.*)$/ ? ($2 => hex $1) : () } split /\n/, $out;
}

# Returns the start, end and ID of each block of a function.
sub blocks_of {
    my ($version, $file, $function) = @_;
    my (undef, $out) = run_with('/dev/null', "/usr/lib/llvm-$version/bin/llvm-readobj", '--bb-addr-map', $file);
    my (@blocks, $base, $name, $offset, $id);
    for (split /\n/, $out) {
        $base = hex $1 if /^\s+(?:At|Base Address): (\w+)/;
        $name = $1 if /^\s+Name: (.*)/;
        $id = $1 if /^\s+ID: (\d+)/;
        $offset = hex $1 if /^\s+Offset: (\w+)/;
        push @blocks, [$name, $base + $offset, $base + $offset + hex $1, $id] if /^\s+Size: (\w+)/;
    }
    my $number = 0;
    return map { [$_->[1], $_->[2], $_->[3] // $number++] } grep { defined $_->[0] && $_->[0] eq $function } @blocks;
}

sub propeller { return run_with('/dev/null', $cairn, 'profile', '--propeller', @_) }

for my $version (@versions) {
    subtest "the program is placed by its profile, clang $version" => sub {
        my $file = compile($version, "input$version", $labels{$version});
        my %symbols = symbols_of($file);
        my @blocks = blocks_of($version, $file, 'often');
        cmp_ok @blocks, '>=', 2, 'the function has blocks' or return;
        my ($entry, $last) = @blocks[0, -1];
        my $branches = sprintf '0x%x/0x%x/P/-/-/1', $symbols{main} + 1, $symbols{often};
        my $inside = sprintf '0x%x/0x%x/P/-/-/1', $entry->[1] - 1, $last->[0];
        my $back = sprintf '0x%x/0x%x/P/-/-/1', $last->[1] - 1, $symbols{main} + 1;
        my $samples = spit('samples', sprintf("%x %s\n", $last->[0], join ' ', ($inside, $branches, $back) x 8) x 20);
        my ($status, $out, $err) = propeller("$folder/out$version", $file, $samples);
        is_deeply [$status, $err], [0, ''], 'exit status and standard error';
        my $compiler = slurp("$folder/out$version/cc_profile.txt");
        my $ids = "$entry->[2] $last->[2]";
        like $compiler, $version < 17 ? qr/^!often\n!!$ids$/m : qr/\Av1\n(?:.*\n)*f often\nc $ids$/m, 'the directives';
        unlike $compiler, qr/rare|unused/, 'others are left to the compiler';
        like slurp("$folder/out$version/ld_profile.txt"), qr/^often$/m, 'the order of functions';
        my $placed = compile($version, "placed$version", $labels{$version} =~ /sections/ ? () : $labels{$version},
            "-fbasic-block-sections=list=$folder/out$version/cc_profile.txt", '-ffunction-sections',
            "-Wl,--symbol-ordering-file=$folder/out$version/ld_profile.txt");
        my %moved = symbols_of($placed);
        ok exists $moved{'often.cold'}, 'the cold blocks have a section';
        my @first = grep { $moved{$_} < $moved{rare} } qw(often main);
        is_deeply \@first, ['often', 'main'], 'hot functions come first';
        my @before = run_with('/dev/null', $file);
        is_deeply [run_with('/dev/null', $placed)], \@before, 'the program does the same';
        my ($twice) = propeller("$folder/out$version", $placed, spit('plain', sprintf "%x\n", $moved{often}))
            if $version >= 19;
        is $twice // 0, 0, 'the placed program is profiled again';
    };
}

my $version = $versions[-1];
my $file = compile($version, 'program', $labels{$version});
my %symbols = symbols_of($file);

subtest 'plain samples give estimates, and a sentence says so' => sub {
    my $samples = spit('samples', sprintf("%x\n", $symbols{often}) x 50);
    my ($status, $out, $err) = propeller("$folder/estimated", $file, $samples);
    is $status, 0, 'exit status';
    like $err, qr/\Acairn: \S+: there are no branches among the samples, so their counts are estimated.*\n\z/, 'the sentence';
    like slurp("$folder/estimated/cc_profile.txt"), qr/^[f!] ?often$/m, 'the function is placed';
    # Blocks without samples may be hot. Moving them made programs slower.
    my @ids = map { $_->[2] } blocks_of($version, $file, 'often');
    like slurp("$folder/estimated/cc_profile.txt"), qr/^(?:c|!!) ?@ids$/m, 'all blocks keep their order';
    propeller("$folder/many.d", $file, spit('many', sprintf("%x\n", $symbols{often}) x 5000));
    like slurp("$folder/many.d/cc_profile.txt"), qr/^(?:c|!!) ?$ids[0]$/m, 'with many samples, the others are cold';
};

subtest 'the version of the directives can be chosen' => sub {
    my $samples = spit('samples', sprintf "%x\n", $symbols{often});
    propeller("$folder/v0", '--propeller-version', '0', $file, $samples);
    like slurp("$folder/v0/cc_profile.txt"), qr/\A!\w+\n!!\d+/, '0';
    propeller("$folder/v1", '--propeller-version=1', $file, $samples);
    like slurp("$folder/v1/cc_profile.txt"), qr/\Av1\nf \w+\nc \d+/, '1';
    fails(2, qr/--propeller-version needs 0 or 1, not '2'/, 'profile', '--propeller', "$folder/v2",
        '--propeller-version=2', $file, $samples);
    fails(2, qr/--propeller-version needs --propeller/, 'profile', '--propeller-version=1', $file, $samples);
};

subtest 'bad input' => sub {
    my $outside = spit('outside', "7fff00000000 0x1/0x2/P/-/-/0\n");
    my ($status, undef, $err) = propeller("$folder/none", $file, $outside);
    is $status, 1, 'nothing inside: exit status';
    like $err, qr/no sample is in a block, so there is nothing to place/, 'the sentence';
    ok !-e "$folder/none", 'and nothing is written';
    my $good = spit('good', sprintf "%x\n", $symbols{often});
    ($status, undef, $err) = propeller("$folder/no/such", $file, $good);
    is $status, 1, 'no folder: exit status';
    like $err, qr{no/such: cannot be created: No such file}, 'the sentence';
    my $backwards = sprintf '0x%x/0x%x/P/-/-/1', $symbols{often}, $symbols{main};
    ($status, undef, $err) = propeller("$folder/back.d", $file, spit('back', "$backwards $backwards\n" x 100));
    is $status, 0, 'impossible branches: exit status';
    like $err, qr/\d+ of 200 branches do not fit the code/, 'the sentence';
    for my $turn (1 .. 20) {
        my $line = join ' ', map { sprintf '0x%x/0x%x/P/-/-/%s', map({ $symbols{often} - 64 + int rand 512 } 1, 2),
            rand() < 0.1 ? "\t" : 'x' } 1 .. 40;
        substr $line, int rand length $line, int rand 9, '' if rand() < 0.5;
        my ($random) = propeller("$folder/random.d", $file, spit('random', "$line\n" x 5));
        ok $random eq '0' || $random eq '1', "random branches, turn $turn: $random";
    }
};

done_testing;
