/*
 * llvm/jobs.h - which jobs a queue has, by ticket, and which of them wait, by priority.
 *
 * Adding, finding and removing a job takes O(1) time, a change of what waits O(log n). The caller
 * holds the queue's lock.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef LLVM_JOBS_H
#define LLVM_JOBS_H

#include "base/memory.h"

#include <stdbool.h>
#include <stdint.h>

/* The place of a job, which is a part of it. */
struct job_place {
    uint64_t ticket;
    int32_t priority;       /* larger first */
    bool is_later;          /* after all jobs without this */
    bool is_quick;          /* before others of the same priority */
    size_t position;        /* in the heap plus 1; 0: it does not wait */
    struct job_place *next; /* in the table */
};

struct jobs {
    struct cairn_allocator allocator;
    struct job_place **table; /* lists, by the low bits of the ticket */
    struct job_place **heap;  /* what waits: none is before its parent, at half its position */
    size_t capacity;          /* of both: a power of two, at least `count`; or 0 */
    size_t count;
    size_t waiting_count;
};

/* Adds a job, which does not wait. Returns false if memory runs out. */
bool jobs_add(struct jobs *jobs, struct job_place *job);

/* Removes a job that does not wait. */
void jobs_remove(struct jobs *jobs, struct job_place *job);

/* Returns the job with the ticket, or NULL. */
struct job_place *jobs_find(const struct jobs *jobs, uint64_t ticket);

/* Lets a job wait. */
void jobs_wait(struct jobs *jobs, struct job_place *job);

/* Ends the waiting of a job that waits. */
void jobs_take(struct jobs *jobs, struct job_place *job);

/* Gives a job that waits a higher priority. */
void jobs_raise(struct jobs *jobs, struct job_place *job, int32_t priority);

/* Returns the job that has waited longest of those with the highest priority; NULL if none waits.
 */
struct job_place *jobs_first(const struct jobs *jobs);

/* Whether both jobs have the same priority, and are quick or not. */
bool jobs_are_equal(const struct job_place *one, const struct job_place *other);

/* Returns the number of jobs that have the priority of the first one, at most `limit`, in as many
 * steps. */
size_t jobs_count_first(const struct jobs *jobs, size_t limit);

void jobs_release(const struct jobs *jobs);

#endif
