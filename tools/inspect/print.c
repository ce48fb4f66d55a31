/*
 * Prints what was read of a runtime of another process.
 *
 * SPDX-License-Identifier: MIT
 */
#include "tools/cli/json.h"
#include "tools/inspect/inspect.h"

#include <cairn/architecture.h>
#include <stdio.h>

static const char *const module_states[] = {
    [INSPECT_LOADED] = "loaded",
    [INSPECT_PUBLISHED] = "published",
    [INSPECT_RETIRED] = "retired",
};

static const char *const use_names[] = {
    [INSPECT_CODE] = "code",
    [INSPECT_READ_ONLY] = "read-only data",
    [INSPECT_DATA] = "data",
};

static const char *mode_name(uint32_t mode)
{
    static const char *const names[] = {
        [CAIRN_CODE_MODE_AUTOMATIC] = "automatic",
        [CAIRN_CODE_MODE_DUAL] = "dual",
        [CAIRN_CODE_MODE_SINGLE] = "single",
    };
    return mode < sizeof names / sizeof *names ? names[mode] : "unknown";
}

/* ---- Sums ---- */

enum { SITE_STATES = CAIRN_SITE_UNMANAGED + 1, CACHE_STATES = CAIRN_IC_MEGAMORPHIC + 1 };

struct sums {
    size_t modules[INSPECT_RETIRED + 1];
    size_t sites[SITE_STATES]; /* without those that have caches */
    size_t caches[CACHE_STATES];
    uint64_t records;
    uint64_t misses;
};

static struct sums add_up(const struct inspected_runtime *runtime)
{
    struct sums sums = {.records = 0};
    const struct inspected_module *modules = runtime->modules.items;
    const struct inspected_site *sites = runtime->sites.items;
    const struct inspected_cache *caches = runtime->caches.items;
    for (size_t i = 0; i < runtime->modules.count; i++) {
        sums.modules[modules[i].state]++;
        sums.records += modules[i].record_count;
    }
    for (size_t i = 0; i < runtime->sites.count; i++)
        if (sites[i].cache == 0)
            sums.sites[sites[i].state]++;
    for (size_t i = 0; i < runtime->caches.count; i++) {
        sums.caches[caches[i].state]++;
        sums.misses += caches[i].misses;
    }
    return sums;
}

static const struct inspected_cache *cache_of(const struct inspected_runtime *runtime,
                                              const struct inspected_site *site)
{
    return (const struct inspected_cache *)runtime->caches.items + (site->cache - 1);
}

/* ---- Text ---- */

/* Writes ", 3 calls": a number that is not 0 with its noun. */
static void write_count(struct output *output, const char **separator, size_t count,
                        const char *noun)
{
    if (count == 0)
        return;
    output_format(output, "%s" NUMBER "%zu" PLAIN " %s", *separator, count, noun);
    *separator = ", ";
}

static void print_slabs(struct output *output, const struct inspected_runtime *runtime)
{
    output_format(output, "  %zu slab%s of code memory, %u stub%s of %ju bytes\n",
                  runtime->slabs.count, plural(runtime->slabs.count), runtime->stub_count,
                  plural(runtime->stub_count), runtime->stub_bytes);
    for (size_t i = 0; i < runtime->slabs.count; i++) {
        const struct inspected_slab *slab = (const struct inspected_slab *)runtime->slabs.items + i;
        output_format(output, "    0x%jx, %ju bytes:", slab->base, slab->size);
        for (unsigned use = 0; use < INSPECT_USE_COUNT; use++)
            output_format(output, "%s %ju of %ju bytes of %s", use == 0 ? "" : ",",
                          slab->used_bytes[use], slab->mapped_bytes[use], use_names[use]);
        output_text(output, "\n");
    }
}

static void print_sums(struct output *output, const struct inspected_runtime *runtime)
{
    struct sums sums = add_up(runtime);
    const char *separator = " ";
    output_format(output, "  %zu module%s:", runtime->modules.count,
                  plural(runtime->modules.count));
    for (unsigned i = 0; i <= INSPECT_RETIRED; i++)
        write_count(output, &separator, sums.modules[i], module_states[i]);
    output_format(output, "%s%ju record%s, %ju bytes of tables\n", separator, sums.records,
                  plural(sums.records), runtime->table_bytes);
    separator = " ";
    output_format(output, "  %zu site%s:", runtime->sites.count, plural(runtime->sites.count));
    for (unsigned i = 0; i < SITE_STATES; i++)
        write_count(output, &separator, sums.sites[i],
                    cairn_site_state_name((enum cairn_site_state)i));
    write_count(output, &separator, runtime->caches.count, "with inline caches");
    separator = " ";
    output_format(output, "\n  %zu inline cache%s:", runtime->caches.count,
                  plural(runtime->caches.count));
    for (unsigned i = 0; i < CACHE_STATES; i++)
        write_count(output, &separator, sums.caches[i],
                    cairn_ic_state_name((enum cairn_ic_state)i));
    output_format(output, "%s%ju miss%s\n", separator, sums.misses, sums.misses == 1 ? "" : "es");
}

static void print_cache(struct output *output, const struct inspected_cache *cache)
{
    output_format(output, "%s cache, %u of %u cases, ",
                  cairn_ic_state_name((enum cairn_ic_state)cache->state), cache->case_count,
                  cache->case_limit);
    if (cache->counts_hits)
        output_format(output, "%ju hit%s, ", cache->hits, plural(cache->hits));
    output_format(output, "%ju miss%s, %u bytes of code%s\n", cache->misses,
                  cache->misses == 1 ? "" : "es", cache->code_bytes,
                  cache->is_inline ? " and the site's own" : "");
}

static void print_target(const struct inspect_style *style, const struct inspected_site *site)
{
    const char *name = process_symbols_find(style->symbols, site->target);
    output_format(style->output, " to 0x%jx", site->target);
    if (name != NULL)
        output_format(style->output, " = " NAME "%s" PLAIN, name);
    output_text(style->output, site->uses_veneer ? " through a veneer" : "");
}

static void print_site(const struct inspect_style *style, const struct inspected_runtime *runtime,
                       const struct inspected_site *site)
{
    struct output *output = style->output;
    output_format(output, "      site %ju at 0x%jx, %u bytes: ", site->id, site->address,
                  site->byte_count);
    if (site->cache != 0) {
        print_cache(output, cache_of(runtime, site));
        return;
    }
    output_text(output, cairn_site_state_name((enum cairn_site_state)site->state));
    if (site->state == CAIRN_SITE_CALL || site->state == CAIRN_SITE_JUMP)
        print_target(style, site);
    output_text(output, site->live ? "\n" : ", not live\n");
}

static void print_module(const struct inspect_style *style, const struct inspected_runtime *runtime,
                         const struct inspected_module *module)
{
    struct output *output = style->output;
    output_format(output, "    module %ju " NAME "%s" PLAIN " at 0x%jx, %s: ", module->number,
                  module->name, module->address, module_states[module->state]);
    output_format(output, "%ju bytes of code, %u function%s, %u record%s, %u site%s\n",
                  module->bytes[INSPECT_CODE], module->function_count,
                  plural(module->function_count), module->record_count,
                  plural(module->record_count), module->site_count, plural(module->site_count));
    for (uint32_t i = 0; i < module->site_count; i++)
        print_site(style, runtime,
                   (const struct inspected_site *)runtime->sites.items + module->first_site + i);
}

static void print_text_form(const struct inspect_style *style,
                            const struct inspected_runtime *runtime, size_t number)
{
    struct output *output = style->output;
    const struct inspect_descriptor *descriptor = &runtime->descriptor;
    char release[sizeof descriptor->release + 1];
    snprintf(release, sizeof release, "%.*s", (int)sizeof descriptor->release, descriptor->release);
    output_format(output, HEADING "runtime %zu" PLAIN " at 0x%jx: Cairn %s, %s, %s mapping\n",
                  number, descriptor->runtime, release,
                  cairn_architecture_name((enum cairn_architecture)descriptor->architecture),
                  mode_name(descriptor->code_mode));
    print_slabs(output, runtime);
    print_sums(output, runtime);
    for (size_t i = 0; i < runtime->modules.count && !style->is_summary; i++)
        print_module(style, runtime, (const struct inspected_module *)runtime->modules.items + i);
    if (runtime->has_changed)
        output_text(output, WARNING "  modules or caches were added or removed while they were "
                                    "read: some may be missing" PLAIN "\n");
    if (runtime->fault[0] != '\0')
        output_format(output, WARNING "  incomplete: %s" PLAIN "\n", runtime->fault);
}

/* ---- JSON ---- */

static void json_uses(struct json *json, const char *key, const uint64_t *bytes)
{
    json_begin_object(json, key);
    json_fields(json, "code %ju read_only %ju data %ju", bytes[INSPECT_CODE],
                bytes[INSPECT_READ_ONLY], bytes[INSPECT_DATA]);
    json_end_object(json);
}

static void json_slabs(struct json *json, const struct inspected_runtime *runtime)
{
    json_begin_array(json, "slabs");
    for (size_t i = 0; i < runtime->slabs.count; i++) {
        const struct inspected_slab *slab = (const struct inspected_slab *)runtime->slabs.items + i;
        json_begin_object(json, NULL);
        json_fields(json, "address %ju size %ju", slab->base, slab->size);
        json_uses(json, "used", slab->used_bytes);
        json_uses(json, "mapped", slab->mapped_bytes);
        json_end_object(json);
    }
    json_end_array(json);
}

static void json_cache(struct json *json, const struct inspected_cache *cache)
{
    json_begin_object(json, "cache");
    json_fields(json, "state %s case_count %u case_limit %u",
                cairn_ic_state_name((enum cairn_ic_state)cache->state), cache->case_count,
                cache->case_limit);
    json_optional(json, "hits", cache->counts_hits, cache->hits);
    json_fields(json, "misses %ju code_bytes %u is_inline %d", cache->misses, cache->code_bytes,
                cache->is_inline);
    json_end_object(json);
}

static void json_site(const struct inspect_style *style, const struct inspected_runtime *runtime,
                      const struct inspected_site *site)
{
    struct json *json = style->json;
    bool has_target =
        (site->state == CAIRN_SITE_CALL || site->state == CAIRN_SITE_JUMP) && site->cache == 0;
    json_line(json, 6);
    json_begin_object(json, NULL);
    json_fields(json, "id %ju address %ju byte_count %u state %s live %d", site->id, site->address,
                site->byte_count,
                site->cache != 0 ? "cache"
                                 : cairn_site_state_name((enum cairn_site_state)site->state),
                site->live);
    json_optional(json, "target", has_target, site->target);
    json_name(json, "target_symbol",
              has_target ? process_symbols_find(style->symbols, site->target) : NULL);
    json_fields(json, "uses_veneer %d", site->uses_veneer);
    if (site->cache != 0)
        json_cache(json, cache_of(runtime, site));
    json_end_object(json);
}

static void json_modules(const struct inspect_style *style, const struct inspected_runtime *runtime)
{
    struct json *json = style->json;
    json_begin_array(json, "modules");
    for (size_t i = 0; i < runtime->modules.count; i++) {
        const struct inspected_module *module =
            (const struct inspected_module *)runtime->modules.items + i;
        json_line(json, 4);
        json_begin_object(json, NULL);
        json_fields(json, "number %ju name %s address %ju state %s functions %u records %u",
                    module->number, module->name, module->address, module_states[module->state],
                    module->function_count, module->record_count);
        json_uses(json, "bytes", module->bytes);
        json_begin_array(json, "sites");
        for (uint32_t j = 0; j < module->site_count; j++)
            json_site(style, runtime,
                      (const struct inspected_site *)runtime->sites.items + module->first_site + j);
        json_end_array(json);
        json_end_object(json);
    }
    json_end_array(json);
}

static void json_sums(struct json *json, const struct inspected_runtime *runtime)
{
    struct sums sums = add_up(runtime);
    json_fields(json,
                "table_bytes %ju stub_count %u stub_bytes %ju module_count %zu site_count %zu "
                "cache_count %zu record_count %ju misses %ju",
                runtime->table_bytes, runtime->stub_count, runtime->stub_bytes,
                runtime->modules.count, runtime->sites.count, runtime->caches.count, sums.records,
                sums.misses);
    json_begin_object(json, "site_states");
    for (unsigned i = 0; i < SITE_STATES; i++) {
        json_key(json, cairn_site_state_name((enum cairn_site_state)i));
        json_unsigned(json, sums.sites[i]);
    }
    json_end_object(json);
    json_begin_object(json, "cache_states");
    for (unsigned i = 0; i < CACHE_STATES; i++) {
        json_key(json, cairn_ic_state_name((enum cairn_ic_state)i));
        json_unsigned(json, sums.caches[i]);
    }
    json_end_object(json);
}

static void print_json_form(const struct inspect_style *style,
                            const struct inspected_runtime *runtime)
{
    struct json *json = style->json;
    const struct inspect_descriptor *descriptor = &runtime->descriptor;
    char release[sizeof descriptor->release + 1];
    snprintf(release, sizeof release, "%.*s", (int)sizeof descriptor->release, descriptor->release);
    json_line(json, 2);
    json_begin_object(json, NULL);
    json_fields(json, "address %ju release %s architecture %s mode %s", descriptor->runtime,
                release, cairn_architecture_name((enum cairn_architecture)descriptor->architecture),
                mode_name(descriptor->code_mode));
    json_sums(json, runtime);
    json_slabs(json, runtime);
    if (!style->is_summary)
        json_modules(style, runtime);
    json_fields(json, "has_changed %d", runtime->has_changed);
    json_name(json, "incomplete", runtime->fault[0] == '\0' ? NULL : runtime->fault);
    json_end_object(json);
}

void inspect_print(const struct inspect_style *style, const struct inspected_runtime *runtime,
                   size_t number)
{
    if (style->json != NULL)
        print_json_form(style, runtime);
    else
        print_text_form(style, runtime, number);
}
