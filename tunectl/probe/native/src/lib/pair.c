#include "lib/pair.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "lib/document.h"
#include "lib/output.h"
#include "lib/stop.h"
#include "lib/ticks.h"

enum {
    STAMP_ROUNDS = 2000,
    STAMP_LIMIT_MS = 100,
    STEP_MS = 1,
};

const struct pair_roles pair_sender_and_receiver = {ENDS, {"sender", "receiver"}, "the sender's CPU and the receiver's, like 2,3"};

/* As many numbers as there are ends, with commas between them. */
static bool read_cpus(struct pair *pair, const char *text)
{
    for (size_t i = 0, n = pair->roles->n; i < n; i++) {
        int used = 0;
        if (sscanf(text, "%5u%n", &pair->ends[i].cpu, &used) != 1 || text[used] != (i + 1 < n ? ',' : '\0'))
            return false;
        text += used + 1;
    }
    return true;
}

/* The last of them; where they are too few, the first is shared. */
static void take_last(struct pair *pair, const struct cpus *usable)
{
    for (size_t i = 0; i < pair->roles->n; i++)
        pair->ends[i].cpu = cpus_next(usable, 0);
    for (unsigned cpu = cpus_next(usable, pair->ends[0].cpu + 1); cpu < CPU_LIMIT; cpu = cpus_next(usable, cpu + 1)) {
        for (size_t i = 1; i < pair->roles->n; i++)
            pair->ends[i - 1].cpu = pair->ends[i].cpu;
        pair->ends[pair->roles->n - 1].cpu = cpu;
    }
}

int pair_choose(struct pair *pair, const char *text, const struct host_facts *facts)
{
    struct cpus allowed = cpus_allowed(0);
    struct pair_thread *ends = pair->ends;
    if (!pair->roles)
        pair->roles = &pair_sender_and_receiver;
    if (text && !read_cpus(pair, text))
        return print_error(EXIT_USAGE, "--cpus %s: expected %s", text, pair->roles->expected);
    if (!text)
        take_last(pair, cpus_count(&facts->isolated) ? &facts->isolated : &allowed);
    for (size_t i = 0; i < pair->roles->n; i++) {
        if (!cpus_have(&facts->online, ends[i].cpu))
            return print_error(EXIT_USAGE, "CPU %u is not online on this host", ends[i].cpu);
        cpus_add(&pair->cpus, ends[i].cpu);
    }
    return EXIT_OK;
}

void pair_leave_cpus(struct pair *pair, const struct host_facts *facts)
{
    pair->housekeeping = housekeeping_move(facts, &pair->cpus);
    if (cpus_count(&pair->housekeeping) == 0)
        (void)thread_pin(pair->ends[SENDER].cpu);
}

int pair_settle(const char *what, unsigned cpu, int fifo_priority)
{
    const char *step;
    int rc = thread_settle(cpu, fifo_priority, &step);
    /* One line, where neither thread can. */
    static atomic_bool is_said;
    if (rc && !atomic_exchange(&is_said, true))
        (void)print_error(EXIT_FAILED, "on CPU %u the %s cannot %s: %s", cpu, what, step, strerror(-rc));
    return rc ? EXIT_FAILED : EXIT_OK;
}

int pair_reflector_settle(const struct pair *pair, const char *name, int fifo_priority)
{
    int status = pair_settle("reflector", pair->ends[RECEIVER].cpu, fifo_priority);
    (void)prctl(PR_SET_NAME, name);
    (void)mlockall(MCL_CURRENT);
    return status;
}

int pair_reflector_say_ready(void)
{
    struct clock_span clock;
    clock_span_begin(&clock);
    (void)printf("{\"hz\": %.0f}\n", clock.initial.hz);
    return fflush(stdout) ? print_error(EXIT_FAILED, "cannot write standard output: %s", strerror(errno)) : EXIT_OK;
}

static void prepare(struct pair_thread *self)
{
    struct pair *pair = self->pair;
    atomic_store(&self->tid, (pid_t)syscall(SYS_gettid));
    self->status = pair_settle(pair->roles->names[self->side], self->cpu, pair->fifo_priority);
    /* A sleep ends when asked, not up to 50 us later. */
    (void)prctl(PR_SET_TIMERSLACK, 1UL);
    if (self->side == RECEIVER)
        pair->timer_slack_ns = (uint64_t)prctl(PR_GET_TIMERSLACK);
    thread_use_local_memory();
    pair->prepare[self->side](pair->context);
}

static void put_stamp(struct clock_stamp *stamp, uint64_t round)
{
    stamp->ticks = ticks_now();
    atomic_store_explicit(&stamp->turn, round, memory_order_release);
}

static void compare_clocks(struct pair_thread *self)
{
    struct pair_thread *other = &self->pair->ends[!self->side];
    uint64_t limit = ticks_now() + (uint64_t)((double)STAMP_LIMIT_MS * 1e6 * self->pair->ticks_per_ns);
    self->nearest_ticks = INT64_MAX;
    for (uint64_t round = 1; round <= STAMP_ROUNDS; round++) {
        if (self->side == SENDER)
            put_stamp(&self->stamp, round);
        while (atomic_load_explicit(&other->stamp.turn, memory_order_acquire) < round)
            if (ticks_now() > limit)
                return;
        int64_t difference = (int64_t)(ticks_after_loads() - other->stamp.ticks);
        if (difference < self->nearest_ticks)
            self->nearest_ticks = difference;
        if (self->side == RECEIVER)
            put_stamp(&self->stamp, round);
    }
}

static void *thread_main(void *argument)
{
    struct pair_thread *self = argument;
    struct pair *pair = self->pair;
    char name[16];
    prepare(self);
    /* Only now: from here on nothing is allocated, and the tests know these threads by their names. */
    (void)snprintf(name, sizeof(name), "%s-%s", pair->name, pair->roles->names[self->side]);
    (void)prctl(PR_SET_NAME, name);
    (void)pthread_barrier_wait(&pair->barrier);
    if (pair->roles->n == ENDS && self->cpu != pair->ends[!self->side].cpu)
        compare_clocks(self);
    (void)pthread_barrier_wait(&pair->barrier);
    (void)pthread_barrier_wait(&pair->barrier);
    pair->work[self->side](pair->context);
    (void)sem_post(&self->is_over);
    (void)pthread_barrier_wait(&pair->barrier);
    return NULL;
}

static int start(struct pair *pair, unsigned side)
{
    struct pair_thread *thread = &pair->ends[side];
    thread->pair = pair;
    thread->side = side;
    return sem_init(&thread->is_over, 0, 0) ? -ENOMEM : thread_start(&thread->thread, thread_main, thread);
}

static struct clock_offset offset_of(const struct pair *pair)
{
    const struct pair_thread *ends = pair->ends;
    if (pair->roles->n != ENDS)
        return (struct clock_offset){0};
    int64_t to_sender = ends[SENDER].nearest_ticks;
    int64_t to_receiver = ends[RECEIVER].nearest_ticks;
    bool is_known = ends[SENDER].cpu != ends[RECEIVER].cpu && to_sender != INT64_MAX && to_receiver != INT64_MAX;
    /* A stamp cannot arrive before it was sent: receiver - sender is at most what the receiver saw, and at least minus the rest. */
    return (struct clock_offset){is_known, -to_sender, to_receiver};
}

static void give_up(const struct task *task, void *context)
{
    const struct pair *pair = context;
    char name[TASK_TEXT_SIZE];
    for (size_t i = 0; i < pair->roles->n; i++)
        (void)cpus_pin(atomic_load(&pair->ends[i].tid), &pair->housekeeping);
    (void)print_error(EXIT_FAILED, "%s runs on CPU %u, which was left to it: nothing was measured", task_format(task, name),
                      task->cpu);
    _exit(EXIT_FAILED);
}

static void look(void *context)
{
    const struct pair *pair = context;
    pid_t tids[ENDS_MOST];
    for (size_t i = 0; i < pair->roles->n; i++)
        tids[i] = atomic_load(&pair->ends[i].tid);
    claims_poll(pair->claims, tids);
}

static void guard(struct pair *pair, const struct host_facts *facts)
{
    pair->claims = claims_new(&pair->cpus, &pair->housekeeping, pair->roles->n, facts, give_up, pair);
    if (!pair->claims)
        abort();
    claims_search(pair->claims);
    pair->watch = (struct watch){.look = look, .context = pair};
    watch_start(&pair->watch);
}

static int start_all(struct pair *pair)
{
    int rc = -pthread_barrier_init(&pair->barrier, NULL, (unsigned)pair->roles->n + 1);
    for (unsigned side = 0; side < pair->roles->n && !rc; side++)
        rc = start(pair, side);
    /* A thread that waits at the barrier ends with the process. */
    if (rc)
        return print_error(EXIT_FAILED, "cannot start a thread: %s", strerror(-rc));
    (void)pthread_barrier_wait(&pair->barrier);
    for (size_t i = 0; i < pair->roles->n; i++)
        if (pair->ends[i].status)
            return pair->ends[i].status;
    return EXIT_OK;
}

int pair_start(struct pair *pair, const struct host_facts *facts, bool intrudes)
{
    int status = start_all(pair);
    if (status)
        return status;
    /* The threads keep the signals blocked: this one, off the measured CPUs, takes them. */
    stop_listen();
    if (!intrudes && cpus_count(&pair->housekeeping) > 0)
        guard(pair, facts);
    pair->is_locked = mlockall(MCL_CURRENT) == 0;
    (void)pthread_barrier_wait(&pair->barrier);
    pair->offset = offset_of(pair);
    return EXIT_OK;
}

/* By short sleeps: the measuring is over, unless messages were lost. */
static bool work(struct pair *pair, int (*patience_ms)(const void *context))
{
    struct timespec step = timespec_of(STEP_MS * UINT64_C(1000000));
    (void)pthread_barrier_wait(&pair->barrier);
    while (sem_wait(&pair->ends[SENDER].is_over) && errno == EINTR)
        continue;
    int ms = 0;
    for (size_t i = 1; i < pair->roles->n; i++) {
        for (; sem_trywait(&pair->ends[i].is_over); ms += STEP_MS) {
            if (ms >= patience_ms(pair->context))
                return false;
            (void)clock_nanosleep(CLOCK_MONOTONIC, 0, &step, NULL);
        }
    }
    return true;
}

bool pair_work(struct pair *pair, int (*patience_ms)(const void *context))
{
    uint64_t before = account_throttled_us(getpid());
    bool is_over = work(pair, patience_ms);
    pair->throttled_us = account_throttled_us(getpid()) - before;
    return is_over;
}

void pair_end(struct pair *pair, bool is_over)
{
    if (pair->claims) {
        watch_stop(&pair->watch);
        claims_free(pair->claims);
    }
    if (!is_over)
        return;
    (void)pthread_barrier_wait(&pair->barrier);
    for (size_t i = 0; i < pair->roles->n; i++)
        (void)pthread_join(pair->ends[i].thread, NULL);
}

static void write_clock(struct json *j, const struct pair *pair, const struct clock_span *clock, const struct host_facts *facts)
{
    json_open(j, "clock", '{');
    document_write_clock(j, clock, facts);
    if (pair->offset.is_known)
        json_ints(j, "offset_ticks", (int64_t[]){pair->offset.least_ticks, pair->offset.most_ticks}, 2);
    json_close(j, '}');
}

void pair_write(struct json *j, const struct pair *pair, const struct clock_span *clock, const struct host_facts *facts)
{
    uint64_t cpus[ENDS_MOST];
    for (size_t i = 0; i < pair->roles->n; i++)
        cpus[i] = pair->ends[i].cpu;
    json_uints(j, "cpus", cpus, pair->roles->n);
    write_clock(j, pair, clock, facts);
    json_open(j, "facts", '{');
    json_bool(j, "shares_main", cpus_count(&pair->housekeeping) == 0);
    json_bool(j, "is_locked", pair->is_locked);
    json_uint(j, "user_hz", (uint64_t)sysconf(_SC_CLK_TCK));
    json_uint(j, "timer_slack_ns", pair->timer_slack_ns);
    json_open(j, "cpus", '[');
    for (size_t i = 0; i < pair->roles->n; i++) {
        json_open(j, NULL, '{');
        json_bool(j, "is_isolated", cpus_have(&facts->isolated, pair->ends[i].cpu));
        document_write_cpu(j, facts->root, pair->ends[i].cpu);
        json_close(j, '}');
    }
    json_close(j, ']');
    json_close(j, '}');
}
