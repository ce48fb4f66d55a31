/* SPDX-License-Identifier: MIT */
#include "tools/code.h"

#include <stdio.h>
#include <string.h>

void write_indentation(struct output *output, unsigned columns)
{
    static const char spaces[] = "                                        ";
    for (size_t left = columns, part; left > 0; left -= part) {
        part = left < sizeof spaces - 1 ? left : sizeof spaces - 1;
        output_bytes(output, spaces, part);
    }
}

/* ---- Instructions ---- */

/* The longest instruction of x86-64 has 15 bytes, but those in patch points are shorter. */
unsigned code_columns(enum cairn_architecture architecture)
{
    switch (architecture) {
    case CAIRN_ARCHITECTURE_X86_64:
        return 13;
    case CAIRN_ARCHITECTURE_SYSTEMZ:
        return 6;
    case CAIRN_ARCHITECTURE_AARCH64:
    case CAIRN_ARCHITECTURE_PPC64_ELFV2:
    case CAIRN_ARCHITECTURE_PPC64_ELFV1:
    case CAIRN_ARCHITECTURE_RISCV64:
        return 4;
    case CAIRN_ARCHITECTURE_UNKNOWN:
        break;
    }
    return 8;
}

bool code_next(struct disassembler *disassembler, unsigned columns, const uint8_t *bytes,
               size_t size, uint64_t address, struct instruction *instruction)
{
    if (disassembler != NULL && disassembler_next(disassembler, bytes, size, address, instruction))
        return true;
    *instruction = (struct instruction){.length = size < columns ? size : columns};
    return false;
}

static int count_digits(uint64_t value)
{
    int digits = 1;
    while ((value >>= 4) != 0)
        digits++;
    return digits;
}

static const char digits_of[] = "0123456789abcdef";

static void write_instruction_bytes(const struct code_writer *writer, const uint8_t *bytes,
                                    size_t length, uint64_t address, int digits)
{
    struct output *output = writer->output;
    write_indentation(output, writer->indentation + 2);
    output_format(output, "0x%-*llx", digits, (unsigned long long)address);
    output_style(output, STYLE_FAINT);
    for (size_t i = 0; i < length; i++) {
        const char text[] = {' ', digits_of[bytes[i] >> 4], digits_of[bytes[i] & 15], '\0'};
        output_text(output, text);
    }
    output_style(output, STYLE_PLAIN);
    if (length < writer->columns)
        write_indentation(output, 3 * (writer->columns - (unsigned)length));
}

static void write_reference(const struct code_writer *writer, enum code_form form, uint64_t address,
                            const struct instruction *instruction)
{
    struct output *output = writer->output;
    const char *name = writer->find_name == NULL
                           ? NULL
                           : writer->find_name(writer->user, form, address, instruction);
    if (name == NULL)
        return;
    output_text(output, " <");
    output_style(output, STYLE_NAME);
    output_name(output, name);
    output_style(output, STYLE_PLAIN);
    output_character(output, '>');
}

void write_code(const struct code_writer *writer, const char *title, enum code_form form,
                const uint8_t *bytes, size_t size, uint64_t address)
{
    struct output *output = writer->output;
    write_indentation(output, writer->indentation);
    output_format(output, "%s:\n", title);
    int digits = count_digits(address + size);
    for (size_t offset = 0; offset < size;) {
        struct instruction instruction;
        bool is_whole = code_next(writer->disassembler, writer->columns, bytes + offset,
                                  size - offset, address + offset, &instruction);
        write_instruction_bytes(writer, bytes + offset, instruction.length, address + offset,
                                digits);
        output_text(output, "  ");
        if (is_whole) {
            output_text(output, instruction.text);
            write_reference(writer, form, address + offset, &instruction);
        } else if (writer->disassembler != NULL) {
            output_text(output, offset + instruction.length < size ? "(no instruction)"
                                                                   : "(not a whole instruction)");
        }
        output_character(output, '\n');
        offset += instruction.length;
    }
}

/* ---- Sites ---- */

static void write_target(struct output *output, uint64_t target, const char *name)
{
    if (target == 0 && name == NULL)
        return;
    output_text(output, " to ");
    if (target != 0)
        output_hexadecimal(output, target);
    if (target != 0 && name != NULL)
        output_text(output, " = ");
    if (name == NULL)
        return;
    output_style(output, STYLE_NAME);
    output_name(output, name);
    output_style(output, STYLE_PLAIN);
}

void write_refusal(const struct code_writer *writer, const char *prefix, const char *reason)
{
    struct output *output = writer->output;
    write_indentation(output, writer->indentation);
    output_style(output, STYLE_WARNING);
    output_text(output, prefix);
    output_name(output, reason);
    output_style(output, STYLE_PLAIN);
    output_character(output, '\n');
}

static void write_liveness(const struct code_writer *writer,
                           const struct cairn_site_description *site)
{
    struct output *output = writer->output;
    if (!site->live) {
        write_refusal(writer, "cannot be patched while threads run: ", site->reason);
        return;
    }
    write_indentation(output, writer->indentation);
    output_text(output, "can be patched while threads run: the instruction at ");
    output_hexadecimal(output, site->instruction_address);
    if (site->return_address != 0) {
        output_text(output, "; calls return to ");
        output_hexadecimal(output, site->return_address);
    }
    output_character(output, '\n');
}

void write_site_summary(const struct code_writer *writer, const char *prefix,
                        const struct cairn_site_description *site, const char *target_name)
{
    struct output *output = writer->output;
    write_indentation(output, writer->indentation);
    output_text(output, prefix);
    output_format(output, "%u byte%s at ", site->byte_count, site->byte_count == 1 ? "" : "s");
    output_hexadecimal(output, site->address);
    output_text(output, ", state: ");
    output_text(output, cairn_site_state_name(site->state));
    write_target(output, site->target, target_name);
    if (site->uses_veneer)
        output_text(output, " by a veneer");
    output_character(output, '\n');
    write_liveness(writer, site);
}

void write_site_code(const struct code_writer *writer, const struct cairn_site_description *site,
                     const char *title, const char *line)
{
    if (site->bytes == NULL || site->byte_count == 0)
        return;
    write_code(writer, "as LLVM emitted it", CODE_ORIGINAL, site->original_bytes, site->byte_count,
               site->address);
    if (memcmp(site->original_bytes, site->bytes, site->byte_count) != 0) {
        write_code(writer, title, CODE_ARMED, site->bytes, site->byte_count, site->address);
        return;
    }
    write_indentation(writer->output, writer->indentation);
    output_format(writer->output, "%s\n", line);
}
