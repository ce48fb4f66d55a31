/*
 * Opens the module, and implements llvm/disassemble.h with it.
 *
 * SPDX-License-Identifier: MIT
 */
#include "tools/llvm/module.h"

#include "base/error.h"

#include <cairn/cairn.h>
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define STRINGIFY(name) #name
#define STRING(name) STRINGIFY(name)

#ifdef CAIRN_WITH_LLVM
/* Opens the module that is in the folder of this program, as where it is built. */
static void *open_beside_program(void)
{
    char path[4096];
    ssize_t length = readlink("/proc/self/exe", path, sizeof path - sizeof LLVM_MODULE_FILE);
    if (length <= 0)
        return NULL;
    path[length] = '\0';
    strcpy(strrchr(path, '/') + 1, LLVM_MODULE_FILE);
    return access(path, R_OK) == 0 ? dlopen(path, RTLD_NOW | RTLD_LOCAL) : NULL;
}

static const struct llvm_functions *open_module(struct cairn_error *error)
{
    void *module = open_beside_program();
    if (module == NULL)
        module = dlopen(MODULE_FOLDER "/" LLVM_MODULE_FILE, RTLD_NOW | RTLD_LOCAL);
    if (module == NULL) {
        error_set(error, CAIRN_ERROR_UNSUPPORTED, 0, "LLVM cannot be loaded: %s", dlerror());
        return NULL;
    }
    const struct llvm_functions *functions = dlsym(module, STRING(LLVM_FUNCTIONS_SYMBOL));
    if (functions != NULL && strcmp(functions->version, cairn_version()) == 0)
        return functions;
    error_set(error, CAIRN_ERROR_UNSUPPORTED, 0, "%s is not of version %s, as this cairn is",
              LLVM_MODULE_FILE, cairn_version());
    return NULL;
}
#else
static const struct llvm_functions *open_module(struct cairn_error *error)
{
    error_set(error, CAIRN_ERROR_UNSUPPORTED, 0,
              "this cairn was built without LLVM: configure it with --with-llvm");
    return NULL;
}
#endif

const struct llvm_functions *find_llvm(struct cairn_error *error)
{
    static const struct llvm_functions *functions;
    if (functions == NULL)
        functions = open_module(error);
    return functions;
}

/* ---- Disassembling ---- */

enum cairn_status disassembler_create(enum cairn_architecture architecture,
                                      enum cairn_byte_order byte_order,
                                      struct disassembler **disassembler, struct cairn_error *error)
{
    struct cairn_error reason;
    const struct llvm_functions *llvm = find_llvm(&reason);
    if (llvm == NULL)
        return error_set(error, CAIRN_ERROR_UNSUPPORTED, 0, "there is no disassembler: %s",
                         reason.message);
    return llvm->disassembler_create(architecture, byte_order, disassembler, error);
}

void disassembler_destroy(struct disassembler *disassembler)
{
    if (disassembler != NULL)
        find_llvm(NULL)->disassembler_destroy(disassembler);
}

bool disassembler_next(struct disassembler *disassembler, const uint8_t *bytes, size_t size,
                       uint64_t address, struct instruction *instruction)
{
    return find_llvm(NULL)->disassembler_next(disassembler, bytes, size, address, instruction);
}
