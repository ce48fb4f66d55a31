/*
 * What all of the compiler builds IR with: types, constants, loads and stores, blocks, calls of the
 * runtime; and memory that is freed with the emitter.
 *
 * SPDX-License-Identifier: MIT
 */
#include "emitter.h"

#include <stdlib.h>
#include <string.h>

/* ---- Memory, freed at the end ---- */

struct chunk {
    struct chunk *next;
    _Alignas(16) char bytes[];
};

void *allocate(struct emitter *e, size_t size)
{
    struct chunk *chunk = heap_zeroed(sizeof *chunk + size);
    chunk->next = e->chunks;
    e->chunks = chunk;
    return chunk->bytes;
}

void free_allocated(struct emitter *e)
{
    while (e->chunks != NULL) {
        struct chunk *chunk = e->chunks;
        e->chunks = chunk->next;
        free(chunk);
    }
}

/* ---- Types and kinds of memory ---- */

void make_types(struct emitter *e)
{
    e->i1 = LLVMInt1TypeInContext(e->context);
    e->i8 = LLVMInt8TypeInContext(e->context);
    e->i32 = LLVMInt32TypeInContext(e->context);
    e->i64 = LLVMInt64TypeInContext(e->context);
    e->number = LLVMDoubleTypeInContext(e->context);
    e->pointer = LLVMPointerType(e->i8, 0);
    LLVMTypeRef arguments[] = {e->pointer, e->pointer, e->pointer, e->i64, e->i64, e->i64};
    e->code_type = LLVMFunctionType(e->i64, arguments, 3 + REGISTER_SLOTS, 0);
    e->entry_type = LLVMFunctionType(e->i64, &e->i64, 1, 0);
}

void make_memory_tags(struct emitter *e)
{
    static const char *const names[] = {"stack", "identity", "field", "global", "heap", "constant"};
    LLVMMetadataRef name = LLVMMDStringInContext2(e->context, "lox", 3);
    LLVMMetadataRef root = LLVMMDNodeInContext2(e->context, &name, 1);
    LLVMMetadataRef offset = LLVMValueAsMetadata(word(e, 0));
    for (int i = 0; i < MEMORY_KINDS; i++) {
        name = LLVMMDStringInContext2(e->context, names[i], strlen(names[i]));
        LLVMMetadataRef type =
            LLVMMDNodeInContext2(e->context, (LLVMMetadataRef[]){name, root, offset}, 3);
        LLVMMetadataRef is_constant = LLVMValueAsMetadata(word(e, i == MEMORY_CONSTANT));
        LLVMMetadataRef tag = LLVMMDNodeInContext2(
            e->context, (LLVMMetadataRef[]){type, type, offset, is_constant}, 4);
        e->memory_tags[i] = LLVMMetadataAsValue(e->context, tag);
    }
}

/* ---- Constants ---- */

LLVMValueRef word(const struct emitter *e, uint64_t value)
{
    return LLVMConstInt(e->i64, value, 0);
}

/* ---- References ---- */

/* Builds the loads of a name, at the beginning of the function. */
static void build_named(struct emitter *e, struct reference *reference)
{
    struct cairn_error error;
    const struct cairn_name name = name_of(reference);
    reference->word = cairn_build_name(e->reference_builder, &name, e->i64, &error);
    if (reference->word == NULL)
        fail(error.message);
    reference->pointer = LLVMBuildIntToPtr(e->reference_builder, reference->word, e->pointer, "");
}

static struct reference *find_reference(const struct emitter *e, const struct thing_name *name)
{
    struct reference *found = e->first_reference;
    while (found != NULL && memcmp(&found->name, name, sizeof *name) != 0)
        found = found->next;
    return found;
}

static struct reference *new_reference(struct emitter *e, const struct thing *thing)
{
    struct reference *reference = allocate(e, sizeof *reference);
    reference->thing = *thing;
    reference->address = e->input->address(thing);
    reference->word = word(e, (uintptr_t)reference->address);
    reference->pointer = LLVMConstIntToPtr(reference->word, e->pointer);
    return reference;
}

const struct reference *refer(struct emitter *e, struct thing thing)
{
    struct thing_name name;
    bool has_name = e->input->has_names && name_thing(e->input->vm, &thing, &name);
    e->has_unnamed |= !has_name;
    struct reference *reference = has_name ? find_reference(e, &name) : NULL;
    if (reference != NULL)
        return reference;
    reference = new_reference(e, &thing);
    if (!has_name)
        return reference;
    reference->name = name;
    reference->next = e->first_reference;
    e->first_reference = reference;
    build_named(e, reference);
    return reference;
}

struct cairn_name name_of(const struct reference *reference)
{
    return (struct cairn_name){&reference->name, thing_name_size(&reference->name)};
}

LLVMValueRef address_of(struct emitter *e, struct thing thing) { return refer(e, thing)->pointer; }

static const struct reference *refer_to_object(struct emitter *e, enum thing_kind kind,
                                               const void *object)
{
    return refer(e, (struct thing){.kind = kind, .object = (struct object *)(uintptr_t)object});
}

LLVMValueRef object_word(struct emitter *e, const void *object)
{
    return refer_to_object(e, THING_OBJECT, object)->word;
}

LLVMValueRef object_address(struct emitter *e, const void *object)
{
    return refer_to_object(e, THING_OBJECT, object)->pointer;
}

LLVMValueRef object_bits(struct emitter *e, const void *object)
{
    return refer_to_object(e, THING_VALUE, object)->word;
}

bool is_always(LLVMValueRef condition)
{
    return LLVMIsAConstantInt(condition) != NULL && LLVMConstIntGetZExtValue(condition) == 1;
}

/* ---- Loads and stores ---- */

LLVMValueRef at_offset(const struct emitter *e, LLVMTypeRef type, LLVMValueRef base,
                       uint64_t offset)
{
    LLVMValueRef index = word(e, offset);
    LLVMValueRef address = LLVMBuildGEP2(e->builder, e->i8, base, &index, 1, "");
    return LLVMBuildPointerCast(e->builder, address, LLVMPointerType(type, 0), "");
}

LLVMValueRef load(const struct emitter *e, LLVMTypeRef type, LLVMValueRef base, uint64_t offset)
{
    return LLVMBuildLoad2(e->builder, type, at_offset(e, type, base, offset), "");
}

LLVMValueRef store(const struct emitter *e, LLVMValueRef value, LLVMValueRef base, uint64_t offset)
{
    return LLVMBuildStore(e->builder, value, at_offset(e, LLVMTypeOf(value), base, offset));
}

/* Marks a load or store, and returns it. */
LLVMValueRef mark(const struct emitter *e, enum memory memory, LLVMValueRef access)
{
    unsigned tbaa = LLVMGetMDKindIDInContext(e->context, "tbaa", 4);
    LLVMSetMetadata(access, tbaa, e->memory_tags[memory]);
    return access;
}

LLVMValueRef pointer_to(const struct emitter *e, LLVMValueRef bits)
{
    LLVMValueRef number = LLVMBuildXor(e->builder, bits, word(e, OBJECT_TAG), "");
    return LLVMBuildIntToPtr(e->builder, number, e->pointer, "");
}

/* ---- Blocks ---- */

LLVMBasicBlockRef new_block(const struct emitter *e)
{
    return LLVMAppendBasicBlockInContext(e->context, e->function, "");
}

void begin(struct emitter *e, LLVMBasicBlockRef block)
{
    LLVMPositionBuilderAtEnd(e->builder, block);
}

LLVMValueRef compare(const struct emitter *e, LLVMIntPredicate predicate, LLVMValueRef a,
                     uint64_t b)
{
    return LLVMBuildICmp(e->builder, predicate, a, word(e, b), "");
}

LLVMValueRef equals(const struct emitter *e, LLVMValueRef a, LLVMValueRef b)
{
    return LLVMBuildICmp(e->builder, LLVMIntEQ, a, b, "");
}

/* Goes to the block unless the condition is true, which it nearly always is. */
void go_unless(struct emitter *e, LLVMValueRef condition, LLVMBasicBlockRef otherwise)
{
    LLVMBasicBlockRef next = new_block(e);
    LLVMMetadataRef weights[] = {
        LLVMMDStringInContext2(e->context, "branch_weights", 14),
        LLVMValueAsMetadata(LLVMConstInt(e->i32, 100000, 0)),
        LLVMValueAsMetadata(LLVMConstInt(e->i32, 1, 0)),
    };
    LLVMSetMetadata(LLVMBuildCondBr(e->builder, condition, next, otherwise),
                    LLVMGetMDKindIDInContext(e->context, "prof", 4),
                    LLVMMetadataAsValue(e->context, LLVMMDNodeInContext2(e->context, weights, 3)));
    begin(e, next);
}

/* ---- Calls of the runtime ---- */

LLVMValueRef call_entry(struct emitter *e, enum thing_kind entry, LLVMValueRef argument)
{
    LLVMValueRef address = address_of(e, (struct thing){.kind = entry});
    LLVMValueRef callee =
        LLVMBuildPointerCast(e->builder, address, LLVMPointerType(e->entry_type, 0), "");
    return LLVMBuildCall2(e->builder, e->entry_type, callee, &argument, 1, "");
}
