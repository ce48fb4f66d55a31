# Looks with lldb at a program that is linked as pkg-config says. lldb reads compiled code only from the first library
# that has __jit_debug_register_code, and LLVM has one, too: libcairn must precede it, also in the CMake package.
# SPDX-License-Identifier: MIT
use strict;
use warnings;
use Cwd qw(abs_path getcwd);
use FindBin;
use Test::More;
use lib $FindBin::Bin;
use CommandTest;

my $build = getcwd;
skip_test 'built without LLVM' if !-f "$build/cairn-llvm.pc";
skip_test 'these are options for this machine' if ($ENV{CAIRN_TEST_RUNNER} // '') ne '';

sub precedes {
    my ($list, $name) = @_;
    my ($cairn, $llvm) = map { index " $list ", $_ } '-lcairn ', '-lLLVM';
    cmp_ok $cairn, '>=', 0, "$name: libcairn is there";
    cmp_ok $cairn, '<', $llvm, "$name: it precedes LLVM" or diag $list;
}

# ---- What is printed ----

my $pkg_config = find_in_path($ENV{PKG_CONFIG} // 'pkg-config');
$ENV{PKG_CONFIG_PATH} = join ':', $build, grep { defined } $ENV{PKG_CONFIG_PATH};
SKIP: {
    skip 'pkg-config is not installed', 1 if !defined $pkg_config;
    my (undef, $libraries) = run_with('/dev/null', $pkg_config, '--libs', 'cairn-llvm');
    skip 'LLVM is not one library', 1 if $libraries !~ /-lLLVM/;
    for my $words (['cairn-llvm'], ['cairn', 'cairn-llvm'], ['--static', 'cairn-llvm']) {
        my ($status, $out, $err) = run_with('/dev/null', $pkg_config, '--libs', @$words);
        is "$status$err", '0', "pkg-config --libs @$words";
        precedes($out =~ s/\s+/ /gr, "@$words");
    }
}

my ($linked) = slurp("$build/cmake/llvm.cmake") =~ /INTERFACE_LINK_LIBRARIES "(Cairn::cairn;[^"]*llvm[^"]*)"/;
like $linked // '', qr/^Cairn::cairn;/, 'CMake links libcairn before LLVM';

# ---- In the debugger ----

my ($lldb) = grep { defined } map { find_in_path($_) } 'lldb', map { "lldb-$_" } reverse 14 .. 30;
SKIP: {
    my ($shared) = glob "$build/libcairn-llvm-*.so";
    skip 'lldb is not installed', 1 if !defined $lldb;
    skip 'there is no shared library or no pkg-config', 1 if !defined $shared || !defined $pkg_config;
    my $source = spit('program.c', <<'C');
#include <cairn/cairn.h>
#include <cairn/llvm.h>
#include <llvm-c/IRReader.h>
#include <stdint.h>
static const char text[] = "define i64 @seven() uwtable {\n  ret i64 7\n}\n";
int main(void)
{
    cairn_runtime *runtime;
    cairn_debugger *debugger;
    cairn_engine *engine;
    LLVMModuleRef module;
    char *message;
    LLVMMemoryBufferRef buffer = LLVMCreateMemoryBufferWithMemoryRange(text, sizeof text - 1, "seven", 1);
    if (cairn_runtime_create(NULL, &runtime, NULL) != CAIRN_OK ||
        cairn_debugger_attach(runtime, &debugger, NULL) != CAIRN_OK ||
        LLVMParseIRInContext(LLVMContextCreate(), buffer, &module, &message) != 0 ||
        cairn_engine_create(runtime, module, NULL, &engine, NULL) != CAIRN_OK ||
        cairn_engine_compile(engine, NULL) != CAIRN_OK)
        return 1;
    long (*seven)(void) = (long (*)(void))(uintptr_t)cairn_engine_function(engine, "seven", NULL);
    return seven() == 7 ? *(volatile int *)8 : 1;
}
C
    my ($cflags, $libs) = map {
        [split ' ', (run_with('/dev/null', $pkg_config, "--define-variable=libdir=$build",
            '--define-variable=includedir=' . abs_path(($ENV{srcdir} // '.') . '/include'), $_, 'cairn-llvm'))[1]]
    } '--cflags', '--libs';
    my @paths = map { /^-L(.*)/ ? "-Wl,-rpath,$1" : () } @$libs;
    my ($status, undef, $err) = run_with('/dev/null', split(' ', $ENV{CC} // 'cc'), '-g', @$cflags, $source, @$libs, @paths,
        '-o', "$folder/program");
    skip "the program cannot be linked here: $err", 1 if $status ne '0';
    my ($ended, $out, $why) = run_with('/dev/null', find_in_path('timeout'), 120, $lldb, '--no-lldbinit', '--batch',
        '-o', 'settings set plugin.jit-loader.gdb.enable on', '-o', 'run', '-k', 'image lookup -n seven',
        "$folder/program");
    skip "lldb cannot run programs here: $why", 1 if $out !~ /stop reason = signal SIGSEGV/;
    like $out, qr/^1 match(?:es)? found in JIT\(/m, 'lldb finds the compiled function' or diag $out;
}

done_testing;
