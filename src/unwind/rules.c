/*
 * Looks up unwind rules, and reports what is wrong with them.
 *
 * SPDX-License-Identifier: MIT
 */
#include "unwind/rules.h"

#include "base/error.h"

void unwind_destroy(struct unwind *unwind)
{
    if (unwind == NULL)
        return;
    struct cairn_allocator allocator = unwind->allocator;
    memory_free(&allocator, unwind, unwind->size_bytes);
}

struct unwind_size unwind_size(const struct unwind *unwind)
{
    if (unwind == NULL)
        return (struct unwind_size){0};
    return (struct unwind_size){unwind->size_bytes, unwind->entry_count, unwind->row_count};
}

/* ---- Looking up ---- */

const struct unwind_row unwind_no_rules = {.problem = UNWIND_NO_RULES};

/* Returns the last of `count` entries that begins at or before `offset`. The first one does. */
const struct unwind_entry *unwind_search(const struct unwind_entry *entry, uint32_t count,
                                         uint32_t offset)
{
    while (count > 1) {
        uint32_t half = count / 2;
        entry += entry[half].offset <= offset ? half : 0;
        count -= half;
    }
    return entry;
}

/* ---- Reporting ---- */

enum detail { DETAIL_NONE, DETAIL_REGISTER, DETAIL_NUMBER, DETAIL_LETTER };

/* ORDER PROBLEM. */
static const struct {
    enum detail detail;
    const char *text;
} problems[] = {
    [UNWIND_REGISTER_EXPRESSION] = {DETAIL_REGISTER, "a DWARF expression says where the caller's "
                                                     "register is, and those are not evaluated:"},
    [UNWIND_REGISTER_UNDEFINED] = {DETAIL_REGISTER, "the caller's register is lost:"},
    [UNWIND_REGISTER_PLACE] = {DETAIL_REGISTER, "the caller's register is neither in the stack "
                                                "near the CFA nor in a register that calls keep:"},
    [UNWIND_REGISTER_FOREIGN] = {DETAIL_REGISTER,
                                 "the function keeps a register that ordinary calls do not keep, "
                                 "and it is not known how much of it is saved:"},
    [UNWIND_SIGNED_WITH_PC] = {DETAIL_NONE,
                               "the return address is signed with the PC of an instruction"},
    [UNWIND_NO_RULES] = {DETAIL_NONE, "no unwind rules: compile with attribute uwtable"},
    [UNWIND_NO_CALLER] = {DETAIL_NONE, "the frame has no caller: it is the outermost one"},
    [UNWIND_CFA_UNKNOWN] = {DETAIL_NONE, "no rule says where the frame begins (CFA)"},
    [UNWIND_CFA_EXPRESSION] = {DETAIL_NONE, "a DWARF expression says where the frame begins (CFA), "
                                            "and those are not evaluated"},
    [UNWIND_CFA_REGISTER] = {DETAIL_REGISTER, "where the frame begins (CFA) is relative to a "
                                              "register that calls do not keep:"},
    [UNWIND_CFA_OFFSET] = {DETAIL_NONE,
                           "the frame begins (CFA) 2 GiB or more away from its register"},
    [UNWIND_STACK_POINTER] = {DETAIL_NONE, "the caller's stack pointer is not where the frame "
                                           "begins (CFA)"},
    [UNWIND_RETURN_COLUMN] = {DETAIL_NUMBER,
                              "the return address is in a column that is not this architecture's:"},
    [UNWIND_RETURN_RULE] = {DETAIL_NONE, "the return address is neither in the stack near the CFA "
                                         "nor in a register that calls keep"},
    [UNWIND_OPCODE] = {DETAIL_NUMBER, "the unwind rules have an opcode that is not known:"},
    [UNWIND_NESTING] = {DETAIL_NUMBER, "the unwind rules remember more states than can be held:"},
    [UNWIND_RULES] = {DETAIL_NUMBER, "the unwind rules name more registers than can be held:"},
    [UNWIND_NUMBER] = {DETAIL_NONE,
                       "the unwind rules name a register by a number of more than 16 bits"},
    [UNWIND_LETTER] = {DETAIL_LETTER, "the unwind rules have an augmentation that is not known:"},
};

enum { PROBLEM_COUNT = sizeof problems / sizeof *problems };
_Static_assert(PROBLEM_COUNT == UNWIND_LETTER + 1, "one sentence per problem");

enum cairn_status unwind_explain(const struct unwind_row *row, const struct cairn_arch *arch,
                                 uint64_t pc, struct cairn_error *error)
{
    if (row->problem == UNWIND_FINE)
        return CAIRN_OK;
    enum cairn_status status =
        row->problem == UNWIND_NO_RULES ? CAIRN_ERROR_NOT_FOUND : CAIRN_ERROR_UNSUPPORTED;
    const char *text = problems[row->problem].text;
    const char *name = arch_register_name(arch, row->detail);
    unsigned long long at = pc;
    switch (problems[row->problem].detail) {
    case DETAIL_REGISTER:
        if (name != NULL)
            return error_set(error, status, pc, "at 0x%llx, %s %s", at, text, name);
        return error_set(error, status, pc, "at 0x%llx, %s number %u", at, text, row->detail);
    case DETAIL_NUMBER:
        return error_set(error, status, pc, "at 0x%llx, %s %u", at, text, row->detail);
    case DETAIL_LETTER:
        return error_set(error, status, pc, "at 0x%llx, %s '%c'", at, text, (char)row->detail);
    default:
        return error_set(error, status, pc, "at 0x%llx, %s", at, text);
    }
}
