/*
 * Inline caches, the slow path: the handlers for threads that no case matched.
 *
 * The code of a cache ends like an exit's stub, so its handlers get a frame with all registers, and
 * in addition the operands, whose places are found when the cache is created (ic/operands.c).
 *
 * SPDX-License-Identifier: MIT
 */
#include "base/type.h"
#include "frame/exit.h"
#include "frame/frame.h"
#include "ic/slow_path.h"
#include "runtime/events.h"
#include "value/representation.h"

#include <cairn/frame.h>
#include <string.h>

enum { WORD_BITS = 64 };

/* ---- Values, most of which are scalars in registers ---- */

/* Whether a register holds the value as a word whose low bytes are the value. */
static bool is_scalar(const struct ic_value *value)
{
    bool is_narrow = value->type.element_count == 0 && value->type.bits <= WORD_BITS;
    bool is_other = arch_host_layout.floats_are_doubles && value->type.kind == CAIRN_TYPE_FLOAT;
    return is_narrow && !is_other && value->dwarf != IC_NO_REGISTER;
}

/* Returns that word. NULL if the value is elsewhere or in another form. */
static void *scalar_place(const struct cairn_frame *frame, const struct ic_value *value)
{
    return is_scalar(value) ? frame_scalar(frame, value->dwarf) : NULL;
}

/* Reads an operand. An operand that cannot be read is void. */
static void read_operand(const struct cairn_frame *frame, const struct ic_value *operand,
                         struct cairn_location location, struct cairn_value *value)
{
    struct cairn_type type = operand->type;
    const void *place = scalar_place(frame, operand);
    if (place != NULL) {
        uint64_t word;
        memcpy(&word, place, sizeof word);
        word &= UINT64_MAX >> (WORD_BITS - type.bits);
        *value = (struct cairn_value){.type = type, .size = (uint32_t)cairn_type_size(type)};
        value_copy_low(value->bytes, value->size, &word, sizeof word);
    } else if (cairn_frame_at_location(frame, location, type, value, NULL) != CAIRN_OK) {
        *value = (struct cairn_value){.size = 0};
    }
}

/* ---- Handling a miss ---- */

static void arrive(const cairn_ic *ic, struct cairn_context *context, struct exit_state *state,
                   struct cairn_value *operands)
{
    const struct slow_path *slow = ic->slow_path;
    exit_arrive(state, slow->runtime, context);
    state->call.record = slow->record;
    for (uint32_t i = 0; i < ic->operand_count; i++)
        read_operand(&state->call.frame, &ic->operands[i], slow->locations[i], &operands[i]);
}

/* Ends the handling. A result that is a scalar in a register is written here, which is faster. */
static void leave(const cairn_ic *ic, struct exit_state *state)
{
    void *place = scalar_place(&state->call.frame, &ic->result);
    const struct slow_path *slow = ic->slow_path;
    cairn_log *log = log_of(runtime_sink(slow->runtime));
    bool leaves =
        state->action == EXIT_RETURN || state->action == EXIT_ENTER || state->action == EXIT_RESUME;
    if (event_has_log(log) && leaves)
        exit_note_action(log, slow->runtime, state, 0);
    if (state->action != EXIT_CONTINUE_WITH || place == NULL) {
        exit_leave(state);
        return;
    }
    uint64_t word = 0;
    value_copy_low(&word, sizeof word, state->results[0].bytes, state->results[0].size);
    memcpy(place, &word, sizeof word);
}

static void miss(cairn_ic *ic, cairn_ic_handler *handler, struct cairn_context *context)
{
    struct exit_state state;
    struct cairn_value operands[CAIRN_IC_OPERANDS_MAX];
    arrive(ic, context, &state, operands);
    if (ic->options.counts_hits)
        atomic_fetch_add_explicit(&ic->misses, 1, memory_order_relaxed);
    struct cairn_ic_miss missed = {
        .ic = ic, .operands = operands, .operand_count = ic->operand_count, .call = &state.call};
    handler(&missed, ic->options.user);
    leave(ic, &state);
}

static uint64_t truncate(uint64_t word, struct cairn_type type)
{
    return word & UINT64_MAX >> (WORD_BITS - type.bits);
}

/* Calls the light handler with the bits of the operands. */
static bool handle_lightly(struct cairn_context *context, void *user)
{
    cairn_ic *ic = user;
    const struct slow_path *slow = ic->slow_path;
    uint64_t operands[CAIRN_IC_OPERANDS_MAX];
    uint64_t result = 0;
    for (uint32_t i = 0; i < ic->operand_count; i++) {
        memcpy(&operands[i], context->bytes + slow->offsets[i], sizeof operands[i]);
        operands[i] = truncate(operands[i], ic->operands[i].type);
    }
    if (!ic->options.light_handler(ic, operands, &result, ic->options.user))
        return false;
    if (ic->result.type.kind != CAIRN_TYPE_VOID) {
        result = truncate(result, ic->result.type);
        memcpy(context->bytes + slow->result_offset, &result, sizeof result);
    }
    if (ic->options.counts_hits)
        atomic_fetch_add_explicit(&ic->misses, 1, memory_order_relaxed);
    return true;
}

static void handle_miss(struct cairn_context *context, void *user)
{
    cairn_ic *ic = user;
    miss(ic, ic->options.handler, context);
}

static void handle_megamorphic(struct cairn_context *context, void *user)
{
    cairn_ic *ic = user;
    miss(ic, ic->options.megamorphic_handler, context);
}

/* Calls a case's function with the operands. */
static void handle_call(struct cairn_context *context, void *user)
{
    const struct ic_call *called = user;
    const cairn_ic *ic = called->ic;
    const struct slow_path *slow = ic->slow_path;
    struct exit_state state;
    struct cairn_value operands[CAIRN_IC_OPERANDS_MAX];
    struct cairn_value result;
    arrive(ic, context, &state, operands);
    enum cairn_status status = cairn_call(slow->signature, called->made_for.target, operands,
                                          ic->operand_count, &result, NULL);
    if (status == CAIRN_OK && ic->result.type.kind != CAIRN_TYPE_VOID)
        status = cairn_exit_continue(&state.call, &result, NULL);
    (void)status; /* cannot fail: the types are the declaration's */
    leave(ic, &state);
}

enum cairn_status cairn_ic_return(struct cairn_ic_miss *miss, const struct cairn_value *result,
                                  struct cairn_error *error)
{
    const struct ic_value *expected = &miss->ic->result;
    bool is_expected = result != NULL && type_equal(expected->type, result->type);
    if (!is_expected || scalar_place(&miss->call->frame, expected) == NULL)
        return cairn_exit_continue(miss->call, result, error);
    struct exit_state *state = exit_state_of(miss->call);
    state->results[0] = *result;
    state->result_count = 1;
    state->action = EXIT_CONTINUE_WITH;
    return CAIRN_OK;
}

/* ---- The exits ---- */

/* Returns the offset in a context of the word whose low bytes are the value; 0 if the value is
 * elsewhere or in another form. */
static uint16_t scalar_offset(const struct ic_value *value)
{
    const struct arch_context_layout *layout = &arch_host_layout;
    bool is_there = is_scalar(value) && value->dwarf < layout->scalars_end &&
                    value->dwarf != layout->stack_pointer;
    return is_there ? layout->offsets[value->dwarf] : 0;
}

/* Whether misses can call a light handler: all values are scalars in registers. */
static bool find_offsets(const cairn_ic *ic, struct slow_path *slow)
{
    bool has_result = ic->result.type.kind != CAIRN_TYPE_VOID;
    slow->result_offset = has_result ? scalar_offset(&ic->result) : 0;
    bool is_found = !has_result || slow->result_offset != 0;
    for (uint32_t i = 0; i < ic->operand_count; i++) {
        slow->offsets[i] = scalar_offset(&ic->operands[i]);
        is_found &= slow->offsets[i] != 0;
    }
    return is_found;
}

enum cairn_status ic_make_exits(cairn_ic *ic, struct cairn_error *error)
{
    ic->call_handler = handle_call;
    enum cairn_status status = arch_exit_init(&ic->miss.exit, handle_miss, ic, ic->level, error);
    if (status == CAIRN_OK)
        status = arch_exit_init(&ic->megamorphic.exit, handle_megamorphic, ic, ic->level, error);
    if (status == CAIRN_OK && ic->options.light_handler != NULL &&
        find_offsets(ic, ic->slow_path)) {
        arch_exit_make_light(&ic->miss, handle_lightly);
        arch_exit_make_light(&ic->megamorphic, handle_lightly);
    }
    return status;
}
