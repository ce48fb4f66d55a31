/*
 * Arming: before its module is published, a site is rewritten into the form in which it can be
 * patched live; what cannot be is left as LLVM made it, with the reason.
 *
 * SPDX-License-Identifier: MIT
 */
#include "patch/arm.h"

#include "base/error.h"
#include "patch/boundaries.h"
#include "patch/plan.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* ---- Reasons ---- */

enum cairn_status site_refuse(cairn_site *site, struct cairn_error *error, const char *format, ...)
{
    char text[CAIRN_ERROR_MESSAGE_SIZE];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    site->reason = memory_new(&site->table->allocator, strlen(text) + 1, 1);
    if (site->reason == NULL)
        return error_set(error, CAIRN_ERROR_MEMORY, 0, "no memory for a site's reason");
    strcpy(site->reason, text);
    return CAIRN_OK;
}

/* ---- Common parts ---- */

static uint8_t *region_of(const cairn_site *site) { return (uint8_t *)(uintptr_t)site->address; }

static void set_instruction(cairn_site *site, size_t offset, size_t length)
{
    site->instruction_offset = (uint32_t)offset;
    site->instruction_length = (uint8_t)length;
    site->return_offset = (uint8_t)(offset + length);
}

/* The branch that a site begins with. The code is still writable, so only its veneer can fail. */
static enum cairn_status set_initial(cairn_site *site, enum arch_branch branch, uint64_t target,
                                     struct cairn_error *error)
{
    struct change change;
    enum cairn_status status = plan_branch(site, branch, target, &change, error);
    if (status != CAIRN_OK)
        return status;
    site->live = true;
    site->initial_branch = (uint8_t)branch;
    site->initial_target = target;
    site->initial_bits = change.bits;
    return CAIRN_OK;
}

/* ---- Patch points ---- */

/* A branch of a site that is not live goes to the front, and takes the place of all its bytes. */
static void allow_quiescent_branch(cairn_site *site)
{
    size_t length = site->table->arch->instruction_bytes;
    if (site->limit < site->byte_count || site->byte_count < length)
        return;
    site->instruction_length = (uint8_t)length;
    site->replaced_bytes = site->byte_count;
}

static enum cairn_status refuse_patchpoint(cairn_site *site, const struct cairn_error *reason,
                                           struct cairn_error *error)
{
    allow_quiescent_branch(site);
    return site_refuse(site, error, "%s", reason->message);
}

enum cairn_status arm_patchpoint(cairn_site *site, struct cairn_error *error)
{
    const struct cairn_arch *arch = site->table->arch;
    struct arch_patchpoint patchpoint;
    struct arch_placement placement;
    struct cairn_error reason;
    if (site->limit < site->byte_count)
        return site_refuse(site, error, "another record's address lies %u bytes behind its start",
                           site->limit);
    if (arch->recognise(region_of(site), site->byte_count, site->address, &patchpoint, &reason) !=
        CAIRN_OK)
        return refuse_patchpoint(site, &reason, error);
    site->return_offset = (uint8_t)patchpoint.return_offset;
    if (arch->place(&patchpoint, site->byte_count, site->address, &placement, &reason) != CAIRN_OK)
        return refuse_patchpoint(site, &reason, error);

    set_instruction(site, placement.instruction_offset,
                    placement.return_offset - placement.instruction_offset);
    site->replaced_bytes = site->byte_count;
    enum cairn_status status = set_initial(
        site, patchpoint.has_call ? ARCH_BRANCH_CALL : ARCH_BRANCH_NOP, patchpoint.target, error);
    if (status != CAIRN_OK)
        return status;
    arch->arm(region_of(site), site->byte_count, &patchpoint, &placement);
    return CAIRN_OK;
}

/* ---- Stack map shadows ---- */

/* A shadow that begins with no-ops is like a patch point without a target. */
static bool arm_leading_nops(cairn_site *site, struct cairn_error *error, enum cairn_status *status)
{
    const struct cairn_arch *arch = site->table->arch;
    const struct arch_patchpoint no_target = {.has_call = false};
    struct arch_placement placement;
    size_t nops = arch->leading_nops(region_of(site), site->limit);
    if (nops == 0 || arch->place(&no_target, nops, site->address, &placement, NULL) != CAIRN_OK)
        return false;
    set_instruction(site, placement.instruction_offset,
                    placement.return_offset - placement.instruction_offset);
    site->replaced_bytes = (uint32_t)nops;
    *status = set_initial(site, ARCH_BRANCH_NOP, 0, error);
    if (*status == CAIRN_OK)
        arch->arm(region_of(site), nops, &no_target, &placement);
    return true;
}

/* One instruction, in one word, and as long as a branch can be made: the branch takes its place,
 * with the same boundaries. */
static bool fits_live(const cairn_site *site, size_t length)
{
    const struct cairn_arch *arch = site->table->arch;
    size_t longest =
        arch->instruction_bytes_max > 0 ? arch->instruction_bytes_max : arch->instruction_bytes;
    return length >= arch->instruction_bytes && length <= longest && length <= site->limit &&
           site->address % arch->word_bytes + length <= arch->word_bytes;
}

static void keep_original(cairn_site *site, size_t length)
{
    set_instruction(site, 0, length);
    site->replaced_bytes = (uint32_t)length;
    site->live = true;
    site->keeps_original = true;
}

static enum cairn_status refuse_shadow(cairn_site *site, struct cairn_error *error)
{
    const struct cairn_arch *arch = site->table->arch;
    size_t length = arch->instruction_bytes;
    if (site->limit < length)
        return site_refuse(site, error,
                           "a branch takes %zu bytes, and the shadow has %u before the next record "
                           "or its end",
                           length, site->limit);
    /* The last instruction may go on beyond the shadow: at most 15 bytes, within the code. */
    size_t readable = site->limit;
    while (readable < site->limit + 15 &&
           code_block_holds_code(site->table->block, site->address, readable + 1))
        readable++;
    size_t boundary = boundaries_next(arch, region_of(site), readable, length);
    if (boundary == 0)
        return site_refuse(site, error, "the shadow's instructions cannot be decoded");
    set_instruction(site, 0, length);
    site->replaced_bytes = (uint32_t)boundary;
    return site_refuse(site, error,
                       "the shadow holds more than one instruction where a branch has to go: it "
                       "can be patched with CAIRN_QUIESCENT only; a patch point with a null target "
                       "can be patched live");
}

enum cairn_status arm_shadow(cairn_site *site, struct cairn_error *error)
{
    enum cairn_status status;
    if (arm_leading_nops(site, error, &status))
        return status;
    size_t length = boundaries_instruction_length(site->table->arch, region_of(site), site->limit);
    if (!fits_live(site, length))
        return refuse_shadow(site, error);
    keep_original(site, length);
    return CAIRN_OK;
}

/* ---- Statepoints ---- */

enum cairn_status arm_statepoint(cairn_site *site, struct cairn_error *error)
{
    size_t length = site->table->arch->instruction_bytes;
    if (site->limit == site->byte_count && site->byte_count >= length) {
        set_instruction(site, site->byte_count - length, length);
        site->replaced_bytes = site->byte_count;
    }
    return site_refuse(site, error,
                       "a statepoint's call has to return to its record's address, at the end of "
                       "its bytes, where no aligned word need be: CAIRN_QUIESCENT only");
}

/* ---- Patch words ---- */

static bool intersects(const cairn_site *site, uint64_t begin, uint64_t end)
{
    return site->byte_count > 0 && site->address < end && begin < site->address + site->byte_count;
}

/* Regions do not overlap, so only the nearest ones can reach into a word. */
static bool shares_word(const struct site_table *sites, uint32_t index)
{
    uint64_t begin = site_word_address(&sites->sites[index]);
    uint64_t end = begin + sites->arch->word_bytes;
    for (uint32_t i = index;
         i-- > 0 && sites->sites[i].address + 2 * sites->arch->word_bytes >= begin;)
        if (intersects(&sites->sites[i], begin, end))
            return true;
    if (index > 0 && intersects(&sites->sites[index - 1], begin, end))
        return true;
    for (uint32_t i = index + 1; i < sites->count && sites->sites[i].address < end; i++)
        if (intersects(&sites->sites[i], begin, end))
            return true;
    return false;
}

void arm_bind(struct site_table *sites, uint32_t index)
{
    cairn_site *site = &sites->sites[index];
    if (!site->live)
        return;
    uint64_t word_address = site_word_address(site);
    site->word_shift = plan_word_shift(site);
    site->alias = code_block_writable_alias(sites->block, word_address);
    site->shares_word = shares_word(sites, index);
    uint64_t word = plan_read_word(site);
    uint64_t mask = plan_instruction_mask(site);
    site->word_base = word & ~mask;
    if (site->keeps_original) {
        site->initial_bits = (word & mask) >> site->word_shift;
        return;
    }
    word = site->word_base | site->initial_bits << site->word_shift;
    memcpy((void *)(uintptr_t)word_address, &word, sites->arch->word_bytes);
}
