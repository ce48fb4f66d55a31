/*
 * cairn/llvm.h - Cairn beside LLVM's C API: engines, declarations, builders, checks.
 *
 * In libcairn-llvm; the only header that includes LLVM's.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef CAIRN_LLVM_H
#define CAIRN_LLVM_H

#include <cairn/declaration.h>
#include <cairn/module.h>
#include <cairn/runtime.h>
#include <cairn/status.h>
#include <llvm-c/Core.h>
#include <llvm-c/ExecutionEngine.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- Building IR ---- */

/**
 * Builds a call of llvm.experimental.stackmap at the builder's position. Live values of types
 * that the LLVM in use would crash on are widened (…). Returns the call; NULL with ARGUMENT or
 * UNSUPPORTED.
 */
CAIRN_API LLVMValueRef cairn_build_stackmap(LLVMBuilderRef builder, uint64_t id,
                                            uint32_t shadow_bytes, LLVMValueRef *live_values,
                                            uint32_t live_value_count, struct cairn_error *error);

struct cairn_patchpoint {
    uint64_t id;
    /** Reserved; Cairn manages regions of cairn_patchpoint_minimum_bytes or more. */
    uint32_t byte_count;
    /** A function or a pointer (or an integer of pointer width); NULL means no call: no-ops. */
    LLVMValueRef target;
    /** NULL means void. */
    LLVMTypeRef result_type;
    uint32_t calling_convention;
    LLVMValueRef *arguments;
    uint32_t argument_count;
    LLVMValueRef *live_values;
    uint32_t live_value_count;
    /** Of the call; NULL or "" means none. */
    const char *name;
};

CAIRN_API LLVMValueRef cairn_build_patchpoint(LLVMBuilderRef builder,
                                              const struct cairn_patchpoint *patchpoint,
                                              struct cairn_error *error);

/** Puts on a function the attributes that Cairn needs: uwtable, and so on. */
CAIRN_API void cairn_prepare_function(LLVMValueRef function);

/* ---- Looking at IR before code generation ---- */

/** Records each stackmap, patchpoint and statepoint call of `module`. CONFLICT, MEMORY, CORRUPT
 *  (an operand that must be constant is not). */
CAIRN_API CAIRN_MUST_CHECK enum cairn_status cairn_scan_module(LLVMModuleRef module,
                                                               cairn_declarations *declarations,
                                                               struct cairn_error *error);

/** What LLVM is to do about the registers that live across a patch point. */
enum cairn_liveness {
    /** Turn patch point liveness off in this process (LLVM's option
     *  -enable-patchpoint-liveness=false), once: with it on, LLVM 14 to 19 crash on ordinary
     *  code. Records then have no live-outs, so every register counts as live. */
    CAIRN_LIVENESS_OFF = 0,
    /** The host has turned it off already. */
    CAIRN_LIVENESS_OFF_BY_HOST = 1,
    /** Keep it; the check of a module then refuses what would crash. */
    CAIRN_LIVENESS_KEEP = 2
};

/** Refuses (LLVM) what would crash the code generator of the LLVM in use: the sentence names
 *  function, instruction, why, and what to write instead. */
CAIRN_API CAIRN_MUST_CHECK enum cairn_status cairn_check_module(LLVMModuleRef module,
                                                                enum cairn_liveness liveness,
                                                                struct cairn_error *error);

/* ---- Memory managers: for hosts that create their engines themselves ---- */

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
};

typedef struct cairn_memory_manager cairn_memory_manager;

/**
 * A memory manager for one MCJIT engine. What LLVM finalises at one go becomes one module: its
 * stack maps are decoded after relocation, its sites armed, its pages protected, and it is
 * published. `options` may be NULL. MEMORY, ARGUMENT.
 *
 * Hand cairn_memory_manager_llvm() to LLVM as `MCJMM` of the engine's options. From then on it
 * belongs to LLVM and goes with the engine: its modules are then retired. Until then,
 * LLVMDisposeMCJITMemoryManager gets rid of it.
 */
CAIRN_API CAIRN_MUST_CHECK enum cairn_status
cairn_memory_manager_create(cairn_runtime *runtime,
                            const struct cairn_memory_manager_options *options,
                            cairn_memory_manager **manager, struct cairn_error *error);

CAIRN_API LLVMMCJITMemoryManagerRef cairn_memory_manager_llvm(cairn_memory_manager *manager);

/**
 * Declares the sites of an LLVM module that was, or will be, added to the engine. To be called
 * before its code is generated. Records without a declaration can be looked up, but have no
 * sites. IDs may come again in modules that are loaded later, with other shapes; among those not
 * loaded yet that is a CONFLICT. MEMORY, CORRUPT, CONFLICT.
 */
CAIRN_API CAIRN_MUST_CHECK enum cairn_status
cairn_memory_manager_declare(cairn_memory_manager *manager, LLVMModuleRef module,
                             struct cairn_error *error);

/**
 * What went wrong in the last finalisation: CAIRN_OK if nothing did. LLVM asks its memory manager
 * for errors, but MCJIT does not look at the answer, so ask here after LLVMGetFunctionAddress and
 * the like. Code of a finalisation that failed is not executable.
 */
CAIRN_API CAIRN_MUST_CHECK enum cairn_status
cairn_memory_manager_status(const cairn_memory_manager *manager, struct cairn_error *error);

/* ---- Engines: memory manager, declarations and checks in one ---- */

struct cairn_engine_options {
    /** 0 to 3, as LLVMMCJITCompilerOptions has it. */
    unsigned optimisation_level;
    /** LLVMCodeModelDefault (0) means LLVM's default for a JIT. */
    LLVMCodeModel code_model;
    bool enable_fast_isel;
    enum cairn_liveness liveness;
    /** Skip cairn_check_module: for modules that were checked already. */
    bool skip_check;
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
CAIRN_API CAIRN_MUST_CHECK enum cairn_status
cairn_engine_create(cairn_runtime *runtime, LLVMModuleRef module,
                    const struct cairn_engine_options *options, cairn_engine **engine,
                    struct cairn_error *error);

/** Disposes of LLVM's engine and of the LLVM modules in it; what it loaded is retired. NULL is
 *  allowed. */
CAIRN_API void cairn_engine_dispose(cairn_engine *engine);

/** Scans, checks and adds another module. On failure the caller keeps it. */
CAIRN_API CAIRN_MUST_CHECK enum cairn_status cairn_engine_add_module(cairn_engine *engine,
                                                                     LLVMModuleRef module,
                                                                     struct cairn_error *error);

/** Compiles, loads and publishes all that was added and is not loaded yet, as one module. LLVM,
 *  and all that cairn_loader_finish can give; FULL if the slab has no room. */
CAIRN_API CAIRN_MUST_CHECK enum cairn_status cairn_engine_finalise(cairn_engine *engine,
                                                                   struct cairn_error *error);

/** The address of a function; finalises first. NULL on failure: NOT_FOUND, and all that
 *  cairn_engine_finalise can give. */
CAIRN_API void *cairn_engine_function(cairn_engine *engine, const char *name,
                                      struct cairn_error *error);

/** LLVM's engine, for LLVMAddGlobalMapping and the like. It stays Cairn's. */
CAIRN_API LLVMExecutionEngineRef cairn_engine_llvm(cairn_engine *engine);

#ifdef __cplusplus
}
#endif
#endif
