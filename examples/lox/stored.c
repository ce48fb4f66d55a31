/*
 * A store of Cairn's, with the compiled code of all programs of this user, for this build of Lox.
 *
 * SPDX-License-Identifier: MIT
 */
#include "stored.h"

#include "emit.h"
#include "shared.h"

#include <cairn/cairn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* What an object is found by: also the program, whose text decides what numbers mean. */
struct full_key {
    uint64_t hashes[2]; /* of the source */
    uint64_t source_size;
    struct stored_key place;
};

/* The store keeps this before the object. */
struct header {
    char name[64]; /* of the function */
};

static struct {
    cairn_store *store; /* or NULL */
    struct full_key program;
} state;

/* ---- Opening ---- */

static void print_note(const char *sentence, void *user)
{
    (void)user;
    fprintf(stderr, "lox: %s\n", sentence);
}

/* What must be the same for code to be usable is in the program and its shared objects. */
struct fingerprint {
    char version[32];
    struct {
        int64_t size, seconds, nanoseconds;
    } files[3];
};

static void note_file(struct fingerprint *fingerprint, int i, const char *path)
{
    struct stat file;
    if (stat(path, &file) != 0)
        return;
    fingerprint->files[i].size = file.st_size;
    fingerprint->files[i].seconds = file.st_mtim.tv_sec;
    fingerprint->files[i].nanoseconds = file.st_mtim.tv_nsec;
}

static struct fingerprint fingerprint_of_lox(void)
{
    struct fingerprint fingerprint = {.version = "lox 1"};
    static const char *const parts[] = {"lox-jit.so", EMITTER_FILE};
    char path[SHARED_PATH_SIZE];
    note_file(&fingerprint, 0, "/proc/self/exe");
    for (int i = 0; i < 2; i++) {
        shared_path(parts[i], path);
        note_file(&fingerprint, i + 1, path);
    }
    return fingerprint;
}

/* Returns a hash that depends on the seed. */
static uint64_t hash_of(const char *bytes, size_t size, uint64_t seed)
{
    uint64_t hash = seed;
    for (size_t i = 0; i < size; i++)
        hash = (hash ^ (uint8_t)bytes[i]) * 0x100000001b3u + (hash >> 47);
    return hash;
}

/* Writes the path of the user's own folder, and makes the one that it is in. Returns false if the
 * environment does not say it. */
static bool write_default_folder(char *path, size_t size)
{
    const char *cache = getenv("XDG_CACHE_HOME");
    const char *home = getenv("HOME");
    bool has_cache = cache != NULL && *cache == '/';
    if (!has_cache && home == NULL)
        return false;
    int length = snprintf(path, size, "%s%s", has_cache ? cache : home, has_cache ? "" : "/.cache");
    if (length < 0 || (size_t)length + sizeof "/lox" > size)
        return false;
    mkdir(path, 0700); /* if that fails, the store says so */
    memcpy(path + length, "/lox", sizeof "/lox");
    return true;
}

void stored_open(const char *folder, const char *source, size_t size)
{
    char path[4096];
    struct cairn_error error;
    const struct fingerprint fingerprint = fingerprint_of_lox();
    const struct cairn_store_options options = {
        .fingerprint = &fingerprint, .fingerprint_size = sizeof fingerprint, .note = print_note};
    state.program = (struct full_key){
        .hashes = {hash_of(source, size, 0xcbf29ce484222325u), hash_of(source, size, 0x9e3779b9u)},
        .source_size = size};
    if (folder == NULL && write_default_folder(path, sizeof path))
        folder = path;
    if (folder == NULL)
        print_note("--cache: neither HOME nor XDG_CACHE_HOME is set", NULL);
    else if (cairn_store_open(folder, &options, &state.store, &error) != CAIRN_OK)
        print_note(error.message, NULL);
}

bool stored_is_open(void) { return state.store != NULL; }

void stored_close(void) { cairn_store_close(state.store); }

/* ---- Objects ---- */

static struct full_key full_key_of(struct stored_key place)
{
    struct full_key key = state.program;
    key.place = place;
    return key;
}

struct stored_code stored_find(struct stored_key place)
{
    const struct full_key key = full_key_of(place);
    size_t size;
    const struct header *found =
        state.store == NULL ? NULL : cairn_store_find(state.store, &key, sizeof key, &size);
    if (found == NULL || size < sizeof *found ||
        memchr(found->name, '\0', sizeof found->name) == NULL)
        return (struct stored_code){.object = NULL};
    return (struct stored_code){found->name, found + 1, size - sizeof *found};
}

void stored_remove(struct stored_key place)
{
    const struct full_key key = full_key_of(place);
    struct cairn_error error;
    if (state.store != NULL &&
        cairn_store_remove(state.store, &key, sizeof key, &error) != CAIRN_OK)
        print_note(error.message, NULL);
}

void stored_add(struct stored_key place, const struct stored_code *code)
{
    const struct full_key key = full_key_of(place);
    struct cairn_error error;
    if (state.store == NULL)
        return;
    struct header *bytes = heap_zeroed(sizeof *bytes + code->size);
    snprintf(bytes->name, sizeof bytes->name, "%s", code->name);
    memcpy(bytes + 1, code->object, code->size);
    stored_remove(place);
    if (cairn_store_add(state.store, &key, sizeof key, bytes, sizeof *bytes + code->size, &error) !=
        CAIRN_OK)
        print_note(error.message, NULL);
    free(bytes);
}
