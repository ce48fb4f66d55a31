/* SPDX-License-Identifier: MIT */
#include "tools/site/listing.h"

#include "file/object.h"

#include "tools/site/preview.h"
#include "tools/site/text.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Number of instructions that are shown of a record whose number of bytes is unknown, and the
 * indentation of texts. */
enum { INSTRUCTIONS_SHOWN = 4, TEXT_INDENTATION = 6 };

struct listing {
    cairn_object *object;
    const cairn_declarations *declarations;
    uint32_t byte_count;
    enum cairn_architecture architecture;
    struct disassembler *disassembler;
    bool is_managed; /* whether sites of such code can be patched */
    struct preview preview;
    /* The section of the site that is being written. */
    uint32_t section;
    const char *target_name; /* name of the target of the site's call, or NULL */
};

/* What is shown for a record. */
enum shown {
    SHOWN_NO_SITE, /* nothing: no bytes are reserved */
    SHOWN_NO_CODE, /* nothing: the file has no code there; the reason is in the error of the preview
                    */
    SHOWN_SITE,    /* a site that is declared, or that has the given number of bytes */
    SHOWN_PATCHPOINT, /* a site that may be a patch point */
    SHOWN_CODE /* code that is not a patch point; the reason is in the error of the preview */
};

/* ---- Creation ---- */

struct listing *listing_create(cairn_object *object, const char *path,
                               const cairn_declarations *declarations, uint32_t byte_count)
{
    struct cairn_error error;
    struct listing *listing = calloc(1, sizeof *listing);
    if (listing == NULL) {
        complain("no memory");
        return NULL;
    }
    listing->object = object;
    listing->declarations = declarations;
    listing->byte_count = byte_count;
    listing->architecture = cairn_object_header(object).architecture;
    listing->is_managed =
        preview_manages(listing->architecture, cairn_object_header(object).byte_order, NULL);
    if (disassembler_create(listing->architecture, cairn_object_header(object).byte_order,
                            &listing->disassembler, &error) == CAIRN_OK)
        return listing;
    complain("%s: %s", path, error.message);
    free(listing);
    return NULL;
}

void listing_destroy(struct listing *listing)
{
    if (listing == NULL)
        return;
    preview_release(&listing->preview);
    disassembler_destroy(listing->disassembler);
    free(listing);
}

const struct cairn_declaration *listing_declaration(const struct listing *listing, uint64_t id)
{
    if (listing == NULL || listing->declarations == NULL)
        return NULL;
    return cairn_declarations_find(listing->declarations, id);
}

/* ---- Examining a record ---- */

static size_t least(uint64_t a, uint64_t b) { return (size_t)(a < b ? a : b); }

static bool find_code(struct listing *listing, const struct listed_record *record, uint64_t offset,
                      struct preview_code *code)
{
    struct cairn_object_code found;
    const struct cairn_object_function *function = &record->function;
    listing->section = function->section;
    if (cairn_object_code(listing->object, function->section, function->entry + offset, &found,
                          &listing->preview.error) != CAIRN_OK)
        return false;
    *code = (struct preview_code){
        .architecture = listing->architecture,
        .byte_order = cairn_object_header(listing->object).byte_order,
        .bytes = found.bytes,
        .size = found.size,
        .limit = found.size,
        .address = found.address,
        .is_linked = !cairn_object_header(listing->object).is_relocatable,
        .disassembler = listing->disassembler,
    };
    if (record->next_offset > offset)
        code->limit = least(code->limit, record->next_offset - offset);
    if (function->size > offset)
        code->limit = least(code->limit, function->size - offset);
    return true;
}

/* Examines a record without a declaration. If it is not a patch point, the first instructions are
 * shown. Invalid instructions count as a line of bytes each. */
static enum shown look_at_code(struct listing *listing, const struct preview_code *code)
{
    struct preview *preview = &listing->preview;
    uint32_t size = preview_find_patchpoint(code, &preview->error);
    if (size > 0)
        return preview_site(preview, code, CAIRN_RECORD_PATCHPOINT, size) ? SHOWN_PATCHPOINT
                                                                          : SHOWN_NO_CODE;
    for (unsigned i = 0; i < INSTRUCTIONS_SHOWN && size < code->limit; i++) {
        struct instruction instruction;
        code_next(listing->disassembler, code_columns(listing->architecture), code->bytes + size,
                  code->limit - size, code->address + size, &instruction);
        size += (uint32_t)instruction.length;
    }
    preview->site = (struct cairn_site_description){
        .state = CAIRN_SITE_UNMANAGED,
        .address = code->address,
        .byte_count = size,
        .original_bytes = code->bytes,
        .reason = preview->error.message,
    };
    return SHOWN_CODE;
}

static enum shown look_at(struct listing *listing, const struct listed_record *record)
{
    struct preview *preview = &listing->preview;
    const struct cairn_declaration *declaration = listing_declaration(listing, record->id);
    enum cairn_record_kind kind = declaration == NULL ? CAIRN_RECORD_UNDECLARED : declaration->kind;
    uint32_t byte_count = declaration == NULL ? listing->byte_count : declaration->byte_count;
    struct preview_code code;
    preview->site = (struct cairn_site_description){.state = CAIRN_SITE_UNMANAGED,
                                                    .reason = preview->error.message};
    if (declaration != NULL && kind != CAIRN_RECORD_PATCHPOINT && byte_count == 0)
        return SHOWN_NO_SITE;
    /* A statepoint's record is after the bytes of its site. */
    uint64_t offset = record->code_offset - (kind == CAIRN_RECORD_STATEPOINT ? byte_count : 0ull);
    if (!find_code(listing, record, offset, &code))
        return SHOWN_NO_CODE;
    if (declaration == NULL && byte_count == 0)
        return look_at_code(listing, &code);
    snprintf(preview->error.message, sizeof preview->error.message, "no memory");
    if (!preview_site(preview, &code, kind, byte_count))
        return SHOWN_NO_CODE;
    return declaration == NULL ? SHOWN_PATCHPOINT : SHOWN_SITE;
}

/* ---- Names ---- */

/* Finds the name that an instruction refers to. Relocations apply only to the code in the file. */
static const char *find_name(void *user, enum code_form form, uint64_t address,
                             const struct instruction *instruction)
{
    const struct listing *listing = user;
    const char *name = NULL;
    if (form == CODE_ARMED && instruction->has_target)
        return listing->target_name;
    if (form == CODE_ORIGINAL)
        name = cairn_object_relocated_symbol(listing->object, listing->section, address,
                                             instruction->length);
    if (name == NULL && instruction->has_target)
        name = object_symbol(listing->object, listing->section, instruction->target);
    return name;
}

/* Finds the target of LLVM's call. If the site has a relocation, the target is its symbol, and the
 * address in the code has no meaning. Otherwise it is the symbol at the address. */
static void find_target(struct listing *listing)
{
    struct cairn_site_description *site = &listing->preview.site;
    listing->target_name = NULL;
    if (site->state != CAIRN_SITE_CALL)
        return;
    listing->target_name = cairn_object_relocated_symbol(listing->object, listing->section,
                                                         site->address, site->byte_count);
    if (listing->target_name != NULL)
        site->target = 0;
    else if (!cairn_object_header(listing->object).is_relocatable)
        listing->target_name = object_symbol(listing->object, 0, site->target);
}

/* ---- Text ---- */

void write_listed_text(struct listing *listing, const struct listed_record *record,
                       struct output *output)
{
    const struct preview *preview = &listing->preview;
    const struct cairn_site_description *site = &preview->site;
    const struct code_writer writer = {
        .output = output,
        .indentation = TEXT_INDENTATION,
        .columns = code_columns(listing->architecture),
        .disassembler = listing->disassembler,
        .find_name = find_name,
        .user = listing,
    };
    enum shown shown = look_at(listing, record);
    find_target(listing);
    switch (shown) {
    case SHOWN_NO_SITE:
        output_spaces(output, TEXT_INDENTATION);
        output_text(output, "no site: no bytes are reserved here\n");
        break;
    case SHOWN_NO_CODE:
        write_refusal(&writer, "its code cannot be shown: ", preview->error.message);
        break;
    case SHOWN_SITE:
    case SHOWN_PATCHPOINT:
        write_site_summary(&writer, shown == SHOWN_SITE ? "" : "as a patch point: ", site,
                           listing->target_name);
        write_site_code(&writer, site,
                        preview->lacks_call ? "armed, with a no-op in the call's place" : "armed",
                        site->live ? "armed: the same" : "not armed");
        break;
    case SHOWN_CODE:
        write_refusal(&writer, listing->is_managed ? "not a patch point: " : "",
                      preview->error.message);
        write_code(&writer, "code", CODE_ORIGINAL, site->original_bytes, site->byte_count,
                   site->address);
        break;
    }
}

/* ---- JSON ---- */

static void write_code_json(struct listing *listing, const char *key, enum code_form form,
                            const uint8_t *bytes, struct json *json)
{
    const struct cairn_site_description *site = &listing->preview.site;
    unsigned columns = code_columns(listing->architecture);
    struct instruction instruction;
    json_begin_array(json, key);
    for (size_t offset = 0; bytes != NULL && offset < site->byte_count;
         offset += instruction.length) {
        char text[2 * 16 + 1] = "";
        uint64_t address = site->address + offset;
        code_next(listing->disassembler, columns, bytes + offset, site->byte_count - offset,
                  address, &instruction);
        for (size_t i = 0; i < instruction.length && i < 16; i++)
            snprintf(text + 2 * i, 3, "%02x", bytes[offset + i]);
        json_begin_object(json, NULL);
        json_fields(json, "address %ju bytes %s text %s symbol %s", address, text,
                    instruction.text[0] == '\0' ? NULL : instruction.text,
                    find_name(listing, form, address, &instruction));
        json_end_object(json);
    }
    json_end_array(json);
}

void write_listed_json(struct listing *listing, const struct listed_record *record,
                       struct json *json)
{
    const struct cairn_site_description *site = &listing->preview.site;
    enum shown shown = look_at(listing, record);
    find_target(listing);
    json_begin_object(json, NULL);
    json_fields(json, "address %ju", record->function.entry + record->code_offset);
    json_optional(json, "size", shown == SHOWN_PATCHPOINT || shown == SHOWN_SITE, site->byte_count);
    json_fields(json, "state %s", cairn_site_state_name(site->state));
    json_optional(json, "target",
                  site->state == CAIRN_SITE_CALL &&
                      (site->target != 0 || listing->target_name == NULL),
                  site->target);
    json_fields(json, "symbol %s reason %s", listing->target_name,
                site->live ? NULL : site->reason);
    write_code_json(listing, "instructions", CODE_ORIGINAL, site->original_bytes, json);
    write_code_json(listing, "armed", CODE_ARMED, site->live ? site->bytes : NULL, json);
    json_end_object(json);
}
