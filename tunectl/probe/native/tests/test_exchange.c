#include "cell.h"
#include "check.h"
#include "clock.h"
#include "crew.h"
#include "exchange.h"

#include <sched.h>
#include <string.h>

enum { MESSAGES = 40 };

static const struct way *way_named(const char *name)
{
    for (size_t i = 0; i < ways_n; i++)
        if (strcmp(ways[i].name, name) == 0)
            return &ways[i];
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
    struct link link = {.mechanism = mechanism_named("udp")};
    struct cell cell = {.mechanism = link.mechanism, .way = way_named("block"), .idle_ms = 1.0};
    int64_t scratch[4];
    CHECK(exchange_init(&x, 4, 1.0) == 0);
    exchange_reset(&x, &link, cell.way, 4, 100);
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
    CHECK(cell_conclude(&cell, &x, scratch) == 0);
    CHECK(cell.delay.n == 2 && cell.delay.min == 20 && cell.delay.max == 50);
    CHECK(cell.after_send.min == -10 && cell.after_send.max == 20);
    CHECK(cell.sending.min == 30 && cell.sending.max == 30);
    CHECK(cell.late.min == 0 && cell.late.max == 30);
    CHECK(cell.lost == 1 && cell.negative == 1 && cell.sent == 4);
    CHECK(cell.bins_n == 2 && cell.bins[0].index == 20 && cell.bins[0].count == 1);
    CHECK(cell.receiver_cpu_percent > 24.9 && cell.receiver_cpu_percent < 25.1);
    CHECK(cell.far.n == 0);
    cell_deinit(&cell);
    exchange_deinit(&x);
}

static void round_trips_leave_the_other_host_out(void)
{
    struct exchange x;
    struct link link = {.mechanism = mechanism_named("udp")};
    struct cell cell = {.mechanism = link.mechanism, .way = way_named("block")};
    int64_t scratch[1];
    CHECK(exchange_init(&x, 1, 1.0) == 0);
    x.far_ratio = 2.0;
    exchange_reset(&x, &link, cell.way, 1, 100);
    x.sending.before[0] = x.sending.start_ticks = 1000;
    x.receiving.at[0] = 1100;
    x.receiving.far_ticks[0] = 10;
    x.sending.n = x.receiving.n = 1;
    CHECK(cell_conclude(&cell, &x, scratch) == 0);
    CHECK(cell.delay.min == 100 && cell.far.min == 20 && cell.one_way.min == 40);
    cell_deinit(&cell);
    exchange_deinit(&x);
}

/* Sends messages by hand, out of order, twice and from nowhere, and lets the receiver count. */
static void what_should_not_come_is_counted(void)
{
    struct exchange x;
    struct link link;
    const uint64_t sequences[] = {0, 2, 1, 1, 77, SEQUENCE_END};
    CHECK(exchange_init(&x, 4, 1.0) == 0);
    CHECK(link_open(&link, mechanism_named("channel")) == 0);
    exchange_reset(&x, &link, way_named("minimal"), 4, 100);
    for (size_t i = 0; i < sizeof(sequences) / sizeof(*sequences); i++)
        CHECK(link.mechanism->send(&link, &(struct message){.sequence = sequences[i], .sent = 1}) == 0);
    exchange_receive_all(&x);
    CHECK(x.receiving.n == 3 && x.receiving.error == 0);
    CHECK(x.receiving.reordered == 1 && x.receiving.duplicates == 1 && x.receiving.aliens == 1);
    CHECK(x.receiving.at[0] && x.receiving.at[1] && x.receiving.at[2] && !x.receiving.at[3]);
    link_close(&link);
    exchange_deinit(&x);
}

static void measure(struct crew *crew, struct exchange *x, const char *mechanism, const char *way, double period_us)
{
    struct link link;
    struct cell cell = {.mechanism = mechanism_named(mechanism), .way = way_named(way)};
    int64_t scratch[MESSAGES];
    CHECK(link_open(&link, cell.mechanism) == 0);
    CHECK(cell.way->prepare(&link, 50) == 0);
    exchange_reset(x, &link, cell.way, MESSAGES, (uint64_t)(period_us * 1e3 * x->ticks_per_ns));
    crew_exchange(crew);
    CHECK(cell_conclude(&cell, x, scratch) == 0);
    CHECK(cell.sent == MESSAGES && cell.lost == 0 && cell.reordered == 0 && cell.duplicates == 0);
    CHECK(cell.delay.n + cell.negative == MESSAGES);
    /* Nothing is sent before it is due. */
    CHECK(cell.late.n == 0 || cell.late.min >= 0);
    CHECK(cell.period_ticks > 0);
    cell_deinit(&cell);
    link_close(&link);
}

static void a_crew_measures(void)
{
    struct crew crew;
    struct exchange x;
    struct clock_span span;
    unsigned cpu = (unsigned)sched_getcpu();
    clock_span_begin(&span);
    CHECK(exchange_init(&x, MESSAGES, span.initial.hz / 1e9) == 0);
    /* Both on one CPU: that every machine has. */
    CHECK(crew_start(&crew, &x, cpu, cpu, 0) == 0);
    measure(&crew, &x, "channel", "block", 0.0);
    measure(&crew, &x, "tcp", "poll", 300.0);
    measure(&crew, &x, "udp", "minimal", 2000.0);
    crew_stop(&crew);
    exchange_deinit(&x);
}

/* Every third message is lost. */
static int lossy_send(struct link *link, const struct message *m)
{
    bool is_lost = m->sequence < MESSAGES && m->sequence % 3 == 0;
    return is_lost ? 0 : ring_send_waking(link->ring, m);
}

/* A receiver that misses messages is made to leave, and does not keep the run waiting for ever. */
static void lost_messages_end(const char *way)
{
    struct mechanism lossy = *mechanism_named("channel");
    struct crew crew;
    struct exchange x;
    struct link link;
    struct clock_span span;
    unsigned cpu = (unsigned)sched_getcpu();
    struct cell cell = {.mechanism = &lossy, .way = way_named(way)};
    int64_t scratch[MESSAGES];
    lossy.send = lossy_send;
    clock_span_begin(&span);
    CHECK(exchange_init(&x, MESSAGES, span.initial.hz / 1e9) == 0);
    CHECK(crew_start(&crew, &x, cpu, cpu, 0) == 0);
    CHECK(link_open(&link, &lossy) == 0);
    CHECK(cell.way->prepare(&link, 0) == 0);
    exchange_reset(&x, &link, cell.way, MESSAGES, (uint64_t)(1e5 * x.ticks_per_ns));
    crew_exchange(&crew);
    CHECK(cell_conclude(&cell, &x, scratch) == 0);
    CHECK(cell.sent == MESSAGES && cell.lost == 14 && cell.delay.n == MESSAGES - 14);
    cell_deinit(&cell);
    link_close(&link);
    crew_stop(&crew);
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
