/* SPDX-License-Identifier: MIT */
#include "tools/files.h"

#include "tools/command.h"

#include <string.h>

void complain_of_section(const struct input *input, const struct cairn_object_section *section,
                         const struct cairn_error *error)
{
    complain("%s: %s, byte %llu: %s", input->name, section->name, (unsigned long long)error->offset,
             error->message);
}

bool visit_file(const char *path, const char *debug_path, visit_input *visit, void *user)
{
    (void)debug_path;
    const char *opened = strcmp(path, "-") == 0 ? "/dev/stdin" : path;
    struct input input = {.name = path};
    struct cairn_error error;
    if (cairn_object_open(opened, NULL, &input.object, &error) != CAIRN_OK) {
        complain("%s: %s", path, error.message);
        return false;
    }
    bool is_good = visit(&input, user);
    cairn_object_close(input.object);
    return is_good;
}
