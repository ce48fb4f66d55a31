/*
 * Reads the metadata of clang's -fexperimental-sanitize-metadata.
 *
 * An entry is one of a PC section, and the version determines its schema. However, the features of
 * a function determine whether its entry ends with the size of the stack arguments.
 *
 * SPDX-License-Identifier: MIT
 */
#include <cairn/sanmd.h>

#include "base/error.h"
#include "format/pcsection.h"
#include "format/sanmd.h"

#include <inttypes.h>
#include <string.h>

enum { FIRST_VERSION = 1, LAST_VERSION = 2, NARROW = 4, WIDE = 8 };

/* Indexes of a covered function's constants. */
enum { FEATURES, STACK_ARGUMENTS, ALL_CONSTANTS };

/* ---- Names ---- */

const char *sanmd_feature_name(uint32_t feature)
{
    switch (feature) {
    case CAIRN_SANMD_FEATURE_ATOMICS:
        return "atomics";
    case CAIRN_SANMD_FEATURE_USE_AFTER_RETURN:
        return "use-after-return";
    case CAIRN_SANMD_FEATURE_STACK_ARGUMENTS:
        return "stack arguments";
    default:
        return NULL;
    }
}

/* Parses a decimal number that fits in 32 bits, with nothing after it. */
static bool parse_version(const char *text, uint32_t *version)
{
    uint64_t number = 0;
    for (const char *at = text; *at != '\0'; at++) {
        if (*at < '0' || *at > '9')
            return false;
        number = 10 * number + (uint64_t)(*at - '0');
        if (number > UINT32_MAX)
            return false;
    }
    *version = (uint32_t)number;
    return true;
}

bool cairn_sanmd_parse_name(const char *section_name, const struct cairn_section *linked,
                            uint64_t section_address, struct cairn_sanmd_format *format)
{
    static const char *const names[] = {
        [CAIRN_SANMD_COVERED] = "sanmd_covered",
        [CAIRN_SANMD_ATOMICS] = "sanmd_atomics",
    };
    for (unsigned kind = CAIRN_SANMD_COVERED; kind <= CAIRN_SANMD_ATOMICS; kind++) {
        size_t length = strlen(names[kind]);
        uint32_t version;
        if (strncmp(section_name, names[kind], length) != 0 ||
            !parse_version(section_name + length, &version))
            continue;
        bool has_suffix = section_name[length] != '\0';
        *format = (struct cairn_sanmd_format){.kind = (enum cairn_sanmd_kind)kind,
                                              .version = has_suffix ? version : FIRST_VERSION};
        if (linked != NULL && sanmd_has_wide_addresses(linked, section_address, *format))
            format->version |= CAIRN_SANMD_WIDE_ADDRESSES;
        return true;
    }
    return false;
}

/* ---- Versions ---- */

static uint32_t number_of(uint32_t version) { return version & CAIRN_SANMD_VERSION_MASK; }

static uint8_t address_bytes(uint32_t version)
{
    return (version & CAIRN_SANMD_WIDE_ADDRESSES) != 0 ? WIDE : NARROW;
}

/* ---- Covered functions ---- */

static enum cairn_status read_covered(const struct cairn_section *section, uint64_t section_address,
                                      uint32_t version, size_t *offset,
                                      struct cairn_pcsection_entry *entry,
                                      struct cairn_error *error)
{
    const uint32_t number = number_of(version);
    const uint32_t first_features =
        CAIRN_SANMD_FEATURE_ATOMICS | CAIRN_SANMD_FEATURE_USE_AFTER_RETURN;
    const uint32_t known_features =
        number == 1 ? first_features : first_features | CAIRN_SANMD_FEATURE_STACK_ARGUMENTS;
    const uint32_t has_stack_arguments =
        number == 1 ? CAIRN_SANMD_FEATURE_USE_AFTER_RETURN : CAIRN_SANMD_FEATURE_STACK_ARGUMENTS;
    /* The features have the greatest possible width, so that unknown features get an error message
     * of their own. */
    struct cairn_pcsection_schema schema = {
        .address_bytes = address_bytes(version),
        .has_size = true,
        .is_compressed = number > 1,
        .constant_count = FEATURES + 1,
        .constant_bytes = {[FEATURES] = number > 1 ? 8 : 4, [STACK_ARGUMENTS] = 4}};
    struct cairn_error found;
    size_t next = *offset;
    if (cairn_pcsection_read(section, section_address, &schema, &next, entry, &found) != CAIRN_OK)
        return error_set(error, found.status, found.offset,
                         "the covered function at byte %zu: its address (%d bytes), size and "
                         "features (%s) in version %" PRIu32 " %s",
                         *offset, schema.address_bytes, number == 1 ? "4 bytes each" : "ULEB128",
                         number,
                         found.status == CAIRN_ERROR_TRUNCATED ? "go beyond the section's end"
                                                               : "have a number that is too large");
    const uint64_t features = entry->constants[FEATURES];
    if ((features & ~(uint64_t)known_features) != 0)
        return error_set(error, CAIRN_ERROR_CORRUPT, *offset,
                         "the covered function 0x%" PRIX64
                         " at byte %zu: its features are 0x%" PRIX64 ", and version %" PRIu32
                         " has none but 0x%" PRIX32,
                         entry->address, *offset, features, number, known_features);
    if ((features & has_stack_arguments) != 0) {
        schema.constant_count = ALL_CONSTANTS;
        next = *offset;
        if (cairn_pcsection_read(section, section_address, &schema, &next, entry, &found) !=
            CAIRN_OK)
            return error_set(
                error, found.status, found.offset,
                "the covered function 0x%" PRIX64 " at byte %zu: its features are 0x%" PRIX64
                ", after which version %" PRIu32 " has the size of its stack arguments, which %s",
                entry->address, *offset, features, number,
                found.status == CAIRN_ERROR_TRUNCATED ? "goes beyond the section's end"
                                                      : "is too large");
    }
    *offset = next;
    return CAIRN_OK;
}

/* ---- Entries of both kinds ---- */

enum cairn_status cairn_sanmd_read(const struct cairn_section *section, uint64_t section_address,
                                   struct cairn_sanmd_format format, size_t *offset,
                                   struct cairn_sanmd_entry *entry, struct cairn_error *error)
{
    uint32_t version = format.version;
    if (*offset >= section->size)
        return error_set(error, CAIRN_ERROR_ARGUMENT, *offset,
                         "offset %zu is out of range: the section has %zu bytes", *offset,
                         section->size);
    const uint32_t flags = version & ~(uint32_t)CAIRN_SANMD_VERSION_MASK;
    if (number_of(version) < FIRST_VERSION || number_of(version) > LAST_VERSION ||
        (flags & ~(uint32_t)CAIRN_SANMD_WIDE_ADDRESSES) != 0)
        return error_set(error, CAIRN_ERROR_VERSION, *offset,
                         "the metadata has version %" PRIu32 " with flags 0x%" PRIX32
                         ", and Cairn knows 1 and 2 with the flag 0x1 for wide addresses",
                         number_of(version), version >> 16);
    if (format.kind == CAIRN_SANMD_ATOMICS) {
        uint8_t bytes = address_bytes(version);
        uint64_t address;
        if (!pcsection_read_address(section, section_address, bytes, *offset, &address))
            return error_set(error, CAIRN_ERROR_TRUNCATED, *offset,
                             "the atomic access at byte %zu: its address (%d bytes) in version "
                             "%" PRIu32 " goes beyond the section's end",
                             *offset, bytes, number_of(version));
        *entry = (struct cairn_sanmd_entry){.offset = *offset, .address = address};
        *offset += bytes;
        return CAIRN_OK;
    }
    struct cairn_pcsection_entry read = {.constants = {0}};
    enum cairn_status status =
        read_covered(section, section_address, version, offset, &read, error);
    if (status != CAIRN_OK)
        return status;
    *entry = (struct cairn_sanmd_entry){
        .offset = read.offset,
        .address = read.address,
        .size = (uint32_t)read.size,
        .features = (uint32_t)read.constants[FEATURES],
        .stack_argument_bytes = (uint32_t)read.constants[STACK_ARGUMENTS],
    };
    return CAIRN_OK;
}

/* Reads entries as if their addresses were wide, and checks that the upper half of each distance is
 * 0 or -1. If the addresses are in fact narrow, the upper half is another number: a distance, or a
 * function's size. It could be 0 or -1 only for a distance to the entry itself or for a size of 0.
 * After a size of 0, one of the following distances would be read as a size or as features. */
bool sanmd_has_wide_addresses(const struct cairn_section *section, uint64_t section_address,
                              struct cairn_sanmd_format format)
{
    const unsigned looked_at = 4;
    if ((format.version & CAIRN_SANMD_WIDE_ADDRESSES) != 0)
        return true;
    format.version |= CAIRN_SANMD_WIDE_ADDRESSES;
    size_t offset = 0;
    for (unsigned i = 0; i < looked_at && offset < section->size; i++) {
        struct cairn_sanmd_entry entry;
        if (cairn_sanmd_read(section, section_address, format, &offset, &entry, NULL) != CAIRN_OK)
            return false;
        uint64_t upper_half = (entry.address - (section_address + entry.offset)) >> 32;
        if (upper_half != 0 && upper_half != UINT32_MAX)
            return false;
    }
    return section->size > 0;
}
