/* SPDX-License-Identifier: MIT */
#include "tools/lookup_tables.h"

#include "arch/arch.h"

#include <stdlib.h>

bool facts_has_metadata(const struct facts *facts)
{
    return facts->blocks != NULL || facts->records != NULL || facts->faults != NULL ||
           facts->entries != NULL || facts->sanmd.section_count > 0;
}

/* ---- Records ---- */

/* Returns the first of the records from `low` to `high` whose address is `address` or higher. */
static uint32_t first_record(const struct facts *facts, uint32_t low, uint32_t high,
                             uint64_t address)
{
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (cairn_record_address((struct cairn_record){facts->records, middle}) < address)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

uint32_t facts_find_records(const struct facts *facts, uint64_t address, struct cairn_record *first)
{
    if (facts->records == NULL || !cairn_table_find_address(facts->records, address, first))
        return 0;
    uint32_t count = cairn_table_record_count(facts->records);
    uint32_t end =
        address == UINT64_MAX ? count : first_record(facts, first->index + 1, count, address + 1);
    return end - first->index;
}

/* Whether the code at `address` is LLVM's code for a patch point whose call returns `distance`
 * bytes after it. The call may be followed by instructions that belong to it, such as the load of a
 * TOC pointer. */
static bool is_call(const struct facts *facts, uint64_t address, size_t distance)
{
    enum { FOLLOWING_MAX = 8 };
    const struct cairn_arch *arch = arch_find(cairn_object_architecture(facts->input->object));
    struct place place = layout_place(&facts->layout, address);
    struct cairn_object_code code;
    struct arch_patchpoint found;
    if (arch == NULL || arch->recognise == NULL)
        return false;
    if (cairn_object_code(facts->input->object, place.section == NULL ? 0 : place.section->index,
                          place.address, &code, NULL) != CAIRN_OK)
        return false;
    for (size_t size = distance; size <= distance + FOLLOWING_MAX && size <= code.size; size++)
        if (arch->recognise(arch, code.bytes, size, code.address, &found, NULL) == CAIRN_OK &&
            found.has_call && found.return_offset == distance)
            return true;
    return false;
}

bool facts_find_call(const struct facts *facts, uint64_t address, struct cairn_record *record)
{
    enum { CALL_BYTES_MAX = 64 };
    struct cairn_function function;
    if (facts->records == NULL || address == 0 ||
        !cairn_table_find_function(facts->records, address - 1, &function))
        return false;
    uint32_t next = first_record(facts, function.first_record,
                                 function.first_record + function.record_count, address);
    if (next == function.first_record)
        return false;
    *record = (struct cairn_record){facts->records, next - 1};
    uint64_t distance = address - cairn_record_address(*record);
    return distance <= CALL_BYTES_MAX &&
           is_call(facts, cairn_record_address(*record), (size_t)distance);
}

bool facts_find_frame(const struct facts *facts, uint64_t address,
                      const struct cairn_object_function *function, uint64_t *stack_size)
{
    struct cairn_function found;
    if (facts->records == NULL || !cairn_table_find_function(facts->records, address, &found))
        return false;
    *stack_size = found.stack_size;
    if (function != NULL)
        return layout_address(&facts->layout, function->section, function->entry) == found.address;
    /* Without symbols the end of the function is unknown, but it is after the last record. */
    if (found.record_count == 0)
        return address == found.address;
    struct cairn_record last = {facts->records, found.first_record + found.record_count - 1};
    return address <= cairn_record_address(last);
}

/* ---- Faults ---- */

/* Returns the number of the first fault, in the order of handlers, whose handler is at `address` or
 * higher. */
static uint32_t first_handled(const struct facts *facts, uint64_t address)
{
    uint32_t low = 0;
    uint32_t high = cairn_fault_table_count(facts->faults);
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (facts_handled(facts, middle).handler_address < address)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

uint32_t facts_find_handled(const struct facts *facts, uint64_t address, uint32_t *number)
{
    *number = first_handled(facts, address);
    uint32_t end = address == UINT64_MAX ? cairn_fault_table_count(facts->faults)
                                         : first_handled(facts, address + 1);
    return end - *number;
}

struct cairn_fault_entry facts_handled(const struct facts *facts, uint32_t number)
{
    struct cairn_fault_entry fault = {0};
    (void)cairn_fault_table_entry(facts->faults, facts->handlers[number], &fault);
    return fault;
}

/* ---- Sanitizer metadata ---- */

const struct cairn_sanmd_covered *facts_find_covered(const struct facts *facts, uint64_t address,
                                                     uint64_t *function)
{
    const struct sanmd_function *functions = facts->sanmd.functions.items;
    size_t low = 0;
    size_t high = facts->sanmd.functions.count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (functions[middle].place.address <= address)
            low = middle + 1;
        else
            high = middle;
    }
    if (low == 0 || address - functions[low - 1].place.address >= functions[low - 1].covered.size)
        return NULL;
    *function = functions[low - 1].place.address;
    return &functions[low - 1].covered;
}

bool facts_is_atomic(const struct facts *facts, uint64_t address)
{
    const struct sanmd_place place = {0, address};
    return facts->sanmd.atomics.count > 0 &&
           bsearch(&place, facts->sanmd.atomics.items, facts->sanmd.atomics.count, sizeof place,
                   sanmd_compare_places) != NULL;
}
