/*
 * frame/loaded_objects.h - the unwind tables of the program and its loaded libraries.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef FRAME_LOADED_OBJECTS_H
#define FRAME_LOADED_OBJECTS_H

#include <stdbool.h>
#include <stdint.h>

/* A loaded object: its memory, and the address of its sorted table of unwind entries
 * (.eh_frame_hdr; 0 if it has none). */
struct object_memory {
    uint64_t begin;
    uint64_t end;
    uint64_t header;
};

/* Finds the object whose memory contains `pc`; false if no object does. With glibc 2.35 or later it
 * uses _dl_find_object, and is async-signal-safe and lock-free. Elsewhere it uses dl_iterate_phdr,
 * which takes the dynamic linker's lock. */
bool objects_find(uint64_t pc, struct object_memory *object);

#endif
