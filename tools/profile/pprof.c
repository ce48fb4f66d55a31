/*
 * Profiles for pprof: a message of protocol buffers, compressed with gzip.
 *
 * Source: https://github.com/google/pprof/blob/main/proto/profile.proto
 *
 * SPDX-License-Identifier: MIT
 */
#include "tools/profile/profile.h"

#include "tools/cli/save.h"
#include "tools/samples/stacks.h"

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

/* Of the largest message, a sample: each location has a tag and a number of up to ten bytes. */
enum { MESSAGE_BYTES_MAX = 32 + STACK_FRAMES_MAX * 11 };

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

/* The compressed file. Strings are numbered in the order in which they are written. Each frame has
 * the same number as location and as function, from 1 on: frames of one kind follow each other. */
struct writer {
    struct output *output;
    const struct profile *profile;
    z_stream stream;
    uint64_t string_count;
    uint64_t first_numbers[STACK_FRAME_KINDS];
    uint8_t *are_written; /* locations; a block's function has its own */
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

/* ---- Mappings ---- */

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

/* Writes those of the file, whose number is 1, and of the other files that have samples. */
static void write_mappings(struct writer *writer)
{
    const struct library *libraries = writer->profile->libraries.items;
    write_own_mapping(writer);
    for (size_t i = 0; i < writer->profile->libraries.count; i++)
        if (libraries[i].samples > 0)
            write_mapping(writer, i + 2, &(struct loaded){.begin = 0}, 0, libraries[i].name,
                          &libraries[i].id);
}

/* ---- Frames ---- */

static uint64_t number_frames(struct writer *writer)
{
    const struct profile *profile = writer->profile;
    uint32_t functions = cairn_block_table_counts(profile->table).functions;
    const uint64_t counts[STACK_FRAME_KINDS] = {
        [FRAME_ELSEWHERE] = 1,
        [FRAME_LIBRARY] = profile->libraries.count,
        [FRAME_CODE] = 1,
        [FRAME_FUNCTION] = functions,
        [FRAME_BLOCK] = profile->first_blocks[functions],
        [FRAME_NAME] = profile->stacks->names.count,
    };
    uint64_t number = 1;
    for (int kind = 0; kind < STACK_FRAME_KINDS; kind++) {
        writer->first_numbers[kind] = number;
        number += counts[kind];
    }
    return number;
}

static uint64_t frame_number(const struct writer *writer, struct stack_frame frame)
{
    return writer->first_numbers[frame.kind] + frame.index;
}

static void write_function(struct writer *writer, uint64_t id, uint64_t name)
{
    struct message message = {.size = 0};
    put_number(&message, FUNCTION_ID, id);
    put_number(&message, FUNCTION_NAME, name);
    put_number(&message, FUNCTION_SYSTEM_NAME, name);
    write_message(writer, PROFILE_FUNCTION, &message);
}

/* Writes a location. `mapping` is 0 for none. */
static void write_location(struct writer *writer, uint64_t id, uint64_t mapping, uint64_t address,
                           uint64_t function)
{
    struct message location = {.size = 0};
    struct message line = {.size = 0};
    put_number(&line, LINE_FUNCTION, function);
    put_number(&location, LOCATION_ID, id);
    if (mapping > 0)
        put_number(&location, LOCATION_MAPPING, mapping);
    put_number(&location, LOCATION_ADDRESS, address);
    put_varint(&location, LOCATION_LINE << 3 | WIRE_BYTES);
    put_varint(&location, line.size);
    memcpy(location.bytes + location.size, line.bytes, line.size);
    location.size += line.size;
    write_message(writer, PROFILE_LOCATION, &location);
    writer->are_written[id] = true;
}

/* Writes a function of which no more than a name is known, and its location. */
static void write_named(struct writer *writer, struct stack_frame frame, uint64_t mapping,
                        const char *before, const char *name, const char *after)
{
    uint64_t number = frame_number(writer, frame);
    write_function(writer, number, write_string(writer, before, name, after));
    write_location(writer, number, mapping, 0, number);
}

/* Writes a function of the file, and its location as a caller. */
static void write_own_function(struct writer *writer, struct stack_frame frame)
{
    struct cairn_block_function function = {.address = 0};
    char address[sizeof "0x" + 2 * sizeof(uint64_t)];
    uint64_t number = frame_number(writer, frame);
    cairn_block_table_function(writer->profile->table, frame.index, &function);
    const char *name = profile_function_name(writer->profile, function.address);
    snprintf(address, sizeof address, "0x%llx", (unsigned long long)function.address);
    write_function(writer, number, write_string(writer, "", name == NULL ? address : name, ""));
    write_location(writer, number, 1, function.address, number);
}

static void write_block(struct writer *writer, struct stack_frame frame)
{
    const struct profile *profile = writer->profile;
    struct cairn_block block = {.address = 0};
    uint32_t index = stack_block_function(profile, frame.index);
    const struct stack_frame function = {FRAME_FUNCTION, index};
    cairn_block_table_block(profile->table, index, frame.index - profile->first_blocks[index],
                            &block);
    if (!writer->are_written[frame_number(writer, function)])
        write_own_function(writer, function);
    write_location(writer, frame_number(writer, frame), 1, block.address,
                   frame_number(writer, function));
}

/* Writes a frame's location, and its function. Where only the file is known, the function has the
 * file's name in brackets, as pprof itself names code without symbols. */
static void write_frame(struct writer *writer, struct stack_frame frame)
{
    const struct library *libraries = writer->profile->libraries.items;
    const char *const *names = writer->profile->stacks->names.items;
    switch (frame.kind) {
    case FRAME_ELSEWHERE:
        write_named(writer, frame, 0, "[", "elsewhere", "]");
        break;
    case FRAME_LIBRARY:
        write_named(writer, frame, libraries[frame.index].samples > 0 ? frame.index + 2ULL : 0, "[",
                    libraries[frame.index].name, "]");
        break;
    case FRAME_CODE:
        write_named(writer, frame, 1, "[", "code without a basic-block address map", "]");
        break;
    case FRAME_FUNCTION:
        write_own_function(writer, frame);
        break;
    case FRAME_BLOCK:
        write_block(writer, frame);
        break;
    case FRAME_NAME:
        write_named(writer, frame, 0, "", names[frame.index], "");
        break;
    }
}

/* ---- Samples ---- */

/* Writes the samples of a stack: its locations, beginning where the samples were taken. */
static void write_stack(struct writer *writer, const struct stack_node *node)
{
    const struct stack_node *nodes = writer->profile->stacks->nodes.list.items;
    struct message sample = {.size = 0};
    for (const struct stack_node *at = node;; at = &nodes[at->caller - 1]) {
        struct stack_frame frame = stack_node_frame(at);
        uint64_t number = frame_number(writer, frame);
        if (!writer->are_written[number])
            write_frame(writer, frame);
        put_number(&sample, SAMPLE_LOCATION, number);
        if (at->caller == 0)
            break;
    }
    put_number(&sample, SAMPLE_VALUE, node->count);
    write_message(writer, PROFILE_SAMPLE, &sample);
}

static void write_profile(struct writer *writer)
{
    const struct stack_node *nodes = writer->profile->stacks->nodes.list.items;
    struct message type = {.size = 0};
    write_string(writer, "", "", "");
    put_number(&type, VALUE_TYPE_TYPE, write_string(writer, "", "samples", ""));
    put_number(&type, VALUE_TYPE_UNIT, write_string(writer, "", "count", ""));
    write_message(writer, PROFILE_SAMPLE_TYPE, &type);
    write_mappings(writer);
    for (size_t i = 0; i < writer->profile->stacks->nodes.list.count; i++)
        if (nodes[i].count > 0)
            write_stack(writer, &nodes[i]);
}

static bool write_compressed(struct output *output, void *user)
{
    enum { GZIP_WINDOW = 15 + 16, MEMORY_LEVEL = 8 };
    struct writer *writer = user;
    writer->output = output;
    writer->are_written = calloc(number_frames(writer), sizeof *writer->are_written);
    bool is_good = writer->are_written != NULL &&
                   deflateInit2(&writer->stream, Z_DEFAULT_COMPRESSION, Z_DEFLATED, GZIP_WINDOW,
                                MEMORY_LEVEL, Z_DEFAULT_STRATEGY) == Z_OK;
    if (is_good) {
        write_profile(writer);
        compress_bytes(writer, "", 0, Z_FINISH);
        deflateEnd(&writer->stream);
    }
    free(writer->are_written);
    return is_good || complain("profile: no memory for the numbers of functions");
}

bool save_pprof(const char *path, const struct profile *profile)
{
    struct writer writer = {.profile = profile};
    return save_output(path, write_compressed, &writer);
}
