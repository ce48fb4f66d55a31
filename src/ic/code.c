/*
 * Makes the code of an inline cache from its cases.
 *
 * A site jumps to the code, which jumps back, because a call and a return would take longer than a
 * guard and a load together. If a case calls a function, the site calls the code instead. The
 * function then returns to the site, and a stack walk finds the site's return address.
 *
 * SPDX-License-Identifier: MIT
 */
#include "base/error.h"
#include "ic/cache.h"
#include "site/word.h"

/* ---- The input of the encoder ---- */

static enum arch_cache_action action_of(const struct ic_case *entry)
{
    static const enum arch_cache_action actions[] = {
        [CAIRN_IC_LOAD] = ARCH_CACHE_LOAD,
        [CAIRN_IC_STORE] = ARCH_CACHE_STORE,
        [CAIRN_IC_CONSTANT] = ARCH_CACHE_CONSTANT,
        [CAIRN_IC_CALL] = ARCH_CACHE_JUMP,
    };
    return entry->call != NULL ? ARCH_CACHE_EXIT : actions[entry->public.action];
}

static struct arch_cache_field field_of(const struct cairn_ic_field *field)
{
    return (struct arch_cache_field){
        .offset = field->offset,
        .width = field->width,
        .is_signed = field->is_signed,
        .is_out_of_line = field->is_out_of_line,
        .pointer_offset = field->pointer_offset,
    };
}

static uint64_t target_of(const struct ic_case *entry)
{
    return entry->call != NULL ? (uintptr_t)&entry->call->exit : (uintptr_t)entry->public.target;
}

static struct arch_cache_case describe_case(const cairn_ic *ic, const struct ic_case *entry)
{
    const struct cairn_ic_case *wanted = &entry->public;
    bool stores = wanted->action == CAIRN_IC_STORE;
    return (struct arch_cache_case){
        .receiver = ic->operands[wanted->guard.operand].dwarf,
        .key_width = wanted->guard.width,
        .key_offset = wanted->guard.offset,
        .mask = wanted->guard.mask,
        .key = wanted->guard.key,
        .action = action_of(entry),
        .value = stores ? ic->operands[wanted->operand].dwarf : ic->result.dwarf,
        .field = field_of(&wanted->field),
        .constant = wanted->constant,
        .constant_width = ic->result.type.kind == CAIRN_TYPE_FLOAT ? sizeof(float) : sizeof(double),
        .target = target_of(entry),
        .counter = ic->options.counts_hits ? (uintptr_t)&ic->hits[entry->counter] : 0,
    };
}

static bool any_jumps(const struct arch_cache_case *cases, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (cases[i].action == ARCH_CACHE_JUMP)
            return true;
    return false;
}

static bool calls_target(const cairn_ic *ic, const struct ic_cases *cases)
{
    return cases->is_megamorphic && ic->options.megamorphic_target != NULL;
}

struct description {
    struct arch_cache_case cases[CAIRN_IC_CASE_LIMIT_MAX];
    uint16_t operands[CAIRN_IC_OPERANDS_MAX];
};

static struct arch_cache describe(const cairn_ic *ic, const struct ic_cases *cases,
                                  struct description *described)
{
    const cairn_site *site = ic->site;
    for (uint32_t i = 0; i < cases->count; i++)
        described->cases[i] = describe_case(ic, &cases->entries[i]);
    for (uint32_t i = 0; i < ic->operand_count; i++)
        described->operands[i] = ic->operands[i].dwarf;
    bool calls = calls_target(ic, cases);
    const struct arch_exit *exit = cases->is_megamorphic ? &ic->megamorphic : &ic->miss;
    return (struct arch_cache){
        .cases = described->cases,
        .count = cases->count,
        .operands = described->operands,
        .operand_count = ic->operand_count,
        .is_called = calls || any_jumps(described->cases, cases->count),
        .site_end = site->address + site->byte_count,
        .return_address = site->address + site->return_offset,
        .keeps_flags = ic->options.keeps_flags,
        .may_select = ic->options.dispatch == CAIRN_IC_DISPATCH_AUTOMATIC,
        .exit_data = (uintptr_t)exit,
        .miss_target = calls ? (uintptr_t)ic->options.megamorphic_target : 0,
    };
}

/* ---- Encoding ---- */

static enum cairn_status say_out_of_reach(const cairn_ic *ic, struct cairn_error *error)
{
    return error_set(error, CAIRN_ERROR_RANGE, ic->site->address,
                     "the code of an inline cache does not reach back to site %llu at 0x%llx",
                     (unsigned long long)site_id(ic->site), (unsigned long long)ic->site->address);
}

/* The encoded code for one address. */
struct encoded {
    uint8_t bytes[ARCH_CACHE_BYTES_MAX];
    struct arch_cache_size size;
};

static enum cairn_status encode(const cairn_ic *ic, const struct arch_cache *cache,
                                uint64_t address, struct encoded *encoded,
                                struct cairn_error *error)
{
    const struct cairn_arch *arch = ic->site->table->arch;
    if (arch->encode_cache(arch, cache, address, encoded->bytes, &encoded->size))
        return CAIRN_OK;
    return say_out_of_reach(ic, error);
}

/* Takes a stub for the code. The size is known only after encoding, so the code is first encoded
 * for an address near the site, which it must reach. */
static enum cairn_status take_stub(cairn_ic *ic, const struct arch_cache *cache,
                                   struct encoded *encoded, struct code_stub *stub,
                                   struct cairn_error *error)
{
    uint64_t somewhere = ic->site->address & ~(uint64_t)(ARCH_CACHE_ALIGNMENT - 1);
    enum cairn_status status = encode(ic, cache, somewhere, encoded, error);
    if (status != CAIRN_OK)
        return status;
    return code_block_take_stub(ic->site->table->block, encoded->size.bytes, ic->site, stub, error);
}

enum cairn_status ic_code_make(cairn_ic *ic, const struct ic_cases *cases, struct ic_code *code,
                               struct cairn_error *error)
{
    _Static_assert((int)CODE_STUB_GRANULE >= (int)ARCH_CACHE_ALIGNMENT,
                   "stubs are as aligned as their code");
    _Static_assert((int)CAIRN_IC_CASE_LIMIT_MAX <= (int)ARCH_CACHE_CASES_MAX,
                   "encoders take as many cases as there may be");
    struct code_block *block = ic->site->table->block;
    struct description described;
    struct arch_cache cache = describe(ic, cases, &described);
    struct encoded encoded;
    struct code_stub stub;
    enum cairn_status status = take_stub(ic, &cache, &encoded, &stub, error);
    if (status != CAIRN_OK)
        return status;
    status = encode(ic, &cache, stub.address, &encoded, error);
    if (status == CAIRN_OK)
        status = code_block_write_stub(block, &stub, encoded.bytes, error);
    if (status != CAIRN_OK) {
        code_block_release_stub(block, &stub);
        return status;
    }
    *code = (struct ic_code){
        .stub = stub, .case_bytes = encoded.size.case_bytes, .is_called = cache.is_called};
    return CAIRN_OK;
}

struct change ic_code_branch(const cairn_ic *ic, const struct ic_code *code)
{
    struct change change = plan_branch(
        ic->site, code->is_called ? ARCH_BRANCH_CALL : ARCH_BRANCH_JUMP, code->stub.address);
    change.is_direct = true;
    return change;
}
