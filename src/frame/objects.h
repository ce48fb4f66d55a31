/*
 * frame/objects.h - the unwind tables of the program and of the libraries that are loaded.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef FRAME_OBJECTS_H
#define FRAME_OBJECTS_H

#include <stdbool.h>
#include <stdint.h>

/* An object that is loaded: its memory, and where in it the sorted table of unwind entries is
 * (.eh_frame_hdr; 0 if it has none). */
struct object_memory {
    uint64_t begin;
    uint64_t end;
    uint64_t header;
};

/* The object whose memory the PC is in; false if there is none. Async-signal-safe and without locks
 * with glibc 2.35 or later, whose _dl_find_object answers; elsewhere dl_iterate_phdr does, which
 * takes the dynamic linker's lock. */
bool objects_find(uint64_t pc, struct object_memory *object);

#endif
