/*
 * Fuzzes debug files. A debug file that is found is attached. Sections of the object that have
 * bytes are unchanged, and sections that only the debug file has follow them. Functions of an
 * object with symbols are unchanged. All files opened through the hook are closed.
 *
 * Input: flags (how the files are linked, and which paths exist), then what the debug file and the
 * object are made from (fuzz/make_object.h).
 *
 * SPDX-License-Identifier: MIT
 */
#include "fuzz/make_object.h"

#include <cairn/object.h>

enum { HAS_LINK = 1, OBJECT_HAS_ID = 2, DEBUG_FILE_HAS_ID = 4, RELATED = 8, SECTIONS_MAX = 32 };

static const char object_path[] = "/folder/program";
static const char *const directories[] = {"/debug", NULL};
/* Possible paths of a debug file: bits 4 and higher of the flags. */
static const char *const paths[] = {"/debug/.build-id/ab/cd.debug", "/folder/d", "/folder/.debug/d",
                                    "/debug/folder/d"};

static struct {
    struct cairn_file_bytes object;
    struct cairn_file_bytes debug_file;
    uint8_t flags;
    int open_count;
} files;

static bool open_file(void *user, const char *path, struct cairn_file_bytes *file)
{
    bool found = strcmp(path, object_path) == 0;
    (void)user;
    *file = files.object;
    for (unsigned i = 0; i < sizeof paths / sizeof *paths && !found; i++)
        if (strcmp(path, paths[i]) == 0 && (files.flags >> (4 + i) & 1) != 0) {
            *file = files.debug_file;
            found = true;
        }
    files.open_count += found;
    return found;
}

static void close_file(void *user, const struct cairn_file_bytes *file)
{
    (void)user;
    (void)file;
    files.open_count--;
}

/* ---- Unchanged properties ---- */

struct noted_section {
    struct cairn_object_section section;
    bool is_there;
};

static bool find_section(cairn_object *object, uint32_t index, struct cairn_object_section *section)
{
    struct cairn_object_section_header header;
    *section = (struct cairn_object_section){.index = index - 1};
    if (!cairn_object_section_header(object, index, &header))
        return false;
    const struct cairn_object_filter filter = {.name = header.name, .type = header.type};
    return cairn_object_next_section(object, &filter, section, NULL) == CAIRN_OK &&
           section->index == index;
}

static void check_sections(cairn_object *object, const struct noted_section *noted)
{
    for (uint32_t i = 1; i < SECTIONS_MAX; i++) {
        struct cairn_object_section section;
        bool is_there = find_section(object, i, &section);
        if (!noted[i].is_there)
            continue;
        require(is_there && section.contents.size == noted[i].section.contents.size);
        require(section.contents.bytes == noted[i].section.contents.bytes);
    }
}

static enum cairn_status find_functions(cairn_object *object, uint64_t *sum)
{
    enum cairn_status worst = CAIRN_OK;
    *sum = 0;
    for (uint64_t address = 0x1000; address < 0x9000; address += 0x40) {
        struct cairn_object_function function;
        enum cairn_status status = cairn_object_find_function(object, 0, address, &function, NULL);
        if (status == CAIRN_OK)
            *sum = *sum * 31 + function.entry * 7 + function.size;
        else if (status != CAIRN_ERROR_NOT_FOUND)
            worst = status;
    }
    return worst;
}

static bool has_symbols(const cairn_object *object)
{
    struct cairn_object_section_header header;
    for (uint32_t i = 1; cairn_object_section_header(object, i, &header); i++)
        if (header.type == SHT_SYMTAB)
            return true;
    return false;
}

static void attach(cairn_object *object, const char *path)
{
    static struct noted_section noted[SECTIONS_MAX];
    uint64_t sums[2] = {0, 0};
    bool is_own = has_symbols(object);
    enum cairn_status before = find_functions(object, &sums[0]);
    for (uint32_t i = 1; i < SECTIONS_MAX; i++)
        noted[i].is_there = find_section(object, i, &noted[i].section);
    enum cairn_status status = cairn_object_attach_debug_file(object, path, NULL);
    require(status == CAIRN_OK || status == CAIRN_ERROR_UNSUPPORTED);
    require((status == CAIRN_ERROR_UNSUPPORTED) == cairn_object_header(object).is_relocatable);
    if (status != CAIRN_OK)
        return;
    require(cairn_object_attach_debug_file(object, path, NULL) == CAIRN_ERROR_STATE);
    enum cairn_status after = find_functions(object, &sums[1]);
    /* An error in the symbols, which may be those of the debug file now, is reported for each
     * section. */
    if (after == CAIRN_OK)
        check_sections(object, noted);
    require(!is_own || (before == after && sums[0] == sums[1]));
}

static void check_files(void)
{
    const struct cairn_object_options options = {.files = {.open = open_file, .close = close_file}};
    cairn_object *object = NULL;
    const char *found = NULL;
    files.open_count = 0;
    if (cairn_object_open(object_path, &options, &object, NULL) == CAIRN_OK) {
        enum cairn_status status =
            cairn_object_find_debug_file(object, object_path, directories, &found, NULL);
        require(status == CAIRN_OK || status == CAIRN_ERROR_NOT_FOUND);
        require(files.open_count == 1);
        if (status == CAIRN_OK) {
            char *path = strdup(found);
            require(path != NULL);
            attach(object, path);
            free(path);
        } else {
            (void)!cairn_object_attach_debug_file(object, paths[1], NULL);
        }
    }
    cairn_object_destroy(object);
    require(files.open_count == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct made_object made[2];
    struct fuzz_input input = {data, size};
    const struct fuzz_input whole = {data + (size > 0), size - (size > 0)};
    files.flags = fuzz_u8(&input);
    make_object(&input, &made[1]);
    if ((files.flags & DEBUG_FILE_HAS_ID) != 0)
        made_object_link(&made[1], NULL);
    /* The debug file is made from the same input, so that it has the same sections. */
    if ((files.flags & RELATED) != 0)
        input = whole;
    make_object(&input, &made[0]);
    if ((files.flags & OBJECT_HAS_ID) != 0)
        made_object_link(&made[0], NULL);
    if ((files.flags & HAS_LINK) != 0)
        made_object_link(&made[0], &made[1]);
    void *copies[2];
    for (int i = 0; i < 2; i++)
        copies[i] = fuzz_copy(made[i].bytes, made[i].size);
    files.object = (struct cairn_file_bytes){.bytes = copies[0], .size = made[0].size};
    files.debug_file = (struct cairn_file_bytes){.bytes = copies[1], .size = made[1].size};
    check_files();
    free(copies[0]);
    free(copies[1]);
    return 0;
}
