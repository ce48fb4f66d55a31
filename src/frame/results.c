/*
 * Results: each kind of value has registers of its own, which are taken in their order.
 *
 * Source: the calling conventions of LLVM's targets, lib/Target/…/…CallingConv.td, for the C
 * calling convention.
 *
 * SPDX-License-Identifier: MIT
 */
#include "frame/results.h"

#include "arch/arch.h"
#include "base/error.h"
#include "frame/storage.h"

#include <string.h>

enum { TYPE_NAME_BYTES = 64, GENERAL_BYTES = 8, VECTOR_BYTES = 16 };

/* ---- Which register ---- */

enum kind { KIND_GENERAL, KIND_FLOATING, KIND_VECTOR, KIND_NONE };

static enum kind kind_of(struct cairn_type type)
{
    if (type.element_count > 0)
        return KIND_VECTOR;
    switch (type.kind) {
    case CAIRN_TYPE_INTEGER:
        return type.bits <= 8 * GENERAL_BYTES ? KIND_GENERAL : KIND_NONE;
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

/* Registers that are taken; floating-point numbers and vectors may share theirs. */
struct taken {
    unsigned general;
    unsigned floating;
    unsigned vector;
};

/* The next register of the kind; false if there is none. */
static bool take(struct cairn_type type, struct taken *taken, uint16_t *dwarf)
{
    const struct arch_results *registers = &arch_host()->results;
    bool is_shared = registers->floating[0] == registers->vector[0];
    unsigned *vector = is_shared ? &taken->floating : &taken->vector;
    switch (kind_of(type)) {
    case KIND_GENERAL:
        *dwarf = registers->general[taken->general % ARCH_RESULTS_MAX];
        return taken->general++ < ARCH_RESULTS_MAX;
    case KIND_FLOATING:
        *dwarf = registers->floating[taken->floating % ARCH_RESULTS_MAX];
        return taken->floating++ < ARCH_RESULTS_MAX;
    case KIND_VECTOR:
        *dwarf = registers->vector[*vector % ARCH_RESULTS_MAX];
        return (*vector)++ < ARCH_RESULTS_MAX;
    case KIND_NONE:
        break;
    }
    return false;
}

/* ---- Checking ---- */

/* How a context keeps a value of the type in the register. A vector has as much of the register as
 * it has bytes, which the machine has registers of. */
static bool find_storage(const struct cairn_context *context, uint16_t dwarf,
                         struct cairn_type type, struct storage *storage)
{
    struct arch_register place;
    if (!arch_host_register(context, dwarf, &place))
        return false;
    *storage = (struct storage){storage_form(place.form), place.bytes};
    if (type.element_count == 0)
        return true;
    size_t smallest = storage->form == STORAGE_VECTOR ? GENERAL_BYTES : VECTOR_BYTES;
    size_t size = cairn_type_size(type);
    if (size > place.bytes || size < smallest || (size & (size - 1)) != 0)
        return false;
    storage->size = size;
    return true;
}

enum cairn_status results_check(const struct cairn_context *context,
                                const struct cairn_value *results, uint32_t count,
                                struct cairn_error *error)
{
    struct taken taken = {0};
    for (uint32_t i = 0; i < count; i++) {
        uint16_t dwarf;
        struct storage storage;
        char name[TYPE_NAME_BYTES];
        if (take(results[i].type, &taken, &dwarf) &&
            find_storage(context, dwarf, results[i].type, &storage) &&
            storage_part(results[i].type, storage) != 0)
            continue;
        cairn_type_format(results[i].type, name, sizeof name);
        return error_set(error, CAIRN_ERROR_UNSUPPORTED, i,
                         "result %u, of type %s, has no register to be returned in", i, name);
    }
    return CAIRN_OK;
}

/* ---- Writing ---- */

/* Integers fill their register, extended by zeros. */
static void write_result(struct cairn_context *context, uint16_t dwarf,
                         const struct cairn_value *result)
{
    unsigned char bytes[CAIRN_VALUE_BYTES_MAX];
    struct storage storage;
    find_storage(context, dwarf, result->type, &storage);
    size_t part = storage_part(result->type, storage);
    if (storage.form == STORAGE_GENERAL) {
        uint64_t extended = cairn_value_unsigned(result);
        memcpy(bytes, &extended, part = sizeof extended);
    } else {
        storage_write(result, storage, bytes);
    }
    enum cairn_status status = cairn_context_write(context, dwarf, bytes, part, NULL);
    (void)status; /* the register is there, and its part: results_check */
}

void results_write(struct cairn_context *context, const struct cairn_value *results, uint32_t count)
{
    struct taken taken = {0};
    for (uint32_t i = 0; i < count; i++) {
        uint16_t dwarf;
        if (take(results[i].type, &taken, &dwarf))
            write_result(context, dwarf, &results[i]);
    }
}
