# Compiles tests/objects/sample.c with the C compiler, with clang and with gcc for other architectures, for
# all code and relocation models and levels of optimisation, loads the objects near the program and far from
# it, runs their functions, and compares what they return with the same functions in the program. Other
# architectures run under qemu-user.
#
# An object may also be refused because its code model does not allow such distances; code that is independent
# of its position, and that of the large model, must run everywhere.
#
# Repeated builds (CAIRN_TEST_REPEATED), which may have another LLVM, test two levels of clang.
#
# SPDX-License-Identifier: MIT
use strict;
use warnings;
use FindBin;
use lib $FindBin::Bin;
use CommandTest;
use LinkObjects;
use Test::More;

my $source = $ENV{srcdir} // '.';
my $is_repeated = ($ENV{CAIRN_TEST_REPEATED} // '') ne '';
my @levels = $is_repeated ? qw(-O0 -O2) : qw(-O0 -O1 -O2 -O3);
my $version = llvm_version('clang');
my $clang = defined $version ? "$llvm{$version}/clang" : undef;
my @host_compiler = split ' ', $ENV{CC} // 'cc';
chomp(my $host = qx(uname -m));

# The machine, its emulator, the code models, and more options.
my @machines = (
    ['x86_64',    '',                    [qw(small medium large kernel)], []],
    ['aarch64',   'qemu-aarch64-static', [qw(tiny small large)],          ['-mno-outline-atomics']],
    ['ppc64le',   'qemu-ppc64le-static', [qw(small medium large)],        []],
    ['ppc64',     'qemu-ppc64-static',   [qw(small medium large)],        []],
);

# Below 2 GiB, and 30 GiB further.
my @bases = ('0x30000000', '0x7b0000000');

sub triplet {
    my ($machine) = @_;
    return ($machine =~ s/^ppc/powerpc/r) . '-linux-gnu';
}

# Returns the objects that the compiler writes, by their options. It may not know some of the options.
sub compile {
    my ($models, @compiler) = @_;
    my %options;
    my @commands;
    for my $model (@$models) {
        for my $position (qw(-fno-pic -fPIE -fPIC)) {
            for my $level (@levels) {
                my $object = sprintf '%s/%d.o', $folder, scalar keys %options;
                $options{$object} = "-mcmodel=$model $position $level";
                push @commands, [@compiler, qw(-w -c), split(' ', $options{$object}), '-o', $object,
                    "$source/tests/objects/sample.c"];
            }
        }
    }
    unlink keys %options;
    system("@$_ 2>/dev/null") for @commands;
    return map { -s $_ ? ($_ => $options{$_}) : () } keys %options;
}

sub must_run {
    my ($options) = @_;
    return $options =~ /-fPIC/ && $options !~ /tiny/ || $options =~ /large/;
}

# Runs the objects at one address, and checks what the program says about each.
sub run_at {
    my ($name, $base, $options, @command) = @_;
    my ($count, $refused) = (0, 0);
    for (qx(@command run $base @{[sort keys %$options]} 2>&1)) {
        my ($object, $said) = /^(\S+): (.*)/ or fail("$name at $base: $_"), next;
        my $what = "$name $options->{$object} at $base";
        $count++;
        if ($said =~ /^refused: RANGE: section \d+ \(\.rela\S+\), entry \d+: R_\w+: .* does not fit into \d+ bits; compile it with -fPIC or for the large code model/) {
            ok(!must_run($options->{$object}), "$what: $said");
            $refused++;
        } elsif ($said !~ /^[1-9]\d* calls$/) {
            fail("$what: $said");
        }
    }
    is($count, scalar keys %$options, "$name at $base: all objects were tried, $refused did not fit");
}

sub try_machine {
    my ($machine, $emulator, $models, $more) = @_;
    my @compiler = $machine eq $host ? @host_compiler : (triplet($machine) . '-gcc');
    my @emulator = $machine eq $host ? () : ($emulator);
    SKIP: {
        for my $tool ($machine eq $host ? () : (@compiler, @emulator)) {
            skip "$machine: $tool is not installed", 1 unless $tool ne '' && find_in_path($tool);
        }
        my $program = "$folder/link_objects-$machine";
        # Statically linked, and so with its variables below 2 GiB.
        ok(build_link_objects($program, @compiler, '-static'), "$machine: the program is built") or return;
        my %compilers = $is_repeated ? () : ($compiler[-1] => [@compiler]);
        $compilers{"clang-$version"} = [$clang, '--target=' . triplet($machine)] if defined $clang;
        for my $name (sort keys %compilers) {
            my %options = compile($models, @{$compilers{$name}}, @$more);
            ok(%options > 0, "$name compiles for $machine") or next;
            run_at("$name for $machine:", $_, \%options, @emulator, $program) for @bases;
        }
    }
}

try_machine(@$_) for @machines;
done_testing;
