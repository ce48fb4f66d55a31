# Hostile files, which would take a command minutes or gigabytes if it took more than linear time: section
# headers with the same bytes, tables that refer to each other alternately, overlapping names, and so on. Each
# file has a few megabytes, and each command is limited to five seconds of processor time and a gigabyte of
# address space, or more with sanitizers.
#
# Runs in the build folder. In repeated builds (CAIRN_TEST_REPEATED) each file is given to one command, which
# is chosen at random.
#
# SPDX-License-Identifier: MIT
use strict;
use warnings;
use Compress::Zlib qw(compress);
use FindBin;
use JSON::PP;
use List::Util qw(shuffle);
use Test::More;
use lib $FindBin::Bin;
use CommandTest;

skip_test 'the command is built natively only' if ($ENV{CAIRN_TEST_RUNNER} // '') ne '';
skip_test 'the command is not built' if !defined $cairn;

my $is_repeated = ($ENV{CAIRN_TEST_REPEATED} // '') ne '';
my %type = (
    PROGBITS => 1, SYMTAB => 2, STRTAB => 3, RELA => 4, NOTE => 7, NOBITS => 8, MAP => 0x6fff4c0a);
use constant {ALLOC => 2, EXECUTED => 4, LINKED => 0x80, COMPRESSED => 0x800};

# ---- Files ----

# Returns an ELF file for x86-64. Sections are hashes of the fields of their headers; the first has number 1.
# Bytes that are a reference to the hash of another section are those of that section. `names` replaces the
# table of names; the names of sections are then offsets in it.
sub elf {
    my (%file) = @_;
    my ($bytes, $names) = ("\0" x 64, $file{names} // "\0");
    for my $section (@{$file{sections}}) {
        next if ref $section->{bytes} || ($section->{type} // '') eq 'NOBITS';
        $section->{offset} = length $bytes;
        $section->{size} = length($section->{bytes} // '');
        $bytes .= $section->{bytes} // '';
        $bytes .= "\0" x (-length($bytes) % 8);
    }
    my %offsets;
    my $table = pack 'x64';
    my $name_section = {name => $file{names} ? 0 : '.shstrtab', type => 'STRTAB'};
    for my $section (@{$file{sections}}, $name_section) {
        my $name = $section->{name};
        if (!$file{names} && !exists $offsets{$name}) {
            $offsets{$name} = length $names;
            $names .= "$name\0";
        }
        my $same = $section->{bytes};
        @$section{qw(offset size)} = @$same{qw(offset size)} if ref $same;
        ($section->{offset}, $section->{size}) = (length $bytes, length $names) if $section == $name_section;
        $table .= pack 'L<L<Q<Q<Q<Q<L<L<Q<Q<', $file{names} ? $name : $offsets{$name},
            $type{$section->{type} // 'PROGBITS'}, $section->{flags} // 0, $section->{address} // 0,
            $section->{offset} // 0, $section->{size} // 0, $section->{link} // 0, $section->{info} // 0, 1,
            $section->{entry} // 0;
    }
    my $segments = $file{segments} // '';
    $bytes .= $names . "\0" x (-length($bytes . $names) % 8);
    my $segment_offset = length $bytes;
    $bytes .= $segments;
    my $count = @{$file{sections}} + 2;
    # Numbers that do not fit the header are in section 0.
    substr $table, 32, 8, pack 'Q<', $count;
    substr $table, 40, 4, pack 'L<', $count - 1;
    my $is_large = $count >= 0xff00;
    my $header = "\x7fELF\2\1\1" . "\0" x 9 . pack 'S<S<L<Q<Q<Q<L<S<S<S<S<S<S<', $file{type} // 1, 62, 1, 0,
        $segments eq '' ? 0 : $segment_offset, length $bytes, 0, 64, 56, length($segments) / 56, 64,
        $is_large ? 0 : $count, $is_large ? 0xffff : $count - 1;
    substr $bytes, 0, 64, $header;
    return $bytes . $table;
}

sub symbol {
    my ($name, $info, $section, $value, $size) = @_;
    return pack 'L<CCS<Q<Q<', $name, $info, 0, $section, $value, $size // 0;
}

sub relocation {
    my ($offset, $symbol, $type, $addend) = @_;
    return pack 'Q<Q<q<', $offset, $symbol << 32 | $type, $addend // 0;
}

sub uleb {
    my ($value) = @_;
    my $bytes = '';
    for (; $value > 0x7f; $value >>= 7) { $bytes .= chr(0x80 | $value & 0x7f) }
    return $bytes . chr $value;
}

# Returns the map of a function with one block.
sub map_of {
    my ($address, $size) = @_;
    return pack('CCQ<', 2, 0, $address) . uleb(1) . uleb(0) . uleb(0) . uleb($size) . uleb(0);
}

# ---- Running ----

# Sanitizers reserve terabytes of address space.
my $memory = system("ulimit -v 1000000; $cairn --version > /dev/null 2>&1") == 0 ? 'ulimit -v 1000000;' : '';
note 'memory is not limited' if $memory eq '';
my $seconds = $memory eq '' ? 30 : 5;

# Returns the words that run a command within the limits.
sub with_limits {
    my ($input, @words) = @_;
    return ($input, '/bin/sh', '-c', "ulimit -t $seconds; $memory exec \"\$@\"", 'sh', $cairn, @words);
}

sub limited { return run_with(with_limits(@_)) }

my @commands = (
    ['stackmap'], ['bbmap'], ['bbmap', '--json'], ['faultmap'], ['sanmd'],
    ['pcsections', '--section', '.pcs', '--schema', 'instruction 8 u32'],
    ['pcsections'],
);

# Tests that all commands, or the given ones, end within the limits, and that an error message matches the
# pattern, if one is given.
sub stays_within_limits {
    my ($name, $bytes, $pattern, %more) = @_;
    my $path = spit('hostile', $bytes);
    my @more = $more{debug} ? ('--debug-file', spit('hostile.debug', $more{debug})) : ();
    my $asked = spit('asked', $more{asked} // "0x10\nfirst\n.text:0\n");
    my $samples = spit('samples', $more{samples} // "0x10\n");
    my @chosen = $more{commands} ? @{$more{commands}} : (@commands, ['lookup'], ['profile']);
    @chosen = $chosen[rand @chosen] if $is_repeated;
    my @results = run_all(map {
        my ($first, @options) = @$_;
        [with_limits($first eq 'lookup' ? $asked : '/dev/null', $first, $path,
            $first eq 'profile' ? $samples : (), @options, @more)];
    } @chosen);
    my @failed = map { "$chosen[$_][0]: $results[$_][0]: " . substr($results[$_][2], 0, 300) }
        grep { $results[$_][0] !~ /^[012]$/ } 0 .. $#chosen;
    is_deeply \@failed, [], "$name: " . length($bytes) . ' bytes';
    like join('', map { $_->[2] } @results), $pattern, "$name: error message" if defined $pattern && !$is_repeated;
}

my %text = (name => '.text', flags => ALLOC | EXECUTED, bytes => "\x90" x 4096);
my $empty_map = pack('CCS<L<L<L<', 3, 0, 0, 0, 0, 0);

# ---- Time ----

subtest 'relocation sections that refer to two symbol tables in turn' => sub {
    my @sections = (
        {%text}, {name => '.llvm_bb_addr_map', type => 'MAP', flags => LINKED, link => 1, bytes => map_of(0, 16)},
        {name => '.strtab', type => 'STRTAB', bytes => "\0first\0"});
    push @sections, {name => '.symtab', type => 'SYMTAB', link => 3, entry => 24,
        bytes => symbol(0, 0, 0, 0) . symbol(1, 0x12, 1, 0)} for 1, 2;
    push @sections, {name => '.rela', type => 'RELA', link => 4 + $_ % 2, info => 2, entry => 24,
        bytes => relocation(2, 1, 1)} for 1 .. 40000;
    stays_within_limits('alternating', elf(sections => \@sections));
};

subtest 'a string table without a final NUL' => sub {
    my $count = 60000;
    my @sections = (
        {%text}, {name => '.llvm_stackmaps', flags => ALLOC, bytes => $empty_map},
        {name => '.strtab', type => 'STRTAB', bytes => "\0first\0" . 'x' x 2000000},
        {name => '.symtab', type => 'SYMTAB', link => 3, entry => 24, bytes => join '',
            symbol(0, 0, 0, 0), map { symbol(10 + $_, 0x10, 1, $_ % 4096) } 1 .. $count});
    stays_within_limits('unterminated', elf(sections => \@sections));
    stays_within_limits('unterminated section names', elf(names => "\0" . 'x' x 2000000,
        sections => [map { {name => $_, bytes => ''} } 1 .. 30000]));
};

subtest 'sections without bytes, and a debug file' => sub {
    my $id = pack('L<L<L<', 4, 8, 3) . "GNU\0" . '12345678';
    my @notes = ({name => '.note', type => 'NOTE', bytes => $id}, {%text, address => 0x1000});
    # With sanitizers, each function of strings reads all of its string.
    my $names = "\0" . 'y' x ($memory eq '' ? 50000 : 400000) . "\0";
    for my $overlapping (0, 1) {
        my $name = sub { $overlapping ? $_[0] : "s$_[0]" };
        my @names = $overlapping ? (names => $names) : ();
        my $first = $overlapping ? [{%{$notes[0]}, name => 0}] : \@notes;
        my $file = elf(type => 2, @names, sections => [@$first,
            map { {name => $overlapping ? $_ : '.llvm_stackmaps', type => 'NOBITS', size => 16} } 1 .. 25000]);
        my $debug = elf(type => 2, @names, sections => [@$first,
            map { {name => $name->($_ + 25000), bytes => ''} } 1 .. 25000]);
        stays_within_limits('without bytes', $file, undef, debug => $debug);
    }
};

subtest 'notes that overlap' => sub {
    my $notes = {name => '.note', type => 'NOTE', bytes => "\0" x 600000};
    my @aliases = map { {name => '.note', type => 'NOTE', bytes => $notes} } 1 .. 8000;
    stays_within_limits('sections', elf(type => 2, sections => [$notes, @aliases]));
    my $segments = join '', map { pack 'L<L<Q<Q<Q<Q<Q<Q<', 4, 4, 64, 0, 0, 600000, 600000, 4 } 1 .. 8000;
    stays_within_limits('segments', elf(type => 2, sections => [{%$notes, type => 'PROGBITS'}], segments => $segments));
};

subtest 'sections over the same bytes' => sub {
    for my $case (['.llvm_bb_addr_map', 'MAP', map_of(0x1000, 16)], ['.llvm_stackmaps', 'PROGBITS', $empty_map],
        ['.llvm_faultmaps', 'PROGBITS', pack 'CCS<L<', 1, 0, 0, 0], ['.pcs', 'PROGBITS', "\0\0\0\0\0\0\0\0"],
        ['sanmd_atomics2', 'PROGBITS', "\x01"]) {
        my ($name, $type, $entry) = @$case;
        my $first = {name => $name, type => $type, bytes => $entry x (1000000 / length $entry)};
        my @aliases = map { {name => $name, type => $type, bytes => $first} } 1 .. 15000;
        stays_within_limits($name, elf(type => 2, sections => [$first, @aliases]), qr/overlaps others/);
    }
};

subtest 'overlapping names' => sub {
    my $count = 13000;
    my @sections = (
        {%text, address => 0x1000}, {name => '.strtab', type => 'STRTAB', bytes => "\0" . 'n' x 900000 . "\0"},
        {name => '.symtab', type => 'SYMTAB', link => 2, entry => 24, bytes => join '',
            symbol(0, 0, 0, 0), map { symbol($_, 0x12, 1, 0x1000 + $_, 1) } 1 .. $count},
        {name => '.llvm_bb_addr_map', type => 'MAP', bytes => join '', map { map_of(0x1000 + $_, 1) } 1 .. $count});
    stays_within_limits('functions', elf(type => 2, sections => \@sections), undef,
        asked => join '', map { 'n' x 500 . "\n" } 1 .. 4000);
    stays_within_limits('sections', elf(names => "\0" . 'n' x 900000 . "\0", sections =>
        [map { {name => $_, flags => ALLOC | EXECUTED, bytes => "\x90"} } 1 .. 15000]), undef,
        asked => join '', map { "nnnnn:0\n.text+1\n" } 1 .. 60000);
};

# Names that had the same hash when the key was a constant: two strings had the hash of the empty string, and
# so did all their concatenations.
subtest 'names with the same hash' => sub {
    my ($first, $second) = ('LSOPNNOOIPLKRSSSPOSO', 'JPQOLQRNDMJOPOMLMKPK');
    my ($size, $count) = (length $first, 30000);
    stays_within_limits('functions', elf(type => 2, sections => [{%text, address => 0x1000},
        {name => '.strtab', type => 'STRTAB', bytes => "\0" . $first x $count . "\0"},
        {name => '.symtab', type => 'SYMTAB', link => 2, entry => 24, bytes => join '', symbol(0, 0, 0, 0),
            map { symbol(1 + $size * $_, 0x12, 1, 0x1000 + $_ % 4096, 1) } 0 .. $count - 1}]), undef,
        asked => "$second\n" x 60000, commands => [['lookup']]);
    $count = 18000;
    my @sections = ({name => 0, type => 'NOTE', bytes => pack('L<L<L<', 4, 8, 3) . "GNU\0" . '12345678'},
        {%text, name => 0, address => 0x1000});
    my $names = "\0" . substr(($first x 199 . $second) x (1 + $count / 200), 0, $size * $count) . "\0";
    my $debug = elf(type => 2, names => "\0" . $first x $count . "$second\0",
        sections => [@sections, map { {name => 1 + $size * $_, bytes => ''} } 0 .. $count - 1]);
    stays_within_limits('sections', elf(type => 2, names => $names, sections => [@sections,
        map { {name => 1 + $size * $_, type => 'NOBITS', size => 16} } 0 .. $count - 1]), undef, debug => $debug);
};

subtest 'PC sections of one name after many others' => sub {
    stays_within_limits('names', elf(sections => [{%text},
        map { {name => $_, flags => LINKED, link => 1, bytes => "\0"} } map({ "xray_$_" } 1 .. 20000), ("pcs") x 20000]),
        qr/: pcs\b/, commands => [['pcsections']]);
};

# Returns a map with records; `$offset` returns the code offset of a record by its number.
sub records {
    my ($count, $offset) = @_;
    my $records = join '', map { pack 'Q<L<S<S<S<S<L<', $_, $offset->($_), 0, 0, 0, 0, 0 } 0 .. $count - 1;
    return pack('CCS<L<L<L<Q<Q<Q<', 3, 0, 0, 1, 0, $count, 0x1000, 8, $count) . $records;
}

subtest 'disassembled records' => sub {
    my $count = 10000;
    my %offsets = (
        'at one address' => sub { 0 }, 'from the last to the first' => sub { $count - $_[0] },
        'from the first to the last' => sub { $_[0] });
    for my $name (sort keys %offsets) {
        stays_within_limits($name, elf(type => 2, sections => [{%text, address => 0x1000, bytes => "\x90" x 500000},
            {name => '.llvm_stackmaps', flags => ALLOC, address => 0x100000, bytes => records($count, $offsets{$name})}]),
            undef, commands => [['stackmap', '--disassemble'], ['stackmap', '--disassemble', '--json']]);
    }
};

subtest 'lookups of many names' => sub {
    my $count = 30000;
    my ($names, $symbols, @offsets) = ("\0", symbol(0, 0, 0, 0));
    for (1 .. $count) {
        push @offsets, length $names;
        $names .= "name_$_\0";
    }
    $symbols .= symbol($offsets[$_ - 1], 0x12, 1, 0x1000 + $_, 1) for shuffle 1 .. $count;
    my $file = elf(type => 2, sections => [{%text, address => 0x1000, bytes => "\x90" x 50000},
        {name => '.strtab', type => 'STRTAB', bytes => $names},
        {name => '.symtab', type => 'SYMTAB', link => 2, entry => 24, bytes => $symbols}]);
    my @asked = map { 1 + int rand $count } 1 .. 60000;
    stays_within_limits('functions', $file, undef, asked => join '', map { "name_$_\n" } @asked);
    my (undef, $out) = limited(spit('asked', join '', map { "name_$_\n" } @asked[0 .. 999]), 'lookup',
        "$folder/hostile");
    my @found = $out =~ /^0x([0-9a-f]+)/mg;
    is_deeply [map { hex } @found], [map { 0x1000 + $_ } @asked[0 .. 999]], 'each is found';
};

subtest 'dynamic relocations and sections that are loaded' => sub {
    my $relocations = join '', map { relocation(0x10000 + 8 * $_, 0, 8, $_) } shuffle 0 .. 39999;
    my @sections = {name => '.rela.dyn', type => 'RELA', flags => ALLOC, entry => 24, bytes => $relocations};
    push @sections, {name => '.llvm_stackmaps', flags => ALLOC, address => 0x10000 + 16 * $_, bytes => $empty_map}
        for 1 .. 15000;
    stays_within_limits('apart', elf(type => 3, sections => \@sections));
    $_->{address} = 0x10000 for @sections[1 .. $#sections];
    stays_within_limits('at one address', elf(type => 3, sections => \@sections));
};

subtest 'one long name of all entries' => sub {
    my ($name, $count) = ("\x9b" x 9000, 30000);
    my $pcs = join '', map { pack 'l<', 0x1000 - (0x100000 + 4 * $_) } 0 .. $count - 1;
    my %sections = (
        '.llvm_bb_addr_map' => [map_of(0x1000, 16) x $count, ['bbmap'], ['bbmap', '--json']],
        '.llvm_faultmaps' => [pack('CCS<L<', 1, 0, 0, 1) . pack('Q<L<L<', 0x1000, $count, 0) . pack('L<L<L<', 1, 0, 0) x $count,
            ['faultmap']],
        '.llvm_stackmaps' => [pack('CCS<L<L<L<', 3, 0, 0, $count, 0, 0) . pack('Q<Q<Q<', 0x1000, 8, 0) x $count,
            ['stackmap']],
        '.pcs' => [$pcs, ['pcsections', '--section', '.pcs', '--schema', 'instruction 4']],
        'sanmd_atomics2' => [$pcs, ['sanmd']],
    );
    for my $section (sort keys %sections) {
        my ($bytes, @commands) = @{$sections{$section}};
        stays_within_limits($section, elf(type => 2, sections => [{%text, address => 0x1000},
            {name => '.strtab', type => 'STRTAB', bytes => "\0$name\0"},
            {name => '.symtab', type => 'SYMTAB', link => 2, entry => 24, bytes =>
                symbol(0, 0, 0, 0) . symbol(1, 0x12, 1, 0x1000, 4096)},
            {name => $section, type => $section =~ /bb_addr/ ? 'MAP' : 'PROGBITS', flags => ALLOC,
                address => 0x100000, bytes => $bytes},
            {name => 'sanmd_covered2', flags => ALLOC, address => 0x300000,
                bytes => pack('l<', 0x1000 - 0x300000) . uleb(4096) . uleb(1)}]), undef, commands => \@commands);
    }
};

subtest 'a long name is written in full until long names have a total' => sub {
    my ($name, $count) = ('n' x 1000, 20000);
    my $path = spit('hostile', elf(type => 2, sections => [{%text, address => 0x1000},
        {name => '.strtab', type => 'STRTAB', bytes => "\0$name\0"},
        {name => '.symtab', type => 'SYMTAB', link => 2, entry => 24, bytes =>
            symbol(0, 0, 0, 0) . symbol(1, 0x12, 1, 0x1000, 16)},
        {name => '.llvm_bb_addr_map', type => 'MAP', bytes => map_of(0x1000, 16) x $count}]));
    my $total = 2**24 + -s $path;
    my (undef, $out) = limited('/dev/null', 'bbmap', $path);
    my @names = $out =~ /^function (n+(?:\.\.\.)?) at/mg;
    is scalar(grep { $_ eq $name } @names), 1 + int(($total - 8192) / 1000), 'written in full';
    is $names[-1], 'n' x 200 . '...', 'cut';
    (undef, $out) = limited('/dev/null', 'bbmap', $path, '--json');
    # Perl's decoder takes seconds for 16 MB.
    $out =~ s/"$name"/"full"/g;
    my $functions = decode_json($out);
    is scalar @$functions, $count, 'JSON is valid';
    is_deeply [map { $_->{symbol} } @$functions], [map { $_ eq $name ? 'full' : $_ } @names], 'and has the same names';
};

# Many lookups of one address about which the file contains much.
my $asked_often = "1000\n" x 5000;

subtest 'records and faults of one address' => sub {
    my $faults = join '', map { pack 'L<L<L<', 1, $_, 0 } 1 .. 40000;
    my %sections = (
        '.llvm_stackmaps' => [records(20000, sub { 0 }), 'records', 20000, 'record ID'],
        '.llvm_faultmaps' => [pack('CCS<L<Q<L<L<', 1, 0, 0, 1, 0x1000, 40000, 0) . $faults, 'handles', 40000,
            'handler of a'],
    );
    for my $name (sort keys %sections) {
        my ($bytes, $key, $count, $words) = @{$sections{$name}};
        stays_within_limits($name, elf(type => 2, sections => [{%text, address => 0x1000},
            {name => $name, flags => ALLOC, address => 0x100000, bytes => $bytes}]), undef,
            asked => $asked_often, commands => [['lookup'], ['lookup', '--json']]);
        my (undef, $out) = limited('/dev/null', 'lookup', "$folder/hostile", '1000');
        is scalar(() = $out =~ /^  \Q$words\E/mg), 64, '64 are shown';
        like $out, qr/^  and @{[$count - 64]} more (?:records|faults)$/m, 'the number of the others';
        (undef, $out) = limited('/dev/null', 'lookup', "$folder/hostile", '1000', '--json');
        my ($answer) = @{decode_json($out)};
        is_deeply [scalar @{$answer->{$key}}, $answer->{"more_$key"}], [64, $count - 64], 'the same as JSON';
    }
};

subtest 'one record with many values' => sub {
    my $location = pack 'CCS<S<S<l<', 1, 0, 8, 0, 0, 0;
    my $record = pack('Q<L<S<S<', 7, 0, 0, 60000) . $location x 60000 . pack('S<S<x4', 0, 0);
    my $map = pack('CCS<L<L<L<Q<Q<Q<', 3, 0, 0, 1, 0, 1, 0x1000, 0, 1) . $record;
    stays_within_limits('locations', elf(type => 2, sections => [{%text, address => 0x1000},
        {name => '.llvm_stackmaps', flags => ALLOC, address => 0x100000, bytes => $map}]), undef,
        asked => $asked_often, commands => [['lookup'], ['lookup', '--json']]);
    my (undef, $out) = limited('/dev/null', 'lookup', "$folder/hostile", '1000');
    like $out, qr/^    and 59744 more locations$/m, 'the number of those not shown';
    (undef, $out) = limited('/dev/null', 'lookup', "$folder/hostile", '1000', '--json');
    my ($answer) = @{decode_json($out)};
    my $shown = $answer->{records}[0];
    is_deeply [scalar @{$shown->{locations}}, $shown->{more_locations}], [256, 59744], 'the same as JSON';
};

subtest 'PC entries of one address' => sub {
    my %entries = (
        'function 4' => join('', map { pack 'l<L<', 0x1000 - (0x100000 + 8 * $_), 0x1000 } 0 .. 59999),
        'instruction 4' => join('', map { pack 'l<', 0x1000 - (0x100000 + 4 * $_) } 0 .. 119999),
    );
    for my $schema (sort keys %entries) {
        stays_within_limits($schema, elf(type => 2, sections => [{%text, address => 0x1000},
            {name => '.pcs', flags => ALLOC, address => 0x100000, bytes => $entries{$schema}}]), undef,
            asked => $asked_often, commands => [map { ['lookup', '--section', '.pcs', '--schema', $schema, @$_] } [], ['--json']]);
    }
};

# An archive of members with these names and sizes; without bytes if it is thin.
sub archive {
    my ($magic, $names, @members) = @_;
    my $header = sub { sprintf "%-16s%-12d%-6d%-6d%-8o%-10d`\n", $_[0], 0, 0, 0, 0644, $_[1] };
    return "!<$magic>\n" . $header->('//', length $names) . $names . "\n" x (length($names) % 2)
        . join '', map { $header->(@$_) } @members;
}

subtest 'members with one name' => sub {
    stays_within_limits('long', archive('arch', 'n' x 500000, map { ["/$_", 0] } 0 .. 15000), qr/has 4096 bytes or more/);
    stays_within_limits('ends', archive('arch', 'n' x 4000 . "/\n", map { ["/$_", 0] } map { $_ % 3000 } 0 .. 15000));
};

subtest 'members of a thin archive that are one file' => sub {
    spit('large.o', elf(type => 2, sections => [{%text, address => 0x1000},
        {name => '.llvm_bb_addr_map', type => 'MAP', bytes => map_of(0x1000, 16) x 70000}]));
    stays_within_limits('large', archive('thin', "large.o/\n", map { ['/0', 5] } 1 .. 2000),
        qr/an earlier member is the same file/, commands => [['stackmap'], ['bbmap']]);
};

# ---- Memory ----

subtest 'relocation sections over the same entries' => sub {
    my $entries = {name => '.rela', type => 'RELA', link => 4, info => 2, entry => 24,
        bytes => relocation(2, 1, 1) x 20000};
    my @sections = (
        {%text}, {name => '.llvm_bb_addr_map', type => 'MAP', flags => LINKED, link => 1, bytes => map_of(0, 16)},
        {name => '.strtab', type => 'STRTAB', bytes => "\0first\0"},
        {name => '.symtab', type => 'SYMTAB', link => 3, entry => 24, bytes => symbol(0, 0, 0, 0) . symbol(1, 0x12, 1, 0)},
        $entries, map { {%$entries, bytes => $entries} } 1 .. 5000);
    stays_within_limits('5000 headers', elf(sections => \@sections), qr/relocations in section \d+ cannot be read/);
};

subtest 'relocated sections over the same bytes' => sub {
    my $first = {name => '.llvm_stackmaps', bytes => "\3" . "\0" x 999999};
    my @sections = ({name => '.strtab', type => 'STRTAB', bytes => "\0"},
        {name => '.symtab', type => 'SYMTAB', link => 1, entry => 24, bytes => symbol(0, 0, 0, 0)}, $first);
    push @sections, {%$first, bytes => $first} for 1 .. 3000;
    push @sections, {name => '.rela', type => 'RELA', link => 2, info => 2 + $_, entry => 24,
        bytes => relocation(0, 0, 1, 3)} for 1 .. 3001;
    stays_within_limits('3001 sections', elf(sections => \@sections));
};

subtest 'compressed sections' => sub {
    my $compressed = pack('L<L<Q<Q<', 1, 0, 60_000_000, 1) . compress("\0" x 60_000_000);
    my $first = {name => '.llvm_bb_addr_map', type => 'MAP', flags => COMPRESSED, bytes => $compressed};
    stays_within_limits('one', elf(type => 2, sections => [$first]),
        qr/section '\.llvm_bb_addr_map' needs more memory than the object may take: \d+ bytes .* limit is \d+/);
    stays_within_limits('40 headers', elf(type => 2, sections => [$first, map { {%$first, bytes => $first} } 1 .. 40]));
    my $path = spit('hostile', elf(type => 2, sections => [$first]));
    my (undef, undef, $err) = limited('/dev/null', 'bbmap', $path, '--memory', '500M');
    unlike $err, qr/memory/, 'it can be read with more memory';
    # A section whose header says that it is far larger than it is.
    $first->{bytes} = pack('L<L<Q<Q<', 1, 0, 1 << 40, 1) . compress("\0" x 1000);
    stays_within_limits('a terabyte', elf(type => 2, sections => [$first]), qr/needs more memory/);
};

subtest 'files without an end' => sub {
    my $fifo = "$folder/fifo";
    system('mkfifo', $fifo) == 0 or die;
    for my $path ($fifo, '/dev/zero', '/dev/null') {
        my ($status, $out, $err) = limited('/dev/null', 'stackmap', $path);
        is_deeply [$status, $out, $err], [1, '', "cairn: $path: this is not a regular file\n"], $path;
        my $thin = spit('thin.a', "!<thin>\n" . sprintf("%-16s%-12d%-6d%-6d%-8o%-10d`\n", '//', 0, 0, 0, 0644, length($path) + 2)
            . "$path/\n" . (length($path) % 2 ? "\n" : '') . sprintf "%-16s%-12d%-6d%-6d%-8o%-10d`\n", '/0', 0, 0, 0, 0644, 5);
        ($status, $out, $err) = limited('/dev/null', 'stackmap', $thin);
        like $err, qr/member '\Q$path\E' of the thin archive: this is not a regular file/, "$path as a thin member";
        is $status, 1, 'status';
    }
    my ($status, undef, $err) = limited('/dev/zero', 'stackmap', '-', '--memory', '1M');
    like $err, qr/\Acairn: -: standard input has more than 1048576 bytes/, 'standard input is bounded';
    is $status, 1, 'status';
};

# ---- Names with control characters ----

# U+009B begins an escape sequence, as a character and, in other encodings, as a byte.
my %shown = (
    "a\xc2\x9bb" => ['a\\xc2\\x9bb', "a\x{9b}b"], "a\x9bb" => ['a\\x9bb', "a\x{fffd}b"],
    "a\eb\x7f" => ['a\\x1bb\\x7f', "a\eb\x7f"], "\xff\xc3" => ['\\xff\\xc3', "\x{fffd}\x{fffd}"],
    "gr\xc3\xb6\xc3\x9fe" => ["gr\xc3\xb6\xc3\x9fe", "gr\x{f6}\x{df}e"],
    'x' x 8191 . "\xc3\xb6" => ['x' x 8191 . '...', 'x' x 8191 . '...'],
);

subtest 'control characters in names are escaped' => sub {
    my $control = qr/[\x00-\x08\x0b-\x1f\x7f]|\xc2[\x80-\x9f]|(?<![\xc2-\xf4\x80-\xbf])[\x80-\xbf]/;
    for my $name (sort keys %shown) {
        my ($text, $json) = @{$shown{$name}};
        my $label = join ' ', map { sprintf '%02x', ord } split //, substr $name, 0, 8;
        my @sections = ({%text, name => $name, address => 0x1000},
            {name => '.strtab', type => 'STRTAB', bytes => "\0$name\0"},
            {name => '.symtab', type => 'SYMTAB', link => 2, entry => 24, bytes =>
                symbol(0, 0, 0, 0) . symbol(1, 0x12, 1, 0x1000, 16)},
            {name => '.llvm_bb_addr_map', type => 'MAP', bytes => map_of(0x1000, 16)});
        my $path = spit('hostile', elf(type => 2, sections => \@sections));
        my (undef, $out, $err) = limited('/dev/null', 'bbmap', $path);
        like $out, qr/\Q$text\E/, "$label: text";
        unlike $out . $err, $control, 'no control characters';
        (undef, $out) = limited('/dev/null', 'bbmap', '--json', $path);
        is decode_json($out)->[0]{symbol}, $json, "$label: JSON";
        unlike $out, $control, 'no control characters';
        # In error messages: as the name of a member, of a section, and of what is looked up.
        $name = substr $name, 0, 100;
        my $archive = spit('hostile.a', "!<arch>\n" . sprintf("%-16s%-12d%-6d%-6d%-8o%-10d`\n", '//', 0, 0, 0, 0644,
            length($name) + 2 + length($name) % 2) . "$name/\n" . (length($name) % 2 ? "\n" : '')
            . sprintf "%-16s%-12d%-6d%-6d%-8o%-10d`\n", '/0', 0, 0, 0, 0644, 1000);
        for my $words (['stackmap', $archive], ['lookup', $path, "$name:9999999"], ['bbmap', "$folder/$name"]) {
            (undef, $out, $err) = limited('/dev/null', @$words);
            unlike $out . $err, $control, "$words->[0]: no control characters in the error message";
            like $err, qr/\Acairn: [^\n]+\n\z/, 'in one line';
        }
    }
};

# ---- Missing and unexpected relocations ----

subtest 'addresses without relocations are errors' => sub {
    my %contents = (
        '.llvm_bb_addr_map' => [map_of(0, 16), 2, 'MAP', 'bbmap'],
        '.llvm_stackmaps' => [pack('CCS<L<L<L<Q<Q<Q<', 3, 0, 0, 1, 0, 0, 0, 8, 0), 16, 'PROGBITS', 'stackmap'],
        '.llvm_faultmaps' => [pack('CCS<L<Q<L<L<', 1, 0, 0, 1, 0, 0, 0), 8, 'PROGBITS', 'faultmap'],
    );
    for my $name (sort keys %contents) {
        my ($bytes, $offset, $type, $command) = @{$contents{$name}};
        my @sections = ({%text}, {name => $name, type => $type, bytes => $bytes},
            {name => '.strtab', type => 'STRTAB', bytes => "\0first\0"},
            {name => '.symtab', type => 'SYMTAB', link => 3, entry => 24, bytes =>
                symbol(0, 0, 0, 0) . symbol(1, 0x12, 1, 0, 16)},
            {name => '.rela', type => 'RELA', link => 4, info => 2, entry => 24, bytes => relocation($offset, 1, 1)});
        my ($status, $out, $err) = limited('/dev/null', $command, spit('hostile', elf(sections => \@sections)));
        is_deeply [$status, $err], [0, ''], "$name with a relocation";
        my $path = spit('hostile', elf(sections => [@sections[0 .. 3]]));
        for my $words ([$command, $path], ['lookup', $path, '0']) {
            ($status, $out, $err) = limited('/dev/null', @$words);
            is $status, 1, "$words->[0]: $name without one";
            like $err, qr/\A\Qcairn: $path: $name, byte $offset: the address of a function has no relocation\E/, 'the error message';
        }
    }
};

subtest 'a schema whose constants have relocations is refused' => sub {
    my @sections = ({%text}, {name => '.pcs', flags => LINKED, link => 1, bytes => "\0" x 32},
        {name => '.strtab', type => 'STRTAB', bytes => "\0first\0"},
        {name => '.symtab', type => 'SYMTAB', link => 3, entry => 24, bytes =>
            symbol(0, 0, 0, 0) . symbol(1, 0x12, 1, 0, 16)},
        {name => '.rela', type => 'RELA', link => 4, info => 2, entry => 24, bytes => ''});
    # Distances of 4 bytes at these places: entries of 4 + 4 bytes, and runs.
    for my $case ([[0, 8, 16, 24], 'instruction 4 u32', 'instruction 4 u64'], [[0, 12, 24], 'instruction 4 u64', 'instruction 4 u32 u32 u32'],
        [[0, 4, 8, 12, 16, 20, 24, 28], 'instruction 4', 'instruction 8'], [[0, 16], 'function 4 u64', 'function 4 u64 u64']) {
        my ($places, $right, $wrong) = @$case;
        $sections[4]{bytes} = join '', map { relocation($_, 1, 2) } @$places;
        my $path = spit('hostile', elf(sections => \@sections));
        my ($status, $out, $err) = limited('/dev/null', 'pcsections', $path, '--section', '.pcs', '--schema', $wrong);
        is $status, 1, "$wrong for $right";
        like $err, qr/byte \d+ has a relocation, so it is an address and not a constant|does not lead to code/,
            'is refused';
        ($status, $out, $err) = limited('/dev/null', 'lookup', $path, '.text:0', '--section', '.pcs', '--schema', $wrong);
        like $err, qr/has a relocation|does not lead to code/, 'by lookup';
        ($status, $out, $err) = limited('/dev/null', 'pcsections', $path, '--section', '.pcs', '--schema', $right);
        unlike $err, qr/has a relocation/, "$right";
    }
};

# ---- Mappings ----

# Returns a program with one function of 4096 bytes, which has a block for each 16 bytes.
sub program {
    my $text = {%text, address => 0x1000};
    my $map = pack('CCQ<', 2, 0, 0x1000) . uleb(256) . join '', map { uleb($_) . uleb(0) . uleb(16) . uleb(8) } 0 .. 255;
    my $segments = pack 'L<L<Q<Q<Q<Q<Q<Q<', 1, 5, 64, 0x1000, 0x1000, 4096, 4096, 4096;
    return elf(type => 3, segments => $segments,
        sections => [$text, {name => '.llvm_bb_addr_map', type => 'MAP', bytes => $map}]);
}

sub mapping {
    my ($address, $size) = @_;
    return sprintf "%x-%x r-xp 00000040 08:01 7 /elsewhere/hostile\n", $address, $address + $size;
}

subtest 'mappings and samples' => sub {
    my $lines = join '', map { mapping($_ << 12, 4096) . sprintf "%x\n", (int(rand $_) << 12) + 5 } 1 .. 30000;
    stays_within_limits('apart', program(), undef, samples => $lines);
    $lines = join '', map { mapping(4096 * $_, 4096 * (60000 - 2 * $_)) . sprintf "%x\n", 4096 * $_ + 1 } 1 .. 25000;
    stays_within_limits('overlapping', program(), undef, samples => $lines);
};

subtest 'the last mapping that contains an address is used' => sub {
    my $path = spit('hostile', program());
    for my $round (1 .. 20) {
        my (@mappings, %expected, $lines);
        for (1 .. 200) {
            if (rand() < 0.4) {
                my ($address, $size) = (0x100000 + 16 * int rand 64, 16 * (1 + int rand 32));
                push @mappings, [$address, $size];
                $lines .= mapping($address, $size);
                next;
            }
            my $sample = 0x100000 + int rand 2048;
            $lines .= sprintf "%x\n", $sample;
            my ($last) = grep { $sample >= $_->[0] && $sample < $_->[0] + $_->[1] } reverse @mappings;
            my $address = @mappings == 0 ? $sample : defined $last ? $sample - $last->[0] + 0x1000 : next;
            $expected{int(($address - 0x1000) / 16)}++ if $address < 0x2000;
        }
        my (undef, $out) = limited('/dev/null', 'profile', $path, spit('samples', $lines), '--json');
        my %found = map { (($_->{address} - 0x1000) / 16, $_->{samples}) } @{decode_json($out)->{blocks}};
        is_deeply \%found, \%expected, "round $round" or last;
    }
};

done_testing;
