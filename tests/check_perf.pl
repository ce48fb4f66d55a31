# Tests examples/lox and examples/perf_map with Linux perf: samples have the names of compiled functions, from
# the map and from the dump, and call chains go through compiled code.
# SPDX-License-Identifier: MIT
use strict;
use warnings;
use Cwd qw(abs_path);
use FindBin;
use Test::More;
use lib $FindBin::Bin;
use CommandTest;

my $perf = find_in_path('perf');
skip_test 'perf is not installed' if !defined $perf;
skip_test 'perf samples this machine, and not the emulated one' if ($ENV{CAIRN_TEST_RUNNER} // '') ne '';
my ($lox) = map { abs_path($_) } grep { -x } 'examples/lox/lox';
my ($example) = map { abs_path($_) } grep { -x } 'examples/perf_map';
skip_test 'the examples are not built' if !defined $lox || !defined $example;

# Samples by time, because virtual machines may have no counters.
my @record = ($perf, 'record', '-q', '-k', 'mono', '-e', 'cpu-clock:u', '--call-graph', 'fp');
my ($status, $out, $err) = run_with('/dev/null', @record, '-o', "$folder/try", '--', 'true');
skip_test "perf may not take samples here: $err" if $status ne '0';

# Runs a program under perf; returns the path of the samples and the process.
sub record {
    my ($name, @words) = @_;
    my $data = "$folder/$name";
    ($status, $out, $err) = run_with('/dev/null', @record, '-o', $data, '--', @words);
    is $status, '0', "$name under perf" or diag $err;
    my (undef, $text) = run_with('/dev/null', $perf, 'script', '-i', $data, '-F', 'pid');
    my ($process) = $text =~ /(\d+)/;
    return ($data, $process);
}

# Returns the share of the samples whose symbol matches, in percent.
sub share {
    my ($data, $symbol) = @_;
    ($status, $out, $err) =
        run_with('/dev/null', $perf, 'report', '-i', $data, '--stdio', '--no-children', '-g', 'none', '--sort', 'symbol');
    my $sum = 0;
    for (split /\n/, $out) {
        my ($percent, $found) = /^\s*([\d.]+)%\s+\[[.k]\]\s+(\S+)/ or next;
        $sum += $percent if $found =~ $symbol;
    }
    return $sum;
}

# The map: perf reads it from /tmp when it reports.
my ($data, $process) = record('map', $example);
cmp_ok share($data, qr/^compute$/), '>', 1, 'the map names the compiled function';
unlink "/tmp/perf-$process.map";

# perf also learns of code that could not become executable, but is mapped so.
for my $setting ('mdwe', 'systemd') {
SKIP: {
        my @hardened = ('tests/check_code_hardened', $setting, '--');
        skip "$setting is not available", 2 if !-x $hardened[0] || (run_with('/dev/null', @hardened, 'true'))[0] ne '0';
        ($data, $process) = record($setting, @hardened, $example);
        cmp_ok share($data, qr/^compute$/), '>', 1, "the map names the compiled function, $setting";
        unlink "/tmp/perf-$process.map";
    }
}

# The dump: perf inject writes an object for each function.
my $program = spit('fib.lox', "fun fib(n) {\n  if (n < 2) return n;\n  return fib(n - 2) + fib(n - 1);\n}\nprint fib(32);\n");
($data, $process) = record('dump', $lox, '--perf', $program);
cmp_ok share($data, qr/^fib#\d/), '>', 1, 'the map names the Lox function';
($status, $out, $err) = run_with('/dev/null', $perf, 'inject', '--jit', '-i', $data, '-o', "$data.jit");
is $status, '0', 'perf inject reads the dump' or diag $err;
cmp_ok share("$data.jit", qr/^fib#\d/), '>', 1, 'the dump names the Lox function';

# Call chains: most of fib's samples are inside other calls of fib, which the interpreter's entry has called.
(undef, $out) = run_with('/dev/null', $perf, 'script', '-i', "$data.jit", '-F', 'ip,sym');
my @chains = grep { /^\s*[0-9a-f]+ fib#/ } split /\n\n+/, $out;
my $deep = grep { my $count = () = /fib#/g; $count > 3 } @chains;
my $whole = grep { m{^\s*[0-9a-f]+ (?:run_compiled|enter|jit_enter)\b}m } @chains;
cmp_ok scalar @chains, '>', 0, 'there are chains';
cmp_ok $deep, '>', @chains / 2, 'chains go through compiled frames';
cmp_ok $whole, '>', @chains / 2, 'chains reach the C function that called the code';
unlink "/tmp/perf-$process.map", "/tmp/jit-$process.dump";
unlink glob "/tmp/jitted-$process-*.so";

done_testing;
