/* SPDX-License-Identifier: MIT */
#include "tools/site/text.h"

#include <string.h>

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

void write_code(const struct code_writer *writer, const char *title, enum code_form form,
                const uint8_t *bytes, size_t size, uint64_t address)
{
    struct output *output = writer->output;
    int digits = 1;
    output_spaces(output, writer->indentation);
    output_format(output, "%s:\n", title);
    for (uint64_t left = address + size; (left >>= 4) != 0;)
        digits++;
    for (size_t offset = 0; offset < size;) {
        struct instruction instruction;
        bool is_whole = code_next(writer->disassembler, writer->columns, bytes + offset,
                                  size - offset, address + offset, &instruction);
        output_spaces(output, writer->indentation + 2);
        output_format(output, "0x%-*jx" FAINT, digits, address + offset);
        for (size_t i = 0; i < instruction.length; i++)
            output_escaped(output, " ", bytes[offset + i]);
        output_format(output, PLAIN);
        if (instruction.length < writer->columns)
            output_spaces(output, 3 * (writer->columns - instruction.length));
        output_text(output, "  ");
        if (is_whole) {
            const char *name =
                writer->find_name(writer->user, form, address + offset, &instruction);
            output_text(output, instruction.text);
            if (name != NULL)
                output_format(output, " <" NAME "%s" PLAIN ">", name);
        } else if (writer->disassembler != NULL) {
            output_text(output, offset + instruction.length < size ? "(no instruction)"
                                                                   : "(not a whole instruction)");
        }
        output_character(output, '\n');
        offset += instruction.length;
    }
}

/* ---- Sites ---- */

void write_refusal(const struct code_writer *writer, const char *prefix, const char *reason)
{
    output_spaces(writer->output, writer->indentation);
    output_format(writer->output, WARNING "%s%s" PLAIN "\n", prefix, reason);
}

void write_site_summary(const struct code_writer *writer, const char *prefix,
                        const struct cairn_site_description *site, const char *target_name)
{
    struct output *output = writer->output;
    output_spaces(output, writer->indentation);
    output_format(output, "%s%u byte%s at 0x%jx, state: %s", prefix, site->byte_count,
                  plural(site->byte_count), site->address, cairn_site_state_name(site->state));
    if (site->target != 0)
        output_format(output, " to 0x%jx", site->target);
    if (target_name != NULL)
        output_format(output, "%s" NAME "%s" PLAIN, site->target != 0 ? " = " : " to ",
                      target_name);
    output_text(output, site->uses_veneer ? " by a veneer\n" : "\n");
    if (!site->live) {
        write_refusal(writer, "cannot be patched while threads run: ", site->reason);
        return;
    }
    output_spaces(output, writer->indentation);
    output_format(output, "can be patched while threads run: the instruction at 0x%jx",
                  site->instruction_address);
    if (site->return_address != 0)
        output_format(output, "; calls return to 0x%jx", site->return_address);
    output_character(output, '\n');
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
    output_spaces(writer->output, writer->indentation);
    output_format(writer->output, "%s\n", line);
}
