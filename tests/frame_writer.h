/*
 * tests/frame_writer.h - writes .eh_frame sections, and formats rows as text.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef TESTS_FRAME_WRITER_H
#define TESTS_FRAME_WRITER_H

#include "stackmap_support.h"
#include "unwind/call_frame.h"

/* Call frame instructions. */
struct instructions {
    uint8_t bytes[4096];
    size_t size;
    enum cairn_byte_order byte_order;
};

void instruct(struct instructions *instructions, uint8_t byte);
void instruct_number(struct instructions *instructions, uint64_t value, size_t size);
void instruct_uleb128(struct instructions *instructions, uint64_t value);
void instruct_sleb128(struct instructions *instructions, int64_t value);

/* The contents of a CIE. Addresses are absolute and have 8 bytes. */
struct sample_common {
    const char *letters; /* letters of the augmentation string after "zR" */
    uint8_t code_alignment;
    int8_t data_alignment;
    uint8_t return_register;
    const uint8_t *instructions;
    size_t instruction_size;
};

/* Write an entry, padded with DW_CFA_nop. The first returns the entry's offset, which the second
 * takes. */
size_t frame_put_common(struct sample_section *section, const struct sample_common *common);
void frame_put_function(struct sample_section *section, size_t common, uint64_t address,
                        uint64_t size, const uint8_t *instructions, size_t instruction_size);

struct eh_frame frame_view(const struct sample_section *section);

/*
 * Writes the row as text, without its addresses: "cfa=7+8 16=[-8]". A rule is [N] for a register
 * saved at CFA + N, N with its sign for the value CFA + N, rN for another register, same,
 * undefined, [expression] or expression. "signed" or "signed-pc" follows the rules, and
 * "arguments=N" if N is not 0.
 */
void row_text(const struct call_frame_row *row, char *text, size_t size);

#endif
