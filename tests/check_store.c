/*
 * Tests of stores: objects of several processes and threads, limits, permissions, damage.
 *
 * SPDX-License-Identifier: MIT
 */
#include "allocator_support.h"

#include <cairn/store.h>
#include <check.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum { PATH_BYTES = 512, LIMIT = 64 << 10, PROCESSES = 10, THREADS = 4, SHARED_KEYS = 100 };

static char folder[PATH_BYTES];
static char last_note[PATH_BYTES];
static unsigned note_count;

/* For what children and threads do, too: their assertions of Check's would write to one pipe at the
 * same time. */
static void expect(bool holds, const char *otherwise)
{
    if (holds)
        return;
    fprintf(stderr, "%s\n", otherwise);
    abort();
}

static void keep_note(const char *sentence, void *user)
{
    expect(user == folder, "`note` got another `user`");
    snprintf(last_note, sizeof last_note, "%s", sentence);
    note_count++;
}

static struct cairn_store_options options = {.fingerprint = "a program",
                                             .fingerprint_size = 9,
                                             .byte_limit = LIMIT,
                                             .note = keep_note,
                                             .user = folder};

static void make_folder(void)
{
    const char *temporary = getenv("TMPDIR");
    snprintf(folder, sizeof folder, "%s/check_store.XXXXXX",
             temporary == NULL ? "/tmp" : temporary);
    ck_assert_ptr_nonnull(mkdtemp(folder));
    note_count = 0;
}

static void path_of(const char *name, char *path)
{
    ck_assert_int_lt(snprintf(path, PATH_BYTES, "%.250s/%.250s", folder, name), PATH_BYTES);
}

static void remove_folder(void)
{
    char path[PATH_BYTES];
    const struct dirent *entry;
    DIR *directory = opendir(folder);
    while (directory != NULL && (entry = readdir(directory)) != NULL) {
        path_of(entry->d_name, path);
        if (entry->d_name[0] != '.' && unlink(path) != 0)
            rmdir(path);
    }
    if (directory != NULL)
        closedir(directory);
    ck_assert_int_eq(rmdir(folder), 0);
}

/* Copies the path of the only file. */
static void find_file(char *path)
{
    const struct dirent *entry;
    DIR *directory = opendir(folder);
    unsigned count = 0;
    ck_assert_ptr_nonnull(directory);
    while ((entry = readdir(directory)) != NULL)
        if (entry->d_name[0] != '.') {
            path_of(entry->d_name, path);
            count++;
        }
    closedir(directory);
    ck_assert_uint_eq(count, 1);
}

static cairn_store *open_store(void)
{
    struct cairn_error error = {0};
    cairn_store *store = NULL;
    expect(cairn_store_open(folder, &options, &store, &error) == CAIRN_OK, error.message);
    return store;
}

static void add(cairn_store *store, const char *key, const char *object)
{
    struct cairn_error error = {0};
    enum cairn_status status =
        cairn_store_add(store, key, strlen(key), object, strlen(object), &error);
    expect(status == CAIRN_OK, error.message);
}

static bool has(cairn_store *store, const char *key, const char *object)
{
    size_t size;
    const char *found = cairn_store_find(store, key, strlen(key), &size);
    expect((uintptr_t)found % 64 == 0, "an object is not aligned");
    return found != NULL && size == strlen(object) && memcmp(found, object, size) == 0;
}

static bool lacks(cairn_store *store, const char *key)
{
    size_t size;
    return cairn_store_find(store, key, strlen(key), &size) == NULL;
}

/* ---- Adding, finding, removing ---- */

START_TEST(what_is_added_is_found_at_once_and_after_opening_again)
{
    cairn_store *store = open_store();
    ck_assert(lacks(store, "f"));
    add(store, "f", "code of f");
    add(store, "g", "code of g");
    ck_assert(has(store, "f", "code of f"));
    cairn_store_close(store);
    store = open_store();
    ck_assert(has(store, "f", "code of f"));
    ck_assert(has(store, "g", "code of g"));
    ck_assert(lacks(store, "h"));
    ck_assert(lacks(store, "fg"));
    cairn_store_close(store);
    ck_assert_uint_eq(note_count, 0);
}
END_TEST

START_TEST(the_first_object_of_a_key_is_kept)
{
    cairn_store *one = open_store();
    cairn_store *other = open_store();
    add(one, "f", "first");
    add(one, "f", "second");
    add(other, "f", "third");
    ck_assert(has(one, "f", "first"));
    ck_assert(has(other, "f", "first"));
    cairn_store_close(one);
    cairn_store_close(other);
}
END_TEST

START_TEST(a_removed_object_remains_where_it_was_found_and_can_be_added_anew)
{
    size_t size;
    cairn_store *store = open_store();
    ck_assert_int_eq(cairn_store_remove(store, "f", 1, NULL), CAIRN_OK);
    add(store, "f", "wrong guess");
    const char *found = cairn_store_find(store, "f", 1, &size);
    ck_assert_int_eq(cairn_store_remove(store, "f", 1, NULL), CAIRN_OK);
    ck_assert(lacks(store, "f"));
    ck_assert_mem_eq(found, "wrong guess", size);
    cairn_store_close(store);
    store = open_store();
    ck_assert(lacks(store, "f"));
    add(store, "f", "better");
    cairn_store_close(store);
    store = open_store();
    ck_assert(has(store, "f", "better"));
    cairn_store_close(store);
}
END_TEST

START_TEST(objects_of_other_fingerprints_are_not_found)
{
    cairn_store *store = open_store();
    add(store, "f", "code");
    cairn_store_close(store);
    options.fingerprint = "b program";
    store = open_store();
    ck_assert(lacks(store, "f"));
    add(store, "f", "other");
    cairn_store_close(store);
    options.fingerprint = "a program";
    store = open_store();
    ck_assert(has(store, "f", "code"));
    cairn_store_close(store);
    ck_assert_uint_eq(note_count, 0);
}
END_TEST

static void key_of(unsigned i, char *key) { snprintf(key, 32, "key %u", i); }

START_TEST(keys_and_objects_of_all_sizes_are_kept)
{
    static char bytes[16384];
    cairn_store *store;
    size_t size;
    options.byte_limit = 16 << 20;
    store = open_store();
    for (size_t i = 1; i <= 300; i++) {
        memset(bytes, (int)i, sizeof bytes);
        ck_assert_int_eq(cairn_store_add(store, bytes, i, bytes, i * 54, NULL), CAIRN_OK);
    }
    cairn_store_close(store);
    store = open_store();
    for (size_t i = 1; i <= 300; i++) {
        memset(bytes, (int)i, sizeof bytes);
        const char *found = cairn_store_find(store, bytes, i, &size);
        ck_assert_ptr_nonnull(found);
        ck_assert_uint_eq(size, i * 54);
        ck_assert_mem_eq(found, bytes, size);
    }
    cairn_store_close(store);
}
END_TEST

START_TEST(wrong_arguments_are_refused)
{
    cairn_store *store = open_store();
    static char large[LIMIT];
    ck_assert_int_eq(cairn_store_add(NULL, "f", 1, "x", 1, NULL), CAIRN_ERROR_ARGUMENT);
    ck_assert_int_eq(cairn_store_add(store, NULL, 1, "x", 1, NULL), CAIRN_ERROR_ARGUMENT);
    ck_assert_int_eq(cairn_store_add(store, "", 0, "x", 1, NULL), CAIRN_ERROR_ARGUMENT);
    ck_assert_int_eq(cairn_store_add(store, large, 4097, "x", 1, NULL), CAIRN_ERROR_ARGUMENT);
    ck_assert_int_eq(cairn_store_add(store, "f", 1, NULL, 1, NULL), CAIRN_ERROR_ARGUMENT);
    ck_assert_int_eq(cairn_store_add(store, "f", 1, "", 0, NULL), CAIRN_ERROR_ARGUMENT);
    ck_assert_int_eq(cairn_store_add(store, "f", 1, large, LIMIT / 4 + 1, NULL), CAIRN_ERROR_RANGE);
    ck_assert_int_eq(cairn_store_remove(store, NULL, 1, NULL), CAIRN_ERROR_ARGUMENT);
    cairn_store_close(store);
    cairn_store_close(NULL);
    struct cairn_store_options wrong = options;
    ck_assert_int_eq(cairn_store_open(NULL, &wrong, &store, NULL), CAIRN_ERROR_ARGUMENT);
    ck_assert_int_eq(cairn_store_open(folder, NULL, &store, NULL), CAIRN_ERROR_ARGUMENT);
    ck_assert_int_eq(cairn_store_open(folder, &wrong, NULL, NULL), CAIRN_ERROR_ARGUMENT);
    wrong.byte_limit = 1000;
    ck_assert_int_eq(cairn_store_open(folder, &wrong, &store, NULL), CAIRN_ERROR_ARGUMENT);
    wrong = options;
    wrong.fingerprint_size = 0;
    ck_assert_int_eq(cairn_store_open(folder, &wrong, &store, NULL), CAIRN_ERROR_ARGUMENT);
}
END_TEST

/* ---- Limits ---- */

START_TEST(a_full_store_drops_the_oldest_objects_and_keeps_what_was_found)
{
    char key[32];
    char path[PATH_BYTES];
    struct stat status;
    static char object[2000];
    size_t size;
    cairn_store *store = open_store();
    cairn_store *reader = open_store();
    memset(object, 'x', sizeof object - 1);
    add(store, "key 0", object);
    const char *found = cairn_store_find(store, "key 0", 5, &size);
    for (unsigned i = 1; i < 200; i++) {
        key_of(i, key);
        add(store, key, object);
        find_file(path);
        ck_assert_int_eq(stat(path, &status), 0);
        ck_assert_int_le(status.st_size, LIMIT);
    }
    ck_assert(lacks(store, "key 0"));
    ck_assert(has(store, "key 199", object));
    ck_assert(has(store, "key 190", object));
    ck_assert_mem_eq(found, object, size);
    add(reader, "of the reader", "x");
    ck_assert(has(reader, "key 199", object));
    cairn_store_close(reader);
    cairn_store_close(store);
}
END_TEST

START_TEST(objects_and_keys_of_the_largest_sizes_fit)
{
    static char bytes[LIMIT];
    options.fingerprint = bytes;
    options.fingerprint_size = 4096;
    cairn_store *store = open_store();
    for (size_t i = 0; i < 20; i++) {
        bytes[i] = 1;
        options.fingerprint_size = 4096;
        ck_assert_int_eq(cairn_store_add(store, bytes, 4096, bytes, LIMIT / 4, NULL), CAIRN_OK);
    }
    cairn_store_close(store);
}
END_TEST

START_TEST(files_of_other_fingerprints_are_deleted_when_they_exceed_the_limit)
{
    char fingerprint[32];
    static char object[10000];
    const struct dirent *entry;
    unsigned count = 0;
    memset(object, 'x', sizeof object - 1);
    options.fingerprint = fingerprint;
    for (unsigned i = 0; i < 20; i++) {
        snprintf(fingerprint, sizeof fingerprint, "number %2u", i);
        cairn_store *store = open_store();
        add(store, "f", object);
        cairn_store_close(store);
    }
    DIR *directory = opendir(folder);
    while ((entry = readdir(directory)) != NULL)
        count += entry->d_name[0] != '.';
    closedir(directory);
    ck_assert_uint_ge(count, 4);
    ck_assert_uint_le(count, 8);
}
END_TEST

START_TEST(a_write_that_the_system_refuses_changes_nothing)
{
    struct cairn_error error;
    static char object[10000];
    struct rlimit limit = {.rlim_cur = 8192, .rlim_max = RLIM_INFINITY};
    cairn_store *store = open_store();
    add(store, "f", "code");
    getrlimit(RLIMIT_FSIZE, &limit);
    limit.rlim_cur = 8192;
    ck_assert_int_eq(setrlimit(RLIMIT_FSIZE, &limit), 0);
    ck_assert_int_eq(cairn_store_add(store, "g", 1, object, sizeof object, &error),
                     CAIRN_ERROR_SYSTEM);
    ck_assert_int_eq(error.system_error, EFBIG);
    ck_assert(lacks(store, "g"));
    add(store, "h", "small");
    cairn_store_close(store);
    store = open_store();
    ck_assert(has(store, "f", "code"));
    ck_assert(has(store, "h", "small"));
    ck_assert(lacks(store, "g"));
    cairn_store_close(store);
    ck_assert_uint_eq(note_count, 0);
}
END_TEST

/* What a failed writer has left must not become a record after a later, shorter one. */
START_TEST(a_record_inside_of_an_object_is_not_taken_for_one)
{
    char path[PATH_BYTES];
    static char inner[4096];
    cairn_store *store = open_store();
    add(store, "evil", "not compiled by us");
    cairn_store_close(store);
    find_file(path);
    int file = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t size = read(file, inner, sizeof inner);
    close(file);
    unlink(path);
    ck_assert_int_gt(size, 0);
    static char object[16000];
    for (size_t at = 0; at + 4096 < sizeof object; at += 64)
        memcpy(object + at, inner + 128, 192);
    store = open_store();
    add(store, "f", "code");
    struct rlimit limit;
    getrlimit(RLIMIT_FSIZE, &limit);
    limit.rlim_cur = 8192;
    ck_assert_int_eq(setrlimit(RLIMIT_FSIZE, &limit), 0);
    ck_assert_int_eq(cairn_store_add(store, "g", 1, object, sizeof object, NULL),
                     CAIRN_ERROR_SYSTEM);
    add(store, "h", "small");
    cairn_store_close(store);
    store = open_store();
    ck_assert(has(store, "h", "small"));
    ck_assert(lacks(store, "evil"));
    cairn_store_close(store);
}
END_TEST

START_TEST(a_failing_allocation_changes_nothing)
{
    char key[32];
    struct support_allocator counting = {0};
    cairn_store *store;
    options.allocator = support_counting(&counting);
    options.byte_limit = 1 << 20;
    for (size_t fail_at = 1;; fail_at++) {
        unsigned added = 0;
        counting.calls = 0;
        counting.fail_at = fail_at;
        enum cairn_status status = cairn_store_open(folder, &options, &store, NULL);
        for (unsigned i = 0; status == CAIRN_OK && i < 300; i++) {
            key_of(i, key);
            enum cairn_status result = cairn_store_add(store, key, strlen(key), "code", 4, NULL);
            ck_assert(result == CAIRN_OK || result == CAIRN_ERROR_MEMORY);
            ck_assert(result != CAIRN_OK || has(store, key, "code"));
            added += result == CAIRN_OK;
        }
        ck_assert(status == CAIRN_OK || status == CAIRN_ERROR_MEMORY);
        if (status == CAIRN_OK)
            cairn_store_close(store);
        ck_assert_uint_eq(counting.outstanding_bytes, 0);
        if (fail_at % 2 == 0) {
            char command[PATH_BYTES + 16];
            snprintf(command, sizeof command, "rm -f %s/*", folder);
            ck_assert_int_eq(system(command), 0); /* NOLINT(cert-env33-c): a test's own folder */
        }
        if (added == 300 && counting.calls < fail_at)
            break;
    }
}
END_TEST

/* ---- Several at once ---- */

static void add_shared_and_own(cairn_store *store, unsigned number)
{
    char key[64];
    char object[256];
    for (unsigned i = 0; i < SHARED_KEYS; i++) {
        snprintf(key, sizeof key, "shared %u", i);
        snprintf(object, sizeof object, "object of shared %u", i);
        add(store, key, object);
        snprintf(key, sizeof key, "own %u of %u", i, number);
        snprintf(object, sizeof object, "%0*u", (int)(i % 100 + 1), i * number);
        add(store, key, object);
        expect(has(store, key, object), key);
    }
}

static void assert_shared_and_own(cairn_store *store, unsigned count)
{
    char key[64];
    char object[256];
    for (unsigned i = 0; i < SHARED_KEYS; i++) {
        snprintf(key, sizeof key, "shared %u", i);
        snprintf(object, sizeof object, "object of shared %u", i);
        ck_assert(has(store, key, object));
        for (unsigned number = 0; number < count; number++) {
            snprintf(key, sizeof key, "own %u of %u", i, number);
            snprintf(object, sizeof object, "%0*u", (int)(i % 100 + 1), i * number);
            ck_assert(has(store, key, object));
        }
    }
}

static void run_processes(cairn_store *inherited)
{
    pid_t children[PROCESSES];
    for (unsigned i = 0; i < PROCESSES; i++) {
        children[i] = fork();
        if (children[i] == 0) {
            cairn_store *store = inherited == NULL ? open_store() : inherited;
            add_shared_and_own(store, i);
            cairn_store_close(store);
            _exit(note_count == 0 ? 0 : 1);
        }
    }
    for (unsigned i = 0; i < PROCESSES; i++) {
        int status;
        ck_assert_int_eq(waitpid(children[i], &status, 0), children[i]);
        ck_assert_int_eq(status, 0);
    }
}

START_TEST(ten_processes_add_at_the_same_time)
{
    char path[PATH_BYTES];
    struct stat status;
    options.byte_limit = 8 << 20;
    run_processes(NULL);
    cairn_store *store = open_store();
    assert_shared_and_own(store, PROCESSES);
    ck_assert_uint_eq(note_count, 0);
    find_file(path);
    ck_assert_int_eq(stat(path, &status), 0);
    ck_assert_int_le(status.st_size, (PROCESSES + 1) * SHARED_KEYS * 320);
    cairn_store_close(store);
}
END_TEST

START_TEST(forked_children_add_to_their_parents_store)
{
    options.byte_limit = 8 << 20;
    cairn_store *store = open_store();
    add(store, "f", "code");
    run_processes(store);
    add(store, "g", "code");
    assert_shared_and_own(store, PROCESSES);
    cairn_store_close(store);
}
END_TEST

static void add_objects_that_fill(cairn_store *store, unsigned number)
{
    char key[64];
    static char object[3000];
    memset(object, 'a' + (int)(number % 26), sizeof object - 1);
    for (unsigned i = 0; i < SHARED_KEYS; i++) {
        snprintf(key, sizeof key, "own %u of %u", i, number);
        add(store, key, object);
        expect(has(store, key, object), key);
    }
}

START_TEST(ten_processes_fill_a_store_at_the_same_time)
{
    pid_t children[PROCESSES];
    for (unsigned i = 0; i < PROCESSES; i++) {
        children[i] = fork();
        if (children[i] == 0) {
            cairn_store *store = open_store();
            add_objects_that_fill(store, i);
            cairn_store_close(store);
            _exit(note_count == 0 ? 0 : 1);
        }
    }
    for (unsigned i = 0; i < PROCESSES; i++) {
        int status;
        ck_assert_int_eq(waitpid(children[i], &status, 0), children[i]);
        ck_assert_int_eq(status, 0);
    }
    cairn_store_close(open_store());
    ck_assert_uint_eq(note_count, 0);
}
END_TEST

START_TEST(killed_writers_leave_a_store_that_is_used)
{
    options.byte_limit = 8 << 20;
    for (unsigned i = 0; i < 20; i++) {
        pid_t child = fork();
        if (child == 0) {
            cairn_store *store = open_store();
            add_shared_and_own(store, i);
            for (;;)
                pause();
        }
        usleep(i * 300);
        kill(child, SIGKILL);
        ck_assert_int_eq(waitpid(child, NULL, 0), child);
    }
    note_count = 0;
    cairn_store *store = open_store();
    add_shared_and_own(store, 1000);
    cairn_store_close(store);
    note_count = 0;
    store = open_store();
    add_shared_and_own(store, 1000);
    ck_assert_uint_eq(note_count, 0);
    cairn_store_close(store);
}
END_TEST

static cairn_store *threads_store;

static void *run_thread(void *number)
{
    add_shared_and_own(threads_store, *(const unsigned *)number);
    return NULL;
}

START_TEST(several_threads_add_and_find)
{
    pthread_t threads[THREADS];
    unsigned numbers[THREADS];
    options.byte_limit = 8 << 20;
    threads_store = open_store();
    for (unsigned i = 0; i < THREADS; i++) {
        numbers[i] = i;
        ck_assert_int_eq(pthread_create(&threads[i], NULL, run_thread, &numbers[i]), 0);
    }
    for (unsigned i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    assert_shared_and_own(threads_store, THREADS);
    cairn_store_close(threads_store);
}
END_TEST

/* ---- Permissions ---- */

static enum cairn_status try_open(struct cairn_error *error)
{
    cairn_store *store = NULL;
    enum cairn_status status = cairn_store_open(folder, &options, &store, error);
    cairn_store_close(store);
    return status;
}

START_TEST(a_new_folder_and_a_new_file_are_for_the_user_alone)
{
    char path[PATH_BYTES];
    struct stat status;
    ck_assert_int_eq(rmdir(folder), 0);
    mode_t before = umask(0);
    cairn_store *store = open_store();
    add(store, "f", "code");
    ck_assert_int_eq(stat(folder, &status), 0);
    ck_assert_uint_eq(status.st_mode & 07777, 0700);
    find_file(path);
    ck_assert_int_eq(stat(path, &status), 0);
    ck_assert_uint_eq(status.st_mode & 07777, 0600);
    umask(before);
    cairn_store_close(store);
}
END_TEST

START_TEST(a_folder_that_others_may_write_to_is_refused)
{
    struct cairn_error error;
    static const mode_t modes[] = {0720, 0702, 0770, 0777, 01777};
    for (size_t i = 0; i < sizeof modes / sizeof *modes; i++) {
        ck_assert_int_eq(chmod(folder, modes[i]), 0);
        ck_assert_int_eq(try_open(&error), CAIRN_ERROR_STATE);
    }
    ck_assert_int_eq(chmod(folder, 0755), 0);
    ck_assert_int_eq(try_open(&error), CAIRN_OK);
}
END_TEST

START_TEST(a_folder_of_another_user_is_refused)
{
    struct cairn_error error;
    if (geteuid() != 0)
        return;
    ck_assert_int_eq(chown(folder, 12345, 12345), 0);
    ck_assert_int_eq(try_open(&error), CAIRN_ERROR_STATE);
    ck_assert_ptr_nonnull(strstr(error.message, "belongs to user 12345"));
}
END_TEST

START_TEST(a_symbolic_link_and_a_file_are_no_folders)
{
    struct cairn_error error;
    char target[PATH_BYTES];
    char link[PATH_BYTES];
    path_of("link", link);
    strcpy(target, folder);
    strcpy(folder, link);
    ck_assert_int_eq(symlink(target, folder), 0);
    ck_assert_int_eq(try_open(&error), CAIRN_ERROR_SYSTEM);
    ck_assert_int_eq(unlink(folder), 0);
    close(open(folder, O_CREAT | O_RDWR | O_CLOEXEC, 0600));
    ck_assert_int_eq(try_open(&error), CAIRN_ERROR_SYSTEM);
    strcpy(folder, target);
}
END_TEST

/* Makes a store with one object, and copies the path of its file. */
static void make_store(char *path)
{
    cairn_store *store = open_store();
    add(store, "f", "code");
    cairn_store_close(store);
    find_file(path);
}

/* The file must be ignored with a sentence, and replaced by the next addition. */
static void assert_ignored_and_replaced(const char *sentence)
{
    note_count = 0;
    cairn_store *store = open_store();
    ck_assert(lacks(store, "f"));
    ck_assert_uint_eq(note_count, 1);
    ck_assert_msg(strstr(last_note, sentence) != NULL, "%s", last_note);
    add(store, "f", "code");
    cairn_store_close(store);
    note_count = 0;
    store = open_store();
    ck_assert(has(store, "f", "code"));
    ck_assert_uint_eq(note_count, 0);
    cairn_store_close(store);
}

START_TEST(files_that_are_not_the_users_own_are_ignored_and_replaced)
{
    char path[PATH_BYTES];
    char other[PATH_BYTES];
    make_store(path);
    ck_assert_int_eq(chmod(path, 0644), 0);
    assert_ignored_and_replaced("its mode is not 0600");
    path_of("other", other);
    ck_assert_int_eq(rename(path, other), 0);
    ck_assert_int_eq(symlink(other, path), 0);
    assert_ignored_and_replaced("it is a symbolic link");
    ck_assert_int_eq(unlink(path), 0);
    ck_assert_int_eq(mkfifo(path, 0600), 0);
    assert_ignored_and_replaced("it is not a regular file");
    if (geteuid() == 0) {
        ck_assert_int_eq(chown(path, 12345, 12345), 0);
        assert_ignored_and_replaced("it belongs to another user");
    }
}
END_TEST

/* ---- Damage ---- */

static uint8_t original[LIMIT];
static size_t original_size;

static void read_original(const char *path)
{
    int file = open(path, O_RDONLY | O_CLOEXEC);
    original_size = (size_t)read(file, original, sizeof original);
    close(file);
    ck_assert_uint_lt(original_size, sizeof original);
}

static void write_file(const char *path, const void *bytes, size_t size)
{
    unlink(path);
    int file = open(path, O_CREAT | O_RDWR | O_CLOEXEC, 0600);
    ck_assert_int_eq(write(file, bytes, size), (ssize_t)size);
    close(file);
}

/* An object is found with the bytes that were added, or is not found and can be added. */
static void assert_right_or_nothing(void)
{
    cairn_store *store = open_store();
    ck_assert(has(store, "f", "code of f") || lacks(store, "f"));
    ck_assert(has(store, "long key", "code of long key") || lacks(store, "long key"));
    ck_assert(lacks(store, "g"));
    add(store, "f", "code of f");
    ck_assert(has(store, "f", "code of f"));
    cairn_store_close(store);
    store = open_store();
    ck_assert(has(store, "f", "code of f"));
    cairn_store_close(store);
}

static void make_damageable(char *path)
{
    cairn_store *store = open_store();
    add(store, "g", "code of g");
    ck_assert_int_eq(cairn_store_remove(store, "g", 1, NULL), CAIRN_OK);
    add(store, "f", "code of f");
    add(store, "long key", "code of long key");
    cairn_store_close(store);
    find_file(path);
    read_original(path);
}

START_TEST(a_file_that_is_cut_off_anywhere_gives_right_objects_or_none)
{
    char path[PATH_BYTES];
    make_damageable(path);
    for (size_t size = 0; size < original_size; size++) {
        write_file(path, original, size);
        cairn_store *store = open_store();
        bool has_g_again = size < 128 + 3 * 192;
        ck_assert(has_g_again || lacks(store, "g"));
        ck_assert(has(store, "f", "code of f") || lacks(store, "f"));
        add(store, "f", "code of f");
        ck_assert(has(store, "f", "code of f"));
        cairn_store_close(store);
    }
}
END_TEST

START_TEST(a_file_with_any_damaged_byte_gives_right_objects_or_none)
{
    char path[PATH_BYTES];
    static uint8_t damaged[LIMIT];
    make_damageable(path);
    size_t removal = 64 + 64 + 192; /* without it, g is there again, and right */
    for (size_t at = 0; at < original_size; at++) {
        if (at >= removal && at < removal + 128)
            continue;
        memcpy(damaged, original, original_size);
        damaged[at] ^= (uint8_t)(1 << at % 8);
        write_file(path, damaged, original_size);
        assert_right_or_nothing();
    }
}
END_TEST

START_TEST(a_damaged_object_is_reported_once_and_replaced_by_the_next_addition)
{
    char path[PATH_BYTES];
    make_damageable(path);
    uint8_t *object = memmem(original, original_size, "code of f", 9);
    object[0] ^= 1;
    write_file(path, original, original_size);
    note_count = 0;
    cairn_store *store = open_store();
    ck_assert(lacks(store, "f"));
    ck_assert(lacks(store, "f"));
    ck_assert_uint_eq(note_count, 1);
    ck_assert_ptr_nonnull(strstr(last_note, "damaged"));
    ck_assert(has(store, "long key", "code of long key"));
    add(store, "f", "code of f");
    ck_assert(has(store, "f", "code of f"));
    cairn_store_close(store);
}
END_TEST

START_TEST(a_file_of_another_version_or_byte_order_is_ignored_and_replaced)
{
    static const struct {
        size_t offset;
        const char *sentence;
    } changes[] = {{0, "it is not a store"},
                   {8, "it has another byte order"},
                   {12, "it has another version"},
                   {64, "it has another fingerprint"},
                   {24, "its header is damaged"}};
    char path[PATH_BYTES];
    make_store(path);
    read_original(path);
    for (size_t i = 0; i < sizeof changes / sizeof *changes; i++) {
        original[changes[i].offset] ^= 1;
        write_file(path, original, original_size);
        original[changes[i].offset] ^= 1;
        assert_ignored_and_replaced(changes[i].sentence);
    }
}
END_TEST

START_TEST(a_file_that_is_larger_than_the_limit_is_ignored_and_replaced)
{
    char path[PATH_BYTES];
    make_store(path);
    ck_assert_int_eq(truncate(path, (off_t)1 << 40), 0);
    assert_ignored_and_replaced("it is larger than the limit");
}
END_TEST

START_TEST(a_deleted_file_is_created_again)
{
    char path[PATH_BYTES];
    cairn_store *store = open_store();
    add(store, "f", "code");
    find_file(path);
    ck_assert_int_eq(unlink(path), 0);
    ck_assert(has(store, "f", "code"));
    add(store, "g", "other");
    cairn_store_close(store);
    store = open_store();
    ck_assert(has(store, "g", "other"));
    cairn_store_close(store);
}
END_TEST

/* Random words in place of those of the file. */
START_TEST(a_file_with_random_words_gives_right_objects_or_none)
{
    char path[PATH_BYTES];
    static uint8_t damaged[LIMIT];
    const char *given = getenv("CAIRN_TEST_SEED");
    unsigned seed = given == NULL ? (unsigned)getpid() : (unsigned)strtoul(given, NULL, 0);
    printf("seed: %u\n", seed);
    make_damageable(path);
    srandom(seed);
    for (unsigned i = 0; i < 300; i++) {
        memcpy(damaged, original, original_size);
        for (unsigned change = 0; change < 3; change++) {
            uint64_t word = (uint64_t)random() << (random() % 40);
            memcpy(damaged + (size_t)random() % (original_size / 8) * 8, &word, sizeof word);
        }
        write_file(path, damaged, original_size);
        cairn_store *store = open_store();
        ck_assert(has(store, "f", "code of f") || lacks(store, "f"));
        add(store, "f", "code of f");
        ck_assert(has(store, "f", "code of f"));
        cairn_store_close(store);
    }
}
END_TEST

static TCase *group(const char *name)
{
    TCase *tests = tcase_create(name);
    tcase_add_checked_fixture(tests, make_folder, remove_folder);
    tcase_set_timeout(tests, 120);
    return tests;
}

static TCase *use_tests(void)
{
    TCase *tests = group("use");
    tcase_add_test(tests, what_is_added_is_found_at_once_and_after_opening_again);
    tcase_add_test(tests, the_first_object_of_a_key_is_kept);
    tcase_add_test(tests, a_removed_object_remains_where_it_was_found_and_can_be_added_anew);
    tcase_add_test(tests, objects_of_other_fingerprints_are_not_found);
    tcase_add_test(tests, keys_and_objects_of_all_sizes_are_kept);
    tcase_add_test(tests, wrong_arguments_are_refused);
    return tests;
}

static TCase *limit_tests(void)
{
    TCase *tests = group("limits");
    tcase_add_test(tests, a_full_store_drops_the_oldest_objects_and_keeps_what_was_found);
    tcase_add_test(tests, objects_and_keys_of_the_largest_sizes_fit);
    tcase_add_test(tests, files_of_other_fingerprints_are_deleted_when_they_exceed_the_limit);
    tcase_add_test(tests, a_write_that_the_system_refuses_changes_nothing);
    tcase_add_test(tests, a_record_inside_of_an_object_is_not_taken_for_one);
    tcase_add_test(tests, a_failing_allocation_changes_nothing);
    return tests;
}

static TCase *concurrency_tests(void)
{
    TCase *tests = group("concurrency");
    tcase_add_test(tests, ten_processes_add_at_the_same_time);
    tcase_add_test(tests, ten_processes_fill_a_store_at_the_same_time);
    tcase_add_test(tests, forked_children_add_to_their_parents_store);
    tcase_add_test(tests, killed_writers_leave_a_store_that_is_used);
    tcase_add_test(tests, several_threads_add_and_find);
    return tests;
}

static TCase *permission_tests(void)
{
    TCase *tests = group("permissions");
    tcase_add_test(tests, a_new_folder_and_a_new_file_are_for_the_user_alone);
    tcase_add_test(tests, a_folder_that_others_may_write_to_is_refused);
    tcase_add_test(tests, a_folder_of_another_user_is_refused);
    tcase_add_test(tests, a_symbolic_link_and_a_file_are_no_folders);
    tcase_add_test(tests, files_that_are_not_the_users_own_are_ignored_and_replaced);
    return tests;
}

static TCase *damage_tests(void)
{
    TCase *tests = group("damage");
    tcase_add_test(tests, a_file_that_is_cut_off_anywhere_gives_right_objects_or_none);
    tcase_add_test(tests, a_file_with_any_damaged_byte_gives_right_objects_or_none);
    tcase_add_test(tests, a_damaged_object_is_reported_once_and_replaced_by_the_next_addition);
    tcase_add_test(tests, a_file_of_another_version_or_byte_order_is_ignored_and_replaced);
    tcase_add_test(tests, a_file_that_is_larger_than_the_limit_is_ignored_and_replaced);
    tcase_add_test(tests, a_deleted_file_is_created_again);
    tcase_add_test(tests, a_file_with_random_words_gives_right_objects_or_none);
    return tests;
}

int main(void)
{
    Suite *suite = suite_create("store");
    suite_add_tcase(suite, use_tests());
    suite_add_tcase(suite, limit_tests());
    suite_add_tcase(suite, concurrency_tests());
    suite_add_tcase(suite, permission_tests());
    suite_add_tcase(suite, damage_tests());
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    int failures = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failures == 0 ? 0 : 1;
}
