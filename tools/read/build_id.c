/* SPDX-License-Identifier: MIT */
#include "tools/read/build_id.h"

#include <elf.h>
#include <string.h>

/* ---- Text ---- */

static int digit_value(char digit)
{
    if (digit >= '0' && digit <= '9')
        return digit - '0';
    if (digit >= 'a' && digit <= 'f')
        return digit - 'a' + 10;
    return digit >= 'A' && digit <= 'F' ? digit - 'A' + 10 : -1;
}

bool build_id_parse(const char *digits, size_t length, struct build_id *id)
{
    id->size = 0;
    if (length % 2 != 0 || length == 0 || length / 2 > BUILD_ID_BYTES_MAX)
        return false;
    for (size_t i = 0; i < length / 2; i++) {
        int high = digit_value(digits[2 * i]);
        int low = digit_value(digits[2 * i + 1]);
        if (high < 0 || low < 0)
            return false;
        id->bytes[i] = (uint8_t)(high * 16 + low);
    }
    id->size = length / 2;
    return true;
}

static bool is_all_zero(const struct build_id *id, size_t from)
{
    for (size_t i = from; i < id->size; i++)
        if (id->bytes[i] != 0)
            return false;
    return true;
}

bool build_ids_agree(const struct build_id *left, const struct build_id *right)
{
    size_t size = left->size < right->size ? left->size : right->size;
    return size > 0 && memcmp(left->bytes, right->bytes, size) == 0 && is_all_zero(left, size) &&
           is_all_zero(right, size);
}

struct build_id_text build_id_format(const struct build_id *id)
{
    static const char digits[] = "0123456789abcdef";
    struct build_id_text text;
    for (size_t i = 0; i < id->size; i++) {
        text.digits[2 * i] = digits[id->bytes[i] >> 4];
        text.digits[2 * i + 1] = digits[id->bytes[i] & 15];
    }
    text.digits[2 * id->size] = '\0';
    return text;
}

/* ---- Notes ---- */

static size_t round_up(size_t size) { return (size + 3) & ~(size_t)3; }

/* Searches notes, each of which has a name and a description, padded to 4 bytes. Notes that are
 * padded to 8 bytes are in sections without build IDs. */
static void find_in_notes(const struct cairn_section *notes, struct build_id *id)
{
    enum { HEADER_BYTES = 12 };
    size_t at = 0;
    while (id->size == 0 && notes->size - at >= HEADER_BYTES) {
        const uint8_t *note = (const uint8_t *)notes->bytes + at;
        size_t left = notes->size - at - HEADER_BYTES;
        size_t name_size = cairn_load_u32(note, notes->byte_order);
        size_t size = cairn_load_u32(note + 4, notes->byte_order);
        size_t name_space = round_up(name_size);
        if (name_space > left || size > left - name_space)
            return;
        if (cairn_load_u32(note + 8, notes->byte_order) == NT_GNU_BUILD_ID && name_size == 4 &&
            memcmp(note + HEADER_BYTES, "GNU", 4) == 0 && size <= BUILD_ID_BYTES_MAX) {
            memcpy(id->bytes, note + HEADER_BYTES + name_space, size);
            id->size = size;
        }
        size_t total = name_space + round_up(size);
        if (total > left)
            return;
        at += HEADER_BYTES + total;
    }
}

void build_id_of_object(cairn_object *object, struct build_id *id)
{
    const struct cairn_object_filter filter = {.type = SHT_NOTE};
    struct cairn_object_section section = {0};
    struct cairn_error error;
    id->size = 0;
    while (id->size == 0 &&
           cairn_object_next_section(object, &filter, &section, &error) == CAIRN_OK)
        find_in_notes(&section.contents, id);
}
