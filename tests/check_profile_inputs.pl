# Tests `cairn profile` with many inputs, build IDs, and branches among the samples.
#
# SPDX-License-Identifier: MIT
use strict;
use warnings;
no warnings qw(portable); # addresses have 64 bits
use FindBin;
use JSON::PP;
use Test::More;
use lib $FindBin::Bin;
use CommandTest;

skip_test 'reads the same bytes on every host' if ($ENV{CAIRN_TEST_RUNNER} // '') ne '';
skip_test 'the first build has it' if ($ENV{CAIRN_TEST_REPEATED} // '') ne '';

my ($clang) = grep { defined find_in_path($_) } qw(clang-19 clang-21 clang-22);
skip_test 'no clang 19, 21 or 22' if !defined $clang;
skip_test 'no nm' if !defined find_in_path('nm');

my $id = '0a1b2c3d4e5f60718293a4b5c6d7e8f901234567';
my $other_id = 'ffffffffffffffffffffffffffffffff01234567';
my $source = spit('program.c', <<'C');
__attribute__((noinline)) int work(int x) { return x > 3 ? x * 5 : x + 1; }
int main(int count, char **words) { (void)words; return work(count) & 1; }
C
my $file = "$folder/program";
my ($made, undef, $why) = run_with('/dev/null', find_in_path($clang), '-O1', '-fPIE', '-pie', "-Wl,--build-id=0x$id",
    '-fbasic-block-address-map', $source, '-o', $file);
skip_test "$clang cannot link: $why" if $made ne '0';

my (undef, $symbols) = run_with('/dev/null', find_in_path('nm'), $file);
my ($work) = map { hex } $symbols =~ /^(\w+) . work$/m;
my ($main) = map { hex } $symbols =~ /^(\w+) . main$/m;

sub profile { return run_with('/dev/null', $cairn, 'profile', '--json', @_) }

# Returns the JSON for inputs that are valid.
sub counted {
    my ($name, @words) = @_;
    my ($status, $out, $err) = profile(@words);
    is_deeply [$status, $err], [0, ''], "$name: exit status and standard error";
    return decode_json($out || '{}');
}

# Returns a line of a mapping at `$base`, with a build ID unless that is undefined.
sub mapping {
    my ($base, $build_id, $path) = @_;
    my $begin = $work & ~0xfff;
    return sprintf "program 1 1.5: PERF_RECORD_MMAP2 1/1: [0x%x(0x1000) @ 0x%x %s]: r-xp %s\n", $begin + $base,
        offset_of($begin), defined $build_id ? "<$build_id>" : '00:01 2 3', $path // $file;
}

# Returns the offset in the file of an address.
sub offset_of {
    my ($address) = @_;
    my (undef, $out) = run_with('/dev/null', find_in_path('readelf'), '-Wl', $file);
    for (split /\n/, $out) {
        next if !/^\s+LOAD\s+(\w+) (\w+) \w+ (\w+) \w+ R E/;
        return hex($1) + $address - hex $2 if $address >= (hex($2) & ~0xfff) && $address < hex($2) + hex $3;
    }
    return $address;
}
skip_test 'no readelf' if !defined find_in_path('readelf');

sub sample { return sprintf " %x\n", $_[0] }

subtest 'inputs are added up, each with its mappings' => sub {
    my @inputs = map { spit("input$_", mapping($_ << 32) . sample($work + ($_ << 32)) x $_) } 1 .. 3;
    my $found = counted('three', $file, @inputs);
    is_deeply [@$found{qw(samples in_blocks)}], [6, 6], 'all samples';
    my $alone = spit('alone', sample($work + (1 << 32)));
    $found = counted('one without mappings', $file, $inputs[0], '--base', '0', spit('plain', sample($main)));
    ($found) = map { decode_json($_) } (profile($file, $inputs[0], $alone))[1];
    is_deeply [@$found{qw(samples in_blocks)}], [2, 1], 'mappings of another input do not count';
};

subtest 'a mapping belongs to the file with its build ID' => sub {
    my $base = 5 << 32;
    my $renamed = spit('renamed', mapping($base, $id, '/elsewhere/renamed') . sample($work + $base));
    is counted('another name', $file, $renamed)->{in_blocks}, 1, 'counted';
    my $padded = spit('padded', mapping($base, "${id}0000", $file) . sample($work + $base));
    is counted('a padded ID', $file, $padded)->{in_blocks}, 1, 'counted';
    my $two = spit('two', mapping($base, $other_id) . sample($work + $base) . mapping(6 << 32, $id)
        . sample($work + (6 << 32)) x 2);
    my $found = counted('two programs of one name', $file, $two);
    is_deeply [@$found{qw(samples in_blocks)}], [3, 2], 'that of the other is elsewhere';
};

subtest 'samples of another build are refused' => sub {
    my $base = 5 << 32;
    my $good = spit('good', mapping($base, $id) . sample($work + $base));
    my $bad = spit('bad', mapping($base, $other_id) . sample($work + $base));
    my $listed = spit('listed', "$other_id $file\n" . mapping($base) . sample($work + $base));
    for my $case (['mmap event', $bad, $bad], ['buildid-list', $listed, $listed], ['second input', $bad, $good, $bad]) {
        my ($name, $refused, @inputs) = @$case;
        my ($status, $out, $err) = profile($file, @inputs);
        is_deeply [$status, $out], [1, ''], "$name: exit status, and nothing printed";
        is $err, "cairn: $refused: the samples are of another build: the build ID of $file is $id, and that of the "
            . "sampled program is $other_id\n", "$name: both IDs are named";
    }
    my ($status, undef, $err) = profile('--build-id', $other_id, $file, $good);
    is $status, 1, '--build-id: exit status';
    like $err, qr/of another build: the build ID of \S+ is $id, and that of the sampled program is $other_id$/,
        '--build-id: both IDs are named';
    is counted('--build-id', '--build-id', uc $id, $file, $good)->{in_blocks}, 1, 'the right --build-id';
    is counted('the right list', $file, spit('right', "$id $file\n$other_id /lib/other\n" . sample($work)))->{in_blocks},
        1, 'other files have other IDs';
};

subtest 'branches follow the address, or take its place' => sub {
    my $branch = sprintf '0x%x/0x%x/P/-/-/1', $work, $main;
    my $located = sprintf '0x%x(%s)/0x%x(%s)/P/-/-/1/COND/-', $main, $file, $work, $file;
    my %samples = (
        'with a name' => sprintf("    %x main+0x0  $branch  $branch\n", $main),
        'without one' => sprintf("    %x  $branch\n", $main),
        'after an event' => sprintf("program 1 2.5: 1 cycles:u: %x main+0x0 $branch\n", $main),
        'alone' => " $branch  $located\n",
    );
    for my $form (sort keys %samples) {
        my $found = counted($form, $file, spit('branches', $samples{$form}));
        is_deeply [@$found{qw(samples in_blocks)}], [1, 1], "$form: one sample";
        is $found->{blocks}[0]{symbol}, 'main', "$form: its function";
    }
    is counted('with files', $file, spit('branches', "$located\n"))->{blocks}[0]{symbol}, 'work', 'with files';
};

subtest 'unreadable lines of all inputs are reported in one sentence' => sub {
    my @inputs = (spit('one', sample($work) . "what\n"), spit('two', "is\n\nthis\n" . sample($work)));
    my ($status, $out, $err) = profile($file, @inputs);
    is $status, 0, 'exit status';
    is $err, "cairn: $inputs[0] and others: ignored 3 lines without an address; the first is line 2 of $inputs[0]\n",
        'the sentence';
    my $empty = spit('empty', "\n");
    ($status, undef, $err) = profile($file, $empty, spit('full', sample($work)));
    is $status, 0, 'an input without samples: exit status';
    is $err, "cairn: $empty: there are no samples (1 of 2 inputs have none)\n", 'it is named';
    fails(1, qr/there are no samples/, 'profile', $file, $empty, $empty);
    fails(1, qr/nothing: cannot be opened/, 'profile', $file, $empty, "$folder/nothing");
};

subtest 'a line of a million characters is one line' => sub {
    my $long = spit('long', sample($work) . ('x' x 1_000_000) . "\n" . sample($work) . ('/0x1' x 200_000) . "\n");
    my ($status, $out, $err) = profile($file, $long);
    is $status, 0, 'exit status';
    is decode_json($out)->{samples}, 2, 'samples';
    like $err, qr/ignored 2 lines without an address; the first is line 2$/, 'the sentence';
};

done_testing;
