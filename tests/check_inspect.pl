# Tests `cairn inspect`: what it prints of live processes (tests/inspected, and Lox), while they patch, load
# and retire; forked children; processes that end, that are not there, or have no Cairn; and hostile memory.
#
# Runs in the build folder.
#
# SPDX-License-Identifier: MIT
use strict;
use warnings;
no warnings qw(portable); # addresses have 64 bits
use Cwd qw(abs_path);
use FindBin;
use IPC::Open2;
use JSON::PP;
use POSIX qw(WNOHANG);
use Test::More;
use Time::HiRes qw(sleep time);
use lib $FindBin::Bin;
use CommandTest;

alarm 300; # a process that does not end must not hold up the others
skip_test 'an emulator is the process that the system sees' if ($ENV{CAIRN_TEST_RUNNER} // '') ne '';
skip_test 'cairn was not built' if !defined $cairn;
my ($program) = map { abs_path($_) } grep { -x } 'tests/inspected';
skip_test 'tests/inspected was not built: there is no patching for this architecture' if !defined $program;

sub inspect { return run_with('/dev/null', $cairn, 'inspect', @_) }

# ---- Processes ----

# Starts a process and waits until it is ready. Returns what it prints and how to end it, or nothing if it
# cannot do what the mode says here.
sub begin {
    my ($mode) = @_;
    my $pid = open2(my $out, my $in, $program, $mode);
    my $line = <$out> // '';
    my ($site, $one, $two, $process) = map { hex } (split ' ', $line)[0 .. 2];
    $process = (split ' ', $line)[3];
    if (!defined $process) {
        waitpid $pid, 0;
        return undef;
    }
    return {pid => $pid, process => $process, in => $in, out => $out, site => $site, targets => [$one, $two]};
}

sub end {
    my ($started) = @_;
    kill 'KILL', $started->{pid};
    kill 'KILL', $started->{process};
    close $started->{in};
    waitpid $started->{pid}, 0;
}

# Returns the JSON of a process.
sub look {
    my ($started, @options) = @_;
    my ($status, $out, $err) = inspect('--json', @options, $started->{process});
    is_deeply [$status, $err], [0, ''], 'exit status and standard error';
    my $found = eval { decode_json($out) };
    ok defined $found, 'valid JSON' or diag $out;
    return $found // {runtimes => [{}]};
}

# Whether processes can be read at all: a container may forbid it.
my $first = begin('dual') // begin('single');
skip_test 'the system refuses a descriptor (memfd_create)' if !defined $first;
my ($can_read, undef, $why) = inspect($first->{process});
skip_test "this system does not let processes be read: $why" if $can_read != 0 && $why =~ /no permission|not permitted|not implemented/;
end($first);

# ---- What is printed ----

subtest 'modules, sites and code memory, in every mode' => sub {
    for my $mode (qw(dual single)) {
        my $started = begin($mode);
        if (!defined $started) {
            diag "skipped: code mode $mode does not work here";
            next;
        }
        my $found = look($started);
        is $found->{process}, $started->{process}, 'process';
        my ($runtime, @more) = @{$found->{runtimes}};
        is scalar @more, 0, 'one runtime';
        is $runtime->{mode}, $mode, 'mode';
        my %modules = map { $_->{name} => $_ } @{$runtime->{modules}};
        is_deeply [sort keys %modules], ["first\e[31m", 'second', 'third'], 'modules';
        is $modules{second}{state}, 'retired', 'a retired module';
        my $module = $modules{"first\e[31m"};
        is_deeply [@$module{qw(number state functions records)}], [1, 'published', 1, 2], 'a published module';
        is $module->{bytes}{code}, 128, 'bytes of code';
        ok $started->{site} > $module->{address} && $started->{site} < $module->{address} + 128, 'address of code';
        my ($site, $odd) = @{$module->{sites}};
        is_deeply [@$site{qw(id address state target)}, $site->{live} ? 1 : 0],
            [42, $started->{site}, 'call', $started->{targets}[1], 1], 'the patched site';
        is $site->{target_symbol}, 'two', 'the name of its target';
        is_deeply [@$odd{qw(id target)}, $odd->{live} ? 1 : 0], [43, undef, 0], 'a site that is not live';
        my ($slab) = @{$runtime->{slabs}};
        ok $slab->{address} <= $module->{address} && $module->{address} < $slab->{address} + $slab->{size}, 'slab';
        ok $slab->{used}{code} >= 3 * 128 && $slab->{used}{code} <= $slab->{mapped}{code}, 'bytes in use';
        is_deeply [$runtime->{has_changed} ? 1 : 0, $runtime->{incomplete}], [0, undef], 'complete';
        end($started);
    }
};

subtest 'text' => sub {
    my $started = begin('patching');
    my ($status, $out, $err) = inspect($started->{process});
    is_deeply [$status, $err], [0, ''], 'exit status and standard error';
    like $out, qr/^process $started->{process}\nruntime 1 at 0x\w+: Cairn \S+, \S+, \w+ mapping\n/, 'head';
    like $out, qr/^    module 1 first\\x1b\[31m at 0x\w+, published: 128 bytes of code, 1 function, 2 records, 2 sites$/m,
        'module, whose name cannot control the terminal';
    my $site = sprintf '%x', $started->{site};
    like $out, qr/^      site 42 at 0x$site, \d+ bytes: (?:call to 0x\w+ = (?:one|two)|no-op)/m, 'site';
    (undef, my $summary) = inspect('--summary', $started->{process});
    like $summary, qr/^  6 sites: /m, 'numbers of sites';
    unlike $summary, qr/site 42|module 1/, 'no single modules with --summary';
    end($started);
};

subtest 'a process that patches all the time' => sub {
    my $started = begin('patching');
    my %seen;
    for (1 .. 15) {
        my $runtime = look($started)->{runtimes}[0];
        my ($module) = grep { $_->{number} == 1 } @{$runtime->{modules}};
        my $site = $module->{sites}[0];
        is $runtime->{incomplete}, undef, 'complete';
        $seen{$site->{state} . ' ' . ($site->{target} // '')}++;
    }
    my %possible = map { $_ => 1 } 'no-op ', map { "call $_" } @{$started->{targets}};
    is_deeply [grep { !$possible{$_} } keys %seen], [], 'each state is one that the process has set';
    end($started);
};

subtest 'a process that loads and retires all the time' => sub {
    my $started = begin('churning');
    for (1 .. 12) {
        my $runtime = look($started)->{runtimes}[0];
        my ($module) = grep { $_->{number} == 1 } @{$runtime->{modules}};
        next if !defined $module && ($runtime->{has_changed} || defined $runtime->{incomplete});
        is $module->{sites}[0]{target}, $started->{targets}[1], 'a module that stays';
    }
    is waitpid($started->{pid}, WNOHANG), 0, 'the process continues';
    end($started);
};

subtest 'a forked child has its own state' => sub {
    my $started = begin('forking');
    my $runtime = look($started)->{runtimes}[0];
    my ($module) = grep { $_->{number} == 1 } @{$runtime->{modules}};
    is $module->{sites}[0]{target}, $started->{targets}[1], 'child';
    isnt $started->{process}, $started->{pid}, 'it is a child';
    my ($status) = inspect($started->{pid});
    is $status, 0, 'parent';
    end($started);
};

subtest 'several runtimes' => sub {
    my $started = begin('two');
    my @runtimes = @{look($started)->{runtimes}};
    is_deeply [sort map { $_->{module_count} } @runtimes], [0, 3], 'both';
    end($started);
};

# ---- Watching ----

subtest 'watching until the process ends' => sub {
    my $started = begin('patching');
    my $pid = open2(my $out, my $in, 'sh', '-c', 'exec "$@" 2>&1', 'sh', $cairn, 'inspect', '--watch=0.05', '--json',
        '--summary', $started->{process});
    my ($count, $last) = (0, '');
    while (my $line = <$out>) {
        $count++ if $line =~ /"process":$started->{process},/;
        end($started) if $count == 3 && $line =~ /\}\n/ && !$started->{ended}++;
        $last = $line;
    }
    waitpid $pid, 0;
    is $? >> 8, 1, 'exit status';
    ok $count >= 3, 'printed again and again';
    is $last, "cairn: inspect: process $started->{process} ended while it was inspected\n", 'the end';
};

# ---- What cannot be inspected ----

subtest 'one line for what cannot be inspected' => sub {
    fails 1, qr/has no Cairn runtime/, 'inspect', $$;
    my $gone = fork // die;
    exec 'true' or exit 0 if $gone == 0;
    sleep 0.01 until (slurp("/proc/$gone/stat") =~ /\) Z /);
    fails 1, qr/has ended, and waits for its parent \(zombie\)$/, 'inspect', $gone;
    waitpid $gone, 0;
    fails 1, qr/there is no process $gone$/, 'inspect', $gone;
    fails 2, qr/'-3' is not the number of a process/, 'inspect', '-3';
    fails 2, qr/'12x' is not the number of a process/, 'inspect', '12x';
    fails 2, qr/'99999999999999999999' is not the number/, 'inspect', '99999999999999999999';
    fails 2, qr/no process is given/, 'inspect';
    fails 2, qr/--watch needs a number of seconds from 0.05 to 86400, not '0'/, 'inspect', '--watch=0', $$;
    fails 2, qr/--watch needs/, 'inspect', '--watch=nan', $$;
};

subtest 'a process of another user' => sub {
    plan skip_all => 'only the superuser can become another user' if $> != 0;
    my $started = begin('dual') // begin('single');
    my ($status, $out, $err) = run_with('/dev/null', 'perl', '-e',
        '$( = $) = 65534; $< = $> = 65534; exec @ARGV or exit 126', '--', $cairn, 'inspect', $started->{process});
    plan skip_all => 'another user cannot execute the command in this folder' if $status == 126 || $err =~ /shared lib/;
    is $status, 1, 'exit status';
    like $err, qr/\Acairn: inspect: no permission to read process $started->{process}: .*\n\z/, 'one line';
    end($started);
};

my %refused = (
    version => qr/it has version 77 \(of Cairn \S+\), and this cairn reads version 1 only/,
    empty => qr/it does not begin with/,
    order => qr/byte order/,
    pointers => qr/pointers have 4 bytes/,
    fields => qr/it has 4294967295 fields/,
    offset => qr/field \d+ is invalid/,
    bits => qr/field \d+ is invalid/,
    constant => qr/field \d+ is invalid/,
    architecture => qr/no architecture with number 5000/,
);
for my $mode (sort keys %refused) {
    subtest "a descriptor that is refused: $mode" => sub {
        my $started = begin($mode);
        fails 1, qr/process $started->{process}: the descriptor at 0x\w+ cannot be used: .*$refused{$mode}/, 'inspect',
            $started->{process};
        end($started);
    };
}

my %damaged = (
    wild => qr/cannot be read/,
    circle => qr/there is no module at/,
    self => qr/there is no module at/,
    states => qr/unknown state/,
    count => qr/cannot be read|more than \d+ sites|invalid instruction/,
    endless => qr/more than \d+ sites/,
    word => qr/invalid instruction/,
    units => qr/invalid sizes|cannot be read/,
    caches => qr/there is no cache/,
);
for my $mode (sort keys %damaged) {
    subtest "hostile memory: $mode" => sub {
        my $started = begin($mode);
        my $runtime = look($started, '--summary')->{runtimes}[0];
        like $runtime->{incomplete}, $damaged{$mode}, 'what is wrong';
        end($started);
    };
}

subtest 'lists that end at their limits' => sub {
    my $started = begin('veneers');
    look($started);
    end($started);
    $started = begin('changing');
    ok look($started)->{runtimes}[0]{has_changed}, 'a change that never ends';
    end($started);
};

subtest 'a process that ends while it is inspected' => sub {
    my %messages;
    for (1 .. 16) {
        my $started = begin($_ % 2 ? 'churning' : 'patching');
        my $pid = fork // die;
        if ($pid == 0) {
            sleep rand 0.01;
            kill 'KILL', $started->{pid};
            POSIX::_exit(0);
        }
        my ($status, $out, $err) = inspect('--summary', $started->{process});
        waitpid $pid, 0;
        end($started);
        ok $status == 0 ? $err eq '' : ($status == 1 && $err =~ /\Acairn: inspect: [^\n]*\n\z/), 'one line or none'
            or diag $err;
        $messages{$err =~ s/\d+/N/gr}++;
    }
    my @unknown = grep { !/^$|ended|no process N|no Cairn runtime|destroyed its runtime/ } keys %messages;
    is_deeply \@unknown, [], 'messages';
};

# ---- Inline caches ----

subtest 'a cache from empty to megamorphic' => sub {
    my ($caches) = map { abs_path($_) } grep { -x } 'tests/inspected_cache';
    plan skip_all => 'tests/inspected_cache was not built: it needs LLVM' if !defined $caches;
    my $pid = open2(my $out, my $in, $caches);
    my $started = {pid => $pid, process => $pid, in => $in};
    my @expected = (['empty', 0, 0, 0], ['monomorphic', 1, 1, 49], ['polymorphic', 2, 2, 98], ['megamorphic', 0]);
    for my $expected (@expected) {
        my $line = <$out>;
        last if !defined $line;
        my $runtime = look($started)->{runtimes}[0];
        my ($site) = map { @{$_->{sites}} } @{$runtime->{modules}};
        is_deeply [@$site{qw(id state target)}], [42, 'cache', undef], 'site';
        my @found = @{$site->{cache}}{qw(state case_count misses hits)};
        is_deeply [@found[0 .. $#$expected]], $expected, $expected->[0];
        is $runtime->{cache_states}{$expected->[0]}, 1, 'sum';
        my (undef, $text) = inspect($pid);
        like $text, qr/^      site 42 at 0x\w+, 48 bytes: $expected->[0] cache, $expected->[1] of 2 cases, /m, 'text';
        print $in "\n";
        $in->flush;
    }
    end($started);
};

done_testing;
