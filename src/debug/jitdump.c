/* SPDX-License-Identifier: MIT */
#include "debug/jitdump.h"

#include "base/array.h"

#include <elf.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum record_kind { RECORD_LOAD = 0, RECORD_LINES = 2, RECORD_CLOSE = 3 };

struct header {
    uint32_t magic;
    uint32_t version;
    uint32_t size;
    uint32_t machine;
    uint32_t padding;
    uint32_t process;
    uint64_t time_ns;
    uint64_t flags;
};

struct prefix {
    uint32_t kind;
    uint32_t size;
    uint64_t time_ns;
};

struct load {
    struct prefix prefix;
    uint32_t process;
    uint32_t thread;
    uint64_t memory_address;
    uint64_t address;
    uint64_t size;
    uint64_t index;
};

struct lines {
    struct prefix prefix;
    uint64_t address;
    uint64_t count;
};

struct line {
    uint64_t address;
    uint32_t line;
    uint32_t discriminator;
};

_Static_assert(sizeof(struct header) == JITDUMP_HEADER_BYTES, "there are no gaps");
_Static_assert(sizeof(struct prefix) == JITDUMP_CLOSE_BYTES, "there are no gaps");
_Static_assert(sizeof(struct load) == 56, "there are no gaps");

/* Returns the time on the clock of `perf record -k mono`. */
static uint64_t now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * UINT64_C(1000000000) + (uint64_t)now.tv_nsec;
}

static uint32_t machine(void)
{
    switch (cairn_architecture_host()) {
    case CAIRN_ARCHITECTURE_X86_64:
        return EM_X86_64;
    case CAIRN_ARCHITECTURE_AARCH64:
        return EM_AARCH64;
    case CAIRN_ARCHITECTURE_PPC64_ELFV1:
    case CAIRN_ARCHITECTURE_PPC64_ELFV2:
        return EM_PPC64;
    default:
        return EM_NONE;
    }
}

void jitdump_header(uint8_t header[JITDUMP_HEADER_BYTES], pid_t process)
{
    const struct header contents = {.magic = UINT32_C(0x4A695444),
                                    .version = 1,
                                    .size = sizeof contents,
                                    .machine = machine(),
                                    .process = (uint32_t)process,
                                    .time_ns = now_ns()};
    memcpy(header, &contents, sizeof contents);
}

void jitdump_close(uint8_t record[JITDUMP_CLOSE_BYTES])
{
    const struct prefix contents = {
        .kind = RECORD_CLOSE, .size = sizeof contents, .time_ns = now_ns()};
    memcpy(record, &contents, sizeof contents);
}

static void add(struct jitdump_record *record, const void *bytes, size_t size)
{
    uint8_t *reserved = array_reserve(record->allocator, record->bytes, record->size, size,
                                      &record->capacity, sizeof *reserved);
    if (reserved == NULL) {
        record->failed = true;
        return;
    }
    record->bytes = reserved;
    memcpy(reserved + record->size, bytes, size);
    record->size += size;
}

/* Sets the time and size of the record in the buffer. */
static void finish(struct jitdump_record *record)
{
    struct prefix prefix;
    memcpy(&prefix, record->bytes, sizeof prefix);
    prefix.size = (uint32_t)record->size;
    prefix.time_ns = now_ns();
    memcpy(record->bytes, &prefix, sizeof prefix);
}

static void start(struct jitdump_record *record)
{
    record->size = 0;
    record->failed = false;
}

void jitdump_load(struct jitdump_record *record, const struct named_code *code, pid_t process,
                  uint64_t index)
{
    const struct load load = {.prefix = {.kind = RECORD_LOAD},
                              .process = (uint32_t)process,
                              .thread = (uint32_t)syscall(SYS_gettid),
                              .memory_address = code->address,
                              .address = code->address,
                              .size = code->size,
                              .index = index};
    start(record);
    add(record, &load, sizeof load);
    add(record, code->name, strlen(code->name) + 1);
    add(record, (const void *)(uintptr_t)code->address, code->size);
    record->failed |= record->size > UINT32_MAX;
    if (!record->failed)
        finish(record);
}

void jitdump_lines_begin(struct jitdump_record *record, uint64_t address)
{
    const struct lines lines = {.prefix = {.kind = RECORD_LINES}, .address = address};
    start(record);
    add(record, &lines, sizeof lines);
}

void jitdump_lines_add(struct jitdump_record *record, const struct line_row *row)
{
    enum { PATH_BYTES = 1024 };
    char path[PATH_BYTES];
    const struct line line = {row->address, row->line, row->discriminator};
    bool has_folder = row->name[0] != '/' && row->folder[0] != '\0';
    bool has_compilation =
        row->name[0] != '/' && row->folder[0] != '/' && row->compilation[0] != '\0';
    snprintf(path, sizeof path, "%.400s%s%.400s%s%.200s", has_compilation ? row->compilation : "",
             has_compilation ? "/" : "", has_folder ? row->folder : "", has_folder ? "/" : "",
             row->name[0] == '\0' ? "?" : row->name);
    if (record->failed)
        return;
    add(record, &line, sizeof line);
    add(record, path, strlen(path) + 1);
    struct lines lines;
    memcpy(&lines, record->bytes, sizeof lines);
    lines.count++;
    memcpy(record->bytes, &lines, sizeof lines);
}

bool jitdump_lines_end(struct jitdump_record *record)
{
    if (record->failed || record->size <= sizeof(struct lines) || record->size > UINT32_MAX)
        return false;
    finish(record);
    return true;
}

void jitdump_release(struct jitdump_record *record)
{
    memory_free(record->allocator, record->bytes, record->capacity);
    *record = (struct jitdump_record){.allocator = record->allocator};
}
