/*
 * Moves the values of frame states from registers to the frame.
 *
 * At level 0 LLVM needs a register for each recorded value, all at the same time. The address of an
 * alloca in the entry block needs none, because it is a constant distance from the frame's base. So
 * the values are stored in such allocas. All calls of a function use the same ones: only the values
 * of the call that is being executed are needed.
 *
 * A state that is not as cairn_frame_state_encode writes it stays unchanged; it may be anything.
 *
 * SPDX-License-Identifier: MIT
 */
#include "llvm/stored_states.h"

#include "format/frame_state.h"
#include "llvm/build.h"
#include "llvm/ir.h"
#include "llvm/types.h"

#include <cairn/frame_state.h>
#include <stdlib.h>

enum { WORD_BYTES = 8, BITS_IN_BYTE = 8, WIDE_WORDS = CAIRN_VALUE_BYTES_MAX / WORD_BYTES };

/* A frame state, by the numbers of the call's live values. */
struct state {
    const struct site_call *call;
    const struct cairn_type *types; /* of all live values, as they are declared */
    unsigned first_word;
    unsigned first_value;
    unsigned value_count;
    unsigned frame_count;
};

/* The last alloca of each size that the call uses; NULL if it uses none yet. */
struct memory {
    LLVMValueRef last_narrow;
    LLVMValueRef last_wide;
};

/* ---- Reading ---- */

static unsigned operand_of(const struct site_call *call, unsigned live_value)
{
    return call->live_values.first + live_value;
}

static LLVMValueRef live_value(const struct site_call *call, unsigned index)
{
    return LLVMGetOperand(call->call, operand_of(call, index));
}

/* Reads a word. Returns false if the live value is not a 64-bit constant. */
static bool read_word(const struct site_call *call, unsigned index, uint64_t *word)
{
    if (index >= call->live_value_count)
        return false;
    LLVMValueRef value = LLVMIsAConstantInt(live_value(call, index));
    if (value == NULL || LLVMGetIntTypeWidth(LLVMTypeOf(value)) != WORD_BYTES * BITS_IN_BYTE)
        return false;
    *word = LLVMConstIntGetZExtValue(value);
    return true;
}

static unsigned field(uint64_t word, unsigned shift, unsigned bits)
{
    return (unsigned)(word >> shift & ((UINT64_C(1) << bits) - 1));
}

/* Whether the word is a slot that refers to a value. */
static bool refers_to_value(uint64_t slot)
{
    return field(slot, 0, SLOT_KIND_BITS) == FRAME_STATE_VALUE;
}

static unsigned value_of_slot(const struct state *state, uint64_t slot)
{
    return state->first_value + field(slot, SLOT_VALUE_SHIFT, SLOT_VALUE_BITS);
}

/* Returns a word of a state that read_state has accepted. */
static uint64_t word_at(const struct site_call *call, unsigned index)
{
    uint64_t word = 0;
    (void)read_word(call, index, &word);
    return word;
}

/* Finds the frame's slots, from `*slot` up to `*end`, where the next frame begins. */
static bool read_frame(const struct site_call *call, unsigned frame, unsigned *slot, unsigned *end)
{
    uint64_t counts;
    if (!read_word(call, frame + FRAME_STATE_FRAME_WORDS - 1, &counts))
        return false;
    *slot = frame + FRAME_STATE_FRAME_WORDS;
    *end = *slot + field(counts, 0, FRAME_STATE_COUNT_BITS) +
           field(counts, FRAME_STATE_COUNT_BITS, FRAME_STATE_COUNT_BITS);
    return *end <= call->live_value_count;
}

/* Reads the state that begins at a live value. Returns false if none does. */
static bool read_state(const struct site_call *call, unsigned index, struct state *state)
{
    uint64_t word;
    unsigned slot;
    unsigned next = index + FRAME_STATE_HEADER_WORDS;
    if (!read_word(call, index, &word) ||
        word != (CAIRN_FRAME_STATE_MAGIC | CAIRN_FRAME_STATE_VERSION) ||
        !read_word(call, index + 1, &word))
        return false;
    state->first_word = index;
    state->frame_count = field(word, 0, FRAME_STATE_COUNT_BITS);
    state->value_count = field(word, FRAME_STATE_COUNT_BITS, FRAME_STATE_COUNT_BITS);
    for (unsigned i = 0; i < state->frame_count; i++) {
        if (!read_frame(call, next, &slot, &next))
            return false;
        while (slot < next)
            if (!read_word(call, slot++, &word))
                return false;
    }
    state->first_value = next;
    return state->value_count <= call->live_value_count - next;
}

/* ---- The memory ---- */

static unsigned mark_of(LLVMContextRef context)
{
    static const char name[] = "cairn.stored";
    return LLVMGetMDKindIDInContext(context, name, sizeof name - 1);
}

/* Returns the next marked alloca of the type, from an instruction of the entry block on. */
static LLVMValueRef find_alloca(LLVMValueRef from, LLVMTypeRef type, unsigned mark)
{
    while (from != NULL && LLVMIsAAllocaInst(from) != NULL) {
        if (LLVMGetAllocatedType(from) == type && LLVMGetMetadata(from, mark) != NULL)
            return from;
        from = LLVMGetNextInstruction(from);
    }
    return NULL;
}

static LLVMValueRef build_alloca(LLVMValueRef before, LLVMTypeRef type, unsigned mark)
{
    enum { ALIGNMENT = 16 }; /* of vectors; the stack has it on all architectures */
    LLVMContextRef context = LLVMGetTypeContext(type);
    LLVMBuilderRef builder = LLVMCreateBuilderInContext(context);
    LLVMPositionBuilderBefore(builder, before);
    LLVMValueRef memory = LLVMBuildAlloca(builder, type, "");
    if (LLVMGetTypeKind(type) == LLVMArrayTypeKind)
        LLVMSetAlignment(memory, ALIGNMENT);
    LLVMSetMetadata(memory, mark,
                    LLVMMetadataAsValue(context, LLVMMDNodeInContext2(context, NULL, 0)));
    LLVMDisposeBuilder(builder);
    return memory;
}

/* Returns an alloca that the call does not use yet. */
static LLVMValueRef take_alloca(const struct site_call *call, struct memory *memory, size_t size)
{
    LLVMTypeRef word = LLVMInt64TypeInContext(LLVMGetTypeContext(LLVMTypeOf(call->call)));
    bool is_wide = size > WORD_BYTES;
    LLVMTypeRef type = is_wide ? LLVMArrayType(word, WIDE_WORDS) : word;
    LLVMValueRef *last = is_wide ? &memory->last_wide : &memory->last_narrow;
    LLVMBasicBlockRef entry = LLVMGetEntryBasicBlock(ir_function_of(call->call));
    LLVMValueRef first = LLVMGetFirstInstruction(entry);
    unsigned mark = mark_of(LLVMGetTypeContext(word));
    LLVMValueRef from = *last == NULL ? first : LLVMGetNextInstruction(*last);
    LLVMValueRef found = find_alloca(from, type, mark);
    *last = found == NULL ? build_alloca(from, type, mark) : found;
    return *last;
}

/* ---- Storing ---- */

/* Converts integers, and the elements of vectors, to whole bytes of the declared type: the builder
 * widens small integers, and LLVM packs the elements of vectors. */
static LLVMValueRef make_whole(LLVMBuilderRef builder, LLVMValueRef value, struct cairn_type type)
{
    if (type.kind != CAIRN_TYPE_INTEGER)
        return value;
    unsigned bits = (type.bits + BITS_IN_BYTE - 1) / BITS_IN_BYTE * BITS_IN_BYTE;
    LLVMTypeRef whole = LLVMIntTypeInContext(LLVMGetTypeContext(LLVMTypeOf(value)), bits);
    if (type.element_count != 0)
        whole = LLVMVectorType(whole, type.element_count);
    return LLVMBuildIntCast2(builder, value, whole, 0, "");
}

/* Stores a value before the call, and replaces it in the call by its address. */
static void store_value(const struct state *state, unsigned index, struct memory *memory)
{
    const struct site_call *call = state->call;
    struct cairn_type type = state->types[index];
    LLVMValueRef place = take_alloca(call, memory, cairn_type_size(type));
    LLVMBuilderRef builder = LLVMCreateBuilderInContext(LLVMGetTypeContext(LLVMTypeOf(place)));
    LLVMPositionBuilderBefore(builder, call->call);
    LLVMValueRef whole = make_whole(builder, live_value(call, index), type);
    LLVMTypeRef pointer =
        LLVMPointerType(LLVMTypeOf(whole), LLVMGetPointerAddressSpace(LLVMTypeOf(place)));
    LLVMValueRef store =
        LLVMBuildStore(builder, whole, LLVMBuildPointerCast(builder, place, pointer, ""));
    LLVMSetAlignment(store, LLVMGetAlignment(place));
    LLVMDisposeBuilder(builder);
    LLVMSetOperand(call->call, operand_of(call, index), place);
}

/* Whether a live value can be stored, and LLVM would need a register to record it. */
static bool must_be_stored(const struct site_call *call, unsigned index)
{
    LLVMValueRef value = live_value(call, index);
    LLVMModuleRef module = LLVMGetGlobalParent(ir_function_of(call->call));
    if (LLVMIsAConstantInt(value) != NULL || LLVMIsAConstantPointerNull(value) != NULL ||
        LLVMIsUndef(value) || LLVMIsAAllocaInst(value) != NULL)
        return false;
    return types_statepoint_value(LLVMTypeOf(value), types_architecture(module)) == NULL;
}

/* ---- States ---- */

/* A walk over the slots of a state that refer to values. */
struct slots {
    const struct state *state;
    unsigned frame; /* number of frames whose slots were found */
    unsigned next;
    unsigned end;
};

/* Finds the next slot that refers to a value. */
static bool next_slot(struct slots *slots, uint64_t *word)
{
    const struct state *state = slots->state;
    for (;;) {
        while (slots->next < slots->end)
            if (refers_to_value(*word = word_at(state->call, slots->next++)))
                return true;
        if (slots->frame++ == state->frame_count ||
            !read_frame(state->call, slots->end, &slots->next, &slots->end))
            return false;
    }
}

static struct slots walk_slots(const struct state *state)
{
    unsigned first = state->first_word + FRAME_STATE_HEADER_WORDS;
    return (struct slots){.state = state, .next = first, .end = first};
}

/* Whether the slots of all values that will be stored have the types of these values, as they are
 * declared. A slot of a larger type would be read beyond the stored value. */
static bool has_types_of_values(const struct state *state)
{
    uint64_t slot;
    struct slots slots = walk_slots(state);
    while (next_slot(&slots, &slot)) {
        unsigned value = value_of_slot(state, slot);
        if (value >= state->first_value + state->value_count)
            return false;
        if (must_be_stored(state->call, value) &&
            slot != frame_state_reference(FRAME_STATE_VALUE, state->types[value],
                                          value - state->first_value))
            return false;
    }
    return true;
}

/* Stores the values to which slots refer, and makes these slots refer to their addresses. */
static bool store_state(const struct state *state, struct memory *memory, bool *is_stored)
{
    uint64_t slot;
    bool has_changed = false;
    struct slots slots = walk_slots(state);
    LLVMTypeRef word = LLVMInt64TypeInContext(LLVMGetTypeContext(LLVMTypeOf(state->call->call)));
    while (next_slot(&slots, &slot)) {
        unsigned value = value_of_slot(state, slot);
        if (!is_stored[value] && !must_be_stored(state->call, value))
            continue;
        if (!is_stored[value])
            store_value(state, value, memory);
        is_stored[value] = true;
        has_changed = true;
        LLVMSetOperand(state->call->call, operand_of(state->call, slots.next - 1),
                       LLVMConstInt(word, slot - FRAME_STATE_VALUE + FRAME_STATE_STORED, 0));
    }
    return has_changed;
}

static bool store_states(const struct site_call *call, const struct cairn_type *types,
                         bool *is_stored)
{
    struct state state = {.call = call, .types = types};
    struct memory memory = {NULL, NULL};
    bool has_changed = false;
    unsigned next = 0;
    while (next < call->live_value_count) {
        if (!read_state(call, next++, &state))
            continue;
        next = state.first_value + state.value_count;
        if (has_types_of_values(&state))
            has_changed |= store_state(&state, &memory, is_stored);
    }
    return has_changed;
}

bool stored_states_make(const struct site_call *call)
{
    unsigned count = call->live_value_count;
    struct cairn_type *types = calloc(count + (size_t)1, sizeof *types);
    bool *is_stored = calloc(count + (size_t)1, sizeof *is_stored);
    bool has_changed = false;
    if (types != NULL && is_stored != NULL) {
        for (unsigned i = 0; i < count; i++)
            types[i] = types_convert(LLVMTypeOf(live_value(call, i)));
        types_read_declared(call->call, types, count);
        has_changed = store_states(call, types, is_stored);
    }
    free(types);
    free(is_stored);
    return has_changed;
}
