/*
 * Reading many entries of PC sections at once.
 *
 * What is read here are entries that are good beyond doubt: all of their bytes, and some behind
 * them, are there. Where that is not so, cairn_pcsection_read reads one, and says what is wrong
 * with it if something is.
 *
 * SPDX-License-Identifier: MIT
 */
#include "base/error.h"
#include "format/uleb128.h"
#include "format/uleb128_word.h"

#include <cairn/pcsection.h>

enum {
    WORD_BYTES = 8,
    SIZE_BYTES = 4,
    NUMBER_BYTES_MAX = 10, /* of 64 bits, compressed */
    VALUES_MAX = CAIRN_PCSECTION_CONSTANTS_MAX + 1
};

/* What a schema comes to: an address, and values behind it. */
struct plan {
    uint8_t address_bytes;
    uint8_t value_count; /* the size, if there is one, and the constants */
    bool has_size;
    bool is_compressed;
    uint8_t bytes[VALUES_MAX]; /* of each value; at most that many, if they are compressed */
    size_t entry_bytes_max;    /* what an entry can have, and what is read behind it */
};

static struct plan plan_of(const struct cairn_pcsection_schema *schema)
{
    struct plan plan = {.address_bytes = schema->address_bytes,
                        .has_size = schema->has_size,
                        .is_compressed = schema->is_compressed};
    if (schema->has_size)
        plan.bytes[plan.value_count++] = SIZE_BYTES;
    for (uint8_t i = 0; i < schema->constant_count; i++)
        plan.bytes[plan.value_count++] = schema->constant_bytes[i];
    plan.entry_bytes_max = plan.address_bytes + plan.value_count * (size_t)NUMBER_BYTES_MAX;
    return plan;
}

/* ---- One entry ---- */

static inline uint64_t low_bytes(uint64_t value, uint8_t bytes)
{
    return value & UINT64_MAX >> (8 * (WORD_BYTES - bytes));
}

static inline uint64_t load_value(const uint8_t *at, uint8_t bytes, enum cairn_byte_order order)
{
    uint64_t word = cairn_load_u64(at, order);
    return order == CAIRN_LITTLE_ENDIAN ? low_bytes(word, bytes)
                                        : word >> (8 * (WORD_BYTES - bytes));
}

static inline uint64_t load_relative(const uint8_t *at, uint8_t bytes, enum cairn_byte_order order)
{
    if (bytes == sizeof(uint64_t))
        return cairn_load_u64(at, order);
    return (uint64_t)(int64_t)(int32_t)cairn_load_u32(at, order);
}

/* Where the compressed number at `at` ends; NULL if it is too large, or not there. Short ones are
 * guessed, so that the next number need not wait for where this one ends. */
static inline const uint8_t *load_compressed(const uint8_t *at, uint8_t bytes, uint64_t *value)
{
    if (at[0] < 0x80) {
        *value = at[0];
        return at + 1;
    }
    uint64_t word = uleb128_word(at);
    if ((word & 0x8000) == 0) {
        *value = (word & 0x7F) | (word >> 1 & 0x3F80);
        return at + 2;
    }
    uint64_t ends = uleb128_ends(word);
    unsigned length;
    if (__builtin_expect(ends == 0, 0)) {
        at = uleb128_read(at, at + NUMBER_BYTES_MAX, value);
    } else {
        *value = uleb128_first(word, ends, &length);
        at += length;
    }
    return __builtin_expect(*value == low_bytes(*value, bytes), 1) ? at : NULL;
}

static inline const uint8_t *load_one(const struct plan *plan, unsigned number, const uint8_t *at,
                                      enum cairn_byte_order order, uint64_t *value)
{
    uint8_t bytes = plan->bytes[number];
    if (plan->is_compressed && bytes > 1)
        return load_compressed(at, bytes, value);
    *value = load_value(at, bytes, order);
    return at + bytes;
}

/* Where the values of an entry end; NULL if one of them cannot be read here. */
static inline const uint8_t *load_values(const struct plan *plan, const uint8_t *at,
                                         enum cairn_byte_order order, uint64_t *values)
{
    for (unsigned i = 0; i < plan->value_count && at != NULL; i++)
        at = load_one(plan, i, at, order, &values[i]);
    return at;
}

/* ---- Many ---- */

struct batch {
    const struct cairn_section *section;
    uint64_t section_address;
    struct plan plan;
    const struct cairn_pcsection_columns *columns;
    size_t at;
    size_t count;
};

static inline void put(struct batch *batch, uint64_t address, const uint64_t *values)
{
    const struct cairn_pcsection_columns *columns = batch->columns;
    unsigned first = batch->plan.has_size;
    unsigned constant_count = batch->plan.value_count - first;
    size_t number = batch->count++;
    if (columns->addresses != NULL)
        columns->addresses[number] = address;
    if (columns->sizes != NULL && first == 1)
        columns->sizes[number] = values[0];
    if (columns->constants == NULL)
        return;
    uint64_t *constants = columns->constants + number * constant_count;
    for (unsigned i = 0; i < constant_count; i++)
        constants[i] = values[first + i];
}

static inline bool is_surely_there(const struct batch *batch)
{
    return batch->count < batch->columns->capacity &&
           batch->section->size - batch->at >= batch->plan.entry_bytes_max;
}

/* Until the first one that has to be looked at more closely. */
static inline void read_in_order(struct batch *batch, enum cairn_byte_order order)
{
    uint64_t values[VALUES_MAX];
    while (is_surely_there(batch)) {
        const uint8_t *begin = batch->section->bytes + batch->at;
        uint64_t relative = load_relative(begin, batch->plan.address_bytes, order);
        const uint8_t *end =
            load_values(&batch->plan, begin + batch->plan.address_bytes, order, values);
        if (end == NULL)
            return;
        put(batch, batch->section_address + batch->at + relative, values);
        batch->at += (size_t)(end - begin);
    }
}

/* The schema has addresses of 4 bytes and nothing else. */
static inline void read_addresses(struct batch *batch, enum cairn_byte_order order)
{
    const uint8_t *bytes = batch->section->bytes + batch->at;
    uint64_t address = batch->section_address + batch->at;
    size_t count = (batch->section->size - batch->at) / sizeof(uint32_t);
    size_t room = batch->columns->capacity - batch->count;
    count = count < room ? count : room;
    uint64_t *addresses = batch->columns->addresses;
    for (size_t i = 0; addresses != NULL && i < count; i++)
        addresses[batch->count + i] =
            address + i * sizeof(uint32_t) +
            load_relative(bytes + i * sizeof(uint32_t), sizeof(uint32_t), order);
    batch->at += count * sizeof(uint32_t);
    batch->count += count;
}

static void read_good_ones(struct batch *batch)
{
    bool is_little = batch->section->byte_order == CAIRN_LITTLE_ENDIAN;
    bool has_only_addresses = batch->plan.value_count == 0 && batch->plan.address_bytes == 4;
    if (has_only_addresses && is_little)
        read_addresses(batch, CAIRN_LITTLE_ENDIAN);
    else if (has_only_addresses)
        read_addresses(batch, CAIRN_BIG_ENDIAN);
    else if (is_little)
        read_in_order(batch, CAIRN_LITTLE_ENDIAN);
    else
        read_in_order(batch, CAIRN_BIG_ENDIAN);
}

static enum cairn_status read_one(struct batch *batch, const struct cairn_pcsection_schema *schema,
                                  struct cairn_error *error)
{
    struct cairn_pcsection_entry entry;
    uint64_t values[VALUES_MAX] = {0};
    enum cairn_status status = cairn_pcsection_read(batch->section, batch->section_address, schema,
                                                    &batch->at, &entry, error);
    if (status != CAIRN_OK)
        return status;
    batch->plan = plan_of(schema);
    values[0] = entry.size;
    for (unsigned i = 0; i < schema->constant_count; i++)
        values[i + (schema->has_size ? 1U : 0U)] = entry.constants[i];
    put(batch, entry.address, values);
    return CAIRN_OK;
}

enum cairn_status cairn_pcsection_read_many(const struct cairn_section *section,
                                            uint64_t section_address,
                                            const struct cairn_pcsection_schema *schema,
                                            size_t *offset,
                                            const struct cairn_pcsection_columns *columns,
                                            size_t *count, struct cairn_error *error)
{
    struct batch batch = {
        .section = section, .section_address = section_address, .columns = columns, .at = *offset};
    enum cairn_status status = CAIRN_OK;
    *count = 0;
    if (*offset > section->size)
        return error_set(error, CAIRN_ERROR_ARGUMENT, *offset,
                         "there is no byte %zu in a section of %zu bytes", *offset, section->size);
    /* The first one is read closely, and so the schema is one behind it. */
    while (status == CAIRN_OK && batch.count < columns->capacity && batch.at < section->size) {
        status = read_one(&batch, schema, error);
        if (status != CAIRN_OK)
            break;
        read_good_ones(&batch);
    }
    *offset = batch.at;
    *count = batch.count;
    return status;
}
