/* SPDX-License-Identifier: MIT */
#include "tools/options.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Returns the text after "--name=" in `word`; NULL if the word does not begin so. */
static const char *value_in(const struct option *option, const char *word)
{
    size_t length = strlen(option->name);
    if (option->flag != NULL || strncmp(word, option->name, length) != 0)
        return NULL;
    return word[length] == '=' ? word + length + 1 : NULL;
}

static bool is_option(const struct option *option, const char *word)
{
    if (strcmp(word, option->name) == 0 || value_in(option, word) != NULL)
        return true;
    return option->letter != NULL && strcmp(word, option->letter) == 0;
}

static const struct option *find_option(const struct command_line *line, const char *word)
{
    for (size_t i = 0; i < line->option_count; i++)
        if (is_option(&line->options[i], word))
            return &line->options[i];
    return NULL;
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

static bool keep_value(const struct command_line *line, const struct option *option,
                       const char *value)
{
    if (option->size != NULL) {
        if (parse_size(value, option->size))
            return true;
        complain("%s: %s needs %s, not '%s'", line->command, option->name, option->needs, value);
        return false;
    }
    if (option->value != NULL) {
        *option->value = value;
        return true;
    }
    if (option->values->count == OPTION_VALUES_MAX) {
        complain("%s: %s is given more than %d times", line->command, option->name,
                 OPTION_VALUES_MAX);
        return false;
    }
    option->values->values[option->values->count++] = value;
    return true;
}

/* Parses an option. `next` is the following word, or NULL. Returns how many words it has taken; 0
 * after an error message. */
static int take_option(const struct command_line *line, const char *word, const char *next)
{
    const struct option *option = find_option(line, word);
    if (option == NULL) {
        complain("%s: unknown option '%s'; see 'cairn %s --help'", line->command, word,
                 line->command);
        return 0;
    }
    if (option->flag != NULL) {
        *option->flag = true;
        return 1;
    }
    const char *value = value_in(option, word);
    if (value != NULL)
        return keep_value(line, option, value) ? 1 : 0;
    if (next != NULL)
        return keep_value(line, option, next) ? 2 : 0;
    complain("%s: %s needs %s; see 'cairn %s --help'", line->command, word, option->needs,
             line->command);
    return 0;
}

static bool take_operand(struct command_line *line, char *word)
{
    if (line->operand_limit > 0 && line->operand_count == line->operand_limit) {
        complain(line->operand_limit == 1 ? "%s: one file at a time: '%s' is a second one"
                                          : "%s: '%s' is one word too many",
                 line->command, word);
        return false;
    }
    line->operands[line->operand_count++] = word;
    return true;
}

static bool is_help(const char *word)
{
    return strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0;
}

bool parse_command_line(int argc, char **argv, struct command_line *line)
{
    bool options_end = false;
    line->operands = argv + 1;
    for (int i = 1; i < argc;) {
        char *word = argv[i];
        bool looks_like_option = !options_end && word[0] == '-' && word[1] != '\0';
        int taken = 1;
        if (!looks_like_option)
            taken = take_operand(line, word) ? 1 : 0;
        else if (strcmp(word, "--") == 0)
            options_end = true;
        else if (is_help(word))
            line->help = true;
        else
            taken = take_option(line, word, i + 1 < argc ? argv[i + 1] : NULL);
        if (taken == 0)
            return false;
        i += taken;
    }
    return true;
}

enum exit_status print_file_with(int argc, char **argv, const char *command, const char *help,
                                 enum exit_status (*print)(const struct file_options *options))
{
    struct file_options options = {0};
    const struct option known[] = {
        {.name = "--debug-file", .value = &options.debug_path, .needs = "a file"},
        {.name = "--json", .flag = &options.json},
        {.name = "--memory", .size = &options.memory_limit, .needs = MEMORY_NEEDS},
    };
    struct command_line line = {
        .command = command, .options = known, .option_count = 3, .operand_limit = 1};
    if (!parse_command_line(argc, argv, &line))
        return EXIT_BAD_USAGE;
    if (line.help)
        return print_text(help);
    options.path = line.operands[0];
    if (line.operand_count > 0)
        return print(&options);
    complain("%s: no file is given; see 'cairn %s --help'", command, command);
    return EXIT_BAD_USAGE;
}
