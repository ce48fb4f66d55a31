/*
 * Closures: code from libffi that calls one of the host's handlers.
 *
 * A libffi closure is a sequence of instructions followed by the data that it reads, which does not
 * change. Both are in a stub (code/space.h), and are never writable and executable at the same
 * time. Cairn does not use libffi's own memory for closures. All closures of a signature share
 * libffi's description of their type, which is valid as long as the signature.
 *
 * All integers are declared to libffi with 64 bits, whatever their type: arguments use only the low
 * bits, and results are extended here. Therefore libffi returns each member of a structure in its
 * own register, as LLVM does, and does not pack the members into one register, as C does.
 *
 * SPDX-License-Identifier: MIT
 */
#include "arch/arch.h"
#include "base/error.h"
#include "base/memory.h"
#include "base/type.h"
#include "call/signature.h"
#include "runtime/runtime.h"
#include "value/representation.h"

#include <ffi.h>
#include <stddef.h>
#include <string.h>

enum { TYPE_NAME_BYTES = 64, PAIR_BYTES = 16, WORD_BYTES = 8 };

/* libffi's description of functions of a signature's type. */
struct description {
    struct closure_type head; /* must be first */
    const cairn_signature *signature;
    ffi_cif cif;
    ffi_type pair;
    ffi_type *pair_members[3];
    ffi_type structure;
    ffi_type *structure_members[3];
    /* Index in `types` of each argument's first type, not counting one that fills a register. */
    uint8_t first[CAIRN_SIGNATURE_ARGUMENTS_MAX];
    uint32_t type_count;
    uint32_t pad_bytes; /* before libffi's code; 0 if that begins with a landing pad */
    /* One argument may be two arguments of libffi, or be preceded by one that fills a register. */
    ffi_type *types[];
};

struct cairn_closure {
    struct code_stub stub; /* must be first */
    void *user;
};

/* The code of a closure. The handler is here, because this is where there are bytes left over. */
struct closure_code {
    ffi_closure closure;
    cairn_closure_handler *handler;
};

/* Size of a landing pad with no-ops after it, which libffi's code may need before it. */
enum { PAD_BYTES = 8 };

/* ---- Arguments ---- */

static void add_type(struct description *made, ffi_type *type)
{
    made->types[made->type_count++] = type;
}

/* Returns NULL for types that libffi does not support. */
static ffi_type *scalar_type(struct cairn_type type)
{
    switch (signature_kind(type)) {
    case SIGNATURE_GENERAL:
        return &ffi_type_uint64;
    case SIGNATURE_FLOATING:
        return type.kind == CAIRN_TYPE_FLOAT ? &ffi_type_float : &ffi_type_double;
    default:
        return NULL;
    }
}

static enum cairn_status refuse(const char *what, uint32_t index, struct cairn_type type,
                                struct cairn_error *error)
{
    char name[TYPE_NAME_BYTES];
    cairn_type_format(type, name, sizeof name);
    return error_set(error, CAIRN_ERROR_UNSUPPORTED, index,
                     "%s %u: libffi closures do not support %s", what, index, name);
}

static enum cairn_status add_arguments(struct description *made, struct cairn_error *error)
{
    const cairn_signature *signature = made->signature;
    const struct arch_arguments *arguments = &arch_host()->arguments;
    unsigned general = 0; /* general registers in use */
    for (uint32_t i = 0; i < signature->argument_count; i++) {
        const struct signature_argument *argument = &signature->arguments[i];
        bool is_pair = argument->kind == SIGNATURE_PAIR;
        bool is_split = is_pair && arguments->pair == ARCH_PAIR_SPLIT;
        ffi_type *type = is_pair && !is_split ? &made->pair : scalar_type(argument->type);
        if (is_split)
            type = &ffi_type_uint64;
        if (type == NULL)
            return refuse("argument", i, argument->type, error);
        /* Where pairs begin in an even register, libffi does not skip an odd one. */
        if (is_pair && arguments->pair == ARCH_PAIR_EVEN && general % 2 == 1) {
            add_type(made, &ffi_type_uint64);
            general++;
        }
        made->first[i] = (uint8_t)made->type_count;
        add_type(made, type);
        if (is_split)
            add_type(made, type);
        else
            general += is_pair ? 2 : argument->kind == SIGNATURE_GENERAL;
        if (!is_pair && general > arguments->general_count)
            general = arguments->general_count;
    }
    return CAIRN_OK;
}

/* ---- Results ---- */

static bool is_floating(struct cairn_type type)
{
    return signature_kind(type) == SIGNATURE_FLOATING;
}

static bool returns_pair(const struct cairn_results *results)
{
    return results->count == 1 && signature_kind(results->types[0]) == SIGNATURE_PAIR;
}

/* Returns the type in which libffi returns one register of a structure. */
static ffi_type *word_type(struct cairn_type type)
{
    return is_floating(type) ? &ffi_type_double : &ffi_type_uint64;
}

static ffi_type *structure_type(struct description *made, ffi_type *first, ffi_type *second)
{
    if (arch_host()->arguments.structures == ARCH_STRUCTURES_NONE)
        return NULL;
    bool is_mixed = first != second;
    if (is_mixed && arch_host()->arguments.structures != ARCH_STRUCTURES_OF_ANY_KIND)
        return NULL;
    made->structure_members[0] = first;
    made->structure_members[1] = second;
    made->structure = (ffi_type){.type = FFI_TYPE_STRUCT, .elements = made->structure_members};
    return &made->structure;
}

static void write_results(const struct cairn_results *types, const struct cairn_value *results,
                          unsigned char *returned)
{
    bool is_widened = arch_host()->arguments.widens_floats;
    const struct storage floating = {is_widened ? STORAGE_DOUBLE : STORAGE_VECTOR, WORD_BYTES};
    if (types->count == 1 && (types->types[0].kind == CAIRN_TYPE_FLOAT || returns_pair(types))) {
        memcpy(returned, results[0].bytes, results[0].size);
        return;
    }
    for (uint32_t i = 0; i < types->count; i++) {
        uint64_t word = types->extends_sign ? (uint64_t)cairn_value_signed(&results[i])
                                            : value_unsigned(&results[i]);
        if (is_floating(results[i].type))
            storage_write(&results[i], floating, &word);
        memcpy(returned + (size_t)i * WORD_BYTES, &word, sizeof word);
    }
}

/* ---- Execution ---- */

static void read_argument(const struct signature_argument *argument, void **bytes,
                          struct cairn_value *value)
{
    struct cairn_type type = argument->type;
    *value = (struct cairn_value){.type = type, .size = (uint32_t)cairn_type_size(type)};
    if (argument->kind == SIGNATURE_GENERAL) {
        /* The bits above the type's width are unspecified. */
        uint64_t word;
        memcpy(&word, bytes[0], sizeof word);
        word &= UINT64_MAX >> (WORD_BYTES * 8 - type.bits);
        value_copy_low(value->bytes, value->size, &word, sizeof word);
    } else if (argument->kind == SIGNATURE_PAIR && arch_host()->arguments.pair == ARCH_PAIR_SPLIT) {
        memcpy(value->bytes, bytes[0], WORD_BYTES);
        memcpy(value->bytes + WORD_BYTES, bytes[1], WORD_BYTES);
    } else {
        memcpy(value->bytes, bytes[0], value->size);
    }
}

static struct cairn_value zero_of(struct cairn_type type)
{
    return (struct cairn_value){.type = type, .size = (uint32_t)cairn_type_size(type)};
}

static const struct closure_code *code_of(const cairn_closure *closure)
{
    uint64_t end = closure->stub.address + closure->stub.code_bytes;
    return (const struct closure_code *)(uintptr_t)(end - sizeof(struct closure_code));
}

static void forward(ffi_cif *cif, void *returned, void **bytes, void *user)
{
    const cairn_closure *closure = user;
    const struct description *type =
        (const struct description *)(const void *)((const char *)cif -
                                                   offsetof(struct description, cif));
    const cairn_signature *signature = type->signature;
    struct cairn_value arguments[CAIRN_SIGNATURE_ARGUMENTS_MAX];
    struct cairn_value results[CAIRN_FUNCTION_RESULTS_MAX];
    for (uint32_t i = 0; i < signature->argument_count; i++)
        read_argument(&signature->arguments[i], &bytes[type->first[i]], &arguments[i]);
    for (uint32_t i = 0; i < signature->results.count; i++)
        results[i] = zero_of(signature->results.types[i]);
    code_of(closure)->handler(arguments, results, closure->user);
    /* Replaces results of the wrong type by zeros, because the handler may have written any type.
     */
    for (uint32_t i = 0; i < signature->results.count; i++)
        if (!type_equal(signature->results.types[i], results[i].type))
            results[i] = zero_of(signature->results.types[i]);
    write_results(&signature->results, results, returned);
}

/* ---- libffi's description of a type ---- */

/* Whether libffi's code does not begin with a landing pad, as in some of its versions. */
static bool needs_pad(ffi_cif *cif)
{
    const struct arch_landing_pad *pad = &arch_host()->landing_pad;
    ffi_closure example = {0};
    return pad->bytes > 0 &&
           ffi_prep_closure_loc(&example, cif, forward, NULL, &example) == FFI_OK &&
           memcmp(&example, pad->code, pad->bytes) != 0;
}

static enum cairn_status describe(struct description *made, struct cairn_error *error)
{
    const struct cairn_results *results = &made->signature->results;
    const struct cairn_type *types = results->types;
    ffi_type *result = NULL; /* if libffi cannot return these results */
    if (results->count == 0)
        result = &ffi_type_void;
    else if (returns_pair(results))
        result = structure_type(made, &ffi_type_uint64, &ffi_type_uint64);
    else if (results->count == 1)
        result = scalar_type(types[0]);
    else if (results->count == 2 && scalar_type(types[0]) != NULL && scalar_type(types[1]) != NULL)
        result = structure_type(made, word_type(types[0]), word_type(types[1]));
    /* Reports the last result, because the results before it could be returned without it. */
    if (result == NULL)
        return refuse("result", results->count - 1U, types[results->count - 1U], error);
    made->pair_members[0] = &ffi_type_uint64;
    made->pair_members[1] = &ffi_type_uint64;
    made->pair = (ffi_type){.size = PAIR_BYTES,
                            .alignment = PAIR_BYTES,
                            .type = FFI_TYPE_STRUCT,
                            .elements = made->pair_members};
    enum cairn_status status = add_arguments(made, error);
    if (status != CAIRN_OK)
        return status;
    if (ffi_prep_cif(&made->cif, FFI_DEFAULT_ABI, made->type_count, result, made->types) != FFI_OK)
        return error_set(error, CAIRN_ERROR_UNSUPPORTED, 0,
                         "libffi does not support functions of these types");
    made->pad_bytes = needs_pad(&made->cif) ? PAD_BYTES : 0;
    return CAIRN_OK;
}

/* Finds the signature's description, or creates it. If two threads create it at the same time, the
 * second one to finish frees its own. */
static enum cairn_status find_type(cairn_signature *signature, struct description **type,
                                   struct cairn_error *error)
{
    size_t bytes =
        sizeof(struct description) + (size_t)signature->argument_count * 2 * sizeof(ffi_type *);
    struct closure_type *found =
        atomic_load_explicit(&signature->closure_type, memory_order_acquire);
    *type = (struct description *)(void *)found;
    if (found != NULL)
        return CAIRN_OK;
    struct description *made = memory_new(&signature->allocator, 1, bytes);
    if (made == NULL)
        return error_set(error, CAIRN_ERROR_MEMORY, 0, "no memory for the type of a closure");
    made->signature = signature;
    made->head.bytes = bytes;
    enum cairn_status status = describe(made, error);
    if (status == CAIRN_OK &&
        atomic_compare_exchange_strong_explicit(&signature->closure_type, &found, &made->head,
                                                memory_order_acq_rel, memory_order_acquire)) {
        *type = made;
        return CAIRN_OK;
    }
    *type = (struct description *)(void *)found;
    memory_free(&signature->allocator, made, bytes);
    return status;
}

/* ---- Code ---- */

struct contents {
    struct description *type;
    cairn_closure_handler *handler;
};

/* Writes libffi's code, after `before` other bytes. The zeros tell libffi that the closure is not
 * in libffi's own memory. libffi maintains the caches of the address, where there must be memory.
 */
static enum cairn_status prepare(struct code_stub *stub, const struct contents *contents,
                                 uint8_t *bytes, size_t before, struct cairn_error *error)
{
    struct closure_code code = {.handler = contents->handler};
    void *address = (void *)(uintptr_t)(stub->address + before);
    if (ffi_prep_closure_loc(&code.closure, &contents->type->cif, forward, stub, address) != FFI_OK)
        return error_set(error, CAIRN_ERROR_UNSUPPORTED, 0,
                         "libffi does not support closures of these types");
    memcpy(bytes + before, &code, sizeof code);
    return CAIRN_OK;
}

static enum cairn_status encode(struct code_stub *stub, void *user, uint8_t *bytes, size_t *size,
                                struct cairn_error *error)
{
    const struct arch_landing_pad *pad = &arch_host()->landing_pad;
    const struct contents *contents = user;
    size_t before = contents->type->pad_bytes;
    *size = before + sizeof(struct closure_code);
    if (before > 0) {
        memcpy(bytes, pad->code, pad->bytes);
        arch_host()->fill_nops(arch_host(), bytes + pad->bytes, before - pad->bytes);
    }
    return prepare(stub, contents, bytes, before, error);
}

/* ---- Creating and destroying ---- */

enum cairn_status cairn_closure_create(cairn_runtime *runtime, const cairn_signature *signature,
                                       cairn_closure_handler *handler, void *user,
                                       cairn_closure **closure, struct cairn_error *error)
{
    if (runtime == NULL || signature == NULL || handler == NULL || closure == NULL)
        return error_set(error, CAIRN_ERROR_ARGUMENT, 0, "cairn_closure_create: `%s` is NULL",
                         runtime == NULL     ? "runtime"
                         : signature == NULL ? "signature"
                         : handler == NULL   ? "handler"
                                             : "closure");
    struct contents contents = {.handler = handler};
    struct code_stub_request request = {.encode = encode,
                                        .user = &contents,
                                        .label = "closure",
                                        .description_bytes = sizeof **closure};
    struct code_stub *stub;
    /* The description of the type is the only part of a signature that is created later. */
    enum cairn_status status = find_type((cairn_signature *)signature, &contents.type, error);
    if (status != CAIRN_OK)
        return status;
    request.code_bytes = contents.type->pad_bytes + sizeof(struct closure_code);
    status = code_space_add_stub(runtime->space, &request, &stub, error);
    if (status != CAIRN_OK)
        return status;
    *closure = (cairn_closure *)(void *)stub;
    (*closure)->user = user;
    return CAIRN_OK;
}

void cairn_closure_destroy(cairn_closure *closure)
{
    if (closure != NULL)
        code_stub_retire(&closure->stub);
}

const void *cairn_closure_target(const cairn_closure *closure)
{
    return (const void *)(uintptr_t)closure->stub.address;
}
