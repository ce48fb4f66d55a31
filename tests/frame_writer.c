/* SPDX-License-Identifier: MIT */
#include "frame_writer.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* ---- Instructions ---- */

void instruct(struct instructions *instructions, uint8_t byte)
{
    expect(instructions->size < sizeof instructions->bytes);
    instructions->bytes[instructions->size++] = byte;
}

void instruct_number(struct instructions *instructions, uint64_t value, size_t size)
{
    bool is_little = instructions->byte_order == CAIRN_LITTLE_ENDIAN;
    for (size_t i = 0; i < size; i++)
        instruct(instructions, (uint8_t)(value >> 8 * (is_little ? i : size - 1 - i)));
}

void instruct_uleb128(struct instructions *instructions, uint64_t value)
{
    for (; value >= 0x80; value >>= 7)
        instruct(instructions, (uint8_t)(value | 0x80));
    instruct(instructions, (uint8_t)value);
}

void instruct_sleb128(struct instructions *instructions, int64_t value)
{
    for (; value < -0x40 || value >= 0x40; value >>= 7)
        instruct(instructions, (uint8_t)(value | 0x80));
    instruct(instructions, (uint8_t)(value & 0x7F));
}

/* ---- Sections ---- */

static void put_bytes(struct sample_section *section, const void *bytes, size_t size)
{
    for (size_t i = 0; i < size; i++)
        section_put(section, ((const uint8_t *)bytes)[i], 1);
}

/* Where the length will stand, which end_entry writes. */
static size_t begin_entry(struct sample_section *section)
{
    section_put(section, 0, 4);
    return section->size;
}

static void end_entry(struct sample_section *section, size_t begin)
{
    while (section->size % 8 != 0)
        section_put(section, 0, 1);
    size_t size = section->size;
    uint64_t length = size - begin;
    section->size = begin - 4;
    section_put(section, length, 4);
    section->size = size;
}

size_t frame_put_common(struct sample_section *section, const struct sample_common *common)
{
    size_t begin = begin_entry(section);
    section_put(section, 0, 4);
    section_put(section, 1, 1);
    put_bytes(section, "zR", 2);
    put_bytes(section, common->letters, strlen(common->letters) + 1);
    section_put(section, common->code_alignment, 1);
    section_put(section, common->data_alignment & 0x7F, 1);
    section_put(section, common->return_register, 1);
    section_put(section, 1, 1); /* bytes of augmentation data */
    section_put(section, 0, 1);
    put_bytes(section, common->instructions, common->instruction_size);
    end_entry(section, begin);
    return begin - 4;
}

void frame_put_function(struct sample_section *section, size_t common, uint64_t address,
                        uint64_t size, const uint8_t *instructions, size_t instruction_size)
{
    size_t begin = begin_entry(section);
    section_put(section, begin - common, 4);
    section_put(section, address, 8);
    section_put(section, size, 8);
    section_put(section, 0, 1); /* bytes of augmentation data */
    put_bytes(section, instructions, instruction_size);
    end_entry(section, begin);
}

struct eh_frame frame_view(const struct sample_section *section)
{
    return (struct eh_frame){.section = section_view(section)};
}

/* ---- Text ---- */

static void append(char *text, size_t size, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

static void append(char *text, size_t size, const char *format, ...)
{
    size_t used = strlen(text);
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text + used, size - used, format, arguments);
    va_end(arguments);
}

static void append_rule(struct call_frame_rule rule, char *text, size_t size)
{
    static const char *const formats[] = {
        [CALL_FRAME_UNSPECIFIED] = "?",
        [CALL_FRAME_SAME] = "same",
        [CALL_FRAME_UNDEFINED] = "undefined",
        [CALL_FRAME_SAVED_EXPRESSION] = "[expression]",
        [CALL_FRAME_VALUE_EXPRESSION] = "expression",
    };
    long long value = rule.value;
    append(text, size, " %u=", rule.dwarf);
    if (rule.kind == CALL_FRAME_SAVED)
        append(text, size, "[%+lld]", value);
    else if (rule.kind == CALL_FRAME_VALUE)
        append(text, size, "%+lld", value);
    else if (rule.kind == CALL_FRAME_REGISTER)
        append(text, size, "r%lld", value);
    else
        append(text, size, "%s", formats[rule.kind]);
}

void row_text(const struct call_frame_row *row, char *text, size_t size)
{
    text[0] = 0;
    if (row->cfa == CALL_FRAME_CFA_REGISTER)
        append(text, size, "cfa=%u%+lld", row->cfa_register, (long long)row->cfa_value);
    else
        append(text, size, "cfa=%s",
               row->cfa == CALL_FRAME_CFA_EXPRESSION ? "expression" : "unknown");
    for (unsigned i = 0; i < row->rule_count; i++)
        append_rule(row->rules[i], text, size);
    if (row->signing != CALL_FRAME_NOT_SIGNED)
        append(text, size, row->signing == CALL_FRAME_SIGNED ? " signed" : " signed-pc");
    if (row->argument_size != 0)
        append(text, size, " arguments=%llu", (unsigned long long)row->argument_size);
}
