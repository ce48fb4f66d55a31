/* SPDX-License-Identifier: MIT */
#include "object/line_table.h"

#include "object/elf.h"

#include <string.h>

/* A cursor in the section. After the first read past the end, `failed` is set, and reads give 0. */
struct cursor {
    const uint8_t *at;
    const uint8_t *end;
    enum cairn_byte_order order;
    bool failed;
};

static const uint8_t *take(struct cursor *cursor, uint64_t size)
{
    static const uint8_t zeros[sizeof(uint64_t)];
    if (cursor->failed || size > (uint64_t)(cursor->end - cursor->at)) {
        cursor->failed = true;
        cursor->at = cursor->end;
        return zeros;
    }
    const uint8_t *bytes = cursor->at;
    cursor->at += size;
    return bytes;
}

static uint8_t read_u8(struct cursor *cursor) { return *take(cursor, 1); }

static uint16_t read_u16(struct cursor *cursor)
{
    return cairn_load_u16(take(cursor, sizeof(uint16_t)), cursor->order);
}

static uint32_t read_u32(struct cursor *cursor)
{
    return cairn_load_u32(take(cursor, sizeof(uint32_t)), cursor->order);
}

static uint64_t read_u64(struct cursor *cursor)
{
    return cairn_load_u64(take(cursor, sizeof(uint64_t)), cursor->order);
}

static uint64_t read_uleb(struct cursor *cursor)
{
    uint64_t value = 0;
    for (unsigned shift = 0;; shift += 7) {
        uint8_t byte = read_u8(cursor);
        if (shift < 64)
            value |= (uint64_t)(byte & 0x7F) << shift;
        if ((byte & 0x80) == 0)
            return value;
    }
}

static int64_t read_sleb(struct cursor *cursor)
{
    uint64_t value = 0;
    for (unsigned shift = 0;;) {
        uint8_t byte = read_u8(cursor);
        if (shift < 64)
            value |= (uint64_t)(byte & 0x7F) << shift;
        shift += 7;
        if ((byte & 0x80) != 0)
            continue;
        if (shift < 64 && (byte & 0x40) != 0)
            value |= UINT64_MAX << shift;
        return (int64_t)value;
    }
}

static const char *read_string(struct cursor *cursor)
{
    const uint8_t *end = memchr(cursor->at, 0, (size_t)(cursor->end - cursor->at));
    if (cursor->failed || end == NULL) {
        cursor->failed = true;
        return "";
    }
    const char *text = (const char *)cursor->at;
    cursor->at = end + 1;
    return text;
}

/* ---- The header ---- */

struct file {
    const char *name;
    uint64_t folder;
};

/* The arrays have space for `capacity` elements. */
struct unit {
    struct cursor cursor; /* from the header's end on: the instructions */
    struct cairn_section line_strings;
    struct cairn_section strings;
    bool is_64;
    uint16_t version;
    uint8_t instruction_bytes_min;
    int8_t line_base;
    uint8_t line_range;
    uint8_t opcode_base;
    const uint8_t *operand_counts;
    const char **folders;
    uint64_t folder_count;
    struct file *files;
    uint64_t file_count;
    uint64_t capacity;
};

static uint64_t read_offset(struct unit *unit, struct cursor *cursor)
{
    return unit->is_64 ? read_u64(cursor) : read_u32(cursor);
}

static const char *string_at(struct cairn_section section, uint64_t offset)
{
    return offset < section.size ? (const char *)section.bytes + offset : "";
}

/* The forms that may be in a table of folders or files. */
enum form {
    FORM_BLOCK2 = 3,
    FORM_BLOCK4 = 4,
    FORM_DATA2 = 5,
    FORM_DATA4 = 6,
    FORM_DATA8 = 7,
    FORM_STRING = 8,
    FORM_BLOCK = 9,
    FORM_BLOCK1 = 10,
    FORM_DATA1 = 11,
    FORM_STRP = 14,
    FORM_UDATA = 15,
    FORM_DATA16 = 30,
    FORM_LINE_STRP = 31
};

/* Reads an attribute: a string or a number, whichever it is. */
static void read_form(struct unit *unit, struct cursor *cursor, uint64_t form, const char **text,
                      uint64_t *number)
{
    enum { DATA16_BYTES = 16 };
    switch (form) {
    case FORM_STRING:
        *text = read_string(cursor);
        break;
    case FORM_LINE_STRP:
        *text = string_at(unit->line_strings, read_offset(unit, cursor));
        break;
    case FORM_STRP:
        *text = string_at(unit->strings, read_offset(unit, cursor));
        break;
    case FORM_UDATA:
        *number = read_uleb(cursor);
        break;
    case FORM_DATA1:
        *number = read_u8(cursor);
        break;
    case FORM_DATA2:
        *number = read_u16(cursor);
        break;
    case FORM_DATA4:
        *number = read_u32(cursor);
        break;
    case FORM_DATA8:
        *number = read_u64(cursor);
        break;
    case FORM_DATA16:
        take(cursor, DATA16_BYTES);
        break;
    case FORM_BLOCK:
        take(cursor, read_uleb(cursor));
        break;
    case FORM_BLOCK1:
        take(cursor, read_u8(cursor));
        break;
    case FORM_BLOCK2:
        take(cursor, read_u16(cursor));
        break;
    case FORM_BLOCK4:
        take(cursor, read_u32(cursor));
        break;
    default:
        cursor->failed = true;
    }
}

/* Reads a table of version 5, of folders or of files. */
static void read_entries(struct unit *unit, struct cursor *cursor, bool is_files)
{
    enum { FORMATS_MAX = 255, CONTENT_PATH = 1, CONTENT_FOLDER = 2 };
    uint64_t contents[FORMATS_MAX];
    uint64_t forms[FORMATS_MAX];
    uint8_t format_count = read_u8(cursor);
    for (uint8_t i = 0; i < format_count; i++) {
        contents[i] = read_uleb(cursor);
        forms[i] = read_uleb(cursor);
    }
    uint64_t count = read_uleb(cursor);
    if (count > unit->capacity || (format_count == 0 && count > 0))
        cursor->failed = true;
    for (uint64_t i = 0; i < count && !cursor->failed; i++) {
        struct file file = {.name = ""};
        for (uint8_t k = 0; k < format_count; k++) {
            const char *text = "";
            uint64_t number = 0;
            read_form(unit, cursor, forms[k], &text, &number);
            if (contents[k] == CONTENT_PATH)
                file.name = text;
            else if (contents[k] == CONTENT_FOLDER)
                file.folder = number;
        }
        if (is_files)
            unit->files[unit->file_count++] = file;
        else
            unit->folders[unit->folder_count++] = file.name;
    }
}

/* Reads the tables of versions 2 to 4, in which folder 0 is that of the compilation, and files are
 * counted from 1. */
static void read_old_entries(struct unit *unit, struct cursor *cursor)
{
    const char *name;
    unit->folders[unit->folder_count++] = "";
    while (*(name = read_string(cursor)) != '\0' && unit->folder_count < unit->capacity)
        unit->folders[unit->folder_count++] = name;
    unit->files[unit->file_count++] = (struct file){.name = ""};
    while (*(name = read_string(cursor)) != '\0' && unit->file_count < unit->capacity) {
        uint64_t folder = read_uleb(cursor);
        read_uleb(cursor); /* time and size */
        read_uleb(cursor);
        unit->files[unit->file_count++] = (struct file){.name = name, .folder = folder};
    }
}

/* Reads the header of a unit, and moves the cursor to its instructions. */
static bool read_header(struct unit *unit)
{
    enum { OLDEST = 2, NEWEST = 5, HAS_OPERATIONS = 4 };
    struct cursor *cursor = &unit->cursor;
    unit->version = read_u16(cursor);
    if (unit->version < OLDEST || unit->version > NEWEST)
        return false;
    if (unit->version == NEWEST)
        take(cursor, 2); /* sizes of an address and of a segment selector */
    uint64_t header_bytes = read_offset(unit, cursor);
    if (header_bytes > (uint64_t)(cursor->end - cursor->at))
        return false;
    struct cursor header = *cursor;
    header.end = header.at + header_bytes;
    cursor->at = header.end;
    unit->instruction_bytes_min = read_u8(&header);
    if (unit->version >= HAS_OPERATIONS)
        read_u8(&header);
    read_u8(&header); /* whether rows are statements at first */
    unit->line_base = (int8_t)read_u8(&header);
    unit->line_range = read_u8(&header);
    unit->opcode_base = read_u8(&header);
    unit->operand_counts = take(&header, unit->opcode_base == 0 ? 0 : unit->opcode_base - 1U);
    if (header.failed || unit->opcode_base == 0 || unit->line_range == 0)
        return false;
    if (unit->version == NEWEST) {
        read_entries(unit, &header, false);
        read_entries(unit, &header, true);
    } else {
        read_old_entries(unit, &header);
    }
    return !header.failed;
}

/* ---- The instructions ---- */

struct machine {
    struct line_row row;
    uint64_t file;
    const struct unit *unit;
    line_visitor *visit;
    void *user;
};

static void reset(struct machine *machine)
{
    machine->row = (struct line_row){.line = 1};
    machine->file = 1;
}

static const char *folder_of(const struct unit *unit, uint64_t number)
{
    return number < unit->folder_count ? unit->folders[number] : "";
}

static void report(struct machine *machine, bool is_end)
{
    const struct unit *unit = machine->unit;
    const struct file *file = machine->file < unit->file_count ? &unit->files[machine->file] : NULL;
    machine->row.name = file == NULL ? "" : file->name;
    machine->row.folder = file == NULL || file->folder == 0 ? "" : folder_of(unit, file->folder);
    machine->row.compilation = folder_of(unit, 0);
    machine->row.is_end = is_end;
    machine->visit(&machine->row, machine->user);
    machine->row.discriminator = 0;
}

static void run_extended(struct machine *machine, struct cursor *cursor)
{
    enum { END_SEQUENCE = 1, SET_ADDRESS = 2, SET_DISCRIMINATOR = 4 };
    uint64_t size = read_uleb(cursor);
    const uint8_t *start = cursor->at;
    if (size == 0 || size > (uint64_t)(cursor->end - cursor->at))
        return;
    struct cursor operands = *cursor;
    operands.end = start + size;
    cursor->at = operands.end;
    uint8_t opcode = read_u8(&operands);
    if (opcode == END_SEQUENCE) {
        report(machine, true);
        reset(machine);
    } else if (opcode == SET_ADDRESS) {
        machine->row.address =
            size - 1 == sizeof(uint32_t) ? read_u32(&operands) : read_u64(&operands);
    } else if (opcode == SET_DISCRIMINATOR) {
        machine->row.discriminator = (uint32_t)read_uleb(&operands);
    }
}

static void advance(struct machine *machine, uint64_t count)
{
    machine->row.address += count * machine->unit->instruction_bytes_min;
}

static void run_special(struct machine *machine, uint8_t opcode)
{
    const struct unit *unit = machine->unit;
    unsigned adjusted = (unsigned)opcode - unit->opcode_base;
    advance(machine, adjusted / unit->line_range);
    machine->row.line += (uint32_t)((int)unit->line_base + (int)(adjusted % unit->line_range));
    report(machine, false);
}

static void run_standard(struct machine *machine, struct cursor *cursor, uint8_t opcode)
{
    enum {
        COPY = 1,
        ADVANCE_PC = 2,
        ADVANCE_LINE = 3,
        SET_FILE = 4,
        CONST_ADD_PC = 8,
        FIXED_ADVANCE_PC = 9,
        LAST_SPECIAL = 255
    };
    const struct unit *unit = machine->unit;
    switch (opcode) {
    case COPY:
        report(machine, false);
        break;
    case ADVANCE_PC:
        advance(machine, read_uleb(cursor));
        break;
    case ADVANCE_LINE:
        machine->row.line += (uint32_t)read_sleb(cursor);
        break;
    case SET_FILE:
        machine->file = read_uleb(cursor);
        break;
    case CONST_ADD_PC:
        advance(machine, (unsigned)(LAST_SPECIAL - unit->opcode_base) / unit->line_range);
        break;
    case FIXED_ADVANCE_PC:
        machine->row.address += read_u16(cursor);
        break;
    default:
        for (uint8_t i = 0; i < unit->operand_counts[opcode - 1]; i++)
            read_uleb(cursor);
    }
}

static void run(struct unit *unit, line_visitor *visit, void *user)
{
    struct machine machine = {.unit = unit, .visit = visit, .user = user};
    struct cursor *cursor = &unit->cursor;
    reset(&machine);
    while (cursor->at < cursor->end && !cursor->failed) {
        uint8_t opcode = read_u8(cursor);
        if (opcode >= unit->opcode_base)
            run_special(&machine, opcode);
        else if (opcode == 0)
            run_extended(&machine, cursor);
        else
            run_standard(&machine, cursor, opcode);
    }
}

/* ---- The section ---- */

static struct cairn_section find_section(const struct elf_object *object, const char *name)
{
    struct elf_section_view section;
    for (uint32_t i = 1; i < object->section_count; i++)
        if (elf_section(object, i, &section, NULL) == CAIRN_OK && section.bytes != NULL &&
            (section.flags & ELF_COMPRESSED) == 0 && strcmp(section.name, name) == 0)
            return (struct cairn_section){section.bytes, section.size, object->file.byte_order};
    return (struct cairn_section){.bytes = NULL};
}

/* Returns a section of strings, of which each must end: an empty one if the last one does not. */
static struct cairn_section whole_strings(struct cairn_section section)
{
    if (section.size > 0 && section.bytes[section.size - 1] != '\0')
        section.size = 0;
    return section;
}

/* Reads one unit; its arrays have an element for each byte of it, at most. Returns false after the
 * last one, and without memory. */
static bool visit_unit(struct cursor *cursor, struct unit *unit,
                       const struct cairn_allocator *allocator, line_visitor *visit, void *user)
{
    const uint32_t escape = UINT32_MAX;
    uint64_t size = read_u32(cursor);
    unit->is_64 = size == escape;
    if (unit->is_64)
        size = read_u64(cursor);
    const uint8_t *start = cursor->at;
    take(cursor, size);
    if (cursor->failed || size == 0)
        return false;
    unit->cursor = (struct cursor){.at = start, .end = start + size, .order = cursor->order};
    unit->capacity = size + 2;
    unit->folder_count = 0;
    unit->file_count = 0;
    unit->folders = memory_new(allocator, unit->capacity, sizeof *unit->folders);
    unit->files = memory_new(allocator, unit->capacity, sizeof *unit->files);
    bool has_memory = unit->folders != NULL && unit->files != NULL;
    if (has_memory && read_header(unit))
        run(unit, visit, user);
    memory_free(allocator, unit->folders, unit->capacity * sizeof *unit->folders);
    memory_free(allocator, unit->files, unit->capacity * sizeof *unit->files);
    return has_memory;
}

void line_table_read(const struct line_sections *sections, const struct cairn_allocator *allocator,
                     line_visitor *visit, void *user)
{
    const struct cairn_section *lines = &sections->lines;
    struct unit unit = {.line_strings = whole_strings(sections->line_strings),
                        .strings = whole_strings(sections->strings)};
    if (lines->size == 0)
        return;
    struct cursor cursor = {
        .at = lines->bytes, .end = lines->bytes + lines->size, .order = lines->byte_order};
    while (cursor.at < cursor.end && visit_unit(&cursor, &unit, allocator, visit, user))
        continue;
}

void line_table_visit(const uint8_t *object, size_t size, const struct cairn_allocator *allocator,
                      line_visitor *visit, void *user)
{
    struct elf_object elf;
    if (elf_open(object, size, &elf, NULL) != CAIRN_OK)
        return;
    const struct line_sections sections = {.lines = find_section(&elf, ".debug_line"),
                                           .line_strings = find_section(&elf, ".debug_line_str"),
                                           .strings = find_section(&elf, ".debug_str")};
    line_table_read(&sections, allocator, visit, user);
}
