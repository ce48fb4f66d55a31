/*
 * Executes what the host's encoders write: armed regions as no-op, call and jump, veneers, the
 * function of the self-test, after the host's own cache maintenance. On PPC64 also that a function
 * has its TOC again after calling one that has another.
 *
 * A plain program, of arch/, src/base/error.c and src/frame/context.c alone, so that it can be
 * built for any of the architectures without their libraries: tests/check_execute.pl does.
 *
 * SPDX-License-Identifier: MIT
 */
#include "arch/arch.h"
#include "tests/cross/execute_context.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum {
    MEMORY_BYTES = 1 << 18,
    LEAVE_OFFSET = 0x1000,
    VENEER_OFFSET = 0x2000,
    SELF_TEST_OFFSET = 0x3000,
    SLOTS_OFFSET = 0x10000, /* the whole of what a sign-extended 16-bit displacement goes through */
    REGION_MAX = 64,
    RETARGETS = 5000
};

/* ---- Functions by hand: they return their first argument, if nothing is called ---- */

struct pieces {
    const void *head;
    size_t head_bytes;
    const void *tail;
    size_t tail_bytes;
    const void *leave; /* jumped to: returns 77 in place of the function */
    size_t leave_bytes;
    const void *toc_tail; /* as the tail, and returns the TOC pointer; or NULL */
    size_t toc_tail_bytes;
};

#define PIECE(name) .name = name, .name##_bytes = sizeof name

#if defined(__x86_64__)
/* mov %rdi, %rax; sub $8, %rsp */
static const uint8_t head[] = {0x48, 0x89, 0xF8, 0x48, 0x83, 0xEC, 0x08};
/* add $8, %rsp; ret */
static const uint8_t tail[] = {0x48, 0x83, 0xC4, 0x08, 0xC3};
/* mov $77, %eax; add $8, %rsp; ret */
static const uint8_t leave[] = {0xB8, 77, 0, 0, 0, 0x48, 0x83, 0xC4, 0x08, 0xC3};
static const struct pieces pieces = {PIECE(head), PIECE(tail), PIECE(leave)};
#elif defined(__aarch64__)
/* stp x29, x30, [sp, #-16]!; mov x29, sp */
static const uint32_t head[] = {0xA9BF7BFD, 0x910003FD};
/* ldp x29, x30, [sp], #16; ret */
static const uint32_t tail[] = {0xA8C17BFD, 0xD65F03C0};
/* mov x0, #77; ldp; ret */
static const uint32_t leave[] = {0xD28009A0, 0xA8C17BFD, 0xD65F03C0};
static const struct pieces pieces = {PIECE(head), PIECE(tail), PIECE(leave)};
#elif defined(__powerpc64__)
/* The function's own TOC: a canary, which no data can be found with. */
enum { CANARY = 0x1234 };
/* mflr r0; std r0, 16(r1); stdu r1, -128(r1); li r2, CANARY */
static const uint32_t head[] = {0x7C0802A6, 0xF8010010, 0xF821FF81, 0x38400000 | CANARY};
/* addi r1, r1, 128; ld r0, 16(r1); mtlr r0; blr */
static const uint32_t tail[] = {0x38210080, 0xE8010010, 0x7C0803A6, 0x4E800020};
/* li r3, 77; … */
static const uint32_t leave[] = {0x3860004D, 0x38210080, 0xE8010010, 0x7C0803A6, 0x4E800020};
/* mr r3, r2; … */
static const uint32_t toc_tail[] = {0x7C431378, 0x38210080, 0xE8010010, 0x7C0803A6, 0x4E800020};
static const struct pieces pieces = {PIECE(head), PIECE(tail), PIECE(leave), PIECE(toc_tail)};
#endif

#ifndef __powerpc64__
enum { CANARY = 0 };
#endif

/* ---- Checks ---- */

static unsigned long checks;

static void expect(long found, long expected, const char *what, size_t size)
{
    checks++;
    if (found == expected)
        return;
    printf("%s, a region of %zu bytes: %ld instead of %ld\n", what, size, found, expected);
    exit(1);
}

/* The callees need their own TOC, to find these. */
static volatile long ten = 10;
static volatile long hundred = 100;
static long by_ten(long a, long b) { return a * ten + b; }
static long by_hundred(long a, long b) { return a * hundred + b; }

/* ---- The memory ---- */

static const struct cairn_arch *arch;
static uint8_t *memory;

static long call(const void *code)
{
    const volatile uint64_t descriptor[3] = {(uintptr_t)code};
    uintptr_t pointer = arch->has_descriptors ? (uintptr_t)descriptor : (uintptr_t)code;
    long (*function)(long, long) = (long (*)(long, long))pointer;
    return function(7, 3);
}

static uint8_t *append(uint8_t *at, const void *bytes, size_t size)
{
    memcpy(at, bytes, size);
    return at + size;
}

/* A function with an armed region `padding` bytes after its head. False: it has no place. */
static bool write_function(size_t padding, size_t size, const void *end, size_t end_bytes,
                           struct arch_placement *placement, uint8_t **region)
{
    const struct arch_patchpoint none = {.has_call = false};
    uint8_t *at = append(memory, pieces.head, pieces.head_bytes);
    arch->fill_nops(arch, at, padding);
    at += padding;
    *region = at;
    if (arch->place(arch, &none, size, (uintptr_t)at, placement, NULL) != CAIRN_OK)
        return false;
    arch->arm(arch, at, size, &none, placement);
    append(at + size, end, end_bytes);
    memcpy(memory + LEAVE_OFFSET, pieces.leave, pieces.leave_bytes);
    arch_host_code_written(memory, memory, VENEER_OFFSET);
    return true;
}

static void write_branch(uint8_t *region, const struct arch_placement *placement,
                         enum cairn_site_state branch, const uint8_t *target)
{
    uint8_t *at = region + placement->instruction_offset;
    uint64_t bits;
    if (!arch->encode_branch(arch, branch, (uintptr_t)at, (uintptr_t)target,
                             arch->instruction_bytes, &bits)) {
        printf("%p is out of reach of %p\n", (const void *)target, (void *)at);
        exit(1);
    }
    uint32_t narrow = (uint32_t)bits;
    if (arch->instruction_bytes == sizeof narrow)
        memcpy(at, &narrow, sizeof narrow);
    else
        memcpy(at, &bits, arch->instruction_bytes);
    arch_host_code_written(at, at, arch->instruction_bytes);
}

static uint64_t *write_veneer(size_t slot_offset)
{
    uint64_t *slot = (uint64_t *)(void *)(memory + slot_offset);
    uint8_t *veneer = memory + VENEER_OFFSET;
    if (!arch->encode_veneer(arch, (uintptr_t)veneer, (uintptr_t)slot, veneer)) {
        printf("the slot is out of reach\n");
        exit(1);
    }
    arch_host_code_written(veneer, veneer, arch->veneer_bytes);
    return slot;
}

/* ---- The tests ---- */

static void execute_states(size_t padding, size_t size, uint64_t *slot)
{
    struct arch_placement placement;
    uint8_t *region;
    const uint8_t *veneer = memory + VENEER_OFFSET;
    if (!write_function(padding, size, pieces.tail, pieces.tail_bytes, &placement, &region))
        return;
    expect(call(memory), 7, "no-op at first", size);
    *slot = (uintptr_t)by_ten;
    write_branch(region, &placement, CAIRN_SITE_CALL, veneer);
    expect(call(memory), 73, "call", size);
    *slot = (uintptr_t)by_hundred;
    expect(call(memory), 703, "call by the other slot", size);
    write_branch(region, &placement, CAIRN_SITE_JUMP, memory + LEAVE_OFFSET);
    expect(call(memory), 77, "jump", size);
    write_branch(region, &placement, CAIRN_SITE_NOP, NULL);
    expect(call(memory), 7, "no-op again", size);
}

static void execute_toc(size_t size, uint64_t *slot)
{
    struct arch_placement placement;
    uint8_t *region;
    if (pieces.toc_tail == NULL ||
        !write_function(0, size, pieces.toc_tail, pieces.toc_tail_bytes, &placement, &region))
        return;
    expect(call(memory), CANARY, "TOC after a no-op", size);
    write_branch(region, &placement, CAIRN_SITE_CALL, memory + VENEER_OFFSET);
    for (int i = 0; i < RETARGETS / 100; i++) {
        *slot = i % 2 == 0 ? (uintptr_t)by_ten : (uintptr_t)by_hundred;
        expect(call(memory), CANARY, "TOC after a call", size);
    }
}

#ifdef __powerpc64__
enum { IN_CTR = 55, IN_R11 = 66 };

/* A call in place of one instruction, and what has to be there after it: the result, the TOC, CTR
 * and, where the veneer itself needs it, r11. */
static void execute_framed_veneer(size_t slot_offset)
{
    static const uint32_t before[] = {
        0x39600000 | IN_CTR, /* li r11, IN_CTR */
        0x7D6903A6,          /* mtctr r11 */
        0x39600000 | IN_R11, /* li r11, IN_R11 */
    };
    static const uint32_t after[] = {
        0x7C631214, /* add r3, r3, r2 */
        0x7C8902A6, /* mfctr r4 */
        0x7C632214, /* add r3, r3, r4 */
    };
    static const uint32_t add_r11[] = {0x7C635A14}; /* add r3, r3, r11 */
    long (*const callees[])(long, long) = {by_ten, by_hundred};
    uint64_t *slot = (uint64_t *)(void *)(memory + slot_offset);
    uint8_t *veneer = memory + VENEER_OFFSET;
    uint8_t *at = append(memory, pieces.head, pieces.head_bytes);
    at = append(at, before, sizeof before);
    const struct arch_placement placement = {0};
    uint8_t *instruction = at;
    at = append(at + arch->instruction_bytes, after, sizeof after);
    if (arch->has_descriptors)
        at = append(at, add_r11, sizeof add_r11);
    append(at, pieces.tail, pieces.tail_bytes);
    arch_host_code_written(memory, memory, LEAVE_OFFSET);
    if (!arch->encode_framed_veneer(arch, (uintptr_t)veneer, (uintptr_t)slot, veneer))
        exit(1);
    arch_host_code_written(veneer, veneer, arch->framed_veneer_bytes);
    write_branch(instruction, &placement, CAIRN_SITE_CALL, veneer);
    for (int i = 0; i < RETARGETS / 100; i++) {
        *slot = (uintptr_t)callees[i % 2];
        long expected = (i % 2 == 0 ? 73 : 703) + CANARY + IN_CTR;
        expect(call(memory), arch->has_descriptors ? expected + IN_R11 : expected,
               "through a framed veneer", arch->instruction_bytes);
    }
}
#endif

static void execute_retargets(uint64_t *slot)
{
    struct arch_placement placement;
    uint8_t *region;
    if (!write_function(0, REGION_MAX, pieces.tail, pieces.tail_bytes, &placement, &region))
        return;
    for (int i = 0; i < RETARGETS; i++) {
        enum cairn_site_state branch = i % 3 == 0 ? CAIRN_SITE_NOP : CAIRN_SITE_CALL;
        *slot = i % 2 == 0 ? (uintptr_t)by_ten : (uintptr_t)by_hundred;
        write_branch(region, &placement, branch, memory + VENEER_OFFSET);
        long called = i % 2 == 0 ? 73 : 703;
        expect(call(memory), branch == CAIRN_SITE_NOP ? 7 : called, "retargeted", REGION_MAX);
    }
}

static void execute_self_test(void)
{
    uint8_t *code = memory + SELF_TEST_OFFSET;
    for (int value = 0; value <= 1000; value++) {
        size_t size = arch->encode_self_test(arch, value, code);
        arch_host_code_written(code, code, size);
        expect((int)call(code), value, "self-test", size);
    }
}

static void execute_exits(void)
{
    const char *fault = execute_contexts(memory + SELF_TEST_OFFSET, memory + SLOTS_OFFSET, &checks);
    if (fault == NULL)
        return;
    printf("an exit: %s\n", fault);
    exit(1);
}

int main(void)
{
    arch = arch_host();
    if (arch == NULL) {
        printf("this host has no table\n");
        return 1;
    }
    memory = mmap(NULL, MEMORY_BYTES, PROT_READ | PROT_WRITE | PROT_EXEC,
                  MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) {
        perror("mmap");
        return 77;
    }
    size_t step = arch->fixed_instruction_bytes == 0 ? 1 : arch->fixed_instruction_bytes;
    for (size_t size = step; size <= REGION_MAX; size += step) {
        uint64_t *slot = write_veneer(SLOTS_OFFSET + size / step * 8);
        for (size_t padding = 0; padding < 8; padding += step)
            execute_states(padding, size, slot);
        execute_toc(size, slot);
    }
    for (size_t offset = SLOTS_OFFSET; offset < MEMORY_BYTES; offset += 0x7F8)
        execute_states(0, REGION_MAX, write_veneer(offset & ~(size_t)7));
    execute_retargets(write_veneer(SLOTS_OFFSET));
#ifdef __powerpc64__
    execute_framed_veneer(SLOTS_OFFSET);
#endif
    execute_self_test();
    execute_exits();
    printf("%s: %lu checks\n", cairn_architecture_name(arch->architecture), checks);
    return 0;
}
