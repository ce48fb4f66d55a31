/* What `cairn` does instead if it is built without LLVM. SPDX-License-Identifier: MIT */
#include "tools/compile.h"
#include "tools/listing.h"
#include "llvm/disassemble.h"

struct listing *listing_create(cairn_object *object, const char *path,
                               const cairn_declarations *declarations, uint32_t byte_count)
{
    (void)object;
    (void)declarations;
    (void)byte_count;
    complain("%s: this cairn was built without LLVM and has no disassembler: configure it with "
             "--with-llvm",
             path);
    return NULL;
}

void listing_destroy(struct listing *listing) { (void)listing; }

const struct cairn_declaration *listing_declaration(const struct listing *listing, uint64_t id)
{
    (void)listing;
    (void)id;
    return NULL;
}

/* Never called, because listing_create returns NULL. */
void write_listed_text(struct listing *listing, const struct listed_record *record,
                       struct output *output)
{
    (void)listing;
    (void)record;
    (void)output;
}

void write_listed_json(struct listing *listing, const struct listed_record *record,
                       struct json *json)
{
    (void)listing;
    (void)record;
    (void)json;
}

/* ---- Instructions ---- */

enum cairn_status disassembler_create(enum cairn_architecture architecture,
                                      enum cairn_byte_order byte_order,
                                      struct disassembler **disassembler, struct cairn_error *error)
{
    (void)architecture;
    (void)byte_order;
    (void)disassembler;
    (void)error;
    return CAIRN_ERROR_UNSUPPORTED;
}

void disassembler_destroy(struct disassembler *disassembler) { (void)disassembler; }

/* Never called, because there is no disassembler. */
bool disassembler_next(struct disassembler *disassembler, const uint8_t *bytes, size_t size,
                       uint64_t address, struct instruction *instruction)
{
    (void)disassembler;
    (void)bytes;
    (void)size;
    (void)address;
    (void)instruction;
    return false;
}

/* ---- Compiling ---- */

bool check_compile_options(const char *command, const struct compile_options *options)
{
    (void)command;
    (void)options;
    return true;
}

bool is_host_triple(const char *triple)
{
    (void)triple;
    return false;
}

enum exit_status compile_file(const char *path, const struct compile_options *options, void **bytes,
                              size_t *size)
{
    (void)options;
    (void)bytes;
    (void)size;
    complain("%s: this is not an object, and this cairn was built without LLVM, so that it cannot "
             "compile: configure it with --with-llvm",
             path);
    return EXIT_BAD_USAGE;
}

enum exit_status command_compile(int argc, char **argv)
{
    (void)argc;
    (void)argv;
    complain("compile: this cairn was built without LLVM: configure it with --with-llvm");
    return EXIT_BAD_USAGE;
}
