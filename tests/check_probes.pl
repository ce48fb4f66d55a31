# Tests that the shared libraries have the USDT probes of doc/events.md: in the notes, as readelf
# prints them, and in gdb, which stops at one of them and reads its arguments.
#
# Runs in the build folder.
#
# SPDX-License-Identifier: MIT
use strict;
use warnings;
use FindBin;
use Test::More;
use lib $FindBin::Bin;
use CommandTest;

my $source = $ENV{srcdir} // '.';

sub find_library {
    my ($name) = @_;
    my ($found) = grep { -e } glob("$name.so.* $name-[0-9]*.so.*");
    return $found;
}

my $readelf = find_in_path('readelf');
my $library = find_library('libcairn');
skip_test 'there is no readelf' if !defined $readelf;
skip_test 'no shared library was built' if !defined $library;

# Returns the number of arguments of each probe of a library.
sub probes_of {
    my ($file) = @_;
    my (%count, $name);
    my ($status, $out) = run_with('/dev/null', $readelf, '-n', $file);
    is $status, 0, "readelf reads $file";
    for (split /\n/, $out) {
        $name = $1 if /^\s*Name: (\S+)/;
        next if !/^\s*Arguments: ?(.*)/ || !defined $name;
        my @arguments = $1 =~ /-?\d+@/g;
        is scalar(@arguments), $count{$name} // scalar(@arguments), "each $name has as many arguments";
        $count{$name} = @arguments;
        undef $name;
    }
    return \%count;
}

my $found = probes_of($library);
skip_test 'the library was built without sys/sdt.h' if !%$found;
my $llvm = find_library('libcairn-llvm');
%$found = (%$found, %{probes_of($llvm)}) if defined $llvm;

# The table: | `name` | arguments | when |
my %documented;
for (split /\n/, slurp("$source/doc/events.md")) {
    my ($name, $arguments) = /^\| `(\w+)` \| ([^|]*) \|/ or next;
    $documented{$name} = () = $arguments =~ /`\w+`/g;
}
delete $documented{compilation} if !defined $llvm;
is_deeply $found, \%documented, 'the probes and their numbers of arguments are those of doc/events.md';

SKIP: {
    my $gdb = find_in_path('gdb');
    my $program = 'examples/quickstart';
    skip 'there is no gdb', 1 if !defined $gdb;
    skip 'the examples were not built, or for another machine', 1
        if !-x $program || ($ENV{CAIRN_TEST_RUNNER} // '') ne '';
    my @options = ('-nx', '-batch', '-ex', 'set breakpoint pending on', '-ex', 'break main', '-ex', 'run');
    my ($status, $out, $err) = run_with('/dev/null', $gdb, @options, '-ex', 'info probes stap cairn',
        '-ex', 'break -probe-stap cairn:module_load', '-ex', 'continue',
        '-ex', 'print $_probe_argc', '-ex', 'print (char *)$_probe_arg0', '-ex', 'kill', $program);
    skip 'gdb cannot run programs here', 1 if "$out$err" =~ /ptrace|not being run|Operation not permitted/;
    skip 'this gdb has no support of probes', 1 if $out !~ /^stap\s+cairn\s/m;
    for my $name (sort keys %$found) {
        like $out, qr/^stap\s+cairn\s+\Q$name\E\s+0x/m, "gdb lists $name";
    }
    like $out, qr/^\$1 = 2$/m, 'a module_load has two arguments';
    like $out, qr/^\$2 = 0x[0-9a-f]+ "[^"]+"/m, 'the first one is the name of the module';
}

done_testing;
