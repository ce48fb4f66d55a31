/* SPDX-License-Identifier: MIT */
#include "sanmd/memory.h"

#include <errno.h>
#include <stdint.h>
#include <sys/mman.h>
#include <unistd.h>

void *memory_map(size_t bytes)
{
    int saved = errno;
    void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    errno = saved;
    return memory == MAP_FAILED ? NULL : memory;
}

/* munmap fails only if it would split a mapping when the limit on the number of mappings is
 * reached. The callers unmap a whole mapping, or the end of one. */
void memory_unmap(void *memory, size_t bytes)
{
    int saved = errno;
    munmap(memory, bytes);
    errno = saved;
}

size_t memory_trim(void *memory, size_t bytes, size_t kept)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    size_t left = (kept + page - 1) / page * page;
    if (left >= bytes)
        return bytes;
    memory_unmap((uint8_t *)memory + left, bytes - left);
    return left;
}
