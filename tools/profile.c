/*
 * cairn profile: where a program spends its time, by basic block.
 *
 * SPDX-License-Identifier: MIT
 */
#include "tools/profile.h"

#include "tools/addresses.h"
#include "tools/new_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char help[] =
    "usage: cairn profile [OPTION…] FILE [SAMPLES]\n"
    "\n"
    "Counts sampled addresses by the basic blocks of an executable or shared library that has a\n"
    "basic-block address map (clang -fbasic-block-address-map, before version 19\n"
    "-fbasic-block-sections=labels), and prints the hottest functions and blocks. SAMPLES is a\n"
    "file with an address a line, in hexadecimal, or what 'perf script' prints; without it, or\n"
    "if it is -, samples are read from standard input:\n"
    "\n"
    "  perf record ./program\n"
    "  perf script -F ip --show-mmap-events | cairn profile ./program\n"
    "\n"
    "  --base ADDRESS    where the file's address 0 was loaded; it is subtracted from each\n"
    "                    sample. Without it lines of /proc/PID/maps and of perf's mmap events,\n"
    "                    before the samples, say where; and without those too samples are the\n"
    "                    file's own addresses, as those of fixed executables are\n"
    "  --limit N         print N functions and N blocks (10; with --json all); 0 is all\n"
    "  --svg OUT         also draw the blocks of the hottest function with their samples\n"
    "  --function NAME   draw this function, a name or an address\n"
    "  --debug-file PATH the separate debug file that has the symbols\n"
    "  --json            for machines: totals, functions and blocks; cairn(1) has the details\n"
    "  --memory SIZE     how much memory FILE may take, such as 500M\n"
    "  --help            this text\n"
    "\n"
    "Lines that cannot be read are counted and reported. The exit status is 1 without samples.\n";

struct options {
    struct file_options file;
    const char *samples_path; /* "-" for standard input */
    const char *svg_path;
    const char *function;
    bool has_base;
    uint64_t base;
    size_t limit;
    int descriptor; /* of the file with the samples */
};

/* ---- Warnings ---- */

static const char *find_advice(const struct profile *profile)
{
    if (profile->caller_count > 0)
        return "perf writes places in files, not addresses, into call chains: 'perf script -G -F "
               "ip --show-mmap-events' leaves the chains out";
    if (profile->has_base)
        return "is --base the place where the file's address 0 was loaded?";
    if (profile->loaded_count > 0)
        return "the rest of the time went to libraries or the kernel";
    return "if the program was loaded elsewhere, as position-independent ones and libraries are, "
           "--base ADDRESS says where, or 'perf script -F ip --show-mmap-events'";
}

static void warn(const struct profile *profile, const char *samples_path)
{
    uint64_t elsewhere = profile_elsewhere_count(profile);
    bool is_one = profile->junk_count == 1;
    if (profile->junk_count > 0)
        complain("%s: %llu %s no address and %s left out; the first is line %llu", samples_path,
                 (unsigned long long)profile->junk_count, is_one ? "line has" : "lines have",
                 is_one ? "was" : "were", (unsigned long long)profile->first_junk_line);
    if (elsewhere > profile->sample_count / 2)
        complain("%s: %llu of %llu samples are not in its code: %s", profile->input->name,
                 (unsigned long long)elsewhere, (unsigned long long)profile->sample_count,
                 find_advice(profile));
}

/* ---- The picture ---- */

/* Finds the function that `name` names: by its name, or its address in hexadecimal. Several static
 * functions can have one name; the hottest of them is found. */
static bool find_named_function(const struct profile *profile, const char *name, uint32_t *found)
{
    struct cairn_block_function function;
    uint64_t address;
    uint64_t most = 0;
    bool has_address = parse_address(name, &address);
    bool is_found = false;
    for (uint32_t i = 0; cairn_block_table_function(profile->table, i, &function); i++) {
        const char *symbol = profile_function_name(profile, function.address);
        uint64_t samples = 0;
        if ((symbol == NULL || strcmp(symbol, name) != 0) &&
            (!has_address || address != function.address))
            continue;
        for (uint32_t j = profile->first_blocks[i]; j < profile->first_blocks[i + 1]; j++)
            samples += profile->counts[j];
        if (is_found && samples <= most)
            continue;
        is_found = true;
        most = samples;
        *found = i;
    }
    return is_found;
}

static bool draw(const struct profile *profile, const struct ranking *ranking,
                 const struct options *options)
{
    static struct new_file file;
    uint32_t function;
    const char *path = profile->input->name;
    if (options->function != NULL) {
        if (!find_named_function(profile, options->function, &function))
            return complain("%s: no function '%s' has a map of its blocks", path,
                            options->function);
    } else if (ranking->function_count == 0) {
        return complain("%s: no sample is in a block: there is no hottest function to draw", path);
    } else {
        function = ranking->functions[0].index;
    }
    if (!new_file_open(&file, options->svg_path))
        return false;
    if (write_profile_svg(&file.output, profile, function))
        return new_file_finish(&file);
    new_file_abandon(&file);
    return false;
}

/* ---- The command ---- */

static bool print_ranking(const struct profile *profile, const struct ranking *ranking,
                          const struct options *options)
{
    static struct output output;
    output_open(&output, STDOUT_FILENO);
    output_allow_names(&output, profile->input->size);
    if (options->file.json)
        write_profile_json(&output, profile, ranking, options->limit);
    else
        write_profile_text(&output, profile, ranking, options->limit);
    if (finish_output(&output) != EXIT_DONE)
        return false;
    return options->svg_path == NULL || draw(profile, ranking, options);
}

static bool print_profile(struct profile *profile, const struct options *options)
{
    struct ranking ranking;
    profile->has_base = options->has_base;
    profile->base = options->base;
    if (!profile_read(profile, options->descriptor, options->samples_path))
        return false;
    warn(profile, options->samples_path);
    bool is_good = ranking_create(&ranking, profile) && print_ranking(profile, &ranking, options);
    ranking_release(&ranking);
    return is_good;
}

/* Profiles an object. If a map is invalid, the table holds everything that precedes the invalid
 * part. The samples are counted in this case, too. */
static bool visit_object(const struct input *input, void *user)
{
    struct layout layout;
    struct profile profile;
    cairn_block_table *table;
    if (cairn_object_is_relocatable(input->object))
        return complain("%s: it is not linked: its code has no addresses that could be sampled",
                        input->name);
    if (!layout_create(input, &layout))
        return false;
    bool is_good = blocks_create(input, &layout, &table);
    if (table != NULL) {
        is_good = profile_create(&profile, input, &layout, table) &&
                  print_profile(&profile, user) && is_good;
        profile_release(&profile);
        cairn_block_table_destroy(table);
    } else if (is_good) {
        is_good = complain("%s: there is no basic-block address map: clang writes one with "
                           "-fbasic-block-address-map, before version 19 with "
                           "-fbasic-block-sections=labels",
                           input->name);
    }
    layout_destroy(&layout);
    return is_good;
}

static enum exit_status run(struct options *options)
{
    options->descriptor = STDIN_FILENO;
    if (strcmp(options->samples_path, "-") == 0)
        options->samples_path = "standard input";
    else
        options->descriptor = open(options->samples_path, O_RDONLY | O_CLOEXEC);
    if (options->descriptor < 0) {
        complain("%s: %s", options->samples_path, strerror(errno));
        return EXIT_BAD_INPUT;
    }
    bool is_good = visit_file(&options->file, visit_object, options);
    if (options->descriptor != STDIN_FILENO)
        close(options->descriptor);
    return is_good ? EXIT_DONE : EXIT_BAD_INPUT;
}

#define BASE_NEEDS "an address in hexadecimal"
#define LIMIT_NEEDS "a number"

static bool parse_limit(const char *word, struct options *options)
{
    enum { USUAL_LIMIT = 10 };
    char *end;
    options->limit = options->file.json ? SIZE_MAX : USUAL_LIMIT;
    if (word == NULL)
        return true;
    errno = 0;
    unsigned long value = strtoul(word, &end, 10);
    options->limit = value == 0 ? SIZE_MAX : value;
    return (word[0] >= '0' && word[0] <= '9' && *end == '\0' && errno == 0) ||
           complain("profile: --limit needs " LIMIT_NEEDS);
}

enum exit_status command_profile(int argc, char **argv)
{
    struct options options = {.samples_path = "-"};
    const char *base = NULL;
    const char *limit = NULL;
    const struct option known[] = {
        {.name = "--base", .value = &base, .needs = BASE_NEEDS},
        {.name = "--function", .value = &options.function, .needs = "a name"},
        {.name = "--limit", .value = &limit, .needs = LIMIT_NEEDS},
        {.name = "--svg", .value = &options.svg_path, .needs = "a file"},
    };
    struct command_line line = {.command = "profile",
                                .help = help,
                                .options = known,
                                .option_count = sizeof known / sizeof *known,
                                .operand_limit = 2,
                                .file = &options.file};
    enum exit_status status;
    if (!parse_command_line(argc, argv, &line, &status))
        return status;
    if (line.operand_count > 1)
        options.samples_path = line.operands[1];
    options.has_base = base != NULL;
    bool is_usable = true;
    if (strcmp(options.file.path, "-") == 0 && strcmp(options.samples_path, "-") == 0)
        is_usable = complain("profile: the file and the samples cannot both come from standard "
                             "input");
    else if (options.function != NULL && options.svg_path == NULL)
        is_usable = complain("profile: --function is for --svg, which is not given");
    else if (base != NULL && !parse_address(base, &options.base))
        is_usable = complain("profile: --base needs " BASE_NEEDS);
    return is_usable && parse_limit(limit, &options) ? run(&options) : EXIT_BAD_USAGE;
}
