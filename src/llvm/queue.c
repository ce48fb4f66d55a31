/*
 * Queues: jobs, the threads that compile them, limits and cancellation.
 *
 * Invariants, under the queue's lock:
 *  - A job is in `jobs` until its last `done` has returned.
 *  - `bytes` is the sum over the jobs that wait or are compiled.
 *  - A job with two versions waits for the full one when `done` has returned for the quick one.
 *  - A running job is cancelled only before `is_ending` is set. So a job is either cancelled or
 *    installed.
 * The lock is never held while the host, LLVM or other functions of Cairn are called, except
 * memory_free.
 *
 * A forked child may have a copy of the lock that is held, and none of the threads. So a child does
 * nothing with a queue.
 *
 * SPDX-License-Identifier: MIT
 */
#include "base/adapter.h"
#include "base/error.h"
#include "base/memory.h"
#include "llvm/batch.h"
#include "llvm/engine.h"
#include "llvm/jobs.h"
#include "llvm/process_end.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stddef.h>
#include <string.h>
#include <unistd.h>

enum { BATCH_LIMIT_DEFAULT = 32, BATCH_LIMIT_MAX = 1 << 16, TIERS = 2 };

struct job {
    struct task task; /* must be first */
    struct job_place place;
    cairn_queue *queue;
    enum cairn_tier tier;        /* of the version that it waits for */
    struct kept *results[TIERS]; /* memory for results that will be kept */
    bool is_cancelled;
    bool is_ending;
};

/* A result that waits for cairn_queue_take. */
struct kept {
    struct kept *next;
    struct cairn_queue_result result;
    struct cairn_error error;
};

struct worker {
    cairn_queue *queue;
    pthread_t thread;
    struct compiler *compilers[TIERS];
    struct task **batch; /* space for `batch_limit` */
};

struct cairn_queue {
    struct cairn_allocator allocator;
    cairn_runtime *runtime;
    pid_t process;
    uint32_t batch_limit;
    uint32_t job_limit; /* 0: none */
    size_t byte_limit;  /* 0: none */
    bool warms_up;
    uint32_t thread_count;
    uint32_t started_count; /* of threads */

    pthread_mutex_t lock;
    pthread_cond_t changed; /* a job was added, or the queue is being destroyed */
    pthread_cond_t ended;   /* a job has left `jobs` */
    struct jobs jobs;
    struct kept *kept; /* oldest first */
    struct kept **kept_end;
    uint32_t *result_count; /* the host's; or NULL */
    size_t bytes;
    uint64_t last_ticket;
    bool is_closed;

    struct worker workers[];
};

/* ---- With the lock held ---- */

static struct job *job_at(struct job_place *place)
{
    return place == NULL ? NULL
                         : (struct job *)(void *)((char *)place - offsetof(struct job, place));
}

static struct job *find(const cairn_queue *queue, uint64_t ticket)
{
    return job_at(jobs_find(&queue->jobs, ticket));
}

static bool waits(const struct job *job) { return job->place.position != 0; }

static void keep(cairn_queue *queue, struct kept *kept)
{
    *queue->kept_end = kept;
    queue->kept_end = &kept->next;
}

static struct kept *take_kept(cairn_queue *queue)
{
    struct kept *kept = queue->kept;
    if (kept == NULL)
        return NULL;
    queue->kept = kept->next;
    if (queue->kept == NULL)
        queue->kept_end = &queue->kept;
    return kept;
}

/* Lets a job wait for the version of its tier. */
static void let_wait(cairn_queue *queue, struct job *job)
{
    job->place.is_quick = job->tier == CAIRN_TIER_QUICK;
    job->place.is_later = job->tier == CAIRN_TIER_FULL && job->task.job.has_tiers;
    job->task.drops_guards = job->place.is_later && job->task.job.until_full != NULL;
    jobs_wait(&queue->jobs, &job->place);
    pthread_cond_signal(&queue->changed);
}

/* Cancels a job that waits. Until its `done` has returned, it is still a job of the queue. */
static void cancel_waiting(cairn_queue *queue, struct job *job)
{
    jobs_take(&queue->jobs, &job->place);
    queue->bytes -= job->task.job.bytes;
    job->is_ending = true;
    job->is_cancelled = true;
}

/* ---- Jobs ---- */

static void free_job(const cairn_queue *queue, struct job *job)
{
    memory_free_string(&queue->allocator, job->task.function);
    memory_free(&queue->allocator, (void *)(uintptr_t)job->task.job.bitcode,
                job->task.job.bitcode_size);
    memory_free(&queue->allocator, (void *)(uintptr_t)job->task.job.object,
                job->task.job.object_size);
    cairn_signature_destroy(job->task.signature);
    for (int i = 0; i < TIERS; i++)
        memory_free(&queue->allocator, job->results[i], sizeof *job->results[i]);
    memory_free(&queue->allocator, job, sizeof *job);
}

/* Copies bytes. Returns false if memory runs out. `copy` and `copy_size` are unchanged if there are
 * no bytes. */
static bool copy_bytes(const cairn_queue *queue, const void *bytes, size_t size, const void **copy,
                       size_t *copy_size)
{
    if (bytes == NULL)
        return true;
    void *copied = memory_new(&queue->allocator, size, 1);
    if (copied == NULL)
        return false;
    *copy = memcpy(copied, bytes, size);
    *copy_size = size;
    return true;
}

/* Copies what the job points to. */
static bool copy_parts(const cairn_queue *queue, struct job *job,
                       const struct cairn_queue_job *options)
{
    struct cairn_queue_job *copy = &job->task.job;
    job->task.function =
        memory_copy_string(&queue->allocator, options->function, strlen(options->function));
    return job->task.function != NULL &&
           copy_bytes(queue, options->bitcode, options->bitcode_size, &copy->bitcode,
                      &copy->bitcode_size) &&
           copy_bytes(queue, options->object, options->object_size, &copy->object,
                      &copy->object_size);
}

/* Allocates the results that will be kept. */
static bool create_results(const cairn_queue *queue, struct job *job)
{
    int count = !job->task.job.keeps_result ? 0 : job->task.job.has_tiers ? TIERS : 1;
    for (int i = 0; i < count; i++) {
        job->results[i] = memory_new(&queue->allocator, 1, sizeof *job->results[i]);
        if (job->results[i] == NULL)
            return false;
    }
    return true;
}

static struct job *create_job(cairn_queue *queue, const struct cairn_queue_job *options)
{
    struct job *job = memory_new(&queue->allocator, 1, sizeof *job);
    if (job == NULL)
        return NULL;
    job->queue = queue;
    job->task.job = *options;
    job->task.job.bitcode = job->task.job.object = NULL;
    job->task.job.bitcode_size = job->task.job.object_size = 0;
    job->tier = options->has_tiers ? CAIRN_TIER_QUICK : CAIRN_TIER_FULL;
    if (copy_parts(queue, job, options) && create_results(queue, job))
        return job;
    free_job(queue, job);
    return NULL;
}

/* Changes the number of results that the host sees. Several queues may have one variable. */
static void count_results(const cairn_queue *queue, uint32_t change)
{
    if (queue->result_count != NULL)
        __atomic_fetch_add(queue->result_count, change, __ATOMIC_RELEASE);
}

/* Keeps the result of a job's tier for the host. */
static void keep_result(struct job *job, const struct cairn_queue_result *result)
{
    cairn_queue *queue = job->queue;
    struct kept *kept = job->results[job->tier];
    job->results[job->tier] = NULL;
    kept->result = *result;
    kept->error = *result->error;
    pthread_mutex_lock(&queue->lock);
    keep(queue, kept);
    count_results(queue, 1);
    pthread_mutex_unlock(&queue->lock);
}

/* Tells the host of a version. */
static void report(struct job *job, void *address, const struct cairn_error *error,
                   bool is_cancelled)
{
    const struct cairn_queue_result result = {
        .ticket = job->place.ticket,
        .user = job->task.job.user,
        .error = error,
        .is_cancelled = is_cancelled,
        .tier = job->tier,
        .address = address,
    };
    if (job->task.job.done != NULL)
        job->task.job.done(&result, job->task.job.user);
    if (job->task.job.keeps_result)
        keep_result(job, &result);
}

/* Reports how a job has ended, and frees it. */
static void finish(struct job *job, void *address, const struct cairn_error *error)
{
    cairn_queue *queue = job->queue;
    struct cairn_error cancelled;
    if (job->is_cancelled) {
        error_set(&cancelled, CAIRN_ERROR_STATE, 0, "the job for '%.80s' was cancelled",
                  job->task.function);
        error = &cancelled;
    }
    job->tier = CAIRN_TIER_FULL;
    report(job, address, error, job->is_cancelled);
    pthread_mutex_lock(&queue->lock);
    jobs_remove(&queue->jobs, &job->place);
    pthread_cond_broadcast(&queue->ended);
    pthread_mutex_unlock(&queue->lock);
    free_job(queue, job);
}

/* Reports a quick version, and lets the job wait for the full one. */
static void go_on(struct job *job, void *address, const struct cairn_error *error)
{
    cairn_queue *queue = job->queue;
    report(job, address, error, false);
    pthread_mutex_lock(&queue->lock);
    job->tier = CAIRN_TIER_FULL;
    job->is_cancelled |= queue->is_closed;
    bool is_cancelled = job->is_cancelled;
    if (is_cancelled)
        queue->bytes -= job->task.job.bytes;
    else
        let_wait(queue, job);
    pthread_mutex_unlock(&queue->lock);
    if (is_cancelled)
        finish(job, NULL, NULL);
}

/* ---- Running jobs ---- */

static bool is_wanted(struct task *task)
{
    struct job *job = (struct job *)(void *)task;
    pthread_mutex_lock(&job->queue->lock);
    bool result = !job->is_cancelled;
    pthread_mutex_unlock(&job->queue->lock);
    return result;
}

/* Installs the version of a job's entry. */
static enum cairn_status install(const struct job *job, const void *code, struct cairn_error *error)
{
    const struct cairn_queue_job *options = &job->task.job;
    struct cairn_entry_version version = options->version;
    version.code = code;
    if (version.signature == NULL)
        version.signature = job->task.signature;
    return cairn_entry_install(options->entry, &version, options->strength, error);
}

/* Refuses code with a larger frame than the job allows, if its records tell the size. */
static enum cairn_status check_frame(const struct job *job, const void *code,
                                     struct cairn_error *error)
{
    struct cairn_function function;
    const uint64_t limit = job->task.job.frame_limit;
    if (limit == 0 ||
        !cairn_runtime_find_function(job->queue->runtime, (uintptr_t)code, &function) ||
        function.record_count == 0 || function.stack_size <= limit)
        return CAIRN_OK;
    if (function.stack_size == CAIRN_STACK_SIZE_DYNAMIC)
        return error_set(error, CAIRN_ERROR_RANGE, 0,
                         "the frame of '%.80s' has no constant size, and frame_limit is %llu",
                         job->task.function, (unsigned long long)limit);
    return error_set(error, CAIRN_ERROR_RANGE, function.stack_size,
                     "the frame of '%.80s' has %llu bytes, and frame_limit is %llu",
                     job->task.function, (unsigned long long)function.stack_size,
                     (unsigned long long)limit);
}

/* Adds the host's reference to the module of a function that no entry retires. The thread has a
 * reference, so the module is in memory. */
static void retain_for_host(const struct job *job, const void *code)
{
    cairn_module *module = cairn_runtime_find_module(job->queue->runtime, (uintptr_t)code);
    bool is_retired_by_entry = job->task.job.entry != NULL && job->task.job.version.retires;
    if (module != NULL && !is_retired_by_entry)
        cairn_module_retain(module);
}

/* Installs a version, unless its frame is too large. Threads leave the quick version only after the
 * full one was installed. */
static enum cairn_status use(const struct job *job, const void *code, struct cairn_error *error)
{
    const struct cairn_queue_job *options = &job->task.job;
    enum cairn_status status = check_frame(job, code, error);
    if (status != CAIRN_OK || options->entry == NULL)
        return status;
    status = install(job, code, error);
    if (status == CAIRN_OK && job->task.drops_guards)
        return cairn_assumption_break(options->until_full, options->strength, error);
    return status;
}

/* Notes that a version of a running job is about to end. Returns whether it is the last one. */
static bool begin_end(struct job *job, bool gives_up)
{
    cairn_queue *queue = job->queue;
    pthread_mutex_lock(&queue->lock);
    job->is_cancelled |= gives_up;
    job->is_ending = job->is_cancelled || job->tier == CAIRN_TIER_FULL;
    bool is_last = job->is_ending;
    if (is_last)
        queue->bytes -= job->task.job.bytes;
    pthread_mutex_unlock(&queue->lock);
    return is_last;
}

/* Ends a version of a running job, by installing it unless the job was cancelled. */
static bool end(struct task *task, void *address, const struct cairn_error *error)
{
    struct job *job = (struct job *)(void *)task;
    struct cairn_error failure = *error;
    bool is_last = begin_end(job, address == NULL && failure.status == CAIRN_OK);
    bool is_wanted = address != NULL && !(is_last && job->is_cancelled);
    if (is_wanted)
        failure.status = use(job, address, &failure);
    /* With SYSTEM, the version may be installed. */
    bool is_used =
        is_wanted && (failure.status == CAIRN_OK || failure.status == CAIRN_ERROR_SYSTEM);
    if (is_used)
        retain_for_host(job, address);
    /* The host's callback may wait for the thread that ends the process. */
    process_end_leave();
    (is_last ? finish : go_on)(job, is_used ? address : NULL, &failure);
    process_end_enter();
    return is_used;
}

/* Takes the jobs of a batch: this thread's share of what waits with the highest priority. Returns 0
 * if the queue is closed. */
static size_t take_batch(struct worker *worker)
{
    cairn_queue *queue = worker->queue;
    size_t count = 0;
    pthread_mutex_lock(&queue->lock);
    while (queue->jobs.waiting_count == 0 && !queue->is_closed)
        pthread_cond_wait(&queue->changed, &queue->lock);
    size_t limit = (size_t)queue->batch_limit * queue->thread_count;
    size_t equal = jobs_count_first(&queue->jobs, limit);
    size_t share = (equal + queue->thread_count - 1) / queue->thread_count;
    while (count < share) {
        struct job_place *place = jobs_first(&queue->jobs);
        jobs_take(&queue->jobs, place);
        worker->batch[count++] = &job_at(place)->task;
    }
    pthread_mutex_unlock(&queue->lock);
    return count;
}

/* The first job warms LLVM up, too, so that one that waits already is compiled at once. */
static bool is_idle(cairn_queue *queue)
{
    pthread_mutex_lock(&queue->lock);
    bool is_idle = queue->jobs.waiting_count == 0 && !queue->is_closed;
    pthread_mutex_unlock(&queue->lock);
    return is_idle;
}

static void warm_up(struct worker *worker)
{
    struct cairn_error error;
    process_end_enter();
    struct compiler *compiler = worker->compilers[CAIRN_TIER_FULL];
    if (compiler_prepare(compiler, &error) == CAIRN_OK && is_idle(worker->queue))
        compiler_warm_up(compiler);
    process_end_leave();
    process_end_register();
}

static void *work(void *user)
{
    struct worker *worker = user;
    if (worker->queue->warms_up)
        warm_up(worker);
    for (size_t count; (count = take_batch(worker)) > 0;) {
        process_end_enter();
        const struct job *first = (const struct job *)(const void *)worker->batch[0];
        compiler_run(worker->compilers[first->tier], worker->batch, count);
        process_end_leave();
        process_end_register();
    }
    return NULL;
}

/* ---- Creating and destroying ---- */

/* Sets the options of both engines. */
static void choose_engines(const struct cairn_queue_options *options,
                           struct cairn_engine_options engines[TIERS])
{
    const struct cairn_engine_options preset = cairn_engine_preset(CAIRN_TIER_QUICK);
    engines[CAIRN_TIER_FULL] = options->engine;
    engines[CAIRN_TIER_QUICK] = options->quick != NULL ? *options->quick : options->engine;
    if (options->quick != NULL)
        return;
    engines[CAIRN_TIER_QUICK].optimisation_level = preset.optimisation_level;
    engines[CAIRN_TIER_QUICK].enable_fast_isel = preset.enable_fast_isel;
    engines[CAIRN_TIER_QUICK].passes = preset.passes;
}

/* Starts a thread that blocks the signals that the host handles in its own threads. */
static enum cairn_status start(struct worker *worker, struct cairn_error *error)
{
    static const int unblocked[] = {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGTRAP, SIGABRT, SIGPROF};
    sigset_t blocked, before;
    sigfillset(&blocked);
    for (size_t i = 0; i < sizeof unblocked / sizeof *unblocked; i++)
        sigdelset(&blocked, unblocked[i]);
    pthread_sigmask(SIG_SETMASK, &blocked, &before);
    int reason = pthread_create(&worker->thread, NULL, work, worker);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (reason != 0)
        return error_set_system(error, reason, "cannot start a thread that compiles");
    worker->queue->started_count++;
    return CAIRN_OK;
}

static size_t size_of(uint32_t thread_count)
{
    return sizeof(cairn_queue) + thread_count * sizeof(struct worker);
}

static enum cairn_status create_worker(struct worker *worker, cairn_queue *queue,
                                       const struct cairn_engine_options *options,
                                       struct cairn_error *error)
{
    static const struct compiler_callbacks callbacks = {is_wanted, end};
    worker->queue = queue;
    worker->batch = memory_new(&queue->allocator, queue->batch_limit, sizeof *worker->batch);
    if (worker->batch == NULL)
        return error_set(error, CAIRN_ERROR_MEMORY, 0, "no memory for a batch of jobs");
    enum cairn_status status = CAIRN_OK;
    for (int i = 0; i < TIERS && status == CAIRN_OK; i++)
        status =
            compiler_create(queue->runtime, &options[i], &callbacks, &worker->compilers[i], error);
    return status;
}

static enum cairn_status create_workers(cairn_queue *queue,
                                        const struct cairn_engine_options *options,
                                        struct cairn_error *error)
{
    enum cairn_status status = CAIRN_OK;
    for (uint32_t i = 0; i < queue->thread_count && status == CAIRN_OK; i++)
        status = create_worker(&queue->workers[i], queue, options, error);
    for (uint32_t i = 0; i < queue->thread_count && status == CAIRN_OK; i++)
        status = start(&queue->workers[i], error);
    return status;
}

enum cairn_status cairn_queue_create(cairn_runtime *runtime,
                                     const struct cairn_queue_options *options, cairn_queue **queue,
                                     struct cairn_error *error)
{
    static const struct cairn_queue_options defaults;
    if (runtime == NULL || queue == NULL)
        return error_set(error, CAIRN_ERROR_ARGUMENT, 0, "cairn_queue_create: `%s` is NULL",
                         runtime == NULL ? "runtime" : "queue");
    if (options == NULL)
        options = &defaults;
    struct cairn_engine_options engines[TIERS];
    choose_engines(options, engines);
    enum cairn_status status = CAIRN_OK;
    for (int i = 0; i < TIERS && status == CAIRN_OK; i++)
        status = engine_check_options(&engines[i], error);
    if (status != CAIRN_OK)
        return status;
    process_end_watch_thread();
    process_end_register();
    const struct cairn_allocator *allocator = cairn_runtime_allocator(runtime);
    uint32_t thread_count = options->thread_count == 0 ? 1 : options->thread_count;
    cairn_queue *created = memory_new(allocator, 1, size_of(thread_count));
    if (created == NULL)
        return error_set(error, CAIRN_ERROR_MEMORY, 0, "no memory for a queue");
    created->allocator = *allocator;
    created->jobs.allocator = *allocator;
    created->kept_end = &created->kept;
    created->runtime = runtime;
    created->process = getpid();
    created->batch_limit = options->batch_limit == 0 ? BATCH_LIMIT_DEFAULT : options->batch_limit;
    if (options->engine.object != NULL)
        created->batch_limit = 1; /* an object for each job */
    if (created->batch_limit > BATCH_LIMIT_MAX)
        created->batch_limit = BATCH_LIMIT_MAX;
    created->job_limit = options->job_limit;
    created->byte_limit = options->byte_limit;
    created->warms_up = options->warms_up;
    created->result_count = options->result_count;
    created->thread_count = thread_count;
    pthread_mutex_init(&created->lock, NULL);
    pthread_cond_init(&created->changed, NULL);
    pthread_cond_init(&created->ended, NULL);
    cairn_runtime_retain(runtime);
    status = create_workers(created, engines, error);
    if (status == CAIRN_OK)
        *queue = created;
    else
        cairn_queue_destroy(created);
    return status;
}

/* Cancels the jobs that wait. Callbacks may add others meanwhile, which are refused. */
static void cancel_all(cairn_queue *queue)
{
    for (;;) {
        pthread_mutex_lock(&queue->lock);
        queue->is_closed = true;
        pthread_cond_broadcast(&queue->changed);
        struct job *job = job_at(jobs_first(&queue->jobs));
        if (job != NULL)
            cancel_waiting(queue, job);
        pthread_mutex_unlock(&queue->lock);
        if (job == NULL)
            return;
        finish(job, NULL, NULL);
    }
}

void cairn_queue_destroy(cairn_queue *queue)
{
    if (queue == NULL || queue->process != getpid())
        return;
    cancel_all(queue);
    if (process_is_ending())
        return;
    for (uint32_t i = 0; i < queue->started_count; i++)
        pthread_join(queue->workers[i].thread, NULL);
    for (uint32_t i = 0; i < queue->thread_count; i++) {
        for (int j = 0; j < TIERS; j++)
            compiler_destroy(queue->workers[i].compilers[j]);
        memory_free(&queue->allocator, queue->workers[i].batch,
                    queue->batch_limit * sizeof *queue->workers[i].batch);
    }
    for (struct kept *kept; (kept = take_kept(queue)) != NULL;)
        memory_free(&queue->allocator, kept, sizeof *kept);
    jobs_release(&queue->jobs);
    pthread_cond_destroy(&queue->ended);
    pthread_cond_destroy(&queue->changed);
    pthread_mutex_destroy(&queue->lock);
    cairn_runtime *runtime = queue->runtime;
    struct cairn_allocator allocator = queue->allocator;
    memory_free(&allocator, queue, size_of(queue->thread_count));
    cairn_runtime_destroy(runtime);
}

/* ---- Adding and cancelling ---- */

/* Adds a job to those that wait, if the limits allow it. */
static enum cairn_status add_locked(cairn_queue *queue, struct job *job, struct cairn_error *error)
{
    size_t bytes = job->task.job.bytes;
    if (queue->is_closed)
        return error_set(error, CAIRN_ERROR_STATE, 0, "the queue is being destroyed");
    if (queue->job_limit != 0 && queue->jobs.waiting_count >= queue->job_limit)
        return error_set(error, CAIRN_ERROR_FULL, queue->jobs.waiting_count,
                         "%zu jobs wait, and job_limit is %u", queue->jobs.waiting_count,
                         queue->job_limit);
    if (queue->byte_limit != 0 &&
        (bytes > queue->byte_limit || queue->bytes > queue->byte_limit - bytes))
        return error_set(error, CAIRN_ERROR_FULL, bytes,
                         "the queue's jobs have %zu bytes, this one has %zu, and byte_limit is %zu",
                         queue->bytes, bytes, queue->byte_limit);
    job->place.ticket = queue->last_ticket + 1;
    job->place.priority = job->task.job.priority;
    if (!jobs_add(&queue->jobs, &job->place))
        return error_set(error, CAIRN_ERROR_MEMORY, 0, "no memory for a job");
    queue->last_ticket++;
    queue->bytes += bytes;
    let_wait(queue, job);
    return CAIRN_OK;
}

/* Checks that a job has one of the three kinds of code, and its function's name. */
static enum cairn_status check_job(const struct cairn_queue_job *job, struct cairn_error *error)
{
    int kinds = (job->build != NULL) + (job->bitcode != NULL) + (job->object != NULL);
    if (job->function == NULL)
        return error_set(error, CAIRN_ERROR_ARGUMENT, 0,
                         "cairn_queue_add: `job->function` is NULL");
    if (kinds != 1)
        return error_set(error, CAIRN_ERROR_ARGUMENT, 0,
                         "the job for '%.80s' has %s of `build`, `bitcode` and `object`",
                         job->function, kinds == 0 ? "none" : "more than one");
    if ((job->bitcode != NULL && job->bitcode_size == 0) ||
        (job->object != NULL && job->object_size == 0))
        return error_set(error, CAIRN_ERROR_ARGUMENT, 0, "the job for '%.80s' has 0 bytes of code",
                         job->function);
    if (job->has_tiers && job->object != NULL)
        return error_set(error, CAIRN_ERROR_ARGUMENT, 0,
                         "the job for '%.80s' is an object, which has one version", job->function);
    if (job->until_full != NULL && !job->has_tiers)
        return error_set(error, CAIRN_ERROR_ARGUMENT, 0,
                         "the job for '%.80s' has until_full, and one version", job->function);
    return CAIRN_OK;
}

enum cairn_status cairn_queue_add(cairn_queue *queue, const struct cairn_queue_job *job,
                                  uint64_t *ticket, struct cairn_error *error)
{
    if (queue == NULL || job == NULL)
        return error_set(error, CAIRN_ERROR_ARGUMENT, 0, "cairn_queue_add: `%s` is NULL",
                         queue == NULL ? "queue" : "job");
    enum cairn_status status = check_job(job, error);
    if (status != CAIRN_OK)
        return status;
    if (queue->process != getpid())
        return error_set(error, CAIRN_ERROR_STATE, 0,
                         "the queue's threads are in the parent process: create another queue");
    process_end_watch_thread();
    struct job *added = create_job(queue, job);
    if (added == NULL)
        return error_set(error, CAIRN_ERROR_MEMORY, 0, "no memory for a job");
    pthread_mutex_lock(&queue->lock);
    status = add_locked(queue, added, error);
    /* With the lock held: the job's `done` may read it as soon as a thread has taken the job. */
    if (status == CAIRN_OK && ticket != NULL)
        *ticket = added->place.ticket;
    pthread_mutex_unlock(&queue->lock);
    if (status != CAIRN_OK)
        free_job(queue, added);
    return status;
}

bool cairn_queue_cancel(cairn_queue *queue, uint64_t ticket)
{
    if (queue == NULL || queue->process != getpid())
        return false;
    pthread_mutex_lock(&queue->lock);
    struct job *job = find(queue, ticket);
    bool waited = job != NULL && waits(job);
    bool is_cancelled = job != NULL && !job->is_ending;
    if (waited)
        cancel_waiting(queue, job);
    else if (is_cancelled)
        job->is_cancelled = true;
    pthread_mutex_unlock(&queue->lock);
    if (waited)
        finish(job, NULL, NULL);
    return is_cancelled;
}

bool cairn_queue_raise(cairn_queue *queue, uint64_t ticket, int32_t priority)
{
    if (queue == NULL || queue->process != getpid())
        return false;
    pthread_mutex_lock(&queue->lock);
    struct job *job = find(queue, ticket);
    bool waited = job != NULL && waits(job);
    if (waited && priority > job->place.priority)
        jobs_raise(&queue->jobs, &job->place, priority);
    pthread_mutex_unlock(&queue->lock);
    return waited;
}

/* ---- Results ---- */

void cairn_queue_wait(cairn_queue *queue, uint64_t ticket)
{
    if (queue == NULL || queue->process != getpid())
        return;
    pthread_mutex_lock(&queue->lock);
    while (find(queue, ticket) != NULL)
        pthread_cond_wait(&queue->ended, &queue->lock);
    pthread_mutex_unlock(&queue->lock);
}

bool cairn_queue_take(cairn_queue *queue, struct cairn_queue_result *result,
                      struct cairn_error *error)
{
    if (queue == NULL || result == NULL || error == NULL || queue->process != getpid())
        return false;
    pthread_mutex_lock(&queue->lock);
    struct kept *kept = take_kept(queue);
    if (kept != NULL)
        count_results(queue, UINT32_MAX);
    pthread_mutex_unlock(&queue->lock);
    if (kept == NULL)
        return false;
    *error = kept->error;
    *result = kept->result;
    result->error = error;
    memory_free(&queue->allocator, kept, sizeof *kept);
    return true;
}
