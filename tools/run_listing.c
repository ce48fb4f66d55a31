/* SPDX-License-Identifier: MIT */
#include "tools/run_listing.h"

#include "tools/stackmap.h"
#include "llvm/program.h"
#include "llvm/scan.h"

#include <cairn/cairn.h>
#include <stdio.h>
#include <string.h>

bool is_object_file(const char *path)
{
    static const char magic[] = "\177ELF";
    char bytes[sizeof magic - 1];
    FILE *file = fopen(path, "rb");
    if (file == NULL)
        return false;
    bool is_object =
        fread(bytes, sizeof bytes, 1, file) == 1 && memcmp(bytes, magic, sizeof bytes) == 0;
    fclose(file);
    return is_object;
}

static enum exit_status complain_about(const char *path, const struct cairn_error *error)
{
    complain("%s: %s", path, error->message);
    return EXIT_BAD_INPUT;
}

enum exit_status complain_about_conflict(const char *path, const struct cairn_error *error)
{
    complain("%s: %s: use '--id-conflicts renumber' or '--id-conflicts undeclared'", path,
             error->message);
    return EXIT_BAD_INPUT;
}

/* Lists the object's records. Destroys the object. */
static enum exit_status list(cairn_object *object, const char *path,
                             const cairn_declarations *declarations, struct output *output)
{
    const struct input input = {.name = path, .object = object};
    bool is_valid;
    bool is_good;
    enum exit_status status = EXIT_BAD_INPUT;
    size_t section_count = check_maps(&input, &is_valid, &is_good);
    struct listing *listing = NULL;
    if (is_valid && section_count == 0 && is_good && declarations != NULL) {
        output_text(output, "0 records, 0 sites\n");
        status = finish_output(output);
    } else if (is_valid && section_count == 0) {
        complain_of_no_maps(path);
    } else if (is_valid) {
        listing = listing_create(object, path, declarations, 0);
    }
    if (listing != NULL) {
        write_maps(&input, listing, output, NULL);
        status = finish_output(output);
    }
    listing_destroy(listing);
    cairn_object_destroy(object);
    return status;
}

enum exit_status list_object(const char *path, struct output *output)
{
    cairn_object *object;
    struct cairn_error error;
    if (cairn_object_open(path, NULL, &object, &error) != CAIRN_OK)
        return complain_about(path, &error);
    return list(object, path, NULL, output);
}

/* ---- Programs ---- */

struct findings {
    const char *path;
    bool any;
};

static void complain_about_finding(const struct cairn_finding *finding, void *user)
{
    struct findings *findings = user;
    complain("%s: %s", findings->path, finding->sentence);
    findings->any = true;
}

/* Checks the module. Must run before code generation, which changes the module. */
static enum exit_status check(struct program *program, const char *path,
                              unsigned optimisation_level, enum cairn_id_conflicts id_conflicts,
                              cairn_declarations *declarations)
{
    struct cairn_error error;
    struct findings findings = {.path = path};
    const struct cairn_check_options options = {
        .optimisation_level = optimisation_level,
        .is_verified = true, /* program_read has verified the module */
        .finding = complain_about_finding,
        .user = &findings,
    };
    enum cairn_status status = cairn_check_module(program_module(program), &options, &error);
    struct pending_list none;
    pending_init(&none, NULL, id_conflicts);
    if (status == CAIRN_OK)
        status = pending_scan(&none, program_module(program), declarations, &error);
    if (status == CAIRN_OK)
        return EXIT_DONE;
    if (status == CAIRN_ERROR_CONFLICT)
        return complain_about_conflict(path, &error);
    return findings.any ? EXIT_BAD_INPUT : complain_about(path, &error);
}

enum exit_status list_program(struct program *program, const char *path,
                              unsigned optimisation_level, enum cairn_id_conflicts id_conflicts,
                              struct output *output)
{
    cairn_declarations *declarations;
    struct compiled compiled = {0};
    struct cairn_error error;
    if (cairn_declarations_create(NULL, &declarations, &error) != CAIRN_OK)
        return complain_about(path, &error);
    enum exit_status status = check(program, path, optimisation_level, id_conflicts, declarations);
    if (status == EXIT_DONE &&
        program_compile(program, optimisation_level, &compiled, &error) != CAIRN_OK)
        status = complain_about(path, &error);
    cairn_object *object;
    if (status == EXIT_DONE) {
        status = EXIT_BAD_INPUT;
        if (cairn_object_open_memory(compiled.bytes, compiled.size, NULL, &object, &error) ==
            CAIRN_OK)
            status = list(object, path, declarations, output);
        else
            complain("%s: the code that LLVM emits cannot be read: %s: choose a target with ELF "
                     "files, such as Linux",
                     path, error.message);
    }
    compiled_release(&compiled);
    cairn_declarations_destroy(declarations);
    return status;
}
