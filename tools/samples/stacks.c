/* SPDX-License-Identifier: MIT */
#include "tools/samples/stacks.h"

#include <search.h>
#include <stdlib.h>
#include <string.h>

#define NO_MEMORY "profile: no memory for the call chains"

/* ---- Names ---- */

struct stack_name {
    uint32_t number;
    char text[];
};

static int compare_texts(const void *left, const void *right)
{
    return strcmp(((const struct stack_name *)left)->text,
                  ((const struct stack_name *)right)->text);
}

/* Finds or adds a name, whose number is then in `*number`. */
static bool obtain_name(struct stacks *stacks, const char *text, size_t length, uint32_t *number)
{
    struct stack_name *name = malloc(sizeof *name + length + 1);
    if (name == NULL)
        return complain(NO_MEMORY);
    memcpy(name->text, text, length);
    name->text[length] = '\0';
    name->number = (uint32_t)stacks->names.count;
    struct stack_name **found = tsearch(name, &stacks->names_by_text, compare_texts);
    if (found == NULL || *found != name)
        free(name);
    if (found == NULL)
        return complain(NO_MEMORY);
    const char *kept = (*found)->text;
    *number = (*found)->number;
    return *number < stacks->names.count || list_append(&stacks->names, &kept, sizeof kept) ||
           complain(NO_MEMORY);
}

/* ---- Stacks ---- */

bool stacks_create(struct stacks *stacks)
{
    *stacks = (struct stacks){.frame_count = 0};
    return keyed_create(&stacks->nodes, 2, sizeof(struct stack_node)) || complain(NO_MEMORY);
}

void stacks_release(struct stacks *stacks)
{
    keyed_release(&stacks->nodes);
    list_release(&stacks->names);
    tdestroy(stacks->names_by_text, free);
}

static uint64_t pack(struct stack_frame frame) { return (uint64_t)frame.kind << 32 | frame.index; }

struct stack_frame stack_node_frame(const struct stack_node *node)
{
    return (struct stack_frame){(enum stack_frame_kind)(node->frame >> 32), (uint32_t)node->frame};
}

bool stacks_end(struct stacks *stacks)
{
    uint64_t key[] = {0, 0};
    struct stack_node *node = NULL;
    for (size_t i = stacks->frame_count; i-- > 0;) {
        key[1] = pack(stacks->frames[i]);
        node = keyed_obtain(&stacks->nodes, key, NULL);
        if (node == NULL)
            return complain(NO_MEMORY);
        key[0] = (uint64_t)(node - (struct stack_node *)stacks->nodes.list.items) + 1;
    }
    if (node != NULL)
        node->count++;
    stacks->frame_count = 0;
    return true;
}

/* ---- Frames ---- */

uint32_t stack_block_function(const struct profile *profile, uint32_t block)
{
    uint32_t low = 0;
    uint32_t high = cairn_block_table_counts(profile->table).functions;
    while (high - low > 1) {
        uint32_t middle = low + (high - low) / 2;
        if (profile->first_blocks[middle] <= block)
            low = middle;
        else
            high = middle;
    }
    return low;
}

/* Returns the name of the function at an address of the file that has no map. */
static const char *name_without_map(const struct profile *profile, uint64_t address)
{
    struct cairn_object_function function;
    return layout_function(profile->layout, address, &function) ? function.name : NULL;
}

static struct frame_text file_as_symbol(const struct frame_text *text)
{
    const char *name = base_name(text->file, text->file_length);
    size_t length = text->file_length - (size_t)(name - text->file);
    return (struct frame_text){.symbol = name, .symbol_length = length};
}

/* Adds a frame. The file's own symbols come first; perf's are for other files. */
static bool add_frame(struct profile *profile, struct stack_frame frame, uint64_t address,
                      const struct address_line *line)
{
    struct stacks *stacks = profile->stacks;
    struct frame_text text = parse_frame_text(line);
    const char *own = frame.kind == FRAME_CODE ? name_without_map(profile, address) : NULL;
    bool is_named = frame.kind == FRAME_BLOCK || frame.kind == FRAME_FUNCTION;
    if (stacks->frame_count == STACK_FRAMES_MAX) {
        stacks->lost_count++;
        return true;
    }
    if (own != NULL)
        text = (struct frame_text){.symbol = own, .symbol_length = strlen(own)};
    else if (text.symbol_length == 0 && frame.kind != FRAME_CODE)
        text = file_as_symbol(&text);
    if (!is_named && text.symbol_length > 0) {
        frame.kind = FRAME_NAME;
        if (!obtain_name(stacks, text.symbol, text.symbol_length, &frame.index))
            return false;
    }
    stacks->frames[stacks->frame_count++] = frame;
    return true;
}

static struct stack_frame frame_of(struct sampled_place place)
{
    static const enum stack_frame_kind kinds[] = {
        [PLACE_ELSEWHERE] = FRAME_ELSEWHERE,
        [PLACE_LIBRARY] = FRAME_LIBRARY,
        [PLACE_CODE] = FRAME_CODE,
        [PLACE_BLOCK] = FRAME_BLOCK,
    };
    return (struct stack_frame){kinds[place.kind], place.index};
}

bool stacks_begin(struct profile *profile, struct sampled_place place,
                  const struct address_line *line)
{
    return stacks_end(profile->stacks) && add_frame(profile, frame_of(place), place.address, line);
}

/* The address before the return address is in the call. */
bool stacks_add_caller(struct profile *profile, const struct address_line *line)
{
    struct last_block last = {.size = 0};
    struct sampled_place place = profile_find_place(profile, &last, line, 1);
    struct stack_frame frame = frame_of(place);
    if (frame.kind == FRAME_BLOCK)
        frame = (struct stack_frame){FRAME_FUNCTION, stack_block_function(profile, frame.index)};
    return add_frame(profile, frame, place.address, line);
}
