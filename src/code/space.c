/*
 * A space: its mode, its slabs, and the choice of a slab for a new block.
 *
 * Lookups read the address of the first slab from the space itself, where it never changes. They
 * read those of all other slabs from a sorted table, which is replaced as a whole when a slab is
 * added. Slabs are valid as long as the space.
 *
 * SPDX-License-Identifier: MIT
 */
#include "code/space.h"

#include "base/error.h"
#include "base/inspect.h"
#include "code/state.h"
#include "code/write_key.h"

#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* ---- Options ---- */

static enum cairn_status check_options(const struct code_space_options *options, size_t page_size,
                                       size_t *slab_size, struct cairn_error *error)
{
    const struct cairn_arch *arch = options->arch;
    if (arch == NULL)
        return error_set(error, CAIRN_ERROR_UNSUPPORTED, 0, "unsupported host architecture %s",
                         cairn_architecture_name(cairn_architecture_host()));
    if ((unsigned)options->mode > CAIRN_CODE_MODE_SINGLE)
        return error_set(error, CAIRN_ERROR_ARGUMENT, (uint64_t)options->mode,
                         "`code_mode` is invalid: %d", (int)options->mode);
    size_t size = options->slab_size == 0 ? arch->slab_bytes_default : options->slab_size;
    if (size > arch->reach_bytes)
        return error_set(error, CAIRN_ERROR_ARGUMENT, size,
                         "slab_size is %zu bytes; a direct call on %s reaches %zu", size,
                         cairn_architecture_name(arch->architecture), arch->reach_bytes);
    *slab_size = (size + page_size - 1) & ~(page_size - 1);
    return CAIRN_OK;
}

/* ---- The table of slabs for lookups ---- */

static size_t table_bytes(size_t count)
{
    return sizeof(struct slab_table) + count * sizeof(struct code_slab_lookup);
}

/* Returns the slab that contains `pc`, or NULL. */
static const struct code_slab_lookup *find_slab(const struct code_space *space, uint64_t pc)
{
    const struct slab_table *table = atomic_load_explicit(&space->slab_table, memory_order_acquire);
    size_t low = 0;
    size_t count = table->count;
    while (count > 1) {
        size_t half = count / 2;
        low = table->slabs[low + half].base <= pc ? low + half : low;
        count -= half;
    }
    const struct code_slab_lookup *slab = &table->slabs[low];
    return pc - slab->base < slab->size ? slab : NULL;
}

uintptr_t code_space_owner_beyond_first_slab(const struct code_space *space, uint64_t pc)
{
    const struct code_slab_lookup *slab = find_slab(space, pc);
    if (slab == NULL)
        return 0;
    return (uintptr_t)owners_find(slab->owners, (pc - slab->base) >> OWNERS_UNIT_SHIFT);
}

bool code_space_holds(const struct code_space *space, uint64_t pc)
{
    return find_slab(space, pc) != NULL;
}

/* ---- Ways of mapping ---- */

static const struct code_map *const maps[] = {
    &code_map_dual_file,
    &code_map_dual_shared,
    &code_map_single,
};
enum { MAP_COUNT = sizeof maps / sizeof *maps };

/* The function uses neither TOC nor environment, so its descriptor needs only the entry. The
 * descriptor is volatile because the compiler does not know that the call reads it. */
static int call(const struct cairn_arch *arch, const uint8_t *code)
{
    const volatile uint64_t descriptor[3] = {(uint64_t)(uintptr_t)code};
    uintptr_t pointer = arch->has_descriptors ? (uintptr_t)descriptor : (uintptr_t)code;
    int (*function)(void) = (int (*)(void))pointer;
    return function();
}

/* Writes a function through the slab's map, and changes it in the same way in which sites are
 * patched. In dual mapping, emulators fail this test if they keep translations by the address that
 * was written to. Kernels and sandboxes that refuse a step fail it at that step. (Loading in place
 * of a part of the executed view takes the same calls as mapping that part.) Errors: UNSUPPORTED if
 * old code is executed; SYSTEM. */
static enum cairn_status test_map(struct code_slab *slab, const struct cairn_arch *arch,
                                  struct cairn_error *error)
{
    enum { ROUNDS = 12 };
    size_t page;
    bool found;
    enum cairn_status status = slab_take(slab, PAGES_FOR_CODE, 1, &page, &found, error);
    if (status != CAIRN_OK)
        return status;
    const struct arch_landing_pad *pad = &arch->landing_pad;
    uint8_t *start = slab->base + page * slab->page_size;
    uint8_t *code = start + pad->bytes;
    size_t offset = page * slab->page_size + pad->bytes;
    if (pad->bytes > 0)
        status = slab->map->write(slab, offset - pad->bytes, pad->code, pad->bytes, error);
    for (int round = 0; status == CAIRN_OK && round <= ROUNDS; round++) {
        uint8_t bytes[ARCH_SELF_TEST_BYTES_MAX];
        int expected = 1 + round * 37;
        size_t size = arch->encode_self_test(arch, expected, bytes);
        status = slab->map->write(slab, offset, bytes, size, error);
        int value = status == CAIRN_OK ? call(arch, start) : expected;
        if (value != expected)
            status = error_set(error, CAIRN_ERROR_UNSUPPORTED, (uintptr_t)code,
                               "change %d of a function was written and not executed: it returned "
                               "%d instead of %d",
                               round, value, expected);
    }
    slab_release(slab, PAGES_FOR_CODE, page, 1);
    return status;
}

/* Creates a slab with this map and tests it. */
static enum cairn_status try_map(struct code_space *space, const struct code_map *map,
                                 struct code_slab **slab, struct cairn_error *error)
{
    enum cairn_status status =
        slab_create(&space->allocator, map, space->slab_size, space->read_execute, slab, error);
    if (status != CAIRN_OK)
        return status;
    (*slab)->write_key = space->write_key;
    status = test_map(*slab, space->arch, error);
    if (status != CAIRN_OK)
        slab_destroy(&space->allocator, *slab);
    return status;
}

/* ---- Adding and choosing slabs ---- */

/* Adds a slab to the space, and makes it visible to lookups: publishes a table with the slabs of
 * the older table and the added slab. Destroys the slab if there is no memory. */
static enum cairn_status add_slab(struct code_space *space, struct code_slab *slab,
                                  struct cairn_error *error)
{
    struct slab_table *older = atomic_load_explicit(&space->slab_table, memory_order_relaxed);
    size_t count = older == NULL ? 0 : older->count;
    struct slab_table *table = memory_new(&space->allocator, 1, table_bytes(count + 1));
    if (table == NULL) {
        slab_destroy(&space->allocator, slab);
        return error_set(error, CAIRN_ERROR_MEMORY, 0, "no memory for the list of code slabs");
    }
    table->older = older;
    table->count = count + 1;
    uint64_t base = (uintptr_t)slab->base;
    size_t place = 0;
    for (; place < count && older->slabs[place].base < base; place++)
        table->slabs[place] = older->slabs[place];
    table->slabs[place] = (struct code_slab_lookup){base, slab->size, slab->owners.pages};
    for (; place < count; place++)
        table->slabs[place + 1] = older->slabs[place];
    atomic_store_explicit(&space->slab_table, table, memory_order_release);
    slab->next = space->slabs;
    space->slabs = slab;
    space->slab_count++;
    return CAIRN_OK;
}

/* Creates a slab with the first slab's map. If the system now refuses that map, tries another one
 * of the same mode. For example, memory files are refused when the process has no file descriptor
 * left or its RLIMIT_FSIZE has been lowered. */
static enum cairn_status create_slab(struct code_space *space, struct cairn_error *error)
{
    struct code_slab *slab;
    enum cairn_status status = slab_create(&space->allocator, space->map, space->slab_size,
                                           space->read_execute, &slab, error);
    for (size_t i = 0; status == CAIRN_ERROR_SYSTEM && i < MAP_COUNT; i++)
        if (maps[i] != space->map && maps[i]->mode == space->map->mode &&
            try_map(space, maps[i], &slab, NULL) == CAIRN_OK)
            status = CAIRN_OK;
    if (status != CAIRN_OK)
        return status;
    slab->write_key = space->write_key;
    if (space->is_visible)
        status = map_make_visible(slab, error);
    if (status == CAIRN_OK)
        return add_slab(space, slab, error);
    slab_destroy(&space->allocator, slab);
    return status;
}

bool space_hides(const struct code_space *space, const struct code_slab *slab)
{
    return space->is_visible && !slab->is_visible && slab->map->mode == CAIRN_CODE_MODE_DUAL;
}

static struct code_slab *roomiest(const struct code_space *space)
{
    struct code_slab *best = space->slabs;
    for (struct code_slab *slab = best; slab != NULL; slab = slab->next)
        if (slab_room(slab) > slab_room(best))
            best = slab;
    return best;
}

/* Prefers a slab in which a module of half a slab is certain to fit until it is complete. */
enum cairn_status space_choose_slab(struct code_space *space, size_t page_count,
                                    struct code_slab **slab, struct cairn_error *error)
{
    struct code_slab *chosen = space->slabs;
    while (chosen != NULL && (space_hides(space, chosen) || chosen->open_blocks != 0 ||
                              slab_room(chosen) < (chosen->page_count + 1) / 2))
        chosen = chosen->next;
    if (chosen == NULL && (space->slab_limit == 0 || space->slab_count < space->slab_limit)) {
        enum cairn_status status = create_slab(space, error);
        if (status == CAIRN_OK)
            chosen = space->slabs;
        else if (status != CAIRN_ERROR_SYSTEM || slab_room(roomiest(space)) < page_count)
            return status;
    }
    if (chosen == NULL)
        chosen = roomiest(space);
    *slab = chosen;
    return CAIRN_OK;
}

/* ---- Choosing a map ---- */

static enum cairn_status choose_map(struct code_space *space, enum cairn_code_mode mode,
                                    struct code_slab **slab, struct cairn_error *error)
{
    struct cairn_error last = {0};
    enum cairn_status status = CAIRN_ERROR_UNSUPPORTED;
    for (size_t i = 0; i < MAP_COUNT && status != CAIRN_ERROR_MEMORY; i++) {
        const struct code_map *map = maps[i];
        if (mode != CAIRN_CODE_MODE_AUTOMATIC && map->mode != mode)
            continue;
        status = try_map(space, map, slab, &last);
        if (status == CAIRN_OK) {
            space->map = map;
            /* The failures matter only if the mode is not the preferred one. */
            if (mode != CAIRN_CODE_MODE_AUTOMATIC || map->mode == CAIRN_CODE_MODE_DUAL)
                space->reason[0] = '\0';
            return CAIRN_OK;
        }
        size_t length = strlen(space->reason);
        snprintf(space->reason + length, sizeof space->reason - length, "%s%s: %s",
                 length == 0 ? "" : "; ", map->name, last.message);
    }
    if (error != NULL)
        *error = last;
    if (status == CAIRN_ERROR_MEMORY || mode != CAIRN_CODE_MODE_DUAL)
        return status;
    error_set(error, CAIRN_ERROR_UNSUPPORTED, 0, "a dual mapping does not work here: %s",
              space->reason);
    if (error != NULL)
        error->system_error = last.system_error;
    return CAIRN_ERROR_UNSUPPORTED;
}

/* ---- Creating and destroying ---- */

static enum cairn_status fill_space(struct code_space *space, enum cairn_code_mode mode,
                                    struct cairn_error *error)
{
    enum cairn_status status = ownership_create(space, error);
    if (status != CAIRN_OK)
        return status;
    struct code_slab *slab;
    status = choose_map(space, mode, &slab, error);
    if (status != CAIRN_OK)
        return status;
    space->lookup.first_slab =
        (struct code_slab_lookup){(uintptr_t)slab->base, slab->size, slab->owners.pages};
    barrier_register(space);
    return add_slab(space, slab, error);
}

enum cairn_status code_space_create(const struct code_space_options *options,
                                    struct code_space **space, struct cairn_error *error)
{
    size_t page_size = (size_t)sysconf(_SC_PAGESIZE);
    size_t slab_size = 0;
    enum cairn_status status = check_options(options, page_size, &slab_size, error);
    if (status != CAIRN_OK)
        return status;
    struct cairn_allocator allocator = memory_allocator(&options->allocator);
    struct code_space *created = memory_new(&allocator, 1, sizeof *created);
    if (created == NULL)
        return error_set(error, CAIRN_ERROR_MEMORY, 0, "no memory for a code space");
    created->allocator = allocator;
    created->arch = options->arch;
    created->page_size = page_size;
    created->slab_size = slab_size;
    created->slab_limit = options->slab_limit;
    created->read_execute = PROT_READ | PROT_EXEC;
    if (options->has_landing_pads)
        created->read_execute |= arch_host_landing_protection();
    grace_init(&created->grace);
    code_watchers_init(&created->watchers);
    space_create_locks(created);
    status = map_check_personality(error);
    if (status == CAIRN_OK && options->protects_writes)
        status = write_key_create(&created->write_key, error);
    if (status == CAIRN_OK)
        status = fill_space(created, options->mode, error);
    if (status == CAIRN_OK && options->protects_writes &&
        created->map->mode != CAIRN_CODE_MODE_DUAL)
        status = error_set(error, CAIRN_ERROR_UNSUPPORTED, 0,
                           "protects_writes needs a dual mapping, and the code mode is not "
                           "CAIRN_CODE_MODE_DUAL%s%s",
                           created->reason[0] == '\0' ? "" : ": ", created->reason);
    if (status != CAIRN_OK) {
        code_space_destroy(created);
        return status;
    }
    space_watch_forks(created);
    *space = created;
    return CAIRN_OK;
}

void code_space_destroy(struct code_space *space)
{
    if (space == NULL)
        return;
    space_ignore_forks(space);
    while (space->slabs != NULL) {
        struct code_slab *slab = space->slabs;
        space->slabs = slab->next;
        slab_destroy(&space->allocator, slab);
    }
    struct slab_table *table = atomic_load_explicit(&space->slab_table, memory_order_relaxed);
    while (table != NULL) {
        struct slab_table *older = table->older;
        memory_free(&space->allocator, table, table_bytes(table->count));
        table = older;
    }
    write_key_destroy(space->write_key);
    ownership_destroy(space);
    grace_destroy(&space->grace);
    code_watchers_destroy(&space->watchers);
    space_destroy_locks(space);
    struct cairn_allocator allocator = space->allocator;
    memory_free(&allocator, space, sizeof *space);
}

enum cairn_status space_enter(struct code_space *space, struct cairn_error *error)
{
    enum cairn_status status = code_space_check_own(space, error);
    if (status == CAIRN_OK)
        pthread_mutex_lock(&space->lock);
    return status;
}

void space_leave(struct code_space *space) { pthread_mutex_unlock(&space->lock); }

/* Number of pages of a slab for which it is worth while to release memory. */
enum { DIRTY_PAGES_MIN = 16 };

void code_space_clean(struct code_space *space)
{
    if (space_enter(space, NULL) != CAIRN_OK)
        return;
    for (struct code_slab *slab = space->slabs; slab != NULL; slab = slab->next)
        if (slab->dirty_count >= DIRTY_PAGES_MIN)
            slab_clean(slab);
    space_leave(space);
}

/* ---- Properties ---- */

enum cairn_code_mode code_space_mode(const struct code_space *space) { return space->map->mode; }

const char *code_space_mode_reason(const struct code_space *space) { return space->reason; }

int code_space_write_key(const struct code_space *space) { return space->write_key; }

struct grace *code_space_grace(struct code_space *space) { return &space->grace; }

enum cairn_status code_space_make_visible(struct code_space *space, struct cairn_error *error)
{
    enum cairn_status status = space_enter(space, error);
    if (status != CAIRN_OK)
        return status;
    for (struct code_slab *slab = space->slabs; slab != NULL && status == CAIRN_OK;
         slab = slab->next)
        status = map_make_visible(slab, error);
    space->is_visible = status == CAIRN_OK;
    space_leave(space);
    return status;
}

struct code_watchers *code_space_watchers(struct code_space *space) { return &space->watchers; }

const struct cairn_arch *code_space_arch(const struct code_space *space) { return space->arch; }

void code_space_statistics(struct code_space *space, struct cairn_runtime_statistics *statistics)
{
    statistics->slab_size_bytes = space->slab_size;
    size_t counts[PAGE_STATE_COUNT] = {0};
    pthread_mutex_lock(&space->lock);
    statistics->slab_count = space->slab_count;
    for (const struct code_slab *slab = space->slabs; slab != NULL; slab = slab->next) {
        slab_count_states(slab, counts);
        statistics->index_bytes += slab->owners.table_count * sizeof(struct owners_table);
    }
    space_leave(space);
    size_t code = counts[PAGE_CODE] + counts[PAGE_OPEN_CODE];
    size_t data = counts[PAGE_DATA] + counts[PAGE_READ_ONLY] + counts[PAGE_OPEN_READ_ONLY];
    size_t free = counts[PAGE_FREE] + counts[PAGE_SPARE_CODE] + counts[PAGE_SPARE_READ_ONLY] +
                  counts[PAGE_SPARE_DATA];
    statistics->code_bytes = code * space->page_size;
    statistics->data_bytes = data * space->page_size;
    statistics->free_bytes = free * space->page_size;
}

/* ---- Readers in other processes ---- */

_Static_assert((int)PAGE_FREE == INSPECT_PAGE_FREE &&
                   (int)PAGE_OPEN_CODE == INSPECT_PAGE_OPEN_CODE &&
                   (int)PAGE_OPEN_READ_ONLY == INSPECT_PAGE_OPEN_READ_ONLY &&
                   (int)PAGE_CODE == INSPECT_PAGE_CODE &&
                   (int)PAGE_READ_ONLY == INSPECT_PAGE_READ_ONLY &&
                   (int)PAGE_DATA == INSPECT_PAGE_DATA &&
                   (int)PAGE_SPARE_CODE == INSPECT_PAGE_SPARE_CODE &&
                   (int)PAGE_STATE_COUNT == INSPECT_PAGE_STATE_COUNT,
               "states of pages have their numbers");

void code_space_inspect(struct inspect_field *fields)
{
    fields[INSPECT_SPACE_SLABS] = INSPECT_MEMBER(struct code_space, slabs);
    fields[INSPECT_SPACE_STUB_COUNT] = INSPECT_MEMBER(struct code_space, stub_count);
    fields[INSPECT_SPACE_STUB_BYTES] = INSPECT_MEMBER(struct code_space, stub_bytes);
    fields[INSPECT_SLAB_NEXT] = INSPECT_MEMBER(struct code_slab, next);
    fields[INSPECT_SLAB_BASE] = INSPECT_MEMBER(struct code_slab, base);
    fields[INSPECT_SLAB_SIZE] = INSPECT_MEMBER(struct code_slab, size);
    fields[INSPECT_SLAB_PAGE_SIZE] = INSPECT_MEMBER(struct code_slab, page_size);
    fields[INSPECT_SLAB_PAGE_COUNT] = INSPECT_MEMBER(struct code_slab, page_count);
    fields[INSPECT_SLAB_STATES] = INSPECT_MEMBER(struct code_slab, states);
    for (unsigned use = 0; use < PAGE_USE_COUNT; use++) {
        fields[INSPECT_SLAB_PARTS + use] = INSPECT_MEMBER(struct code_slab, parts[0].words);
        fields[INSPECT_SLAB_PARTS + use].offset += use * (uint32_t)sizeof(struct units);
    }
    fields[INSPECT_PART_BYTES] = INSPECT_CONSTANT(PART_UNIT_BYTES);
}
