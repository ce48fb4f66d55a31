/*
 * Sample profiles for the compiler, from pseudo probes (clang -fpseudo-probe-for-profiling). A
 * probe is a number of a block or call in a function's IR, with the address of its code. The counts
 * of basic blocks so become counts of the IR's blocks.
 *
 * The section .pseudo_probe has a tree for each function, of calls that were inlined into it, and
 * .pseudo_probe_desc the names of functions. All input is hostile; time and memory are O(n) for n
 * bytes, except for sorting.
 *
 * Source: llvm/include/llvm/MC/MCPseudoProbe.h; text:
 * llvm/include/llvm/ProfileData/SampleProfReader.h
 *
 * SPDX-License-Identifier: MIT
 */
#include "tools/profile/profile.h"

#include "format/uleb128.h"
#include "tools/cli/save.h"
#include "tools/samples/flow.h"

#include <stdlib.h>
#include <string.h>

#define NO_MEMORY "profile: no memory for pseudo probes"

/* The description of a function. */
struct description {
    uint64_t guid; /* first, for sorting and searching */
    uint64_t checksum;
    const char *name; /* not null-terminated */
    size_t name_length;
};

struct probe {
    uint64_t number;
    uint64_t count;
};

#define NO_PARENT SIZE_MAX

/* A function, or a call of one that was inlined. They are in the order of the section: after a node
 * come those that were inlined into it. */
struct node {
    uint64_t guid;
    uint64_t call_number;   /* probe of the call that was inlined */
    size_t parent;          /* its index, or NO_PARENT */
    uint64_t children_left; /* number of children that were not yet read */
    size_t first_probe;
    size_t probe_count;
    uint64_t total; /* counts of its probes, and of its children */
    unsigned depth;
};

struct probes {
    const struct profile *profile;
    const uint64_t *block_counts;
    struct list descriptions; /* sorted by `guid` */
    struct list nodes;
    struct list probes;
    bool is_damaged;
};

/* ---- Reading ---- */

/* The part of a section that was not yet read. */
struct reader {
    const uint8_t *at;
    const uint8_t *end;
    enum cairn_byte_order order;
};

static bool take_uleb(struct reader *reader, uint64_t *value)
{
    const uint8_t *next = uleb128_read(reader->at, reader->end, value);
    if (next == NULL)
        return false;
    reader->at = next;
    return true;
}

static bool take_sleb(struct reader *reader, uint64_t *value)
{
    enum { BITS = 7, SIGN = 0x40, MORE = 0x80 };
    *value = 0;
    for (unsigned shift = 0; reader->at < reader->end && shift < 64; shift += BITS) {
        uint8_t byte = *reader->at++;
        *value |= (uint64_t)(byte & (MORE - 1)) << shift;
        if ((byte & MORE) != 0)
            continue;
        if ((byte & SIGN) != 0 && shift + BITS < 64)
            *value |= UINT64_MAX << (shift + BITS);
        return true;
    }
    return false;
}

static bool take_u64(struct reader *reader, uint64_t *value)
{
    if ((size_t)(reader->end - reader->at) < sizeof *value)
        return false;
    *value = cairn_load_u64(reader->at, reader->order);
    reader->at += sizeof *value;
    return true;
}

static bool read_description(struct reader *reader, struct description *description)
{
    uint64_t length;
    if (!take_u64(reader, &description->guid) || !take_u64(reader, &description->checksum) ||
        !take_uleb(reader, &length) || length > (uint64_t)(reader->end - reader->at))
        return false;
    description->name = (const char *)reader->at;
    description->name_length = (size_t)length;
    reader->at += length;
    return true;
}

static bool read_descriptions(const struct input *input, const struct cairn_object_section *section,
                              void *user)
{
    struct probes *probes = user;
    const struct cairn_section *contents = &section->contents;
    struct reader reader = {contents->bytes, contents->bytes + contents->size,
                            contents->byte_order};
    (void)input;
    while (reader.at < reader.end) {
        struct description description;
        if (!read_description(&reader, &description)) {
            probes->is_damaged = true;
            return true;
        }
        if (!list_append(&probes->descriptions, &description, sizeof description))
            return complain(NO_MEMORY);
    }
    return true;
}

static const struct description *find_description(const struct probes *probes, uint64_t guid)
{
    const struct description *items = probes->descriptions.items;
    size_t above = first_above(items, sizeof *items, probes->descriptions.count, guid);
    return above > 0 && items[above - 1].guid == guid ? &items[above - 1] : NULL;
}

/* Returns the address of the function; 0 if it is unknown. Addresses of probes are relative to it.
 */
static uint64_t function_address(const struct probes *probes, uint64_t guid)
{
    const struct description *description = find_description(probes, guid);
    struct cairn_object_function function = {.entry = 0};
    struct cairn_error error;
    char *name = description == NULL ? NULL : strndup(description->name, description->name_length);
    if (name == NULL ||
        cairn_object_find_name(probes->profile->input->object, name, &function, &error) != CAIRN_OK)
        function.entry = 0;
    free(name);
    return function.entry;
}

static uint64_t count_at(const struct probes *probes, uint64_t address)
{
    const struct profile *profile = probes->profile;
    struct cairn_block block;
    if (address == 0 || !cairn_block_table_find(profile->table, address, &block))
        return 0;
    return probes->block_counts[profile->first_blocks[block.function] + block.index];
}

/* Reads one probe. `*address` is that of the one before, and 0 if it is unknown. A mark has the
 * GUID of the function whose code follows, where that is not the tree's: what follows is relative
 * to it. If it is a part that was split off, its GUID is unknown; such a part is cold, and not
 * counted. */
static bool read_probe(struct reader *reader, const struct probes *probes, uint64_t *address,
                       struct probe *probe, bool *is_mark)
{
    enum { IS_RELATIVE = 0x80, IS_MARK = 0x20, HAS_DISCRIMINATOR = 0x40 };
    uint64_t place;
    if (!take_uleb(reader, &probe->number) || reader->at == reader->end)
        return false;
    uint8_t kind = *reader->at++;
    *is_mark = (kind & IS_MARK) != 0;
    if ((kind & IS_RELATIVE) != 0 ? !take_sleb(reader, &place) : !take_u64(reader, &place))
        return false;
    if ((kind & HAS_DISCRIMINATOR) != 0 && !take_uleb(reader, &(uint64_t){0}))
        return false;
    if ((kind & IS_RELATIVE) == 0)
        *address = *is_mark ? function_address(probes, place) : place;
    else if (*address != 0)
        *address += place;
    probe->count = count_at(probes, *address);
    return true;
}

/* Reads a function's own probes. `parent` is NO_PARENT for a function that was not inlined. */
static bool read_node(struct reader *reader, struct probes *probes, size_t parent,
                      uint64_t *address)
{
    uint64_t probe_count;
    struct node *nodes = probes->nodes.items;
    struct node node = {.parent = parent, .first_probe = probes->probes.count};
    if (parent != NO_PARENT) {
        node.depth = nodes[parent].depth + 1;
        if (!take_uleb(reader, &node.call_number))
            return false;
    }
    if (!take_u64(reader, &node.guid) || !take_uleb(reader, &probe_count) ||
        !take_uleb(reader, &node.children_left))
        return false;
    if (parent == NO_PARENT)
        *address = function_address(probes, node.guid);
    for (uint64_t i = 0; i < probe_count; i++) {
        struct probe probe;
        bool is_mark;
        if (!read_probe(reader, probes, address, &probe, &is_mark))
            return false;
        if (is_mark)
            continue;
        if (!list_append(&probes->probes, &probe, sizeof probe))
            return complain(NO_MEMORY);
        node.probe_count++;
        node.total += probe.count;
    }
    return list_append(&probes->nodes, &node, sizeof node) || complain(NO_MEMORY);
}

/* Reads all trees of a section. The counts of children are added to those of their parents. */
static bool read_trees(const struct input *input, const struct cairn_object_section *section,
                       void *user)
{
    struct probes *probes = user;
    const struct cairn_section *contents = &section->contents;
    struct reader reader = {contents->bytes, contents->bytes + contents->size,
                            contents->byte_order};
    size_t first = probes->nodes.count;
    size_t current = NO_PARENT;
    uint64_t address = 0;
    (void)input;
    while (reader.at < reader.end || current != NO_PARENT) {
        struct node *nodes = probes->nodes.items;
        if (current != NO_PARENT && nodes[current].children_left == 0) {
            current = nodes[current].parent;
            continue;
        }
        if (current != NO_PARENT)
            nodes[current].children_left--;
        if (!read_node(&reader, probes, current, &address)) {
            probes->is_damaged = true;
            break;
        }
        current = probes->nodes.count - 1;
    }
    struct node *nodes = probes->nodes.items;
    for (size_t i = probes->nodes.count; i > first; i--)
        if (nodes[i - 1].parent != NO_PARENT)
            nodes[nodes[i - 1].parent].total += nodes[i - 1].total;
    return true;
}

/* ---- Writing ---- */

static void write_name(struct output *output, const struct description *description)
{
    for (size_t i = 0; i < description->name_length; i++) {
        char character = description->name[i];
        if (character <= ' ' || character == ':')
            character = '?';
        output_character(output, character);
    }
}

static void write_end(struct output *output, const struct probes *probes, const struct node *node)
{
    output_spaces(output, node->depth + 1);
    output_format(output, "!CFGChecksum: %ju\n", find_description(probes, node->guid)->checksum);
}

/* Writes the head of a node, and its probes. */
static void write_node(struct output *output, const struct probes *probes, const struct node *node)
{
    const struct probe *items = probes->probes.items;
    const struct probe *own = node->probe_count > 0 ? items + node->first_probe : NULL;
    output_spaces(output, node->depth);
    if (node->depth > 0)
        output_format(output, "%ju: ", node->call_number);
    write_name(output, find_description(probes, node->guid));
    output_format(output, ":%ju", node->total);
    if (node->depth == 0)
        output_format(output, ":%ju", own == NULL ? 0 : own[0].count);
    output_character(output, '\n');
    for (size_t i = 0; i < node->probe_count; i++) {
        output_spaces(output, node->depth + 1);
        output_format(output, "%ju: %ju\n", own[i].number, own[i].count);
    }
}

/* Whether the node, and all that was inlined into it, is left out: it was not executed, or its name
 * is unknown. */
static bool is_left_out(const struct probes *probes, const struct node *node)
{
    return node->total == 0 || find_description(probes, node->guid) == NULL;
}

static bool write_trees(struct output *output, void *user)
{
    const struct probes *probes = user;
    const struct node *nodes = probes->nodes.items;
    size_t open = NO_PARENT; /* the innermost node whose end was not yet written */
    for (size_t i = 0; i < probes->nodes.count;) {
        while (open != NO_PARENT && nodes[open].depth >= nodes[i].depth) {
            write_end(output, probes, &nodes[open]);
            open = nodes[open].parent;
        }
        if (is_left_out(probes, &nodes[i])) {
            unsigned depth = nodes[i].depth;
            for (i++; i < probes->nodes.count && nodes[i].depth > depth;)
                i++;
            continue;
        }
        write_node(output, probes, &nodes[i]);
        open = i++;
    }
    for (; open != NO_PARENT; open = nodes[open].parent)
        write_end(output, probes, &nodes[open]);
    return true;
}

/* ---- The profile ---- */

static bool read_probes(struct probes *probes)
{
    const struct input *input = probes->profile->input;
    const struct cairn_object_filter names = {.name = ".pseudo_probe_desc"};
    const struct cairn_object_filter trees = {.name = ".pseudo_probe"};
    bool is_good = visit_sections(input, &names, "pseudo probes", read_descriptions, probes);
    list_sort(&probes->descriptions, sizeof(struct description), compare_first_numbers);
    is_good = is_good && visit_sections(input, &trees, "pseudo probes", read_trees, probes);
    if (is_good && probes->nodes.count == 0)
        return complain("%s: there are no pseudo probes: compile with clang "
                        "-fpseudo-probe-for-profiling",
                        input->name);
    if (is_good && probes->is_damaged)
        complain("%s: pseudo probes are truncated or invalid; those before are used", input->name);
    return is_good;
}

bool save_sample_profile(const char *path, const struct profile *profile)
{
    struct flow flow;
    bool is_good = flow_create(&flow, profile);
    struct probes probes = {.profile = profile, .block_counts = flow.counts};
    is_good = is_good && read_probes(&probes) && save_output(path, write_trees, &probes);
    list_release(&probes.descriptions);
    list_release(&probes.nodes);
    list_release(&probes.probes);
    flow_release(&flow);
    return is_good;
}
