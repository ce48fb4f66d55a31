/*
 * Checks whether a cache may be changed, and can have a case, so that encoders can rely on all
 * their preconditions; and compares cases.
 *
 * SPDX-License-Identifier: MIT
 */
#include "base/error.h"
#include "ic/cache.h"

#include <cairn/value.h>

enum { TYPE_NAME_BYTES = 64 };

/* ---- Caches ---- */

enum cairn_status ic_check_usable(const cairn_ic *ic, struct cairn_error *error)
{
    if (atomic_load_explicit(&ic->is_destroyed, memory_order_relaxed))
        return error_set(error, CAIRN_ERROR_STATE, ic->site->address,
                         "the inline cache of the site at 0x%llx has been destroyed",
                         (unsigned long long)ic->site->address);
    if (ic_is_retired(ic))
        return error_set(error, CAIRN_ERROR_STATE, ic->site->address,
                         "the module of the inline cache has been retired");
    return CAIRN_OK;
}

static unsigned long long id_of(const cairn_ic *ic)
{
    return (unsigned long long)site_id(ic->site);
}

/* ---- Operands and the result ---- */

static bool is_width(uint8_t width) { return width == 1 || width == 2 || width == 4 || width == 8; }

static bool is_floating(struct cairn_type type)
{
    return type.element_count == 0 &&
           (type.kind == CAIRN_TYPE_FLOAT || type.kind == CAIRN_TYPE_DOUBLE);
}

static bool is_integral(struct cairn_type type)
{
    bool is_kind = type.kind == CAIRN_TYPE_INTEGER || type.kind == CAIRN_TYPE_POINTER;
    return is_kind && type.element_count == 0 && type.bits <= 64;
}

static bool is_scalar(struct cairn_type type) { return is_integral(type) || is_floating(type); }

/* Formats "site 7: operand 2, of type <4 x i32>, …". */
static enum cairn_status say_value(const cairn_ic *ic, enum cairn_status status, const char *name,
                                   const struct ic_value *value, const char *what,
                                   struct cairn_error *error)
{
    char type[TYPE_NAME_BYTES];
    cairn_type_format(value->type, type, sizeof type);
    return error_set(error, status, ic->site->address, "site %llu: %s, of type %s, %s", id_of(ic),
                     name, type, what);
}

static enum cairn_status check_register(const cairn_ic *ic, const char *name,
                                        const struct ic_value *value, struct cairn_error *error)
{
    if (value->dwarf != IC_NO_REGISTER)
        return CAIRN_OK;
    return say_value(ic, CAIRN_ERROR_UNSUPPORTED, name, value, "is not in a register", error);
}

static enum cairn_status refuse(const cairn_ic *ic, const char *what, struct cairn_error *error)
{
    return error_set(error, CAIRN_ERROR_ARGUMENT, ic->site->address, "site %llu: %s", id_of(ic),
                     what);
}

static enum cairn_status find_operand(const cairn_ic *ic, const char *name, uint32_t number,
                                      const struct ic_value **operand, struct cairn_error *error)
{
    if (number >= ic->operand_count)
        return error_set(error, CAIRN_ERROR_ARGUMENT, number,
                         "site %llu has %u operands, so %s cannot be number %u", id_of(ic),
                         ic->operand_count, name, number);
    *operand = &ic->operands[number];
    return check_register(ic, name, *operand, error);
}

/* ---- Guards ---- */

/* Checks the comparison, and replaces a mask of 0. */
static enum cairn_status check_comparison(const cairn_ic *ic, struct cairn_ic_guard *guard,
                                          struct cairn_error *error)
{
    if (!is_width(guard->width))
        return error_set(error, CAIRN_ERROR_ARGUMENT, guard->width,
                         "site %llu: a guard compares 1, 2, 4 or 8 bytes, not %u", id_of(ic),
                         guard->width);
    if (guard->mask == 0)
        guard->mask = ic_all_bits(guard->width);
    if ((guard->mask & ~ic_all_bits(guard->width)) != 0)
        return error_set(error, CAIRN_ERROR_ARGUMENT, 0,
                         "site %llu: the mask 0x%llx has more bits than the guard's %u bytes",
                         id_of(ic), (unsigned long long)guard->mask, guard->width);
    if ((guard->key & ~guard->mask) != 0)
        return error_set(error, CAIRN_ERROR_ARGUMENT, 0,
                         "site %llu: the key 0x%llx has bits that the guard's mask 0x%llx does not "
                         "have, so it would never hit",
                         id_of(ic), (unsigned long long)guard->key,
                         (unsigned long long)guard->mask);
    return CAIRN_OK;
}

enum cairn_status ic_check_guard(const cairn_ic *ic, struct cairn_ic_guard *guard,
                                 struct cairn_error *error)
{
    const struct ic_value *receiver = NULL;
    enum cairn_status status = find_operand(ic, "the receiver", guard->operand, &receiver, error);
    if (status != CAIRN_OK)
        return status;
    if (!is_integral(receiver->type) || cairn_type_size(receiver->type) != sizeof(uint64_t))
        return say_value(ic, CAIRN_ERROR_ARGUMENT, "the receiver", receiver,
                         "is neither a pointer nor i64", error);
    return check_comparison(ic, guard, error);
}

/* ---- Actions ---- */

static enum cairn_status check_field(const cairn_ic *ic, const char *name,
                                     const struct ic_value *value,
                                     const struct cairn_ic_field *field, struct cairn_error *error)
{
    if (!is_width(field->width))
        return error_set(error, CAIRN_ERROR_ARGUMENT, field->width,
                         "site %llu: a field has 1, 2, 4 or 8 bytes, not %u", id_of(ic),
                         field->width);
    size_t size = cairn_type_size(value->type);
    if (field->width <= size && (!is_floating(value->type) || field->width == size))
        return CAIRN_OK;
    return say_value(ic, CAIRN_ERROR_ARGUMENT, name, value,
                     is_floating(value->type) ? "has another size than the field"
                                              : "is narrower than the field",
                     error);
}

static enum cairn_status check_elements(const cairn_ic *ic, const struct cairn_ic_case *checked,
                                        struct cairn_error *error)
{
    const struct cairn_ic_elements *elements = &checked->elements;
    const struct ic_value *index = NULL;
    if (elements->length_width == 0)
        return CAIRN_OK;
    if (checked->action == CAIRN_IC_LOAD && checked->holder.object != NULL)
        return refuse(ic, "elements are those of the receiver: such a load cannot have a holder",
                      error);
    if (!is_width(elements->length_width))
        return error_set(error, CAIRN_ERROR_ARGUMENT, elements->length_width,
                         "site %llu: a length has 1, 2, 4 or 8 bytes, not %u", id_of(ic),
                         elements->length_width);
    enum cairn_status status = find_operand(ic, "the index", elements->index, &index, error);
    if (status != CAIRN_OK)
        return status;
    if (is_integral(index->type) && (index->type.bits == 32 || index->type.bits == 64))
        return CAIRN_OK;
    return say_value(ic, CAIRN_ERROR_ARGUMENT, "the index", index, "is neither i32 nor i64", error);
}

/* Checks the new key. */
static enum cairn_status check_transition(const cairn_ic *ic, const struct cairn_ic_case *checked,
                                          struct cairn_error *error)
{
    const struct cairn_ic_guard *guard = &checked->guard;
    uint64_t all = ic_all_bits(guard->width);
    if (!checked->changes_key)
        return CAIRN_OK;
    if (guard->mask != all)
        return refuse(ic, "a store whose guard has a mask cannot change the key", error);
    if ((checked->new_key & ~all) == 0)
        return CAIRN_OK;
    return error_set(error, CAIRN_ERROR_ARGUMENT, 0,
                     "site %llu: the new key 0x%llx has more bits than the guard's %u bytes",
                     id_of(ic), (unsigned long long)checked->new_key, guard->width);
}

static enum cairn_status check_barrier(const cairn_ic *ic, const struct cairn_ic_barrier *barrier,
                                       struct cairn_error *error)
{
    switch (barrier->kind) {
    case CAIRN_IC_BARRIER_NONE:
        return CAIRN_OK;
    case CAIRN_IC_BARRIER_CARD:
        if (barrier->card_shift < 64 &&
            barrier->cards <= (uint64_t)INT64_MAX >> barrier->card_shift)
            return CAIRN_OK;
        return error_set(error, CAIRN_ERROR_ARGUMENT, barrier->card_shift,
                         "site %llu: the cards at 0x%llx, shifted left by %u bits, are not less "
                         "than 2^63",
                         id_of(ic), (unsigned long long)barrier->cards, barrier->card_shift);
    }
    return error_set(error, CAIRN_ERROR_ARGUMENT, 0, "site %llu: unknown kind of barrier %u",
                     id_of(ic), (unsigned)barrier->kind);
}

static enum cairn_status check_store(const cairn_ic *ic, struct cairn_ic_case *checked,
                                     struct cairn_error *error)
{
    if (ic->result.type.kind != CAIRN_TYPE_VOID)
        return say_value(ic, CAIRN_ERROR_ARGUMENT, "the result", &ic->result,
                         "is not given by a store", error);
    const struct ic_value *stored = NULL;
    enum cairn_status status =
        find_operand(ic, "the stored operand", checked->operand, &stored, error);
    if (status != CAIRN_OK)
        return status;
    if (!is_scalar(stored->type))
        return say_value(ic, CAIRN_ERROR_UNSUPPORTED, "the stored operand", stored,
                         "can be stored by a call or a handler alone", error);
    status = check_field(ic, "the stored operand", stored, &checked->field, error);
    if (status == CAIRN_OK)
        status = check_elements(ic, checked, error);
    if (status == CAIRN_OK)
        status = check_transition(ic, checked, error);
    if (status == CAIRN_OK)
        status = check_barrier(ic, &checked->barrier, error);
    return status;
}

static enum cairn_status check_call(const cairn_ic *ic, const struct cairn_ic_case *checked,
                                    struct cairn_error *error)
{
    if (checked->target == NULL)
        return error_set(error, CAIRN_ERROR_ARGUMENT, 0, "site %llu: NULL cannot be called",
                         id_of(ic));
    if (!ic->calls_straight && ic->calls_refused != NULL)
        return error_set(error, CAIRN_ERROR_UNSUPPORTED, ic->calls_refused->offset,
                         "site %llu cannot call: %s", id_of(ic), ic->calls_refused->message);
    return CAIRN_OK;
}

/* Refuses what belongs to other actions. */
static enum cairn_status check_extensions(const cairn_ic *ic, struct cairn_ic_case *checked,
                                          struct cairn_error *error)
{
    bool accesses = checked->action == CAIRN_IC_LOAD || checked->action == CAIRN_IC_STORE;
    if (checked->elements.length_width != 0 && !accesses)
        return refuse(ic, "only loads and stores access elements", error);
    if (checked->changes_key && checked->action != CAIRN_IC_STORE)
        return refuse(ic, "only stores change the key", error);
    if (checked->barrier.kind != CAIRN_IC_BARRIER_NONE && checked->action != CAIRN_IC_STORE)
        return refuse(ic, "only stores have a barrier", error);
    if (checked->holder.object == NULL)
        return CAIRN_OK;
    return check_comparison(ic, &checked->holder.guard, error);
}

enum cairn_status ic_check_case(const cairn_ic *ic, struct cairn_ic_case *checked,
                                struct cairn_error *error)
{
    if ((unsigned)checked->action > CAIRN_IC_CALL)
        return error_set(error, CAIRN_ERROR_ARGUMENT, 0, "site %llu: unknown action %u", id_of(ic),
                         (unsigned)checked->action);
    enum cairn_status status = ic_check_guard(ic, &checked->guard, error);
    if (status == CAIRN_OK)
        status = check_extensions(ic, checked, error);
    if (status != CAIRN_OK)
        return status;
    if (checked->action == CAIRN_IC_STORE)
        return check_store(ic, checked, error);
    if (checked->action == CAIRN_IC_CALL)
        return check_call(ic, checked, error);
    if (ic->result.type.kind == CAIRN_TYPE_VOID)
        return error_set(error, CAIRN_ERROR_ARGUMENT, ic->site->address,
                         "site %llu has no result, so it can only store and call", id_of(ic));
    if (!is_scalar(ic->result.type))
        return say_value(ic, CAIRN_ERROR_UNSUPPORTED, "the result", &ic->result,
                         "can be given by a call or a handler alone", error);
    status = check_register(ic, "the result", &ic->result, error);
    if (status != CAIRN_OK)
        return status;
    if (checked->action == CAIRN_IC_LOAD) {
        status = check_field(ic, "the result", &ic->result, &checked->field, error);
        return status == CAIRN_OK ? check_elements(ic, checked, error) : status;
    }
    checked->constant &= UINT64_MAX >> (64 - ic->result.type.bits);
    return CAIRN_OK;
}

/* ---- Comparing ---- */

bool ic_same_guard(const struct cairn_ic_guard *left, const struct cairn_ic_guard *right)
{
    return left->operand == right->operand && left->offset == right->offset &&
           left->width == right->width && left->mask == right->mask && left->key == right->key;
}

static bool same_holder(const struct cairn_ic_holder *left, const struct cairn_ic_holder *right)
{
    return left->object == right->object &&
           (left->object == NULL || ic_same_guard(&left->guard, &right->guard));
}

static bool same_elements(const struct cairn_ic_elements *left,
                          const struct cairn_ic_elements *right)
{
    return left->length_width == right->length_width &&
           left->length_offset == right->length_offset && left->index == right->index;
}

static bool same_barrier(const struct cairn_ic_barrier *left, const struct cairn_ic_barrier *right)
{
    return left->kind == right->kind && left->card_shift == right->card_shift &&
           left->card == right->card && left->cards == right->cards;
}

bool ic_same_action(const struct cairn_ic_case *left, const struct cairn_ic_case *right)
{
    const struct cairn_ic_field *field = &left->field;
    const struct cairn_ic_field *other = &right->field;
    return left->action == right->action && left->operand == right->operand &&
           left->constant == right->constant && left->target == right->target &&
           field->offset == other->offset && field->width == other->width &&
           field->is_signed == other->is_signed && field->is_out_of_line == other->is_out_of_line &&
           field->pointer_offset == other->pointer_offset &&
           left->changes_key == right->changes_key && left->new_key == right->new_key &&
           same_holder(&left->holder, &right->holder) &&
           same_elements(&left->elements, &right->elements) &&
           same_barrier(&left->barrier, &right->barrier);
}
