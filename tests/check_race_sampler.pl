# Compiles examples/race_sampler.c with clang 16, 19, 21 and 22 and the metadata that it needs: it finds the race and
# tells its functions and lines, is silent when the program uses atomic accesses, and tells its cost; with hardware
# watchpoints where they are permitted and fire, and without.
#
# Runs in the build folder, in the first build only, because all builds compile the same file.
#
# SPDX-License-Identifier: MIT
use strict;
use warnings;
use Cwd qw(abs_path);
use FindBin;
use Test::More;
use lib $FindBin::Bin;
use CommandTest;

skip_test 'left to the first build'
    if ($ENV{CAIRN_TEST_RUNNER} // '') ne '' || defined $ENV{CAIRN_TEST_REPEATED};
skip_test 'the example decodes code of x86-64' if `uname -m` !~ /^x86_64$/;

my $source = abs_path($ENV{srcdir} // '.');
my $libraries = abs_path('.');
my @versions = grep { find_in_path("clang-$_") } 16, 19, 21, 22;
skip_test 'no clang 16, 19, 21 or 22' if !@versions;
skip_test 'no shared libcairn-sanmd' if !-f "$libraries/libcairn-sanmd.so";

my $example = "$source/examples/race_sampler.c";
my $program = "$folder/race_sampler";

# The line of plain_transfers++, by which the race is known.
my @lines = split /\n/, slurp($example);
my ($racy_line) = grep { $lines[$_ - 1] =~ /^\s+plain_transfers\+\+;$/ } 1 .. @lines;

sub compile {
    my ($version, @more) = @_;
    my ($status, undef, $complaints) = run_with('/dev/null', "clang-$version", '-O1', '-g', @more, "-I$source/include",
        $example, "-L$libraries", "-Wl,-rpath,$libraries", '-lcairn-sanmd', '-lZydis', '-lpthread', '-ldl', '-o', $program);
    is $status, 0, 'it is compiled' or diag $complaints;
}

sub has_addr2line { return defined find_in_path('addr2line') }

# Tests what the program prints about its races, with the reason why it reads values again, if it does.
sub check_races {
    my ($out, $reason) = @_;
    my $place = has_addr2line() ? qr/count_transfer at race_sampler\.c:$racy_line\b.*/ : qr/\S+\+0x\w+/;
    my $first = qr/  (?:read|write) by thread \d+ in $place/;
    my $second = $out =~ /by hardware watchpoints$/m ? qr/  and (?:read|write) by thread \d+ in $place/
                                                     : qr/  and write by another thread, at an unknown place/;
    my @races = $out =~ /^data race on /mg;
    my @known = $out =~ /^data race on 8 bytes at 0x\w+, seen \d+ times?\n$first\n$second$/mg;
    cmp_ok @known, '>', 0, 'both accesses are reported' or diag $out;
    is @races, @known, 'no other race is';
    like $out, qr/, by (?:hardware watchpoints|reading them again: $reason)\n\z/, 'says how it watched';
}

for my $version (@versions) {
    my @ways = $version == $versions[-1] ? ('', '--no-watchpoints') : ('');
    compile($version, '-fexperimental-sanitize-metadata=covered,atomics');
    for my $way (@ways) {
        subtest "clang $version $way" => sub {
            my @options = grep { $_ ne '' } $way;
            my ($status, $out, $err) = run_with('/dev/null', $program, 'plain', @options);
            is "$status$err", '0', 'a race is found' or diag $out;
            like $out, qr/^plain accesses: \d+ addresses watched, a race after \d+\.\d\d s, -?\d+\.\d % slower while sampled$/m,
                'with its time and cost';
            check_races($out, $way eq '' ? qr/the system does not permit hardware watchpoints|hardware watchpoints do not fire on this machine/
                                         : qr/as the option says/);
            ($status, $out, $err) = run_with('/dev/null', $program, 'atomic', @options);
            is "$status$err", '0', 'silent with atomic accesses' or diag $out;
            like $out, qr/\Aatomic accesses: [1-9]\d* addresses watched, no race, [^\n]*\n\d+ samples, [^\n]*\n\z/, 'though it watched';
        };
    }
}

# Systems that do not permit watchpoints, or on which they never fire, as in some virtual machines: a wrapper of
# syscall refuses perf_event_open, or returns a file in place of the event.
my $wrapper = spit('wrapper.c', <<'END');
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/syscall.h>
long syscall(long number, long a, long b, long c, long d, long e, long f)
{
    if (number != SYS_perf_event_open)
        return ((long (*)(long, ...))dlsym(RTLD_NEXT, "syscall"))(number, a, b, c, d, e, f);
#ifdef REFUSED
    errno = EACCES;
    return -1;
#else
    return open("/dev/null", O_RDONLY);
#endif
}
END

for (['never fire', 'hardware watchpoints do not fire on this machine'],
    ['are refused', 'the system does not permit hardware watchpoints', '-DREFUSED']) {
    my ($what, $reason, @options) = @$_;
    subtest "watchpoints that $what" => sub {
        my ($status, undef, $complaints) = run_with('/dev/null', "clang-$versions[-1]", '-shared', '-fPIC', '-D_GNU_SOURCE',
            @options, $wrapper, '-ldl', '-o', "$folder/wrapper.so");
        is $status, 0, 'the wrapper is compiled' or diag $complaints;
        local $ENV{LD_PRELOAD} = "$folder/wrapper.so";
        ($status, my ($out, $err)) = run_with('/dev/null', $program, 'plain');
        is "$status$err", '0', 'a race is found' or diag $out;
        unlike $out, qr/by hardware watchpoints/, 'without watchpoints';
        check_races($out, quotemeta $reason);
    };
}

# The handler of an access continues only after its watch has ended, and others have begun: before, it then reported
# the access for another address.
subtest 'a handler that is late' => sub {
    my $late = slurp($example) =~ s/(note_access\(unsigned.*?\n\{\n)/$1    nanosleep(&(struct timespec){.tv_nsec = 3000000}, NULL);\n/sr;
    $example = spit('late.c', $late);
    compile($versions[-1], '-fexperimental-sanitize-metadata=covered,atomics');
    my (undef, $out) = run_with('/dev/null', $program, 'plain');
    unlike $out, qr/ in (?!count_transfer)\w+ at/, 'no other race is reported';
};

subtest 'without metadata' => sub {
    compile($versions[-1]);
    my ($status, $out) = run_with('/dev/null', $program);
    is $status, 77, 'exit status';
    like $out, qr/\Arace_sampler: this program has no metadata: [^\n]*\n\z/, 'says what is missing';
};

done_testing;
