/*
 * Makes the code of an inline cache from its cases.
 *
 * A site jumps to the code, which jumps back, because a call and a return would take longer than a
 * guard and a load together. If a case calls a function, the site calls the code instead. The
 * function then returns to the site, and a stack walk finds the site's return address. If the first
 * case is in the site's own bytes, misses there branch to the code.
 *
 * SPDX-License-Identifier: MIT
 */
#include "base/error.h"
#include "ic/cache.h"
#include "site/word.h"

/* ---- The input of the encoder ---- */

static struct arch_cache_second describe_second(const struct cairn_ic_holder *holder)
{
    const struct cairn_ic_guard *guard = &holder->guard;
    if (holder->object == NULL)
        return (struct arch_cache_second){.width = 0};
    return (struct arch_cache_second){
        .width = guard->width,
        .word = (uintptr_t)holder->object + (uint64_t)(int64_t)guard->offset,
        .mask = guard->mask,
        .key = guard->key,
    };
}

static struct arch_cache_elements describe_elements(const cairn_ic *ic,
                                                    const struct cairn_ic_elements *elements)
{
    if (elements->length_width == 0)
        return (struct arch_cache_elements){.length_width = 0};
    const struct ic_value *index = &ic->operands[elements->index];
    return (struct arch_cache_elements){
        .length_width = elements->length_width,
        .length_offset = elements->length_offset,
        .index = index->dwarf,
        .is_narrow = index->type.bits < 64,
    };
}

static struct arch_cache_epilogue describe_epilogue(const struct cairn_ic_case *wanted)
{
    const struct cairn_ic_barrier *barrier = &wanted->barrier;
    return (struct arch_cache_epilogue){
        .key_width = wanted->changes_key ? wanted->guard.width : 0,
        .key = wanted->new_key,
        .marks_card = barrier->kind == CAIRN_IC_BARRIER_CARD,
        .card_shift = barrier->card_shift,
        .card = barrier->card,
        .cards = barrier->cards,
    };
}

static struct arch_cache_case describe_case(const cairn_ic *ic, const struct ic_case *entry)
{
    static const enum arch_cache_action actions[] = {
        [CAIRN_IC_LOAD] = ARCH_CACHE_LOAD,
        [CAIRN_IC_STORE] = ARCH_CACHE_STORE,
        [CAIRN_IC_CONSTANT] = ARCH_CACHE_CONSTANT,
        [CAIRN_IC_CALL] = ARCH_CACHE_JUMP,
    };
    const struct cairn_ic_case *wanted = &entry->public;
    const struct ic_value *value =
        wanted->action == CAIRN_IC_STORE ? &ic->operands[wanted->operand] : &ic->result;
    bool exits = wanted->action == CAIRN_IC_CALL && entry->call != NULL;
    bool has_holder = wanted->action == CAIRN_IC_LOAD && wanted->holder.object != NULL;
    bool stores = wanted->action == CAIRN_IC_STORE;
    const void *target = exits ? (const void *)&entry->call->exit : wanted->target;
    return (struct arch_cache_case){
        .receiver = ic->operands[wanted->guard.operand].dwarf,
        .key_width = wanted->guard.width,
        .key_offset = wanted->guard.offset,
        .mask = wanted->guard.mask,
        .key = wanted->guard.key,
        .second = describe_second(&wanted->holder),
        .action = exits ? ARCH_CACHE_EXIT : actions[wanted->action],
        .value = value->dwarf,
        .field = {.offset = wanted->field.offset,
                  .width = wanted->field.width,
                  .is_signed = wanted->field.is_signed,
                  .is_out_of_line = wanted->field.is_out_of_line,
                  .pointer_offset = wanted->field.pointer_offset},
        .holder = has_holder ? (uintptr_t)wanted->holder.object : 0,
        .elements = describe_elements(ic, &wanted->elements),
        .epilogue =
            stores ? describe_epilogue(wanted) : (struct arch_cache_epilogue){.key_width = 0},
        .constant = wanted->constant,
        .constant_width = ic->result.type.kind == CAIRN_TYPE_FLOAT ? sizeof(float) : sizeof(double),
        .target = (uintptr_t)target,
        .counter = ic->options.counts_hits ? (uintptr_t)&ic->hits[entry->counter] : 0,
    };
}

static struct arch_cache_table describe_table(const struct ic_change *change)
{
    if (change->table == NULL || !change->is_megamorphic)
        return (struct arch_cache_table){.address = 0};
    const struct ic_case form = {.public = *ic_table_form(change->table)};
    const struct arch_cache_case access = describe_case(change->ic, &form);
    return ic_table_describe(change->table, &access);
}

struct description {
    struct arch_cache_case cases[CAIRN_IC_CASE_LIMIT_MAX];
    uint16_t operands[CAIRN_IC_OPERANDS_MAX];
};

static struct arch_cache describe(const struct ic_change *change, struct description *described)
{
    const cairn_ic *ic = change->ic;
    const cairn_site *site = ic->site;
    const void *target = change->is_megamorphic ? ic->options.megamorphic_target : NULL;
    const struct arch_light_exit *exit = change->is_megamorphic ? &ic->megamorphic : &ic->miss;
    bool is_called = target != NULL;
    for (uint32_t i = 0; i < change->case_count; i++) {
        described->cases[i] = describe_case(ic, &change->cases[i]);
        is_called |= described->cases[i].action == ARCH_CACHE_JUMP;
    }
    for (uint32_t i = 0; i < ic->operand_count; i++)
        described->operands[i] = ic->operands[i].dwarf;
    return (struct arch_cache){
        .cases = described->cases,
        .count = change->case_count,
        .operands = described->operands,
        .operand_count = ic->operand_count,
        .is_called = is_called,
        .site_end = site->address + site->byte_count,
        .return_address = site->address + (ic->may_inline ? site->byte_count : site->return_offset),
        .table = describe_table(change),
        .exit_data = (uintptr_t)exit,
        .miss_target = (uintptr_t)target,
    };
}

/* ---- Encoding ---- */

/* The code to encode, and the size of its cases once it was encoded. */
struct emission {
    const cairn_ic *ic;
    struct arch_cache cache;
    size_t case_bytes;
};

static enum cairn_status encode(struct code_stub *stub, void *user, uint8_t *code, size_t *size,
                                struct cairn_error *error)
{
    struct emission *emission = user;
    const cairn_site *site = emission->ic->site;
    const struct cairn_arch *arch = site->table->arch;
    struct arch_cache_size sizes;
    if (!arch_host_cache_encoder()->encode_cache(arch, &emission->cache, stub->address, code,
                                                 &sizes))
        return error_set(error, CAIRN_ERROR_RANGE, site->address,
                         "the code of an inline cache does not reach back to site %llu at 0x%llx",
                         (unsigned long long)site_id(site), (unsigned long long)site->address);
    emission->case_bytes = sizes.case_bytes;
    *size = sizes.bytes;
    return CAIRN_OK;
}

/* Returns what the cache does, for watchers of code. An empty cache is known by its result. */
static const char *label_of(const struct ic_change *change)
{
    static const char *const labels[] = {
        [CAIRN_IC_LOAD] = "ic:get",
        [CAIRN_IC_STORE] = "ic:set",
        [CAIRN_IC_CONSTANT] = "ic:get",
        [CAIRN_IC_CALL] = "ic:call",
    };
    if (change->case_count > 0)
        return labels[change->cases[0].public.action];
    if (change->ic->case_count > 0)
        return labels[change->ic->cases[0].public.action];
    if (change->table != NULL)
        return labels[ic_table_form(change->table)->action];
    return change->ic->result.type.kind == CAIRN_TYPE_VOID ? "ic:set" : "ic:get";
}

/* Leaves out the first cases if they are in the site's own bytes, and chooses whether the site
 * calls the code. */
static void choose_way(struct ic_change *change, struct arch_cache *cache)
{
    change->way = ic_inline_choose(change, cache);
    if (change->way != IC_WAY_BRANCH) {
        cache->cases += change->inline_count;
        cache->count -= change->inline_count;
        cache->is_called = false;
    } else if (cache->is_called) {
        cache->is_called = ic_inline_prepare_call(change->ic);
    }
}

enum cairn_status ic_code_make(struct ic_change *change, struct cairn_error *error)
{
    _Static_assert((int)CODE_STUB_ALIGNMENT >= (int)ARCH_CACHE_ALIGNMENT,
                   "stubs are as aligned as their code");
    _Static_assert((int)CODE_STUB_BYTES_MAX >= (int)ARCH_CACHE_BYTES_MAX,
                   "stubs have space for their code");
    _Static_assert((int)CAIRN_IC_CASE_LIMIT_MAX <= (int)ARCH_CACHE_CASES_MAX,
                   "encoders take as many cases as there may be");
    cairn_site *site = change->ic->site;
    struct description description;
    struct emission emission = {.ic = change->ic, .cache = describe(change, &description)};
    struct ic_code *code = &change->code;
    const struct arch_cache cache = emission.cache;
    choose_way(change, &emission.cache);
    const struct code_stub_request request = {.encode = encode,
                                              .user = &emission,
                                              .block = site->table->block,
                                              .owner = site,
                                              .label = label_of(change),
                                              .site = site,
                                              .is_called = emission.cache.is_called,
                                              .description_bytes = sizeof(struct code_stub)};
    enum cairn_status status =
        code_space_add_stub(change->ic->set->space, &request, &code->stub, error);
    if (status != CAIRN_OK)
        return status;
    code->case_bytes = emission.case_bytes;
    if (change->way == IC_WAY_ENTER && !ic_inline_encode(change, &cache, code->stub->address))
        return error_set(error, CAIRN_ERROR_RANGE, site->address,
                         "the code of an inline cache is out of reach of site %llu at 0x%llx",
                         (unsigned long long)site_id(site), (unsigned long long)site->address);
    if (change->way != IC_WAY_BRANCH) {
        change->patch = plan_branch(site, CAIRN_SITE_NOP, 0);
        change->patch.falls_through = true;
        return CAIRN_OK;
    }
    change->patch = plan_branch(site, emission.cache.is_called ? CAIRN_SITE_CALL : CAIRN_SITE_JUMP,
                                code->stub->address);
    change->patch.is_direct = true;
    return CAIRN_OK;
}
