/* SPDX-License-Identifier: MIT */
#include "llvm/jobs.h"

#include <assert.h>

/* ---- The table ---- */

static struct job_place **list_of(const struct jobs *jobs, uint64_t ticket)
{
    return &jobs->table[ticket & (jobs->capacity - 1)];
}

static void link_job(struct jobs *jobs, struct job_place *job)
{
    struct job_place **list = list_of(jobs, job->ticket);
    job->next = *list;
    *list = job;
}

/* Replaces the table and the heap by larger ones. */
static bool grow(struct jobs *jobs)
{
    enum { FIRST_CAPACITY = 16 };
    struct jobs grown = *jobs;
    grown.capacity = jobs->capacity == 0 ? FIRST_CAPACITY : 2 * jobs->capacity;
    grown.table = memory_new(&jobs->allocator, grown.capacity, sizeof(struct job_place *));
    grown.heap = memory_new(&jobs->allocator, grown.capacity, sizeof(struct job_place *));
    if (grown.table == NULL || grown.heap == NULL) {
        jobs_release(&grown);
        return false;
    }
    for (size_t i = 0; i < jobs->waiting_count; i++)
        grown.heap[i] = jobs->heap[i];
    for (size_t i = 0; i < jobs->capacity; i++)
        for (struct job_place *job = jobs->table[i], *next; job != NULL; job = next) {
            next = job->next;
            link_job(&grown, job);
        }
    jobs_release(jobs);
    *jobs = grown;
    return true;
}

bool jobs_add(struct jobs *jobs, struct job_place *job)
{
    if (jobs->count == jobs->capacity && !grow(jobs))
        return false;
    job->position = 0;
    link_job(jobs, job);
    jobs->count++;
    return true;
}

void jobs_remove(struct jobs *jobs, struct job_place *job)
{
    struct job_place **link = list_of(jobs, job->ticket);
    assert(job->position == 0);
    while (*link != job)
        link = &(*link)->next;
    *link = job->next;
    jobs->count--;
}

struct job_place *jobs_find(const struct jobs *jobs, uint64_t ticket)
{
    if (jobs->capacity == 0)
        return NULL;
    struct job_place *job = *list_of(jobs, ticket);
    while (job != NULL && job->ticket != ticket)
        job = job->next;
    return job;
}

void jobs_release(const struct jobs *jobs)
{
    memory_free(&jobs->allocator, jobs->table, jobs->capacity * sizeof(struct job_place *));
    memory_free(&jobs->allocator, jobs->heap, jobs->capacity * sizeof(struct job_place *));
}

/* ---- The heap ---- */

static bool is_before(const struct job_place *one, const struct job_place *other)
{
    if (one->is_later != other->is_later)
        return other->is_later;
    if (one->priority != other->priority)
        return one->priority > other->priority;
    if (one->is_quick != other->is_quick)
        return one->is_quick;
    return one->ticket < other->ticket;
}

static struct job_place *at(const struct jobs *jobs, size_t position)
{
    return jobs->heap[position - 1];
}

static void put(struct jobs *jobs, struct job_place *job, size_t position)
{
    jobs->heap[position - 1] = job;
    job->position = position;
}

/* Puts a job at the position or at one of its parents. */
static void put_up(struct jobs *jobs, struct job_place *job, size_t position)
{
    while (position > 1 && is_before(job, at(jobs, position / 2))) {
        put(jobs, at(jobs, position / 2), position);
        position /= 2;
    }
    put(jobs, job, position);
}

/* Puts a job at the position or at one of its children. */
static void put_down(struct jobs *jobs, struct job_place *job, size_t position)
{
    for (size_t child; (child = 2 * position) <= jobs->waiting_count; position = child) {
        if (child < jobs->waiting_count && is_before(at(jobs, child + 1), at(jobs, child)))
            child++;
        if (!is_before(at(jobs, child), job))
            break;
        put(jobs, at(jobs, child), position);
    }
    put(jobs, job, position);
}

void jobs_wait(struct jobs *jobs, struct job_place *job)
{
    put_up(jobs, job, ++jobs->waiting_count);
}

void jobs_take(struct jobs *jobs, struct job_place *job)
{
    size_t position = job->position;
    struct job_place *last = at(jobs, jobs->waiting_count--);
    job->position = 0;
    if (last == job)
        return;
    put_down(jobs, last, position);
    put_up(jobs, last, last->position);
}

void jobs_raise(struct jobs *jobs, struct job_place *job, int32_t priority)
{
    job->priority = priority;
    put_up(jobs, job, job->position);
}

struct job_place *jobs_first(const struct jobs *jobs)
{
    return jobs->waiting_count == 0 ? NULL : at(jobs, 1);
}

bool jobs_are_equal(const struct job_place *one, const struct job_place *other)
{
    return one->is_later == other->is_later && one->priority == other->priority &&
           one->is_quick == other->is_quick;
}

/* Counts the jobs at the position and below it. Equal ones have equal parents. */
static size_t count_equal(const struct jobs *jobs, size_t position, size_t limit)
{
    if (limit == 0 || position > jobs->waiting_count ||
        !jobs_are_equal(at(jobs, position), at(jobs, 1)))
        return 0;
    size_t count = 1 + count_equal(jobs, 2 * position, limit - 1);
    return count + count_equal(jobs, 2 * position + 1, limit - count);
}

size_t jobs_count_first(const struct jobs *jobs, size_t limit)
{
    return count_equal(jobs, 1, limit);
}
