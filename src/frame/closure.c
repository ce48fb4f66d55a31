/*
 * Closures: code of libffi's that calls a handler of the host's.
 *
 * A closure of libffi is an instruction sequence followed by what it reads. Both lie in code
 * memory, in a module of their own: so they are protected, retired and given back as other code is,
 * and never writable and executable. libffi's own memory for closures is not used.
 *
 * SPDX-License-Identifier: MIT
 */
#include "base/error.h"
#include "frame/foreign.h"
#include "frame/storage.h"

#include <string.h>

enum { CODE_ALIGNMENT = 16 };

/* Read-only once the module is loaded. */
struct cairn_closure {
    cairn_runtime *runtime;
    const cairn_signature *signature;
    cairn_closure_handler *handler;
    void *user;
    const void *target;
};

/* ---- What a thread finds ---- */

/* The low bytes of an integer, of which those above the value's bits are anything. */
static void read_general(struct cairn_type type, const void *bytes, size_t size,
                         struct cairn_value *value)
{
    uint64_t word = 0;
    storage_copy_low(&word, sizeof word, bytes, size);
    *value = type.kind == CAIRN_TYPE_POINTER ? cairn_value_of_pointer((void *)(uintptr_t)word)
                                             : cairn_value_of_integer(type.bits, (int64_t)word);
    value->type = type;
}

static void read_argument(const struct signature_argument *argument, enum foreign_form form,
                          const ffi_type *type, void **bytes, struct cairn_value *value)
{
    if (argument->kind == SIGNATURE_GENERAL) {
        read_general(argument->type, bytes[0], type->size, value);
        return;
    }
    size_t size = cairn_type_size(argument->type);
    size_t first = form == FOREIGN_SPLIT ? size / 2 : size;
    *value = (struct cairn_value){.type = argument->type, .size = (uint32_t)size};
    memcpy(value->bytes, bytes[0], first);
    if (first < size)
        memcpy(value->bytes + first, bytes[1], size - first);
}

static void read_arguments(const cairn_signature *signature, void **bytes,
                           struct cairn_value *arguments)
{
    const struct foreign_call *foreign = signature->foreign;
    for (uint32_t i = 0; i < signature->argument_count; i++) {
        uint8_t first = foreign->first[i];
        read_argument(&signature->arguments[i], (enum foreign_form)foreign->forms[i],
                      foreign->types[first], &bytes[first], &arguments[i]);
    }
}

static struct cairn_value zero_of(struct cairn_type type)
{
    return (struct cairn_value){.type = type, .size = (uint32_t)cairn_type_size(type)};
}

static void prepare_results(const struct cairn_results *types, struct cairn_value *results)
{
    for (uint32_t i = 0; i < types->count; i++)
        results[i] = zero_of(types->types[i]);
}

/* The handler may have written anything. */
static void check_results(const struct cairn_results *types, struct cairn_value *results)
{
    for (uint32_t i = 0; i < types->count; i++)
        if (!cairn_type_equal(types->types[i], results[i].type))
            results[i] = zero_of(types->types[i]);
}

static void forward(ffi_cif *cif, void *returned, void **bytes, void *user)
{
    const cairn_closure *closure = user;
    const cairn_signature *signature = closure->signature;
    struct cairn_value arguments[CAIRN_SIGNATURE_ARGUMENTS_MAX];
    struct cairn_value results[CAIRN_FUNCTION_RESULTS_MAX];
    (void)cif;
    read_arguments(signature, bytes, arguments);
    prepare_results(&signature->results, results);
    closure->handler(arguments, results, closure->user);
    check_results(&signature->results, results);
    foreign_write_results(signature, results, returned);
}

/* ---- Its code and data ---- */

/* Zeros say to libffi that the closure is no memory of its own. */
static enum cairn_status fill(cairn_loader *loader, const cairn_closure *wanted,
                              cairn_closure **made, struct cairn_error *error)
{
    struct cairn_error failed = {0};
    cairn_closure *closure = NULL;
    ffi_closure *code = cairn_loader_allocate_code(loader, sizeof *code, CODE_ALIGNMENT, &failed);
    if (code != NULL)
        closure = cairn_loader_allocate_read_only_data(loader, sizeof *closure,
                                                       _Alignof(cairn_closure), &failed);
    if (closure == NULL)
        return error_set(error, failed.status, failed.offset, "%s", failed.message);
    *closure = *wanted;
    closure->target = code;
    memset(code, 0, sizeof *code);
    if (ffi_prep_closure_loc(code, &wanted->signature->foreign->cif, forward, closure, code) !=
        FFI_OK)
        return error_set(error, CAIRN_ERROR_UNSUPPORTED, 0,
                         "libffi makes no closures of these types");
    *made = closure;
    return CAIRN_OK;
}

static enum cairn_status load(const cairn_closure *wanted, cairn_closure **closure,
                              cairn_module **module, struct cairn_error *error)
{
    cairn_loader *loader;
    enum cairn_status status = cairn_loader_create(wanted->runtime, "closure", &loader, error);
    if (status != CAIRN_OK)
        return status;
    status = fill(loader, wanted, closure, error);
    if (status == CAIRN_OK)
        status = cairn_loader_finish(loader, module, error);
    if (status != CAIRN_OK)
        cairn_loader_abandon(loader);
    return status;
}

/* ---- Making and destroying ---- */

enum cairn_status cairn_closure_create(cairn_runtime *runtime, const cairn_signature *signature,
                                       cairn_closure_handler *handler, void *user,
                                       cairn_closure **closure, struct cairn_error *error)
{
    if (runtime == NULL || signature == NULL || handler == NULL || closure == NULL)
        return error_set(error, CAIRN_ERROR_ARGUMENT, 0,
                         "cairn_closure_create needs a runtime, a signature, a handler and a place "
                         "for the closure");
    const cairn_closure wanted = {
        .runtime = runtime, .signature = signature, .handler = handler, .user = user};
    cairn_closure *made = NULL;
    cairn_module *module = NULL;
    enum cairn_status status = signature_check_foreign(signature, error);
    if (status == CAIRN_OK)
        status = load(&wanted, &made, &module, error);
    if (status != CAIRN_OK)
        return status;
    status = cairn_module_publish(module, error);
    if (status != CAIRN_OK) {
        cairn_module_retire(module);
        return status;
    }
    *closure = made;
    return CAIRN_OK;
}

void cairn_closure_destroy(cairn_closure *closure)
{
    if (closure != NULL)
        cairn_module_retire(cairn_runtime_find_module(closure->runtime, (uintptr_t)closure));
}

const void *cairn_closure_target(const cairn_closure *closure) { return closure->target; }
