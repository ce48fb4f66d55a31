/*
 * Lines for flame graphs: frames separated by semicolons, a space, and the number of samples.
 *
 * flamegraph.pl takes a line that ends in two numbers for one of a comparison of two profiles, so
 * no frame may end in a space and a number.
 *
 * Source: https://github.com/brendangregg/FlameGraph/blob/master/flamegraph.pl
 *
 * SPDX-License-Identifier: MIT
 */
#include "tools/profile/profile.h"
#include "tools/samples/stacks.h"

#include <stdlib.h>
#include <string.h>

/* ---- Frames ---- */

/* Returns the blank before a number at the end of the text, or NULL. */
static const char *blank_before_number(const char *text, const char *end)
{
    const char *at = end;
    while (at > text && ((at[-1] >= '0' && at[-1] <= '9') || at[-1] == '.'))
        at--;
    return at > text && at < end && at[-1] == ' ' ? at - 1 : NULL;
}

/* Writes a name without semicolons, which separate frames, and line breaks. */
static void write_name(struct output *output, const char *name)
{
    const char *end = output_name_end(output, name);
    const char *blank = blank_before_number(name, end);
    for (; name < end; name++) {
        char character = *name;
        if (character == ';')
            character = ':';
        else if (name == blank)
            character = '_';
        else if ((unsigned char)character < ' ' || character == 0x7f)
            character = '?';
        output_character(output, character);
    }
}

static void write_function(struct output *output, const struct profile *profile, uint32_t index)
{
    struct cairn_block_function function = {.address = 0};
    cairn_block_table_function(profile->table, index, &function);
    const char *name = profile_function_name(profile, function.address);
    if (name == NULL)
        output_hexadecimal(output, function.address);
    else
        write_name(output, name);
}

static void write_block(struct output *output, const struct profile *profile, uint32_t index)
{
    struct cairn_block block = {.id = 0};
    uint32_t function = stack_block_function(profile, index);
    cairn_block_table_block(profile->table, function, index - profile->first_blocks[function],
                            &block);
    write_function(output, profile, function);
    output_format(output, ";[block %u]", block.id);
}

static void write_frame(struct output *output, const struct profile *profile,
                        struct stack_frame frame)
{
    const struct library *libraries = profile->libraries.items;
    const char *const *names = profile->stacks->names.items;
    switch (frame.kind) {
    case FRAME_ELSEWHERE:
        output_text(output, "[elsewhere]");
        break;
    case FRAME_LIBRARY:
        write_name(output, libraries[frame.index].name);
        break;
    case FRAME_CODE:
        output_text(output, "[code without a basic-block address map]");
        break;
    case FRAME_FUNCTION:
        write_function(output, profile, frame.index);
        break;
    case FRAME_BLOCK:
        write_block(output, profile, frame.index);
        break;
    case FRAME_NAME:
        write_name(output, names[frame.index]);
        break;
    }
}

/* ---- Stacks ---- */

static bool is_own(struct stack_frame frame)
{
    return frame.kind == FRAME_CODE || frame.kind == FRAME_FUNCTION || frame.kind == FRAME_BLOCK;
}

/* Writes a line. A stack with a frame in the file begins with the file's name. */
static void write_stack(struct output *output, const struct profile *profile,
                        const struct stack_node *node)
{
    const struct stack_node *nodes = profile->stacks->nodes.list.items;
    struct stack_frame frames[STACK_FRAMES_MAX];
    size_t count = 0;
    bool has_own = false;
    for (const struct stack_node *at = node;; at = &nodes[at->caller - 1]) {
        frames[count] = stack_node_frame(at);
        has_own |= is_own(frames[count++]);
        if (at->caller == 0)
            break;
    }
    if (has_own)
        write_name(output, base_name(profile->input->name, strlen(profile->input->name)));
    for (size_t i = count; i-- > 0;) {
        output_text(output, has_own || i + 1 < count ? ";" : "");
        write_frame(output, profile, frames[i]);
    }
    output_format(output, " %ju\n", node->count);
}

static int compare_nodes(const void *left, const void *right)
{
    const struct stack_node *a = *(const struct stack_node *const *)left;
    const struct stack_node *b = *(const struct stack_node *const *)right;
    int order = compare_numbers(b->count, a->count);
    return order != 0 ? order : (a > b) - (a < b);
}

bool write_collapsed(struct output *output, const struct profile *profile)
{
    const struct stack_node *nodes = profile->stacks->nodes.list.items;
    size_t node_count = profile->stacks->nodes.list.count;
    size_t count = 0;
    const struct stack_node **order = calloc(node_count + 1, sizeof(struct stack_node *));
    if (order == NULL)
        return complain("profile: no memory for the order of stacks");
    for (size_t i = 0; i < node_count; i++)
        if (nodes[i].count > 0)
            order[count++] = &nodes[i];
    qsort(order, count, sizeof *order, compare_nodes);
    for (size_t i = 0; i < count; i++)
        write_stack(output, profile, order[i]);
    free(order);
    return true;
}
