/* SPDX-License-Identifier: MIT */
#include "tests/mode_support.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

const enum cairn_code_mode site_modes[2] = {CAIRN_CODE_MODE_DUAL, CAIRN_CODE_MODE_SINGLE};

static bool has_mode(enum cairn_code_mode mode, struct cairn_error *error)
{
    cairn_runtime *runtime = NULL;
    const struct cairn_runtime_options options = {.code_mode = mode};
    enum cairn_status status = cairn_runtime_create(&options, &runtime, error);
    cairn_runtime_destroy(runtime);
    return status != CAIRN_ERROR_UNSUPPORTED;
}

int site_first_mode(void)
{
    static int first = -1;
    struct cairn_error error;
    if (first >= 0)
        return first;
    first = getenv("CAIRN_TEST_EMULATED") != NULL && !has_mode(site_modes[0], &error);
    if (first > 0)
        printf("skipped: %s\n", error.message);
    fflush(stdout);
    return first;
}
