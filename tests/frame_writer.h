/*
 * tests/frame_writer.h - .eh_frame sections by hand, and rows as text.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef TESTS_FRAME_WRITER_H
#define TESTS_FRAME_WRITER_H

#include "format/call_frame.h"
#include "stackmap_support.h"

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

/* What functions have in common; addresses are absolute, with 8 bytes. */
struct sample_common {
    const char *letters; /* behind "zR" */
    uint8_t code_alignment;
    int8_t data_alignment;
    uint8_t return_register;
    const uint8_t *instructions;
    size_t instruction_size;
};

/* Both pad with DW_CFA_nop. The first returns its offset, for the other one. */
size_t frame_put_common(struct sample_section *section, const struct sample_common *common);
void frame_put_function(struct sample_section *section, size_t common, uint64_t address,
                        uint64_t size, const uint8_t *instructions, size_t instruction_size);

struct eh_frame frame_view(const struct sample_section *section);

/*
 * The row as text, without its addresses: "cfa=7+8 16=[-8]". Rules are [N] for saved at CFA + N, N
 * with its sign for CFA + N, rN for another register, same, undefined, and [expression] and
 * expression. Behind them "signed" or "signed-pc", and "arguments=N" unless they are 0.
 */
void row_text(const struct call_frame_row *row, char *text, size_t size);

#endif
