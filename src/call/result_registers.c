/*
 * Results: each kind of value has its own registers, which are used in their order.
 *
 * Source: the calling conventions of LLVM's targets, lib/Target/…/…CallingConv.td, for the C
 * calling convention.
 *
 * SPDX-License-Identifier: MIT
 */
#include "call/result_registers.h"

#include "arch/arch.h"
#include "base/error.h"
#include "value/representation.h"

#include <string.h>

enum { TYPE_NAME_BYTES = 64, GENERAL_BYTES = 8, GENERAL_BITS = 64, VECTOR_BYTES = 16 };

/* ---- Choosing registers ---- */

enum kind { KIND_GENERAL, KIND_PAIR, KIND_FLOATING, KIND_VECTOR, KIND_NONE };

static enum kind kind_of(struct cairn_type type)
{
    if (type.element_count > 0)
        return KIND_VECTOR;
    switch (type.kind) {
    case CAIRN_TYPE_INTEGER:
        if (type.bits <= GENERAL_BITS)
            return KIND_GENERAL;
        return type.bits == 2 * GENERAL_BITS ? KIND_PAIR : KIND_NONE;
    case CAIRN_TYPE_POINTER:
        return KIND_GENERAL;
    case CAIRN_TYPE_HALF:
    case CAIRN_TYPE_BFLOAT:
    case CAIRN_TYPE_FLOAT:
    case CAIRN_TYPE_DOUBLE:
        return KIND_FLOATING;
    case CAIRN_TYPE_FP128:
        return KIND_VECTOR;
    default:
        return KIND_NONE;
    }
}

/* The number of registers used so far. Floating-point numbers and vectors may share registers. */
struct taken {
    unsigned general;
    unsigned floating;
    unsigned vector;
};

/* Assigns the next registers to a value of the type. Returns their number, or 0 if there are not
 * enough. */
static unsigned take(struct cairn_type type, struct taken *taken, const uint16_t **dwarf)
{
    const struct arch_results *registers = &arch_host()->results;
    bool is_shared = registers->floating[0] == registers->vector[0];
    enum kind kind = kind_of(type);
    unsigned count = kind == KIND_PAIR ? 2 : 1;
    unsigned *used = &taken->general;
    const uint16_t *all = registers->general;
    if (kind == KIND_FLOATING) {
        used = &taken->floating;
        all = registers->floating;
    } else if (kind == KIND_VECTOR) {
        used = is_shared ? &taken->floating : &taken->vector;
        all = registers->vector;
    }
    if (kind == KIND_NONE || *used + count > ARCH_RESULTS_MAX)
        return 0;
    *dwarf = all + *used;
    *used += count;
    return count;
}

/* ---- Checking ---- */

/* Finds the storage of a value in its register. The lanes of returned vectors are as wide as the
 * elements; vectors of other sizes or elements are returned in lanes that depend on the machine. */
static bool find_storage(const struct cairn_context *context, uint16_t dwarf,
                         struct cairn_type type, struct storage *storage)
{
    struct arch_register place;
    size_t size = cairn_type_size(type);
    if (!arch_host_register(context, dwarf, &place) || size > place.bytes)
        return false;
    bool is_vector = type.element_count > 0;
    *storage = (struct storage){storage_form(place.form), is_vector ? size : place.bytes};
    size_t smallest = storage->form == STORAGE_VECTOR ? GENERAL_BYTES : VECTOR_BYTES;
    bool is_lane = type.bits >= 8 && (type.bits & (type.bits - 1)) == 0;
    if (is_vector && (!is_lane || size < smallest || (size & (size - 1)) != 0))
        return false;
    return storage_part(type, *storage) != 0;
}

/* Whether the results need no check: most functions return one integer, and every machine has a
 * register for it. */
static inline bool is_one_integer(const struct cairn_value *results, uint32_t count)
{
    return count == 1 && kind_of(results[0].type) == KIND_GENERAL && results[0].type.bits != 0;
}

/* Whether the register of the result depends on LLVM's version. */
static bool is_half_in_either(struct cairn_type type)
{
    return type.kind == CAIRN_TYPE_HALF && type.element_count == 0 &&
           arch_host()->results.halves_are_in_either;
}

enum cairn_status results_check(const struct cairn_context *context,
                                const struct cairn_value *results, uint32_t count,
                                struct cairn_error *error)
{
    struct taken taken = {0};
    if (is_one_integer(results, count))
        return CAIRN_OK;
    for (uint32_t i = 0; i < count; i++) {
        if (count > 1 && is_half_in_either(results[i].type))
            return error_set(error, CAIRN_ERROR_UNSUPPORTED, i,
                             "result %u of %u is a half: which register it is in depends on LLVM's "
                             "version; return a float",
                             i, count);
        /* A pair needs no check of its registers: its halves are integers. */
        const uint16_t *dwarf;
        struct storage storage;
        unsigned registers = take(results[i].type, &taken, &dwarf);
        if (registers == 2 ||
            (registers == 1 && find_storage(context, *dwarf, results[i].type, &storage)))
            continue;
        char name[TYPE_NAME_BYTES];
        cairn_type_format(results[i].type, name, sizeof name);
        return error_set(error, CAIRN_ERROR_UNSUPPORTED, i,
                         "result %u, of type %s, has no register to be returned in", i, name);
    }
    return CAIRN_OK;
}

/* ---- Writing ---- */

/* Writes a part of a register. results_check has found the register and the part. */
static void write_register(struct cairn_context *context, uint16_t dwarf, const void *bytes,
                           size_t part)
{
    enum cairn_status status = cairn_context_write(context, dwarf, bytes, part, NULL);
    (void)status;
}

static void write_integer(struct cairn_context *context, uint16_t dwarf,
                          const struct cairn_value *result, bool extends_sign)
{
    uint64_t extended =
        extends_sign ? (uint64_t)cairn_value_signed(result) : value_unsigned(result);
    if (arch_context_has(context, dwarf))
        memcpy(context->bytes + arch_host_layout.offsets[dwarf], &extended, sizeof extended);
    else
        write_register(context, dwarf, &extended, sizeof extended);
}

void results_write(struct cairn_context *context, const struct cairn_value *results, uint32_t count,
                   bool extends_sign)
{
    struct taken taken = {0};
    if (is_one_integer(results, count)) {
        write_integer(context, arch_host()->results.general[0], &results[0], extends_sign);
        return;
    }
    for (uint32_t i = 0; i < count; i++) {
        const uint16_t *dwarf;
        unsigned char bytes[CAIRN_VALUE_BYTES_MAX];
        struct storage storage;
        unsigned registers = take(results[i].type, &taken, &dwarf);
        if (registers == 2) {
            /* In memory, the halves have the order of their registers, in either byte order. */
            write_register(context, dwarf[0], results[i].bytes, GENERAL_BYTES);
            write_register(context, dwarf[1], results[i].bytes + GENERAL_BYTES, GENERAL_BYTES);
        } else if (registers == 1 && kind_of(results[i].type) == KIND_GENERAL)
            write_integer(context, *dwarf, &results[i], extends_sign);
        else if (registers == 1 && find_storage(context, *dwarf, results[i].type, &storage)) {
            storage_write(&results[i], storage, bytes);
            write_register(context, *dwarf, bytes, storage_part(results[i].type, storage));
        }
        if (is_half_in_either(results[i].type)) {
            /* The general register is free, because a half is the only result. */
            uint16_t half;
            memcpy(&half, results[i].bytes, sizeof half);
            const uint64_t bits = half;
            write_register(context, arch_host()->results.general[0], &bits, sizeof bits);
        }
    }
}
