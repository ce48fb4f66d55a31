# Compares the rows that Cairn reads from .eh_frame with those of readelf and llvm-dwarfdump, for code that LLVM
# compiles for every architecture, and for this system's libraries, which GCC has compiled.
#
# Runs in the build folder. Tests whose LLVM, linkers or libraries are missing are skipped.
#
# SPDX-License-Identifier: MIT
use strict;
use warnings;
use File::Temp qw(tempdir);
use FindBin;
use Test::More;
use lib $FindBin::Bin;
use CommandTest qw(%llvm llvm_version skip_test);

skip_test 'reads the same bytes on every host' if ($ENV{CAIRN_TEST_RUNNER} // '') ne '';
my $printer = './tests/print_call_frames';
skip_test 'no libelf, or no Check' if !-x $printer;

my $samples = ($ENV{srcdir} // '.') . '/tests/samples';
my $folder = tempdir(CLEANUP => 1);
$ENV{LC_ALL} = 'C';

sub in_path {
    my ($program) = @_;
    my ($found) = grep { -x } map { "$_/$program" } split /:/, $ENV{PATH};
    return $found;
}

my $readelf = in_path('readelf');
skip_test 'no readelf' if !defined $readelf;

# ---- Rows as text, sorted by address ----
#
# A function is its range, and for each address at which rules change a text "cfa=7+8 16=[-8]".
# Rules that do not locate a register are omitted, because the readers print them differently.

sub output_of {
    my @command = @_;
    open my $pipe, '-|', @command or die "$command[0]: $!";
    my @lines = <$pipe>;
    close $pipe;
    chomp @lines;
    return ($? >> 8, @lines);
}

# Also where return addresses are signed: the last address of each row, by its first.
sub rows_of_cairn {
    my ($path) = @_;
    my ($status, @lines) = output_of($printer, $path);
    is $status, 0, "print_call_frames $path" or return;
    my (%functions, %signed, $rows);
    for (@lines) {
        if (/^function (\w+) (\w+)$/) {
            $rows = $functions{"$1-$2"} = {};
        } elsif (/^(\w+): (.*)$/) {
            my ($address, $text) = ($1, $2);
            $signed{$address} = 1 if $text =~ s/ signed(-pc)?\b//;
            $text =~ s/ arguments=\d+//;
            $text =~ s/ \d+=undefined//g;
            $rows->{$address} = $text;
        } else {
            $rows->{refused} = $_;
        }
    }
    return (\%functions, \%signed);
}

my %x86 = (rax => 0, rdx => 1, rcx => 2, rbx => 3, rsi => 4, rdi => 5, rbp => 6, rsp => 7);

sub number_of {
    my ($name, $return_register) = @_;
    return $x86{$name} if exists $x86{$name};
    return $return_register if $name eq 'ra';
    return 31 if $name eq 'sp';
    return $1 if $name =~ /^[rx](\d+)$/;
    return 64 + $1 if $name =~ /^v(\d+)$/;
    die "readelf names a register '$name'";
}

sub rule_of {
    my ($cell, $return_register) = @_;
    return "[$1]" if $cell =~ /^c([-+]\d+)$/;
    return $1 if $cell =~ /^v([-+]\d+)$/;
    return 'same' if $cell eq 's';
    return '[expression]' if $cell eq 'exp';
    return 'expression' if $cell eq 'vexp';
    return 'r' . number_of($cell, $return_register);
}

sub row_of_readelf {
    my ($columns, $return_register, @cells) = @_;
    my $cfa = shift @cells;
    if ($cfa eq 'exp') {
        $cfa = 'expression';
    } else {
        $cfa =~ /^(\w+)([-+]\d+)$/ or die "readelf says that the CFA is '$cfa'";
        $cfa = number_of($1, $return_register) . $2;
    }
    my %rules;
    for my $i (0 .. $#$columns) {
        next if $cells[$i] eq 'u';
        $rules{number_of($columns->[$i], $return_register)} = rule_of($cells[$i], $return_register);
    }
    return join ' ', "cfa=$cfa", map { "$_=$rules{$_}" } sort { $a <=> $b } keys %rules;
}

sub rows_of_readelf {
    my ($path) = @_;
    my ($status, @lines) = output_of($readelf, '--debug-dump=frames-interp', $path);
    my (%functions, %commons, $common, $rows, $columns, $end, $is_eh_frame);
    for (@lines) {
        s/\br(\d+) \(\w+\)/r$1/g; # a register in another one: by number, then by name
        if (/^Contents of the (\S+) section/) {
            $is_eh_frame = $1 eq '.eh_frame';
        } elsif (!$is_eh_frame) {
            next;
        } elsif (/^(\w+) \w+ \w+ CIE .* ra=(\d+)$/) {
            $common = $commons{$1} = {return_register => $2, row => undef};
            ($rows, $columns) = (undef, []);
        } elsif (/^\w+ \w+ \w+ FDE cie=(\w+) pc=(\w+)\.\.(\w+)$/) {
            $common = $commons{$1};
            my $begin = sprintf '%x', hex $2;
            $end = sprintf '%x', hex $3;
            $rows = $functions{"$begin-$end"} = {$begin => $common->{row}};
            $columns = [];
        } elsif (/^\s+LOC\s+CFA\s*(.*)$/) {
            $columns = [split ' ', $1];
        } elsif (/^(\w+) (\S+)\s*(.*?)\s*$/ && defined $common && length $1 == 16) {
            my $row = row_of_readelf($columns, $common->{return_register}, $2, split ' ', $3);
            my $address = sprintf '%x', hex $1;
            $common->{row} = $row if !defined $rows;
            $rows->{$address} = $row if defined $rows && $address ne $end;
        }
    }
    return \%functions;
}

# Where return addresses are signed.
sub signed_of_dwarfdump {
    my ($dwarfdump, $path) = @_;
    my ($status, @lines) = output_of($dwarfdump, '--eh-frame', $path);
    return {map { /^  0x(\w+): CFA=.*\breg34=1/ ? ($1 => 1) : () } @lines};
}

# Compares all functions with all rows. Returns the number of rows.
sub compare {
    my ($path, $name) = @_;
    my ($found, $signed) = rows_of_cairn($path);
    my $expected = rows_of_readelf($path);
    my ($rows, $different) = (0, 0);
    is join(' ', sort keys %$found), join(' ', sort keys %$expected), "$name: functions";
    for my $function (sort keys %$expected) {
        my %own = %{$found->{$function} // {}};
        my %other = %{$expected->{$function}};
        for (sort keys %{{%own, %other}}) {
            $rows++;
            next if ($own{$_} // '') eq ($other{$_} // '');
            diag "$name, $function, at $_: '", $own{$_} // '', "', readelf: '", $other{$_} // '', "'"
                if $different++ < 10;
        }
    }
    is $different, 0, "$name: $rows rows";
    return ($rows, $signed);
}

# ---- Code that LLVM compiles ----

my @versions = grep { -x "$llvm{$_}/llc" && -x "$llvm{$_}/llvm-dwarfdump" } sort { $a <=> $b } keys %llvm;
# Older versions do not detect the end of signing.
my $reader = llvm_version('llvm-dwarfdump', 19);

my @lld = ('ld.lld', map { "ld.lld-$_" } sort { $b <=> $a } keys %llvm);
my %linkers = (
    'x86_64-linux-gnu' => ['x86_64-linux-gnu-ld', @lld],
    'aarch64-linux-gnu' => ['aarch64-linux-gnu-ld', @lld],
    'powerpc64le-linux-gnu' => ['powerpc64le-linux-gnu-ld', @lld],
    'powerpc64-linux-gnu' => [qw(powerpc64-linux-gnu-ld)],
);

# Returns a sample with more attributes for all functions.
sub sample_with {
    my ($name, $attributes) = @_;
    open my $file, '<', "$samples/$name" or die "$name: $!";
    my $text = join '', <$file>;
    $text =~ s/(\{ uwtable)/$1 $attributes/g;
    open my $out, '>', "$folder/frames.ll" or die "frames.ll: $!";
    print $out $text;
    close $out;
    return "$folder/frames.ll";
}

# Returns a shared library, or undef if it cannot be built here.
sub compile {
    my ($version, $triple, $sample, $attributes, @options) = @_;
    my ($linker) = grep { defined } map { in_path($_) } @{$linkers{$triple}};
    return if !defined $linker;
    my $object = "$folder/frames.o";
    my @opaque = $version < 15 ? '-opaque-pointers' : ();
    my @llc = ("$llvm{$version}/llc", @opaque, "-mtriple=$triple", '-relocation-model=pic',
        '-filetype=obj', @options, sample_with($sample, $attributes), '-o', $object);
    is system(@llc), 0, "llc-$version -mtriple=$triple $attributes @options" or return;
    is system($linker, '-shared', '-z', 'notext', $object, '-o', "$folder/frames.so"), 0, "$linker"
        or return;
    return "$folder/frames.so";
}

my @all_triples = sort keys %linkers;
my @signs = (
    ['"sign-return-address"="all"'],
    ['"sign-return-address"="non-leaf" "sign-return-address-key"="b_key"'],
    ['"sign-return-address"="all"', '-mattr=+v8.3a'],
);

for my $version (@versions) {
    for my $triple (@all_triples) {
        subtest "LLVM $version, $triple" => sub {
            my $count = 0;
            for my $pointer ('', '"frame-pointer"="all"') {
                for my $level (0, 2) {
                    my $path = compile($version, $triple, 'frames.ll', $pointer, "-O$level") // next;
                    my ($rows) = compare($path, "-O$level $pointer");
                    $count += $rows;
                }
            }
            plan skip_all => 'no linker' if $count == 0;
            cmp_ok $count, '>', 150, 'rows';
        };
    }
    subtest "LLVM $version, AArch64 alone" => sub {
        my $path = compile($version, 'aarch64-linux-gnu', 'frames-aarch64.ll', '', '-O2')
            // plan skip_all => 'no linker';
        my ($rows) = compare($path, '-O2');
        cmp_ok $rows, '>=', 4, 'rows';
    };
    subtest "LLVM $version, signed return addresses" => sub {
        my $count = 0;
        for my $attributes (@signs) {
            for my $level (0, 2) {
                my ($text, @options) = @$attributes;
                my $path = compile($version, 'aarch64-linux-gnu', 'frames.ll', $text, "-O$level", @options)
                    // next;
                my ($rows, $signed) = compare($path, "-O$level $text @options");
                $count += keys %$signed;
                next if !defined $reader;
                my $expected = signed_of_dwarfdump("$llvm{$reader}/llvm-dwarfdump", $path);
                is_deeply $signed, $expected, "-O$level $text @options: signed rows";
            }
        }
        plan skip_all => 'no linker' if $count == 0;
        cmp_ok $count, '>', 50, 'signed rows';
    };
}

# ---- Code that GCC has compiled ----

# The libraries of this process, and those of other architectures for their cross compilers.
sub libraries {
    my %seen;
    if (open my $maps, '<', '/proc/self/maps') {
        m{ (/\S*\.so[.\d]*)$} && $seen{$1}++ for <$maps>;
    }
    my @others = map { glob "/usr/$_-linux-gnu/lib/lib{c.so.6,m.so.6,gcc_s.so.1,stdc++.so.6}" }
        qw(aarch64 powerpc64le powerpc64);
    return (sort(keys %seen), grep { -f } @others);
}

for my $path (libraries()) {
    subtest $path => sub { compare($path, 'rows') };
}

done_testing;
