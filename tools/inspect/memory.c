/*
 * Reading the memory of another process, through a cache of its pages.
 *
 * SPDX-License-Identifier: MIT
 */
#include "tools/cli/command.h"
#include "tools/inspect/inspect.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>

/* A page may be smaller than the system's, not larger. */
enum { PAGE_BYTES = 4096, PAGE_SLOTS = 1024 };

struct cached_page {
    uint64_t address; /* 1 if there is none */
    uint8_t bytes[PAGE_BYTES];
};

bool process_memory_open(struct process_memory *memory, pid_t process)
{
    *memory = (struct process_memory){.process = process};
    memory->pages = calloc(PAGE_SLOTS, sizeof *memory->pages);
    if (memory->pages == NULL)
        return complain("inspect: no memory");
    process_memory_renew(memory);
    return true;
}

void process_memory_close(struct process_memory *memory) { free(memory->pages); }

void process_memory_renew(struct process_memory *memory)
{
    for (size_t i = 0; i < PAGE_SLOTS; i++)
        memory->pages[i].address = 1;
    memory->system_error = 0;
}

bool process_memory_read_now(struct process_memory *memory, uint64_t address, void *bytes,
                             size_t size)
{
    struct iovec here = {.iov_base = bytes, .iov_len = size};
    /* The address is in another process: it is only a number here. */
    struct iovec there = {.iov_base = (void *)(uintptr_t)address, .iov_len = size};
    if (memory->system_error == 0) {
        ssize_t done = process_vm_readv(memory->process, &here, 1, &there, 1, 0);
        if (done >= 0 && (size_t)done == size)
            return true;
        memory->system_error = done < 0 ? errno : EFAULT;
        memory->failed_address = address;
    }
    memset(bytes, 0, size);
    return false;
}

bool process_memory_read(struct process_memory *memory, uint64_t address, void *bytes, size_t size)
{
    uint8_t *to = bytes;
    while (size > 0) {
        uint64_t offset = address % PAGE_BYTES;
        uint64_t page_address = address - offset;
        size_t part = size < PAGE_BYTES - offset ? size : PAGE_BYTES - offset;
        struct cached_page *page = &memory->pages[page_address / PAGE_BYTES % PAGE_SLOTS];
        if (page->address != page_address || memory->system_error != 0) {
            page->address = 1;
            if (!process_memory_read_now(memory, page_address, page->bytes, PAGE_BYTES)) {
                memory->failed_address = address;
                memset(to, 0, size);
                return false;
            }
            page->address = page_address;
        }
        memcpy(to, page->bytes + offset, part);
        to += part;
        address += part;
        size -= part;
    }
    return true;
}
