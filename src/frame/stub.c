/*
 * Leaving code of Cairn's own that has no unwind rules.
 *
 * All of this code is entered like a function and ends with a jump, with these exceptions, which
 * are recognised by encoding them again and comparing:
 *  - The exits of x86-64 push a word before they jump.
 *  - A framed veneer has a call frame.
 *  - A veneer of a site that jumps is entered from the site's function, which has not called. The
 *    second word of its slot is the address of the site's instruction (code/space.h).
 * The code does not change callee-saved registers, except that with function descriptors it loads
 * the TOC pointer of the function that it enters.
 *
 * Veneers and exits are within a page, so no other page is read to find the start of one.
 *
 * SPDX-License-Identifier: MIT
 */
#include "frame/stub.h"

#include "arch/arch.h"
#include "frame/step.h"
#include "runtime/runtime.h"
#include "unwind/rules.h"

#include <string.h>

/* ---- Recognising code ---- */

static const uint8_t *code_at(uint64_t address) { return (const uint8_t *)(uintptr_t)address; }

static bool holds_veneer(uint64_t start, bool is_framed, uint64_t *slot)
{
    const struct cairn_arch *arch = arch_host();
    uint8_t expected[ARCH_VENEER_BYTES_MAX];
    *slot = arch->veneer_slot(arch, start, is_framed, code_at(start));
    if (*slot % sizeof *slot != 0)
        return false;
    if (is_framed)
        return arch->encode_framed_veneer(arch, start, *slot, expected) &&
               memcmp(code_at(start), expected, arch->framed_veneer_bytes) == 0;
    return arch->encode_veneer(arch, start, *slot, expected) &&
           memcmp(code_at(start), expected, arch->veneer_bytes) == 0;
}

static bool holds_exit(uint64_t start)
{
    const struct cairn_arch *arch = arch_host();
    uint8_t expected[ARCH_EXIT_CODE_BYTES_MAX];
    return arch->encode_exit(arch, start, start + arch->exit_bytes, expected) &&
           memcmp(code_at(start), expected, arch->exit_bytes) == 0;
}

/* ---- Leaving ---- */

static void set_toc_place(struct cairn_frame *frame, uint64_t sp)
{
    const struct cairn_arch *arch = arch_host();
    for (size_t i = 0; i < arch->unwind_slot_count; i++)
        if (arch->unwind_slots[i].dwarf == arch->toc_register)
            frame->private_words[i] = (void *)(uintptr_t)(sp + arch->toc_save_offset);
}

/* Moves to the caller, whose return address is at `place` and whose stack pointer is `sp`. */
static void leave_to(struct cairn_frame *frame, void *place, uint64_t sp)
{
    frame->private_words[ARCH_UNWIND_RETURN_ADDRESS] = place;
    frame->pc = step_load(place);
    frame->sp = sp;
    frame->is_calling = true;
    frame->is_innermost = false;
    step_set_module(frame);
}

/* Leaves code that has pushed this many bytes after the return address, if that is on the stack. */
static void leave_to_caller(struct cairn_frame *frame, size_t pushed)
{
    void *place = frame->private_words[ARCH_UNWIND_RETURN_ADDRESS];
    uint64_t end = frame->sp + pushed;
    if (!arch_host()->has_link_register)
        leave_to(frame, (void *)(uintptr_t)end, end + sizeof(uint64_t));
    else if (place != NULL)
        leave_to(frame, place, end);
}

static void leave_framed_veneer(struct cairn_frame *frame, uint64_t offset)
{
    const struct arch_veneer_frame *veneer = arch_host()->veneer_frame;
    bool has_frame = offset >= veneer->made_offset && offset < veneer->left_offset;
    uint64_t sp = frame->sp + (has_frame ? veneer->bytes : 0);
    void *place = frame->private_words[ARCH_UNWIND_RETURN_ADDRESS];
    if (offset >= veneer->return_offset)
        place = (void *)(uintptr_t)(sp + veneer->return_address);
    if (place == NULL)
        return;
    if (has_frame && offset >= veneer->saved_offset)
        set_toc_place(frame, frame->sp);
    leave_to(frame, place, sp);
}

/* Moves to the instruction of the site that has jumped to the veneer. */
static void return_to_site(struct cairn_frame *frame, uint64_t instruction)
{
    frame->pc = instruction;
    frame->module = runtime_find_frame_module(frame->runtime, instruction);
}

/* ---- Stubs and veneers outside of modules ---- */

/* Whether `pc` is in a veneer of this kind. Sets `*offset` to its offset from the start. */
static bool is_in_veneer(uint64_t pc, bool is_framed, uint64_t *offset, uint64_t *slot)
{
    const struct cairn_arch *arch = arch_host();
    size_t size = is_framed ? arch->framed_veneer_bytes : arch->veneer_bytes;
    *offset = pc & (code_veneer_space(size) - 1);
    return size != 0 && *offset < size && holds_veneer(pc - *offset, is_framed, slot);
}

/* Whether the exit whose code contains `pc` has pushed a word. */
static bool has_pushed(uint64_t pc)
{
    size_t offset = arch_host()->exit_pushed_offset;
    return offset != 0 && (pc - offset) % CODE_STUB_UNIT == 0 && holds_exit(pc - offset);
}

static void leave_own_code(struct cairn_frame *frame)
{
    uint64_t offset;
    uint64_t slot;
    if (is_in_veneer(frame->pc, true, &offset, &slot)) {
        leave_framed_veneer(frame, offset);
        return;
    }
    bool is_veneer = is_in_veneer(frame->pc, false, &offset, &slot);
    uint64_t site = is_veneer ? step_load(code_at(slot + sizeof slot)) : 0;
    if (arch_host()->has_descriptors && (!is_veneer || offset != 0))
        set_toc_place(frame, frame->sp);
    if (site != 0)
        return_to_site(frame, site);
    else
        leave_to_caller(frame, has_pushed(frame->pc) ? sizeof(uint64_t) : 0);
}

/* ---- The stubs of a module's objects ---- */

static bool is_in_linked_stub(const struct cairn_frame *frame, uint64_t *start)
{
    const struct cairn_arch *arch = arch_host();
    const struct code_block *block = module_block(frame->module);
    uint64_t slot;
    *start = frame->pc - frame->pc % arch->veneer_alignment;
    for (; frame->pc - *start < arch->veneer_bytes; *start -= arch->veneer_alignment)
        if (code_block_holds_code(block, *start, arch->veneer_bytes) &&
            holds_veneer(*start, false, &slot))
            return true;
    return false;
}

static void leave_linked_stub(struct cairn_frame *frame)
{
    uint64_t start;
    if (unwind_can_leave(unwind_find_exact(frame->module->unwind, frame->pc)) ||
        !is_in_linked_stub(frame, &start))
        return;
    if (arch_host()->has_descriptors && frame->pc != start)
        set_toc_place(frame, frame->sp);
    leave_to_caller(frame, 0);
}

void frame_leave_stub(struct cairn_frame *frame)
{
    if (frame->module != NULL)
        leave_linked_stub(frame);
    else if (code_space_holds(frame->runtime->space, frame->pc))
        leave_own_code(frame);
}
