/*
 * The registers of a frame: in the context, or in the frame of a callee that has saved them.
 *
 * SPDX-License-Identifier: MIT
 */
#include "frame/registers.h"

#include "base/error.h"
#include "frame/context.h"
#include "runtime/runtime.h"

#include <string.h>

/* ---- Registers ---- */

/* An exit's context has no place for registers in which no code of the runtime could hold anything
 * when the exit was reached. */
static enum cairn_status say_unknown(const struct cairn_frame *frame, uint16_t dwarf,
                                     bool has_place, struct cairn_error *error)
{
    const char *name = arch_register_name(arch_host(), dwarf);
    uint32_t level = context_head(frame->context)->vector_level;
    bool is_left_out =
        !has_place && frame->is_innermost && level != 0 && level < frame->runtime->vector_level;
    return error_set(error, CAIRN_ERROR_NOT_FOUND, dwarf,
                     "%s (register %u) of the frame at 0x%llx %s",
                     name == NULL ? "a register" : name, dwarf, (unsigned long long)frame->pc,
                     is_left_out ? "was not saved: no loaded code was declared with the features "
                                   "that it needs"
                                 : "is not known any more");
}

/* In frames that are not innermost, a register is where a callee has saved it. The slots of a
 * register are consecutive. */
static void find_saved(const struct cairn_frame *frame, bool is_flags, struct frame_register *found)
{
    const struct cairn_arch *arch = arch_host();
    size_t count = 0;
    for (size_t i = ARCH_UNWIND_RETURN_ADDRESS; i < arch->unwind_slot_count; i++)
        if (arch->unwind_slots[i].dwarf == found->dwarf && count++ == 0)
            found->bytes = frame->private_words[i];
    found->storage.size = is_flags ? (size_t)SAVED_FLAGS_BYTES : count * sizeof(uint64_t);
}

enum cairn_status frame_find_register(const struct cairn_frame *frame, uint16_t dwarf,
                                      struct frame_register *found, struct cairn_error *error)
{
    const struct cairn_arch *arch = arch_host();
    struct arch_register place;
    dwarf = arch_whole_register(arch, dwarf);
    if (!arch_host_register(frame->context, dwarf, &place))
        return say_unknown(frame, dwarf, false, error);
    *found = (struct frame_register){
        .dwarf = dwarf,
        .storage = {storage_form(place.form), place.bytes},
        .is_quadword = place.form == ARCH_REGISTER_QUADWORD,
        .first_flag = place.first_flag,
    };
    if (frame->is_innermost && place.form != ARCH_REGISTER_DOUBLEWORDS)
        found->bytes = frame->context->bytes + place.offset;
    if (!frame->is_innermost)
        find_saved(frame, place.first_flag != 0, found);
    bool is_known =
        frame->is_innermost ? arch_context_has(frame->context, dwarf) : found->bytes != NULL;
    return is_known ? CAIRN_OK : say_unknown(frame, dwarf, true, error);
}

/* Returns the address of the part. In little-endian order, a store writes a quadword's first
 * doubleword last. */
static unsigned char *part_of(const struct frame_register *place, size_t part)
{
    bool is_big_endian = CAIRN_BYTE_ORDER_NATIVE == CAIRN_BIG_ENDIAN;
    bool is_at_end = place->storage.form == STORAGE_GENERAL && is_big_endian;
    if (place->is_quadword && part <= sizeof(uint64_t))
        return (unsigned char *)place->bytes +
               (is_big_endian ? sizeof(uint64_t) - part : sizeof(uint64_t));
    return (unsigned char *)place->bytes + (is_at_end ? place->storage.size - part : 0);
}

enum cairn_status frame_load(const struct cairn_frame *frame, const struct frame_register *place,
                             void *bytes, size_t part, struct cairn_error *error)
{
    if (place->bytes == NULL)
        return cairn_context_read(frame->context, place->dwarf, bytes, part, error);
    memcpy(bytes, part_of(place, part), part);
    return CAIRN_OK;
}

enum cairn_status frame_store(struct cairn_frame *frame, const struct frame_register *place,
                              const void *bytes, size_t part, struct cairn_error *error)
{
    if (place->bytes == NULL)
        return cairn_context_write(frame->context, place->dwarf, bytes, part, error);
    memcpy(part_of(place, part), bytes, part);
    return CAIRN_OK;
}

/* ---- Addresses ---- */

enum cairn_status frame_base(const struct cairn_frame *frame, uint16_t dwarf, uint64_t *value,
                             struct cairn_error *error)
{
    if (dwarf == arch_host_layout.stack_pointer) {
        *value = frame->sp;
        return CAIRN_OK;
    }
    const void *bytes = frame_scalar(frame, dwarf);
    if (bytes != NULL) {
        memcpy(value, bytes, sizeof *value);
        return CAIRN_OK;
    }
    struct frame_register place;
    enum cairn_status status = frame_find_register(frame, dwarf, &place, error);
    return status == CAIRN_OK ? frame_load(frame, &place, value, sizeof *value, error) : status;
}

enum cairn_status cairn_frame_read(const struct cairn_frame *frame, uint16_t number, void *value,
                                   size_t size, struct cairn_error *error)
{
    bool is_sp = number == CAIRN_REGISTER_SP || number == arch_host_layout.stack_pointer;
    bool is_here = is_sp || number == CAIRN_REGISTER_PC;
    const uint64_t word = is_sp ? frame->sp : frame->pc;
    struct frame_register place = {.storage = {STORAGE_GENERAL, sizeof word}};
    enum cairn_status status = CAIRN_OK;
    if (number == CAIRN_REGISTER_FLAGS && frame->is_innermost)
        return cairn_context_read(frame->context, number, value, size, error);
    if (!is_here)
        status = frame_find_register(frame, number, &place, error);
    if (status != CAIRN_OK)
        return status;
    if (size == 0 || size > place.storage.size)
        return error_set(error, CAIRN_ERROR_RANGE, number, "register %u has %zu bytes, not %zu",
                         number, place.storage.size, size);
    if (!is_here)
        return frame_load(frame, &place, value, size, error);
    value_copy_low(value, size, &word, sizeof word);
    return CAIRN_OK;
}
