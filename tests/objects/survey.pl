# Finds out which types of relocations compilers write into sections that are loaded, and writes
# tests/objects/survey.txt, from which scripts/relocations makes doc/relocations.md:
#
#     TYPE: COMPILERS
#
# Compiles sample.c and sample.cc with every clang and with gcc, and sample.ll and random IR of llvm-stress with
# every llc, for all code and relocation models. What compilers wrote that are not installed, or not asked for,
# remains in the file. Prints the types that no table in arch/*/relocation.c has. Takes about a quarter of an hour
# for everything.
#
# usage: perl tests/objects/survey.pl [TARGET|VERSION]...    in the top folder; targets: x86_64, aarch64, powerpc64le,
#        powerpc64; versions: 14 to 22, gcc. By default all of both.
# SPDX-License-Identifier: MIT
use strict;
use warnings;
use File::Temp qw(tempdir);

my $here = 'tests/objects';
my $folder = tempdir(CLEANUP => 1);
my %asked = map { $_ => 1 } @ARGV;
my @targets = grep { !(grep { /^[a-z]\w+$/ && $_ ne 'gcc' } @ARGV) || $asked{$_} } qw(x86_64 aarch64 powerpc64le powerpc64);
my @versions = grep { !(grep { /^(?:\d+|gcc)$/ } @ARGV) || $asked{$_} } 14 .. 22, 'gcc';

my %models = (x86_64 => [qw(small kernel medium large)], aarch64 => [qw(tiny small large)],
    powerpc64le => [qw(small medium large)], powerpc64 => [qw(small medium large)]);
my %instructions = (x86_64 => ['', '-fno-plt'], aarch64 => ['-mno-outline-atomics', '-mbranch-protection=standard'],
    powerpc64le => ['-mcpu=power10', '-mcpu=power8'], powerpc64 => ['']);
my %architectures = (62 => 'x86_64', 183 => 'aarch64', 21 => 'ppc64');

sub slurp {
    my ($path) = @_;
    open my $file, '<:raw', $path or die "$path: $!\n";
    local $/;
    return <$file>;
}

# ---- Reading ----

my %names = map { my ($folder, $number, $name) = split; ("$folder $number" => $name) } qx(scripts/relocations --list);
my (%found, %unknown);

# Notes the types of an object's relocations of loaded sections.
sub note {
    my ($who, $how, $path) = @_;
    my $file = slurp($path);
    my $big = substr($file, 5, 1) eq "\2" ? '>' : '<';
    my ($machine, $table, $count) = unpack "x18 S$big x20 Q$big x12 S$big", $file;
    my @sections = map { [unpack "x4 L${big}Q${big}x8 Q${big}Q${big}L${big}L$big", substr $file, $table + 64 * $_, 64] } 0 .. $count - 1;
    for my $section (@sections) {
        my ($type, undef, $offset, $size, undef, $target) = @$section;
        next unless $type == 4 && $sections[$target][1] & 2;
        for (my $at = 0; $at < $size; $at += 24) {
            my $number = unpack("Q$big", substr $file, $offset + $at + 8, 8) & 0xFFFFFFFF;
            my $name = $names{"$architectures{$machine} $number"};
            $unknown{"$architectures{$machine} $number: $who: $how"} = 1 if !defined $name;
            $found{$name}{$who} = 1 if defined $name;
        }
    }
}

# Compiles, and notes what came out, if the compiler accepts the options.
sub try {
    my ($who, @command) = @_;
    my $object = "$folder/a.o";
    unlink $object;
    system("timeout 20 @command -o $object >/dev/null 2>&1");
    note($who, "@command", $object) if -s $object;
}

# ---- Compiling ----

my @more = ('-O1', '-O3', '-ffunction-sections -fdata-sections', '-fno-common', '-fcommon', '-pg', '-fstack-protector-all',
    '-DWITH_TLS', '-fpatchable-function-entry=4', '-fno-asynchronous-unwind-tables', '-fsanitize-coverage=trace-pc-guard',
    '-fprofile-generate', '-fxray-instrument -fxray-instruction-threshold=1', '-fexperimental-relative-c++-abi-vtables',
    '-fno-jump-tables', '-fbasic-block-sections=all');

sub compile_c {
    my ($who, $target, @compiler) = @_;
    for my $source ("$here/sample.c", "$here/sample.cc") {
        for my $model (@{$models{$target}}) {
            for my $position (qw(-fno-pic -fpie -fPIC)) {
                my @common = (@compiler, '-w -c', $source, "-mcmodel=$model", $position);
                for my $level (qw(-O0 -O2)) {
                    try($who, @common, $level, $_) for @{$instructions{$target}};
                }
                try($who, @common, '-O2', $_) for @more;
            }
        }
    }
}

sub compile_ir {
    my ($version, $target) = @_;
    # LLVM 14 reads typed pointers only, and LLVM 15 has no dso_local_equivalent in constants.
    my $text = slurp("$here/sample.ll");
    $text =~ s/dso_local_equivalent //g if $version < 16;
    open my $file, '>', "$folder/sample.ll" or die;
    print $file $text;
    close $file;
    for my $model (@{$models{$target}}) {
        for my $position (qw(static pic)) {
            my @llc = ("llc-$version", '-filetype=obj', "-mtriple=$target-linux-gnu", "-code-model=$model", "-relocation-model=$position");
            for my $more ('', '--fast-isel', '--global-isel --global-isel-abort=2', '--function-sections --data-sections', '--emulated-tls',
                $target eq 'powerpc64le' ? '--mcpu=pwr10' : ()) {
                try("llc-$version", @llc, "-O$_", $more, "$folder/sample.ll") for 0 .. 3;
            }
            for my $seed (1 .. 6) {
                system("llvm-stress-$version -seed=$seed -size=300 -o $folder/stress.ll 2>/dev/null") == 0 or last;
                try("stress-$version", @llc, '-O' . $seed % 4, "$folder/stress.ll");
            }
        }
    }
}

# ---- The file ----

sub add_known {
    for (split /\n/, slurp("$here/survey.txt")) {
        my ($name, $compilers) = /^(\S+): (.*)/ or next;
        $found{$name}{$_} = 1 for split ' ', $compilers;
    }
}

for my $target (@targets) {
    for my $version (@versions) {
        my @compiler = $version eq 'gcc' ? "$target-linux-gnu-gcc" : ("clang-$version", "--target=$target-linux-gnu");
        my ($program) = $compiler[0];
        print STDERR "$target $version\n";
        compile_c($version eq 'gcc' ? 'gcc' : "clang-$version", $target, @compiler) if grep { -x "$_/$program" } split /:/, $ENV{PATH};
        compile_ir($version, $target) if $version ne 'gcc' && grep { -x "$_/llc-$version" } split /:/, $ENV{PATH};
    }
}
add_known();
open my $file, '>', "$here/survey.txt" or die "$here/survey.txt: $!\n";
print $file map { "$_: @{[sort keys %{$found{$_}}]}\n" } sort keys %found;
close $file;
print "in no table: $_\n" for sort keys %unknown;
exit(%unknown ? 1 : 0);
