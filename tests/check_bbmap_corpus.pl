# Compares the basic-block address maps that clang writes, as cairn bbmap prints them, with the output of
# llvm-readobj: every function, range and block, with its numbers and flags, and the profile.
#
# Compiles some thousand functions, generated ones and Cairn's own, with each installed clang, in random
# combinations of options. Runs in the build folder, natively, and only in the first build, because the maps do
# not depend on the build.
#
# SPDX-License-Identifier: MIT
use strict;
use warnings;
no warnings 'portable'; # hashes have 64 bits
use FindBin;
use JSON::PP;
use Test::More;
use lib $FindBin::Bin;
use CommandTest;

skip_test 'reads the same bytes in every build' if ($ENV{CAIRN_TEST_RUNNER} // '') ne '';
skip_test 'the first build has read them' if ($ENV{CAIRN_TEST_REPEATED} // '') ne '';
skip_test 'no command' if !defined $cairn;

my $source = $ENV{srcdir} // '.';

my @compilers = grep { -x "$llvm{$_}/clang" && -x "$llvm{$_}/llvm-readobj" } (14, 16, 19, 21, 22);
@compilers = grep { defined $llvm{$_} } @compilers;
my ($linker) = map { "$llvm{$_}/ld.lld" } grep { defined } llvm_version('ld.lld');
skip_test 'no clang with its llvm-readobj' if !@compilers;

sub output_of {
    my @command = @_;
    open my $pipe, '-|', @command or die "$command[0]: $!";
    local $/;
    my $text = <$pipe> // '';
    close $pipe;
    return ($? >> 8, $text);
}

# ---- Sources ----

sub choice { return $_[rand @_] }

sub expression {
    return choice('x', 'y', 'i', int rand 1000, 'table[x & 63]', 'x * y', 'x - i', 'y ^ x');
}

my $call_limit = 0;
my $file_number = 0;

sub statement {
    my ($depth) = @_;
    my $body = $depth > 0 ? join ' ', map { statement($depth - 1) } 0 .. rand 2 : 'x += y;';
    my $condition = expression() . choice(' < ', ' == ', ' > ') . expression();
    return choice(
        "if ($condition) { $body }",
        "if ($condition) { $body } else { x -= " . expression() . "; $body }",
        "for (int i = 0; i < (y & 15); i++) { $body }",
        'switch (x & 7) { ' . join(' ', map { "case $_: y += outside(x + $_); break;" } 0 .. 5) .
            " default: $body }",
        "while ($condition) { $body if (outside(y) > 3) break; }",
        'y += outside(' . expression() . ');',
        "if ($condition) return f${file_number}_" . int(rand $call_limit) . '(y, x);',
        'x = ' . expression() . ' + ' . expression() . ';');
}

sub c_source {
    my ($count, $language) = @_;
    my $text = "extern int table[64];\n";
    $text .= $language eq 'c++' ? "struct Guard { ~Guard(); };\nextern \"C\" int outside(int);\n"
                                : "int outside(int);\n";
    $call_limit = $count;
    $file_number++;
    $text .= "int f${file_number}_$_(int x, int y);\n" for 0 .. $count - 1;
    for my $number (0 .. $count - 1) {
        my $body = join "\n    ", map { statement(choice(0, 1, 1, 2)) } 0 .. rand 2;
        $body = "try { Guard guard; $body } catch (int caught) { y += caught; }"
            if $language eq 'c++' && rand() < 0.5;
        $text .= "int f${file_number}_$number(int x, int y)\n{\n    int i = 3;\n    $body\n    return x + y + i;\n}\n";
    }
    return $text;
}

# ---- Output of a reader, as lines ----
#
# "function ADDRESS", "range BASE", "block ID OFFSET SIZE FLAGS [callsites OFFSET ...] [hash HASH]",
# "profile FREQUENCY [linked FREQUENCY] ID:PROBABILITY[:LINKED-FREQUENCY] ...". Names are in a
# separate list, by function. Values of 0 are omitted, because the readers do not tell whether the map has them;
# so is a frequency of 0.

my @flags = qw(HasReturn HasTailCall IsEHPad CanFallThrough HasIndirectBranch);
my %flag_of = map { $flags[$_] => 1 << $_ } 0 .. $#flags;

# LLVM's tools do not print callsites and hashes of blocks without them.
sub block_line {
    my ($id, $offset, $size, $flags, $callsites, $hash) = @_;
    my $line = "block $id $offset $size $flags";
    $line .= " callsites $callsites" if ($callsites // '') ne '';
    $line .= " hash $hash" if $hash;
    return $line;
}

# Returns the lines of LLVM's reader. Profiles follow all ranges of a function.
sub lines_of_readobj {
    my ($text) = @_;
    my (@lines, @names, $block, $index);
    my $list = '';
    my $finish = sub {
        push @lines, block_line(@$block{qw(id offset size flags callsites hash)}) if $block;
        undef $block;
    };
    for (split /\n/, $text) {
        if (/^\s*Function \{/) { $finish->(); $index = 0; undef $block; }
        elsif (/^\s*At: (0x\w+)/) {
            push @lines, 'function ' . hex $1;
        }
        elsif (/^\s*Name: (.*)/) { push @names, $1 }
        elsif (/^\s*BB entries \[/) { push @lines, $lines[-1] =~ s/function/range/r }
        elsif (/^\s*Base Address: (0x\w+)/) { $finish->(); push @lines, 'range ' . hex $1 }
        elsif (/^\s*ID: (\d+)/ && $lines[-1] !~ /^profile/) {
            $finish->();
            $block = { id => $1, flags => 0 };
        }
        elsif (/^\s*Offset: (0x\w+)/) {
            if (!$block || defined $block->{offset}) {
                $finish->();
                $block = { id => $index, flags => 0 };
            }
            $block->{offset} = hex $1;
            $index++;
        }
        elsif (/^\s*Callsite End Offsets: \[(.*)\]/) { $block->{callsites} = $1 =~ s/,//gr }
        elsif (/^\s*Hash: 0x(\w+)/) { $block->{hash} = sprintf '%u', hex $1 }
        elsif (/^\s*Size: (0x\w+)/) { $block->{size} = hex $1 }
        elsif (/^\s*(\w+): (Yes|No)$/) { $block->{flags} |= $2 eq 'Yes' ? $flag_of{$1} : 0 }
        elsif (/^\s*PGO analyses/) { $finish->() }
        elsif (/^\s*PGO BB entries/) { $list = 'profiles' }
        elsif (/^\s*Successors \[/) { $list = 'successors' }
        elsif (/^\s*\]/) { $list = $list eq 'successors' ? 'profiles' : '' }
        elsif (/^\s*\{/ && $list eq 'profiles') { push @lines, 'profile' }
        elsif (/^\s*FuncEntryCount: (\d+)/) { push @lines, "entered $1" }
        elsif (/^\s*Frequency: (\d+)/) { $lines[-1] .= " $1" }
        elsif (/^\s*PostLink Frequency: (\d+)/) { $lines[-1] .= " linked $1" }
        elsif (/^\s*ID: (\d+)/) { $lines[-1] .= " $1" }
        elsif (/^\s*Probability: (0x\w+)/) { $lines[-1] .= ':' . hex $1 }
        elsif (/^\s*PostLink Probability: (\d+)/) { $lines[-1] .= ":$1" }
    }
    $finish->();
    return (\@lines, \@names);
}

# Returns the lines of cairn bbmap --json. Another test parses it as JSON.
sub lines_of_cairn {
    my ($text) = @_;
    my (@lines, @names);
    $text =~ /\G\[/gc or return ([], []);
    while ($text =~ /\G\n\{"address":"?(\d+)"?,"symbol":(?:"([^"]*)"|null)(?:,"entry_count":(\d+))?,"ranges":\[/gc) {
        push @lines, "function $1";
        push @names, $2 // '<?>';
        my $entered = $3;
        my @profiles;
        while ($text =~ /\G\{"base":"?(\d+)"?(?:,"omitted_block_count":\d+)?,"blocks":\[/gc) {
            push @lines, "range $1";
            while ($text =~ /\G\{"id":(\d+),"offset":(\d+),"size":(\d+),"has_return":(\w+),"has_tail_call":(\w+),"is_eh_pad":(\w+),"can_fall_through":(\w+),"has_indirect_branch":(\w+)/gc) {
                my @words = ($4, $5, $6, $7, $8);
                my $flags = 0;
                $flags |= $words[$_] eq 'true' ? 1 << $_ : 0 for 0 .. 4;
                my @block = ($1, $2, $3, $flags);
                push @block, $text =~ /\G,"callsite_end_offsets":\[(.*?)\]/gc ? $1 =~ s/,/ /gr : '';
                push @block, $text =~ /\G,"hash":"?(\d+)"?/gc ? $1 : 0;
                push @lines, block_line(@block);
                if ($text =~ /\G(?=,"(?:frequency|post_link_frequency|successors)")(?:,"frequency":"?(\d+)"?)?(?:,"post_link_frequency":"?(\d+)"?)?(?:,"successors":\[(.*?)\])?/gc) {
                    my ($frequency, $linked, $successors) = ($1, $2, $3 // '');
                    my $profile = 'profile' . (defined $frequency ? " $frequency" : '');
                    $profile .= " linked $linked" if $linked;
                    while ($successors =~ /\G,?\{"id":(\d+),"probability":(\d+)(?:,"post_link_frequency":"?(\d+)"?)?\}/gc) {
                        $profile .= " $1:$2" . ($3 ? ":$3" : '');
                    }
                    push @profiles, $profile;
                }
                $text =~ /\G\},?/gc or die 'a block does not end';
            }
            $text =~ /\G\]\},?/gc or die 'a range does not end';
        }
        push @lines, "entered $entered" if defined $entered;
        push @lines, @profiles;
        $text =~ /\G\]\},?/gc or die 'a function does not end';
    }
    $text =~ /\G\]\n\z/gc or die 'the array does not end';
    return (\@lines, \@names);
}

# ---- Comparing ----

# If an address has several names, any of them is correct.
sub aliases_of {
    my ($path) = @_;
    my (%names, %address);
    my ($status, $text) = output_of("$llvm{$compilers[-1]}/llvm-nm", '--defined-only', $path);
    while ($text =~ /^(\w+) \w (\S+)$/mg) {
        $address{$2} = hex $1;
    }
    return \%address;
}

my %with;
my $function_count = 0;
my $block_count = 0;

sub same_names {
    my ($path, $mine, $theirs) = @_;
    my $address;
    for my $i (0 .. $#$theirs) {
        next if $theirs->[$i] eq '<?>' || $mine->[$i] eq $theirs->[$i];
        $address //= aliases_of($path);
        my ($a, $b) = map { $address->{$_} } $mine->[$i], $theirs->[$i];
        return "$mine->[$i] and not $theirs->[$i]" if !defined $a || !defined $b || $a != $b;
    }
    return '';
}

# Prints only the first difference, because there may be a hundred thousand.
sub difference {
    my ($mine, $theirs) = @_;
    for my $i (0 .. ($#$mine > $#$theirs ? $#$mine : $#$theirs)) {
        my ($a, $b) = ($mine->[$i] // 'nothing', $theirs->[$i] // 'nothing');
        return "line $i: $a and not $b" if $a ne $b;
    }
    return '';
}

# LLVM 14 and 16 do not apply relocations, so they print no addresses of relocatable files.
sub without_addresses {
    my ($lines) = @_;
    return [map { s/^(function|range) .*/$1/r } @$lines];
}

sub compare {
    my ($path, $reader, $what) = @_;
    my ($status, $json) = output_of($cairn, 'bbmap', '--json', $path);
    is $status, 0, "cairn bbmap: $what" or return;
    my (undef, $text) = output_of('/bin/sh', '-c', "exec '$llvm{$reader}/llvm-readobj' --bb-addr-map '$path' 2>/dev/null");
    my ($mine, $my_names) = lines_of_cairn($json);
    my ($theirs, $their_names) = lines_of_readobj($text);
    if ($reader < 19 && $path =~ /\.o$/) {
        $_ = without_addresses($_) for $mine, $theirs;
        @$their_names = ();
    }
    # What LLVM 21 writes and its llvm-readobj does not print.
    s/ callsites \d+(?: \d+)*// for $reader == 21 ? @$mine : ();
    is difference($mine, $theirs), '', "as llvm-readobj-$reader reads it: $what";
    is same_names($path, $my_names, $their_names), '', "with the same names: $what";
    cmp_ok scalar(grep { /^function/ } @$mine), '>', 0, "and there are some: $what";
    cmp_ok scalar(grep { /^block/ } @$mine), '>', 0, "with blocks: $what" if $what !~ /skip-bb-entries/;
    for my $word (qw(callsites hash linked profile entered)) {
        $with{$word} += grep { /\b$word\b/ } @$mine;
    }
    $function_count += grep { /^function/ } @$mine;
    $block_count += grep { /^block/ } @$mine;
}

# Returns the newest reader that supports the compiler's version of the map, and the compiler's own.
sub readers_of {
    my ($compiler) = @_;
    my %readers = ($compiler => 1);
    $readers{16} = 1 if $compiler == 14 && -x (($llvm{16} // '') . '/llvm-readobj');
    $readers{19} = 1 if $compiler == 16 && -x (($llvm{19} // '') . '/llvm-readobj');
    $readers{22} = 1 if ($compiler == 19 || $compiler == 21) && -x (($llvm{22} // '') . '/llvm-readobj');
    return sort keys %readers;
}

# ---- Compiling ----

my @own = map { "$source/$_" } qw(file/bbmap.c src/unwind/call_frame.c src/format/stackmap.c
    src/unwind/eh_frame.c file/block_builder.c src/record/table.c src/ic/change.c src/frame/live_values.c);

sub map_options {
    my ($compiler) = @_;
    return '-fbasic-block-sections=labels' if $compiler < 19;
    my @options = ('-fbasic-block-address-map');
    push @options, '-fbasic-block-sections=all' if rand() < 0.5;
    push @options, '-mllvm', '-emit-bb-hash' if $compiler >= 22 && rand() < 0.5;
    return (@options, '-mllvm', '-basic-block-address-map-skip-bb-entries',
        rand() < 0.5 ? ('-mllvm', '-pgo-analysis-map=func-entry-count') : ()) if $compiler >= 22 && rand() < 0.1;
    push @options, '-mllvm', '-pgo-analysis-map=func-entry-count,bb-freq,br-prob' if rand() < 0.5;
    return @options;
}

my $number = 0;

sub compile {
    my ($compiler, $path, @options) = @_;
    my $object = "$folder/" . $number++ . '.o';
    my ($status) = output_of("$llvm{$compiler}/clang", '-w', @options, '-c', $path, '-o', $object);
    is $status, 0, "clang-$compiler @options" or return;
    return $object;
}

sub link_objects {
    my ($objects, @options) = @_;
    my $linked = "$folder/" . $number++ . '.linked';
    my ($status) = output_of($linker, @options, '-o', $linked, '--unresolved-symbols=ignore-all', @$objects);
    is $status, 0, "lld @options" or return;
    return $linked;
}

# Each compiler gets each level, each language, and generated as well as real code; the other options are random.
for my $compiler (@compilers) {
    my @objects;
    for my $level (0 .. 3) {
        my $language = $level % 2 ? 'c++' : 'c';
        my $path = spit("$compiler-$level." . ($language eq 'c' ? 'c' : 'cc'), c_source(150, $language));
        my @options = ("-O$level", map_options($compiler));
        push @options, '-ffunction-sections' if rand() < 0.5;
        push @options, '-fPIC' if rand() < 0.5;
        push @options, '-gz', '-g1' if rand() < 0.2;
        my $object = compile($compiler, $path, @options) // next;
        compare($object, $_, "clang-$compiler @options") for readers_of($compiler);
        push @objects, $object;
    }
    my @pair = map { splice @own, rand @own, 1 } 1, 2;
    for my $path (@pair) {
        my @options = ('-O' . int rand 4, map_options($compiler), '-std=gnu11', '-D_GNU_SOURCE', '-fPIC',
            map { "-I$source/$_" } qw(include src .));
        my $object = compile($compiler, $path, @options) // next;
        compare($object, $compiler, "clang-$compiler @options $path");
        push @objects, $object;
    }
    next if !defined $linker;
    for my $options (['-e', '0'], ['-shared', '-z', 'notext', '-Bsymbolic'], ['-e', '0', '--icf=all']) {
        my @linked = grep { defined } @objects;
        my $linked = link_objects(\@linked, @$options) // next;
        compare($linked, $_, "clang-$compiler, linked @$options") for readers_of($compiler);
    }
}

# ---- Other architectures ----

# clang refuses the option for most architectures; llc does not.
for my $compiler (@compilers) {
    my $llc = "$llvm{$compiler}/llc";
    next if !-x $llc;
    my $path = spit("other-$compiler.c", c_source(60, 'c'));
    my $option = $compiler < 19 ? '-basic-block-sections=labels' : '-basic-block-address-map';
    for my $target (qw(aarch64-linux-gnu powerpc64-linux-gnu powerpc64le-linux-gnu)) {
        my $ir = "$folder/other.bc";
        my $object = "$folder/other-$compiler-$target.o";
        my ($status) = output_of("$llvm{$compiler}/clang", '-w', "--target=$target", '-O2', '-emit-llvm', '-c', $path, '-o', $ir);
        ($status) = output_of($llc, '-filetype=obj', '-function-sections', $option, $ir, '-o', $object) if $status == 0;
        next if $status != 0 && $compiler < 19;
        is $status, 0, "llc-$compiler for $target" or next;
        compare($object, $compiler, "llc-$compiler for $target");
    }
}

# ---- Versions 3 to 5 ----

# Tests every combination of features that llc 22 can write on x86-64, and some on other architectures. Callsites
# are always written. A profile of the linked program needs the frequencies or probabilities of the function; with
# probabilities and without frequencies, LLVM 22 writes it in a form that LLVM's own readers refuse, so this
# combination is not tested.
my $newest = $compilers[-1];
if ($newest >= 22 && -x "$llvm{$newest}/llc") {
    my $path = spit('features.c', c_source(8, 'c') . <<'END');
void step(void);
int number(int);
int profiled(int x)
{
    if (x > 2) {
        step();
        return number(x) + number(x - 1);
    }
    for (int i = 0; i < x; i++)
        step();
    return 7;
}
END
    my $profile = spit('profile', <<'END');
v1
f profiled
g 0:100,3:60,1:40 3:60,5:60 1:40,4:25,5:15 4:200,8:25,4:175 8:25,5:25 5:100
c 0 3 1 4 8 5
END
    my @maps = map { ["-pgo-analysis-map=$_"] } 'none', 'func-entry-count', 'bb-freq', 'br-prob',
        'func-entry-count,bb-freq', 'func-entry-count,br-prob', 'bb-freq,br-prob', 'all';
    push @maps, ['-basic-block-address-map-skip-bb-entries'],
        ['-basic-block-address-map-skip-bb-entries', '-pgo-analysis-map=func-entry-count'];
    my @sections = ([], ['-basic-block-sections=all'],
        ["-basic-block-sections=$profile", '-pgo-analysis-map-emit-bb-sections-cfg']);
    my @all;
    for my $map (@maps) {
        for my $section (@sections) {
            next if "@$map" =~ /br-prob/ && "@$map" !~ /bb-freq/ && "@$section" =~ /sections-cfg/;
            push @all, [@$map, @$section], [@$map, @$section, '-emit-bb-hash'];
        }
    }
    for my $target (qw(x86_64 aarch64 powerpc64 powerpc64le s390x)) {
        my $ir = "$folder/features-$target.bc";
        my ($status) = output_of("$llvm{$newest}/clang", '-w', "--target=$target-linux-gnu", '-O2', '-emit-llvm', '-c', $path, '-o', $ir);
        next if $status != 0;
        my @some = grep { !/sections=/ } map { "@$_" } @all;
        @some = $target eq 'x86_64' ? @all : map { [split ' ', $some[rand @some]] } 1 .. 3;
        for my $options (@some) {
            my $object = "$folder/features.o";
            my ($failed) = output_of("$llvm{$newest}/llc", "-mtriple=$target-linux-gnu", '-filetype=obj', '-O2',
                '-basic-block-address-map', @$options, $ir, '-o', $object);
            is $failed, 0, "llc-$newest @$options for $target" or next;
            compare($object, $newest, "llc-$newest @$options for $target");
        }
    }
    cmp_ok $with{$_} // 0, '>', 10, "maps with $_ were compared" for 'callsites', 'hash', 'linked', 'profile', 'entered';

    # What cairn lookup and cairn profile say of each block of it.
    my $object = "$folder/features.o";
    output_of("$llvm{$newest}/llc", '-filetype=obj', '-O2', '-basic-block-address-map', '-pgo-analysis-map=all', '-emit-bb-hash',
        "-basic-block-sections=$profile", '-pgo-analysis-map-emit-bb-sections-cfg', "$folder/features-x86_64.bc", '-o', $object);
    my $linked = defined $linker && link_objects([$object], '-e', '0');
    if ($linked) {
        my (undef, $maps) = run_cairn('--json', $linked);
        my %block_at;
        for my $range (map { @{ $_->{ranges} } } @{ decode_json($maps) }) {
            $block_at{ $range->{base} + $_->{offset} } = $_ for grep { $_->{size} > 0 } @{ $range->{blocks} };
        }
        my @addresses = sort { $a <=> $b } keys %block_at;
        my (undef, $answers) = run_with('/dev/null', $cairn, 'lookup', '--json', $linked, map { sprintf '%x', $_ } @addresses);
        my @found = map { $_->{block} } @{ decode_json($answers) };
        my @fields = qw(id size has_return can_fall_through hash frequency);
        my $text_of = sub { my ($block) = @_; join ' ', map { $block->{$_} // 'nothing' } @fields, $block->{post_link_frequency} || 0 };
        cmp_ok scalar @addresses, '>', 10, 'there are blocks to look up';
        is difference([map { $text_of->($_) } @found], [map { $text_of->($block_at{$_}) } @addresses]), '', 'cairn lookup says the same of each block';
        my (undef, $shares) = run_with(spit('samples', join '', map { sprintf "%x\n", $_ } @addresses), $cairn, 'profile', '--json', '--limit', scalar(@addresses), $linked);
        my @hot = sort { $a->{address} <=> $b->{address} } @{ decode_json($shares)->{blocks} };
        is difference([map { $text_of->($_) } @hot], [map { $text_of->($block_at{$_}) } @addresses]), '', 'and so does cairn profile';
    }
}

# ---- Invalid input ----

sub run_cairn { return run_with('/dev/null', $cairn, 'bbmap', @_) }

# Tests that the command prints one line on standard error, and no output.
sub complains {
    my ($pattern, @words) = @_;
    my ($status, $out, $err) = run_cairn(@words);
    is $status, 1, "exit status of: @words[1 .. $#words]";
    is $out, '', 'it prints nothing';
    like $err, qr/\Acairn: [^\n]*$pattern[^\n]*\n\z/, 'and says what is wrong';
}

{
    complains('this is not an ELF file', '--json', spit('text', "no ELF file at all, but long enough\n" x 10));
    complains('the file is empty', '--json', spit('empty', ''));
    complains('No such file', '--json', "$folder/missing");
    my $path = spit('plain.c', 'int f(void) { return 1; }');
    complains('there are no basic-block address maps', '--json', compile($compilers[-1], $path));
    my ($status, undef, $err) = run_cairn();
    is $status, 2, 'without a file it is bad usage';
    like $err, qr/no file is given/, 'and says so';
}

# The functions before the end of a truncated map are printed as well-formed JSON.
{
    my $path = spit('cut.c', c_source(20, 'c'));
    my $object = compile($compilers[-1], $path, '-O1', '-fno-pic', grep { /^-fbasic-block-(sections=labels|address-map)/ } map_options($compilers[-1]));
    my $linked = defined $linker && link_objects([$object], '-e', '0');
    if ($linked) {
        my (undef, $whole) = run_cairn('--json', $linked);
        my $bytes = slurp($linked);
        my $functions = decode_json($whole);
        # The function's address follows the version and the features in its map.
        my %start = (21 => qr/\x03./s, 22 => qr/\x05../s);
        my $version = $start{$compilers[-1]} // qr/\x02./s;
        my $address = pack 'Q<', $functions->[10]{address};
        my $place = $bytes =~ /$version\Q$address\E/ ? $-[0] : -1;
        cmp_ok $place, '>', 0, 'the tenth function has a map';
        substr($bytes, $place, 1) = "\x63";
        my ($status, $out, $err) = run_cairn('--json', spit('damaged', $bytes));
        is $status, 1, 'a map of an unknown version is invalid';
        like $err, qr/\Acairn: \S+damaged: \.llvm_bb_addr_map, byte \d+: basic-block address map version 99: Cairn reads versions 1 to 5[^\n]*\n\z/, 'it says where and why';
        is_deeply decode_json($out), [@$functions[0 .. 9]], 'the functions before it stand there';
        my $text;
        ($status, $text, $err) = run_cairn("$folder/damaged");
        is $status, 1, 'and so for people';
        is scalar(() = $text =~ /^function /mg), 10, 'with the functions before it';
    }
}

# ---- Text ----

{
    my $path = spit('readable.c', "int g(int);\nint f(int x) { return x > 2 ? g(x) + 1 : 7; }\n");
    my $object = compile($compilers[-1], $path, '-O1', $compilers[-1] < 19 ? '-fbasic-block-sections=labels' : '-fbasic-block-address-map');
    my ($status, $text) = run_cairn($object);
    like $text, qr/\Afunction f at 0x0, \d+ blocks\n  block 0 at 0x0, \d+ bytes, can fall through\n/, 'the text form';
    like $text, qr/, returns\n/, 'the flags of a block';
}

# ---- JSON ----

{
    my $path = spit('small.c', c_source(12, 'c'));
    my $object = compile($compilers[-1], $path, '-O1', grep { /^-fbasic-block-(sections=labels|address-map)/ } map_options($compilers[-1]));
    my (undef, $text) = output_of($cairn, 'bbmap', '--json', $object);
    my $functions = eval { decode_json($text) };
    is scalar @{ $functions // [] }, 12, 'a program reads the JSON';
    is_deeply [sort grep { $_ ne 'entry_count' } keys %{ $functions->[0] }], [qw(address ranges symbol)], 'functions';
    is_deeply [sort grep { $_ ne 'omitted_block_count' } keys %{ $functions->[0]{ranges}[0] }], [qw(base blocks)], 'ranges';
    is_deeply [sort grep { !/^frequency|^successors|^callsite_end_offsets|^hash/ } keys %{ $functions->[0]{ranges}[0]{blocks}[0] }],
        [qw(can_fall_through has_indirect_branch has_return has_tail_call id is_eh_pad offset size)], 'blocks';
}

diag "$function_count functions, $block_count blocks";
cmp_ok $function_count, '>', 3000, 'some thousand functions' if @compilers >= 3;
done_testing;
