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

/** Refuses (LLVM) what would crash the code generator of the LLVM in use: the sentence names
 *  function, instruction, why, and what to write instead. */
CAIRN_API CAIRN_MUST_CHECK enum cairn_status cairn_check_module(LLVMModuleRef module,
                                                                struct cairn_error *error);

/* ---- Engines ---- */

enum cairn_liveness {
    /** Turn patch point liveness off in this process (LLVM's option
     *  -enable-patchpoint-liveness=false), once: with it on, LLVM 14 to 19 crash on ordinary code. */
    CAIRN_LIVENESS_OFF = 0,
    /** The host has turned it off. */
    CAIRN_LIVENESS_OFF_BY_HOST = 1,
    /** Keep it; cairn_check_module then refuses what would crash. */
    CAIRN_LIVENESS_KEEP = 2
};

struct cairn_engine_options {
    /** 0 to 3, as LLVMMCJITCompilerOptions. */
    unsigned optimisation_level;
    LLVMCodeModel code_model;
    bool enable_fast_isel;
    bool no_frame_pointer_elimination;
    enum cairn_liveness liveness;
    /** Skip cairn_check_module. */
    bool trust_module;
    /** Called for each module that was finalised, before it is published; may patch its sites
     *  in any way. May be NULL. */
    void (*before_publish)(cairn_module *module, void *user);
    void *user;
};

typedef struct cairn_engine cairn_engine;

/**
 * An MCJIT engine with Cairn's memory manager. Scans and checks `module`, then takes it over
 * (only on success). The native target is initialised by the host (LLVMInitializeNativeTarget,
 * …AsmPrinter, LLVMLinkInMCJIT) …
 */
CAIRN_API CAIRN_MUST_CHECK enum cairn_status
cairn_engine_create(cairn_runtime *runtime, LLVMModuleRef module,
                    const struct cairn_engine_options *options, cairn_engine **engine,
                    struct cairn_error *error);

/** Disposes of LLVM's engine; what it loaded is retired. NULL is allowed. */
CAIRN_API void cairn_engine_dispose(cairn_engine *engine);

/** Scans, checks and adds another module. On failure the caller keeps it. */
CAIRN_API CAIRN_MUST_CHECK enum cairn_status cairn_engine_add_module(cairn_engine *engine,
                                                                     LLVMModuleRef module,
                                                                     struct cairn_error *error);

/** Compiles all that was added, loads and publishes it. */
CAIRN_API CAIRN_MUST_CHECK enum cairn_status cairn_engine_finalise(cairn_engine *engine,
                                                                   struct cairn_error *error);

/** The address of a function, compiled and published; NULL on failure (NOT_FOUND, and all that
 *  finalisation can give). */
CAIRN_API void *cairn_engine_function(cairn_engine *engine, const char *name,
                                      struct cairn_error *error);

/** LLVM's engine: for LLVMAddGlobalMapping and the like. Do not dispose of it. */
CAIRN_API LLVMExecutionEngineRef cairn_engine_llvm(cairn_engine *engine);

#ifdef __cplusplus
}
#endif
#endif
