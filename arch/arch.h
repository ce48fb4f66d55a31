/*
 * arch/arch.h - the interface that each architecture implements.
 *
 * Everything in `struct cairn_arch` is pure: plain values and bytes in, bytes out. So every
 * architecture is compiled and tested on every host. What only the host's own architecture can
 * do (cache maintenance, contexts) is declared after it and implemented once per build, in
 * arch/<name>/host.c, host_context.c and context.S.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef ARCH_ARCH_H
#define ARCH_ARCH_H

#include "arch/context.h"
#include "arch/inline_cache.h"

#include <cairn/architecture.h>
#include <cairn/context.h>
#include <cairn/patch.h>
#include <cairn/status.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    ARCH_WORD_BYTES_MAX = 8,
    ARCH_CALL_BYTES_MAX = 15,
    ARCH_VENEER_BYTES_MAX = 112,
    ARCH_EXIT_CODE_BYTES_MAX = 64,
    ARCH_SELF_TEST_BYTES_MAX = 32
};

/* LLVM's code for a patch point, as `recognise` found it. */
struct arch_patchpoint {
    /* Whether there is a call. If not, the region holds only no-ops. */
    bool has_call;
    /* Whether the call is a branch to `target`, the address of an instruction: of a function in
     * the same module, or of a linker's stub. If not, `target` is a function pointer. The two
     * differ where `calls_need_veneer` or `has_descriptors`. */
    bool is_direct;
    /* The call's target: the immediate operand of the instructions, or the branch's target. */
    uint64_t target;
    /* Bytes from the start of the region to the return address of LLVM's call. */
    size_t return_offset;
};

/* The place of the instruction that changes, in an armed region. */
struct arch_placement {
    size_t instruction_offset; /* bytes from the start of the region */
    size_t return_offset;      /* bytes from the start of the region to the return address */
};

/*
 * A walk over frames keeps the callee-saved registers of each frame in slots of 8 bytes. A register
 * of 16 bytes has two slots, with `byte` 0 and 8. A slot holds the 8 bytes as the function stored
 * them: for a field of PPC64's condition register, these are the 4 bytes of the whole register and
 * 4 unspecified bytes.
 */
struct arch_unwind_slot {
    uint16_t dwarf; /* register number in .eh_frame */
    uint16_t byte;  /* offset of the 8 bytes in the register's value in memory */
};

/* Slots with the same index on every architecture. The caller's stack pointer is the CFA. */
enum { ARCH_UNWIND_STACK_POINTER = 0, ARCH_UNWIND_RETURN_ADDRESS = 1, ARCH_UNWIND_SLOTS_MAX = 80 };

enum { ARCH_VENEER_REGISTERS_MAX = 3 };

/* The call frame of a framed veneer while its callee runs. The frame holds the values of all
 * registers that the veneer has changed. */
struct arch_veneer_frame {
    size_t return_offset;  /* from the veneer's start to the return address of its call */
    size_t bytes;          /* size of the frame; its first 8 bytes hold the site's stack pointer */
    size_t return_address; /* offset of the site's return address from the site's stack pointer */
    /* Bytes from the veneer's start to the first instruction with the frame, to the first one with
     * the TOC pointer in it, and to the first one after the frame. */
    size_t made_offset;
    size_t saved_offset;
    size_t left_offset;
    struct {
        uint16_t dwarf;
        uint16_t offset; /* of 8 bytes, from the veneer's stack pointer */
    } registers[ARCH_VENEER_REGISTERS_MAX];
    size_t register_count;
};

enum { ARCH_RESULTS_MAX = 2, ARCH_GENERAL_ARGUMENTS_MAX = 8 };

/* DWARF numbers of the registers in which functions return integers and pointers, floating-point
 * numbers, and vectors, in the order in which they are used. */
struct arch_results {
    uint16_t general[ARCH_RESULTS_MAX];
    uint16_t floating[ARCH_RESULTS_MAX];
    uint16_t vector[ARCH_RESULTS_MAX];
    /* LLVM before 22 returns a half in a floating-point register; LLVM 22 returns its bits in a
     * general register. */
    bool halves_are_in_either;
};

/* How an integer of two registers is passed. */
enum arch_pair {
    /* In the next two registers, or on the stack, aligned to 16 bytes; never in both. */
    ARCH_PAIR_WHOLE,
    /* The same, and the first register has an even number. If fewer than two registers are left,
     * later arguments do not use them either. */
    ARCH_PAIR_EVEN,
    /* As two arguments. */
    ARCH_PAIR_SPLIT
};

/* The structures of two members that C returns in the same registers as LLVM. */
enum arch_structures {
    ARCH_STRUCTURES_NONE,
    ARCH_STRUCTURES_OF_ONE_KIND, /* two integers, or two floating-point numbers */
    ARCH_STRUCTURES_OF_ANY_KIND
};

/*
 * The registers in which the C calling convention passes arguments, by DWARF number. `floating` and
 * `vector` are the first of registers with consecutive numbers. Arguments that have no register
 * are on the stack, aligned to their size, but at least to 8 bytes.
 */
struct arch_arguments {
    uint16_t general[ARCH_GENERAL_ARGUMENTS_MAX];
    uint8_t general_count;
    uint8_t floating_count;
    uint8_t vector_count;
    uint16_t floating;
    uint16_t vector; /* the same as `floating`: they share their registers */
    /* Whether every argument has a place on the stack, even if it is passed in a register. The
     * first places, of 8 bytes each, are those of the general registers. */
    bool has_places;
    /* Whether floating-point registers hold floats as doubles. */
    bool widens_floats;
    enum arch_pair pair;
    enum arch_structures structures;
};

/*
 * The call frame between a function that was entered in another function's place and the caller,
 * where one is needed. The entered function returns to it, and the code of `encode_entry` removes
 * it. While it exists, `frame_register` + `cfa_offset` is the caller's stack pointer, and `saved`
 * says where it keeps the caller's registers. From `left_offset` on, the stack pointer +
 * `left_cfa_offset` is the caller's stack pointer, and the registers saved below the stack pointer
 * are restored.
 */
enum { ARCH_ENTRY_SAVED_MAX = 3, ARCH_ENTRY_CODE_BYTES_MAX = 48 };

struct arch_entry_frame {
    size_t code_bytes;
    /* Offset of the entered function's return address. The instruction before it belongs to the
     * frame, too, because unwinders look up a return address less 1. */
    size_t return_offset;
    uint16_t frame_register;
    uint8_t cfa_offset;
    uint8_t left_offset;
    uint8_t left_cfa_offset;
    uint8_t saved_count;
    struct {
        uint16_t dwarf;
        int8_t words; /* offset from the caller's stack pointer, in units of 8 bytes */
    } saved[ARCH_ENTRY_SAVED_MAX];
};

/* The instruction at which an indirect branch may land where the processor checks that (IBT, BTI).
 * Veneers and exits begin with it. */
enum { ARCH_LANDING_PAD_BYTES_MAX = 4 };

struct arch_landing_pad {
    size_t bytes; /* 0: the architecture has no landing pads */
    uint8_t code[ARCH_LANDING_PAD_BYTES_MAX];
};

struct words_target;
struct arch_feature_table;
struct arch_registers;
struct arch_relocation_table;

struct cairn_arch {
    enum cairn_architecture architecture;
    enum cairn_byte_order byte_order;
    const struct arch_registers *registers;
    const struct arch_relocation_table *relocations;
    const struct arch_feature_table *features;

    /* Size and alignment of the patch word, and size of the instruction in it. */
    size_t word_bytes;
    size_t instruction_bytes;
    size_t instruction_bytes_max;
    /* Size of every instruction; 0 if sizes vary. */
    size_t fixed_instruction_bytes;
    /* What arch/words.h needs; NULL if sizes vary. */
    const struct words_target *words;
    /* Size of the smallest region that holds a call and the instructions it needs around it. */
    size_t call_bytes;

    /* Reach of the direct call, forwards and backwards. No slab is larger. */
    size_t reach_bytes;
    size_t slab_bytes_default;

    struct arch_landing_pad landing_pad;
    size_t veneer_bytes;
    size_t veneer_alignment;
    /* ELFv1: bytes of the veneer's instructions that save the TOC pointer, which come first. A
     * caller by descriptor has saved its own, and loaded the descriptor's. */
    size_t veneer_save_bytes;
    /* Size of a framed veneer, and its call frame; 0 and NULL where calls need no such veneer. */
    size_t framed_veneer_bytes;
    const struct arch_veneer_frame *veneer_frame;
    size_t exit_bytes;
    /* Bytes from an exit's start to the instruction before which one word was pushed; 0 if an exit
     * pushes nothing. */
    size_t exit_pushed_offset;

    /* Whether a function pointer is the address of a descriptor, which holds 8 bytes each of the
     * entry's address, the TOC pointer and the environment. If not, it is the entry's address. */
    bool has_descriptors;
    /* Whether function pointers are called through a veneer even if the direct call reaches them,
     * because the callee expects its own address or its TOC pointer in a register. */
    bool calls_need_veneer;
    /* Offset from the stack pointer at which a caller saves its TOC pointer, directly before a call
     * that it reloads the pointer after; 0 where there is no TOC. */
    size_t toc_save_offset;
    uint16_t toc_register; /* its DWARF number */

    /* Slots for unwinding: the stack pointer, the return address, and the callee-saved
     * registers. */
    const struct arch_unwind_slot *unwind_slots;
    size_t unwind_slot_count;
    /* Whether a call leaves the return address in a register. If not, it is in memory from the
     * function's first instruction on. */
    bool has_link_register;
    /* Whether the stack pointer points to the caller's stack pointer, or to 0 in the outermost
     * frame, which may have no unwind rules. */
    bool has_back_chain;
    /* Whether return addresses may be signed, and .eh_frame says where. */
    bool signs_return_addresses;

    struct arch_results results;
    struct arch_arguments arguments;
    struct arch_entry_frame entry_frame;
    /* Whether LLVM's code for the oldest processor of the architecture spills vectors of 16 bytes
     * with the second half first. (Callee-saved registers are saved in order.) */
    bool swaps_spilled_vectors;
    /* Whether a core may execute old code at an address after new code was written there and made
     * visible (`arch_host_code_written`), until it has passed a context synchronisation, even if
     * the branch to that address was stored later. */
    bool new_code_needs_barrier;
    /* Whether cores fetch stored instructions without cache maintenance, so that
     * `arch_host_code_written` has nothing to do. */
    bool fetch_is_coherent;

    /*
     * The functions. `arch` is this table, because the ABIs of one processor share functions.
     */

    /* Recognises LLVM's code for a patch point in a region that was not changed since it was
     * loaded. CORRUPT, with the offset of the first byte or word that LLVM does not emit. */
    enum cairn_status (*recognise)(const struct cairn_arch *arch, const uint8_t *region,
                                   size_t size, uint64_t address,
                                   struct arch_patchpoint *patchpoint, struct cairn_error *error);

    /* Chooses the place of the patch word. RANGE if the region is too small. */
    enum cairn_status (*place)(const struct cairn_arch *arch,
                               const struct arch_patchpoint *patchpoint, size_t size,
                               uint64_t address, struct arch_placement *placement,
                               struct cairn_error *error);

    /* Fills the region with no-ops, and with the instructions that a call at the placement needs
     * around it (PPC64's TOC save and reload). The instruction at the placement is a no-op. */
    void (*arm)(const struct cairn_arch *arch, uint8_t *region, size_t size,
                const struct arch_patchpoint *patchpoint, const struct arch_placement *placement);

    /* Encodes a no-op, a call or a jump (CAIRN_SITE_NOP, …) of `length` bytes at `address`, as an
     * integer in the host's byte order. `length` is at least `instruction_bytes` and at most
     * `instruction_bytes_max`; a longer instruction is padded with prefixes. False if `target` is
     * out of reach; no-ops ignore it. */
    bool (*encode_branch)(const struct cairn_arch *arch, enum cairn_site_state branch,
                          uint64_t address, uint64_t target, size_t length, uint64_t *bits);

    /* Decodes such an instruction. False if it is not one of the three. */
    bool (*decode_branch)(const struct cairn_arch *arch, uint64_t bits, uint64_t address,
                          size_t length, enum cairn_site_state *branch, uint64_t *target);

    /* Fills `size` bytes with no-ops. Where all instructions have one size, a remainder smaller
     * than an instruction is left unchanged. */
    void (*fill_nops)(const struct cairn_arch *arch, uint8_t *bytes, size_t size);

    /* Returns the number of bytes at the start that are no-ops, in any form that LLVM emits. */
    size_t (*leading_nops)(const struct cairn_arch *arch, const uint8_t *bytes, size_t size);

    /* Returns the length of the call instruction at the start, in any form that LLVM emits; 0 if
     * there is no call, or if it does not end within `size` bytes. */
    size_t (*call_length)(const struct cairn_arch *arch, const uint8_t *bytes, size_t size);

    /* Whether a core may execute this instruction, which lies in one patch word, while another core
     * replaces it by an instruction of `encode_branch`, or the reverse, so that it executes one of
     * the two. False where the architecture's manual promises that only for listed instructions,
     * and this one is not listed. */
    bool (*may_be_exchanged)(const struct cairn_arch *arch, const uint8_t *bytes, size_t length);

    /* Encodes a jump to the function whose pointer is in the aligned 8-byte slot at
     * `slot_address`. It changes only registers that the ABI reserves for such code. False if the
     * slot is out of reach. */
    bool (*encode_veneer)(const struct cairn_arch *arch, uint64_t address, uint64_t slot_address,
                          uint8_t *code);

    /* Encodes a veneer with a call frame, for a call without arguments at an instruction around
     * which nothing is saved (a stack map's shadow). The veneer calls the function whose pointer is
     * in the slot, and returns. It saves and restores the registers that a call changes and in
     * which LLVM keeps values across stack maps (on PPC64, the TOC pointer among them). NULL where
     * calls need no such veneer. */
    bool (*encode_framed_veneer)(const struct cairn_arch *arch, uint64_t address,
                                 uint64_t slot_address, uint8_t *code);

    /* Returns the address of the slot that a veneer's code at `address` uses, framed or not; any
     * number if the code is not a veneer. */
    uint64_t (*veneer_slot)(const struct cairn_arch *arch, uint64_t address, bool is_framed,
                            const uint8_t *code);

    /* Encodes a jump to the entry of the struct arch_exit at `data_address`, which is aligned to 8.
     * It passes that address to the entry and changes only the registers that veneers change. False
     * if the data is out of reach. */
    bool (*encode_exit)(const struct cairn_arch *arch, uint64_t address, uint64_t data_address,
                        uint8_t *code);

    /* Encodes the code of `entry_frame`. It begins with what a thread executes to enter the
     * function, if that takes more than a branch; the remainder removes the frame and returns. */
    void (*encode_entry)(const struct cairn_arch *arch, uint8_t *code);

    /* Minimum size of the bytes after the patch word for a cache's first case; 0 if there cannot be
     * one. */
    size_t inline_bytes_min;
    /* Size of the branch that a miss takes. */
    size_t miss_bytes;

    /* Moves the placement so that the patch word ends with the instruction. NULL where it always
     * does. */
    void (*place_inline)(const struct cairn_arch *arch, uint64_t address,
                         struct arch_placement *placement);

    /* Encodes a function `int f(void)` that returns `value` (0 to 1000), without a landing pad.
     * Returns its size. */
    size_t (*encode_self_test)(const struct cairn_arch *arch, int value, uint8_t *code);
};

/* The code of inline caches. It is not in the table above, so that a program without inline caches
 * does not contain it. */
struct arch_cache_encoder {
    /* Encodes an inline cache at `address`, which is aligned to ARCH_CACHE_ALIGNMENT, in at most
     * ARCH_CACHE_BYTES_MAX bytes. The size does not depend on the addresses. False if `site_end` is
     * out of reach. */
    bool (*encode_cache)(const struct cairn_arch *arch, const struct arch_cache *cache,
                         uint64_t address, uint8_t *code, struct arch_cache_size *size);

    /* Encodes the first case of the cache, or two, for the site's own bytes, from
     * `inlined->address` to `cache->site_end`, at most ARCH_CACHE_INLINE_BYTES_MAX. False if it
     * does not fit, needs code that is only in `encode_cache`, or does not reach `inlined->miss`.
     * The size does not depend on `inlined->miss`. */
    bool (*encode_inline)(const struct cairn_arch *arch, const struct arch_cache *cache,
                          struct arch_cache_inline *inlined, uint8_t *code);

    /* Changes the target of the branch that a miss takes, which `encode_inline` has written to
     * `code`. False if the target is out of reach. */
    bool (*encode_miss)(const struct cairn_arch *arch, uint64_t address, uint64_t target,
                        uint8_t *code);

    /* Whether `encode_cache` would distinguish all cases by one sequence without branches. NULL
     * where it never does. */
    bool (*selects_cases)(const struct arch_cache *cache);
};

/*
 * Code that runs uses the host's tables. Only arch_find, arch_find_cache_encoder, arch_features and
 * cairn_register_name refer to those of all architectures, so a program that calls none of them
 * contains only the host's.
 */

/* Returns the table of the host's architecture; NULL if Cairn cannot patch code on the host.
 * Implemented in arch/<host>/host.c, as is the next function. */
const struct cairn_arch *arch_host(void);

/* Returns the encoder of inline caches of the host's architecture; NULL without one. */
const struct arch_cache_encoder *arch_host_cache_encoder(void);

/* Returns the table of an architecture, or NULL. */
const struct cairn_arch *arch_find(enum cairn_architecture architecture);

/* Returns an architecture's encoder of inline caches, or NULL. */
const struct arch_cache_encoder *arch_find_cache_encoder(enum cairn_architecture architecture);

/* Returns the register that contains the register with this number in a stack map, because LLVM
 * numbers some halves of registers separately. */
uint16_t arch_whole_register(const struct cairn_arch *arch, uint16_t dwarf);

/* Returns the register's name, as cairn_register_name does. */
const char *arch_register_name(const struct cairn_arch *arch, uint16_t dwarf);

/*
 * Makes `size` new bytes of code, written through `written` and executed at `executed`, visible
 * to instruction fetch on all cores. Bytes that another core is executing at this moment also need
 * a barrier. Implemented once per build, in arch/<host>/host.c.
 */
void arch_host_code_written(const void *written, const void *executed, size_t size);

/* Returns the protection that pages of code need, in addition, for the processor to check that
 * indirect branches to them land on landing pads; 0 if it checks nothing. */
int arch_host_landing_protection(void);

/* Returns whether the host has a clock that user code reads without a system call, which all cores
 * share, and which ticks at a constant rate. */
bool arch_host_has_clock(void);

/* Reads that clock; 0 where there is none. Async-signal-safe. Implemented in arch/<host>/host.c. */
uint64_t arch_host_clock(void);

/*
 * Contexts. Implemented once per build, in arch/<host>/host_context.c and context.S, which also
 * implements cairn_context_save and cairn_context_resume. Async-signal-safe.
 */

/* How a context holds a register, and which bytes of it a narrower value has. */
enum arch_register_form {
    /* An integer in the host's byte order; a narrower value has its low bytes. */
    ARCH_REGISTER_INTEGER,
    /* Bytes; a narrower value has the first ones. */
    ARCH_REGISTER_VECTOR,
    /* 16 bytes, the first doubleword first, each in the host's byte order. A narrower value has the
     * low bytes of the first doubleword; a value of 16 bytes is as a store writes it to memory. */
    ARCH_REGISTER_DOUBLEWORDS,
    /* The same registers, as a store writes them to memory. */
    ARCH_REGISTER_QUADWORD
};

/* The place of a register in a context. */
struct arch_register {
    size_t offset;
    size_t bytes;
    enum arch_register_form form;
    /* For a field of flags in the low 4 bytes of an integer: its highest bit, counted from the
     * lowest bit of the integer. 0 for other registers. */
    uint8_t first_flag;
    /* The bits of that integer that a function restores if it has saved this field. */
    uint32_t saved_flags;
    /* Whether the register controls how the machine computes: calls preserve it, and LLVM does not
     * list it. */
    bool is_control;
};

/* Finds the place of a register; false if contexts have none. Whether this context holds the
 * register is in its head's `present`. */
bool arch_host_register(const struct cairn_context *context, uint16_t dwarf,
                        struct arch_register *found);

/*
 * The places of registers in contexts and in signal frames, as a table. A context need not hold all
 * of these registers. Hosts without contexts have a table of zeros.
 */
struct arch_context_layout {
    uint16_t stack_pointer; /* its DWARF number */
    /* Size of the start of a context that holds all registers with a meaning at the entry of a
     * function: arguments and callee-saved registers. */
    uint16_t entered_bytes;
    /* Registers with lower numbers hold a scalar of at most 8 bytes in the low bytes of an integer,
     * which is their first 8 bytes. */
    uint16_t scalars_end;
    bool floats_are_doubles; /* except that a float of 4 bytes is held as a double */
    /* Offset of a register's first byte, by DWARF number; 0 for registers that only
     * arch_host_register knows, or whose first bytes are not what functions store of them. */
    uint16_t offsets[ARCH_CONTEXT_REGISTERS];
    /* Offsets of 8 bytes in a ucontext_t, the third argument of a signal handler: of the registers
     * that contexts hold at `offsets` (0 for other registers), and of the program counter. */
    uint16_t in_signal[ARCH_CONTEXT_REGISTERS];
    uint16_t pc_in_signal;
    /* Offset of the flags, and which of their bits are flags. */
    uint16_t flags_in_signal;
    uint64_t flags_mask;
};
extern const struct arch_context_layout arch_host_layout;

/* Entries of `offsets` for 16 registers from `number` on, `stride` bytes apart. */
#define ARCH_OFFSETS_OF_4(offset, stride)                                                          \
    (offset), (offset) + (stride), (offset) + 2 * (stride), (offset) + 3 * (stride)
#define ARCH_OFFSETS_OF_16(number, offset, stride)                                                 \
    [number] = ARCH_OFFSETS_OF_4(offset, stride),                                                  \
    ARCH_OFFSETS_OF_4((offset) + 4 * (stride), stride),                                            \
    ARCH_OFFSETS_OF_4((offset) + 8 * (stride), stride),                                            \
    ARCH_OFFSETS_OF_4((offset) + 12 * (stride), stride)

/* A function that a thread enters as if it were called from the place of a context. */
struct arch_entry {
    const void *function; /* a function pointer */
    uint64_t code;        /* address of the code of `encode_entry` */
    /* The arguments on the stack, from the first one or the first place on. */
    const void *stack;
    size_t stack_bytes;
    unsigned floating_count; /* registers that hold floating-point numbers and vectors */
};

/* Returns how many bytes below the stack pointer are written at most by entering a function, and by
 * resuming the context after that. */
size_t arch_host_entry_reach(size_t stack_bytes);

/* Makes the context that of the function's entry, except for the registers that hold arguments,
 * and writes the stack. */
void arch_host_enter(struct cairn_context *context, const struct arch_entry *entry);

/* Returns a return address without its signature, if it has one. */
uint64_t arch_host_strip_return_address(uint64_t address);

/* Implement cairn_context_from_signal and cairn_context_to_signal. */
enum cairn_status arch_host_from_signal(struct cairn_context *context, const void *ucontext,
                                        struct cairn_error *error);
enum cairn_status arch_host_to_signal(const struct cairn_context *context, void *ucontext,
                                      struct cairn_error *error);

/* Copy the program counter, the flags and the registers of the layout's `in_signal` between a
 * signal frame and a context. The second function writes only registers that the context holds. */
void arch_read_signal(struct cairn_context *context, const void *ucontext);
void arch_write_signal(const struct cairn_context *context, void *ucontext);

/* Read and write the program counter in a signal handler's third argument. Where there are no
 * contexts, they return 0 and do nothing. Async-signal-safe. */
uint64_t arch_signal_pc(const void *ucontext);
void arch_set_signal_pc(void *ucontext, uint64_t pc);

/* Returns the level of vector registers that the machine and the kernel support, from 1 to the
 * architecture's number of levels; 0 if exits cannot save all of them, or there are no exits. */
uint32_t arch_host_vector_level(void);

/* Addresses of the code that the stubs of exits, and of exits with a light handler, jump to. */
extern const uint64_t arch_exit_entry;
extern const uint64_t arch_light_entry;

/*
 * Initialises an exit that calls `handler` with all registers of the thread that reached the stub,
 * and then resumes the thread with the registers that the handler has left. The context that
 * `handler` gets is on the thread's own stack and valid during the call. Vector registers beyond
 * `*level`, which is at most that of the machine, are neither saved nor restored. UNSUPPORTED if it
 * is 0.
 */
enum cairn_status arch_exit_init(struct arch_exit *data, arch_exit_handler *handler, void *user,
                                 const _Atomic uint32_t *level, struct cairn_error *error);

/* Makes an initialised exit one that calls `light` before its handler. No thread may reach it
 * yet. */
void arch_exit_make_light(struct arch_light_exit *data, arch_light_handler *light);

#endif
