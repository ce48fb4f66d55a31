/*
 * Fuzzes the names and bindings of objects (format/names.h, format/bound_sites.h). The host is
 * asked for all names in one call for each object, and loading twice has the same outcome.
 *
 * Input: a byte, whose lowest bit tells whether the host knows all names; the size of the names, in
 * 2 bytes; the names; the rest are bindings. A function with sites is not in the object, so nothing
 * is bound.
 *
 * SPDX-License-Identifier: MIT
 */
#include "fuzz/fuzz.h"
#include "tests/elf_builder.h"

#include <cairn/architecture.h>
#include <cairn/load.h>
#include <cairn/runtime.h>

static uint16_t machine(void)
{
    enum cairn_architecture host = cairn_architecture_host();
    return host == CAIRN_ARCHITECTURE_X86_64    ? EM_X86_64
           : host == CAIRN_ARCHITECTURE_AARCH64 ? EM_AARCH64
                                                : EM_PPC64;
}

struct host {
    bool knows_all;
    unsigned calls;
    size_t count;
};

static size_t find_names(void *user, const struct cairn_name *names, size_t count, uint64_t *values)
{
    struct host *host = user;
    host->calls++;
    host->count = count;
    for (size_t i = 0; i < count; i++) {
        const uint8_t *bytes = names[i].bytes;
        require(names[i].size > 0 && names[i].size <= CAIRN_NAME_BYTES_MAX);
        values[i] = bytes[0] + UINT64_C(256) * bytes[names[i].size - 1];
    }
    return host->knows_all ? count : count / 2;
}

static size_t write_object(const uint8_t *data, size_t size, uint8_t *bytes)
{
    enum { PARTS_MAX = ELF_BYTES_MAX / 4 };
    struct fuzz_input input = {data, size};
    size_t names = fuzz_number(&input, 2) % PARTS_MAX;
    names = names < input.left ? names : input.left;
    size_t bound = input.left - names < PARTS_MAX ? input.left - names : PARTS_MAX;
    struct elf_file file = {
        .machine = machine(), .type = ET_REL, .byte_order = CAIRN_BYTE_ORDER_NATIVE};
    elf_add(&file, (struct elf_section){.name = ".cairn.names",
                                        .type = SHT_PROGBITS,
                                        .flags = SHF_ALLOC,
                                        .bytes = input.at,
                                        .size = names});
    elf_add(&file, (struct elf_section){.name = ".cairn.sites",
                                        .type = SHT_PROGBITS,
                                        .flags = SHF_ALLOC,
                                        .bytes = input.at + names,
                                        .size = bound});
    return elf_write(&file, bytes);
}

static enum cairn_status load(cairn_runtime *runtime, const uint8_t *bytes, size_t size,
                              struct host *host)
{
    const struct cairn_load_options options = {.find_names = find_names, .user = host};
    cairn_loader *loader;
    cairn_module *module;
    require(cairn_loader_create(runtime, "fuzz", &loader, NULL) == CAIRN_OK);
    enum cairn_status status = cairn_loader_add_object(loader, bytes, size, &options, NULL);
    if (status == CAIRN_OK)
        status = cairn_loader_finish(loader, &module, NULL);
    if (status == CAIRN_OK)
        cairn_module_retire(module);
    else
        cairn_loader_destroy(loader);
    cairn_runtime_quiesce(runtime);
    return status;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static cairn_runtime *runtime;
    static uint8_t bytes[ELF_BYTES_MAX];
    if (size == 0)
        return 0;
    if (runtime == NULL)
        require(cairn_runtime_create(NULL, &runtime, NULL) == CAIRN_OK);
    struct host host = {.knows_all = (data[0] & 1) != 0};
    size_t length = write_object(data + 1, size - 1, bytes);
    enum cairn_status status = load(runtime, bytes, length, &host);
    require(host.calls <= 1);
    require(status != CAIRN_ERROR_NOT_FOUND || !host.knows_all);
    require(status != CAIRN_OK || host.count == 0 || host.knows_all);
    require(load(runtime, bytes, length, &host) == status);
    return 0;
}
