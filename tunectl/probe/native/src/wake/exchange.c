#include "wake/run.h"

#include <errno.h>
#include <limits.h>
#include <string.h>
#include <time.h>

#include "lib/clock.h"
#include "lib/loopback.h"
#include "lib/thread.h"
#include "lib/ticks.h"

enum {
    SPIN_BEFORE_DUE_US = 200,   /* the rest of the wait is slept: a timer's wake-up may come that late */
    QUIET_BEFORE_DUE_US = 20,   /* the sender keeps warm until then: no message of its own may take longer */
    SLICE_NS = 50 * 1000 * 1000,    /* the longest sleep, after which the stop flag is looked at */
    WARM_UP_PAUSE_US = 100,     /* so that a sleeping receiver sleeps again */
    WARM_UP_LIMIT_US = 200000,
    ROOM_LIMIT_US = 1000000,    /* a full queue is waited for that long */
    BACK_TO_BACK_TRIPS = 4,     /* the period without idle time, in hot trips: nearly every message finds the receiver waiting */
    BACK_TO_BACK_LEAST_US = 10,
    BACK_TO_BACK_MOST_US = 1000,
    SENDING_ARRAYS = 2,
    RECEIVING_ARRAYS = 3,
    CACHE_LINE = 64,
    GRACE_MS = 1000,            /* for messages under way when the last was sent; a loaded machine takes its time */
    GRACE_STOPPED_MS = 50,
};

static uint64_t ticks_of_us(const struct exchange *x, double us)
{
    return (uint64_t)(us * 1e3 * x->ticks_per_ns);
}

int exchange_init(struct exchange *x)
{
    size_t bytes = x->messages * sizeof(uint64_t);
    x->sending.before = memory_map(SENDING_ARRAYS * bytes);
    x->receiving.at = memory_map(RECEIVING_ARRAYS * bytes);
    x->working_set = memory_map(x->working_set_bytes + 1);
    if (!x->sending.before || !x->receiving.at || !x->working_set)
        return -ENOMEM;
    x->sending.after = x->sending.before + x->messages;
    x->receiving.remote_ticks = x->receiving.at + x->messages;
    x->receiving.ready = x->receiving.at + 2 * x->messages;
    return 0;
}

void exchange_touch_sending(void *exchange)
{
    struct exchange *x = exchange;
    memset(x->sending.before, 0, SENDING_ARRAYS * x->messages * sizeof(uint64_t));
}

void exchange_touch_receiving(void *exchange)
{
    struct exchange *x = exchange;
    memset(x->receiving.at, 0, RECEIVING_ARRAYS * x->messages * sizeof(uint64_t));
    memset(x->working_set, 0, x->working_set_bytes + 1);
}

bool exchange_is_of_a_timer(const struct exchange *x)
{
    return x->transport->mechanism->traits & TRAIT_TIMER;
}

/* One message to itself. The sender on a ring also wakes a sleeper, who is not there: that is part of its path, too. */
static void keep_warm(struct exchange *x)
{
    struct message m = {.sequence = SEQUENCE_WARM_UP};
    if (x->own->ring)
        atomic_store_explicit(&x->own->ring->is_asleep, 1, memory_order_relaxed);
    if (x->own->mechanism->send(x->own, &m) == 0)
        (void)x->own->mechanism->take(x->own, &m);
}

/* Asleep until shortly before `due`, then spinning: the sender is hot when it sends. False when a signal came. */
static bool wait_until(struct exchange *x, uint64_t due)
{
    uint64_t spin = ticks_of_us(x, SPIN_BEFORE_DUE_US);
    uint64_t quiet = ticks_of_us(x, QUIET_BEFORE_DUE_US);
    for (;;) {
        uint64_t now = ticks_now();
        if (stop_is_asked())
            return false;
        if (now >= due)
            return true;
        if (due - now > spin) {
            double ns = (double)(due - now - spin) / x->ticks_per_ns;
            sleep_ns(ns < (double)SLICE_NS ? (uint64_t)ns : SLICE_NS);
            /* Twice in any case: the first is the cold one, and a sleep that lasted too long must leave no cold sender. */
            for (int i = 0; x->own && i < 2; i++)
                keep_warm(x);
        } else if (x->own && due - now > quiet) {
            keep_warm(x);
        }
    }
}

/* Tries again while there is no room, up to a limit. Returns 0 or -errno. */
static int send_patiently(struct exchange *x, const struct message *m)
{
    int rc = x->transport->mechanism->send(x->transport, m);
    if (__builtin_expect(rc != -EAGAIN, 1))
        return rc;
    uint64_t limit = ticks_now() + ticks_of_us(x, ROOM_LIMIT_US);
    while (rc == -EAGAIN && ticks_now() < limit && !stop_is_asked())
        rc = x->transport->mechanism->send(x->transport, m);
    return rc;
}

/* Spins at first, then lets go of the CPU: the receiver may need this very one. */
static bool await_taken(const struct exchange *x, uint64_t count)
{
    uint64_t start = ticks_now();
    uint64_t patience = ticks_of_us(x, WARM_UP_PAUSE_US);
    while (atomic_load_explicit(&x->warm_ups_taken, memory_order_acquire) < count) {
        uint64_t waited = ticks_now() - start;
        if (waited > ticks_of_us(x, WARM_UP_LIMIT_US) || stop_is_asked())
            return false;
        if (waited > patience)
            sleep_ns(WARM_UP_PAUSE_US * 1000);
    }
    return true;
}

/* A warm-up that is lost costs its time limit, and the count goes on from what has arrived. `trip`: the median of the others. */
static int warm_up(struct exchange *x, uint64_t *trip)
{
    int64_t trips[EXCHANGE_WARM_UPS];
    size_t n = 0;
    for (unsigned i = 0; i < EXCHANGE_WARM_UPS && !stop_is_asked(); i++) {
        (void)wait_until(x, ticks_now() + ticks_of_us(x, WARM_UP_PAUSE_US));
        uint64_t taken = atomic_load_explicit(&x->warm_ups_taken, memory_order_acquire);
        struct message m = {.sequence = SEQUENCE_WARM_UP, .sent = ticks_now()};
        int rc = send_patiently(x, &m);
        if (rc)
            return rc;
        if (await_taken(x, taken + 1))
            trips[n++] = (int64_t)(ticks_now() - m.sent);
    }
    *trip = (uint64_t)ticks_sort(trips, n);
    return 0;
}

static uint64_t back_to_back_ticks(const struct exchange *x, uint64_t trip)
{
    uint64_t least = ticks_of_us(x, BACK_TO_BACK_LEAST_US);
    uint64_t most = ticks_of_us(x, BACK_TO_BACK_MOST_US);
    uint64_t period = BACK_TO_BACK_TRIPS * trip;
    return period < least ? least : period > most ? most : period;
}

static int send_by_schedule(struct exchange *x)
{
    struct sending *s = &x->sending;
    /* The first message, too, has its idle time before it. */
    s->start_ticks = ticks_now() + s->period_ticks;
    for (uint64_t i = 0; i < x->messages; i++) {
        if (!wait_until(x, s->start_ticks + i * s->period_ticks))
            return 0;
        struct message m = {.sequence = i, .sent = ticks_now()};
        int rc = send_patiently(x, &m);
        uint64_t after = ticks_now();
        s->before[i] = m.sent;
        s->after[i] = after;
        s->n = i + 1;
        if (rc)
            return rc;
    }
    return 0;
}

void exchange_send_all(void *exchange)
{
    struct exchange *x = exchange;
    struct sending *s = &x->sending;
    uint64_t trip;
    if (exchange_is_of_a_timer(x))
        return;
    s->error = warm_up(x, &trip);
    if (s->error)
        return;
    s->has_no_napi = x->method->waiting == WAITING_BUSY_POLL && atomic_load(&x->napi_id) == 0;
    if (s->has_no_napi)
        return;
    if (!s->period_ticks)
        s->period_ticks = back_to_back_ticks(x, trip);
    struct usage before = usage_now();
    s->error = send_by_schedule(x);
    s->used = usage_since(&before);
}

/* A message that came, as sent when it was due: what a timer's delay is, its own clock says. Returns the stamp of its arrival. */
static uint64_t stamp_expiration(struct exchange *x, const struct message *m)
{
    struct sending *s = &x->sending;
    uint64_t late_ns = clock_ns(CLOCK_MONOTONIC) - m->sent;
    if (m->sequence >= x->messages)
        return 0;
    uint64_t due = s->start_ticks + m->sequence * s->period_ticks;
    s->before[m->sequence] = s->after[m->sequence] = due;
    s->n = m->sequence + 1;
    return due + (uint64_t)((double)late_ns * x->ticks_per_ns);
}

/* Outside the measured time, and before the receiver waits again: its own lines go, and those of the kernel's path to it. */
static void dirty_working_set(struct exchange *x)
{
    for (size_t i = 0; i < x->working_set_bytes; i += CACHE_LINE)
        ((volatile unsigned char *)x->working_set)[i]++;
}

/* Any warm-up may be the last: each sets the beginning of the measured phase. */
static void take_warm_up(struct exchange *x)
{
    dirty_working_set(x);
    x->receiving.first = usage_now();
    if (x->transport->mechanism->traits & TRAIT_NAPI)
        atomic_store_explicit(&x->napi_id, socket_napi_id(x->transport->receive_fd), memory_order_relaxed);
    atomic_fetch_add_explicit(&x->warm_ups_taken, 1, memory_order_release);
}

/* `expected` is one more than the highest sequence number so far. */
static uint64_t record(struct exchange *x, const struct message *m, uint64_t now, uint64_t expected)
{
    struct receiving *r = &x->receiving;
    if (m->sequence >= x->messages || r->at[m->sequence]) {
        r->duplicates++;
        return expected;
    }
    r->at[m->sequence] = now;
    r->remote_ticks[m->sequence] = m->remote_sent - m->remote_received;
    atomic_fetch_add_explicit(&r->n, 1, memory_order_release);
    if (x->working_set_bytes) {
        dirty_working_set(x);
        r->ready[m->sequence] = ticks_now();
    }
    if (m->sequence < expected) {
        r->reordered++;
        return expected;
    }
    return m->sequence + 1;
}

void exchange_receive_all(void *exchange)
{
    struct exchange *x = exchange;
    struct receiving *r = &x->receiving;
    int (*receive)(struct transport *, struct message *) = x->method->receive;
    bool is_timer = exchange_is_of_a_timer(x);
    uint64_t expected = 0;
    r->first = usage_now();
    if (is_timer) {
        /* Expiration 0 is the warm-up. */
        x->sending.start_ticks = ticks_now() + 2 * x->sending.period_ticks;
        transport_start_timer(x->transport, (uint64_t)((double)x->sending.period_ticks / x->ticks_per_ns));
    }
    while (atomic_load_explicit(&r->n, memory_order_relaxed) < x->messages) {
        struct message m;
        r->error = receive(x->transport, &m);
        uint64_t now = ticks_after_loads();
        if (r->error)
            break;
        if (is_timer)
            now = stamp_expiration(x, &m);
        if (m.sequence == SEQUENCE_WARM_UP)
            take_warm_up(x);
        else
            expected = record(x, &m, now, expected);
    }
    r->used = usage_since(&r->first);
}

/* A timer has no sender, and ends by itself. */
static int patience_ms(const void *exchange)
{
    const struct exchange *x = exchange;
    if (stop_is_asked())
        return GRACE_STOPPED_MS;
    if (exchange_is_of_a_timer(x))
        return INT_MAX;
    return x->sending.has_no_napi || x->sending.error ? 0 : GRACE_MS;
}

bool exchange_run(struct exchange *x, struct pair *pair)
{
    struct receiving *r = &x->receiving;
    clockid_t clock;
    if (pair_work(pair, patience_ms))
        return true;
    /* What a receiver has used that still waits: the rest is as it was. */
    r->used.ticks = ticks_now() - r->first.ticks;
    if (pthread_getcpuclockid(pair->ends[RECEIVER].thread, &clock) == 0)
        r->used.cpu_ns = clock_ns(clock) - r->first.cpu_ns;
    return false;
}
