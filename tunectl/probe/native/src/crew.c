#include "crew.h"

#include <errno.h>
#include <sched.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "complain.h"
#include "cpus.h"
#include "stop.h"
#include "ticks.h"

enum {
    MEMBERS = 3,                /* at the barrier: both threads and the main one */
    STACK_BYTES = 256 * 1024,
    POLICY_LOCAL = 4,           /* MPOL_LOCAL, linux/mempolicy.h */
    STEP_MS = 1,
    GRACE_MS = 1000,            /* for messages under way when the last was sent; a loaded machine takes its time */
    GRACE_STOPPED_MS = 50,
    END_EVERY_MS = 10,
    FORCE_MS = 3000,
    BALL_ROUNDS = 2000,
    BALL_LIMIT_MS = 100,
};

static int fail(struct crew_member *member, const char *step, int error)
{
    member->failed_step = step;
    member->error = error;
    return error;
}

static int prepare(struct crew_member *member)
{
    struct cpu_list own = {&member->cpu, 1};
    struct exchange *x = member->crew->exchange;
    int priority = member->crew->fifo_priority;
    int rc = cpu_list_pin(&own);
    if (rc)
        return fail(member, "run on the CPU (is it in this cgroup's cpuset?)", rc);
    /* The sender's sleep ends when asked, not up to 50 us later. */
    (void)prctl(PR_SET_TIMERSLACK, 1UL);
    (void)syscall(SYS_set_mempolicy, POLICY_LOCAL, NULL, 0UL);
    if (member->is_receiver)
        exchange_touch_receiving(x, x->capacity);
    else
        exchange_touch_sending(x, x->capacity);
    struct sched_param param = {.sched_priority = priority};
    rc = priority ? -pthread_setschedparam(pthread_self(), SCHED_FIFO, &param) : 0;
    if (rc)
        return fail(member, "use SCHED_FIFO (it needs CAP_SYS_NICE or `ulimit -r`, and a cgroup with rt_runtime)", rc);
    return 0;
}

static void compare_clocks(struct crew *crew, unsigned side)
{
    uint64_t limit = ticks_now() + (uint64_t)((double)BALL_LIMIT_MS * 1e6 * crew->exchange->ticks_per_ns);
    struct clock_ball *own = &crew->balls[side];
    struct clock_ball *other = &crew->balls[1 - side];
    int64_t nearest = INT64_MAX;
    for (uint64_t round = 1; round <= BALL_ROUNDS; round++) {
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
    crew->nearest_ticks[side] = nearest;
}

static void *member_main(void *argument)
{
    struct crew_member *member = argument;
    struct crew *crew = member->crew;
    (void)prepare(member);
    /* Only now: from here on nothing is allocated, and the tests know these threads by their names. */
    (void)prctl(PR_SET_NAME, member->is_receiver ? "wake-receiver" : "wake-sender");
    (void)pthread_barrier_wait(&crew->barrier);
    for (;;) {
        (void)pthread_barrier_wait(&crew->barrier);
        if (crew->task == TASK_LEAVE)
            return NULL;
        if (crew->task == TASK_COMPARE_CLOCKS)
            compare_clocks(crew, member->is_receiver);
        else if (member->is_receiver)
            exchange_receive_all(crew->exchange);
        else
            exchange_send_all(crew->exchange);
        (void)sem_post(member->is_receiver ? &crew->receiver_is_over : &crew->sender_is_over);
    }
}

static int start_member(struct crew_member *member)
{
    pthread_attr_t attributes;
    int rc = pthread_attr_init(&attributes);
    if (rc)
        return rc;
    /* Small stacks: mlockall counts them against `ulimit -l`. */
    (void)pthread_attr_setstacksize(&attributes, STACK_BYTES);
    rc = pthread_create(&member->thread, &attributes, member_main, member);
    (void)pthread_attr_destroy(&attributes);
    return rc;
}

static void begin(struct crew *crew, enum crew_task task)
{
    crew->task = task;
    (void)pthread_barrier_wait(&crew->barrier);
}

static void wait_for(sem_t *over)
{
    while (sem_wait(over) && errno == EINTR)
        continue;
}

static int report(const struct crew_member *member)
{
    if (!member->error)
        return EXIT_OK;
    return complain(EXIT_FAILED, "on CPU %u the %s cannot %s: %s", member->cpu, member->is_receiver ? "receiver" : "sender",
                    member->failed_step, strerror(-member->error));
}

int crew_start(struct crew *crew, struct exchange *x, unsigned sender_cpu, unsigned receiver_cpu, int fifo_priority)
{
    *crew = (struct crew){.exchange = x, .fifo_priority = fifo_priority};
    crew->sender = (struct crew_member){.crew = crew, .cpu = sender_cpu};
    crew->receiver = (struct crew_member){.crew = crew, .cpu = receiver_cpu, .is_receiver = true};
    int rc = pthread_barrier_init(&crew->barrier, NULL, MEMBERS);
    if (!rc)
        rc = sem_init(&crew->sender_is_over, 0, 0) || sem_init(&crew->receiver_is_over, 0, 0) ? errno : 0;
    if (!rc)
        rc = start_member(&crew->sender);
    if (!rc)
        rc = start_member(&crew->receiver);
    /* A sender without its receiver waits at the barrier; the caller ends the process, and that thread with it. */
    if (rc)
        return complain(EXIT_FAILED, "cannot start a thread: %s", strerror(rc));
    (void)pthread_barrier_wait(&crew->barrier);
    int status = report(&crew->sender);
    if (!status)
        status = report(&crew->receiver);
    if (status)
        crew_stop(crew);
    return status;
}

static bool is_stopped(void)
{
    return atomic_load_explicit(stop_deadline(), memory_order_relaxed) == 0;
}

/* By short sleeps: the measuring is over, unless messages were lost. */
static void settle(struct crew *crew, int patience_ms)
{
    struct timespec step = {.tv_nsec = STEP_MS * 1000000L};
    for (int ms = 0; sem_trywait(&crew->receiver_is_over); ms += STEP_MS) {
        if (ms >= patience_ms && ms % END_EVERY_MS == 0)
            link_end(crew->exchange->link, ms >= patience_ms + FORCE_MS);
        (void)clock_nanosleep(CLOCK_MONOTONIC, 0, &step, NULL);
    }
}

void crew_exchange(struct crew *crew)
{
    const struct sending *s = &crew->exchange->sending;
    begin(crew, TASK_EXCHANGE);
    wait_for(&crew->sender_is_over);
    settle(crew, s->has_no_napi || s->error ? 0 : is_stopped() ? GRACE_STOPPED_MS : GRACE_MS);
}

struct clock_offset crew_compare_clocks(struct crew *crew)
{
    begin(crew, TASK_COMPARE_CLOCKS);
    wait_for(&crew->sender_is_over);
    wait_for(&crew->receiver_is_over);
    int64_t to_sender = crew->nearest_ticks[0];
    int64_t to_receiver = crew->nearest_ticks[1];
    /* A stamp cannot arrive before it was sent: receiver - sender is at most what the receiver saw, and at least minus the rest. */
    return (struct clock_offset){to_sender != INT64_MAX && to_receiver != INT64_MAX, -to_sender, to_receiver};
}

void crew_stop(struct crew *crew)
{
    begin(crew, TASK_LEAVE);
    (void)pthread_join(crew->sender.thread, NULL);
    (void)pthread_join(crew->receiver.thread, NULL);
    (void)pthread_barrier_destroy(&crew->barrier);
    (void)sem_destroy(&crew->sender_is_over);
    (void)sem_destroy(&crew->receiver_is_over);
}
