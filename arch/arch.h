/*
 * arch/arch.h - what an architecture supplies.
 *
 * Everything in `struct cairn_arch` is pure: plain values and bytes in, bytes out. So every
 * architecture is compiled and tested on every host. What only the host's own architecture can
 * do (cache maintenance, contexts) stands below it, implemented once per build in
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
#include <cairn/status.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* What the instruction in a patch word does. */
enum arch_branch { ARCH_BRANCH_NOP, ARCH_BRANCH_CALL, ARCH_BRANCH_JUMP };

enum {
    ARCH_WORD_BYTES_MAX = 8,
    ARCH_CALL_BYTES_MAX = 15,
    ARCH_VENEER_BYTES_MAX = 112,
    ARCH_EXIT_CODE_BYTES_MAX = 64,
    ARCH_SELF_TEST_BYTES_MAX = 32
};

/* What LLVM emitted for a patch point, as `recognise` found it. */
struct arch_patchpoint {
    /* A call was emitted; otherwise the region holds no-ops only. */
    bool has_call;
    /* The call is a branch to `target`, which is a place in code: a function of the same module,
     * or a linker's stub. Otherwise `target` is a function pointer. It makes a difference where
     * `calls_need_veneer` or `has_descriptors`. */
    bool is_direct;
    /* Of the call: the immediate in the instructions, or where the branch goes. */
    uint64_t target;
    /* Bytes from the region's start to the address that LLVM's own call returns to. */
    size_t return_offset;
};

/* Where, in an armed region, the instruction that changes lies. */
struct arch_placement {
    size_t instruction_offset; /* from the region's start */
    size_t return_offset;      /* from the region's start, behind the call */
};

/*
 * A walker over frames holds, for each frame, what functions keep for their callers: one slot of 8
 * bytes for each of these. A register of 16 bytes has two slots, with 0 and 8 as `byte`. What a
 * slot holds is the 8 bytes as the function stored them, which for a field of PPC64's condition
 * register is the 4 bytes of the whole register, and 4 more.
 */
struct arch_unwind_slot {
    uint16_t dwarf; /* as .eh_frame numbers registers */
    uint16_t byte;  /* where in the register's memory the 8 bytes begin */
};

/* Slots that every architecture has in the same place. The stack pointer that a caller gets back
 * is the CFA. */
enum { ARCH_UNWIND_STACK_POINTER = 0, ARCH_UNWIND_RETURN_ADDRESS = 1, ARCH_UNWIND_SLOTS_MAX = 80 };

enum { ARCH_VENEER_REGISTERS_MAX = 3 };

/* A framed veneer's frame, while the function that it calls runs: all that the veneer has changed
 * can be found in it. */
struct arch_veneer_frame {
    size_t return_offset;  /* from the veneer's start to where its call returns */
    size_t bytes;          /* from its stack pointer to the site's, which its first 8 bytes hold */
    size_t return_address; /* of the site's call, from the site's stack pointer on */
    struct {
        uint16_t dwarf;
        uint16_t offset; /* from the veneer's stack pointer on, 8 bytes */
    } registers[ARCH_VENEER_REGISTERS_MAX];
    size_t register_count;
};

enum { ARCH_RESULTS_MAX = 2, ARCH_GENERAL_ARGUMENTS_MAX = 8 };

/* The registers in which functions return, by DWARF number: integers and pointers, floating-point
 * numbers, vectors, each in their order. */
struct arch_results {
    uint16_t general[ARCH_RESULTS_MAX];
    uint16_t floating[ARCH_RESULTS_MAX];
    uint16_t vector[ARCH_RESULTS_MAX];
    /* LLVM before 22 returns a half in a floating-point register, newer LLVM its bits in a general
     * register. */
    bool halves_are_in_either;
};

/* How an integer of two registers is passed. */
enum arch_pair {
    /* In the next two registers, or in memory that is aligned to 16; never in both. */
    ARCH_PAIR_WHOLE,
    /* The same, and the first register is an even one. If there are too few, none is left. */
    ARCH_PAIR_EVEN,
    /* As two arguments. */
    ARCH_PAIR_SPLIT
};

/* What C returns in registers as LLVM returns the members of a structure of two. */
enum arch_structures {
    ARCH_STRUCTURES_NONE,
    ARCH_STRUCTURES_OF_ONE_KIND, /* two integers, or two floating-point numbers */
    ARCH_STRUCTURES_OF_ANY_KIND
};

/*
 * How arguments are passed by the C calling convention, by DWARF number; `floating` and `vector`
 * are the first of registers with consecutive numbers. What has no register is on the stack, each
 * argument aligned to its size, but at least to 8 bytes.
 */
struct arch_arguments {
    uint16_t general[ARCH_GENERAL_ARGUMENTS_MAX];
    uint8_t general_count;
    uint8_t floating_count;
    uint8_t vector_count;
    uint16_t floating;
    uint16_t vector; /* the same as `floating`: they share their registers */
    /* Every argument has a place in memory, also if a register has the value; the first ones of 8
     * bytes are those of the general registers. */
    bool has_places;
    /* Registers hold floats as doubles. */
    bool widens_floats;
    enum arch_pair pair;
    enum arch_structures structures;
};

/*
 * The frame between a function that was entered in another's place and the caller, where there has
 * to be one; it is what the entered function returns to. Code of its own (`encode_entry`) takes it
 * away. While it is there, `frame_register` + `cfa_offset` is the caller's stack pointer, and below
 * or above that are the registers of the caller that it keeps.
 */
enum { ARCH_ENTRY_SAVED_MAX = 3, ARCH_ENTRY_CODE_BYTES_MAX = 48 };

struct arch_entry_frame {
    size_t code_bytes;
    /* Where the entered function returns to. The instruction before it is the frame's, too: of a
     * return address unwinders look at the instruction before. */
    size_t return_offset;
    uint16_t frame_register;
    uint8_t cfa_offset;
    uint8_t saved_count;
    struct {
        uint16_t dwarf;
        int8_t words; /* from the caller's stack pointer, in 8 bytes */
    } saved[ARCH_ENTRY_SAVED_MAX];
};

struct cairn_arch {
    enum cairn_architecture architecture;
    const char *name;
    enum cairn_byte_order byte_order;

    /* The patch word: its size and alignment, and the size of the instruction in it. */
    size_t word_bytes;
    size_t instruction_bytes;
    size_t instruction_bytes_max;
    /* Where one instruction has the same size as every other; 0 where they vary. */
    size_t fixed_instruction_bytes;
    /* The smallest region that holds a call with what belongs to it. */
    size_t call_bytes;

    /* Reach of the direct call, forwards and backwards; no slab is larger. */
    size_t reach_bytes;
    size_t slab_bytes_default;

    size_t veneer_bytes;
    size_t veneer_alignment;
    /* Of a framed veneer; 0 where there is none, because a call needs nothing around it. */
    size_t framed_veneer_bytes;
    const struct arch_veneer_frame *veneer_frame; /* NULL where there is none */
    size_t exit_bytes;

    /* A function pointer is the address of a descriptor: 8 bytes each of the entry's address, the
     * TOC pointer and the environment. Otherwise it is the entry's address. */
    bool has_descriptors;
    /* A function pointer is called through a veneer even where the branch reaches it, because the
     * callee expects more than the branch gives: its own address or its TOC in a register. */
    bool calls_need_veneer;
    /* From the stack pointer to where a caller keeps its TOC pointer, saved directly before a
     * call and loaded directly behind it; 0 where there is no TOC. */
    size_t toc_save_offset;
    uint16_t toc_register; /* its DWARF number */

    /* Unwinding: the stack pointer, the return address, and what the ABI says that a call leaves
     * as it was, by slot. */
    const struct arch_unwind_slot *unwind_slots;
    size_t unwind_slot_count;
    /* Calls leave the return address in a register, where it may stay; otherwise it is in memory
     * from the function's first instruction on. */
    bool has_link_register;
    /* The stack pointer points to the caller's, and to 0 in the outermost frame, which may have no
     * unwind rules. */
    bool has_back_chain;
    /* Return addresses may be signed, and .eh_frame has instructions that say so. */
    bool signs_return_addresses;

    struct arch_results results;
    struct arch_arguments arguments;
    struct arch_entry_frame entry_frame;
    /* LLVM's code for the architecture's oldest processor spills vectors of 16 bytes with their
     * second half first. (What a function saves for its caller is in order.) */
    bool swaps_spilled_vectors;
    /* Cores that have not synchronised since may execute what stood at an address before new code
     * was written there and made visible (`arch_host_code_written`), even if the instruction that
     * leads there was stored after that. */
    bool new_code_needs_barrier;
    /* Cores fetch what has been stored without cache maintenance, so that `arch_host_code_written`
     * has nothing to do. */
    bool fetch_is_coherent;

    /*
     * The functions. `arch` is the table itself: those of one processor's ABIs share them.
     */

    /* Recognises LLVM's sequence in a region as it was loaded. CORRUPT, with the offset of the
     * first byte or word that is not LLVM's. */
    enum cairn_status (*recognise)(const struct cairn_arch *arch, const uint8_t *region,
                                   size_t size, uint64_t address,
                                   struct arch_patchpoint *patchpoint, struct cairn_error *error);

    /* Chooses the place of the patch word. RANGE if the region is too small. */
    enum cairn_status (*place)(const struct cairn_arch *arch,
                               const struct arch_patchpoint *patchpoint, size_t size,
                               uint64_t address, struct arch_placement *placement,
                               struct cairn_error *error);

    /* Fills the region with no-ops around the place of the instruction, and with what a call
     * there needs besides (PPC64's TOC save and reload). The instruction itself becomes a no-op. */
    void (*arm)(const struct cairn_arch *arch, uint8_t *region, size_t size,
                const struct arch_patchpoint *patchpoint, const struct arch_placement *placement);

    /* The instruction at `address` that does `branch`, `length` bytes long, as the integer that a
     * store of the patch word holds at its place. `length` is `instruction_bytes`, or, where
     * `instruction_bytes_max` is larger, up to that: the instruction is then padded inside, so
     * that it stays one. False if `target` is out of reach (never for a no-op, which ignores it).
     */
    bool (*encode_branch)(enum arch_branch branch, uint64_t address, uint64_t target, size_t length,
                          uint64_t *bits);

    /* The reverse. False if the bits are none of the three. */
    bool (*decode_branch)(uint64_t bits, uint64_t address, size_t length, enum arch_branch *branch,
                          uint64_t *target);

    /* Fills `size` bytes with no-ops. Where all instructions have one size, a part of one at the
     * end stays as it is: the rest of it lies behind the bytes. */
    void (*fill_nops)(const struct cairn_arch *arch, uint8_t *bytes, size_t size);

    /* How many of the bytes are no-ops, from the first one on, in any form that LLVM emits. */
    size_t (*leading_nops)(const struct cairn_arch *arch, const uint8_t *bytes, size_t size);

    /* Length of the call that `bytes` begin with, so that it returns after them; 0 if they do not
     * begin with a call, in any form that LLVM emits, or if it goes on beyond `size`. */
    size_t (*call_length)(const struct cairn_arch *arch, const uint8_t *bytes, size_t size);

    /* Whether an instruction of LLVM's, within one patch word, is one that the architecture lets a
     * core execute while another core replaces it by a branch or a no-op of `encode_branch`, or
     * replaces such a branch by it: the core then executes the one or the other. False where the
     * manuals promise that for some instructions only, and this is not one of them. */
    bool (*may_be_exchanged)(const struct cairn_arch *arch, const uint8_t *bytes, size_t length);

    /* Code that jumps to the function whose pointer the aligned 8-byte slot at `slot_address`
     * holds, changing no register that a call's arguments or a callee's caller may rely on. False
     * if the slot is out of reach. */
    bool (*encode_veneer)(const struct cairn_arch *arch, uint64_t address, uint64_t slot_address,
                          uint8_t *code);

    /* Code for a call without arguments at an instruction that nothing is saved around (a stack
     * map's shadow): it is called, calls the function whose pointer the slot holds from a frame of
     * its own, and returns. What a call changes besides what the function does (PPC64's TOC
     * pointer, and registers that LLVM keeps values in across stack maps), it keeps there and
     * brings back. NULL where there is none. */
    bool (*encode_framed_veneer)(const struct cairn_arch *arch, uint64_t address,
                                 uint64_t slot_address, uint8_t *code);

    /* Code that, called, jumps to the entry of the struct arch_exit at `data_address` (aligned to
     * 8), with that address where the entry expects it and with every register as at the call, but
     * for those that veneers change. False if the data is out of reach. */
    bool (*encode_exit)(const struct cairn_arch *arch, uint64_t address, uint64_t data_address,
                        uint8_t *code);

    /* The code of `entry_frame`: where it begins a thread gets into an entered function, if that
     * needs more than a branch; the rest takes the frame away and returns. */
    void (*encode_entry)(const struct cairn_arch *arch, uint8_t *code);

    /* The code of an inline cache at `address`, which is aligned to ARCH_CACHE_ALIGNMENT, into
     * ARCH_CACHE_BYTES_MAX bytes. Its size does not depend on the addresses. False if
     * `site_end` is out of reach. */
    bool (*encode_cache)(const struct cairn_arch *arch, const struct arch_cache *cache,
                         uint64_t address, uint8_t *code, struct arch_cache_size *size);

    /* The code of a function `int f(void)` that returns `value` (0 to 1000); returns its size. */
    size_t (*encode_self_test)(const struct cairn_arch *arch, int value, uint8_t *code);

    /* Name of a DWARF register, or NULL. */
    const char *(*register_name)(uint16_t dwarf);

    /* The register that a number in a stack map is a part of, or is: LLVM numbers some halves. */
    uint16_t (*whole_register)(uint16_t dwarf);
};

/* The table of an architecture; NULL if it has none. */
const struct cairn_arch *arch_find(enum cairn_architecture architecture);

/* The host's; NULL where the host has no patching. */
const struct cairn_arch *arch_host(void);

/*
 * Makes `size` new bytes of code, written through `written` and executed at `executed`, visible
 * to instruction fetch on all cores. Bytes that another core is executing at this moment need a
 * barrier besides. Implemented once per build, by arch/<host>/host.c.
 */
void arch_host_code_written(const void *written, const void *executed, size_t size);

/*
 * Contexts. Implemented once per build, by arch/<host>/host_context.c and context.S, which also
 * holds cairn_context_capture and cairn_context_resume. Async-signal-safe.
 */

enum arch_register_form {
    /* Its part is the low bytes, in the host's byte order. */
    ARCH_REGISTER_INTEGER,
    /* Its part is the first bytes. */
    ARCH_REGISTER_VECTOR,
    /* 16 bytes, the first doubleword first, each doubleword in the host's byte order. Its part is
     * the low bytes of the first doubleword; the whole is as a store puts it into memory. */
    ARCH_REGISTER_DOUBLEWORDS,
    /* The same, but as a store puts it into memory. */
    ARCH_REGISTER_QUADWORD
};

/* Where a context keeps a register. */
struct arch_register {
    size_t offset;
    size_t bytes;
    enum arch_register_form form;
    /* Of a field of flags, in the low 4 bytes of an integer: its first bit, counted from the lowest
     * one; the others are below. 0: no such field. */
    uint8_t first_flag;
    /* It controls how the machine computes: calls leave it as it is, and LLVM does not list it. */
    bool is_control;
};

/* Whether the context has a place for the register, and where. Whether it has the register, its
 * head's `present` says besides. */
bool arch_host_register(const struct cairn_context *context, uint16_t dwarf,
                        struct arch_register *found);

/* DWARF number of the stack pointer. */
uint16_t arch_host_stack_pointer(void);

/*
 * Where contexts keep registers, for those who ask often: the same as arch_host_register says,
 * without a call. A context may be without any of them.
 */
struct arch_context_layout {
    uint16_t stack_pointer; /* its DWARF number */
    /* Registers with lower numbers have a scalar of at most 8 bytes as the low bytes of an integer,
     * which is their first 8 bytes. */
    uint16_t scalars_end;
    bool floats_are_doubles; /* but 4 bytes that float are there as a double */
    /* Of a register's first byte, by DWARF number; 0 for those that only arch_host_register knows,
     * or whose first bytes are not what functions store of them. */
    uint16_t offsets[ARCH_CONTEXT_REGISTERS];
};
extern const struct arch_context_layout arch_host_layout;

/* Entries of `offsets`: of 16 registers, from `number` on, each `stride` behind the one before. */
#define ARCH_OFFSETS_OF_4(offset, stride)                                                          \
    (offset), (offset) + (stride), (offset) + 2 * (stride), (offset) + 3 * (stride)
#define ARCH_OFFSETS_OF_16(number, offset, stride)                                                 \
    [number] = ARCH_OFFSETS_OF_4(offset, stride),                                                  \
    ARCH_OFFSETS_OF_4((offset) + 4 * (stride), stride),                                            \
    ARCH_OFFSETS_OF_4((offset) + 8 * (stride), stride),                                            \
    ARCH_OFFSETS_OF_4((offset) + 12 * (stride), stride)

/* Gives a register that functions keep for their callers its value back: the slot's 8 bytes, as a
 * function has stored them. */
void arch_host_restore_slot(struct cairn_context *context, const struct arch_unwind_slot *slot,
                            uint64_t bytes);

/* A function that a thread is to enter as if it were called from where the context is. */
struct arch_entry {
    const void *function; /* a function pointer */
    uint64_t code;        /* where `encode_entry` has put its code */
    /* Arguments on the stack, from the first of them on, or from the first place. */
    const void *stack;
    size_t stack_bytes;
    unsigned floating_count; /* registers that hold floating-point numbers and vectors */
};

/* So much below the stack pointer is written by entering, and by resuming after that, at most. */
size_t arch_host_entry_reach(size_t stack_bytes);

/* So much of a context, from its begin, has a meaning to a function that begins: its arguments and
 * what it keeps for its caller are there. */
size_t arch_host_entered_bytes(void);

/* Writes to the stack, and to the context: but for the registers that hold arguments it is what the
 * function is to begin with. */
void arch_host_enter(struct cairn_context *context, const struct arch_entry *entry);

/* A return address without the signature that it may have. */
uint64_t arch_host_strip_return_address(uint64_t address);

/* As cairn_context_from_signal and cairn_context_to_signal. */
enum cairn_status arch_host_from_signal(struct cairn_context *context, const void *ucontext,
                                        struct cairn_error *error);
enum cairn_status arch_host_to_signal(const struct cairn_context *context, void *ucontext,
                                      struct cairn_error *error);

/* The program counter alone, of what a signal handler gets as its third argument; where there are
 * no contexts, 0 and nothing. Async-signal-safe. */
uint64_t arch_host_signal_pc(const void *ucontext);
void arch_host_set_signal_pc(void *ucontext, uint64_t pc);

/* The vector registers that the machine and the kernel have, from 1 to the architecture's number of
 * levels; 0 if there are some that no exit can save, or no exits. */
uint32_t arch_host_vector_level(void);

/* The exit's entry that saves this level. */
uint64_t arch_host_exit_entry(uint32_t vector_level);

/*
 * An exit that calls `handler` with all registers of the thread that came through the stub, and
 * lets it go on with what the handler has made of them. `handler` gets a context on the thread's
 * own stack, as long-lived as the call. UNSUPPORTED.
 */
enum cairn_status arch_exit_init(struct arch_exit *data, arch_exit_handler *handler, void *user,
                                 struct cairn_error *error);

/* With the registers of a level up to the machine's. */
void arch_exit_init_level(struct arch_exit *data, arch_exit_handler *handler, void *user,
                          uint32_t vector_level);

#endif
