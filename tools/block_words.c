/* SPDX-License-Identifier: MIT */
#include "tools/block_words.h"

#include <cairn/bbmap.h>
#include <stddef.h>

void write_block_words(struct output *output, const char *prefix, uint8_t flags)
{
    static const struct {
        uint8_t flag;
        const char *words;
    } known[] = {
        {CAIRN_BBMAP_IS_EH_PAD, "landing pad"},
        {CAIRN_BBMAP_HAS_RETURN, "returns"},
        {CAIRN_BBMAP_HAS_TAIL_CALL, "tail call"},
        {CAIRN_BBMAP_HAS_INDIRECT_BRANCH, "indirect branch"},
        {CAIRN_BBMAP_CAN_FALL_THROUGH, "falls through"},
    };
    if ((flags & CAIRN_BBMAP_HAS_TAIL_CALL) != 0)
        flags &= (uint8_t)~CAIRN_BBMAP_HAS_RETURN;
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        if ((flags & known[i].flag) == 0)
            continue;
        output_text(output, prefix);
        output_text(output, known[i].words);
        prefix = ", ";
    }
}
