/*
 * Fuzzes frame states. The constants of a record are read as a state. An accepted state can be read
 * completely, twice with the same result, and reading past the last frame, local or stack entry
 * finds nothing.
 *
 * Input: flags (whether the input begins like a state), the index of the first live value, then
 * words, each as a length byte and up to 8 bytes.
 *
 * SPDX-License-Identifier: MIT
 */
#include "format/frame_state.h"
#include "frame/frame.h"
#include "fuzz/fuzz.h"
#include "tests/section_writer.h"

#include <cairn/frame_state.h>
#include <cairn/table.h>

enum { WORDS_MAX = 200, BEGINS_AS_STATE = 1 };

static uint64_t words[WORDS_MAX];
static uint16_t word_count;

static void take_words(struct fuzz_input *input, uint8_t flags)
{
    word_count = 0;
    if ((flags & BEGINS_AS_STATE) != 0)
        words[word_count++] = CAIRN_FRAME_STATE_MAGIC | CAIRN_FRAME_STATE_VERSION;
    while (input->left > 0 && word_count < WORDS_MAX)
        words[word_count++] = fuzz_number(input, fuzz_u8(input) & 7);
}

/* Builds a table of one record whose locations are all constants. */
static cairn_table *make_table(void)
{
    struct cairn_location locations[WORDS_MAX];
    struct section_writer writer;
    cairn_table *table = NULL;
    writer_begin(&writer, 3, CAIRN_BYTE_ORDER_NATIVE);
    writer_header(&writer, 1, word_count, 1);
    writer_function(&writer, 0x1000, 8, 1);
    for (uint16_t i = 0; i < word_count; i++) {
        bool is_small = (int64_t)words[i] == (int32_t)words[i];
        writer_constant(&writer, words[i]);
        locations[i] = (struct cairn_location){.kind = is_small ? CAIRN_LOCATION_CONSTANT
                                                                : CAIRN_LOCATION_CONSTANT_INDEX,
                                               .size = 8,
                                               .offset = is_small ? (int32_t)words[i] : (int32_t)i};
    }
    writer_record(&writer, 1, 0, locations, word_count, NULL, 0);
    const struct cairn_section section = writer_section(&writer);
    require(cairn_table_create(&section, 1, NULL, &table, NULL) == CAIRN_OK);
    writer_end(&writer);
    return table;
}

static void read_values(const struct cairn_frame_state *state,
                        const struct cairn_interpreter_frame *in)
{
    uint32_t count = in->local_count + in->stack_count;
    struct cairn_value values[2];
    for (uint32_t i = 0; i < count; i++) {
        memset(values, 0, sizeof values);
        enum cairn_status status = cairn_frame_state_value(state, in, i, &values[0], NULL);
        require(cairn_frame_state_value(state, in, i, &values[1], NULL) == status);
        require(memcmp(&values[0], &values[1], sizeof values[0]) == 0);
    }
    require(cairn_frame_state_value(state, in, count, &values[0], NULL) == CAIRN_ERROR_RANGE);
}

static void read_state(const struct cairn_frame_state *state)
{
    struct cairn_interpreter_frame in;
    uint32_t end = state->first_word + FRAME_STATE_HEADER_WORDS;
    for (uint32_t i = 0; i < state->frame_count; i++) {
        require(cairn_frame_state_frame(state, i, &in, NULL) == CAIRN_OK);
        require(in.first_slot == end + FRAME_STATE_FRAME_WORDS);
        end = in.first_slot + in.local_count + in.stack_count;
        read_values(state, &in);
    }
    require(end == state->first_value && end + state->value_count <= word_count);
    require(cairn_frame_state_frame(state, state->frame_count, &in, NULL) == CAIRN_ERROR_RANGE);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct fuzz_input input = {data, size};
    static struct cairn_context no_registers;
    const struct cairn_frame frame = {.pc = 0x1000, .context = &no_registers};
    struct cairn_frame_state state = {.frame_count = 0};
    struct cairn_frame_state again = {.frame_count = 0};
    uint8_t flags = fuzz_u8(&input);
    uint32_t first = (flags & BEGINS_AS_STATE) != 0 ? 0 : fuzz_u8(&input);
    take_words(&input, flags);
    cairn_table *table = make_table();
    const struct cairn_record record = {table, 0};
    enum cairn_status status = cairn_frame_state_read(&frame, record, first, &state, NULL);
    require(cairn_frame_state_read(&frame, record, first, &again, NULL) == status);
    if (status == CAIRN_OK) {
        require(state.frame_count == again.frame_count && state.first_value == again.first_value);
        read_state(&state);
    }
    cairn_table_destroy(table);
    return 0;
}
