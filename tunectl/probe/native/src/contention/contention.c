#include "contention/run.h"

#include <linux/futex.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "lib/document.h"
#include "lib/options.h"
#include "lib/thread.h"
#include "lib/ticks.h"

enum { LEAD_MS = 20, LEAST_BYTES = 64, PAGE = 4096, LOOK_TURNS = 4, STAMP_ARRAYS = 4, FURTHER_PAUSE_US = 50 };

const struct command contention_command = {
    .name = "contention",
    .experiment = OF_CONTENTION,
    .about =
        "contention: what a lock and an allocator cost two threads that share them, step by step. The result is a JSON document of what\n"
        "was counted (schema tunectl.probe.contention.raw/1); `tunectl probe contention` chooses CPUs and cases, and makes figures of it.\n",
    .holds = "what was counted, in ticks of the clock; each value and how often it came, in turns. `tunectl probe contention` makes "
             "percentiles and warnings of it",
};

/* ---- buffers */

/* NULL: all are out. */
static void *pool_take(struct pool *pool)
{
    if (pool->taken - atomic_load_explicit(&pool->given, memory_order_acquire) == POOL_BUFFERS)
        return NULL;
    return pool->memory + pool->taken++ % POOL_BUFFERS * pool->bytes;
}

static void *take(struct contention_run *run, struct pool *pool, size_t bytes)
{
    bool is_malloc = run->pair.options->buffers == FROM_MALLOC;
    unsigned char *buffer;
    while (!(buffer = is_malloc ? malloc(bytes) : pool_take(pool)))
        if (is_malloc || stop_is_asked())
            return NULL;
    /* What malloc has of the kernel is memory once it is written to. */
    for (size_t at = 0; at < bytes; at += PAGE)
        ((volatile unsigned char *)buffer)[at] = 1;
    return buffer;
}

static void give(const struct contention_run *run, struct pool *pool, void *buffer)
{
    if (run->pair.options->buffers == FROM_MALLOC)
        free(buffer);
    else
        atomic_store_explicit(&pool->given, atomic_load_explicit(&pool->given, memory_order_relaxed) + 1, memory_order_release);
}

static size_t draw_bytes(const struct contention_run *run, uint64_t *seed)
{
    *seed = *seed * UINT64_C(6364136223846793005) + 1;
    return LEAST_BYTES + (size_t)(*seed >> 33) % (run->pair.options->buffer_bytes - LEAST_BYTES + 1);
}

/* ---- the hand-over */

static void futex(_Atomic uint32_t *word, int operation, uint32_t value)
{
    (void)syscall(SYS_futex, word, operation | FUTEX_PRIVATE_FLAG, value, NULL, NULL, 0);
}

/* False: it is full. */
static bool put(struct queue *q, void *buffer)
{
    size_t n = atomic_load_explicit(&q->put, memory_order_relaxed);
    if (n - atomic_load_explicit(&q->had, memory_order_acquire) == SLOTS)
        return false;
    q->slots[n % SLOTS] = buffer;
    atomic_store(&q->put, n + 1);
    return true;
}

/* NULL: it is empty. */
static void *get(struct queue *q)
{
    size_t n = atomic_load_explicit(&q->had, memory_order_relaxed);
    if (atomic_load(&q->put) == n)
        return NULL;
    void *buffer = q->slots[n % SLOTS];
    atomic_store_explicit(&q->had, n + 1, memory_order_release);
    return buffer;
}

static bool hand_over(struct contention_run *run, void *buffer)
{
    struct queue *q = &run->queue;
    bool is_locked = run->pair.options->hand_over == BY_MUTEX;
    for (bool is_put = false; !is_put;) {
        if (stop_is_asked())
            return false;
        if (is_locked)
            (void)pthread_mutex_lock(&q->mutex);
        is_put = put(q, buffer);
        if (is_locked)
            (void)pthread_mutex_unlock(&q->mutex);
    }
    if (run->pair.options->hand_over == BY_FUTEX && atomic_exchange(&q->is_asleep, 0))
        futex(&q->is_asleep, FUTEX_WAKE, 1);
    return true;
}

/* Of a queue that others may have locked. A look costs the sender the lock: between two the receiver does something else. */
static void *get_locked(struct queue *q)
{
    (void)pthread_mutex_lock(&q->mutex);
    void *buffer = get(q);
    (void)pthread_mutex_unlock(&q->mutex);
    if (!buffer)
        chain_run(LOOK_TURNS);
    return buffer;
}

/* Whoever puts a buffer sees that one sleeps, or the one that is about to sleep sees the buffer. */
static void sleep_for_one(struct contention_run *run)
{
    struct queue *q = &run->queue;
    atomic_store(&q->is_asleep, 1);
    if (atomic_load(&q->put) == atomic_load(&q->had) && !atomic_load(&run->is_over))
        futex(&q->is_asleep, FUTEX_WAIT, 1);
    atomic_store(&q->is_asleep, 0);
}

/* NULL: nothing more comes. */
static void *wait_for_one(struct contention_run *run)
{
    enum contention_hand_over by = run->pair.options->hand_over;
    for (;;) {
        bool is_over = atomic_load(&run->is_over);
        void *buffer = by == BY_MUTEX ? get_locked(&run->queue) : get(&run->queue);
        if (buffer || is_over)
            return buffer;
        if (by == BY_FUTEX)
            sleep_for_one(run);
    }
}

/* ---- threads */

static uint64_t due(const struct contention_run *run, size_t i)
{
    return run->start_ticks + i * run->period_ticks;
}

static void send_all(void *context)
{
    struct contention_run *run = context;
    struct usage before = usage_now();
    uint64_t seed = 1;
    size_t i = 0;
    for (; i < run->buffers && !stop_is_asked(); i++) {
        size_t bytes = draw_bytes(run, &seed);
        if (i == CONTENTION_WARM_UPS)
            before = usage_now();
        while (ticks_now() < due(run, i) && !stop_is_asked())
            continue;
        run->stamps.begun[i] = ticks_now();
        void *buffer = take(run, &run->pool, bytes);
        run->stamps.taken[i] = ticks_now();
        if (!buffer || !hand_over(run, buffer))
            break;
    }
    run->used[SENDER] = usage_since(&before);
    atomic_store(&run->sent, i);
    atomic_store(&run->is_over, true);
    atomic_store(&run->queue.is_asleep, 0);
    futex(&run->queue.is_asleep, FUTEX_WAKE, 1);
}

static void receive_all(void *context)
{
    struct contention_run *run = context;
    struct usage before = usage_now();
    void *held[HELD] = {0};
    void *buffer;
    size_t i = 0;
    for (; (buffer = wait_for_one(run)); i++) {
        (void)*(volatile unsigned char *)buffer;
        run->stamps.had[i] = ticks_after_loads();
        void *oldest = held[i % HELD];
        held[i % HELD] = buffer;
        if (i == CONTENTION_WARM_UPS)
            before = usage_now();
        if (!oldest)
            continue;
        uint64_t start = ticks_now();
        give(run, &run->pool, oldest);
        run->stamps.giving[i] = ticks_now() - start;
    }
    run->used[RECEIVER] = usage_since(&before);
    atomic_store(&run->arrived, i);
}

/* One of --threads beyond the two: takes buffers of the same kind and gives them back, from a pool of its own. */
static void *take_and_give(void *context)
{
    struct contention_run *run = context;
    struct pool own = {.memory = memory_map(POOL_BUFFERS * run->pool.bytes), .bytes = run->pool.bytes};
    void *held[HELD] = {0};
    uint64_t seed = ticks_now();
    for (size_t i = 0; own.memory && !atomic_load(&run->is_over); i = (i + 1) % HELD) {
        if (held[i])
            give(run, &own, held[i]);
        held[i] = take(run, &own, draw_bytes(run, &seed));
        if (!i)
            sleep_ns(FURTHER_PAUSE_US * 1000);
    }
    return NULL;
}

static void touch_pool(void *context)
{
    struct contention_run *run = context;
    memset(run->pool.memory, 0, POOL_BUFFERS * run->pool.bytes);
    memset(run->stamps.begun, 0, 2 * run->buffers * sizeof(uint64_t));
}

static void touch_stamps(void *context)
{
    struct contention_run *run = context;
    memset(run->stamps.had, 0, 2 * run->buffers * sizeof(uint64_t));
}

/* ---- the run */

static bool get_memory(struct contention_run *run)
{
    const struct options *o = run->pair.options;
    run->buffers = CONTENTION_WARM_UPS + (size_t)(o->duration_s * (double)o->rate + 0.5);
    run->period_ticks = (uint64_t)(run->pair.clock.initial.hz / (double)o->rate);
    run->pool.bytes = o->buffer_bytes;
    run->pool.memory = memory_map(POOL_BUFFERS * run->pool.bytes);
    run->stamps.begun = memory_map(STAMP_ARRAYS * run->buffers * sizeof(uint64_t));
    run->stamps.taken = run->stamps.begun + run->buffers;
    run->stamps.had = run->stamps.taken + run->buffers;
    run->stamps.giving = run->stamps.had + run->buffers;
    return run->pool.memory && run->stamps.begun && pthread_mutex_init(&run->queue.mutex, NULL) == 0;
}

static int measure(void *context)
{
    struct contention_run *run = context;
    struct pair *pair = &run->pair;
    if (pair->options->threads > ENDS && cpus_count(&pair->housekeeping) == 0) {
        (void)snprintf(pair->reason, sizeof(pair->reason), "no CPU is left for more threads than two");
        return EXIT_OK;
    }
    if (!get_memory(run))
        return print_error(EXIT_FAILED, "out of memory (a lower --rate or a shorter --duration needs less)");
    int status = pair_start(pair);
    if (status)
        return status;
    /* They are where this thread is: off the measured CPUs. They end with the process. */
    pthread_t thread;
    int rc = 0;
    for (unsigned n = ENDS; n < pair->options->threads && !rc; n++)
        rc = thread_start(&thread, take_and_give, run);
    if (rc)
        return print_error(EXIT_FAILED, "cannot start a thread: %s", strerror(-rc));
    run->start_ticks = ticks_now() + (uint64_t)((double)LEAD_MS * 1e6 * pair->ticks_per_ns);
    bool is_over = pair_work(pair, NULL);
    pair->is_interrupted = stop_is_asked();
    size_t counted = atomic_load(&run->sent) > CONTENTION_WARM_UPS ? atomic_load(&run->sent) - CONTENTION_WARM_UPS : 0;
    pair->duration_s = (double)(counted * run->period_ticks) / pair->clock.initial.hz;
    pair_end(pair, is_over);
    return is_over ? EXIT_OK : print_error(EXIT_FAILED, "the receiver did not end within two seconds: nothing was measured");
}

static int check(void *context)
{
    struct pair *pair = &((struct contention_run *)context)->pair;
    const struct options *o = pair->options;
    if (o->duration_s * (double)o->rate > CONTENTION_MOST - CONTENTION_WARM_UPS)
        return print_error(EXIT_USAGE, "--rate and --duration: at most %d buffers", CONTENTION_MOST - CONTENTION_WARM_UPS);
    int status = pair_choose(pair);
    if (!status && cpus_count(&pair->cpus) < ENDS)
        return print_error(EXIT_USAGE, "--cpus: the sender spins, so the receiver needs another CPU than %u", pair->ends[SENDER].cpu);
    return status;
}

/* ---- the document */

enum difference { TAKING, HANDING, GIVING, WHOLE, DIFFERENCES };

static const char *const names[DIFFERENCES] = {"taking", "handing", "giving", "whole"};

struct differences {
    const struct contention_run *run;
    enum difference which;
};

static bool take_difference(const void *context, size_t i, int64_t *value)
{
    const struct differences *of = context;
    const struct contention_stamps *s = &of->run->stamps;
    const uint64_t values[DIFFERENCES] = {s->taken[i] - s->begun[i], s->had[i] - s->taken[i], s->giving[i], s->had[i] - due(of->run, i)};
    *value = (int64_t)values[of->which];
    return true;
}

static void write_asked(struct json *j, const void *context)
{
    const struct options *o = ((const struct contention_run *)context)->pair.options;
    json_string(j, "buffers", (const char *const[]){"malloc", "pool"}[o->buffers]);
    json_string(j, "hand_over", (const char *const[]){"mutex", "futex", "ring"}[o->hand_over]);
    json_counts(j, {"threads", o->threads}, {"bytes", o->buffer_bytes}, {"rate", o->rate});
}

static void write_measured(struct json *j, void *context)
{
    const struct contention_run *run = context;
    struct differences of = {.run = run};
    size_t end = atomic_load(&run->arrived);
    size_t from = end < CONTENTION_WARM_UPS ? end : CONTENTION_WARM_UPS;
    uint64_t own = run->pair.options->buffers == FROM_MALLOC ? end - from : 0;
    json_counts(j, {"sent", end - from}, {"allocations", own});
    for (; of.which < DIFFERENCES; of.which++)
        values_write(j, names[of.which], from, end, take_difference, &of);
    json_open(j, "ends", '[');
    for (const struct usage *used = run->used; used < run->used + ENDS; used++) {
        json_open(j, NULL, '{');
        json_counts(j, {"cpu_ns", used->cpu_ns}, {"ticks", used->ticks}, {"preemptions", used->preemptions},
                    {"sleeps", used->voluntary_switches}, {"page_faults", used->minor_faults + used->major_faults});
        json_close(j, '}');
    }
    json_close(j, ']');
}

static struct contention_run the_run;

const struct pair_experiment contention_experiment = {
    .pair = &the_run.pair,
    .run = &the_run,
    .command = &contention_command,
    .roles = &pair_sender_and_receiver,
    .prepare = {touch_pool, touch_stamps},
    .work = {send_all, receive_all},
    .check = check,
    .measure = measure,
    .write_asked = write_asked,
    .write_measured = write_measured,
};
