/* SPDX-License-Identifier: MIT */
#include "tools/command.h"

#include "base/utf8.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- Messages and output ---- */

bool complain(const char *format, ...)
{
    static const char prefix[] = "cairn: ";
    char line[2048];
    size_t length = sizeof prefix - 1;
    memcpy(line, prefix, length);
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(line + length, sizeof line - length - 1, format, arguments);
    va_end(arguments);
    utf8_clean(line);
    length = strlen(line);
    line[length++] = '\n';
    fwrite(line, 1, length, stderr);
    return false;
}

enum exit_status finish_output(struct output *output)
{
    if (output_flush(output))
        return EXIT_DONE;
    complain("standard output cannot be written: %s", strerror(output->system_error));
    return EXIT_BAD_INPUT;
}

enum exit_status print_text(const char *text)
{
    static struct output output;
    output_open(&output, STDOUT_FILENO);
    output_text(&output, text);
    return finish_output(&output);
}

void printer_open(struct printer *printer, bool is_json)
{
    output_open(&printer->output, STDOUT_FILENO);
    printer->json = (struct json){.output = &printer->output};
    printer->is_json = is_json;
    if (is_json)
        json_begin_array(&printer->json, NULL);
}

enum exit_status printer_finish(struct printer *printer, bool is_good)
{
    if (printer->is_json) {
        json_end_array(&printer->json);
        output_character(&printer->output, '\n');
    }
    enum exit_status status = finish_output(&printer->output);
    return is_good ? status : EXIT_BAD_INPUT;
}

/* ---- Command lines ---- */

/* Returns the text after "--name=" in `word`; NULL if the word does not begin so. */
static const char *value_in(const struct option *option, const char *word)
{
    size_t length = strlen(option->name);
    if (option->flag != NULL || strncmp(word, option->name, length) != 0)
        return NULL;
    return word[length] == '=' ? word + length + 1 : NULL;
}

static const struct option *find_option(const struct option *options, size_t count,
                                        const char *word)
{
    for (size_t i = 0; i < count; i++)
        if (strcmp(word, options[i].name) == 0 || value_in(&options[i], word) != NULL ||
            (options[i].letter != NULL && strcmp(word, options[i].letter) == 0))
            return &options[i];
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

static bool keep_value(const char *command, const struct option *option, const char *value)
{
    if (option->size != NULL)
        return parse_size(value, option->size) ||
               complain("%s: %s needs %s, not '%s'", command, option->name, option->needs, value);
    if (option->value != NULL) {
        *option->value = value;
        return true;
    }
    if (option->values->count == OPTION_VALUES_MAX)
        return complain("%s: %s is given more than %d times", command, option->name,
                        OPTION_VALUES_MAX);
    option->values->values[option->values->count++] = value;
    return true;
}

/* Parses an option. `next` is the following word, or NULL. Returns how many words it has taken; 0
 * after an error message. */
static int take_option(const struct command_line *line, const char *word, const char *next)
{
    const struct option common[] = {
        {.name = "--debug-file", .value = &line->file->debug_path, .needs = "a file"},
        {.name = "--json", .flag = &line->file->json},
        {.name = "--memory", .size = &line->file->memory_limit, .needs = "a size, such as 500M"},
    };
    const struct option *option = find_option(line->options, line->option_count, word);
    if (option == NULL)
        option = find_option(common, sizeof common / sizeof *common, word);
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
        return keep_value(line->command, option, value) ? 1 : 0;
    if (next != NULL)
        return keep_value(line->command, option, next) ? 2 : 0;
    complain("%s: %s needs %s; see 'cairn %s --help'", line->command, word, option->needs,
             line->command);
    return 0;
}

/* Parses all words. False after an error message. */
static bool parse_words(int argc, char **argv, struct command_line *line, bool *help)
{
    bool options_end = false;
    line->operands = argv + 1;
    for (int i = 1, taken = 1; i < argc; i += taken) {
        char *word = argv[i];
        taken = 1;
        if (options_end || word[0] != '-' || word[1] == '\0') {
            if (line->operand_limit > 0 && line->operand_count == line->operand_limit)
                return complain(line->operand_limit == 1
                                    ? "%s: one file at a time: '%s' is a second one"
                                    : "%s: '%s' is one word too many",
                                line->command, word);
            line->operands[line->operand_count++] = word;
        } else if (strcmp(word, "--") == 0) {
            options_end = true;
        } else if (strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0) {
            *help = true;
        } else {
            taken = take_option(line, word, i + 1 < argc ? argv[i + 1] : NULL);
            if (taken == 0)
                return false;
        }
    }
    return true;
}

bool parse_command_line(int argc, char **argv, struct command_line *line, enum exit_status *status)
{
    bool help = false;
    *status = EXIT_BAD_USAGE;
    if (!parse_words(argc, argv, line, &help))
        return false;
    if (help) {
        *status = print_text(line->help);
        return false;
    }
    line->file->path = line->operands[0];
    return line->operand_count > 0 ||
           complain("%s: no file is given; see 'cairn %s --help'", line->command, line->command);
}
