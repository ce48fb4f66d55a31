/*
 * Tests of reading frame states from handwritten records, valid and invalid ones, on every machine.
 * check_llvm_frame_state.c tests frame states that LLVM has compiled.
 *
 * SPDX-License-Identifier: MIT
 */
#include "frame/frame.h"
#include "stackmap_support.h"
#include "value/representation.h"

#include "arch/arch.h"
#include "base/type.h"

#include <cairn/frame_state.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { CODE = 0x1000, LOCATIONS_MAX = 2048, STACK_WORDS = 64, ROUNDS = 3000 };

/* ---- A record, and a frame for it ---- */

static uint64_t stack[STACK_WORDS + CAIRN_VALUE_BYTES_MAX / 8]; /* any value may begin in it */
static struct cairn_context no_registers;
static struct cairn_frame frame;
static cairn_table *table;
static struct cairn_record record;
static struct cairn_frame_state state;
static struct cairn_error error;

static struct cairn_location locations[LOCATIONS_MAX];
static uint64_t constants[LOCATIONS_MAX];
static uint32_t count;

static void set_up(void)
{
    table = NULL;
    count = 0;
    frame = (struct cairn_frame){.pc = CODE, .sp = (uintptr_t)stack, .context = &no_registers};
    state = (struct cairn_frame_state){.frame_count = 77};
    error = (struct cairn_error){.status = CAIRN_OK};
}

static void tear_down(void) { cairn_table_destroy(table); }

static void put(struct cairn_location location)
{
    ck_assert_uint_lt(count, LOCATIONS_MAX);
    locations[count++] = location;
}

/* Returns a constant of the kind that LLVM would use. */
static struct cairn_location constant(uint64_t word)
{
    bool is_small = (int64_t)word == (int32_t)word;
    constants[count] = word;
    return (struct cairn_location){
        .kind = is_small ? CAIRN_LOCATION_CONSTANT : CAIRN_LOCATION_CONSTANT_INDEX,
        .size = 8,
        .offset = is_small ? (int32_t)word : (int32_t)count,
    };
}

static void put_word(uint64_t word) { put(constant(word)); }

static void put_stack(uint32_t word)
{
    put((struct cairn_location){.kind = CAIRN_LOCATION_INDIRECT,
                                .size = 8,
                                .dwarf = arch_host_layout.stack_pointer,
                                .offset = (int32_t)(word * sizeof *stack)});
}

/* Writes the address of a word of the stack. */
static void put_address(uint32_t word)
{
    put_stack(word);
    locations[count - 1].kind = CAIRN_LOCATION_DIRECT;
}

/* Makes the table of a section with one record, which has the first `location_count` locations. */
static void make_record(uint32_t location_count)
{
    static const struct cairn_stackmap_function function = {CODE, 8, 1};
    const struct sample_record sample = {
        .id = 5, .location_count = location_count, .locations = locations};
    const struct sample_map map = {3, 0, 1, LOCATIONS_MAX, 1, &function, constants, &sample};
    cairn_table_destroy(table);
    table = section_make_table(&map);
    record = (struct cairn_record){table, 0};
}

static enum cairn_status read_at(uint32_t first)
{
    return cairn_frame_state_read(&frame, record, first, &state, &error);
}

static enum cairn_status read_all(void)
{
    make_record(count);
    return read_at(0);
}

/* ---- Slots, in the encoding of doc/exits-and-frames.md ---- */

enum { STORED, VALUE, NUMBER, BYTES };

static uint64_t type_word(uint64_t kind, struct cairn_type type)
{
    uint64_t parameter = type.kind == CAIRN_TYPE_INTEGER   ? type.bits - 1
                         : type.kind == CAIRN_TYPE_POINTER ? type.address_space
                                                           : 0;
    return kind | (uint64_t)type.kind << 2 | parameter << 6;
}

static uint64_t reference(uint64_t kind, struct cairn_type type, uint64_t value)
{
    return type_word(kind, type) | value << 14 | (uint64_t)type.element_count << 30;
}

static uint64_t small_number(struct cairn_type type, int64_t number)
{
    return type_word(NUMBER, type) | (uint64_t)number << 14;
}

static struct cairn_type wide(enum cairn_type_kind kind, uint32_t bits, uint32_t elements)
{
    return (struct cairn_type){.kind = kind, .bits = bits, .element_count = elements};
}

static void put_header(uint64_t frames, uint64_t values)
{
    put_word(CAIRN_FRAME_STATE_MAGIC | CAIRN_FRAME_STATE_VERSION);
    put_word(frames | values << 16);
}

static void put_frame(uint64_t function, uint64_t position, uint64_t locals, uint64_t height)
{
    put_word(function);
    put_word(position);
    put_word(locals | height << 16);
}

/* Writes two frames. They share the last value. */
static void put_two_frames(void)
{
    put_header(2, 4);
    put_frame(11, 0x123456789ABCDEF, 2, 1);
    put_word(reference(VALUE, CAIRN_INTEGER(64), 3));
    put_word(0);
    put_word(small_number(CAIRN_INTEGER(8), -3));
    put_frame(UINT64_MAX, 22, 1, 2);
    put_word(reference(VALUE, CAIRN_INTEGER(32), 3));
    put_word(reference(VALUE, CAIRN_DOUBLE, 0));
    put_word(reference(BYTES, wide(CAIRN_TYPE_INTEGER, 32, 4), 1));
    put_word(UINT64_C(0x4004000000000000));
    put_word(UINT64_C(0x2222222211111111));
    put_word(UINT64_C(0x4444444433333333));
    put_stack(3);
}

/* ---- Reading ---- */

static struct cairn_interpreter_frame frame_of(uint32_t index)
{
    struct cairn_interpreter_frame found;
    ck_assert_ok(cairn_frame_state_frame(&state, index, &found, &error));
    return found;
}

static struct cairn_value local_of(uint32_t in, uint32_t index)
{
    struct cairn_value value;
    struct cairn_interpreter_frame found = frame_of(in);
    enum cairn_status status = cairn_frame_state_value(&state, &found, index, &value, &error);
    ck_assert_msg(status == CAIRN_OK, "%s", error.message);
    return value;
}

static struct cairn_value stack_of(uint32_t in, uint32_t index)
{
    struct cairn_value value;
    struct cairn_interpreter_frame found = frame_of(in);
    index += found.local_count;
    enum cairn_status status = cairn_frame_state_value(&state, &found, index, &value, &error);
    ck_assert_msg(status == CAIRN_OK, "%s", error.message);
    return value;
}

START_TEST(frames_are_what_was_encoded)
{
    put_two_frames();
    ck_assert_ok(read_all());
    ck_assert_uint_eq(state.frame_count, 2);
    struct cairn_interpreter_frame outer = frame_of(0);
    ck_assert_uint_eq(outer.function, 11);
    ck_assert_uint_eq(outer.position, 0x123456789ABCDEF);
    ck_assert_uint_eq(outer.local_count, 2);
    ck_assert_uint_eq(outer.stack_count, 1);
    struct cairn_interpreter_frame inner = frame_of(1);
    ck_assert_uint_eq(inner.function, UINT64_MAX);
    ck_assert_uint_eq(inner.position, 22);
    ck_assert_uint_eq(inner.local_count, 1);
    ck_assert_uint_eq(inner.stack_count, 2);
    ck_assert_uint_eq(inner.flags, 0);
}
END_TEST

START_TEST(values_have_the_types_of_their_slots)
{
    stack[3] = (uint64_t)-1234567;
    put_two_frames();
    ck_assert_ok(read_all());
    struct cairn_value value = local_of(0, 0);
    ck_assert_int_eq(cairn_value_signed(&value), -1234567);
    ck_assert_uint_eq(value.type.bits, 64);
    value = stack_of(0, 0);
    ck_assert_int_eq(cairn_value_signed(&value), -3);
    ck_assert_uint_eq(value.type.bits, 8);
    value = stack_of(1, 0);
    ck_assert_double_eq(cairn_value_double(&value), 2.5);
    value = stack_of(1, 1);
    ck_assert_uint_eq(value.type.element_count, 4);
    for (uint32_t i = 0; i < 4; i++) {
        uint32_t element;
        memcpy(&element, value.bytes + i * sizeof element, sizeof element);
        ck_assert_uint_eq(element, (i + 1) * 0x11111111);
    }
}
END_TEST

START_TEST(a_value_listed_twice_is_read_as_each_slot_says)
{
    stack[3] = UINT64_C(0x11223344AABBCCDD);
    put_two_frames();
    ck_assert_ok(read_all());
    struct cairn_value value = local_of(0, 0);
    ck_assert_uint_eq(value_unsigned(&value), 0x11223344AABBCCDD);
    value = local_of(1, 0);
    ck_assert_uint_eq(value.type.bits, 32);
    ck_assert_uint_eq(value_unsigned(&value), 0xAABBCCDD);
}
END_TEST

static const struct cairn_type stored_types[] = {
    {.kind = CAIRN_TYPE_INTEGER, .bits = 1},
    {.kind = CAIRN_TYPE_INTEGER, .bits = 13},
    {.kind = CAIRN_TYPE_INTEGER, .bits = 128},
    {.kind = CAIRN_TYPE_POINTER, .bits = 64, .address_space = 3},
    {.kind = CAIRN_TYPE_FLOAT, .bits = 32},
    {.kind = CAIRN_TYPE_FP128, .bits = 128},
    {.kind = CAIRN_TYPE_DOUBLE, .bits = 64, .element_count = 8},
    {.kind = CAIRN_TYPE_INTEGER, .bits = 8, .element_count = 3},
};

START_TEST(a_stored_value_is_read_as_a_store_writes_it)
{
    struct cairn_type type = stored_types[_i];
    unsigned char bytes[CAIRN_VALUE_BYTES_MAX] = {0};
    size_t size = cairn_type_size(type);
    bytes[0] = 1; /* fits into all types in little-endian order */
    for (size_t i = 0; i < size && type.bits % 8 == 0; i++)
        bytes[i] = (unsigned char)(i + 1);
    memset(stack, 0, sizeof stack);
    memcpy(&stack[2], bytes, size);
    put_header(1, 1);
    put_frame(0, 0, 1, 0);
    put_word(reference(STORED, type, 0));
    put_address(2);
    ck_assert_ok(read_all());
    struct cairn_value value = local_of(0, 0);
    ck_assert_uint_eq(value.size, size);
    ck_assert_int_eq(value.type.kind, type.kind);
    if (type.bits % 8 == 0 || CAIRN_BYTE_ORDER_NATIVE == CAIRN_LITTLE_ENDIAN)
        ck_assert_mem_eq(value.bytes, bytes, size);
}
END_TEST

START_TEST(a_dead_local_is_void)
{
    put_two_frames();
    ck_assert_ok(read_all());
    struct cairn_value value = local_of(0, 1);
    ck_assert_int_eq(value.type.kind, CAIRN_TYPE_VOID);
    ck_assert_uint_eq(value.size, 0);
}
END_TEST

START_TEST(flags_are_the_hosts)
{
    put_header(1, 0);
    put_word(1);
    put_word(2);
    put_word(UINT64_C(0xFEDCBA9800000000));
    ck_assert_ok(read_all());
    ck_assert_uint_eq(frame_of(0).flags, 0xFEDCBA98);
    ck_assert_uint_eq(frame_of(0).local_count + frame_of(0).stack_count, 0);
}
END_TEST

START_TEST(a_state_may_be_between_other_live_values)
{
    stack[3] = 7;
    put_stack(0);
    put_stack(1);
    put_two_frames();
    put_stack(2);
    make_record(count);
    ck_assert_ok(read_at(2));
    struct cairn_value value = local_of(0, 0);
    ck_assert_int_eq(cairn_value_signed(&value), 7);
    ck_assert_uint_eq(state.next_live_value, count - 1);
    ck_assert_int_eq(read_at(1), CAIRN_ERROR_CORRUPT);
    ck_assert_int_eq(read_at(3), CAIRN_ERROR_CORRUPT);
}
END_TEST

START_TEST(integers_of_every_width_are_small_numbers)
{
    for (uint32_t bits = 1; bits <= 256; bits++) {
        unsigned char ones[32];
        memset(ones, 0xFF, sizeof ones);
        count = 0;
        put_header(1, 0);
        put_frame(0, 0, 1, 0);
        put_word(small_number(CAIRN_INTEGER(bits), -1));
        ck_assert_ok(read_all());
        struct cairn_value value = local_of(0, 0);
        size_t size = (bits + 7) / 8;
        unsigned char *top =
            CAIRN_BYTE_ORDER_NATIVE == CAIRN_LITTLE_ENDIAN ? ones + size - 1 : ones;
        if (bits % 8 != 0)
            *top = (unsigned char)((1U << bits % 8) - 1);
        ck_assert_uint_eq(value.size, size);
        ck_assert_mem_eq(value.bytes, ones, size);
    }
}
END_TEST

/* ---- Writing frames ---- */

enum { RAW_SLOTS = 4, DEAD_SLOT = 0xDEAD };

/* An interpreter whose first `raw_count` frames have raw slots. */
struct interpreter {
    uint32_t raw_count;
    uint32_t refused_frame;
    uint32_t refused_slot; /* of a frame that is not raw */
    uint32_t frame_count;
    struct cairn_interpreter_frame frames[2];
    uint64_t locals[2][RAW_SLOTS];
    uint64_t stacks[2][RAW_SLOTS];
    struct cairn_value values[RAW_SLOTS]; /* of the last frame that is not raw */
};

static bool begin_frame(const struct cairn_interpreter_frame *from, uint32_t index,
                        struct cairn_frame_slots *slots, void *user)
{
    struct interpreter *interpreter = user;
    ck_assert_uint_eq(index, interpreter->frame_count);
    if (index == interpreter->refused_frame)
        return false;
    interpreter->frames[interpreter->frame_count++] = *from;
    if (index < interpreter->raw_count)
        *slots = (struct cairn_frame_slots){interpreter->locals[index], interpreter->stacks[index]};
    return true;
}

static bool take_value(const struct cairn_interpreter_frame *from, uint32_t index,
                       const struct cairn_value *value, void *user)
{
    struct interpreter *interpreter = user;
    ck_assert_uint_lt(index, from->local_count + from->stack_count);
    interpreter->values[index] = *value;
    return index != interpreter->refused_slot;
}

/* Writes the two frames, with a limit on each part of the interpreter. */
static enum cairn_status write_frames(struct interpreter *interpreter, bool takes_values)
{
    const struct cairn_frame_writer writer = {
        .begin = begin_frame,
        .value = takes_values ? take_value : NULL,
        .user = interpreter,
        .dead = DEAD_SLOT,
    };
    stack[3] = UINT64_C(0x11223344AABBCCDD);
    count = 0;
    put_two_frames();
    ck_assert_ok(read_all());
    return cairn_frame_state_write(&state, &writer, &error);
}

START_TEST(frames_are_written_as_raw_slots_and_as_typed_values)
{
    struct interpreter interpreter = {
        .raw_count = 1, .refused_frame = UINT32_MAX, .refused_slot = UINT32_MAX};
    ck_assert_ok(write_frames(&interpreter, true));
    ck_assert_uint_eq(interpreter.frame_count, 2);
    ck_assert_uint_eq(interpreter.frames[0].function, 11);
    ck_assert_uint_eq(interpreter.frames[1].position, 22);
    ck_assert_uint_eq(interpreter.locals[0][0], 0x11223344AABBCCDD);
    ck_assert_uint_eq(interpreter.locals[0][1], DEAD_SLOT);
    ck_assert_uint_eq(interpreter.locals[0][2], 0);
    ck_assert_uint_eq(interpreter.stacks[0][0], 0xFD); /* -3 as an i8 */
    ck_assert_uint_eq(value_unsigned(&interpreter.values[0]), 0xAABBCCDD);
    ck_assert_double_eq(cairn_value_double(&interpreter.values[1]), 2.5);
    ck_assert_uint_eq(interpreter.values[2].type.element_count, 4);
}
END_TEST

START_TEST(what_the_interpreter_cannot_take_is_refused)
{
    struct interpreter raw = {
        .raw_count = 2, .refused_frame = UINT32_MAX, .refused_slot = UINT32_MAX};
    ck_assert_int_eq(write_frames(&raw, true), CAIRN_ERROR_UNSUPPORTED);
    ck_assert_str_eq(error.message, "stack entry 1 of interpreter frame 1 is of type <4 x i32>, "
                                    "which no raw slot of 64 bits can hold");
    struct interpreter full = {.refused_frame = 1, .refused_slot = UINT32_MAX};
    ck_assert_int_eq(write_frames(&full, true), CAIRN_ERROR_STATE);
    ck_assert_str_eq(error.message, "the host refused interpreter frame 1 of 2");
    struct interpreter choosy = {.refused_frame = UINT32_MAX, .refused_slot = 1};
    ck_assert_int_eq(write_frames(&choosy, true), CAIRN_ERROR_STATE);
    ck_assert_str_eq(error.message, "local 1 of interpreter frame 0 was refused by the host");
    struct interpreter deaf = {.refused_frame = UINT32_MAX, .refused_slot = UINT32_MAX};
    ck_assert_int_eq(write_frames(&deaf, false), CAIRN_ERROR_ARGUMENT);
    ck_assert_str_eq(error.message, "local 0 of interpreter frame 0 has neither a raw slot nor a "
                                    "function that takes its value");
    const struct cairn_frame_writer nothing = {.user = &deaf};
    ck_assert_int_eq(cairn_frame_state_write(&state, &nothing, &error), CAIRN_ERROR_ARGUMENT);
    ck_assert_int_eq(cairn_frame_state_write(&state, NULL, NULL), CAIRN_ERROR_ARGUMENT);
}
END_TEST

/* ---- Missing frames and slots ---- */

START_TEST(frames_and_slots_that_there_are_not_are_refused)
{
    struct cairn_interpreter_frame found = {.function = 99};
    struct cairn_value value = {.size = 99};
    put_two_frames();
    ck_assert_ok(read_all());
    ck_assert_int_eq(cairn_frame_state_frame(&state, 2, &found, &error), CAIRN_ERROR_RANGE);
    ck_assert_str_eq(error.message, "frame 2 is out of range: the frame state has 2 frames");
    ck_assert_uint_eq(found.function, 99);
    found = frame_of(0);
    ck_assert_int_eq(cairn_frame_state_value(&state, &found, 3, &value, &error), CAIRN_ERROR_RANGE);
    ck_assert_str_eq(error.message,
                     "slot 3 is out of range: the interpreter frame has 2 locals and 1 "
                     "stack entries");
    ck_assert_uint_eq(value.size, 99);
}
END_TEST

START_TEST(a_state_needs_live_values_to_begin_at)
{
    put_two_frames();
    make_record(count);
    ck_assert_int_eq(read_at(count), CAIRN_ERROR_RANGE);
    ck_assert_ptr_nonnull(strstr(error.message, "has 18 live values, so no frame state begins at "
                                                "number 18"));
    ck_assert_int_eq(read_at(UINT32_MAX), CAIRN_ERROR_RANGE);
    ck_assert_uint_eq(state.frame_count, 77);
    make_record(0);
    ck_assert_int_eq(read_at(0), CAIRN_ERROR_RANGE);
}
END_TEST

START_TEST(a_state_needs_a_frame_and_a_record)
{
    const struct cairn_record none = {NULL, 0};
    put_two_frames();
    make_record(count);
    ck_assert_int_eq(cairn_frame_state_read(NULL, record, 0, &state, &error), CAIRN_ERROR_ARGUMENT);
    ck_assert_int_eq(cairn_frame_state_read(&frame, none, 0, &state, &error), CAIRN_ERROR_ARGUMENT);
    ck_assert_int_eq(cairn_frame_state_read(&frame, record, 0, NULL, &error), CAIRN_ERROR_ARGUMENT);
}
END_TEST

/* ---- Damaged states ---- */

static void expect_corrupt(const char *sentence)
{
    ck_assert_int_eq(read_all(), CAIRN_ERROR_CORRUPT);
    ck_assert_msg(strstr(error.message, sentence) != NULL, "%s", error.message);
    ck_assert_uint_eq(state.frame_count, 77);
}

START_TEST(a_state_that_ends_too_early_is_refused_wherever_it_ends)
{
    put_two_frames();
    for (uint32_t length = 1; length < count; length++) {
        char sentence[64];
        make_record(length);
        ck_assert_int_eq(read_at(0), CAIRN_ERROR_CORRUPT);
        snprintf(sentence, sizeof sentence, "record 5 ends after %u live values", length);
        ck_assert_msg(strstr(error.message, sentence) != NULL, "%s", error.message);
        ck_assert_uint_eq(state.frame_count, 77);
    }
    make_record(count);
    ck_assert_ok(read_at(0));
}
END_TEST

START_TEST(words_that_are_no_constants_are_refused)
{
    put_two_frames();
    const uint32_t all = count;
    for (uint32_t i = 0; i < all; i++) {
        /* Skips the values: one is on the stack already, and one is a double, which may be
         * there. */
        if (i == all - 4 || i == all - 1)
            continue;
        struct cairn_location before = locations[i];
        put_stack(0);
        locations[i] = locations[--count];
        char sentence[64];
        snprintf(sentence, sizeof sentence, "live value %u of record 5, a frame state's ", i);
        expect_corrupt(sentence);
        ck_assert_ptr_nonnull(strstr(error.message, "is Indirect and not a constant"));
        ck_assert_uint_eq(error.offset, i);
        locations[i] = before;
    }
}
END_TEST

START_TEST(something_else_is_not_taken_for_a_state)
{
    put_word(4711);
    put_word(1);
    expect_corrupt(
        "live value 0 of record 5 is a number of 4711, and not the beginning of a frame state");
}
END_TEST

START_TEST(a_version_that_is_not_known_is_refused)
{
    put_word(CAIRN_FRAME_STATE_MAGIC | 3);
    ck_assert_int_eq(read_all(), CAIRN_ERROR_VERSION);
    ck_assert_str_eq(error.message, "live value 0 of record 5 begins a frame state of version 3; "
                                    "this Cairn knows versions 1 to 2");
    count = 0;
    put_word(CAIRN_FRAME_STATE_MAGIC);
    ck_assert_int_eq(read_all(), CAIRN_ERROR_VERSION);
    ck_assert_uint_eq(state.frame_count, 77);
}
END_TEST

START_TEST(states_of_version_1_are_read)
{
    put_two_frames();
    locations[0] = constant(CAIRN_FRAME_STATE_MAGIC | 1);
    ck_assert_ok(read_all());
}
END_TEST

START_TEST(a_state_without_frames_is_refused)
{
    put_header(0, 0);
    expect_corrupt("live value 1 of record 5 is a word of 0, and not the number");
}
END_TEST

START_TEST(counts_with_more_bits_are_refused)
{
    put_two_frames();
    locations[1] = constant(UINT64_C(1) << 33 | 2);
    constants[1] = constants[count];
    locations[1].offset = 1;
    expect_corrupt("live value 1 of record 5 is a word of 8589934594, and not the number");
}
END_TEST

START_TEST(counts_of_more_slots_than_there_are_are_refused)
{
    put_header(1, 0);
    put_frame(0, 0, 0xFFFF, 0xFFFF);
    expect_corrupt("record 5 ends after 5 live values, before a frame state's slot");
}
END_TEST

/* Writes a state of one frame with this slot, and one value. */
static void put_slot(uint64_t slot)
{
    count = 0;
    put_header(1, 1);
    put_frame(0, 0, 1, 0);
    put_word(slot);
    put_word(0);
}

static const uint64_t bad_slots[] = {
    1 << 6,              /* dead, but with a parameter */
    6 << 2 | 1 << 14,    /* a stored value past the last one */
    1,                   /* a value of type void */
    1 | 10 << 2,         /* a value of type other */
    1 | 15 << 2,         /* a value of an invalid type */
    1 | 6 << 2 | 1 << 6, /* a double with a parameter */
    2,                   /* a number of type void */
    2 | 8 << 2,          /* a floating-point number of 128 bits */
    2 | 7 << 2,
    3,                    /* bytes of type void */
    1 | 6 << 2 | 1 << 14, /* a value past the last one */
    1 | 6 << 2 | UINT64_C(0xFFFF) << 14,
    3 | 8 << 2,                     /* bytes of which half are past the end */
    1 | 6 << 2 | UINT64_C(9) << 30, /* a vector of 72 bytes */
    1 | 1 << 2 | 7 << 6 | UINT64_C(65) << 30,
    1 | 6 << 2 | UINT64_C(1) << 38, /* a bit outside of the fields */
    1 | 6 << 2 | UINT64_C(1) << 63,
};

START_TEST(slots_that_say_nothing_are_refused)
{
    put_slot(bad_slots[_i]);
    expect_corrupt("live value 5 of record 5 is a ");
    ck_assert_uint_eq(error.offset, 5);
}
END_TEST

START_TEST(a_stored_value_that_is_not_in_the_frame_is_refused)
{
    static const enum cairn_location_kind kinds[] = {
        CAIRN_LOCATION_REGISTER, CAIRN_LOCATION_INDIRECT, CAIRN_LOCATION_CONSTANT};
    put_slot(reference(STORED, CAIRN_INTEGER(64), 0));
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        locations[6] = (struct cairn_location){
            .kind = kinds[i], .size = 8, .dwarf = arch_host_layout.stack_pointer};
        expect_corrupt("live value 6 of record 5, where a frame state's value is stored, is ");
        ck_assert_uint_eq(error.offset, 6);
    }
}
END_TEST

START_TEST(names_that_the_module_does_not_have_are_refused)
{
    put_slot(reference(VALUE, CAIRN_INTEGER(64), 0) | UINT64_C(1) << 37);
    expect_corrupt("live value 6 of record 5 is a name of 0, and not one of its module");
    put_slot(reference(VALUE, CAIRN_INTEGER(32), 0) | UINT64_C(1) << 37);
    expect_corrupt("and not of a type that a name has");
    put_two_frames();
    locations[1] = constant(UINT64_C(1) << 32 | 2);
    constants[1] = constants[count];
    locations[1].offset = 1;
    expect_corrupt("live value 2 of record 5 is a name of ");
}
END_TEST

START_TEST(a_value_that_the_frame_does_not_have_is_refused_alone)
{
    struct cairn_interpreter_frame found;
    struct cairn_value value = {.size = 99};
    put_slot(reference(VALUE, CAIRN_INTEGER(64), 0));
    locations[6] = (struct cairn_location){.kind = CAIRN_LOCATION_REGISTER, .size = 8, .dwarf = 3};
    ck_assert_ok(read_all());
    found = frame_of(0);
    ck_assert_int_eq(cairn_frame_state_value(&state, &found, 0, &value, &error),
                     CAIRN_ERROR_NOT_FOUND);
    ck_assert_uint_eq(value.size, 99);
}
END_TEST

/* ---- Random states ---- */

static uint64_t random_state;

static uint32_t below(uint32_t bound) { return sample_random(&random_state, bound); }

static uint64_t random_word(void)
{
    uint64_t word = sample_random_id(&random_state);
    return below(2) == 0 ? word : (uint64_t)((int64_t)word >> below(64));
}

enum { FRAMES_MAX = 6, SLOTS_MAX = 12 };

static struct expected {
    uint64_t function;
    uint64_t position;
    uint32_t flags;
    uint32_t counts[2];
    struct cairn_value values[2 * SLOTS_MAX];
} expected[FRAMES_MAX];

static uint64_t values[LOCATIONS_MAX];
static bool is_on_stack[LOCATIONS_MAX];
static bool is_stored[LOCATIONS_MAX];
static uint32_t value_count;

static struct cairn_type random_type(void)
{
    static const struct cairn_type types[] = {
        {.kind = CAIRN_TYPE_POINTER, .bits = 64}, {.kind = CAIRN_TYPE_HALF, .bits = 16},
        {.kind = CAIRN_TYPE_BFLOAT, .bits = 16},  {.kind = CAIRN_TYPE_FLOAT, .bits = 32},
        {.kind = CAIRN_TYPE_DOUBLE, .bits = 64},
    };
    return below(2) == 0 ? CAIRN_INTEGER(1 + below(64)) : types[below(5)];
}

static struct cairn_type random_wide_type(void)
{
    static const enum cairn_type_kind kinds[] = {CAIRN_TYPE_FP128, CAIRN_TYPE_PPC_FP128};
    if (below(3) == 0)
        return wide(kinds[below(2)], 128, 0);
    for (;;) {
        struct cairn_type type = cairn_type_vector(random_type(), 1 + below(64));
        if (cairn_type_size(type) != 0)
            return type;
    }
}

/* Returns a scalar of the lowest bits. */
static struct cairn_value scalar_of(struct cairn_type type, uint64_t bits)
{
    struct cairn_value value = cairn_value_of_integer(type.bits, (int64_t)bits);
    value.type = type;
    return value;
}

static uint64_t random_value_slot(struct cairn_value *value)
{
    struct cairn_type type = random_type();
    uint32_t index = value_count == 0 ? 0 : below(value_count);
    bool is_repeated = value_count > 0 && below(3) == 0 && !is_stored[index];
    if (!is_repeated)
        index = value_count++;
    if (!is_repeated) {
        values[index] = random_word();
        is_on_stack[index] = below(2) == 0 && index < STACK_WORDS;
    }
    *value = scalar_of(type, values[index]);
    return reference(VALUE, type, index);
}

static uint64_t random_stored_slot(struct cairn_value *value)
{
    struct cairn_type type = random_type();
    uint32_t index = value_count++;
    *value = scalar_of(type, random_word());
    memcpy(&stack[index], value->bytes, value->size);
    is_stored[index] = true;
    return reference(STORED, type, index);
}

static uint64_t random_number_slot(struct cairn_value *value)
{
    struct cairn_type type = random_type();
    int64_t number = (int64_t)random_word() >> (14 + below(50));
    *value = scalar_of(type, (uint64_t)number);
    return small_number(type, number);
}

/* Writes elements to words by shifts, and to the expected value in C's representation. */
static uint64_t random_bytes_slot(struct cairn_value *value)
{
    struct cairn_type type = random_wide_type();
    struct cairn_type element = cairn_type_vector(type, 0);
    size_t size = cairn_type_size(type);
    size_t element_size = cairn_type_size(element);
    uint32_t first = value_count;
    value_count += (uint32_t)(size + 7) / 8;
    for (uint32_t i = first; i < value_count; i++) {
        values[i] = 0;
        is_on_stack[i] = false;
    }
    unsigned char bytes[CAIRN_VALUE_BYTES_MAX];
    for (size_t i = 0; i < size; i++) {
        bool is_little = CAIRN_BYTE_ORDER_NATIVE == CAIRN_LITTLE_ENDIAN;
        bool is_top = i % element_size == element_size - 1;
        unsigned char byte = (unsigned char)below(256);
        if (is_top && element.bits % 8 != 0)
            byte &= (unsigned char)((1U << element.bits % 8) - 1);
        values[first + i / 8] |= (uint64_t)byte << i % 8 * 8;
        size_t begin = i - i % element_size;
        bytes[is_little ? i : begin + element_size - 1 - i % element_size] = byte;
    }
    ck_assert_ok(value_of_bytes(type, bytes, size, value, NULL));
    return reference(BYTES, type, first);
}

static uint64_t random_slot(struct cairn_value *value)
{
    switch (below(6)) {
    case 0:
        *value = (struct cairn_value){.size = 0};
        return 0;
    case 1:
        return random_number_slot(value);
    case 2:
        return random_bytes_slot(value);
    case 3:
        if (value_count < STACK_WORDS)
            return random_stored_slot(value);
        return random_value_slot(value);
    default:
        return random_value_slot(value);
    }
}

static void put_random_frame(struct expected *made)
{
    *made = (struct expected){.function = random_word(),
                              .position = random_word(),
                              .flags = below(2) == 0 ? 0 : (uint32_t)random_word(),
                              .counts = {below(SLOTS_MAX + 1), below(SLOTS_MAX + 1)}};
    put_word(made->function);
    put_word(made->position);
    put_word((uint64_t)made->flags << 32 | made->counts[1] << 16 | made->counts[0]);
    for (uint32_t i = 0; i < made->counts[0] + made->counts[1]; i++)
        put_word(random_slot(&made->values[i]));
}

static uint32_t put_random_state(void)
{
    uint32_t frames = 1 + below(FRAMES_MAX);
    count = 0;
    value_count = 0;
    memset(is_stored, 0, sizeof is_stored);
    put_header(frames, 0);
    for (uint32_t i = 0; i < frames; i++)
        put_random_frame(&expected[i]);
    for (uint32_t i = 0; i < value_count; i++) {
        if (is_stored[i])
            put_address(i);
        else if (is_on_stack[i])
            put_stack(i);
        else
            put_word(values[i]);
        if (is_on_stack[i] && !is_stored[i])
            stack[i] = values[i];
    }
    locations[1].offset = (int32_t)(value_count << 16 | frames);
    return frames;
}

static void check_values(const struct cairn_interpreter_frame *found, const struct expected *made)
{
    for (uint32_t i = 0; i < made->counts[0] + made->counts[1]; i++) {
        struct cairn_value value;
        enum cairn_status status = cairn_frame_state_value(&state, found, i, &value, &error);
        ck_assert_msg(status == CAIRN_OK, "%s", error.message);
        expect(type_equal(value.type, made->values[i].type));
        expect(value.size == made->values[i].size);
        expect(memcmp(value.bytes, made->values[i].bytes, value.size) == 0);
    }
}

START_TEST(random_states_are_read_as_they_were_written)
{
    random_state = sample_seed();
    for (uint32_t round = 0; round < ROUNDS; round++) {
        uint32_t frames = put_random_state();
        enum cairn_status status = read_all();
        ck_assert_msg(status == CAIRN_OK, "%s", error.message);
        expect(state.frame_count == frames);
        for (uint32_t i = 0; i < frames; i++) {
            struct cairn_interpreter_frame found = frame_of(i);
            expect(found.function == expected[i].function);
            expect(found.position == expected[i].position);
            expect(found.flags == expected[i].flags);
            expect(found.local_count == expected[i].counts[0]);
            expect(found.stack_count == expected[i].counts[1]);
            check_values(&found, &expected[i]);
        }
    }
}
END_TEST

/* Reading any state must end, and must not read outside of the record, which sanitizers check. */
static void read_everything(void)
{
    for (uint32_t i = 0; i < state.frame_count; i++) {
        struct cairn_value value;
        struct cairn_interpreter_frame found = frame_of(i);
        for (uint32_t j = 0; j < found.local_count + found.stack_count; j++)
            if (cairn_frame_state_value(&state, &found, j, &value, &error) == CAIRN_OK)
                expect(value.size == cairn_type_size(value.type));
    }
}

static void damage(uint32_t index)
{
    struct cairn_location *location = &locations[index];
    uint32_t bit = below(64);
    if (location->kind == CAIRN_LOCATION_CONSTANT_INDEX)
        constants[index] ^= UINT64_C(1) << bit;
    else if (location->kind == CAIRN_LOCATION_CONSTANT)
        location->offset ^= (int32_t)(UINT32_C(1) << bit % 32);
}

START_TEST(damaged_states_are_refused_or_read_to_their_end)
{
    uint32_t refused = 0;
    random_state = sample_seed();
    for (uint32_t round = 0; round < ROUNDS; round++) {
        put_random_state();
        for (uint32_t i = 0; i <= below(3); i++)
            damage(below(count));
        enum cairn_status status = read_all();
        bool is_expected =
            status == CAIRN_OK || status == CAIRN_ERROR_CORRUPT || status == CAIRN_ERROR_VERSION;
        expect(is_expected);
        refused += status != CAIRN_OK;
        if (status == CAIRN_OK)
            read_everything();
    }
    printf("check_frame_state: %u of %d damaged states were refused\n", refused, ROUNDS);
    ck_assert_uint_gt(refused, ROUNDS / 10);
    ck_assert_uint_lt(refused, ROUNDS);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("frame states");
    TCase *reading = tcase_create("reading");
    tcase_add_checked_fixture(reading, set_up, tear_down);
    tcase_add_test(reading, frames_are_what_was_encoded);
    tcase_add_test(reading, values_have_the_types_of_their_slots);
    tcase_add_test(reading, a_value_listed_twice_is_read_as_each_slot_says);
    tcase_add_loop_test(reading, a_stored_value_is_read_as_a_store_writes_it, 0,
                        sizeof stored_types / sizeof *stored_types);
    tcase_add_test(reading, a_dead_local_is_void);
    tcase_add_test(reading, flags_are_the_hosts);
    tcase_add_test(reading, a_state_may_be_between_other_live_values);
    tcase_add_test(reading, integers_of_every_width_are_small_numbers);
    tcase_add_test(reading, frames_are_written_as_raw_slots_and_as_typed_values);
    tcase_add_test(reading, what_the_interpreter_cannot_take_is_refused);
    tcase_add_test(reading, frames_and_slots_that_there_are_not_are_refused);
    tcase_add_test(reading, a_state_needs_live_values_to_begin_at);
    tcase_add_test(reading, a_state_needs_a_frame_and_a_record);
    suite_add_tcase(suite, reading);
    TCase *damaged = tcase_create("damaged");
    tcase_add_checked_fixture(damaged, set_up, tear_down);
    tcase_add_test(damaged, a_state_that_ends_too_early_is_refused_wherever_it_ends);
    tcase_add_test(damaged, words_that_are_no_constants_are_refused);
    tcase_add_test(damaged, something_else_is_not_taken_for_a_state);
    tcase_add_test(damaged, a_version_that_is_not_known_is_refused);
    tcase_add_test(damaged, states_of_version_1_are_read);
    tcase_add_test(damaged, a_state_without_frames_is_refused);
    tcase_add_test(damaged, a_stored_value_that_is_not_in_the_frame_is_refused);
    tcase_add_test(damaged, counts_with_more_bits_are_refused);
    tcase_add_test(damaged, counts_of_more_slots_than_there_are_are_refused);
    tcase_add_loop_test(damaged, slots_that_say_nothing_are_refused, 0,
                        (int)(sizeof bad_slots / sizeof *bad_slots));
    tcase_add_test(damaged, names_that_the_module_does_not_have_are_refused);
    tcase_add_test(damaged, a_value_that_the_frame_does_not_have_is_refused_alone);
    suite_add_tcase(suite, damaged);
    TCase *random = tcase_create("random");
    tcase_add_checked_fixture(random, set_up, tear_down);
    tcase_set_timeout(random, 120);
    tcase_add_test(random, random_states_are_read_as_they_were_written);
    tcase_add_test(random, damaged_states_are_refused_or_read_to_their_end);
    suite_add_tcase(suite, random);
    return run_suite(suite);
}
