/*
 * Opens the parts of the program that are shared objects, in the program's folder.
 *
 * SPDX-License-Identifier: MIT
 */
#include "shared.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

void shared_path(const char *file_name, char path[SHARED_PATH_SIZE])
{
    size_t size = strlen(file_name) + 1;
    ssize_t length = readlink("/proc/self/exe", path, SHARED_PATH_SIZE - size);
    while (length > 0 && path[length - 1] != '/')
        length--;
    memcpy(path + (length < 0 ? 0 : length), file_name, size);
}

const void *shared_open(const char *file_name, const char *symbol)
{
    char path[SHARED_PATH_SIZE];
    shared_path(file_name, path);
    void *object = dlopen(path, RTLD_NOW | RTLD_GLOBAL);
    const void *found = object == NULL ? NULL : dlsym(object, symbol);
    if (found == NULL)
        fprintf(stderr, "lox: nothing is compiled: %s\n", dlerror());
    return found;
}
