/*
 * cairn profile: where a program spends its time, by basic block.
 *
 * SPDX-License-Identifier: MIT
 */
#include "tools/profile.h"

#include "tools/addresses.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const char help[] =
    "usage: cairn profile [OPTION...] FILE [SAMPLES]\n"
    "\n"
    "Counts sampled addresses by the basic blocks of an executable or shared library, and prints\n"
    "the hottest functions and blocks. FILE needs a basic-block address map (clang\n"
    "-fbasic-block-address-map, before version 19 -fbasic-block-sections=labels). SAMPLES is a\n"
    "file with a hexadecimal address on each line, or with the output of 'perf script'. Without\n"
    "SAMPLES, or if it is '-', samples are read from standard input:\n"
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
    "  --debug-file PATH\n"
    "                    read the names of functions from this separate debug file\n"
    "  --json            print an object with totals, functions and blocks; see cairn(1)\n"
    "  --memory SIZE     limit the memory for the contents of FILE, for example to 500M\n"
    "  --help            print this text\n"
    "\n"
    "Lines without an address are counted and reported. Without samples, the exit status is 1.\n";

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

static void warn(const struct profile *profile, const char *samples_path)
{
    uint64_t elsewhere = profile_elsewhere_count(profile);
    const char *advice = "if the file is position-independent, give --base ADDRESS, or use 'perf "
                         "script -F ip --show-mmap-events'";
    if (profile->caller_count > 0)
        advice = "call chains have offsets instead of addresses: use 'perf script -G -F ip "
                 "--show-mmap-events', which prints no chains";
    else if (profile->has_base)
        advice = "check that --base is the address at which address 0 of the file was loaded";
    else if (profile->loaded_count > 0)
        advice = "they are in libraries or the kernel";
    if (profile->junk_count > 0)
        complain("%s: ignored %llu line%s without an address; the first is line %llu", samples_path,
                 (unsigned long long)profile->junk_count, plural(profile->junk_count),
                 (unsigned long long)profile->first_junk_line);
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

/* Writes the picture under a temporary name in the same folder and renames it to `path`, so that it
 * appears only when it is complete. A file that is not regular, such as a pipe, is written
 * directly.
 */
static bool write_picture(const char *path, const struct profile *profile, uint32_t function)
{
    static struct output output;
    struct stat status;
    char *temporary = NULL;
    bool is_special = stat(path, &status) == 0 && !S_ISREG(status.st_mode);
    if (!is_special && asprintf(&temporary, "%s.XXXXXX", path) < 0)
        return complain("%s: cannot be written: no memory", path);
    int descriptor = is_special ? open(path, O_WRONLY | O_CLOEXEC) : mkstemp(temporary);
    if (descriptor < 0) {
        complain("%s: cannot be written: %s", path, strerror(errno));
        free(temporary);
        return false;
    }
    output_open(&output, descriptor);
    bool is_drawn = write_profile_svg(&output, profile, function);
    output_flush(&output);
    int system_error = output.system_error;
    mode_t mask = umask(0); /* the mode is the one that open would give a new file */
    umask(mask);
    if (system_error == 0 && !is_special && fchmod(descriptor, 0666 & ~mask) != 0)
        system_error = errno;
    if (close(descriptor) != 0 && system_error == 0)
        system_error = errno;
    if (is_drawn && system_error == 0 && !is_special && rename(temporary, path) != 0)
        system_error = errno;
    if (!is_special && (!is_drawn || system_error != 0))
        unlink(temporary);
    free(temporary);
    if (is_drawn && system_error != 0)
        complain("%s: cannot be written: %s", path, strerror(system_error));
    return is_drawn && system_error == 0;
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
    return write_picture(options->svg_path, profile, function);
}

/* ---- The command ---- */

static bool print_profile(struct profile *profile, const struct options *options)
{
    struct ranking ranking;
    struct printer *printer = profile->input->printer;
    profile->has_base = options->has_base;
    profile->base = options->base;
    if (!profile_read(profile, options->descriptor, options->samples_path))
        return false;
    warn(profile, options->samples_path);
    bool is_good = ranking_create(&ranking, profile);
    if (is_good && options->file.json)
        write_profile_json(&printer->json, profile, &ranking, options->limit);
    else if (is_good)
        write_profile_text(&printer->output, profile, &ranking, options->limit);
    is_good = is_good && finish_output(&printer->output) == EXIT_DONE &&
              (options->svg_path == NULL || draw(profile, &ranking, options));
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
        return complain("%s: the file is not linked, so its code has no addresses that could be "
                        "sampled",
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
    options->descriptor = STDIN_FILENO;
    if (strcmp(options->samples_path, "-") == 0)
        options->samples_path = "standard input";
    else
        options->descriptor = open(options->samples_path, O_RDONLY | O_CLOEXEC);
    if (options->descriptor < 0) {
        complain("%s: cannot be opened: %s", options->samples_path, strerror(errno));
        return EXIT_BAD_INPUT;
    }
    bool is_good = visit_file(&options->file, &printer, visit_object, options);
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
           complain("profile: --limit needs " LIMIT_NEEDS ", not '%s'", word);
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
                                .operand_limit = 2};
    enum exit_status status;
    bool is_usable = true;
    if (!parse_command_line(argc, argv, &line, &status))
        return status;
    options.file = line.file;
    options.has_base = base != NULL;
    if (line.operand_count > 1)
        options.samples_path = line.operands[1];
    if (strcmp(options.file.path, "-") == 0 && strcmp(options.samples_path, "-") == 0)
        is_usable = complain("profile: standard input cannot be both the file and the samples");
    else if (options.function != NULL && options.svg_path == NULL)
        is_usable = complain("profile: --function needs --svg, which is not given");
    else if (base != NULL && !parse_address(base, &options.base))
        is_usable = complain("profile: --base needs " BASE_NEEDS ", not '%s'", base);
    return is_usable && parse_limit(limit, &options) ? run(&options) : EXIT_BAD_USAGE;
}
