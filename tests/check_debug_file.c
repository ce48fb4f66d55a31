/*
 * Tests of build IDs and separate debug files: handwritten ones in both byte orders, and files made
 * by objcopy.
 *
 * SPDX-License-Identifier: MIT
 */
#include "allocator_support.h"
#include "object_sample.h"

#include "file/object.h"

#include <cairn/object.h>
#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static const char build_id[] = "\xab\x01\x02\x03\x04\x05\x06\x07";
enum { ID_BYTES = sizeof build_id - 1 };

/* ---- Notes ---- */

struct notes {
    uint8_t bytes[128];
    size_t size;
};

static void put_note(struct notes *notes, enum cairn_byte_order order, const char *name,
                     uint32_t type, const void *description, uint32_t size)
{
    uint32_t name_size = (uint32_t)strlen(name) + 1;
    uint8_t *at = notes->bytes + notes->size;
    at = elf_put32(at, order, name_size);
    at = elf_put32(at, order, size);
    at = elf_put32(at, order, type);
    memcpy(at, name, name_size);
    at += (name_size + 3) / 4 * 4;
    memcpy(at, description, size);
    at += (size + 3) / 4 * 4;
    notes->size = (size_t)(at - notes->bytes);
}

static struct notes make_notes(enum cairn_byte_order order, const char *id)
{
    struct notes notes = {.size = 0};
    put_note(&notes, order, "GNU", 1, "abi", 3);
    put_note(&notes, order, "Other", 3, "not this", 8);
    put_note(&notes, order, "GNU", 3, id, ID_BYTES);
    return notes;
}

static void add_notes(struct sample *sample, const struct notes *notes)
{
    elf_add(&sample->file, (struct elf_section){.name = ".note.gnu.build-id",
                                                .type = SHT_NOTE,
                                                .flags = SHF_ALLOC,
                                                .bytes = notes->bytes,
                                                .size = notes->size,
                                                .alignment = 4});
}

static bool has_id(const struct sample *sample)
{
    cairn_object *object = sample_open(sample);
    struct file_bytes id = build_id_find(&object->file);
    bool is_found = id.size > 0;
    if (is_found) {
        ck_assert_uint_eq(id.size, ID_BYTES);
        ck_assert_mem_eq(id.bytes, build_id, ID_BYTES);
    }
    cairn_object_destroy(object);
    return is_found;
}

static enum cairn_byte_order order_of(int index)
{
    return index == 0 ? CAIRN_LITTLE_ENDIAN : CAIRN_BIG_ENDIAN;
}

static uint16_t machine_of(int index) { return index == 0 ? EM_X86_64 : EM_S390; }

START_TEST(build_id_is_found_in_sections)
{
    static struct sample sample;
    sample_begin(&sample, machine_of(_i), ET_EXEC, order_of(_i));
    struct notes notes = make_notes(order_of(_i), build_id);
    add_notes(&sample, &notes);
    sample_finish(&sample);
    ck_assert(has_id(&sample));
}
END_TEST

/* Has no sections: the program header is after all other data. */
START_TEST(build_id_is_found_in_segments)
{
    static struct sample sample;
    enum cairn_byte_order order = order_of(_i);
    sample_begin(&sample, machine_of(_i), ET_EXEC, order);
    struct notes notes = make_notes(order, build_id);
    sample_finish(&sample);
    size_t notes_offset = sample.size;
    memcpy(sample.bytes + notes_offset, notes.bytes, notes.size);
    uint8_t *header = sample.bytes + notes_offset + sizeof notes.bytes;
    memset(header, 0, sizeof(Elf64_Phdr));
    elf_put32(header + offsetof(Elf64_Phdr, p_type), order, PT_NOTE);
    elf_put64(header + offsetof(Elf64_Phdr, p_offset), order, notes_offset);
    elf_put64(header + offsetof(Elf64_Phdr, p_filesz), order, notes.size);
    elf_put64(header + offsetof(Elf64_Phdr, p_align), order, 4);
    sample.size = notes_offset + sizeof notes.bytes + sizeof(Elf64_Phdr);
    uint64_t header_offset = notes_offset + sizeof notes.bytes;
    elf_put64(sample.bytes + offsetof(Elf64_Ehdr, e_phoff), order, header_offset);
    elf_put16(sample.bytes + offsetof(Elf64_Ehdr, e_phentsize), order, sizeof(Elf64_Phdr));
    elf_put16(sample.bytes + offsetof(Elf64_Ehdr, e_phnum), order, 1);
    elf_put64(sample.bytes + offsetof(Elf64_Ehdr, e_shoff), order, 0);
    elf_put16(sample.bytes + offsetof(Elf64_Ehdr, e_shnum), order, 0);
    elf_put16(sample.bytes + offsetof(Elf64_Ehdr, e_shstrndx), order, 0);
    ck_assert(has_id(&sample));
}
END_TEST

START_TEST(damaged_notes_have_no_build_id)
{
    static struct sample sample;
    enum cairn_byte_order order = order_of(_i);
    struct notes whole = make_notes(order, build_id);
    for (size_t size = 0; size <= whole.size; size++) {
        struct notes notes = {.size = size};
        memcpy(notes.bytes, whole.bytes, size);
        sample_begin(&sample, machine_of(_i), ET_EXEC, order);
        add_notes(&sample, &notes);
        sample_finish(&sample);
        ck_assert_int_eq(has_id(&sample), size == whole.size);
    }
    for (size_t i = 0; i < 12; i += 4) {
        struct notes notes = whole;
        elf_put32(notes.bytes + i, order, UINT32_MAX);
        sample_begin(&sample, machine_of(_i), ET_EXEC, order);
        add_notes(&sample, &notes);
        sample_finish(&sample);
        ck_assert_int_eq(has_id(&sample), i == 8);
    }
}
END_TEST

/* ---- A program and its debug file, in a folder ---- */

static const char map_name[] = ".llvm_bb_addr_map";

struct files {
    char folder[32];
    char program[64];
    char debug[64];
    struct sample sample;
    struct notes notes;
    uint8_t link[32];
    enum cairn_byte_order order;
    int kind;
};

static struct files files;   /* the folder is removed after each test */
static cairn_object *object; /* closed after each test */
static struct cairn_error error;

static void write_bytes(const char *path, const void *bytes, size_t size)
{
    int file = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    ck_assert_int_ge(file, 0);
    ck_assert_int_eq(write(file, bytes, size), (ssize_t)size);
    close(file);
}

static void make_folder(int kind)
{
    files = (struct files){.kind = kind, .order = order_of(kind)};
    strcpy(files.folder, "/tmp/check_debug.XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(files.folder));
    snprintf(files.program, sizeof files.program, "%s/program", files.folder);
    snprintf(files.debug, sizeof files.debug, "%s/program.debug", files.folder);
}

static int remove_one(const char *path, const struct stat *status, int type, struct FTW *place)
{
    (void)status;
    (void)type;
    (void)place;
    return remove(path);
}

static void set_up(void)
{
    files.folder[0] = '\0';
    object = NULL;
}

static void remove_folder(void)
{
    if (files.folder[0] != '\0')
        ck_assert_int_eq(nftw(files.folder, remove_one, 8, FTW_DEPTH | FTW_PHYS), 0);
    files.folder[0] = '\0';
}

static void tear_down(void)
{
    cairn_object_destroy(object);
    remove_folder();
}

static void begin_program(const char *id)
{
    struct sample *sample = &files.sample;
    sample_begin(sample, machine_of(files.kind), ET_EXEC, files.order);
    if (id != NULL) {
        files.notes = make_notes(files.order, id);
        add_notes(sample, &files.notes);
    }
}

/* Writes a debug file that has the stack maps' section without bytes, and is the only file with a
 * block address map. */
static void write_debug_file(const char *id)
{
    struct sample *sample = &files.sample;
    begin_program(id);
    sample->file.sections[sample->text].type = SHT_NOBITS;
    sample->file.sections[sample->stackmaps].type = SHT_NOBITS;
    elf_add(&sample->file, (struct elf_section){.name = map_name,
                                                .type = 0x6fff4c0a,
                                                .flags = SHF_LINK_ORDER,
                                                .link = sample->text,
                                                .bytes = "map",
                                                .size = 3});
    elf_add(&sample->file, (struct elf_section){
                               .name = ".data", .type = SHT_PROGBITS, .bytes = "there", .size = 5});
    sample_add_symbol(sample, NAME_FIRST, STB_GLOBAL, STT_FUNC, sample->text, 0x1010);
    sample_set_symbol_size(sample, 8);
    sample_add_symbol_section(sample, SHT_SYMTAB);
    sample_finish(sample);
    write_bytes(files.debug, sample->bytes, sample->size);
}

/* Writes a program. `link_name` NULL: it has no .gnu_debuglink. */
static void write_program(const char *id, const char *link_name, uint32_t checksum)
{
    struct sample *sample = &files.sample;
    begin_program(id);
    sample_set_word(sample, 0, 0x1010);
    elf_add(&sample->file, (struct elf_section){.name = ".data", .type = SHT_NOBITS, .size = 5});
    if (link_name != NULL) {
        size_t place = (strlen(link_name) + 4) / 4 * 4;
        memset(files.link, 0, sizeof files.link);
        memcpy(files.link, link_name, strlen(link_name));
        elf_put32(files.link + place, files.order, checksum);
        elf_add(&sample->file, (struct elf_section){.name = ".gnu_debuglink",
                                                    .type = SHT_PROGBITS,
                                                    .bytes = files.link,
                                                    .size = place + 4});
    }
    sample_finish(sample);
    write_bytes(files.program, sample->bytes, sample->size);
}

/* Computes the CRC bit by bit, as it is defined. */
static uint32_t crc32(const uint8_t *bytes, size_t size)
{
    uint32_t sum = UINT32_MAX;
    for (size_t i = 0; i < size; i++) {
        sum ^= bytes[i];
        for (int bit = 0; bit < 8; bit++)
            sum = sum >> 1 ^ ((sum & 1) != 0 ? 0xedb88320 : 0);
    }
    return ~sum;
}

static uint32_t file_checksum(const char *path)
{
    static uint8_t bytes[ELF_BYTES_MAX];
    int file = open(path, O_RDONLY | O_CLOEXEC);
    ck_assert_int_ge(file, 0);
    ssize_t size = read(file, bytes, sizeof bytes);
    ck_assert_int_gt((int)size, 0);
    close(file);
    return crc32(bytes, (size_t)size);
}

static cairn_object *open_file(const char *path)
{
    cairn_object *opened;
    if (cairn_object_open(path, NULL, &opened, &error) != CAIRN_OK)
        ck_abort_msg("%s: %s", path, error.message);
    return opened;
}

static enum cairn_status next_named(cairn_object *searched, const char *name,
                                    struct cairn_object_section *section)
{
    const struct cairn_object_filter filter = {.name = name};
    return cairn_object_next_section(searched, &filter, section, NULL);
}

/* ---- Sections that an attached file adds ---- */

static void check_sections(void)
{
    struct cairn_object_section section = {0};
    ck_assert_int_eq(next_named(object, CAIRN_OBJECT_STACKMAPS, &section), CAIRN_OK);
    ck_assert_str_eq(cairn_object_function(object, &section, 0).name, "first");
    ck_assert_int_eq(next_named(object, CAIRN_OBJECT_STACKMAPS, &section), CAIRN_ERROR_NOT_FOUND);
    uint32_t own = section.index;

    const struct cairn_object_filter filter = {.type = 0x6fff4c0a};
    section = (struct cairn_object_section){0};
    ck_assert_int_eq(cairn_object_next_section(object, &filter, &section, &error), CAIRN_OK);
    ck_assert_str_eq(section.name, map_name);
    ck_assert_uint_gt(section.index, own);
    ck_assert_uint_ne(section.linked_section, 0);
    ck_assert_mem_eq(section.contents.bytes, "map", 3);
    ck_assert_uint_eq(cairn_object_target_section(object, &section, 0), 0);
    ck_assert_int_eq(cairn_object_next_section(object, &filter, &section, &error),
                     CAIRN_ERROR_NOT_FOUND);

    section = (struct cairn_object_section){0};
    ck_assert_int_eq(next_named(object, ".data", &section), CAIRN_OK);
    ck_assert_mem_eq(section.contents.bytes, "there", 5);
    ck_assert_int_eq(next_named(object, ".data", &section), CAIRN_ERROR_NOT_FOUND);
}

START_TEST(attached_file_adds_symbols_and_sections)
{
    make_folder(_i);
    struct cairn_object_function function;
    write_debug_file(build_id);
    write_program(build_id, NULL, 0);
    object = open_file(files.program);
    ck_assert_int_eq(cairn_object_find_function(object, 0, 0x1011, &function, NULL),
                     CAIRN_ERROR_NOT_FOUND);
    ck_assert_int_eq(cairn_object_attach_debug_file(object, files.debug, &error), CAIRN_OK);
    check_sections();
    ck_assert_int_eq(cairn_object_find_function(object, 0, 0x1011, &function, NULL), CAIRN_OK);
    ck_assert_str_eq(function.name, "first");
    ck_assert_uint_eq(function.size, 8);
    struct cairn_object_code code;
    ck_assert_int_eq(cairn_object_code(object, 0, 0x1010, &code, NULL), CAIRN_OK);
    ck_assert_uint_eq(code.bytes[0], 0x10);
    ck_assert_int_eq(cairn_object_attach_debug_file(object, files.debug, &error),
                     CAIRN_ERROR_STATE);
}
END_TEST

START_TEST(own_symbol_table_is_kept)
{
    make_folder(_i);
    struct cairn_object_function function;
    write_debug_file(build_id);
    struct sample *sample = &files.sample;
    begin_program(build_id);
    sample_add_symbol(sample, NAME_SECOND, STB_GLOBAL, STT_FUNC, sample->text, 0x1010);
    sample_add_symbol_section(sample, SHT_SYMTAB);
    sample_finish(sample);
    write_bytes(files.program, sample->bytes, sample->size);
    object = open_file(files.program);
    ck_assert_int_eq(cairn_object_attach_debug_file(object, files.debug, NULL), CAIRN_OK);
    ck_assert_int_eq(cairn_object_find_function(object, 0, 0x1011, &function, NULL), CAIRN_OK);
    ck_assert_str_eq(function.name, "second");
}
END_TEST

START_TEST(debug_file_alone_has_symbols_and_maps_and_no_code)
{
    make_folder(_i);
    struct cairn_object_function function;
    struct cairn_object_code code;
    struct cairn_object_section section = {0};
    write_debug_file(build_id);
    object = open_file(files.debug);
    ck_assert_int_eq(next_named(object, map_name, &section), CAIRN_OK);
    ck_assert_mem_eq(section.contents.bytes, "map", 3);
    ck_assert_int_eq(cairn_object_find_function(object, 0, 0x1017, &function, NULL), CAIRN_OK);
    ck_assert_str_eq(function.name, "first");
    ck_assert_int_eq(cairn_object_code(object, 0, 0x1010, &code, &error), CAIRN_ERROR_UNSUPPORTED);
    ck_assert_ptr_nonnull(strstr(error.message, "debug file"));
}
END_TEST

/* ---- Files that are not attached ---- */

static enum cairn_status try_attach(void)
{
    cairn_object *opened = open_file(files.program);
    enum cairn_status status = cairn_object_attach_debug_file(opened, files.debug, &error);
    struct cairn_object_section section = {0};
    if (status != CAIRN_OK)
        ck_assert_int_eq(next_named(opened, map_name, &section), CAIRN_ERROR_NOT_FOUND);
    cairn_object_destroy(opened);
    return status;
}

START_TEST(other_builds_are_refused)
{
    make_folder(_i);
    write_debug_file("\xab\x01\x02\x03\x04\x05\x06\x08");
    write_program(build_id, NULL, 0);
    ck_assert_int_eq(try_attach(), CAIRN_ERROR_CONFLICT);
    ck_assert_ptr_nonnull(strstr(error.message, "build IDs differ"));
    write_program(NULL, NULL, 0);
    ck_assert_int_eq(try_attach(), CAIRN_ERROR_CONFLICT);
    ck_assert_ptr_nonnull(strstr(error.message, "no build ID"));
    write_program(NULL, "program.debug", 1);
    ck_assert_int_eq(try_attach(), CAIRN_ERROR_CONFLICT);
    ck_assert_ptr_nonnull(strstr(error.message, "checksum"));
    write_program(NULL, "program.debug", file_checksum(files.debug));
    ck_assert_int_eq(try_attach(), CAIRN_OK);
}
END_TEST

START_TEST(unsuitable_files_are_refused)
{
    make_folder(0);
    static struct sample sample;
    write_program(build_id, NULL, 0);
    ck_assert_int_eq(try_attach(), CAIRN_ERROR_SYSTEM);
    write_bytes(files.debug, "text", 4);
    ck_assert_int_eq(try_attach(), CAIRN_ERROR_CORRUPT);
    files.kind = 1;
    files.order = CAIRN_BIG_ENDIAN;
    write_debug_file(build_id);
    ck_assert_int_eq(try_attach(), CAIRN_ERROR_CONFLICT);
    ck_assert_ptr_nonnull(strstr(error.message, "another machine"));
    ck_assert_int_eq(cairn_object_attach_debug_file(NULL, files.debug, NULL), CAIRN_ERROR_ARGUMENT);
    sample_relocatable(&sample, EM_X86_64, CAIRN_LITTLE_ENDIAN, R_X86_64_64);
    object = sample_open(&sample);
    ck_assert_int_eq(cairn_object_attach_debug_file(object, NULL, NULL), CAIRN_ERROR_ARGUMENT);
    ck_assert_int_eq(cairn_object_attach_debug_file(object, files.debug, NULL),
                     CAIRN_ERROR_UNSUPPORTED);
}
END_TEST

/* ---- Finding the debug file ---- */

/* Makes a directory and its parents. */
static void make_directory(const char *path)
{
    char part[256];
    for (const char *slash = strchr(path + 1, '/'); slash != NULL; slash = strchr(slash + 1, '/')) {
        snprintf(part, sizeof part, "%.*s", (int)(slash - path), path);
        ck_assert(mkdir(part, 0755) == 0 || errno == EEXIST);
    }
    ck_assert(mkdir(path, 0755) == 0 || errno == EEXIST);
}

/* Moves the debug file to a file in that folder. */
static void move_debug_file(const char *folder, const char *name)
{
    char path[256];
    snprintf(path, sizeof path, "%s/%s", files.folder, folder);
    make_directory(path);
    snprintf(path, sizeof path, "%s/%s/%s", files.folder, folder, name);
    ck_assert_int_eq(rename(files.debug, path), 0);
    ck_assert_uint_lt(strlen(path), sizeof files.debug);
    strcpy(files.debug, path);
}

static enum cairn_status find(char *found, size_t size)
{
    char directory[64];
    snprintf(directory, sizeof directory, "%s/d", files.folder);
    const char *const directories[] = {"/nonexistent", directory, NULL};
    const char *path = NULL;
    cairn_object *opened = open_file(files.program);
    enum cairn_status status =
        cairn_object_find_debug_file(opened, files.program, directories, &path, &error);
    if (status == CAIRN_OK)
        snprintf(found, size, "%s", path);
    ck_assert_int_eq(status == CAIRN_OK, path != NULL);
    cairn_object_destroy(opened);
    return status;
}

static void expect_found(void)
{
    char found[256];
    if (find(found, sizeof found) != CAIRN_OK)
        ck_abort_msg("%s", error.message);
    ck_assert_str_eq(found, files.debug);
}

static void expect_not_found(const char *sentence)
{
    char found[256];
    ck_assert_int_eq(find(found, sizeof found), CAIRN_ERROR_NOT_FOUND);
    ck_assert_ptr_nonnull(strstr(error.message, sentence));
}

START_TEST(debug_file_is_found_by_build_id)
{
    make_folder(_i);
    write_debug_file(build_id);
    write_program(build_id, NULL, 0);
    expect_not_found("no debug file of this build");
    move_debug_file("d/.build-id/ab", "01020304050607.debug");
    expect_found();
    /* Writes another debug file at the same path. */
    write_debug_file("\xab\x01\x02\x03\x04\x05\x06\x08");
    expect_not_found("no debug file of this build");
}
END_TEST

START_TEST(debug_file_is_found_by_its_link)
{
    make_folder(_i);
    char folder[64];
    write_debug_file(_i == 0 ? build_id : NULL);
    write_program(NULL, "program.debug", file_checksum(files.debug));
    expect_found();
    move_debug_file(".debug", "program.debug");
    expect_found();
    snprintf(folder, sizeof folder, "d%s", files.folder);
    move_debug_file(folder, "program.debug");
    expect_found();
    write_program(NULL, "program.debug", file_checksum(files.debug) + 1);
    expect_not_found("named 'program.debug'");
}
END_TEST

START_TEST(file_is_not_its_own_debug_file)
{
    make_folder(_i);
    write_program(build_id, "program", 0);
    expect_not_found("named 'program'");
    strcpy(files.debug, files.program);
    move_debug_file("x", "other");
    write_program(build_id, "program", 0);
    move_debug_file(".debug", "program");
    expect_found();
}
END_TEST

START_TEST(files_without_id_and_link_are_reported)
{
    make_folder(_i);
    write_program(NULL, NULL, 0);
    expect_not_found("neither a build ID nor");
    object = open_file(files.program);
    const char *found;
    ck_assert_int_eq(cairn_object_find_debug_file(object, "/nonexistent/file", NULL, &found, NULL),
                     CAIRN_ERROR_SYSTEM);
    ck_assert_int_eq(cairn_object_find_debug_file(NULL, files.program, NULL, &found, NULL),
                     CAIRN_ERROR_ARGUMENT);
    ck_assert_int_eq(cairn_object_find_debug_file(object, NULL, NULL, &found, NULL),
                     CAIRN_ERROR_ARGUMENT);
    ck_assert_int_eq(cairn_object_find_debug_file(object, files.program, NULL, NULL, NULL),
                     CAIRN_ERROR_ARGUMENT);
}
END_TEST

/* ---- Files in memory ---- */

struct memory_files {
    const char *paths[2];
    const uint8_t *bytes[2];
    size_t sizes[2];
    size_t open_count;
    size_t asked_count;
};

static bool open_in_memory(void *user, const char *path, struct cairn_file_bytes *file)
{
    struct memory_files *memory = user;
    memory->asked_count++;
    for (size_t i = 0; i < 2; i++) {
        if (strcmp(memory->paths[i], path) != 0)
            continue;
        *file = (struct cairn_file_bytes){memory->bytes[i], memory->sizes[i], NULL};
        memory->open_count++;
        return true;
    }
    return false;
}

static void close_in_memory(void *user, const struct cairn_file_bytes *file)
{
    struct memory_files *memory = user;
    ck_assert(file->bytes == memory->bytes[0] || file->bytes == memory->bytes[1]);
    memory->open_count--;
}

static uint8_t *copy_sample(const struct sample *sample, size_t *size)
{
    uint8_t *copy = malloc(sample->size);
    ck_assert_ptr_nonnull(copy);
    *size = sample->size;
    return memcpy(copy, sample->bytes, sample->size);
}

/* Paths of the debug file: by build ID, and by its name in the program's folder. */
static const char *const hooked_paths[] = {"/debug/.build-id/ab/01020304050607.debug",
                                           "folder/program.debug"};

START_TEST(debug_files_are_opened_by_the_hook)
{
    static const char *const directories[] = {"/debug", NULL};
    make_folder(0);
    struct memory_files memory = {.paths = {"folder/program", hooked_paths[_i]}};
    write_debug_file(build_id);
    uint8_t *debug = copy_sample(&files.sample, &memory.sizes[1]);
    write_program(build_id, "program.debug", 0);
    uint8_t *program = copy_sample(&files.sample, &memory.sizes[0]);
    remove_folder();
    memory.bytes[0] = program;
    memory.bytes[1] = debug;
    const struct cairn_object_options options = {
        .files = {open_in_memory, close_in_memory, &memory}};

    const char *found = NULL;
    ck_assert_int_eq(cairn_object_open("folder/program", &options, &object, NULL), CAIRN_OK);
    ck_assert_int_eq(
        cairn_object_find_debug_file(object, "folder/program", directories, &found, NULL),
        CAIRN_OK);
    ck_assert_str_eq(found, hooked_paths[_i]);
    ck_assert_int_eq(cairn_object_attach_debug_file(object, found, NULL), CAIRN_OK);
    ck_assert_uint_eq(memory.open_count, 2);
    check_sections();
    cairn_object_destroy(object);
    object = NULL;
    ck_assert_uint_eq(memory.open_count, 0);
    ck_assert_uint_eq(memory.asked_count, _i == 0 ? 3 : 4);
    free(program);
    free(debug);
}
END_TEST

/* ---- Memory ---- */

static enum cairn_status use_debug_file(const struct cairn_allocator *allocator)
{
    const char *found;
    struct cairn_object_function function;
    struct cairn_object_section section = {0};
    const char *const directories[] = {"/nonexistent", NULL};
    const struct cairn_object_options options = {.allocator = allocator};
    cairn_object *opened;
    enum cairn_status status = cairn_object_open(files.program, &options, &opened, NULL);
    if (status != CAIRN_OK)
        return status;
    status = cairn_object_find_debug_file(opened, files.program, directories, &found, NULL);
    if (status == CAIRN_OK)
        status = cairn_object_attach_debug_file(opened, found, NULL);
    if (status == CAIRN_OK)
        status = next_named(opened, map_name, &section);
    if (status == CAIRN_OK)
        status = cairn_object_find_function(opened, 0, 0x1010, &function, NULL);
    cairn_object_destroy(opened);
    return status;
}

START_TEST(each_allocation_may_fail)
{
    make_folder(_i);
    write_debug_file(build_id);
    write_program(build_id, "program.debug", 0);
    enum cairn_status status = CAIRN_ERROR_MEMORY;
    size_t count = 0;
    for (size_t fail_at = 1; status == CAIRN_ERROR_MEMORY; fail_at++) {
        struct support_allocator counter = {.fail_at = fail_at};
        struct cairn_allocator allocator = support_counting(&counter);
        status = use_debug_file(&allocator);
        ck_assert_uint_eq(counter.outstanding_bytes, 0);
        count = fail_at;
    }
    ck_assert_int_eq(status, CAIRN_OK);
    ck_assert_uint_ge(count, 10);
}
END_TEST

/* ---- A real debug file ---- */

/* Returns false if there is no objcopy, or if it cannot do this. */
static bool run_objcopy(const char *option, const char *link, const char *output)
{
    char program[32];
    snprintf(program, sizeof program, "/proc/%d/exe", (int)getpid());
    pid_t child = fork();
    ck_assert_int_ge(child, 0);
    if (child == 0) {
        int quiet = open("/dev/null", O_WRONLY | O_CLOEXEC);
        if (quiet >= 0 && dup2(quiet, STDERR_FILENO) >= 0 && chdir(files.folder) == 0)
            execlp("objcopy", "objcopy", option, link, program, output, (char *)NULL);
        _exit(127);
    }
    int status;
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

/* Splits this test program with objcopy. Returns false without a suitable objcopy, and under an
 * emulator, where /proc/self/exe is the emulator. */
static bool take_apart(void)
{
    if (getenv("CAIRN_TEST_EMULATED") != NULL)
        return false;
    return run_objcopy("--only-keep-debug", "--preserve-dates", files.debug) &&
           run_objcopy("--strip-all", "--add-gnu-debuglink=program.debug", files.program);
}

START_TEST(objcopy_debug_file_is_attached)
{
    make_folder(0);
    const char *found;
    struct cairn_object_function whole;
    struct cairn_object_function function;
    cairn_object *self = open_file("/proc/self/exe");
    if (take_apart()) {
        object = open_file(files.program);
        if (cairn_object_find_debug_file(object, files.program, NULL, &found, &error) != CAIRN_OK)
            ck_abort_msg("%s", error.message);
        ck_assert_str_eq(found, files.debug);
        ck_assert_int_eq(cairn_object_attach_debug_file(object, found, NULL), CAIRN_OK);
        struct cairn_object_section text = {0};
        ck_assert_int_eq(next_named(self, ".text", &text), CAIRN_OK);
        for (size_t i = 0; i < text.contents.size; i += 7) {
            uint64_t address = text.address + i;
            enum cairn_status status = cairn_object_find_function(self, 0, address, &whole, NULL);
            ck_assert_int_eq(cairn_object_find_function(object, 0, address, &function, NULL),
                             status);
            if (status == CAIRN_OK) {
                ck_assert_str_eq(function.name, whole.name);
                ck_assert_uint_eq(function.entry, whole.entry);
            }
        }
    }
    cairn_object_destroy(self);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("debug files");
    TCase *tests = tcase_create("debug files");
    tcase_add_checked_fixture(tests, set_up, tear_down);
    tcase_set_timeout(tests, 60);
    tcase_add_loop_test(tests, build_id_is_found_in_sections, 0, 2);
    tcase_add_loop_test(tests, build_id_is_found_in_segments, 0, 2);
    tcase_add_loop_test(tests, damaged_notes_have_no_build_id, 0, 2);
    tcase_add_loop_test(tests, attached_file_adds_symbols_and_sections, 0, 2);
    tcase_add_loop_test(tests, own_symbol_table_is_kept, 0, 2);
    tcase_add_loop_test(tests, debug_file_alone_has_symbols_and_maps_and_no_code, 0, 2);
    tcase_add_loop_test(tests, other_builds_are_refused, 0, 2);
    tcase_add_test(tests, unsuitable_files_are_refused);
    tcase_add_loop_test(tests, debug_file_is_found_by_build_id, 0, 2);
    tcase_add_loop_test(tests, debug_file_is_found_by_its_link, 0, 2);
    tcase_add_loop_test(tests, file_is_not_its_own_debug_file, 0, 2);
    tcase_add_loop_test(tests, files_without_id_and_link_are_reported, 0, 2);
    tcase_add_loop_test(tests, each_allocation_may_fail, 0, 2);
    tcase_add_loop_test(tests, debug_files_are_opened_by_the_hook, 0, 2);
    tcase_add_test(tests, objcopy_debug_file_is_attached);
    suite_add_tcase(suite, tests);
    return sample_run(suite);
}
