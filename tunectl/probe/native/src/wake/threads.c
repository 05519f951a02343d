#include "wake/threads.h"

#include <errno.h>
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
    AT_BARRIER = 3,             /* at the barrier: both threads and the main one */
    STEP_MS = 1,
    GRACE_MS = 1000,            /* for messages under way when the last was sent; a loaded machine takes its time */
    GRACE_STOPPED_MS = 50,
    END_EVERY_MS = 10,
    FORCE_MS = 3000,
    STAMP_ROUNDS = 2000,
    STAMP_LIMIT_MS = 100,
};

static int fail(struct wake_thread *self, const char *step, int error)
{
    self->failed_step = step;
    self->error = error;
    return error;
}

static int prepare(struct wake_thread *self)
{
    struct exchange *x = self->threads->exchange;
    atomic_store(&self->tid, (pid_t)syscall(SYS_gettid));
    int rc = thread_pin(self->cpu);
    if (rc)
        return fail(self, THREAD_CANNOT_PIN, rc);
    /* The sender's sleep ends when asked, not up to 50 us later. */
    (void)prctl(PR_SET_TIMERSLACK, 1UL);
    thread_use_local_memory();
    if (self->is_receiver)
        exchange_touch_receiving(x, x->capacity);
    else
        exchange_touch_sending(x, x->capacity);
    rc = thread_use_fifo(self->threads->fifo_priority);
    if (rc)
        return fail(self, THREAD_CANNOT_FIFO, rc);
    return 0;
}

static void compare_clocks(struct wake_threads *threads, unsigned side)
{
    uint64_t limit = ticks_now() + (uint64_t)((double)STAMP_LIMIT_MS * 1e6 * threads->exchange->ticks_per_ns);
    struct clock_stamp *own = &threads->stamps[side];
    struct clock_stamp *other = &threads->stamps[1 - side];
    int64_t nearest = INT64_MAX;
    for (uint64_t round = 1; round <= STAMP_ROUNDS; round++) {
        if (side == 0) {
            own->ticks = ticks_now();
            atomic_store_explicit(&own->turn, round, memory_order_release);
        }
        while (atomic_load_explicit(&other->turn, memory_order_acquire) < round)
            if (ticks_now() > limit)
                goto out;
        int64_t difference = (int64_t)(ticks_after_loads() - other->ticks);
        if (difference < nearest)
            nearest = difference;
        if (side == 1) {
            own->ticks = ticks_now();
            atomic_store_explicit(&own->turn, round, memory_order_release);
        }
    }
out:
    threads->nearest_ticks[side] = nearest;
}

static void *thread_main(void *argument)
{
    struct wake_thread *self = argument;
    struct wake_threads *threads = self->threads;
    (void)prepare(self);
    /* Only now: from here on nothing is allocated, and the tests know these threads by their names. */
    (void)prctl(PR_SET_NAME, self->is_receiver ? "wake-receiver" : "wake-sender");
    (void)pthread_barrier_wait(&threads->barrier);
    for (;;) {
        (void)pthread_barrier_wait(&threads->barrier);
        if (threads->task == TASK_LEAVE)
            return NULL;
        if (threads->task == TASK_COMPARE_CLOCKS)
            compare_clocks(threads, self->is_receiver);
        else if (self->is_receiver)
            exchange_receive_all(threads->exchange);
        else
            exchange_send_all(threads->exchange);
        (void)sem_post(self->is_receiver ? &threads->receiver_is_over : &threads->sender_is_over);
    }
}

static void begin(struct wake_threads *threads, enum wake_task task)
{
    threads->task = task;
    (void)pthread_barrier_wait(&threads->barrier);
}

static void wait_for(sem_t *over)
{
    while (sem_wait(over) && errno == EINTR)
        continue;
}

static int report(const struct wake_thread *self)
{
    if (!self->error)
        return EXIT_OK;
    return print_error(EXIT_FAILED, "on CPU %u the %s cannot %s: %s", self->cpu, self->is_receiver ? "receiver" : "sender",
                       self->failed_step, strerror(-self->error));
}

int wake_threads_start(struct wake_threads *threads, struct exchange *x, unsigned sender_cpu, unsigned receiver_cpu,
                       int fifo_priority)
{
    *threads = (struct wake_threads){.exchange = x, .fifo_priority = fifo_priority};
    threads->sender = (struct wake_thread){.threads = threads, .cpu = sender_cpu};
    threads->receiver = (struct wake_thread){.threads = threads, .cpu = receiver_cpu, .is_receiver = true};
    int rc = -pthread_barrier_init(&threads->barrier, NULL, AT_BARRIER);
    if (!rc)
        rc = sem_init(&threads->sender_is_over, 0, 0) || sem_init(&threads->receiver_is_over, 0, 0) ? -errno : 0;
    if (!rc)
        rc = thread_start(&threads->sender.thread, thread_main, &threads->sender);
    if (!rc)
        rc = thread_start(&threads->receiver.thread, thread_main, &threads->receiver);
    /* A sender without its receiver waits at the barrier; the caller ends the process, and that thread with it. */
    if (rc)
        return print_error(EXIT_FAILED, "cannot start a thread: %s", strerror(-rc));
    (void)pthread_barrier_wait(&threads->barrier);
    int status = report(&threads->sender);
    if (!status)
        status = report(&threads->receiver);
    if (status)
        wake_threads_stop(threads);
    return status;
}

/* By short sleeps: the measuring is over, unless messages were lost. */
static void settle(struct wake_threads *threads, int patience_ms)
{
    struct timespec step = {.tv_nsec = STEP_MS * 1000000L};
    for (int ms = 0; sem_trywait(&threads->receiver_is_over); ms += STEP_MS) {
        if (ms >= patience_ms && ms % END_EVERY_MS == 0)
            transport_end(threads->exchange->transport, ms >= patience_ms + FORCE_MS);
        (void)clock_nanosleep(CLOCK_MONOTONIC, 0, &step, NULL);
    }
}

void wake_threads_exchange(struct wake_threads *threads)
{
    const struct sending *s = &threads->exchange->sending;
    begin(threads, TASK_EXCHANGE);
    wait_for(&threads->sender_is_over);
    settle(threads, s->has_no_napi || s->error ? 0 : stop_is_asked() ? GRACE_STOPPED_MS : GRACE_MS);
}

struct clock_offset wake_threads_compare_clocks(struct wake_threads *threads)
{
    begin(threads, TASK_COMPARE_CLOCKS);
    wait_for(&threads->sender_is_over);
    wait_for(&threads->receiver_is_over);
    int64_t to_sender = threads->nearest_ticks[0];
    int64_t to_receiver = threads->nearest_ticks[1];
    /* A stamp cannot arrive before it was sent: receiver - sender is at most what the receiver saw, and at least minus the rest. */
    return (struct clock_offset){to_sender != INT64_MAX && to_receiver != INT64_MAX, -to_sender, to_receiver};
}

void wake_threads_stop(struct wake_threads *threads)
{
    begin(threads, TASK_LEAVE);
    (void)pthread_join(threads->sender.thread, NULL);
    (void)pthread_join(threads->receiver.thread, NULL);
    (void)pthread_barrier_destroy(&threads->barrier);
    (void)sem_destroy(&threads->sender_is_over);
    (void)sem_destroy(&threads->receiver_is_over);
}
