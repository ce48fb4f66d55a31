/*
 * cairn inspect: modules, sites, inline caches and code memory of a running process.
 *
 * The process is not stopped. Its runtimes are found by the names of their descriptors' mappings.
 *
 * SPDX-License-Identifier: MIT
 */
#include "tools/inspect/inspect.h"

#include "tools/cli/command.h"
#include "tools/cli/json.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static const char help[] =
    "usage: cairn inspect [--json] [--summary] [--watch[=SECONDS]] PID\n"
    "\n"
    "Prints the runtimes of a running process that uses Cairn: code memory, modules, sites with\n"
    "what they do, and inline caches. The process is not stopped, so what is printed is true of\n"
    "slightly different moments; if modules or caches were added or removed meanwhile, and still\n"
    "are after some attempts, a line says so.\n"
    "\n"
    "  --summary print no single modules and sites\n"
    "  --watch[=SECONDS]\n"
    "            print again every SECONDS (1 if not given; 0.05 or more), until the process ends\n"
    "  --json    print an object; with --watch, one after another\n"
    "              process:  {process, runtimes}\n"
    "              runtime:  {address, release, architecture, mode, table_bytes, stub_count,\n"
    "                        stub_bytes, module_count, site_count, cache_count, record_count,\n"
    "                        misses, site_states, cache_states, slabs, modules, has_changed,\n"
    "                        incomplete}\n"
    "              slab:     {address, size, used, mapped}; bytes of code, read_only and data\n"
    "              module:   {number, name, address, state, functions, records, bytes, sites}\n"
    "              site:     {id, address, byte_count, state, live, target, target_symbol,\n"
    "                        uses_veneer, cache}\n"
    "              cache:    {state, case_count, case_limit, hits, misses, code_bytes, is_inline}\n"
    "            Integers above 2^53 - 1 are strings of decimal digits.\n"
    "  --help    print this text\n"
    "\n"
    "The process must be one that this user may trace (ptrace(2)).\n";

struct inspection {
    pid_t process;
    struct process_memory memory;
    uint64_t descriptors[INSPECT_RUNTIMES_MAX];
    size_t count;
    bool has_more; /* runtimes than INSPECT_RUNTIMES_MAX */
    struct output output;
    struct inspected_runtime runtime;
    struct process_symbols symbols;
};

/* ---- The process ---- */

static bool parse_process(const char *word, pid_t *process)
{
    char *end;
    errno = 0;
    unsigned long number = strtoul(word, &end, 10);
    *process = (pid_t)number;
    return (*word >= '0' && *word <= '9' && *end == '\0' && errno == 0 && number > 0 &&
            number <= INT32_MAX) ||
           complain("inspect: '%s' is not the number of a process", word);
}

/* Returns the state in /proc/PID/stat, such as 'Z', which follows the name in parentheses; 0 if
 * there is no process. */
static char process_state(pid_t process)
{
    char path[64];
    char line[512];
    snprintf(path, sizeof path, "/proc/%d/stat", (int)process);
    FILE *file = fopen(path, "re");
    if (file == NULL)
        return 0;
    size_t size = fread(line, 1, sizeof line - 1, file);
    fclose(file);
    line[size] = '\0';
    const char *name_end = strrchr(line, ')');
    if (name_end == NULL || name_end[1] != ' ')
        return '?';
    return name_end[2];
}

/* Says why the process cannot be read. Returns false. */
static bool explain(pid_t process, int reason, bool was_read)
{
    char state = process_state(process);
    int number = (int)process;
    if (state == 'Z' || state == 'X')
        return was_read ? complain("inspect: process %d ended while it was inspected", number)
                        : complain("inspect: process %d has ended, and waits for its parent "
                                   "(zombie)",
                                   number);
    if (state == 0 || reason == ESRCH || reason == ENOENT)
        return was_read ? complain("inspect: process %d ended while it was inspected", number)
                        : complain("inspect: there is no process %d", number);
    if (reason == EPERM || reason == EACCES)
        return complain("inspect: no permission to read process %d: it must be one that you may "
                        "trace (ptrace(2), kernel.yama.ptrace_scope)",
                        number);
    if (reason == EFAULT)
        return complain("inspect: process %d destroyed its runtime, or executed another program, "
                        "while it was inspected",
                        number);
    return complain("inspect: process %d cannot be read: %s", number, strerror(reason));
}

/* Notes the mapping of a line of /proc/PID/maps if it is a descriptor. Names follow five columns,
 * and a deleted file, as a memory file always is, has a mark. */
static void note_mapping(struct inspection *inspection, const char *line)
{
    static const char wanted[] = INSPECT_MAPPING;
    const size_t length = sizeof wanted - 1;
    uint64_t start = strtoull(line, NULL, 16);
    const char *name = line;
    for (int column = 0; column < 5; column++) {
        name += strcspn(name, " \n");
        name += strspn(name, " ");
    }
    if (strncmp(name, wanted, length) != 0 || (name[length] != '\n' && name[length] != ' '))
        return;
    if (inspection->count == INSPECT_RUNTIMES_MAX)
        inspection->has_more = true;
    else
        inspection->descriptors[inspection->count++] = start;
}

/* Finds the descriptors. False after an error message. `was_read` says whether the process was
 * there before. */
static bool find_descriptors(struct inspection *inspection, bool was_read)
{
    char path[64];
    char *line = NULL;
    size_t capacity = 0;
    snprintf(path, sizeof path, "/proc/%d/maps", (int)inspection->process);
    FILE *file = fopen(path, "re");
    if (file == NULL)
        return explain(inspection->process, errno, was_read);
    inspection->count = 0;
    inspection->has_more = false;
    errno = 0;
    while (getline(&line, &capacity, file) > 0)
        note_mapping(inspection, line);
    int reason = ferror(file) ? errno : 0;
    free(line);
    fclose(file);
    char state = process_state(inspection->process);
    if (reason != 0 || state == 0 || state == 'Z' || state == 'X')
        return explain(inspection->process, reason, was_read);
    return inspection->count > 0 ||
           complain("inspect: process %d has no Cairn runtime (no mapping " INSPECT_MAPPING ")",
                    (int)inspection->process);
}

/* ---- Printing ---- */

/* Reads and prints one runtime. False after an error message. */
static bool inspect_one(struct inspection *inspection, const struct inspect_style *style,
                        size_t index, bool was_read)
{
    struct inspected_runtime *runtime = &inspection->runtime;
    uint64_t address = inspection->descriptors[index];
    switch (inspect_runtime(&inspection->memory, address, runtime)) {
    case INSPECT_DONE:
        inspect_print(style, runtime, index + 1);
        return true;
    case INSPECT_ENDED:
        return explain(inspection->process, inspection->memory.system_error,
                       was_read || inspection->memory.system_error != EPERM);
    case INSPECT_REFUSED:
        return complain("inspect: process %d: the descriptor at 0x%llx cannot be used: %s",
                        (int)inspection->process, (unsigned long long)address, runtime->fault);
    case INSPECT_NO_MEMORY:
        break;
    }
    return complain("inspect: no memory for what process %d has", (int)inspection->process);
}

/* Prints everything once. False after an error message. Nothing of a process of which a runtime
 * cannot be read is printed, unless the output was too large to be held back. */
static bool inspect_all(struct inspection *inspection, const struct inspect_style *style,
                        bool was_read)
{
    struct output *output = &inspection->output;
    bool is_done = find_descriptors(inspection, was_read);
    if (!is_done)
        return false;
    if (style->json != NULL) {
        style->json->needs_comma = false;
        json_begin_object(style->json, NULL);
        json_fields(style->json, "process %i", (int)inspection->process);
        json_begin_array(style->json, "runtimes");
    } else {
        output_format(output, "process %i\n", (int)inspection->process);
    }
    process_symbols_read(&inspection->symbols, inspection->process);
    for (size_t i = 0; i < inspection->count && is_done; i++)
        is_done = inspect_one(inspection, style, i, was_read);
    process_symbols_release(&inspection->symbols);
    if (style->json != NULL) {
        json_end_array(style->json);
        json_end_object(style->json);
        output_text(output, "\n");
    }
    if (is_done && inspection->has_more)
        complain("inspect: process %d has more than %d runtimes; the others are left out",
                 (int)inspection->process, INSPECT_RUNTIMES_MAX);
    return is_done;
}

/* ---- The command ---- */

/* Parses a number of seconds, such as "0.5". */
static bool parse_seconds(const char *word, struct timespec *pause)
{
    char *end;
    double seconds = strtod(word, &end);
    if (*word < '0' || *word > '9' || *end != '\0' || !(seconds >= 0.05 && seconds <= 86400))
        return complain("inspect: --watch needs a number of seconds from 0.05 to 86400, not '%s'",
                        word);
    pause->tv_sec = (time_t)seconds;
    pause->tv_nsec = (long)((seconds - (double)pause->tv_sec) * 1e9);
    return true;
}

/* Clears a terminal before the next output, so that the newest is on top. */
static void clear_screen(const struct inspect_style *style)
{
    if (style->json == NULL && isatty(STDOUT_FILENO))
        output_text(style->output, "\033[H\033[2J");
}

static enum exit_status run(struct inspection *inspection, const struct inspect_style *style,
                            const struct timespec *pause)
{
    bool was_read = false;
    for (;;) {
        if (pause != NULL)
            clear_screen(style);
        if (!inspect_all(inspection, style, was_read)) {
            return EXIT_BAD_INPUT;
        }
        enum exit_status status = finish_output(&inspection->output);
        if (status != EXIT_DONE || pause == NULL)
            return status;
        was_read = true;
        nanosleep(pause, NULL);
    }
}

enum exit_status command_inspect(int argc, char **argv)
{
    static struct inspection inspection;
    bool is_json = false;
    bool watches = false;
    bool is_summary = false;
    const char *seconds = NULL;
    const struct option options[] = {
        {.name = "--json", .flag = &is_json},
        {.name = "--summary", .flag = &is_summary},
        {.name = "--watch", .flag = &watches},
        {.name = "--watch", .value = &seconds, .needs = "a number of seconds"},
    };
    struct command_line line = {.command = "inspect",
                                .help = help,
                                .options = options,
                                .option_count = sizeof options / sizeof *options,
                                .operand_limit = 1,
                                .operand_name = "process",
                                .is_call = true};
    struct timespec pause = {.tv_sec = 1};
    enum exit_status status;
    if (!parse_command_line(argc, argv, &line, &status))
        return status;
    if (!parse_process(line.operands[0], &inspection.process) ||
        (seconds != NULL && !parse_seconds(seconds, &pause)))
        return EXIT_BAD_USAGE;
    if (!process_memory_open(&inspection.memory, inspection.process))
        return EXIT_BAD_INPUT;
    struct json json = {.output = &inspection.output};
    struct inspect_style style = {.output = &inspection.output,
                                  .json = is_json ? &json : NULL,
                                  .is_summary = is_summary,
                                  .symbols = &inspection.symbols};
    output_open(&inspection.output, STDOUT_FILENO);
    status = run(&inspection, &style, watches || seconds != NULL ? &pause : NULL);
    inspect_free(&inspection.runtime);
    process_memory_close(&inspection.memory);
    return status;
}
