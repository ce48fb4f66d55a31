/*
 * Fuzzes ELF objects. Opening an object twice gives the same sections, functions and code. Memory
 * use stays below the limit. Lookups of functions by address and by name, and of code by address,
 * give the same results as a linear search through all symbols and sections.
 *
 * Input: flags (raw or made), a memory limit, then a file, or what it is made from
 * (fuzz/make_object.h).
 *
 * SPDX-License-Identifier: MIT
 */
#include "file/object.h"
#include "fuzz/make_object.h"

#include <cairn/bbmap.h>
#include <cairn/object.h>
#include <cairn/pcsection.h>
#include <cairn/stackmap.h>

enum { SECTIONS_MAX = 64 };

/* Whether memory may be refused. */
static bool has_limit;

/* ---- Comparing two opened objects ---- */

static bool is_same_text(const char *left, const char *right)
{
    return left == NULL || right == NULL ? left == right : strcmp(left, right) == 0;
}

static bool is_same_function(const struct cairn_object_function *left,
                             const struct cairn_object_function *right)
{
    return left->entry == right->entry && left->section == right->section &&
           left->size == right->size && is_same_text(left->name, right->name);
}

static void check_word(cairn_object *const objects[2],
                       const struct cairn_object_section sections[2], size_t offset)
{
    const struct cairn_section *contents = &sections[0].contents;
    struct cairn_object_function found = cairn_object_function(objects[0], &sections[0], offset);
    struct cairn_object_function same = cairn_object_function(objects[1], &sections[1], offset);
    require(is_same_function(&found, &same));
    require(cairn_object_target_section(objects[0], &sections[0], offset) ==
            cairn_object_target_section(objects[1], &sections[1], offset));
    if (offset > contents->size || contents->size - offset < sizeof(uint64_t))
        require(found.entry == 0 && found.name == NULL && found.size == 0);
    else if (cairn_object_header(objects[0]).architecture != CAIRN_ARCHITECTURE_PPC64_ELFV1)
        require(found.entry == cairn_load_u64(contents->bytes + offset, contents->byte_order));
}

/* Reads the section as each kind of section. Decoders must not read past its end. */
static void decode(const struct cairn_object_section *section)
{
    static const struct cairn_pcsection_schema schema = {.address_bytes = 4};
    const struct cairn_section *contents = &section->contents;
    struct cairn_pcsection_entry entry;
    struct cairn_bbmap_function function;
    size_t offset = 0;
    struct cairn_stackmap map;
    while (offset < contents->size)
        if (cairn_stackmap_read(contents, &offset, &map, NULL) != CAIRN_OK)
            break;
    offset = 0;
    for (size_t at = 0; at < contents->size;)
        if (cairn_pcsection_read(contents, section->address, &schema, &at, &entry, NULL) !=
            CAIRN_OK)
            break;
    while (offset < contents->size)
        if (cairn_bbmap_read(contents, CAIRN_BBMAP_VERSIONED, &offset, &function, NULL) != CAIRN_OK)
            break;
}

static void compare_section(cairn_object *const objects[2],
                            const struct cairn_object_section sections[2])
{
    const struct cairn_section *contents = &sections[0].contents;
    require(sections[0].index == sections[1].index && sections[0].type == sections[1].type);
    require(sections[0].address == sections[1].address);
    require(sections[0].linked_section == sections[1].linked_section);
    require(contents->size == sections[1].contents.size);
    require(contents->size == 0 ||
            memcmp(contents->bytes, sections[1].contents.bytes, contents->size) == 0);
    struct cairn_object_section_header header;
    require(cairn_object_section_header(objects[0], sections[0].index, &header));
    require(strcmp(header.name, sections[0].name) == 0 && header.type == sections[0].type);
    for (size_t offset = 0; offset <= contents->size && offset < 256; offset++)
        check_word(objects, sections, offset);
    decode(&sections[0]);
}

/* Compares sections by name, so that a section that is refused does not hide later ones. */
static void compare_sections(cairn_object *const objects[2])
{
    struct cairn_object_section_header header;
    for (uint32_t index = 1;
         index < SECTIONS_MAX && cairn_object_section_header(objects[0], index, &header); index++) {
        struct cairn_object_section sections[2] = {{.index = index - 1}, {.index = index - 1}};
        const struct cairn_object_filter filter = {.name = header.name, .type = header.type};
        struct cairn_error errors[2];
        enum cairn_status status =
            cairn_object_next_section(objects[0], &filter, &sections[0], &errors[0]);
        require(cairn_object_next_section(objects[1], &filter, &sections[1], &errors[1]) == status);
        if (status == CAIRN_OK)
            compare_section(objects, sections);
        else
            require(strcmp(errors[0].message, errors[1].message) == 0);
    }
}

/* ---- Linear search ---- */

static bool is_relocatable(const struct made_object *made) { return made->file.type == ET_REL; }

/* Whether the symbol is in code. */
static bool is_sized(const struct made_symbol *symbol)
{
    unsigned type = ELF64_ST_TYPE(symbol->info);
    return (type == STT_FUNC || type == STT_GNU_IFUNC) && symbol->size > 0;
}

static bool is_wanted(const struct made_object *made, const struct made_symbol *symbol)
{
    unsigned type = ELF64_ST_TYPE(symbol->info);
    bool is_reserved = symbol->section >= SHN_LORESERVE;
    if (symbol->section == SHN_UNDEF || (is_reserved && is_relocatable(made)))
        return false;
    if (type == STT_FUNC || type == STT_GNU_IFUNC)
        return true;
    return type == STT_NOTYPE && !is_reserved && symbol->name[0] != '$' &&
           strncmp(symbol->name, ".L", 2) != 0;
}

static bool is_counted_from(const struct made_object *made, const struct made_symbol *symbol,
                            uint32_t section)
{
    return !is_relocatable(made) || symbol->section == section;
}

/* Finds the last code section that begins at or before the address, if it covers the address. */
static const struct elf_section *search_code(const struct made_object *made, uint32_t section,
                                             uint64_t address)
{
    const struct elf_section *found = NULL;
    for (uint32_t i = 1; i <= made->file.section_count; i++) {
        const struct elf_section *candidate = &made->file.sections[i];
        if ((candidate->flags & SHF_EXECINSTR) == 0 || candidate->size == 0)
            continue;
        if (is_relocatable(made) ? i == section
                                 : candidate->address <= address &&
                                       (found == NULL || candidate->address >= found->address))
            found = candidate;
    }
    return found != NULL && address - found->address < found->size ? found : NULL;
}

static uint64_t end_of(uint64_t begin, uint64_t size)
{
    return size > UINT64_MAX - begin ? UINT64_MAX : begin + size;
}

/* Finds the function with a size that covers the address and begins last. */
static const struct made_symbol *search_sized(const struct made_object *made, uint32_t section,
                                              uint64_t address)
{
    const struct made_symbol *found = NULL;
    for (uint32_t i = 0; i < made->symbol_count; i++) {
        const struct made_symbol *symbol = &made->symbols[i];
        if (is_wanted(made, symbol) && is_sized(symbol) && is_counted_from(made, symbol, section) &&
            symbol->value <= address && address < end_of(symbol->value, symbol->size) &&
            search_code(made, section, symbol->value) != NULL &&
            (found == NULL || symbol->value > found->value))
            found = symbol;
    }
    return found;
}

static unsigned rank(const struct made_symbol *symbol)
{
    unsigned type = ELF64_ST_TYPE(symbol->info);
    unsigned binding = ELF64_ST_BIND(symbol->info);
    unsigned by_binding = binding == STB_GLOBAL ? 0 : binding == STB_WEAK ? 1 : 2;
    return by_binding + (type == STT_NOTYPE ? 4 : 0);
}

/* Finds the best symbol at the last symbol address that is not above `address`, and the next symbol
 * address. */
static const struct made_symbol *search_last(const struct made_object *made, uint32_t section,
                                             uint64_t address, uint64_t *next)
{
    const struct made_symbol *found = NULL;
    *next = UINT64_MAX;
    for (uint32_t i = 0; i < made->symbol_count; i++) {
        const struct made_symbol *symbol = &made->symbols[i];
        if (!is_wanted(made, symbol) || !is_counted_from(made, symbol, section))
            continue;
        if (symbol->value > address)
            *next = symbol->value < *next ? symbol->value : *next;
        else if (found == NULL || symbol->value > found->value ||
                 (symbol->value == found->value && rank(symbol) < rank(found)))
            found = symbol;
    }
    return found;
}

/* Finds a symbol without a size, or a label, if no function with a size covers the address or the
 * symbol's beginning. */
static const struct made_symbol *search_unsized(const struct made_object *made, uint32_t section,
                                                uint64_t address)
{
    uint64_t next;
    const struct made_symbol *found = search_last(made, section, address, &next);
    if (found == NULL || search_sized(made, section, found->value) != NULL)
        return NULL;
    const struct elf_section *code = search_code(made, section, found->value);
    if (code == NULL)
        return NULL;
    uint64_t end =
        found->size > 0 ? end_of(found->value, found->size) : end_of(code->address, code->size);
    return address < (next < end ? next : end) ? found : NULL;
}

static void check_address(cairn_object *object, const struct made_object *made, uint32_t section,
                          uint64_t address)
{
    struct cairn_object_function function;
    enum cairn_status status =
        cairn_object_find_function(object, section, address, &function, NULL);
    const struct made_symbol *expected = search_sized(made, section, address);
    if (expected == NULL)
        expected = search_unsized(made, section, address);
    require((has_limit && status == CAIRN_ERROR_MEMORY) ||
            status == (expected == NULL ? CAIRN_ERROR_NOT_FOUND : CAIRN_OK));
    if (status == CAIRN_OK) {
        require(function.entry == expected->value && function.name != NULL);
        require(function.section == (is_relocatable(made) ? section : 0));
        require((function.size > 0) == (expected->size > 0));
    }
}

static void check_code(cairn_object *object, const struct made_object *made, uint32_t section,
                       uint64_t address)
{
    struct cairn_object_code code;
    enum cairn_status status = cairn_object_code(object, section, address, &code, NULL);
    const struct elf_section *expected = search_code(made, section, address);
    (void)cairn_object_relocated_symbol(object, section, address, 8);
    if (expected == NULL) {
        require(status == CAIRN_ERROR_NOT_FOUND || (has_limit && status == CAIRN_ERROR_MEMORY));
    } else if (expected->type == SHT_NOBITS) {
        require(status != CAIRN_OK);
    } else if (status == CAIRN_OK) {
        uint64_t offset = address - expected->address;
        require(code.address == address && code.size == expected->size - offset);
        require(memcmp(code.bytes, (const uint8_t *)expected->bytes + offset, code.size) == 0);
    }
}

static void check_name(cairn_object *object, const struct made_object *made, const char *name)
{
    struct cairn_object_function function;
    const struct made_symbol *first = NULL;
    enum cairn_status status = cairn_object_find_name(object, name, &function, NULL);
    for (uint32_t i = 0; i < made->symbol_count; i++) {
        const struct made_symbol *symbol = &made->symbols[i];
        if (!is_wanted(made, symbol) || strcmp(symbol->name, name) != 0)
            continue;
        if (first == NULL || (is_relocatable(made) && symbol->section < first->section) ||
            ((!is_relocatable(made) || symbol->section == first->section) &&
             symbol->value < first->value))
            first = symbol;
    }
    require((has_limit && status == CAIRN_ERROR_MEMORY) ||
            status == (first == NULL ? CAIRN_ERROR_NOT_FOUND : CAIRN_OK));
    if (status == CAIRN_OK)
        require(function.entry == first->value && strcmp(function.name, name) == 0);
}

static void search(cairn_object *object, const struct made_object *made)
{
    for (uint32_t i = 0; i < made->symbol_count; i++) {
        const struct made_symbol *symbol = &made->symbols[i];
        const uint64_t places[] = {symbol->value, symbol->value - 1, symbol->value + 1,
                                   symbol->value + symbol->size - 1, symbol->value + symbol->size};
        for (size_t k = 0; k < sizeof places / sizeof *places; k++) {
            check_address(object, made, symbol->section, places[k]);
            check_code(object, made, symbol->section, places[k]);
        }
        check_name(object, made, symbol->name);
    }
    check_name(object, made, "not there");
}

/* With descriptors, functions have other addresses, and with tables of wide section numbers,
 * symbols have other sections. */
static bool is_searchable(const struct made_object *made)
{
    if (made->is_changed || made->file.machine == EM_PPC64)
        return false;
    for (uint32_t i = 1; i <= made->file.section_count; i++)
        if (made->file.sections[i].type == SHT_SYMTAB_SHNDX)
            return false;
    return true;
}

/* ---- The target ---- */

static void look_everywhere(cairn_object *const objects[2])
{
    for (uint64_t address = 0; address < 16; address++)
        for (uint32_t section = 0; section < 4; section++) {
            struct cairn_object_function functions[2];
            struct cairn_object_code codes[2];
            enum cairn_status status = cairn_object_find_function(
                objects[0], section, address * 0x400, &functions[0], NULL);
            require(cairn_object_find_function(objects[1], section, address * 0x400, &functions[1],
                                               NULL) == status);
            require(status != CAIRN_OK || is_same_function(&functions[0], &functions[1]));
            status = cairn_object_code(objects[0], section, address * 0x400, &codes[0], NULL);
            require(cairn_object_code(objects[1], section, address * 0x400, &codes[1], NULL) ==
                    status);
            require(status != CAIRN_OK || codes[0].size == codes[1].size);
            require(is_same_text(object_symbol(objects[0], section, address * 0x400),
                                 object_symbol(objects[1], section, address * 0x400)));
        }
}

static void check_object(const uint8_t *bytes, size_t size, uint64_t limit,
                         const struct made_object *made)
{
    struct fuzz_memory memory[2] = {{0}, {0}};
    cairn_object *objects[2] = {NULL, NULL};
    enum cairn_status statuses[2];
    has_limit = limit != 0;
    for (int i = 0; i < 2; i++) {
        const struct cairn_allocator allocator = fuzz_memory_allocator(&memory[i]);
        const struct cairn_object_options options = {.allocator = &allocator,
                                                     .memory_limit = limit};
        statuses[i] = cairn_object_open_memory(bytes, size, &options, &objects[i], NULL);
    }
    require(statuses[0] == statuses[1]);
    require(made == NULL || made->is_changed || statuses[0] == CAIRN_OK ||
            statuses[0] == CAIRN_ERROR_MEMORY);
    if (statuses[0] == CAIRN_OK) {
        compare_sections(objects);
        look_everywhere(objects);
        if (made != NULL && is_searchable(made))
            search(objects[1], made);
    }
    cairn_object_destroy(objects[0]);
    cairn_object_destroy(objects[1]);
    for (int i = 0; i < 2; i++) {
        require(memory[i].used == 0);
        require(limit == 0 || memory[i].most <= limit + memory[i].first);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct made_object made;
    struct fuzz_input input = {data, size};
    uint8_t flags = fuzz_u8(&input);
    uint64_t limit = (uint64_t)fuzz_u8(&input) << 8;
    if ((flags & 1) == 0) {
        check_object(input.at, input.left, limit, NULL);
        return 0;
    }
    make_object(&input, &made);
    void *copy = fuzz_copy(made.bytes, made.size);
    check_object(copy, made.size, limit, &made);
    free(copy);
    return 0;
}
