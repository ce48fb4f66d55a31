/*
 * All registers of the machine, loaded and stored by tests in their own instructions, so that what
 * Cairn saves and loads is compared with something else. For C and for assembly; implemented by
 * registers_<architecture>.S and machine_registers_<architecture>.c.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef TESTS_REGISTERS_H
#define TESTS_REGISTERS_H

#define REGISTERS_GENERAL 0   /* 32, by DWARF number */
#define REGISTERS_FLAGS 256   /* where the architecture has flags of their own */
#define REGISTERS_CONTROL 264 /* of floating point */
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
    /* Some instructions that load and store them round addresses down. */
    _Alignas(16) uint8_t vectors[64][REGISTERS_VECTOR_BYTES];
};

_Static_assert(offsetof(struct registers, flags) == REGISTERS_FLAGS, "");
_Static_assert(offsetof(struct registers, control) == REGISTERS_CONTROL, "");
_Static_assert(offsetof(struct registers, special) == REGISTERS_SPECIAL, "");
_Static_assert(offsetof(struct registers, masks) == REGISTERS_MASKS, "");
_Static_assert(offsetof(struct registers, below) == REGISTERS_BELOW, "");
_Static_assert(offsetof(struct registers, vectors) == REGISTERS_VECTORS, "");

/*
 * Loads the registers of `before`, those of vector level `level` included, and calls `code`; then
 * stores them all in `after`, the stack pointer as the code left it.
 */
void registers_run(const struct registers *before, struct registers *after, const void *code,
                   uint32_t level);

/* Code that `registers_run` may be given, with its begin and end: it does nothing, for ever. */
extern const uint8_t registers_spin[];
extern const uint8_t registers_spin_end[];
/* Where execution may go on instead of behind the call: it all ends the same way. */
extern const uint8_t registers_landing[];
/* In C: an address in code of these. */
uint64_t registers_code_address(const uint8_t *label);

/* The stack pointer at the call, and the address that the call returns to. */
extern uint64_t registers_sp;
extern const uint8_t registers_returned[];

/* Where a DWARF register is in struct registers, and how many bytes it has at a vector level; false
 * if there is none. */
bool registers_place(uint16_t dwarf, uint32_t level, size_t *offset, size_t *bytes);
uint16_t registers_stack_pointer(void);

/* The register is the code's between caller and callee: neither an exit nor resuming keeps it. */
bool registers_is_given_up(uint16_t dwarf);
/* A function leaves it as it finds it. */
bool registers_is_kept(uint16_t dwarf);
/* Tests cannot load it: the thread pointer, and the stack pointer. */
bool registers_is_fixed(uint16_t dwarf);

/* What lies below the stack pointer is the code's own. */
bool registers_has_red_zone(void);

/* Makes of random values ones that registers can have: flags, control. */
void registers_make_possible(struct registers *registers);
/* And ones that they can have before and after: the return address is in a register before; what
 * has no number cannot be changed. */
void registers_make_pair(struct registers *before, struct registers *wanted);
/* Bits of the flags that are compared. */
uint64_t registers_flags_mask(void);
/* The flag with which each instruction raises SIGTRAP; 0 where there is none. */
uint64_t registers_step_flag(void);
/* How much the stack pointer changes by the call. */
uint64_t registers_call_bytes(void);
/* The context has the program counter under this number besides. */
bool registers_is_pc(uint16_t dwarf);
/* Makes of random values those with which code may call the C function; returns the code that
 * `registers_run` gets for it. */
const void *registers_call_function(struct registers *registers, const void *function,
                                    void *argument);
/* Whether C may run as it is: flags and stack pointer are as the ABI says. */
bool registers_suit_c(void);
#endif
#endif
