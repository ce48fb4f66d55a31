# Tests the profiles that `cairn profile` writes for other tools: pprof, flame graphs and llvm-profdata.
#
# SPDX-License-Identifier: MIT
use strict;
use warnings;
no warnings qw(portable); # addresses have 64 bits
use FindBin;
use IO::Uncompress::Gunzip qw(gunzip $GunzipError);
use Test::More;
use lib $FindBin::Bin;
use CommandTest;

skip_test 'reads the same bytes on every host' if ($ENV{CAIRN_TEST_RUNNER} // '') ne '';
skip_test 'the first build has it' if ($ENV{CAIRN_TEST_REPEATED} // '') ne '';
chomp(my $machine = `uname -m`);
skip_test "the program is compiled for x86-64, not $machine" if $machine ne 'x86_64';
skip_test 'no nm' if !defined find_in_path('nm');
my $version = llvm_version('clang', 19);
skip_test 'no clang 19 or later' if !defined $version;
my $bin = $llvm{$version};

my $id = '0a1b2c3d4e5f60718293a4b5c6d7e8f901234567';
my $source = spit('program.c', <<'C');
int printf(const char *, ...);
__attribute__((noinline)) int rare(int x) { return printf("%d\n", x); }
static inline int step(int x) { return x % 1000 == 7 ? rare(x) + 2 : x * 3; }
__attribute__((noinline)) int often(int x) { return step(x) + 1; }
int main(int count, char **words) {
    int sum = 0;
    (void)words;
    for (int i = 0; i < 20 * count; i++) sum += often(i);
    return sum & 1;
}
C

sub compile {
    my ($name, @more) = @_;
    my ($status, undef, $err) = run_with('/dev/null', "$bin/clang", '-O1', '-no-pie', '-fno-pic', "-Wl,--build-id=0x$id",
        '-fbasic-block-address-map', @more, $source, '-o', "$folder/$name");
    plan skip_all => "clang cannot link: $err" if $status ne '0';
    return "$folder/$name";
}

my $file = compile('program', '-fpseudo-probe-for-profiling', '-g1');
my (undef, $listed) = run_with('/dev/null', find_in_path('nm'), $file);
my %symbols = map { /^(\w+) [Tt] (.*)$/ ? ($2 => hex $1) : () } split /\n/, $listed;

# The program's mapping, at its own addresses, and one of a library; samples in both, and elsewhere.
sub samples {
    my ($name, %counts) = @_;
    my $begin = $symbols{main} & ~0xfff;
    my $mapping = 'program 1 1.5: PERF_RECORD_MMAP2 1/1: [0x%x(0x%x) @ 0x%x <%s>]: r-xp %s' . "\n";
    my $text = sprintf($mapping, $begin, 0x1000, $begin & 0xfffff, $id, $file)
        . sprintf($mapping, 0x7f0000000000, 0x10000, 0, 'aabbccddeeff00112233', '/usr/lib/libother.so.1')
        . sprintf($mapping, 0x7f0000020000, 0x10000, 0, '0011223344556677', "/opt/odd;name\xc3\xa9.so");
    $text .= (sprintf "%x\n", $symbols{$_} // hex $_) x $counts{$_} for sort keys %counts;
    return spit($name, $text);
}

# ---- profile.proto ----

# Splits a message into fields: [number, value], of which the value is a number or bytes.
sub fields {
    my ($bytes) = @_;
    my ($at, @fields) = (0);
    my $varint = sub {
        my ($value, $shift) = (0, 0);
        while (1) {
            my $byte = ord substr $bytes, $at++, 1;
            $value |= ($byte & 0x7f) << $shift;
            return $value if $byte < 0x80;
            $shift += 7;
        }
    };
    while ($at < length $bytes) {
        my $tag = $varint->();
        my $value = $varint->();
        die "wire type $tag" if ($tag & 7) != 0 && ($tag & 7) != 2;
        if (($tag & 7) == 2) {
            die 'too long' if $at + $value > length $bytes;
            $at += $value;
            $value = substr $bytes, $at - $value, $value;
        }
        push @fields, [$tag >> 3, $value];
    }
    return @fields;
}

sub message { return map { $_->[0] => $_->[1] } fields($_[0]) }

# Reads a profile: samples by "file function" where they were taken, the build IDs, the addresses of locations, and
# samples by stack.
sub read_pprof {
    my ($path) = @_;
    gunzip($path, \my $bytes) or die $GunzipError;
    my (@strings, %mappings, %functions, %locations, @samples, @types);
    for (fields($bytes)) {
        my ($field, $value) = @$_;
        push @strings, $value if $field == 6;
        push @types, {message($value)} if $field == 1;
        push @samples, [fields($value)] if $field == 2;
        next if $field < 3 || $field > 5;
        my %message = message($value);
        my $table = {3 => \%mappings, 4 => \%locations, 5 => \%functions}->{$field};
        ok !exists $table->{$message{1}} && $message{1} > 0, "field $field: ID $message{1}";
        $table->{$message{1}} = \%message;
    }
    is $strings[0], '', 'the first string';
    is_deeply [map { ($strings[$_->{1}], $strings[$_->{2}]) } @types], ['samples', 'count'], 'the type of samples';
    my $function_of = sub { my %line = message($_[0]{4}); return $strings[$functions{$line{1}}{2}] };
    my (%counts, %ids, %stacks);
    for (@samples) {
        my ($samples) = map { $_->[1] } grep { $_->[0] == 2 } @$_;
        my @stack = map { $locations{$_->[1]} } grep { $_->[0] == 1 } @$_;
        my $mapping = $mappings{$stack[0]{2} // 0};
        my $name = defined $mapping ? $strings[$mapping->{5}] : '';
        $ids{$name} = $strings[$mapping->{6}] if defined $mapping->{6};
        $counts{"$name " . $function_of->($stack[0])} += $samples;
        $stacks{join ';', map { $function_of->($_) } reverse @stack} += $samples;
    }
    return (\%counts, \%ids, [map { $_->{3} } values %locations], \%stacks);
}

my %counts = (often => 300, main => 20, '7f0000000010' => 5, '7f0000020020' => 2, '7fff00000000' => 3);

subtest 'a profile for pprof, by library' => sub {
    my @inputs = map { samples("input$_", %counts) } 1 .. 2;
    my ($status, $out, $err) = run_with('/dev/null', $cairn, 'profile', '--pprof', "$folder/out.pb.gz", $file, @inputs);
    is_deeply [$status, $err], [0, ''], 'exit status and standard error';
    like $out, qr/^660 samples of/, 'the summary is printed';
    my ($found, $ids, $addresses) = read_pprof("$folder/out.pb.gz");
    is_deeply $found, {'program often' => 600, 'program main' => 40, 'libother.so.1 [libother.so.1]' => 10,
        'odd;name??.so [odd;name??.so]' => 4, ' [elsewhere]' => 6}, 'samples of both inputs';
    is_deeply $ids, {program => $id, 'libother.so.1' => 'aabbccddeeff00112233', 'odd;name??.so' => '0011223344556677'},
        'build IDs';
    ok scalar(grep { $_ == $symbols{often} } @$addresses), 'addresses are those of blocks';
    my $before = slurp("$folder/out.pb.gz");
    my $many = spit('many', slurp($inputs[0]) . (sprintf "%x\n", $symbols{often}) x 100_000);
    run_with('/dev/null', $cairn, 'profile', '--pprof', "$folder/many.pb.gz", $file, $many);
    cmp_ok -s "$folder/many.pb.gz", '<', length($before) + 16, 'its size does not depend on the samples';
    is((read_pprof("$folder/many.pb.gz"))[0]{'program often'}, 100_300, 'their number');
};

# ---- Flame graphs ----

# Reads lines as flamegraph.pl does: a stack, whose frames are separated by semicolons, and its samples. A line that
# ends in two numbers would be one of a comparison of two profiles, whose first number is not part of the stack.
sub read_collapsed {
    my ($text) = @_;
    my %stacks;
    for (split /\n/, $text) {
        my ($stack, $samples) = /^(.*)\s+?(\d+(?:\.\d*)?)$/;
        if (!defined $samples || $stack =~ /^(.*)\s+?(\d+(?:\.\d*)?)$/) {
            fail "flamegraph.pl misreads '$_'";
            next;
        }
        $stacks{$stack} += $samples;
    }
    return \%stacks;
}

# Returns the stacks that `cairn profile --collapsed` prints, after programs that draw them have read them.
sub collapsed {
    my ($path) = @_;
    my ($status, $out, $err) = run_with('/dev/null', $cairn, 'profile', '--collapsed', $file, $path);
    is_deeply [$status, $err], [0, ''], 'exit status and standard error';
    my $stacks = read_collapsed($out);
    my $sum = 0;
    $sum += $_ for values %$stacks;
    for my $program (grep { defined } map { find_in_path($_) } qw(flamegraph.pl inferno-flamegraph)) {
        my (undef, $picture, $why) = run_with(spit('collapsed', $out), $program);
        like $picture =~ s/(?<=\d),(?=\d)//gr, qr/\ball \($sum samples, 100%\)/, "$program: all samples" or diag $why;
        unlike $picture, qr/; [+-]?\d[\d.]*%\)/, "$program: no comparison";
    }
    return $stacks;
}

subtest 'lines for flame graphs' => sub {
    is_deeply collapsed(samples('input', %counts)), {'program;often;[block 0]' => 300, 'program;main;[block 0]' => 20,
        'libother.so.1' => 5, 'odd:name' . "\xc3\xa9" . '.so' => 2, '[elsewhere]' => 3}, 'the lines';
    fails(2, qr/--collapsed and --json are both given/, 'profile', '--collapsed', '--json', $file, samples('input', %counts));
};

# A sample whose callers are given as `perf script -F ip,sym,dso` prints them: the offset in the file, the symbol, and
# the file.
sub chain { return join '', "program 1 2.5: 1 cpu-clock:\n", (map { sprintf "\t%16x %s (%s)\n", @$_ } @_), "\n" }

subtest 'call chains are whole stacks' => sub {
    my $libc = '/usr/lib/libother.so.1';
    my @outer = ([($symbols{main} & 0xfffff) + 9, 'main', $file], [0x2724a, '__libc_start_call_main', $libc]);
    my $often = $symbols{often} & 0xfffff;
    my $input = slurp(samples('input')) . chain([$often, 'often', $file], @outer) x 7
        . chain([$often, 'step', 'inlined'], [$often, 'often', $file], @outer)
        . chain([0x10, 'printf+0x10', $libc], @outer) . chain([0x10, '[unknown]', $libc], @outer)
        . chain([0xffffffff81000000, 'irq', '[kernel.kallsyms]'], [0x123456789a, '[unknown]', '[unknown]'], @outer);
    my $begin = 'program;__libc_start_call_main;main';
    is_deeply collapsed(spit('chains', $input)), {"$begin;often;[block 0]" => 8, "$begin;printf" => 1,
        "$begin;libother.so.1" => 1, "$begin;[elsewhere];irq" => 1}, 'the stacks';
    my ($status, $out, $err) = run_with('/dev/null', $cairn, 'profile', '--pprof', "$folder/chains.pb.gz", $file, "$folder/chains");
    $begin = '__libc_start_call_main;main';
    is_deeply +(read_pprof("$folder/chains.pb.gz"))[3], {"$begin;often" => 8, "$begin;printf" => 1,
        "$begin;libother.so.1" => 1, "$begin;[elsewhere];irq" => 1}, 'the stacks for pprof';
    like $out, qr/^11 samples of .*\n +72\.73 % +8  in basic blocks$/m, 'their offsets are found in the file';
};

subtest 'call chains that perf records' => sub {
    my $perf = find_in_path('perf');
    plan skip_all => 'perf is not installed' if !defined $perf;
    spit('busy.c', "volatile int sink;\n__attribute__((noinline)) void work(int n) { while (n--) sink += n; }\n"
        . "__attribute__((noinline)) void outer(int n) { while (n--) work(1000); sink++; }\nint main(void) { outer(100000); return sink == 1; }\n");
    my ($status, undef, $err) = run_with('/dev/null', "$bin/clang", '-O1', '-fno-omit-frame-pointer', '-fbasic-block-address-map',
        "$folder/busy.c", '-o', "$folder/busy");
    plan skip_all => "clang cannot link: $err" if $status ne '0';
    ($status, undef, $err) = run_with('/dev/null', $perf, 'record', '-q', '-g', '-e', 'cpu-clock:u', '-o', "$folder/data", "$folder/busy");
    plan skip_all => "perf may not take samples here: $err" if $status ne '0';
    my (undef, $script) = run_with('/dev/null', $perf, 'script', '-i', "$folder/data", '-F', 'ip,sym,dso', '--show-mmap-events');
    my (undef, $out) = run_with('/dev/null', $cairn, 'profile', '--collapsed', "$folder/busy", spit('script', $script));
    my $stacks = read_collapsed($out);
    my ($all, $whole) = (0, 0);
    for (keys %$stacks) {
        $all += $stacks->{$_};
        $whole += $stacks->{$_} if /^busy;.*\bmain;outer;work;\[block \d+\]$/;
    }
    cmp_ok $whole, '>', $all / 2, "are whole in $whole of $all samples" or diag $out;
};

subtest 'names that end in a number do not change the samples' => sub {
    my @names = ('closure 12', 'operator;3', 'a 1.5', '7', ' 8', 'x 9.', 'y  10');
    my $input = spit('names', slurp(samples('input', main => 10))
        . join '', map { chain([0x10, $_, '/usr/lib/libother.so.1']) } @names);
    my $stacks = collapsed($input);
    is_deeply [sort keys %$stacks], [sort 'program;main;[block 0]', 'closure_12', 'operator:3', 'a_1.5', '7', '8', 'x_9.', 'y _10'], 'the names';
};

# ---- Sample profiles ----

# Returns a branch from the end of a function's code, as far as the next one, to another's start.
sub branch { return sprintf '0x%x/0x%x/P/-/-/1', @_ }

subtest 'a profile for llvm-profdata' => sub {
    my $call = branch($symbols{main} + 1, $symbols{often});
    my $input = spit('branches', sprintf("%x %s\n", $symbols{often}, join ' ', ($call) x 2) x 50);
    my ($status, undef, $err) = run_with('/dev/null', $cairn, 'profile', '--sample-profile', "$folder/out.prof", $file, $input);
    is_deeply [$status], [0], 'exit status' or diag $err;
    my $text = slurp("$folder/out.prof");
    like $text, qr/^often:\d+:100\n( \d+: \d+\n)+ \d+: \S*step\S*:\d+\n(  \d+: \d+\n)+  !CFGChecksum: \d+\n !CFGChecksum: \d+$/m,
        'the function, and what was inlined';
    unlike $text, qr/^rare/m, 'what was not executed is left out';
    SKIP: {
        skip "no llvm-profdata of LLVM $version", 2 if !-x "$bin/llvm-profdata";
        my (undef, $shown, $why) = run_with('/dev/null', "$bin/llvm-profdata", 'show', '--sample', "$folder/out.prof");
        like $shown, qr/^Function: often: CFG checksum \d+\n\d+, 100, \d+ sampled lines/m, 'llvm-profdata reads it' or diag $why;
        my ($compiled, $ir, $message) = run_with('/dev/null', "$bin/clang", '-O1', '-g1', '-fpseudo-probe-for-profiling',
            "-fprofile-sample-use=$folder/out.prof", '-S', '-emit-llvm', $source, '-o', '-');
        like $ir, qr/"function_entry_count", i64 10\d/, 'clang uses it' or diag $message;
    }
    my $plain = compile('plain');
    fails_after_output(qr/there are no pseudo probes: compile with clang -fpseudo-probe-for-profiling/,
        'profile', '--sample-profile', "$folder/none.prof", $plain, $input);
    ok !-e "$folder/none.prof", 'without probes nothing is written';
};

sub fails_after_output {
    my ($pattern, @words) = @_;
    my ($status, undef, $err) = run_with('/dev/null', $cairn, @words);
    is $status, 1, 'exit status';
    like $err, $pattern, 'the error message';
}

subtest 'damaged probes' => sub {
    my (undef, $sections) = run_with('/dev/null', find_in_path('readelf'), '-SW', $file);
    my @ranges = map { $sections =~ /\.\Q$_\E\s+PROGBITS\s+\w+ (\w+) (\w+)/ ? [hex $1, hex $2] : () }
        qw(pseudo_probe pseudo_probe_desc);
    is @ranges, 2, 'the sections' or return;
    my $bytes = slurp($file);
    my $input = samples('input', %counts);
    my @runs;
    for my $turn (1 .. 40) {
        my $mutant = $bytes;
        for (1 .. 1 + int rand 4) {
            my ($offset, $size) = @{$ranges[rand @ranges]};
            substr $mutant, $offset + int rand $size, 1, rand() < 0.5 ? "\xff" : chr int rand 256;
        }
        my $path = spit("mutant$turn", $mutant);
        push @runs, ['/dev/null', $cairn, 'profile', '--sample-profile', "$folder/out$turn", $path, $input];
    }
    my @results = run_all(@runs);
    my @bad = grep { $results[$_][0] !~ /^[01]$/ } 0 .. $#results;
    is "@bad", '', 'no mutant ends the command by a signal';
};

done_testing;
