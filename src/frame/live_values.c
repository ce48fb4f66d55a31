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
#include "frame/frame.h"
#include "record/record_values.h"

#include <cairn/statepoint.h>
#include <string.h>

enum { TYPE_NAME_BYTES = 64, BITS_IN_BYTE = 8 };

/* ---- Locations of live values ---- */

static bool is_anyreg(const struct cairn_declaration *declaration)
{
    return declaration->kind == CAIRN_RECORD_PATCHPOINT &&
           declaration->calling_convention == CAIRN_CALLING_CONVENTION_ANYREG;
}

uint32_t frame_first_live_location(const struct cairn_declaration *declaration)
{
    bool has_result = declaration->result.kind != CAIRN_TYPE_VOID;
    return is_anyreg(declaration) ? has_result + declaration->argument_count : 0;
}

static inline uint32_t live_value_count(const struct cairn_declaration *declaration,
                                        const struct cairn_statepoint *statepoint)
{
    bool is_statepoint = declaration->kind == CAIRN_RECORD_STATEPOINT;
    return is_statepoint ? statepoint->deopt_count : declaration->live_value_count;
}

static uint32_t first_live_value(const struct cairn_declaration *declaration,
                                 const struct cairn_statepoint *statepoint)
{
    return declaration->kind == CAIRN_RECORD_STATEPOINT ? statepoint->first_deopt
                                                        : frame_first_live_location(declaration);
}

uint32_t cairn_record_live_value_count(struct cairn_record record)
{
    const struct cairn_declaration *declaration = cairn_record_declaration(record);
    struct cairn_statepoint statepoint = {0};
    if (declaration == NULL)
        return 0;
    if (declaration->kind == CAIRN_RECORD_STATEPOINT &&
        cairn_record_statepoint(record, &statepoint, NULL) != CAIRN_OK)
        return 0;
    return live_value_count(declaration, &statepoint);
}

/* A value to be read or written. */
struct live {
    struct cairn_location location;
    struct cairn_type type;
};

/* The parts of a record and its declaration that are used for every value, looked up once. */
struct recorded {
    const struct cairn_declaration *declaration;
    struct record_values values;
    uint32_t location_count;
};

static enum cairn_status say_undeclared(struct cairn_record record, struct cairn_error *error)
{
    return error_set(error, CAIRN_ERROR_NOT_FOUND, cairn_record_address(record),
                     "record %llu at 0x%llx has no declaration, so its values have no types",
                     (unsigned long long)cairn_record_id(record),
                     (unsigned long long)cairn_record_address(record));
}

static enum cairn_status say_beyond(struct cairn_record record, uint32_t index, uint32_t count,
                                    struct cairn_error *error)
{
    return error_set(error, CAIRN_ERROR_RANGE, index,
                     "record %llu at 0x%llx has %u live values, so there is no number %u",
                     (unsigned long long)cairn_record_id(record),
                     (unsigned long long)cairn_record_address(record), count, index);
}

/* Whether the record has the locations needed for location `number` to be valid; `*needed` is their
 * number. LLVM does not record values in x87 registers, which shifts the locations of the values
 * after them. */
static inline bool has_all_locations(const struct recorded *recorded, uint32_t number,
                                     uint32_t *needed)
{
    const struct cairn_declaration *declaration = recorded->declaration;
    *needed = number + 1;
    if (declaration->kind == CAIRN_RECORD_STATEPOINT)
        return number < recorded->location_count;
    *needed = first_live_value(declaration, NULL) + declaration->live_value_count;
    return recorded->location_count == *needed;
}

static enum cairn_status say_missing(struct cairn_record record, uint32_t count, uint32_t needed,
                                     struct cairn_error *error)
{
    return error_set(error, CAIRN_ERROR_CORRUPT, cairn_record_address(record),
                     "record %llu at 0x%llx has %u locations; its declaration needs %u",
                     (unsigned long long)cairn_record_id(record),
                     (unsigned long long)cairn_record_address(record), count, needed);
}

static inline enum cairn_status check_locations(struct cairn_record record,
                                                const struct recorded *recorded, uint32_t number,
                                                struct cairn_error *error)
{
    uint32_t needed;
    if (has_all_locations(recorded, number, &needed))
        return CAIRN_OK;
    return say_missing(record, recorded->location_count, needed, error);
}

static inline enum cairn_status find_recorded(struct cairn_record record, struct recorded *recorded,
                                              struct cairn_error *error)
{
    recorded->declaration = cairn_record_declaration(record);
    if (recorded->declaration == NULL)
        return say_undeclared(record, error);
    recorded->values = record_values_of(record);
    recorded->location_count = record_values_location_count(&recorded->values);
    return CAIRN_OK;
}

/* Consecutive values of a record. */
struct range {
    struct recorded recorded;
    uint32_t first_location;
    const struct cairn_type *types;
};

static struct live live_at(const struct range *range, uint32_t index)
{
    return (struct live){
        record_values_location(&range->recorded.values, range->first_location + index),
        range->types[index],
    };
}

static uint32_t smaller(uint32_t left, uint32_t right) { return left < right ? left : right; }

/* Finds `count` live values (1 or more) from index `first` on. */
static inline enum cairn_status find_live_values(struct cairn_record record, uint32_t first,
                                                 uint32_t count, struct range *range,
                                                 struct cairn_error *error)
{
    struct cairn_statepoint statepoint;
    enum cairn_status status = find_recorded(record, &range->recorded, error);
    if (status != CAIRN_OK)
        return status;
    const struct cairn_declaration *declaration = range->recorded.declaration;
    if (declaration->kind == CAIRN_RECORD_STATEPOINT)
        status = cairn_record_statepoint(record, &statepoint, error);
    if (status != CAIRN_OK)
        return status;
    uint32_t recorded = live_value_count(declaration, &statepoint);
    uint32_t known = smaller(recorded, declaration->live_value_count);
    if (first >= known || count > known - first)
        return say_beyond(record, first < known ? known : first, recorded, error);
    range->first_location = first_live_value(declaration, &statepoint) + first;
    range->types = declaration->types + declaration->argument_count + first;
    return check_locations(record, &range->recorded, range->first_location + count - 1, error);
}

static enum cairn_status find_live_value(struct cairn_record record, uint32_t index,
                                         struct live *live, struct cairn_error *error)
{
    struct range range;
    enum cairn_status status = find_live_values(record, index, 1, &range, error);
    if (status == CAIRN_OK)
        *live = live_at(&range, 0);
    return status;
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

/* ---- Registers ---- */

/* Limits a vector's storage to the recorded size: the machine's register may be larger. */
static void use_recorded_size(const struct live *live, struct storage *storage)
{
    bool is_vector = storage->form == STORAGE_VECTOR || live->type.element_count > 0;
    if (is_vector && live->location.size < storage->size)
        storage->size = live->location.size;
}

/* A value's part of a register, and the bytes below it. */
struct part {
    struct frame_register place;
    size_t size; /* of the value's part */
    size_t below;
    unsigned char bytes[CAIRN_VALUE_BYTES_MAX];
};

/* Finds the part of a register. If it does not begin at the lowest bit (AH, for example), the
 * record has the register and the number of bits below the part. */
static enum cairn_status find_part(const struct cairn_frame *frame, const struct live *live,
                                   struct part *part, struct cairn_error *error)
{
    struct storage *storage = &part->place.storage;
    enum cairn_status status =
        frame_find_register(frame, live->location.dwarf, &part->place, error);
    if (status != CAIRN_OK)
        return status;
    use_recorded_size(live, storage);
    part->below = (size_t)live->location.offset / BITS_IN_BYTE;
    part->size = storage_part(live->type, *storage);
    bool is_integer = storage->form == STORAGE_GENERAL;
    if (part->size == 0 || part->below + part->size > storage->size ||
        (part->below != 0 && !is_integer))
        return say_unfit(live, storage->size, error);
    return CAIRN_OK;
}

/* Loads the part and the bytes below it. Flags are not loaded here, but in load_flags, which knows
 * the flag. */
static enum cairn_status load_part(const struct cairn_frame *frame, const struct live *live,
                                   struct part *part, struct cairn_error *error)
{
    enum cairn_status status = find_part(frame, live, part, error);
    if (status != CAIRN_OK || part->place.first_flag != 0)
        return status;
    return frame_load(frame, &part->place, part->bytes, part->below + part->size, error);
}

/* Returns the value's bytes of a loaded part. In big-endian order, the lowest bytes come last. */
static unsigned char *value_bytes(struct part *part)
{
    bool is_little = CAIRN_BYTE_ORDER_NATIVE == CAIRN_LITTLE_ENDIAN;
    return part->bytes + (is_little ? part->below : 0);
}

/* ---- Flags ---- */

/* Loads a field of PPC64's condition register, and computes the mask of one flag. A flag is
 * recorded by its field and its index in the field. */
static enum cairn_status load_flags(const struct cairn_frame *frame, const struct live *live,
                                    const struct frame_register *place, uint32_t *flags,
                                    uint32_t *mask, struct cairn_error *error)
{
    enum { FLAGS_IN_FIELD = 4 };
    uint32_t number = (uint32_t)live->location.offset;
    if (live->type.kind != CAIRN_TYPE_INTEGER || live->type.bits != 1 || number >= FLAGS_IN_FIELD)
        return say_unfit(live, place->storage.size, error);
    *mask = UINT32_C(1) << (place->first_flag - number);
    return frame_load(frame, place, flags, sizeof *flags, error);
}

static enum cairn_status read_flag(const struct cairn_frame *frame, const struct live *live,
                                   const struct frame_register *place, struct cairn_value *value,
                                   struct cairn_error *error)
{
    uint32_t flags = 0;
    uint32_t mask = 0;
    enum cairn_status status = load_flags(frame, live, place, &flags, &mask, error);
    if (status == CAIRN_OK)
        *value = cairn_value_of_integer(1, (flags & mask) != 0);
    return status;
}

static enum cairn_status write_flag(struct cairn_frame *frame, const struct live *live,
                                    const struct frame_register *place,
                                    const struct cairn_value *value, struct cairn_error *error)
{
    uint32_t flags = 0;
    uint32_t mask = 0;
    enum cairn_status status = load_flags(frame, live, place, &flags, &mask, error);
    if (status != CAIRN_OK)
        return status;
    flags = cairn_value_unsigned(value) != 0 ? flags | mask : flags & ~mask;
    return frame_store(frame, place, &flags, sizeof flags, error);
}

/* ---- Values in registers ---- */

static enum cairn_status read_register(const struct cairn_frame *frame, const struct live *live,
                                       struct cairn_value *value, struct cairn_error *error)
{
    struct part part;
    enum cairn_status status = load_part(frame, live, &part, error);
    if (status != CAIRN_OK)
        return status;
    if (part.place.first_flag != 0)
        return read_flag(frame, live, &part.place, value, error);
    storage_read(live->type, part.place.storage, value_bytes(&part), value);
    return CAIRN_OK;
}

/* Writes the value's part. The bytes below it stay unchanged. */
static enum cairn_status write_register(struct cairn_frame *frame, const struct live *live,
                                        const struct cairn_value *value, struct cairn_error *error)
{
    struct part part;
    enum cairn_status status = load_part(frame, live, &part, error);
    if (status != CAIRN_OK)
        return status;
    if (part.place.first_flag != 0)
        return write_flag(frame, live, &part.place, value, error);
    storage_write(value, part.place.storage, value_bytes(&part));
    return frame_store(frame, &part.place, part.bytes, part.below + part.size, error);
}

/* ---- Memory ---- */

static enum cairn_status find_memory(const struct cairn_frame *frame, const struct live *live,
                                     struct storage *storage, void **bytes,
                                     struct cairn_error *error)
{
    uint64_t address;
    *storage = (struct storage){STORAGE_MEMORY, live->location.size};
    if (storage_part(live->type, *storage) == 0) {
        say_unfit(live, live->location.size, error);
        return CAIRN_ERROR_UNSUPPORTED; /* explicit, so that static analysers see the failure */
    }
    enum cairn_status status = find_address(frame, live->location, &address, error);
    if (status == CAIRN_OK)
        *bytes = (void *)(uintptr_t)address;
    return status;
}

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

static enum cairn_status read_memory(const struct cairn_frame *frame, const struct live *live,
                                     struct cairn_value *value, struct cairn_error *error)
{
    struct storage storage;
    void *bytes = NULL;
    enum cairn_status status = find_memory(frame, live, &storage, &bytes, error);
    if (status != CAIRN_OK)
        return status;
    unsigned char copy[CAIRN_VALUE_BYTES_MAX];
    copy_spilled(copy, bytes, storage.size);
    storage_read(live->type, storage, copy, value);
    return CAIRN_OK;
}

static enum cairn_status write_memory(struct cairn_frame *frame, const struct live *live,
                                      const struct cairn_value *value, struct cairn_error *error)
{
    struct storage storage;
    void *bytes = NULL;
    enum cairn_status status = find_memory(frame, live, &storage, &bytes, error);
    if (status != CAIRN_OK)
        return status;
    unsigned char copy[CAIRN_VALUE_BYTES_MAX];
    storage_write(value, storage, copy);
    copy_spilled(bytes, copy, storage.size);
    return CAIRN_OK;
}

/* ---- Reading any value ---- */

static enum cairn_status read_direct(const struct cairn_frame *frame, const struct live *live,
                                     struct cairn_value *value, struct cairn_error *error)
{
    uint64_t address;
    enum cairn_status status = find_address(frame, live->location, &address, error);
    if (status != CAIRN_OK)
        return status;
    if (live->type.bits != sizeof address * BITS_IN_BYTE ||
        !storage_read_constant(live->type, address, value))
        return say_unfit(live, sizeof address, error);
    return CAIRN_OK;
}

static enum cairn_status read_live(const struct cairn_frame *frame, const struct live *live,
                                   struct cairn_value *value, struct cairn_error *error)
{
    switch (live->location.kind) {
    case CAIRN_LOCATION_REGISTER:
        return read_register(frame, live, value, error);
    case CAIRN_LOCATION_DIRECT:
        return read_direct(frame, live, value, error);
    case CAIRN_LOCATION_INDIRECT:
        return read_memory(frame, live, value, error);
    case CAIRN_LOCATION_CONSTANT:
    case CAIRN_LOCATION_CONSTANT_INDEX:
        break;
    }
    if (storage_read_constant(live->type, live->location.constant, value))
        return CAIRN_OK;
    return say_unfit(live, sizeof live->location.constant, error);
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

static struct reader reader_of(const struct cairn_frame *frame, const struct range *range)
{
    return (struct reader){
        .frame = frame,
        .words = range->recorded.values.locations + range->first_location,
        .types = range->types,
        .constants = range->recorded.values.table->constants,
        .found_by = (uint32_t)arch_host_layout.stack_pointer << COMPACT_REGISTER_SHIFT,
        .base = frame->sp,
    };
}

static inline uint16_t compact_dwarf(uint32_t word)
{
    return (uint16_t)(word >> COMPACT_REGISTER_SHIFT & COMPACT_DWARF_MASK);
}

static inline uint32_t compact_size(uint32_t word)
{
    return word >> COMPACT_SIZE_SHIFT & COMPACT_SIZE_MASK;
}

static inline __attribute__((always_inline)) bool is_plain(const struct cairn_type *type)
{
    _Static_assert(CAIRN_TYPE_INTEGER == 1, "the scalars are neighbours");
    _Static_assert(CAIRN_TYPE_DOUBLE == 6, "the scalars are neighbours");
    bool is_scalar = (unsigned)type->kind - CAIRN_TYPE_INTEGER < CAIRN_TYPE_DOUBLE;
    bool has_8_or_4_bytes = ((type->bits - 32) & ~UINT32_C(32)) == 0;
    return is_scalar && has_8_or_4_bytes && type->element_count == 0;
}

/* Whether the place is at least as large as the value. */
static inline bool is_whole(uint32_t word, const struct cairn_type *type)
{
    return compact_size(word) >= (type->bits == 32 ? COMPACT_SIZE_4 : COMPACT_SIZE_8);
}

static inline __attribute__((always_inline)) bool load_register(const struct reader *reader,
                                                                uint32_t word,
                                                                const struct cairn_type *type,
                                                                uint64_t *bits)
{
    bool has_other_form = arch_host_layout.floats_are_doubles && type->kind == CAIRN_TYPE_FLOAT;
    const void *bytes = frame_scalar(reader->frame, compact_dwarf(word));
    if (bytes == NULL || word >> COMPACT_OFFSET_SHIFT != 0 || has_other_form ||
        !is_whole(word, type))
        return false;
    memcpy(bits, bytes, sizeof *bits);
    return true;
}

static inline __attribute__((always_inline)) bool find_base(struct reader *reader, uint32_t word)
{
    uint64_t base;
    if ((word & COMPACT_FOUND_BY) == reader->found_by)
        return true;
    if (frame_base(reader->frame, compact_dwarf(word), &base, NULL) != CAIRN_OK)
        return false;
    reader->base = base;
    reader->found_by = word & COMPACT_FOUND_BY;
    return true;
}

static inline __attribute__((always_inline)) bool load_spilled(struct reader *reader, uint32_t word,
                                                               const struct cairn_type *type,
                                                               uint64_t *bits)
{
    if (!find_base(reader, word))
        return false;
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

/* Loads the value's bits. Bits above them are unspecified. */
static inline __attribute__((always_inline)) bool load_bits(struct reader *reader, uint32_t word,
                                                            const struct cairn_type *type,
                                                            uint64_t *bits)
{
    unsigned kind = word & COMPACT_KIND_MASK;
    if (kind == CAIRN_LOCATION_INDIRECT)
        return load_spilled(reader, word, type, bits);
    if (kind == CAIRN_LOCATION_REGISTER)
        return load_register(reader, word, type, bits);
    int32_t constant = (int32_t)word >> COMPACT_CONSTANT_SHIFT;
    *bits = (uint64_t)constant;
    if (kind == CAIRN_LOCATION_CONSTANT_INDEX)
        *bits = reader->constants[constant];
    return kind != CAIRN_LOCATION_DIRECT;
}

static inline __attribute__((always_inline)) void set_bits(const struct cairn_type *type,
                                                           uint64_t bits, struct cairn_value *value)
{
    uint32_t used = type->bits;
    uint32_t unused = sizeof bits * BITS_IN_BYTE - used;
    bits =
        CAIRN_BYTE_ORDER_NATIVE == CAIRN_BIG_ENDIAN ? bits << unused : bits & UINT64_MAX >> unused;
    memcpy(&value->type, type, sizeof *type);
    value->size = used / BITS_IN_BYTE;
    memset(value->bytes, 0, sizeof value->bytes);
    memcpy(value->bytes, &bits, sizeof bits);
}

static inline __attribute__((always_inline)) bool read_plain(struct reader *reader, uint32_t index,
                                                             struct cairn_value *value)
{
    const struct cairn_type *type = &reader->types[index];
    uint64_t bits;
    if (!is_plain(type) || !load_bits(reader, reader->words[index], type, &bits))
        return false;
    set_bits(type, bits, value);
    return true;
}

static inline __attribute__((always_inline)) enum cairn_status read_range(
    const struct cairn_frame *frame, const struct range *range, uint32_t count,
    struct cairn_value *values, struct cairn_error *error)
{
    struct reader reader = reader_of(frame, range);
    bool is_compact = range->recorded.values.form == VALUES_COMPACT;
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

static enum cairn_status check_type(const struct live *live, const struct cairn_value *value,
                                    struct cairn_error *error)
{
    if (cairn_type_equal(live->type, value->type) && value->size == cairn_type_size(value->type))
        return CAIRN_OK;
    char declared[TYPE_NAME_BYTES];
    char given[TYPE_NAME_BYTES];
    cairn_type_format(live->type, declared, sizeof declared);
    cairn_type_format(value->type, given, sizeof given);
    return error_set(error, CAIRN_ERROR_ARGUMENT, 0, "the live value is %s, and not %s", declared,
                     given);
}

static enum cairn_status write_live(struct cairn_frame *frame, const struct live *live,
                                    const struct cairn_value *value, struct cairn_error *error)
{
    if (live->location.kind == CAIRN_LOCATION_REGISTER)
        return write_register(frame, live, value, error);
    if (live->location.kind == CAIRN_LOCATION_INDIRECT)
        return write_memory(frame, live, value, error);
    return error_set(error, CAIRN_ERROR_UNSUPPORTED, frame->pc,
                     "the value is %s in the code: it cannot be changed",
                     live->location.kind == CAIRN_LOCATION_DIRECT ? "an address in the frame"
                                                                  : "a constant");
}

enum cairn_status cairn_frame_set_value(struct cairn_frame *frame, struct cairn_record record,
                                        uint32_t index, const struct cairn_value *value,
                                        struct cairn_error *error)
{
    struct live live;
    enum cairn_status status = find_live_value(record, index, &live, error);
    if (status == CAIRN_OK)
        status = check_type(&live, value, error);
    return status == CAIRN_OK ? write_live(frame, &live, value, error) : status;
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
