/*
 * Frame states: interpreter frames from the live values of a record.
 *
 * cairn_frame_state_read validates the whole state. Later reads rely on that, because records do
 * not change.
 *
 * SPDX-License-Identifier: MIT
 */
#include "format/frame_state.h"
#include "format/record.h"

#include "base/error.h"
#include "frame/frame.h"
#include "record/record_values.h"
#include "runtime/linked_names.h"
#include "runtime/module.h"
#include "value/representation.h"

#include <cairn/frame_state.h>
#include <stdio.h>
#include <string.h>

enum { WORD_BYTES = 8, BITS_IN_BYTE = 8, TYPE_NAME_BYTES = 64 };

/* ---- Words ---- */

/* A validation in progress. */
struct check {
    struct cairn_record record;
    struct record_values values;
    uint32_t first; /* location of the record's first live value */
    uint32_t end;
    struct cairn_frame_state state;
    uint32_t next;   /* location of the next word */
    bool has_places; /* whether check_places has something to check */
    bool is_named;
    struct cairn_error *error;
};

/* Returns the index of the live value at a location. */
static uint32_t number_of(const struct check *check, uint32_t location)
{
    return location - check->first;
}

static unsigned long long id_of(const struct check *check)
{
    return cairn_record_id(check->record);
}

static enum cairn_status refuse(const struct check *check, uint32_t location, const char *what,
                                uint64_t found, const char *expected)
{
    return error_set(check->error, CAIRN_ERROR_CORRUPT, number_of(check, location),
                     "live value %u of record %llu is %s of %llu, and not %s",
                     number_of(check, location), id_of(check), what, (unsigned long long)found,
                     expected);
}

static enum cairn_status say_variable(const struct check *check, uint32_t location,
                                      const char *what, enum cairn_location_kind kind)
{
    return error_set(check->error, CAIRN_ERROR_CORRUPT, number_of(check, location),
                     "live value %u of record %llu, a frame state's %s, is %s and not a constant",
                     number_of(check, location), id_of(check), what, location_kind_name(kind));
}

static bool is_constant(struct cairn_location location)
{
    return location.kind == CAIRN_LOCATION_CONSTANT ||
           location.kind == CAIRN_LOCATION_CONSTANT_INDEX;
}

static uint64_t word_at(const struct record_values *values, uint32_t location)
{
    return record_values_location(values, location).constant;
}

static enum cairn_status take_word(struct check *check, const char *what, uint64_t *word)
{
    uint32_t count = number_of(check, check->end);
    if (check->next >= check->end)
        return error_set(check->error, CAIRN_ERROR_CORRUPT, count,
                         "record %llu ends after %u live values, before a frame state's %s",
                         id_of(check), count, what);
    struct cairn_location found = record_values_location(&check->values, check->next);
    if (!is_constant(found))
        return say_variable(check, check->next, what, found.kind);
    *word = found.constant;
    check->next++;
    return CAIRN_OK;
}

static uint32_t field(uint64_t word, unsigned shift, unsigned bits)
{
    return (uint32_t)(word >> shift & ((UINT64_C(1) << bits) - 1));
}

/* ---- Names ---- */

static bool find_name(struct cairn_record record, uint64_t id, uint64_t *value)
{
    const cairn_module *module = record_module(record);
    return module != NULL && module->extras != NULL &&
           module_names_find(module->extras->names, id, value);
}

/* Whether the functions of a state's frames are names. */
static bool has_named_functions(const struct record_values *values, uint32_t first_word)
{
    return (word_at(values, first_word + 1) >> FRAME_STATE_NAMED_SHIFT & 1) != 0;
}

/* ---- Slots ---- */

struct slot {
    enum frame_state_slot_kind kind;
    struct cairn_type type;
    int64_t number; /* the value of a small number */
    uint32_t value; /* index of the value, of its address, or of the first value with its bytes */
    bool is_name;   /* the value is the ID of a name */
};

/* ORDER cairn_type_kind. The number of bits of kinds with a fixed size. */
static const uint8_t bits_of_kind[] = {
    [CAIRN_TYPE_VOID] = 0,        [CAIRN_TYPE_INTEGER] = 0,   [CAIRN_TYPE_POINTER] = 64,
    [CAIRN_TYPE_HALF] = 16,       [CAIRN_TYPE_BFLOAT] = 16,   [CAIRN_TYPE_FLOAT] = 32,
    [CAIRN_TYPE_DOUBLE] = 64,     [CAIRN_TYPE_X86_FP80] = 80, [CAIRN_TYPE_FP128] = 128,
    [CAIRN_TYPE_PPC_FP128] = 128,
};

/* Unpacks a slot. An invalid type has size 0. */
static struct slot unpack_slot(uint64_t word)
{
    struct slot slot = {.kind = (enum frame_state_slot_kind)field(word, 0, SLOT_KIND_BITS)};
    struct cairn_type *type = &slot.type;
    uint32_t kind = field(word, SLOT_TYPE_SHIFT, SLOT_TYPE_BITS);
    uint32_t parameter = field(word, SLOT_PARAMETER_SHIFT, SLOT_PARAMETER_BITS);
    type->kind = kind < sizeof bits_of_kind ? (enum cairn_type_kind)kind : CAIRN_TYPE_OTHER;
    type->bits = kind < sizeof bits_of_kind ? bits_of_kind[kind] : 0;
    if (type->kind == CAIRN_TYPE_INTEGER)
        type->bits = parameter + 1;
    else if (type->kind == CAIRN_TYPE_POINTER)
        type->address_space = parameter;
    else if (parameter != 0)
        type->kind = CAIRN_TYPE_OTHER;
    if (slot.kind == FRAME_STATE_NUMBER) {
        slot.number = (int64_t)word >> SLOT_NUMBER_SHIFT;
        return slot;
    }
    slot.value = field(word, SLOT_VALUE_SHIFT, SLOT_VALUE_BITS);
    slot.is_name = (word >> SLOT_NAME_SHIFT & 1) != 0;
    type->element_count = field(word, SLOT_ELEMENTS_SHIFT, SLOT_ELEMENTS_BITS);
    return slot;
}

static uint32_t byte_words(struct cairn_type type)
{
    return ((uint32_t)cairn_type_size(type) + WORD_BYTES - 1) / WORD_BYTES;
}

static enum cairn_status check_slot(struct check *check, uint64_t word)
{
    uint32_t location = check->next - 1;
    struct slot slot = unpack_slot(word);
    if (word == 0)
        return CAIRN_OK;
    if (cairn_type_size(slot.type) == 0)
        return refuse(check, location, "a slot", word, "of a type");
    if (slot.kind == FRAME_STATE_NUMBER) {
        /* Of types with more than 64 bits, only integers are sign-extended numbers. */
        if (cairn_type_size(slot.type) <= WORD_BYTES || slot.type.kind == CAIRN_TYPE_INTEGER)
            return CAIRN_OK;
        return refuse(check, location, "a slot", word, "of a type that a number has");
    }
    if (word >> SLOT_BITS != 0)
        return refuse(check, location, "a slot", word, "without bits above its fields");
    bool is_bytes = slot.kind == FRAME_STATE_BYTES;
    uint32_t count = is_bytes ? byte_words(slot.type) : 1;
    if (slot.is_name &&
        (slot.kind != FRAME_STATE_VALUE || cairn_type_size(slot.type) != WORD_BYTES))
        return refuse(check, location, "a slot", word, "of a type that a name has");
    check->has_places |= is_bytes || slot.is_name || slot.kind == FRAME_STATE_STORED;
    if (slot.value + count > check->state.value_count)
        return refuse(check, location, "a slot", word, "one of the state's values");
    return CAIRN_OK;
}

/* ---- Reading a state ---- */

static enum cairn_status check_header(struct check *check)
{
    uint64_t word = 0;
    uint32_t location = check->next;
    enum cairn_status status = take_word(check, "first word", &word);
    if (status != CAIRN_OK)
        return status;
    if ((word & ~(uint64_t)FRAME_STATE_VERSION_MASK) != CAIRN_FRAME_STATE_MAGIC)
        return refuse(check, location, "a number", word, "the beginning of a frame state");
    /* Version 2 added stored values. */
    uint32_t version = word & FRAME_STATE_VERSION_MASK;
    if (version == 0 || version > CAIRN_FRAME_STATE_VERSION)
        return error_set(check->error, CAIRN_ERROR_VERSION, number_of(check, location),
                         "live value %u of record %llu begins a frame state of version %u; this "
                         "Cairn knows versions 1 to %u",
                         number_of(check, location), id_of(check), (unsigned)version,
                         CAIRN_FRAME_STATE_VERSION);
    status = take_word(check, "counts", &word);
    if (status != CAIRN_OK)
        return status;
    check->state.frame_count = field(word, 0, FRAME_STATE_COUNT_BITS);
    check->state.value_count = field(word, FRAME_STATE_COUNT_BITS, FRAME_STATE_COUNT_BITS);
    check->is_named = (word >> FRAME_STATE_NAMED_SHIFT & 1) != 0;
    if (check->state.frame_count == 0 || word >> (FRAME_STATE_NAMED_SHIFT + 1) != 0)
        return refuse(check, check->next - 1, "a word", word,
                      "the number of a frame state's frames and values");
    return CAIRN_OK;
}

static enum cairn_status check_frame(struct check *check)
{
    uint64_t word = 0;
    uint64_t value;
    enum cairn_status status = take_word(check, "function", &word);
    if (status == CAIRN_OK && check->is_named && !find_name(check->record, word, &value))
        return refuse(check, check->next - 1, "a name", word, "one of its module");
    if (status == CAIRN_OK)
        status = take_word(check, "position", &word);
    if (status == CAIRN_OK)
        status = take_word(check, "counts of a frame", &word);
    if (status != CAIRN_OK)
        return status;
    uint32_t slots = field(word, 0, FRAME_STATE_COUNT_BITS) +
                     field(word, FRAME_STATE_COUNT_BITS, FRAME_STATE_COUNT_BITS);
    for (uint32_t i = 0; i < slots && status == CAIRN_OK; i++) {
        status = take_word(check, "slot", &word);
        if (status == CAIRN_OK)
            status = check_slot(check, word);
    }
    return status;
}

/* Decodes the frame at a location. */
static struct cairn_interpreter_frame frame_at(const struct record_values *values,
                                               uint32_t location)
{
    uint64_t counts = word_at(values, location + 2);
    return (struct cairn_interpreter_frame){
        .function = word_at(values, location),
        .position = word_at(values, location + 1),
        .flags = (uint32_t)(counts >> FRAME_STATE_FLAGS_SHIFT),
        .local_count = field(counts, 0, FRAME_STATE_COUNT_BITS),
        .stack_count = field(counts, FRAME_STATE_COUNT_BITS, FRAME_STATE_COUNT_BITS),
        .first_slot = location + FRAME_STATE_FRAME_WORDS,
    };
}

static uint32_t end_of(const struct cairn_interpreter_frame *frame)
{
    return frame->first_slot + frame->local_count + frame->stack_count;
}

static enum cairn_status check_constants(const struct check *check, uint32_t first, uint32_t count)
{
    for (uint32_t i = first; i < first + count; i++) {
        struct cairn_location found = record_values_location(&check->values, i);
        if (!is_constant(found))
            return say_variable(check, i, "bytes", found.kind);
    }
    return CAIRN_OK;
}

static enum cairn_status check_name(const struct check *check, uint32_t location)
{
    uint64_t value;
    struct cairn_location found = record_values_location(&check->values, location);
    if (!is_constant(found))
        return say_variable(check, location, "name", found.kind);
    if (!find_name(check->record, found.constant, &value))
        return refuse(check, location, "a name", found.constant, "one of its module");
    return CAIRN_OK;
}

static enum cairn_status check_address(const struct check *check, uint32_t location)
{
    struct cairn_location found = record_values_location(&check->values, location);
    if (found.kind == CAIRN_LOCATION_DIRECT)
        return CAIRN_OK;
    return error_set(check->error, CAIRN_ERROR_CORRUPT, number_of(check, location),
                     "live value %u of record %llu, where a frame state's value is stored, is %s "
                     "and not an address in the frame",
                     number_of(check, location), id_of(check), location_kind_name(found.kind));
}

/* Checks the slots from location `first` to `end`: bytes and names are constants, the module has
 * the names, and stored values are in the frame. The places of the values must be known. */
static enum cairn_status check_places(const struct check *check, uint32_t first, uint32_t end)
{
    enum cairn_status status = CAIRN_OK;
    for (uint32_t slot_at = first; slot_at < end && status == CAIRN_OK; slot_at++) {
        uint64_t word = word_at(&check->values, slot_at);
        struct slot slot = unpack_slot(word);
        uint32_t value = check->state.first_value + slot.value;
        if (slot.kind == FRAME_STATE_BYTES)
            status = check_constants(check, value, byte_words(slot.type));
        else if (slot.is_name)
            status = check_name(check, value);
        else if (slot.kind == FRAME_STATE_STORED && word != 0)
            status = check_address(check, value);
    }
    return status;
}

static enum cairn_status check_state(struct check *check)
{
    enum cairn_status status = check_header(check);
    for (uint32_t i = 0; i < check->state.frame_count && status == CAIRN_OK; i++)
        status = check_frame(check);
    if (status != CAIRN_OK)
        return status;
    uint32_t needed = check->state.value_count;
    uint32_t there_are = check->end - check->next;
    uint32_t count = number_of(check, check->end);
    check->state.first_value = check->next;
    check->state.next_live_value = number_of(check, check->next) + needed;
    if (needed > there_are)
        return error_set(check->error, CAIRN_ERROR_CORRUPT, count,
                         "record %llu ends after %u live values: %u of the %u values of its frame "
                         "state are missing",
                         id_of(check), count, needed - there_are, needed);
    uint32_t location = check->state.first_word + FRAME_STATE_HEADER_WORDS;
    for (uint32_t i = 0; check->has_places && i < check->state.frame_count && status == CAIRN_OK;
         i++) {
        struct cairn_interpreter_frame frame = frame_at(&check->values, location);
        location = end_of(&frame);
        status = check_places(check, frame.first_slot, location);
    }
    return status;
}

enum cairn_status cairn_frame_state_read(const struct cairn_frame *frame,
                                         struct cairn_record record, uint32_t first_live_value,
                                         struct cairn_frame_state *state, struct cairn_error *error)
{
    if (frame == NULL || record.table == NULL || state == NULL)
        return error_set(error, CAIRN_ERROR_ARGUMENT, 0, "cairn_frame_state_read: `%s` is NULL",
                         frame == NULL   ? "frame"
                         : state == NULL ? "state"
                                         : "record.table");
    struct check check = {.record = record, .error = error};
    enum cairn_status status = frame_find_live_locations(record, cairn_record_declaration(record),
                                                         &check.first, &check.end, error);
    if (status != CAIRN_OK)
        return status;
    check.values = record_values_of(record);
    uint32_t count = number_of(&check, check.end);
    if (first_live_value >= count)
        return error_set(error, CAIRN_ERROR_RANGE, first_live_value,
                         "record %llu at 0x%llx has %u live values, so no frame state begins at "
                         "number %u",
                         (unsigned long long)cairn_record_id(record),
                         (unsigned long long)cairn_record_address(record), count, first_live_value);
    check.next = check.first + first_live_value;
    check.state.frame = frame;
    check.state.record = record;
    check.state.first_word = check.next;
    status = check_state(&check);
    if (status == CAIRN_OK)
        *state = check.state;
    return status;
}

/* ---- Frames ---- */

/* Replaces the name of a frame's function by its value. */
static void resolve_function(const struct cairn_frame_state *state,
                             const struct record_values *values,
                             struct cairn_interpreter_frame *frame)
{
    if (has_named_functions(values, state->first_word))
        find_name(state->record, frame->function, &frame->function);
}

enum cairn_status cairn_frame_state_frame(const struct cairn_frame_state *state, uint32_t index,
                                          struct cairn_interpreter_frame *found,
                                          struct cairn_error *error)
{
    if (index >= state->frame_count)
        return error_set(error, CAIRN_ERROR_RANGE, index,
                         "frame %u is out of range: the frame state has %u frames", index,
                         state->frame_count);
    const struct record_values values = record_values_of(state->record);
    uint32_t location = state->first_word + FRAME_STATE_HEADER_WORDS;
    struct cairn_interpreter_frame frame = frame_at(&values, location);
    for (uint32_t i = 0; i < index; i++)
        frame = frame_at(&values, end_of(&frame));
    resolve_function(state, &values, &frame);
    *found = frame;
    return CAIRN_OK;
}

/* ---- Values ---- */

/* Reads a value from the bytes in the words from location `first` on. */
static enum cairn_status read_bytes(const struct record_values *values, uint32_t first,
                                    struct cairn_type type, struct cairn_value *value,
                                    struct cairn_error *error)
{
    unsigned char bytes[CAIRN_VALUE_BYTES_MAX];
    size_t size = cairn_type_size(type);
    size_t element = cairn_type_size(cairn_type_vector(type, 0));
    bool is_little = CAIRN_BYTE_ORDER_NATIVE == CAIRN_LITTLE_ENDIAN;
    for (size_t i = 0; i < size; i++) {
        uint64_t word = word_at(values, first + (uint32_t)(i / WORD_BYTES));
        size_t in_element = i % element;
        size_t place = is_little ? in_element : element - 1 - in_element;
        bytes[i - in_element + place] = (unsigned char)(word >> i % WORD_BYTES * BITS_IN_BYTE);
    }
    return value_of_bytes(type, bytes, size, value, error);
}

/* Reads a value that the code has stored at an address in the frame. */
static enum cairn_status read_stored(const struct cairn_frame_state *state, uint32_t location,
                                     struct cairn_type type, struct cairn_value *value,
                                     struct cairn_error *error)
{
    const struct cairn_type pointer = CAIRN_POINTER;
    const struct record_values values = record_values_of(state->record);
    struct cairn_value address;
    enum cairn_status status = cairn_frame_at_location(
        state->frame, record_values_location(&values, location), pointer, &address, error);
    if (status != CAIRN_OK)
        return status;
    const struct storage place = {STORAGE_MEMORY, cairn_type_size(type)};
    storage_read(type, place, (const void *)(uintptr_t)value_unsigned(&address), value);
    return CAIRN_OK;
}

static enum cairn_status read_slot(const struct cairn_frame_state *state, uint32_t location,
                                   struct cairn_value *value, struct cairn_error *error)
{
    const struct record_values values = record_values_of(state->record);
    struct slot slot = unpack_slot(word_at(&values, location));
    struct cairn_location place = {.kind = CAIRN_LOCATION_CONSTANT_INDEX, .size = WORD_BYTES};
    switch (slot.kind) {
    case FRAME_STATE_STORED:
        if (slot.type.kind != CAIRN_TYPE_VOID)
            return read_stored(state, state->first_value + slot.value, slot.type, value, error);
        *value = (struct cairn_value){.type = {.kind = CAIRN_TYPE_VOID}};
        return CAIRN_OK;
    case FRAME_STATE_BYTES:
        return read_bytes(&values, state->first_value + slot.value, slot.type, value, error);
    case FRAME_STATE_NUMBER:
        place.constant = (uint64_t)slot.number;
        break;
    case FRAME_STATE_VALUE:
        if (slot.is_name)
            find_name(state->record, word_at(&values, state->first_value + slot.value),
                      &place.constant);
        else
            place = record_values_location(&values, state->first_value + slot.value);
        break;
    }
    return cairn_frame_at_location(state->frame, place, slot.type, value, error);
}

enum cairn_status cairn_frame_state_value(const struct cairn_frame_state *state,
                                          const struct cairn_interpreter_frame *in, uint32_t index,
                                          struct cairn_value *value, struct cairn_error *error)
{
    if (index < in->local_count + in->stack_count)
        return read_slot(state, in->first_slot + index, value, error);
    return error_set(error, CAIRN_ERROR_RANGE, index,
                     "slot %u is out of range: the interpreter frame has %u locals and %u stack "
                     "entries",
                     index, in->local_count, in->stack_count);
}

/* ---- Filling frames ---- */

/* A frame that is being filled. */
struct filling {
    const struct cairn_frame_state *state;
    const struct cairn_frame_writer *writer;
    struct cairn_interpreter_frame frame;
    uint32_t number;
    struct cairn_frame_slots slots;
    struct cairn_error *error;
};

/* Sets an error about a slot of the frame. `why` is a sentence about it. */
static enum cairn_status refuse_slot(const struct filling *filling, enum cairn_status status,
                                     uint32_t index, const char *why)
{
    bool is_local = index < filling->frame.local_count;
    return error_set(filling->error, status, index, "%s %u of interpreter frame %u %s",
                     is_local ? "local" : "stack entry",
                     is_local ? index : index - filling->frame.local_count, filling->number, why);
}

static enum cairn_status write_raw(const struct filling *filling, uint32_t index, uint64_t *slot,
                                   const struct cairn_value *value)
{
    char why[TYPE_NAME_BYTES + 60];
    char type[TYPE_NAME_BYTES];
    if (value->type.kind == CAIRN_TYPE_VOID) {
        *slot = filling->writer->dead;
        return CAIRN_OK;
    }
    if (value->type.element_count == 0 && value->size <= WORD_BYTES) {
        *slot = cairn_value_bits(value);
        return CAIRN_OK;
    }
    cairn_type_format(value->type, type, sizeof type);
    snprintf(why, sizeof why, "is of type %s, which no raw slot of 64 bits can hold", type);
    return refuse_slot(filling, CAIRN_ERROR_UNSUPPORTED, index, why);
}

static enum cairn_status fill_slot(const struct filling *filling, uint32_t index)
{
    struct cairn_value value;
    const struct cairn_frame_writer *writer = filling->writer;
    uint32_t local_count = filling->frame.local_count;
    bool is_local = index < local_count;
    uint64_t *slots = is_local ? filling->slots.locals : filling->slots.stack;
    if (slots == NULL && writer->value == NULL)
        return refuse_slot(filling, CAIRN_ERROR_ARGUMENT, index,
                           "has neither a raw slot nor a function that takes its value");
    enum cairn_status status =
        cairn_frame_state_value(filling->state, &filling->frame, index, &value, filling->error);
    if (status != CAIRN_OK)
        return status;
    if (slots != NULL)
        return write_raw(filling, index, &slots[is_local ? index : index - local_count], &value);
    if (writer->value(&filling->frame, index, &value, writer->user))
        return CAIRN_OK;
    return refuse_slot(filling, CAIRN_ERROR_STATE, index, "was refused by the host");
}

enum cairn_status cairn_frame_state_write(const struct cairn_frame_state *state,
                                          const struct cairn_frame_writer *writer,
                                          struct cairn_error *error)
{
    if (state == NULL || writer == NULL || writer->begin == NULL)
        return error_set(error, CAIRN_ERROR_ARGUMENT, 0, "cairn_frame_state_write: `%s` is NULL",
                         state == NULL    ? "state"
                         : writer == NULL ? "writer"
                                          : "writer->begin");
    const struct record_values values = record_values_of(state->record);
    uint32_t location = state->first_word + FRAME_STATE_HEADER_WORDS;
    for (uint32_t i = 0; i < state->frame_count; i++) {
        struct filling filling = {
            .state = state,
            .writer = writer,
            .frame = frame_at(&values, location),
            .number = i,
            .error = error,
        };
        location = end_of(&filling.frame);
        resolve_function(state, &values, &filling.frame);
        if (!writer->begin(&filling.frame, i, &filling.slots, writer->user))
            return error_set(error, CAIRN_ERROR_STATE, i,
                             "the host refused interpreter frame %u of %u", i, state->frame_count);
        for (uint32_t j = 0; j < filling.frame.local_count + filling.frame.stack_count; j++) {
            enum cairn_status status = fill_slot(&filling, j);
            if (status != CAIRN_OK)
                return status;
        }
    }
    return CAIRN_OK;
}
