#include "wake/threads.h"

#include <errno.h>
#include <limits.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "lib/output.h"
#include "lib/stop.h"
#include "lib/thread.h"
#include "lib/ticks.h"

enum {
    AT_BARRIER = 3,             /* both threads and the main one */
    STEP_MS = 1,
    GRACE_MS = 1000,            /* for messages under way when the last was sent; a loaded machine takes its time */
    GRACE_STOPPED_MS = 50,
    STAMP_ROUNDS = 2000,
    STAMP_LIMIT_MS = 100,
};

static const char *const names[ENDS] = {"sender", "receiver"};
static const char *const thread_names[ENDS] = {"wake-sender", "wake-receiver"};

int wake_thread_settle(const char *name, unsigned cpu, int fifo_priority)
{
    const char *step;
    int rc = thread_settle(cpu, fifo_priority, &step);
    /* One line, where neither thread can. */
    static atomic_bool is_said;
    if (rc && !atomic_exchange(&is_said, true))
        (void)print_error(EXIT_FAILED, "on CPU %u the %s cannot %s: %s", cpu, name, step, strerror(-rc));
    return rc ? EXIT_FAILED : EXIT_OK;
}

static void prepare(struct wake_thread *self)
{
    struct wake_threads *threads = self->threads;
    atomic_store(&self->tid, (pid_t)syscall(SYS_gettid));
    self->status = wake_thread_settle(names[self->side], self->cpu, threads->fifo_priority);
    /* A sleep ends when asked, not up to 50 us later. */
    (void)prctl(PR_SET_TIMERSLACK, 1UL);
    thread_use_local_memory();
    if (self->side == RECEIVER) {
        threads->timer_slack_ns = (uint64_t)prctl(PR_GET_TIMERSLACK);
        exchange_touch_receiving(threads->exchange);
    } else {
        exchange_touch_sending(threads->exchange);
    }
}

static void put_stamp(struct clock_stamp *stamp, uint64_t round)
{
    stamp->ticks = ticks_now();
    atomic_store_explicit(&stamp->turn, round, memory_order_release);
}

static void compare_clocks(struct wake_thread *self)
{
    struct wake_thread *other = &self->threads->ends[!self->side];
    uint64_t limit = ticks_now() + (uint64_t)((double)STAMP_LIMIT_MS * 1e6 * self->threads->exchange->ticks_per_ns);
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
    struct wake_thread *self = argument;
    struct wake_threads *threads = self->threads;
    prepare(self);
    /* Only now: from here on nothing is allocated, and the tests know these threads by their names. */
    (void)prctl(PR_SET_NAME, thread_names[self->side]);
    (void)pthread_barrier_wait(&threads->barrier);
    if (self->cpu != threads->ends[!self->side].cpu)
        compare_clocks(self);
    (void)pthread_barrier_wait(&threads->barrier);
    (void)pthread_barrier_wait(&threads->barrier);
    if (self->side == RECEIVER)
        exchange_receive_all(threads->exchange);
    else
        exchange_send_all(threads->exchange);
    (void)sem_post(&self->is_over);
    (void)pthread_barrier_wait(&threads->barrier);
    return NULL;
}

static int start(struct wake_threads *threads, unsigned side, unsigned cpu)
{
    struct wake_thread *thread = &threads->ends[side];
    *thread = (struct wake_thread){.threads = threads, .side = side, .cpu = cpu};
    return sem_init(&thread->is_over, 0, 0) ? -errno : thread_start(&thread->thread, thread_main, thread);
}

int wake_threads_start(struct wake_threads *threads, struct exchange *x, const unsigned cpus[ENDS], int fifo_priority)
{
    *threads = (struct wake_threads){.exchange = x, .fifo_priority = fifo_priority};
    int rc = -pthread_barrier_init(&threads->barrier, NULL, AT_BARRIER);
    for (unsigned side = SENDER; side < ENDS && !rc; side++)
        rc = start(threads, side, cpus[side]);
    /* A thread that waits at the barrier ends with the process. */
    if (rc)
        return print_error(EXIT_FAILED, "cannot start a thread: %s", strerror(-rc));
    (void)pthread_barrier_wait(&threads->barrier);
    return threads->ends[SENDER].status ? threads->ends[SENDER].status : threads->ends[RECEIVER].status;
}

struct clock_offset wake_threads_compare_clocks(struct wake_threads *threads)
{
    const struct wake_thread *ends = threads->ends;
    (void)pthread_barrier_wait(&threads->barrier);
    int64_t to_sender = ends[SENDER].nearest_ticks;
    int64_t to_receiver = ends[RECEIVER].nearest_ticks;
    bool is_known = ends[SENDER].cpu != ends[RECEIVER].cpu && to_sender != INT64_MAX && to_receiver != INT64_MAX;
    /* A stamp cannot arrive before it was sent: receiver - sender is at most what the receiver saw, and at least minus the rest. */
    return (struct clock_offset){is_known, -to_sender, to_receiver};
}

/* For how long a receiver may wait once the sender is over. A timer has none, and ends by itself. */
static int patience_ms(const struct exchange *x)
{
    if (stop_is_asked())
        return GRACE_STOPPED_MS;
    if (exchange_is_of_a_timer(x))
        return INT_MAX;
    return x->sending.has_no_napi || x->sending.error ? 0 : GRACE_MS;
}

/* What a receiver has used that still waits: the rest is as it was. */
static void note_usage(struct wake_thread *receiver, struct receiving *r)
{
    clockid_t clock;
    struct timespec t = {0};
    r->last = r->first;
    r->last.ticks = ticks_now();
    if (pthread_getcpuclockid(receiver->thread, &clock) == 0 && clock_gettime(clock, &t) == 0)
        r->last.cpu_ns = (uint64_t)t.tv_sec * UINT64_C(1000000000) + (uint64_t)t.tv_nsec;
}

/* By short sleeps: the measuring is over, unless messages were lost; a timer is measured meanwhile, on another CPU. */
bool wake_threads_exchange(struct wake_threads *threads)
{
    struct exchange *x = threads->exchange;
    struct wake_thread *receiver = &threads->ends[RECEIVER];
    struct timespec step = {.tv_nsec = STEP_MS * 1000000L};
    (void)pthread_barrier_wait(&threads->barrier);
    while (sem_wait(&threads->ends[SENDER].is_over) && errno == EINTR)
        continue;
    for (int ms = 0; sem_trywait(&receiver->is_over); ms += STEP_MS) {
        if (ms >= patience_ms(x)) {
            note_usage(receiver, &x->receiving);
            return false;
        }
        (void)clock_nanosleep(CLOCK_MONOTONIC, 0, &step, NULL);
    }
    return true;
}

void wake_threads_join(struct wake_threads *threads)
{
    (void)pthread_barrier_wait(&threads->barrier);
    (void)pthread_join(threads->ends[SENDER].thread, NULL);
    (void)pthread_join(threads->ends[RECEIVER].thread, NULL);
}
