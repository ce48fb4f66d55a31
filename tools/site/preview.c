/* SPDX-License-Identifier: MIT */
#include "tools/site/preview.h"

#include "arch/arch.h"
#include "base/error.h"

#include <stdlib.h>
#include <string.h>

/* Upper bound for LLVM's call on any architecture, so that only no-ops follow these bytes. */
enum { CALL_BYTES_MAX = 64 };

/* Number of bytes that are examined if the size of a site is unknown. The limit is needed because
 * any number of records may be followed by the same no-ops. */
enum { LOOK_BYTES_MAX = 128 };

/* ---- Managed architectures ---- */

bool preview_manages(enum cairn_architecture architecture, enum cairn_byte_order byte_order,
                     struct cairn_error *error)
{
    const struct cairn_arch *arch = arch_find(architecture);
    const char *name = cairn_architecture_name(architecture);
    if (arch == NULL)
        error_set(error, CAIRN_ERROR_UNMANAGED, 0, "sites of %s are unmanaged", name);
    else if (arch->byte_order != byte_order)
        error_set(error, CAIRN_ERROR_UNMANAGED, 0, "sites of %s-endian %s are unmanaged",
                  byte_order == CAIRN_BIG_ENDIAN ? "big" : "little", name);
    else
        return true;
    return false;
}

/* Returns the size of LLVM's call and the no-ops that follow it. Recognition fails for sizes that
 * end inside the call or inside a no-op. */
static size_t find_call(const struct cairn_arch *arch, const struct preview_code *code)
{
    struct arch_patchpoint patchpoint;
    size_t step = arch->fixed_instruction_bytes == 0 ? 1 : arch->fixed_instruction_bytes;
    size_t end = code->limit < CALL_BYTES_MAX ? code->limit : CALL_BYTES_MAX;
    size_t found = 0;
    for (size_t size = step; size <= end; size += step)
        if (arch->recognise(arch, code->bytes, size, code->address, &patchpoint, NULL) ==
                CAIRN_OK &&
            patchpoint.has_call)
            found = size;
    if (found == 0)
        return 0;
    return found + arch->leading_nops(arch, code->bytes + found, code->limit - found);
}

uint32_t preview_find_patchpoint(const struct preview_code *all, struct cairn_error *error)
{
    struct preview_code some = *all;
    const struct preview_code *code = &some;
    if (some.limit > LOOK_BYTES_MAX)
        some.limit = LOOK_BYTES_MAX;
    if (!preview_manages(code->architecture, code->byte_order, error))
        return 0;
    const struct cairn_arch *arch = arch_find(code->architecture);
    struct arch_patchpoint patchpoint;
    size_t size = arch->leading_nops(arch, code->bytes, code->limit);
    if (size == 0)
        size = find_call(arch, code);
    if (size == 0 && code->limit == 0)
        error_set(error, CAIRN_ERROR_RANGE, code->address,
                  "another record begins, or the function ends, 0 bytes after its start");
    else if (size == 0)
        (void)!arch->recognise(arch, code->bytes, code->limit, code->address, &patchpoint, error);
    return size > UINT32_MAX ? UINT32_MAX : (uint32_t)size;
}

/* ---- Arming ---- */

static void refuse(struct preview *preview, enum cairn_site_state state)
{
    preview->site.live = false;
    preview->site.state = state;
    preview->site.reason = preview->error.message;
    preview->site.instruction_address = 0;
    preview->site.return_address = 0;
}

/* Writes the armed bytes, with the call that LLVM emitted unless it depends on addresses that are
 * unknown. */
static void arm(struct preview *preview, const struct preview_code *code, size_t size,
                const struct arch_patchpoint *patchpoint, const struct arch_placement *placement)
{
    const struct cairn_arch *arch = arch_find(code->architecture);
    struct cairn_site_description *site = &preview->site;
    size_t length = placement->return_offset - placement->instruction_offset;
    uint64_t bits;
    arch->arm(arch, preview->armed, size, patchpoint, placement);
    site->live = true;
    site->reason = "";
    site->state = CAIRN_SITE_NOP;
    site->instruction_address = code->address + placement->instruction_offset;
    site->return_address = code->address + placement->return_offset;
    if (!patchpoint->has_call)
        return;
    site->state = CAIRN_SITE_CALL;
    site->target = patchpoint->target;
    bool is_straight = patchpoint->is_direct || (code->is_linked && !arch->calls_need_veneer);
    site->uses_veneer = arch->calls_need_veneer && !patchpoint->is_direct;
    preview->lacks_call =
        !is_straight || !arch->encode_branch(arch, CAIRN_SITE_CALL, site->instruction_address,
                                             patchpoint->target, length, &bits);
    if (preview->lacks_call && is_straight)
        site->uses_veneer = true;
    for (size_t i = 0; !preview->lacks_call && i < length; i++) {
        size_t place = arch->byte_order == CAIRN_BIG_ENDIAN ? length - 1 - i : i;
        preview->armed[placement->instruction_offset + place] = (uint8_t)(bits >> (8 * i));
    }
}

static void preview_patchpoint(struct preview *preview, const struct preview_code *code)
{
    const struct cairn_arch *arch = arch_find(code->architecture);
    struct arch_patchpoint patchpoint;
    struct arch_placement placement;
    uint32_t size = preview->site.byte_count;
    enum cairn_status status =
        arch->recognise(arch, code->bytes, size, code->address, &patchpoint, &preview->error);
    if (status == CAIRN_OK)
        status = arch->place(arch, &patchpoint, size, code->address, &placement, &preview->error);
    if (status == CAIRN_OK)
        arm(preview, code, size, &patchpoint, &placement);
    else
        refuse(preview, CAIRN_SITE_UNMANAGED);
}

/* ---- Shadows ---- */

/* Whether the instruction is one of those of x86 that can be interrupted and resumed half-way,
 * because they keep their progress in registers. */
static bool may_stop_inside(const struct instruction *instruction)
{
    static const char *const names[] = {"movs", "stos", "lods", "scas", "cmps", "ins", "outs"};
    const char *text = instruction->text;
    if (strncmp(text, "rep", 3) == 0 || strstr(text, "gather") != NULL ||
        strstr(text, "scatter") != NULL || strstr(text, "tileload") != NULL)
        return true;
    size_t length = strcspn(text, " ");
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (length == strlen(names[i]) + 1 && strncmp(text, names[i], length - 1) == 0)
            return true;
    return false;
}

static bool fits_live(const struct cairn_arch *arch, const struct preview_code *code,
                      uint32_t byte_count, size_t *length)
{
    struct instruction instruction;
    size_t longest =
        arch->instruction_bytes_max > 0 ? arch->instruction_bytes_max : arch->instruction_bytes;
    if (code->disassembler == NULL || !disassembler_next(code->disassembler, code->bytes,
                                                         byte_count, code->address, &instruction))
        return false;
    *length = instruction.length;
    bool is_word = arch->fixed_instruction_bytes != 0;
    return *length >= arch->instruction_bytes && *length <= longest &&
           code->address % arch->word_bytes + *length <= arch->word_bytes &&
           arch->may_be_exchanged(arch, code->bytes, *length) &&
           (is_word || !may_stop_inside(&instruction));
}

static void refuse_shadow(struct preview *preview, const struct cairn_arch *arch, size_t limit)
{
    if (limit < arch->instruction_bytes)
        error_set(&preview->error, CAIRN_ERROR_RANGE, preview->site.address,
                  "a branch takes %zu bytes, and the shadow has %zu before the next record or the "
                  "function's or its own end",
                  arch->instruction_bytes, limit);
    else if (arch->fixed_instruction_bytes != 0)
        error_set(&preview->error, CAIRN_ERROR_UNMANAGED, preview->site.address,
                  "the shadow does not begin with an instruction that the architecture lets change "
                  "while threads execute it (a branch or a no-op): CAIRN_QUIESCENT only; a patch "
                  "point with a null target can be patched live");
    else
        error_set(&preview->error, CAIRN_ERROR_UNMANAGED, preview->site.address,
                  "the shadow does not begin with an instruction that a branch can replace while "
                  "threads run (%zu to %zu bytes in one aligned word, never interrupted half-way): "
                  "CAIRN_QUIESCENT only; a patch point with a null target can be patched live",
                  arch->instruction_bytes, arch->instruction_bytes_max);
    refuse(preview, CAIRN_SITE_ORIGINAL);
}

static void preview_shadow(struct preview *preview, const struct preview_code *code)
{
    const struct cairn_arch *arch = arch_find(code->architecture);
    const struct arch_patchpoint no_target = {.has_call = false};
    struct arch_placement placement;
    uint32_t byte_count = preview->site.byte_count;
    size_t limit = code->limit < byte_count ? code->limit : byte_count;
    size_t nops = arch->leading_nops(arch, code->bytes, limit);
    size_t length = 0;
    if (arch->place(arch, &no_target, nops, code->address, &placement, NULL) == CAIRN_OK) {
        arm(preview, code, nops, &no_target, &placement);
        return;
    }
    if (!fits_live(arch, code, (uint32_t)limit, &length)) {
        refuse_shadow(preview, arch, limit);
        return;
    }
    preview->site.live = true;
    preview->site.state = CAIRN_SITE_ORIGINAL;
    preview->site.instruction_address = code->address;
    preview->site.return_address = code->address + length;
}

/* ---- Statepoints ---- */

static void preview_statepoint(struct preview *preview, const struct preview_code *code)
{
    const struct cairn_arch *arch = arch_find(code->architecture);
    const struct arch_patchpoint no_target = {.has_call = false};
    struct arch_placement placement;
    size_t size = preview->site.byte_count;
    size_t length = arch->instruction_bytes;
    bool is_nops = arch->leading_nops(arch, code->bytes, size) == size;
    size_t offset = size < length ? 0 : size - length;
    if (size < length) {
        error_set(&preview->error, CAIRN_ERROR_RANGE, code->address,
                  "a call takes %zu bytes, and %zu are reserved", length, size);
        refuse(preview, CAIRN_SITE_UNMANAGED);
    } else if (is_nops && arch->place(arch, &no_target, length, code->address + offset, &placement,
                                      NULL) == CAIRN_OK) {
        placement.instruction_offset += offset;
        placement.return_offset += offset;
        arm(preview, code, size, &no_target, &placement);
    } else {
        error_set(&preview->error, CAIRN_ERROR_UNMANAGED, code->address,
                  "the statepoint's call has to return to the end of its bytes, and the last %zu "
                  "of them are not no-ops within one aligned word: CAIRN_QUIESCENT only",
                  length);
        refuse(preview, CAIRN_SITE_UNMANAGED);
    }
}

/* ---- All sites ---- */

bool preview_site(struct preview *preview, const struct preview_code *code,
                  enum cairn_record_kind kind, uint32_t byte_count)
{
    preview->site = (struct cairn_site_description){.state = CAIRN_SITE_UNMANAGED,
                                                    .kind = kind,
                                                    .address = code->address,
                                                    .byte_count = byte_count,
                                                    .reason = ""};
    preview->lacks_call = false;
    if (byte_count <= code->size) {
        uint8_t *armed = realloc(preview->armed, (size_t)byte_count + 1);
        if (armed == NULL)
            return false;
        preview->armed = armed;
        memcpy(armed, code->bytes, byte_count);
        preview->site.bytes = armed;
        preview->site.original_bytes = code->bytes;
    }
    if (!preview_manages(code->architecture, code->byte_order, &preview->error)) {
        refuse(preview, CAIRN_SITE_UNMANAGED);
    } else if (byte_count > code->limit && kind != CAIRN_RECORD_STACKMAP) {
        /* Only shadows may be longer than the bytes that may be written. */
        error_set(&preview->error, CAIRN_ERROR_RANGE, code->address,
                  "another record begins, or the function ends, %zu byte%s after its start",
                  code->limit, code->limit == 1 ? "" : "s");
        refuse(preview, CAIRN_SITE_UNMANAGED);
    } else if (kind == CAIRN_RECORD_STACKMAP) {
        preview_shadow(preview, code);
    } else if (kind == CAIRN_RECORD_STATEPOINT) {
        preview_statepoint(preview, code);
    } else {
        preview_patchpoint(preview, code);
    }
    return true;
}

void preview_release(struct preview *preview)
{
    free(preview->armed);
    *preview = (struct preview){0};
}
