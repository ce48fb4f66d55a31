/*
 * Live values: from a record's locations and a declaration's types to values, and back.
 *
 * Source: LLVM, "Stack maps and patch points in LLVM", section Stack Map Format; which locations a
 * patch point's record has: llvm/lib/CodeGen/StackMaps.cpp, recordPatchPoint.
 *
 * SPDX-License-Identifier: MIT
 */
#include "base/error.h"
#include "frame/frame.h"

#include <cairn/statepoint.h>
#include <string.h>

enum { TYPE_NAME_BYTES = 64, BITS_IN_BYTE = 8 };

/* ---- Which location a live value has ---- */

static bool is_anyreg(const struct cairn_declaration *declaration)
{
    return declaration->kind == CAIRN_RECORD_PATCHPOINT &&
           declaration->calling_convention == CAIRN_CALLING_CONVENTION_ANYREG;
}

/* With anyregcc the result comes first, then the arguments. */
static uint32_t first_argument(const struct cairn_declaration *declaration)
{
    return declaration->result.kind == CAIRN_TYPE_VOID ? 0 : 1;
}

static uint32_t live_value_count(const struct cairn_declaration *declaration,
                                 const struct cairn_statepoint *statepoint)
{
    bool is_statepoint = declaration->kind == CAIRN_RECORD_STATEPOINT;
    return is_statepoint ? statepoint->deopt_count : declaration->live_value_count;
}

static uint32_t first_live_value(const struct cairn_declaration *declaration,
                                 const struct cairn_statepoint *statepoint)
{
    if (declaration->kind == CAIRN_RECORD_STATEPOINT)
        return statepoint->first_deopt;
    return is_anyreg(declaration) ? first_argument(declaration) + declaration->argument_count : 0;
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

/* What is to be read or written. */
struct live {
    struct cairn_location location;
    struct cairn_type type;
};

static enum cairn_status say_undeclared(struct cairn_record record, struct cairn_error *error)
{
    return error_set(error, CAIRN_ERROR_NOT_FOUND, cairn_record_address(record),
                     "record %llu at 0x%llx has no declaration, so its values have no types",
                     (unsigned long long)cairn_record_id(record),
                     (unsigned long long)cairn_record_address(record));
}

static enum cairn_status say_beyond(struct cairn_record record, const char *what, uint32_t index,
                                    uint32_t count, struct cairn_error *error)
{
    return error_set(error, CAIRN_ERROR_RANGE, index,
                     "record %llu at 0x%llx has %u %s, so there is no number %u",
                     (unsigned long long)cairn_record_id(record),
                     (unsigned long long)cairn_record_address(record), count, what, index);
}

/* How many locations a record has. LLVM leaves values out that it has in x87 registers, and those
 * behind them are then not where they should be. */
static bool has_all_locations(struct cairn_record record,
                              const struct cairn_declaration *declaration, uint32_t *needed)
{
    if (declaration->kind == CAIRN_RECORD_STATEPOINT)
        return true;
    *needed = first_live_value(declaration, NULL) + declaration->live_value_count;
    return cairn_record_location_count(record) == *needed;
}

static enum cairn_status take_location(struct cairn_record record, uint32_t number,
                                       struct cairn_type type, struct live *live,
                                       struct cairn_error *error)
{
    uint32_t count = cairn_record_location_count(record);
    uint32_t needed = number + 1;
    bool has_all = has_all_locations(record, cairn_record_declaration(record), &needed);
    if (!has_all || number >= count)
        return error_set(error, CAIRN_ERROR_CORRUPT, cairn_record_address(record),
                         "record %llu at 0x%llx has %u locations; its declaration needs %u",
                         (unsigned long long)cairn_record_id(record),
                         (unsigned long long)cairn_record_address(record), count, needed);
    *live = (struct live){cairn_record_location(record, number), type};
    return CAIRN_OK;
}

static enum cairn_status find_live_value(struct cairn_record record, uint32_t index,
                                         struct live *live, struct cairn_error *error)
{
    const struct cairn_declaration *declaration = cairn_record_declaration(record);
    struct cairn_statepoint statepoint = {0};
    if (declaration == NULL)
        return say_undeclared(record, error);
    if (declaration->kind == CAIRN_RECORD_STATEPOINT) {
        enum cairn_status status = cairn_record_statepoint(record, &statepoint, error);
        if (status != CAIRN_OK)
            return status;
    }
    uint32_t count = live_value_count(declaration, &statepoint);
    if (index >= count || index >= declaration->live_value_count)
        return say_beyond(record, "live values", index, count, error);
    struct cairn_type type = declaration->types[declaration->argument_count + index];
    return take_location(record, first_live_value(declaration, &statepoint) + index, type, live,
                         error);
}

static enum cairn_status find_argument(struct cairn_record record, uint32_t index,
                                       struct live *live, struct cairn_error *error)
{
    const struct cairn_declaration *declaration = cairn_record_declaration(record);
    if (declaration == NULL)
        return say_undeclared(record, error);
    if (!is_anyreg(declaration))
        return error_set(error, CAIRN_ERROR_NOT_FOUND, cairn_record_address(record),
                         "record %llu at 0x%llx has no arguments: only those of anyregcc are "
                         "recorded",
                         (unsigned long long)cairn_record_id(record),
                         (unsigned long long)cairn_record_address(record));
    if (index >= declaration->argument_count)
        return say_beyond(record, "arguments", index, declaration->argument_count, error);
    return take_location(record, first_argument(declaration) + index, declaration->types[index],
                         live, error);
}

/* ---- Where a location is in a frame ---- */

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

/* A vector is in as much of its register as the record says, whatever the machine has of it. */
static void use_recorded_size(const struct live *live, struct storage *storage)
{
    bool is_vector = storage->form == STORAGE_VECTOR || live->type.element_count > 0;
    if (is_vector && live->location.size < storage->size)
        storage->size = live->location.size;
}

/* A value's part of a register, and what is below it. */
struct part {
    struct frame_register place;
    size_t size; /* of the value's part */
    size_t below;
    unsigned char bytes[CAIRN_VALUE_BYTES_MAX];
};

/* A part that does not begin with the register's lowest bits, such as AH, is recorded by the
 * register and how many bits are below. */
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

/* The bytes of flags are loaded where the flag is known: load_flags. */
static enum cairn_status load_part(const struct cairn_frame *frame, const struct live *live,
                                   struct part *part, struct cairn_error *error)
{
    enum cairn_status status = find_part(frame, live, part, error);
    if (status != CAIRN_OK || part->place.first_flag != 0)
        return status;
    return frame_load(frame, &part->place, part->bytes, part->below + part->size, error);
}

/* In big-endian order the lowest bytes come last. */
static unsigned char *value_bytes(struct part *part)
{
    bool is_little = CAIRN_BYTE_ORDER_NATIVE == CAIRN_LITTLE_ENDIAN;
    return part->bytes + (is_little ? part->below : 0);
}

/* ---- Flags ---- */

/* PPC64: a bit of the condition register is recorded by its field, and which one it is there. */
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

/* What is below a part that is written stays. */
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
    if (storage_part(live->type, *storage) == 0)
        return say_unfit(live, live->location.size, error);
    enum cairn_status status = find_address(frame, live->location, &address, error);
    if (status == CAIRN_OK)
        *bytes = (void *)(uintptr_t)address;
    return status;
}

/* Between a vector as it should be and as LLVM's code has spilled it: the same, but for the order
 * of its halves on some machines. */
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

/* ---- Reading ---- */

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

enum cairn_status cairn_frame_value(const struct cairn_frame *frame, struct cairn_record record,
                                    uint32_t index, struct cairn_value *value,
                                    struct cairn_error *error)
{
    struct live live;
    enum cairn_status status = find_live_value(record, index, &live, error);
    return status == CAIRN_OK ? read_live(frame, &live, value, error) : status;
}

enum cairn_status cairn_frame_argument(const struct cairn_frame *frame, struct cairn_record record,
                                       uint32_t index, struct cairn_value *value,
                                       struct cairn_error *error)
{
    struct live live;
    enum cairn_status status = find_argument(record, index, &live, error);
    return status == CAIRN_OK ? read_live(frame, &live, value, error) : status;
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
    (void)status; /* frame_check_location has found it good */
}
