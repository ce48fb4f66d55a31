# Tests what `cairn stackmap`, `cairn run` and `cairn compile` print, against llvm-readobj and llvm-objdump; options, error
# messages and exit statuses; and files with random changes.
#
# Runs in the build folder. LLVM's tools are searched for in /usr/lib/llvm-*/bin and PATH. Tests whose tools
# are missing are skipped.
#
# SPDX-License-Identifier: MIT
use strict;
use warnings;
use FindBin;
use JSON::PP;
use Test::More;
use lib $FindBin::Bin;
use CommandTest;

my $source = ($ENV{srcdir} // '.') . '/tests/samples';
my $is_repeated = ($ENV{CAIRN_TEST_REPEATED} // '') ne '';

# Under an emulator, only the tests of `cairn run` that depend on the host are run, because files are read in
# the same way on every host.
my $emulator = $ENV{CAIRN_TEST_RUNNER} // '';
if ($emulator ne '') {
    $cairn = "$emulator $cairn";
    my $subtest = \&subtest;
    no warnings qw(redefine prototype);
    *subtest = sub {
        return note "left to the native build: $_[0]" if $_[0] !~ /^(?:run|compile): /;
        # It compiles for the same architectures there, and reads its options in the same way.
        return note "left to the native build: $_[0]"
            if $_[0] =~ /every machine|objects|invalid|another machine|errors that LLVM reports|two shapes|bitcode/;
        return note "skipped: types of x86-64: $_[0]" if $_[0] =~ /wide integers|structures|types and functions/;
        return note "skipped: LLVM cannot select statepoints for PPC64" if $_[0] =~ /statepoints|deoptimize/ && $emulator =~ /ppc/;
        $subtest->(@_);
    };
}

# ---- Running programs ----

sub run { return run_with('/dev/null', @_) }

sub cairn { return run(split(' ', $cairn), @_) }

# Each case is the expected output, and the words of a command.
sub prints_all {
    my @cases = @_;
    my @results = run_all(map { ['/dev/null', split(' ', $cairn), @$_[1 .. $#$_]] } @cases);
    is_deeply $results[$_], [0, $cases[$_][0], ''], join ' ', @{$cases[$_]}[1 .. $#{$cases[$_]}] for 0 .. $#cases;
}

sub prints { prints_all([@_]) }

# Each call is the expected result, the function and its arguments. The file is compiled once for each level, and its
# object is run: that IR which is run is the same is tested elsewhere.
sub prints_results {
    my ($file, @calls) = @_;
    for my $level ('-O0', '-O2') {
        my $object = "$folder/results.o";
        prints('', 'compile', $file, $level, '-o', $object);
        prints_all(map { ["$$_[0]\n", 'run', $object, '--call', @$_[1 .. $#$_]] } @calls);
    }
}

# ---- LLVM's tools ----

# Returns the versions, the oldest first and the configured one last; in repeated builds, only the latter.
sub versions_with {
    my ($program) = @_;
    my $last = llvm_version($program);
    return if !defined $last;
    return $last if $is_repeated;
    return ((grep { $_ != $last && -x "$llvm{$_}/$program" } sort { $a <=> $b } keys %llvm), $last);
}

my @compilers = versions_with('llc');
my @readers = versions_with('llvm-readobj');

# Returns the first version and the last one, if that is another.
sub oldest_and_newest { return @_ > 1 ? @_[0, -1] : @_ }

# Returns a sample, with typed pointers for LLVM 14.
sub sample {
    my ($name, $version) = @_;
    my $text = slurp("$source/$name.ll");
    # If all instructions have 4 bytes, only an empty region is too small.
    $text =~ s/\bi32 3, ptr null/i32 0, ptr null/g if $emulator ne '';
    $text =~ s/\bptr\b/i8*/g if $version < 15;
    return spit("$name-$version.ll", $text);
}

my %compiled; # whether each object could be compiled

sub compile {
    my ($name, $version, $triple, @options) = @_;
    my $object = "$folder/" . join('-', $name, $version, $triple, map { s/\W//gr } @options) . '.o';
    $compiled{$object} //= (run("$llvm{$version}/llc", "-mtriple=$triple", '-filetype=obj', @options,
        sample($name, $version), '-o', $object))[0] eq '0';
    return $compiled{$object} ? $object : undef;
}

# ---- Output of llvm-readobj, in the form of cairn's JSON ----

sub parse_location {
    my ($line) = @_;
    my %location = (value => undef);
    ($location{size}) = $line =~ /, size: (\d+)$/ or die $line;
    if ($line =~ /: Register R#(\d+),/) {
        @location{qw(kind dwarf)} = ('Register', $1);
    } elsif ($line =~ /: Direct R#(\d+) \+ (-?\d+),/) {
        @location{qw(kind dwarf offset)} = ('Direct', $1, $2);
    } elsif ($line =~ /: Indirect \[R#(\d+) \+ (-?\d+)\],/) {
        @location{qw(kind dwarf offset)} = ('Indirect', $1, $2);
    } elsif ($line =~ /: Constant (\d+),/) {
        # Printed as unsigned, but signed in the format.
        my $value = $1 >= 2**31 ? $1 - 2**32 : $1;
        @location{qw(kind offset value)} = ('Constant', $value, $value);
    } elsif ($line =~ /: ConstantIndex #(\d+) \((\d+)\),/) {
        @location{qw(kind offset value)} = ('ConstantIndex', $1, $2);
    } else {
        die "unknown location: $line";
    }
    return \%location;
}

sub parse_readobj {
    my ($text) = @_;
    my %map = (functions => [], constants => [], records => []);
    for (split /\n/, $text) {
        if (/LLVM StackMap Version: (\d+)/) {
            $map{version} = $1;
        } elsif (/Function address: (\d+), stack size: (\d+), callsite record count: (\d+)/) {
            push @{$map{functions}}, {address => $1, stack_size => $2, record_count => $3};
        } elsif (/^  #\d+: (\d+)$/) {
            push @{$map{constants}}, $1;
        } elsif (/Record ID: (\d+), instruction offset: (\d+)/) {
            push @{$map{records}}, {id => $1, offset => $2, locations => [], liveouts => []};
        } elsif (/^      #\d+: /) {
            push @{$map{records}[-1]{locations}}, parse_location($_);
        } elsif (/live-outs: \[ (.*)\]/) {
            my $list = $1;
            push @{$map{records}[-1]{liveouts}}, {dwarf => $1, size => $2}
                while $list =~ /R#(\d+) \((\d+)-bytes\)/g;
        }
    }
    my @owners = map { ($_) x $map{functions}[$_]{record_count} } 0 .. $#{$map{functions}};
    $_->{function} = shift @owners for @{$map{records}};
    return \%map;
}

# Converts all values to text, and removes addresses, and what llvm-readobj does not print.
sub plain_map {
    my ($map) = @_;
    my %plain = (version => "$map->{version}", constants => [map { "$_" } @{$map->{constants}}]);
    for my $function (@{$map->{functions}}) {
        push @{$plain{functions}}, {map { $_ => "$function->{$_}" } qw(stack_size record_count)};
    }
    for my $record (@{$map->{records}}) {
        my %copy = map { $_ => "$record->{$_}" } qw(id offset function);
        for my $location (@{$record->{locations}}) {
            my %fields = %$location;
            # llvm-readobj does not print the fields that a kind does not use.
            delete $fields{dwarf} if $fields{kind} =~ /^Constant/;
            delete $fields{offset} if $fields{kind} eq 'Register';
            push @{$copy{locations}}, {map { $_ => defined $fields{$_} ? "$fields{$_}" : undef } keys %fields};
        }
        $copy{liveouts} = [map { {dwarf => "$_->{dwarf}", size => "$_->{size}"} } @{$record->{liveouts}}];
        push @{$plain{records}}, \%copy;
    }
    return \%plain;
}

# A number must be a JSON number if a double holds it, and otherwise a string.
sub check_number_forms {
    my ($value) = @_;
    return 1 if !defined $value;
    return !grep { !check_number_forms($_) } @$value if ref $value eq 'ARRAY';
    return !grep { $_ ne 'symbol' && $_ ne 'kind' && !check_number_forms($value->{$_}) } keys %$value
        if ref $value eq 'HASH';
    my $is_text = encode_json([$value]) =~ /^\["/;
    return $value =~ /^\d+$/ && ($value + 0 > 9007199254740991 || length $value > 16) if $is_text;
    return $value =~ /^-?\d+$/;
}

sub json_of {
    my ($path) = @_;
    my ($status, $out, $err) = cairn('stackmap', '--json', $path);
    is "$status$err", '0', "stackmap --json " . $path =~ s/.*\///r;
    my $maps = eval { decode_json($out) };
    ok defined $maps, 'gives JSON' or diag $@;
    ok check_number_forms($maps), 'integers that a double cannot hold are strings';
    return $maps;
}

sub check_keys {
    my ($map) = @_;
    is_deeply [sort keys %$map], [qw(constants functions records version)], 'keys of a map';
    is_deeply [sort keys %$_], [qw(address record_count stack_size symbol)], 'keys of a function'
        for $map->{functions}[0];
    is_deeply [sort keys %$_], [qw(function id liveouts locations offset)], 'keys of a record'
        for $map->{records}[0];
    is_deeply [sort keys %$_], [qw(dwarf kind offset size value)], 'keys of a location'
        for map { @{$_->{locations}} } $map->{records}[0];
}

# ---- Objects of every architecture against llvm-readobj ----

my @triples = map { "$_-linux-gnu" } qw(x86_64 aarch64 powerpc64le powerpc64 s390x riscv64);

# Returns the triples for which this version of LLVM compiles stack maps. LLVM 18 is the first for RISC-V.
sub triples_of {
    my ($version) = @_;
    return grep { !/riscv/ || $version >= 18 } @triples;
}

# Returns the maps that a reader prints, by object. It reads all in one process.
sub maps_of_readobj {
    my ($reader, @objects) = @_;
    my (undef, $text) = run("$llvm{$reader}/llvm-readobj", '--stackmap', @objects);
    my (undef, %printed) = split /^File: (.*)\n/m, $text;
    return map { $_ => plain_map(parse_readobj($printed{$_} // '')) } @objects;
}

# Compares maps, given as [OBJECT, MAP], with what the oldest and the newest reader print.
sub compare_with_readobj {
    my (@pairs) = @_;
    for my $reader (oldest_and_newest(@readers)) {
        my %expected = maps_of_readobj($reader, map { $_->[0] } @pairs);
        for (@pairs) {
            my ($object, $map) = @$_;
            is_deeply plain_map($map), $expected{$object}, "as llvm-readobj-$reader reads " . $object =~ s/.*\///r;
        }
    }
}

# The functions with records, in the order of the IR.
my %symbols = (
    stackmaps => [qw(kinds spills grows hidden)],
    patchpoints => [qw(calling without_target any_register twice)],
);

# Returns [OBJECT, MAP], or nothing if it could not be compiled.
sub check_object {
    my ($name, $version, $triple, @options) = @_;
    my $object = compile($name, $version, $triple, @options);
    if (!defined $object) {
        # LLVM before 18 compiles only some of these for RISC-V.
        ok $triple =~ /riscv/ && $version < 18, "llc-$version compiles $name for $triple @options";
        return;
    }
    my $maps = json_of($object);
    is scalar @$maps, 1, 'one map';
    check_keys($maps->[0]);
    is_deeply [map { $_->{symbol} } @{$maps->[0]{functions}}], $symbols{$name}, 'symbols';
    return [$object, $maps->[0]];
}

subtest 'objects' => sub {
    plan skip_all => 'no llc and llvm-readobj' if !@compilers || !@readers;
    my (%compiled, @pairs);
    for my $version (@compilers) {
        for my $triple (@triples) {
            my @levels = $triple =~ /x86/ || $version == $compilers[-1] ? (0 .. 3) : (0, 2);
            my @found = map { check_object('stackmaps', $version, $triple, "-O$_") } @levels;
            push @found, check_object('patchpoints', $version, $triple, '-O2', '-enable-patchpoint-liveness=false');
            $compiled{$triple} += @found;
            push @pairs, @found;
        }
        push @pairs, check_object('patchpoints', $version, $triples[0], '-O2');
    }
    ok $compiled{$_}, "something was compiled for $_" for grep { !/riscv/ } @triples;
    compare_with_readobj(@pairs);
    done_testing;
};

# LLVM has no stack maps and patch points for LoongArch. It has statepoints from 20 on. Cairn has no names for
# its registers.
subtest 'statepoints of LoongArch' => sub {
    plan skip_all => 'no llc and llvm-readobj' if !@compilers || !@readers;
    my @pairs;
    for my $version (grep { $_ >= 20 } @compilers) {
        for my $options (['-O0'], ['-O2'], ['-O2', '-mattr=+relax']) {
            my $object = compile('statepoint', $version, 'loongarch64-linux-gnu', @$options) // next;
            my $maps = json_of($object);
            push @pairs, [$object, $maps->[0]];
            is_deeply [map { $_->{symbol} } @{$maps->[0]{functions}}], [qw(f g)], 'symbols';
        }
    }
    plan skip_all => 'no llc compiles them' if !@pairs;
    compare_with_readobj(@pairs);
    done_testing;
};

subtest 'live-outs' => sub {
    plan skip_all => 'no llc' if !@compilers;
    my $maps = json_of(compile('patchpoints', $compilers[-1], $triples[0], '-O2'));
    ok scalar(grep { @{$_->{liveouts}} } @{$maps->[0]{records}}), 'there are some';
    done_testing;
};

# ---- Linked files ----

sub addresses_by_nm {
    my ($path) = @_;
    my ($status, $out) = run("$llvm{$readers[-1]}/llvm-nm", $path);
    return map { /^([0-9a-f]+) [tTdD] (\S+)$/ ? ($2 => hex $1) : () } split /\n/, $out;
}

# In the linked file, the map of each object must be the same except for addresses.
sub check_linked {
    my ($path, @expected) = @_;
    my %addresses = addresses_by_nm($path);
    my $maps = json_of($path);
    is scalar @$maps, scalar @expected, 'one map for each object';
    for my $i (0 .. $#expected) {
        is_deeply plain_map($maps->[$i]), $expected[$i], "map $i";
        for my $function (@{$maps->[$i]{functions}}) {
            is $function->{address}, $addresses{$function->{symbol} // ''},
                'address of ' . ($function->{symbol} // 'a function without a symbol');
        }
    }
}

subtest 'linked by the system linker' => sub {
    plan skip_all => 'no llc for this machine' if !@compilers || !@readers || `uname -m` !~ /^x86_64/;
    my @objects = map { compile($_, $compilers[-1], $triples[0], '-O2', '-relocation-model=pic') }
        qw(stackmaps patchpoints);
    my %maps = maps_of_readobj($readers[-1], @objects);
    my $main = spit('main.c', "long outside(long x) { return x; }\nint main(void) { return 0; }\n");
    my %forms = (
        executable => ['-no-pie'],
        position_independent => ['-pie', '-Wl,-z,notext'],
        shared => ['-shared', '-fPIC', '-Wl,-z,notext'],
        with_relocations => ['-no-pie', '-Wl,--emit-relocs'],
    );
    for my $form (sort keys %forms) {
        my ($status, $out, $err) =
            run('cc', $main, @objects, @{$forms{$form}}, '-o', "$folder/$form");
        is $status, 0, "linking: $form" or diag $err;
        check_linked("$folder/$form", @maps{@objects});
    }
    # A stripped shared library has only its dynamic symbols.
    run('strip', "$folder/shared");
    my $maps = json_of("$folder/shared");
    is_deeply [map { $_->{symbol} } @{$maps->[0]{functions}}], [qw(kinds spills grows), undef],
        'symbols of a stripped library';
    done_testing;
};

subtest 'linked for other machines by lld' => sub {
    my $version = llvm_version('ld.lld');
    plan skip_all => 'no ld.lld' if !defined $version;
    my $linker = "$llvm{$version}/ld.lld";
    # LLD 18 is the first that links for SystemZ. No LLD links ELFv1.
    my $unknown = $version < 18 ? qr/powerpc64-|s390x/ : qr/powerpc64-/;
    for my $triple (grep { !/$unknown/ } triples_of($compilers[-1])) {
        my $outside = spit("outside.ll", "define i64 \@outside(i64 %x) {\n ret i64 %x\n}\n");
        my @objects = map { compile($_, $compilers[-1], $triple, '-O2', '-relocation-model=pic',
                                    '-enable-patchpoint-liveness=false') } qw(stackmaps patchpoints);
        my %maps = maps_of_readobj($readers[-1], @objects);
        my ($status) = run("$llvm{$compilers[-1]}/llc", "-mtriple=$triple", '-filetype=obj',
            '-relocation-model=pic', $outside, '-o', "$folder/outside.o");
        is $status, 0, "outside.o for $triple";
        for my $form (['-static'], ['-pie', '-z', 'notext'], ['-shared', '-z', 'notext']) {
            my ($linked, $out, $err) =
                run($linker, '-e', 'kinds', @$form, @objects, "$folder/outside.o", '-o', "$folder/linked");
            is $linked, 0, "linking $triple @$form" or diag $err;
            check_linked("$folder/linked", @maps{@objects}) if $linked eq '0';
        }
    }
    done_testing;
};

# ---- Generated ELF files ----

# Returns an executable with a section; the byte order is '<' or '>'.
sub elf_with {
    my ($section, %options) = @_;
    my $order = $options{order} // '<';
    my $name = $options{name} // '.llvm_stackmaps';
    my $names = "\0$name\0.shstrtab\0";
    my $offset = 64;
    my $names_offset = $offset + length $section;
    my $table = ($names_offset + length($names) + 7) & ~7;
    my $machine = $options{machine} // 62;
    my $header = pack "a4C4x8S${order}S${order}L${order}Q${order}Q${order}Q${order}L${order}S${order}6",
        "\x7fELF", 2, ($order eq '<' ? 1 : 2), 1, 0, 2, $machine, 1, 0, 0, $table, 0, 64, 0, 0, 64, 3, 2;
    my $pack = sub {
        my ($at, $type, $flags, $address, $start, $size) = @_;
        return pack "L${order}2Q${order}4L${order}2Q${order}2",
            $at, $type, $flags, $address, $start, $size, 0, 0, 8, 0;
    };
    my $size = $options{size} // length $section;
    return $header . $section . $names . "\0" x ($table - $names_offset - length $names)
        . $pack->(0, 0, 0, 0, 0, 0) . $pack->(1, 1, 2, 0x4000, $offset, $size)
        . $pack->(2 + length $name, 3, 0, 0, $names_offset, length $names);
}

# Returns a map of the given version with two records, and the given number of functions, by default one, or
# two in version 1.
sub map_of_version {
    my ($version, $o, $functions) = @_;
    $functions //= $version == 1 ? 2 : 1;
    my $bytes = pack "CCS${o}L${o}3", $version, 0, 0, $functions, 1, 2;
    $bytes .= pack "Q${o}2", 0x1000 * $_, 24 for 1 .. $functions;
    substr($bytes, -8) = pack "Q${o}2", 24, 2 if $version > 1;
    $bytes .= pack "Q${o}", 9223372036854775809;
    for my $id (7, 8) {
        my @locations = ([3, 8, 6, -16], [5, 8, 0, 0], [4, 8, 0, -1]);
        $bytes .= pack "Q${o}L${o}S${o}2", $id, 16 * $id, 0, scalar @locations;
        for my $location (@locations) {
            my ($kind, $size, $dwarf, $offset) = @$location;
            $bytes .= $version < 3 ? pack "CCS${o}l${o}", $kind, $size, $dwarf, $offset
                : pack "CCS${o}S${o}S${o}l${o}", $kind, 0, $size, $dwarf, 0, $offset;
        }
        $bytes .= "\0" x (-length($bytes) % 8) if $version == 3;
        $bytes .= pack "S${o}2S${o}CC", 0, 1, 7, 0, 8;
        $bytes .= "\0" x (-length($bytes) % 8);
    }
    return $bytes;
}

subtest 'versions and byte orders' => sub {
    for my $order ('<', '>') {
        for my $version (1 .. 3) {
            my $section = map_of_version($version, $order);
            my $maps = json_of(spit('made.elf', elf_with($section x 2, order => $order)));
            is scalar @$maps, 2, "version $version, order $order: two maps";
            for my $map (@$maps) {
                is $map->{version}, $version, 'version';
                is_deeply $map->{constants}, ['9223372036854775809'], 'large constant';
                is_deeply [map { $_->{address} } @{$map->{functions}}],
                    [$version == 1 ? (0x1000, 0x2000) : 0x1000], 'addresses';
                is_deeply [map { $_->{function} } @{$map->{records}}],
                    [$version == 1 ? (0, 1) : (0, 0)], 'functions of the records';
                is $map->{functions}[0]{record_count}, $version == 1 ? undef : 2, 'count of records';
                my $record = $map->{records}[1];
                is_deeply [@$record{qw(id offset)}], [8, 128], 'record';
                is_deeply $record->{locations},
                    [{kind => 'Indirect', dwarf => 6, size => 8, offset => -16, value => undef},
                     {kind => 'ConstantIndex', dwarf => 0, size => 8, offset => 0,
                      value => '9223372036854775809'},
                     {kind => 'Constant', dwarf => 0, size => 8, offset => -1, value => -1}],
                    'locations';
                is_deeply $record->{liveouts}, [{dwarf => 7, size => 8}], 'live-outs';
            }
        }
    }
    done_testing;
};

subtest 'text form' => sub {
    my $file = spit('made.elf', elf_with(map_of_version(3, '<')));
    prints(<<'END', 'stackmap', $file);
stack map 0: version 3, x86-64, 1 function, 1 large constant, 2 records

  function (no symbol) at 0x1000, frame of 24 bytes, 2 records
    ID 7 at 0x1070 = (no symbol) + 0x70
      0: [rbp - 16] 8 bytes
      1: large constant 9223372036854775809 (0x8000000000000001)
      2: constant -1
      live across: rsp 8 bytes
    ID 8 at 0x1080 = (no symbol) + 0x80
      0: [rbp - 16] 8 bytes
      1: large constant 9223372036854775809 (0x8000000000000001)
      2: constant -1
      live across: rsp 8 bytes
END
    my ($status, $out) = cairn('stackmap',
        spit('made.elf', elf_with(map_of_version(3, '>'), order => '>', machine => 22)));
    like $out, qr/systemz/, 'the architecture';
    like $out, qr/0: \[r6 - 16\] 8 bytes/, 'the names of its registers';
    ($status, $out) = cairn('stackmap', spit('made.elf', elf_with(map_of_version(3, '<'),
                                                                 name => '__llvm_stackmaps')));
    like $out, qr/stack map 0: version 3/, 'the Darwin name';
    done_testing;
};

# With three functions and two records, the functions of records are unknown, because version 1 has no counts.
subtest 'records of unknown functions' => sub {
    my $file = spit('made.elf', elf_with(map_of_version(1, '<', 3)));
    my $map = json_of($file)->[0];
    is_deeply [map { $_->{function} } @{$map->{records}}], [undef, undef], 'null in JSON';
    is scalar @{$map->{functions}}, 3, 'the functions are there';
    my ($status, $out) = cairn('stackmap', $file);
    is scalar(() = $out =~ /^  function /mg), 3, 'each function once in the text form';
    like $out, qr/ID 7 at an unknown function \+ 0x70$/m, 'records of unknown functions in the text form';
    done_testing;
};

subtest 'standard input' => sub {
    my $file = spit('made.elf', elf_with(map_of_version(3, '<')));
    my ($status, $expected) = cairn('stackmap', '--json', $file);
    is scalar `$cairn stackmap --json - < $file`, $expected, 'a file';
    is scalar `cat $file | $cairn stackmap --json -`, $expected, 'a pipe';
    done_testing;
};

subtest 'an empty line separates the maps of a file' => sub {
    my $map = map_of_version(3, '<');
    my ($status, $out, $err) = cairn('stackmap', spit('made.elf', elf_with($map . $map)));
    is "$status$err", '0', 'exit status and standard error';
    like $out, qr/\n\nstack map 1: version 3/, 'the second map';
    unlike $out, qr/\\x/, 'nothing is escaped';
    done_testing;
};

subtest 'an empty section has no maps' => sub {
    prints("[\n]\n" =~ s/\n\]/]/r, 'stackmap', '--json', spit('made.elf', elf_with('')));
    done_testing;
};

# ---- Disassembly ----

my ($run_version) = (cairn('--version'))[1] =~ /LLVM (\d+)/;

sub sites_of {
    my ($path, @options) = @_;
    my ($status, $out, $err) = cairn('stackmap', '--json', '--disassemble', @options, $path);
    is "$status$err", '0', "stackmap -d @options " . $path =~ s/.*\///r;
    my $maps = eval { decode_json($out) };
    ok defined $maps, 'gives JSON' or diag $@;
    return map { @{$_->{records}} } @$maps;
}

# Removes comments and symbols, and the letters of PPC64's registers.
sub plain_instruction {
    my ($text, $triple) = @_;
    $text =~ s/\s*<.*//;
    $text =~ s{\s*(?:#|//)\s.*}{};
    $text =~ s/\s+/ /g;
    $text =~ s/\b(?:r|f|v|vs|cr)(\d+)\b/$1/g if $triple =~ /powerpc/;
    return $text =~ s/^ | $//gr;
}

# Returns the instructions of files by address, as [bytes, text], by path.
sub objdump {
    my ($triple, @paths) = @_;
    my (%files, $found);
    my @syntax = $triple =~ /x86/ ? '--x86-asm-syntax=intel' : ();
    my @features = $triple =~ /riscv/ ? '--mattr=+m,+a,+f,+d,+c' : ();
    my ($status, $out, $err) = run("$llvm{$run_version}/llvm-objdump", '-d', '--print-imm-hex',
        @syntax, @features, @paths);
    is $status, 0, 'llvm-objdump' or diag $err;
    for (split /\n/, $out) {
        $found = $files{$1} = {} if /^(\S+):\s+file format /;
        my ($address, $bytes, $text) = /^\s*([0-9a-f]+):((?: [0-9a-f]+)+)\s+(\S.*)$/ or next;
        # Words are printed as numbers; otherwise, bytes are separate.
        my $is_number = $bytes =~ /[0-9a-f]{4}/;
        $bytes =~ s/ //g;
        $bytes = join '', reverse $bytes =~ /../g if $is_number;
        $found->{hex $address} = [$bytes, plain_instruction($text, $triple)];
    }
    return \%files;
}

# Cairn prints the page of an adrp in a comment, and objdump prints the address.
sub same_instruction {
    my ($instruction, $expected, $triple) = @_;
    my $text = plain_instruction($instruction->{text} // '', $triple);
    return $instruction->{bytes} eq $expected->[0]
        && ($text eq $expected->[1] || ($text =~ /^(adrp? \w+)/ && $expected->[1] =~ /^$1,/));
}

# Compares the code of one section, or of several at different addresses, with what objdump returned. Returns the number of
# instructions.
sub compare_with_objdump {
    my ($dumped, $path, $triple, @options) = @_;
    my $expected = $dumped->{$path} // {};
    my ($compared, @wrong) = 0;
    for my $record (sites_of($path, @options)) {
        my @instructions = @{$record->{site}{instructions}};
        ok @instructions, "record $record->{id} has instructions" if !@options;
        my $next = $instructions[0]{address};
        # --bytes may end inside an instruction, whose beginning may be another instruction.
        pop @instructions if @options;
        for my $instruction (@instructions) {
            my $address = $instruction->{address};
            push @wrong, [$instruction, $next] if $address != $next;
            $next = $address + length($instruction->{bytes}) / 2;
            # llvm-objdump does not print zeros after a function.
            next if !defined $instruction->{text} && $instruction->{bytes} =~ /^0+$/ && @options;
            $compared++;
            push @wrong, [$instruction, $expected->{$address}]
                if !same_instruction($instruction, $expected->{$address} // ['', ''], $triple);
        }
    }
    is scalar @wrong, 0, "the instructions of $triple are llvm-objdump's" or diag explain \@wrong;
    return $compared;
}

my $has_objdump = defined $run_version && -x ($llvm{$run_version} // '') . '/llvm-objdump';

subtest 'disassembly of every architecture, against llvm-objdump' => sub {
    plan skip_all => 'built without LLVM, or no llc and llvm-objdump' if !$has_objdump || !@compilers;
    for my $version (oldest_and_newest(@compilers)) {
        for my $triple (@triples) {
            my @objects;
            for my $name (qw(stackmaps patchpoints)) {
                push @objects, map { compile($name, $version, $triple, "-O$_", '-enable-patchpoint-liveness=false') } 0, 2;
            }
            # LLVM before 18 compiles only some for RISC-V.
            @objects = grep { defined || $triple !~ /riscv/ || $version >= 18 } @objects;
            next if !@objects;
            my $dumped = objdump($triple, @objects);
            for my $object (@objects) {
                compare_with_objdump($dumped, $object, $triple);
                cmp_ok compare_with_objdump($dumped, $object, $triple, '--bytes', 64), '>=', 20, $object =~ s/.*\///r;
            }
        }
    }
    done_testing;
};

subtest 'patch points of every architecture are recognised in files' => sub {
    plan skip_all => 'built without LLVM, or no llc' if !defined $run_version || !@compilers;
    my %names = (x86_64 => 'x86-64', aarch64 => 'aarch64', powerpc64le => 'ppc64-elfv2',
        powerpc64 => 'ppc64-elfv1', s390x => 'systemz', riscv64 => 'riscv64');
    for my $triple (triples_of($compilers[-1])) {
        my ($machine) = $triple =~ /^(\w+)-/;
        my $object = compile('patchpoints', $compilers[-1], $triple, '-O2', '-enable-patchpoint-liveness=false');
        my ($status, $out, $err) = cairn('stackmap', '-d', $object);
        is "$status$err", '0', $triple;
        like $out, qr/^stack map 0: version 3, \Q$names{$machine}\E,/, 'its name';
        my ($calling) = $out =~ /^(    ID 10 at .*?)\n\n/ms;
        if ($triple =~ /s390x|riscv/) {
            is scalar(() = $out =~ /^      sites of $names{$machine} are unmanaged\n      code:\n        0x/mg), 5,
                'its sites are unmanaged';
            unlike $out, qr/armed/, 'and are not armed';
            my ($record) = sites_of($object);
            is_deeply [@{$record->{site}}{qw(state size reason armed)}],
                ['unmanaged', undef, "sites of $names{$machine} are unmanaged", []], 'also in JSON';
            next;
        }
        my $veneer = $triple =~ /powerpc/ ? ' by a veneer' : '';
        # LLVM before 22 emits 4 bytes more for a call on PPC64 than were asked for.
        my $bytes = $triple =~ /powerpc/ && $compilers[-1] < 22 ? 52 : 48;
        like $calling, qr/^      as a patch point: $bytes bytes at 0x[0-9a-f]+, state: call to 0x1000$veneer\n/m,
            'a call, and its target';
        like $calling, qr/^      can be patched while threads run: the instruction at 0x/m, 'can be patched';
        like $calling, qr/^      armed, with a no-op in the call's place:\n(?:        0x.*\n?)+\z/m, 'its armed form';
        is scalar(() = $out =~ /as a patch point: 40 bytes at 0x[0-9a-f]+, state: no-op\n/g), 4, 'those without target';
        my @records = sites_of($object);
        is_deeply [@{$records[0]{site}}{qw(size state target reason)}], [$bytes, 'call', 4096, undef], 'in JSON';
        for my $key (qw(instructions armed)) {
            my $sum = 0;
            $sum += length($_->{bytes}) / 2 for @{$records[0]{site}{$key}};
            is $sum, $bytes, "$key: all bytes";
        }
        my @toc = grep { /\Ald r2|\Astd r2/ } map { $_->{text} } @{$records[1]{site}{armed}};
        is scalar @toc, $triple =~ /powerpc/ ? 2 : 0, 'TOC save and reload';
    }
    done_testing;
};

sub module {
    my ($name, $body) = @_;
    my $text = "declare void \@llvm.experimental.stackmap(i64, i32, ...)\n"
        . "declare void \@llvm.experimental.patchpoint.void(i64, i32, ptr, i32, ...)\n"
        . "declare void \@outside()\n$body";
    if ($compilers[-1] < 15) {
        $text =~ s/ptr \@outside/i8* bitcast (void ()* \@outside to i8*)/g;
        $text =~ s/\bptr\b/i8*/g;
    }
    return spit($name, $text);
}

sub compile_text {
    my ($name, $triple, $body) = @_;
    my ($status, $out, $err) = run("$llvm{$compilers[-1]}/llc", "-mtriple=$triple", '-filetype=obj', '-O2',
        '-enable-patchpoint-liveness=false', module("$name.ll", $body), '-o', "$folder/$name.o");
    is $status, 0, "llc for $triple" or diag $err;
    return "$folder/$name.o";
}

my $stackmap = 'call void (i64, i32, ...) @llvm.experimental.stackmap';
my $patchpoint = 'call void (i64, i32, ptr, i32, ...) @llvm.experimental.patchpoint.void';

subtest 'code that is not a patch point has a reason' => sub {
    plan skip_all => 'built without LLVM, or no llc' if !defined $run_version || !@compilers;
    my $body = "define i64 \@f(i64 %x) {\n %y = mul i64 %x, %x\n $stackmap(i64 1, i32 0, i64 %x)\n"
        . " %z = add i64 %y, %x\n ret i64 %z\n}\n";
    my %words = (x86_64 => qr/byte 0 of the region, 0x[0-9a-f]{2}, is not a no-op/,
        map { $_ => qr/the word at byte 0 of the region, 0x[0-9a-f]{8}, is not a no-op/ }
            qw(aarch64 powerpc64le powerpc64));
    for my $machine (sort keys %words) {
        my ($status, $out) = cairn('stackmap', '-d', compile_text('none', "$machine-linux-gnu", $body));
        like $out, qr/^      not a patch point: $words{$machine}: this is not what LLVM emits for a patch point\n      code:\n((?:        0x.*\n){1,4})\z/m,
            $machine;
    }
    done_testing;
};

subtest 'names of call targets' => sub {
    plan skip_all => 'built without LLVM, or no llc' if !defined $run_version || !@compilers;
    my $body = "define void \@f(i64 %x) {\n $stackmap(i64 1, i32 0, i64 %x)\n call void \@outside()\n ret void\n}\n"
        . "define void \@g() {\n $patchpoint(i64 2, i32 32, ptr \@outside, i32 0)\n ret void\n}\n";
    my %calls = (x86_64 => 'call', aarch64 => 'bl', powerpc64le => 'bl', powerpc64 => 'bl', s390x => 'brasl');
    for my $machine (sort keys %calls) {
        my $object = compile_text('names', "$machine-linux-gnu", $body);
        my ($first, $second) = sites_of($object);
        my ($call) = grep { defined $_->{symbol} } @{$first->{site}{instructions}};
        is $call->{symbol}, 'outside', "$machine: of a relocated call";
        like $call->{text}, qr/^$calls{$machine} /, 'that is one';
        my ($status, $out) = cairn('stackmap', '-d', $object);
        like $out, qr/^        0x[0-9a-f]+\s[^\n]*\b$calls{$machine} [^\n]* <outside>$/m, 'for people';
        next if $machine !~ /x86|powerpc/;
        is_deeply [@{$second->{site}}{qw(state target symbol)}], ['call', undef, 'outside'],
            'of a patch point';
        like $out, qr/as a patch point: \d+ bytes at 0x[0-9a-f]+, state: call to outside$/m, 'for people';
    }
    done_testing;
};

subtest 'sites of linked files' => sub {
    plan skip_all => 'built without LLVM, or no llc' if !$has_objdump || !@compilers;
    my $body = "define void \@_start(i64 %x) {\n $stackmap(i64 1, i32 0, i64 %x)\n call void \@outside()\n ret void\n}\n"
        . "define void \@g() {\n $patchpoint(i64 2, i32 48, ptr \@outside, i32 0)\n ret void\n}\n";
    # LLD does not link ELFv1. GNU ld does; it has a name for each architecture.
    for my $machine (qw(x86_64 aarch64 powerpc64le powerpc64)) {
        my ($linker) = grep { -x } map { ("$_/$machine-linux-gnu-ld") } split /:/, $ENV{PATH};
        if (!defined $linker) {
            diag "no ld for $machine";
            next;
        }
        my $outside = "$folder/outside-$machine.o";
        my ($compiled) = run("$llvm{$compilers[-1]}/llc", "-mtriple=$machine-linux-gnu", '-filetype=obj',
            spit('outside.ll', "define void \@outside() {\n ret void\n}\n"), '-o', $outside);
        my $object = compile_text('linked', "$machine-linux-gnu", $body);
        my $linked = "$folder/linked-$machine";
        my ($status, $out, $err) = run($linker, '-e', '_start', $object, $outside, '-o', $linked);
        is "$compiled$status", '00', "linking for $machine" or diag $err;
        cmp_ok compare_with_objdump(objdump("$machine-linux-gnu", $linked), $linked, "$machine-linux-gnu"), '>=', 8, 'instructions';
        my ($first, $second) = sites_of($linked);
        my ($call) = grep { $_->{text} =~ /^(?:call|bl) / } @{$first->{site}{instructions}};
        is $call->{symbol}, 'outside', "$machine: what a call goes to, by its address";
        # On AArch64, LLVM emits the address of a symbol as a number.
        is_deeply [@{$second->{site}}{qw(state symbol)}], ['call', 'outside'], 'and what a patch point goes to'
            if $machine ne 'aarch64';
        ($status, $out) = cairn('stackmap', '-d', $linked);
        like $out, qr/^      armed:\n(?:        0x.*\n)*        0x\S+ [^\n]*call 0x[0-9a-f]+ <outside>$/m,
            'armed with a direct call' if $machine eq 'x86_64';
    }
    done_testing;
};

# The bytes after the next record, or after the end of the function, belong to others.
subtest 'sites end at the next record' => sub {
    plan skip_all => 'built without LLVM, or no llc' if !defined $run_version || !@compilers;
    my $null = $compilers[-1] < 15 ? 'i8* null' : 'ptr null';
    my $body = "define void \@f() {\n $patchpoint(i64 1, i32 16, ptr null, i32 0)\n"
        . " $patchpoint(i64 2, i32 24, ptr null, i32 0)\n ret void\n}\n";
    for my $machine (qw(x86_64 aarch64 powerpc64le powerpc64)) {
        my $object = compile_text('neighbours', "$machine-linux-gnu", $body);
        is_deeply [map { $_->{site}{size} } sites_of($object)], [16, 24], $machine;
        my @sites = map { $_->{site} } sites_of($object, '--bytes', 20);
        is_deeply [map { $_->{size} } @sites], [20, 20], '--bytes';
        is $sites[0]{reason}, 'another record begins, or the function ends, 16 bytes after its start',
            'across the next record';
        is $sites[1]{reason}, undef, 'within the region';
    }
    done_testing;
};

subtest 'disassembly of a file without code' => sub {
    plan skip_all => 'built without LLVM' if !defined $run_version;
    my $file = spit('made.elf', elf_with(map_of_version(3, '<')));
    my ($status, $out, $err) = cairn('stackmap', '-d', $file);
    is "$status$err", '0', 'is read';
    like $out, qr/^      its code cannot be shown: there is no code at 0x1070 in this file$/m, 'the reason';
    is_deeply [map { $_->{site}{instructions} } sites_of($file)], [[], []], 'in JSON';
    # The functions of the records are unknown.
    my $unknown = spit('made.elf', elf_with(map_of_version(1, '<', 3)));
    is_deeply [map { $_->{site} } sites_of($unknown)], [undef, undef], 'unknown functions';
    fails(1, qr/disassembling is not supported for architecture 'unknown'/, 'stackmap', '-d',
        spit('made.elf', elf_with(map_of_version(3, '<'), machine => 1234)));
    done_testing;
};

subtest 'archives: the maps of all members are printed' => sub {
    my $map = map_of_version(3, '<');
    my @members = (spit('first.o', elf_with($map)), spit('without.o', elf_with('', name => '.x')),
        spit('second.o', elf_with($map)));
    my $archive = "$folder/members.a";
    unlink $archive;
    my ($archived) = run('ar', 'rc', $archive, @members);
    is $archived, 0, 'ar';
    my ($status, $out, $err) = cairn('stackmap', '--json', $archive);
    is "$status$err", '0', 'no complaint';
    is scalar(() = $out =~ /"version":3/g), 2, 'two maps';
    is scalar `cat $archive | $cairn stackmap --json -`, $out, 'a pipe';
    ($status, $out) = cairn('stackmap', $archive);
    like $out, qr/\Q$archive\E\(first\.o\):\n.*\Q$archive\E\(second\.o\):\n/s, 'members have headings';
    unlike $out, qr/without/, 'members without maps have no headings';
    fails(1, qr/members\.a: there is no section/, 'stackmap',
        do { unlink $archive; run('ar', 'rc', $archive, $members[1]); $archive });
    spit('text.o', "hello\n");
    run('ar', 'rc', $archive, "$folder/text.o", $members[0]);
    ($status, $out, $err) = cairn('stackmap', '--json', $archive);
    is $status, 1, 'a member that is not an object';
    like $err, qr/members\.a\(text\.o\): this is not an ELF file/, 'is named';
    like $out, qr/"version":3.*\]\n\z/s, 'the others are printed';
    done_testing;
};

subtest 'disassembly: bad usage' => sub {
    plan skip_all => 'built without LLVM' if !defined $run_version;
    for my $words ([], ['0'], ['-1'], ['x'], ['5x'], ['1048577'], ['']) {
        fails(2, qr/--bytes needs a number from 1 to 1048576/, 'stackmap', '-d', 'file', '--bytes', @$words);
    }
    fails(2, qr/--bytes needs --disassemble, which is not given/, 'stackmap', '--bytes', 4, 'file');
    done_testing;
};

subtest 'disassembly: without LLVM' => sub {
    plan skip_all => 'built with LLVM' if defined $run_version;
    fails(1, qr/there is no disassembler: this cairn was built without LLVM/, 'stackmap', '-d',
        spit('made.elf', elf_with(map_of_version(3, '<'))));
    done_testing;
};

# ---- Bad input ----

subtest 'bad input' => sub {
    my $good = map_of_version(3, '<');
    fails(1, qr/nonexistent: cannot be opened: No such file or directory/, 'stackmap', '/nonexistent');
    fails(1, qr/Is a directory/, 'stackmap', $folder);
    fails(1, qr/the file is empty/, 'stackmap', spit('empty', ''));
    fails(1, qr/not an ELF file/, 'stackmap', spit('text', "hello\n"));
    fails(1, qr/archive/, 'stackmap', spit('archive', "!<arch>\n"));
    my $narrow = elf_with($good);
    substr($narrow, 4, 1) = "\1";
    fails(1, qr/32-bit/, 'stackmap', spit('narrow', $narrow));
    fails(1, qr/no section \.llvm_stackmaps/, 'stackmap', spit('none', elf_with($good, name => '.x')));
    fails(1, qr/ends before its section table/, 'stackmap',
        spit('short', substr(elf_with($good), 0, 100)));
    fails(1, qr/section takes 1000000 bytes/, 'stackmap', spit('outside', elf_with($good, size => 1e6)));
    fails(1, qr/: \.llvm_stackmaps, byte \d+: the section ends inside/, 'stackmap',
        spit('cut', elf_with(substr $good, 0, length($good) - 8)));
    fails(1, qr/byte 0: stack map version 9/, 'stackmap', spit('version', elf_with("\x09" . substr $good, 1)));
    # The first location of the first record: header, function, constant, record's head.
    my $place = 16 + 24 + 8 + 16;
    my $corrupt = $good;
    substr($corrupt, $place, 1) = "\x06";
    fails(1, qr/byte $place: location 0 of record 0 has kind 6/, 'stackmap',
        spit('kind', elf_with($corrupt)));
    # A valid map before an invalid one is not printed.
    my $second = length($good) + $place;
    fails(1, qr/byte $second: location 0 of record 0/, 'stackmap', '--json',
        spit('second', elf_with($good . $corrupt)));
    fails(1, qr/bad\?name/, 'stackmap', "$folder/bad\ename");
    SKIP: {
        skip 'root reads everything', 1 if $> == 0;
        my $secret = spit('secret', elf_with($good));
        chmod 0, $secret;
        fails(1, qr/Permission denied/, 'stackmap', $secret);
    }
    done_testing;
};

subtest 'bad usage' => sub {
    fails(2, qr/no command/);
    fails(2, qr/unknown command 'frobnicate'/, 'frobnicate');
    fails(2, qr/unknown option '--frobnicate'/, '--frobnicate');
    fails(2, qr/no file/, 'stackmap');
    fails(2, qr/no file/, 'stackmap', '--json');
    fails(2, qr/unknown option '--yaml'/, 'stackmap', '--yaml', 'file');
    fails(2, qr/unexpected operand 'b'/, 'stackmap', 'a', 'b');
    done_testing;
};

subtest 'output that cannot be written' => sub {
    my $file = spit('made.elf', elf_with(map_of_version(3, '<') x 500));
    for my $words ('stackmap', 'stackmap --json') {
        is system("$cairn $words $file > /dev/full 2> $folder/stderr") >> 8, 1, "full disk: $words";
        like slurp("$folder/stderr"), qr/\Acairn: .*No space left on device\n\z/, 'the error message';
        is system("bash", '-c', "$cairn $words $file 2> $folder/stderr | true; exit \${PIPESTATUS[0]}") >> 8,
            1, "closed pipe: $words";
        like slurp("$folder/stderr"), qr/\Acairn: .*Broken pipe\n\z/, 'the error message';
    }
    is system("$cairn --help > /dev/full 2> $folder/stderr") >> 8, 1, 'full disk: --help';
    is system("bash", '-c', "ulimit -f 1; exec $cairn stackmap $file > $folder/stdout 2> $folder/stderr"),
        1 << 8, 'a limit of file sizes ends no command by SIGXFSZ';
    like slurp("$folder/stderr"), qr/\Acairn: .*File too large\n\z/, 'the error message';
    done_testing;
};

subtest 'help and version' => sub {
    my ($status, $out, $err) = cairn('--version');
    is "$status$err", '0', '--version';
    like $out, qr/\Acairn \d+\.\d+\.\d+ \(.*\)\n\z/, 'one line';
    my @commands = qw(bbmap faultmap lookup pcsections profile sanmd stackmap);
    push @commands, 'run' if defined $run_version;
    for my $words (['--help'], ['stackmap', 'file', '--help'], map { [$_, '--help'] } @commands) {
        ($status, $out, $err) = cairn(@$words);
        is "$status$err", '0', "@$words";
        like $out, $words->[0] eq '--help' ? qr/\Ausage: cairn COMMAND / : qr/\Ausage: cairn $words->[0] /, 'usage';
        unlike $out, qr/^.{101}/m, 'no line has more than 100 columns';
    }
    like((cairn('--help'))[1], qr/^  $_ FILE /m, "--help lists $_") for @commands;
    done_testing;
};

# Whether script(1) can make a terminal, which needs /dev/pts.
sub has_terminal { return system('script -qec true /dev/null < /dev/null > /dev/null 2>&1') == 0 }

subtest 'words with an error have a suggestion' => sub {
    fails(2, qr/unknown command 'stakmap'; did you mean 'stackmap'\?$/, 'stakmap');
    fails(2, qr/unknown option '--versoin'; did you mean '--version'\?$/, '--versoin');
    fails(2, qr/unknown command 'zzz'; see 'cairn --help'$/, 'zzz');
    fails(2, qr/unknown option '--colapsed'; did you mean '--collapsed'\?$/, 'profile', '--colapsed', 'x');
    fails(2, qr/unknown option '--limt=3'; did you mean '--limit'\?$/, 'profile', '--limt=3', 'x');
    fails(2, qr/unknown option '--jsn'; did you mean '--json'\?$/, 'stackmap', '--jsn', 'x');
    fails(2, qr/unknown option '--$_'; see 'cairn stackmap --help'$/, 'stackmap', "--$_") for 'xyzzy', 'j' x 500;
    done_testing;
};

# Returns what bash completes the last word to.
sub completed {
    my ($bash, @words) = @_;
    local $ENV{CAIRN_COMPLETION} = ($ENV{srcdir} // '.') . '/tools/completion/cairn';
    my ($status, $out, $err) = run($bash, '--norc', '-c', 'source "$CAIRN_COMPLETION"; COMP_WORDS=("$@"); '
        . 'COMP_CWORD=$(($# - 1)); _cairn; printf "%s\n" "${COMPREPLY[@]}"', 'bash', $cairn, @words);
    is "$status$err", '0', "bash completes @words";
    return join ' ', sort split /\n/, $out;
}

subtest 'shells complete the words that the command lists' => sub {
    my (undef, $help) = cairn('--help');
    my @commands = grep { !/^-/ } split /\n/, (cairn('--list-options'))[1];
    cmp_ok scalar @commands, '>', 8, 'commands';
    for my $command (@commands) {
        like $help, qr/^  \Q$command\E /m, "$command is in the help text";
        my (undef, $text) = cairn($command, '--help');
        my ($status, $listed) = cairn($command, '--list-options');
        is $status, 0, "$command lists its options";
        my @missing = grep { $text !~ /(?<![\w-])\Q@{[s{=}{}r]}\E(?![\w-]{2})/ } split /\n/, $listed;
        is "@missing", '', "$command: they are in its help text";
    }
    my ($bash, $zsh) = map { find_in_path($_) } qw(bash zsh);
    SKIP: {
        skip 'bash is not installed', 1 if !defined $bash;
        is completed($bash, 'pr'), 'profile', 'a command';
        is completed($bash, 'profile', '--pro'), '--propeller-version= --propeller=', 'options with values';
        is completed($bash, 'stackmap', '--js'), '--json', 'an option without';
        is completed($bash, 'stackmap', 'fi'), '', 'files are left to bash';
    }
    SKIP: {
        skip 'zsh is not installed', 1 if !defined $zsh;
        my ($status, undef, $err) = run($zsh, '-n', ($ENV{srcdir} // '.') . '/tools/completion/_cairn');
        is "$status$err", '0', 'zsh parses its file';
    }
    done_testing;
};

subtest 'colour only on a terminal' => sub {
    plan skip_all => 'script(1) cannot make a terminal' if !has_terminal();
    my $file = spit('made.elf', elf_with(map_of_version(3, '<')));
    my $in_terminal = sub {
        my ($settings) = @_;
        return scalar `script -qec "env $settings $cairn stackmap $file" /dev/null < /dev/null`;
    };
    like $in_terminal->('TERM=xterm'), qr/\e\[/, 'on a terminal';
    unlike $in_terminal->('TERM=xterm NO_COLOR=1'), qr/\e\[/, 'not with NO_COLOR';
    unlike $in_terminal->('TERM=dumb'), qr/\e\[/, 'not on a dumb one';
    my ($status, $out) = cairn('stackmap', $file);
    unlike $out, qr/\e/, 'not in a file';
    done_testing;
};

subtest 'control characters in names are escaped' => sub {
    plan skip_all => 'no llc' if !@compilers;
    my $name = 'a\1B[31m\0A\22\5C\FF\C3\A9';
    my $file = spit('names.ll', "declare void \@llvm.experimental.stackmap(i64, i32, ...)\n"
        . "define void \@\"$name\"() {\n"
        . " call void (i64, i32, ...) \@llvm.experimental.stackmap(i64 1, i32 0)\n ret void\n}\n");
    run("$llvm{$compilers[-1]}/llc", "-mtriple=$triples[0]", '-filetype=obj', $file, '-o', "$folder/names.o");
    my $maps = json_of("$folder/names.o");
    is $maps->[0]{functions}[0]{symbol}, "a\e[31m\n\"\\\x{fffd}\x{e9}", 'in JSON';
    my ($status, $out) = cairn('stackmap', "$folder/names.o");
    like $out, qr/function a\\x1b\[31m\\x0a"\\x5c/, 'for people';
    done_testing;
};

subtest 'changed bytes never crash' => sub {
    my @files = (elf_with(map_of_version(3, '<') x 3), elf_with(map_of_version(1, '>'), order => '>'));
    push @files, slurp(compile('stackmaps', $compilers[-1], $_, '-O2')) for @compilers ? @triples[0, 4] : ();
    # Repeated builds, which decode with the same code, change each file 25 times.
    my $rounds = $is_repeated ? 100 : 300;
    my (%seen, @commands);
    for my $round (0 .. $rounds - 1) {
        my $bytes = $files[$round % @files];
        substr($bytes, rand length $bytes, 1) = chr(rand() < 0.5 ? rand 256 : (0, 255)[rand 2])
            for 1 .. 1 + rand 6;
        my @options = ($round % 2 ? '--json' : (), defined $run_version && rand() < 0.7 ? '-d' : ());
        push @commands, ['/dev/null', split(' ', $cairn), 'stackmap', @options, spit("changed-$round", $bytes)];
    }
    my @results = run_all(@commands);
    for my $round (0 .. $rounds - 1) {
        my ($status, $out, $err) = @{$results[$round]};
        $seen{$status}++;
        # If an address of a function has lost its relocation, the maps are printed after an error message.
        my $complaint = qr/cairn: [^\n]+ has no relocation [^\n]+\n/;
        my $is_said = $status eq '0' ? $err eq '' : $err =~ /\A$complaint\z/;
        my $is_good = $is_said && ($round % 2 == 0 || eval { decode_json($out); 1 });
        my $is_refused = $status eq '1' && $out eq '' && $err =~ /\A(?:$complaint)?cairn: [^\n]+\n\z/;
        next if $is_good || $is_refused;
        fail "round $round: status $status";
        diag $err;
        rename "$folder/changed-$round", "changed-$seed-$round";
    }
    is_deeply [sort keys %seen], [0, 1], 'some are read, some refused';
    done_testing;
};

# ---- cairn run ----

subtest 'run: results by type' => sub {
    plan skip_all => 'built without LLVM' if !defined $run_version;
    my $file = sample('run', $run_version);
    my @calls = (
        ['true', 'negate', 'false'], ['false', 'negate', 1],
        [-128, 'byte', -128], [-1, 'byte', 255], [127, 'byte', '0x7f'],
        [255, 'unsigned_byte', 255], [255, 'unsigned_byte', -1],
        [-32768, 'half_word', 32767], [21, 'word', 7], [-21, 'word', -7],
        [-4294967296, 'odd_width', 4294967295], [-4, 'odd_width', -5],
        ['9223372036854775807', 'long_word', '9223372036854775807'],
        ['-9223372036854775808', 'long_word', '-9223372036854775808'],
        [-1, 'long_word', '18446744073709551615'],
        ['0.35', 'single', '0.1'], ['0.2', 'twice', '0.1'], ['-inf', 'twice', '-inf'],
        ['nan', 'twice', 'nan'], ['0.25', 'twice', '0x1p-3'], [-170, 'twice', -85], ['0.30000000000000004', 'twice', '0.15000000000000002'], ['2e+300', 'twice', '1e300'],
        ['0x1000', 'pointer', '0x1000'], ['0x0', 'pointer', 'null'],
        [5, 'length', '"hello"'], [0, 'length', '""'], [1, 'internal_one'],
    );
    prints_results($file, @calls);
    prints("hello\n", 'run', $file, '--call', 'say', '"hello"');
    prints("5\n", 'run', '--call', 'byte', '-O3', '--', $file, 5);
    done_testing;
};

subtest 'run: any mix of arguments' => sub {
    plan skip_all => 'built without LLVM' if !defined $run_version;
    my $file = sample('run', $run_version);
    # i8 double i32 float i64 i16 i64 i64 i64, eight doubles, float; the i32 counts ten times.
    my @calls;
    for (1 .. 5) {
        my @values = map { int(rand 200) - 100 } 1 .. 18;
        my $sum = 9 * $values[2];
        $sum += $_ for @values;
        push @calls, [$sum, 'mix', @values];
    }
    prints_results($file, @calls);
    done_testing;
};

# A scalar is returned unchanged, up to its precision.
subtest 'run: wide integers and all floating-point types' => sub {
    plan skip_all => 'built without LLVM' if !defined $run_version;
    my $file = sample('types', $run_version);
    my ($least, $most) = ('-170141183460469231731687303715884105728', '170141183460469231731687303715884105727');
    my @calls = (
        [$least, 'wide', $least], [$most, 'wide', $most], [-1, 'wide', '0xffffffffffffffffffffffffffffffff'],
        ['18446744073709551616', 'wide', '0x10000000000000000'],
        ['-18446744073709551616', 'beyond_a_register', '-18446744073709551616'],
        [-1, 'beyond_a_register', '36893488147419103231'], [127, 'small_unsigned', -1],
        ['0.1', 'half', '0.1'], [65504, 'half', 65504], ['inf', 'half', 65520], ['6e-08', 'half', '5.96e-8'],
        ['3.14', 'half', '3.14159'], ['-0', 'half', '-0.0'], ['nan', 'half', 'nan'],
        ['0.33333333333333333334', 'third', 1], ['1e+4000', 'extended', '1e4000'], [16, 'extended', '0x10'],
        ['-inf', 'extended', '-infinity'], ['1e-4940', 'extended', '1e-4940'],
        ['0x1.999999999999999999999999999ap-4', 'quadruple', '0.1'], ['0.5', 'quadruple', '0.5'],
        ['-3', 'quadruple', '-3'], ['0x0.0000000000000000000000000001p-16382', 'quadruple', '6e-4966'],
        ['inf', 'quadruple', '1e9999'],
    );
    # A number that is printed can be parsed as the same number.
    push @calls, map { [$_, 'quadruple', $_] } '0x1.921fb54442d18469898cc51701b8p+1', '0x1p-16382';
    prints_results($file, @calls);
    my $bfloat = spit('bfloat.ll', "define bfloat \@f(bfloat %x) {\n ret bfloat %x\n}\n");
    if ($run_version < 16) {
        fails(1, qr/the result of 'f' is bfloat, which cannot be passed|LLVM cannot compile this/, 'run', $bfloat, '--call', 'f', 1);
    } else {
        prints("$$_[0]\n", 'run', $bfloat, '--call', 'f', $$_[1])
            for ['0.1', '0.1'], ['3.14', '3.14159'], [65536, 65504], ['3e+38', '3e38'], ['inf', '1e39'];
    }
    done_testing;
};

subtest 'run: structures, arrays, vectors' => sub {
    plan skip_all => 'built without LLVM' if !defined $run_version;
    my $file = sample('types', $run_version);
    my @calls = (
        ['<2, 4, 7, -8>', 'doubled', '<1, 2, 3.5, -4>'], ['<2, 4, 6, 8>', 'doubled', ' < 1,2 ,3,4 > '],
        ['<true, false, true>', 'flags', '<true, 0, 1>'], ['{ 3, -4 }', 'pair', 3, -4],
        ['[0, 0, 0, 0, 7]', 'in_memory', 7], ['{ }', 'empty', '{}'],
        ['{ 9, { 0x10, [1, 0.1] }, <3, -4> }', 'change', '{1, {16, [1, 0.1]}, <3, 65532>}', 9],
        ['{ 9, { 0x0, [1, 0.1] }, <3, 4> }', 'change', '{ 1, { null, [ 1, .1 ] }, <3, 4> }', 9],
        [7, 'fast', 7], [7, 'cold', 7], [7, 'variable', 7],
    );
    prints_results($file, @calls);
    prints('', 'run', $file, '--call', 'nothing');
    # Passed in one register of the caller and the function.
    my $vector = spit('vector.ll', "define <8 x i32> \@f(<8 x i32> %x) \"target-features\"=\"+avx2\" {\n"
        . "  %r = add <8 x i32> %x, %x\n  ret <8 x i32> %r\n}\n");
    prints("<2, 4, 6, 8, 10, 12, 14, 16>\n", 'run', $vector, '--call', 'f', '<1, 2, 3, 4, 5, 6, 7, 8>')
        if -e '/proc/cpuinfo' && slurp('/proc/cpuinfo') =~ /^flags.*\bavx2\b/m;
    my $printed = (cairn('run', $file, '--call', 'change', '{1, {"a, b", [1, 2]}, <3, 4>}', 9))[1];
    like $printed, qr/\A\{ 9, \{ 0x[0-9a-f]{6,}, \[1, 2\] \}, <3, 4> \}\n\z/, 'text with a comma';
    my $call = sub { my ($status, $pattern, @words) = @_; fails($status, $pattern, 'run', $file, '--call', @words) };
    $call->(2, qr/argument 1, '$_', is not of type <4 x float>/, 'doubled', $_)
        for '1', '<1, 2, 3>', '<1, 2, 3, 4, 5>', '<1, 2, 3, 4> 5', '{1, 2, 3, 4}', '<1 2 3 4>';
    $call->(2, qr/argument 1, '(x|)', is not of type float/, 'doubled', $_) for '<1, x, 3, 4>', '<1, , 3, 4>', '<';
    $call->(2, qr/argument 1, '70000', does not fit an i16 \(-32768 to 65535\)/, 'change',
        '{1, {null, [1, 2]}, <3, 70000>}', 9);
    done_testing;
};

subtest 'run: types and functions that cannot be called' => sub {
    plan skip_all => 'built without LLVM' if !defined $run_version;
    my $file = sample('types', $run_version);
    my $call = sub { my ($status, $pattern, @words) = @_; fails($status, $pattern, 'run', $file, '--call', @words) };
    $call->(1, qr/the result of 'too_wide' is i256, .*: call it from an IR function with/, 'too_wide', 1);
    $call->(1, qr/parameter 1 of 'too_long' is \[300 x i8\], .*: call it from an IR function/, 'too_long', 1);
    $call->(1, qr/parameter 1 of 'by_value' is 'inreg', .*: call it from an IR function/, 'by_value', 1);
    $call->(1, qr/'other_convention' has LLVM's calling convention 10: .*call it from an IR/, 'other_convention');
    $call->(2, qr/takes 1 argument \(variable ones cannot be given\); 2 are given/, 'variable', 1, 2);
    $call->(2, qr/'340282366920938463463374607431768211456', does not fit an i128 \(-2\^127 to 2\^128 - 1\)/,
        'wide', '340282366920938463463374607431768211456');
    $call->(2, qr/'128', does not fit an i7 \(-64 to 127\)/, 'small_unsigned', 128);
    $call->(2, qr/argument 1, '$_', is not of type half/, 'half', $_) for 'x', '', '1.5.5', '0x';
    $call->(2, qr/argument 2, 'y', is not of type i8/, 'change', '{1, {null, [1, 2]}, <3, 4>}', 'y');
    done_testing;
};

subtest 'run: bitcode' => sub {
    plan skip_all => 'no llvm-as' if !defined $run_version || !-x ($llvm{$run_version} // '') . '/llvm-as';
    my ($status) = run("$llvm{$run_version}/llvm-as", sample('run', $run_version), '-o', "$folder/run.bc");
    is $status, 0, 'llvm-as';
    prints("21\n", 'run', "$folder/run.bc", '--call', 'word', 7);
    done_testing;
};

subtest 'run: sites' => sub {
    plan skip_all => 'built without LLVM' if !defined $run_version;
    my ($status, $out, $err) =
        cairn('run', sample('run', $run_version), '--sites', '--call', 'sites', 2);
    is "$status$err", '0', 'run --sites';
    like $out, qr/\A3 records, 2 sites\n/, 'how many there are';
    my ($patchpoint) = $out =~ /^(patchpoint ID 100 .*?)\n\n/ms;
    like $patchpoint, qr/at 0x[0-9a-f]+ = sites \+ 0x[0-9a-f]+$/m, 'address and function';
    like $patchpoint, qr/24 bytes at 0x[0-9a-f]+, state: no-op$/m, 'bytes and state';
    like $patchpoint, qr/0: \w+ 8 bytes, i64$/m, 'a register with its type';
    like $patchpoint, qr/, double$/m, 'a double';
    like $patchpoint, qr/2: constant -?1, i1$/m, 'a constant';
    like $patchpoint, qr/as LLVM emitted it:\n.*nop.*\n  (?:armed:|now: the same$)/ms, 'before and after';
    # Both disassemblies cover the whole region.
    for my $part ($patchpoint =~ /(?:emitted it|armed):\n((?:    .*(?:\n|\z))+)/g) {
        my $bytes = 0;
        $bytes += () = $_ =~ /\G(?: [0-9a-f]{2}(?= ))/g
            for map { s/^    0x[0-9a-f]+//r } split /\n/, $part;
        is $bytes, 24, 'all 24 bytes are shown';
    }
    like $out, qr/^stackmap ID 101 .*\n  0: \w+ 8 bytes, i64\n  no site/m, 'a stack map without shadow';
    like $out, qr/^patchpoint ID 102 .*\n  [03] bytes.*\n  cannot be patched while threads run: .+/m,
        'why a site is not managed';
    like $out, qr/\n\n7\n\z/, 'then the result';
    prints("0 records, 0 sites\n", 'run', spit('none.ll', "define void \@f() {\n ret void\n}\n"), '--sites');
    done_testing;
};

# LLVM's passes give several records the same ID.
subtest 'run: IDs with two shapes' => sub {
    plan skip_all => 'built without LLVM' if !defined $run_version;
    my $ir = '';
    $ir .= <<"END" for ['f', 'i32 7'], ['g', 'i64 %x'], ['h', 'i64 %x'];
define i64 \@$_->[0](i64 %x) {
  call void (i64, i32, ...) \@llvm.experimental.stackmap(i64 0, i32 0, $_->[1])
  ret i64 %x
}
END
    my $file = spit('conflict.ll', "declare void \@llvm.experimental.stackmap(i64, i32, ...)\n$ir");
    for my $target ([], ['--target', 'aarch64-linux-gnu']) {
        fails(1, qr/ID 0 has two shapes: in 'f' and in 'g'.*--id-conflicts renumber/, 'run', $file, '--sites', @$target);
        my ($status, $out, $error) = cairn('run', $file, '--sites', @$target, '--id-conflicts', 'renumber');
        is $status, 0, "renumbered: $error";
        my @ids = $out =~ /^ *stackmap ID (\d+) /mg;
        is_deeply [sort @ids], [2147483648, 2147483649, 2147483650], 'each has an ID of its own';
        ($status, $out, $error) = cairn('run', $file, '--sites', @$target, '--id-conflicts', 'undeclared');
        is $status, 0, "undeclared: $error";
        is scalar(() = $out =~ / ID 0 /g), 3, 'three records';
        unlike $out, qr/stackmap ID/, 'of no known kind';
    }
    prints("5\n", 'run', $file, '--call', 'f', 5, '--id-conflicts', 'renumber');
    fails(2, qr/'renumber' or 'undeclared'/, 'run', $file, '--sites', @$_)
        for ['--id-conflicts'], ['--id-conflicts', 'none'];
    done_testing;
};

subtest 'run: errors that LLVM reports' => sub {
    plan skip_all => 'built without LLVM' if !defined $run_version;
    my $file = spit('reported.ll', <<"END");
define i64 \@f(i64 %x) {
  call void asm sideeffect "nosuchinstruction 1", ""()
  ret i64 %x
}
END
    fails(1, qr/reported\.ll: LLVM: .*instruction/, 'run', $file, @$_)
        for ['--call', 'f', 1], ['--sites'], ['--sites', '--target', 'aarch64-linux-gnu'];
    done_testing;
};

subtest 'run: deoptimize' => sub {
    plan skip_all => 'built without LLVM' if !defined $run_version;
    my $file = spit('deoptimize.ll', <<"END");
declare i64 \@llvm.experimental.deoptimize.i64(...)
define i64 \@f(i64 %x) {
  %r = call i64 (...) \@llvm.experimental.deoptimize.i64() [ "deopt"(i64 %x, i32 3) ]
  ret i64 %r
}
END
    my ($status, $out, $error) = cairn('run', $file, '--sites');
    is $status, 0, "listed: $error";
    like $out, qr/statepoint ID 2882400015 .*i32 \(deopt value 1\)/s, 'with the types of its values';
    fails(1, qr/has called llvm.experimental.deoptimize/, 'run', $file, '--call', 'f', 1);
    done_testing;
};

# The pass makes statepoints whose callee is the second element of a closure.
subtest 'run: statepoints call closures' => sub {
    plan skip_all => 'built without LLVM, or with typed pointers' if !defined $run_version || $run_version < 15;
    my $file = spit('closure.ll', <<'END');
define i64 @right(ptr addrspace(1) %env, i64 %x) gc "statepoint-example" {
  %r = add i64 %x, 1000
  ret i64 %r
}
define i64 @call({ ptr addrspace(1), ptr } %closure, i64 %x) noinline gc "statepoint-example" {
  %env = extractvalue { ptr addrspace(1), ptr } %closure, 0
  %code = extractvalue { ptr addrspace(1), ptr } %closure, 1
  %r = call i64 %code(ptr addrspace(1) %env, i64 %x)
  ret i64 %r
}
define i64 @main(i64 %x) gc "statepoint-example" {
  %a = insertvalue { ptr addrspace(1), ptr } undef, ptr addrspace(1) null, 0
  %b = insertvalue { ptr addrspace(1), ptr } %a, ptr @right, 1
  %r = call i64 @call({ ptr addrspace(1), ptr } %b, i64 %x)
  ret i64 %r
}
define i64 @bad() gc "statepoint-example" {
  %p = alloca i64, addrspace(1)
  call i64 @main(i64 1)
  %r = load i64, ptr addrspace(1) %p
  ret i64 %r
}
END
    my @passes = ('--passes', 'rewrite-statepoints-for-gc', '--id-conflicts', 'renumber', '--call', 'main', 5);
    for my $level (0 .. 3) {
        my ($status, $out, $err) = cairn('run', spit('good.ll', slurp($file) =~ s/define i64 \@bad.*//sr), "-O$level",
            @passes);
        is "$status$out$err", "01005\n", "-O$level";
    }
    fails(1, qr/in 'bad': %p = alloca .* write alloca in address space 0/, 'run', $file, @passes);
    done_testing;
};

subtest 'run: sites of statepoints and calls' => sub {
    plan skip_all => 'built without LLVM' if !defined $run_version;
    my ($mangled, $pointer, $target) = $run_version < 15
        ? ('p0f_isVoidf', 'void ()*', 'void ()* @callee') : ('p0', 'ptr', 'ptr elementtype(void ()) @callee');
    my ($null, $any) = $run_version < 15
        ? ('i8*', 'i8* bitcast (void ()* @callee to i8*)') : ('ptr', 'ptr @callee');
    # On AArch64, LLVM emits the address of the symbol as a number.
    my $has_symbols = $emulator !~ /aarch64/;
    $any = "$null null" if !$has_symbols;
    my $file = spit('statepoint.ll', <<"END");
declare token \@llvm.experimental.gc.statepoint.$mangled(i64, i32, $pointer, i32, i32, ...)
declare void \@llvm.experimental.patchpoint.void(i64, i32, $null, i32, ...)
define void \@callee() {
  ret void
}
define i64 \@f(i64 %x) gc "statepoint-example" {
  call void (i64, i32, $null, i32, ...) \@llvm.experimental.patchpoint.void(i64 3, i32 16, $any, i32 0)
  %t = call token (i64, i32, $pointer, i32, i32, ...) \@llvm.experimental.gc.statepoint.$mangled(i64 4, i32 16, $target, i32 0, i32 0, i32 0, i32 0) [ "deopt"(i32 -7, i64 %x) ]
  ret i64 %x
}
END
    my ($status, $out, $err) = cairn('run', $file, '--sites', '--call', 'f', 6);
    is "$status$err", '0', 'run --sites';
    my ($statepoint) = $out =~ /^(statepoint ID 4 .*?)\n\n/ms;
    like $statepoint, qr/0: constant 0 \(calling convention\)\n  1: constant 0 \(flags\)\n/, 'its first constants';
    like $statepoint, qr/2: constant 2 \(number of deopt values\)\n  3: constant -7, i32 \(deopt value 0\)$/m,
        'deopt values';
    like $statepoint, qr/  4: .* 8 bytes, i64 \(deopt value 1\)\n  16 bytes at /, 'and their types';
    like $out, qr/state: call to 0x[0-9a-f]+ = callee$/m, 'targets are named' if $has_symbols;
    like $out, qr/\n\n6\n\z/, 'then the result';
    if ($has_symbols && has_terminal()) {
        my $terminal = `script -qec "env TERM=xterm $cairn run $file --sites" /dev/null < /dev/null`;
        like $terminal, qr/\e\[36mcallee\e\[0m/, 'in colour on a terminal';
    }
    unlike $out, qr/\e/, 'and not in a file';
    done_testing;
};

subtest 'run: invalid usage and input' => sub {
    plan skip_all => 'built without LLVM' if !defined $run_version;
    my $file = sample('run', $run_version);
    my $call = sub { my ($status, $pattern, @words) = @_; fails($status, $pattern, 'run', $file, '--call', @words) };
    $call->(1, qr/function 'missing' is not there; defined: negate, byte/, 'missing');
    $call->(1, qr/'strlen' is only declared/, 'strlen', 1);
    $call->(2, qr/takes 1 argument; 0 are given/, 'byte');
    $call->(2, qr/takes 1 argument; 2 are given/, 'byte', 1, 2);
    $call->(2, qr/'256', does not fit an i8 \(-128 to 255\)/, 'byte', 256);
    $call->(2, qr/'-129', does not fit an i8/, 'byte', -129);
    $call->(2, qr/'2', does not fit an i1/, 'negate', 2);
    $call->(2, qr/'18446744073709551616', does not fit an i64/, 'long_word', '18446744073709551616');
    $call->(2, qr/argument 1, '$_', is not of type i32/, 'word', $_) for 'x', '1x', '1.5', '0x', '';
    $call->(2, qr/'$_', is not of type double/, 'twice', $_) for 'x', '1.5.5', '';
    $call->(2, qr/'hello', is not an address/, 'length', 'hello');
    fails(2, qr/no file/, 'run');
    fails(2, qr/nothing to do/, 'run', $file);
    fails(2, qr/'5' is an argument, but --call is not given/, 'run', $file, 5, '--sites');
    fails(2, qr/-O needs a level from 0 to 3, not '4'/, 'run', $file, '-O4', '--sites');
    fails(2, qr/--call needs/, 'run', $file, '--call');
    fails(1, qr/cannot be opened: No such file/, 'run', '/nonexistent', '--sites');
    fails(1, qr/Is a directory/, 'run', $folder, '--sites');
    fails(1, qr/syntax\.ll:\d+:\d+: error: /, 'run',
        spit('syntax.ll', "define i32 \@f() {\n  %r = add i32 1,\n  ret i32 %r\n}\n"), '--call', 'f');
    fails(1, qr/verifier says: Instruction does not dominate all uses/, 'run',
        spit('verify.ll', "define i32 \@f(i1 %c) {\n br i1 %c, label %a, label %b\na:\n %r = add i32 1, 1\n"
            . " br label %b\nb:\n ret i32 %r\n}\n"), '--call', 'f', 1);
    fails(1, qr/undefined symbols?: nowhere/, 'run',
        spit('outside.ll', "declare void \@nowhere()\ndefine void \@f() {\n call void \@nowhere()\n ret void\n}\n"),
        '--call', 'f');
    fails(1, qr/undefined symbols?: nothing/, 'run',
        spit('variable.ll', "\@nothing = external global i32\n\@p = global "
            . ($run_version < 15 ? 'i32*' : 'ptr') . " \@nothing\ndefine void \@f() {\n ret void\n}\n"),
        '--call', 'f');
    fails(1, qr/(?:invalid|unrecognized) instruction/, 'run',
        spit('assembly.ll', "define void \@f() {\n call void asm sideeffect \"frobnicate\", \"\"()\n ret void\n}\n"),
        '--call', 'f');
    fails(1, qr/the module is for 'sparcv9-/, 'run',
        spit('machine.ll', "target triple = \"sparcv9-linux-gnu\"\ndefine void \@f() {\n ret void\n}\n"), '--call', 'f');
    my $stackmap = 'call void (i64, i32, ...) @llvm.experimental.stackmap';
    my $crashes = spit('crashes.ll', "declare void \@llvm.experimental.stackmap(i64, i32, ...)\n"
        . "define void \@f(i128 %x) {\n $stackmap(i64 1, i32 0, i128 %x)\n ret void\n}\n"
        . "define void \@g(i65 %x) {\n $stackmap(i64 2, i32 0, i65 %x)\n ret void\n}\n");
    my ($status, $out, $err) = cairn('run', $crashes, '--sites');
    is "$status$out", '1', 'IR on which LLVM would crash is refused';
    like $err, qr/\Acairn: \Q$crashes\E: in 'f': call [^\n]*i128[^\n]*; write [^\n]*\ncairn: \Q$crashes\E: in 'g': call [^\n]*i65[^\n]*; write [^\n]*\n\z/,
        'one line for each call';
    my $pointer = $run_version < 15 ? 'i8*' : 'ptr';
    my $target = spit('target.ll', "declare void \@llvm.experimental.patchpoint.void(i64, i32, $pointer, i32, ...)\n"
        . "define void \@f($pointer %p) {\n call void (i64, i32, $pointer, i32, ...) "
        . "\@llvm.experimental.patchpoint.void(i64 1, i32 64, $pointer %p, i32 0)\n ret void\n}\n");
    for my $level (0 .. 3) {
        fails(1, qr/in 'f': call .*target that is known only at run time; write /, 'run', $target, "-O$level", '--sites');
    }
    is system("$cairn run $file --sites > /dev/full 2> $folder/stderr") >> 8, 1, 'full disk';
    done_testing;
};

# Returns the sites that `run --sites` lists, by ID, without what depends on the address of the code.
sub listed_sites {
    my ($out) = @_;
    my %sites;
    no warnings 'portable';
    while ($out =~ /^ *(?:patchpoint|stackmap|statepoint) ID (\d+) at 0x([0-9a-f]+) = .*\n((?:  .*\n)*?)(?=^ *(?:patchpoint|stackmap|statepoint) |^\S|^  function|^\n|\z)/mg) {
        my ($id, $record, $text) = ($1, hex $2, $3);
        my %site = (offsets => join ' ', map { hex($_) - $record } $text =~ /(?:bytes? at|instruction at|return to) 0x([0-9a-f]+)/g);
        ($site{size}) = $text =~ /^ *(\d+) bytes? at /m;
        ($site{state}) = $text =~ /, state: (\S+)/;
        ($site{reason}) = $text =~ /cannot be patched while threads run: (.*)/;
        $site{reason} =~ s/0x[0-9a-f]+/ADDRESS/ if defined $site{reason} && $site{reason} =~ /a region of/;
        my @parts = $text =~ /(?:emitted it|armed):\n((?:    +0x.*\n)+)/g;
        $site{code} = [map { [map { s/^ +0x[0-9a-f]+ *//r } split /\n/] } @parts];
        $sites{$id} = \%site;
    }
    return \%sites;
}

# Patch points and shadows of all sizes and alignments are listed in the same way whether they were loaded or
# not. An LLVM that was compiled with -fcf-protection begins functions with an `endbr64` if code is loaded, but
# not in objects; functions with `nocf_check` are the same in both.
subtest 'run: --target for this machine lists what the library makes of sites' => sub {
    plan skip_all => 'built without LLVM' if !defined $run_version;
    my $is_word = `uname -m` !~ /x86_64/ || $emulator ne '';
    my $triple = $emulator =~ /aarch64/ ? 'aarch64-linux-gnu' : $emulator =~ /ppc64le/ ? 'powerpc64le-linux-gnu'
        : $is_word ? return : 'x86_64-linux-gnu';
    my ($pointer, $null) = $run_version < 15 ? ('i64*', 'i8* null') : ('ptr', 'ptr null');
    for my $round (1 .. $emulator eq '' ? 8 : 3) {
        my $body = '';
        for my $id (1 .. 40) {
            my $size = int(rand 9) * ($is_word ? 4 : 1) + ($is_word ? 0 : int rand 16);
            $body .= " store i64 $id, $pointer %p\n" if rand() < 0.5;
            $body .= " %a$id = add i64 %x, $id\n store i64 %a$id, $pointer %p\n" if rand() < 0.3;
            $body .= rand() < 0.5 ? " $patchpoint(i64 $id, i32 $size, ptr null, i32 0, i64 %x)\n"
                : " $stackmap(i64 $id, i32 $size, i64 %x)\n store i64 %x, $pointer %p\n";
        }
        my $text = "declare void \@llvm.experimental.stackmap(i64, i32, ...)\n"
            . "declare void \@llvm.experimental.patchpoint.void(i64, i32, ptr, i32, ...)\n"
            . "define void \@f(i64 %x, $pointer %p) nocf_check {\n$body ret void\n}\n";
        $text =~ s/\bptr\b(?! %p)/i8*/g if $run_version < 15;
        my $file = spit("sites-$round.ll", $text);
        my ($status, $loaded, $err) = cairn('run', $file, '--sites');
        is "$status$err", '0', 'loaded';
        ($status, my $compiled, $err) = cairn('run', $file, '--sites', '--target', $triple);
        is "$status$err", '0', 'compiled';
        my ($expected, $got) = map { listed_sites($_) } $loaded, $compiled;
        cmp_ok scalar keys %$expected, '>=', 30, 'sites';
        is_deeply $got, $expected, 'are the same' or rename $file, "sites-$seed-$round.ll";
    }
    done_testing;
};

subtest 'run: sites of every machine' => sub {
    plan skip_all => 'built without LLVM' if !defined $run_version;
    my %names = (x86_64 => 'x86-64', aarch64 => 'aarch64', powerpc64le => 'ppc64-elfv2',
        powerpc64 => 'ppc64-elfv1', s390x => 'systemz', riscv64 => 'riscv64');
    my $own = ((cairn('--version'))[1] =~ /, ([\w-]+)\)$/)[0];
    for my $triple (triples_of($run_version)) {
        my ($machine) = $triple =~ /^(\w+)-/;
        my $file = sample('patchpoints', $run_version);
        my ($status, $out, $err) = cairn('run', $file, '--sites', '--target', $triple);
        is "$status$err", '0', $triple;
        like $out, qr/^stack map 0: version 3, \Q$names{$machine}\E, 4 functions/, 'is what it was compiled for';
        like $out, qr/^    patchpoint ID 10 at 0x[0-9a-f]+ = calling \+ 0x[0-9a-f]+\n      0: \w+ 8 bytes, i64\n/m,
            'declared, with types';
        like $out, qr/^      2: constant 77, i64\n      48 bytes at 0x[0-9a-f]+, state: /m, 'with the bytes it reserves';
        if ($triple =~ /s390x|riscv/) {
            like $out, qr/, state: unmanaged\n      cannot be patched while threads run: sites of $names{$machine} are unmanaged\n      as LLVM emitted it:\n        0x/,
                'unmanaged';
            next;
        }
        like $out, qr/, state: call to 0x1000.*\n      can be patched/, 'and its call';
        like $out, qr/^      armed, with a no-op in the call's place:\n        0x/m, 'armed';
        next if $names{$machine} eq $own;
        # The module has the triple.
        my $text = "target triple = \"$triple\"\n" . slurp($file);
        prints($out, 'run', spit('own.ll', $text), '--sites');
        fails(1, qr/the program is for \Q$names{$machine}\E and cannot be called on \Q$own\E; --sites lists its sites/,
            'run', "$folder/own.ll", '--call', 'without_target', 1);
        fails(1, qr/the program is for \Q$names{$machine}\E and cannot be called on \Q$own\E;/,
            'run', $file, '--call', 'without_target', 1, '--target', $triple);
        # --target overrides the data layout and processor in the IR.
        my $other = slurp($file) =~ s/^(define [^{]*)\{/$1 "target-cpu"="x86-64" "target-features"="+avx2" {/mgr;
        prints($out, 'run', spit('other.ll', "target datalayout = \"e-m:e-i64:64-n8:16:32:64-S128\"\n"
            . "target triple = \"" . ($machine eq 'aarch64' ? 's390x' : 'aarch64') . "-linux-gnu\"\n$other"),
            '--sites', '--target', $triple);
    }
    prints("0 records, 0 sites\n", 'run', spit('none.ll', "define void \@f() {\n ret void\n}\n"),
        '--sites', '--target', $triples[4]);
    done_testing;
};

subtest 'run: objects' => sub {
    plan skip_all => 'built without LLVM' if !defined $run_version;
    plan skip_all => 'no llc' if !@compilers;
    my $object = compile('patchpoints', $compilers[-1], $triples[3], '-O2', '-enable-patchpoint-liveness=false');
    prints((cairn('stackmap', '-d', $object))[1], 'run', $object, '--sites');
    fails(1, qr/is for ppc64-elfv\d and cannot be called on/, 'run', $object, '--call', 'f');
    fails(2, qr/the file is an object, and $$_[0] needs LLVM IR/, 'run', $object, '--sites', @$_)
        for ['-O', 1], ['--cpu', 'pwr9'], ['--features', '+vsx'], ['--passes', 'gvn'], ['--id-conflicts', 'renumber'];
    fails(2, qr/the file is an object, and --target needs LLVM IR/, 'run', $object, '--sites', '--target', 'aarch64-linux-gnu');
    fails(1, qr/no section \.llvm_stackmaps/, 'run', spit('none', elf_with('', name => '.x')), '--sites');
    fails(1, qr/ends before its section table/, 'run', spit('short', substr(elf_with(''), 0, 100)), '--sites');
    done_testing;
};

subtest 'run: invalid targets' => sub {
    plan skip_all => 'built without LLVM' if !defined $run_version;
    my $file = sample('patchpoints', $run_version);
    fails(1, qr/does not know the architecture of 'sparcv9-linux-gnu'/, 'run', $file, '--sites', '--target', 'sparcv9-linux-gnu');
    fails(1, qr/no code generator for 'nonsense/, 'run', $file, '--sites', '--target', 'nonsense');
    fails(1, qr/objects for 'aarch64-apple-darwin' are not ELF/, 'run', $file, '--sites', '--target', 'aarch64-apple-darwin');
    fails(2, qr/--target needs a triple/, 'run', $file, '--sites', '--target');
    my ($own) = `uname -m` =~ /^(\w+)/;
    fails(2, qr/--target only lists sites; leave it out to call 'twice'/, 'run', $file,
        '--target', "$own-linux-gnu", '--call', 'twice', 1) if $emulator eq '' && $own eq 'x86_64';
    # IR on which LLVM would crash is refused.
    my $text = "declare void \@llvm.experimental.patchpoint.void(i64, i32, ptr, i32, ...)\n"
        . "define void \@f() {\n $patchpoint(i64 1, i32 6, ptr null, i32 0)\n ret void\n}\n";
    $text =~ s/\bptr\b/i8*/g if $run_version < 15;
    fails(1, qr/instructions have 4 bytes here; write a multiple of 4/, 'run', spit('six.ll', $text), '--sites',
        '--target', 'powerpc64le-linux-gnu');
    done_testing;
};

subtest 'run: without LLVM' => sub {
    plan skip_all => 'built with LLVM' if defined $run_version;
    fails(2, qr/built without LLVM/, 'run', spit('file.ll', ''), '--sites');
    fails(2, qr/built without LLVM/, 'compile', 'file.ll', '-o', 'file.o');
    done_testing;
};

# ---- cairn compile ----

# Returns what is listed, without addresses and without instructions that contain them.
sub without_addresses {
    my ($out) = @_;
    my $base = $out =~ /at 0x([0-9a-f]+) = / ? substr($1, 0, -6) : 'none';
    $out =~ s/\b0x$base[0-9a-f]{6}\b/ADDRESS/g;
    $out =~ s/^( +ADDRESS) .*(?:call|jmp|lea|bl|adrp?|addis|addi|ld|mov|movz|movk|lis|ori|sldi|oris).*$/$1/mg;
    return $out;
}

# Every sample of IR gives the same records, sites and results, whether it is compiled now or was compiled
# before.
subtest 'run: an object is like the IR that it was made of' => sub {
    plan skip_all => 'built without LLVM' if !defined $run_version;
    my %calls = (
        run => [['negate', 'false'], ['byte', '-128'], ['unsigned_byte', '-1'], ['single', '0.1'], ['twice', '0x1p-3'],
            ['pointer', '0x1000'], ['length', '"hello"'], ['say', '"hello"'], ['internal_one'], ['sites', 2],
            ['mix', 1 .. 18]],
        patchpoints => [['twice', 21], ['without_target', 3]],
    );
    # Under emulation, each call of IR takes a second, and objects are called with values of each type above.
    $calls{run} = [['mix', 1 .. 18], ['say', '"hello"'], ['sites', 2]] if $emulator ne '';
    $calls{types} = [['wide', '-1'], ['half', '0.1'], ['extended', '1e4000'], ['quadruple', '0.1'],
        ['doubled', '<1, 2, 3.5, -4>'], ['change', '{1, {16, [1, 0.1]}, <3, 65532>}', 9], ['pair', 3, -4], ['nothing']]
        if $emulator eq '';
    my @samples = (qw(run types patchpoints stackmaps), $run_version < 15 ? 'statepoint-14' : qw(statepoint frames));
    for my $name (@samples) {
        # What a sample only declares does nothing here.
        my $text = slurp(sample($name, $run_version));
        $text =~ s/^declare (void \@(?:callee|use|done|varied)\(.*\))/define $1 {\n  ret void\n}/mg;
        $text =~ s/^declare (([^\@]+) \@(?:outside|value|number|vector|__gxx_personality_v0)\(.*\))/define $1 {\n  ret $2 zeroinitializer\n}/mg;
        my $file = spit("$name-defined.ll", $text);
        for my $level ($emulator eq '' && !$is_repeated ? '-O0' : (), '-O2') {
            my ($status, $out, $err) = cairn('compile', $file, $level, '-o', "$folder/$name.o");
            if ($status != 0) {
                my ($refused, $said, $why) = cairn('run', $file, $level, '--sites');
                is "$status$out$err", "$refused$said$why", "$name is refused in the same way";
                next;
            }
            is "$out$err", '', "$name is compiled";
            my @listed = map { [cairn('run', @$_, '--sites')] } [$file, $level], ["$folder/$name.o"];
            is "$listed[$_][0]$listed[$_][2]", '0', 'listed' for 0, 1;
            is without_addresses($listed[1][1]), without_addresses($listed[0][1]), "$name $level: the same sites";
            for my $call (@{$calls{$name} // []}) {
                my @results = map { [cairn('run', @$_, '--call', @$call)] } [$file, $level], ["$folder/$name.o"];
                is_deeply $results[1], $results[0], "$name $level: @$call";
                is $results[0][0], 0, 'is called';
            }
        }
    }
    done_testing;
};

subtest 'compile: what an object of it contains' => sub {
    plan skip_all => 'built without LLVM' if !defined $run_version;
    my $file = sample('run', $run_version);
    my $object = "$folder/compiled.o";
    my ($status, $out, $err) = cairn('compile', $file, '--passes', 'default<O2>', '-o', $object);
    is "$status$out$err", '0', 'with passes';
    prints("21\n", 'run', $object, '--call', 'word', 7);
    fails(1, qr/function 'missing' is not there; defined: negate, byte/, 'run', $object, '--call', 'missing');
    fails(1, qr/'strlen' is only declared/, 'run', $object, '--call', 'strlen', 1);
    fails(2, qr/takes 1 argument; 0 are given/, 'run', $object, '--call', 'byte');
    my $own = $emulator ne '' || `uname -m` !~ /x86_64/;
    ($status, $out, $err) = cairn('compile', $file, '-o', $object, $own ? () : ('--cpu', 'host'));
    is "$status$out$err", '0', 'for this CPU';
    prints("21\n", 'run', $object, '--call', 'word', 7);
    my $outside = spit('outside.ll', "declare void \@nowhere()\ndefine void \@f() {\n call void \@nowhere()\n ret void\n}\n");
    is((cairn('compile', $outside, '-o', $object))[0], 0, 'what is not defined is searched for later');
    fails(1, qr/undefined symbols?: nowhere/, 'run', $object, '--call', 'f');
    done_testing;
};

# On such a machine, the name of the CPU stands for a feature that the system has turned off.
subtest 'compile: features are added to those of this CPU' => sub {
    plan skip_all => 'built without LLVM' if !defined $run_version;
    plan skip_all => 'the features are those of x86-64' if $emulator ne '' || `uname -m` !~ /x86_64/;
    plan skip_all => 'nothing may be loaded before a sanitizer' if ($ENV{CFLAGS} // '') =~ /sanitize/;
    my $machine = spit('machine.c', "#include <string.h>\nchar *LLVMGetHostCPUName(void) { return strdup(\"skylake\"); }\n"
        . "char *LLVMGetHostCPUFeatures(void) { return strdup(\"-rdseed\"); }\n");
    my ($status, undef, $complaints) = run('cc', '-w', '-shared', '-fPIC', $machine, '-o', "$folder/machine.so");
    is $status, 0, 'functions in place of LLVM\'s are compiled' or diag $complaints;
    my ($file, $object) = (sample('run', $run_version), "$folder/features.o");
    local $ENV{LD_PRELOAD} = "$folder/machine.so";
    for ([], ['--features', '+sha']) {
        my @result = cairn('compile', $file, '-o', $object, '--cpu', 'host', @$_);
        is "@result", '0  ', "compiled for this CPU @$_";
        my $bytes = slurp($object);
        ok $bytes =~ /\brdrnd\b/ && $bytes !~ /\brdseed\b/, 'with the features that it has';
        is $bytes =~ /\bsha\b/ ? 1 : 0, scalar @$_ / 2, 'and those that are added';
    }
};

subtest 'compile: PC sections are named in the manifest' => sub {
    plan skip_all => 'built without LLVM, or LLVM has no PC sections' if !defined $run_version || $run_version < 16;
    my $file = spit('pcs.ll', "define void \@f(ptr %p) {\n store atomic i64 1, ptr %p monotonic, align 8, !pcsections !0\n ret void\n}\n"
        . "!0 = !{!\"stores\", !1}\n!1 = !{i32 7}\n");
    my $object = "$folder/pcs.o";
    my $bytes = (cairn('--version'))[1] =~ /, ppc64/ ? 8 : 4;
    my @section = ('--section', 'stores', '--schema', "instruction $bytes u32");
    my @both = (@section, '--section', 'others', '--schema', 'function 8 u16 !C');
    my @before; # how often each name occurs, with no section in the manifest
    for my $case ([0, 0], [1, 0, @section], [1, 1, @both]) {
        my ($stores, $others, @options) = @$case;
        my ($status, $out, $err) = cairn('compile', $file, @options, '-o', $object);
        is "$status$out$err", '0', "compiled: @options";
        my @named = map { my $name = $_; scalar(() = slurp($object) =~ /$name/g) } qw(stores others);
        @before = @named if !@before;
        is_deeply \@named, [$before[0] + $stores, $before[1] + $others], 'the names';
        like +(cairn('pcsections', $object, @section))[1], qr/: 7 \(0x7\)/, 'the section';
        ($status, $out, $err) = cairn('run', $object, '--sites');
        is "$status$out$err", "00 records, 0 sites\n", 'is loaded';
    }
    fails(2, qr/--section is given 2 times and --schema 0 times/, 'compile', $file, '-o', $object, map { ('--section', $_) } qw(a b));
    fails(2, qr/schema/, 'compile', $file, '-o', $object, '--section', 'stores', '--schema', 'instruction 3');
    done_testing;
};

subtest 'compile: for another machine' => sub {
    plan skip_all => 'built without LLVM' if !defined $run_version;
    my $file = sample('patchpoints', $run_version);
    my ($own) = (cairn('--version'))[1] =~ /, ([\w-]+)\)$/;
    for my $triple (triples_of($run_version)) {
        my ($status, $out, $err) = cairn('compile', $file, '--target', $triple, '-o', "$folder/other.o");
        is "$status$out$err", '0', $triple;
        prints((cairn('run', $file, '--sites', '--target', $triple))[1], 'run', "$folder/other.o", '--sites')
            if $triple !~ /^x86_64/ || $own ne 'x86-64';
    }
    done_testing;
};

subtest 'run: an object for another CPU is refused with both lists of features' => sub {
    plan skip_all => 'built without LLVM' if !defined $run_version;
    my %missing = ('x86-64' => ['+amx-tile', 'amx-tile'], aarch64 => ['+sme', 'sme'], 'ppc64-elfv2' => ['+mma', 'mma']);
    my ($own) = (cairn('--version'))[1] =~ /, ([\w-]+)\)$/;
    my ($feature, $name) = @{$missing{$own} // []};
    plan skip_all => 'no such feature' if !defined $feature
        || (-e '/proc/cpuinfo' && slurp('/proc/cpuinfo') =~ /\bamx_tile\b/) || $emulator ne '';
    my $file = spit('cpu.ll', "define i64 \@f(i64 %x) {\n ret i64 %x\n}\n");
    is((cairn('compile', $file, '--features', $feature, '-o', "$folder/cpu.o"))[0], 0, 'compiled');
    my ($status, $out, $err) = cairn('run', "$folder/cpu.o", '--call', 'f', 1);
    is "$status$out", '1', 'refused';
    like $err, qr/needs a CPU with: .*\b$name\b/, 'what it needs';
    like $err, qr/this CPU has: \w/, 'what there is';
    like $err, qr/features that this CPU lacks: .*\b$name\b/, 'what is missing';
    done_testing;
};

subtest 'compile: a pipe is written, and not replaced by a file' => sub {
    plan skip_all => 'built without LLVM' if !defined $run_version;
    my ($file, $object, $pipe) = (sample('run', $run_version), "$folder/file.o", "$folder/pipe.o");
    system('mkfifo', $pipe) == 0 or die;
    my $reader = fork // die;
    exec 'sh', '-c', 'cat "$1" >"$1.copy"', 'sh', $pipe if $reader == 0;
    is((cairn('compile', $file, '-o', $pipe))[0], 0, 'compiled into the pipe');
    ok -p $pipe, 'which is still there' or kill 'TERM', $reader;
    waitpid $reader, 0;
    is((cairn('compile', $file, '-o', $object))[0], 0, 'compiled to a file');
    ok slurp("$pipe.copy") eq slurp($object), 'with the same contents';
    done_testing;
};

subtest 'compile: invalid usage and input' => sub {
    plan skip_all => 'built without LLVM' if !defined $run_version;
    my $file = sample('run', $run_version);
    fails(2, qr/no file is given/, 'compile');
    fails(2, qr/no output is given: -o OBJECT/, 'compile', $file);
    fails(2, qr/-O needs a level from 0 to 3, not '4'/, 'compile', $file, '-O4', '-o', "$folder/x.o");
    fails(2, qr/'renumber' or 'undeclared'/, 'compile', $file, '--id-conflicts', 'none', '-o', "$folder/x.o");
    fails(1, qr/LLVM cannot run the passes "nosuch"/, 'compile', $file, '--passes', 'nosuch', '-o', "$folder/x.o");
    fails(1, qr/cannot be opened: No such file/, 'compile', '/nonexistent', '-o', "$folder/x.o");
    fails(1, qr/cannot be written: No such file/, 'compile', $file, '-o', "$folder/no-folder/x.o");
    ok !-e "$folder/x.o", 'nothing is written';
    my $object = "$folder/damaged.o";
    is((cairn('compile', $file, '-o', $object))[0], 0, 'compiled');
    my $bytes = slurp($object);
    my $at = index $bytes, 'CAIRN-MF';
    cmp_ok $at, '>', 0, 'the manifest';
    fails(1, qr/version 2, this Cairn reads version 1/, 'run',
        spit('version.o', substr($bytes, 0, $at + 8) . "\2" . substr($bytes, $at + 9)), '--call', 'word', 1);
    fails(1, qr/section \.cairn\.manifest, offset 0: a unit does not begin with/, 'run',
        spit('magic.o', substr($bytes, 0, $at) . 'x' . substr($bytes, $at + 1)), '--call', 'word', 1);
    my $plain = spit('plain.o', substr($bytes, 0, 0) . ($bytes =~ s/cairn\.signatures/cairn.signaturex/gr));
    fails(1, qr/does not contain the types of its functions/, 'run', $plain, '--call', 'word', 1);
    done_testing;
};

done_testing;
