/*
 * Reads a runtime of another process into a model.
 *
 * A field is read with a size and an offset that the descriptor gives and check_descriptor has
 * checked. A list ends with a null pointer, with a link that does not lead back to where it came
 * from, or at its limit. So no list is endless, whatever the memory holds.
 *
 * SPDX-License-Identifier: MIT
 */
#include "arch/arch.h"
#include "tools/inspect/inspect.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum {
    ATTEMPTS = 6,
    OFFSET_MAX = 1 << 16,
    PAGE_UNITS_MAX = 1 << 13,
    STATES_AT_ONCE = 4096,
    WORD_BITS = 64,
    FRESH_ATTEMPTS = 8
};

/* Reads one runtime. */
struct walk {
    struct process_memory *memory;
    struct inspected_runtime *runtime;
    const struct inspect_field *fields;
    const struct cairn_arch *arch;
    bool lacks_memory;
};

/* ---- Faults ---- */

/* Notes the first fault. Returns false. */
__attribute__((format(printf, 2, 3))) static bool fault(struct inspected_runtime *runtime,
                                                        const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    if (runtime->fault[0] == '\0')
        vsnprintf(runtime->fault, sizeof runtime->fault, format, arguments);
    va_end(arguments);
    return false;
}

/* Whether everything could be read so far. */
static bool is_readable(const struct walk *walk)
{
    const struct process_memory *memory = walk->memory;
    return memory->system_error == 0 ||
           fault(walk->runtime, "the memory at 0x%llx cannot be read: %s",
                 (unsigned long long)memory->failed_address, strerror(memory->system_error));
}

/* ---- Fields ---- */

static uint64_t constant(const struct walk *walk, enum inspect_name name)
{
    return walk->fields[name].offset;
}

static uint64_t widen(const void *bytes, size_t size)
{
    uint8_t one;
    uint16_t two;
    uint32_t four;
    uint64_t eight = 0;
    switch (size) {
    case sizeof one:
        memcpy(&one, bytes, size);
        return one;
    case sizeof two:
        memcpy(&two, bytes, size);
        return two;
    case sizeof four:
        memcpy(&four, bytes, size);
        return four;
    default:
        memcpy(&eight, bytes, sizeof eight);
        return eight;
    }
}

/* Returns a member of the structure at `address`; 0 if it cannot be read. */
static uint64_t get(const struct walk *walk, uint64_t address, enum inspect_name name)
{
    const struct inspect_field *field = &walk->fields[name];
    uint8_t bytes[sizeof(uint64_t)];
    process_memory_read(walk->memory, address + field->offset, bytes, field->bytes);
    uint64_t value = widen(bytes, field->bytes) >> field->shift;
    return field->bits == 0 ? value : value & ((UINT64_C(1) << field->bits) - 1);
}

static bool is_field_valid(const struct inspect_field *field)
{
    bool has_size = field->bytes == 0 || field->bytes == 1 || field->bytes == 2 ||
                    field->bytes == 4 || field->bytes == 8;
    return has_size && field->offset < OFFSET_MAX && field->bits < WORD_BITS &&
           field->shift + field->bits <= 8 * (field->bytes == 0 ? 8 : field->bytes) &&
           field->shift < WORD_BITS;
}

/* Whether the field's kind is what its name needs: a member, or a constant or place. */
static bool is_kind_right(enum inspect_name name, const struct inspect_field *field)
{
    switch (name) {
    case INSPECT_PART_BYTES:
    case INSPECT_FIRST_SPANS:
    case INSPECT_SPAN_STRIDE:
    case INSPECT_SPAN_UNIT_BYTES:
    case INSPECT_SITE_STRIDE:
        return field->bytes == 0 && field->offset > 0;
    case INSPECT_MODULE_NAME:
    case INSPECT_BLOCK_USER:
    case INSPECT_BLOCK_SPANS:
    case INSPECT_CACHE_HITS:
        return field->bytes == 0;
    default:
        return field->bytes > 0;
    }
}

/* ---- The descriptor ---- */

static bool check_head(struct inspected_runtime *runtime)
{
    const struct inspect_descriptor *descriptor = &runtime->descriptor;
    if (memcmp(descriptor->magic, INSPECT_MAGIC, sizeof descriptor->magic) != 0)
        return fault(runtime, "it does not begin with \"" INSPECT_MAGIC "\"");
    if (descriptor->byte_order != INSPECT_BYTE_ORDER)
        return fault(runtime, "its byte order is not this host's");
    if (descriptor->version != INSPECT_VERSION)
        return fault(
            runtime, "it has version %u (of Cairn %.*s), and this cairn reads version %u only",
            descriptor->version, (int)strnlen(descriptor->release, sizeof descriptor->release),
            descriptor->release, INSPECT_VERSION);
    if (descriptor->pointer_bytes != sizeof(uint64_t))
        return fault(runtime, "its pointers have %u bytes, and 8 are needed",
                     descriptor->pointer_bytes);
    if (arch_find((enum cairn_architecture)descriptor->architecture) == NULL)
        return fault(runtime, "there is no architecture with number %u", descriptor->architecture);
    return descriptor->field_count == INSPECT_FIELD_COUNT ||
           fault(runtime, "it has %u fields, and version %u has %u", descriptor->field_count,
                 INSPECT_VERSION, INSPECT_FIELD_COUNT);
}

static bool check_descriptor(struct inspected_runtime *runtime)
{
    if (!check_head(runtime))
        return false;
    for (unsigned i = 0; i < INSPECT_FIELD_COUNT; i++) {
        const struct inspect_field *field = &runtime->descriptor.fields[i];
        if (!field->is_set && i >= INSPECT_CACHE_SITE)
            continue;
        if (!field->is_set || !is_field_valid(field) || !is_kind_right((enum inspect_name)i, field))
            return fault(runtime, "its field %u is invalid (offset %u, %u bytes)", i, field->offset,
                         field->bytes);
    }
    return true;
}

/* ---- Lists ---- */

/* Returns a new item of zeros. NULL, after noting it, without memory. */
static void *add(struct walk *walk, struct list *list, size_t item_bytes)
{
    void *item = list_add(list, item_bytes);
    walk->lacks_memory |= item == NULL;
    return item;
}

/* Returns the sites of a module. */
static struct inspected_site *sites_of(const struct inspected_runtime *runtime,
                                       const struct inspected_module *module)
{
    return (struct inspected_site *)runtime->sites.items + module->first_site;
}

/* ---- Code memory ---- */

static const uint8_t use_of_state[INSPECT_PAGE_STATE_COUNT] = {
    [INSPECT_PAGE_OPEN_CODE] = INSPECT_CODE + 1,
    [INSPECT_PAGE_OPEN_READ_ONLY] = INSPECT_READ_ONLY + 1,
    [INSPECT_PAGE_CODE] = INSPECT_CODE + 1,
    [INSPECT_PAGE_READ_ONLY] = INSPECT_READ_ONLY + 1,
    [INSPECT_PAGE_DATA] = INSPECT_DATA + 1,
};

/* Returns the free units of a page, in the bit map at `words`. */
static uint64_t free_units(const struct walk *walk, uint64_t words, uint64_t page, uint64_t units)
{
    uint64_t count = 0;
    uint64_t map[PAGE_UNITS_MAX / WORD_BITS];
    size_t size = units / WORD_BITS * sizeof *map;
    process_memory_read(walk->memory, words + page * size, map, size);
    for (uint64_t i = 0; i < units / WORD_BITS; i++)
        count += (uint64_t)__builtin_popcountll(map[i]);
    return count;
}

/* Adds up the pages in use, without the free parts of them. */
static void read_pages(const struct walk *walk, uint64_t address, uint64_t page_size,
                       uint64_t page_count, struct inspected_slab *slab)
{
    uint64_t states = get(walk, address, INSPECT_SLAB_STATES);
    uint64_t unit_bytes = constant(walk, INSPECT_PART_BYTES);
    uint64_t parts[INSPECT_USE_COUNT];
    for (unsigned use = 0; use < INSPECT_USE_COUNT; use++)
        parts[use] = get(walk, address, (enum inspect_name)(INSPECT_SLAB_PARTS + use));
    uint8_t chunk[STATES_AT_ONCE];
    for (uint64_t page = 0; page < page_count && is_readable(walk); page++) {
        uint64_t at = page % STATES_AT_ONCE;
        uint64_t left = page_count - page;
        if (at == 0)
            process_memory_read(walk->memory, states + page, chunk,
                                left < STATES_AT_ONCE ? left : STATES_AT_ONCE);
        uint8_t use = chunk[at] < INSPECT_PAGE_STATE_COUNT ? use_of_state[chunk[at]] : 0;
        if (use-- == 0)
            continue;
        uint64_t free = free_units(walk, parts[use], page, page_size / unit_bytes) * unit_bytes;
        slab->mapped_bytes[use] += page_size;
        slab->used_bytes[use] += page_size - (free < page_size ? free : page_size);
    }
}

static void read_slabs(struct walk *walk)
{
    struct inspected_runtime *runtime = walk->runtime;
    uint64_t address = get(walk, runtime->descriptor.space, INSPECT_SPACE_SLABS);
    uint64_t pages = 0;
    runtime->stub_count = (uint32_t)get(walk, runtime->descriptor.space, INSPECT_SPACE_STUB_COUNT);
    runtime->stub_bytes = get(walk, runtime->descriptor.space, INSPECT_SPACE_STUB_BYTES);
    while (address != 0 && is_readable(walk)) {
        uint64_t page_size = get(walk, address, INSPECT_SLAB_PAGE_SIZE);
        uint64_t page_count = get(walk, address, INSPECT_SLAB_PAGE_COUNT);
        if (runtime->slabs.count >= INSPECT_SLABS_MAX) {
            fault(runtime, "there are more than %d slabs", INSPECT_SLABS_MAX);
            return;
        }
        struct inspected_slab *slab = add(walk, &runtime->slabs, sizeof *slab);
        if (slab == NULL)
            return;
        slab->base = get(walk, address, INSPECT_SLAB_BASE);
        slab->size = get(walk, address, INSPECT_SLAB_SIZE);
        uint64_t units = page_size / constant(walk, INSPECT_PART_BYTES);
        if (units > PAGE_UNITS_MAX || units % WORD_BITS != 0 ||
            page_count > INSPECT_PAGES_MAX - pages) {
            fault(runtime, "the slab at 0x%llx has invalid sizes", (unsigned long long)slab->base);
            return;
        }
        pages += page_count;
        read_pages(walk, address, page_size, page_count, slab);
        address = get(walk, address, INSPECT_SLAB_NEXT);
    }
}

/* ---- Sites ---- */

/* The instruction of a site, as in site/word.h. */
struct instruction {
    uint64_t address;
    uint64_t word; /* address of the aligned word that holds it */
    uint64_t length;
    uint64_t shift;
};

/* Returns the bits of the instruction that is executed at this moment. */
static uint64_t read_instruction(const struct walk *walk, const struct instruction *instruction)
{
    uint8_t bytes[sizeof(uint64_t)];
    size_t size = walk->arch->word_bytes;
    process_memory_read_now(walk->memory, instruction->word, bytes, size);
    return (widen(bytes, size) >> instruction->shift) &
           (UINT64_MAX >> (WORD_BITS - 8 * instruction->length));
}

/* Returns the address of the slot of the veneer that the instruction branches to; 0 if there is
 * none. */
static uint64_t find_slot(const struct walk *walk, uint64_t site, uint64_t bits)
{
    uint64_t veneer = get(walk, site, INSPECT_SITE_VENEERS);
    for (int i = 0; veneer != 0 && i < INSPECT_VENEERS_MAX; i++) {
        if (get(walk, veneer, INSPECT_VENEER_BITS) == bits)
            return get(walk, veneer, INSPECT_VENEER_SLOT);
        veneer = get(walk, veneer, INSPECT_VENEER_NEXT);
    }
    return 0;
}

/* Decodes the instruction, as src/site/describe.c does. The slot of a veneer belongs to the
 * instruction if that is the same before and after the slot is read. */
static void read_branch(const struct walk *walk, uint64_t address,
                        const struct instruction *instruction, struct inspected_site *site)
{
    uint64_t bits = read_instruction(walk, instruction);
    uint64_t slot = 0;
    uint64_t target = 0;
    enum cairn_site_state branch;
    for (int i = 0; i < FRESH_ATTEMPTS; i++) {
        slot = find_slot(walk, address, bits);
        if (slot == 0)
            break;
        process_memory_read_now(walk->memory, slot, &target, sizeof target);
        uint64_t again = read_instruction(walk, instruction);
        if (again == bits)
            break;
        bits = again;
    }
    if (get(walk, address, INSPECT_SITE_KEEPS_ORIGINAL) != 0 &&
        bits == get(walk, address, INSPECT_SITE_INITIAL_BITS)) {
        site->state = CAIRN_SITE_ORIGINAL;
        return;
    }
    uint64_t direct;
    if (!walk->arch->decode_branch(walk->arch, bits, instruction->address, instruction->length,
                                   &branch, &direct))
        return;
    bool skips = branch == CAIRN_SITE_JUMP && slot == 0 &&
                 direct == site->address + site->byte_count &&
                 get(walk, address, INSPECT_SITE_HAS_INLINE_SPACE) != 0;
    if (branch == CAIRN_SITE_NOP || skips) {
        site->state = CAIRN_SITE_NOP;
        return;
    }
    site->state = (uint8_t)branch;
    site->uses_veneer = slot != 0;
    site->target = slot != 0 ? target : direct;
}

static uint64_t read_id(const struct walk *walk, uint64_t table, uint64_t record)
{
    uint64_t low = get(walk, table, INSPECT_TABLE_IDS_LOW);
    uint64_t high = get(walk, table, INSPECT_TABLE_IDS_HIGH);
    uint32_t halves[2] = {0, (uint32_t)get(walk, table, INSPECT_TABLE_ID_HIGH)};
    process_memory_read(walk->memory, low + record * sizeof *halves, &halves[0], sizeof *halves);
    if (high != 0)
        process_memory_read(walk->memory, high + record * sizeof *halves, &halves[1],
                            sizeof *halves);
    return (uint64_t)halves[1] << 32 | halves[0];
}

static bool read_site(const struct walk *walk, uint64_t table, uint64_t address,
                      struct inspected_site *site)
{
    uint64_t at = get(walk, address, INSPECT_SITE_ADDRESS) +
                  get(walk, address, INSPECT_SITE_INSTRUCTION_OFFSET);
    const struct instruction instruction = {
        .address = at,
        .word = at & ~(uint64_t)(walk->arch->word_bytes - 1),
        .length = get(walk, address, INSPECT_SITE_INSTRUCTION_LENGTH),
        .shift = get(walk, address, INSPECT_SITE_WORD_SHIFT),
    };
    site->place = address;
    site->id = read_id(walk, table, get(walk, address, INSPECT_SITE_RECORD));
    site->address = get(walk, address, INSPECT_SITE_ADDRESS);
    site->byte_count = (uint32_t)get(walk, address, INSPECT_SITE_BYTE_COUNT);
    site->kind = (uint8_t)get(walk, address, INSPECT_SITE_KIND);
    site->live = get(walk, address, INSPECT_SITE_LIVE) != 0;
    site->state = site->kind == CAIRN_RECORD_STACKMAP && site->byte_count > 0
                      ? CAIRN_SITE_ORIGINAL
                      : CAIRN_SITE_UNMANAGED;
    if (!site->live)
        return is_readable(walk);
    if (instruction.length == 0 || instruction.length > walk->arch->word_bytes ||
        instruction.shift + 8 * instruction.length > 8 * walk->arch->word_bytes)
        return fault(walk->runtime, "the site at 0x%llx has an invalid instruction",
                     (unsigned long long)site->address);
    read_branch(walk, address, &instruction, site);
    return is_readable(walk);
}

static bool read_sites(struct walk *walk, uint64_t sites, uint64_t table,
                       struct inspected_module *module)
{
    struct inspected_runtime *runtime = walk->runtime;
    uint64_t array = get(walk, sites, INSPECT_SITES_ARRAY);
    uint64_t count = get(walk, sites, INSPECT_SITES_COUNT);
    module->site_count = 0;
    for (uint64_t i = 0; i < count && is_readable(walk); i++) {
        if (runtime->sites.count >= INSPECT_SITES_MAX)
            return fault(runtime, "there are more than %d sites", INSPECT_SITES_MAX);
        struct inspected_site *site = add(walk, &runtime->sites, sizeof *site);
        if (site == NULL)
            return false;
        if (!read_site(walk, table, array + i * constant(walk, INSPECT_SITE_STRIDE), site)) {
            runtime->sites.count--;
            return false;
        }
        module->site_count++;
    }
    return is_readable(walk);
}

/* ---- Modules ---- */

/* Adds up the bytes of a module's spans. */
static bool read_spans(struct walk *walk, uint64_t block, struct inspected_module *module)
{
    uint64_t slab = get(walk, block, INSPECT_BLOCK_SLAB);
    uint64_t count = get(walk, block, INSPECT_BLOCK_SPAN_COUNT);
    uint64_t lists = get(walk, block, INSPECT_BLOCK_LISTS);
    uint64_t first = constant(walk, INSPECT_FIRST_SPANS);
    uint64_t stride = constant(walk, INSPECT_SPAN_STRIDE);
    uint64_t base = slab == 0 ? 0 : get(walk, slab, INSPECT_SLAB_BASE);
    uint64_t others = count > first && lists != 0 ? get(walk, lists, INSPECT_LISTS_SPANS) : 0;
    if (count > INSPECT_SPANS_MAX)
        return fault(walk->runtime, "module '%s' has %llu spans", module->name,
                     (unsigned long long)count);
    for (uint64_t i = 0; i < count && is_readable(walk); i++) {
        uint64_t span = i < first ? block + constant(walk, INSPECT_BLOCK_SPANS) + i * stride
                                  : others + (i - first) * stride;
        uint64_t use = get(walk, span, INSPECT_SPAN_USE);
        if (use >= INSPECT_USE_COUNT)
            return fault(walk->runtime, "module '%s' has memory of unknown use", module->name);
        if (use == INSPECT_CODE && module->address == 0)
            module->address =
                base + get(walk, span, INSPECT_SPAN_UNIT) * constant(walk, INSPECT_SPAN_UNIT_BYTES);
        module->bytes[use] += get(walk, span, INSPECT_SPAN_USED);
    }
    return is_readable(walk);
}

static void read_name(const struct walk *walk, uint64_t address, char *name)
{
    for (size_t i = 0; i < INSPECT_NAME_BYTES - 1; i++) {
        process_memory_read(walk->memory, address + i, &name[i], 1);
        if (name[i] == '\0')
            return;
    }
}

static bool read_module(struct walk *walk, uint64_t address, struct inspected_module *module)
{
    uint64_t table = get(walk, address, INSPECT_MODULE_TABLE);
    uint64_t sites = get(walk, address, INSPECT_MODULE_SITES);
    module->first_site = walk->runtime->sites.count;
    module->number = get(walk, address, INSPECT_MODULE_NUMBER);
    module->state = (uint32_t)get(walk, address, INSPECT_MODULE_STATE);
    read_name(walk, address + constant(walk, INSPECT_MODULE_NAME), module->name);
    module->record_count = (uint32_t)get(walk, table, INSPECT_TABLE_RECORD_COUNT);
    module->function_count = (uint32_t)get(walk, table, INSPECT_TABLE_FUNCTION_COUNT);
    if (module->state > INSPECT_RETIRED) {
        walk->runtime->modules.count--; /* states of modules in the model are valid */
        return fault(walk->runtime, "the module at 0x%llx has an unknown state",
                     (unsigned long long)address);
    }
    return is_readable(walk) &&
           read_spans(walk, address - constant(walk, INSPECT_BLOCK_USER), module) &&
           (sites == 0 || read_sites(walk, sites, table, module));
}

/* Reads a list of modules: each leads back to the one before it, so there is no circle. */
static bool read_modules(struct walk *walk, enum inspect_name list)
{
    struct inspected_runtime *runtime = walk->runtime;
    uint64_t previous = 0;
    uint64_t address = get(walk, runtime->descriptor.runtime, list);
    while (address != 0 && is_readable(walk)) {
        if (get(walk, address, INSPECT_MODULE_RUNTIME) != runtime->descriptor.runtime ||
            get(walk, address, INSPECT_MODULE_PREVIOUS) != previous)
            return is_readable(walk) &&
                   fault(runtime, "there is no module at 0x%llx", (unsigned long long)address);
        if (runtime->modules.count >= INSPECT_MODULES_MAX)
            return fault(runtime, "there are more than %d modules", INSPECT_MODULES_MAX);
        struct inspected_module *module = add(walk, &runtime->modules, sizeof *module);
        if (module == NULL || !read_module(walk, address, module))
            return false;
        previous = address;
        address = get(walk, address, INSPECT_MODULE_NEXT);
    }
    return is_readable(walk);
}

/* ---- Caches ---- */

/* The sites of a module are one array, so its sites in the model are sorted by place. Returns the
 * site, or NULL. */
static struct inspected_site *find_site(struct inspected_runtime *runtime,
                                        const struct inspected_module *const *modules, size_t count,
                                        uint64_t place)
{
    size_t begin = 0;
    const struct inspected_site wanted = {.place = place};
    for (size_t end = count; begin < end;) {
        size_t middle = begin + (end - begin) / 2;
        if (sites_of(runtime, modules[middle])->place <= place)
            begin = middle + 1;
        else
            end = middle;
    }
    if (begin == 0)
        return NULL;
    const struct inspected_module *module = modules[begin - 1];
    return bsearch(&wanted, sites_of(runtime, module), module->site_count, sizeof wanted,
                   compare_first_numbers);
}

static void read_cache(const struct walk *walk, uint64_t address, struct inspected_cache *cache)
{
    uint64_t hits = address + constant(walk, INSPECT_CACHE_HITS);
    uint64_t counters = get(walk, address, INSPECT_CACHE_COUNTERS);
    uint64_t stub = get(walk, address, INSPECT_CACHE_STUB);
    cache->case_count = (uint32_t)get(walk, address, INSPECT_CACHE_CASE_COUNT);
    cache->case_limit = (uint32_t)get(walk, address, INSPECT_CACHE_CASE_LIMIT);
    cache->is_inline = get(walk, address, INSPECT_CACHE_IS_INLINE) != 0;
    cache->counts_hits = get(walk, address, INSPECT_CACHE_COUNTS_HITS) != 0;
    cache->misses = get(walk, address, INSPECT_CACHE_MISSES);
    if (stub != 0)
        cache->code_bytes = (uint32_t)get(walk, stub, INSPECT_STUB_CODE_BYTES);
    for (unsigned i = 0; i < CAIRN_IC_CASE_LIMIT_MAX && cache->counts_hits; i++) {
        uint64_t count = 0;
        process_memory_read(walk->memory, hits + i * sizeof count, &count, sizeof count);
        cache->hits += counters >> i & 1 ? count : 0;
    }
    if (get(walk, address, INSPECT_CACHE_IS_MEGAMORPHIC) != 0)
        cache->state = CAIRN_IC_MEGAMORPHIC;
    else if (cache->case_count < 2)
        cache->state = cache->case_count == 0 ? CAIRN_IC_EMPTY : CAIRN_IC_MONOMORPHIC;
    else
        cache->state = CAIRN_IC_POLYMORPHIC;
}

static int compare_first_places(const void *left, const void *right, void *user)
{
    const struct inspected_runtime *runtime = user;
    const struct inspected_module *a = *(const struct inspected_module *const *)left;
    const struct inspected_module *b = *(const struct inspected_module *const *)right;
    return compare_first_numbers(sites_of(runtime, a), sites_of(runtime, b));
}

/* Returns the modules with sites, sorted by the places of their first sites. */
static const struct inspected_module **sort_modules(struct walk *walk, size_t *count)
{
    struct inspected_runtime *runtime = walk->runtime;
    const struct inspected_module **modules =
        malloc((runtime->modules.count + 1) * sizeof(struct inspected_module *));
    walk->lacks_memory = walk->lacks_memory || modules == NULL;
    const struct inspected_module *all = runtime->modules.items;
    for (size_t i = 0; modules != NULL && i < runtime->modules.count; i++)
        if (all[i].site_count > 0)
            modules[(*count)++] = &all[i];
    if (modules != NULL)
        qsort_r(modules, *count, sizeof(struct inspected_module *), compare_first_places, runtime);
    return modules;
}

/* Reads the list of caches: each leads back to the one before it. */
static void read_caches(struct walk *walk)
{
    struct inspected_runtime *runtime = walk->runtime;
    uint64_t previous = 0;
    uint64_t address = get(walk, runtime->descriptor.runtime, INSPECT_RUNTIME_CACHES);
    size_t count = 0;
    if (address == 0 || !runtime->descriptor.fields[INSPECT_CACHE_SITE].is_set)
        return;
    const struct inspected_module **modules = sort_modules(walk, &count);
    while (modules != NULL && address != 0 && is_readable(walk)) {
        uint64_t place = get(walk, address, INSPECT_CACHE_SITE);
        struct inspected_site *site = find_site(runtime, modules, count, place);
        if (get(walk, address, INSPECT_CACHE_PREVIOUS) != previous || site == NULL ||
            site->cache != 0) {
            if (is_readable(walk))
                fault(runtime, "there is no cache of a site at 0x%llx",
                      (unsigned long long)address);
            break;
        }
        struct inspected_cache *cache = add(walk, &runtime->caches, sizeof *cache);
        if (cache == NULL)
            break;
        read_cache(walk, address, cache);
        site->cache = (uint32_t)runtime->caches.count;
        previous = address;
        address = get(walk, address, INSPECT_CACHE_NEXT);
    }
    free(modules);
}

/* ---- The runtime ---- */

static void empty(struct inspected_runtime *runtime)
{
    runtime->slabs.count = 0;
    runtime->modules.count = 0;
    runtime->sites.count = 0;
    runtime->caches.count = 0;
    runtime->has_changed = false;
    runtime->fault[0] = '\0';
}

void inspect_free(struct inspected_runtime *runtime)
{
    list_release(&runtime->slabs);
    list_release(&runtime->modules);
    list_release(&runtime->sites);
    list_release(&runtime->caches);
    *runtime = (struct inspected_runtime){0};
}

/* Reads the descriptor. A page without the magic may be incomplete. */
static enum inspect_result read_descriptor(struct process_memory *memory, uint64_t address,
                                           struct inspected_runtime *runtime)
{
    process_memory_renew(memory);
    if (!process_memory_read_now(memory, address, &runtime->descriptor, sizeof runtime->descriptor))
        return INSPECT_ENDED;
    return check_descriptor(runtime) ? INSPECT_DONE : INSPECT_REFUSED;
}

/* Whether both lists are as they were when the descriptor was read first. */
static enum inspect_result check_changes(struct process_memory *memory, uint64_t address,
                                         struct inspected_runtime *runtime)
{
    struct inspect_descriptor now;
    process_memory_renew(memory);
    if (!process_memory_read_now(memory, address, &now, sizeof now))
        return INSPECT_ENDED;
    for (unsigned i = 0; i < INSPECT_LIST_COUNT; i++) {
        uint64_t before =
            atomic_load_explicit(&runtime->descriptor.changes[i], memory_order_relaxed);
        uint64_t after = atomic_load_explicit(&now.changes[i], memory_order_relaxed);
        runtime->has_changed = runtime->has_changed || before != after || before % 2 != 0;
    }
    return INSPECT_DONE;
}

static void wait_a_moment(int attempt)
{
    const struct timespec pause = {.tv_nsec = (attempt + 1) * 1000000L};
    nanosleep(&pause, NULL);
}

enum inspect_result inspect_runtime(struct process_memory *memory, uint64_t address,
                                    struct inspected_runtime *runtime)
{
    enum inspect_result result = INSPECT_DONE;
    runtime->address = address;
    for (int attempt = 0; attempt < ATTEMPTS; attempt++) {
        empty(runtime);
        result = read_descriptor(memory, address, runtime);
        if (result == INSPECT_ENDED)
            return result;
        struct walk walk = {
            .memory = memory, .runtime = runtime, .fields = runtime->descriptor.fields};
        if (result == INSPECT_DONE) {
            walk.arch = arch_find((enum cairn_architecture)runtime->descriptor.architecture);
            runtime->table_bytes =
                get(&walk, runtime->descriptor.runtime, INSPECT_RUNTIME_TABLE_BYTES);
            read_slabs(&walk);
            if (read_modules(&walk, INSPECT_RUNTIME_MODULES) &&
                read_modules(&walk, INSPECT_RUNTIME_RETIRED))
                read_caches(&walk);
            is_readable(&walk);
            result = check_changes(memory, address, runtime);
        }
        if (walk.lacks_memory)
            return INSPECT_NO_MEMORY;
        if (result == INSPECT_ENDED ||
            (result == INSPECT_DONE && !runtime->has_changed && runtime->fault[0] == '\0'))
            return result;
        wait_a_moment(attempt);
    }
    return result;
}
