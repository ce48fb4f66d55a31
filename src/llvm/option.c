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

/* The pass PPCVSXSwapRemoval leaves vectors with their halves the other way round in registers,
 * also where a record names them. */
static void keep_swaps(void) { set_option("-disable-ppc-vsx-swap-removal"); }

/* LLVM 14 and 15 do not count a patch point as a call when they choose loops whose counter is in
 * CTR, and their own sequence of it changes CTR. */
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
