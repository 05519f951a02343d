#include "lib/pair.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "lib/document.h"
#include "lib/thread.h"
#include "lib/ticks.h"

enum {
    STAMP_ROUNDS = 2000,
    STAMP_LIMIT_MS = 100,
    STEP_MS = 1,
    PATIENCE_MS = 2000,         /* for threads that share a CPU, and for what is under way; alone they end at once */
};

static const double SIMULATED_HZ = 1e9;

const struct pair_roles pair_sender_and_receiver = {ENDS, {"sender", "receiver"}, "the sender's CPU and the receiver's, like 2,3"};

static const struct pair_roles *roles_of(const struct pair *pair)
{
    return pair->experiment->roles;
}

/* As many numbers as there are ends, with commas between them. */
static bool read_cpus(struct pair *pair, const char *text)
{
    for (size_t i = 0, n = roles_of(pair)->n; i < n; i++) {
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
    for (size_t i = 0; i < roles_of(pair)->n; i++)
        pair->ends[i].cpu = cpus_next(usable, 0);
    for (unsigned cpu = cpus_next(usable, pair->ends[0].cpu + 1); cpu < CPU_LIMIT; cpu = cpus_next(usable, cpu + 1)) {
        for (size_t i = 1; i < roles_of(pair)->n; i++)
            pair->ends[i - 1].cpu = pair->ends[i].cpu;
        pair->ends[roles_of(pair)->n - 1].cpu = cpu;
    }
}

int pair_choose(struct pair *pair)
{
    const char *text = pair->options->cpus;
    const struct host_facts *facts = &pair->facts;
    struct cpus allowed = cpus_allowed(0);
    struct pair_thread *ends = pair->ends;
    if (text && !read_cpus(pair, text))
        return print_error(EXIT_USAGE, "--cpus %s: expected %s", text, roles_of(pair)->expected);
    if (!text)
        take_last(pair, cpus_count(&facts->isolated) ? &facts->isolated : &allowed);
    for (size_t i = 0; i < roles_of(pair)->n; i++) {
        if (!cpus_have(&facts->online, ends[i].cpu))
            return print_error(EXIT_USAGE, "CPU %u is not online on this host", ends[i].cpu);
        cpus_add(&pair->cpus, ends[i].cpu);
    }
    return pair->options->intrude ? EXIT_OK : claims_check();
}

void pair_cannot(struct pair *pair, const char *what, int rc)
{
    (void)snprintf(pair->reason, sizeof(pair->reason), "cannot %s: %s%s", what, strerror(-rc),
                   rc == -EMFILE ? " (ulimit -n)" : "");
}

/* The calling thread, `what`, to the CPU and its scheduling class. */
static int settle(const struct pair *pair, const char *what, unsigned cpu)
{
    const char *step;
    int rc = thread_settle(cpu, pair->options->fifo_priority, &step);
    /* One line, where neither thread can. */
    static atomic_bool is_said;
    if (rc && !atomic_exchange(&is_said, true))
        (void)print_error(EXIT_FAILED, "on CPU %u the %s cannot %s: %s", cpu, what, step, strerror(-rc));
    return rc ? EXIT_FAILED : EXIT_OK;
}

/* "wake-sender": the tests know these threads by their names. */
static void take_name(const struct pair *pair, const char *role)
{
    char name[16];
    (void)snprintf(name, sizeof(name), "%s-%s", pair->experiment->command->name, role);
    (void)prctl(PR_SET_NAME, name);
}

int pair_reflector_say_ready(const struct pair *pair)
{
    struct clock_span clock;
    int status = settle(pair, "reflector", pair->ends[RECEIVER].cpu);
    if (status)
        return status;
    take_name(pair, "reflector");
    (void)mlockall(MCL_CURRENT);
    clock_span_begin(&clock);
    (void)printf("{\"hz\": %.0f}\n", clock.initial.hz);
    return fflush(stdout) ? print_error(EXIT_FAILED, "cannot write standard output: %s", strerror(errno)) : EXIT_OK;
}

static void prepare(struct pair_thread *self)
{
    struct pair *pair = self->pair;
    atomic_store(&self->tid, (pid_t)syscall(SYS_gettid));
    self->status = settle(pair, roles_of(pair)->names[self->side], self->cpu);
    /* A sleep ends when asked, not up to 50 us later. */
    (void)prctl(PR_SET_TIMERSLACK, 1UL);
    if (self->side == RECEIVER)
        pair->timer_slack_ns = (uint64_t)prctl(PR_GET_TIMERSLACK);
    thread_use_local_memory();
    pair->experiment->prepare[self->side](pair->context);
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
    prepare(self);
    /* Only now: from here on nothing is allocated. */
    take_name(pair, roles_of(pair)->names[self->side]);
    (void)pthread_barrier_wait(&pair->barrier);
    if (roles_of(pair)->n == ENDS && self->cpu != pair->ends[!self->side].cpu)
        compare_clocks(self);
    (void)pthread_barrier_wait(&pair->barrier);
    (void)pthread_barrier_wait(&pair->barrier);
    pair->experiment->work[self->side](pair->context);
    (void)sem_post(&self->is_over);
    (void)pthread_barrier_wait(&pair->barrier);
    return NULL;
}

static struct clock_offset offset_of(const struct pair *pair)
{
    const struct pair_thread *ends = pair->ends;
    if (roles_of(pair)->n != ENDS)
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
    for (size_t i = 0; i < roles_of(pair)->n; i++)
        (void)cpus_pin(atomic_load(&pair->ends[i].tid), &pair->housekeeping);
    (void)print_error(EXIT_FAILED, "%s runs on CPU %u, which was left to it: nothing was measured", task_format(task, name),
                      task->cpu);
    _exit(EXIT_FAILED);
}

static void look(void *context)
{
    const struct pair *pair = context;
    pid_t tids[ENDS_MOST];
    for (size_t i = 0; i < roles_of(pair)->n; i++)
        tids[i] = atomic_load(&pair->ends[i].tid);
    claims_poll(pair->claims, tids);
}

static void guard(struct pair *pair)
{
    pair->claims = claims_new(&pair->cpus, &pair->housekeeping, roles_of(pair)->n, &pair->facts, give_up, pair);
    if (!pair->claims)
        abort();
    claims_search(pair->claims);
    pair->watch = (struct watch){.look = look, .context = pair};
    watch_start(&pair->watch);
}

static int start_all(struct pair *pair)
{
    int rc = -pthread_barrier_init(&pair->barrier, NULL, (unsigned)roles_of(pair)->n + 1);
    for (unsigned side = 0; side < roles_of(pair)->n && !rc; side++) {
        struct pair_thread *thread = &pair->ends[side];
        thread->pair = pair;
        thread->side = side;
        rc = sem_init(&thread->is_over, 0, 0) ? -ENOMEM : thread_start(&thread->thread, thread_main, thread);
    }
    /* A thread that waits at the barrier ends with the process. */
    if (rc)
        return print_error(EXIT_FAILED, "cannot start a thread: %s", strerror(-rc));
    (void)pthread_barrier_wait(&pair->barrier);
    for (size_t i = 0; i < roles_of(pair)->n; i++)
        if (pair->ends[i].status)
            return pair->ends[i].status;
    return EXIT_OK;
}

int pair_start(struct pair *pair)
{
    int status = start_all(pair);
    if (status)
        return status;
    /* The threads keep the signals blocked: this one, off the measured CPUs, takes them. */
    stop_listen();
    if (!pair->options->intrude && cpus_count(&pair->housekeeping) > 0)
        guard(pair);
    pair->is_locked = mlockall(MCL_CURRENT) == 0;
    (void)pthread_barrier_wait(&pair->barrier);
    pair->offset = offset_of(pair);
    return EXIT_OK;
}

/* By short sleeps: the measuring is over, unless messages were lost. */
static bool work(struct pair *pair, int (*patience_ms)(const void *context))
{
    (void)pthread_barrier_wait(&pair->barrier);
    while (sem_wait(&pair->ends[SENDER].is_over) && errno == EINTR)
        continue;
    int ms = 0;
    for (size_t i = 1; i < roles_of(pair)->n; i++) {
        for (; sem_trywait(&pair->ends[i].is_over); ms += STEP_MS) {
            if (ms >= (patience_ms ? patience_ms(pair->context) : PATIENCE_MS))
                return false;
            sleep_ns(STEP_MS * 1000000);
        }
    }
    return true;
}

static struct throttle throttle_now(const struct pair *pair)
{
    struct throttle throttle = throttle_read("", getpid());
    for (size_t i = 0; i < roles_of(pair)->n; i++)
        throttle_add_wait(&throttle, atomic_load(&pair->ends[i].tid));
    return throttle;
}

bool pair_work(struct pair *pair, int (*patience_ms)(const void *context))
{
    struct throttle before = throttle_now(pair);
    bool is_over = work(pair, patience_ms);
    struct throttle after = throttle_now(pair);
    pair->throttled_us = throttled_us(&before, &after);
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
    for (size_t i = 0; i < roles_of(pair)->n; i++)
        (void)pthread_join(pair->ends[i].thread, NULL);
}

static void write_facts(struct json *j, const struct pair *pair)
{
    uint64_t cpus[ENDS_MOST];
    for (size_t i = 0; i < roles_of(pair)->n; i++)
        cpus[i] = pair->ends[i].cpu;
    json_uints(j, "cpus", cpus, roles_of(pair)->n);
    json_open(j, "clock", '{');
    document_write_clock(j, &pair->clock, &pair->facts);
    if (pair->offset.is_known)
        json_ints(j, "offset_ticks", (int64_t[]){pair->offset.least_ticks, pair->offset.most_ticks}, 2);
    json_close(j, '}');
    json_open(j, "facts", '{');
    json_bool(j, "shares_main", cpus_count(&pair->housekeeping) == 0);
    json_bool(j, "is_locked", pair->is_locked);
    json_uint(j, "user_hz", (uint64_t)sysconf(_SC_CLK_TCK));
    json_uint(j, "timer_slack_ns", pair->timer_slack_ns);
    json_open(j, "cpus", '[');
    for (size_t i = 0; i < roles_of(pair)->n; i++) {
        json_open(j, NULL, '{');
        json_bool(j, "is_isolated", cpus_have(&pair->facts.isolated, pair->ends[i].cpu));
        document_write_cpu(j, pair->facts.root, pair->ends[i].cpu);
        json_close(j, '}');
    }
    json_close(j, ']');
    json_close(j, '}');
}

/* A simulation runs on no CPU and on no counter. */
static void write_simulated(struct json *j)
{
    json_uints(j, "cpus", NULL, 0);
    json_open(j, "clock", '{');
    json_string(j, "source", "simulated");
    json_real(j, "hz", SIMULATED_HZ, 3);
    json_close(j, '}');
    json_real(j, "facts", NAN, 0);
}

static void write_case(struct json *j, const struct pair *pair)
{
    const struct pair_experiment *e = pair->experiment;
    json_open(j, "cells", '[');
    json_open(j, NULL, '{');
    e->write_asked(j, pair->run);
    json_string(j, "reason", pair->reason);
    json_known(j, "throttled_us", pair->throttled_us);
    if (!pair->reason[0])
        e->write_measured(j, pair->run);
    json_close(j, '}');
    json_close(j, ']');
}

static int write_document(const struct pair *pair)
{
    struct json j = document_begin(pair->experiment->command, &pair->facts, pair->at_s);
    json_real(&j, "duration_s", pair->duration_s, 3);
    json_bool(&j, "interrupted", pair->is_interrupted);
    json_uint(&j, "fifo_priority", (uint64_t)pair->options->fifo_priority);
    if (pair->options->busy_poll_us)
        json_uint(&j, "busy_poll_us", pair->options->busy_poll_us);
    if (pair->experiment->write_run)
        pair->experiment->write_run(&j, pair->run);
    if (cpus_count(&pair->cpus) > 0)
        write_facts(&j, pair);
    else
        write_simulated(&j);
    write_case(&j, pair);
    return document_end(&j);
}

static int run_and_write(struct pair *pair)
{
    bool has_threads = cpus_count(&pair->cpus) > 0;
    pair->clock.initial.hz = SIMULATED_HZ;
    if (has_threads) {
        stop_init();
        pair->housekeeping = housekeeping_move(&pair->facts, &pair->cpus);
        if (cpus_count(&pair->housekeeping) == 0)
            (void)thread_pin(pair->ends[SENDER].cpu);
        clock_span_begin(&pair->clock);
    }
    pair->ticks_per_ns = pair->clock.initial.hz / 1e9;
    pair->at_s = time(NULL);
    int status = pair->experiment->measure(pair->run);
    if (has_threads)
        clock_span_end(&pair->clock);
    return status ? status : write_document(pair);
}

int pair_main(const struct pair_experiment *experiment, int argc, char **argv)
{
    struct pair *pair = experiment->pair;
    struct options options;
    int status = options_parse(experiment->command, &options, argc, argv);
    if (status)
        return status;
    pair->experiment = experiment;
    pair->options = &options;
    pair->run = pair->context = experiment->run;
    host_facts_init(&pair->facts, options.root);
    status = experiment->check(pair->run);
    if (!status)
        status = options.is_reflector ? experiment->reflect(pair->run) : run_and_write(pair);
    host_facts_deinit(&pair->facts);
    return status;
}
