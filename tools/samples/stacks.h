/*
 * tools/samples/stacks.h - samples with their callers, as a tree of calls.
 *
 * A node is a frame with the frames that called it. So memory depends on the different stacks, not
 * on the number of samples.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef TOOLS_SAMPLES_STACKS_H
#define TOOLS_SAMPLES_STACKS_H

#include "tools/cli/keyed.h"
#include "tools/samples/samples.h"

enum stack_frame_kind {
    FRAME_ELSEWHERE, /* in no file that is known */
    FRAME_LIBRARY,   /* in another file; `index` is its number among the libraries */
    FRAME_CODE,      /* in code of the file for which there is no map */
    FRAME_FUNCTION,  /* `index` is the number of the function */
    FRAME_BLOCK,     /* where the sample was taken; `index` is the block in the profile's order */
    FRAME_NAME       /* `index` is the number of a name that perf printed */
};

enum { STACK_FRAME_KINDS = FRAME_NAME + 1 };

struct stack_frame {
    enum stack_frame_kind kind;
    uint32_t index;
};

enum { STACK_FRAMES_MAX = 1024 };

/* Addresses of one stack are given from the sampled one to that of the outermost caller. */
struct stacks {
    struct keyed_list nodes;                     /* struct stack_node, each after its caller */
    void *names_by_text;                         /* tree of struct stack_name */
    struct list names;                           /* const char *, by their numbers */
    uint64_t lost_count;                         /* frames beyond STACK_FRAMES_MAX */
    struct stack_frame frames[STACK_FRAMES_MAX]; /* of the stack that is read */
    size_t frame_count;
};

struct stack_node {
    uint64_t caller; /* key: number of the node plus 1, or 0 */
    uint64_t frame;  /* key: kind and index */
    uint64_t count;  /* samples that were taken in the frame itself */
};

/* False without memory, after an error message. The caller releases it in either case. */
bool stacks_create(struct stacks *stacks);
void stacks_release(struct stacks *stacks);

/* Ends the stack that was read before, and begins one in which a sample was taken at `place`. False
 * without memory, after an error message. */
bool stacks_begin(struct profile *profile, struct sampled_place place,
                  const struct address_line *line);
/* Adds a caller, whose line has the address to which control returns. */
bool stacks_add_caller(struct profile *profile, const struct address_line *line);
/* Ends the last stack. */
bool stacks_end(struct stacks *stacks);

struct stack_frame stack_node_frame(const struct stack_node *node);
/* Returns the number of the function that has the block. */
uint32_t stack_block_function(const struct profile *profile, uint32_t block);

#endif
