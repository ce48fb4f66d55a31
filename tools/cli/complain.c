/* SPDX-License-Identifier: MIT */
#include "tools/cli/command.h"

#include "base/utf8.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

bool complain(const char *format, ...)
{
    static const char prefix[] = "cairn: ";
    char line[2048];
    size_t length = sizeof prefix - 1;
    memcpy(line, prefix, length);
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(line + length, sizeof line - length - 1, format, arguments);
    va_end(arguments);
    utf8_clean(line);
    length = strlen(line);
    line[length++] = '\n';
    fwrite(line, 1, length, stderr);
    return false;
}
