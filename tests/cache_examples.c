/* SPDX-License-Identifier: MIT */
#include "tests/cache_examples.h"

#include <string.h>

/* Stand for the architecture's registers. */
enum { RECEIVER = 1, VALUE, VECTOR };

#define GUARD(width, offset, the_key)                                                              \
    .receiver = RECEIVER, .key_width = (width), .key_offset = (offset),                            \
    .mask = UINT64_MAX >> (64 - 8 * (width)), .key = (the_key)
#define MASKED_GUARD(width, offset, the_mask, the_key)                                             \
    .receiver = RECEIVER, .key_width = (width), .key_offset = (offset), .mask = (the_mask),        \
    .key = (the_key)
#define FIELD(at, bytes) .field = {.offset = (at), .width = (bytes)}
#define LOAD .action = ARCH_CACHE_LOAD, .value = VALUE
#define STORE .action = ARCH_CACHE_STORE, .value = VALUE
#define CONSTANT .action = ARCH_CACHE_CONSTANT, .value = VALUE

static const struct cache_example_code examples[EXAMPLE_COUNT] = {
    [EXAMPLE_EMPTY] = {.cache = {.count = 0}},
    [EXAMPLE_EMPTY_CALLED] = {.cache = {.count = 0, .is_called = true}},
    [EXAMPLE_EMPTY_WITH_TARGET] = {.cache = {.is_called = true,
                                             .miss_target = UINT64_C(0x123456789AB0)}},
    [EXAMPLE_LOAD] = {.cache = {.count = 2},
                      .cases = {{GUARD(4, 8, 0x12345678), LOAD, FIELD(16, 8)},
                                {GUARD(4, 8, 5), LOAD, FIELD(0, 4)}}},
    [EXAMPLE_LOAD_SIGNED] = {.cache = {.count = 3},
                             .cases = {{GUARD(1, 0, 0xFF), LOAD,
                                        .field = {.offset = 1, .width = 1, .is_signed = true}},
                                       {GUARD(2, 2, 0xFFFF), LOAD,
                                        .field = {.offset = 2, .width = 2, .is_signed = true}},
                                       {GUARD(4, 4, 0xFFFFFFFF), LOAD,
                                        .field = {.offset = 4, .width = 4, .is_signed = true}}}},
    [EXAMPLE_LOAD_OUT_OF_LINE] =
        {.cache = {.count = 2},
         .cases =
             {{GUARD(8, 0, UINT64_C(0x7F1234567890)), LOAD,
               .field = {.offset = -2, .width = 2, .is_out_of_line = true, .pointer_offset = 24}},
              {GUARD(8, 0, 42), LOAD, .field = {.offset = 0, .width = 1, .is_out_of_line = true}}}},
    [EXAMPLE_LOAD_VECTOR] =
        {.cache = {.count = 2},
         .cases = {{GUARD(2, 6, 0x8001), .action = ARCH_CACHE_LOAD, .value = VECTOR, FIELD(32, 8)},
                   {GUARD(2, 6, 7), .action = ARCH_CACHE_LOAD, .value = VECTOR, FIELD(40, 4)}}},
    [EXAMPLE_STORE_BYTE] = {.cache = {.count = 3},
                            .cases = {{GUARD(4, 0, 1), STORE, FIELD(9, 1)},
                                      {GUARD(4, 0, 2), STORE, FIELD(10, 2)},
                                      {GUARD(4, 0, 3), STORE, FIELD(12, 4)}}},
    [EXAMPLE_STORE_OUT_OF_LINE] = {.cache = {.count = 1},
                                   .cases = {{GUARD(4, 0, 1), STORE,
                                              .field = {.offset = 128,
                                                        .width = 8,
                                                        .is_out_of_line = true,
                                                        .pointer_offset = -8}}}},
    [EXAMPLE_STORE_VECTOR] =
        {.cache = {.count = 2},
         .cases = {{GUARD(4, 0, 1), .action = ARCH_CACHE_STORE, .value = VECTOR, FIELD(16, 4)},
                   {GUARD(4, 0, 2), .action = ARCH_CACHE_STORE, .value = VECTOR, FIELD(24, 8)}}},
    [EXAMPLE_CONSTANTS] = {.cache = {.count = 3},
                           .cases = {{GUARD(4, 0, 1), CONSTANT, .constant = 7},
                                     {GUARD(4, 0, 2), CONSTANT, .constant = UINT64_MAX - 1},
                                     {GUARD(4, 0, 3), CONSTANT,
                                      .constant = UINT64_C(0x123456789ABCDEF0)}}},
    [EXAMPLE_CONSTANT_VECTOR] = {.cache = {.count = 2},
                                 .cases = {{GUARD(4, 0, 1), .action = ARCH_CACHE_CONSTANT,
                                            .value = VECTOR,
                                            .constant = UINT64_C(0x3FF8000000000000), /* 1.5 */
                                            .constant_width = 8},
                                           {GUARD(4, 0, 2), .action = ARCH_CACHE_CONSTANT,
                                            .value = VECTOR, .constant = 0x3FC00000, /* 1.5 */
                                            .constant_width = 4}}},
    [EXAMPLE_CALLED] = {.cache = {.count = 1, .is_called = true},
                        .cases = {{GUARD(4, 0, 1), LOAD, FIELD(8, 8)}}},
    [EXAMPLE_JUMP_COUNTED] = {.cache = {.count = 1, .is_called = true},
                              .cases = {{GUARD(4, 0, 1), .action = ARCH_CACHE_JUMP,
                                         .target = UINT64_C(0x7E1122334400),
                                         .counter = UINT64_C(0x7D5566778800)}}},
    [EXAMPLE_MASKS] = {.cache = {.count = 3},
                       .cases = {{MASKED_GUARD(1, 0, 0xF0, 0x80), LOAD, FIELD(8, 8)},
                                 {MASKED_GUARD(4, 0, 0xFFFF00, 0x123400), LOAD, FIELD(8, 8)},
                                 {MASKED_GUARD(8, 0, UINT64_C(0xFFFFFFFFFFFFFFF8), 0), LOAD,
                                  FIELD(8, 8)}}},
    [EXAMPLE_WIDE_MASK] = {.cache = {.count = 1},
                           .cases = {{MASKED_GUARD(8, 16, UINT64_C(0x0000FFFFFFFFFFF0),
                                                   UINT64_C(0x00007F1234567890)),
                                      LOAD, FIELD(8, 8)}}},
    [EXAMPLE_FAR_OFFSETS] = {.cache = {.count = 2},
                             .cases = {{GUARD(4, INT32_MIN, 1), LOAD, FIELD(INT32_MAX, 8)},
                                       {GUARD(4, 0x12345, 1), LOAD, FIELD(-0x12345, 8)}}},
    [EXAMPLE_KEEPS_FLAGS] = {.cache = {.count = 1, .keeps_flags = true},
                             .cases = {{GUARD(4, 0, 1), LOAD, FIELD(8, 8),
                                        .counter = UINT64_C(0x7D5566778800)}}},
    [EXAMPLE_SELECTION] = {.cache = {.count = 3, .may_select = true},
                           .cases = {{GUARD(4, 0, 0x101), LOAD, FIELD(8, 8)},
                                     {GUARD(4, 0, 0x102), LOAD, FIELD(-16, 8)},
                                     {GUARD(4, 0, 0x103), LOAD, FIELD(24, 8)}}},
    [EXAMPLE_SELECTION_OUT_OF_LINE] = {.cache = {.count = 3, .may_select = true, .is_called = true},
                                       .cases = {{GUARD(8, 0, 0x101), LOAD,
                                                  .field = {.offset = 8,
                                                            .width = 4,
                                                            .is_signed = true,
                                                            .is_out_of_line = true,
                                                            .pointer_offset = 16}},
                                                 {GUARD(8, 0, 0x102), LOAD,
                                                  .field = {.offset = 12,
                                                            .width = 4,
                                                            .is_signed = true,
                                                            .is_out_of_line = true,
                                                            .pointer_offset = 16}},
                                                 {GUARD(8, 0, 0x103), LOAD,
                                                  .field = {.offset = 16,
                                                            .width = 4,
                                                            .is_signed = true,
                                                            .is_out_of_line = true,
                                                            .pointer_offset = 16}}}},
    [EXAMPLE_SELECTION_WIDE] =
        {.cache = {.count = 3, .may_select = true},
         .cases = {{GUARD(8, 0, UINT64_C(0x7F0000000001)), LOAD, FIELD(8, 8)},
                   {GUARD(8, 0, UINT64_C(0x7F0000000040)), LOAD, FIELD(16, 8)},
                   {GUARD(8, 0, UINT64_C(0x7F0000000080)), LOAD, FIELD(24, 8)}}},
};

void cache_example_get(enum cache_example example, const struct cache_example_registers *registers,
                       struct cache_example_code *code)
{
    *code = examples[example];
    code->cache.cases = code->cases;
    code->cache.return_address = EXAMPLE_RETURN_ADDRESS;
    code->cache.site_end = EXAMPLE_RETURN_ADDRESS;
    code->cache.exit_data = UINT64_C(0x7C99AABBCC00);
    for (size_t i = 0; i < code->cache.count; i++) {
        struct arch_cache_case *of = &code->cases[i];
        of->receiver = registers->receiver;
        of->value = of->value == VECTOR ? registers->vector : registers->value;
    }
}
