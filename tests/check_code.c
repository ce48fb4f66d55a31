/*
 * Tests of code memory in one process and one thread: allocation, protection, owners, veneers,
 * writing.
 *
 * SPDX-License-Identifier: MIT
 */
#include "code_support.h"

#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

static size_t page_size(void) { return (size_t)sysconf(_SC_PAGESIZE); }

static size_t small_slab(void) { return 64 * page_size(); }

static uint64_t page_of(const void *address) { return (uint64_t)(uintptr_t)address / page_size(); }

static uint64_t number(const void *address) { return (uint64_t)(uintptr_t)address; }

static bool all_bytes(const uint8_t *bytes, size_t size, uint8_t value)
{
    for (size_t i = 0; i < size; i++)
        if (bytes[i] != value)
            return false;
    return true;
}

static enum cairn_status try_space(struct code_space_options options, struct cairn_error *error)
{
    struct code_space *space = NULL;
    enum cairn_status status = code_space_create(&options, &space, error);
    code_space_destroy(space);
    return status;
}

/* ---- Spaces ---- */

START_TEST(automatic_mode_gives_a_reason_only_if_it_is_single)
{
    struct code_space *space = support_space(CAIRN_CODE_MODE_AUTOMATIC, 0, 0);
    bool dual = code_space_mode(space) == CAIRN_CODE_MODE_DUAL;
    ck_assert_int_eq(code_space_mode_reason(space)[0] == '\0', dual);
    ck_assert_ptr_eq(code_space_arch(space), arch_host());
    ck_assert_uint_eq(support_statistics(space).slab_size_bytes, arch_host()->slab_bytes_default);
    code_space_destroy(space);
}
END_TEST

START_TEST(forced_mode_is_the_mode)
{
    struct code_space *space = support_space(support_modes[_i], 0, 0);
    ck_assert_int_eq(code_space_mode(space), support_modes[_i]);
    ck_assert_str_eq(code_space_mode_reason(space), "");
    code_space_destroy(space);
}
END_TEST

START_TEST(space_without_architecture_is_unsupported)
{
    struct cairn_error error = {0};
    ck_assert_int_eq(try_space((struct code_space_options){0}, &error), CAIRN_ERROR_UNSUPPORTED);
    ck_assert_int_eq(error.status, CAIRN_ERROR_UNSUPPORTED);
}
END_TEST

START_TEST(slab_beyond_reach_is_refused)
{
    struct cairn_error error = {0};
    size_t reach = arch_host()->reach_bytes;
    struct code_space_options options = {.arch = arch_host(), .slab_size = reach + 1};
    ck_assert_int_eq(try_space(options, &error), CAIRN_ERROR_ARGUMENT);
    ck_assert_ptr_nonnull(strstr(error.message, "slab_size"));
    options.slab_size = reach;
    ck_assert_ok(try_space(options, &error));
    options.slab_size = SIZE_MAX;
    ck_assert_int_eq(try_space(options, &error), CAIRN_ERROR_ARGUMENT);
}
END_TEST

START_TEST(unknown_mode_is_refused)
{
    struct code_space_options options = {.arch = arch_host(), .mode = (enum cairn_code_mode)4};
    ck_assert_int_eq(try_space(options, NULL), CAIRN_ERROR_ARGUMENT);
}
END_TEST

START_TEST(slab_size_is_rounded_up_to_a_page)
{
    struct code_space *space = support_space(support_modes[_i], page_size() + 1, 0);
    struct cairn_runtime_statistics statistics = support_statistics(space);
    ck_assert_uint_eq(statistics.slab_size_bytes, 2 * page_size());
    ck_assert_uint_eq(statistics.free_bytes, 2 * page_size());
    ck_assert_uint_eq(statistics.slab_count, 1);
    code_space_destroy(space);
}
END_TEST

START_TEST(no_file_stays_open)
{
    size_t before = support_count_files();
    struct code_space *space = support_space(support_modes[_i], 0, 0);
    ck_assert_uint_eq(support_count_files(), before);
    code_space_destroy(space);
}
END_TEST

START_TEST(destroying_unmaps_everything)
{
    size_t before = support_count_mappings();
    struct code_space *space = support_space(support_modes[_i], small_slab(), 0);
    uint8_t *functions;
    struct code_block *block = support_loaded(space, 1, 1, &functions);
    struct code_veneer veneer;
    ck_assert_ok(code_block_add_veneer(block, CODE_VENEER_PLAIN, number(functions), &veneer, NULL));
    void *alias = code_block_writable_alias(block, number(functions));
    code_block_destroy(block);
    code_space_destroy(space);
    ck_assert_str_eq(support_protection(functions), "");
    ck_assert_str_eq(support_protection(alias), "");
    /* The C library may have mapped something at its first use. */
    ck_assert_uint_le(support_count_mappings(), before + 2);
}
END_TEST

/* Counts page faults because times depend on the machine. An index of the whole slab, which has as
 * many entries as there are pages, must be neither filled nor read. */
START_TEST(unused_space_takes_few_page_faults)
{
    enum { ROUNDS = 4, FAULTS_MAX = 40 };
    struct rusage before, after;
    if (support_is_sanitized() || support_is_emulated())
        return;
    code_space_destroy(support_space(support_modes[_i], 0, 0)); /* the C library's first faults */
    ck_assert_int_eq(getrusage(RUSAGE_SELF, &before), 0);
    for (int i = 0; i < ROUNDS; i++)
        code_space_destroy(support_space(support_modes[_i], 0, 0));
    ck_assert_int_eq(getrusage(RUSAGE_SELF, &after), 0);
    ck_assert_int_le(after.ru_minflt - before.ru_minflt, ROUNDS * FAULTS_MAX);
}
END_TEST

START_TEST(statistics_count_pages)
{
    struct code_space *space = support_space(support_modes[_i], small_slab(), 0);
    struct code_block *block = support_block(space);
    void *address;
    ck_assert_ok(code_block_allocate(block, PAGES_FOR_CODE, 2 * page_size(), 16, &address, NULL));
    ck_assert_ok(code_block_allocate(block, PAGES_FOR_DATA, 3 * page_size(), 16, &address, NULL));
    ck_assert_ok(code_block_allocate(block, PAGES_FOR_READ_ONLY, 1, 1, &address, NULL));
    struct cairn_runtime_statistics statistics = support_statistics(space);
    ck_assert_uint_eq(statistics.code_bytes, 2 * page_size());
    ck_assert_uint_eq(statistics.data_bytes, 4 * page_size());
    ck_assert_uint_eq(statistics.free_bytes, small_slab() - 6 * page_size());
    code_block_destroy(block);
    statistics = support_statistics(space);
    ck_assert_uint_eq(statistics.code_bytes, 0);
    ck_assert_uint_eq(statistics.data_bytes, 0);
    ck_assert_uint_eq(statistics.free_bytes, small_slab());
    code_space_destroy(space);
}
END_TEST

/* ---- Sections ---- */

START_TEST(sections_of_one_kind_share_pages)
{
    struct code_space *space = support_space(support_modes[_i], small_slab(), 0);
    struct code_block *block = support_block(space);
    uint8_t *first = support_functions(block, 1, 1);
    uint8_t *second = support_functions(block, 1, 2);
    ck_assert_uint_eq(page_of(first), page_of(second));
    ck_assert_ptr_ne(first, second);
    void *data, *constant;
    ck_assert_ok(code_block_allocate(block, PAGES_FOR_DATA, 8, 8, &data, NULL));
    ck_assert_ok(code_block_allocate(block, PAGES_FOR_READ_ONLY, 8, 8, &constant, NULL));
    ck_assert_uint_ne(page_of(first), page_of(data));
    ck_assert_uint_ne(page_of(first), page_of(constant));
    ck_assert_uint_ne(page_of(data), page_of(constant));
    code_block_destroy(block);
    code_space_destroy(space);
}
END_TEST

START_TEST(blocks_share_no_pages)
{
    struct code_space *space = support_space(support_modes[_i], small_slab(), 1);
    struct code_block *first = support_block(space);
    struct code_block *second = support_block(space);
    uint8_t *a = support_functions(first, 1, 1);
    uint8_t *b = support_functions(second, 1, 2);
    uint8_t *c = support_functions(first, 1, 3);
    ck_assert_uint_ne(page_of(a), page_of(b));
    ck_assert_uint_eq(page_of(a), page_of(c));
    code_block_destroy(first);
    ck_assert_ok(code_block_protect(second, NULL));
    ck_assert_int_eq(support_call(b), 2);
    code_block_destroy(second);
    code_space_destroy(space);
}
END_TEST

START_TEST(alignment_is_kept)
{
    struct code_space *space = support_space(support_modes[_i], small_slab(), 0);
    struct code_block *block = support_block(space);
    for (size_t alignment = 1; alignment <= page_size(); alignment *= 2) {
        void *address;
        ck_assert_ok(code_block_allocate(block, PAGES_FOR_CODE, 3, alignment, &address, NULL));
        ck_assert_uint_eq(number(address) % alignment, 0);
        ck_assert_ok(code_block_allocate(block, PAGES_FOR_DATA, 3, alignment, &address, NULL));
        ck_assert_uint_eq(number(address) % alignment, 0);
    }
    code_block_destroy(block);
    code_space_destroy(space);
}
END_TEST

START_TEST(bad_requests_are_refused)
{
    struct code_space *space = support_space(support_modes[_i], small_slab(), 0);
    struct code_block *block = support_block(space);
    void *address = NULL;
    struct cairn_error error = {0};
    ck_assert_int_eq(code_block_allocate(block, PAGES_FOR_CODE, 0, 1, &address, &error),
                     CAIRN_ERROR_ARGUMENT);
    ck_assert_int_eq(code_block_allocate(block, PAGES_FOR_CODE, 1, 0, &address, &error),
                     CAIRN_ERROR_ARGUMENT);
    ck_assert_int_eq(code_block_allocate(block, PAGES_FOR_DATA, 1, 3, &address, &error),
                     CAIRN_ERROR_ARGUMENT);
    ck_assert_int_eq(
        code_block_allocate(block, PAGES_FOR_READ_ONLY, 1, 2 * page_size(), &address, &error),
        CAIRN_ERROR_ARGUMENT);
    ck_assert_ptr_null(address);
    code_block_destroy(block);
    code_space_destroy(space);
}
END_TEST

struct section {
    uint8_t *address;
    size_t size;
    uint8_t mark;
    int kind;
};

static const enum page_use uses[] = {PAGES_FOR_CODE, PAGES_FOR_READ_ONLY, PAGES_FOR_DATA};

static struct section random_section(struct code_block *block, uint64_t *random)
{
    struct section section = {
        .kind = (int)(support_random(random) % 3),
        .size = 1 + support_random(random) % (support_random(random) % 16 == 0 ? 20000 : 300),
        .mark = (uint8_t)support_random(random),
    };
    size_t alignment = (size_t)1 << support_random(random) % 7;
    void *address = NULL;
    ck_assert_ok(
        code_block_allocate(block, uses[section.kind], section.size, alignment, &address, NULL));
    ck_assert_uint_eq(number(address) % alignment, 0);
    section.address = address;
    memset(section.address, section.mark, section.size);
    return section;
}

static void check_section(const struct code_block *block, const struct section *section)
{
    static const char *const protections[] = {"r-x", "r--", "rw-"};
    ck_assert(all_bytes(section->address, section->size, section->mark));
    const uint8_t *last = section->address + section->size - 1;
    ck_assert_str_eq(support_protection(section->address), protections[section->kind]);
    ck_assert_str_eq(support_protection(last), protections[section->kind]);
    ck_assert_int_eq(code_block_holds_code(block, number(section->address), section->size),
                     section->kind == 0);
}

START_TEST(many_random_sections_keep_their_bytes)
{
    enum { SECTIONS = 1000 };
    static struct section sections[SECTIONS];
    uint64_t random = support_seed();
    struct code_space *space = support_space(support_modes[_i], 0, 0);
    struct code_block *block = support_block(space);
    for (size_t i = 0; i < SECTIONS; i++)
        sections[i] = random_section(block, &random);
    ck_assert_ok(code_block_protect(block, NULL));
    for (size_t i = 0; i < SECTIONS; i++)
        check_section(block, &sections[i]);
    code_block_destroy(block);
    struct cairn_runtime_statistics statistics = support_statistics(space);
    ck_assert_uint_eq(statistics.free_bytes, statistics.slab_size_bytes);
    code_space_destroy(space);
}
END_TEST

START_TEST(protection_gives_unused_pages_back)
{
    struct code_space *space = support_space(support_modes[_i], 0, 0);
    struct code_block *block = support_block(space);
    size_t used = 0;
    for (int i = 0; i < 100; i++) {
        void *address;
        ck_assert_ok(code_block_allocate(block, PAGES_FOR_CODE, 1000, 8, &address, NULL));
        used += 1000;
    }
    ck_assert_ok(code_block_protect(block, NULL));
    size_t code = support_statistics(space).code_bytes;
    ck_assert_uint_ge(code, used);
    ck_assert_uint_lt(code, used + used / 50 + page_size());
    code_block_destroy(block);
    code_space_destroy(space);
}
END_TEST

/* ---- Reserved sections ---- */

static struct code_place reserve(struct code_block *block, enum page_use use, size_t size,
                                 size_t alignment)
{
    struct code_place place = {0};
    struct cairn_error error = {0};
    ck_assert_msg(code_block_reserve(block, use, size, alignment, &place, &error) == CAIRN_OK, "%s",
                  error.message);
    ck_assert_uint_eq(place.address % alignment, 0);
    return place;
}

/* Loads a function, a constant and a variable. */
static void load_reserved(struct code_block *block, int value, struct code_place places[3])
{
    places[0] = reserve(block, PAGES_FOR_CODE, SUPPORT_FUNCTION_BYTES, 16);
    places[1] = reserve(block, PAGES_FOR_READ_ONLY, 40, 8);
    places[2] = reserve(block, PAGES_FOR_DATA, 40, 8);
    ck_assert(all_bytes(places[2].bytes, 40, 0));
    arch_host()->fill_nops(arch_host(), places[0].bytes, SUPPORT_FUNCTION_BYTES);
    arch_host()->encode_self_test(arch_host(), value, places[0].bytes);
    memset(places[1].bytes, value, 40);
    memset(places[2].bytes, value, 40);
    ck_assert_ptr_eq(code_block_load_address(block, places[0].address + 3), places[0].bytes + 3);
    ck_assert_ok(code_block_protect(block, NULL));
}

static const uint8_t *used(const struct code_place *place)
{
    return (const uint8_t *)(uintptr_t)place->address;
}

static void expect_reserved(const struct code_place places[3], int value)
{
    ck_assert_int_eq(support_call(used(&places[0])), value);
    ck_assert(all_bytes(used(&places[1]), 40, (uint8_t)value));
    ck_assert(all_bytes(used(&places[2]), 40, (uint8_t)value));
}

START_TEST(reserved_sections_are_used_where_they_were_reserved)
{
    bool is_dual = support_modes[_i] == CAIRN_CODE_MODE_DUAL;
    struct code_space *space = support_space(support_modes[_i], small_slab(), 1);
    struct code_block *block = support_block(space);
    struct code_place places[3];
    load_reserved(block, 77, places);
    expect_reserved(places, 77);
    ck_assert_str_eq(support_protection(used(&places[0])), "r-x");
    ck_assert_str_eq(support_protection(used(&places[1])), "r--");
    ck_assert_str_eq(support_protection(used(&places[2])), "rw-");
    ck_assert_int_eq(used(&places[0]) != places[0].bytes, is_dual);
    ck_assert_int_eq(used(&places[1]) != places[1].bytes, is_dual);
    ck_assert_ptr_eq(used(&places[2]), places[2].bytes);
    code_block_destroy(block);
    code_space_destroy(space);
}
END_TEST

START_TEST(blocks_share_pages_of_what_they_reserve)
{
    enum { BLOCKS = 20 };
    bool is_dual = support_modes[_i] == CAIRN_CODE_MODE_DUAL;
    struct code_space *space = support_space(support_modes[_i], small_slab(), 1);
    struct code_block *blocks[BLOCKS];
    struct code_place places[BLOCKS][3];
    for (int i = 0; i < BLOCKS; i++) {
        blocks[i] = support_block(space);
        load_reserved(blocks[i], i + 1, places[i]);
        ck_assert_ok(code_block_publish(blocks[i], blocks[i], NULL));
    }
    ck_assert_uint_eq(page_of(used(&places[0][2])), page_of(used(&places[BLOCKS - 1][2])));
    for (int kind = 0; kind < 2; kind++)
        ck_assert_int_eq(page_of(used(&places[0][kind])) == page_of(used(&places[1][kind])),
                         is_dual);
    for (int i = 0; i < BLOCKS; i += 2)
        code_block_destroy(blocks[i]);
    for (int i = 1; i < BLOCKS; i += 2) {
        expect_reserved(places[i], i + 1);
        for (int kind = 0; kind < 3; kind++)
            ck_assert_ptr_eq(code_space_find_owner(space, places[i][kind].address + 31), blocks[i]);
        code_block_destroy(blocks[i]);
    }
    struct cairn_runtime_statistics statistics = support_statistics(space);
    ck_assert_uint_eq(statistics.free_bytes, statistics.slab_size_bytes);
    code_space_destroy(space);
}
END_TEST

START_TEST(reserved_and_allocated_sections_are_in_one_module)
{
    struct code_space *space = support_space(support_modes[_i], small_slab(), 1);
    struct code_block *block = support_block(space);
    struct code_place places[3];
    uint8_t *code = support_functions(block, 3, 5);
    load_reserved(block, 9, places);
    expect_reserved(places, 9);
    ck_assert_int_eq(support_call(code + SUPPORT_FUNCTION_BYTES), 6);
    code_block_destroy(block);
    code_space_destroy(space);
}
END_TEST

/* What is spare for one use serves another one when nothing else is left. */
START_TEST(released_pages_serve_any_use)
{
    static const enum page_use order[] = {PAGES_FOR_CODE, PAGES_FOR_DATA, PAGES_FOR_READ_ONLY,
                                          PAGES_FOR_CODE};
    struct code_space *space = support_space(support_modes[_i], small_slab(), 1);
    for (int i = 0; i < 4; i++) {
        struct code_block *block = support_block(space);
        struct code_place place = reserve(block, order[i], small_slab(), 16);
        if (order[i] == PAGES_FOR_DATA)
            ck_assert(all_bytes(place.bytes, small_slab(), 0));
        memset(place.bytes, 0x5A, small_slab());
        ck_assert_ok(code_block_protect(block, NULL));
        ck_assert(all_bytes(used(&place), small_slab(), 0x5A));
        code_block_destroy(block);
    }
    ck_assert_uint_eq(support_statistics(space).free_bytes, small_slab());
    code_space_destroy(space);
}
END_TEST

START_TEST(reused_data_is_zero)
{
    struct code_space *space = support_space(support_modes[_i], small_slab(), 1);
    for (int i = 0; i < 3; i++) {
        struct code_block *block = support_block(space);
        for (int part = 0; part < 5; part++) {
            struct code_place place = reserve(block, PAGES_FOR_DATA, 3000, 16);
            ck_assert(all_bytes(place.bytes, 3000, 0));
            memset(place.bytes, 0xFF, 3000);
        }
        code_block_destroy(block);
        if (i == 1)
            code_space_clean(space);
    }
    code_space_destroy(space);
}
END_TEST

/* ---- Protection ---- */

static void write_byte(void *user) { *(volatile uint8_t *)user = 1; }

static void execute(void *user) { support_call(user); }

START_TEST(protected_pages_refuse_what_they_should)
{
    struct code_space *space = support_space(support_modes[_i], small_slab(), 0);
    struct code_block *block = support_block(space);
    uint8_t *code = support_functions(block, 1, 42);
    void *constant, *data;
    ck_assert_ok(code_block_allocate(block, PAGES_FOR_READ_ONLY, 8, 8, &constant, NULL));
    ck_assert_ok(code_block_allocate(block, PAGES_FOR_DATA, 64, 8, &data, NULL));
    arch_host()->encode_self_test(arch_host(), 1, data);
    ck_assert(support_faults(execute, code));
    ck_assert_ok(code_block_protect(block, NULL));
    ck_assert_int_eq(support_call(code), 42);
    ck_assert(!support_faults(execute, code));
    ck_assert(support_faults(write_byte, code));
    ck_assert(support_faults(write_byte, constant));
    ck_assert(!support_faults(write_byte, data));
    ck_assert(support_faults(execute, data));
    code_block_destroy(block);
    ck_assert(support_faults(write_byte, code));
    code_space_destroy(space);
}
END_TEST

START_TEST(protected_block_is_complete)
{
    struct code_space *space = support_space(support_modes[_i], small_slab(), 0);
    uint8_t *code;
    struct code_block *block = support_loaded(space, 1, 1, &code);
    void *address;
    ck_assert_int_eq(code_block_protect(block, NULL), CAIRN_ERROR_STATE);
    ck_assert_int_eq(code_block_allocate(block, PAGES_FOR_CODE, 1, 1, &address, NULL),
                     CAIRN_ERROR_STATE);
    ck_assert_int_eq(support_call(code), 1);
    code_block_destroy(block);
    code_space_destroy(space);
}
END_TEST

START_TEST(empty_block_is_a_block)
{
    struct code_space *space = support_space(support_modes[_i], small_slab(), 0);
    struct code_block *block = support_block(space);
    struct memory_range range;
    struct code_veneer veneer;
    ck_assert(!code_block_memory_range(block, 0, &range));
    ck_assert(!code_block_holds_code(block, 0, 1));
    ck_assert_ptr_null(code_block_writable_alias(block, 0));
    ck_assert_int_eq(code_block_add_veneer(block, CODE_VENEER_PLAIN, 1, &veneer, NULL),
                     CAIRN_ERROR_STATE);
    ck_assert_ok(code_block_protect(block, NULL));
    ck_assert_ok(code_block_publish(block, block, NULL));
    code_block_retire(block);
    code_block_destroy(block);
    code_block_destroy(NULL);
    code_space_destroy(space);
    code_space_destroy(NULL);
}
END_TEST

START_TEST(memory_ranges_say_what_pages_are)
{
    struct code_space *space = support_space(support_modes[_i], small_slab(), 0);
    struct code_block *block = support_block(space);
    uint8_t *code = support_functions(block, 1, 1);
    void *constant, *data;
    ck_assert_ok(code_block_allocate(block, PAGES_FOR_READ_ONLY, 8, 8, &constant, NULL));
    ck_assert_ok(code_block_allocate(block, PAGES_FOR_DATA, 8, 8, &data, NULL));
    struct memory_range range;
    ck_assert(code_block_memory_range(block, 0, &range));
    ck_assert(range.writable && !range.executable);
    ck_assert_ok(code_block_protect(block, NULL));
    const void *const starts[] = {code, constant, data};
    bool is_dual = support_modes[_i] == CAIRN_CODE_MODE_DUAL;
    for (uint32_t i = 0; i < 3; i++) {
        ck_assert(code_block_memory_range(block, i, &range));
        ck_assert_uint_eq(range.address, number(starts[i]));
        /* Other modules may have the rest of a page, except of code and read-only data in single
         * mapping. */
        ck_assert_uint_eq(range.size, is_dual || i == 2 ? SUPPORT_FUNCTION_BYTES : page_size());
        ck_assert_int_eq(range.executable, i == 0);
        ck_assert_int_eq(range.writable, i == 2);
    }
    ck_assert(!code_block_memory_range(block, 3, &range));
    code_block_destroy(block);
    code_space_destroy(space);
}
END_TEST

START_TEST(holds_code_knows_the_ends)
{
    struct code_space *space = support_space(support_modes[_i], small_slab(), 0);
    struct code_block *block = support_block(space);
    void *address;
    ck_assert_ok(code_block_allocate(block, PAGES_FOR_CODE, 100, 16, &address, NULL));
    uint64_t code = number(address);
    ck_assert(code_block_holds_code(block, code, 100));
    ck_assert(code_block_holds_code(block, code + 99, 1));
    ck_assert(!code_block_holds_code(block, code + 100, 1));
    ck_assert(!code_block_holds_code(block, code, 101));
    ck_assert(!code_block_holds_code(block, code + 1, SIZE_MAX));
    ck_assert(!code_block_holds_code(block, code - 1, 2));
    code_block_destroy(block);
    code_space_destroy(space);
}
END_TEST

/* ---- Allocation ---- */

START_TEST(error_of_a_full_slab_has_the_bytes_asked_for_and_free)
{
    struct code_space *space = support_space(support_modes[_i], 16 * page_size(), 1);
    uint8_t *code;
    struct code_block *loaded = support_loaded(space, 1, 7, &code);
    struct code_block *block = support_block(space);
    void *address = NULL;
    char asked[32], available[32];
    snprintf(asked, sizeof asked, "%zu bytes", 15 * page_size() + 1);
    snprintf(available, sizeof available, "%zu are free", 15 * page_size());
    struct cairn_error error = {0};
    ck_assert_int_eq(
        code_block_allocate(block, PAGES_FOR_CODE, 15 * page_size() + 1, 16, &address, &error),
        CAIRN_ERROR_FULL);
    ck_assert_ptr_nonnull(strstr(error.message, asked));
    ck_assert_ptr_nonnull(strstr(error.message, available));
    ck_assert_ptr_nonnull(strstr(error.message, "slab_size"));
    ck_assert_ptr_null(address);
    ck_assert_int_eq(code_block_allocate(block, PAGES_FOR_DATA, SIZE_MAX, 16, &address, &error),
                     CAIRN_ERROR_FULL);
    ck_assert_ok(
        code_block_allocate(block, PAGES_FOR_DATA, 15 * page_size(), 16, &address, &error));
    ck_assert_int_eq(code_block_allocate(block, PAGES_FOR_CODE, 1, 16, &address, &error),
                     CAIRN_ERROR_FULL);
    ck_assert_int_eq(support_call(code), 7);
    code_block_destroy(block);
    code_block_destroy(loaded);
    code_space_destroy(space);
}
END_TEST

START_TEST(modules_of_half_a_slab_always_load)
{
    enum { BLOCKS = 9, PAGES = 32 };
    struct code_block *blocks[BLOCKS];
    size_t half = PAGES / 2 * page_size();
    struct code_space *space = support_space(support_modes[_i], PAGES * page_size(), 0);
    void *address;
    /* All blocks are open at the same time, and each first allocates a little of every kind. */
    for (int i = 0; i < BLOCKS; i++) {
        blocks[i] = support_block(space);
        ck_assert_ok(code_block_allocate(blocks[i], PAGES_FOR_READ_ONLY, 1, 1, &address, NULL));
        ck_assert_ok(code_block_allocate(blocks[i], PAGES_FOR_DATA, 1, 1, &address, NULL));
    }
    for (int i = 0; i < BLOCKS; i++)
        ck_assert_ok(code_block_allocate(blocks[i], PAGES_FOR_CODE, half - 2 * page_size(), 16,
                                         &address, NULL));
    for (int i = 0; i < BLOCKS; i++)
        ck_assert_ok(code_block_protect(blocks[i], NULL));
    for (int i = 0; i < BLOCKS; i++)
        code_block_destroy(blocks[i]);
    struct cairn_runtime_statistics statistics = support_statistics(space);
    ck_assert_uint_eq(statistics.slab_count, BLOCKS);
    ck_assert_uint_eq(statistics.free_bytes, BLOCKS * PAGES * page_size());
    code_space_destroy(space);
}
END_TEST

START_TEST(loaded_modules_share_a_slab)
{
    enum { BLOCKS = 20 };
    struct code_block *blocks[BLOCKS];
    uint8_t *code;
    struct code_space *space = support_space(support_modes[_i], small_slab(), 0);
    for (int i = 0; i < BLOCKS; i++)
        blocks[i] = support_loaded(space, 1, i, &code);
    ck_assert_uint_eq(support_statistics(space).slab_count, 1);
    for (int i = 0; i < BLOCKS; i++)
        code_block_destroy(blocks[i]);
    code_space_destroy(space);
}
END_TEST

START_TEST(slab_limit_is_kept)
{
    struct code_space *space = support_space(support_modes[_i], 8 * page_size(), 2);
    struct code_block *blocks[3];
    void *address;
    for (int i = 0; i < 3; i++)
        blocks[i] = support_block(space);
    ck_assert_ok(
        code_block_allocate(blocks[0], PAGES_FOR_CODE, 6 * page_size(), 16, &address, NULL));
    ck_assert_ok(
        code_block_allocate(blocks[1], PAGES_FOR_CODE, 5 * page_size(), 16, &address, NULL));
    /* At the limit of slabs, memory comes from the slab with the most free space. */
    ck_assert_ok(
        code_block_allocate(blocks[2], PAGES_FOR_CODE, 3 * page_size(), 16, &address, NULL));
    ck_assert_uint_eq(support_statistics(space).slab_count, 2);
    ck_assert_int_eq(code_block_allocate(blocks[2], PAGES_FOR_CODE, 1, 16, &address, NULL),
                     CAIRN_ERROR_FULL);
    for (int i = 0; i < 3; i++)
        code_block_destroy(blocks[i]);
    code_space_destroy(space);
}
END_TEST

START_TEST(neighbouring_free_pages_become_one_range)
{
    enum { BLOCKS = 16 };
    struct code_block *blocks[BLOCKS];
    struct code_space *space = support_space(support_modes[_i], BLOCKS * page_size(), 1);
    uint8_t *code;
    void *address;
    for (int i = 0; i < BLOCKS; i++)
        blocks[i] = support_loaded(space, 1, i, &code);
    for (int i = 0; i < BLOCKS; i += 2)
        code_block_destroy(blocks[i]);
    struct code_block *large = support_block(space);
    ck_assert_int_eq(
        code_block_allocate(large, PAGES_FOR_CODE, 2 * page_size(), 16, &address, NULL),
        CAIRN_ERROR_FULL);
    for (int i = 1; i < BLOCKS; i += 2)
        code_block_destroy(blocks[i]);
    ck_assert_ok(
        code_block_allocate(large, PAGES_FOR_CODE, BLOCKS * page_size(), 16, &address, NULL));
    code_block_destroy(large);
    code_space_destroy(space);
}
END_TEST

START_TEST(released_memory_goes_back_to_the_system)
{
    enum { PAGES = 40 };
    struct code_space *space = support_space(support_modes[_i], small_slab(), 0);
    struct code_block *block = support_block(space);
    size_t size = PAGES / 2 * page_size();
    void *code, *data;
    ck_assert_ok(code_block_allocate(block, PAGES_FOR_CODE, size, 16, &code, NULL));
    ck_assert_ok(code_block_allocate(block, PAGES_FOR_DATA, size, 16, &data, NULL));
    memset(code, 1, size);
    memset(data, 1, size);
    void *alias = code_block_writable_alias(block, number(code));
    ck_assert_ok(code_block_protect(block, NULL));
    ck_assert_uint_eq(support_count_resident(code, size), PAGES / 2);
    ck_assert_uint_eq(support_count_resident(data, size), PAGES / 2);
    code_block_destroy(block);
    code_space_clean(space);
    ck_assert_uint_eq(support_count_resident(code, size), 0);
    ck_assert_uint_eq(support_count_resident(data, size), 0);
    if (alias != NULL)
        ck_assert_uint_eq(support_count_resident(alias, size), 0);
    code_space_destroy(space);
}
END_TEST

START_TEST(reused_pages_are_clean_and_run)
{
    struct code_space *space = support_space(support_modes[_i], small_slab(), 0);
    size_t mappings = 0;
    uint8_t *first = NULL;
    for (int i = 0; i < 1000; i++) {
        struct code_block *block = support_block(space);
        void *address;
        ck_assert_ok(code_block_allocate(block, PAGES_FOR_CODE, 8192, 16, &address, NULL));
        uint8_t *code = address;
        ck_assert(all_bytes(code, 8192, 0));
        arch_host()->encode_self_test(arch_host(), i, code);
        memset(code + 100, 0xAB, 8000);
        struct code_veneer veneer;
        ck_assert_ok(code_block_add_veneer(block, CODE_VENEER_PLAIN, number(code), &veneer, NULL));
        ck_assert_ok(code_block_protect(block, NULL));
        ck_assert_int_eq(support_call(code), i);
        ck_assert_int_eq(support_call((void *)(uintptr_t)veneer.address), i);
        code_block_destroy(block);
        if (i == 10) {
            mappings = support_count_mappings();
            first = code;
        }
        if (i > 10)
            ck_assert_ptr_eq(code, first);
    }
    ck_assert_uint_le(support_count_mappings(), mappings + 1);
    ck_assert_uint_eq(support_statistics(space).slab_count, 1);
    code_space_destroy(space);
}
END_TEST

/* ---- Owners ---- */

START_TEST(owner_is_found_for_every_page_while_published)
{
    struct code_space *space = support_space(support_modes[_i], small_slab(), 0);
    struct code_block *block = support_block(space);
    void *code, *constant, *data;
    size_t size = 2 * page_size();
    ck_assert_ok(code_block_allocate(block, PAGES_FOR_CODE, size, 16, &code, NULL));
    ck_assert_ok(code_block_allocate(block, PAGES_FOR_READ_ONLY, size, 16, &constant, NULL));
    ck_assert_ok(code_block_allocate(block, PAGES_FOR_DATA, size, 16, &data, NULL));
    uint64_t owner;
    ck_assert_int_eq(code_block_publish(block, &owner, NULL), CAIRN_ERROR_STATE);
    ck_assert_ok(code_block_protect(block, NULL));
    ck_assert_ptr_null(code_space_find_owner(space, number(code)));
    ck_assert_int_eq(code_block_publish(block, NULL, NULL), CAIRN_ERROR_ARGUMENT);
    ck_assert_ok(code_block_publish(block, &owner, NULL));
    ck_assert_int_eq(code_block_publish(block, &owner, NULL), CAIRN_ERROR_STATE);
    for (size_t i = 0; i < size; i += 512) {
        ck_assert_ptr_eq(code_space_find_owner(space, number(code) + i), &owner);
        ck_assert_ptr_eq(code_space_find_owner(space, number(constant) + i), &owner);
        ck_assert_ptr_eq(code_space_find_owner(space, number(data) + i), &owner);
    }
    ck_assert_ptr_null(code_space_find_owner(space, number(code) - 1));
    ck_assert_ptr_null(code_space_find_owner(space, number(code) + size));
    ck_assert_ptr_eq(code_space_find_frame_owner(space, number(code)), &owner);
    code_block_retire(block);
    ck_assert_ptr_null(code_space_find_owner(space, number(code)));
    ck_assert_ptr_null(code_space_find_owner(space, number(data)));
    ck_assert_ptr_eq(code_space_find_frame_owner(space, number(code)), &owner);
    ck_assert_ptr_eq(code_space_find_frame_owner(space, number(data)), &owner);
    code_block_destroy(block);
    ck_assert_ptr_null(code_space_find_frame_owner(space, number(code)));
    code_space_destroy(space);
}
END_TEST

START_TEST(nobody_owns_addresses_outside)
{
    struct code_space *space = support_space(support_modes[_i], small_slab(), 0);
    int local = 0;
    ck_assert_ptr_null(code_space_find_owner(space, 0));
    ck_assert_ptr_null(code_space_find_owner(space, UINT64_MAX));
    ck_assert_ptr_null(code_space_find_owner(space, number(&local)));
    code_space_destroy(space);
}
END_TEST

START_TEST(owners_are_found_in_every_slab)
{
    enum { BLOCKS = 40 };
    struct code_block *blocks[BLOCKS];
    uint8_t *code[BLOCKS];
    struct code_space *space = support_space(support_modes[_i], 8 * page_size(), 0);
    for (int i = 0; i < BLOCKS; i++) {
        size_t functions = 6 * page_size() / SUPPORT_FUNCTION_BYTES;
        blocks[i] = support_loaded(space, functions, i, &code[i]);
        ck_assert_ok(code_block_publish(blocks[i], &code[i], NULL));
    }
    ck_assert_uint_eq(support_statistics(space).slab_count, BLOCKS);
    for (int i = 0; i < BLOCKS; i++) {
        ck_assert_ptr_eq(code_space_find_owner(space, number(code[i])), &code[i]);
        ck_assert_ptr_eq(code_space_find_owner(space, number(code[i]) + 6 * page_size() - 1),
                         &code[i]);
        ck_assert_ptr_null(code_space_find_owner(space, number(code[i]) + 6 * page_size()));
        code_block_destroy(blocks[i]);
        ck_assert_ptr_null(code_space_find_owner(space, number(code[i])));
    }
    code_space_destroy(space);
}
END_TEST

/* ---- Veneers ---- */

START_TEST(veneer_jumps_to_the_target_in_its_slot)
{
    struct code_space *space = support_space(support_modes[_i], small_slab(), 0);
    uint8_t *code;
    struct code_block *block = support_loaded(space, 2, 10, &code);
    struct code_veneer veneer;
    ck_assert_ok(code_block_add_veneer(block, CODE_VENEER_PLAIN, number(code), &veneer, NULL));
    const void *entry = (const void *)(uintptr_t)veneer.address;
    ck_assert_int_eq(support_call(entry), 10);
    atomic_store(veneer.slot, number(code + SUPPORT_FUNCTION_BYTES));
    ck_assert_int_eq(support_call(entry), 11);
    ck_assert_str_eq(support_protection(entry), "r-x");
    ck_assert_str_eq(support_protection((const void *)veneer.slot), "rw-");
    ck_assert_ptr_null(code_space_find_owner(space, veneer.address));
    code_block_destroy(block);
    code_space_destroy(space);
}
END_TEST

START_TEST(veneers_are_distinct_and_in_reach)
{
    enum { VENEERS = 2000 };
    struct code_space *space = support_space(support_modes[_i], 0, 0);
    uint8_t *code;
    struct code_block *block = support_loaded(space, VENEERS, 0, &code);
    static struct code_veneer veneers[VENEERS];
    for (size_t i = 0; i < VENEERS; i++) {
        uint64_t target = number(code + i * SUPPORT_FUNCTION_BYTES);
        ck_assert_ok(code_block_add_veneer(block, CODE_VENEER_PLAIN, target, &veneers[i], NULL));
    }
    for (size_t i = 0; i < VENEERS; i++) {
        uint64_t bits;
        ck_assert_int_eq(support_call((const void *)(uintptr_t)veneers[i].address), (int)i);
        ck_assert_uint_eq(veneers[i].address % arch_host()->veneer_alignment, 0);
        ck_assert(arch_host()->encode_branch(arch_host(), CAIRN_SITE_CALL, number(code),
                                             veneers[i].address, arch_host()->instruction_bytes,
                                             &bits));
    }
    code_block_destroy(block);
    code_space_destroy(space);
}
END_TEST

START_TEST(veneers_are_used_again)
{
    struct code_space *space = support_space(support_modes[_i], small_slab(), 0);
    uint8_t *code;
    struct code_block *keeper = support_loaded(space, 1, 5, &code);
    struct code_veneer kept;
    ck_assert_ok(code_block_add_veneer(keeper, CODE_VENEER_PLAIN, number(code), &kept, NULL));
    size_t bytes = 0;
    for (int round = 0; round < 20; round++) {
        struct code_block *block = support_loaded(space, 1, 6, &code);
        /* Its slot is in the page of the one that is kept, which is not freed. */
        struct code_veneer first;
        ck_assert_ok(code_block_add_veneer(block, CODE_VENEER_PLAIN, number(code), &first, NULL));
        for (int i = 0; i < 1500; i++) {
            struct code_veneer veneer;
            ck_assert_ok(
                code_block_add_veneer(block, CODE_VENEER_PLAIN, number(code), &veneer, NULL));
            ck_assert_uint_ne(veneer.address, kept.address);
        }
        code_block_destroy(block);
        ck_assert_uint_eq(atomic_load(first.slot), 0);
        size_t now = support_statistics(space).code_bytes;
        if (round == 0)
            bytes = now;
        ck_assert_uint_eq(now, bytes);
        ck_assert_uint_le(now, 3 * page_size());
        ck_assert_int_eq(support_call((const void *)(uintptr_t)kept.address), 5);
    }
    code_block_destroy(keeper);
    code_space_destroy(space);
}
END_TEST

/* Encodes veneers of the largest size of another kind. They contain the code of plain veneers. */
static bool encode_large_veneer(const struct cairn_arch *arch, uint64_t address,
                                uint64_t slot_address, uint8_t *code)
{
    arch->fill_nops(arch, code, ARCH_VENEER_BYTES_MAX);
    return arch->encode_veneer(arch, address, slot_address, code);
}

START_TEST(veneers_of_two_kinds_lie_apart)
{
    enum { VENEERS = 600 };
    struct cairn_arch arch = *arch_host();
    arch.framed_veneer_bytes = ARCH_VENEER_BYTES_MAX;
    arch.encode_framed_veneer = encode_large_veneer;
    struct code_space_options options = {.arch = &arch, .mode = support_modes[_i]};
    struct code_space *space;
    ck_assert_ok(code_space_create(&options, &space, NULL));
    uint8_t *code;
    struct code_block *block = support_loaded(space, 1, 3, &code);
    for (int i = 0; i < VENEERS; i++) {
        struct code_veneer veneer;
        enum code_veneer_kind kind = i % 3 == 0 ? CODE_VENEER_FRAMED : CODE_VENEER_PLAIN;
        ck_assert_ok(code_block_add_veneer(block, kind, number(code), &veneer, NULL));
        const uint8_t *at = (const uint8_t *)(uintptr_t)veneer.address;
        ck_assert_int_eq(support_call(at), 3);
        uint8_t expected[ARCH_VENEER_BYTES_MAX];
        size_t size = arch.veneer_bytes;
        if (kind == CODE_VENEER_FRAMED) {
            size = arch.framed_veneer_bytes;
            ck_assert(encode_large_veneer(&arch, veneer.address, number(veneer.slot), expected));
        } else {
            ck_assert(arch.encode_veneer(&arch, veneer.address, number(veneer.slot), expected));
        }
        ck_assert_int_eq(memcmp(at, expected, size), 0);
    }
    code_block_destroy(block);
    code_space_destroy(space);
}
END_TEST

/* There is no space for its code, or for its slot. */
START_TEST(missing_space_for_a_veneer_is_reported_as_full)
{
    for (size_t pages = 1; pages <= 2; pages++) {
        struct code_space *space = support_space(support_modes[_i], pages * page_size(), 0);
        size_t count = pages * page_size() / SUPPORT_FUNCTION_BYTES - (pages - 1);
        uint8_t *code;
        struct code_block *block = support_loaded(space, count, 3, &code);
        struct code_veneer veneer = {0};
        struct cairn_error error = {0};
        ck_assert_int_eq(code_block_add_veneer(block, CODE_VENEER_PLAIN, 1, &veneer, &error),
                         CAIRN_ERROR_FULL);
        ck_assert_ptr_nonnull(strstr(error.message, "slab_size"));
        ck_assert_uint_eq(veneer.address, 0);
        ck_assert_uint_eq(support_statistics(space).free_bytes, 0);
        ck_assert_int_eq(support_call(code), 3);
        code_block_destroy(block);
        code_space_destroy(space);
    }
}
END_TEST

static bool refuse_veneer(const struct cairn_arch *table, uint64_t address, uint64_t slot_address,
                          uint8_t *code)
{
    (void)table;
    (void)address;
    (void)slot_address;
    (void)code;
    return false;
}

START_TEST(unreachable_slot_is_an_error)
{
    struct cairn_arch arch = *arch_host();
    arch.encode_veneer = refuse_veneer;
    struct code_space_options options = {.arch = &arch, .mode = support_modes[_i]};
    struct code_space *space;
    ck_assert_ok(code_space_create(&options, &space, NULL));
    uint8_t *code;
    struct code_block *block = support_loaded(space, 1, 3, &code);
    struct code_veneer veneer;
    ck_assert_int_eq(code_block_add_veneer(block, CODE_VENEER_PLAIN, 1, &veneer, NULL),
                     CAIRN_ERROR_RANGE);
    ck_assert_uint_eq(support_statistics(space).code_bytes, page_size());
    ck_assert_uint_eq(support_statistics(space).data_bytes, 0);
    code_block_destroy(block);
    code_space_destroy(space);
}
END_TEST

/* ---- Writing ---- */

START_TEST(stored_word_is_executed)
{
    struct code_space *space = support_space(support_modes[_i], small_slab(), 0);
    uint8_t *code;
    struct code_block *block = support_loaded(space, 3, 1, &code);
    uint8_t *function = code + SUPPORT_FUNCTION_BYTES;
    for (int i = 0; i < 500; i++) {
        support_patch(block, function, i);
        ck_assert_int_eq(support_call(function), i);
        ck_assert_str_eq(support_protection(function), "r-x");
    }
    ck_assert_int_eq(support_call(code), 1);
    ck_assert_int_eq(support_call(code + 2 * SUPPORT_FUNCTION_BYTES), 3);
    code_block_destroy(block);
    code_space_destroy(space);
}
END_TEST

START_TEST(word_may_be_stored_before_protection)
{
    struct code_space *space = support_space(support_modes[_i], small_slab(), 0);
    struct code_block *block = support_block(space);
    uint8_t *code = support_functions(block, 1, 1);
    support_patch(block, code, 99);
    ck_assert_str_eq(support_protection(code), "rw-");
    ck_assert_ok(code_block_protect(block, NULL));
    ck_assert_int_eq(support_call(code), 99);
    code_block_destroy(block);
    code_space_destroy(space);
}
END_TEST

START_TEST(word_outside_is_refused)
{
    struct code_space *space = support_space(support_modes[_i], small_slab(), 0);
    struct code_block *block = support_block(space);
    uint8_t *code = support_functions(block, 1, 1);
    void *data;
    ck_assert_ok(code_block_allocate(block, PAGES_FOR_DATA, 64, 64, &data, NULL));
    ck_assert_ok(code_block_protect(block, NULL));
    const uint8_t word[ARCH_WORD_BYTES_MAX] = {0};
    size_t size = arch_host()->word_bytes;
    uint64_t end = number(code) + SUPPORT_FUNCTION_BYTES;
    ck_assert_int_eq(code_block_write(block, end - 1, word, size, NULL), CAIRN_ERROR_ARGUMENT);
    ck_assert_int_eq(code_block_write(block, number(data), word, size, NULL), CAIRN_ERROR_ARGUMENT);
    struct cairn_error error = {0};
    ck_assert_int_eq(code_block_write(block, end, word, size, &error), CAIRN_ERROR_ARGUMENT);
    ck_assert_uint_eq(error.offset, end);
    ck_assert_int_eq(support_call(code), 1);
    code_block_destroy(block);
    code_space_destroy(space);
}
END_TEST

START_TEST(writing_crosses_pages)
{
    struct code_space *space = support_space(support_modes[_i], small_slab(), 0);
    struct code_block *block = support_block(space);
    size_t size = 4 * page_size();
    void *address;
    ck_assert_ok(code_block_allocate(block, PAGES_FOR_CODE, size, 16, &address, NULL));
    uint8_t *code = address;
    memset(code, 0x11, size);
    ck_assert_ok(code_block_protect(block, NULL));
    uint8_t *bytes = malloc(size);
    memset(bytes, 0x22, size);
    size_t start = page_size() - 3;
    size_t length = 2 * page_size() + 5;
    ck_assert_ok(code_block_write(block, number(code) + start, bytes, length, NULL));
    ck_assert(all_bytes(code, start, 0x11));
    ck_assert(all_bytes(code + start, length, 0x22));
    ck_assert(all_bytes(code + start + length, size - start - length, 0x11));
    ck_assert_ok(code_block_write(block, number(code), bytes, size, NULL));
    ck_assert(all_bytes(code, size, 0x22));
    ck_assert_int_eq(code_block_write(block, number(code) + 1, bytes, size, NULL),
                     CAIRN_ERROR_ARGUMENT);
    ck_assert_int_eq(code_block_write(block, number(code), bytes, 0, NULL), CAIRN_ERROR_ARGUMENT);
    free(bytes);
    code_block_destroy(block);
    code_space_destroy(space);
}
END_TEST

START_TEST(alias_shows_and_changes_the_code_in_dual_mode)
{
    struct code_space *space = support_space(CAIRN_CODE_MODE_DUAL, small_slab(), 0);
    struct code_block *block = support_block(space);
    uint8_t *code = support_functions(block, 1, 1);
    uint8_t *alias = code_block_writable_alias(block, number(code));
    ck_assert_ptr_nonnull(alias);
    ck_assert_ptr_ne(alias, code);
    ck_assert_ok(code_block_protect(block, NULL));
    ck_assert_ptr_eq(code_block_writable_alias(block, number(code)), alias);
    ck_assert_ptr_eq(code_block_writable_alias(block, number(code) + 8), alias + 8);
    ck_assert_int_eq(memcmp(code, alias, SUPPORT_FUNCTION_BYTES), 0);
    ck_assert_str_eq(support_protection(alias), "rw-");
    ck_assert_str_eq(support_protection(code), "r-x");
    support_word(arch_host(), 321, alias);
    ck_assert_ok(code_space_synchronise(space, NULL));
    ck_assert_int_eq(support_call(code), 321);
    ck_assert_ptr_null(code_block_writable_alias(block, number(code) + SUPPORT_FUNCTION_BYTES));
    code_block_destroy(block);
    code_space_destroy(space);
}
END_TEST

START_TEST(single_mode_has_no_alias)
{
    struct code_space *space = support_space(CAIRN_CODE_MODE_SINGLE, small_slab(), 0);
    uint8_t *code;
    struct code_block *block = support_loaded(space, 1, 1, &code);
    ck_assert_ptr_null(code_block_writable_alias(block, number(code)));
    code_block_destroy(block);
    code_space_destroy(space);
}
END_TEST

/* ---- Memory failures ---- */

/* Calls everything that allocates, with several slabs, until the first failure. */
static enum cairn_status use_everything(struct code_space *space, struct code_block **blocks,
                                        int count)
{
    for (int i = 0; i < count; i++) {
        void *address;
        enum cairn_status status = code_block_create(space, 0, &blocks[i], NULL);
        for (int k = 0; status == CAIRN_OK && k < 20; k++)
            status = code_block_allocate(blocks[i], uses[k % 3], 600, 16, &address, NULL);
        for (int k = 0; status == CAIRN_OK && k < 20; k++) {
            struct code_veneer veneer;
            status = code_block_add_veneer(blocks[i], CODE_VENEER_PLAIN, 1, &veneer, NULL);
        }
        if (status == CAIRN_OK)
            status = code_block_protect(blocks[i], NULL);
        if (status != CAIRN_OK)
            return status;
    }
    return CAIRN_OK;
}

static enum cairn_status run_with(struct support_allocator *allocator, enum cairn_code_mode mode)
{
    enum { BLOCKS = 4 };
    struct code_block *blocks[BLOCKS] = {NULL};
    const struct code_space_options options = {
        .arch = arch_host(),
        .allocator = support_counting(allocator),
        .slab_size = 32 * page_size(),
        .mode = mode,
    };
    struct code_space *space = NULL;
    enum cairn_status status = code_space_create(&options, &space, NULL);
    if (status == CAIRN_OK)
        status = use_everything(space, blocks, BLOCKS);
    for (int i = 0; i < BLOCKS; i++)
        code_block_destroy(blocks[i]);
    if (space != NULL) {
        struct cairn_runtime_statistics statistics = support_statistics(space);
        size_t total = statistics.slab_count * statistics.slab_size_bytes;
        ck_assert_uint_ge(statistics.free_bytes + 2 * statistics.slab_count * page_size(), total);
    }
    code_space_destroy(space);
    return status;
}

START_TEST(every_allocation_may_fail)
{
    enum cairn_code_mode modes[] = {CAIRN_CODE_MODE_SINGLE, CAIRN_CODE_MODE_AUTOMATIC,
                                    CAIRN_CODE_MODE_DUAL};
    struct support_allocator allocator = {0};
    ck_assert_ok(run_with(&allocator, modes[_i]));
    ck_assert_uint_eq(allocator.outstanding_bytes, 0);
    size_t calls = allocator.calls;
    ck_assert_uint_gt(calls, 10);
    size_t before = support_count_mappings();
    for (size_t i = 1; i <= calls; i++) {
        struct support_allocator failing = {.fail_at = i};
        ck_assert_int_eq(run_with(&failing, modes[_i]), CAIRN_ERROR_MEMORY);
        ck_assert_uint_eq(failing.outstanding_bytes, 0);
    }
    ck_assert_uint_le(support_count_mappings(), before + 1);
}
END_TEST

static void add_tests(TCase *tests)
{
    tcase_add_test(tests, automatic_mode_gives_a_reason_only_if_it_is_single);
    tcase_add_test(tests, space_without_architecture_is_unsupported);
    tcase_add_test(tests, slab_beyond_reach_is_refused);
    tcase_add_test(tests, unknown_mode_is_refused);
    if (!support_is_emulated())
        tcase_add_test(tests, alias_shows_and_changes_the_code_in_dual_mode);
    tcase_add_test(tests, single_mode_has_no_alias);
    tcase_add_loop_test(tests, every_allocation_may_fail, 0, 1 + support_mode_count());
}

static void add_tests_of_both_modes(TCase *tests)
{
    /* Emulators do not support mincore. */
    if (!support_is_emulated())
        tcase_add_loop_test(tests, released_memory_goes_back_to_the_system, 0, 2);
    const TTest *const both[] = {
        forced_mode_is_the_mode,
        slab_size_is_rounded_up_to_a_page,
        no_file_stays_open,
        destroying_unmaps_everything,
        unused_space_takes_few_page_faults,
        statistics_count_pages,
        sections_of_one_kind_share_pages,
        blocks_share_no_pages,
        alignment_is_kept,
        bad_requests_are_refused,
        many_random_sections_keep_their_bytes,
        protection_gives_unused_pages_back,
        reserved_sections_are_used_where_they_were_reserved,
        blocks_share_pages_of_what_they_reserve,
        reserved_and_allocated_sections_are_in_one_module,
        released_pages_serve_any_use,
        reused_data_is_zero,
        protected_pages_refuse_what_they_should,
        protected_block_is_complete,
        empty_block_is_a_block,
        memory_ranges_say_what_pages_are,
        holds_code_knows_the_ends,
        error_of_a_full_slab_has_the_bytes_asked_for_and_free,
        modules_of_half_a_slab_always_load,
        loaded_modules_share_a_slab,
        slab_limit_is_kept,
        neighbouring_free_pages_become_one_range,
        reused_pages_are_clean_and_run,
        owner_is_found_for_every_page_while_published,
        nobody_owns_addresses_outside,
        owners_are_found_in_every_slab,
        veneer_jumps_to_the_target_in_its_slot,
        veneers_of_two_kinds_lie_apart,
        veneers_are_distinct_and_in_reach,
        veneers_are_used_again,
        missing_space_for_a_veneer_is_reported_as_full,
        unreachable_slot_is_an_error,
        stored_word_is_executed,
        word_may_be_stored_before_protection,
        word_outside_is_refused,
        writing_crosses_pages,
    };
    for (size_t i = 0; i < sizeof both / sizeof *both; i++)
        tcase_add_loop_test(tests, both[i], 0, support_mode_count());
}

int main(void)
{
    Suite *suite = suite_create("code");
    TCase *tests = tcase_create("one thread");
    tcase_set_timeout(tests, 60);
    add_tests(tests);
    add_tests_of_both_modes(tests);
    suite_add_tcase(suite, tests);
    return support_main(suite);
}
