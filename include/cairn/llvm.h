/*
 * cairn/llvm.h - Cairn beside LLVM's C API: engines, declarations, builders, checks.
 *
 * In libcairn-llvm; the only header that includes LLVM's.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef CAIRN_LLVM_H
#define CAIRN_LLVM_H

#include <cairn/call.h>
#include <cairn/declaration.h>
#include <cairn/module.h>
#include <cairn/pcsection.h>
#include <cairn/runtime.h>
#include <cairn/status.h>
#include <llvm-c/Core.h>
#include <llvm-c/ExecutionEngine.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- Building IR ---- */

/**
 * Builds a call of llvm.experimental.stackmap at the builder's position, with `shadow_bytes` that
 * may be patched behind it (0: none). Live values of integer types that the LLVM in use would
 * crash on are extended with zeros to i32 or i64, wide constants are kept if a record can have
 * them; their own types are kept as metadata of the call and are what cairn_scan_module declares.
 * Returns the call; NULL with ARGUMENT (the builder stands nowhere), UNSUPPORTED (a type that
 * cannot be kept live; the sentence says what to give instead) or MEMORY.
 */
CAIRN_API LLVMValueRef cairn_build_stackmap(LLVMBuilderRef builder, uint64_t id,
                                            uint32_t shadow_bytes, LLVMValueRef *live_values,
                                            uint32_t live_value_count, struct cairn_error *error);

/** What cairn_build_patchpoint builds. All that is left out is zero: no target, void, C. */
struct cairn_patchpoint {
    uint64_t id;
    /** Bytes to reserve; cairn_patchpoint_minimum_bytes says how many are needed. */
    uint32_t byte_count;
    /** A constant: a function (not on AArch64 and RISC-V), or an address as a pointer or as an
     * integer of pointer width; on AArch64 and PPC64 one below 2^48. NULL or a null constant means
     * that LLVM emits no call: no-ops only. LLVM cannot call a target that is known only at run
     * time, or an expression that has to be computed: leave the target out and use cairn_site_call,
     * or make the target a function that gets the pointer as an argument and calls it. */
    LLVMValueRef target;
    /** NULL means void. */
    LLVMTypeRef result_type;
    /** LLVM's number, such as CAIRN_CALLING_CONVENTION_ANYREG: operands and result in any
     *  registers, which the record names. */
    uint32_t calling_convention;
    LLVMValueRef *arguments;
    uint32_t argument_count;
    LLVMValueRef *live_values;
    uint32_t live_value_count;
    /** Of the result; NULL or "" means none. */
    const char *name;
};

/** More than that is a mistake (and LLVM would fill it with no-ops). */
enum { CAIRN_PATCHPOINT_BYTES_MAX = 1 << 20 };

/**
 * Builds a call of llvm.experimental.patchpoint.* at the builder's position. Integers of up to 64
 * bits and pointers as results work with every LLVM; floating-point and 128-bit vector results
 * need LLVM 19. Live values as in cairn_build_stackmap. UNSUPPORTED also for a target that LLVM
 * would not call, with what to give instead. Returns the result, which may be a conversion of the
 * call's; NULL with ARGUMENT, UNSUPPORTED, RANGE (too few bytes for LLVM's call, or too many),
 * MEMORY: then nothing was built.
 */
CAIRN_API LLVMValueRef cairn_build_patchpoint(LLVMBuilderRef builder,
                                              const struct cairn_patchpoint *patchpoint,
                                              struct cairn_error *error);

/** Bytes that a patch point of this module's target needs at least: with a call target, for LLVM
 *  to emit its call; without, for Cairn to patch it live wherever it comes to lie. 0 if the
 *  architecture is not known. */
CAIRN_API uint32_t cairn_patchpoint_minimum_bytes(LLVMModuleRef module, bool has_target);

/* ---- Frame states ---- */

/** What an interpreter would have in one of its frames at a site, as a front end knows it there. */
struct cairn_encoded_frame {
    /** The host's own: numbers, or addresses that are known at compile time. */
    uint64_t function;
    uint64_t position;
    uint32_t flags;
    /** Values of any scalar or vector type, constants too. NULL, or a value that is undefined:
     *  nothing, for locals that the interpreter will write before it reads them. */
    LLVMValueRef *locals;
    uint32_t local_count;
    /** The operand stack, its lowest entry first; as the locals. */
    LLVMValueRef *stack;
    uint32_t stack_count;
};

/** Live values that cairn_frame_state_encode writes for these frames at most; 0 if it would refuse
 *  their counts. */
CAIRN_API uint32_t cairn_frame_state_capacity(const struct cairn_encoded_frame *frames,
                                              uint32_t frame_count);

/**
 * Encodes a stack of interpreter frames, of which the outermost comes first: a function, and those
 * that were inlined into it at the place that is being compiled. Writes to `live_values`, which has
 * room for `capacity`, what is to be given as live values to cairn_build_patchpoint or
 * cairn_build_stackmap, or in the "deopt" bundle of a statepoint; there may be others before and
 * behind. `*count` is how many they are. cairn_frame_state_read (cairn/frame_state.h) reads them,
 * and says what they are.
 *
 * Numbers, constants of integer, floating-point and vector types, null and addresses that are
 * constant integers cost no register and no instruction. Addresses of globals do: LLVM knows them
 * only when it links. Values that stand in several places are given to LLVM once. Whether it can
 * keep a value of its type live at all, cairn_build_patchpoint and cairn_check_module say. Costs by
 * the slots times the different values in them.
 *
 * UNSUPPORTED: a value is of a type that a struct cairn_value cannot hold (the sentence names it);
 * RANGE: no room, or more than 65535 live values, frames, or entries in one of them; ARGUMENT. What
 * is in `live_values` is then anything, and `*count` as it was.
 */
CAIRN_API CAIRN_MUST_CHECK enum cairn_status cairn_frame_state_encode(
    LLVMContextRef context, const struct cairn_encoded_frame *frames, uint32_t frame_count,
    LLVMValueRef *live_values, uint32_t capacity, uint32_t *count, struct cairn_error *error);

/* ---- PC sections ---- */

/** Constants that follow each other in an entry. */
struct cairn_constant_tuple {
    /** Integer constants of up to 64 bits, of any width: as many bytes as LLVM stores the type
     * with. */
    LLVMValueRef *values;
    uint32_t count;
};

/** A PC section (cairn/pcsection.h) that an instruction or a function is to have an entry in. */
struct cairn_pcsection_metadata {
    /** Not empty, and without '!', which LLVM puts options behind. */
    const char *section;
    /** LLVM's option !C: numbers of 2 to 8 bytes as ULEB128. LLVM 16 does not know it: it writes
     * them whole, to a section that has !C in its name. All entries of a section have to agree. */
    bool is_compressed;
    const struct cairn_constant_tuple *tuples;
    uint32_t tuple_count;
};

/**
 * Attaches `!pcsections` to an instruction or to a function with a body: LLVM then writes an entry
 * with these constants to each of the sections. What is attached already stays, and comes first.
 *
 * An instruction gets an entry for each machine instruction that is made from it: loads, stores and
 * branches one as a rule, atomics one or several, duplicated code as many as there are copies;
 * calls, of which LLVM 16 to 19 drop the metadata (some with a warning on standard error), none.
 * Passes over IR drop the metadata where they change an instruction, so this is to be called behind
 * the last of them. Instructions with the same constants get metadata of their own each, since LLVM
 * would write the constants only once for all of them (RUNS in cairn/pc_table.h): a constant of no
 * bytes tells them apart, and the function's attribute "cairn-pcsections" counts them.
 *
 * UNSUPPORTED: LLVM 14 or 15, which have no PC sections; an object format other than ELF; a
 * constant of more than 64 bits or that is no integer. ARGUMENT: the value is neither an
 * instruction in a function nor a function with a body; a name that LLVM cannot have. RANGE: more
 * than CAIRN_PCSECTION_CONSTANTS_MAX constants in a section. MEMORY. The value is then as it was.
 */
CAIRN_API CAIRN_MUST_CHECK enum cairn_status cairn_attach_pcsections(
    LLVMValueRef value, const struct cairn_pcsection_metadata *sections, uint32_t count,
    struct cairn_error *error);

/* ---- Implicit null checks ---- */

/**
 * Marks a conditional branch on a comparison of a pointer with null as a check that LLVM may leave
 * to the hardware (metadata make.implicit): an access that follows on the other side, near to the
 * pointer, takes its place, and the fault map says where the code goes on if it faults.
 * cairn/fault.h is about what the host does then. LLVM does it on x86-64 and AArch64, at
 * optimisation levels 1 to 3, where it finds such an access, and if its option is on
 * (cairn_enable_implicit_null_checks). LLVM 14 to 16 do it for loads alone on AArch64, and not in
 * small functions with a frame pointer (cairn_prepare_function), whose frame they set up between
 * the check and the access. To be called behind the last pass over IR that changes branches.
 * ARGUMENT: it is no such branch.
 */
CAIRN_API CAIRN_MUST_CHECK enum cairn_status cairn_make_implicit(LLVMValueRef branch,
                                                                 struct cairn_error *error);

/** Turns LLVM's option -enable-implicit-null-checks on in this process, once, for all that is
 * compiled from then on; only marked branches are affected. Engines do it if asked to (struct
 * cairn_engine_options). Thread-safe, but LLVM must not be compiling meanwhile. */
CAIRN_API void cairn_enable_implicit_null_checks(void);

/* ---- Functions and modules ---- */

/** Puts on a function the attributes that Cairn needs: `uwtable`, so that LLVM emits the tables by
 *  which its frames are unwound, and "frame-pointer"="all", so that its frames form a chain that a
 *  profiler can follow. Functions without them can be patched all the same. */
CAIRN_API void cairn_prepare_function(LLVMValueRef function);

/**
 * Gives each statepoint in `module` an ID of its own, in the order of the module: `*next_id`, which
 * is then the next one. Statepoints are calls of llvm.experimental.gc.statepoint*, calls with a
 * "deopt" bundle and calls of llvm.experimental.deoptimize.*. To be called after LLVM's pass
 * rewrite-statepoints-for-gc, which gives all statepoints the same ID, so that their declarations
 * are in conflict. Statepoints that have been numbered get new IDs. MEMORY, ARGUMENT: nothing was
 * changed.
 */
CAIRN_API CAIRN_MUST_CHECK enum cairn_status cairn_number_statepoints(LLVMModuleRef module,
                                                                      uint64_t *next_id,
                                                                      struct cairn_error *error);

/* ---- Looking at IR before code generation ---- */

/**
 * Adds a declaration for each call of llvm.experimental.stackmap, llvm.experimental.patchpoint.*
 * and llvm.experimental.gc.statepoint* in `module`, and for the calls of which LLVM makes
 * statepoints: those with a "deopt" bundle, and those of llvm.experimental.deoptimize.*. Their ID
 * is the call's attribute "statepoint-id", or else 2882400015, and their reserved bytes are
 * "statepoint-num-patch-bytes". Before LLVM 19 records of statepoints have the low 32 bits of their
 * IDs, and so have their declarations. (Before LLVM 18 calls with a "deopt" bundle that is empty
 * are not seen, except for those of llvm.experimental.deoptimize.*. At -O0 on AArch64 LLVM 14 to 22
 * make no record of ordinary calls with a "deopt" bundle, unless the function has an intrinsic that
 * makes one, or an invoke with such a bundle: cairn_check_module refuses them.) LLVM makes no
 * record of inline assembly or of other intrinsics that have the bundle, and emits no code for
 * functions that are available externally: they declare nothing. Calls of library functions that
 * LLVM replaces by instructions (sqrt that only reads memory, say) have no record either:
 * cairn_check_module refuses those that have the bundle. IDs that come more than once are
 * normal, since inlining and unrolling copy calls; CONFLICT if their shapes differ, with a sentence
 * that names both functions. CORRUPT if an operand that has to be constant is not; UNSUPPORTED if
 * LLVM would not call the target of a patch point (struct cairn_patchpoint), or if the LLVM in use
 * writes operand bundles in a way that is not known (before LLVM 18 they are read from the printed
 * call); MEMORY, ARGUMENT. On failure `declarations` is as it was. They are added in the order of
 * the functions in the module; within a function in an order that is the same each time for a
 * module that was made in the same way. Takes O(instructions + records) time: a few nanoseconds for
 * each instruction.
 */
CAIRN_API CAIRN_MUST_CHECK enum cairn_status cairn_scan_module(LLVMModuleRef module,
                                                               cairn_declarations *declarations,
                                                               struct cairn_error *error);

/** What LLVM is to do about the registers that live across a patch point. */
enum cairn_liveness {
    /** Turn patch point liveness off in this process (LLVM's option
     *  -enable-patchpoint-liveness=false), once: with it on, LLVM 14 to 22 crash on ordinary
     *  code. Records then have no live-outs, so every register counts as live. On PPC64 also
     *  -disable-ppc-vsx-swap-removal: LLVM would have vectors in another order than records say;
     *  and -disable-ppc-ctrloops: LLVM 14 and 15 would keep the counters of loops in CTR across
     * patch points, which change it. */
    CAIRN_LIVENESS_OFF = 0,
    /** The host has set these options already. */
    CAIRN_LIVENESS_OFF_BY_HOST = 1,
    /** Keep it; the check of a module then refuses what would crash. */
    CAIRN_LIVENESS_KEEP = 2
};

/** One construct that is known to crash the LLVM in use. Everything in it is Cairn's, or the
 *  module's, and valid only while the callback runs. */
struct cairn_finding {
    /** Name of the function; "" if it has none. */
    const char *function;
    /** The instruction, as LLVM prints it, whole. */
    const char *instruction;
    /** Why it is refused, and what to write instead: parts of a sentence. */
    const char *why;
    const char *instead;
    /** All of it in one sentence, in which long names and instructions are cut. */
    const char *sentence;
    /** The instruction: as a rule a call of an intrinsic; a landingpad, catchswitch or cleanuppad
     * otherwise. */
    LLVMValueRef call;
};

struct cairn_check_options {
    enum cairn_liveness liveness;
    /** At which the module will be compiled: 0 to 3. */
    unsigned optimisation_level;
    /** Whether FastISel will be used above level 0, too (EnableFastISel of LLVM's options). */
    bool enable_fast_isel;
    /** Whether the host has had LLVM's verifier look at the module and has not changed it since. */
    bool is_verified;
    /** Called for each finding, in the order of the module; `user` is handed on. It must not change
     *  the module. May be NULL. */
    void (*finding)(const struct cairn_finding *finding, void *user);
    void *user;
    /** Names of the GC strategies that the host has registered with LLVM, in C++. A function may
     * name one of these (gc "name"), or one of LLVM's own: statepoint-example, coreclr,
     * shadow-stack, erlang and ocaml. */
    const char *const *gc_strategies;
    size_t gc_strategy_count;
};

/**
 * Refuses, with status LLVM, a module that is known to crash the code generator of the LLVM in
 * use, or of which it is known to make wrong code. LLVM's verifier comes first, unless
 * `options->is_verified`: the code generator may do anything with what it would refuse; the error
 * then has its message. Before it, a function whose GC strategy LLVM does not know is refused, and
 * so is a gc.relocate in a function that names no strategy, because LLVM ends the process at both:
 * the error then names the function. All else that is found goes to `options->finding`, and the
 * error has the sentence of the first finding, which names the function, the instruction, why, and
 * what to write instead, and says how many more there are. To be called before code generation;
 * cairn_engine_create and cairn_engine_add_module do so. `options` NULL means all zero. CORRUPT for
 * a call that is not well-formed, at which the check ends; UNSUPPORTED as cairn_scan_module for
 * operand bundles; MEMORY, ARGUMENT. Takes O(instructions + records) time; what the
 * verifier takes is a few percent of what compiling takes. May be called by any
 * thread that may use the module's context.
 */
CAIRN_API CAIRN_MUST_CHECK enum cairn_status cairn_check_module(
    LLVMModuleRef module, const struct cairn_check_options *options, struct cairn_error *error);

/* ---- Calling what was compiled ---- */

/**
 * The signature of functions of an LLVM type (cairn/call.h): of an OSR version of a loop, of a
 * function to be entered in a frame's place. The members of a structure that is returned are its
 * results. What the type does not say is which integers are extended by their sign:
 * cairn_signature_extend_sign.
 *
 * ARGUMENT: the type is no function's, or has too many arguments or results. UNSUPPORTED: variable
 * arguments, or as cairn_signature_create. MEMORY.
 */
CAIRN_API CAIRN_MUST_CHECK enum cairn_status cairn_signature_of_function(
    const struct cairn_allocator *allocator, LLVMTypeRef function_type, cairn_signature **signature,
    struct cairn_error *error);

/* ---- Memory managers: for hosts that create their engines themselves ---- */

/** PC sections that are to be kept with the module that they are about, for
 *  cairn_module_pc_table. */
struct cairn_capture {
    /** The section's name, without the options that LLVM 16 leaves in it (!C). */
    const char *section;
    /** All sections whose names begin so. "" is a prefix of all data sections. */
    bool is_prefix;
    /** Otherwise the bytes are kept, and not read: cairn_pc_table_section. */
    bool has_schema;
    /** Of LLVM 17 and later, as the metadata says it; for LLVM 16, which does not compress, it is
     *  changed to what that writes. `address_bytes` 0 means that of the code model. */
    struct cairn_pcsection_schema schema;
};

/**
 * What happens if one ID has two shapes: two calls with the same ID whose kinds, bytes or types
 * differ, in one module or in modules that are loaded together. A record's ID is all that leads to
 * its declaration, so not both calls can be declared by it.
 *
 * Where statepoints come from LLVM's passes they all have one ID, and are looked up by address:
 * RENUMBERED is what such a host wants. It is not the default, because IDs of patch points and
 * stack maps are how hosts find them, and an ID that was used twice by mistake would not be
 * noticed.
 *
 * Calls with a "deopt" bundle and of llvm.experimental.deoptimize that were given no ID (the
 * attribute "statepoint-id") have LLVM's default, 2882400015. Nobody has chosen that ID: where it
 * has two shapes they get IDs of their own with REFUSED, too.
 */
enum cairn_id_conflicts {
    /** The module is refused: CONFLICT. */
    CAIRN_ID_CONFLICTS_REFUSED = 0,
    /** Each call whose ID has two shapes gets an ID of its own, in the IR, from 2^31 upwards. A
     * later call whose own ID was given to another call so also gets a new one. (With REFUSED, it
     * keeps its ID: a host that has calls without IDs should choose IDs below 2^31.) */
    CAIRN_ID_CONFLICTS_RENUMBERED = 1,
    /** Records with such an ID have no declaration: they can be looked up, but have no site, and
     *  their values have no types. */
    CAIRN_ID_CONFLICTS_UNDECLARED = 2
};

struct cairn_memory_manager_options {
    /** Name of the modules that come out of it, for messages; copied. NULL means "mcjit". */
    const char *name;
    /** Called for each module that was loaded, before it is published: the moment at which
     *  cairn_site_write may still change anything. Runs inside of LLVM's finalisation: it must
     *  not call the engine. May be NULL. */
    void (*before_publish)(cairn_module *module, void *user);
    /** Called when a module has been published. Same rules. May be NULL. */
    void (*after_publish)(cairn_module *module, void *user);
    void *user;
    /** Which PC sections to keep; of several that a name fits, the first one counts. Copied. LLVM
     * 14 and 15 write none. A section that does not have the form of its schema makes the whole
     * finalisation fail: whatever has been said of the code by then may be wrong. */
    const struct cairn_capture *captures;
    size_t capture_count;
    /** The code model of the engine: LLVMCodeModelDefault (0) or LLVMCodeModelJITDefault, which are
     * LLVM's default for a JIT, or LLVMCodeModelLarge. Engines of Cairn set it themselves. A host
     * that gives its own engine another one must say so here, because nothing else tells Cairn:
     * code of the small, kernel and medium models has 32-bit addresses (R_X86_64_32S in constant
     * pools and jump tables, for instance), which RuntimeDyld cuts without a message. */
    LLVMCodeModel code_model;
    enum cairn_id_conflicts id_conflicts;
};

typedef struct cairn_memory_manager cairn_memory_manager;

/**
 * A memory manager for one MCJIT engine. What LLVM finalises at one go becomes one module: its
 * stack maps are decoded after relocation, its sites armed, its pages protected, and it is
 * published. `options` may be NULL. UNSUPPORTED: a code model that may be wrong for code memory,
 * which can be anywhere in the address space. MEMORY, ARGUMENT.
 *
 * Hand cairn_memory_manager_llvm() to LLVM as `MCJMM` of the engine's options. From then on it
 * belongs to LLVM and goes with the engine: its modules are then retired. Until then,
 * LLVMDisposeMCJITMemoryManager gets rid of it.
 */
CAIRN_API CAIRN_MUST_CHECK enum cairn_status cairn_memory_manager_create(
    cairn_runtime *runtime, const struct cairn_memory_manager_options *options,
    cairn_memory_manager **manager, struct cairn_error *error);

/** What LLVM knows the manager by: for `MCJMM` of one engine's options. */
CAIRN_API LLVMMCJITMemoryManagerRef cairn_memory_manager_llvm(cairn_memory_manager *manager);

/**
 * Tells the manager which engine it serves, as soon as the host has made it. LLVM's own errors are
 * then seen before publication: where it could not resolve a symbol it has applied no relocations,
 * and the finalisation fails with status LLVM. Without this such code is published, as LLVM left
 * it. After such an error LLVM ends the process at the engine's next module.
 */
CAIRN_API void cairn_memory_manager_set_engine(cairn_memory_manager *manager,
                                               LLVMExecutionEngineRef engine);

/**
 * Declares the sites of an LLVM module that was, or will be, added to the engine. Must be called
 * before the module's code is generated, and after passes that internalise symbols. If there is
 * anything to declare, it adds a constant to the module ("cairn.declared.*", 16 bytes in a section
 * that is not kept), by which the module is recognised when it is loaded. Records without a
 * declaration can be looked up, but have no sites. An ID may have another shape in a module that is
 * loaded later. Errors: CONFLICT if it has two shapes among those not loaded yet
 * (enum cairn_id_conflicts); MEMORY, CORRUPT. The calls may then have new IDs.
 */
CAIRN_API CAIRN_MUST_CHECK enum cairn_status cairn_memory_manager_declare(
    cairn_memory_manager *manager, LLVMModuleRef module, struct cairn_error *error);

/**
 * What went wrong in the last finalisation: CAIRN_OK if nothing did. LLVM asks its memory manager
 * for errors, but MCJIT does not look at the answer, so ask here after LLVMGetFunctionAddress and
 * the like. Code of a finalisation that failed is not executable.
 */
CAIRN_API CAIRN_MUST_CHECK enum cairn_status cairn_memory_manager_status(
    const cairn_memory_manager *manager, struct cairn_error *error);

/*
 * ---- Engines: memory manager, declarations and checks in one ----
 *
 * ERRORS OF LLVM. While an engine compiles (cairn_engine_finalise, cairn_engine_function), it
 * handles the diagnostics of its modules' contexts. An error fails the finalisation, with LLVM's
 * text: inline assembly that cannot be assembled or needs too many registers, say. All diagnostics,
 * warnings and remarks too, then go to the handler that the host has set for the context
 * (LLVMContextSetDiagnosticHandler), which is in its place again afterwards. If the host has set
 * none, nothing is printed, and LLVM does not end the process, as it does with errors that nobody
 * handles. (A handler object of C++ that does not call the function above sees to its errors
 * itself.)
 *
 * LLVM offers no choice where it calls report_fatal_error: constructs that it cannot compile, of
 * which cairn_check_module knows many, and relocations that it cannot apply. It then calls the
 * process's handler (LLVMInstallFatalErrorHandler), which Cairn does not set because it is global,
 * and exits or aborts. The same goes for a process that is so short of memory that LLVM's own
 * allocations fail. So IR that nobody has checked is best compiled in another process.
 *
 * Engines and memory managers that the host makes for itself compile when the host asks LLVM: the
 * host handles diagnostics.
 */

struct cairn_engine_options {
    /** 0 to 3, as LLVMMCJITCompilerOptions has it. */
    unsigned optimisation_level;
    /** LLVMCodeModelDefault (0), LLVMCodeModelJITDefault or LLVMCodeModelLarge; the others are
     * refused (struct cairn_memory_manager_options). */
    LLVMCodeModel code_model;
    bool enable_fast_isel;
    /** As cairn_enable_implicit_null_checks, before the engine is made. */
    bool implicit_null_checks;
    enum cairn_liveness liveness;
    /** Skip cairn_check_module: for modules that were checked already. */
    bool skip_check;
    /** Whether the host has had LLVM's verifier look at the modules, as in struct
     * cairn_check_options. */
    bool is_verified;
    /** Called for each finding of the check, as in struct cairn_check_options. May be NULL. */
    void (*finding)(const struct cairn_finding *finding, void *user);
    void *finding_user;
    /** As in struct cairn_check_options. Must stay valid as long as the engine. */
    const char *const *gc_strategies;
    size_t gc_strategy_count;
    /**
     * What calls of llvm.experimental.deoptimize go to: LLVM calls a function named
     * __llvm_deoptimize, with the call's arguments, and the engine binds that name to this function
     * pointer. cairn_exit_target of an exit gets the whole frame: its handler reads the deopt
     * values by their types (cairn_frame_value), and must return from the frame's function or enter
     * another one in its place (cairn_deopt_return, cairn_deopt_enter), because the code does not
     * go on after the call. A
     * module of the engine that defines the name comes first. NULL: the name is looked for like any
     * other, and if nothing defines it, finalisation fails with LLVM. Valid as long as the engine's
     * code is used.
     */
    const void *deoptimize_target;
    struct cairn_memory_manager_options memory_manager;
};

typedef struct cairn_engine cairn_engine;

/**
 * An MCJIT engine over Cairn's code memory, with `module` in it. `options` NULL means all zero.
 * Initialises LLVM's native target and MCJIT if the host has not. The module is scanned and
 * checked first; the engine takes it over on success only. Several engines may use one runtime,
 * also at the same time from several threads, each with an LLVM context of its own.
 * ARGUMENT, MEMORY, CONFLICT, CORRUPT, LLVM (not this machine's target, wrong data layout, or
 * refused by the check).
 */
CAIRN_API CAIRN_MUST_CHECK enum cairn_status cairn_engine_create(
    cairn_runtime *runtime, LLVMModuleRef module, const struct cairn_engine_options *options,
    cairn_engine **engine, struct cairn_error *error);

/** Disposes of LLVM's engine and of the LLVM modules in it; what it loaded is retired. NULL is
 *  allowed. */
CAIRN_API void cairn_engine_destroy(cairn_engine *engine);

/** Scans, checks and adds another module. On failure the caller keeps it: STATE (the engine has
 *  failed with LLVM before), and all that cairn_engine_create can give. */
CAIRN_API CAIRN_MUST_CHECK enum cairn_status cairn_engine_add_module(cairn_engine *engine,
                                                                     LLVMModuleRef module,
                                                                     struct cairn_error *error);

/** Compiles, loads and publishes all that was added and is not loaded yet, as one module. Errors:
 * LLVM (an error that LLVM has reported, with its text; a symbol that nothing defines, by name),
 * and all that cairn_loader_finish can give; FULL if the slab has too little space. On failure
 * nothing of it is published, and what was loaded before stays. After a symbol that nothing defines
 * the engine takes no further modules, since LLVM would end the process at the next one:
 *  cairn_engine_add_module then gives STATE. */
CAIRN_API CAIRN_MUST_CHECK enum cairn_status cairn_engine_finalise(cairn_engine *engine,
                                                                   struct cairn_error *error);

/** The address of a function; finalises first. NULL on failure: NOT_FOUND (nothing defines it, or
 *  only a module whose finalisation failed or that was retired), and all that cairn_engine_finalise
 * can give, unless the function was loaded earlier. */
CAIRN_API void *cairn_engine_function(cairn_engine *engine, const char *name,
                                      struct cairn_error *error);

/** LLVM's engine, for LLVMAddGlobalMapping and the like. It stays Cairn's. */
CAIRN_API LLVMExecutionEngineRef cairn_engine_llvm(cairn_engine *engine);

#ifdef __cplusplus
}
#endif
#endif
