/*
 * Describes what a site is and does at this moment, as read from the code with one load. Readers in
 * other processes do the same, with the fields that site_table_inspect sets.
 *
 * SPDX-License-Identifier: MIT
 */
#include "site/veneers.h"

#include "base/inspect.h"

static const char *const state_names[] = {
    [CAIRN_SITE_NOP] = "no-op",           [CAIRN_SITE_CALL] = "call",
    [CAIRN_SITE_JUMP] = "jump",           [CAIRN_SITE_ORIGINAL] = "original",
    [CAIRN_SITE_UNMANAGED] = "unmanaged",
};
_Static_assert(sizeof state_names / sizeof *state_names == CAIRN_SITE_UNMANAGED + 1,
               "one name for each state");

const char *cairn_site_state_name(enum cairn_site_state state)
{
    return (unsigned)state > CAIRN_SITE_UNMANAGED ? "unknown" : state_names[state];
}

/* The slot of a veneer does not change while the instruction branches to the veneer. So the slot
 * belongs to the instruction if that is the same before and after the load. */
static void describe_branch(const cairn_site *site, struct cairn_site_description *description)
{
    enum cairn_site_state branch;
    const struct site_veneer *veneer;
    uint64_t bits, target, veneer_target = 0;
    do {
        bits = word_read_instruction(site);
        veneer = veneers_find(site, bits);
        if (veneer != NULL)
            veneer_target = atomic_load_explicit(veneer->code.slot, memory_order_acquire);
    } while (veneer != NULL && word_read_instruction(site) != bits);
    if (site->keeps_original && bits == site->initial.bits) {
        description->state = CAIRN_SITE_ORIGINAL;
        return;
    }
    if (!site->table->arch->decode_branch(site->table->arch, bits, word_instruction_address(site),
                                          site->instruction_length, &branch, &target))
        return;
    /* A jump over the space for an inline cache's code is this site's no-op. */
    if (site->has_inline_space && branch == CAIRN_SITE_JUMP &&
        target == site->address + site->byte_count && veneer == NULL) {
        description->state = CAIRN_SITE_NOP;
        return;
    }
    description->state = branch;
    description->uses_veneer = veneer != NULL;
    description->target = veneer != NULL ? veneer_target : target;
}

void cairn_site_describe(const cairn_site *site, struct cairn_site_description *description)
{
    const struct site_table *sites = site->table;
    enum site_form form = (enum site_form)atomic_load_explicit(&site->form, memory_order_acquire);
    bool is_shadow = site->kind == CAIRN_RECORD_STACKMAP && site->byte_count > 0;
    *description = (struct cairn_site_description){
        .id = site_id(site),
        .record = {sites->records, site->record},
        .kind = (enum cairn_record_kind)site->kind,
        .state = is_shadow ? CAIRN_SITE_ORIGINAL : CAIRN_SITE_UNMANAGED,
        .address = site->address,
        .byte_count = site->byte_count,
        .live = site->live,
        .instruction_address = site->live ? word_instruction_address(site) : 0,
        .return_address = site->return_offset == 0 ? 0 : site->address + site->return_offset,
        .reason = site->live ? "" : site->reason,
    };
    if (site->byte_count > 0 &&
        code_block_holds_code(sites->block, site->address, site->byte_count)) {
        description->original_bytes = sites->original_bytes + site->bytes_offset;
        description->bytes = (const uint8_t *)(uintptr_t)site->address;
    }
    if (site->live || form == SITE_FORM_BRANCH)
        describe_branch(site, description);
}

/* ---- Readers in other processes ---- */

void site_table_inspect(struct inspect_field *fields)
{
    fields[INSPECT_SITES_COUNT] = INSPECT_MEMBER(struct site_table, count);
    fields[INSPECT_SITES_ARRAY] = INSPECT_MEMBER(struct site_table, sites);
    fields[INSPECT_SITE_STRIDE] = INSPECT_CONSTANT(sizeof(struct cairn_site));
    fields[INSPECT_SITE_ADDRESS] = INSPECT_MEMBER(struct cairn_site, address);
    fields[INSPECT_SITE_BYTE_COUNT] = INSPECT_MEMBER(struct cairn_site, byte_count);
    fields[INSPECT_SITE_INSTRUCTION_OFFSET] = INSPECT_MEMBER(struct cairn_site, instruction_offset);
    fields[INSPECT_SITE_INSTRUCTION_LENGTH] = INSPECT_MEMBER(struct cairn_site, instruction_length);
    fields[INSPECT_SITE_WORD_SHIFT] = INSPECT_MEMBER(struct cairn_site, word_shift);
    fields[INSPECT_SITE_LIVE] = INSPECT_MEMBER(struct cairn_site, live);
    fields[INSPECT_SITE_KIND] = INSPECT_MEMBER(struct cairn_site, kind);
    fields[INSPECT_SITE_RECORD] = INSPECT_MEMBER(struct cairn_site, record);
    fields[INSPECT_SITE_KEEPS_ORIGINAL] = INSPECT_MEMBER(struct cairn_site, keeps_original);
    fields[INSPECT_SITE_HAS_INLINE_SPACE] = INSPECT_MEMBER(struct cairn_site, has_inline_space);
    fields[INSPECT_SITE_INITIAL_BITS] = INSPECT_MEMBER(struct cairn_site, initial.bits);
    fields[INSPECT_SITE_VENEERS] = INSPECT_MEMBER(struct cairn_site, veneers);
    fields[INSPECT_VENEER_NEXT] = INSPECT_MEMBER(struct site_veneer, next);
    fields[INSPECT_VENEER_BITS] = INSPECT_MEMBER(struct site_veneer, bits);
    fields[INSPECT_VENEER_SLOT] = INSPECT_MEMBER(struct site_veneer, code.slot);
}
