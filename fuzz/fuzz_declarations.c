/*
 * Fuzzes sets of declarations, compared with a list. Each added declaration is found, also among
 * others with similar IDs. Another shape for the same ID is refused. Truncating removes the latest
 * declarations.
 *
 * Input: a number of steps of three bytes: the operation, an ID, a shape.
 *
 * SPDX-License-Identifier: MIT
 */
#include "base/adapter.h"
#include "fuzz/fuzz.h"

#include <cairn/declaration.h>

enum { COUNT_MAX = 1024, FORGET = 7 };

struct added {
    uint64_t id;
    uint32_t bytes;
};

static struct added list[COUNT_MAX];

static size_t find(size_t count, uint64_t id)
{
    size_t place = 0;
    while (place < count && list[place].id != id)
        place++;
    return place;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct fuzz_input input = {data, size};
    cairn_declarations *set;
    size_t count = 0;
    require(cairn_declarations_create(NULL, &set, NULL) == CAIRN_OK);
    while (input.left > 0 && count < COUNT_MAX) {
        uint8_t what = fuzz_u8(&input);
        uint64_t id = (uint64_t)fuzz_u8(&input) << (what & 56);
        uint32_t bytes = fuzz_u8(&input) & 3;
        if ((what & FORGET) == FORGET) {
            count = id < count ? (size_t)id : count;
            cairn_declarations_truncate(set, (size_t)id);
            continue;
        }
        const struct cairn_declaration declaration = {
            .id = id, .kind = CAIRN_RECORD_PATCHPOINT, .byte_count = bytes};
        size_t place = find(count, id);
        enum cairn_status status = cairn_declarations_add(set, &declaration, NULL);
        require(status ==
                (place == count || list[place].bytes == bytes ? CAIRN_OK : CAIRN_ERROR_CONFLICT));
        if (place == count)
            list[count++] = (struct added){id, bytes};
    }
    require(cairn_declarations_count(set) == count);
    for (size_t i = 0; i < count; i++) {
        const struct cairn_declaration *found = cairn_declarations_find(set, list[i].id);
        require(found != NULL && found == cairn_declarations_at(set, i));
        require(found->id == list[i].id && found->byte_count == list[i].bytes);
    }
    for (uint64_t id = 0; id < 256; id++)
        require((cairn_declarations_find(set, id) != NULL) == (find(count, id) < count));
    cairn_declarations_destroy(set);
    return 0;
}
