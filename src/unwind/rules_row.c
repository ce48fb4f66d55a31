/*
 * Converts the rules of call frame instructions to a row that a walker can apply.
 *
 * SPDX-License-Identifier: MIT
 */
#include "unwind/rules.h"

#include <assert.h>
#include <string.h>

/* ---- Slots ---- */

void unwind_numbering_create(const struct cairn_arch *arch, struct unwind_numbering *numbering)
{
    numbering->arch = arch;
    memset(numbering->first_slot, UNWIND_NO_SLOT, sizeof numbering->first_slot);
    assert(arch->unwind_slot_count <= ARCH_UNWIND_SLOTS_MAX);
    for (size_t slot = arch->unwind_slot_count; slot-- > 0;) {
        assert(arch->unwind_slots[slot].dwarf < UNWIND_NUMBERS);
        numbering->first_slot[arch->unwind_slots[slot].dwarf] = (uint8_t)slot;
    }
}

static uint8_t slot_of(const struct unwind_numbering *numbering, uint64_t dwarf)
{
    return dwarf < UNWIND_NUMBERS ? numbering->first_slot[dwarf] : UNWIND_NO_SLOT;
}

static uint16_t dwarf_of(const struct unwind_numbering *numbering, unsigned slot)
{
    return numbering->arch->unwind_slots[slot].dwarf;
}

/* ---- Problems ---- */

void unwind_draft_problem(enum unwind_problem problem, uint16_t detail, struct unwind_draft *draft)
{
    memset(draft, 0, sizeof *draft);
    draft->row.problem = (uint8_t)problem;
    draft->row.detail = detail;
}

/* Sets the row's problem. Keeps an earlier one, except that a problem that prevents leaving the
 * frame replaces one that does not. */
static void note(struct unwind_draft *draft, enum unwind_problem problem, uint16_t detail)
{
    bool is_worse = problem >= UNWIND_NO_RULES && unwind_can_leave(&draft->row);
    if (draft->row.problem != UNWIND_FINE && !is_worse)
        return;
    draft->row.problem = (uint8_t)problem;
    draft->row.detail = detail;
}

/* ---- The CFA ---- */

static void add_cfa(const struct unwind_numbering *numbering, const struct call_frame_row *row,
                    struct unwind_draft *draft)
{
    uint8_t slot = slot_of(numbering, row->cfa_register);
    if (row->cfa == CALL_FRAME_CFA_UNKNOWN)
        note(draft, UNWIND_CFA_UNKNOWN, 0);
    else if (row->cfa == CALL_FRAME_CFA_EXPRESSION)
        note(draft, UNWIND_CFA_EXPRESSION, 0);
    else if (slot == UNWIND_NO_SLOT)
        note(draft, UNWIND_CFA_REGISTER, row->cfa_register);
    else if (row->cfa_value != (int32_t)row->cfa_value)
        note(draft, UNWIND_CFA_OFFSET, 0);
    else {
        draft->row.cfa_slot = slot;
        draft->row.cfa_offset = (int32_t)row->cfa_value;
    }
}

/* ---- Registers ---- */

static void add_place(struct unwind_draft *draft, struct unwind_place place, uint8_t *count)
{
    size_t used = (size_t)draft->row.loaded_count + draft->row.moved_count;
    assert(used < UNWIND_PLACES_MAX);
    draft->places[used] = place;
    ++*count;
}

static bool has_own_slot(const struct unwind_numbering *numbering, uint64_t dwarf)
{
    size_t slot = slot_of(numbering, dwarf);
    return slot != UNWIND_NO_SLOT && (slot + 1 == numbering->arch->unwind_slot_count ||
                                      dwarf_of(numbering, (unsigned)slot + 1) != dwarf);
}

static bool is_load(struct call_frame_rule rule) { return rule.kind == CALL_FRAME_SAVED; }

static bool is_move(struct call_frame_rule rule)
{
    return rule.kind == CALL_FRAME_REGISTER && rule.value != rule.dwarf;
}

/* Whether the register has its caller's value without a load or a move. */
static bool stays(struct call_frame_rule rule)
{
    return rule.kind == CALL_FRAME_UNSPECIFIED || rule.kind == CALL_FRAME_SAME ||
           (rule.kind == CALL_FRAME_REGISTER && rule.value == rule.dwarf);
}

/* Adds loads for all slots of the register, or a move from another callee-saved register, whose
 * value is known. False if there cannot be one. */
static bool add_rule(const struct unwind_numbering *numbering, struct call_frame_rule rule,
                     struct unwind_draft *draft)
{
    const struct cairn_arch *arch = numbering->arch;
    uint8_t first = slot_of(numbering, rule.dwarf);
    if (is_move(rule)) {
        if (!has_own_slot(numbering, rule.dwarf) || !has_own_slot(numbering, (uint64_t)rule.value))
            return false;
        uint8_t source = slot_of(numbering, (uint64_t)rule.value);
        add_place(draft, (struct unwind_place){.slot = first, .source = source},
                  &draft->row.moved_count);
        return true;
    }
    for (size_t slot = first;
         slot < arch->unwind_slot_count && dwarf_of(numbering, (unsigned)slot) == rule.dwarf;
         slot++) {
        int64_t offset;
        if (__builtin_add_overflow(rule.value, arch->unwind_slots[slot].byte, &offset) ||
            offset % 8 != 0 || offset / 8 != (int16_t)(offset / 8))
            return false;
        add_place(draft,
                  (struct unwind_place){.slot = (uint8_t)slot, .words = (int16_t)(offset / 8)},
                  &draft->row.loaded_count);
    }
    return true;
}

/* Adds the rules of all registers other than the stack pointer and the return address: the loads,
 * or, if `moves`, the moves. Callers do not expect that a register without a slot is preserved,
 * unless its function saves it. */
static void add_registers(const struct unwind_numbering *numbering,
                          const struct call_frame_row *row, bool moves, struct unwind_draft *draft)
{
    for (unsigned i = 0; i < row->rule_count; i++) {
        struct call_frame_rule rule = row->rules[i];
        if (rule.dwarf == dwarf_of(numbering, ARCH_UNWIND_STACK_POINTER) ||
            rule.dwarf == dwarf_of(numbering, ARCH_UNWIND_RETURN_ADDRESS))
            continue;
        if (slot_of(numbering, rule.dwarf) == UNWIND_NO_SLOT) {
            if (!stays(rule) && rule.kind != CALL_FRAME_UNDEFINED)
                note(draft, UNWIND_REGISTER_FOREIGN, rule.dwarf);
        } else if (is_load(rule) || is_move(rule)) {
            if (is_move(rule) == moves && !add_rule(numbering, rule, draft))
                note(draft, UNWIND_REGISTER_PLACE, rule.dwarf);
        } else if (rule.kind == CALL_FRAME_UNDEFINED) {
            note(draft, UNWIND_REGISTER_UNDEFINED, rule.dwarf);
        } else if (rule.kind == CALL_FRAME_VALUE) {
            note(draft, UNWIND_REGISTER_PLACE, rule.dwarf);
        } else if (!stays(rule)) {
            note(draft, UNWIND_REGISTER_EXPRESSION, rule.dwarf);
        }
    }
}

static void add_return(const struct unwind_numbering *numbering,
                       const struct eh_frame_common *common, const struct call_frame_row *row,
                       bool moves, struct unwind_draft *draft)
{
    struct call_frame_rule rule =
        call_frame_rule(row, dwarf_of(numbering, ARCH_UNWIND_RETURN_ADDRESS));
    if (common->return_register != rule.dwarf)
        note(draft, UNWIND_RETURN_COLUMN,
             common->return_register > UINT16_MAX ? UINT16_MAX : (uint16_t)common->return_register);
    else if (is_load(rule) || is_move(rule)) {
        if (is_move(rule) != moves)
            return;
        if (add_rule(numbering, rule, draft))
            draft->row.flags |= UNWIND_RETURN_FOUND;
        else
            note(draft, UNWIND_RETURN_RULE, 0);
    } else if (rule.kind == CALL_FRAME_UNDEFINED)
        note(draft, UNWIND_NO_CALLER, 0);
    else if (!stays(rule) || !numbering->arch->has_link_register)
        note(draft, UNWIND_RETURN_RULE, 0);
}

/* ---- Rows ---- */

/* Loads come first in a row, so the rules are processed twice. */
void unwind_draft_row(const struct unwind_numbering *numbering,
                      const struct eh_frame_common *common, const struct call_frame_row *row,
                      struct unwind_draft *draft)
{
    memset(draft, 0, sizeof *draft);
    add_cfa(numbering, row, draft);
    struct call_frame_rule sp =
        call_frame_rule(row, dwarf_of(numbering, ARCH_UNWIND_STACK_POINTER));
    bool is_cfa = sp.kind == CALL_FRAME_VALUE && sp.value == 0;
    if (sp.kind != CALL_FRAME_UNSPECIFIED && !is_cfa)
        note(draft, UNWIND_STACK_POINTER, sp.dwarf);
    if (common->is_signal_frame)
        draft->row.flags |= UNWIND_SIGNAL_FRAME;
    if (row->signing != CALL_FRAME_NOT_SIGNED)
        draft->row.flags |= UNWIND_SIGNED | (common->uses_b_key ? UNWIND_B_KEY : 0);
    if (row->signing == CALL_FRAME_SIGNED_WITH_PC)
        note(draft, UNWIND_SIGNED_WITH_PC, 0);
    for (unsigned moves = 0; moves < 2; moves++) {
        add_return(numbering, common, row, moves == 1, draft);
        add_registers(numbering, row, moves == 1, draft);
    }
    if (!unwind_can_leave(&draft->row))
        unwind_draft_problem((enum unwind_problem)draft->row.problem, draft->row.detail, draft);
}
