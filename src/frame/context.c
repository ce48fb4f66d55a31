/*
 * Contexts: the functions that are the same on every host. The places of registers are defined in
 * arch/.
 *
 * SPDX-License-Identifier: MIT
 */
#include "frame/context.h"

#include "base/error.h"

enum { DOUBLEWORD_BYTES = 8 };

/* ---- Places of registers ---- */

/* Finds the place of a register, and changes `*number` to its DWARF number if it has one on all
 * architectures. */
static bool find_place(const struct cairn_context *context, uint16_t *number,
                       struct arch_register *place)
{
    if (*number == CAIRN_REGISTER_PC || *number == CAIRN_REGISTER_FLAGS) {
        *place = (struct arch_register){
            .offset = *number == CAIRN_REGISTER_PC ? CONTEXT_PC : CONTEXT_FLAGS,
            .bytes = sizeof(uint64_t),
            .form = ARCH_REGISTER_INTEGER,
        };
        return true;
    }
    if (*number == CAIRN_REGISTER_SP)
        *number = arch_host_layout.stack_pointer;
    return arch_host_register(context, *number, place);
}

/* Whether the context holds the register that find_place has found. */
static bool holds(const struct cairn_context *context, uint16_t number)
{
    return number >= CAIRN_REGISTER_PC || arch_context_has(context, number);
}

size_t cairn_context_register_size(const struct cairn_context *context, uint16_t number)
{
    struct arch_register place;
    bool is_held = find_place(context, &number, &place) && holds(context, number);
    return is_held ? place.bytes : 0;
}

/* ---- Parts of registers ---- */

static bool is_big_endian(void) { return CAIRN_BYTE_ORDER_NATIVE == CAIRN_BIG_ENDIAN; }

/* Returns the offset of the part of `size` bytes from the register's first byte. */
static size_t part_offset(const struct arch_register *place, size_t size)
{
    /* The low bytes of a big-endian integer are its last ones. */
    bool is_last = is_big_endian();
    if (place->form == ARCH_REGISTER_INTEGER)
        return is_last ? place->bytes - size : 0;
    if (place->form == ARCH_REGISTER_VECTOR || size > DOUBLEWORD_BYTES)
        return 0;
    if (place->form == ARCH_REGISTER_QUADWORD && !is_last)
        return DOUBLEWORD_BYTES;
    return is_last ? DOUBLEWORD_BYTES - size : 0;
}

/* Converts two doublewords from their order in a context to the order in which a store of the
 * vector writes them, or the reverse. */
static void copy_doublewords(uint8_t *to, const uint8_t *from)
{
    size_t first = is_big_endian() ? 0 : DOUBLEWORD_BYTES;
    uint8_t copy[2 * DOUBLEWORD_BYTES];
    memcpy(copy, from + first, DOUBLEWORD_BYTES);
    memcpy(copy + DOUBLEWORD_BYTES, from + (DOUBLEWORD_BYTES - first), DOUBLEWORD_BYTES);
    memcpy(to, copy, sizeof copy);
}

static bool is_whole_of_doublewords(const struct arch_register *place, size_t size)
{
    return place->form == ARCH_REGISTER_DOUBLEWORDS && size == 2 * (size_t)DOUBLEWORD_BYTES;
}

/* Checks that the register has a part of this size. RANGE. */
static enum cairn_status check_size(const struct arch_register *place, uint16_t dwarf, size_t size,
                                    struct cairn_error *error)
{
    bool has_doublewords =
        place->form == ARCH_REGISTER_DOUBLEWORDS || place->form == ARCH_REGISTER_QUADWORD;
    bool fits = has_doublewords && size > DOUBLEWORD_BYTES ? size == place->bytes
                                                           : size > 0 && size <= place->bytes;
    if (fits)
        return CAIRN_OK;
    return error_set(error, CAIRN_ERROR_RANGE, dwarf,
                     "register %u has %zu bytes in this context, and no part of %zu", dwarf,
                     (size_t)place->bytes, size);
}

/* ---- Reading and writing ---- */

enum cairn_status cairn_context_read(const struct cairn_context *context, uint16_t number,
                                     void *value, size_t size, struct cairn_error *error)
{
    struct arch_register place;
    if (!find_place(context, &number, &place) || !holds(context, number))
        return error_set(error, CAIRN_ERROR_NOT_FOUND, number,
                         "the context does not hold register %u", number);
    enum cairn_status status = check_size(&place, number, size, error);
    if (status != CAIRN_OK)
        return status;
    const uint8_t *from = context->bytes + place.offset;
    if (is_whole_of_doublewords(&place, size))
        copy_doublewords(value, from);
    else
        memcpy(value, from + part_offset(&place, size), size);
    return CAIRN_OK;
}

enum cairn_status cairn_context_write(struct cairn_context *context, uint16_t number,
                                      const void *value, size_t size, struct cairn_error *error)
{
    struct arch_register place;
    if (!find_place(context, &number, &place))
        return error_set(error, CAIRN_ERROR_NOT_FOUND, number,
                         "the context cannot hold register %u", number);
    enum cairn_status status = check_size(&place, number, size, error);
    if (status != CAIRN_OK)
        return status;
    uint8_t *to = context->bytes + place.offset;
    if (!holds(context, number)) {
        memset(to, 0, place.bytes);
        context_add(context, number);
    }
    if (is_whole_of_doublewords(&place, size))
        copy_doublewords(to, value);
    else
        memcpy(to + part_offset(&place, size), value, size);
    return CAIRN_OK;
}

/* ---- Signals ---- */

enum cairn_status cairn_context_from_signal(struct cairn_context *context, const void *ucontext,
                                            struct cairn_error *error)
{
    return arch_host_from_signal(context, ucontext, error);
}

enum cairn_status cairn_context_to_signal(const struct cairn_context *context, void *ucontext,
                                          struct cairn_error *error)
{
    return arch_host_to_signal(context, ucontext, error);
}
