# Tests what clang 16, 19, 21 and 22 write with -fexperimental-sanitize-metadata: programs that ask libcairn-sanmd
# about accesses between their own labels, and about libraries that they open and close; `cairn sanmd`, compared
# with the output of such programs and with nm; invalid files.
#
# Runs in the build folder, in the first build only, because all builds compile the same files.
#
# SPDX-License-Identifier: MIT
use strict;
use warnings;
use Cwd qw(abs_path);
use FindBin;
use JSON::PP;
use Test::More;
use lib $FindBin::Bin;
use CommandTest;

skip_test 'left to the first build'
    if ($ENV{CAIRN_TEST_RUNNER} // '') ne '' || defined $ENV{CAIRN_TEST_REPEATED};

my $source = abs_path($ENV{srcdir} // '.');
my $libraries = abs_path('.');
my $metadata = '-fexperimental-sanitize-metadata=covered,atomics,uar';

my @versions = grep { find_in_path("clang-$_") && find_in_path("clang++-$_") } 16, 19, 21, 22;
skip_test 'no clang 16, 19, 21 or 22' if !@versions;
skip_test 'no shared libcairn-sanmd' if !-f "$libraries/libcairn-sanmd.so";

# ---- Running programs ----

sub run { return run_with('/dev/null', @_) }

sub succeeds {
    my ($name, @command) = @_;
    my ($status, $output, $complaints) = run(@command);
    is $status, 0, $name or diag "@command\n$complaints";
    return $output;
}

# ---- Output of programs and of the command ----

sub hex_free {
    my ($list) = @_;
    return [sort { $a <=> $b } @$list];
}

# Lines "function ADDRESS SIZE FEATURES BYTES" and "atomic ADDRESS" follow each "file NAME".
sub parse_told {
    my ($text) = @_;
    my (%told, $file);
    for (split /\n/, $text) {
        if (/^file (.*)$/) {
            $file = $told{$1} = {functions => [], atomics => []};
        } elsif (/^function (.*)$/) {
            push @{$file->{functions}}, $1;
        } elsif (/^atomic (\d+)$/) {
            push @{$file->{atomics}}, $1;
        }
    }
    return \%told;
}

my %feature_bits = ('atomics' => 1, 'use-after-return' => 2, 'stack arguments' => 4);

sub parse_json {
    my ($text) = @_;
    my $list = eval { decode_json($text) };
    ok defined $list, 'gives JSON' or diag $@;
    return {functions => [], atomics => []} if !defined $list;
    my (@functions, @atomics);
    for my $function (@$list) {
        push @atomics, @{$function->{atomics}};
        next if !defined $function->{address};
        my $features = 0;
        $features |= $feature_bits{$_} // 8 for @{$function->{features}};
        push @functions,
            "$function->{address} $function->{size} $features $function->{stack_argument_bytes}";
    }
    return {functions => \@functions, atomics => \@atomics, list => $list};
}

sub expect_same {
    my ($path, $told, $name) = @_;
    my $listed = parse_json(succeeds("cairn sanmd $name", $cairn, 'sanmd', '--json', $path));
    is_deeply [sort @{$listed->{functions}}], [sort @{$told->{functions}}], 'the same functions';
    is_deeply hex_free($listed->{atomics}), hex_free($told->{atomics}), 'the same accesses';
}

# ---- Programs that read their own metadata ----

sub compile {
    my ($version, $output, @rest) = @_;
    my $plus = (grep { $_ eq 'c++' } @rest) ? '++' : '';
    return succeeds("clang$plus-$version @rest", "clang$plus-$version", '-w', '-D_GNU_SOURCE',
        "-I$source/include", $metadata, '-o', "$folder/$output", @rest);
}

my @link = ("-L$libraries", "-Wl,-rpath,$libraries", '-lcairn-sanmd', '-lpthread', '-ldl', '-rdynamic');

# Compiles a program and a library, with one clang for each and options for both.
sub try_program {
    my ($name, $version, $library_version, $milliseconds, @options) = @_;
    subtest $name => sub {
        my @parts = map { "$source/tests/sanmd/$_" } 'program.c', 'sites.c';
        compile($version, 'program', @options, @parts, '-x', 'none', @link);
        compile($library_version, 'library.so', @options, '-fPIC', '-shared', $parts[1]);
        return if !-x "$folder/program" || !-f "$folder/library.so";
        my $text = succeeds('the program finds what it should', "$folder/program", $milliseconds,
            "$folder/library.so");
        my $told = parse_told($text);
        is_deeply [sort keys %$told], [sort "$folder/library.so", "$folder/program"], 'two files';
        for my $file (defined $cairn ? sort keys %$told : ()) {
            cmp_ok @{$told->{$file}{atomics}}, '>', 3, 'there are accesses';
            expect_same($file, $told->{$file}, $file);
        }
        unlink "$folder/program", "$folder/library.so";
    };
}

for my $version (@versions) {
    my $other = $versions[0] == $version ? $versions[-1] : $versions[0];
    try_program("C, library of clang $other", $version, $other, 200, '-O2');
    try_program('C++, not optimised', $version, $version, 0, '-x', 'c++', '-O0')
        if $version == $versions[-1];
    try_program('C++, sections of functions', $version, $other, 0, '-x', 'c++', '-O2',
        '-ffunction-sections', '-Wl,--gc-sections');
    try_program('wide addresses', $version, $version, 0, '-O2', '-mcmodel=medium');
}

subtest 'a static program' => sub {
    plan skip_all => 'no libcairn-sanmd.a' if !-f "$libraries/libcairn-sanmd.a";
    compile($versions[-1], 'static', '-O2', '-static',
        (map { "$source/tests/sanmd/$_" } 'program.c', 'sites.c'),
        "$libraries/libcairn-sanmd.a");
    my $told = parse_told(succeeds('finds what it should', "$folder/static", 0));
    expect_same("$folder/static", $told->{"$folder/static"}, 'static') if defined $cairn;
};

# The references to the library are weak.
subtest 'without the library' => sub {
    my $main = spit('alone.c',
        'int f(int *p) { return __atomic_load_n(p, 0); } int main(void) { int x = 0; return f(&x); }');
    for my $version (@versions) {
        compile($version, 'alone', $main);
        succeeds('runs', "$folder/alone");
        my @keep = ("-L$libraries", "-Wl,-rpath,$libraries", '-Wl,--no-as-needed', '-lcairn-sanmd');
        compile($version, 'keeping', $main, @keep);
        like succeeds('a program that does not ask', 'readelf', '-dW', "$folder/keeping"),
            qr/NEEDED.*libcairn-sanmd/, 'keeps it as the header says';
    }
};

# ---- Objects of all architectures, compared with nm ----

if (!defined $cairn) {
    done_testing;
    exit;
}

# Returns functions by name: [address, size].
sub symbols_of {
    my ($path) = @_;
    my %symbols;
    for (split /\n/, succeeds('nm', 'nm', '-S', $path)) {
        $symbols{$3} = [hex $1, hex $2] if /^(\w+) (\w+) [TD] (\w+)$/;
    }
    return \%symbols;
}

# LLVM loses accesses with clang 16 on some architectures, and where it prints a message about it.
sub expect_object {
    my ($path, $has_all, $has_entries) = @_;
    my $symbols = symbols_of($path);
    my ($status, $json, $complaints) = run($cairn, 'sanmd', '--json', $path);
    is $status, 0, 'cairn sanmd' or diag $complaints;
    my $list = parse_json($json)->{list} // [];
    is_deeply [sort map { $_->{symbol} // '' } @$list],
        [qw(atomic_add atomic_load plain_add plain_arguments)], 'all that is covered';
    for my $function (@$list) {
        my ($address, $size) = @{$symbols->{$function->{symbol} // ''} // [0, 0]};
        is $function->{size}, $size, "size of $function->{symbol}";
        is $function->{address}, $address, 'address' if $has_entries;
        my $count = @{$function->{atomics}};
        my $is_atomic = $function->{symbol} =~ /^atomic/;
        ok $is_atomic ? $count > 0 || !$has_all : $count == 0, 'accesses';
        ok((grep { $_ >= $function->{address} && $_ < $function->{address} + $size }
                    @{$function->{atomics}}) == $count, 'inside of it');
    }
}

for my $version (@versions) {
    for my $machine (qw(x86_64 aarch64 powerpc64le powerpc64 s390x riscv64)) {
        subtest "$machine, clang $version" => sub {
            my @options = ("--target=$machine-linux-gnu", '-O1', '-c', '-ffreestanding');
            my $path = "$folder/object.o";
            my (undef, undef, $complaints) = run("clang-$version", @options, '-w', $metadata,
                "$source/tests/sanmd/plain.c", '-o', $path);
            plan skip_all => 'clang cannot compile for it' if !-s $path;
            expect_object($path, $machine eq 'x86_64' || $version > 16 && $complaints !~ /loosing/, $machine ne 'powerpc64');
            unlink $path;
        };
    }
}

# ---- Invalid files ----

my $object = "$folder/plain.o";
compile($versions[-1], 'plain.o', '-c', '-O1', "$source/tests/sanmd/plain.c");
my ($section) = succeeds('sections', 'readelf', '-SW', $object) =~ /(sanmd_covered\d*) /;

# Returns the object with another byte at a place in its section.
sub with_byte {
    my ($place, $byte) = @_;
    succeeds('objcopy', 'objcopy', '--dump-section', "$section=$folder/section", $object,
        "$folder/unused.o");
    my $bytes = slurp($object);
    my $contents = slurp("$folder/section");
    my $begin = index $bytes, $contents;
    cmp_ok $begin, '>', 0, 'the section is in the file' or return $object;
    substr($bytes, $begin + ($place < 0 ? length($contents) + $place : $place), 1) = chr $byte;
    return spit('changed.o', $bytes);
}

subtest 'an unknown feature' => sub {
    # In the second entry, after its address of 4 bytes and its size of 4 bytes, or 1 byte as ULEB128.
    my $place = $section eq 'sanmd_covered' ? 12 + 8 : 6 + 5;
    my ($status, $output, $complaints) = run($cairn, 'sanmd', with_byte($place, 8));
    is $status, 1, 'exit status 1';
    like $complaints, qr/^cairn: \S+changed\.o: $section, byte \d+: the covered function 0x\w+ at byte \d+: its features are 0x8, and version \d has none but 0x\d\n$/, 'says which';
    like $output, qr/^atomic_add at /, 'what stands before it is given';
    unlike $output, qr/plain_add at/, 'the entries after it are not printed';
};

subtest 'a number that continues after the end' => sub {
    plan skip_all => 'all numbers have 4 bytes' if $section eq 'sanmd_covered';
    my ($status, $output, $complaints) = run($cairn, 'sanmd', with_byte(-1, 0x80));
    is $status, 1, 'exit status 1';
    like $complaints, qr/$section, byte \d+: .*beyond the section's end\n$/, 'says what was expected';
    like $output, qr/^plain_add at /m, 'what stands before it is given';
};

subtest 'an unknown version' => sub {
    succeeds('objcopy', 'objcopy', '--rename-section', "$section=sanmd_covered7", $object,
        "$folder/changed.o");
    my ($status, undef, $complaints) = run($cairn, 'sanmd', "$folder/changed.o");
    is $status, 1, 'exit status 1';
    like $complaints, qr/sanmd_covered7, byte 0: the metadata has version 7 with flags 0x0, and Cairn knows 1 and 2 /, 'says which';
};

subtest 'an archive' => sub {
    my $other = spit('other.c', 'int other(int *p) { return __atomic_load_n(p, 0); }');
    compile($versions[0], 'other.o', '-c', '-O1', $other);
    succeeds('ar', 'ar', 'rc', "$folder/both.a", $object, "$folder/other.o");
    my $list = parse_json(succeeds('json', $cairn, 'sanmd', '--json', "$folder/both.a"))->{list} // [];
    is_deeply [map { "$_->{file}: $_->{symbol}" } @$list], [
        (map { "$folder/both.a(plain.o): $_" } qw(atomic_add atomic_load plain_add plain_arguments)),
        "$folder/both.a(other.o): other"
        ],
        'functions of both members';
    like succeeds('text', $cairn, 'sanmd', "$folder/both.a"),
        qr/^\S+both\.a\(plain\.o\):\natomic_add at .*^\S+both\.a\(other\.o\):\nother at /ms, 'under their names';
};

subtest 'nothing to print' => sub {
    my $path = spit('nothing.c', "int x;\n");
    system("clang-$versions[-1]", '-c', $path, '-o', "$folder/nothing.o");
    my ($status, undef, $complaints) = run($cairn, 'sanmd', "$folder/nothing.o");
    is $status, 1, 'exit status 1';
    like $complaints, qr/^cairn: \S+nothing\.o: there are no sections sanmd_\*: /, 'says why';
};

subtest 'usage' => sub {
    my ($status, $output, $complaints) = run($cairn, 'sanmd');
    is $status, 2, 'no file';
    like $complaints, qr/^cairn: sanmd: no file is given; see 'cairn sanmd --help'$/, 'says so';
    like succeeds('help', $cairn, 'sanmd', '--help'), qr/^usage: cairn sanmd/, 'is there';
};

# The command does not crash or hang, and prints an error message if it fails.
subtest 'bytes changed at random' => sub {
    my $bytes = slurp($object);
    for my $round (1 .. 60) {
        my $changed = $bytes;
        substr($changed, int rand length $changed, 1) = chr int rand 256 for 1 .. 1 + rand 20;
        my ($status, undef, $complaints) = run($cairn, 'sanmd', spit('changed.o', $changed));
        next if $status eq "0" || $status eq "1" && $complaints =~ /^cairn: /;
        fail "round $round: status $status" or diag $complaints;
    }
    pass 'none was fatal';
};

done_testing;
