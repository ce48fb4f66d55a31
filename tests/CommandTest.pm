# What the tests that run programs share: a folder of their own, a seed, where `cairn` and LLVM's tools
# are, and running.
# SPDX-License-Identifier: MIT
package CommandTest;

use strict;
use warnings;
use Cwd qw(abs_path);
use Exporter qw(import);
use File::Temp qw(tempdir);
use Test::More;

our @EXPORT = qw($cairn $folder $seed %llvm llvm_version find_in_path run_with slurp spit);

# Gone at the end.
our $folder = tempdir(CLEANUP => 1);

# The folders of LLVM's programs, by version: of the versions installed those that Cairn is tested with,
# and the one that it was configured with. What another version writes no test knows.
my $configured = ($ENV{LLVM_MAJOR} // '') =~ /^(\d+)$/ ? $1 : undef;
my %tested = map { $_ => 1 } split ' ', $ENV{LLVM_TESTED} // '';
our %llvm = map { m{llvm-(\d+)/} && (!%tested || $tested{$1}) ? ($1 => $_) : () } glob '/usr/lib/llvm-*/bin';
$llvm{$configured} = $ENV{LLVM_BINDIR} if defined $configured && ($ENV{LLVM_BINDIR} // '') ne '';

# The version whose program is to be run: the configured one, or if that is older than `$oldest` or has no
# such program, the newest that does; undefined if there is none.
sub llvm_version {
    my ($program, $oldest) = @_;
    my @versions = grep { $_ >= ($oldest // 0) && -x "$llvm{$_}/$program" } sort { $b <=> $a } keys %llvm;
    my ($found) = ((grep { defined $configured && $_ == $configured } @versions), @versions);
    return $found;
}

# Not libtool's script, which would be run each time, but the program. Undefined where there is none.
our ($cairn) = map { abs_path($_) } grep { -x } '.libs/cairn', 'cairn';
$ENV{LD_LIBRARY_PATH} = join ':', abs_path('.libs'), $ENV{LD_LIBRARY_PATH} // () if -d '.libs';

our $seed = $ENV{CAIRN_TEST_SEED} // time;
srand $seed;
diag "seed $seed (CAIRN_TEST_SEED repeats it)";
delete $ENV{NO_COLOR};
$ENV{LC_ALL} = 'C';

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

# Runs a program, without a shell, with the file as its standard input; returns its exit status (or
# "signal N"), and what it wrote to standard output and error.
sub run_with {
    my ($input, @words) = @_;
    my $pid = fork // die "fork: $!";
    if ($pid == 0) {
        open STDIN, '<', $input or die;
        open STDOUT, '>', "$folder/stdout" or die;
        open STDERR, '>', "$folder/stderr" or die;
        exec { $words[0] } @words or exit 127;
    }
    waitpid $pid, 0;
    my $status = $? & 127 ? 'signal ' . ($? & 127) : $? >> 8;
    return ($status, slurp("$folder/stdout"), slurp("$folder/stderr"));
}

# The program's path, or undef.
sub find_in_path {
    my ($program) = @_;
    my ($found) = grep { -x } map { "$_/$program" } split /:/, $ENV{PATH};
    return $found;
}

1;
