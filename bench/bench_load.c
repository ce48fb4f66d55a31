/*
 * Finishing a loader, beside cairn_table_create on the same stack map section.
 *
 * SPDX-License-Identifier: MIT
 */
#include "bench/bench_load.h"
#include "base/adapter.h"

#include "bench/generate_stackmap.h"

#include <cairn/runtime.h>
#include <stdlib.h>
#include <string.h>

enum {
    RECORDS = 100000,
    REPEATS = 15,
    FUNCTIONS_OFFSET = 16, /* of the list of functions in the section */
    FUNCTION_BYTES = 24,
    REGION_BYTES = 16, /* of a patch point; the generated records are at least as far apart */
    X86_NOP = 0x90
};

struct section {
    uint8_t *bytes;
    size_t size;
    uint32_t function_count;
    uint64_t base; /* address of the first function */
    size_t code_size;
};

/* Moves the functions of the section to `base`. */
static void move(struct section *section, uint64_t base)
{
    for (uint32_t i = 0; i < section->function_count; i++) {
        uint8_t *place = section->bytes + FUNCTIONS_OFFSET + (size_t)i * FUNCTION_BYTES;
        uint64_t address;
        memcpy(&address, place, sizeof address);
        address += base - section->base;
        memcpy(place, &address, sizeof address);
    }
    section->base = base;
}

static bool generate(struct section *section)
{
    uint64_t last;
    *section = (struct section){.base = UINT64_C(1) << 32};
    section->bytes =
        generate_stackmap(RECORDS, GENERATED_IDS_ASCENDING, section->base, &section->size);
    if (section->bytes == NULL)
        return false;
    memcpy(&section->function_count, section->bytes + 4, sizeof section->function_count);
    memcpy(&last,
           section->bytes + FUNCTIONS_OFFSET +
               (size_t)(section->function_count - 1) * FUNCTION_BYTES,
           sizeof last);
    uint64_t stride = (last - section->base) / (section->function_count - 1);
    section->code_size = (size_t)(section->function_count * stride);
    return true;
}

/* Declares all records of the table as stack maps without shadow, or as patch points without
 * target, with integers as live values. */
static bool declare_records(cairn_loader *loader, const cairn_table *table,
                            enum cairn_record_kind kind)
{
    enum { LIVE_VALUES_MAX = 64 };
    struct cairn_type types[LIVE_VALUES_MAX];
    cairn_declarations *declarations;
    struct cairn_declaration declaration = {.kind = kind,
                                            .byte_count =
                                                kind == CAIRN_RECORD_PATCHPOINT ? REGION_BYTES : 0,
                                            .types = types};
    for (int i = 0; i < LIVE_VALUES_MAX; i++)
        types[i] = (struct cairn_type){.kind = CAIRN_TYPE_INTEGER, .bits = 64};
    if (cairn_declarations_create(NULL, &declarations, NULL) != CAIRN_OK)
        return false;
    bool done = true;
    for (uint32_t i = 0; done && i < cairn_table_record_count(table); i++) {
        struct cairn_record record = {table, i};
        declaration.id = cairn_record_id(record);
        declaration.live_value_count = cairn_record_location_count(record);
        done = declaration.live_value_count <= LIVE_VALUES_MAX &&
               cairn_declarations_add(declarations, &declaration, NULL) == CAIRN_OK;
    }
    done = done && cairn_loader_declare(loader, declarations, NULL) == CAIRN_OK;
    cairn_declarations_destroy(declarations);
    return done;
}

static bool declare(cairn_loader *loader, const struct section *section,
                    enum cairn_record_kind kind)
{
    const struct cairn_section wanted = {section->bytes, section->size, CAIRN_BYTE_ORDER_NATIVE};
    cairn_table *table;
    if (kind == CAIRN_RECORD_UNDECLARED)
        return true;
    if (cairn_table_create(&wanted, 1, NULL, &table, NULL) != CAIRN_OK)
        return false;
    bool done = declare_records(loader, table, kind);
    cairn_table_destroy(table);
    return done;
}

/* Returns the time of building a table from the section, in milliseconds. */
static double time_table(const struct section *section)
{
    const struct cairn_section wanted = {section->bytes, section->size, CAIRN_BYTE_ORDER_NATIVE};
    cairn_table *table = NULL;
    double start = bench_now_of_thread();
    enum cairn_status status = cairn_table_create(&wanted, 1, NULL, &table, NULL);
    double time = (bench_now_of_thread() - start) / 1e6;
    cairn_table_destroy(table);
    return status == CAIRN_OK ? time : -1;
}

/* Loads the section into the loader. Sets the times of building its table and of finishing the
 * loader, in milliseconds. */
static bool time_loader(cairn_loader *loader, struct section *section, enum cairn_record_kind kind,
                        double *table, double *finish, cairn_module **module)
{
    uint8_t *code =
        cairn_loader_allocate(loader, CAIRN_SECTION_CODE, section->code_size, 64, NULL, NULL);
    uint8_t *bytes =
        cairn_loader_allocate(loader, CAIRN_SECTION_STACKMAP, section->size, 8, NULL, NULL);
    if (code == NULL || bytes == NULL || !declare(loader, section, kind))
        return false;
    memset(code, X86_NOP, section->code_size);
    move(section, (uintptr_t)code);
    memcpy(bytes, section->bytes, section->size);
    *table = time_table(section);
    double start = bench_now_of_thread();
    enum cairn_status status = cairn_loader_finish(loader, module, NULL);
    *finish = (bench_now_of_thread() - start) / 1e6;
    return status == CAIRN_OK && *table >= 0;
}

static bool time_kind(cairn_runtime *runtime, struct section *section, enum cairn_record_kind kind,
                      double *table, double *finish)
{
    for (int i = 0; i < REPEATS; i++) {
        cairn_loader *loader;
        cairn_module *module;
        if (cairn_loader_create(runtime, "bench", &loader, NULL) != CAIRN_OK)
            return false;
        if (!time_loader(loader, section, kind, &table[i], &finish[i], &module)) {
            cairn_loader_destroy(loader);
            return false;
        }
        cairn_module_retire(module);
        cairn_runtime_quiesce(runtime);
    }
    return true;
}

static bool bench_kind(const struct bench_options *options, cairn_runtime *runtime,
                       struct section *section, enum cairn_record_kind kind, const char *name,
                       double ratio_limit)
{
    double table[REPEATS];
    double finish[REPEATS];
    if (!bench_wants(options, name))
        return true;
    if (!time_kind(runtime, section, kind, table, finish))
        return false;
    bench_print(options, &(struct bench_figure){.name = name,
                                                .value = bench_percentile(finish, REPEATS, 0.5),
                                                .unit = "ms",
                                                .peer = "cairn_table_create",
                                                .peer_value = bench_percentile(table, REPEATS, 0.5),
                                                .ratio_limit = ratio_limit});
    return true;
}

bool bench_load(const struct bench_options *options)
{
    const double limit = 1.3;
    struct section section;
    cairn_runtime *runtime = NULL;
    if (!bench_wants(options, "load"))
        return true;
    bool done = generate(&section) && cairn_runtime_create(NULL, &runtime, NULL) == CAIRN_OK;
    done = done && bench_kind(options, runtime, &section, CAIRN_RECORD_UNDECLARED,
                              "load.finish-undeclared", limit);
    done = done && bench_kind(options, runtime, &section, CAIRN_RECORD_STACKMAP,
                              "load.finish-declared", limit);
    done = done && bench_kind(options, runtime, &section, CAIRN_RECORD_PATCHPOINT,
                              "load.finish-with-sites", 0);
    cairn_runtime_destroy(runtime);
    free(section.bytes);
    return done;
}
