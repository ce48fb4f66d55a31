/* SPDX-License-Identifier: MIT */
#include "tools/cli/command.h"

#include "tools/cli/suggest.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum exit_status finish_output(struct output *output)
{
    if (output_flush(output))
        return EXIT_DONE;
    complain("cannot write standard output: %s", strerror(output->system_error));
    return EXIT_BAD_INPUT;
}

enum exit_status print_text(const char *text)
{
    static struct output output;
    output_open(&output, STDOUT_FILENO);
    output_text(&output, text);
    return finish_output(&output);
}

/* ---- Command lines ---- */

/* Whether `word` is the option. Sets `*value` to a value in the same word, or to NULL. */
static bool is_option(const struct option *option, const char *word, const char **value)
{
    size_t length = strlen(option->name);
    bool has_letter_only = option->name[1] != '-';
    *value = NULL;
    if (strcmp(word, option->name) == 0 ||
        (option->letter != NULL && strcmp(word, option->letter) == 0))
        return true;
    if (option->flag != NULL || strncmp(word, option->name, length) != 0 ||
        (!has_letter_only && word[length] != '='))
        return false;
    *value = word + length + (has_letter_only ? 0 : 1);
    return true;
}

/* Parses a size, such as "4096" or "500M". Zero is invalid. */
static bool parse_size(const char *word, uint64_t *size)
{
    static const char units[] = "KMG";
    char *end;
    errno = 0;
    unsigned long long number = strtoull(word, &end, 10);
    const char *unit = *end == '\0' ? NULL : strchr(units, *end);
    unsigned shift = unit == NULL ? 0 : 10 * (unsigned)(unit - units + 1);
    if (*end != '\0' && (unit == NULL || end[1] != '\0'))
        return false;
    if (*word < '0' || *word > '9' || errno != 0 || number == 0 || number > UINT64_MAX >> shift)
        return false;
    *size = (uint64_t)number << shift;
    return true;
}

static bool keep_value(const char *command, const struct option *option, const char *value)
{
    if (option->size != NULL)
        return parse_size(value, option->size) ||
               complain("%s: %s needs %s, not '%s'", command, option->name, option->needs, value);
    if (option->value != NULL)
        *option->value = value;
    else if (option->values->count < OPTION_VALUES_MAX)
        option->values->values[option->values->count++] = value;
    else
        return complain("%s: %s is given more than %d times", command, option->name,
                        OPTION_VALUES_MAX);
    return true;
}

/* Sets option number `index` of a command: one of its own, or one of those for files. False if
 * there are fewer. */
static bool option_at(struct command_line *line, size_t index, struct option *option)
{
    const struct option common[] = {
        {.name = "--json", .flag = &line->file.json},
        {.name = "--memory", .size = &line->file.memory_limit, .needs = "a size, such as 500M"},
        {.name = "--debug-file", .value = &line->file.debug_path, .needs = "a file"},
    };
    size_t common_count = line->is_call ? 0 : sizeof common / sizeof *common - line->is_log;
    if (index >= line->option_count + common_count)
        return false;
    *option =
        index < line->option_count ? line->options[index] : common[index - line->option_count];
    return true;
}

static void complain_of_option(struct command_line *line, const char *word)
{
    char name[SUGGEST_LENGTH_MAX + 2];
    snprintf(name, sizeof name, "%.*s", (int)strcspn(word, "="), word);
    struct suggestion suggestion = {.word = name};
    struct option option;
    for (size_t i = 0; option_at(line, i, &option); i++)
        suggestion_consider(&suggestion, option.name);
    suggestion_consider(&suggestion, "--help");
    if (suggestion.nearest != NULL)
        complain("%s: unknown option '%s'; did you mean '%s'?", line->command, word,
                 suggestion.nearest);
    else
        complain("%s: unknown option '%s'; see 'cairn %s --help'", line->command, word,
                 line->command);
}

/* Whether a value may follow the name and "=". */
static bool has_equals(const struct option *option)
{
    return option->flag == NULL && option->name[1] == '-';
}

/* Prints the names of the options, for the completion of words by shells. */
static enum exit_status list_options(struct command_line *line)
{
    static struct output output;
    struct option option;
    output_open(&output, STDOUT_FILENO);
    for (size_t i = 0; option_at(line, i, &option); i++)
        output_format(&output, "%s%s\n", option.name, has_equals(&option) ? "=" : "");
    output_text(&output, "--help\n");
    return finish_output(&output);
}

/* Parses an option. `next` is the following word, or NULL. Returns how many words it has taken; 0
 * after an error message. */
static int take_option(struct command_line *line, const char *word, const char *next)
{
    struct option known;
    const struct option *option = NULL;
    const char *value = NULL;
    for (size_t i = 0; option == NULL && option_at(line, i, &known); i++)
        option = is_option(&known, word, &value) ? &known : NULL;
    if (option == NULL) {
        complain_of_option(line, word);
        return 0;
    }
    if (option->flag != NULL) {
        *option->flag = true;
        return 1;
    }
    int taken = value != NULL ? 1 : 2;
    value = value != NULL ? value : next;
    if (value != NULL)
        return keep_value(line->command, option, value) ? taken : 0;
    complain("%s: %s needs %s; see 'cairn %s --help'", line->command, word, option->needs,
             line->command);
    return 0;
}

/* Whether the word is an operand and not an option, unless "--" precedes it. */
static bool is_operand(const struct command_line *line, const char *word)
{
    const char *digits = word + 1;
    if (word[0] != '-' || word[1] == '\0')
        return true;
    return line->is_call && ((*digits >= '0' && *digits <= '9') || *digits == '.' ||
                             strncmp(digits, "inf", 3) == 0 || strncmp(digits, "nan", 3) == 0);
}

bool parse_command_line(int argc, char **argv, struct command_line *line, enum exit_status *status)
{
    bool help = false;
    bool options_end = false;
    *status = EXIT_BAD_USAGE;
    if (argc == 2 && strcmp(argv[1], LIST_OPTIONS) == 0) {
        *status = list_options(line);
        return false;
    }
    line->operands = argv + 1;
    for (int i = 1, taken = 1; i < argc; i += taken) {
        char *word = argv[i];
        taken = 1;
        if (options_end || is_operand(line, word)) {
            if (line->operand_limit > 0 && line->operand_count == line->operand_limit)
                return complain("%s: unexpected operand '%s'; see 'cairn %s --help'", line->command,
                                word, line->command);
            line->operands[line->operand_count++] = word;
        } else if (strcmp(word, "--") == 0) {
            options_end = true;
        } else if (strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0) {
            help = true;
        } else {
            taken = take_option(line, word, i + 1 < argc ? argv[i + 1] : NULL);
            if (taken == 0)
                return false;
        }
    }
    if (help) {
        *status = print_text(line->help);
        return false;
    }
    line->file.path = line->operands[0];
    return line->operand_count > 0 ||
           complain("%s: no %s is given; see 'cairn %s --help'", line->command,
                    line->operand_name == NULL ? "file" : line->operand_name, line->command);
}

bool parse_limit(const char *command, const char *value, size_t *limit)
{
    char *end;
    if (value == NULL)
        return true;
    errno = 0;
    unsigned long number = strtoul(value, &end, 10);
    *limit = number == 0 ? SIZE_MAX : number;
    return (value[0] >= '0' && value[0] <= '9' && *end == '\0' && errno == 0) ||
           complain("%s: --limit needs " LIMIT_NEEDS ", not '%s'", command, value);
}
