/*
 * Fuzzes unwind tables. Reading entries one by one, and with common information collected
 * beforehand, gives the same result. Instructions give the same rows, whether those of the common
 * information are run for each function or once. The table of rules is sorted, and its rule for
 * each PC is that of the entries.
 *
 * Input: flags (byte order; raw or made; architecture), then a section, or what entries are made
 * from: instructions between lengths.
 *
 * SPDX-License-Identifier: MIT
 */
#include "fuzz/fuzz.h"
#include "unwind/rules.h"

enum { MADE_BYTES_MAX = 1 << 14, ENTRIES_MAX = 64 };

static struct {
    uint8_t bytes[MADE_BYTES_MAX];
    size_t size;
} made;

static void put(uint64_t value, unsigned bytes)
{
    for (unsigned i = 0; i < bytes && made.size < MADE_BYTES_MAX; i++)
        made.bytes[made.size++] = (uint8_t)(value >> 8 * i);
}

static void put_instructions(struct fuzz_input *input)
{
    for (unsigned left = fuzz_u8(input) & 31; left > 0; left--)
        put(fuzz_u8(input), 1);
}

/* Common information, or a function that uses existing common information. */
static void make_entry(struct fuzz_input *input, size_t *commons, unsigned *common_count)
{
    size_t begin = made.size;
    uint8_t what = fuzz_u8(input);
    put(0, 4);
    if (*common_count == 0 || (what & 7) == 0) {
        static const uint8_t head[] = {0, 0, 0, 0, 1, 'z', 'R', 0, 1, 0x78, 16, 1, 0};
        commons[(*common_count)++] = begin;
        for (size_t i = 0; i < sizeof head; i++)
            put(head[i], 1);
    } else {
        put(made.size - commons[what % *common_count], 4);
        put(0x1000 + 4 * (uint64_t)fuzz_u8(input), 8);
        put(fuzz_u8(input), 8);
        put(0, 1);
    }
    put_instructions(input);
    size_t length = made.size - begin - 4;
    for (unsigned i = 0; i < 4; i++)
        made.bytes[begin + i] = (uint8_t)(length >> 8 * i);
}

/* ---- Comparing ---- */

static bool is_same_row(const struct call_frame_row *left, const struct call_frame_row *right)
{
    if (left->begin != right->begin || left->end != right->end || left->cfa != right->cfa ||
        left->cfa_register != right->cfa_register || left->cfa_value != right->cfa_value ||
        left->signing != right->signing || left->rule_count != right->rule_count ||
        left->argument_size != right->argument_size)
        return false;
    for (uint16_t i = 0; i < left->rule_count; i++)
        if (left->rules[i].dwarf != right->rules[i].dwarf ||
            left->rules[i].kind != right->rules[i].kind ||
            left->rules[i].value != right->rules[i].value)
            return false;
    return true;
}

static void compare_rows(const struct eh_frame *frame,
                         const struct eh_frame_description *description, bool has_signing)
{
    static struct call_frame each;
    static struct call_frame common;
    static struct call_frame after;
    static struct call_frame_row rows[2];
    call_frame_begin(&each, frame, description, has_signing);
    call_frame_begin(&common, frame, description, has_signing);
    enum cairn_status status = call_frame_run_common(&common, NULL);
    if (status == CAIRN_OK)
        call_frame_begin_after(&after, &common, description);
    uint64_t end = description->function.address;
    for (bool found = true; found;) {
        bool other = false;
        enum cairn_status now = call_frame_next(&each, &rows[0], &found, NULL);
        if (status != CAIRN_OK) {
            require(now == status);
            return;
        }
        require(call_frame_next(&after, &rows[1], &other, NULL) == now && other == found);
        if (now != CAIRN_OK)
            return;
        if (!found)
            break;
        require(is_same_row(&rows[0], &rows[1]));
        require(rows[0].begin == end && rows[0].end > rows[0].begin);
        end = rows[0].end;
    }
    require(end == description->function.address + description->function.size);
}

static void compare_entries(const struct eh_frame *frame, const struct function_list *list,
                            bool has_signing)
{
    for (size_t i = 0; i < list->count; i++) {
        struct eh_frame_description description = {0};
        size_t offset = list->entries[i].offset;
        bool found = false;
        require(eh_frame_next(frame, &offset, &description, &found, NULL) == CAIRN_OK && found);
        require(description.function.address == list->entries[i].function.address);
        require(description.function.size == list->entries[i].function.size);
        require(description.common.offset == list->entries[i].common);
        if (i < ENTRIES_MAX)
            compare_rows(frame, &description, has_signing);
    }
}

static const struct unwind_row *search(const struct unwind *unwind, uint64_t pc)
{
    const struct unwind_row *row = &unwind_no_rules;
    if (pc - unwind->base >= unwind->span)
        return row;
    for (uint32_t i = 0; i < unwind->entry_count; i++)
        if (unwind->entries[i].offset <= pc - unwind->base)
            row = (const struct unwind_row *)(unwind->words + unwind->entries[i].row);
    return row;
}

static void compare_lookups(const struct unwind *unwind)
{
    for (uint32_t i = 0; i < unwind->entry_count; i++) {
        uint64_t pc = unwind->base + unwind->entries[i].offset;
        require(i == 0 || unwind->entries[i].offset > unwind->entries[i - 1].offset);
        for (uint64_t k = 0; k < 3 && i < ENTRIES_MAX; k++)
            require(unwind_find_exact(unwind, pc + k - 1) == search(unwind, pc + k - 1));
    }
}

static void compare(const struct eh_frame *frame, const struct cairn_arch *arch)
{
    const struct cairn_allocator allocator = memory_allocator(NULL);
    struct function_list list;
    struct unwind *unwind;
    if (function_list_read(frame, 1, &allocator, &list, NULL) != CAIRN_OK)
        return;
    compare_entries(frame, &list, arch->signs_return_addresses);
    if (unwind_create(&list, arch, &unwind, NULL) == CAIRN_OK && unwind != NULL) {
        compare_lookups(unwind);
        unwind_destroy(unwind);
    }
    function_list_release(&list);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct fuzz_input input = {data, size};
    uint8_t flags = fuzz_u8(&input);
    struct eh_frame frame = {.section = fuzz_section(&input, flags), .address = 0x10000};
    const struct cairn_arch *arch =
        arch_find((flags & 4) != 0 ? CAIRN_ARCHITECTURE_AARCH64 : CAIRN_ARCHITECTURE_X86_64);
    if ((flags & 2) != 0) {
        size_t commons[MADE_BYTES_MAX / 16];
        unsigned common_count = 0;
        made.size = 0;
        while (input.left > 0 && made.size < MADE_BYTES_MAX / 2)
            make_entry(&input, commons, &common_count);
        frame.section = (struct cairn_section){made.bytes, made.size, CAIRN_LITTLE_ENDIAN};
    }
    void *copy = fuzz_copy(frame.section.bytes, frame.section.size);
    frame.section.bytes = copy;
    compare(&frame, arch);
    free(copy);
    return 0;
}
