/* SPDX-License-Identifier: MIT */
#include "tools/command.h"

#include "base/utf8.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

void complain(const char *format, ...)
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
}

enum exit_status finish_output(struct output *output)
{
    if (output_flush(output))
        return EXIT_DONE;
    complain("standard output cannot be written: %s", strerror(output->system_error));
    return EXIT_BAD_INPUT;
}

enum exit_status print_text(const char *text)
{
    static struct output output;
    output_open(&output, STDOUT_FILENO);
    output_text(&output, text);
    return finish_output(&output);
}

void write_register(struct output *output, enum cairn_architecture architecture, uint16_t dwarf)
{
    const char *name = cairn_register_name(architecture, dwarf);
    if (name != NULL) {
        output_text(output, name);
        return;
    }
    output_text(output, "R#");
    output_unsigned(output, dwarf);
}

static void write_bytes(struct output *output, uint64_t count)
{
    output_character(output, ' ');
    output_unsigned(output, count);
    output_text(output, count == 1 ? " byte" : " bytes");
}

static void write_sum(struct output *output, enum cairn_architecture architecture,
                      struct cairn_location location)
{
    int64_t offset = location.offset;
    write_register(output, architecture, location.dwarf);
    if (offset == 0)
        return;
    output_text(output, offset < 0 ? " - " : " + ");
    output_signed(output, offset < 0 ? -offset : offset);
}

void write_location(struct output *output, enum cairn_architecture architecture,
                    struct cairn_location location)
{
    switch (location.kind) {
    case CAIRN_LOCATION_REGISTER:
        write_sum(output, architecture, location);
        write_bytes(output, location.size);
        break;
    case CAIRN_LOCATION_DIRECT:
        output_text(output, "address ");
        write_sum(output, architecture, location);
        break;
    case CAIRN_LOCATION_INDIRECT:
        output_character(output, '[');
        write_sum(output, architecture, location);
        output_character(output, ']');
        write_bytes(output, location.size);
        break;
    case CAIRN_LOCATION_CONSTANT:
        output_text(output, "constant ");
        output_signed(output, location.offset);
        break;
    case CAIRN_LOCATION_CONSTANT_INDEX:
        output_text(output, "large constant ");
        output_unsigned(output, location.constant);
        output_text(output, " (");
        output_hexadecimal(output, location.constant);
        output_character(output, ')');
        break;
    }
}
