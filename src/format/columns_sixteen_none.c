/* SPDX-License-Identifier: MIT */
#include "format/columns.h"

columns_copier *columns_sixteen_copier(void) { return NULL; }
