# Compares what cairn lookup, pcsections and faultmap print for files that clang and llc have compiled with
# nm, llvm-symbolizer, llvm-readobj and llvm-objdump, and with the random IR of the files.
#
# Runs in the build folder. Tests whose LLVM or linker is missing are skipped. Repeated builds
# (CAIRN_TEST_REPEATED) test few files.
#
# SPDX-License-Identifier: MIT
use strict;
use warnings;
no warnings qw(portable); # numbers of 64 bits
use FindBin;
use IPC::Open2;
use JSON::PP;
use Test::More;
use lib $FindBin::Bin;
use CommandTest;

skip_test 'reads the same bytes on every host' if ($ENV{CAIRN_TEST_RUNNER} // '') ne '';

my $is_first_build = ($ENV{CAIRN_TEST_REPEATED} // '') eq '';

sub tool {
    my ($name, $version) = @_;
    my $path = "$llvm{$version}/$name";
    return -x $path ? $path : undef;
}

sub versions_with {
    my ($name, @wanted) = @_;
    my @found = grep { exists $llvm{$_} && defined tool($name, $_) } @wanted;
    return $is_first_build || @found == 0 ? @found : $found[-1];
}

my $newest = llvm_version('llc', 16);
my $linker_version = llvm_version('ld.lld');
skip_test 'no LLVM 16 or later' if !defined $newest;
skip_test 'no ld.lld' if !defined $linker_version;
my $linker = "$llvm{$linker_version}/ld.lld";

# ---- Running programs ----

sub run { return run_with("$folder/input", @_) }

spit('input', '');

sub output_of {
    my ($status, $out, $err) = run(@_);
    is $status, 0, "$_[0] runs" or diag $err;
    return $out;
}

sub run_with_input {
    my ($input, @words) = @_;
    spit('input', $input);
    my @result = run(@words);
    spit('input', '');
    return @result;
}

sub hexadecimal { return sprintf '0x%x', $_[0] }

# ---- Files ----

# Returns a C file of functions with loops, branches and atomic accesses in random order.
sub write_source {
    my $text = "_Atomic long counter;\nextern long outside(long);\n";
    for my $i (1 .. 25) {
        $text .= "__attribute__((noinline)) long f$i(long n) {\n    long s = n;\n";
        for my $j (1 .. 2 + int rand 4) {
            my $number = 2 + int rand 30;
            $text .= (
                "    for (long i = 0; i < n; i++) { if (i % $number == 0) s += i; else s ^= n; }\n",
                "    switch (n) { case 1: s *= $number; break; case 2: s -= 7; break;\n"
                    . "    case 3: return s; case 4: s ^= 99; break; default: s += $number; }\n",
                "    counter += s;\n",
                "    if (s > $number) s += outside(s);\n",
                $i > 1 ? '    s += f' . (1 + int rand($i - 1)) . "(s);\n" : '',
                "    if (s == $number) return outside(n);\n",
            )[rand 6];
        }
        $text .= "    return s;\n}\n";
    }
    return spit('corpus.c', $text);
}

my $source = write_source();
my %map_option = (14 => '-fbasic-block-sections=labels', 16 => '-fbasic-block-sections=labels',
    map { $_ => '-fbasic-block-address-map' } 19, 21, 22);

sub compile_source {
    my ($version, @options) = @_;
    my $object = "$folder/corpus-$version" . join('', map { s/\W//gr } @options) . '.o';
    push @options, '-fexperimental-sanitize-metadata=covered,atomics,uar' if $version >= 16;
    output_of(tool('clang', $version), '--target=x86_64-linux-gnu', '-ffreestanding', '-fPIC',
        $map_option{$version}, @options, '-c', $source, '-o', $object);
    return $object;
}

sub link_file {
    my ($name, @objects) = @_;
    output_of($linker, '-shared', '-z', 'notext', @objects, '-o', "$folder/$name");
    return "$folder/$name";
}

# Links at a fixed address, because llvm-objdump does not apply relocations.
sub link_program {
    my ($name, @objects) = @_;
    output_of($linker, '-e', '0', @objects, '-o', "$folder/$name");
    return "$folder/$name";
}

# ---- Output of LLVM's tools ----

# Returns functions with name, address, size and section. Each file is read once.
my %functions_of;

sub functions_of {
    my ($path) = @_;
    $functions_of{$path} //= [read_functions($path)];
    return @{$functions_of{$path}};
}

sub read_functions {
    my ($path) = @_;
    my @functions;
    for (split /\n/, output_of(tool('llvm-nm', $newest), '-S', '--format=sysv', $path)) {
        my ($name, $address, $class, $type, $size, $line, $section) = map { s/^\s+|\s+$//gr } split /\|/;
        next if !defined $type || $type ne 'FUNC' || $class =~ /^[Uw]$/ || $address !~ /^[0-9a-f]+$/;
        push @functions, {name => $name, address => hex $address, size => hex $size,
            section => $section};
    }
    return sort { $a->{address} <=> $b->{address} } @functions;
}

# Returns the blocks of each function by its name, with addresses.
sub blocks_of {
    my ($version, $path) = @_;
    my (%functions, $blocks, $base, $block);
    for (split /\n/, output_of(tool('llvm-readobj', $version), '--bb-addr-map', $path)) {
        if (/^\s*At: 0x(\w+)/ || /^\s*Base Address: 0x(\w+)/) { $base = hex $1 }
        elsif (/^\s*Name: (\S+)/) { $blocks = $functions{$1} = [] }
        elsif (/^\s*\{$/) { $block = {id => defined $blocks ? scalar @$blocks : 0} }
        elsif (/^\s*ID: (\d+)/) { $block->{id} = $1 }
        elsif (/^\s*Offset: 0x(\w+)/) { $block->{address} = $base + hex $1; push @$blocks, $block }
        elsif (/^\s*Size: 0x(\w+)/) { $block->{size} = hex $1 }
        elsif (/^\s*(Has\w+|Is\w+|Can\w+): (Yes|No)/) { $block->{$1} = $2 eq 'Yes' ? 1 : 0 }
    }
    return \%functions;
}

# ---- Output of the command ----

my %words = ('landing pad' => 'IsEHPad', returns => 'HasReturn', 'tail call' => 'HasTailCall',
    'indirect branch' => 'HasIndirectBranch', 'can fall through' => 'CanFallThrough');

# Returns the answers in a text, each with its heading and the lines after it.
sub answers_of {
    my ($text) = @_;
    my @answers;
    for (split /\n/, $text) {
        if (/^ /) { push @{$answers[-1]{lines}}, $_ }
        else { push @answers, {heading => $_, lines => []} }
    }
    return @answers;
}

sub lookup_all {
    my ($path, $targets, @options) = @_;
    my ($status, $out, $err) =
        run_with_input(join('', map { "$_\n" } @$targets), $cairn, 'lookup', $path, @options);
    is "$status$err", '0', 'lookup of ' . @$targets . ' addresses';
    return answers_of($out);
}

sub function_at {
    my ($address, @functions) = @_;
    my ($found) = grep { $address >= $_->{address} && $address - $_->{address} < $_->{size} } @functions;
    return $found;
}

sub expected_block_line {
    my ($address, $prefix, $block) = @_;
    my @flags = grep { $block->{$words{$_}} }
        ('landing pad', 'returns', 'tail call', 'indirect branch', 'can fall through');
    return sprintf '  block %d at %s0x%x + 0x%x, %d byte%s', $block->{id}, $prefix, $block->{address},
        $address - $block->{address}, $block->{size},
        join ', ', $block->{size} == 1 ? '' : 's', @flags;
}

# ---- Functions and blocks ----

sub compare_answers {
    my ($name, $targets, $answers, $expected) = @_;
    my $wrong = 0;
    is scalar @$answers, scalar @$targets, "$name: an answer for each" or return;
    for my $i (0 .. $#$answers) {
        my ($line) = grep { /^  block / } @{$answers->[$i]{lines}};
        my $found = $answers->[$i]{heading} . "\n" . ($line // '');
        next if $found eq $expected->[$i];
        diag "$name: $targets->[$i]: '$found' instead of '$expected->[$i]'" if $wrong++ < 3;
    }
    is $wrong, 0, "$name: functions and blocks";
}

sub expected_answer {
    my ($shown, $address, $prefix, $function, $blocks) = @_;
    my $heading = $shown;
    $heading .= sprintf ' = %s + 0x%x', $function->{name}, $address - $function->{address}
        if defined $function;
    my ($block) = grep { $address >= $_->{address} && $address - $_->{address} < $_->{size} }
        defined $function ? @{$blocks->{$function->{name}} // []} : ();
    return "$heading\n" . (defined $block ? expected_block_line($address, $prefix, $block) : '');
}

sub check_linked {
    my ($version, $path) = @_;
    my $name = $path =~ s/.*\///r;
    my @functions = grep { $_->{size} > 0 } functions_of($path);
    my $blocks = blocks_of($version, $path);
    my ($low, $high) = ($functions[0]{address}, $functions[-1]{address} + $functions[-1]{size});
    my @addresses = map { $low - 8 + int rand($high - $low + 16) } 1 .. 1000;
    my @targets = map { rand() < 0.5 ? sprintf('%x', $_) : sprintf('0x%X', $_) =~ s/X/x/r } @addresses;
    my @answers = lookup_all($path, \@targets);
    my @expected = map {
        expected_answer(hexadecimal($_), $_, '', function_at($_, @functions), $blocks)
    } @addresses;
    compare_answers($name, \@targets, \@answers, \@expected);
    ok scalar(grep { /block/ } @expected) > 500, "$name: most have blocks";
    check_symbolizer($path, \@addresses, \@answers);
}

sub check_symbolizer {
    my ($path, $addresses, $answers) = @_;
    my @some = 0 .. 199;
    my ($status, $out) = run_with_input(join('', map { hexadecimal($addresses->[$_]) . "\n" } @some),
        tool('llvm-symbolizer', $newest), '-e', $path, '--output-style=GNU', '--functions=linkage',
        '--no-inlines', '--no-demangle');
    my @names = (split /\n/, $out)[map { 2 * $_ } @some];
    my $wrong = 0;
    for my $i (@some) {
        next if $answers->[$i]{heading} !~ / = (\S+) \+/;
        $wrong++ if $names[$i] ne $1;
    }
    is $wrong, 0, 'llvm-symbolizer has the same names';
}

sub check_object {
    my ($version, $path) = @_;
    my $name = $path =~ s/.*\///r;
    my @functions = grep { $_->{size} > 0 } functions_of($path);
    my $blocks = blocks_of($version, $path);
    my (@targets, @expected);
    for (1 .. 500) {
        my $function = $functions[rand @functions];
        my $address = $function->{address} + int rand $function->{size};
        my $shown = "$function->{section}:" . hexadecimal($address);
        my $offset = sprintf '%x', $address - $function->{address};
        push @targets, ($shown, "$function->{name}+$offset", "$function->{section}+"
                . sprintf '0x%x', $address)[rand 3];
        push @expected,
            expected_answer($shown, $address, "$function->{section}:", $function, $blocks);
    }
    my @answers = lookup_all($path, \@targets);
    compare_answers($name, \@targets, \@answers, \@expected);
}

# All atomic accesses of the corpus are read-modify-write accesses.
sub check_metadata {
    my ($path) = @_;
    my %is_atomic;
    my @functions = grep { $_->{name} =~ /^f\d+$/ } functions_of($path);
    my @lines = split /\n/, output_of(tool('llvm-objdump', $newest), '-d', '--no-show-raw-insn', $path);
    my @targets = map { /^\s*([0-9a-f]+):/ ? $1 : () } @lines;
    $is_atomic{$_} = 1 for map { /^\s*([0-9a-f]+):.*\block\b/ ? $1 : () } @lines;
    ok scalar(keys %is_atomic) > 0, 'there are atomic accesses';
    my @answers = lookup_all($path, \@targets);
    my ($wrong, $uncovered) = (0, 0);
    for my $i (0 .. $#targets) {
        my $says = grep { $_ eq '  atomic access' } @{$answers[$i]{lines}};
        $wrong++ if $says != ($is_atomic{$targets[$i]} // 0);
        my $covered = grep { /^  covered by sanitizer metadata/ } @{$answers[$i]{lines}};
        my $function = function_at(hex $targets[$i], @functions);
        $uncovered++ if defined $function && !$covered;
    }
    is $wrong, 0, 'atomic accesses are those with a lock';
    is $uncovered, 0, 'all functions are covered';
}

for my $version ($is_first_build ? versions_with('clang', 14, 16, 19, 21, 22) : ()) {
    for my $level ($version < 19 ? '-O2' : ('-O0', '-O2')) {
        subtest "files of clang $version, $level" => sub {
            my $whole = compile_source($version, $level);
            my $apart = compile_source($version, $level, '-ffunction-sections');
            check_linked($version, link_file("linked-$version$level", $whole));
            # Before 19, llvm-readobj applies no relocations, so all functions must be at 0.
            check_object($version, $_) for $version >= 19 ? $whole : (), $apart;
            return if $version < 16 || $level eq '-O0';
            check_metadata(link_file("metadata-$version", $apart));
        };
    }
}

# ---- PC sections ----

sub random_constant {
    my ($bits) = @_;
    my $bytes = 1 + int rand($bits / 8);
    my $value = 0;
    $value = $value * 256 + int rand 256 for 1 .. $bytes;
    return $value;
}

# Returns a schema, and functions that have one atomic store each, with constants for both.
sub random_entries {
    my ($compressed) = @_;
    my @widths = $compressed ? (8, 16, 24, 32, 40, 48) : (8, 16, 32, 48);
    my %schema = map { my $kind = $_; $kind => [map { $widths[rand @widths] } 1 .. int rand 6] }
        qw(function instruction);
    $schema{instruction} = [32] if !@{$schema{instruction}};
    my @functions = map {
        my $number = $_;
        {name => "f$number", map { my $kind = $_; $kind => [map { random_constant($_) } @{$schema{$kind}}] }
                qw(function instruction)}
    } 1 .. 20;
    return (\%schema, \@functions);
}

# Nodes are unique, because each begins with the number of its function.
sub write_entries_ir {
    my ($name, $compressed, $schema, $functions) = @_;
    my ($text, $nodes, $next) = ('', '', 0);
    my $suffix = $compressed ? '!C' : '';
    for my $function (@$functions) {
        my %node;
        for my $kind (qw(function instruction)) {
            my @constants = map { "i$schema->{$kind}[$_] $function->{$kind}[$_]" } 0 .. $#{$schema->{$kind}};
            my $section = substr($kind, 0, 4) . $suffix;
            $node{$kind} = $next;
            # The document's form: constants may come in several tuples.
            my $cut = int rand(1 + @constants);
            my @tuples = grep { @$_ } [@constants[0 .. $cut - 1]], [@constants[$cut .. $#constants]];
            my $first = $next + 1;
            $next += 1 + @tuples;
            $nodes .= "!$node{$kind} = " . ($kind eq 'instruction' ? 'distinct ' : '') . '!{!"' . $section
                . '"' . join('', map { ', !' . ($first + $_) } 0 .. $#tuples) . "}\n";
            $nodes .= '!' . ($first + $_) . ' = !{' . join(', ', @{$tuples[$_]}) . "}\n" for 0 .. $#tuples;
        }
        $text .= "define void \@$function->{name}(ptr %p, i64 %x) !pcsections !$node{function} {\n"
            . ('  call void asm sideeffect "nop", ""()' . "\n") x int rand 4;
        $text .= "  store atomic i64 %x, ptr %p monotonic, align 8, !pcsections !$node{instruction}\n"
            . "  ret void\n}\n";
    }
    return spit("$name.ll", $text . $nodes);
}

# Returns the bits of the zeros that follow a constant, in either byte order: LLVM writes 4 bytes for 24 bits,
# and 8 for 40 and 48 bits, unless they are compressed.
sub padding {
    my ($bits, $compressed) = @_;
    return 0 if $compressed;
    return {24 => 8, 40 => 24, 48 => 16}->{$bits} // 0;
}

sub schema_text {
    my ($kind, $address_bytes, $compressed, $widths) = @_;
    my @words = map { my $pad = padding($_, $compressed); ("u$_", $pad ? "u$pad" : ()) } @$widths;
    return join ' ', $kind, $address_bytes, @words, $compressed ? '!C' : ();
}

sub padded_constants {
    my ($compressed, $widths, $constants) = @_;
    return [map { ($constants->[$_], padding($widths->[$_], $compressed) ? 0 : ()) } 0 .. $#$widths];
}

sub uleb128 {
    my ($value) = @_;
    my $bytes = '';
    do {
        my $rest = int($value / 128);
        $bytes .= chr($value % 128 + ($rest > 0 ? 128 : 0));
        $value = $rest;
    } while $value > 0;
    return $bytes;
}

sub fixed {
    my ($value, $size, $big_endian) = @_;
    my $bytes = '';
    for (1 .. $size) {
        $bytes .= chr($value % 256);
        $value = int($value / 256);
    }
    return $big_endian ? reverse $bytes : $bytes;
}

# Returns the bytes of an entry as LLVM documents them.
sub pack_entry {
    my ($entry, $at, $address_bytes, $compressed, $widths, $big_endian) = @_;
    my $distance = $entry->{address} - $at;
    $distance += 2**32 if $distance < 0 && $address_bytes == 4;
    my $bytes = $distance < 0 ? pack($big_endian ? 'q>' : 'q<', $distance)
        : fixed($distance, $address_bytes, $big_endian);
    $bytes .= $compressed ? uleb128($entry->{size}) : fixed($entry->{size}, 4, $big_endian)
        if defined $entry->{size};
    my @constants = @{$entry->{constants}};
    for my $width (@$widths) {
        my $constant = shift @constants;
        my $pad = padding($width, $compressed);
        $bytes .= $compressed && $width > 8 ? uleb128($constant) : fixed($constant, $width / 8, $big_endian);
        $bytes .= fixed(shift @constants, $pad / 8, $big_endian) if $pad;
    }
    return $bytes;
}

# Returns the address, bytes and file offset of a section.
my %sections_of;

sub section_of {
    my ($path, $name) = @_;
    $sections_of{$path} //= output_of(tool('llvm-readelf', $newest), '-SW', $path);
    for (split /\n/, $sections_of{$path}) {
        next if !/^\s*\[\s*\d+\]\s+\Q$name\E\s+\w+\s+(\w+)\s+(\w+)\s+(\w+)/;
        my ($address, $offset, $size) = map { hex } $1, $2, $3;
        return ($address, substr(slurp($path), $offset, $size), $offset);
    }
    return;
}

sub json_of {
    my ($status, @words) = @_;
    my ($got, $out, $err) = run($cairn, @words);
    is $got, $status, 'exit status with --json' or diag $err;
    my $value = eval { JSON::PP->new->decode($out) };
    ok defined $value, 'JSON is well-formed' or diag $out;
    return ($value, $out, $err);
}

sub check_entries {
    my ($path, $kind, $schema, $functions, $address_bytes, $compressed, $version) = @_;
    my $is_linked = $path !~ /\.o$/;
    my $big_endian = $path =~ /s390x|powerpc64-/;
    my $section = substr($kind, 0, 4) . ($compressed && $version < 19 ? '!C' : '');
    my $is_compressed = $compressed && $version >= 19;
    my $text = schema_text($kind, $address_bytes, $is_compressed, $schema->{$kind});
    my ($sections) = json_of(0, 'pcsections', $path, '--section', $section, '--schema', $text, '--json');
    my @entries = map { @{$_->{entries}} } @$sections;
    my %sizes = map { $_->{name} => $_ } functions_of($path);
    my @expected = map {
        [$_->{name}, $kind eq 'function' ? $sizes{$_->{name}}{size} : undef,
            $kind eq 'function' ? 0 : 'some', padded_constants($is_compressed, $schema->{$kind}, $_->{$kind})]
    } @$functions;
    my @found = map {
        [$_->{symbol}, $_->{size}, $kind eq 'function' ? $_->{offset} : 'some', $_->{constants}]
    } @entries;
    is_deeply \@found, \@expected, "$section: what the IR says";
    return if !$is_linked;
    my ($address, $bytes) = section_of($path, $section);
    my $packed = '';
    $packed .= pack_entry($_, $address + length $packed, $address_bytes, $is_compressed,
        $schema->{$kind}, $big_endian) for @entries;
    is unpack('H*', $packed), unpack('H*', $bytes), "$section: entries are the section's bytes";
}

sub check_pcsections {
    my ($version, $triple, $compressed, @options) = @_;
    my ($schema, $functions) = random_entries($compressed);
    my $name = join '-', "pc-$version", $triple, $compressed ? 'compressed' : (), map { s/\W//gr } @options;
    my $ir = write_entries_ir($name, $compressed, $schema, $functions);
    my $wide = $triple =~ /powerpc/ || "@options" =~ /code-model=(large|medium)/ ? 8 : 4;
    output_of(tool('llc', $version), "-mtriple=$triple-linux-gnu", '-filetype=obj', '-relocation-model=pic',
        @options, $ir, '-o', "$folder/$name.o");
    my @paths = ("$folder/$name.o");
    push @paths, link_file("$name.so", $paths[0]) if $triple ne 'powerpc64';
    for my $path (@paths) {
        check_entries($path, $_, $schema, $functions, $wide, $compressed, $version)
            for qw(function instruction);
    }
    return ($schema, $functions, $wide, @paths);
}

for my $version ($is_first_build ? versions_with('llc', 16, 19, 21, 22) : ()) {
    subtest "PC sections of llc $version" => sub {
        check_pcsections($version, 'x86_64', 0);
        check_pcsections($version, 'x86_64', 1, '-function-sections');
        check_pcsections($version, 'x86_64', 0, '-code-model=large');
        check_pcsections($version, 'x86_64', $version >= 19, '-code-model=medium', '-function-sections');
        check_pcsections($version, $_, int rand 2) for qw(aarch64 powerpc64le);
        check_pcsections($version, 'powerpc64', 0, '-function-sections');
        check_pcsections($version, 's390x', $_) for 0, 1;
    };
}

sub compile_sample {
    my ($name, $text, $version, @options) = @_;
    my $ir = spit("$name.ll", $text);
    output_of(tool('llc', $version), '-mtriple=x86_64-linux-gnu', '-filetype=obj', @options, $ir, '-o',
        "$folder/$name.o");
    return "$folder/$name.o";
}

my $shared_node = <<'END';
define void @first(ptr %p) !pcsections !0 {
  store atomic i64 1, ptr %p monotonic, align 8, !pcsections !1
  store atomic i64 2, ptr %p monotonic, align 8, !pcsections !1
  ret void
}
define void @second(ptr %p) !pcsections !0 {
  store atomic i64 3, ptr %p monotonic, align 8, !pcsections !1
  ret void
}
!0 = !{!"functions", !2}
!1 = !{!"instructions", !3}
!2 = !{i32 -1, i8 7}
!3 = !{i32 100000, i64 -2}
END

my @wanted = ('--section', 'functions', '--schema', 'function 4 u32 u8', '--section', 'instructions',
    '--schema', 'instruction 4 u32 u64');
my $shared_object = compile_sample('shared', $shared_node, $newest);
my $shared_linked = link_file('shared.so', $shared_object);

subtest 'instructions that share a node share its constants' => sub {
    for my $path ($shared_object, $shared_linked) {
        my ($sections) = json_of(0, 'pcsections', $path, '--json', @wanted);
        my ($first) = grep { $_->{name} eq 'first' } functions_of($path);
        my $begin = $first->{address};
        is_deeply [map { $_->{address} - $begin } @{$sections->[1]{entries}}], [0, 7, 16], 'addresses';
        is_deeply [map { $_->{constants} } @{$sections->[1]{entries}}],
            [([100000, '18446744073709551614']) x 3], 'constants';
    }
};

subtest 'PC sections by address' => sub {
    for my $path ($shared_object, $shared_linked) {
        my ($answers) = json_of(0, 'lookup', $path, 'first', 'first+7', 'first+8', 'second', '--json', @wanted);
        is_deeply [map { [map { [$_->{section}, $_->{constants}] } @{$_->{entries}}] } @$answers], [
            [['functions', [4294967295, 7]], ['instructions', [100000, '18446744073709551614']]],
            [['functions', [4294967295, 7]], ['instructions', [100000, '18446744073709551614']]],
            [['functions', [4294967295, 7]]],
            [['functions', [4294967295, 7]], ['instructions', [100000, '18446744073709551614']]],
        ], 'entries of each address';
    }
};

subtest 'readable entries' => sub {
    my ($status, $out) = run($cairn, 'pcsections', $shared_object, @wanted);
    is $out, <<'END', 'the text';
section functions: function 4 u32 u8, x86-64, 26 bytes
  .text:0x0 = first + 0x0, 15 bytes: 4294967295 (0xffffffff), 7 (0x7)
  .text:0x10 = second + 0x0, 8 bytes: 4294967295 (0xffffffff), 7 (0x7)

section instructions: instruction 4 u32 u64, x86-64, 36 bytes
  .text:0x0 = first + 0x0: 100000 (0x186a0), 18446744073709551614 (0xfffffffffffffffe)
  .text:0x7 = first + 0x7: 100000 (0x186a0), 18446744073709551614 (0xfffffffffffffffe)
  .text:0x10 = second + 0x0: 100000 (0x186a0), 18446744073709551614 (0xfffffffffffffffe)
END
};

subtest 'a schema that does not fit is an error' => sub {
    for my $path ($shared_object, $shared_linked) {
        my ($sections, $out, $err) =
            json_of(1, 'pcsections', $path, '--section', 'functions', '--schema', 'function 4 u32 u16', '--json');
        # In an object, the relocation of the second entry's address is in a constant of the first.
        my $is_linked = $path eq $shared_linked;
        is scalar @{$sections->[0]{entries}}, $is_linked ? 1 : 0, 'the entry before is printed';
        like $err, $is_linked
            ? qr/functions, byte \d+: the entry at byte 14 does not fit the schema: its address does not lead to code.*the schema is 'function 4 u32 u16'/
            : qr/functions, byte \d+: the entry at byte 0 does not fit the schema: byte 13 has a relocation.*the schema is 'function 4 u32 u16'/,
            'the place and what was expected';
        ($sections, $out, $err) =
            json_of(1, 'pcsections', $path, '--section', 'functions', '--schema', 'function 4 u64 u64 u64', '--json');
        is_deeply $sections->[0]{entries}, [], 'no incomplete entry is printed';
        like $err, qr/functions, byte 24: the entry at byte 0: a constant goes beyond .*about first; /, 'the place and the function';
    }
    fails 2, qr/'word' where 'function' or 'instruction' should be/, 'pcsections', $shared_object,
        '--section', 'functions', '--schema', 'word';
    fails 2, qr/these may be PC sections: functions, instructions/, 'pcsections', $shared_linked;
    fails 1, qr/no section 'none'; these may be PC sections: functions/, 'pcsections', $shared_object,
        '--section', 'none', '--schema', 'function 4';
    fails 2, qr/--section is given 2 times and --schema 0 times/, 'pcsections', $shared_object, '--section', 'a',
        '--section', 'b';
    fails 2, qr/no file is given/, 'pcsections';
    fails 2, qr/--schema needs --section, which is not given/, 'lookup', $shared_object, '--schema', 'function 4';
};

# ---- Fault maps ----

my $null_checks = <<'END';
define i32 @load_X(ptr %x) {
  %c = icmp eq ptr %x, null
  br i1 %c, label %is_null, label %not_null, !make.implicit !0
is_null:
  ret i32 42
not_null:
  %t = load i32, ptr %x
  ret i32 %t
}
define i32 @both_X(ptr %x, ptr %y) {
  %c = icmp eq ptr %x, null
  br i1 %c, label %is_null, label %not_null, !make.implicit !0
is_null:
  ret i32 42
not_null:
  %t = load i32, ptr %x
  %d = icmp eq ptr %y, null
  br i1 %d, label %is_null, label %stored, !make.implicit !0
stored:
  store i32 %t, ptr %y
  ret i32 %t
}
!0 = !{}
END

# Returns the functions of the first fault map as llvm-objdump prints them.
sub faults_of_objdump {
    my ($version, $path) = @_;
    my @functions;
    my %kinds = (FaultingLoad => 'load', FaultingStore => 'store', FaultingLoadStore => 'load and store');
    for (split /\n/, output_of(tool('llvm-objdump', $version), '--fault-map-section', $path)) {
        push @functions, {address => hex $1, faults => []} if /^FunctionAddress: 0x(\w+)/;
        push @{$functions[-1]{faults}}, [$kinds{$1}, $2, $3]
            if /^Fault kind: (\w+), faulting PC offset: (\d+), handling PC offset: (\d+)/;
    }
    return \@functions;
}

sub faults_of_map {
    my ($map) = @_;
    return [map {
        {address => $_->{address}, faults => [map { [$_->{kind}, $_->{faulting_offset}, $_->{handler_offset}] }
                    @{$_->{faults}}]}
    } @{$map->{functions}}];
}

# With another map before those of the versions, so that there are two at least.
my @fault_objects = compile_sample('faults-first', $null_checks =~ s/_X/_first/gr, $newest, '-enable-implicit-null-checks');
for my $version (versions_with('llc', 14, 16, 19, 21, 22)) {
    subtest "fault maps of llc $version" => sub {
        my $text = $null_checks =~ s/_X/_$version/gr;
        $text =~ s/\bptr\b/i32*/g if $version < 15;
        my $object = compile_sample("faults-$version", $text, $version, '-enable-implicit-null-checks');
        my $linked = link_program("faults-$version", $object);
        push @fault_objects, $object;
        my ($maps) = json_of(0, 'faultmap', $linked, '--json');
        is_deeply faults_of_map($maps->[0]), faults_of_objdump($version, $linked), 'as llvm-objdump has them';
        is scalar @{$maps->[0]{functions}}, 2, 'two functions';
        my ($of_object) = json_of(0, 'faultmap', $object, '--json');
        my $names = sub { [sort map { $_->{symbol} } map { @{$_->{functions}} } @{$_[0]}] };
        is_deeply $names->($of_object), ["both_$version", "load_$version"], 'names in the object';
        is_deeply $names->($maps), $names->($of_object), 'and in the linked file';
        for my $path ($object, $linked) {
            my ($answers) = json_of(0, 'lookup', $path, "both_$version", "both_$version+2",
                "both_$version+5", '--json');
            my $begin = $answers->[0]{address};
            is_deeply [map { defined $_->{fault} ? $_->{fault}{handler_address} - $begin : undef } @$answers],
                [5, 5, undef], 'handlers of faults';
            is_deeply [map { [map { $_->{faulting_address} - $begin } @{$_->{handles}}] } @$answers],
                [[], [], [0, 2]], 'faults by handler';
        }
    };
}

subtest 'several fault maps in a section, and an invalid one' => sub {
    my $path = link_program('faults', @fault_objects);
    my ($maps) = json_of(0, 'faultmap', $path, '--json');
    is scalar @$maps, scalar @fault_objects, 'a map for each object';
    is_deeply faults_of_map($maps->[0]), faults_of_objdump($newest, $path), 'the first as llvm-objdump has it';
    my ($address, $bytes, $offset) = section_of($path, '.llvm_faultmaps');
    my $damaged = slurp($path);
    # The kind of the last fault: 12 bytes before the end.
    substr($damaged, $offset + length($bytes) - 12, 1) = "\x09";
    my ($before, $out, $err) = json_of(1, 'faultmap', spit('damaged.so', $damaged), '--json');
    like $err, qr/\.llvm_faultmaps, byte \d+: function 1 at 0x\w+, fault 0: unknown kind/, 'the place and the reason';
    pop @{$maps->[-1]{functions}};
    is_deeply $before, $maps, 'the faults before it are printed';
    my ($status, $text) = run($cairn, 'faultmap', $path);
    my @faults = $text =~ /^    (?:load|store) at /mg;
    is scalar @faults, 3 * @fault_objects, 'as text, too';
    fails 1, qr/there is no section \.llvm_faultmaps/, 'faultmap', $shared_object;
    my ($answers, undef, $complaint) = json_of(1, 'lookup', "$folder/damaged.so", 'load_first', '--json');
    is $answers->[0]{fault}{kind}, 'load', 'lookup has the faults before it';
};

# ---- Records ----

my $records = <<'END';
declare void @llvm.experimental.stackmap(i64, i32, ...)
declare i64 @llvm.experimental.patchpoint.i64(i64, i32, ptr, i32, ...)
define i64 @f(i64 %a, i64 %b) {
  call void (i64, i32, ...) @llvm.experimental.stackmap(i64 7, i32 0, i64 %a, i32 5)
  %r = call i64 (i64, i32, ptr, i32, ...) @llvm.experimental.patchpoint.i64(i64 8, i32 44, ptr inttoptr (i64 12345678 to ptr), i32 1, i64 %a, i64 %b, i64 77777777777)
  ret i64 %r
}
define i64 @g(i64 %a, i64 %b) {
  %r = call i64 (i64, i32, ptr, i32, ...) @llvm.experimental.patchpoint.i64(i64 9, i32 48, ptr inttoptr (i64 12345678 to ptr), i32 1, i64 %a, i64 %b)
  ret i64 %r
}
END

# The bytes of a call, from the record to its return address.
my %call_bytes = (x86_64 => 13, aarch64 => 16, powerpc64le => 28, powerpc64 => 36);

sub check_records {
    my ($path, $call_bytes) = @_;
    my ($maps) = json_of(0, 'stackmap', $path, '--json');
    my @functions = @{$maps->[0]{functions}};
    my %by_place;
    push @{$by_place{"$functions[$_->{function}]{symbol}+" . sprintf '%x', $_->{offset}}}, $_
        for @{$maps->[0]{records}};
    my @places = sort keys %by_place;
    my ($answers) = json_of(0, 'lookup', $path, '--json', @places);
    my $strip = sub { [map { {id => $_->{id}, locations => $_->{locations}, liveouts => $_->{liveouts}} } @{$_[0]}] };
    is_deeply [map { $strip->($_->{records}) } @$answers], [map { $strip->($by_place{$_}) } @places],
        'records as cairn stackmap has them';
    my %frames = map { $_->{symbol} => $_->{stack_size} } @functions;
    is_deeply [map { $_->{stack_size} } @$answers], [map { $frames{/(\w+)\+/ ? $1 : ''} } @places], 'frames';
    my ($call) = grep { $_->{id} == 9 } @{$maps->[0]{records}};
    my ($return) = json_of(0, 'lookup', $path, '--json', sprintf('g+%x', $call->{offset} + $call_bytes),
        sprintf('g+%x', $call->{offset} + $call_bytes - 1));
    is $return->[0]{returning_from}{id}, 9, 'the record of the call that returns there';
    ok !defined $return->[1]{returning_from}, 'and not one byte before';
}

for my $triple ($is_first_build ? sort keys %call_bytes : 'x86_64') {
    subtest "records of $triple" => sub {
        my $ir = spit("records-$triple.ll", $records);
        my $object = "$folder/records-$triple.o";
        output_of(tool('llc', $newest), "-mtriple=$triple-linux-gnu", '-filetype=obj', '-function-sections',
            '-enable-patchpoint-liveness=false', $ir, '-o', $object);
        check_records($object, $call_bytes{$triple});
        check_records(link_file("records-$triple.so", $object), $call_bytes{$triple}) if $triple ne 'powerpc64';
    };
}

# ---- Lines ----

subtest 'lines are answered as they come' => sub {
    my $pid = open2(my $from, my $to, $cairn, 'lookup', $shared_linked, '--json');
    $SIG{ALRM} = sub { die "no answer\n" };
    alarm 20;
    my @offsets;
    for my $offset (0, 7, 8) {
        syswrite $to, "first+$offset\n";
        my $line = <$from>;
        push @offsets, JSON::PP->new->decode(substr $line, 1)->{offset};
    }
    alarm 0;
    is_deeply \@offsets, [0, 7, 8], 'one after the other';
    close $to;
    is join('', <$from>), "]\n", 'the array ends';
    waitpid $pid, 0;
    is $?, 0, 'exit status';
};

subtest 'lines of perf script' => sub {
    my ($first) = grep { $_->{name} eq 'first' } functions_of($shared_linked);
    my ($second) = grep { $_->{name} eq 'second' } functions_of($shared_linked);
    my ($a, $b) = map { sprintf '%x', $_->{address} } $first, $second;
    my $input = join "\n", "          $a ", "    $b second+0x0 ($folder/shared.so)", '',
        "\t          $a first+0x0 ([unknown])", "\t  $b", '', "program  4711  3.25:     250000 cpu-clock:u: ",
        "\t            $b second", "program  4711  3.25:     1 cycles:  $a first ($folder/shared.so)",
        '# a comment', "0x$a $b", '';
    my ($status, $out, $err) = run_with_input($input, $cairn, 'lookup', $shared_linked);
    is "$status$err", '0', 'all are taken';
    my @names = map { $_->{heading} =~ / = (\w+) \+ 0x0$/ ? $1 : $_->{heading} } answers_of($out);
    is_deeply \@names, [qw(first second first second second first first second)], 'in their order';
};

subtest 'invalid lines' => sub {
    my ($status, $out, $err) = run_with_input("first\n<unknown>\n\nsecond nowhere+4\nx\0y\nfirst+8", $cairn,
        'lookup', $shared_linked);
    is $status, 1, 'exit status';
    is scalar(answers_of($out)), 3, 'the others are answered';
    like $err, qr/\A(cairn: \S+: line \d+: [^\n]*\n){3}\z/, 'an error message for each';
    like $err, qr/line 2: '<unknown>' is neither/, 'with its line';
    like $err, qr/line 4: 'nowhere\+4' is neither/, 'or word';
    like $err, qr/line 5: the line has bytes that are not text/, 'or bytes';
    my ($json_status, $json) = run_with_input("no\n", $cairn, 'lookup', $shared_linked, '--json');
    is "$json_status$json", "1[]\n", 'an empty array without valid lines';
};

# ---- Answers ----

subtest 'unknown addresses and --base' => sub {
    my ($first) = grep { $_->{name} eq 'first' } functions_of($shared_linked);
    my ($status, $out) = run($cairn, 'lookup', $shared_linked, '3');
    is $out, "0x3\n  nothing is known\n", 'nothing is known';
    my $loaded = sprintf '%x', 0x7f0000000000 + $first->{address};
    ($status, $out) = run($cairn, 'lookup', $shared_linked, '--base', '7f0000000000', $loaded);
    is $out, sprintf("0x%s, in the file 0x%x = first + 0x0\n", $loaded, $first->{address}), '--base';
    my ($answers) = json_of(0, 'lookup', $shared_linked, '--base', '0x7f0000000000', '--json', "0x$loaded");
    is_deeply [@{$answers->[0]}{qw(address loaded_address symbol)}],
        [$first->{address}, hex $loaded, 'first'], '--base with --json';
};

# Compares lines in the functions of the source with those that llvm-addr2line prints. (That of binutils 2.40 names a wrong
# file for clang's DWARF 5.)
sub compare_lines {
    my ($name, $file, $addr2line) = @_;
    my $nm = find_in_path('nm');
    my @functions = map { /^(\w+) (\w+) [Tt] (?:first|second|main)$/ ? [hex $1, hex $2] : () } split /\n/, output_of($nm, '-S', $file);
    is @functions, 3, "$name: functions";
    my @addresses = map { my ($begin, $size) = @$_; map { hexadecimal($_) } $begin .. $begin + $size - 1 } @functions;
    my @expected = map { /^(.*):(\d+)(?: \(discriminator \d+\))?$/ && $2 > 0 ? "$1:$2" : '' } split /\n/, output_of($addr2line, '-e', $file, @addresses);
    my @found = map { /^  at (.*)$/m ? $1 : '' } split /^(?=0x)/m, output_of($cairn, 'lookup', $file, @addresses);
    cmp_ok scalar(grep { $_ ne '' } @expected), '>', 20, "$name: there are lines";
    my @different = grep { $expected[$_] ne $found[$_] } 0 .. $#expected;
    is "@different[0 .. ($#different > 3 ? 3 : $#different)]", '', "$name: all are those of addr2line"
        or diag map { "$addresses[$_]: $found[$_], and not $expected[$_]\n" } @different;
    my ($json) = decode_json(output_of($cairn, 'lookup', '--json', $file, $addresses[0]) =~ s/\n\z//r);
    $json = $json->[0] if ref $json eq 'ARRAY';
    is "$json->{source_file}:$json->{source_line}", $expected[0], "$name: JSON";
}

subtest 'addresses have lines where there is debug information' => sub {
    my $version = llvm_version('clang', 16);
    plan skip_all => 'no clang' if !defined $version;
    my $addr2line = tool('llvm-addr2line', $version);
    plan skip_all => 'no llvm-addr2line or nm' if !defined $addr2line || !defined find_in_path('nm');
    mkdir "$folder/lines";
    spit('lines/inline.h', "static inline int twice(int x)\n{\n    return x % 7 == 3 ? x * 2 : x - 1;\n}\n");
    my $source = spit('lines/source.c', "#include \"inline.h\"\nvolatile int sink;\n__attribute__((noinline)) int first(int x)\n{\n"
        . "    sink = twice(x);\n    return sink + 1;\n}\nint unused(int x) { return x + sink; }\n"
        . "__attribute__((noinline)) int second(int x)\n{\n    while (x-- > 0)\n        sink += first(x);\n    return sink;\n}\n"
        . "int main(int count, char **words)\n{\n    (void)words;\n    return second(count) + first(3);\n}\n");
    for my $options (['-gdwarf-5'], ['-gdwarf-4'], ['-gdwarf-5', '-gz'], ['-gdwarf-5', '-no-pie', '-ffunction-sections', '-Wl,--gc-sections']) {
        my ($status, undef, $err) = run(tool('clang', $version), '-O1', @$options, $source, '-o', "$folder/with_lines");
        plan skip_all => "clang cannot link: $err" if $status ne '0';
        compare_lines("@$options", "$folder/with_lines", $addr2line);
    }
    my $bytes = slurp("$folder/with_lines");
    for my $turn (1 .. 20) {
        my $changed = $bytes;
        substr $changed, int rand length $changed, 1, chr int rand 256 for 1 .. 200;
        my ($status) = run($cairn, 'lookup', spit('changed', $changed), '0x401130');
        like $status, qr/^[01]$/, "changed bytes, turn $turn";
    }
};

# Names functions and lines as the whole file does.
subtest 'lines of separate debug files' => sub {
    my $version = llvm_version('clang', 16);
    my $objcopy = find_in_path('objcopy') // tool('llvm-objcopy', $newest);
    plan skip_all => 'no clang' if !defined $version;
    mkdir "$folder/separate";
    mkdir "$folder/separate/.debug";
    my $source = spit('separate/source.c', "int seven(int x)\n{\n    return x + 7;\n}\nint main(void)\n{\n    return seven(1) - 8;\n}\n");
    my ($whole, $stripped, $debug) = map { "$folder/separate/$_" } qw(whole stripped stripped.debug);
    for my $build_id ('sha1', 'none') {
        my ($status, undef, $err) = run(tool('clang', $version), '-g', '-O1', "-Wl,--build-id=$build_id", $source, '-o', $whole);
        plan skip_all => "clang cannot link: $err" if $status ne '0';
        my $expected = output_of($cairn, 'lookup', $whole, 'seven', 'seven+1', 'main');
        is scalar(() = $expected =~ /^  at .*source\.c:\d+$/mg), 3, "build ID $build_id: the whole file has lines";
        for my $strip ('--strip-debug', '--strip-all') {
            my $name = "build ID $build_id, $strip";
            output_of($objcopy, '--only-keep-debug', $whole, $debug);
            output_of($objcopy, $strip, "--add-gnu-debuglink=$debug", $whole, $stripped);
            is output_of($cairn, 'lookup', $stripped, 'seven', 'seven+1', 'main'), $expected, "$name: beside the file";
            rename $debug, "$folder/separate/.debug/stripped.debug";
            is output_of($cairn, 'lookup', $stripped, 'seven', 'seven+1', 'main'), $expected, "$name: in the folder .debug";
            rename "$folder/separate/.debug/stripped.debug", "$folder/separate/elsewhere";
            is output_of($cairn, 'lookup', '--debug-file', "$folder/separate/elsewhere", $stripped, 'seven', 'seven+1', 'main'),
                $expected, "$name: --debug-file";
        }
        output_of($objcopy, '--strip-debug', $whole, $stripped);
        like output_of($cairn, 'lookup', $stripped, 'seven'), qr/\A0x\w+ = seven \+ 0x0\n\z/, "build ID $build_id: no debug file";
    }
};

subtest 'stripped files' => sub {
    my ($first) = grep { $_->{name} eq 'first' } functions_of($shared_linked);
    output_of(tool('llvm-objcopy', $newest), '--strip-all', '--remove-section=.dynsym', '--allow-broken-links',
        $shared_linked, "$folder/stripped.so");
    my $address = hexadecimal($first->{address});
    my ($status, $out, $err) = run($cairn, 'lookup', "$folder/stripped.so", $address, $address, '1');
    is $status, 0, 'exit status';
    is $out, "$address\n  nothing is known\n" x 2 . "0x1\n  nothing is known\n", 'nothing is known';
    like $err, qr/\Acairn: [^\n]*stripped: without a symbol table[^\n]*\n\z/, 'one line with the reason';
};

subtest 'archives' => sub {
    my $archive = "$folder/both.a";
    output_of(tool('llvm-ar', $newest), 'rc', $archive, $fault_objects[-1], $shared_object);
    my ($maps) = json_of(0, 'faultmap', $archive, '--json');
    like $maps->[0]{file}, qr/both\.a\(faults-\d+\.o\)\z/, 'fault maps of a member';
    my ($sections) = json_of(0, 'pcsections', $archive, '--json', @wanted);
    is_deeply [map { $_->{name} } @$sections], ['functions', 'instructions'], 'PC sections of a member';
    fails 1, qr/no member has a section/, 'pcsections', $archive, '--section', 'none', '--schema', 'function 4';
    fails 1, qr/the file is a member of an archive/, 'lookup', $archive, '1';
};

subtest 'invalid usage and input' => sub {
    fails 1, qr/the section of 0x10 is not given: .*write SECTION:ADDRESS/, 'lookup', "$folder/records-x86_64.o", '10';
    fails 1, qr/section \.text has only 0x\w+ bytes/, 'lookup', $shared_object, '.text:1000';
    fails 2, qr/standard input cannot be both/, 'lookup', '-';
    fails 2, qr/--base needs an address/, 'lookup', $shared_linked, '--base', 'here', '1';
    fails 2, qr/no file is given/, 'lookup';
    fails 1, qr/not an ELF file/, 'lookup', $source, '1';
    fails 1, qr/the file is empty/, 'lookup', spit('empty', ''), '1';
};

done_testing;
