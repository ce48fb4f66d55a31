/*
 * Fuzzes values of each type. Bytes that are stored are read back unchanged, elements of vectors
 * are the bytes at their offsets, integers are extended from their lowest bits, and the remaining
 * bytes of a value are zero.
 *
 * Input: kind, bits (2 bytes), number of elements, then bytes.
 *
 * SPDX-License-Identifier: MIT
 */
#include "fuzz/fuzz.h"
#include "value/representation.h"

#include <cairn/value.h>

static void check_rest(const struct cairn_value *value)
{
    require(value->size == cairn_type_size(value->type));
    for (size_t i = value->size; i < CAIRN_VALUE_BYTES_MAX; i++)
        require(value->bytes[i] == 0);
}

static void check_elements(const struct cairn_value *value)
{
    struct cairn_value element;
    struct cairn_type type = cairn_type_vector(value->type, 0);
    uint32_t count = value->type.element_count;
    size_t size = count == 0 ? 0 : value->size / count;
    for (uint32_t i = 0; i < count; i++) {
        const unsigned char *bytes = value->bytes + i * size;
        require(value_of_bytes(type, bytes, size, &element, NULL) == CAIRN_OK);
        check_rest(&element);
        require(memcmp(element.bytes, bytes, size) == 0);
    }
}

static void check_type(struct fuzz_input *input)
{
    struct cairn_type type = {.kind =
                                  (enum cairn_type_kind)(fuzz_u8(input) % (CAIRN_TYPE_OTHER + 1)),
                              .bits = (uint32_t)fuzz_number(input, 2),
                              .element_count = fuzz_u8(input)};
    uint8_t bytes[CAIRN_VALUE_BYTES_MAX];
    struct cairn_value value;
    size_t size = cairn_type_size(type);
    char text[8];
    require(size <= sizeof bytes);
    require(cairn_type_format(type, text, sizeof text) == cairn_type_format(type, NULL, 0));
    for (size_t i = 0; i < size; i++)
        bytes[i] = fuzz_u8(input);
    require(value_of_bytes(type, bytes, size + 1, &value, NULL) ==
            (size == 0 ? CAIRN_ERROR_UNSUPPORTED : CAIRN_ERROR_RANGE));
    if (size == 0)
        return;
    require(value_of_bytes(type, bytes, size, &value, NULL) == CAIRN_OK);
    check_rest(&value);
    check_elements(&value);
    (void)cairn_value_signed(&value);
    (void)cairn_value_double(&value);
    (void)cairn_value_pointer(&value);
}

static void check_integer(struct fuzz_input *input)
{
    uint32_t bits = 1 + fuzz_u8(input) % 64;
    uint64_t number = fuzz_number(input, 8);
    uint64_t low = number & UINT64_MAX >> (64 - bits);
    bool is_negative = (low >> (bits - 1) & 1) != 0;
    uint64_t extended = is_negative && bits < 64 ? low | UINT64_MAX << bits : low;
    struct cairn_value value = cairn_value_of_integer(bits, (int64_t)number);
    check_rest(&value);
    require(value_unsigned(&value) == low);
    require((uint64_t)cairn_value_signed(&value) == extended);
    require(cairn_value_pointer(&value) == NULL);
}

static void check_double(struct fuzz_input *input)
{
    uint64_t number = fuzz_number(input, 8);
    uint64_t back;
    double from;
    memcpy(&from, &number, sizeof from);
    struct cairn_value value = cairn_value_of_double(from);
    double to = cairn_value_double(&value);
    memcpy(&back, &to, sizeof back);
    check_rest(&value);
    require(back == number);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct fuzz_input input = {data, size};
    while (input.left > 0) {
        check_type(&input);
        check_integer(&input);
        check_double(&input);
    }
    return 0;
}
