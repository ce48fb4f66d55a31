/*
 * Reading samples. Inputs are read one after another, a line at a time: memory does not depend on
 * the number of samples.
 *
 * SPDX-License-Identifier: MIT
 */
#include "tools/samples/branches.h"
#include "tools/samples/stacks.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* The inputs, and how much of them was read. */
struct reading {
    struct profile *profile;
    struct line_reader *reader;
    struct progress progress;
    uint64_t bytes_before; /* bytes of the inputs that precede the one that is read */
    const char *name;      /* of the input that is read */
    bool was_frame;        /* whether the line before was a frame of a call chain */
};

const char *profile_input_name(const char *path)
{
    return strcmp(path, "-") == 0 ? "standard input" : path;
}

/* ---- Lines ---- */

/* Counts a sample. False without memory, after an error message. */
static bool take_sample(struct profile *profile, struct last_block *last,
                        const struct address_line *line)
{
    struct sampled_place place = profile_find_place(profile, last, line, 0);
    profile_count_sample(profile, place);
    return profile->stacks == NULL || stacks_begin(profile, place, line);
}

static bool take_caller(struct profile *profile, const struct address_line *line)
{
    profile->caller_count++;
    return profile->stacks == NULL || stacks_add_caller(profile, line);
}

/* Counts the branches of a line. Without an address, the last branch supplies the sample. False
 * without memory, after an error message. */
static bool take_branches(struct profile *profile, struct last_block *last,
                          const struct address_line *line)
{
    struct branch_text text = line->branches;
    struct branch branch;
    if (line->kind == ADDRESS_LINE_BRANCHES && next_branch(&text, &branch) &&
        !take_sample(profile, last, &(struct address_line){.address = branch.to}))
        return false;
    return profile->branches == NULL || branch_counts_add(profile, line->branches);
}

static void take_junk(struct reading *reading)
{
    struct profile *profile = reading->profile;
    if (profile->junk_count++ > 0)
        return;
    profile->first_junk_line = reading->reader->line_number;
    profile->first_junk_name = reading->name;
}

/* Takes a line whose address is that of a sample or of a caller. */
static bool take_address_line(struct reading *reading, struct last_block *last,
                              const struct address_line *line)
{
    bool is_caller = line->is_frame && reading->was_frame;
    struct frame_text text = parse_frame_text(line);
    if (is_inlined_frame(&text))
        return true;
    reading->was_frame = line->is_frame;
    return is_caller ? take_caller(reading->profile, line)
                     : take_sample(reading->profile, last, line);
}

/* Takes a line. False without memory, after an error message. */
static bool take_line(struct reading *reading, struct last_block *last,
                      const struct address_line *line)
{
    struct profile *profile = reading->profile;
    if (line->kind == ADDRESS_LINE_ADDRESS)
        return take_address_line(reading, last, line);
    reading->was_frame = false;
    if (line->kind == ADDRESS_LINE_JUNK)
        take_junk(reading);
    else if (line->kind == ADDRESS_LINE_BUILD_ID)
        profile_note_build_id(profile, &line->mapping);
    return line->kind != ADDRESS_LINE_MAPPING || profile_add_mapping(profile, &line->mapping);
}

static bool read_lines(struct reading *reading)
{
    struct profile *profile = reading->profile;
    struct line_reader *reader = reading->reader;
    struct last_block last = {.size = 0};
    struct address_line line;
    const char *text;
    size_t length;
    reading->was_frame = false;
    while (line_reader_next(reader, &text, &length)) {
        parse_address_line(text, length, &line);
        if (!take_line(reading, &last, &line))
            return false;
        if (line.branches.at != line.branches.end && !take_branches(profile, &last, &line))
            return false;
        progress_move(&reading->progress, reading->progress.total > 0
                                              ? reading->bytes_before + reader->bytes_read
                                              : profile->sample_count);
    }
    return profile->stacks == NULL || stacks_end(profile->stacks);
}

/* ---- Inputs ---- */

static bool check_build(const struct reading *reading)
{
    const struct profile *profile = reading->profile;
    if (profile->has_own_id || profile->other_id.size == 0)
        return true;
    struct build_id_text own = build_id_format(&profile->id);
    struct build_id_text other = build_id_format(&profile->other_id);
    return complain("%s: the samples are of another build: the build ID of %s is %s, and that of "
                    "the sampled program is %s",
                    reading->name, profile->input->name, own.digits, other.digits);
}

static bool read_input(struct reading *reading, const char *path)
{
    bool is_standard = strcmp(path, "-") == 0;
    int descriptor = is_standard ? STDIN_FILENO : open(path, O_RDONLY | O_CLOEXEC);
    reading->name = profile_input_name(path);
    if (descriptor < 0)
        return complain("%s: cannot be opened: %s", path, strerror(errno));
    line_reader_open(reading->reader, descriptor);
    profile_begin_input(reading->profile);
    bool is_good = read_lines(reading);
    int system_error = reading->reader->system_error;
    reading->bytes_before += reading->reader->bytes_read;
    if (!is_standard)
        close(descriptor);
    progress_end(&reading->progress);
    if (is_good && system_error != 0)
        is_good = complain("%s: cannot be read: %s", reading->name, strerror(system_error));
    return is_good && check_build(reading);
}

/* Returns the number of bytes of all inputs; 0 if it is unknown. */
static uint64_t total_bytes(const char *const *paths, size_t count)
{
    uint64_t total = 0;
    for (size_t i = 0; i < count; i++) {
        struct stat status;
        bool is_standard = strcmp(paths[i], "-") == 0;
        int failed = is_standard ? fstat(STDIN_FILENO, &status) : stat(paths[i], &status);
        if (failed != 0 || !S_ISREG(status.st_mode))
            return 0;
        total += (uint64_t)status.st_size;
    }
    return total;
}

static bool complain_of_no_samples(const struct profile *profile, const char *const *paths,
                                   size_t count)
{
    const char *name = count == 1 ? profile_input_name(paths[0]) : profile->first_junk_name;
    if (profile->junk_count == 0 && count == 1)
        return complain("%s: there are no samples", name);
    if (profile->junk_count == 0)
        return complain("%s and %zu other inputs: there are no samples",
                        profile_input_name(paths[0]), count - 1);
    return complain(
        "%s: there are no addresses; line %llu is the first that is not empty: a line must "
        "have a hexadecimal address, as 'perf script -F ip' prints it",
        name, (unsigned long long)profile->first_junk_line);
}

/* Inputs without samples are reported if others have some. */
static bool read_inputs(struct reading *reading, const char *const *paths, size_t count)
{
    struct profile *profile = reading->profile;
    const char *first_empty = NULL;
    size_t empty = 0;
    for (size_t i = 0; i < count; i++) {
        uint64_t before = profile->sample_count;
        if (!read_input(reading, paths[i]))
            return false;
        if (profile->sample_count > before)
            continue;
        if (empty++ == 0)
            first_empty = reading->name;
    }
    if (empty > 0 && profile->sample_count > 0)
        complain("%s: there are no samples (%zu of %zu inputs have none)", first_empty, empty,
                 count);
    return true;
}

bool profile_read(struct profile *profile, const char *const *paths, size_t count)
{
    static struct line_reader reader;
    struct reading reading = {.profile = profile, .reader = &reader};
    uint64_t total = total_bytes(paths, count);
    progress_begin(&reading.progress, NULL, total > 0 ? "bytes" : "samples", total);
    if (!read_inputs(&reading, paths, count))
        return false;
    return profile->sample_count > 0 || complain_of_no_samples(profile, paths, count);
}
