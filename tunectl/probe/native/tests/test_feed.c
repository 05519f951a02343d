#include "check.h"
#include "feed/run.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static const struct quote some = {"SYM01", 1000000007, 2500012345678, 150000000, 2500012345679, INT64_C(999999999999999999)};

static bool reads(const char *text)
{
    struct quote q;
    return quote_read_json(&q, text, strlen(text));
}

static void a_quote_reads_back(void)
{
    char text[QUOTE_JSON_MOST];
    uint8_t record[QUOTE_BINARY];
    uint8_t longer[100];
    struct quote back = {0};
    size_t length = quote_write_json(text, &some, 1700000000000000000);
    CHECK(quote_read_json(&back, text, length) && memcmp(&back, &some, sizeof(some)) == 0);
    for (size_t n = 0; n < length; n++)
        CHECK(!quote_read_json(&back, text, n));
    CHECK(quote_write_binary(record, &some, 0) == QUOTE_BINARY);
    memset(&back, 0, sizeof(back));
    CHECK(quote_read_binary(&back, record, sizeof(record)) && memcmp(&back, &some, sizeof(some)) == 0);
    CHECK(!quote_read_binary(&back, record, sizeof(record) - 1));
    CHECK(quote_write_binary(longer, &some, sizeof(longer)) == sizeof(longer));
    CHECK(quote_binary_length(longer, QUOTE_BINARY) == sizeof(longer) && quote_binary_length(longer, QUOTE_BINARY - 1) == 0);
    CHECK(quote_read_binary(&back, longer, sizeof(longer)) && memcmp(&back, &some, sizeof(some)) == 0);
    CHECK(!quote_read_binary(&back, longer, sizeof(longer) - 1));
    record[4] = 63;
    CHECK(!quote_read_binary(&back, record, sizeof(record)) && quote_binary_length(record, sizeof(record)) == 0);
}

#define REST "\"b\":\"1.5\",\"B\":\"2\",\"a\":\"1.6\",\"A\":\"3\""

static void json_has_one_shape_in_any_order(void)
{
    struct quote q;
    static const char text[] = " { \"x\" : [1] } ";
    static const char other[] = "{\"A\":\"3\",\"extra\":null,\"a\":\"1.6\", \"s\" : \"X\",\"note\":\"a\\\"b\",\"u\":5,\"B\":\"2\",\"b\":\"1.5\"}";
    CHECK(quote_read_json(&q, other, sizeof(other) - 1));
    CHECK(q.update == 5 && q.bid_price == 150000000 && q.ask_size == 300000000 && strcmp(q.symbol, "X") == 0);
    CHECK(!reads(text));
    CHECK(reads("{\"s\":\"X\",\"u\":5," REST "}"));
    CHECK(!reads("{\"s\":\"X\"," REST "}"));                            /* no update */
    CHECK(!reads("{\"s\":\"X\",\"u\":5,\"u\":5," REST "}"));            /* twice */
    CHECK(!reads("{\"s\":\"X\",\"u\":\"5\"," REST "}"));                /* a string for a number */
    CHECK(!reads("{\"s\":\"X\",\"u\":-5," REST "}"));
    CHECK(!reads("{\"s\":\"X\",\"u\":1234567890123456789," REST "}"));  /* 19 digits */
    CHECK(!reads("{\"s\":\"\",\"u\":5," REST "}"));
    CHECK(reads("{\"s\":\"123456789012345\",\"u\":5," REST "}"));
    CHECK(!reads("{\"s\":\"1234567890123456\",\"u\":5," REST "}"));     /* 16 characters */
    CHECK(!reads("{\"s\":\"X\\n\",\"u\":5," REST "}"));
    CHECK(!reads("{\"s\":\"X\",\"u\":5," REST "}x"));
    CHECK(!reads("{\"s\":\"X\",\"u\":5," REST ",}"));
    CHECK(!reads("{\"s\":\"X\",\"u\":5,\"b\":\"1.123456789\",\"B\":\"2\",\"a\":\"1\",\"A\":\"3\"}"));   /* nine decimals */
    CHECK(!reads("{\"s\":\"X\",\"u\":5,\"b\":\"1.\",\"B\":\"2\",\"a\":\"1\",\"A\":\"3\"}"));
    CHECK(!reads("{\"s\":\"X\",\"u\":5,\"b\":\".5\",\"B\":\"2\",\"a\":\"1\",\"A\":\"3\"}"));
}

/* The only symbol's; 0 where there is none. */
static int64_t bid_price(const struct book *book)
{
    for (size_t i = 0; i < BOOK_SLOTS; i++)
        if (book->slots[i].symbol[0])
            return book->slots[i].bid_price;
    return 0;
}

static void the_book_keeps_the_latest(void)
{
    static struct book book;
    struct quote q = some;
    CHECK(bid_price(&book) == 0 && book_apply(&book, &q) && book.symbols == 1);
    CHECK(!book_apply(&book, &q));
    q.update++;
    q.bid_price++;
    CHECK(book_apply(&book, &q) && bid_price(&book) == some.bid_price + 1);
    q.update -= 2;
    q.bid_price += 5;
    CHECK(!book_apply(&book, &q) && bid_price(&book) == some.bid_price + 1);
    char other[QUOTE_SYMBOL] = "OTHER";
    /* As many symbols as it holds, and not one more. */
    for (unsigned i = 1; i < BOOK_SYMBOLS; i++) {
        memset(q.symbol, 0, sizeof(q.symbol));
        (void)snprintf(q.symbol, sizeof(q.symbol), "S%u", i);
        CHECK(book_apply(&book, &q));
    }
    memcpy(q.symbol, other, sizeof(other));
    CHECK(!book_apply(&book, &q) && book.symbols == BOOK_SYMBOLS);
}

/* Both clocks at 1 GHz; at 10 s the other one is at 3 s. */
static void stamps_become_ticks(void)
{
    static struct stamps s;
    s = (struct stamps){.n = 3, .hz = 1e9};
    for (uint64_t i = 0; i < 3; i++)
        s.readings[i] = (struct clock_pair){3000000000 + i * 100000000, 20, 10000000000 + i * 100000000};
    CHECK(stamps_ticks(&s, 10000000000) == 3000000000);
    CHECK(stamps_ticks(&s, 10150000000) == 3150000000);
    CHECK(stamps_ticks(&s, 10000000500) == 3000000500);     /* back in time */
    CHECK(stamps_ticks(&s, 10250000000) == 3250000000);     /* behind the last */
    CHECK(stamps_ticks(&s, 9999999000) == 2999999000);      /* before the first */
}

static void stages_add_up(void)
{
    static struct feed_run run;
    static struct arrival arrivals[2];
    static uint64_t sent[2] = {1010, 2010};
    struct planned plan[2] = {{0, 0}, {1000, 0}};
    int64_t stages[STAGES];
    run = (struct feed_run){.plan = plan, .messages = 2, .start_ticks = 1000, .sender.sent = sent, .receiver.arrivals = arrivals};
    run.stamps.n = 2;
    run.stamps.readings[0] = (struct clock_pair){0, 0, 0};
    run.stamps.readings[1] = (struct clock_pair){10000, 0, 10000};
    arrivals[0] = (struct arrival){1050, 1070, 1090, 1095, 1100, 1120, 1125, 1};
    arrivals[1] = (struct arrival){2050, 2030, 2090, 2095, 2100, 2120, 2125, 1};   /* read while it came */
    const int64_t stamped[2][STAGES] = {{10, 40, 20, 20, 5, 5, 20, 5}, {10, 40, 0, 40, 5, 5, 20, 5}};
    const int64_t unstamped[2][STAGES] = {{10, 0, 60, 20, 5, 5, 20, 5}, {10, 0, 20, 60, 5, 5, 20, 5}};
    for (size_t i = 0; i < 2; i++) {
        feed_stages(&run, i, true, stages);
        CHECK(memcmp(stages, stamped[i], sizeof(stages)) == 0);
        feed_stages(&run, i, false, stages);
        CHECK(memcmp(stages, unstamped[i], sizeof(stages)) == 0);
    }
}

static void a_burst_is_due_at_once(void)
{
    struct options options = {.burst = 4, .rate = 1000, .duration_s = 0.1, .symbols = 1};
    struct feed_run run = {.pair = {.options = &options, .clock.initial.hz = 1e9}, .start_ticks = 5};
    CHECK(feed_plan(&run) == 0 && run.warm_ups == 200 && run.messages == 300);
    CHECK(feed_due(&run, 0) == 5 && feed_due(&run, 3) == 5 && feed_due(&run, 4) == 4000005 && feed_due(&run, 7) == 4000005);
    CHECK(run.after_ticks == 4000000);
}

static void messages_of_a_run_have_one_length(void)
{
    unsigned char message[FEED_MESSAGE_MOST];
    struct quote q;
    struct options options = {.burst = 1, .symbols = 64, .rate = 1000000, .duration_s = 3.9};
    struct feed_run run = {.pair = {.options = &options, .clock.initial.hz = 1e9}, .transport = &feed_transports[0], .format = &feed_formats[0]};
    CHECK(feed_plan(&run) == 0);
    size_t length = feed_write_message(&run, message, 0);
    uint64_t seed = 1;
    for (int i = 0; i < 10000; i++)
        CHECK(feed_write_message(&run, message, random_next(&seed) % run.messages) == length);
    CHECK(feed_write_message(&run, message, run.messages - 1) == length);
    /* Padded, it reads as before. */
    run.plan[5].bytes = 1000;
    CHECK(feed_write_message(&run, message, 5) == 1004 && quote_read_json(&q, (char *)message + 4, 1000) && q.update == FEED_FIRST_UPDATE + 5);
}

static char *written_feed(struct feed_run *run)
{
    char *text = NULL;
    size_t length;
    FILE *stream = open_memstream(&text, &length);
    struct json j = {.stream = stream};
    json_open(&j, NULL, '{');
    feed_write_measured(&j, run);
    json_close(&j, '}');
    CHECK(fclose(stream) == 0);
    return text;
}

#define HOLDS(text, part) CHECK(strstr(text, part) != NULL)

/* A warm-up; one that came; one that was lost; one that was not sent; one that came with another; one that is due after the end. */
static void what_became_of_each_message_is_counted_once(void)
{
    enum { N = 6 };
    static struct feed_run run;
    static struct arrival arrivals[N];
    struct planned plan[N] = {{0, 0}, {1000, 0}, {2000, 0}, {3000, 0}, {4000, 0}, {5000, 0}};
    uint64_t sent[N] = {5, 1010, 2010, 0, 4100, 5001};
    struct options options = {.symbols = 1};
    run = (struct feed_run){.pair.options = &options, .plan = plan, .messages = N, .warm_ups = 1, .end_ticks = 5000,
                            .sender.sent = sent, .receiver.arrivals = arrivals, .stamps_reason = "", .grown = 2};
    run.stamps = (struct stamps){.is_on = true, .were_on = -1, .n = 2, .doubt_ticks = 10, .readings[1] = {10000, 0, 10000}};
    arrivals[0] = (struct arrival){10, 11, 12, 13, 14, 15, 16, 1};
    arrivals[1] = (struct arrival){1050, 1070, 1090, 1095, 1100, 1120, 1125, 1};
    arrivals[4] = (struct arrival){4089, 4170, 4190, 4195, 4200, 4220, 4225, 2};
    run.receiver.batches[1] = 7;
    run.receiver.batches[3] = 2;
    run.receiver.drops[0] = 3;
    run.receiver.drops[1] = 8;
    run.sender.error = -5;
    run.receiver.error = -6;
    CHECK(feed_due_n(&run) == 4);
    char *text = written_feed(&run);
    HOLDS(text, "\"warm_ups\": 1");
    HOLDS(text, "\"grown\": 2");
    HOLDS(text, "\"due\": 4");
    HOLDS(text, "\"sent\": 3");
    HOLDS(text, "\"arrived\": 2");
    HOLDS(text, "\"unsent\": 1");
    HOLDS(text, "\"stamp_shared\": 1");
    HOLDS(text, "\"unsent_ticks\": [2000, 1]");
    HOLDS(text, "\"total\": [125, 1, 225, 1]");
    HOLDS(text, "\"late\": [10, 1, 100, 1]");
    HOLDS(text, "\"wire\": [-11, 1, 40, 1]");
    HOLDS(text, "\"kernel\": [20, 1, 81, 1]");
    HOLDS(text, "\"stamped\": true");
    HOLDS(text, "\"uncertainty_ticks\": 10");
    HOLDS(text, "\"were_on\": null");
    HOLDS(text, "\"wire\": 1");       /* less than nothing by more than the doubt */
    HOLDS(text, "\"read\": 0");
    HOLDS(text, "\"failed\": \"sending\"");
    HOLDS(text, "\"errno\": 5");
    HOLDS(text, "\"socket\": 5");
    HOLDS(text, "\"start\": 1000");
    HOLDS(text, "\"interval_ticks\": 21");
    HOLDS(text, "[1, 125, 125]");
    HOLDS(text, "[1, 225, 225]");
    free(text);
    /* A message without a stamp, or a clock that was set: then the wire is in the kernel's time. */
    run.stamps.doubt_ticks = 11;
    text = written_feed(&run);
    CHECK(strstr(text, "\"wire\": 0") && !strstr(text, "\"wire\": 1"));
    free(text);
    for (unsigned stepped = 0; stepped < 2; stepped++) {
        arrivals[1].stamp_ns = stepped ? 1050 : 0;
        run.stamps.is_stepped = stepped;
        text = written_feed(&run);
        HOLDS(text, "\"stamped\": false");
        HOLDS(text, "\"wire\": []");
        HOLDS(text, "\"kernel\": [60, 1, 70, 1]");
        free(text);
    }
    run.sender.error = 0;
    run.receiver.drops[1] = 2;
    text = written_feed(&run);
    HOLDS(text, "\"failed\": \"receiving\"");
    HOLDS(text, "\"errno\": 6");
    HOLDS(text, "\"socket\": null");
    free(text);
}

static int planned_from(struct feed_run *run, struct options *options, const char *lines)
{
    char path[] = "/tmp/tunectl-plan-XXXXXX";
    int fd = mkstemp(path);
    CHECK(fd >= 0 && write(fd, lines, strlen(lines)) == (ssize_t)strlen(lines) && close(fd) == 0);
    *options = (struct options){.plan = path, .rate = 1000, .symbols = 1};
    *run = (struct feed_run){.pair = {.options = options, .clock.initial.hz = 2e9, .ticks_per_ns = 2.0}, .start_ticks = 5,
                             .transport = &feed_transports[1], .format = &feed_formats[2]};
    int errors = dup(STDERR_FILENO);
    CHECK(freopen("/dev/null", "w", stderr) != NULL);
    int status = feed_plan(run);
    CHECK(fflush(stderr) == 0 && dup2(errors, STDERR_FILENO) >= 0 && close(errors) == 0 && unlink(path) == 0);
    options->plan = NULL;
    return status;
}

static void a_capture_is_sent_at_its_times(void)
{
    struct options options;
    struct feed_run run;
    CHECK(planned_from(&run, &options, "0 500\n100 1\n100 0\n86400000000000 1400\n") == EXIT_OK);
    CHECK(run.warm_ups == 200 && run.messages == 204 && run.grown == 2);
    CHECK(feed_due(&run, 200) == 5 + 200 * UINT64_C(2000000) && feed_due(&run, 199) == 5 + 199 * UINT64_C(2000000));
    CHECK(feed_due(&run, 201) - feed_due(&run, 200) == 200 && feed_due(&run, 202) == feed_due(&run, 201));
    CHECK(feed_due(&run, 203) - feed_due(&run, 200) == UINT64_C(172800000000000) && run.plan[203].bytes == 1400);
    static const char *const wrong[] = {"", "5 1", "x 1\n", "5 x\n", "5\n", "5 1 1\n", "5 1\n4 1\n", "86400000000001 1\n", "5 1000000\n", "-1 1\n"};
    for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++)
        CHECK(planned_from(&run, &options, wrong[i]) == EXIT_USAGE);
}

static void a_plan_is_as_long_as_was_asked_for(void)
{
    static const struct {
        struct options options;
        size_t warm_ups;
        size_t messages;
    } plans[] = {
        {{.rate = 1000, .burst = 1, .duration_s = 0.5}, 200, 700},
        {{.rate = 499, .burst = 1, .duration_s = 1.0}, 100, 599},
        {{.rate = 505, .burst = 1, .duration_s = 1.0}, 101, 606},
        {{.rate = 1000000, .burst = 1, .duration_s = 0.01}, 20000, 30000},
        {{.rate = 1000, .burst = 3, .duration_s = 0.5}, 201, 701},
        {{.rate = 1000, .burst = 1, .duration_s = 0.0004}, 200, 201},
        {{.rate = 1000, .burst = 1, .duration_s = 0.0016}, 200, 202},
    };
    for (size_t i = 0; i < sizeof(plans) / sizeof(*plans); i++) {
        struct feed_run run = {.pair = {.options = &plans[i].options, .clock.initial.hz = 1e9}};
        CHECK(feed_plan(&run) == EXIT_OK && run.warm_ups == plans[i].warm_ups && run.messages == plans[i].messages);
    }
}

/* The real clocks, and one that was set by a millisecond between two readings. */
static void a_clock_that_is_set_makes_stamps_void(void)
{
    for (int by_ns = -1000000; by_ns <= 1000000; by_ns += 1000000) {
        static struct stamps s;
        struct clock_span span;
        s = (struct stamps){.n = 0};
        CHECK(stamps_choose(&s, NULL) == 0 && !s.is_hardware && s.clock == CLOCK_REALTIME);
        clock_span_begin(&span);
        stamps_begin(&s);
        s.readings[0].raw_ns += (uint64_t)(int64_t)by_ns;
        sleep_ns(1000000);
        stamps_end(&s, span.initial.hz);
        CHECK(s.n >= 2 && s.doubt_ticks >= 3 && s.is_stepped == (by_ns != 0));
    }
    static struct stamps s;
    CHECK(stamps_choose(&s, "/nonexistent") < 0);
}

void test_feed(void)
{
    what_became_of_each_message_is_counted_once();
    a_capture_is_sent_at_its_times();
    a_plan_is_as_long_as_was_asked_for();
    a_clock_that_is_set_makes_stamps_void();
    a_quote_reads_back();
    json_has_one_shape_in_any_order();
    the_book_keeps_the_latest();
    stamps_become_ticks();
    stages_add_up();
    a_burst_is_due_at_once();
    messages_of_a_run_have_one_length();
}
