/* SPDX-License-Identifier: MIT */
#include "llvm/option.h"

#include <llvm-c/Support.h>
#include <pthread.h>
#include <stddef.h>

static void set_option(const char *option)
{
    const char *const arguments[] = {"cairn", option};
    LLVMParseCommandLineOptions(2, arguments, NULL);
}

static void turn_liveness_off(void) { set_option("-enable-patchpoint-liveness=false"); }

/* Turns off the pass PPCVSXSwapRemoval. It leaves vectors in registers with their halves swapped,
 * even in registers that a record names. */
static void keep_swaps(void) { set_option("-disable-ppc-vsx-swap-removal"); }

/* Turns off loops whose counter is in CTR. LLVM 14 and 15 do not treat a patch point as a call when
 * they choose such loops, but the call sequence of a patch point changes CTR. */
static void keep_counters_out_of_ctr(void) { set_option("-disable-ppc-ctrloops"); }

void option_turn_liveness_off(enum cairn_architecture architecture)
{
    static pthread_once_t liveness = PTHREAD_ONCE_INIT;
    static pthread_once_t swaps = PTHREAD_ONCE_INIT;
    static pthread_once_t counters = PTHREAD_ONCE_INIT;
    pthread_once(&liveness, turn_liveness_off);
    if (architecture != CAIRN_ARCHITECTURE_PPC64_ELFV2)
        return;
    pthread_once(&swaps, keep_swaps);
    pthread_once(&counters, keep_counters_out_of_ctr);
}

static void turn_implicit_null_checks_on(void) { set_option("-enable-implicit-null-checks"); }

void option_turn_implicit_null_checks_on(void)
{
    static pthread_once_t checks = PTHREAD_ONCE_INIT;
    pthread_once(&checks, turn_implicit_null_checks_on);
}
