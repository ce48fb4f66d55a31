/* Reads and applies relocations. SPDX-License-Identifier: MIT */
#include "object/relocations.h"

#include "base/error.h"
#include "object/slots.h"
#include "object/symbols.h"

#include <string.h>

enum { WORD_BYTES = 4 };

/* A relocation, and everything that is known without addresses. */
struct entry {
    const struct object_image *image;
    const struct elf_section_view *table; /* the section that contains it */
    uint64_t index;
    const struct object_section *section; /* the section that it changes */
    struct elf_relocation relocation;
    const struct arch_relocation *type;
};

static struct object_reference *reference_of(const struct entry *entry)
{
    return &entry->image->references[entry->relocation.symbol];
}

static struct object_symbol *symbol_of(const struct object_link *link, const struct entry *entry)
{
    return &link->symbols[reference_of(entry)->symbol];
}

/* Sets the message "section 4 (.rela.text), entry 12: …; symbol name". */
static enum cairn_status say(const struct entry *entry, enum cairn_status status, const char *what,
                             struct cairn_error *error)
{
    struct elf_symbol symbol = {.name = ""};
    if (entry->relocation.symbol == 0 ||
        elf_symbol(&entry->image->elf, entry->relocation.symbol, &symbol, NULL) != CAIRN_OK)
        symbol.name = "";
    return error_set(error, status, entry->table->file_offset + entry->index * ELF_RELOCATION_BYTES,
                     "section %u (%.40s), entry %llu: %.150s%s%.60s", entry->table->number,
                     entry->table->name, (unsigned long long)entry->index, what,
                     *symbol.name == '\0' ? "" : "; symbol ", symbol.name);
}

/* ---- Reading ---- */

/* Called with each relocation of loaded sections. */
typedef enum cairn_status visitor(struct object_link *link, const struct entry *entry,
                                  struct cairn_error *error);

static enum cairn_status visit_table(struct object_link *link, const struct object_image *image,
                                     const struct elf_section_view *table, visitor *visit,
                                     struct cairn_error *error)
{
    uint64_t count;
    struct entry entry = {.image = image, .table = table, .section = &image->sections[table->info]};
    enum cairn_status status = elf_relocation_count(&image->elf, table, &count, error);
    for (; status == CAIRN_OK && entry.index < count; entry.index++) {
        status = elf_relocation(&image->elf, table, entry.index, &entry.relocation, error);
        if (status != CAIRN_OK)
            return status;
        entry.type = arch_find_relocation(link->relocations, entry.relocation.type);
        status = visit(link, &entry, error);
    }
    return status;
}

/* Visits the relocations of loaded sections: those of function descriptors, which branches read, if
 * `descriptors` is set, or all others. */
static enum cairn_status visit_all(struct object_link *link, const struct object_image *image,
                                   bool descriptors, visitor *visit, struct cairn_error *error)
{
    enum cairn_status status = CAIRN_OK;
    for (uint32_t i = 1; i < image->elf.section_count && status == CAIRN_OK; i++) {
        const struct elf_section_view *table = &image->sections[i].header;
        if (table->type != ELF_RELA && table->type != ELF_REL && table->type != ELF_CREL)
            continue;
        if (table->info == 0 || table->info >= image->elf.section_count)
            return error_set(error, CAIRN_ERROR_CORRUPT, table->file_offset,
                             "section %u (%.60s): relocations of section %u of %u sections", i,
                             table->name, table->info, image->elf.section_count);
        const struct object_section *target = &image->sections[table->info];
        if (target->kind != OBJECT_NOT_LOADED &&
            (strcmp(target->header.name, ".opd") == 0) == descriptors)
            status = visit_table(link, image, table, visit, error);
    }
    return status;
}

/* ---- Checking ---- */

static enum cairn_status check_type(const struct entry *entry, struct cairn_error *error)
{
    struct cairn_error text;
    if (entry->type == NULL)
        error_set(&text, CAIRN_ERROR_UNSUPPORTED, 0, "relocation type %u is not supported",
                  entry->relocation.type);
    else if (entry->type->target == ARCH_TARGET_REFUSED)
        error_set(&text, CAIRN_ERROR_UNSUPPORTED, 0, "%s: %s", entry->type->name,
                  entry->type->reason);
    else
        return CAIRN_OK;
    return say(entry, CAIRN_ERROR_UNSUPPORTED, text.message, error);
}

static enum cairn_status check_symbol(const struct entry *entry, struct cairn_error *error)
{
    struct elf_symbol symbol;
    struct cairn_error text;
    enum cairn_status status =
        elf_symbol(&entry->image->elf, entry->relocation.symbol, &symbol, error);
    if (status != CAIRN_OK)
        return status;
    const struct object_section *section = symbol.section < entry->image->elf.section_count
                                               ? &entry->image->sections[symbol.section]
                                               : NULL;
    if (symbol.type == ELF_TLS_SYMBOL)
        status = error_set(&text, CAIRN_ERROR_UNSUPPORTED, 0,
                           "%s: thread-local storage is not supported", entry->type->name);
    else if (symbol.type == ELF_IFUNC)
        status = error_set(&text, CAIRN_ERROR_UNSUPPORTED, 0,
                           "%s: functions that are chosen at run time (IFUNC) are not supported",
                           entry->type->name);
    else if (symbol.section == ELF_UNDEFINED && symbol.binding == ELF_LOCAL)
        status = error_set(&text, CAIRN_ERROR_CORRUPT, 0, "%s: a local symbol that is not defined",
                           entry->type->name);
    else if (symbol.section != ELF_UNDEFINED && section != NULL &&
             section->kind == OBJECT_NOT_LOADED)
        status = error_set(&text, CAIRN_ERROR_CORRUPT, 0,
                           "%s: a loaded section refers to section %u (%.40s), which is not loaded",
                           entry->type->name, symbol.section, section->header.name);
    return status == CAIRN_OK ? status : say(entry, status, text.message, error);
}

/* Checks that the changed bytes are in the section. */
static enum cairn_status check_place(const struct entry *entry, struct cairn_error *error)
{
    struct cairn_error text;
    uint64_t size = entry->section->header.size;
    uint64_t offset = entry->relocation.offset;
    if (offset <= size && entry->type->bytes <= size - offset)
        return CAIRN_OK;
    error_set(&text, CAIRN_ERROR_CORRUPT, 0,
              "%s at offset %llu of section %u, which has %llu bytes", entry->type->name,
              (unsigned long long)offset, entry->table->info, (unsigned long long)size);
    return say(entry, CAIRN_ERROR_CORRUPT, text.message, error);
}

static void note_needs(struct object_link *link, const struct entry *entry)
{
    struct object_symbol *symbol = symbol_of(link, entry);
    const struct arch_relocation *type = entry->type;
    reference_of(entry)->is_used = true;
    if (type->target == ARCH_TARGET_SLOT)
        symbol->needs |= OBJECT_NEEDS_SLOT;
    else if (type->target == ARCH_TARGET_BRANCH)
        symbol->needs |= OBJECT_NEEDS_BRANCH;
    else if (type->target == ARCH_TARGET_BRANCH_WITHOUT_TOC)
        symbol->needs |= OBJECT_NEEDS_BRANCH_NO_TOC;
    if (type->target == ARCH_TARGET_TABLE || type->origin == ARCH_ORIGIN_TABLE ||
        type->origin == ARCH_ORIGIN_TABLE_PAGE ||
        (symbol->name != NULL && object_is_table_name(symbol->name)))
        link->uses_table = true;
}

static enum cairn_status check(struct object_link *link, const struct entry *entry,
                               struct cairn_error *error)
{
    enum cairn_status status = check_type(entry, error);
    if (status == CAIRN_OK && entry->relocation.symbol != 0)
        status = check_symbol(entry, error);
    if (status == CAIRN_OK)
        status = check_place(entry, error);
    if (status == CAIRN_OK && entry->type->target != ARCH_TARGET_NONE)
        note_needs(link, entry);
    return status;
}

enum cairn_status object_check_relocations(struct object_link *link,
                                           const struct object_image *image,
                                           struct cairn_error *error)
{
    enum cairn_status status = visit_all(link, image, true, check, error);
    return status == CAIRN_OK ? visit_all(link, image, false, check, error) : status;
}

/* ---- Branches ---- */

/* Makes the no-op after a call reload the TOC pointer. */
static enum cairn_status reload_toc(const struct object_link *link, const struct entry *entry,
                                    uint8_t *bytes, struct cairn_error *error)
{
    enum { NOP = 0x60000000, BRANCH_LINKS = 1 };
    enum cairn_byte_order order = link->arch->byte_order;
    uint64_t left = entry->section->header.size - entry->relocation.offset;
    uint32_t reload = UINT32_C(0xE8410000) | (uint32_t)link->arch->toc_save_offset;
    if (left < 2 * (uint64_t)WORD_BYTES || (cairn_load_u32(bytes, order) & BRANCH_LINKS) == 0 ||
        (cairn_load_u32(bytes + WORD_BYTES, order) != NOP &&
         cairn_load_u32(bytes + WORD_BYTES, order) != reload))
        return say(entry, CAIRN_ERROR_UNSUPPORTED,
                   "a branch to another module, after which no no-op has space to reload the TOC "
                   "pointer",
                   error);
    for (unsigned byte = 0; byte < WORD_BYTES; byte++) {
        unsigned shift = order == CAIRN_LITTLE_ENDIAN ? byte : WORD_BYTES - 1 - byte;
        bytes[WORD_BYTES + byte] = (uint8_t)(reload >> 8 * shift);
    }
    return CAIRN_OK;
}

/* Sets the target to the code of a function that an object defines, or to a function in reach whose
 * code needs nothing from its caller. The symbol may be that of a section of descriptors; then the
 * addend tells which one. */
static void find_code(const struct object_link *link, const struct object_symbol *symbol,
                      const struct arch_relocation *type, struct arch_relocation_input *input)
{
    if (symbol->image == NULL || symbol->section >= symbol->image->elf.section_count)
        return;
    if (link->arch->architecture == CAIRN_ARCHITECTURE_PPC64_ELFV2 &&
        type->target == ARCH_TARGET_BRANCH)
        input->target += object_local_entry(symbol);
    const struct object_section *section = &symbol->image->sections[symbol->section];
    uint64_t descriptor = symbol->value + (uint64_t)input->addend;
    if (!link->arch->has_descriptors || strcmp(section->header.name, ".opd") != 0 ||
        section->header.size < OBJECT_SLOT_BYTES ||
        descriptor > section->header.size - OBJECT_SLOT_BYTES)
        return;
    input->target = cairn_load_u64(section->memory.bytes + descriptor, link->arch->byte_order);
    input->addend = 0;
}

/* Chooses between the code and the stub. */
static enum cairn_status find_branch_target(const struct object_link *link,
                                            const struct entry *entry,
                                            struct arch_relocation_input *input, uint8_t *bytes,
                                            struct cairn_error *error)
{
    const struct object_symbol *symbol = symbol_of(link, entry);
    bool needs_toc = link->arch->toc_save_offset != 0;
    bool has_toc = entry->type->target == ARCH_TARGET_BRANCH;
    find_code(link, symbol, entry->type, input);
    if (symbol->stub == 0 ||
        !object_may_need_stub(link, symbol,
                              has_toc ? OBJECT_NEEDS_BRANCH : OBJECT_NEEDS_BRANCH_NO_TOC))
        return CAIRN_OK;
    uint8_t unused[OBJECT_SLOT_BYTES] = {0};
    if (!needs_toc &&
        arch_relocate(entry->type, input, link->arch->byte_order, unused, NULL) == CAIRN_OK)
        return CAIRN_OK;
    input->target = link->stubs.address + (symbol->stub - 1) * (uint64_t)link->arch->veneer_bytes;
    if (!needs_toc)
        return CAIRN_OK;
    if (has_toc)
        return reload_toc(link, entry, bytes, error);
    input->target += WORD_BYTES; /* the first instruction saves the TOC pointer */
    return CAIRN_OK;
}

/* ---- Applying ---- */

/* Whether the value is relative to a weak symbol that is not there, which the architecture's ABI
 * takes for the place itself. */
static bool is_missing(const struct object_link *link, const struct entry *entry,
                       const struct object_symbol *symbol)
{
    return link->relocations->missing_is_next && symbol->name != NULL &&
           symbol->definition == OBJECT_UNDEFINED &&
           (entry->type->origin == ARCH_ORIGIN_PLACE || entry->type->origin == ARCH_ORIGIN_PAGE) &&
           entry->type->target != ARCH_TARGET_SLOT;
}

static enum cairn_status find_target(const struct object_link *link, const struct entry *entry,
                                     struct arch_relocation_input *input, uint8_t *bytes,
                                     struct cairn_error *error)
{
    const struct object_symbol *symbol = symbol_of(link, entry);
    bool branches = entry->type->target == ARCH_TARGET_BRANCH ||
                    entry->type->target == ARCH_TARGET_BRANCH_WITHOUT_TOC;
    input->target = symbol->address;
    if (is_missing(link, entry, symbol)) {
        input->target = input->place + (branches ? WORD_BYTES : 0);
        return CAIRN_OK;
    }
    if (branches)
        return find_branch_target(link, entry, input, bytes, error);
    if (entry->type->target == ARCH_TARGET_SLOT)
        input->target = link->slots.address + (uint64_t)(symbol->slot - 1) * OBJECT_SLOT_BYTES;
    else if (entry->type->target == ARCH_TARGET_TABLE)
        input->target = link->table;
    else if (entry->type->target == ARCH_TARGET_SIZE)
        input->target = symbol->size;
    return CAIRN_OK;
}

static enum cairn_status apply(struct object_link *link, const struct entry *entry,
                               struct cairn_error *error)
{
    const struct object_memory *memory = &entry->section->memory;
    if (entry->type->target == ARCH_TARGET_NONE)
        return CAIRN_OK;
    uint8_t *bytes = memory->bytes + entry->relocation.offset;
    struct arch_relocation_input input = {.place = memory->address + entry->relocation.offset,
                                          .addend = entry->relocation.addend,
                                          .table = link->table};
    struct cairn_error text = {0};
    struct cairn_error advice;
    enum cairn_status status = find_target(link, entry, &input, bytes, error);
    if (status != CAIRN_OK ||
        arch_relocate(entry->type, &input, link->arch->byte_order, bytes, &text) == CAIRN_OK)
        return status;
    error_set(&advice, text.status, 0, "%s; compile it with -fPIC or for the large code model",
              text.message);
    return say(entry, text.status, advice.message, error);
}

enum cairn_status object_relocate(struct object_link *link, const struct object_image *image,
                                  bool descriptors, struct cairn_error *error)
{
    return visit_all(link, image, descriptors, apply, error);
}
