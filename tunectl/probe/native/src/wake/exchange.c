#include "wake/exchange.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <time.h>

#include "lib/stop.h"
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
};

static uint64_t ticks_of_us(const struct exchange *x, double us)
{
    return (uint64_t)(us * 1e3 * x->ticks_per_ns);
}

static uint64_t *new_array(size_t capacity)
{
    void *array = mmap(NULL, capacity * sizeof(uint64_t), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (array == MAP_FAILED)
        return NULL;
    /* khugepaged would merge these pages during the run: a TLB shootdown and a fault of our own making. */
    (void)madvise(array, capacity * sizeof(uint64_t), MADV_NOHUGEPAGE);
    return array;
}

int exchange_init(struct exchange *x, size_t capacity, double ticks_per_ns)
{
    *x = (struct exchange){.capacity = capacity, .ticks_per_ns = ticks_per_ns};
    x->sending.before = new_array(capacity);
    x->sending.after = new_array(capacity);
    x->receiving.at = new_array(capacity);
    x->receiving.remote_ticks = new_array(capacity);
    bool has_all = x->sending.before && x->sending.after && x->receiving.at && x->receiving.remote_ticks;
    if (!has_all)
        exchange_deinit(x);
    return has_all ? 0 : -ENOMEM;
}

void exchange_deinit(struct exchange *x)
{
    uint64_t *const arrays[] = {x->sending.before, x->sending.after, x->receiving.at, x->receiving.remote_ticks};
    for (size_t i = 0; i < sizeof(arrays) / sizeof(*arrays); i++)
        if (arrays[i])
            (void)munmap(arrays[i], x->capacity * sizeof(uint64_t));
    *x = (struct exchange){0};
}

void exchange_touch_sending(struct exchange *x, size_t messages)
{
    memset(x->sending.before, 0, messages * sizeof(uint64_t));
    memset(x->sending.after, 0, messages * sizeof(uint64_t));
}

void exchange_touch_receiving(struct exchange *x, size_t messages)
{
    memset(x->receiving.at, 0, messages * sizeof(uint64_t));
    memset(x->receiving.remote_ticks, 0, messages * sizeof(uint64_t));
}

void exchange_reset(struct exchange *x, struct transport *transport, const struct wait_method *method, size_t messages,
                    uint64_t period_ticks)
{
    x->sending = (struct sending){.before = x->sending.before, .after = x->sending.after, .period_ticks = period_ticks};
    x->receiving = (struct receiving){.at = x->receiving.at, .remote_ticks = x->receiving.remote_ticks};
    exchange_touch_sending(x, messages);
    exchange_touch_receiving(x, messages);
    x->transport = transport;
    x->own = NULL;
    x->method = method;
    x->messages = messages;
    atomic_store(&x->warm_ups_taken, 0);
    atomic_store(&x->napi_id, 0);
}

static void sleep_ns(uint64_t ns)
{
    struct timespec pause = {.tv_sec = (time_t)(ns / 1000000000), .tv_nsec = (long)(ns % 1000000000)};
    (void)clock_nanosleep(CLOCK_MONOTONIC, 0, &pause, NULL);
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

static int compare_ticks(const void *left, const void *right)
{
    uint64_t a = *(const uint64_t *)left;
    uint64_t b = *(const uint64_t *)right;
    return (a > b) - (a < b);
}

/* A warm-up that is lost costs its time limit, and the count goes on from what has arrived. */
static int warm_up(struct exchange *x)
{
    uint64_t trips[EXCHANGE_WARM_UPS];
    size_t n = 0;
    for (unsigned i = 0; i < EXCHANGE_WARM_UPS && !stop_is_asked(); i++) {
        (void)wait_until(x, ticks_now() + ticks_of_us(x, WARM_UP_PAUSE_US));
        uint64_t taken = atomic_load_explicit(&x->warm_ups_taken, memory_order_acquire);
        struct message m = {.sequence = SEQUENCE_WARM_UP, .sent = ticks_now()};
        int rc = send_patiently(x, &m);
        if (rc)
            return rc;
        if (await_taken(x, taken + 1))
            trips[n++] = ticks_now() - m.sent;
    }
    qsort(trips, n, sizeof(*trips), compare_ticks);
    x->sending.trip_ticks = n ? trips[n / 2] : 0;
    return 0;
}

static uint64_t back_to_back_ticks(const struct exchange *x)
{
    uint64_t least = ticks_of_us(x, BACK_TO_BACK_LEAST_US);
    uint64_t most = ticks_of_us(x, BACK_TO_BACK_MOST_US);
    uint64_t period = BACK_TO_BACK_TRIPS * x->sending.trip_ticks;
    return period < least ? least : period > most ? most : period;
}

static uint64_t page_faults(void)
{
    struct rusage usage;
    (void)getrusage(RUSAGE_THREAD, &usage);
    return (uint64_t)(usage.ru_minflt + usage.ru_majflt);
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

void exchange_send_all(struct exchange *x)
{
    struct sending *s = &x->sending;
    s->error = warm_up(x);
    if (s->error)
        return;
    s->has_no_napi = x->method->waiting == WAITING_BUSY_POLL && atomic_load(&x->napi_id) == 0;
    if (s->has_no_napi)
        return;
    if (!s->period_ticks)
        s->period_ticks = back_to_back_ticks(x);
    uint64_t faults = page_faults();
    s->error = send_by_schedule(x);
    s->page_faults = page_faults() - faults;
}

static uint64_t thread_cpu_ns(void)
{
    struct timespec t;
    (void)clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (uint64_t)t.tv_sec * UINT64_C(1000000000) + (uint64_t)t.tv_nsec;
}

/* Any warm-up may be the last: each sets the beginning of the measured phase. */
static void take_warm_up(struct exchange *x)
{
    struct receiving *r = &x->receiving;
    struct rusage usage;
    (void)getrusage(RUSAGE_THREAD, &usage);
    r->first_faults = (uint64_t)(usage.ru_minflt + usage.ru_majflt);
    r->first_preemptions = (uint64_t)usage.ru_nivcsw;
    r->first_cpu_ns = thread_cpu_ns();
    r->first_ticks = ticks_now();
    atomic_store_explicit(&x->napi_id, transport_napi_id(x->transport), memory_order_relaxed);
    atomic_fetch_add_explicit(&x->warm_ups_taken, 1, memory_order_release);
}

static void note_end(struct receiving *r)
{
    struct rusage usage;
    r->last_ticks = ticks_now();
    r->last_cpu_ns = thread_cpu_ns();
    (void)getrusage(RUSAGE_THREAD, &usage);
    r->last_faults = (uint64_t)(usage.ru_minflt + usage.ru_majflt);
    r->last_preemptions = (uint64_t)usage.ru_nivcsw;
}

/* `expected` is one more than the highest sequence number so far. */
static uint64_t record(struct exchange *x, const struct message *m, uint64_t now, uint64_t expected)
{
    struct receiving *r = &x->receiving;
    if (m->sequence >= x->messages) {
        r->aliens++;
        return expected;
    }
    if (r->at[m->sequence]) {
        r->duplicates++;
        return expected;
    }
    r->at[m->sequence] = now;
    r->remote_ticks[m->sequence] = m->remote_sent - m->remote_received;
    r->n++;
    if (m->sequence < expected) {
        r->reordered++;
        return expected;
    }
    return m->sequence + 1;
}

void exchange_receive_all(struct exchange *x)
{
    struct receiving *r = &x->receiving;
    int (*receive)(struct transport *, struct message *) = x->method->receive;
    uint64_t expected = 0;
    r->first_ticks = ticks_now();
    r->first_cpu_ns = thread_cpu_ns();
    while (r->n < x->messages) {
        struct message m;
        r->error = receive(x->transport, &m);
        uint64_t now = ticks_after_loads();
        if (r->error || m.sequence == SEQUENCE_END)
            break;
        if (m.sequence == SEQUENCE_WARM_UP)
            take_warm_up(x);
        else
            expected = record(x, &m, now, expected);
    }
    note_end(r);
}
