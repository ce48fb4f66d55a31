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

#include <inttypes.h>
#include <string.h>

enum { FIRST_VERSION = 1, LAST_VERSION = 2, NARROW = 4, WIDE = 8 };

/* Indexes of a covered function's constants. */
enum { FEATURES, STACK_ARGUMENTS, ALL_CONSTANTS };

/* ---- Names ---- */

const char *cairn_sanmd_feature_name(uint32_t feature)
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

bool cairn_sanmd_parse_name(const char *section_name, struct cairn_sanmd_format *format)
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

static enum cairn_status check(const struct cairn_section *section, uint32_t version, size_t offset,
                               struct cairn_error *error)
{
    const uint32_t flags = version & ~(uint32_t)CAIRN_SANMD_VERSION_MASK;
    if (offset >= section->size)
        return error_set(error, CAIRN_ERROR_ARGUMENT, offset,
                         "there is no byte %zu in a section of %zu bytes", offset, section->size);
    if (number_of(version) < FIRST_VERSION || number_of(version) > LAST_VERSION ||
        (flags & ~(uint32_t)CAIRN_SANMD_WIDE_ADDRESSES) != 0)
        return error_set(error, CAIRN_ERROR_VERSION, offset,
                         "the metadata has version %" PRIu32 " with flags 0x%" PRIX32
                         ", and Cairn knows 1 and 2 with the flag 0x1 for wide addresses",
                         number_of(version), version >> 16);
    return CAIRN_OK;
}

/* ---- Covered functions ---- */

static enum cairn_status read_entry(const struct cairn_section *section, uint64_t section_address,
                                    uint32_t version, size_t *offset,
                                    struct cairn_pcsection_entry *entry, struct cairn_error *error)
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

enum cairn_status cairn_sanmd_read_covered(const struct cairn_section *section,
                                           uint64_t section_address, uint32_t version,
                                           size_t *offset, struct cairn_sanmd_covered *covered,
                                           struct cairn_error *error)
{
    struct cairn_pcsection_entry entry = {.constants = {0}};
    enum cairn_status status = check(section, version, *offset, error);
    if (status == CAIRN_OK)
        status = read_entry(section, section_address, version, offset, &entry, error);
    if (status != CAIRN_OK)
        return status;
    *covered = (struct cairn_sanmd_covered){.offset = entry.offset,
                                            .address = entry.address,
                                            .size = (uint32_t)entry.size,
                                            .features = (uint32_t)entry.constants[FEATURES],
                                            .stack_argument_bytes =
                                                (uint32_t)entry.constants[STACK_ARGUMENTS]};
    return CAIRN_OK;
}

/* ---- Atomic accesses ---- */

enum cairn_status cairn_sanmd_read_atomic(const struct cairn_section *section,
                                          uint64_t section_address, uint32_t version,
                                          size_t *offset, struct cairn_sanmd_atomic *atomic,
                                          struct cairn_error *error)
{
    enum cairn_status status = check(section, version, *offset, error);
    if (status != CAIRN_OK)
        return status;
    uint8_t bytes = address_bytes(version);
    uint64_t address;
    if (!pcsection_read_address(section, section_address, bytes, *offset, &address))
        return error_set(error, CAIRN_ERROR_TRUNCATED, *offset,
                         "the atomic access at byte %zu: its address (%d bytes) in version %" PRIu32
                         " goes beyond the section's end",
                         *offset, bytes, number_of(version));
    *atomic = (struct cairn_sanmd_atomic){.offset = *offset, .address = address};
    *offset += bytes;
    return CAIRN_OK;
}

/* ---- Finding the width of addresses ---- */

/* Reads the address of an entry of either kind. */
static bool read_address(const struct cairn_section *section, uint64_t section_address,
                         enum cairn_sanmd_kind kind, uint32_t version, size_t *offset,
                         uint64_t *address)
{
    if (kind == CAIRN_SANMD_COVERED) {
        struct cairn_sanmd_covered covered;
        enum cairn_status status =
            cairn_sanmd_read_covered(section, section_address, version, offset, &covered, NULL);
        *address = status == CAIRN_OK ? covered.address : 0;
        return status == CAIRN_OK;
    }
    struct cairn_sanmd_atomic atomic;
    enum cairn_status status =
        cairn_sanmd_read_atomic(section, section_address, version, offset, &atomic, NULL);
    *address = status == CAIRN_OK ? atomic.address : 0;
    return status == CAIRN_OK;
}

/* Reads entries as if their addresses were wide, and checks that the upper half of each distance is
 * 0 or -1. If the addresses are in fact narrow, the upper half is another number: a distance, or a
 * function's size. It could be 0 or -1 only for a distance to the entry itself or for a size of 0.
 * After a size of 0, one of the following distances would be read as a size or as features. */
bool cairn_sanmd_has_wide_addresses(const struct cairn_section *section, uint64_t section_address,
                                    enum cairn_sanmd_kind kind, uint32_t version)
{
    const unsigned looked_at = 4;
    if ((version & CAIRN_SANMD_WIDE_ADDRESSES) != 0)
        return true;
    size_t offset = 0;
    for (unsigned i = 0; i < looked_at && offset < section->size; i++) {
        uint64_t place = section_address + offset;
        uint64_t address;
        if (!read_address(section, section_address, kind, version | CAIRN_SANMD_WIDE_ADDRESSES,
                          &offset, &address))
            return false;
        uint64_t upper_half = (address - place) >> 32;
        if (upper_half != 0 && upper_half != UINT32_MAX)
            return false;
    }
    return section->size > 0;
}
