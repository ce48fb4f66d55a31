/*
 * Runs a fuzz target on files, and on all files of folders. Without arguments, a program named
 * fuzz_TARGET runs on its part of the corpus, fuzz/corpus/TARGET below $srcdir.
 *
 * SPDX-License-Identifier: MIT
 */
#include "fuzz/fuzz.h"

#include <dirent.h>
#include <errno.h>
#include <sys/stat.h>

static size_t file_count;

static int run_file(const char *path)
{
    FILE *file = fopen(path, "rb");
    if (file == NULL) {
        fprintf(stderr, "%s: %s\n", path, strerror(errno));
        return 1;
    }
    uint8_t *bytes = NULL;
    size_t size = 0;
    size_t more;
    do {
        enum { PIECE = 1 << 16 };
        uint8_t *grown = realloc(bytes, size + PIECE);
        if (grown == NULL)
            abort();
        bytes = grown;
        more = fread(bytes + size, 1, PIECE, file);
        size += more;
    } while (more > 0);
    fclose(file);
    /* The allocation has exactly the size of the input, so that sanitizers detect reads past its
     * end. */
    uint8_t *exact = malloc(size > 0 ? size : 1);
    if (exact == NULL)
        abort();
    memcpy(exact, bytes, size);
    free(bytes);
    (void)LLVMFuzzerTestOneInput(exact, size);
    free(exact);
    file_count++;
    return 0;
}

static int run_path(const char *path)
{
    struct stat status;
    if (stat(path, &status) != 0 || !S_ISDIR(status.st_mode))
        return run_file(path);
    DIR *folder = opendir(path);
    if (folder == NULL) {
        fprintf(stderr, "%s: %s\n", path, strerror(errno));
        return 1;
    }
    int failed = 0;
    const struct dirent *entry;
    while ((entry = readdir(folder)) != NULL) {
        char name[4096];
        if (entry->d_name[0] == '.')
            continue;
        snprintf(name, sizeof name, "%s/%s", path, entry->d_name);
        failed |= run_path(name);
    }
    closedir(folder);
    return failed;
}

static int run_corpus(const char *program)
{
    const char *slash = strrchr(program, '/');
    const char *target = strstr(slash == NULL ? program : slash, "fuzz_");
    const char *source = getenv("srcdir");
    char path[4096];
    if (target == NULL) {
        fprintf(stderr, "usage: fuzz_TARGET [FILE or FOLDER]...\n");
        return 2;
    }
    snprintf(path, sizeof path, "%s/fuzz/corpus/%s", source == NULL ? "." : source,
             target + strlen("fuzz_"));
    return run_path(path);
}

int main(int argc, char **argv)
{
    int failed = argc > 1 ? 0 : run_corpus(argv[0]);
    for (int i = 1; i < argc; i++)
        failed |= run_path(argv[i]);
    printf("%zu files\n", file_count);
    return failed != 0 || file_count == 0;
}
