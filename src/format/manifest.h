/*
 * format/manifest.h - the section `.cairn.manifest` of an object: what its loader must know and the
 * code does not contain.
 *
 * The section holds the fingerprint of the code (architecture, CPU features, version of LLVM), the
 * names and schemas of PC sections, and the declarations of records. So an object can be stored,
 * and loaded by a process without LLVM.
 *
 * A section is a sequence of units, one for each module that was linked into the object. A unit
 * begins with a header of MANIFEST_HEADER_BYTES, whose numbers are little-endian, and its size is a
 * multiple of MANIFEST_ALIGNMENT. After the header, numbers are ULEB128, and a string is its length
 * without the terminating zero byte, the bytes, and that zero byte. So a section has the same bytes
 * on all architectures. doc/architecture.md has the table of all fields.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef FORMAT_MANIFEST_H
#define FORMAT_MANIFEST_H

#include "base/adapter.h"

#include <cairn/allocator.h>
#include <cairn/architecture.h>
#include <cairn/declaration.h>
#include <cairn/pcsection.h>
#include <cairn/status.h>

#define MANIFEST_SECTION ".cairn.manifest"
#define MANIFEST_MAGIC "CAIRN-MF"

enum {
    MANIFEST_VERSION = 1,
    /* The magic bytes, and four numbers of 4 bytes: the version, the size of the unit, and the
     * numbers of its PC sections and declarations. */
    MANIFEST_HEADER_BYTES = 24,
    MANIFEST_ALIGNMENT = 8,
    /* Declarations share the name of a function only up to this length, so that their copies take
     * memory in proportion to the section. */
    MANIFEST_SHARED_NAME_MAX = 255
};

/* The CPU of units that do not say which features the code needs. */
#define MANIFEST_CPU_UNKNOWN "unknown"

/* What the code needs. The strings are not NULL. */
struct manifest_target {
    enum cairn_architecture architecture;
    uint32_t llvm_version; /* LLVM's major version; 0 if LLVM did not make the code */
    const char *triple;
    const char *cpu;      /* as the compiler was told, for messages; may be empty */
    const char *features; /* LLVM's names of features that the architecture's oldest CPU lacks,
                           * separated by commas */
};

struct manifest_pc_section {
    const char *name;
    bool is_prefix;                       /* whether it is about all sections that begin so */
    struct cairn_pcsection_schema schema; /* without a schema, `address_bytes` is 0 */
};

/* ---- Writing ---- */

struct manifest {
    struct manifest_target target;
    const struct manifest_pc_section *pc_sections;
    size_t pc_section_count;
    const cairn_declarations *declarations; /* may be NULL */
};

/* Writes one unit. The caller frees `*size` bytes at `*bytes` with memory_free. Errors: MEMORY,
 * RANGE (4 GiB or more). */
CAIRN_MUST_CHECK enum cairn_status manifest_write(const struct manifest *manifest,
                                                  const struct cairn_allocator *allocator,
                                                  uint8_t **bytes, size_t *size,
                                                  struct cairn_error *error);

/* ---- Reading ---- */

/*
 * Reads a section in order:
 *
 *     manifest_reader_init(&reader, bytes, size, allocator);
 *     while (reader.offset < reader.size) {
 *         manifest_read_unit(&reader, &target, error);
 *         while (reader.pc_sections_left > 0)
 *             manifest_read_pc_section(&reader, &pc_section, error);
 *         while (reader.declarations_left > 0)
 *             manifest_read_declaration(&reader, &declaration, error);
 *     }
 *     manifest_reader_release(&reader);
 *
 * The bytes are hostile. Strings that were read point into them; a declaration's types are valid
 * until the next one is read. Takes O(size) time and memory. Errors: TRUNCATED, VERSION, CORRUPT,
 * with the offset in the section; MEMORY. After an error, the reader can only be released.
 */
struct manifest_reader {
    const uint8_t *bytes;
    size_t size;
    size_t offset;   /* of what is read next */
    size_t unit_end; /* of the present unit; offset <= unit_end <= size */
    uint32_t pc_sections_left;
    uint32_t declarations_left;
    struct cairn_allocator allocator;
    struct cairn_type *types;
    size_t type_capacity;
    const char *function; /* of the last declaration that has one; NULL at the start of a unit */
};

void manifest_reader_init(struct manifest_reader *reader, const uint8_t *bytes, size_t size,
                          const struct cairn_allocator *allocator);
void manifest_reader_release(struct manifest_reader *reader);

/* Reads a unit's header and target. */
CAIRN_MUST_CHECK enum cairn_status manifest_read_unit(struct manifest_reader *reader,
                                                      struct manifest_target *target,
                                                      struct cairn_error *error);

CAIRN_MUST_CHECK enum cairn_status manifest_read_pc_section(struct manifest_reader *reader,
                                                            struct manifest_pc_section *pc_section,
                                                            struct cairn_error *error);

/* Reads a declaration; after the last one, also the end of the unit. An undeclared ID has a
 * declaration of kind CAIRN_RECORD_UNDECLARED. */
CAIRN_MUST_CHECK enum cairn_status manifest_read_declaration(struct manifest_reader *reader,
                                                             struct cairn_declaration *declaration,
                                                             struct cairn_error *error);

/* ---- The format, for manifest_write.c and manifest_read.c ---- */

enum manifest_schema_flag {
    MANIFEST_IS_PREFIX = 1,
    MANIFEST_HAS_SCHEMA = 2,
    MANIFEST_HAS_SIZE = 4,
    MANIFEST_IS_COMPRESSED = 8,
    MANIFEST_SCHEMA_FLAGS = 15
};

enum manifest_declaration_flag {
    MANIFEST_HAS_TARGET = 1,
    MANIFEST_HAS_RESULTS = 2, /* the results of the function are known */
    MANIFEST_EXTENDS_SIGN = 4,
    MANIFEST_HAS_FUNCTION = 8,
    MANIFEST_SAME_FUNCTION = 16, /* its name is that of the last declaration with a name */
    MANIFEST_DECLARATION_FLAGS = 31
};

/* The first byte of a type: its kind, and which numbers follow the bits. */
enum manifest_type_flag {
    MANIFEST_TYPE_KIND = 15,
    MANIFEST_HAS_ELEMENTS = 16,
    MANIFEST_HAS_ADDRESS_SPACE = 32,
    MANIFEST_TYPE_FLAGS = 63
};

#endif
