# Tests examples/lox: its own programs, which say in comments what they print; random programs, whose results
# are compared between all modes; programs that are deep, large, endless or wrong.
#
# A file of programs has several, each after a line `// program: NAME`. Comments say what is expected:
#
#     // expect: TEXT                          a line of standard output
#     // expect runtime error: TEXT            the message, the exit status, and this line's number
#     // expect runtime error at LINE: TEXT    the same, with another number
#     // expect stack: TEXT                    the next line of the stack, innermost first
#     // expect static error: TEXT             a static error of this line; there may be more
#     // expect static error at LINE: TEXT
#
# Runs in the build folder, or with CAIRN_LOX=PROGRAM another program. CAIRN_TEST_ROUNDS is the number of random
# programs; there are fewer in repeated builds, whose programs are slow, and fewer modes. Under emulation, each run takes
# a second or more, because LLVM is loaded: compiled code runs the tree's own programs, and errors after loops.
#
# SPDX-License-Identifier: MIT
use strict;
use warnings;
use Cwd qw(abs_path);
use FindBin;
use List::Util qw(min);
use Test::More;
use lib $FindBin::Bin;
use CommandTest;

my $programs = abs_path("$FindBin::Bin/../examples/lox");
my $is_emulated = ($ENV{CAIRN_TEST_RUNNER} // '') ne '';
my $is_repeated = ($ENV{CAIRN_TEST_REPEATED} // '') ne '';
my ($built) = map { abs_path($_) } grep { -x } 'examples/lox/lox';
my @lox = (split(' ', $ENV{CAIRN_TEST_RUNNER} // ''), $ENV{CAIRN_LOX} // $built);
skip_test 'examples/lox is not built' if !defined $lox[-1] || !-x $lox[-1];

# Each is tested with all programs.
my %modes = (
    interpreted => ['--jit=off'],
    collected   => ['--jit=off', '--gc-stress'],
    small       => ['--jit=off', '--young=4'],
);
my $has_compiler = system("@lox --jit=on /dev/null 2>/dev/null") == 0;
%modes = (
    %modes,
    hot                => ['--jit=on'],
    compiled           => ['--jit=always', "--cache=$folder/programs"],
    compiled_collected => ['--jit=always', '--gc-stress'],
    loops              => ['--jit=loops'],
    loops_collected    => ['--jit=loops', '--gc-stress'],
) if $has_compiler;
%modes = map { $_ => $modes{$_} } qw(compiled loops) if $has_compiler && $is_emulated;
delete @modes{qw(small hot loops compiled_collected)} if $has_compiler && $is_repeated;
my @limit = ('--heap-limit=64');

# ---- Programs with expectations ----

# Splits a file into [NAME, TEXT].
sub programs {
    my ($path) = @_;
    my ($name) = $path =~ m{([^/]+)\.lox$};
    my $text = slurp($path);
    return [$name, $text] if $text !~ m{^// program: }m;
    my (undef, @parts) = split m{^// program: (.*)\n}m, $text;
    return map { ["$name: $parts[2 * $_]", $parts[2 * $_ + 1]] } 0 .. @parts / 2 - 1;
}

# Returns the expected exit status, standard output and standard error; after a run-time error its beginning, and the
# calls of the stack.
sub expectation {
    my ($text) = @_;
    my ($out, $number, $message, $error_line, @static, @stack) = ('', 0);
    for my $line (split /\n/, $text) {
        $number++;
        my ($kind, $at, $rest) =
            $line =~ m{// expect( runtime error| static error| stack)?(?: at (\d+))?: ?(.*)} or next;
        $at //= $number;
        $kind //= '';
        if ($kind eq ' runtime error') {
            ($message, $error_line) = ($rest, $at);
        } elsif ($kind eq ' static error') {
            push @static, "[line $at] $rest\n";
        } elsif ($kind eq ' stack') {
            push @stack, $rest;
        } else {
            $out .= "$rest\n";
        }
    }
    return (65, '', join '', @static) if @static;
    return (70, $out, "$message\n[line $error_line] in ", @stack) if defined $message;
    return (0, $out, '');
}

# Tests programs, given as [NAME, TEXT]. Their stacks are compared if there are expectations for them.
sub check_programs {
    my ($programs, @options) = @_;
    my @paths = map { spit("program$_.lox", $programs->[$_][1]) } 0 .. $#$programs;
    my @results = run_all(map { ['/dev/null', @lox, @limit, @options, $_] } @paths);
    for my $i (0 .. $#results) {
        my ($name, $text) = @{$programs->[$i]};
        my ($status, $out, $err, @stack) = expectation($text);
        my ($got_status, $got_out, $got_err) = @{$results[$i]};
        if ($status == 70) {
            is substr($got_err, 0, length $err), $err, "$name: message and line";
            is_deeply [$got_err =~ m/^\[line \d+\] (in .*)$/mg], \@stack, "$name: stack" if @stack;
        } else {
            is $got_err, $err, "$name: standard error";
        }
        is $got_out, $out, "$name: output";
        is $got_status, $status, "$name: exit status";
    }
}

# Programs with static errors do not run, so their mode does not matter.
my @programs = map { programs($_) } glob "$programs/tests/*.lox";
my ($wrong, $right) = map {
    my $is_wrong = $_;
    [grep { ((expectation($_->[1]))[0] == 65) == $is_wrong } @programs]
} 1, 0;
@$right = grep { $_->[0] !~ m/: / || $_->[1] =~ m/\bfor \(/ } @$right if $is_emulated;
subtest 'programs with static errors' => sub { check_programs($wrong) } if !$is_emulated;
for my $mode (sort keys %modes) {
    # Without loops, a program would be interpreted there, which other builds test.
    my @run = grep { !$is_emulated || $mode ne 'loops' || $_->[1] =~ m/\b(?:for|while) \(/ } @$right;
    subtest "programs, $mode" => sub { check_programs(\@run, @{$modes{$mode}}) };
}

if ($is_emulated) {
    done_testing;
    exit;
}

# ---- Random programs ----

# Each program is run in half of the modes, because compiling takes most of the time.
subtest 'random programs' => sub {
    my $rounds = $ENV{CAIRN_TEST_ROUNDS} // ($is_repeated ? 8 : 40);
    my ($errors, $number) = (0, int rand 1_000_000_000);
    my @halves = (
        [grep { exists $modes{$_} } qw(interpreted small hot compiled loops_collected)],
        [grep { exists $modes{$_} } qw(interpreted collected hot compiled_collected loops)],
    );
    for my $round (1 .. $rounds) {
        my $program = "perl $programs/tests/random.pl " . ++$number;
        my $path = spit('random.lox', scalar `$program`);
        my @names = @{$halves[$round % 2]};
        my @results = run_all(map { ['/dev/null', @lox, @limit, @{$modes{$_}}, $path] } @names);
        like $results[0][0], qr/^(0|70)$/, "exit status: $program" or diag $results[0][2];
        $errors += $results[0][0] != 0;
        is_deeply $results[$_], $results[0], "$names[$_] and $names[0]: $program" for 1 .. $#names;
        next if !grep { $_ eq 'compiled' } @names;
        my @stored = run_with('/dev/null', @lox, @limit, @{$modes{compiled}}, $path);
        is_deeply \@stored, $results[0], "with stored code and $names[0]: $program";
    }
    cmp_ok $errors, '<', $rounds / 2 + 5, 'most of them end without an error';
};

# ---- Stored code ----

# Returns how many versions a run compiled and loaded, and how many guards failed.
sub stored_figures {
    my ($program, @options) = @_;
    my ($status, $out, $err) = run_with('/dev/null', @lox, '--statistics', @options, $program);
    is $status, 0, 'exit status' or diag $err;
    my @figures = $err =~ m{^compiled: (\d+) versions, loaded: (\d+), .* failed: (\d+)}m;
    return ($out, @figures);
}

# A class, a method, a function, a closure that is in a global variable, constants, and a string.
my $stored_text = <<'END';
class A { init(x) { this.x = x; } add(n) { return this.x + n; } }
class B < A { add(n) { return super.add(n) + 1; } }
var step = 2;
var word = "w";
fun make() { var k = 0; fun count() { k = k + step; return k; } return count; }
var counter = make();
fun sum(o, n) { var s = 0; for (var i = 0; i < n; i = i + 1) s = o.add(s) - s / 2 + counter(); return s; }
var o = B(3);
for (var i = 0; i < 300; i = i + 1) sum(o, 300);
print sum(o, 10) + o.add(1);
if (word == "w") print "right";
END

subtest 'a later run loads the code of an earlier one' => sub {
    plan skip_all => 'there is no compiler' if !$has_compiler;
    my $program = spit('stored.lox', $stored_text);
    for my $mode ('always', 'loops') {
        my @options = ("--jit=$mode", "--cache=$folder/cache-$mode");
        my (undef, $expected) = run_with('/dev/null', @lox, '--jit=off', $program);
        my ($out, $compiled, $loaded) = stored_figures($program, @options);
        is $out, $expected, "$mode, first run: output";
        cmp_ok $compiled, '>', 0, "$mode, first run: it compiles";
        is $loaded, 0, "$mode, first run: nothing is stored";
        ($out, $compiled, $loaded) = stored_figures($program, @options) for 1 .. 2;
        is $out, $expected, "$mode, later run: output";
        is $compiled, 0, "$mode, later run: nothing is compiled";
        cmp_ok $loaded, '>', 0, "$mode, later run: code is loaded";
        ($out, $compiled, $loaded) = stored_figures(spit('other.lox', "$stored_text "), @options);
        is $loaded, 0, "$mode: another program has other code";
    }
    my ($out, undef, $loaded) = stored_figures($program, "--cache=$folder/cache-loops");
    cmp_ok $loaded, '>', 0, 'what is not hot yet has code, too';
    local $ENV{XDG_CACHE_HOME} = '';
    local $ENV{HOME} = $folder;
    ($out, undef, $loaded) = stored_figures($program, '--jit=loops', '--cache') for 1 .. 2;
    cmp_ok $loaded, '>', 0, 'in the folder of the user';
    ok -d "$folder/.cache/lox", 'which is ~/.cache/lox';
};

subtest 'programs with code that the mode "compiled" has stored' => sub {
    plan skip_all => 'there is no compiler' if !$has_compiler;
    check_programs($right, @{$modes{compiled}});
};

# What is right in the first runs may be wrong at the same time of the next one, because code is there earlier.
subtest 'code that was left is forgotten' => sub {
    plan skip_all => 'there is no compiler' if !$has_compiler;
    my $program = spit('phases.lox', join '', map { "$_\n" } 'fun f(x) { return x + x; }', 'var last;',
        'for (var k = 0; k < 6; k = k + 1) { var x = k; if (k > 3) x = "s";',
        'for (var i = 0; i < 300; i = i + 1) last = f(x); print last; }');
    my @failed;
    for my $run (1 .. 4) {
        my ($out, undef, undef, $failed) = stored_figures($program, '--jit=loops', "--cache=$folder/phases");
        is $out, "0\n2\n4\n6\nss\nss\n", "run $run";
        push @failed, $failed;
    }
    is $failed[3], 0, 'the last run leaves no code' or diag "@failed";
};

# Each run has one of two superclasses, and so one of two closures of the same method, by the time of day.
subtest 'stored code refers to the objects of its process' => sub {
    plan skip_all => 'there is no compiler' if !$has_compiler;
    my $program = spit('either.lox', join '', map { "$_\n" } 'var time = clock(); while (time > 1) time = time - 1;',
        'fun make(v) { class X { m() { return v; } } return X; }', 'var A = make(1); var B = make(2);',
        'fun derive() { var S = A; if (time < 0.5) S = B; class D < S {} return D; }', 'var C = derive();',
        'fun sum(o) { var s = 0; for (var i = 0; i < 100; i = i + 1) s = s + o.m(); return s; }',
        'var expected = 100; if (time < 0.5) expected = 200;', 'print sum(C()) == expected;');
    for my $run (1 .. 16) {
        my ($out, undef, undef, $failed) = stored_figures($program, '--jit=loops', "--cache=$folder/either");
        is $out, "true\n", "run $run";
    }
};

subtest 'a store that is damaged, or that others can write to' => sub {
    plan skip_all => 'there is no compiler' if !$has_compiler;
    my ($program, $cache) = (spit('stored.lox', $stored_text), "$folder/damaged");
    my @options = ('--jit=always', "--cache=$cache");
    my ($expected) = stored_figures($program, @options);
    my ($file) = glob "$cache/*";
    my $bytes = slurp($file);
    srand(my $seed = int rand 1_000_000_000);
    for my $round (1 .. 10) {
        my $damaged = $bytes;
        substr $damaged, int(rand length $damaged), 1, chr int rand 256 for 1 .. 200;
        $damaged = substr $damaged, 0, int rand length $damaged if $round % 3 == 0;
        spit($file =~ s{.*/}{damaged/}r, $damaged);
        my ($out) = stored_figures($program, @options);
        is $out, $expected, "round $round with seed $seed";
    }
    chmod 0777, $cache;
    my ($status, $out, $err) = run_with('/dev/null', @lox, @options, $program);
    is "$status$out", "0$expected", 'a folder that others can write to: output';
    like $err, qr/\Alox: .*\n\z/, 'it is not used, and a line says so';
    my @all = run_all(map { ['/dev/null', @lox, '--jit=always', "--cache=$folder/ten", $program] } 1 .. 10);
    is_deeply [map { $_->[1] } @all], [($expected) x 10], 'processes at the same time';
};

# ---- Large, deep and endless programs ----

# Tests the exit status and patterns for what is printed.
sub check_text {
    my ($name, $text, $status, $out, $err, @options) = @_;
    my $path = spit('text.lox', $text);
    my ($got_status, $got_out, $got_err) = run_with('/dev/null', @lox, @limit, @options, $path);
    is $got_status, $status, "$name: exit status";
    like $got_out, $out, "$name: output";
    like substr($got_err, 0, 5000), $err, "$name: standard error";
}

my $million = 1_000_000;
my $none = qr/\A\z/;
my $memory = qr/\AOut of memory\.\n/;
subtest 'large programs' => sub {
    # Each strtod would read the program to its end.
    local $ENV{ASAN_OPTIONS} = ($ENV{ASAN_OPTIONS} // '') . ':strict_string_checks=0';
    check_text('a long line', 'print 1;' x ($million / 8) . 'print nil + 1;', 70, qr/\A(1\n)+\z/, qr/^\[line 1\] in script$/m);
    check_text('a long line of calls', 'fun f(){}' . 'f();' x ($million / 4) . 'print 2;', 0, qr/\A2\n\z/, $none);
    check_text('a long expression', 'print 0' . '+1' x ($million / 2) . ';', 0, qr/\A500000\n\z/, $none);
    check_text('a long string', 'print "' . 'x' x $million . '";', 0, qr/\Ax{1000}/, $none);
    check_text('a long name', 'var ' . 'x' x $million . ' = 1; print ' . 'x' x $million . ';', 0, qr/\A1\n\z/, $none);
    check_text('a long number', 'print ' . '1' x $million . ';', 0, qr/\Ainf\n\z/, $none);
    check_text('many lines', "\n" x $million . 'print nil + 1;', 70, $none, qr/^\[line 1000001\] in script$/m);
    check_text('a long comment', '//' . 'x' x $million, 0, $none, $none);
    check_text('many errors', 'print;' x 10_000, 65, $none, qr/\A(\[line 1\] Error at ';': Expect expression\.\n)+/);
    check_text('many globals', join('', map { "var v$_ = $_;" } 1 .. 100_000) . 'print v99999;', 0, qr/\A99999\n\z/, $none);
    check_text('many fields', 'class C {} var c = C();' . join('', map { "c.f$_ = $_;" } 0 .. 30_000)
            . 'var d = C(); d.f3 = 1; print c.f29999 + c.f0 + d.f3;', 0, qr/\A30000\n\z/, $none);
    check_text('many methods', 'class C {' . join('', map { "m$_() { return $_; }" } 1 .. 30_000) . '} print C().m29999();',
        0, qr/\A29999\n\z/, $none);
    check_text('many classes', join('', map { "class C$_ < C" . ($_ - 1) . ' {}' } 1 .. 3_000) =~ s/ < C0//r . 'print C3000();',
        0, qr/\AC3000 instance\n\z/, $none);
    check_text('many locals', '{' . join('', map { "var v$_ = $_;" } 1 .. 10_000) . 'print v9999; fun f() { return v77; } print f();}',
        0, qr/\A9999\n77\n\z/, $none);
    check_text('too many locals', '{' . join('', map { "var v$_;" } 1 .. 16_400) . '} print;', 65, $none,
        qr/\A(\[line 1\] Error at 'v\d+': Too many local variables in function\.\n)+\[line 1\] Error at ';': Expect expression\.\n\z/);
    check_text('many captures', 'fun f() {' . join('', map { "var v$_ = $_;" } 1 .. 1000) . 'fun g() { return v1'
            . join('', map { " + v$_" } 2 .. 1000) . '; } return g; } print f()();', 0, qr/\A500500\n\z/, $none);
    # These took time in proportion to the product of variables and code.
    my @names = map { "v$_" } 1 .. 16_000;
    my $variables = join '', map { "var $_;" } @names;
    check_text('many captures in much code', "fun f() { $variables" . '1;' x ($million / 4) . 'fun g() {' . join(';', @names)
            . '; } return g; } print f()();', 0, qr/\Anil\n\z/, $none);
    check_text('many locals in much code', "{ $variables" . 'v1;' x ($million / 4) . 'print v1; }', 0, qr/\Anil\n\z/, $none);
    check_text('many functions with locals', join('', map { my $f = $_; "fun f$f() {" . join '', map { "var v${f}_$_;" } 1 .. 60 } 1 .. 1200)
            . 'f1;' x ($million / 4) . '}' x 1200 . 'print f1();', 0, qr/\Anil\n\z/, $none);
    my $arguments = join ', ', ('1') x 255;
    my $parameters = join ', ', map { "p$_" } 1 .. 255;
    check_text('255 arguments', "fun f($parameters) { return p255; } print f($arguments);", 0, qr/\A1\n\z/, $none);
    check_text('256 arguments', "f($arguments, 1);", 65, $none, qr/at '1': Can't have more than 255 arguments\./);
    check_text('256 parameters', "fun f($parameters, q) {}", 65, $none, qr/at 'q': Can't have more than 255 parameters\./);
    check_text('bytes', join('', map { chr } 0 .. 255), 65, $none, qr/\A\[line 1\] Error: Unexpected character\.\n/);
    check_text('a zero in a string', "print \"a\0b\";", 0, qr/\Aa\0b\n\z/, $none);
    check_text('an empty file', '', 0, $none, $none);
};

subtest 'deep programs' => sub {
    my $deep = 100_000;
    my $nesting = qr/Too much nesting\./;
    check_text('parentheses', 'print ' . '(' x $deep . '1' . ')' x $deep . ';', 65, $none, $nesting);
    check_text('not', 'print ' . '!' x $deep . '1;', 65, $none, $nesting);
    check_text('minus', 'print ' . '-' x $deep . '1;', 65, $none, $nesting);
    check_text('assignments', 'a = ' x $deep . '1;', 65, $none, $nesting);
    check_text('or', 'print ' . 'nil or ' x $deep . '1;', 65, $none, $nesting);
    check_text('calls', 'f(' x $deep, 65, $none, $nesting);
    check_text('blocks', '{' x $deep, 65, $none, $nesting);
    check_text('else if', 'if (a) {} else ' x $deep . '{}', 65, $none, $nesting);
    check_text('functions', 'fun f() {' x $deep, 65, $none, $nesting);
    check_text('classes', 'class C { m() {' x $deep, 65, $none, $nesting);
    check_text('loops', 'while (a) for (;;) ' x $deep, 65, $none, $nesting);
    check_text('moderate nesting', 'print ' . '(' x 2000 . '1' . ')' x 2000 . ';', 0, qr/\A1\n\z/, $none);
    check_text('dots', 'class C {} var c = C(); c.c = c; print c' . '.c' x $deep . ';', 0, qr/\AC instance\n\z/, $none);
    check_text('initialisers', 'class C { init() { C(); } } C();', 70, $none, qr/\AStack overflow\.\n\[line 1\] in init\(\)\n/);
    check_text('a long stack', 'fun f(n) { if (n == 0) nil(); f(n - 1); } f(300);', 70, $none,
        qr/\ACan only call functions and classes\.\n(\[line 1\] in f\(\)\n)+\.\.\. \d+ more calls \.\.\.\n/);
    check_text('many frames with many locals', 'fun f(n) { if (n == 0) return 0; var a; {' . join('', map { "var v$_;" } 1 .. 200)
            . ' a = 1 + f(n - 1); } return a; } print f(99999);', 0, qr/\A99999\n\z/, $none);
    check_text('large frames', 'fun f(n) {' . join('', map { "var v$_;" } 1 .. 2000) . ' return f(n + 1); } f(0);', 70,
        $none, qr/\AStack overflow\.\n/);
};

subtest 'memory' => sub {
    my $class = 'class N { init(n) { this.n = n; } } var list = nil;';
    check_text('a list', "$class while (true) list = N(list);", 70, $none, $memory);
    check_text('a string', 'var s = "x"; while (true) s = s + s;', 70, $none, $memory);
    check_text('a string that grows slowly', 'var s = "x"; for (var i = 0; i < 20; i = i + 1) s = s + s; var t = s;'
            . 'while (true) t = t + s;', 70, $none, $memory);
    check_text('closures', 'fun f(g) { fun h() { return g; } return h; } var g; while (true) g = f(g);', 70, $none, $memory);
    check_text('bound methods', 'class C { m() {} } class N {} var list = nil; while (true) { var n = N(); n.m = C().m;'
            . 'n.list = list; list = n; }', 70, $none, $memory);
    check_text('classes', 'fun f(S) { class C < S { m() { super.m(); } } return C; } class A { m() {} } var c = A;'
            . 'while (true) c = f(c);', 70,
        $none, $memory);
    check_text('in a deep stack', "$class fun f(l) { return f(N(N(N(l)))).n; } f(nil);", 70, $none,
        qr/\A(Out of memory|Stack overflow)\.\n/, '--heap-limit=8');
    check_text('garbage', "$class for (var i = 0; i < $million; i = i + 1) { N(i); \"a\" + \"b\"; } print 1;", 0, qr/\A1\n\z/,
        $none, '--heap-limit=1');
    check_text('garbage of large strings', 'var s = "x"; for (var i = 0; i < 18; i = i + 1) s = s + s;'
            . 'for (var i = 0; i < 300; i = i + 1) { s + "y"; } print 1;', 0, qr/\A1\n\z/, $none, '--heap-limit=2');
    check_text('garbage of classes', 'for (var i = 0; i < 100000; i = i + 1) { class C { init() { this.x = i; } m() {} } C().m(); }'
            . 'print 1;', 0, qr/\A1\n\z/, $none, '--heap-limit=8');
    # Wherever the limit is reached, also where a table grows, there is garbage enough.
    check_text("garbage of classes in $_ MiB", 'for (var i = 0; i < 50000; i = i + 1) { class C { init() { this.x = i; } m() {} } C().m(); }'
            . 'print 1;', 0, qr/\A1\n\z/, $none, '--jit=off', "--heap-limit=$_") for 1 .. 10;
    check_text('fields in all orders', 'class C {} var n = 0; fun bit(o, k) { n = n * 5 + 3; n = n - 1; while (n > 1000) n = n / 7;'
            . 'if (n > k) o.a = 1; if (n > 2 * k) o.b = 1; if (n < 3 * k) o.c = 1; if (n > 50) o.d = 1; }'
            . 'for (var i = 0; i < 20000; i = i + 1) { var o = C(); for (var k = 0; k < 9; k = k + 1) bit(o, k * 30); }'
            . 'print 1;', 0, qr/\A1\n\z/, $none, '--heap-limit=8');
};

# ---- The command ----

subtest 'the command' => sub {
    my ($status, $out, $err) = run_with('/dev/null', @lox, "$folder/missing.lox");
    is $status, 74, 'a missing file';
    like $err, qr/\A[^\n]*missing\.lox[^\n]*\n\z/, 'one line on standard error';
    ($status) = run_with('/dev/null', @lox, $folder);
    is $status, 74, 'a folder';
    for my $options (['--wrong'], ['a', 'b'], ['--heap-limit=x'], ['--heap-limit=0'], ['--young=1'], ['--young=-5']) {
        ($status, $out, $err) = run_with('/dev/null', @lox, @$options);
        is $status, 64, "@$options";
        like $err, qr/^usage: lox/m, "usage: @$options";
    }
    ($status, $out, $err) = run_with('/dev/null', @lox, '--help');
    is $status, 0, '--help';
    like $out, qr/\Ausage: lox.*^  --jit=MODE /ms, '--help lists the options on standard output';
    my $input = spit('input', join "\n", 'var a = "kept";', 'print', 'fun f() { return a; }', 'print nil();', 'missing;',
        'var b = f() + "!"; print b;', 'class C { m() { return this.x; } } var c = C(); c.x = 3;', 'print c.m() + 1;',
        'c.y;', '{ var x = "local"; print x + a; }', 'print "no line feed";');
    for my $options ([], ['--gc-stress'], ['--young=4']) {
        ($status, $out, $err) = run_with($input, @lox, @$options);
        is $status, 0, 'lines: exit status';
        is $out, "kept!\n4\nlocalkept\nno line feed\n", 'lines: output';
        is $err, "[line 2] Error at end: Expect expression.\nCan only call functions and classes.\n[line 1] in script\n"
            . "Undefined variable 'missing'.\n[line 1] in script\nUndefined property 'y'.\n[line 1] in script\n",
            'lines: standard error';
    }
    (undef, undef, $err) = run_with('/dev/null', @lox, '--statistics', spit('empty.lox', ''));
    like $err, qr/\Acollections: \d+ minor, \d+ major; old objects: \d+ bytes\n(compiled: .*\n)?\z/, '--statistics';
};

subtest 'with --debugger, gdb stops in compiled code' => sub {
    my $gdb = find_in_path('gdb');
    plan skip_all => 'there is no compiler' if !$has_compiler;
    plan skip_all => 'there is no gdb for this machine' if !defined $gdb || $is_emulated;
    plan skip_all => 'the address sanitizer reports leaks under a debugger' if ($ENV{CFLAGS} // '') =~ /sanitize/;
    my $program = spit('debugged.lox', "fun fib(n) {\n  if (n < 2) return n;\n  return fib(n - 1) + fib(n - 2);\n}\nprint fib(9);\n");
    my @debugged = ('--args', @lox, '--jit=always');
    my @words = map { ('-ex', $_) } 'set pagination off', 'set debuginfod enabled off', 'set startup-with-shell off', 'rbreak ^jit_destroy$',
        'run', 'info functions ^fib#', 'kill';
    my (undef, $out, $err) = run_with('/dev/null', $gdb, '-nx', '-batch', @words, @debugged, '--debugger', $program);
    plan skip_all => "gdb cannot run programs here: $err" if $out !~ /(?:hit |^)Breakpoint 1, /m;
    like $out, qr/^0x\w+ +fib#\d+/m, 'the function is known' or diag $out, $err;
    (undef, $out) = run_with('/dev/null', $gdb, '-nx', '-batch', @words, @debugged, $program);
    unlike $out, qr/^0x\w+ +fib#\d+/m, 'which it is not without the option';
};

subtest 'a report of its log names shapes and lines' => sub {
    plan skip_all => 'there is no compiler' if !$has_compiler;
    plan skip_all => 'the command is not built' if !defined $cairn;
    my $program = spit('logged.lox', join '', "fun add(a, b) {\n  return a + b;\n}\n",
        "add(1, 2); add(1, 2);\nprint add(\"a\", \"b\");\n");
    my ($status, undef, $err) = run_with('/dev/null', @lox, '--jit=always', "--log=$folder/log", $program);
    is "$status$err", '0', 'lox';
    my (undef, $out) = run_with('/dev/null', $cairn, 'report', "$folder/log");
    like $out, qr/^  add\S* .* line 2 of add /m, 'the line of the deopt';
};

# ---- Code that is compiled again and again ----

subtest 'code that was left is freed' => sub {
    plan skip_all => 'there is no compiler' if !$has_compiler;
    my ($functions, $classes) = (12, 4);
    my $text = join '', map { "class C$_ { init() { this.a$_ = 0; this.x = $_; } }\n" } 1 .. $classes;
    for my $f (1 .. $functions) {
        $text .= "fun f$f(o) { return o.x; }\n";
        $text .= join '', map { "f$f(C$_()); print f$f(C$_());\n" } 1 .. $classes;
    }
    my ($status, $out, $err) =
        run_with('/dev/null', @lox, '--jit=always', '--statistics', spit('again.lox', $text));
    is $status, 0, 'exit status';
    is $out, join("\n", 1 .. $classes, '') x $functions, 'output';
    my ($compiled, $kept) = $err =~ m{^compiled: (\d+) .* in memory: (\d+);}m;
    cmp_ok $compiled, '>=', $classes * $functions, 'each shape compiles each function again';
    cmp_ok $kept, '<=', $functions + $classes + 4, 'one version of each is in memory, and what is about to be freed';
};

# ---- Programs that change, and that are large ----

# Runs a program that prints times, and returns these, and the numbers of compiled versions and of failed guards.
sub measure {
    my ($name, $text) = @_;
    my ($status, $out, $err) = run_with('/dev/null', @lox, '--statistics', spit('measured.lox', $text));
    is $status, 0, "$name: exit status" or diag $err;
    return ([split /\n/, $out], $err =~ m{^compiled: (\d+) .* failed: (\d+)}m);
}

sub median {
    my @sorted = sort { $a <=> $b } @_;
    return $sorted[@sorted / 2];
}

# Each phase executes a branch for the first time. After some failed speculations, code does without them.
my %branches = (
    calls => 'return f%d(a);',
    constructors => 'return C%d(a).x;',
    methods => 'return o.m(a);',
    fields => 'o.y = a; return o.x + o.y;',
    superclasses => 'return D%d(1).m(a);',
    strings => 'if (a == -1) return "a" + "b"; return a + %d;',
);
subtest 'functions that find new branches remain compiled' => sub {
    plan skip_all => 'there is no compiler' if !$has_compiler;
    plan skip_all => 'too slow with sanitizers' if $is_repeated;
    my $phases = 36;
    for my $kind (sort keys %branches) {
        my $text = '';
        my $work = "fun work(k, o, a) {\n";
        for my $i (0 .. $phases - 1) {
            $text .= "class C$i { init(v) { this.v$i = v; this.x = $i; } m(a) { return a + $i; } }\n"
                . "class D$i < C$i { m(a) { return super.m(a); } }\nfun f$i(a) { if (a < 0) return -a; return a + $i; }\n";
            $work .= "if (k == $i) { " . $branches{$kind} =~ s/%d/$i/gr . " }\n";
        }
        $text .= "$work}\nfun run(k, o) { for (var i = 0; i < 600000; i = i + 1) work(k, o, i); }\n"
            . "for (var k = 0; k < $phases; k = k + 1) {\nvar o;\n"
            . join('', map { "if (k == $_) o = D$_(1);\n" } 0 .. $phases - 1)
            . "var t = clock(); run(k, o); print clock() - t; }\n";
        my ($times, undef, $failed) = measure($kind, $text);
        # The least of several times is not that of a phase during which the machine did something else.
        my ($before, $after) = (median(@$times[4 .. 20]), min(@$times[$phases - 7 .. $phases - 1]));
        cmp_ok $failed, '<', 60, "$kind: the number of failed guards has a limit";
        cmp_ok $after, '<', 2.5 * $before, "$kind: the last phases are about as fast as the first ones";
    }
};

subtest 'a hot loop in a large function is compiled' => sub {
    plan skip_all => 'there is no compiler' if !$has_compiler;
    plan skip_all => 'too slow with sanitizers' if $is_repeated;
    my $loop = "var t = clock(); var s = 0; var n = 0;\nwhile (n < 5000000) { n = n + 1; s = s + n * 2; if (s > q) s = s - q; }\n"
        . "print clock() - t;\n";
    my $lines = join '', map { "if (q == $_) { q = q + $_; }\n" } 1 .. 10_000;
    my $locals = join '', map { "var v$_ = $_;" } 1 .. 1000;
    my ($alone) = measure('alone', "var q = 100000; fun f() {\n$loop}\nf();");
    for my $large (["{\n$lines$loop$lines}", 'lines'], ["fun f() {\n$lines$loop$lines}\nf();", 'a function'],
        ["{ $loop { $locals } }", 'many locals']) {
        my @times;
        for my $run (1 .. 3) {
            my ($times, $versions) = measure($large->[1], "var q = 100000;\n$large->[0]");
            cmp_ok $versions, '>=', 1, "$large->[1]: it is compiled";
            push @times, $times->[0];
        }
        cmp_ok min(@times), '<', 3 * $alone->[0] + 0.05, "$large->[1]: it is about as fast as the loop alone";
    }
};

# ---- Benchmark programs, for what they print ----

subtest 'benchmark programs' => sub {
    plan skip_all => 'too slow with sanitizers' if $is_repeated;
    check_programs([map { programs($_) } glob "$programs/bench/*.lox"]);
};

done_testing;
