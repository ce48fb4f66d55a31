/* SPDX-License-Identifier: MIT */
#include <cairn/cairn.h>

const char *cairn_version(void) { return CAIRN_VERSION_STRING; }
