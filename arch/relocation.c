/* Calculates and writes the values of relocations. SPDX-License-Identifier: MIT */
#include "arch/relocation.h"

#include "base/error.h"

#include <cairn/section.h>
#include <stdbool.h>
#include <string.h>

const struct arch_relocation *arch_find_relocation(const struct arch_relocation_table *table,
                                                   uint32_t type)
{
    size_t low = 0;
    size_t high = table->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (table->entries[middle].type < type)
            low = middle + 1;
        else
            high = middle;
    }
    return low < table->count && table->entries[low].type == type ? &table->entries[low] : NULL;
}

static uint64_t calculate(const struct arch_relocation *relocation,
                          const struct arch_relocation_input *input)
{
    const uint64_t page_mask = ~(uint64_t)0xFFF;
    uint64_t value = input->target + (uint64_t)input->addend;
    switch ((enum arch_relocation_origin)relocation->origin) {
    case ARCH_ORIGIN_ZERO:
        break;
    case ARCH_ORIGIN_PLACE:
        value -= input->place;
        break;
    case ARCH_ORIGIN_PAGE:
        value = (value & page_mask) - (input->place & page_mask);
        break;
    case ARCH_ORIGIN_TABLE:
        value -= input->table;
        break;
    case ARCH_ORIGIN_TABLE_PAGE:
        value -= input->table & page_mask;
        break;
    }
    return relocation->is_adjusted ? value + 0x8000 : value;
}

static bool is_in_range(const struct arch_relocation *relocation, uint64_t value)
{
    unsigned bits = relocation->low + relocation->bits;
    if (bits >= 64)
        return true;
    bool is_signed = value + (UINT64_C(1) << (bits - 1)) < UINT64_C(1) << bits;
    bool is_unsigned = value < UINT64_C(1) << bits;
    switch ((enum arch_relocation_range)relocation->range) {
    case ARCH_RANGE_ANY:
        break;
    case ARCH_RANGE_SIGNED:
        return is_signed;
    case ARCH_RANGE_UNSIGNED:
        return is_unsigned;
    case ARCH_RANGE_EITHER:
        return is_signed || is_unsigned;
    }
    return true;
}

static uint64_t load(const uint8_t *bytes, size_t size, enum cairn_byte_order byte_order)
{
    switch (size) {
    case 1:
        return bytes[0];
    case 2:
        return cairn_load_u16(bytes, byte_order);
    case 4:
        return cairn_load_u32(bytes, byte_order);
    default:
        return cairn_load_u64(bytes, byte_order);
    }
}

static void store(uint8_t *bytes, size_t size, enum cairn_byte_order byte_order, uint64_t value)
{
    for (size_t i = 0; i < size; i++) {
        size_t byte = byte_order == CAIRN_LITTLE_ENDIAN ? i : size - 1 - i;
        bytes[i] = (uint8_t)(value >> 8 * byte);
    }
}

/* Returns `word` with the lowest `bits` bits of `value` at `position`. */
static uint64_t insert(uint64_t word, uint64_t value, unsigned bits, unsigned position)
{
    uint64_t mask = bits >= 64 ? UINT64_MAX : (UINT64_C(1) << bits) - 1;
    return (word & ~(mask << position)) | (value & mask) << position;
}

static void write_value(const struct arch_relocation *relocation, uint64_t value,
                        enum cairn_byte_order byte_order, uint8_t *bytes)
{
    enum {
        ADR_LOW_BITS = 2,
        ADR_LOW = 29,
        ADR_HIGH = 5,
        MOVE_WIDE_IS_Z = 30,
        PREFIX_LOW_BITS = 16
    };
    const unsigned bits = relocation->bits;
    uint64_t part = value >> relocation->low;
    uint64_t word = load(bytes, relocation->bytes, byte_order);
    switch ((enum arch_relocation_form)relocation->form) {
    case ARCH_FORM_BITS:
        word = insert(word, part, bits, relocation->position);
        break;
    case ARCH_FORM_ADR:
        word = insert(word, part, ADR_LOW_BITS, ADR_LOW);
        word = insert(word, part >> ADR_LOW_BITS, bits - ADR_LOW_BITS, ADR_HIGH);
        break;
    case ARCH_FORM_MOVE_WIDE: {
        bool is_negative = value >> 63 != 0;
        word = insert(word, is_negative ? ~part : part, bits, relocation->position);
        word = insert(word, !is_negative, 1, MOVE_WIDE_IS_Z);
        break;
    }
    case ARCH_FORM_PREFIXED: {
        /* Two words in order of address, each in the byte order. */
        enum { WORD_BYTES = 4 };
        uint64_t first = load(bytes, WORD_BYTES, byte_order);
        uint64_t second = load(bytes + WORD_BYTES, WORD_BYTES, byte_order);
        store(bytes, WORD_BYTES, byte_order,
              insert(first, part >> PREFIX_LOW_BITS, bits - PREFIX_LOW_BITS, 0));
        store(bytes + WORD_BYTES, WORD_BYTES, byte_order, insert(second, part, PREFIX_LOW_BITS, 0));
        return;
    }
    }
    store(bytes, relocation->bytes, byte_order, word);
}

enum cairn_status arch_relocate(const struct arch_relocation *relocation,
                                const struct arch_relocation_input *input,
                                enum cairn_byte_order byte_order, uint8_t *bytes,
                                struct cairn_error *error)
{
    uint64_t value = calculate(relocation, input);
    if (!is_in_range(relocation, value))
        return error_set(error, CAIRN_ERROR_RANGE, input->place,
                         "%s: the value 0x%llx does not fit into %u bits", relocation->name,
                         (unsigned long long)value, relocation->low + relocation->bits);
    if ((value & ((UINT64_C(1) << relocation->aligned) - 1)) != 0)
        return error_set(error, CAIRN_ERROR_RANGE, input->place,
                         "%s: the value 0x%llx is not a multiple of %u", relocation->name,
                         (unsigned long long)value, 1U << relocation->aligned);
    if (relocation->bytes > 0)
        write_value(relocation, value, byte_order, bytes);
    return CAIRN_OK;
}
