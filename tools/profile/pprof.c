/*
 * Profiles for pprof: a message of protocol buffers, compressed with gzip.
 *
 * Source: https://github.com/google/pprof/blob/main/proto/profile.proto
 *
 * SPDX-License-Identifier: MIT
 */
#include "tools/profile/profile.h"

#include "tools/cli/save.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

/* ---- Messages ---- */

enum wire_type { WIRE_VARINT = 0, WIRE_BYTES = 2 };

enum profile_field {
    PROFILE_SAMPLE_TYPE = 1,
    PROFILE_SAMPLE = 2,
    PROFILE_MAPPING = 3,
    PROFILE_LOCATION = 4,
    PROFILE_FUNCTION = 5,
    PROFILE_STRINGS = 6
};

/* The fields of other messages, each with the name of its message. */
enum {
    VALUE_TYPE_TYPE = 1,
    VALUE_TYPE_UNIT = 2,
    SAMPLE_LOCATION = 1,
    SAMPLE_VALUE = 2,
    MAPPING_ID = 1,
    MAPPING_BEGIN = 2,
    MAPPING_END = 3,
    MAPPING_OFFSET = 4,
    MAPPING_FILE = 5,
    MAPPING_BUILD_ID = 6,
    MAPPING_HAS_FUNCTIONS = 7,
    LOCATION_ID = 1,
    LOCATION_MAPPING = 2,
    LOCATION_ADDRESS = 3,
    LOCATION_LINE = 4,
    LINE_FUNCTION = 1,
    FUNCTION_ID = 1,
    FUNCTION_NAME = 2,
    FUNCTION_SYSTEM_NAME = 3
};

enum { MESSAGE_BYTES_MAX = 128 };

/* A message that contains numbers and one such message, so that its size is limited. */
struct message {
    uint8_t bytes[MESSAGE_BYTES_MAX];
    size_t size;
};

static void put_varint(struct message *message, uint64_t value)
{
    for (; value > 0x7f; value >>= 7)
        message->bytes[message->size++] = (uint8_t)(value | 0x80);
    message->bytes[message->size++] = (uint8_t)value;
}

static void put_number(struct message *message, unsigned field, uint64_t value)
{
    put_varint(message, field << 3 | WIRE_VARINT);
    put_varint(message, value);
}

/* ---- Compression ---- */

/* The compressed file. Strings are numbered in the order in which they are written. */
struct writer {
    struct output *output;
    const struct profile *profile;
    const struct ranking *ranking;
    z_stream stream;
    uint64_t string_count;
    uint64_t id; /* of the last location and function, which have the same numbers */
};

static void compress_bytes(struct writer *writer, const void *bytes, size_t size, int flush)
{
    enum { CHUNK_BYTES = 1 << 14 };
    char chunk[CHUNK_BYTES];
    z_stream *stream = &writer->stream;
    stream->next_in = (z_const Bytef *)bytes;
    stream->avail_in = (uInt)size;
    do {
        stream->next_out = (Bytef *)chunk;
        stream->avail_out = CHUNK_BYTES;
        (void)deflate(stream, flush); /* fails only if the stream is used wrongly */
        output_bytes(writer->output, chunk, CHUNK_BYTES - stream->avail_out);
    } while (stream->avail_out == 0);
}

static void write_field(struct writer *writer, enum profile_field field, const void *bytes,
                        size_t size)
{
    struct message head = {.size = 0};
    put_varint(&head, (unsigned)field << 3 | WIRE_BYTES);
    put_varint(&head, size);
    compress_bytes(writer, head.bytes, head.size, Z_NO_FLUSH);
    compress_bytes(writer, bytes, size, Z_NO_FLUSH);
}

static void write_message(struct writer *writer, enum profile_field field,
                          const struct message *message)
{
    write_field(writer, field, message->bytes, message->size);
}

/* Writes a string, in which bytes that are not ASCII become '?', because strings must be UTF-8.
 * Returns its number. */
static uint64_t write_string(struct writer *writer, const char *prefix, const char *text,
                             const char *suffix)
{
    char name[OUTPUT_NAME_BYTES_MAX];
    int length = snprintf(name, sizeof name, "%s%s%s", prefix, text, suffix);
    size_t size = length < 0 ? 0 : (size_t)length;
    size = size < sizeof name ? size : sizeof name - 1;
    for (size_t i = 0; i < size; i++)
        if ((unsigned char)name[i] >= 0x80)
            name[i] = '?';
    write_field(writer, PROFILE_STRINGS, name, size);
    return writer->string_count++;
}

/* ---- The profile ---- */

static void write_mapping(struct writer *writer, uint64_t id, const struct loaded *range,
                          uint64_t offset, const char *path, const struct build_id *build_id)
{
    struct message message = {.size = 0};
    struct build_id_text digits = build_id_format(build_id);
    put_number(&message, MAPPING_ID, id);
    put_number(&message, MAPPING_BEGIN, range->begin);
    put_number(&message, MAPPING_END, range->end);
    put_number(&message, MAPPING_OFFSET, offset);
    put_number(&message, MAPPING_FILE, write_string(writer, "", path, ""));
    if (build_id->size > 0)
        put_number(&message, MAPPING_BUILD_ID, write_string(writer, "", digits.digits, ""));
    put_number(&message, MAPPING_HAS_FUNCTIONS, 1);
    write_message(writer, PROFILE_MAPPING, &message);
}

static void write_function(struct writer *writer, uint64_t id, uint64_t name)
{
    struct message message = {.size = 0};
    put_number(&message, FUNCTION_ID, id);
    put_number(&message, FUNCTION_NAME, name);
    put_number(&message, FUNCTION_SYSTEM_NAME, name);
    write_message(writer, PROFILE_FUNCTION, &message);
}

/* Writes a location of the function, and its samples. `mapping` is 0 for none. */
static void write_samples(struct writer *writer, uint64_t mapping, uint64_t address,
                          uint64_t function, uint64_t samples)
{
    struct message location = {.size = 0};
    struct message line = {.size = 0};
    struct message sample = {.size = 0};
    put_number(&line, LINE_FUNCTION, function);
    put_number(&location, LOCATION_ID, ++writer->id);
    if (mapping > 0)
        put_number(&location, LOCATION_MAPPING, mapping);
    put_number(&location, LOCATION_ADDRESS, address);
    put_varint(&location, LOCATION_LINE << 3 | WIRE_BYTES);
    put_varint(&location, line.size);
    memcpy(location.bytes + location.size, line.bytes, line.size);
    location.size += line.size;
    write_message(writer, PROFILE_LOCATION, &location);
    put_number(&sample, SAMPLE_LOCATION, writer->id);
    put_number(&sample, SAMPLE_VALUE, samples);
    write_message(writer, PROFILE_SAMPLE, &sample);
}

/* Writes samples of which only the file is known, or nothing: a function with the file's name in
 * brackets, as pprof itself names code without symbols. */
static void write_others(struct writer *writer, uint64_t mapping, const char *name,
                         uint64_t samples)
{
    uint64_t function = writer->ranking->function_count + writer->id + 1;
    if (samples == 0)
        return;
    write_function(writer, function, write_string(writer, "[", name, "]"));
    write_samples(writer, mapping, 0, function, samples);
}

static void write_libraries(struct writer *writer, uint64_t elsewhere)
{
    const struct library *libraries = writer->profile->libraries.items;
    for (size_t i = 0; i < writer->profile->libraries.count; i++) {
        const struct library *library = &libraries[i];
        if (library->samples == 0)
            continue;
        write_mapping(writer, i + 2, &(struct loaded){.begin = 0}, 0, library->name, &library->id);
        write_others(writer, i + 2, library->name, library->samples);
        elsewhere -= library->samples;
    }
    write_others(writer, 0, "elsewhere", elsewhere);
}

/* Writes the functions, numbered from 1 on in the order of the ranking. `numbers` gets them by
 * the functions' numbers in the table. */
static void write_functions(struct writer *writer, uint32_t *numbers)
{
    for (size_t i = 0; i < writer->ranking->function_count; i++) {
        struct cairn_block_function function = {.address = 0};
        char address[sizeof "0x" + 2 * sizeof(uint64_t)];
        uint32_t index = writer->ranking->functions[i].index;
        cairn_block_table_function(writer->profile->table, index, &function);
        const char *name = profile_function_name(writer->profile, function.address);
        snprintf(address, sizeof address, "0x%llx", (unsigned long long)function.address);
        numbers[index] = (uint32_t)i + 1;
        write_function(writer, i + 1, write_string(writer, "", name == NULL ? address : name, ""));
    }
}

/* The first mapping of the file that was seen, at the addresses in the file. */
static void write_own_mapping(struct writer *writer)
{
    const struct profile *profile = writer->profile;
    struct loaded range = {.begin = 0};
    if (profile->mappings.count > 0) {
        range = *(const struct loaded *)profile->mappings.items;
        range.begin -= range.base;
        range.end -= range.base;
    }
    write_mapping(writer, 1, &range, profile->mapped_offset,
                  base_name(profile->input->name, strlen(profile->input->name)), &profile->id);
}

static void write_profile(struct writer *writer, uint32_t *numbers)
{
    const struct profile *profile = writer->profile;
    struct message type = {.size = 0};
    write_string(writer, "", "", "");
    put_number(&type, VALUE_TYPE_TYPE, write_string(writer, "", "samples", ""));
    put_number(&type, VALUE_TYPE_UNIT, write_string(writer, "", "count", ""));
    write_message(writer, PROFILE_SAMPLE_TYPE, &type);
    write_own_mapping(writer);
    write_functions(writer, numbers);
    for (size_t i = 0; i < writer->ranking->block_count; i++) {
        const struct hot_block *hot = &writer->ranking->blocks[i];
        write_samples(writer, 1, hot->address, numbers[hot->function], hot->samples);
    }
    write_others(writer, 1, "code without a basic-block address map", profile->code_sample_count);
    write_libraries(writer, profile_elsewhere_count(profile));
}

static bool write_compressed(struct output *output, void *user)
{
    enum { GZIP_WINDOW = 15 + 16, MEMORY_LEVEL = 8 };
    struct writer *writer = user;
    uint32_t count = cairn_block_table_counts(writer->profile->table).functions;
    uint32_t *numbers = calloc((size_t)count + 1, sizeof *numbers);
    writer->output = output;
    bool is_good =
        numbers != NULL && deflateInit2(&writer->stream, Z_DEFAULT_COMPRESSION, Z_DEFLATED,
                                        GZIP_WINDOW, MEMORY_LEVEL, Z_DEFAULT_STRATEGY) == Z_OK;
    if (is_good) {
        write_profile(writer, numbers);
        compress_bytes(writer, "", 0, Z_FINISH);
        deflateEnd(&writer->stream);
    }
    free(numbers);
    return is_good || complain("profile: no memory for the numbers of functions");
}

bool save_pprof(const char *path, const struct profile *profile, const struct ranking *ranking)
{
    struct writer writer = {.profile = profile, .ranking = ranking};
    return save_output(path, write_compressed, &writer);
}
