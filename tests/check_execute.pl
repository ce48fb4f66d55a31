# Builds tests/cross/execute.c for the host and for every architecture with an installed cross compiler, and
# runs it, for other architectures under qemu-user.
#
# SPDX-License-Identifier: MIT
use strict;
use warnings;
use File::Temp qw(tempdir);
use Test::More;

my $source = $ENV{srcdir} // '.';
my $folder = tempdir(CLEANUP => 1);

# The name that the program prints, the compiler, the emulator, and the folder in arch/.
my @machines = (
    ['aarch64',     'aarch64-linux-gnu-gcc',     'qemu-aarch64-static', 'aarch64'],
    ['ppc64-elfv2', 'powerpc64le-linux-gnu-gcc', 'qemu-ppc64le-static', 'ppc64'],
    ['ppc64-elfv1', 'powerpc64-linux-gnu-gcc',   'qemu-ppc64-static',   'ppc64'],
);

sub is_installed {
    my ($program) = @_;
    return grep { -x "$_/$program" } split /:/, $ENV{PATH};
}

sub build {
    my ($compiler, $arch, $program) = @_;
    my @files = (
        "$source/tests/cross/execute.c", "$source/tests/cross/execute_context.c",
        "$source/tests/registers_$arch.S", "$source/tests/machine_registers_$arch.c",
        "$source/src/base/error.c",      "$source/src/base/utf8.c",
        "$source/src/frame/context.c",
        "$source/arch/arch.c",           "$source/arch/context.c",
        "$source/arch/relocation.c",     "$source/arch/words.c",
        (map { glob("$source/arch/*/$_.c") } qw(features inline_cache registers relocation target)),
        "$source/arch/$arch/context.S",  "$source/arch/$arch/host.c",
        "$source/arch/$arch/host_context.c"
    );
    return system($compiler, qw(-std=gnu11 -O2 -static -Wall -Wextra -Wpedantic -Wshadow
          -Wconversion -Werror -D_GNU_SOURCE),
        "-I$source/include", "-I$source/src", "-I$source", '-o', $program, @files) == 0;
}

# The program's last line counts its checks; 77 is for a system without writable code.
sub run {
    my ($name, @command) = @_;
    my $said = qx(@command 2>&1);
    skip "$name: $said", 2 if $? >> 8 == 77;
    is($?, 0, "$name ends well") or diag $said;
    like($said, qr/^\Q$name\E: [1-9]\d* checks$/m, "$name checks something");
}

sub try_machine {
    my ($name, $compiler, $emulator, $arch) = @_;
    SKIP: {
        for my $program (grep { $_ ne '' } $compiler, $emulator) {
            skip "$program is not installed", 3 unless is_installed($program);
        }
        my $program = "$folder/$name";
        ok(build($compiler, $arch, $program), "$name is built") or skip 'there is no program', 2;
        run($name, grep { $_ ne '' } $emulator, $program);
    }
}

my %host = (x86_64 => ['x86-64', 'x86_64'], aarch64 => ['aarch64', 'aarch64'],
    ppc64le => ['ppc64-elfv2', 'ppc64'], ppc64 => ['ppc64-elfv1', 'ppc64']);
chomp(my $machine = qx(uname -m));
my $own = $host{$machine};
try_machine($own->[0], 'cc', '', $own->[1]) if defined $own;
try_machine(@$_) for grep { !defined $own || $_->[0] ne $own->[0] } @machines;
done_testing;
