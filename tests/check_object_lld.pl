# Compares what the loader makes of objects with what ld.lld makes of them at the same addresses: C and IR
# compiled by clang and llc, and random IR of llvm-stress, for every architecture, with external symbols at
# random distances.
#
# Where ld.lld has its own slots, stubs and thunks, the slots must hold the same address, and stubs are not
# compared: tests/check_object_run.pl runs them. If the loader refuses a distance, so must ld.lld.
#
# CAIRN_TEST_ROUNDS is the number of random objects for each architecture; there are fewer in repeated builds
# (CAIRN_TEST_REPEATED), which may have another LLVM.
#
# SPDX-License-Identifier: MIT
use strict;
use warnings;
no warnings 'portable'; # numbers have 64 bits
use FindBin;
use lib $FindBin::Bin;
use CommandTest;
use Test::More;

my $source = $ENV{srcdir} // '.';
my $rounds = $ENV{CAIRN_TEST_ROUNDS} // (($ENV{CAIRN_TEST_REPEATED} // '') eq '' ? 12 : 3);
my $version = llvm_version('ld.lld');
skip_test 'ld.lld is not installed' if !defined $version;
skip_test 'tests/link_objects was not built' if !-x 'tests/link_objects';
my %tools = map { $_ => "$llvm{$version}/$_" } qw(ld.lld clang llc llvm-stress llvm-readelf);
skip_test "LLVM $version has no llc or llvm-readelf" if !-x $tools{llc} || !-x $tools{'llvm-readelf'};

# The target, ld.lld's emulation, the code models, the instruction set with other relocations, and the distance
# from the start of the loader's table to its base.
my @machines = (
    ['x86_64-linux-gnu',      'elf_x86_64',  [qw(small medium large)], '',               0],
    ['aarch64-linux-gnu',     'aarch64linux', [qw(tiny small large)],  '',               0],
    ['powerpc64le-linux-gnu', 'elf64lppc',   [qw(small medium large)], '-mcpu=power10', 0x8000],
    ['powerpc64-linux-gnu',   'elf64ppc',    [qw(small medium large)], '',               0x8000],
);

# ---- Reading ----

# Reads objects. Returns for each, by name, the relocations of each section: {offset, type, symbol, addend}, and the names that
# it does not define, by their binding, GLOBAL or WEAK.
sub read_objects {
    my (@objects) = @_;
    my (%read, $object, $section);
    # With one file alone, the tool does not print its name.
    for (qx($tools{'llvm-readelf'} -rsW @objects $objects[0])) {
        if (/^File: (.*)/) {
            $object = $read{$1} = {relocations => {}, GLOBAL => [], WEAK => []};
        } elsif (/^Relocation section '\.rela(\S*)'/) {
            $section = $1;
        } elsif (/^\s*\d+:(?:\s+\S+){3}\s+(GLOBAL|WEAK)\s+.*\sUND\s+(\S+)/) {
            push @{$object->{$1}}, $2;
        } elsif (/^([0-9a-f]{8,16})\s+[0-9a-f]+\s+(R_\S+)\s+(?:[0-9a-f]+\s+)?(.*)$/) {
            my ($offset, $type, $rest) = (hex $1, $2, $3);
            my ($symbol, $sign, $addend) = $rest =~ /^(\S*?)\s*(?:([+-])\s*([0-9a-f]+))?$/;
            $addend = defined $addend ? ($sign eq '-' ? -hex $addend : hex $addend) : 0;
            push @{$object->{relocations}{$section}}, {offset => $offset, type => $type, symbol => $symbol // '', addend => $addend};
        }
    }
    return \%read;
}

# Returns the sections of a linked file, by name: {address, bytes}.
sub linked_sections {
    my ($path) = @_;
    my $file = slurp($path);
    my $big = substr($file, 5, 1) eq "\2" ? '>' : '<';
    my ($table, $count, $names) = (unpack("Q$big", substr $file, 40, 8), unpack("S$big", substr $file, 60, 2),
        unpack("S$big", substr $file, 62, 2));
    my @headers = map { [unpack "L${big}L${big}Q${big}Q${big}Q${big}Q${big}", substr $file, $table + 64 * $_, 40] } 0 .. $count - 1;
    my %sections;
    for my $header (@headers) {
        my ($name, $type, undef, $address, $offset, $size) = @$header;
        my ($text) = unpack 'Z*', substr $file, $headers[$names][4] + $name, 256;
        $sections{$text} = {address => $address, bytes => $type == 8 ? undef : substr $file, $offset, $size};
    }
    return \%sections;
}

# ---- Linking ----

# Returns what the loader says: the base of its table, its sections, its slots; or why it refuses the object.
sub load {
    my ($base, $symbols, $object) = @_;
    my %loaded;
    for (qx(./tests/link_objects dump $base @{[map { sprintf "'%s=0x%x'", $_, $symbols->{$_} } sort keys %$symbols]} $object 2>&1)) {
        if (/^table (\S+)/) {
            $loaded{table} = hex $1;
        } elsif (/^section \d+ (\S+) (\S+) (\S*)/) {
            $loaded{duplicate} = $1 if $loaded{sections}{$1};
            $loaded{sections}{$1} = {address => hex $2, bytes => pack 'H*', $3};
        } elsif (/^slots (\S+) (\S*)/) {
            $loaded{slots} = {address => hex $1, bytes => pack 'H*', $2};
        } else {
            $loaded{refused} = $_;
        }
    }
    return \%loaded;
}

# Places the sections where the loader has them, and ld.lld's tables where relocations reach them.
sub write_script {
    my ($loaded, $base, $bias) = @_;
    my @places = map { [$loaded->{sections}{$_}{address}, $_] } keys %{$loaded->{sections}};
    my ($got, $plt) = $bias ? ($loaded->{table} - $bias, $base + 0xD0000) : ($base + 0xC0000, $loaded->{table});
    push @places, [$got, '.got'], [$plt, '.got.plt'];
    return spit('place.ld', join '', "SECTIONS {\n",
        (map { sprintf "  %s 0x%x : { *(%s) }\n", $_->[1], $_->[0], $_->[1] } sort { $a->[0] <=> $b->[0] } @places), "}\n");
}

sub link_with_lld {
    my ($emulation, $script, $symbols, $object, @more) = @_;
    my @relax = $emulation =~ /ppc/ ? qw(--no-toc-optimize --no-pcrel-optimize) : qw(--no-relax);
    unlink "$folder/linked";
    return run_with('/dev/null', $tools{'ld.lld'}, '-m', $emulation, qw(-static -O0 -z norelro --no-check-sections
          --no-eh-frame-hdr --build-id=none --error-limit=0 -T), $script, @relax, @more,
        (map { sprintf '--defsym=%s=0x%x', $_, $symbols->{$_} } sort keys %$symbols), $object, '-o', "$folder/linked");
}

# ---- Comparing ----

my %size = (16 => 2, 32 => 4, 64 => 8);

# How many bytes a relocation changes, at most.
sub size_of {
    my ($type) = @_;
    return 8 if $type =~ /64$|34$|PPC64_TOC$/;
    return 2 if $type =~ /^R_PPC64_(?:\w*16\w*|\w+_DS)$/;
    return 2 if $type =~ /16$/ && $type !~ /MOVW/;
    return 1 if $type =~ /X86_64_(PC)?8$/;
    return 4;
}

sub signed { my ($number, $bits) = @_; return $number >= 2**($bits - 1) ? $number - 2**$bits : $number }

# Returns the address of the slot that an instruction or a number refers to, if the type can be decoded.
# `$pages` holds the page of each symbol's slot, from the instruction before.
sub slot_address {
    my ($relocation, $section, $table, $pages) = @_;
    my ($type, $at) = @$relocation{qw(type offset)};
    my $place = $section->{address} + $at;
    if ($type =~ /X86_64_(?:\w*GOTPCRELX?|GOTPCREL64)$/) {
        my $bits = $type =~ /64$/ ? 64 : 32;
        my $number = $bits == 64 ? unpack 'q<', substr $section->{bytes}, $at, 8 : unpack 'l<', substr $section->{bytes}, $at, 4;
        return $number - $relocation->{addend} + $place;
    }
    return unpack('q<', substr $section->{bytes}, $at, 8) - $relocation->{addend} + $table if $type =~ /X86_64_GOT(?:PLT)?64$/;
    return unpack('l<', substr $section->{bytes}, $at, 4) - $relocation->{addend} + $table if $type =~ /X86_64_GOT32$/;
    my $word = unpack 'L<', substr $section->{bytes}, $at, 4;
    return $place + 4 * signed($word >> 5 & 0x7FFFF, 19) if $type eq 'R_AARCH64_GOT_LD_PREL19';
    if ($type eq 'R_AARCH64_ADR_GOT_PAGE') {
        my $pages_away = signed(($word >> 29 & 3) | ($word >> 5 & 0x7FFFF) << 2, 21);
        $pages->{$relocation->{symbol}} = ($place & ~0xFFF) + 4096 * $pages_away;
        return;
    }
    return $pages->{$relocation->{symbol}} + 8 * ($word >> 10 & 0xFFF)
        if $type eq 'R_AARCH64_LD64_GOT_LO12_NC' && defined $pages->{$relocation->{symbol}};
    return;
}

# Returns the 8 bytes in a slot, which is in one of the sections.
sub slot_contents {
    my ($address, @sections) = @_;
    for my $section (@sections) {
        next unless defined $section && defined $section->{bytes};
        my $offset = $address - $section->{address};
        return unpack 'H*', substr $section->{bytes}, $offset, 8 if $offset >= 0 && $offset + 8 <= length $section->{bytes};
    }
    return sprintf 'nothing at 0x%x', $address;
}

sub is_slot { return $_[0] =~ /GOT(?!OFF|REL|PC32|PC64)|GOTPCREL/ && $_[0] !~ /GOTPC(32|64)$/ }
sub is_branch { return $_[0] =~ /PLT32|PLTOFF|CALL26|JUMP26|REL24/ }

# Whether a branch leads to a symbol that is not defined here, and so perhaps to a stub, or to a weak symbol that
# is not there, for which only AArch64's ABI says what a linker does.
sub may_be_stub {
    my ($relocation, $external) = @_;
    my ($type, $symbol) = @$relocation{qw(type symbol)};
    return is_branch($type) && exists $external->{$symbol} && ($external->{$symbol} != 0 || $type !~ /AARCH64/);
}

# Compares a section's bytes. Returns the number of relocations in it, and what differs.
sub compare_section {
    my ($name, $loaded, $linked, $relocations, $external) = @_;
    my ($own, $other) = ($loaded->{sections}{$name}, $linked->{$name});
    my ($mine, $theirs) = ($own->{bytes}, $other->{bytes});
    my (@differences, %pages, %other_pages);
    for my $relocation (@{$relocations->{$name} // []}) {
        my ($type, $at) = @$relocation{qw(type offset)};
        my $size = size_of($type);
        if (is_slot($type)) {
            my $slot = slot_address($relocation, $own, $loaded->{table}, \%pages);
            my $other_slot = slot_address($relocation, $other, $loaded->{table}, \%other_pages);
            my ($held, $expected) = ($slot // 0) == 0 ? ('', '')
                : (slot_contents($slot, $loaded->{slots}), slot_contents($other_slot, @$linked{qw(.got .got.plt)}));
            push @differences, "$name+$at $type $relocation->{symbol}: slot holds $held, of ld.lld $expected" if $held ne $expected;
        } elsif (!may_be_stub($relocation, $external)) {
            my ($had, $wanted) = map { unpack 'H*', substr $_, $at, $size } $own->{bytes}, $other->{bytes};
            push @differences, "$name+$at $type $relocation->{symbol}: $had, of ld.lld $wanted" if $had ne $wanted;
        }
        # The instruction after a call may be the one that reloads the TOC pointer.
        $size = 8 if $type =~ /REL24/;
        $size = length($mine) - $at if $size > length($mine) - $at;
        substr $_, $at, $size, "\0" x $size for $mine, $theirs;
    }
    # ld.lld's thunks follow.
    push @differences, "$name: bytes without relocations differ" if $mine ne substr $theirs, 0, length $mine;
    return (scalar @{$relocations->{$name} // []}, @differences);
}

sub compare_object {
    my ($what, $machine, $object, $read, $base, $reach) = @_;
    my ($target, $emulation, undef, undef, $bias) = @$machine;
    my %external = map { $_ => $base + 0xE0000 + ($reach < 20 ? 0 : (rand() < 0.5 ? -1 : 1) * int 2**($reach * rand)) } @{$read->{GLOBAL}};
    delete @external{grep { /^(?:_GLOBAL_OFFSET_TABLE_|\.TOC\.|__start_|__stop_)/ } keys %external};
    $_ &= ~15 for values %external;
    my $loaded = load($base, \%external, $object);
    my $seen = join ' ', map { sprintf '%s=0x%x', $_, $external{$_} } sort keys %external;
    if (defined $loaded->{refused}) {
        like($loaded->{refused}, qr/refused: RANGE: /, "$what: refused because of a distance") or diag $seen;
        return 0;
    }
    return 0 if defined $loaded->{duplicate};
    my $script = write_script($loaded, $base, $bias);
    my (undef, undef, $errors) = link_with_lld($emulation, $script, \%external, $object, '--noinhibit-exec');
    if ($version < 19 && $errors =~ /unknown relocation/) {
        pass("$what: LLVM $version compiles what its linker does not know");
        return 0;
    }
    my @complaints = grep { /out of range/ && !is_branch($_) && !/GOT/ } split /\n/, $errors;
    my ($linked, $relocations) = (-s "$folder/linked" ? linked_sections("$folder/linked") : {}, $read->{relocations});
    $external{$_} = 0 for @{$read->{WEAK}};
    # ld.lld does not know ELFv1's function descriptors, and branches to them.
    $external{$_->{symbol}} //= $base for $emulation eq 'elf64ppc' ? grep { $_->{type} eq 'R_PPC64_REL24' } map { @$_ } values %$relocations : ();
    my ($count, @differences) = (0, @complaints);
    push @differences, "ld.lld: $errors" if !%$linked;
    for my $name (sort keys %{$loaded->{sections}}) {
        next if !%$linked || $name eq '.eh_frame' || !defined $linked->{$name} || !defined $linked->{$name}{bytes};
        my ($compared, @found) = compare_section($name, $loaded, $linked, $relocations, \%external);
        $count += $compared;
        push @differences, @found;
    }
    is(join("\n", @differences), '', "$what: $count relocations") or diag sprintf('base 0x%x: ', $base), $seen;
    return $count;
}

# ---- Objects ----

sub compile {
    my ($output, @command) = @_;
    my ($status) = run_with('/dev/null', @command, '-o', $output);
    return $status eq '0' && -s $output ? $output : undef;
}

# A random address that is a multiple of 64 KiB, below 2 GiB for code that is not independent of its position.
sub random_base {
    my ($is_near) = @_;
    return (1 + int rand 0x6FFF) << 16 if $is_near;
    return (0x100000 + int rand 0x7FFF00000) << 16 >> int rand 12 & ~0xFFFF;
}

# The samples, as [NAME, OBJECT, BASE, REACH]: the last two are where it is loaded, and how far external symbols are.
sub samples {
    my ($machine) = @_;
    my ($target, undef, $models, $cpu) = @$machine;
    my @samples;
    for my $model (@$models) {
        for my $position (qw(-fno-pic -fPIC)) {
            my $add = sub {
                my ($what, @command) = @_;
                my $object = compile(sprintf("$folder/sample%d.o", scalar @samples), @command) // return;
                push @samples, [$what, $object, random_base($position eq '-fno-pic'), 0];
            };
            for my $options ("-mcmodel=$model $position -O0", "-mcmodel=$model $position -O2",
                $cpu ne '' ? "-mcmodel=$model $position -O2 $cpu" : ()) {
                next unless -x $tools{clang};
                $add->("$target $options", $tools{clang}, "--target=$target", qw(-w -c), split(' ', $options), "$source/tests/objects/sample.c");
            }
            next if $version < 15;
            my @llc = ($tools{llc}, "-mtriple=$target", '-filetype=obj', "-code-model=$model", '-O1', '-relocation-model=' . ($position eq '-fPIC' ? 'pic' : 'static'));
            $add->("$target $model $position IR", @llc, "$source/tests/objects/sample.ll");
        }
    }
    return @samples;
}

# Random IR, in the same form.
sub random_objects {
    my ($machine) = @_;
    my ($target, undef, $models) = @$machine;
    my @objects;
    for my $round (1 .. $rounds) {
        my ($stress, $size, $level) = (int rand 2**31, 50 + int rand 300, int rand 4);
        my $model = $models->[rand @$models];
        my $position = rand() < 0.5 ? 'pic' : 'static';
        my $ir = compile("$folder/random.ll", $tools{'llvm-stress'}, "-seed=$stress", "-size=$size") // next;
        my $object = compile("$folder/random$round.o", $tools{llc}, "-mtriple=$target", '-filetype=obj', "-code-model=$model",
            "-relocation-model=$position", "-O$level", $ir) // next;
        push @objects, ["$target, llvm-stress -seed=$stress -size=$size, $model $position -O$level", $object,
            random_base($position eq 'static'), rand 40];
    }
    return @objects;
}

# Returns the number of relocations that were compared.
sub compare_objects {
    my ($machine, @objects) = @_;
    return 0 if !@objects;
    my $read = read_objects(map { $_->[1] } @objects);
    my $count = 0;
    for (@objects) {
        my ($what, $object, $base, $reach) = @$_;
        $count += compare_object($what, $machine, $object, $read->{$object}, $base, $reach);
        unlink $object;
    }
    return $count;
}

for my $machine (@machines) {
    my $target = $machine->[0];
    my $count = compare_objects($machine, samples($machine));
    cmp_ok($count, '>', 500, "$target: $count relocations of samples were compared");
    $count = compare_objects($machine, random_objects($machine));
    ok($count > 0, "$target: $count relocations of random IR were compared") if $rounds >= 12 && -x $tools{'llvm-stress'};
}
done_testing;
