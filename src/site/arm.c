/*
 * Arms sites before their module is published: rewrites each site into a form that can be patched
 * while threads execute it. Leaves other sites as LLVM emitted them, and keeps the reason.
 *
 * SPDX-License-Identifier: MIT
 */
#include "site/arm.h"

#include "base/error.h"
#include "code/write_key.h"
#include "site/boundaries.h"
#include "site/plan.h"

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
    site->reason = memory_copy_string(&site->table->allocator, text, strlen(text));
    return site->reason != NULL
               ? CAIRN_OK
               : error_set(error, CAIRN_ERROR_MEMORY, 0, "no memory for a site's reason");
}

/* ---- Common parts ---- */

static const uint8_t *region_of(const cairn_site *site)
{
    return (const uint8_t *)(uintptr_t)site->address;
}

static void set_instruction(cairn_site *site, size_t offset, size_t replaced_bytes)
{
    size_t length = site->table->arch->instruction_bytes;
    site->instruction_offset = (uint32_t)offset;
    site->instruction_length = (uint8_t)length;
    site->return_offset = (uint32_t)(offset + length);
    site->replaced_bytes = (uint32_t)replaced_bytes;
}

static enum cairn_status refuse_crossed(cairn_site *site, struct cairn_error *error)
{
    return site_refuse(site, error,
                       "another record begins, or the function ends, %u byte%s after its start",
                       site->limit, site->limit == 1 ? "" : "s");
}

/* Rewrites `size` bytes to no-ops and the initial branch. The code is still writable, so only the
 * veneer can fail. In that case nothing is written. */
static enum cairn_status arm(cairn_site *site, const struct arch_patchpoint *patchpoint,
                             const struct arch_placement *placement, size_t size,
                             struct cairn_error *error)
{
    const struct cairn_arch *arch = site->table->arch;
    set_instruction(site, placement->instruction_offset, size);
    enum cairn_site_state branch = patchpoint->has_call ? CAIRN_SITE_CALL : CAIRN_SITE_NOP;
    struct change change = plan_branch(site, branch, patchpoint->target);
    change.is_direct = patchpoint->is_direct;
    site->saves_toc = true;
    struct cairn_error reason;
    enum cairn_status status = plan_change(&change, &reason);
    if (status == CAIRN_ERROR_FULL || status == CAIRN_ERROR_RANGE) {
        /* Only this site's veneer failed, so the other sites can still be armed. LLVM's call
         * remains, and a branch may replace it that has the same return address. */
        site->saves_toc =
            arch->toc_save_offset != 0 && placement->return_offset == patchpoint->return_offset;
        set_instruction(site, patchpoint->return_offset - arch->instruction_bytes, size);
        return site_refuse(site, error, "%s", reason.message);
    }
    if (status != CAIRN_OK) {
        if (error != NULL)
            *error = reason;
        return status;
    }
    plan_write_slot(&change);
    uint8_t *region = code_block_load_address(site->table->block, site->address);
    int rights = write_key_open(site->table->write_key);
    arch->arm(arch, region, size, patchpoint, placement);
    word_put_bits(site, change.bits, region + site->instruction_offset);
    write_key_close(site->table->write_key, rights);
    plan_release(&change);
    site->live = true;
    site->initial_branch = (uint8_t)branch;
    site->initial_direct = patchpoint->is_direct;
    site->initial.target = patchpoint->target;
    return CAIRN_OK;
}

static const struct arch_patchpoint no_target = {.has_call = false};

/* ---- Patch points ---- */

/* Whether functions that the site calls find their arguments in place, so that the code of an
 * inline cache may call them. Source: llvm/IR/CallingConv.h. */
static bool is_called_as_c(uint32_t convention) { return convention == 0 || convention == 8; }

/* Notes whether an inline cache may write the bytes after the word, and moves the word for that. A
 * cache needs a receiver. Where a call needs the TOC's reload after it, the bytes have no space. */
static void arrange_inline(cairn_site *site, const struct cairn_declaration *declaration,
                           const struct arch_patchpoint *patchpoint,
                           struct arch_placement *placement)
{
    const struct cairn_arch *arch = site->table->arch;
    struct arch_placement moved = *placement;
    if (patchpoint->has_call || declaration->argument_count == 0 || arch->inline_bytes_min == 0 ||
        (arch->toc_save_offset != 0 && is_called_as_c(declaration->calling_convention)))
        return;
    if (arch->place_inline != NULL)
        arch->place_inline(arch, site->address, &moved);
    if (moved.return_offset + arch->inline_bytes_min > site->byte_count ||
        site->byte_count - moved.return_offset > ARCH_CACHE_INLINE_BYTES_MAX)
        return;
    *placement = moved;
    site->has_inline_space = true;
    site->table->inline_count++;
}

enum cairn_status arm_patchpoint(cairn_site *site, const struct cairn_declaration *declaration,
                                 struct cairn_error *error)
{
    const struct cairn_arch *arch = site->table->arch;
    const uint32_t size = site->byte_count;
    struct arch_patchpoint patchpoint;
    struct arch_placement placement;
    struct cairn_error reason;
    if (site->limit < size)
        return refuse_crossed(site, error);
    enum cairn_status status =
        arch->recognise(arch, region_of(site), size, site->address, &patchpoint, &reason);
    if (status == CAIRN_OK)
        status = arch->place(arch, &patchpoint, size, site->address, &placement, &reason);
    if (status == CAIRN_OK) {
        arrange_inline(site, declaration, &patchpoint, &placement);
        return arm(site, &patchpoint, &placement, size, error);
    }
    /* A branch may replace all bytes under quiescence. It gets the instructions that a call needs
     * around it if there is space for them. Otherwise it is at the start. */
    if (size >= arch->instruction_bytes) {
        placement = (struct arch_placement){0};
        site->saves_toc =
            arch->toc_save_offset != 0 &&
            arch->place(arch, &no_target, size, site->address, &placement, NULL) == CAIRN_OK;
        set_instruction(site, placement.instruction_offset, size);
    }
    return site_refuse(site, error, "%s", reason.message);
}

/* ---- Stack map shadows ---- */

/* Prepares a shadow that is not live for a quiescent branch, where one fits. */
static enum cairn_status refuse_shadow(cairn_site *site, struct cairn_error *error)
{
    enum { INSTRUCTION_BYTES_MAX = 15 };
    const struct cairn_arch *arch = site->table->arch;
    size_t length = arch->instruction_bytes;
    if (site->limit < length)
        return site_refuse(site, error,
                           "a branch takes %zu bytes, and the shadow has %u before the next record "
                           "or the function's or its own end",
                           length, site->limit);
    /* The last instruction may end after the shadow, within the code. */
    size_t readable = site->limit;
    while (readable < site->limit + INSTRUCTION_BYTES_MAX &&
           code_block_holds_code(site->table->block, site->address, readable + 1))
        readable++;
    size_t boundary = boundaries_next(arch, region_of(site), readable, length);
    if (boundary == 0)
        return site_refuse(site, error, "the shadow's instructions cannot be decoded");
    set_instruction(site, 0, boundary);
    if (arch->fixed_instruction_bytes != 0)
        return site_refuse(site, error,
                           "the shadow does not begin with an instruction that the architecture "
                           "lets change while threads execute it (a branch or a no-op): "
                           "CAIRN_QUIESCENT only; a patch point with a null target can be patched "
                           "live");
    return site_refuse(site, error,
                       "the shadow does not begin with an instruction that a branch can replace "
                       "while threads run (%zu to %zu bytes in one aligned word, never interrupted "
                       "half-way): CAIRN_QUIESCENT only; a patch point with a null target can be "
                       "patched live",
                       length, arch->instruction_bytes_max);
}

/* A shadow that begins with enough no-ops is armed like a patch point without a target. Otherwise
 * its first instruction must be one that a branch can replace while threads execute it: it lies in
 * one word, has a length that a branch can have, and the architecture lets it change while it is
 * executed. A thread that was interrupted inside the instruction must not resume at the branch. */
enum cairn_status arm_shadow(cairn_site *site, struct cairn_error *error)
{
    const struct cairn_arch *arch = site->table->arch;
    struct arch_placement placement;
    size_t size = arch->leading_nops(arch, region_of(site), site->limit);
    if (arch->place(arch, &no_target, size, site->address, &placement, NULL) == CAIRN_OK)
        return arm(site, &no_target, &placement, size, error);
    size_t length = boundaries_instruction_length(arch, region_of(site), site->limit);
    size_t longest = arch->instruction_bytes_max;
    if (longest == 0)
        longest = arch->instruction_bytes;
    if (length < arch->instruction_bytes || length > longest ||
        site->address % arch->word_bytes + length > arch->word_bytes ||
        !arch->may_be_exchanged(arch, region_of(site), length) ||
        boundaries_may_stop_inside(arch, region_of(site), length))
        return refuse_shadow(site, error);
    set_instruction(site, 0, length);
    site->instruction_length = (uint8_t)length;
    site->return_offset = (uint32_t)length;
    site->live = true;
    site->keeps_original = true;
    return CAIRN_OK;
}

/* ---- Statepoints ---- */

/* The call must end at the end of the region. Whether it fits there depends on how LLVM has aligned
 * the code. */
enum cairn_status arm_statepoint(cairn_site *site, struct cairn_error *error)
{
    const struct cairn_arch *arch = site->table->arch;
    const uint32_t size = site->byte_count;
    size_t length = arch->instruction_bytes;
    size_t offset = size - length;
    struct arch_placement placement;
    if (site->limit < size)
        return refuse_crossed(site, error);
    if (size >= length)
        set_instruction(site, offset, size);
    if (size < arch->call_bytes)
        return site_refuse(site, error, "a call takes %zu bytes, and %u are reserved",
                           arch->call_bytes, size);
    if (arch->toc_save_offset != 0)
        return site_refuse(site, error,
                           "the statepoint's call has to return to the end of its bytes, and of "
                           "the %zu bytes that a call takes the last are the TOC's reload after "
                           "it: CAIRN_QUIESCENT only, for a jump or a no-op",
                           arch->call_bytes);
    if (arch->leading_nops(arch, region_of(site), size) != size ||
        arch->place(arch, &no_target, length, site->address + offset, &placement, NULL) != CAIRN_OK)
        return site_refuse(site, error,
                           "the statepoint's call has to return to the end of its bytes, and the "
                           "last %zu of them are not no-ops within one aligned word: "
                           "CAIRN_QUIESCENT only",
                           length);
    placement.instruction_offset += offset;
    placement.return_offset += offset;
    return arm(site, &no_target, &placement, size, error);
}

/* ---- Patch words ---- */

static bool reaches_into_word(const cairn_site *other, const cairn_site *site)
{
    uint64_t begin = word_address(site);
    uint64_t end = begin + site->table->arch->word_bytes;
    return other->address < end && begin < other->address + other->limit;
}

void arm_note_neighbours(cairn_site *lower, cairn_site *upper)
{
    if (lower->live && reaches_into_word(upper, lower))
        lower->shares_word = true;
    if (upper->live && reaches_into_word(lower, upper))
        upper->shares_word = true;
}

void arm_bind(cairn_site *site)
{
    if (!site->live)
        return;
    site->word = word_address(site) + site->table->alias_distance;
    site->word_shift = (uint8_t)(8 * (word_instruction_address(site) - word_address(site)));
    uint64_t word = word_read(site);
    site->word_base = word & ~word_instruction_mask(site);
    atomic_init(&site->noted_bits, word_instruction_bits(site, word));
    if (site->keeps_original)
        site->initial.bits = word_instruction_bits(site, word);
}
