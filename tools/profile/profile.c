/*
 * cairn profile: where a program spends its time, by basic block.
 *
 * SPDX-License-Identifier: MIT
 */
#include "tools/profile/profile.h"

#include "tools/cli/save.h"
#include "tools/propeller/propeller.h"
#include "tools/samples/stacks.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

static const char help[] =
    "usage: cairn profile [OPTION...] FILE [SAMPLES...]\n"
    "\n"
    "Counts sampled addresses by the basic blocks of an executable or shared library, and prints\n"
    "the hottest functions and blocks. FILE needs a basic-block address map (clang\n"
    "-fbasic-block-address-map, before version 19 -fbasic-block-sections=labels). SAMPLES are\n"
    "files with a hexadecimal address on each line, or with the output of 'perf script'. Samples "
    "of\n"
    "several files are added up; each file needs mappings of its own. Without SAMPLES, or for "
    "'-',\n"
    "samples are read from standard input:\n"
    "\n"
    "  perf record ./program\n"
    "  perf script -F ip --show-mmap-events | cairn profile ./program\n"
    "\n"
    "  --base ADDRESS    the address at which address 0 of the file was loaded: it is subtracted\n"
    "                    from each sample. Without --base, mappings among the samples, as in\n"
    "                    /proc/PID/maps or perf's mmap events, determine it; without mappings,\n"
    "                    samples are addresses of the file, as in fixed executables\n"
    "  --limit N         print N functions and N blocks, or all if N is 0 (default: 10; with\n"
    "                    --json all)\n"
    "  --svg OUT         also draw the blocks of the hottest function with their samples\n"
    "  --function NAME   with --svg: draw this function, given by its name or address\n"
    "  --build-id ID     the build ID of the program that was sampled\n"
    "  --propeller DIR   also write directives that place blocks and functions by the profile, "
    "for\n"
    "                    clang -fbasic-block-sections=list=DIR/cc_profile.txt and\n"
    "                    ld.lld --symbol-ordering-file=DIR/ld_profile.txt\n"
    "  --propeller-version 0|1\n"
    "                    the version of the directives for clang: 0 is for LLVM 14 to 17, 1 for\n"
    "                    18 and later (default: by the version of the map; 1 from version 2 on)\n"
    "  --collapsed       print lines for flame graphs instead: file;functions;block, and samples.\n"
    "                    Stacks are whole if SAMPLES have call chains with files: 'perf record "
    "-g'\n"
    "                    and 'perf script -F ip,sym,dso --show-mmap-events'\n"
    "  --pprof OUT       also write a profile for pprof (profile.proto, gzip), with other files\n"
    "                    that were sampled\n"
    "  --sample-profile OUT\n"
    "                    also write a profile for llvm-profdata and clang -fprofile-sample-use;\n"
    "                    FILE needs pseudo probes (clang -fpseudo-probe-for-profiling)\n"
    "  --debug-file PATH\n"
    "                    read the names of functions from this separate debug file\n"
    "  --json            print an object with totals, functions and blocks; see cairn-json(5)\n"
    "  --memory SIZE     limit the memory for the contents of FILE, for example to 500M\n"
    "  --help            print this text\n"
    "\n"
    "Build IDs among the samples, in perf's mmap events or from 'perf buildid-list', are compared\n"
    "with that of FILE. Samples of another build are refused.\n"
    "\n"
    "Lines without an address are counted and reported. Without samples, the exit status is 1.\n";

enum { USUAL_LIMIT = 10 };

struct options {
    struct file_options file;
    const char *const *samples_paths; /* "-" for standard input */
    size_t samples_count;
    const char *svg_path;
    const char *pprof_path;
    const char *sample_profile_path;
    bool is_collapsed;
    const char *propeller_path; /* folder for directives, or NULL */
    enum propeller_version propeller_version;
    const char *function;
    bool has_base;
    uint64_t base;
    size_t limit;
    struct build_id build_id; /* the one that the user gave; its size is 0 without one */
};

/* ---- Warnings ---- */

static void warn_of_junk(const struct profile *profile, const struct options *options)
{
    if (profile->junk_count == 0)
        return;
    const char *first = profile_input_name(options->samples_paths[0]);
    const char *others = options->samples_count > 1 ? " and others" : "";
    complain("%s%s: ignored %llu line%s without an address; the first is line %llu%s%s", first,
             others, (unsigned long long)profile->junk_count, plural(profile->junk_count),
             (unsigned long long)profile->first_junk_line, *others != '\0' ? " of " : "",
             *others != '\0' ? profile->first_junk_name : "");
}

static void warn(const struct profile *profile, const struct options *options)
{
    uint64_t elsewhere = profile_elsewhere_count(profile);
    const char *advice = "if the file is position-independent, give --base ADDRESS, or use 'perf "
                         "script -F ip --show-mmap-events'";
    if (profile->caller_count > 0)
        advice = "call chains have offsets instead of addresses: use 'perf script -F ip,sym,dso "
                 "--show-mmap-events', which prints the file of each offset";
    else if (profile->has_base)
        advice = "check that --base is the address at which address 0 of the file was loaded";
    else if (profile->mappings.count > 0)
        advice = "they are in libraries or the kernel";
    warn_of_junk(profile, options);
    if (elsewhere > profile->sample_count / 2)
        complain("%s: %llu of %llu samples are not in its code: %s", profile->input->name,
                 (unsigned long long)elsewhere, (unsigned long long)profile->sample_count, advice);
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

/* What the picture shows. */
struct picture {
    const struct profile *profile;
    uint32_t function;
};

static bool write_picture(struct output *output, void *user)
{
    const struct picture *picture = user;
    return write_profile_svg(output, picture->profile, picture->function);
}

static bool draw(const struct profile *profile, const struct ranking *ranking,
                 const struct options *options)
{
    uint32_t function;
    const char *path = profile->input->name;
    if (options->function == NULL && ranking->function_count == 0)
        return complain("%s: no sample is in a block, so there is no hottest function to draw",
                        path);
    if (options->function == NULL)
        function = ranking->functions[0].index;
    else if (!find_named_function(profile, options->function, &function))
        return complain("%s: no function '%s' has a basic-block address map", path,
                        options->function);
    struct picture picture = {profile, function};
    return save_output(options->svg_path, write_picture, &picture);
}

/* ---- The command ---- */

/* Whether the build ID that the user gave is the file's. Otherwise false after an error message. */
static bool check_build_id(const struct profile *profile, const struct options *options)
{
    const char *name = profile->input->name;
    struct build_id_text given = build_id_format(&options->build_id);
    struct build_id_text own = build_id_format(&profile->id);
    if (options->build_id.size == 0 || build_ids_agree(&options->build_id, &profile->id))
        return true;
    if (profile->id.size == 0)
        return complain("%s: the file has no build ID that could be compared with %s", name,
                        given.digits);
    return complain("%s: the samples are of another build: the build ID of %s is %s, and that of "
                    "the sampled program is %s",
                    profile_input_name(options->samples_paths[0]), name, own.digits, given.digits);
}

static bool print(const struct profile *profile, const struct ranking *ranking,
                  const struct options *options)
{
    struct printer *printer = profile->input->printer;
    if (options->is_collapsed)
        return write_collapsed(&printer->output, profile);
    if (options->file.json)
        write_profile_json(&printer->json, profile, ranking, options->limit);
    else
        write_profile_text(&printer->output, profile, ranking, options->limit);
    return true;
}

/* Writes the files that the user asked for. */
static bool write_files(const struct profile *profile, const struct ranking *ranking,
                        const struct options *options)
{
    return (options->svg_path == NULL || draw(profile, ranking, options)) &&
           (options->pprof_path == NULL || save_pprof(options->pprof_path, profile)) &&
           (options->sample_profile_path == NULL ||
            save_sample_profile(options->sample_profile_path, profile)) &&
           (options->propeller_path == NULL ||
            write_propeller(options->propeller_path, profile, options->propeller_version));
}

static bool print_profile(struct profile *profile, const struct options *options)
{
    struct ranking ranking;
    profile->has_base = options->has_base;
    profile->base = options->base;
    profile->keeps_libraries = options->is_collapsed || options->pprof_path != NULL;
    if (!check_build_id(profile, options) ||
        !profile_read(profile, options->samples_paths, options->samples_count))
        return false;
    warn(profile, options);
    bool is_good = ranking_create(&ranking, profile);
    is_good = is_good && print(profile, &ranking, options) &&
              finish_output(&profile->input->printer->output) == EXIT_DONE &&
              write_files(profile, &ranking, options);
    ranking_release(&ranking);
    return is_good;
}

/* Keeps callers, too, if they are needed. */
static bool print_with_stacks(struct profile *profile, const struct options *options)
{
    static struct stacks stacks;
    if (!options->is_collapsed && options->pprof_path == NULL)
        return print_profile(profile, options);
    profile->stacks = &stacks;
    bool is_good = stacks_create(&stacks) && print_profile(profile, options);
    profile->stacks = NULL;
    stacks_release(&stacks);
    return is_good;
}

/* Counts branches, too, if they are needed. */
static bool print_with_branches(struct profile *profile, const struct options *options)
{
    struct branch_counts counts;
    if (options->propeller_path == NULL && options->sample_profile_path == NULL)
        return print_with_stacks(profile, options);
    profile->branches = &counts;
    bool is_good = branch_counts_create(&counts, profile) && print_with_stacks(profile, options);
    profile->branches = NULL;
    branch_counts_release(&counts);
    return is_good;
}

/* Profiles an object. If a map is invalid, the table holds everything that precedes the invalid
 * part. The samples are counted in this case, too. */
static bool visit_object(const struct input *input, void *user)
{
    struct layout layout;
    struct profile profile;
    cairn_block_table *table;
    if (cairn_object_header(input->object).is_relocatable)
        return complain("%s: the file is not linked, so its code has no addresses that could be "
                        "sampled",
                        input->name);
    if (!layout_create(input, &layout))
        return false;
    bool is_good = blocks_create(input, &layout, &table);
    if (table != NULL) {
        is_good = profile_create(&profile, input, &layout, table) &&
                  print_with_branches(&profile, user) && is_good;
        profile_release(&profile);
        cairn_block_table_destroy(table);
    } else if (is_good) {
        is_good = complain("%s: " NO_BLOCK_MAPS, input->name);
    }
    layout_destroy(&layout);
    return is_good;
}

static enum exit_status run(struct options *options)
{
    static struct printer printer;
    output_open(&printer.output, STDOUT_FILENO);
    printer.json.output = &printer.output;
    bool is_good = visit_file(&options->file, &printer, visit_object, options);
    return is_good ? EXIT_DONE : EXIT_BAD_INPUT;
}

#define BASE_NEEDS "an address in hexadecimal"

/* Whether the samples can be read from these operands: standard input is read once. */
static bool check_operands(const struct options *options)
{
    size_t standard_count = strcmp(options->file.path, "-") == 0;
    bool is_file = standard_count > 0;
    for (size_t i = 0; i < options->samples_count; i++)
        standard_count += strcmp(options->samples_paths[i], "-") == 0;
    if (standard_count > 1 && is_file)
        return complain("profile: standard input cannot be both the file and the samples");
    return standard_count <= 1 || complain("profile: '-' is given twice as the samples");
}

#define BUILD_ID_NEEDS "hexadecimal digits"

static bool parse_build_id(const char *word, struct options *options)
{
    return word == NULL || build_id_parse(word, strlen(word), &options->build_id) ||
           complain("profile: --build-id needs " BUILD_ID_NEEDS ", not '%s'", word);
}

#define VERSION_NEEDS "0 or 1"

static bool parse_version(const char *word, struct options *options)
{
    options->propeller_version = PROPELLER_BY_MAP;
    if (word == NULL)
        return true;
    if (options->propeller_path == NULL)
        return complain("profile: --propeller-version needs --propeller, which is not given");
    options->propeller_version = strcmp(word, "0") == 0 ? PROPELLER_V0 : PROPELLER_V1;
    return strcmp(word, "0") == 0 || strcmp(word, "1") == 0 ||
           complain("profile: --propeller-version needs " VERSION_NEEDS ", not '%s'", word);
}

enum exit_status command_profile(int argc, char **argv)
{
    static const char *const standard_input[] = {"-"};
    struct options options = {.samples_paths = standard_input, .samples_count = 1};
    const char *base = NULL;
    const char *build_id = NULL;
    const char *limit = NULL;
    const char *version = NULL;
    const struct option known[] = {
        {.name = "--base", .value = &base, .needs = BASE_NEEDS},
        {.name = "--build-id", .value = &build_id, .needs = BUILD_ID_NEEDS},
        {.name = "--collapsed", .flag = &options.is_collapsed},
        {.name = "--function", .value = &options.function, .needs = "a name"},
        {.name = "--limit", .value = &limit, .needs = LIMIT_NEEDS},
        {.name = "--pprof", .value = &options.pprof_path, .needs = "a file"},
        {.name = "--propeller", .value = &options.propeller_path, .needs = "a folder"},
        {.name = "--propeller-version", .value = &version, .needs = VERSION_NEEDS},
        {.name = "--sample-profile", .value = &options.sample_profile_path, .needs = "a file"},
        {.name = "--svg", .value = &options.svg_path, .needs = "a file"},
    };
    struct command_line line = {.command = "profile",
                                .help = help,
                                .options = known,
                                .option_count = sizeof known / sizeof *known};
    enum exit_status status;
    bool is_usable = true;
    if (!parse_command_line(argc, argv, &line, &status))
        return status;
    options.file = line.file;
    options.limit = line.file.json ? SIZE_MAX : USUAL_LIMIT;
    options.has_base = base != NULL;
    if (line.operand_count > 1) {
        options.samples_paths = (const char *const *)line.operands + 1;
        options.samples_count = line.operand_count - 1;
    }
    if (!check_operands(&options))
        is_usable = false;
    else if (options.function != NULL && options.svg_path == NULL)
        is_usable = complain("profile: --function needs --svg, which is not given");
    else if (options.is_collapsed && options.file.json)
        is_usable = complain("profile: --collapsed and --json are both given");
    else if (base != NULL && !parse_address(base, &options.base))
        is_usable = complain("profile: --base needs " BASE_NEEDS ", not '%s'", base);
    is_usable = is_usable && parse_build_id(build_id, &options) &&
                parse_limit("profile", limit, &options.limit) && parse_version(version, &options);
    return is_usable ? run(&options) : EXIT_BAD_USAGE;
}
