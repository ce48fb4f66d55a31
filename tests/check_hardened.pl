# Runs tests of MCJIT, ORC, exits, inline caches and names for perf in processes where memory that was writable may
# not become executable: doc/hardening.md. tests/check_code_hardened.c gives a process the setting.
#
# Runs in the build folder.
#
# SPDX-License-Identifier: MIT
use strict;
use warnings;
use FindBin;
use Test::More;
use lib $FindBin::Bin;
use CommandTest;

my $hardened = 'tests/check_code_hardened';
my @programs = qw(check_llvm_exit_levels check_llvm_ic_states check_llvm_mcjit check_llvm_orc check_llvm_perf);
skip_test 'an emulator does not have these settings' if ($ENV{CAIRN_TEST_RUNNER} // '') ne '';
skip_test "$hardened is not built" if !-x $hardened;

# ORC's tests run with both mappings, and there is no single mapping here.
my %cases = (check_llvm_orc => 'dual mapping');

for my $setting ('mdwe', 'systemd', 'no-memfd mdwe', 'no-memfd systemd') {
SKIP: {
        my @words = split ' ', $setting;
        my ($status, $out) = run_with('/dev/null', $hardened, @words, '--', '/bin/true');
        skip $out, scalar @programs if $status == 77;
        for my $program (@programs) {
            local $ENV{CK_RUN_CASE} = $cases{$program};
            delete $ENV{CK_RUN_CASE} if !defined $cases{$program};
            my ($result, $text) = run_with('/dev/null', $hardened, @words, '--', "tests/$program");
            ok $result == 0 || $result == 77, "$program, $setting" or diag $text;
        }
    }
}
done_testing;
