/*
 * Prints the call frame rows of an ELF file's .eh_frame, for tests/check_call_frame_rows.pl: a line
 * "function BEGIN END" for each function, and for each of its rows "BEGIN: " and what row_text
 * says. Rows that are refused end the function with "refused: " and the reason.
 *
 * SPDX-License-Identifier: MIT
 */
#include "frame_writer.h"

#include <cairn/object.h>
#include <stdio.h>

static void print_function(const struct eh_frame *frame,
                           const struct eh_frame_description *description, bool has_signing)
{
    static struct call_frame call_frame;
    static struct call_frame_row row;
    unsigned long long begin = description->function.address;
    unsigned long long end = begin + description->function.size;
    printf("function %llx %llx\n", begin, end);
    call_frame_begin(&call_frame, frame, description, has_signing);
    for (;;) {
        char text[4096];
        struct cairn_error error;
        bool found;
        enum cairn_status status = call_frame_next(&call_frame, &row, &found, &error);
        if (status != CAIRN_OK)
            printf("refused: %s\n", error.message);
        if (status != CAIRN_OK || !found)
            return;
        row_text(&row, text, sizeof text);
        printf("%llx: %s\n", (unsigned long long)row.begin, text);
    }
}

static int complain(const struct cairn_error *error)
{
    fprintf(stderr, "%s\n", error->message);
    return 1;
}

static int print_section(const struct cairn_object_section *section, bool has_signing)
{
    struct eh_frame frame = {section->contents, section->address};
    struct eh_frame_description description = {0};
    size_t offset = 0;
    for (;;) {
        struct cairn_error error;
        bool found;
        if (eh_frame_next(&frame, &offset, &description, &found, &error) != CAIRN_OK)
            return complain(&error);
        if (!found)
            return 0;
        print_function(&frame, &description, has_signing);
    }
}

int main(int count, char **arguments)
{
    struct cairn_error error;
    cairn_object *object;
    if (count != 2) {
        fprintf(stderr, "usage: print_call_frames FILE\n");
        return 2;
    }
    if (cairn_object_open(arguments[1], NULL, &object, &error) != CAIRN_OK)
        return complain(&error);
    bool has_signing = cairn_object_header(object).architecture == CAIRN_ARCHITECTURE_AARCH64;
    struct cairn_object_section section = {0};
    const struct cairn_object_filter filter = {.name = ".eh_frame"};
    int result = 0;
    while (result == 0 && cairn_object_next_section(object, &filter, &section, &error) == CAIRN_OK)
        result = print_section(&section, has_signing);
    cairn_object_destroy(object);
    return result;
}
