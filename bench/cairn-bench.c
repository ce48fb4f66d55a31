/*
 * cairn-bench: measures the figures of doc/performance.md.
 *
 * SPDX-License-Identifier: MIT
 */
#include "bench/bench_entry.h"
#include "bench/bench_load.h"
#include "bench/bench_patch.h"
#include "bench/bench_runtime.h"
#include "bench/bench_stackmap.h"
#include "bench/generate_stackmap.h"
#include "bench/report.h"
#ifdef CAIRN_WITH_LLVM
#include "bench/bench_mcjit.h"
#endif

#include <cairn/stackmap.h>
#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { DEFAULT_RECORDS = 1000000, RECORDS_MAX = 16000000, BAD_USAGE = 2 };

struct arguments {
    struct bench_options options;
    const char *input;
    const char *output;
    uint32_t record_count;
    enum generated_ids ids;
};

static const char usage[] =
    "usage: cairn-bench [options]\n"
    "\n"
    "Measures Cairn and, in the same run, what it is compared with.\n"
    "\n"
    "  --input FILE    read a raw stack map section (this machine's byte order)\n"
    "  --records N     generate a section of N records instead (default 1000000)\n"
    "  --random-ids    with IDs that do not ascend\n"
    "  --write FILE    write the generated section to FILE and end\n"
    "  --only PREFIX   only figures whose names begin so\n"
    "  --json          one JSON object a line\n"
    "  --help          this text\n";

static uint8_t *read_file(const char *path, size_t *size)
{
    FILE *file = fopen(path, "rb");
    if (file == NULL)
        return NULL;
    uint8_t *bytes = NULL;
    size_t capacity = 0;
    *size = 0;
    do {
        if (*size == capacity) {
            capacity = capacity == 0 ? 1 << 20 : 2 * capacity;
            uint8_t *grown = realloc(bytes, capacity);
            if (grown == NULL)
                break;
            bytes = grown;
        }
        *size += fread(bytes + *size, 1, capacity - *size, file);
    } while (!feof(file) && !ferror(file));
    if (ferror(file) || !feof(file)) {
        free(bytes);
        bytes = NULL;
    }
    fclose(file);
    return bytes;
}

static int write_file(const char *path, const uint8_t *bytes, size_t size)
{
    FILE *file = fopen(path, "wb");
    bool written = file != NULL && fwrite(bytes, 1, size, file) == size;
    if (file != NULL && fclose(file) != 0)
        written = false;
    if (!written)
        fprintf(stderr, "cairn-bench: %s: %s\n", path, strerror(errno));
    return written ? 0 : 1;
}

static int complain(const char *what, const struct cairn_error *error)
{
    fprintf(stderr, "cairn-bench: %s: offset %llu: %s\n", what, (unsigned long long)error->offset,
            error->message);
    return 1;
}

static int check_section(const char *what, const struct cairn_section *section)
{
    struct cairn_error error;
    struct cairn_stackmap map;
    size_t offset = 0;
    if (section->size == 0) {
        fprintf(stderr, "cairn-bench: %s: the section is empty\n", what);
        return 1;
    }
    while (offset < section->size)
        if (cairn_stackmap_read(section, &offset, &map, &error) != CAIRN_OK)
            return complain(what, &error);
    return 0;
}

static int run(const struct arguments *arguments, const struct cairn_section *section)
{
    const struct bench_options *options = &arguments->options;
    bench_begin(options);
    if (!bench_stackmap(options, section)) {
        fprintf(stderr, "cairn-bench: no table can be made of this section, or no memory\n");
        return 1;
    }
    if (!bench_runtime(options) || !bench_load(options) || !bench_patch(options) ||
        !bench_entry(options))
        return 1;
#ifdef CAIRN_WITH_LLVM
    if (!bench_mcjit(options))
        return 1;
#else
    bench_print_missing(options, "mcjit", "built without LLVM");
#endif
    bench_end(options);
    return 0;
}

static bool parse_count(const char *text, uint32_t *count)
{
    char *end;
    unsigned long value = strtoul(text, &end, 10);
    *count = (uint32_t)value;
    return *text != '\0' && *end == '\0' && value > 0 && value <= RECORDS_MAX;
}

static int parse(int argc, char **argv, struct arguments *arguments)
{
    static const struct option known[] = {
        {"input", required_argument, NULL, 'i'}, {"records", required_argument, NULL, 'n'},
        {"random-ids", no_argument, NULL, 'r'},  {"write", required_argument, NULL, 'w'},
        {"only", required_argument, NULL, 'o'},  {"json", no_argument, NULL, 'j'},
        {"help", no_argument, NULL, 'h'},        {NULL, 0, NULL, 0},
    };
    *arguments = (struct arguments){.record_count = DEFAULT_RECORDS};
    int option;
    while ((option = getopt_long(argc, argv, "", known, NULL)) != -1) {
        if (option == 'i')
            arguments->input = optarg;
        else if (option == 'r')
            arguments->ids = GENERATED_IDS_RANDOM;
        else if (option == 'w')
            arguments->output = optarg;
        else if (option == 'o')
            arguments->options.only = optarg;
        else if (option == 'j')
            arguments->options.json = true;
        else if (option == 'h')
            return 'h';
        else if (option != 'n' || !parse_count(optarg, &arguments->record_count))
            return BAD_USAGE;
    }
    return optind == argc ? 0 : BAD_USAGE;
}

int main(int argc, char **argv)
{
    struct arguments arguments;
    int parsed = parse(argc, argv, &arguments);
    if (parsed != 0) {
        fputs(usage, parsed == 'h' ? stdout : stderr);
        return parsed == 'h' ? 0 : BAD_USAGE;
    }
    size_t size = 0;
    errno = 0;
    uint8_t *bytes = arguments.input != NULL
                         ? read_file(arguments.input, &size)
                         : generate_stackmap(arguments.record_count, arguments.ids,
                                             UINT64_C(0x7F0000000000), &size);
    const char *what = arguments.input != NULL ? arguments.input : "generated section";
    if (bytes == NULL) {
        fprintf(stderr, "cairn-bench: %s: %s\n", what, strerror(errno == 0 ? ENOMEM : errno));
        return 1;
    }
    const struct cairn_section section = {bytes, size, CAIRN_BYTE_ORDER_NATIVE};
    int status = check_section(what, &section);
    if (status == 0)
        status = arguments.output != NULL ? write_file(arguments.output, bytes, size)
                                          : run(&arguments, &section);
    free(bytes);
    return status;
}
