/*
 * Live values: converts between values and the locations of a record, with types from its
 * declaration.
 *
 * Source: LLVM, "Stack maps and patch points in LLVM", section Stack Map Format. Which locations a
 * patch point's record has: llvm/lib/CodeGen/StackMaps.cpp, recordPatchPoint.
 *
 * SPDX-License-Identifier: MIT
 */
#include "base/error.h"
#include "base/type.h"
#include "frame/frame.h"
#include "record/declarations.h"
#include "record/record_values.h"
#include "value/representation.h"

#include <cairn/statepoint.h>
#include <string.h>

enum { TYPE_NAME_BYTES = 64, BITS_IN_BYTE = 8 };

/* ---- Locations of live values ---- */

/* Does the same as frame_find_live_locations, if there is a declaration, for a record with `*end`
 * locations. */
static inline enum cairn_status find_live_locations(struct cairn_record record,
                                                    const struct cairn_declaration *declaration,
                                                    uint32_t *first, uint32_t *end,
                                                    struct cairn_error *error)
{
    *first = 0;
    if (declaration->kind == CAIRN_RECORD_STATEPOINT) {
        struct cairn_statepoint statepoint;
        enum cairn_status status = cairn_record_statepoint(record, &statepoint, error);
        if (status == CAIRN_OK) {
            *first = statepoint.first_deopt;
            *end = statepoint.first_deopt + statepoint.deopt_count;
        }
        return status;
    }
    *first = declaration_first_live_value(declaration);
    return CAIRN_OK;
}

enum cairn_status frame_find_live_locations(struct cairn_record record,
                                            const struct cairn_declaration *declaration,
                                            uint32_t *first, uint32_t *end,
                                            struct cairn_error *error)
{
    *first = 0;
    *end = cairn_record_location_count(record);
    if (declaration == NULL)
        return CAIRN_OK;
    return find_live_locations(record, declaration, first, end, error);
}

uint32_t cairn_record_live_value_count(struct cairn_record record)
{
    const struct cairn_declaration *declaration = cairn_record_declaration(record);
    struct cairn_statepoint statepoint;
    if (declaration == NULL)
        return 0;
    if (declaration->kind != CAIRN_RECORD_STATEPOINT)
        return declaration->live_value_count;
    bool is_read = cairn_record_statepoint(record, &statepoint, NULL) == CAIRN_OK;
    return is_read ? statepoint.deopt_count : 0;
}

/* A value to be read or written. */
struct live {
    struct cairn_location location;
    struct cairn_type type;
};

/* Consecutive live values of a record. */
struct range {
    struct record_values values;
    uint32_t first_location;
    const struct cairn_type *types;
};

static struct live live_at(const struct range *range, uint32_t index)
{
    return (struct live){record_values_location(&range->values, range->first_location + index),
                         range->types[index]};
}

/* Finds `count` live values (1 or more) from index `first` on. */
static inline enum cairn_status find_live_values(struct cairn_record record, uint32_t first,
                                                 uint32_t count, struct range *range,
                                                 struct cairn_error *error)
{
    const struct cairn_declaration *declaration = cairn_record_declaration(record);
    if (declaration == NULL)
        return error_set(error, CAIRN_ERROR_NOT_FOUND, cairn_record_address(record),
                         "record %llu at 0x%llx has no declaration, so its values have no types",
                         (unsigned long long)cairn_record_id(record),
                         (unsigned long long)cairn_record_address(record));
    range->values = record_values_of(record);
    uint32_t end = record_values_location_count(&range->values);
    enum cairn_status status =
        find_live_locations(record, declaration, &range->first_location, &end, error);
    if (status != CAIRN_OK)
        return status;
    uint32_t recorded = end - range->first_location;
    uint32_t known =
        recorded < declaration->live_value_count ? recorded : declaration->live_value_count;
    if (first >= known || count > known - first) {
        uint32_t missing = first < known ? known : first;
        return error_set(error, CAIRN_ERROR_RANGE, missing,
                         "live value %u is out of range: record %llu at 0x%llx has %u live values",
                         missing, (unsigned long long)cairn_record_id(record),
                         (unsigned long long)cairn_record_address(record), recorded);
    }
    range->first_location += first;
    range->types = declaration->types + declaration->argument_count + first;
    return CAIRN_OK;
}

/* ---- Places of locations in a frame ---- */

static enum cairn_status say_unfit(const struct live *live, size_t size, struct cairn_error *error)
{
    static const char *const kinds[] = {
        [CAIRN_LOCATION_REGISTER] = "a register",
        [CAIRN_LOCATION_DIRECT] = "an address in the frame",
        [CAIRN_LOCATION_INDIRECT] = "memory",
        [CAIRN_LOCATION_CONSTANT] = "a constant",
        [CAIRN_LOCATION_CONSTANT_INDEX] = "a large constant",
    };
    char name[TYPE_NAME_BYTES];
    cairn_type_format(live->type, name, sizeof name);
    return error_set(error, CAIRN_ERROR_UNSUPPORTED, 0,
                     "a value of type %s is not represented by %s of %zu bytes", name,
                     kinds[live->location.kind], size);
}

static enum cairn_status find_address(const struct cairn_frame *frame,
                                      struct cairn_location location, uint64_t *address,
                                      struct cairn_error *error)
{
    uint64_t base;
    enum cairn_status status = frame_base(frame, location.dwarf, &base, error);
    if (status == CAIRN_OK)
        *address = base + (uint64_t)(int64_t)location.offset;
    return status;
}

/* ---- Values in registers and in memory ---- */

/* The part of a register or of memory that holds a value, and the bytes below it. */
struct part {
    struct frame_register place; /* of memory, only its storage */
    void *memory;                /* NULL for a register */
    size_t size;                 /* of the value's part */
    size_t below;
    unsigned char bytes[CAIRN_VALUE_BYTES_MAX];
    /* For a flag: the field that contains it, and its mask. */
    uint32_t flags;
    uint32_t mask;
};

/* Converts a vector between its proper order and the order in which LLVM's code spills it. The two
 * differ only on machines where it spills the second half first. */
static void copy_spilled(void *to, const void *from, size_t size)
{
    enum { HALF = 8 };
    bool is_swapped = arch_host()->swaps_spilled_vectors && size == 2 * (size_t)HALF;
    if (!is_swapped) {
        memcpy(to, from, size);
        return;
    }
    memcpy(to, (const unsigned char *)from + HALF, HALF);
    memcpy((unsigned char *)to + HALF, from, HALF);
}

/* Loads the part of a register and the bytes below it. If the part does not begin at the lowest bit
 * (AH, for example), the record has the register and the number of bits below the part. A flag is
 * recorded by its field of PPC64's condition register and its index in the field. */
static enum cairn_status load_register_part(const struct cairn_frame *frame,
                                            const struct live *live, struct part *part,
                                            struct cairn_error *error)
{
    enum { FLAGS_IN_FIELD = 4 };
    struct storage *storage = &part->place.storage;
    uint32_t offset = (uint32_t)live->location.offset;
    enum cairn_status status =
        frame_find_register(frame, live->location.dwarf, &part->place, error);
    if (status != CAIRN_OK)
        return status;
    /* A vector has the recorded size: the machine's register may be larger. */
    bool is_vector = storage->form == STORAGE_VECTOR || live->type.element_count > 0;
    if (is_vector && live->location.size < storage->size)
        storage->size = live->location.size;
    part->memory = NULL;
    part->below = (size_t)live->location.offset / BITS_IN_BYTE;
    part->size = storage_part(live->type, *storage);
    if (part->size == 0 || part->below + part->size > storage->size ||
        (part->below != 0 && storage->form != STORAGE_GENERAL))
        return say_unfit(live, storage->size, error);
    if (part->place.first_flag == 0)
        return frame_load(frame, &part->place, part->bytes, part->below + part->size, error);
    if (live->type.kind != CAIRN_TYPE_INTEGER || live->type.bits != 1 || offset >= FLAGS_IN_FIELD)
        return say_unfit(live, storage->size, error);
    part->mask = UINT32_C(1) << (part->place.first_flag - offset);
    return frame_load(frame, &part->place, &part->flags, sizeof part->flags, error);
}

static enum cairn_status load_part(const struct cairn_frame *frame, const struct live *live,
                                   struct part *part, struct cairn_error *error)
{
    uint64_t address;
    if (live->location.kind == CAIRN_LOCATION_REGISTER)
        return load_register_part(frame, live, part, error);
    part->place = (struct frame_register){.storage = {STORAGE_MEMORY, live->location.size}};
    part->below = 0;
    part->size = storage_part(live->type, part->place.storage);
    if (part->size == 0)
        return say_unfit(live, live->location.size, error);
    enum cairn_status status = find_address(frame, live->location, &address, error);
    if (status != CAIRN_OK)
        return status;
    part->memory = (void *)(uintptr_t)address;
    copy_spilled(part->bytes, part->memory, part->size);
    return CAIRN_OK;
}

/* Returns the value's bytes of a loaded part. In big-endian order, the lowest bytes come last. */
static unsigned char *value_bytes(struct part *part)
{
    bool is_little = CAIRN_BYTE_ORDER_NATIVE == CAIRN_LITTLE_ENDIAN;
    return part->bytes + (is_little ? part->below : 0);
}

static enum cairn_status read_live(const struct cairn_frame *frame, const struct live *live,
                                   struct cairn_value *value, struct cairn_error *error)
{
    uint64_t constant = live->location.constant;
    enum cairn_status status = CAIRN_OK;
    struct part part;
    switch (live->location.kind) {
    case CAIRN_LOCATION_REGISTER:
    case CAIRN_LOCATION_INDIRECT:
        status = load_part(frame, live, &part, error);
        if (status != CAIRN_OK)
            return status;
        if (part.place.first_flag != 0)
            *value = cairn_value_of_integer(1, (part.flags & part.mask) != 0);
        else
            storage_read(live->type, part.place.storage, value_bytes(&part), value);
        return CAIRN_OK;
    case CAIRN_LOCATION_DIRECT:
        status = find_address(frame, live->location, &constant, error);
        if (status != CAIRN_OK)
            return status;
        if (live->type.bits != sizeof constant * BITS_IN_BYTE)
            return say_unfit(live, sizeof constant, error);
        break;
    default:
        break;
    }
    bool is_read = storage_read_constant(live->type, constant, value);
    return is_read ? CAIRN_OK : say_unfit(live, sizeof constant, error);
}

/* Writes the value's part. The bytes below it, and other flags, stay unchanged. */
static enum cairn_status write_live(struct cairn_frame *frame, const struct live *live,
                                    const struct cairn_value *value, struct cairn_error *error)
{
    struct part part;
    if (live->location.kind != CAIRN_LOCATION_REGISTER &&
        live->location.kind != CAIRN_LOCATION_INDIRECT)
        return error_set(error, CAIRN_ERROR_UNSUPPORTED, frame->pc,
                         "the value is %s in the code: it cannot be changed",
                         live->location.kind == CAIRN_LOCATION_DIRECT ? "an address in the frame"
                                                                      : "a constant");
    enum cairn_status status = load_part(frame, live, &part, error);
    if (status != CAIRN_OK)
        return status;
    if (part.place.first_flag != 0) {
        part.flags &= ~part.mask;
        part.flags |= value_unsigned(value) != 0 ? part.mask : 0;
        return frame_store(frame, &part.place, &part.flags, sizeof part.flags, error);
    }
    storage_write(value, part.place.storage, value_bytes(&part));
    if (part.memory == NULL)
        return frame_store(frame, &part.place, part.bytes, part.below + part.size, error);
    copy_spilled(part.memory, part.bytes, part.size);
    return CAIRN_OK;
}

/* Reads the value with this index in the range. */
static __attribute__((noinline)) enum cairn_status read_any(const struct cairn_frame *frame,
                                                            const struct range *range,
                                                            uint32_t index,
                                                            struct cairn_value *value,
                                                            struct cairn_error *error)
{
    const struct live live = live_at(range, index);
    return read_live(frame, &live, value, error);
}

/*
 * ---- The fast path for reading: scalars of 8 or 4 bytes with compact locations ----
 *
 * Most values are of this kind. The fast path has the same results as read_any, without the checks
 * that such values do not need. All other values are read by read_any.
 */

enum {
    COMPACT_SIZE_4 = 2,
    COMPACT_SIZE_8 = 3,
    COMPACT_SIZE_MASK = 7,
    COMPACT_DWARF_MASK = 0xFF,
    COMPACT_FOUND_BY = COMPACT_DWARF_MASK << COMPACT_REGISTER_SHIFT
};

/* Copies of the fields needed for each value, so that writing values cannot change them. */
struct reader {
    const struct cairn_frame *frame;
    const uint32_t *words; /* locations */
    const struct cairn_type *types;
    const uint64_t *constants;
    /* The base register of the last value in memory, as in the location's word. */
    uint32_t found_by;
    uint64_t base; /* value of that register */
};

static inline uint16_t compact_dwarf(uint32_t word)
{
    return (uint16_t)(word >> COMPACT_REGISTER_SHIFT & COMPACT_DWARF_MASK);
}

static inline uint32_t compact_size(uint32_t word)
{
    return word >> COMPACT_SIZE_SHIFT & COMPACT_SIZE_MASK;
}

static inline __attribute__((always_inline)) bool load_spilled(struct reader *reader, uint32_t word,
                                                               const struct cairn_type *type,
                                                               uint64_t *bits)
{
    uint64_t base;
    if ((word & COMPACT_FOUND_BY) != reader->found_by) {
        if (frame_base(reader->frame, compact_dwarf(word), &base, NULL) != CAIRN_OK)
            return false;
        reader->base = base;
        reader->found_by = word & COMPACT_FOUND_BY;
    }
    uint64_t address = reader->base + (uint64_t)((int32_t)word >> COMPACT_OFFSET_SHIFT);
    if (compact_size(word) == COMPACT_SIZE_8) {
        memcpy(bits, (const void *)(uintptr_t)address, sizeof *bits);
        return true;
    }
    if (compact_size(word) != COMPACT_SIZE_4 || type->bits != 32)
        return false;
    uint32_t four;
    memcpy(&four, (const void *)(uintptr_t)address, sizeof four);
    *bits = four;
    return true;
}

/* Reads a scalar of 8 or 4 bytes. Loaded bits above the value's are unspecified. */
static inline __attribute__((always_inline)) bool read_plain(struct reader *reader, uint32_t index,
                                                             struct cairn_value *value)
{
    _Static_assert(CAIRN_TYPE_INTEGER == 1, "the scalars are neighbours");
    _Static_assert(CAIRN_TYPE_DOUBLE == 6, "the scalars are neighbours");
    const struct cairn_type *type = &reader->types[index];
    uint32_t word = reader->words[index];
    unsigned kind = word & COMPACT_KIND_MASK;
    int32_t constant = (int32_t)word >> COMPACT_CONSTANT_SHIFT;
    uint64_t bits = (uint64_t)constant;
    uint32_t unused = sizeof bits * BITS_IN_BYTE - type->bits;
    bool is_scalar = (unsigned)type->kind - CAIRN_TYPE_INTEGER < CAIRN_TYPE_DOUBLE;
    bool has_8_or_4_bytes = ((type->bits - 32) & ~UINT32_C(32)) == 0;
    if (!is_scalar || !has_8_or_4_bytes || type->element_count != 0 ||
        kind == CAIRN_LOCATION_DIRECT)
        return false;
    if (kind == CAIRN_LOCATION_INDIRECT) {
        if (!load_spilled(reader, word, type, &bits))
            return false;
    } else if (kind == CAIRN_LOCATION_REGISTER) {
        const void *place = frame_scalar(reader->frame, compact_dwarf(word));
        bool has_other_form = arch_host_layout.floats_are_doubles && type->kind == CAIRN_TYPE_FLOAT;
        /* The register must be at least as large as the value. */
        if (place == NULL || word >> COMPACT_OFFSET_SHIFT != 0 || has_other_form ||
            compact_size(word) < (type->bits == 32 ? COMPACT_SIZE_4 : COMPACT_SIZE_8))
            return false;
        memcpy(&bits, place, sizeof bits);
    } else if (kind == CAIRN_LOCATION_CONSTANT_INDEX) {
        bits = reader->constants[constant];
    }
    bits =
        CAIRN_BYTE_ORDER_NATIVE == CAIRN_BIG_ENDIAN ? bits << unused : bits & UINT64_MAX >> unused;
    memcpy(&value->type, type, sizeof *type);
    value->size = type->bits / BITS_IN_BYTE;
    memset(value->bytes, 0, sizeof value->bytes);
    memcpy(value->bytes, &bits, sizeof bits);
    return true;
}

static inline __attribute__((always_inline)) enum cairn_status read_range(
    const struct cairn_frame *frame, const struct range *range, uint32_t count,
    struct cairn_value *values, struct cairn_error *error)
{
    struct reader reader = {
        .frame = frame,
        .words = range->values.locations + range->first_location,
        .types = range->types,
        .constants = range->values.table->constants,
        .found_by = (uint32_t)arch_host_layout.stack_pointer << COMPACT_REGISTER_SHIFT,
        .base = frame->sp,
    };
    bool is_compact = range->values.form == VALUES_COMPACT;
    for (uint32_t i = 0; i < count; i++) {
        if (is_compact && read_plain(&reader, i, &values[i]))
            continue;
        enum cairn_status status = read_any(frame, range, i, &values[i], error);
        if (status != CAIRN_OK)
            return status;
    }
    return CAIRN_OK;
}

/* ---- Reading ---- */

enum cairn_status cairn_frame_value(const struct cairn_frame *frame, struct cairn_record record,
                                    uint32_t index, struct cairn_value *value,
                                    struct cairn_error *error)
{
    struct range range;
    enum cairn_status status = find_live_values(record, index, 1, &range, error);
    return status == CAIRN_OK ? read_range(frame, &range, 1, value, error) : status;
}

enum cairn_status cairn_frame_values(const struct cairn_frame *frame, struct cairn_record record,
                                     uint32_t first, uint32_t count, struct cairn_value *values,
                                     struct cairn_error *error)
{
    struct range range;
    if (count == 0)
        return CAIRN_OK;
    enum cairn_status status = find_live_values(record, first, count, &range, error);
    if (status != CAIRN_OK)
        return status;
    status = read_range(frame, &range, count, values, error);
    if (status != CAIRN_OK)
        memset(values, 0, count * sizeof *values);
    return status;
}

enum cairn_status cairn_frame_at_location(const struct cairn_frame *frame,
                                          struct cairn_location location, struct cairn_type type,
                                          struct cairn_value *value, struct cairn_error *error)
{
    const struct live live = {location, type};
    return read_live(frame, &live, value, error);
}

/* ---- Writing ---- */

enum cairn_status cairn_frame_set_value(struct cairn_frame *frame, struct cairn_record record,
                                        uint32_t index, const struct cairn_value *value,
                                        struct cairn_error *error)
{
    struct range range;
    enum cairn_status status = find_live_values(record, index, 1, &range, error);
    if (status != CAIRN_OK)
        return status;
    const struct live live = live_at(&range, 0);
    if (type_equal(live.type, value->type) && value->size == cairn_type_size(value->type))
        return write_live(frame, &live, value, error);
    char declared[TYPE_NAME_BYTES];
    char given[TYPE_NAME_BYTES];
    cairn_type_format(live.type, declared, sizeof declared);
    cairn_type_format(value->type, given, sizeof given);
    return error_set(error, CAIRN_ERROR_ARGUMENT, 0, "the live value is %s, and not %s", declared,
                     given);
}

enum cairn_status frame_check_location(const struct cairn_frame *frame,
                                       struct cairn_location location, struct cairn_type type,
                                       struct cairn_error *error)
{
    struct cairn_value value;
    return cairn_frame_at_location(frame, location, type, &value, error);
}

void frame_write_location(struct cairn_frame *frame, struct cairn_location location,
                          const struct cairn_value *value)
{
    const struct live live = {location, value->type};
    enum cairn_status status = write_live(frame, &live, value, NULL);
    (void)status; /* frame_check_location has accepted it */
}
