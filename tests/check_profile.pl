# Tests `cairn profile`: samples that programs took of themselves; random samples, compared with a model that
# reads llvm-readobj's output; pictures; error messages; speed.
#
# Runs in the build folder. Tests whose clang or LLVM tools are missing are skipped.
#
# SPDX-License-Identifier: MIT
use strict;
use warnings;
no warnings qw(portable); # addresses have 64 bits
use FindBin;
use JSON::PP;
use Test::More;
use lib $FindBin::Bin;
use CommandTest;

skip_test 'reads the same bytes on every host' if ($ENV{CAIRN_TEST_RUNNER} // '') ne '';
skip_test 'the first build has it' if ($ENV{CAIRN_TEST_REPEATED} // '') ne '';

my $source = ($ENV{srcdir} // '.') . '/tests/samples';

# ---- Running programs ----

sub profile { return run_with('/dev/null', $cairn, 'profile', @_) }

# Returns the JSON for samples that are all valid.
sub counted {
    my ($file, $samples, @options) = @_;
    my ($status, $out, $err) =
        profile('--json', @options, $file, spit('samples', join '', map { "$_\n" } @$samples));
    is $status, 0, 'exit status';
    is $err, '', 'nothing on standard error';
    return decode_json($out);
}

# ---- Compilers ----

my %options = (
    14 => ['-fbasic-block-sections=labels'],
    16 => ['-fbasic-block-sections=labels'],
    19 => ['-fbasic-block-address-map'],
    21 => ['-fbasic-block-address-map'],
    22 => ['-fbasic-block-address-map'],
);
my @versions = grep { find_in_path("clang-$_") } sort keys %options;
skip_test 'no clang that writes basic-block address maps' if !@versions;
my $newest = $versions[-1];

sub compile {
    my ($version, $name, $file, @more) = @_;
    my $driver = $file =~ /\.cc$/ ? "clang++-$version" : "clang-$version";
    my ($status, undef, $err) =
        run_with('/dev/null', find_in_path($driver), '-w', @{$options{$version}}, @more, $file, '-o', "$folder/$name");
    is $status, 0, "clang $version @more" or diag $err;
    return "$folder/$name";
}

# ---- A program that samples itself ----

my %symbols; # by file and time, because a file may be compiled again
sub address_of {
    my ($file, $symbol) = @_;
    my $key = join ' ', $file, (stat $file)[9], (stat _)[7];
    if (!exists $symbols{$key}) {
        my (undef, $out) = run_with('/dev/null', find_in_path('nm'), $file);
        $symbols{$key} = {map { /^(\w+) \w (.*)$/ ? ($2 => hex $1) : () } split /\n/, $out};
    }
    return $symbols{$key}{$symbol};
}

my %program_counters = (x86_64 => 'gregs[REG_RIP]', aarch64 => 'pc', ppc64le => 'regs->nip');
chomp(my $machine = `uname -m`);

# The block that contains the label must be the hottest, with more than half of all samples.
sub names_hot_block {
    my ($file, $how, @words) = @_;
    my ($status, $out, $err) = profile('--json', @words);
    is_deeply [$status, $err], [0, ''], "$how: exit status and standard error";
    my $found = decode_json($out);
    is $found->{samples}, 60, "$how: samples";
    my $hottest = $found->{blocks}[0] // {};
    my $label = address_of($file, 'hot_block');
    is $hottest->{symbol}, 'work', "$how: function";
    ok $label >= $hottest->{address} && $label < $hottest->{address} + $hottest->{size},
        "$how: the block has the loop's label";
    cmp_ok $hottest->{share}, '>', 0.5, "$how: share";
    is $found->{functions}[0]{symbol}, 'work', "$how: hottest function";
}

for my $version (@versions) {
    for my $kind ($version == $newest ? ('-pie', '-no-pie') : '-pie') {
        my $name = "sampled by itself, clang $version $kind";
        subtest $name => sub {
            plan skip_all => "registers of $machine" if !exists $program_counters{$machine};
            plan skip_all => 'no nm' if !defined find_in_path('nm');
            my $pic = $kind eq '-pie' ? '-fPIE' : '-fno-pic';
            my $file = compile($version, 'sampled', "$source/sampled.c", '-O1', $pic, $kind,
                "-DPROGRAM_COUNTER=$program_counters{$machine}");
            my ($status, $out) = run_with('/dev/null', $file);
            is $status, 0, 'the program ran';
            names_hot_block($file, 'by its mappings', $file, spit('samples', $out));
            my ($base) = $out =~ m{^(\w+)-\w+ .*/sampled$}m;
            my $alone = spit('samples', $out =~ s/^.*[- ].*\n//mgr);
            names_hot_block($file, 'by its base', '--base', $kind eq '-pie' ? $base : '0', $file, $alone);
            return if $kind eq '-pie';
            names_hot_block($file, 'by its own addresses', $file, $alone);
        };
    }
}

# ---- Counting, beside a model ----

# Returns a C file with many functions and blocks, a function with several hundred blocks, and a name that must
# be escaped in XML.
sub write_sources {
    my $text = "int printf(const char *, ...);\nvolatile int sink;\n";
    for my $f (0 .. 39) {
        $text .= "__attribute__((noinline, aligned(64))) int function_$f(int x, int y) {\n";
        for my $b (0 .. int rand 12) {
            my $k = int rand 1000;
            $text .= "  if (x * y == $k) { sink = $b; y ^= $k; }\n" if rand() < 0.6;
            $text .= "  while (sink != $k && y < x) { y += sink; sink++; }\n" if rand() < 0.3;
            $text .= "  if (sink > $k) return printf(\"%d\", y);\n" if rand() < 0.3;
        }
        $text .= "  return x + y;\n}\n";
    }
    $text .= "int many(int x) {\n";
    $text .= "  if (sink == $_) sink = x + $_;\n" for 1 .. 900;
    $text .= "  return x;\n}\n";
    $text .= "void strange(int x) __asm__(\"a<b>&'c'\");\nvoid strange(int x) { if (x) sink = 1; }\n";
    $text .= "int main(int count, char **words) { strange(count); return many(count)\n";
    $text .= "    + function_$_(count, 1)\n" for 0 .. 39;
    return spit('many.c', $text . ";}\n");
}

# Returns the function, ID, address, size and flags of each block, as llvm-readobj of the same version prints them.
sub blocks_of {
    my ($version, $file) = @_;
    my (undef, $out) =
        run_with('/dev/null', "/usr/lib/llvm-$version/bin/llvm-readobj", '--bb-addr-map', $file);
    my (@blocks, $function, $base, $symbol);
    for (split /\n/, $out) {
        if (/^\s+At: (\w+)/) {
            $function = $base = hex $1;
        } elsif (/^\s+Base Address: (\w+)/) {
            $base = hex $1;
        } elsif (/^\s+Name: (.*)/) {
            $symbol = $1;
        } elsif (/^\s+ID: (\d+)/) {
            push @blocks, {id => $1};
        } elsif (/^\s+Offset: (\w+)/) {
            # Version 0 has no IDs.
            push @blocks, {} if !@blocks || defined $blocks[-1]{address};
            @{$blocks[-1]}{qw(address function symbol)} = ($base + hex $1, $function, $symbol);
        } elsif (/^\s+Size: (\w+)/) {
            $blocks[-1]{size} = hex $1;
        } elsif (/^\s+(HasReturn|CanFallThrough|IsEHPad): (\w+)/) {
            $blocks[-1]{$1} = $2 eq 'Yes';
        }
    }
    return sort { $a->{address} <=> $b->{address} } @blocks;
}

sub code_of {
    my ($file) = @_;
    my (undef, $out) = run_with('/dev/null', find_in_path('readelf'), '-WS', $file);
    return map { /(?:PROGBITS|NOBITS)\s+(\w+) \w+ (\w+) \w+\s+\w*X/ ? [hex $1, hex $2] : () } split /\n/, $out;
}

# Searches all blocks. Returns undef if none contains the address, nor falls through the padding at it.
sub find_naively {
    my ($blocks, $address) = @_;
    for (@$blocks) {
        return $_ if $address >= $_->{address} && $address < $_->{address} + $_->{size};
    }
    my ($before) = grep { $_->{size} > 0 && $_->{address} < $address } reverse @$blocks;
    my ($after) = grep { $_->{address} > $address } @$blocks;
    return if !defined $before || !defined $after || !$before->{CanFallThrough};
    return $before->{function} == $after->{function} ? $before : undef;
}

# Compares all blocks, in the order of samples, then of addresses.
sub compare_counts {
    my ($name, $found, $blocks, $code, $samples) = @_;
    my (%counts, $in_blocks, $in_code);
    my %by_address = map { $_->{address} => $_ } grep { $_->{size} > 0 } @$blocks;
    my %times;
    $times{$_}++ for @$samples;
    for my $sample (keys %times) {
        my $address = hex $sample;
        my $block = find_naively($blocks, $address);
        if (defined $block) {
            $counts{$block->{address}} += $times{$sample};
            $in_blocks += $times{$sample};
        } elsif (grep { $address >= $_->[0] && $address - $_->[0] < $_->[1] } @$code) {
            $in_code += $times{$sample};
        }
    }
    is $found->{samples}, scalar @$samples, "$name: samples";
    is $found->{in_blocks}, $in_blocks // 0, "$name: samples in blocks";
    is $found->{in_other_code}, $in_code // 0, "$name: samples in other code";
    is $found->{elsewhere}, @$samples - ($in_blocks // 0) - ($in_code // 0), "$name: samples elsewhere";
    my @order = sort { $counts{$b} <=> $counts{$a} || $a <=> $b } keys %counts;
    is_deeply [map { [@$_{qw(address size samples)}] } @{$found->{blocks}}],
        [map { [$_, $by_address{$_}{size}, $counts{$_}] } @order], "$name: blocks in order";
    is_deeply [map { [@$_{qw(function symbol)}] } @{$found->{blocks}}],
        [map { [@{$by_address{$_}}{qw(function symbol)}] } @order], "$name: their functions";
    return \@order, \%counts;
}

sub compare_functions {
    my ($name, $found, $blocks, $counts) = @_;
    my (%samples, %all, %sampled);
    for (@$blocks) {
        $all{$_->{function}}++;
        next if !$_->{size} || !$counts->{$_->{address}};
        $samples{$_->{function}} += $counts->{$_->{address}};
        $sampled{$_->{function}}++;
    }
    my @order = sort { $samples{$b} <=> $samples{$a} || $a <=> $b } keys %samples;
    is_deeply [map { [@$_{qw(address samples sampled_block_count block_count)}] } @{$found->{functions}}],
        [map { [$_, $samples{$_}, $sampled{$_}, $all{$_}] } @order], "$name: functions in order";
}

sub compare_shares {
    my ($name, $found) = @_;
    for my $list (qw(functions blocks)) {
        my ($sum, $wrong) = (0, 0);
        for (@{$found->{$list}}) {
            $sum += $_->{samples};
            $wrong++ if abs($_->{share} - $_->{samples} / $found->{samples}) > 1e-6;
            $wrong++ if abs($_->{cumulative_share} - $sum / $found->{samples}) > 1e-6;
        }
        is $wrong, 0, "$name: shares of $list";
    }
}

# Returns samples of the first, a middle and the last byte of blocks, of the byte after them, of the first and
# last bytes of code, and outside of code.
sub random_samples {
    my ($blocks, $code, $base) = @_;
    my @samples;
    for my $block (grep { rand() < 0.12 } @$blocks) {
        my ($begin, $size) = @$block{qw(address size)};
        for my $address ($begin, $begin + int($size / 2), $begin + $size - 1, $begin + $size) {
            push @samples, ($address) x int rand 4;
        }
    }
    push @samples, $_->[0], $_->[0] - 1, $_->[0] + $_->[1] - 1, $_->[0] + $_->[1] for @$code;
    push @samples, 1, 0x7fffffff0000;
    return map { sprintf rand() < 0.5 ? '%x' : '0x%x', $_ + $base } sort { rand() <=> 0.5 } @samples;
}

my %many;
my $many_source = write_sources();
for my $version (@versions) {
    subtest "counts are those of a model, clang $version" => sub {
        plan skip_all => "no llvm-readobj $version" if !-x "/usr/lib/llvm-$version/bin/llvm-readobj";
        plan skip_all => 'no readelf' if !defined find_in_path('readelf');
        my $file = $many{$version} = compile($version, "many-$version", $many_source, '-O1');
        my @blocks = blocks_of($version, $file);
        my @code = code_of($file);
        cmp_ok @blocks, '>', 1000, 'there are many blocks';
        cmp_ok @code, '>', 0, 'there is code';
        for my $base (0, 0x555555554000) {
            my $name = sprintf 'loaded at 0x%x', $base;
            my @samples = random_samples(\@blocks, \@code, $base);
            my $found = counted($file, \@samples, $base ? ('--base', sprintf '%x', $base) : ());
            is_deeply $found->{bases}, $base ? [$base] : [], "$name: bases";
            my @file_samples = map { sprintf '%x', hex($_) - $base } @samples;
            my (undef, $counts) = compare_counts($name, $found, \@blocks, \@code, \@file_samples);
            compare_functions($name, $found, \@blocks, $counts);
            compare_shares($name, $found);
        }
    };
}
my $many = $many{$newest} // compile($newest, 'many', $many_source, '-O1');

subtest 'samples come in the forms that perf writes' => sub {
    my $address = address_of($many, 'function_3');
    my $begin = $address & ~0xfff;
    my $one = sprintf '%x', $address;
    my $loaded = sprintf '%x', $address + 0x555500000000;
    my $mapping = sprintf "many 1 1.5: PERF_RECORD_MMAP2 1/1: [0x%x(0x100000) @ 0x%x 00:01 2 3]: r-xp %s",
        $begin + 0x555500000000, $begin, $many;
    my %good = (
        'an event before it' => "many 4711 3.25: 250000 cpu-clock:u: $one function_3+0x0 ($many)",
        'blanks and a name' => "      $one function_3",
        'a carriage return' => "$one\r",
        'the last line without an end' => "# nothing\n\n$one",
        'a mapping before it' => "$mapping\n $loaded",
        'a mapping of something else, too' => "$mapping\n" . $mapping =~ s/\S+\z/other/r . "\n$loaded",
        'a call chain' => "many 4711 3.25: 1 cpu-clock:\n\t$one function_3\n\t$one main\n\t$one start\n",
    );
    for my $form (sort keys %good) {
        my ($status, $out, $err) = profile('--json', $many, spit('samples', $good{$form}));
        my $found = decode_json($out || '{}');
        is_deeply [$status, $err, $found->{samples}, $found->{in_blocks}], [0, '', 1, 1], $form;
        is $found->{callers}, $form eq 'a call chain' ? 2 : 0, "$form: callers";
        is $found->{blocks}[0]{address}, $address, "$form: address";
    }
    my ($status, $out) = run_with(spit('samples', "$one\n"), $cairn, 'profile', $many);
    is $status, 0, 'standard input';
    like $out, qr/^ +100\.00 % +1 +in basic blocks$/m, 'is read';
};

subtest 'executed padding belongs to the block that falls through it' => sub {
    plan skip_all => "no llvm-readobj $newest" if !-x "/usr/lib/llvm-$newest/bin/llvm-readobj";
    my $file = compile($newest, 'padded', spit('padded.c', <<'C'), '-O2', '-falign-loops=32', '-fno-unroll-loops');
volatile int sink;
__attribute__((noinline)) int loop(int n) { sink = n; do sink += n; while (--n); return sink; }
__attribute__((noinline)) int end(int n) { return n ? sink : n + 1; }
int main(int count, char **words) { (void)words; return loop(count) + end(count); }
C
    my @blocks = grep { $_->{size} > 0 } blocks_of($newest, $file);
    my @gaps = grep { $blocks[$_]{address} + $blocks[$_]{size} < $blocks[$_ + 1]{address} } 0 .. $#blocks - 1;
    my ($inside) = grep { $blocks[$_]{function} == $blocks[$_ + 1]{function} && $blocks[$_]{CanFallThrough} } @gaps;
    my ($between) = grep { $blocks[$_]{function} != $blocks[$_ + 1]{function} } @gaps;
    plan skip_all => 'the compiler added no padding' if !defined $inside || !defined $between;
    my @samples = map { sprintf '%x', $blocks[$_]{address} + $blocks[$_]{size} } ($inside) x 3, $between;
    push @samples, sprintf '%x', $blocks[$inside + 1]{address} - 1;
    my $found = counted($file, \@samples, '--base', '0');
    is_deeply [@$found{qw(in_blocks in_other_code)}], [4, 1], 'padding inside of a function, and after it';
    is_deeply [map { [@$_{qw(address samples)}] } @{$found->{blocks}}], [[$blocks[$inside]{address}, 4]], 'the block';
};

subtest 'lines without an address are counted and reported' => sub {
    my $address = sprintf '%x', address_of($many, 'function_3');
    my $samples = spit('samples', "$address\n\nwhat is this\n$address\n0x\n");
    my ($status, $out, $err) = profile('--json', $many, $samples);
    my $found = decode_json($out);
    is $status, 0, 'exit status';
    is_deeply [@$found{qw(samples unreadable_lines first_unreadable_line)}], [2, 2, 3], 'counts';
    is $err, "cairn: $samples: ignored 2 lines without an address; the first is line 3\n", 'the error message';
};

subtest 'samples of code that was loaded elsewhere give advice' => sub {
    my $samples = spit('samples', "555555554000\n" x 3);
    my ($status, $out, $err) = profile($many, $samples);
    is $status, 0, 'exit status';
    is $err =~ tr/\n//, 1, 'one line';
    like $err, qr/: 3 of 3 samples are not in its code: .*--base ADDRESS/, 'advice';
    unlike $out, qr/hottest/, 'nothing was hot';
    like((profile('--base', '7', $many, $samples))[2], qr/check that --base is the address/, 'about the base');
};

subtest 'a stripped program is named by its debug file' => sub {
    my $objcopy = find_in_path('objcopy');
    plan skip_all => 'no objcopy' if !defined $objcopy;
    my @samples = sprintf '%x', address_of($many, 'function_3');
    run_with('/dev/null', $objcopy, '--only-keep-debug', $many, "$folder/many.debug");
    run_with('/dev/null', $objcopy, '--strip-all', $many, "$folder/stripped");
    is counted("$folder/stripped", \@samples)->{blocks}[0]{symbol}, undef, 'without';
    my $found = counted("$folder/stripped", \@samples, '--debug-file', "$folder/many.debug");
    is $found->{blocks}[0]{symbol}, 'function_3', 'with';
};

# ---- What is printed for people ----

subtest 'tables are cut at the limit' => sub {
    my @starts = map { address_of($many, "function_$_") } 0 .. 29;
    my @samples = map { (sprintf '%x', $starts[$_]) x ($_ + 1) } 0 .. 29;
    my $path = spit('samples', join '', map { "$_\n" } @samples);
    for (['', 10], ['--limit=3', 3], ['--limit=30', 30], ['--limit=0', 30], ['--limit=31', 30]) {
        my ($option, $rows) = @$_;
        my ($status, $out, $err) = profile($option || (), $many, $path);
        is_deeply [$status, $err], [0, ''], "exit status and standard error: $option";
        is scalar(() = $out =~ /% .* function_\d+ at /g), $rows, "functions: $option";
        is scalar(() = $out =~ /% .* function_\d+ block /g), $rows, "blocks: $option";
        like $out, $rows < 30 ? qr/^hottest blocks, $rows of 30$/m : qr/^hottest blocks$/m, "heading: $option";
        my $found = decode_json((profile('--json', $option || (), $many, $path))[1]);
        is scalar @{$found->{blocks}}, $option eq '' ? 30 : $rows, "JSON: $option";
    }
    my (undef, $out) = profile('--limit=1', $many, $path);
    my $share = sprintf '%.2f', 100 * 30 / 465;
    like $out, qr/^ +$share % +$share % +30  function_29 at 0x\w+, 1 of (?:1 block|[0-9]+ blocks)$/m, 'row of a function';
    like $out, qr/^ +$share % +$share % +30  0x(\w+)-0x\w+ +\d+  function_29 block 0: [a-z ,]+$/m, 'row of a block';
    my ($begin) = $out =~ /0x(\w+)-0x/;
    is hex $begin, $starts[29], 'its address';
};

# ---- Pictures ----

sub unescape { return $_[0] =~ s/&lt;/</gr =~ s/&gt;/>/gr =~ s/&quot;/"/gr =~ s/&amp;/&/gr }

sub brightness {
    my ($red, $green, $blue) = map { hex } $_[0] =~ /^#(..)(..)(..)$/;
    return 299 * $red + 587 * $green + 114 * $blue;
}

sub draws {
    my ($name, @words) = @_;
    my $path = "$folder/picture.svg";
    unlink $path;
    my ($status, undef, $err) = profile('--svg', $path, @words);
    is_deeply [$status, $err], [0, ''], "$name: exit status and standard error";
    my $xmllint = find_in_path('xmllint');
    if (defined $xmllint) {
        my (undef, $out, $wrong) = run_with('/dev/null', $xmllint, '--noout', '--nonet', $path);
        is "$out$wrong", '', "$name: well-formed";
    }
    my $picture = slurp($path);
    unlike $picture, qr/<script|<image|href|url\(|\@import/, "$name: nothing from elsewhere";
    return $picture;
}

# Returns the tooltip, the bar and the texts of each row.
sub rows_of {
    my ($picture) = @_;
    my @rows;
    while ($picture =~ m{<g class="(block|run)"><title>(.*?)</title>(.*?)</g>}g) {
        my ($class, $tip, $rest) = ($1, $2, $3);
        my %row = (class => $class, tip => $tip, rest => $rest);
        ($row{begin}, $row{end}) = map { hex } $tip =~ / at 0x(\w+)-0x(\w+), /;
        ($row{size}) = $tip =~ /, (\d+) bytes?: /;
        ($row{samples}) = $tip =~ /: (\d+) samples?, /;
        @row{qw(y height fill)} =
            $rest =~ /<rect x="\d+" y="([\d.]+)" width="\d+" height="([\d.]+)" fill="(#\w{6})" class="(?:bar|folded)"/;
        push @rows, \%row;
    }
    return @rows;
}

# Pairs in which the first column grows and the second does not follow.
sub count_unordered {
    my @pairs = sort { $a->[0] <=> $b->[0] || $a->[1] <=> $b->[1] } @_;
    return scalar grep {
        my ($low, $high) = @pairs[$_ - 1, $_];
        $low->[0] == $high->[0] ? $low->[1] != $high->[1] : $low->[1] > $high->[1]
    } 1 .. $#pairs;
}

sub check_layout {
    my ($name, $picture, @rows) = @_;
    my ($height) = $picture =~ /^<svg [^>]* height="(\d+)"/;
    my $overlaps = grep { $rows[$_]{y} < $rows[$_ - 1]{y} + $rows[$_ - 1]{height} } 1 .. $#rows;
    is $overlaps, 0, "$name: rows are below each other";
    is scalar(grep { $_->{height} < 20 } @rows), 0, "$name: rows are high enough for text";
    cmp_ok $rows[-1]{y} + $rows[-1]{height}, '<', $height, "$name: rows are inside the picture";
}

sub check_bars {
    my ($name, @rows) = @_;
    is count_unordered(map { [$_->{size}, $_->{height}] } @rows), 0, "$name: heights grow with sizes";
    is count_unordered(map { [$_->{samples}, -brightness($_->{fill})] } @rows), 0,
        "$name: colours get darker with samples";
}

subtest 'a picture has a bar for every block' => sub {
    plan skip_all => "no llvm-readobj $newest" if !-x "/usr/lib/llvm-$newest/bin/llvm-readobj";
    my @all = blocks_of($newest, $many);
    for my $function ('function_0', 'function_7', 'function_20', 'main', "a<b>&'c'") {
        my @blocks = grep { $_->{symbol} eq $function } @all;
        my %counts = map { $_->{address} => 1 + int rand 50 } grep { $_->{size} && rand() < 0.6 } @blocks;
        $counts{$blocks[0]{address}} = 60;
        my @samples = map { (sprintf "%x\n", $_) x $counts{$_} } keys %counts;
        my $picture = draws($function, $many, spit('samples', join '', @samples));
        my ($title) = $picture =~ m{<title>(.*?)</title>};
        is unescape($title), $function, "$function: title";
        my @rows = rows_of($picture);
        is_deeply [map { [@$_{qw(begin end samples class)}] } @rows],
            [map { [$_->{address}, $_->{address} + $_->{size}, $counts{$_->{address}} // 0, 'block'] } @blocks],
            "$function: all blocks in order";
        check_layout($function, $picture, @rows);
        check_bars($function, @rows);
        my $last = $#rows;
        is_deeply [map { $rows[$_]{rest} =~ /class="arrow"/ ? 1 : 0 } 0 .. $last],
            [map { $blocks[$_]{CanFallThrough} && $_ < $last ? 1 : 0 } 0 .. $last], "$function: arrows";
        is_deeply [map { $rows[$_]{rest} =~ />(?:landing pad, )?(?:returns|tail call)/ ? 1 : 0 } 0 .. $last],
            [map { $blocks[$_]{HasReturn} ? 1 : 0 } 0 .. $last], "$function: returns";
    }
};

subtest 'a function is drawn by its name or address, with samples or without' => sub {
    my $address = sprintf '0x%x', address_of($many, 'function_5');
    my $samples = spit('samples', sprintf "%x\n", address_of($many, 'main'));
    for my $name ('function_5', $address) {
        my $picture = draws($name, '--function', $name, $many, $samples);
        like $picture, qr{<title>function_5</title>}, 'title';
        my @rows = rows_of($picture);
        is scalar(grep { $_->{samples} != 0 || $_->{fill} ne '#f5f5f5' } @rows), 0, 'nothing is hot';
        check_layout($name, $picture, @rows);
    }
};

subtest 'colder blocks of a function with very many are folded' => sub {
    plan skip_all => "no llvm-readobj $newest" if !-x "/usr/lib/llvm-$newest/bin/llvm-readobj";
    my @blocks = grep { $_->{symbol} eq 'many' } blocks_of($newest, $many);
    cmp_ok @blocks, '>', 900, 'there are very many';
    for my $part (0.05, 0.5, 1) {
        my %counts = map { $_->{address} => 1 + int rand 9 } grep { $_->{size} && rand() < $part } @blocks;
        my @samples = map { (sprintf "%x\n", $_) x $counts{$_} } keys %counts;
        my $picture = draws("of $part", $many, spit('samples', join '', @samples));
        my @rows = rows_of($picture);
        my @single = grep { $_->{class} eq 'block' } @rows;
        my @runs = grep { $_->{class} eq 'run' } @rows;
        like $picture, qr/runs of colder ones are folded/, 'the legend says so';
        cmp_ok @rows, '<=', 330, 'the picture is not endless';
        my ($samples, $size) = (0, 0);
        $samples += $_->{samples}, $size += $_->{size} for @rows;
        my ($all_samples, $all_size) = (scalar @samples, 0);
        $all_size += $_->{size} for @blocks;
        is_deeply [$samples, $size], [$all_samples, $all_size], 'all samples and bytes are in it';
        my @hottest = (sort { $b <=> $a } values %counts, (0) x 160)[0 .. 159];
        my @shown = (sort { $b <=> $a } map { $_->{samples} } @single)[0 .. 159];
        is_deeply [map { $_ // 0 } @shown], \@hottest, 'the hottest have bars of their own';
        check_layout("of $part", $picture, @rows);
        check_bars("of $part", @single);
        cmp_ok @runs, '>', 0, 'others have none';
    }
};

subtest 'a picture is written as a whole or not at all' => sub {
    my $good = spit('good', sprintf "%x\n", address_of($many, 'main'));
    my $old = spit('old.svg', 'old');
    my ($status, $out, $err) = profile('--svg', "$folder/none/picture.svg", $many, $good);
    is $status, 1, 'no folder: exit status';
    like $err, qr/\Acairn: \S+: cannot be written: No such file/, 'the error message';
    fails(1, qr/there are no samples/, 'profile', '--svg', $old, $many, '/dev/null');
    ($status, $out, $err) = profile('--svg', $old, $many, spit('samples', "1\n"));
    is $status, 1, 'nothing hot: exit status';
    like $err, qr/no sample is in a block, so there is no hottest function/, 'the error message';
    ($status, $out, $err) = profile('--svg', $old, '--function', 'nobody', $many, $good);
    is $status, 1, 'no such function: exit status';
    like $err, qr/no function 'nobody' has a basic-block address map/, 'the error message';
    is slurp($old), 'old', 'what was there is there';
    is_deeply [map { s/.*\///r } glob "$folder/*svg*"], ['old.svg', -e "$folder/picture.svg" ? 'picture.svg' : ()],
        'and nothing else';
    is((profile('--svg', '/dev/full', $many, $good))[0], 1, 'full disk: exit status');
    my $mask = umask 027;
    is((profile('--svg', $old, $many, $good))[0], 0, 'exit status');
    umask $mask;
    like slurp($old), qr{</svg>\n\z}, 'replaced';
    is sprintf('%o', (stat $old)[2] & 0777), '640', 'with usual permissions';
};

# ---- Invalid usage and input ----

subtest 'bad usage' => sub {
    my $samples = spit('samples', "1\n");
    fails(2, qr/no file is given/, 'profile');
    fails(2, qr/'-' is given twice as the samples/, 'profile', $many, '-', '-');
    fails(2, qr/--build-id needs hexadecimal digits, not '12x4'/, 'profile', '--build-id', '12x4', $many, $samples);
    fails(2, qr/unknown option '--what'/, 'profile', '--what', $many);
    fails(2, qr/--base needs an address in hexadecimal/, 'profile', '--base', 'main', $many, $samples);
    fails(2, qr/--base needs an address/, 'profile', '--base');
    fails(2, qr/--limit needs a number/, 'profile', '--limit', $_, $many, $samples) for '-1', 'x', '3x', '', '9' x 30;
    fails(2, qr/--function needs --svg, which is not given/, 'profile', '--function', 'main', $many, $samples);
    fails(2, qr/standard input cannot be both the file and the samples/, 'profile', '-');
};

subtest 'bad input' => sub {
    my $good = spit('samples', "1\n");
    fails(1, qr/nothing.*No such file/, 'profile', "$folder/nothing", $good);
    fails(1, qr/nothing: cannot be opened: No such file/, 'profile', $many, "$folder/nothing");
    fails(1, qr/cannot be read: Is a directory/, 'profile', $many, $folder);
    fails(1, qr/not an ELF file/, 'profile', spit('text', 'this is text, and long enough to be looked at'), $good);
    fails(1, qr/there are no samples/, 'profile', $many, spit('empty', "\n\n"));
    fails(1, qr/there are no addresses; line 2 is the first that is not empty/, 'profile', $many, spit('junk', "\nhello\nworld\n"));
    compile($newest, 'many.o', $many_source, '-O1', '-c');
    fails(1, qr/the file is not linked/, 'profile', "$folder/many.o", $good);
    my $plain = find_in_path('true');
    fails(1, qr/there are no basic-block address maps: compile with/, 'profile', $plain, $good) if defined $plain;
};

subtest 'samples changed at random never crash it' => sub {
    my $address = sprintf '%x', address_of($many, 'main');
    my $text = "many 1 1.5: PERF_RECORD_MMAP2 1/1: [0x1000(0x100000) @ 0x1000 00:01 2 3]: r-xp $many\n"
        . "401000-402000 r-xp 00001000 08:01 4711 $many\n"
        . "many 4711 3.25: 250000 cpu-clock:u: $address main+0x0 ($many)\n\t$address main\n\t$address x\n";
    for my $turn (1 .. 25) {
        my $changed = $text;
        substr $changed, int rand length $changed, 1, chr int rand 256 for 1 .. 1 + int rand 12;
        substr $changed, int rand length $changed, int rand 20, '' if rand() < 0.5;
        my ($status) = profile('--json', $many, spit('samples', $changed));
        ok $status eq '0' || $status eq '1', "changed samples, turn $turn: $status";
    }
};

# ---- Speed ----

# The processor's time that counting takes.
sub time_to_count {
    my ($turn, $turns) = @_;
    my $path = spit('samples', $turn x $turns);
    my @before = times;
    my ($status, $out, $err) = profile('--json', $many, $path);
    my @after = times;
    is_deeply [$status, $err], [0, ''], 'exit status and standard error';
    is decode_json($out)->{in_blocks}, $turns * 10_000, 'all are counted';
    return $after[2] + $after[3] - $before[2] - $before[3];
}

# Eight times as many samples take about eight times as long, and not 64 times. The time for a sample is in
# doc/performance.md.
subtest 'time grows with the number of samples, and not faster' => sub {
    my @starts = map { sprintf '%x', address_of($many, "function_$_") } 0 .. 39;
    my $turn = join '', map { "$starts[rand @starts]\n" } 1 .. 10_000;
    my $few = time_to_count($turn, 50);
    my $many_samples = time_to_count($turn, 400);
    cmp_ok $many_samples, '<', 24 * ($few + 0.02), sprintf '%.2f s for %.2f s', $many_samples, $few;
};

done_testing;
