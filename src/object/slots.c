/*
 * Slots and stubs.
 *
 * Branches on PPC64. A function of ELFv2 has two entries. Callers with the same TOC pointer use the
 * local entry, which is `object_local_entry` bytes past the other one. Callers with another TOC
 * pointer, or with none, pass the address of the global entry in r12, as a stub does. A stub saves
 * the caller's TOC pointer, and the no-op after the call becomes an instruction that reloads it.
 * With ELFv1, a function's symbol is that of its descriptor, whose first word is the address of the
 * code.
 *
 * SPDX-License-Identifier: MIT
 */
#include "object/slots.h"

#include "base/error.h"

/* Three bits of st_other tell where an ELFv2 function's local entry is. Source: ELFv2, "Symbol
 * Values". */
enum { ENTRY_SHIFT = 5 };

uint64_t object_local_entry(const struct object_symbol *symbol)
{
    /* Values 0 and 1 of the field mean that the function has one entry. */
    unsigned field = symbol->other >> ENTRY_SHIFT;
    return field < 2 ? 0 : UINT64_C(1) << field;
}

/* Whether an ELFv2 function changes the TOC pointer, and needs none. */
static bool ignores_toc(const struct object_symbol *symbol)
{
    return symbol->other >> ENTRY_SHIFT == 1;
}

bool object_may_need_stub(const struct object_link *link, const struct object_symbol *symbol,
                          enum object_need branch)
{
    if (symbol->image == NULL && symbol->definition == OBJECT_UNDEFINED)
        return symbol->name != NULL && !link->relocations->missing_is_next;
    if (symbol->image == NULL || symbol->section == ELF_ABSOLUTE)
        return true;
    if (link->arch->architecture != CAIRN_ARCHITECTURE_PPC64_ELFV2)
        return false;
    return branch == OBJECT_NEEDS_BRANCH_NO_TOC ? object_local_entry(symbol) != 0
                                                : ignores_toc(symbol);
}

static bool needs_stub(const struct object_link *link, const struct object_symbol *symbol)
{
    return ((symbol->needs & OBJECT_NEEDS_BRANCH) != 0 &&
            object_may_need_stub(link, symbol, OBJECT_NEEDS_BRANCH)) ||
           ((symbol->needs & OBJECT_NEEDS_BRANCH_NO_TOC) != 0 &&
            object_may_need_stub(link, symbol, OBJECT_NEEDS_BRANCH_NO_TOC));
}

void object_count_slots(struct object_link *link)
{
    for (size_t i = 0; i < link->symbol_count; i++) {
        struct object_symbol *symbol = &link->symbols[i];
        if (symbol->needs == 0)
            continue;
        if (needs_stub(link, symbol))
            symbol->stub = ++link->stub_count;
        if (symbol->stub != 0 || (symbol->needs & OBJECT_NEEDS_SLOT) != 0)
            symbol->slot = ++link->slot_count;
    }
    /* The base of the table must be near the code even if there is nothing in the table. */
    if (link->uses_table && link->slot_count == 0)
        link->symbols[0].slot = ++link->slot_count;
}

static enum cairn_status write_stub(const struct object_link *link,
                                    const struct object_symbol *symbol, uint64_t slot,
                                    struct cairn_error *error)
{
    uint64_t stub = (symbol->stub - 1) * (uint64_t)link->arch->veneer_bytes;
    if (link->arch->encode_veneer(link->arch, link->stubs.address + stub, slot,
                                  link->stubs.bytes + stub))
        return CAIRN_OK;
    return error_set(error, CAIRN_ERROR_RANGE, link->stubs.address + stub,
                     "the slot of symbol '%.80s' is out of reach of its stub", symbol->name);
}

enum cairn_status object_write_slots(const struct object_link *link, struct cairn_error *error)
{
    enum cairn_status status = CAIRN_OK;
    for (size_t i = 0; i < link->symbol_count && status == CAIRN_OK; i++) {
        const struct object_symbol *symbol = &link->symbols[i];
        if (symbol->slot == 0)
            continue;
        uint64_t slot = (uint64_t)(symbol->slot - 1) * OBJECT_SLOT_BYTES;
        for (unsigned byte = 0; byte < OBJECT_SLOT_BYTES; byte++) {
            bool is_little = link->arch->byte_order == CAIRN_LITTLE_ENDIAN;
            unsigned shift = is_little ? byte : OBJECT_SLOT_BYTES - 1 - byte;
            link->slots.bytes[slot + byte] = (uint8_t)(symbol->address >> 8 * shift);
        }
        if (symbol->stub != 0)
            status = write_stub(link, symbol, link->slots.address + slot, error);
    }
    return status;
}
