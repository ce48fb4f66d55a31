/*
 * Loads and stores all registers of the machine with the tests' own instructions, so that the
 * values which Cairn saves and loads can be compared with independent ones. The file is for C and
 * for assembly; registers_<architecture>.S and machine_registers_<architecture>.c implement it.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef TESTS_REGISTERS_H
#define TESTS_REGISTERS_H

#define REGISTERS_GENERAL 0   /* 32, by DWARF number */
#define REGISTERS_FLAGS 256   /* for architectures with a flags register */
#define REGISTERS_CONTROL 264 /* floating-point control */
#define REGISTERS_SPECIAL 272 /* 3: PPC64's LR, CTR, XER */
#define REGISTERS_MASKS 304   /* 8 */
#define REGISTERS_BELOW 368   /* 14 doublewords below the stack pointer: x86-64's red zone */
#define REGISTERS_VECTORS 512
#define REGISTERS_VECTOR_BYTES 64
#define REGISTERS_BELOW_COUNT 14

#ifndef __ASSEMBLER__
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct registers {
    uint64_t general[32];
    uint64_t flags;
    uint64_t control;
    uint64_t special[4];
    uint64_t masks[8];
    uint64_t below[REGISTERS_BELOW_COUNT];
    uint64_t unused[4];
    /* Aligned, because some vector loads and stores round addresses down. */
    _Alignas(16) uint8_t vectors[64][REGISTERS_VECTOR_BYTES];
};

_Static_assert(offsetof(struct registers, flags) == REGISTERS_FLAGS, "");
_Static_assert(offsetof(struct registers, control) == REGISTERS_CONTROL, "");
_Static_assert(offsetof(struct registers, special) == REGISTERS_SPECIAL, "");
_Static_assert(offsetof(struct registers, masks) == REGISTERS_MASKS, "");
_Static_assert(offsetof(struct registers, below) == REGISTERS_BELOW, "");
_Static_assert(offsetof(struct registers, vectors) == REGISTERS_VECTORS, "");

/*
 * Loads the registers of `before`, including those of vector level `level`, and calls `code`. Then
 * stores all registers in `after`, with the stack pointer that the code has left.
 */
void registers_run(const struct registers *before, struct registers *after, const void *code,
                   uint32_t level);

/* Code for `registers_run` that loops for ever, with its begin and end. */
extern const uint8_t registers_spin[];
extern const uint8_t registers_spin_end[];
/* An alternative place to continue after the call; it has the same effect as the return address. */
extern const uint8_t registers_landing[];
/* Returns an address in this code, for C. */
uint64_t registers_code_address(const uint8_t *label);

/* The stack pointer at the call, and the return address of the call. */
extern uint64_t registers_sp;
extern const uint8_t registers_returned[];

/* Finds a DWARF register in struct registers, and its size at a vector level. Returns false if
 * there is no such register. */
bool registers_place(uint16_t dwarf, uint32_t level, size_t *offset, size_t *bytes);
uint16_t registers_stack_pointer(void);

/* Whether code between caller and callee may change the register: exits and resuming do not
 * preserve it. */
bool registers_is_given_up(uint16_t dwarf);
/* Whether the register is callee-saved. */
bool registers_is_kept(uint16_t dwarf);
/* Whether tests cannot load the register: the thread pointer and the stack pointer. */
bool registers_is_fixed(uint16_t dwarf);

/* Whether there is a red zone below the stack pointer. */
bool registers_has_red_zone(void);

/* Changes random values to values that registers can have: flags and control registers. */
void registers_make_possible(struct registers *registers);
/* Changes them to values that are possible before and after: the return address is in a register
 * before, and registers without a number are unchanged. */
void registers_make_pair(struct registers *before, struct registers *wanted);
/* Returns the bits of the flags that are compared. */
uint64_t registers_flags_mask(void);
/* Returns the flag that raises SIGTRAP after each instruction; 0 if there is no such flag. */
uint64_t registers_step_flag(void);
/* Returns how much the call changes the stack pointer. */
uint64_t registers_call_bytes(void);
/* Whether the program counter also has this number in the context. */
bool registers_is_pc(uint16_t dwarf);
/* Changes random values so that code may call the C function. Returns the code to pass to
 * `registers_run`. */
const void *registers_call_function(struct registers *registers, const void *function,
                                    void *argument);
/* Whether C code may run with these registers: flags and stack pointer are as the ABI requires. */
bool registers_suit_c(void);
#endif
#endif
