#!/usr/bin/perl
# Types doc/tutorial.md and the commands of README.md as a reader does: each block of code goes to the file that its
# first line names ("/* patch.c */", or "/* patch.c, continued */" for the end of it), and each block of commands is
# executed when it is read, with the files as they are then, and must print what the document shows. In the documents,
# "…" stands for any text in a line, and a line "…" for any lines. Commands whose programs (gdb, perf, clang) are missing or
# cannot work here are skipped.
#
# Runs in the build folder, with what is built there. With CAIRN_INSTALLED, it takes the libraries that are installed in
# this folder, and `cairn` from PATH.
# SPDX-License-Identifier: MIT
use strict;
use warnings;
use utf8;
use Cwd qw(abs_path);
use FindBin;
use Test::More;
use lib $FindBin::Bin;
use CommandTest;

skip_test 'the programs are for this machine' if ($ENV{CAIRN_TEST_RUNNER} // '') ne '';
skip_test 'Cairn is built without LLVM' if !-e 'cairn-llvm.pc';
skip_test 'Cairn is built without libffi' if slurp('cairn.pc') !~ /libffi/;
skip_test 'pkg-config is not installed' if !defined find_in_path('pkg-config');

my $source = abs_path($ENV{srcdir} // '.');
my $sanitizers = join ' ', ($ENV{BUILD_CFLAGS} // '') =~ /(-f(?:no-)?sanitize\S*)/g;

# ---- What the reader has installed ----

mkdir "$folder/$_" or die for qw(bin lib pkgconfig readme tutorial);

# What `make install` would write: files for pkg-config, and the libraries.
sub install_built {
    for my $path (glob '*.pc') {
        my $text = slurp($path);
        $text =~ s{^libdir=.*}{libdir=$folder/lib}m;
        $text =~ s{^includedir=.*}{includedir=$source/include}m;
        $text =~ s{^examplesdir=.*}{examplesdir=$source/examples}m;
        spit("pkgconfig/$path", $text);
    }
    for my $from (abs_path('.'), grep { $_ ne '' } $ENV{BUILT_LIBCAIRN} // '') {
        symlink $_, "$folder/lib/" . s{.*/}{}r for glob "$from/libcairn*.so*";
    }
    symlink $cairn, "$folder/bin/cairn" if defined $cairn;
    return ("$folder/lib", "$folder/pkgconfig");
}

# The reader's compiler, with warnings.
sub write_compiler {
    my ($compiler, @options) = split ' ', $ENV{CC} // 'cc';
    my $path = find_in_path($compiler) // $compiler; # the reader's `cc` is found first later
    spit('bin/cc', qq{#!/bin/sh\nexec $path @options -Wall -Wextra -Werror $sanitizers "\$@"\n});
    chmod 0755, "$folder/bin/cc" or die;
}

my $installed = $ENV{CAIRN_INSTALLED};
my ($libraries, $pkgconfig) = defined $installed ? ($installed, "$installed/pkgconfig") : install_built();
write_compiler();
$ENV{PATH} = "$folder/bin:$ENV{PATH}";
$ENV{LD_LIBRARY_PATH} = join ':', $libraries, grep { defined } $ENV{LD_LIBRARY_PATH};
$ENV{PKG_CONFIG_PATH} = join ':', $pkgconfig, grep { defined } $ENV{PKG_CONFIG_PATH};

# ---- Commands that cannot work everywhere ----

sub output_of {
    my ($command) = @_;
    my $text = `cd $folder && { timeout 60 sh -c '$command'; } 2>&1 </dev/null`;
    return ($? >> 8, $text);
}

chomp(my $machine = `uname -m`);
my %reason_of = (
    gdb => sub {
        return 'sanitizers do not work under a debugger' if $sanitizers ne '';
        my ($status, $text) = output_of('gdb -nx -batch -ex run --args /bin/true');
        return $status == 0 && $text =~ /exited normally/ ? undef : 'gdb cannot run programs here';
    },
    perf => sub {
        my ($status, $text) = output_of('perf record -q -e cycles:u -o probe seq 1000000 >numbers && perf script -F ip -i probe');
        return $status == 0 && $text =~ /\A(?:\s*[0-9a-f]+\n)+\z/ ? undef : 'perf cannot count cycles here';
    },
);
my %known;
my $varies = qr/cairn (?:stackmap|profile) /;

# Returns why a command cannot be executed, or undef.
sub why_not {
    my ($command) = @_;
    return 'the document shows x86-64' if $command =~ $varies && $machine ne 'x86_64';
    for my $program (grep { $command =~ m{(?:^|\| |/)\Q$_\E } } 'cairn', 'gdb', 'perf', 'clang-19') {
        $known{$program} //= defined find_in_path($program) ? [$reason_of{$program} ? $reason_of{$program}->() : undef]
            : ["there is no $program"];
        return $known{$program}[0] if defined $known{$program}[0];
    }
    return undef;
}

# ---- Reading documents ----

# Returns the fenced blocks: [language, line number, text].
sub blocks_of {
    my ($path) = @_;
    my ($number, @blocks, $block) = (0);
    for my $line (split /^/, slurp($path)) {
        $number++;
        if (defined $block) {
            $block = undef, next if $line eq "```\n";
            $block->[2] .= $line;
        } elsif ($line =~ /^```(\w*)$/) {
            push @blocks, $block = [$1, $number + 1, ''];
        }
    }
    return @blocks;
}

# Types a block of code. Fails if its first line does not name its file, or continues a file that does not exist.
sub type_block {
    my ($directory, $where, $text) = @_;
    my ($name, $continues) = $text =~ m{\A(?:/\* |// )([\w.]+)(, continued)?(?: \*/)?\n};
    ok defined $name && (!!$continues eq !!-e "$directory/$name"), "$where: a block for " . ($name // 'no file') or return;
    open my $out, '>>:raw', "$directory/$name" or die;
    print $out $text;
    close $out;
}

my $number = qr/\b(?:0x[0-9a-f]+|\d+(?:\.\d+)?)\b/;
my $register = qr/\br(?:[a-d]x|[sd]i|bp|\d+)\b/;

# The pattern of what a command prints, as described at the top. Of commands that print what depends on the compiler and on
# the time, numbers, registers and the width of columns may be others.
sub pattern_of {
    my ($expected, $varies) = @_;
    utf8::decode($expected);
    my $any = $varies ? qr/(…|$number|$register| +)/ : qr/(…)/;
    my $pattern = '';
    for my $line (split /^/, $expected) {
        $pattern .= '(?:.*\n)*?', next if $line eq "…\n";
        $pattern .= $_ eq '…' ? '.*' : !/^$any$/ ? quotemeta : /^ / ? ' +' : /^r/ ? $register : $number for split /$any/, $line;
    }
    return qr/\A$pattern\z/;
}

# Executes the commands of a block. After one that cannot be executed here, the others are skipped, too.
sub execute_block {
    my ($directory, $where, $text) = @_;
    my $reason;
    for my $step (split /^(?=\$ )/m, $text) {
        my ($command, $expected) = $step =~ /\A\$ ([^\n]*)\n(.*)\z/s or die "$where: not a command: $step";
      SKIP: {
            $reason //= why_not($command);
            skip "$command: $reason", 1 if defined $reason;
            spit('command', "cd $directory\n$command\n");
            my $status = system("timeout -k 5 120 sh $folder/command >$folder/printed 2>&1 </dev/null") >> 8;
            utf8::decode(my $printed = slurp("$folder/printed"));
            like $printed, pattern_of($expected, $command =~ $varies), "$where: $command";
            is $status, 0, "$where: exit status of $command";
        }
    }
}

# Reads a document as a reader who is in this folder. Returns the number of blocks that were executed.
sub follow {
    my ($document, $directory) = @_;
    my $executed = 0;
    for my $block (blocks_of("$source/$document")) {
        my ($language, $line, $text) = @$block;
        if ($language eq 'console') {
            execute_block($directory, "$document:$line", $text);
            $executed++;
        } elsif ($document =~ /tutorial/) {
            type_block($directory, "$document:$line", $text);
        }
    }
    return $executed;
}

cmp_ok follow('doc/tutorial.md', "$folder/tutorial"), '>', 10, 'the tutorial has commands';

# The README's reader is in the tree, has built the command as it says, and has the tutorial's object. The code in the
# README is not typed: scripts/check-documents finds it in the examples.
symlink "$source/$_", "$folder/readme/$_" for qw(examples tests);
mkdir "$folder/readme/my-build" or die;
symlink find_in_path('cairn'), "$folder/readme/my-build/cairn" if defined find_in_path('cairn');
rename "$folder/tutorial/area.o", "$folder/readme/area.o";
cmp_ok follow('README.md', "$folder/readme"), '>', 2, 'the README has commands';

done_testing();
