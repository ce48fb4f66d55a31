/*
 * cairn/llvm.h - Cairn beside LLVM's C API: builds IR, scans and checks modules, loads code.
 *
 *     status = cairn_engine_create(runtime, module, NULL, &engine, &error);
 *     status = cairn_engine_compile(engine, &error);
 *
 * See cairn-llvm(7) (doc/llvm.md). No other public header includes LLVM's headers.
 *
 * Threads: every function uses an LLVM context, which one thread at a time may use. Signal handlers
 * must not call it.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef CAIRN_LLVM_H
#define CAIRN_LLVM_H

#include <cairn/assumption.h>
#include <cairn/call.h>
#include <cairn/declaration.h>
#include <cairn/entry.h>
#include <cairn/exit.h>
#include <cairn/ic.h>
#include <cairn/load.h>
#include <cairn/module.h>
#include <cairn/pcsection.h>
#include <cairn/runtime.h>
#include <cairn/status.h>
#include <llvm-c/Core.h>
#include <llvm-c/ExecutionEngine.h>
#include <llvm-c/Orc.h>
#include <llvm-c/TargetMachine.h>
#include <llvm/Config/llvm-config.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The name of the library for this version of LLVM, for hosts that open it by dlopen when they
 * first compile. */
#define CAIRN_LLVM_SONAME CAIRN_LLVM_SONAME_OF(LLVM_VERSION_MAJOR)
#define CAIRN_LLVM_SONAME_OF(major) CAIRN_LLVM_SONAME_OF_NUMBER(major)
#define CAIRN_LLVM_SONAME_OF_NUMBER(major) "libcairn-llvm-" #major ".so.0"

/* ---- Building IR ---- */

/**
 * Builds a call of llvm.experimental.stackmap at the builder's position. `shadow_bytes` bytes after
 * it may be patched. Live values of integer types that would crash the LLVM in use are
 * zero-extended to i32 or i64. Their own types are kept as metadata of the call, which
 * declarations have. Wide constants are unchanged if a record can hold them.
 *
 * Returns the call, or NULL. Errors: ARGUMENT (the builder has no position), UNSUPPORTED (a type
 * that cannot be kept live; the message suggests another one), MEMORY.
 */
CAIRN_API LLVMValueRef cairn_build_stackmap(LLVMBuilderRef builder, uint64_t id,
                                            uint32_t shadow_bytes, LLVMValueRef *live_values,
                                            uint32_t live_value_count, struct cairn_error *error);

/** The parameters of cairn_build_patchpoint. Zero means: no target, void, the C convention. */
struct cairn_patchpoint {
    uint64_t id;
    /** Bytes to reserve, at least cairn_patchpoint_minimum_bytes. */
    uint32_t byte_count;
    /** A function (not on AArch64 and RISC-V), or a constant address as a pointer or an integer,
     * below 2^48 on AArch64 and PPC64. With NULL or a null constant LLVM emits no-ops instead of a
     * call. For a target that is known only at run time or must be computed, use no target and
     * cairn_site_call, or a function that calls a pointer which it gets as an argument. */
    LLVMValueRef target;
    /** NULL means void. A pointer or a narrow integer is the low part of an i64, which is what the
     *  site returns, and so the type of the results of handlers and the declared type. */
    LLVMTypeRef result_type;
    /** LLVM's number. With CAIRN_CALLING_CONVENTION_ANYREG, LLVM chooses the registers of the
     *  operands and the result, and the record names them. */
    uint32_t calling_convention;
    LLVMValueRef *arguments;
    uint32_t argument_count;
    LLVMValueRef *live_values;
    uint32_t live_value_count;
    const char *name; /**< of the result; NULL or "" for no name */
    /** The inline cache that the engine creates, with cairn_ic_create, for each site with this ID
     *  before it publishes the module: also for copies that LLVM has made by inlining or unrolling.
     *  Copied. NULL: none. See cairn-llvm(7). */
    const struct cairn_ic_options *cache;
    /** Instead of `cache`: a name (cairn_build_name), whose value is the address of the options,
     *  which are copied when the object is loaded. NULL: none. */
    const struct cairn_name *cache_name;
};

/** The maximum size of a patch point. LLVM would fill more bytes with no-ops. */
enum { CAIRN_PATCHPOINT_BYTES_MAX = 1 << 20 };

/**
 * Builds a call of llvm.experimental.patchpoint.* at the builder's position. The result may be an
 * integer of up to 64 bits or a pointer; with LLVM 19 and later, also a floating-point number or a
 * 128-bit vector. Live values are treated as in cairn_build_stackmap.
 *
 * Returns the result, which may be a conversion of the call's result, or NULL; then nothing was
 * built. Errors: ARGUMENT (among others, a value of another function, and a cache together with a
 * target), UNSUPPORTED (also for a target that LLVM would not call; the message
 * suggests another one), RANGE (too few bytes for LLVM's call, or too many), MEMORY.
 */
CAIRN_API LLVMValueRef cairn_build_patchpoint(LLVMBuilderRef builder,
                                              const struct cairn_patchpoint *patchpoint,
                                              struct cairn_error *error);

/** Returns the minimum size in bytes of a patch point for the module's target: with a call target,
 *  the size of LLVM's call; without one, the size that Cairn needs to patch it while it is
 * executed, at any alignment. 0 if the architecture is unknown. */
CAIRN_API uint32_t cairn_patchpoint_minimum_bytes(LLVMModuleRef module, bool has_target);

/** Returns the size in bytes that a patch point without a target needs so that its inline cache can
 *  keep the first case in the patch point's own bytes, at any alignment: a load, a store or a
 *  constant, with a key of 4 bytes and offsets of at most 120 (cairn/ic.h). Other cases may need
 *  more: 8 bytes for a key of 8 bytes, and as many for a field that is out of line, a large offset,
 *  or a counter. 0 if the architecture has no inline caches. */
CAIRN_API uint32_t cairn_patchpoint_inline_bytes(LLVMModuleRef module);

/**
 * Builds a load of a name's value: a 64-bit constant that is known only where the module's object
 * is loaded, such as an address or a tagged value. The loader asks the host for it (`find_names` in
 * struct cairn_load_options), so the object can be stored (cairn_embed_manifest), and loaded with
 * other values. Engines load names, too; memory managers and ORC do not. The code takes one load
 * from memory near it, which LLVM may move out of loops, and assumes nothing of the value. As a
 * value of a frame state, it takes no register.
 *
 * `type` is i64 or a pointer. The bytes are copied. Equal names of a module are one name.
 *
 * Returns the load, or NULL; then no instruction was built. Errors: ARGUMENT (a name of no bytes or
 * of more than CAIRN_NAME_BYTES_MAX, the type, or the builder's position), UNSUPPORTED (an object
 * format other than ELF), CONFLICT (another name has the same 64-bit hash).
 */
CAIRN_API LLVMValueRef cairn_build_name(LLVMBuilderRef builder, const struct cairn_name *name,
                                        LLVMTypeRef type, struct cairn_error *error);

/* ---- Frame states ---- */

/** An interpreter's frame at a site, in terms of the compiled function's values. */
struct cairn_encoded_frame {
    /** The host's: numbers, or addresses that are known at compile time. */
    uint64_t function;
    /** Instead of `function`: a name that cairn_build_name has built. The interpreter's frame then
     *  has the value that the loader was told. All frames of a state have one, or none. */
    LLVMValueRef function_name;
    uint64_t position;
    uint32_t flags;
    /** Values of any scalar or vector type, constants, or names (cairn_build_name). NULL or an
     * undefined value means a dead local, which the interpreter writes before it reads it. */
    LLVMValueRef *locals;
    uint32_t local_count;
    LLVMValueRef *stack; /**< the operand stack from its lowest entry on; like `locals` */
    uint32_t stack_count;
};

/**
 * Encodes a stack of interpreter frames, the outermost first: a function, and the functions that
 * were inlined into it. Writes the values to `live_values`, which has space for `capacity`, and
 * their number to `*count`. If `live_values` is NULL, sets `*count` to the capacity that is needed.
 * (cairn_build_guard encodes its frames itself.) The caller passes them as live values to
 * cairn_build_patchpoint or cairn_build_stackmap, or in the "deopt" bundle of a statepoint, with or
 * without other values before and after them. cairn_frame_state_read (cairn/frame_state.h) decodes
 * them.
 *
 * Constants take no register and no instruction, except addresses of globals, which LLVM knows only
 * when it links. A value that occurs several times is passed to LLVM once. cairn_build_patchpoint
 * and cairn_check_module check that LLVM can keep a value of its type live. Takes
 * O(slots × different values) time.
 *
 * At optimisation level 0, cairn_check_module stores values for which LLVM has no registers in the
 * function's frame.
 *
 * Errors: UNSUPPORTED (a type that a struct cairn_value cannot hold; the message names it), RANGE
 * (too little space, or more than 65535 live values, frames, or entries in a frame), ARGUMENT. Then
 * the contents of `live_values` are unspecified, and `*count` is unchanged.
 */
CAIRN_API CAIRN_MUST_CHECK enum cairn_status cairn_frame_state_encode(
    LLVMContextRef context, const struct cairn_encoded_frame *frames, uint32_t frame_count,
    LLVMValueRef *live_values, uint32_t capacity, uint32_t *count, struct cairn_error *error);

/* ---- Guards ---- */

/** The parameters of cairn_build_guard. */
struct cairn_guard {
    uint64_t id;
    /** Where threads leave. Its handler reads the frame state, from live value 0 on, and must
     *  return from the frame's function or enter another one (cairn/exit.h). Valid as long as the
     *  code. */
    const cairn_exit *exit;
    /** The interpreter's frames, as for cairn_frame_state_encode. They may have any number of
     * values at all levels of optimisation, if the module is checked (cairn_check_module). */
    const struct cairn_encoded_frame *frames;
    uint32_t frame_count;
    /** Of a guard without a condition: threads leave when one of these is broken
     *  (cairn/assumption.h). NULL if there is a condition. */
    cairn_assumption *const *assumptions;
    uint32_t assumption_count;
    /** Instead of `exit` and `assumptions`: names (cairn_build_name) whose values are the address
     *  that cairn_exit_target returns, and addresses of assumptions. There are `assumption_count`
     *  names of assumptions, or none. */
    const struct cairn_name *exit_name;
    const struct cairn_name *assumption_names;
};

/**
 * Builds a guard at the builder's position: the code after it is executed only while something is
 * true that it relies on.
 *
 * With a condition, which is an i1: a branch with weights. If the condition is true, the code
 * continues in a new block, at the end of which the builder is then positioned. Otherwise a cold
 * block calls the exit with the frame state. It ends with a trap, which is executed if the handler
 * lets the thread continue. The builder must be at the end of a block without a terminator.
 *
 * Without a condition (NULL), and with assumptions: a patch point that does nothing, and calls the
 * exit after one of the assumptions was broken. If the exit's handler lets the thread continue, it
 * continues after the patch point. The engine registers it (cairn-llvm(7)).
 *
 * The function gets the attributes `uwtable`, without which its frames cannot be left, and
 * `noinline`, because the frame state would not describe the function that LLVM inlines it into. A
 * front end inlines by itself, and passes all frames.
 *
 * Returns the call of the patch point, or NULL; then no instruction or block of the guard was
 * built. Errors: ARGUMENT (no exit; neither a condition nor assumptions, or both; a value of
 * another function or a global of another module, where the message names both; a function that is
 * `alwaysinline`; the builder's position); others as cairn_frame_state_encode and
 * cairn_build_patchpoint.
 */
CAIRN_API LLVMValueRef cairn_build_guard(LLVMBuilderRef builder, LLVMValueRef condition,
                                         const struct cairn_guard *guard,
                                         struct cairn_error *error);

/* ---- PC sections ---- */

/** Consecutive constants of an entry. */
struct cairn_constant_tuple {
    /** Integer constants of up to 64 bits. Each takes as many bytes as LLVM stores its type in. */
    LLVMValueRef *values;
    uint32_t count;
};

/** A PC section (cairn/pcsection.h) in which an instruction or a function gets an entry. */
struct cairn_pcsection_metadata {
    const char *section; /**< not empty, without '!', after which LLVM expects options */
    /** LLVM's option !C: numbers of 2 to 8 bytes are encoded as ULEB128. LLVM 16 ignores it, and
     * appends !C to the section's name. All entries of a section must agree. */
    bool is_compressed;
    const struct cairn_constant_tuple *tuples;
    uint32_t tuple_count;
};

/**
 * Attaches `!pcsections` to an instruction, or to a function with a body. LLVM then writes an entry
 * with these constants to each of the sections, after the entries that were attached before.
 *
 * An instruction gets an entry for each machine instruction that is made from it: usually one for a
 * load, store or branch, one or several for an atomic, and one for each copy of duplicated code.
 * LLVM 16 to 19 drop the metadata of calls, some with a warning on standard error. IR passes drop
 * the metadata of instructions that they change, so call this after the last pass. Each instruction
 * gets its own node, because LLVM writes the constants of a shared node only once
 * (cairn/pc_table.h): it includes a constant of no bytes, which the function's attribute
 * "cairn-pcsections" counts.
 *
 * Errors: UNSUPPORTED (LLVM 14 or 15, an object format other than ELF, or a value that is not an
 * integer constant of up to 64 bits), ARGUMENT (neither an instruction in a function nor a function
 * with a body, or an invalid name), RANGE (more than CAIRN_PCSECTION_CONSTANTS_MAX constants in a
 * section), MEMORY. Then the value is unchanged.
 */
CAIRN_API CAIRN_MUST_CHECK enum cairn_status cairn_attach_pcsections(
    LLVMValueRef value, const struct cairn_pcsection_metadata *sections, uint32_t count,
    struct cairn_error *error);

/* ---- Preparing functions and modules ---- */

/**
 * Marks a conditional branch on a comparison of a pointer with null as a check that LLVM may leave
 * to the hardware (metadata make.implicit). An access near the pointer on the other side of the
 * branch then replaces the check, and the fault map contains where execution continues after a
 * fault (cairn/fault.h). LLVM does this on x86-64 and AArch64 at optimisation levels 1 to 3, if its
 * option -enable-implicit-null-checks is on, as in engines with `implicit_null_checks`. On AArch64,
 * LLVM 14 to 16 do it only for loads, and not in small functions with a frame pointer
 * (cairn_prepare_function), because they set up the frame between the check and the access. Call
 * this after the last IR pass that changes branches. Errors: ARGUMENT (not such a branch).
 */
CAIRN_API CAIRN_MUST_CHECK enum cairn_status cairn_make_implicit(LLVMValueRef branch,
                                                                 struct cairn_error *error);

/** Adds attributes to a function: `uwtable`, so that LLVM emits unwind tables;
 *  "frame-pointer"="all", so that profilers can follow its frames; and
 *  "branch-target-enforcement"="true", so that it has landing pads on AArch64 (`has_landing_pads`
 *  in cairn/runtime.h). Functions without these attributes can be patched, too. */
CAIRN_API void cairn_prepare_function(LLVMValueRef function);

/**
 * Gives each statepoint of the module (cairn-llvm(7)) a new ID, from `*next_id` on in
 * the order of the module, and advances `*next_id`. Call this after LLVM's pass
 * rewrite-statepoints-for-gc, which gives all statepoints the same ID, so that their declarations
 * conflict. A second call numbers them again. Errors: ARGUMENT.
 */
CAIRN_API CAIRN_MUST_CHECK enum cairn_status cairn_number_statepoints(LLVMModuleRef module,
                                                                      uint64_t *next_id,
                                                                      struct cairn_error *error);

/**
 * Creates the signature (cairn/call.h) of a function type, for example of a loop's OSR version. The
 * members of a returned structure are the results. The type does not tell which integers are
 * sign-extended: all are zero-extended. For others use cairn_signature_create.
 *
 * Errors: ARGUMENT (not a function type, too many arguments or results), UNSUPPORTED (variable
 * arguments, or as cairn_signature_create), MEMORY.
 */
CAIRN_API CAIRN_MUST_CHECK enum cairn_status cairn_signature_of_function(
    const struct cairn_allocator *allocator, LLVMTypeRef function_type, cairn_signature **signature,
    struct cairn_error *error);

/* ---- Scanning and checking modules before code generation ----
 *
 * Engines, memory managers and cairn_embed_manifest declare the sites of a module
 * (cairn-llvm(7)). */

/** How LLVM's liveness of patch points (which registers are live across each) is turned off. */
enum cairn_liveness {
    /** Cairn turns it off for the process (LLVM's option -enable-patchpoint-liveness=false), once,
     * because LLVM 14 to 22 crash on ordinary code with it. Records then have no live-outs, so
     * every register counts as live. On PPC64, also set -disable-ppc-vsx-swap-removal, because LLVM
     * would keep vectors in another order than records say, and -disable-ppc-ctrloops, because LLVM
     * 14 and 15 would keep loop counters in CTR across patch points, which change it. */
    CAIRN_LIVENESS_OFF = 0,
    CAIRN_LIVENESS_OFF_BY_HOST = 1 /**< the host has set these options */
};

/** A construct that crashes the LLVM in use. All members are valid only during the callback. */
struct cairn_finding {
    const char *function;    /**< name of the function; "" if it has none */
    const char *instruction; /**< the whole instruction, as LLVM prints it */
    const char *why;         /**< the reason, a part of a sentence */
    const char *instead;     /**< what to write instead, a part of a sentence */
    const char *sentence;    /**< all of these; long names and instructions are truncated */
    LLVMValueRef call;       /**< usually an intrinsic's call; or a landingpad, catchswitch or
                              * cleanuppad */
};

struct cairn_check_options {
    unsigned optimisation_level; /**< 0 to 3, at which the module will be compiled */
    bool enable_fast_isel;       /**< EnableFastISel: LLVM will use FastISel above level 0, too */
    /** The host has run LLVM's verifier, and has not changed the module since. */
    bool is_verified;
    /** Called for each finding, in the order of the module. Must not change the module. May be
     *  NULL. */
    void (*finding)(const struct cairn_finding *finding, void *user);
    void *user;
    /** Names of the GC strategies that the host has registered with LLVM in C++. Functions may name
     * one of these (gc "name"), or one of LLVM's own: statepoint-example, coreclr, shadow-stack,
     * erlang and ocaml. */
    const char *const *gc_strategies;
    size_t gc_strategy_count;
};

/**
 * Rejects a module that crashes the code generator of the LLVM in use or that it compiles to wrong
 * code, as far as that is known. Call this before code generation; engines do it. Three checks are
 * made in order:
 *
 * 1. A function with an unknown GC strategy, and a gc.relocate in a function without a strategy, at
 *    which LLVM ends the process. The error names the function.
 * 2. LLVM's verifier, unless `is_verified` is set. The error is the verifier's message.
 * 3. Everything else. Each finding is passed to `finding`. The error is the sentence of the first
 *    one, with the number of further ones.
 *
 * At level 0, the check changes patch points and stack maps with more live values than LLVM has
 * registers for: the values of their frame states are stored in the function's frame before the
 * call (cairn-exits-and-frames(7)).
 *
 * `options` NULL means all zero. Takes O(instructions + records) time; the verifier takes a few
 * percent of the time for compiling. Errors: CAIRN_ERROR_LLVM (the module is rejected), CORRUPT (a
 * malformed call, at which the check ends), UNSUPPORTED (operand bundles, as for declarations),
 * MEMORY, ARGUMENT.
 */
CAIRN_API CAIRN_MUST_CHECK enum cairn_status cairn_check_module(
    LLVMModuleRef module, const struct cairn_check_options *options, struct cairn_error *error);

/* ---- Memory managers: for hosts that create MCJIT engines (cairn-llvm(7)) ---- */

/** PC sections to keep with their module, for cairn_module_pc_table. */
struct cairn_pc_section {
    const char *section; /**< without the options that LLVM 16 leaves in it (!C) */
    bool is_prefix;  /**< keep all sections whose names begin with `section`; "" keeps all data */
    bool has_schema; /**< if false, the bytes are kept undecoded: cairn_pc_table_section */
    /** The schema for LLVM 17 and later, as in the metadata. It is adapted to LLVM 16, which does
     * not compress. `address_bytes` 0 means the size in the code model. */
    struct cairn_pcsection_schema schema;
};

/** How to treat an ID with two shapes: two calls with the same ID have different kinds, bytes or
 *  types, in one module or in modules that are loaded together (cairn-llvm(7)). */
enum cairn_id_conflicts {
    CAIRN_ID_CONFLICTS_REFUSED = 0, /**< reject the module: CAIRN_ERROR_CONFLICT */
    /** Give each call whose ID has two shapes a new ID in the IR, from 2^31 on. So does a later
     * call whose own ID was given to another call. (With CAIRN_ID_CONFLICTS_REFUSED it keeps its
     * ID, so a host with calls without IDs should choose IDs below 2^31.) */
    CAIRN_ID_CONFLICTS_RENUMBERED = 1,
    /** Leave records with such an ID undeclared: they can be looked up, but have no site, and their
     *  values have no types. */
    CAIRN_ID_CONFLICTS_UNDECLARED = 2
};

/** What engines and memory managers do with the modules that they load. */
struct cairn_module_options {
    /** The name of the modules, for messages, logs and `cairn inspect`; copied. NULL means
     * "engine", "queue" or "mcjit". Engines and queues add the module's first function: "engine:
     * fib". */
    const char *name;
    /** Called for each loaded module before it is published, when any site with space for a branch
     *  may still be changed. Must not call the engine. May be NULL. */
    void (*before_publish)(cairn_module *module, void *user);
    /** Called after a module is published. Must not call the engine. May be NULL. */
    void (*after_publish)(cairn_module *module, void *user);
    void *user;
    /** The PC sections to keep. The first match of a name counts. Copied. LLVM 14 and 15 emit none.
     * The finalisation fails if a section does not match its schema. */
    const struct cairn_pc_section *pc_sections;
    size_t pc_section_count;
    enum cairn_id_conflicts id_conflicts;
};

struct cairn_memory_manager_options {
    struct cairn_module_options modules;
    /** The engine's code model: LLVMCodeModelDefault (0), LLVMCodeModelJITDefault or
     * LLVMCodeModelLarge. Code of the other models has 32-bit addresses, which RuntimeDyld
     * truncates without an error. */
    LLVMCodeModel code_model;
    /** Turned off when the manager is created, unless this says otherwise. */
    enum cairn_liveness liveness;
};

typedef struct cairn_memory_manager cairn_memory_manager;

/**
 * Creates a memory manager for one MCJIT engine. What LLVM finalises together becomes one module:
 * its stack maps are decoded after relocation, its sites armed, its code protected, and it is
 * published. `options` may be NULL. Errors: UNSUPPORTED (a code model that may not reach code
 * memory, which can be anywhere in the address space), MEMORY, ARGUMENT.
 *
 * The host passes cairn_memory_manager_llvm() to LLVM as `MCJMM` of the engine's options. LLVM then
 * owns it, and destroys it with the engine, which retires its modules. Before that, destroy it with
 * LLVMDisposeMCJITMemoryManager.
 */
CAIRN_API CAIRN_MUST_CHECK enum cairn_status cairn_memory_manager_create(
    cairn_runtime *runtime, const struct cairn_memory_manager_options *options,
    cairn_memory_manager **manager, struct cairn_error *error);

/** Returns LLVM's handle of the manager, for `MCJMM` of one engine's options. */
CAIRN_API LLVMMCJITMemoryManagerRef cairn_memory_manager_llvm(cairn_memory_manager *manager);

/**
 * Sets the engine that uses the manager. Call this as soon as the engine exists. LLVM's errors are
 * then checked before publication: if LLVM cannot resolve a symbol, it applies no relocations, and
 * the finalisation fails with CAIRN_ERROR_LLVM. Without the engine, such code is published. After
 * such an error LLVM ends the process at the engine's next module.
 */
CAIRN_API void cairn_memory_manager_set_engine(cairn_memory_manager *manager,
                                               LLVMExecutionEngineRef engine);

/**
 * Declares the sites of a module that was or will be added to the engine. Must be called before
 * code generation, and after passes that internalise symbols. If the module has sites, a constant
 * is added ("cairn.declared.*", 16 bytes in a section that is not kept), by which it is recognised
 * when it is loaded. Undeclared records can be looked up, but have no sites. An ID may have another
 * shape in a module that is loaded later. Errors, after which calls may have new IDs: CONFLICT (two
 * shapes of an ID among modules that are not loaded yet, enum cairn_id_conflicts), MEMORY, CORRUPT,
 * UNSUPPORTED (bound sites in an object that is not ELF).
 */
CAIRN_API CAIRN_MUST_CHECK enum cairn_status cairn_memory_manager_declare(
    cairn_memory_manager *manager, LLVMModuleRef module, struct cairn_error *error);

/**
 * Returns the status of the last finalisation. MCJIT ignores the errors of its memory manager, so
 * call this after LLVMGetFunctionAddress and similar functions. Code of a failed finalisation is
 * not executable. Errors: as cairn_engine_compile.
 */
CAIRN_API CAIRN_MUST_CHECK enum cairn_status cairn_memory_manager_status(
    const cairn_memory_manager *manager, struct cairn_error *error);

/* ---- Objects that are kept: in files, or in a code cache ---- */

struct cairn_embed_options {
    /** The target machine that will compile the module. Functions without the attributes
     *  "target-cpu" and "target-features" are compiled for its CPU and features. */
    LLVMTargetMachineRef machine;
    enum cairn_id_conflicts id_conflicts;
    /** The PC sections to keep. `address_bytes` 0 means the size in the default code model: 8 on
     *  PPC64, otherwise 4. In the medium and large code models it is 8. */
    const struct cairn_pc_section *pc_sections;
    size_t pc_section_count;
};

/**
 * Adds to the module what its object's loader must know (cairn-loading(7)):
 * declarations, PC sections, and a fingerprint of the CPU that the code needs. The object can then
 * be loaded by cairn_loader_add_object in any process on such a machine, without LLVM. It is a
 * private constant in the section `.cairn.manifest`.
 *
 * Call this once for each module, after the last IR pass and before code generation, for example by
 * LLVMTargetMachineEmitToMemoryBuffer. Engines need no such call. The module is not checked
 * (cairn_check_module).
 *
 * LLVM's C API does not tell which features a CPU has that is known by its name. They are found out
 * by means of LLVM's inliner, in some milliseconds. If LLVM does not tell (PPC64 before LLVM 22),
 * name features instead of a CPU. Functions that the code calls only after it has checked the CPU
 * itself count as well.
 *
 * Sites may be bound only by names (`cache_name`, `exit_name`, `assumption_names`).
 *
 * Errors: as cairn_memory_manager_declare; UNSUPPORTED (the features of the CPU are not known; the
 * object's format is not ELF; a site is bound to an address, and the message says what to name),
 * CAIRN_ERROR_LLVM, RANGE, ARGUMENT.
 */
CAIRN_API CAIRN_MUST_CHECK enum cairn_status cairn_embed_manifest(
    LLVMModuleRef module, const struct cairn_embed_options *options, struct cairn_error *error);

/* ---- ORC: for hosts with a JIT of LLVM's LLJIT, with LLVM 16 and later (cairn-llvm(7)) ----
 *
 * Each object that the JIT links becomes a module. Removing its resource tracker, or disposing of
 * the JIT, retires it.
 *
 * Threads: every function is thread-safe, but signal handlers must not call it. */

typedef struct cairn_orc cairn_orc;

struct cairn_orc_options {
    /** As for memory managers. The name's default is "orc". IDs may conflict only within a module.
     */
    struct cairn_memory_manager_options loading;
    /** For cairn_orc_transform. What it points to must be valid as long as the connection. */
    struct cairn_check_options check;
    bool skip_check; /**< skip cairn_check_module, for modules that were checked before */
};

/**
 * Creates a connection between JITs and a runtime. `options` may be NULL. Errors: UNSUPPORTED (LLVM
 * 14 or 15, or a code model, as for memory managers), MEMORY, ARGUMENT.
 *
 * Threads: no other thread may be creating or destroying a connection. Signal handlers must not
 * call this.
 */
CAIRN_API CAIRN_MUST_CHECK enum cairn_status cairn_orc_create(
    cairn_runtime *runtime, const struct cairn_orc_options *options, cairn_orc **orc,
    struct cairn_error *error);

/** Destroys the connection. It is freed when the JITs that use it are disposed of. NULL is allowed.
 *
 *  Threads: no other thread may be creating or destroying a connection. Signal handlers must not
 *  call this.
 */
CAIRN_API void cairn_orc_destroy(cairn_orc *orc);

/**
 * Returns a new object linking layer for a JIT. Hosts pass this function and a `cairn_orc` to
 * LLVMOrcLLJITBuilderSetObjectLinkingLayerCreator. Also sets the error reporter of the session to
 * one that prints nothing, and keeps errors for cairn_orc_status.
 */
CAIRN_API LLVMOrcObjectLayerRef cairn_orc_layer(void *orc, LLVMOrcExecutionSessionRef session,
                                                const char *triple);

/**
 * Checks a module (cairn_check_module) and declares its sites, by a manifest in its object
 * (cairn/load.h). Hosts pass this function and a `cairn_orc` to
 * LLVMOrcIRTransformLayerSetTransform, or call it at the end of their own transformation, after the
 * last pass. A host that compiles by itself calls it before; `responsibility` is not used. Records
 * of modules without a manifest can be looked up, but have no sites. Returns LLVMErrorSuccess, or
 * an error with the message of the check or of the declarations; cairn_orc_status then returns its
 * status. After an error, it has disposed of the module and set `*module` to NULL, because LLVM
 * does not. Errors: as cairn_check_module and cairn_memory_manager_declare.
 */
CAIRN_API LLVMErrorRef cairn_orc_transform(void *orc, LLVMOrcThreadSafeModuleRef *module,
                                           LLVMOrcMaterializationResponsibilityRef responsibility);

/**
 * Converts an error of LLVM, which it consumes: to the first error that Cairn or LLVM has reported
 * in this thread since its last call of this function, otherwise in another thread, otherwise to
 * CAIRN_ERROR_LLVM with the text of `failure`. For what LLVMOrcLLJITLookup returns is usually only
 * that symbols could not be materialised, and not why. Returns CAIRN_OK for NULL
 * (LLVMErrorSuccess). So pass the result of each lookup to this function. `orc` may be NULL.
 * Errors: CAIRN_ERROR_LLVM (only LLVM's text is known); others as cairn_engine_compile.
 */
CAIRN_API CAIRN_MUST_CHECK enum cairn_status cairn_orc_status(cairn_orc *orc, LLVMErrorRef failure,
                                                              struct cairn_error *error);

/* ---- Engines: LLVM's code generator, checks, declarations and a loader in one ----
 *
 * Threads: an engine must be used by one thread at a time, and not by signal handlers. Any number
 * of engines may compile and load into one runtime concurrently, if each has its own LLVM context.
 *
 * An error that LLVM reports makes a call fail; a fatal error of LLVM ends the process
 * (cairn-llvm(7)). */

struct cairn_engine_options {
    unsigned optimisation_level; /**< of the code generator: 0 to 3 */
    /** LLVMCodeModelDefault (0), LLVMCodeModelJITDefault or LLVMCodeModelLarge; others are
     * refused. Code is position-independent, so with the default model calls and accesses also
     * reach what is far away: through stubs and slots that are loaded with the code. */
    LLVMCodeModel code_model;
    /** LLVM's names of a CPU and of features, such as "skylake" and "+avx2,-bmi", for functions
     * without the attributes "target-cpu" and "target-features". NULL means the architecture's
     * oldest CPU. For the host's, pass the results of both LLVMGetHostCPUName and
     * LLVMGetHostCPUFeatures: the name stands for features that the system may have turned off. */
    const char *cpu;
    const char *features;
    /** Use FastISel above level 0, too. (Before LLVM 18, this needs MCJIT's target machine, whose
     *  default code model is JITDefault, and excludes `cpu` and `features`.) */
    bool enable_fast_isel;
    /**
     * Passes to run on each module when it is added, in the syntax of LLVM's command opt, for
     * example "default<O2>"; copied. NULL means none. They run after LLVM's verifier, and before
     * the module is scanned and checked, since they may duplicate, change and remove calls that
     * have records: an ID may then have several sites (cairn_runtime_find_id). They may also remove
     * functions and variables with internal linkage, branches that cairn_make_implicit has marked,
     * and PC sections (cairn_attach_pcsections), so hosts that need those run passes before they
     * mark and attach. What rewrite-statepoints-for-gc and place-safepoints do not support is
     * refused (CAIRN_ERROR_LLVM), even if `skip_check` is set.
     */
    const char *passes;
    /** Turns on LLVM's option -enable-implicit-null-checks for the process, once. It affects only
     * branches marked by cairn_make_implicit, except those on which LLVM may crash: they stay
     * explicit. LLVM must not be compiling at the same time. */
    bool implicit_null_checks;
    enum cairn_liveness liveness;
    bool skip_check;  /**< skip cairn_check_module, for modules that were checked before */
    bool is_verified; /**< as in struct cairn_check_options, for all modules */
    /** Called for each finding of the check, as in struct cairn_check_options. May be NULL. */
    void (*finding)(const struct cairn_finding *finding, void *user);
    void *finding_user;
    /** As in struct cairn_check_options. Must be valid as long as the engine. */
    const char *const *gc_strategies;
    size_t gc_strategy_count;
    /**
     * The target of calls of llvm.experimental.deoptimize, usually cairn_exit_target of an exit,
     * valid as long as the engine's code is used. LLVM calls a function named __llvm_deoptimize
     * with the call's arguments; the engine binds that name to this address, unless one of its
     * modules defines it. The exit's handler reads the deopt values (cairn_frame_value). It must
     * return from the frame's function or enter another one in its place (cairn_exit_return,
     * cairn_exit_enter), because the code does not continue after the call. NULL: the name is
     * looked up like any other.
     */
    const void *deoptimize_target;
    struct cairn_module_options modules;
    /** How objects are loaded, and where symbols are found that the engine's modules do not define.
     * The engine sets `name` and what is about PC sections. */
    struct cairn_load_options load;
    /** Called with the object of each module when it is compiled, before it is loaded, by the
     *  thread that compiles. A host that stores the bytes compiles once: cairn_loader_add_object
     *  loads them in any process on such a machine. `name` is the module's identifier. The modules
     *  get manifests, so those that cannot be stored are refused (cairn_embed_manifest). A queue
     *  then compiles each job by itself. May be NULL. */
    void (*object)(const char *name, const void *bytes, size_t size, void *user);
    void *object_user;
};

typedef struct cairn_engine cairn_engine;

/** The versions of a function: a quick one that is compiled in little time, and a full one. */
enum cairn_tier { CAIRN_TIER_FULL = 0, CAIRN_TIER_QUICK = 1 };

/** Returns options for compiling versions of a tier: the optimisation level, FastISel and passes.
 *  Everything else is 0. The quick version of a loop of 300 instructions is compiled in 12 ms, and
 *  the full one in 22 to 39 ms (LLVM 22).
 *
 *  Threads: thread-safe and async-signal-safe. */
CAIRN_API struct cairn_engine_options cairn_engine_preset(enum cairn_tier tier);

/**
 * Creates an engine that loads into the code memory of `runtime`, and adds `module` to it. If
 * `runtime` is NULL, the engine has its own runtime. `options` NULL means all zero. Initialises
 * LLVM's native target. The module is scanned and checked first; the engine owns it on success
 * only. Errors: ARGUMENT (also passes that LLVM does not know), MEMORY, CONFLICT, CORRUPT,
 * UNSUPPORTED (a code model, or a type that no declaration can hold), CAIRN_ERROR_LLVM (another
 * machine's target, a wrong data layout, an error that a pass reports, or rejected by the check).
 * After an error, passes may have changed the module.
 */
CAIRN_API CAIRN_MUST_CHECK enum cairn_status cairn_engine_create(
    cairn_runtime *runtime, LLVMModuleRef module, const struct cairn_engine_options *options,
    cairn_engine **engine, struct cairn_error *error);

/** Destroys the engine and the LLVM modules that are not finalised, and retires what it loaded.
 *  NULL is allowed. */
CAIRN_API void cairn_engine_destroy(cairn_engine *engine);

/** Scans, checks and adds another module, which the engine owns on success only. Errors: as
 *  cairn_engine_create. */
CAIRN_API CAIRN_MUST_CHECK enum cairn_status cairn_engine_add_module(cairn_engine *engine,
                                                                     LLVMModuleRef module,
                                                                     struct cairn_error *error);

/**
 * Compiles, loads and publishes all modules that were added since the last call, as one module, and
 * disposes of them. If no module was added, returns the result of the last call.
 *
 * Errors: CAIRN_ERROR_LLVM (an error that LLVM reported, with its text), NOT_FOUND (undefined
 * symbols, by name), FULL (too little space in the slab); others as cairn_loader_add_object,
 * cairn_loader_finish and cairn_module_publish; with `object` also as cairn_embed_manifest. Then
 * none of the new modules is published, and earlier ones stay loaded.
 */
CAIRN_API CAIRN_MUST_CHECK enum cairn_status cairn_engine_compile(cairn_engine *engine,
                                                                  struct cairn_error *error);

/** Returns the address of a function or variable that the engine has compiled, in the newest module
 *  if several define it; NULL after an error. Errors: NOT_FOUND (not defined, or hidden, or only in
 *  a module that was retired, could not be loaded or is not compiled yet). */
CAIRN_API void *cairn_engine_function(cairn_engine *engine, const char *name,
                                      struct cairn_error *error);

/** Returns the site with the ID in the engine's runtime, or NULL after an error. Errors: as
 *  cairn_runtime_find_site. */
CAIRN_API cairn_site *cairn_engine_site(cairn_engine *engine, uint64_t id,
                                        struct cairn_error *error);

/* ---- Queues: compilation in other threads (cairn-llvm(7)) ----
 *
 * A queue has threads, each with an engine. A job is a function to compile: the queue calls the
 * host to build its module, compiles, loads and publishes it, and installs the function as the
 * version of an entry (cairn/entry.h). A job may also be bitcode, or an object that was compiled
 * before. Jobs are begun in the order of their priorities, and equal ones in the order in which
 * they were added.
 *
 * A forked child has no threads of the queue.
 *
 * Threads: every function is thread-safe and takes locks, so signal handlers must not call it. */

struct cairn_queue_options {
    /** Of the threads' engines. What it points to must be valid as long as the queue. Its callbacks
     *  are called by all threads of the queue. */
    struct cairn_engine_options engine;
    /** The same for quick versions, for hosts that need other passes. NULL: those of `engine` with
     *  the level, FastISel and passes of cairn_engine_preset. */
    const struct cairn_engine_options *quick;
    uint32_t thread_count; /**< 0 means 1 */
    uint32_t batch_limit;  /**< most jobs that are compiled together, at most 65,536; 0 means 32 */
    uint32_t job_limit;    /**< most jobs that wait; 0: no limit */
    size_t byte_limit;     /**< most bytes of jobs that wait or are compiled; 0: no limit */
    /** Whether threads that start without a waiting job compile a small function, so that the first
     *  job does not find LLVM cold. */
    bool warms_up;
    /** The host's variable that tells how many results wait for cairn_queue_take, so that a poll is
     *  one load. Written with release semantics by any thread; valid as long as the queue. NULL:
     *  none. */
    uint32_t *result_count;
};

/** How a job has ended. */
struct cairn_queue_result {
    uint64_t ticket;
    void *user; /**< the job's */
    /** Status CAIRN_OK: the code is published, and installed if there is an entry. */
    const struct cairn_error *error;
    /** The job was cancelled, or its `build` has returned NULL without an error; the status is
     *  CAIRN_ERROR_STATE. */
    bool is_cancelled;
    /** Which version it is. A job has one result with CAIRN_TIER_FULL, its last. */
    enum cairn_tier tier;
    /** The function's address, if it is published; otherwise NULL. With an address,
     *  CAIRN_ERROR_SYSTEM is an error of cairn_entry_install: the host installs the function again.
     *  Other functions may have been compiled with it, in one module. So the host retires it with
     *  cairn_function_retire, unless an entry does (`retires`). */
    void *address;
};

struct cairn_queue_job {
    /**
     * Builds a module in `context` that defines the function, and returns it; the queue owns it.
     * Returns NULL with an error in `*error`, which is the job's result, or without one if the job
     * is no longer wanted. May be called again for the same job, if its batch cannot be compiled.
     * Called by a thread of the queue. It must not call cairn_queue_destroy. NULL: the job has
     * `bitcode` or `object`.
     */
    LLVMModuleRef (*build)(LLVMContextRef context, void *user, struct cairn_error *error);
    /** Instead of `build`: the module as LLVM's bitcode, of the same LLVM. Copied. For hosts that
     *  build IR in their own threads. */
    const void *bitcode;
    size_t bitcode_size;
    /** Instead of both: a relocatable object with a manifest (cairn_embed_manifest), for example
     *  from a code cache. Copied. It is loaded with the engine's options, without LLVM. Its
     *  function has no type, so an entry with a type requires `version.signature`. */
    const void *object;
    size_t object_size;
    /** Called for each result: when a quick version is ready, and once when the job has ended or
     * was cancelled, by a thread of the queue or the thread that cancels or destroys, with no lock
     * held. It must not call cairn_queue_destroy. Until the last one, `entry` and `user` must be
     * valid. May be NULL. */
    void (*done)(const struct cairn_queue_result *result, void *user);
    /** Whether the result then waits for cairn_queue_take. */
    bool keeps_result;
    void *user;
    const char *function; /**< name of the function, with external linkage; copied */
    cairn_entry *entry;   /**< NULL: the function is published only */
    /** The version to install; `code` is ignored. If `signature` is NULL, it is made of the
     *  function's type (cairn_signature_of_function), if that is possible. */
    struct cairn_entry_version version;
    enum cairn_strength strength; /**< for cairn_entry_install */
    /** The function is compiled twice, from the same bitcode or by two calls of `build`: a quick
     *  version is compiled, installed and reported first. The full version, which replaces it,
     * waits until no job waits for its first version. If the quick version cannot be compiled, its
     * result is an error, and the full one follows. */
    bool has_tiers;
    /** For jobs with tiers: an assumption of guards (cairn_build_guard) at which threads leave
     * loops of the quick version. The queue breaks it when it has installed the full version;
     * without an `entry`, the host does. The full version has no such guards, so they must rely on
     * nothing else. Must be valid until the job has ended. NULL: threads stay in the quick version.
     */
    cairn_assumption *until_full;
    /** Jobs with a larger priority are begun first. Only jobs of the same priority are compiled
     *  together, so an urgent job is not delayed by others. */
    int32_t priority;
    /** Most bytes of the function's frame (`stack_size` in cairn/table.h); 0: no limit. A function
     *  with a larger one, or one without a constant size, is neither installed nor kept; the status
     *  is CAIRN_ERROR_RANGE, and `error->offset` its size. The size of a function without records
     * is not known, and not limited. */
    uint32_t frame_limit;
    size_t bytes; /**< what the job counts towards `byte_limit`: the host's estimate */
};

typedef struct cairn_queue cairn_queue;

/**
 * Creates a queue and starts its threads, in 0.2 ms: the threads initialise LLVM. `options` NULL
 * means all zero. The queue has a reference to the runtime.
 *
 * Errors: ARGUMENT, MEMORY, SYSTEM (no thread can be started). Other errors of cairn_engine_create
 * are results of the jobs.
 */
CAIRN_API CAIRN_MUST_CHECK enum cairn_status cairn_queue_create(
    cairn_runtime *runtime, const struct cairn_queue_options *options, cairn_queue **queue,
    struct cairn_error *error);

/**
 * Adds a job, which is copied, and sets `*ticket` to its number, which is not 0 and not used again,
 * before `done` is called; `ticket` may be NULL. Does not wait. Errors, after which no callback is
 * called: FULL (a limit is reached; the message names it), ARGUMENT, MEMORY, STATE (in a forked
 * child).
 */
CAIRN_API CAIRN_MUST_CHECK enum cairn_status cairn_queue_add(cairn_queue *queue,
                                                             const struct cairn_queue_job *job,
                                                             uint64_t *ticket,
                                                             struct cairn_error *error);

/**
 * Cancels a job. Returns true if it will not be installed: it waited, and `done` has been called
 * when this function returns; or it is being compiled, and `done` will be called. Returns false if
 * it has been installed, is being installed, has failed, or does not exist. For a job with tiers,
 * this is about the full version: an installed quick version stays.
 */
CAIRN_API bool cairn_queue_cancel(cairn_queue *queue, uint64_t ticket);

/** Raises the priority of a job that waits, for example because its function has become hot. A
 * lower priority than the job's changes nothing. Returns whether the job waits: false if it has
 * been begun or does not exist. Takes O(log n) time for n waiting jobs. */
CAIRN_API bool cairn_queue_raise(cairn_queue *queue, uint64_t ticket, int32_t priority);

/** Waits until a job has ended: `done` has returned, and a result that is kept can be taken. Does
 *  not wait if there is no such job.
 *
 *  Threads: thread-safe. The queue's callbacks and signal handlers must not call this. */
CAIRN_API void cairn_queue_wait(cairn_queue *queue, uint64_t ticket);

/** Takes the oldest result that was kept, for hosts that use it in their own threads. `*error` gets
 *  the job's error, to which `result->error` points; it must not be NULL. Returns false, and leaves
 *  both unchanged, if no result waits. */
CAIRN_API bool cairn_queue_take(cairn_queue *queue, struct cairn_queue_result *result,
                                struct cairn_error *error);

/** Cancels all waiting jobs, waits for jobs that are being compiled, and frees the queue. What was
 *  published and installed stays. Must not be called by the queue's callbacks. After exit() has
 * been called, it only cancels. NULL is allowed.
 *
 *  Threads: no other thread may be using the queue. Signal handlers must not call this. */
CAIRN_API void cairn_queue_destroy(cairn_queue *queue);

#ifdef __cplusplus
}
#endif
#endif
