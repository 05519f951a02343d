#include "wake/case.h"
#include "check.h"
#include "lib/clock.h"
#include "wake/threads.h"
#include "wake/exchange.h"
#include "wake/mechanisms.h"

#include <sched.h>
#include <string.h>

enum { MESSAGES = 40 };

static const struct wait_method *wait_method_named(const char *name)
{
    for (size_t i = 0; i < wait_methods_n; i++)
        if (strcmp(wait_methods[i].name, name) == 0)
            return &wait_methods[i];
    return NULL;
}

static const struct mechanism *mechanism_named(const char *name)
{
    for (size_t i = 0; i < mechanisms_n; i++)
        if (strcmp(mechanisms[i].name, name) == 0)
            return &mechanisms[i];
    return NULL;
}

static void percentiles_are_nearest_ranks(void)
{
    int64_t values[1000];
    for (int64_t i = 0; i < 1000; i++)
        values[i] = 1000 - i;
    struct spread s = spread_of(values, 1000);
    CHECK(s.n == 1000 && s.min == 1 && s.max == 1000);
    CHECK(s.mean > 500.49 && s.mean < 500.51);
    CHECK(s.at[0] == 500 && s.at[1] == 900 && s.at[2] == 950 && s.at[3] == 990 && s.at[4] == 999 && s.at[5] == 1000);
    CHECK(spread_of(values, 0).n == 0);
    int64_t one[] = {-5};
    s = spread_of(one, 1);
    CHECK(s.min == -5 && s.max == -5 && s.at[0] == -5 && s.at[5] == -5);
}

/* 4 messages every 100 ticks: one late, one lost, one received before it was sent. */
static void figures_of_made_up_stamps(void)
{
    struct exchange x;
    struct transport transport = {.mechanism = mechanism_named("udp")};
    struct wake_case c = {.mechanism = transport.mechanism, .method = wait_method_named("block"), .idle_ms = 1.0};
    int64_t scratch[4];
    CHECK(exchange_init(&x, 4, 1.0) == 0);
    exchange_reset(&x, &transport, c.method, 4, 100);
    const uint64_t before[] = {1000, 1100, 1230, 1300};
    const uint64_t at[] = {1050, 0, 1250, 1290};
    for (size_t i = 0; i < 4; i++) {
        x.sending.before[i] = before[i];
        x.sending.after[i] = before[i] + 30;
        x.receiving.at[i] = at[i];
    }
    x.sending.start_ticks = 1000;
    x.sending.n = 4;
    x.receiving.n = 3;
    x.receiving.first_ticks = 900;
    x.receiving.last_ticks = 1300;
    x.receiving.first_cpu_ns = 50;
    x.receiving.last_cpu_ns = 150;
    CHECK(wake_case_conclude(&c, &x, scratch) == 0);
    CHECK(c.delay.n == 2 && c.delay.min == 20 && c.delay.max == 50);
    CHECK(c.after_send.min == -10 && c.after_send.max == 20);
    CHECK(c.sending.min == 30 && c.sending.max == 30);
    CHECK(c.late.min == 0 && c.late.max == 30);
    CHECK(c.lost == 1 && c.negative == 1 && c.sent == 4);
    CHECK(c.bins_n == 2 && c.bins[0].index == 20 && c.bins[0].count == 1);
    CHECK(c.receiver_cpu_percent > 24.9 && c.receiver_cpu_percent < 25.1);
    CHECK(c.remote.n == 0);
    wake_case_deinit(&c);
    exchange_deinit(&x);
}

static void round_trips_leave_the_other_host_out(void)
{
    struct exchange x;
    struct transport transport = {.mechanism = mechanism_named("udp")};
    struct wake_case c = {.mechanism = transport.mechanism, .method = wait_method_named("block")};
    int64_t scratch[1];
    CHECK(exchange_init(&x, 1, 1.0) == 0);
    x.remote_ratio = 2.0;
    exchange_reset(&x, &transport, c.method, 1, 100);
    x.sending.before[0] = x.sending.start_ticks = 1000;
    x.receiving.at[0] = 1100;
    x.receiving.remote_ticks[0] = 10;
    x.sending.n = x.receiving.n = 1;
    CHECK(wake_case_conclude(&c, &x, scratch) == 0);
    CHECK(c.delay.min == 100 && c.remote.min == 20 && c.one_way.min == 40);
    wake_case_deinit(&c);
    exchange_deinit(&x);
}

/* Sends messages by hand, out of order, twice and from nowhere, and lets the receiver count. */
static void what_should_not_come_is_counted(void)
{
    struct exchange x;
    struct transport transport;
    const uint64_t sequences[] = {0, 2, 1, 1, 77, SEQUENCE_END};
    CHECK(exchange_init(&x, 4, 1.0) == 0);
    CHECK(transport_open(&transport, mechanism_named("channel")) == 0);
    exchange_reset(&x, &transport, wait_method_named("minimal"), 4, 100);
    for (size_t i = 0; i < sizeof(sequences) / sizeof(*sequences); i++)
        CHECK(transport.mechanism->send(&transport, &(struct message){.sequence = sequences[i], .sent = 1}) == 0);
    exchange_receive_all(&x);
    CHECK(x.receiving.n == 3 && x.receiving.error == 0);
    CHECK(x.receiving.reordered == 1 && x.receiving.duplicates == 1 && x.receiving.aliens == 1);
    CHECK(x.receiving.at[0] && x.receiving.at[1] && x.receiving.at[2] && !x.receiving.at[3]);
    transport_close(&transport);
    exchange_deinit(&x);
}

static void measure(struct wake_threads *threads, struct exchange *x, const char *mechanism, const char *method, double period_us)
{
    struct transport transport;
    struct wake_case c = {.mechanism = mechanism_named(mechanism), .method = wait_method_named(method)};
    int64_t scratch[MESSAGES];
    CHECK(transport_open(&transport, c.mechanism) == 0);
    CHECK(c.method->prepare(&transport, 50) == 0);
    exchange_reset(x, &transport, c.method, MESSAGES, (uint64_t)(period_us * 1e3 * x->ticks_per_ns));
    wake_threads_exchange(threads);
    CHECK(wake_case_conclude(&c, x, scratch) == 0);
    CHECK(c.sent == MESSAGES && c.lost == 0 && c.reordered == 0 && c.duplicates == 0);
    CHECK(c.delay.n + c.negative == MESSAGES);
    /* Nothing is sent before it is due. */
    CHECK(c.late.n == 0 || c.late.min >= 0);
    CHECK(c.period_ticks > 0);
    wake_case_deinit(&c);
    transport_close(&transport);
}

static void a_crew_measures(void)
{
    struct wake_threads threads;
    struct exchange x;
    struct clock_span span;
    unsigned cpu = (unsigned)sched_getcpu();
    clock_span_begin(&span);
    CHECK(exchange_init(&x, MESSAGES, span.initial.hz / 1e9) == 0);
    /* Both on one CPU: that every machine has. */
    CHECK(wake_threads_start(&threads, &x, cpu, cpu, 0) == 0);
    measure(&threads, &x, "channel", "block", 0.0);
    measure(&threads, &x, "tcp", "poll", 300.0);
    measure(&threads, &x, "udp", "minimal", 2000.0);
    wake_threads_stop(&threads);
    exchange_deinit(&x);
}

/* Every third message is lost. */
static int lossy_send(struct transport *transport, const struct message *m)
{
    bool is_lost = m->sequence < MESSAGES && m->sequence % 3 == 0;
    return is_lost ? 0 : ring_send_waking(transport->ring, m);
}

/* A receiver that misses messages is made to leave, and does not keep the run waiting for ever. */
static void lost_messages_end(const char *method)
{
    struct mechanism lossy = *mechanism_named("channel");
    struct wake_threads threads;
    struct exchange x;
    struct transport transport;
    struct clock_span span;
    unsigned cpu = (unsigned)sched_getcpu();
    struct wake_case c = {.mechanism = &lossy, .method = wait_method_named(method)};
    int64_t scratch[MESSAGES];
    lossy.send = lossy_send;
    clock_span_begin(&span);
    CHECK(exchange_init(&x, MESSAGES, span.initial.hz / 1e9) == 0);
    CHECK(wake_threads_start(&threads, &x, cpu, cpu, 0) == 0);
    CHECK(transport_open(&transport, &lossy) == 0);
    CHECK(c.method->prepare(&transport, 0) == 0);
    exchange_reset(&x, &transport, c.method, MESSAGES, (uint64_t)(1e5 * x.ticks_per_ns));
    wake_threads_exchange(&threads);
    CHECK(wake_case_conclude(&c, &x, scratch) == 0);
    CHECK(c.sent == MESSAGES && c.lost == 14 && c.delay.n == MESSAGES - 14);
    wake_case_deinit(&c);
    transport_close(&transport);
    wake_threads_stop(&threads);
    exchange_deinit(&x);
}

void test_exchange(void)
{
    percentiles_are_nearest_ranks();
    figures_of_made_up_stamps();
    round_trips_leave_the_other_host_out();
    what_should_not_come_is_counted();
    a_crew_measures();
    lost_messages_end("block");
    lost_messages_end("minimal");
}
