/* What `cairn` does instead if it is built without LLVM. SPDX-License-Identifier: MIT */
#include "tools/listing.h"

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

enum exit_status command_run(int argc, char **argv)
{
    (void)argc;
    (void)argv;
    complain("run: this cairn was built without LLVM: configure it with --with-llvm");
    return EXIT_BAD_USAGE;
}
