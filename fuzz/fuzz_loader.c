/*
 * Fuzzes loaders with hostile sections. Loading the same sections twice has the same outcome.
 * Loaded records are found by their addresses, and functions by their own code. After retirement,
 * nothing of the module is found.
 *
 * Input: flags (which sections there are, and which declarations), then for each section its size
 * and bytes. A stack map may also be made from bytes, with functions in the loader's code.
 *
 * SPDX-License-Identifier: MIT
 */
#include "base/adapter.h"
#include "fuzz/fuzz.h"
#include "record/table.h"
#include "runtime/module.h"
#include "tests/runtime_support.h"
#include "tests/section_writer.h"

#include <cairn/patch.h>
#include <cairn/runtime.h>

enum {
    CODE_BYTES = 0x400,
    HAS_RAW_STACKMAP = 1,
    HAS_STACKMAP = 2,
    HAS_UNWIND_TABLE = 4,
    HAS_FAULTMAP = 8,
    HAS_PCSECTION = 16,
    HAS_DECLARATIONS = 32,
    HAS_CODE_BYTES = 64
};

static cairn_runtime *runtime;

/* ---- Loading ---- */

/* Replaces 8 bytes, where the input has an A, by an address in the code, at the offset in the byte
 * after the A. In PC sections, whose addresses are relative to their own address, the 8 bytes are
 * the distance. */
static void point_to_code(uint8_t *bytes, size_t size, uint64_t code, bool is_relative)
{
    for (size_t i = 0; i + sizeof code <= size; i++)
        if (bytes[i] == 'A') {
            uint64_t address = code + bytes[i + 1] - (is_relative ? (uintptr_t)(bytes + i) : 0);
            memcpy(bytes + i, &address, sizeof address);
            i += sizeof address - 1;
        }
}

static void load_section(struct fuzz_input *input, cairn_loader *loader, uint64_t code,
                         enum cairn_section_kind kind)
{
    static const struct cairn_pc_table_section pc_section = {
        .name = "fuzz", .schema = {.address_bytes = 8, .constant_count = 1, .constant_bytes = {4}}};
    uint64_t number = fuzz_number(input, 2);
    size_t size = number & 0x3FF;
    size_t zeros = number >> 10 & 7;
    if (size + zeros == 0)
        return;
    uint8_t *bytes = cairn_loader_allocate(loader, kind, size + zeros, 8, &pc_section, NULL);
    require(bytes != NULL);
    for (size_t i = 0; i < size; i++)
        bytes[i] = fuzz_u8(input);
    memset(bytes + size, 0, zeros);
    point_to_code(bytes, size, code, kind == CAIRN_SECTION_PC_SECTION);
}

static void load_stackmap(struct fuzz_input *input, cairn_loader *loader, uint64_t code)
{
    enum { FUNCTIONS_MAX = 4, RECORDS_MAX = 4 };
    struct section_writer writer;
    uint8_t counts[FUNCTIONS_MAX];
    uint32_t functions = fuzz_u8(input) % FUNCTIONS_MAX;
    uint32_t records = 0;
    for (uint32_t i = 0; i < functions; i++)
        records += counts[i] = fuzz_u8(input) % RECORDS_MAX;
    writer_begin(&writer, 3, CAIRN_BYTE_ORDER_NATIVE);
    writer_header(&writer, functions, 0, records);
    for (uint32_t i = 0; i < functions; i++)
        writer_function(&writer, code + 4U * fuzz_u8(input), 8, counts[i]);
    for (uint32_t i = 0; i < records; i++) {
        struct cairn_location location = {.kind = CAIRN_LOCATION_REGISTER, .size = 8, .dwarf = 3};
        uint8_t id = fuzz_u8(input);
        writer_record(&writer, id & 7, 4U * fuzz_u8(input), &location, id >> 7, NULL, 0);
    }
    const struct cairn_section section = writer_section(&writer);
    void *bytes =
        cairn_loader_allocate(loader, CAIRN_SECTION_STACKMAP, section.size, 8, NULL, NULL);
    require(bytes != NULL);
    memcpy(bytes, section.bytes, section.size);
    writer_end(&writer);
}

static void declare(struct fuzz_input *input, cairn_loader *loader)
{
    cairn_declarations *set = NULL;
    require(cairn_declarations_create(NULL, &set, NULL) == CAIRN_OK);
    for (uint64_t id = 0; id < 8; id++) {
        uint8_t what = fuzz_u8(input);
        const struct cairn_declaration declaration = {
            .id = id,
            .kind = (enum cairn_record_kind)(what & 3),
            .byte_count = what >> 2,
        };
        require(cairn_declarations_add(set, &declaration, NULL) == CAIRN_OK);
    }
    require(cairn_loader_declare(loader, set, NULL) == CAIRN_OK);
    cairn_declarations_destroy(set);
}

static enum cairn_status load(struct fuzz_input input, cairn_module **module, uint64_t *code,
                              struct cairn_error *error)
{
    uint8_t flags = fuzz_u8(&input);
    cairn_loader *loader = NULL;
    require(cairn_loader_create(runtime, "fuzz", &loader, NULL) == CAIRN_OK);
    uint8_t *bytes = cairn_loader_allocate(loader, CAIRN_SECTION_CODE, CODE_BYTES, 64, NULL, NULL);
    require(bytes != NULL);
    *code = (uintptr_t)bytes;
    memset(bytes, 0, CODE_BYTES);
    for (size_t i = 0; i < CODE_BYTES && (flags & HAS_CODE_BYTES) != 0; i++)
        bytes[i] = fuzz_u8(&input);
    if ((flags & HAS_DECLARATIONS) != 0)
        declare(&input, loader);
    if ((flags & HAS_STACKMAP) != 0)
        load_stackmap(&input, loader, *code);
    if ((flags & HAS_RAW_STACKMAP) != 0)
        load_section(&input, loader, *code, CAIRN_SECTION_STACKMAP);
    if ((flags & HAS_UNWIND_TABLE) != 0)
        load_section(&input, loader, *code, CAIRN_SECTION_UNWIND_TABLE);
    if ((flags & HAS_FAULTMAP) != 0)
        load_section(&input, loader, *code, CAIRN_SECTION_FAULTMAP);
    if ((flags & HAS_PCSECTION) != 0)
        load_section(&input, loader, *code, CAIRN_SECTION_PC_SECTION);
    enum cairn_status status = cairn_loader_finish(loader, module, error);
    if (status != CAIRN_OK)
        cairn_loader_destroy(loader);
    return status;
}

/* ---- Lookups ---- */

static void check_record(cairn_module *module, struct cairn_record record)
{
    struct cairn_record found;
    struct cairn_site_description description;
    uint64_t address = cairn_record_address(record);
    require(record_module(record) == module);
    require(cairn_table_find_address(record.table, address, &found));
    require(cairn_record_address(found) == address && found.index <= record.index);
    if (cairn_runtime_find_module(runtime, address) == module) {
        require(cairn_runtime_find_address(runtime, address, &found));
        require(cairn_record_address(found) == address && found.table == record.table);
    }
    size_t count = table_find_id(record.table, cairn_record_id(record), NULL, 0);
    require(count > 0 && cairn_runtime_find_id(runtime, cairn_record_id(record), NULL, 0) == count);
    cairn_site *site = cairn_record_site(record);
    if (site != NULL)
        cairn_site_describe(site, &description);
    if (cairn_table_find_return_address(record.table, address, &found))
        require(table_has_return_address(found.table, found.index));
}

static void check_module(cairn_module *module, uint64_t code)
{
    const cairn_table *table = cairn_module_table(module);
    for (uint32_t i = 0; i < cairn_table_record_count(table); i++)
        check_record(module, (struct cairn_record){table, i});
    for (uint32_t i = 0; i < support_site_count(module); i++)
        require(cairn_module_site(module, i) != NULL);
    require(cairn_module_site(module, support_site_count(module)) == NULL);
    for (uint64_t pc = code - 1; pc <= code + CODE_BYTES; pc++) {
        struct cairn_function function;
        struct cairn_pc_table_entry entry;
        struct cairn_fault_entry fault;
        cairn_module *holder = cairn_runtime_find_module(runtime, pc);
        require(holder == NULL || holder == module);
        require(holder != NULL || pc < code || pc >= code + CODE_BYTES);
        if (cairn_runtime_find_function(runtime, pc, &function))
            require(function.address <= pc && holder == module);
        const cairn_pc_table *entries = cairn_module_pc_table(module);
        require(support_find_pc_entries(runtime, pc, &entry, 1) ==
                (holder == NULL ? 0 : cairn_pc_table_find(entries, pc, &entry, 1)));
        require(support_find_fault(runtime, pc, &fault) ==
                (holder != NULL &&
                 cairn_fault_table_find(cairn_module_fault_table(module), pc, &fault)));
    }
}

static void check_empty(const struct cairn_runtime_statistics *before)
{
    struct cairn_runtime_statistics after;
    cairn_runtime_statistics(runtime, &after);
    require(after.module_count == 0 && after.retired_count == 0);
    require(after.code_bytes == before->code_bytes && after.data_bytes == before->data_bytes);
    require(after.table_bytes == before->table_bytes && after.slab_count <= 1);
}

/* LeakSanitizer does not find what the runtime holds in mapped memory. */
static void destroy_runtime(void) { cairn_runtime_destroy(runtime); }

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct cairn_runtime_statistics empty;
    const struct fuzz_input input = {data, size};
    enum cairn_status statuses[2];
    struct cairn_error errors[2];
    if (runtime == NULL) {
        const struct cairn_runtime_options options = {.slab_size = 1 << 20};
        if (cairn_runtime_create(&options, &runtime, NULL) != CAIRN_OK)
            return 0;
        cairn_runtime_statistics(runtime, &empty);
        atexit(destroy_runtime);
    }
    for (int i = 0; i < 2; i++) {
        cairn_module *module = NULL;
        uint64_t code;
        statuses[i] = load(input, &module, &code, &errors[i]);
        if (statuses[i] == CAIRN_OK) {
            require(cairn_module_publish(module, NULL) == CAIRN_OK);
            check_module(module, code);
            cairn_module_retire(module);
            require(cairn_runtime_quiesce(runtime) == 1);
        }
        check_empty(&empty);
    }
    require(statuses[0] == statuses[1]);
    require(statuses[0] == CAIRN_OK || strcmp(errors[0].message, errors[1].message) == 0);
    return 0;
}
