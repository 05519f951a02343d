#include "check.h"
#include "transports.h"
#include "wake/run.h"

#include <sched.h>
#include <stdlib.h>
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

/* What `write` puts into an object, as text; to be freed. */
static char *written(void (*write)(struct json *, void *), void *context)
{
    char *text = NULL;
    size_t length;
    FILE *stream = open_memstream(&text, &length);
    struct json j = {.stream = stream};
    json_open(&j, NULL, '{');
    write(&j, context);
    json_close(&j, '}');
    CHECK(fclose(stream) == 0);
    return text;
}

struct numbers {
    int64_t *of;
    size_t n;
};

static bool take_number(const void *context, size_t i, int64_t *value)
{
    const struct numbers *numbers = context;
    *value = numbers->of[i];
    return true;
}

static void write_numbers(struct json *j, void *context)
{
    const struct numbers *numbers = context;
    values_write(j, "values", 0, numbers->n, take_number, numbers);
}

static char *written_exchange(const struct exchange *x)
{
    static struct wake_run run;
    run.exchange = *x;
    return written(wake_write_measured, &run);
}

static bool holds(const char *text, const char *member)
{
    if (strstr(text, member))
        return true;
    (void)fprintf(stderr, "no %s in %s\n", member, text);
    return false;
}

static void values_are_grouped(void)
{
    int64_t some[] = {7, -3, 7, 1000000, 7, -3};
    char *text = written(write_numbers, &(struct numbers){some, 6});
    CHECK(holds(text, "\"values\": [-3, 2, 7, 3, 1000000, 1]"));
    free(text);
    text = written(write_numbers, &(struct numbers){some, 0});
    CHECK(holds(text, "\"values\": []"));
    free(text);
}

/* Too many different ones share buckets; both ends stay what they were, and so does the number. */
static void many_values_share_buckets(void)
{
    enum { N = 3 * VALUES_MOST };
    static int64_t many[N];
    int64_t n = 0;
    int64_t sum = 0;
    size_t pairs = 0;
    for (int64_t i = 0; i < N; i++)
        many[i] = 1000000 + 37 * (N - i);
    char *text = written(write_numbers, &(struct numbers){many, N});
    char *at = strchr(text, '[');
    for (int64_t last = 0; *at != ']'; pairs++) {
        int64_t value = strtoll(at + 1, &at, 10);
        int64_t count = strtoll(at + 1, &at, 10);
        CHECK(value > last);
        CHECK(pairs || (value == 1000037 && count == 1));
        CHECK(*at != ']' || (value == 1000000 + 37 * N && count == 1));
        last = value;
        n += count;
        sum += value * count;
    }
    CHECK(pairs > 2 && pairs <= VALUES_MOST && n == N);
    CHECK(llabs(sum - (1000000LL * N + 37LL * N * (N + 1) / 2)) < N);
    free(text);
}

/* 4 messages every 100 ticks: one late, one lost, one received before it was sent; one came before its receiver was ready. */
static void differences_of_made_up_stamps(void)
{
    struct transport transport = {.mechanism = mechanism_named("udp")};
    struct exchange x = {.transport = &transport, .method = wait_method_named("block"), .messages = 4, .ticks_per_ns = 1.0};
    CHECK(exchange_init(&x) == 0);
    const uint64_t before[] = {1000, 1100, 1230, 1300};
    const uint64_t at[] = {1050, 0, 1250, 1290};
    for (size_t i = 0; i < 4; i++) {
        x.sending.before[i] = before[i];
        x.sending.after[i] = before[i] + 30;
        x.receiving.at[i] = at[i];
    }
    x.sending.period_ticks = 100;
    x.sending.start_ticks = 1000;
    x.sending.n = 4;
    x.receiving.n = 3;
    x.receiving.ready[0] = 1100;
    x.receiving.ready[2] = 1301;
    char *text = written_exchange(&x);
    CHECK(holds(text, "\"delay\": [20, 1, 50, 1]") && holds(text, "\"after_send\": [-10, 1, 20, 1]"));
    CHECK(holds(text, "\"send_call\": [30, 2]") && holds(text, "\"late\": [0, 1, 30, 1]"));
    CHECK(holds(text, "\"arrived\": 3") && holds(text, "\"negative\": 1") && holds(text, "\"sent\": 4"));
    CHECK(holds(text, "\"unready\": 1") && !strstr(text, "\"far\""));
    free(text);
}

static void round_trips_leave_the_other_host_out(void)
{
    struct transport transport = {.mechanism = mechanism_named("udp")};
    struct exchange x = {.transport = &transport, .messages = 1, .ticks_per_ns = 1.0, .remote_ratio = 2.0};
    CHECK(exchange_init(&x) == 0);
    x.sending.before[0] = x.sending.start_ticks = 1000;
    x.receiving.at[0] = 1100;
    x.receiving.remote_ticks[0] = 10;
    x.sending.n = x.receiving.n = 1;
    char *text = written_exchange(&x);
    CHECK(holds(text, "\"delay\": [100, 1]") && holds(text, "\"far\": [20, 1]") && holds(text, "\"away\": [80, 1]"));
    free(text);
}

/* Sends messages by hand, out of order, twice and from nowhere, and lets the receiver count. */
static void what_should_not_come_is_counted(void)
{
    struct transport transport;
    struct exchange x = {.transport = &transport, .method = wait_method_named("minimal"), .messages = 4, .ticks_per_ns = 1.0};
    const uint64_t sequences[] = {0, 2, 1, 1, 77, 3};
    CHECK(exchange_init(&x) == 0);
    CHECK(transport_open(&transport, mechanism_named("channel"), sizeof(struct message)) == 0);
    for (size_t i = 0; i < sizeof(sequences) / sizeof(*sequences); i++)
        CHECK(transport.mechanism->send(&transport, &(struct message){.sequence = sequences[i], .sent = 1}) == 0);
    exchange_receive_all(&x);
    CHECK(x.receiving.n == 4 && x.receiving.error == 0);
    CHECK(x.receiving.reordered == 1 && x.receiving.duplicates == 2);
    transport_close(&transport);
}

/* Messages of 40 through both threads on one CPU, which every machine has. Returns the number of those that came. */
static size_t exchanged(const struct mechanism *mechanism, const char *method, double period_us, size_t working_set_bytes)
{
    static struct transport transport;
    static const struct options options = {.intrude = true};
    static struct pair pair;
    static struct exchange x;
    struct clock_span span;
    const unsigned cpu = (unsigned)sched_getcpu();
    clock_span_begin(&span);
    double ticks_per_ns = span.initial.hz / 1e9;
    x = (struct exchange){.transport = &transport, .method = wait_method_named(method), .messages = MESSAGES,
                          .ticks_per_ns = ticks_per_ns, .working_set_bytes = working_set_bytes,
                          .sending.period_ticks = (uint64_t)(period_us * 1e3 * ticks_per_ns)};
    CHECK(transport_open(&transport, mechanism, sizeof(struct message)) == 0);
    CHECK(wait_method_prepare(x.method, &transport, 1, 50) == 0);
    CHECK(exchange_init(&x) == 0);
    pair = (struct pair){.experiment = &wake_experiment, .options = &options, .context = &x, .ticks_per_ns = ticks_per_ns,
                         .ends = {{.cpu = cpu}, {.cpu = cpu}}};
    CHECK(pair_start(&pair) == 0);
    CHECK(!pair.offset.is_known);
    bool is_over = exchange_run(&x, &pair);
    size_t n = x.receiving.n;
    CHECK(x.sending.n == MESSAGES && x.sending.period_ticks > 0 && is_over == (n == MESSAGES));
    for (size_t i = 0; i < MESSAGES; i++) {
        /* Nothing is sent before it is due, and nothing is cold that need not be. */
        CHECK(x.sending.before[i] >= x.sending.start_ticks + i * x.sending.period_ticks);
        CHECK(!x.receiving.at[i] || !x.receiving.ready[i] == !working_set_bytes);
    }
    /* A receiver that still waits has what it waits with. */
    pair_end(&pair, is_over);
    if (is_over)
        transport_close(&transport);
    return n;
}

/* Every third message is lost. */
static int lossy_send(struct transport *transport, const struct message *m)
{
    bool is_lost = m->sequence < MESSAGES && m->sequence % 3 == 0;
    return is_lost ? 0 : ring_send_waking(transport, m);
}

void test_exchange(void)
{
    static struct mechanism lossy;
    lossy = *mechanism_named("channel");
    lossy.send = lossy_send;
    values_are_grouped();
    many_values_share_buckets();
    differences_of_made_up_stamps();
    round_trips_leave_the_other_host_out();
    what_should_not_come_is_counted();
    CHECK(exchanged(mechanism_named("channel"), "block", 0.0, 0) == MESSAGES);
    CHECK(exchanged(mechanism_named("tcp"), "poll", 300.0, 64 * 1024) == MESSAGES);
    CHECK(exchanged(mechanism_named("udp"), "minimal", 2000.0, 0) == MESSAGES);
    CHECK(exchanged(mechanism_named("eventloop"), "epoll", 500.0, 0) == MESSAGES);
    CHECK(exchanged(mechanism_named("timerfd"), "poll", 200.0, 0) == MESSAGES);
    CHECK(exchanged(mechanism_named("clock_nanosleep"), "block", 200.0, 4096) == MESSAGES);
    /* A receiver that misses messages is left, and does not keep the run waiting for ever. */
    CHECK(exchanged(&lossy, "block", 100.0, 0) == MESSAGES - 14);
}
