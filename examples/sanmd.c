/*
 * sanmd: a program that queries metadata about its own code: which of its functions were compiled
 * with clang's -fexperimental-sanitize-metadata, and which instructions are atomic accesses. A tool
 * that finds data races by sampling needs this: plain accesses may race, atomic accesses do not,
 * and nothing is known about code without metadata.
 *
 *     clang -fexperimental-sanitize-metadata=covered,atomics,uar sanmd.c \
 *         $(pkg-config --cflags --libs cairn-sanmd)
 *
 * In a Makefile:
 *
 *     CFLAGS += -fexperimental-sanitize-metadata=covered,atomics,uar
 *     CPPFLAGS += $(shell pkg-config --cflags cairn-sanmd)
 *     LDLIBS += $(shell pkg-config --libs cairn-sanmd)
 *
 * A program that was compiled without the option, or by another compiler, finds nothing. `cairn
 * sanmd PROGRAM` prints the same metadata from the file.
 */
#include <cairn/sanmd_runtime.h>

#include <inttypes.h>
#include <stdatomic.h>
#include <stdio.h>

static atomic_long hits;
static long misses;

/* ---- Code with metadata ---- */

__attribute__((noinline)) static void count(int is_hit)
{
    if (is_hit)
        atomic_fetch_add(&hits, 1);
    else
        misses++;
}

/* ---- Queries ---- */

static bool print_atomic(void *data, const struct cairn_sanmd_entry *access)
{
    const struct cairn_sanmd_entry *function = data;
    printf("  atomic access at +0x%" PRIx64 "\n", access->address - function->address);
    return true;
}

static void print_features(uint32_t features)
{
    if ((features & CAIRN_SANMD_FEATURE_ATOMICS) != 0)
        printf(", its atomic accesses are known");
    if ((features & CAIRN_SANMD_FEATURE_USE_AFTER_RETURN) != 0)
        printf(", its frame may be used after its return");
    putchar('\n');
}

static void print_function(const char *name, uint64_t pc)
{
    struct cairn_sanmd_entry function;
    if (!cairn_sanmd_find_function(pc, &function)) {
        printf("%s: not covered\n", name);
        return;
    }
    printf("%s: covered, %" PRIu32 " bytes", name, function.size);
    print_features(function.features);
    if (cairn_sanmd_is_atomic(pc))
        puts("  begins with an atomic access");
    (void)cairn_sanmd_visit(CAIRN_SANMD_ATOMICS, function.address, function.address + function.size,
                            print_atomic, &function);
}

/* Reports metadata that a newer compiler has written, and that the library cannot read. */
static bool print_fault(void *data, const struct cairn_sanmd_range *range)
{
    (void)data;
    if (range->error.status != CAIRN_OK)
        fprintf(stderr, "sanmd: %s\n", range->error.message);
    return true;
}

int main(void)
{
    count(1);
    count(0);
    print_function("count", (uint64_t)(uintptr_t)&count);
    print_function("printf", (uint64_t)(uintptr_t)&printf);
    (void)cairn_sanmd_visit_ranges(print_fault, NULL);

    struct cairn_sanmd_statistics statistics;
    cairn_sanmd_get_statistics(&statistics);
    printf("%zu covered functions, %zu atomic accesses\n", statistics.function_count,
           statistics.atomic_count);
    return 0;
}
