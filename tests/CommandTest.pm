# Shared by tests that run programs: a temporary folder, a seed, the paths of `cairn` and LLVM's tools, and
# functions that run programs.
# SPDX-License-Identifier: MIT
package CommandTest;

use strict;
use warnings;
use Cwd qw(abs_path);
use Exporter qw(import);
use File::Temp qw(tempdir);
use Test::More;

our @EXPORT = qw($cairn $folder $seed %llvm llvm_version find_in_path run_with run_all fails slurp spit skip_test);

# Removed at the end.
our $folder = tempdir(CLEANUP => 1);

# The folders of LLVM's programs, by version: the installed versions that Cairn is tested with, and the one
# that it was configured with.
my $configured = ($ENV{LLVM_MAJOR} // '') =~ /^(\d+)$/ ? $1 : undef;
my %tested = map { $_ => 1 } split ' ', $ENV{LLVM_TESTED} // '';
our %llvm = map { m{llvm-(\d+)/} && (!%tested || $tested{$1}) ? ($1 => $_) : () } glob '/usr/lib/llvm-*/bin';
$llvm{$configured} = $ENV{LLVM_BINDIR} if defined $configured && ($ENV{LLVM_BINDIR} // '') ne '';

# Returns the version whose program is run: the configured one, or, if that is older than `$oldest` or does
# not have the program, the newest one that has it; undefined if no version has it.
sub llvm_version {
    my ($program, $oldest) = @_;
    my @versions = grep { $_ >= ($oldest // 0) && -x "$llvm{$_}/$program" } sort { $b <=> $a } keys %llvm;
    my ($found) = ((grep { defined $configured && $_ == $configured } @versions), @versions);
    return $found;
}

# Undefined if it was not built.
our ($cairn) = map { abs_path($_) } grep { -x && -f } 'cairn';

our $seed = $ENV{CAIRN_TEST_SEED} // time;
srand $seed;
diag "seed $seed (CAIRN_TEST_SEED repeats it)";
delete $ENV{NO_COLOR};
# Each process would search for leaks at its end, which takes longer than what most of them do. The libraries' are found by
# their own tests.
$ENV{ASAN_OPTIONS} = join ':', $ENV{ASAN_OPTIONS} // (), 'detect_leaks=0';
$ENV{LC_ALL} = 'C';

# Ends a test that cannot run here, for the reason given. The exit status tells automake that it was skipped.
sub skip_test {
    my ($reason) = @_;
    print "1..0 # SKIP $reason\n";
    exit 77;
}

sub slurp {
    my ($path) = @_;
    open my $file, '<:raw', $path or die "$path: $!";
    local $/;
    return <$file> // '';
}

sub spit {
    my ($name, $bytes) = @_;
    open my $file, '>:raw', "$folder/$name" or die "$name: $!";
    print $file $bytes;
    close $file;
    return "$folder/$name";
}

# Starts a program, without a shell, with the file `$input` as its standard input. Returns its process ID.
sub start {
    my ($number, $input, @words) = @_;
    my $pid = fork // die "fork: $!";
    if ($pid == 0) {
        open STDIN, '<', $input or die;
        open STDOUT, '>', "$folder/stdout$number" or die;
        open STDERR, '>', "$folder/stderr$number" or die;
        exec { $words[0] } @words or exit 127;
    }
    return $pid;
}

# Returns the exit status (or "signal N"), and what the program wrote to standard output and error.
sub result {
    my ($number, $status) = @_;
    $status = $status & 127 ? 'signal ' . ($status & 127) : $status >> 8;
    return ($status, slurp("$folder/stdout$number"), slurp("$folder/stderr$number"));
}

# Runs a program: run_with(INPUT, WORDS...).
sub run_with {
    waitpid start(0, @_), 0;
    return result(0, $?);
}

# Runs several programs, given as [INPUT, WORDS...], up to three at a time. Returns their results, in order.
sub run_all {
    my @programs = @_;
    my ($next, %running, @results) = (0);
    while ($next < @programs || %running) {
        if ($next < @programs && keys %running < 3) {
            $running{start($next, @{$programs[$next]})} = $next;
            $next++;
            next;
        }
        my $number = delete $running{waitpid -1, 0};
        $results[$number] = [result($number, $?)];
    }
    return @results;
}

# Tests that `cairn WORDS...` fails with this exit status, one line on standard error, which matches the
# pattern, and no output.
sub fails {
    my ($status, $pattern, @words) = @_;
    my ($got, $out, $err) = run_with('/dev/null', split(' ', $cairn), @words);
    my $name = join ' ', map { s/^\Q$folder\E\///r } @words;
    is $got, $status, "exit status of: $name";
    like $err, qr/\Acairn: [^\n]*\n\z/, 'one line on standard error';
    like $err, $pattern, 'the error message';
    is $out, '', 'nothing on standard output';
}

# Returns the program's path, or undef.
sub find_in_path {
    my ($program) = @_;
    my ($found) = grep { -x } map { "$_/$program" } split /:/, $ENV{PATH};
    return $found;
}

1;
