# Looks with gdb at tests/gdb_host: breakpoints by name, lines, and backtraces through compiled functions, exits,
# caches and C; also with a dual mapping, into which gdb cannot write.
# SPDX-License-Identifier: MIT
use strict;
use warnings;
use Cwd qw(abs_path);
use FindBin;
use Test::More;
use lib $FindBin::Bin;
use CommandTest;

my $gdb = find_in_path('gdb');
skip_test 'gdb is not installed' if !defined $gdb;
skip_test 'gdb debugs this machine, and not the emulated one' if ($ENV{CAIRN_TEST_RUNNER} // '') ne '';
my ($host) = map { abs_path($_) } grep { -x } 'tests/gdb_host';
skip_test 'tests/gdb_host is not built' if !defined $host;
skip_test 'the address sanitizer reports leaks under a debugger as errors' if ($ENV{CFLAGS} // '') =~ /sanitize/;

# Runs gdb with commands, and returns what it prints.
sub debug {
    my ($arguments, @commands) = @_;
    my @words = map { ('-ex', $_) } 'set breakpoint pending on', 'set pagination off', 'set confirm off',
        'set debuginfod enabled off', 'set startup-with-shell off', @commands;
    my ($status, $out, $err) =
        run_with('/dev/null', $gdb, '-nx', '-batch', @words, '--args', $host, @$arguments);
    return $out . $err;
}

my $text = debug([], 'run', 'print 1');
skip_test 'gdb may not trace processes here' if $text =~ /ptrace|Operation not permitted|not being run/
    && $text !~ /SIGSEGV/;

# Frames of a backtrace, without addresses and arguments.
sub frames {
    my ($text) = @_;
    return join ' ', map { /^#\d+\s+(?:0x[0-9a-f]+ in )?(\S+)/ ? $1 : () } split /\n/, $text;
}

$text = debug(['free'], 'break inner', 'run', 'bt', 'break handle_exit', 'continue', 'bt');
like $text, qr/Breakpoint 1(?:\.\d+)?, .*inner.* at .*lines\.src:2[01]/, 'a breakpoint by name, with its line';
like $text, qr/outer .* at .*lines\.src:11/, "the caller's line";
my ($before, $after) = split /Breakpoint 2(?:\.\d+)?, /, $text;
like frames($before), qr/^inner outer main$/, 'a backtrace through compiled functions';
like frames($after), qr/^handle_exit handle \S+ inner outer main$/, 'a backtrace from the handler of an exit';

# Returns why breakpoints of the processor cannot be used, or undef. Some virtual machines accept them, and they never
# stop a program.
sub why_no_hardware_breakpoints {
    my $text = debug(['free'], 'unset environment LD_PRELOAD', 'starti', 'hbreak main', 'continue');
    return $text =~ /^Breakpoint 1(?:\.\d+)?, .*main/m ? undef
        : $text =~ /exited (?:normally|with code)/ ? 'breakpoints of the processor do not stop programs on this machine'
        :                              'this machine has no breakpoints of the processor';
}

SKIP: {
    my $reason = why_no_hardware_breakpoints();
    skip $reason, 2 if defined $reason;
    $text = debug(['dual'], 'hbreak inner', 'run', 'bt');
    like $text, qr/Breakpoint 1(?:\.\d+)?, .*inner.* at .*lines\.src:2[01]/, "a breakpoint of the processor's, with two mappings";
    like frames($text), qr/^inner outer main$/, 'and its backtrace';
}

# A gdb whose debug registers are never written is one on such a machine.
SKIP: {
    my $wrapper = spit('wrapper.c', <<'END');
#include <dlfcn.h>
#include <stdarg.h>
#include <stddef.h>
#include <sys/ptrace.h>
#include <sys/user.h>
long ptrace(enum __ptrace_request request, ...)
{
    va_list list;
    va_start(list, request);
    int process = va_arg(list, int);
    void *address = va_arg(list, void *), *data = va_arg(list, void *);
    va_end(list);
    if (request == PTRACE_POKEUSER && (size_t)address >= offsetof(struct user, u_debugreg))
        return 0;
    return ((long (*)(int, int, void *, void *))dlsym(RTLD_NEXT, "ptrace"))(request, process, address, data);
}
END
    skip 'the debug registers are those of x86-64', 2 if `uname -m` !~ /^x86_64$/;
    my ($status, undef, $complaints) = run_with('/dev/null', split(' ', $ENV{CC} // 'cc'), '-shared', '-fPIC',
        '-D_GNU_SOURCE', $wrapper, '-ldl', '-o', "$folder/wrapper.so");
    is $status, 0, 'a wrapper of ptrace is compiled' or diag $complaints;
    local $ENV{LD_PRELOAD} = "$folder/wrapper.so";
    like why_no_hardware_breakpoints() // '', qr/do not stop programs/, 'breakpoints of the processor that never stop are known';
}

$text = debug([], 'break handle_miss', 'run', 'bt', 'delete', 'continue', 'bt');
my ($miss, $fault) = split /received signal SIGSEGV/, $text;
like frames($miss), qr/^handle_miss .*width use_cache main$/, 'a backtrace from the handler of a cache';
like frames($fault // ''), qr/^ic:get\@width\+0x\w+ width use_cache main$/, "a backtrace from a cache's code";

$text = debug(['free'], 'break code_is_freed', 'run', 'info functions ^inner$', 'info symbol handle_exit');
like $text, qr/Breakpoint 1(?:\.\d+)?, /, 'the code is freed';
unlike $text, qr/\binner(\(|$)/m, 'freed code has no names';

done_testing;
