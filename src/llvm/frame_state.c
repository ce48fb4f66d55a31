/*
 * Frame states: interpreter frames encoded as live values.
 *
 * The words come first, followed by the values that they refer to. The number of words depends only
 * on the counts of frames and slots, so words and values are written in one pass.
 *
 * SPDX-License-Identifier: MIT
 */
#include "format/frame_state.h"

#include "base/error.h"
#include "llvm/build.h"
#include "llvm/ir.h"
#include "llvm/name.h"
#include "llvm/types.h"

#include <cairn/frame_state.h>
#include <cairn/llvm.h>
#include <string.h>

enum {
    WORD_BYTES = 8,
    WORD_BITS = 64,
    BITS_IN_BYTE = 8,
    VALUE_WORDS_MAX = CAIRN_VALUE_BYTES_MAX / WORD_BYTES,
    LIVE_VALUES_MAX = 0xFFFF /* limit of a record */
};

/* ---- Counts ---- */

/* Returns the number of words of a frame state; 0 if there is no frame, or if the state would have
 * more live values than a record can hold. */
static uint32_t count_words(const struct cairn_encoded_frame *frames, uint32_t frame_count)
{
    uint64_t count = FRAME_STATE_HEADER_WORDS;
    if (frames == NULL || frame_count == 0)
        return 0;
    for (uint32_t i = 0; i < frame_count && count <= LIVE_VALUES_MAX; i++)
        count += (uint64_t)FRAME_STATE_FRAME_WORDS + frames[i].local_count + frames[i].stack_count;
    return count <= LIVE_VALUES_MAX ? (uint32_t)count : 0;
}

/* Returns the maximum number of values that slots take: a constant takes its words. */
static uint32_t limit_values(LLVMValueRef *values, uint32_t count)
{
    uint32_t limit = 0;
    for (uint32_t i = 0; values != NULL && i < count; i++) {
        if (values[i] == NULL || LLVMIsUndef(values[i]))
            continue;
        size_t size =
            LLVMIsConstant(values[i]) ? cairn_type_size(types_convert(LLVMTypeOf(values[i]))) : 0;
        limit += size <= WORD_BYTES ? 1 : (uint32_t)((size + WORD_BYTES - 1) / WORD_BYTES);
    }
    return limit;
}

uint32_t frame_state_capacity(const struct cairn_encoded_frame *frames, uint32_t frame_count)
{
    uint32_t words = count_words(frames, frame_count);
    uint32_t limit = words;
    for (uint32_t i = 0; words != 0 && i < frame_count; i++)
        limit += limit_values(frames[i].locals, frames[i].local_count) +
                 limit_values(frames[i].stack, frames[i].stack_count);
    return limit;
}

/* ---- The encoder ---- */

struct encoder {
    LLVMContextRef context;
    LLVMTypeRef int64;
    LLVMValueRef *words;
    uint32_t word_count;
    LLVMValueRef *values;
    uint32_t value_count;
    uint32_t value_limit;
    uint32_t capacity;
    struct cairn_error *error;
    /* The slot's place, for error messages. */
    uint32_t frame;
    const char *part;
    uint32_t index;
};

static LLVMValueRef number(const struct encoder *encoder, uint64_t value)
{
    return LLVMConstInt(encoder->int64, value, 0);
}

static void put_word(struct encoder *encoder, uint64_t word)
{
    encoder->words[encoder->word_count++] = number(encoder, word);
}

static enum cairn_status say_full(uint32_t capacity, struct cairn_error *error)
{
    return error_set(error, CAIRN_ERROR_RANGE, capacity,
                     "%u live values are too few for the frame state: without an array, "
                     "cairn_frame_state_encode counts how many it needs; a record has at most %u",
                     capacity, (unsigned)LIVE_VALUES_MAX);
}

/* Appends consecutive values, unless the encoder already has the same run of values. Comparing
 * pointers suffices, because LLVM uniques constants. */
static enum cairn_status put_values(struct encoder *encoder, const LLVMValueRef *run,
                                    uint32_t count, uint32_t *first)
{
    for (*first = 0; *first + count <= encoder->value_count; ++*first)
        if (memcmp(encoder->values + *first, run, count * sizeof *run) == 0)
            return CAIRN_OK;
    if (count > encoder->value_limit - encoder->value_count)
        return say_full(encoder->capacity, encoder->error);
    memcpy(encoder->values + encoder->value_count, run, count * sizeof *run);
    *first = encoder->value_count;
    encoder->value_count += count;
    return CAIRN_OK;
}

/* ---- Types ---- */

/* Packs a slot's kind and the type of an element. The bits above are not set: they depend on the
 * slot's kind. */
static uint64_t pack_type(enum frame_state_slot_kind kind, struct cairn_type type)
{
    uint32_t parameter = 0;
    if (type.kind == CAIRN_TYPE_INTEGER)
        parameter = type.bits - 1;
    else if (type.kind == CAIRN_TYPE_POINTER)
        parameter = type.address_space;
    return (uint64_t)kind | (uint64_t)type.kind << SLOT_TYPE_SHIFT |
           (uint64_t)parameter << SLOT_PARAMETER_SHIFT;
}

uint64_t frame_state_reference(enum frame_state_slot_kind kind, struct cairn_type type,
                               uint32_t value)
{
    return pack_type(kind, type) | (uint64_t)value << SLOT_VALUE_SHIFT |
           (uint64_t)type.element_count << SLOT_ELEMENTS_SHIFT;
}

/* Puts a name: its ID is a constant, and its type has 64 bits. */
static enum cairn_status put_name(struct encoder *encoder, struct cairn_type type, uint64_t id)
{
    uint32_t place = 0;
    LLVMValueRef value = number(encoder, id);
    enum cairn_status status = put_values(encoder, &value, 1, &place);
    if (status == CAIRN_OK)
        put_word(encoder, pack_type(FRAME_STATE_VALUE, type) | (uint64_t)place << SLOT_VALUE_SHIFT |
                              UINT64_C(1) << SLOT_NAME_SHIFT);
    return status;
}

/* ---- Constants ---- */

/* A constant's bytes. The bytes of each element, or of the scalar, are in little-endian order. */
struct constant {
    uint64_t words[VALUE_WORDS_MAX];
};

/* Returns 64 bits of an integer, from bit 64 * `index` on. The builder folds constants, so it emits
 * no instructions. */
static uint64_t part_of(const struct encoder *encoder, LLVMValueRef integer, unsigned index)
{
    if (LLVMGetIntTypeWidth(LLVMTypeOf(integer)) <= WORD_BITS)
        return index == 0 ? LLVMConstIntGetZExtValue(integer) : 0;
    LLVMBuilderRef builder = LLVMCreateBuilderInContext(encoder->context);
    LLVMValueRef distance =
        LLVMConstInt(LLVMTypeOf(integer), (unsigned long long)index * WORD_BITS, 0);
    LLVMValueRef part = LLVMBuildLShr(builder, integer, distance, "");
    part = LLVMBuildTrunc(builder, part, encoder->int64, "");
    LLVMDisposeBuilder(builder);
    return LLVMConstIntGetZExtValue(part);
}

/* Reads a scalar's bits, by way of an integer with these bits. Returns false if LLVM does not know
 * them. */
static bool read_scalar(const struct encoder *encoder, LLVMValueRef scalar, size_t at,
                        struct constant *constant)
{
    struct cairn_type type = types_convert(LLVMTypeOf(scalar));
    LLVMTypeRef integer_type = LLVMIntTypeInContext(encoder->context, type.bits);
    size_t size = cairn_type_size(type);
    uint64_t part = 0;
    if (LLVMIsUndef(scalar) || LLVMIsAConstantPointerNull(scalar) != NULL)
        scalar = LLVMConstNull(integer_type);
    while (
        type.kind == CAIRN_TYPE_POINTER && LLVMIsAConstantExpr(scalar) != NULL &&
        (LLVMGetConstOpcode(scalar) == LLVMBitCast || LLVMGetConstOpcode(scalar) == LLVMIntToPtr))
        scalar = LLVMGetOperand(scalar, 0);
    if (LLVMIsAConstantFP(scalar) != NULL)
        scalar = LLVMConstBitCast(scalar, integer_type);
    LLVMValueRef integer = LLVMIsAConstantInt(scalar);
    if (integer == NULL)
        return false;
    for (size_t i = 0; i < size; i++) {
        size_t place = at + i;
        if (i % WORD_BYTES == 0)
            part = part_of(encoder, integer, (unsigned)(i / WORD_BYTES));
        uint64_t byte = part >> i % WORD_BYTES * BITS_IN_BYTE & 0xFF;
        constant->words[place / WORD_BYTES] |= byte << place % WORD_BYTES * BITS_IN_BYTE;
    }
    return true;
}

/* Reads a constant's bits. Returns false if the value is not a constant, or if LLVM does not know
 * its bits. */
static bool read_constant(const struct encoder *encoder, LLVMValueRef value, struct cairn_type type,
                          struct constant *constant)
{
    size_t element = cairn_type_size(cairn_type_vector(type, 0));
    *constant = (struct constant){{0}};
    if (!LLVMIsConstant(value))
        return false;
    if (type.element_count == 0)
        return read_scalar(encoder, value, 0, constant);
    for (uint32_t i = 0; i < type.element_count; i++) {
        LLVMValueRef scalar = LLVMConstExtractElement(value, number(encoder, i));
        if (!read_scalar(encoder, scalar, i * element, constant))
            return false;
    }
    return true;
}

/* ---- Small numbers ---- */

/* Returns 64 bits of a constant, from bit 64 * `index` on. The last part is sign-extended. */
static int64_t signed_part(struct cairn_type type, const struct constant *constant, uint32_t index)
{
    uint32_t end = (index + 1) * WORD_BITS;
    uint32_t unused = end > type.bits ? end - type.bits : 0;
    return (int64_t)(constant->words[index] << unused) >> unused;
}

/* Sign-extends the scalar to 64 bits. Returns false if that does not represent the value. */
static bool as_number(struct cairn_type type, const struct constant *constant, int64_t *small)
{
    uint32_t count = (type.bits + WORD_BITS - 1) / WORD_BITS;
    if (type.element_count != 0 || (count > 1 && type.kind != CAIRN_TYPE_INTEGER))
        return false;
    *small = signed_part(type, constant, 0);
    for (uint32_t i = 1; i < count; i++)
        if (signed_part(type, constant, i) != (*small < 0 ? -1 : 0))
            return false;
    return true;
}

/* ---- Slots ---- */

/* Puts a constant: as a number in the slot's word if it fits and keeps the record compact,
 * otherwise as one value or as its bytes. In Cairn's table, a constant of 27 to 32 bits doubles the
 * size of every location of its record (record/record_values.h). LLVM records wider constants in a
 * separate table, so they do not. */
static enum cairn_status put_constant(struct encoder *encoder, struct cairn_type type,
                                      const struct constant *constant)
{
    const int64_t compact = (int64_t)1 << 25;
    LLVMValueRef run[VALUE_WORDS_MAX];
    uint32_t count = ((uint32_t)cairn_type_size(type) + WORD_BYTES - 1) / WORD_BYTES;
    int64_t small = 0;
    uint32_t first = 0;
    bool is_number = as_number(type, constant, &small);
    uint64_t shifted = (uint64_t)small << SLOT_NUMBER_SHIFT;
    uint64_t word = pack_type(FRAME_STATE_NUMBER, type) | shifted;
    int64_t recorded = (int64_t)word;
    bool is_compact = recorded >= -compact && recorded < compact;
    bool is_separate = recorded < INT32_MIN || recorded > INT32_MAX;
    if (is_number && (int64_t)shifted >> SLOT_NUMBER_SHIFT == small &&
        (is_compact || is_separate)) {
        put_word(encoder, word);
        return CAIRN_OK;
    }
    for (uint32_t i = 0; i < count; i++)
        run[i] = number(encoder, constant->words[i]);
    if (is_number) {
        count = 1;
        run[0] = number(encoder, (uint64_t)small);
    }
    enum cairn_status status = put_values(encoder, run, count, &first);
    if (status == CAIRN_OK)
        put_word(encoder, frame_state_reference(is_number ? FRAME_STATE_VALUE : FRAME_STATE_BYTES,
                                                type, first));
    return status;
}

static enum cairn_status put_slot(struct encoder *encoder, LLVMValueRef value)
{
    struct constant constant;
    uint64_t id;
    uint32_t place = 0;
    uint32_t parameter_end = 1U << SLOT_PARAMETER_BITS;
    if (value == NULL || LLVMIsUndef(value)) {
        put_word(encoder, 0); /* dead */
        return CAIRN_OK;
    }
    struct cairn_type type = types_convert(LLVMTypeOf(value));
    if (cairn_type_size(type) == 0 || type.address_space >= parameter_end ||
        (type.kind == CAIRN_TYPE_INTEGER && type.bits > parameter_end)) {
        char text[61];
        return error_set(
            encoder->error, CAIRN_ERROR_UNSUPPORTED, encoder->index,
            "%s %u of frame %u is of type %s: a frame state holds scalars and vectors of "
            "up to %u bytes. Give it its members, or a pointer to it",
            encoder->part, encoder->index, encoder->frame,
            ir_print_type(LLVMTypeOf(value), text, sizeof text), (unsigned)CAIRN_VALUE_BYTES_MAX);
    }
    if (name_of_value(value, &id))
        return put_name(encoder, type, id);
    if (read_constant(encoder, value, type, &constant))
        return put_constant(encoder, type, &constant);
    enum cairn_status status = put_values(encoder, &value, 1, &place);
    if (status == CAIRN_OK)
        put_word(encoder, frame_state_reference(FRAME_STATE_VALUE, type, place));
    return status;
}

static enum cairn_status put_slots(struct encoder *encoder, const char *part, LLVMValueRef *values,
                                   uint32_t count)
{
    enum cairn_status status = CAIRN_OK;
    encoder->part = part;
    for (uint32_t i = 0; i < count && status == CAIRN_OK; i++) {
        encoder->index = i;
        status = put_slot(encoder, values[i]);
    }
    return status;
}

static enum cairn_status put_frames(struct encoder *encoder,
                                    const struct cairn_encoded_frame *frames, uint32_t count)
{
    enum cairn_status status = CAIRN_OK;
    uint64_t named = frames[0].function_name != NULL;
    put_word(encoder, CAIRN_FRAME_STATE_MAGIC | CAIRN_FRAME_STATE_VERSION);
    put_word(encoder, 0); /* replaced by the counts below */
    for (uint32_t i = 0; i < count && status == CAIRN_OK; i++) {
        const struct cairn_encoded_frame *frame = &frames[i];
        uint64_t function = frame->function;
        if (named != 0)
            name_of_value(frame->function_name, &function);
        encoder->frame = i;
        put_word(encoder, function);
        put_word(encoder, frame->position);
        put_word(encoder, (uint64_t)frame->flags << FRAME_STATE_FLAGS_SHIFT |
                              (uint64_t)frame->stack_count << FRAME_STATE_COUNT_BITS |
                              frame->local_count);
        status = put_slots(encoder, "local", frame->locals, frame->local_count);
        if (status == CAIRN_OK)
            status = put_slots(encoder, "stack entry", frame->stack, frame->stack_count);
    }
    encoder->words[1] =
        number(encoder, named << FRAME_STATE_NAMED_SHIFT |
                            (uint64_t)encoder->value_count << FRAME_STATE_COUNT_BITS | count);
    return status;
}

static bool has_valid_function(const struct cairn_encoded_frame *frame, bool is_named)
{
    uint64_t id;
    return is_named ? frame->function_name != NULL && name_of_value(frame->function_name, &id)
                    : frame->function_name == NULL;
}

static enum cairn_status check_frames(const struct cairn_encoded_frame *frames, uint32_t count,
                                      struct cairn_error *error)
{
    if (frames == NULL || count == 0)
        return error_set(error, CAIRN_ERROR_ARGUMENT, 0, "a frame state has at least one frame");
    for (uint32_t i = 0; i < count; i++) {
        const struct cairn_encoded_frame *frame = &frames[i];
        bool has_locals = frame->locals != NULL || frame->local_count == 0;
        bool has_stack = frame->stack != NULL || frame->stack_count == 0;
        if (!has_locals || !has_stack)
            return error_set(error, CAIRN_ERROR_ARGUMENT, i, "frame %u has %u %s, but no array", i,
                             has_locals ? frame->stack_count : frame->local_count,
                             has_locals ? "stack entries" : "locals");
        if (!has_valid_function(frame, frames[0].function_name != NULL))
            return error_set(
                error, CAIRN_ERROR_ARGUMENT, i,
                "the function of frame %u has no name of cairn_build_name, and that of "
                "another frame has one",
                i);
    }
    return CAIRN_OK;
}

enum cairn_status cairn_frame_state_encode(LLVMContextRef context,
                                           const struct cairn_encoded_frame *frames,
                                           uint32_t frame_count, LLVMValueRef *live_values,
                                           uint32_t capacity, uint32_t *count,
                                           struct cairn_error *error)
{
    if (context == NULL || count == NULL)
        return error_set(error, CAIRN_ERROR_ARGUMENT, 0, "cairn_frame_state_encode: `%s` is NULL",
                         context == NULL ? "context" : "count");
    enum cairn_status status = check_frames(frames, frame_count, error);
    if (status != CAIRN_OK)
        return status;
    uint32_t words = count_words(frames, frame_count);
    if (words == 0)
        return error_set(error, CAIRN_ERROR_RANGE, frame_count,
                         "the frame state needs more live values than a record can have: %u",
                         (unsigned)LIVE_VALUES_MAX);
    if (live_values == NULL) {
        *count = frame_state_capacity(frames, frame_count);
        return CAIRN_OK;
    }
    if (words > capacity)
        return say_full(capacity, error);
    uint32_t limit = capacity < LIVE_VALUES_MAX ? capacity : LIVE_VALUES_MAX;
    struct encoder encoder = {
        .context = context,
        .int64 = LLVMInt64TypeInContext(context),
        .words = live_values,
        .values = live_values + words,
        .value_limit = limit - words,
        .capacity = capacity,
        .error = error,
    };
    status = put_frames(&encoder, frames, frame_count);
    if (status == CAIRN_OK)
        *count = words + encoder.value_count;
    return status;
}
