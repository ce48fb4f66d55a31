# Compares the tables of relocations in arch/*/relocation.c with doc/relocations.md, with the names that LLVM's
# headers and binutils' readelf give their numbers, and with what compilers were found to write.
# SPDX-License-Identifier: MIT
use strict;
use warnings;
use FindBin;
use lib $FindBin::Bin;
use CommandTest;
use Cwd qw(abs_path);
use Test::More;

skip_test 'the first build has compared them' if ($ENV{CAIRN_TEST_REPEATED} // '') ne '';
my $source = abs_path($ENV{srcdir} // '.');
my %entries;
for (qx(cd '$source' && perl scripts/relocations --list)) {
    my ($folder, $number, $name) = split;
    push @{$entries{$folder}}, [$number, $name];
}
my %machines = (x86_64 => 62, aarch64 => 183, ppc64 => 21);
my %headers = (x86_64 => 'x86_64', aarch64 => 'AArch64', ppc64 => 'PowerPC64');

# What other names there are for a number: the ABI has two for "none", and binutils some of its own.
my %aliases = map { $_ => 1 } qw(R_AARCH64_NULL R_AARCH64_TLS_DTPMOD R_AARCH64_TLS_DTPREL R_AARCH64_TLS_TPREL
    R_AARCH64_TLSLE_MOVW_TPREL_G2 R_PPC64_ADDR30);

is(qx(cd '$source' && perl scripts/relocations), slurp("$source/doc/relocations.md"),
    'doc/relocations.md is what scripts/relocations prints');

for my $folder (sort keys %machines) {
    my @numbers = map { $_->[0] } @{$entries{$folder}};
    is("@numbers", join(' ', sort { $a <=> $b } @numbers), "$folder: the table is sorted by number");
}

# ---- LLVM's names ----

for my $version (sort { $a <=> $b } keys %llvm) {
    for my $folder (sort keys %headers) {
        my $path = "$llvm{$version}/../include/llvm/BinaryFormat/ELFRelocs/$headers{$folder}.def";
        next if !-r $path;
        my $is_old = $version < 20;
        my %own = map { @$_ } @{$entries{$folder}};
        my @wrong;
        my $text = slurp($path);
        while ($text =~ /ELF_RELOC\((\w+),\s*(\w+)\)/g) {
            my ($name, $digits) = ($1, $2);
            my $number = $digits =~ /^0x/ ? hex $digits : $digits;
            next if $name =~ /_P32_/;           # of objects with 32 bits
            next if $name =~ /_AUTH_/ && $is_old; # which had other numbers then
            push @wrong, "$name $number, not " . ($own{$number} // 'in the table') if ($own{$number} // '') ne $name;
        }
        is(join(', ', @wrong), '', "$folder: names and numbers of LLVM $version");
    }
}

# ---- binutils' names ----

# An object with one relocation of each type.
sub write_object {
    my ($folder) = @_;
    my $big = $folder eq 'ppc64' ? '>' : '<';
    my $names = "\0.rela\0";
    my $relocations = join '', map { pack "Q${big}Q${big}q$big", 0, $_->[0], 0 } @{$entries{$folder}};
    my @sections = ('', '', "\0" x 24, "\0", $relocations, $names);
    my @headers = ([0, 0, 0], [0, 1, 0], [0, 2, 3], [0, 3, 0], [1, 4, 2], [0, 3, 0]);
    my ($bytes, $table) = ('', '');
    for my $i (0 .. $#sections) {
        my ($name, $type, $link) = @{$headers[$i]};
        $table .= pack "L${big}2 Q${big}4 L${big}2 Q${big}2", $name, $type, 0, 0, 64 + length $bytes, length $sections[$i], $link,
            $type == 4 || $type == 2 ? 1 : 0, 1, $type == 2 || $type == 4 ? 24 : 0;
        $bytes .= $sections[$i];
    }
    my $header = pack "A4 C3 x9 S${big}2 L$big Q${big}3 L$big S${big}6", "\x7FELF", 2, $big eq '>' ? 2 : 1, 1, 1, $machines{$folder}, 1,
        0, 0, 64 + length $bytes, 1, 64, 0, 0, 64, scalar @sections, $#sections;
    return spit("$folder.o", $header . $bytes . $table);
}

SKIP: {
    skip 'readelf is not installed', 3 unless find_in_path('readelf');
    for my $folder (sort keys %machines) {
        my $object = write_object($folder);
        my %own = map { @$_ } @{$entries{$folder}};
        my ($count, @wrong) = (0);
        for (qx(readelf -rW $object 2>&1)) {
            my ($info, $name) = /^[0-9a-f]{16}\s+([0-9a-f]{16})\s+(\S+)/ or next;
            $count++;
            push @wrong, "$name " . hex $info if $name !~ /^unrecognized/ && $name ne ($own{hex $info} // '') && !$aliases{$name};
        }
        is($count, scalar @{$entries{$folder}}, "$folder: readelf reads all relocations");
        is(join(', ', @wrong), '', "$folder: names and numbers of binutils");
    }
}

# ---- What compilers write ----

my %known = map { $_->[1] => 1 } map { @$_ } values %entries;
my @missing = grep { !$known{$_} } map { /^(R_\w+):/ ? $1 : () } split /\n/, slurp("$source/tests/objects/survey.txt");
is("@missing", '', 'all types that compilers were found to write are in the tables');

done_testing;
