#include "check.h"
#include "feed/run.h"

#include <stdlib.h>
#include <string.h>

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

void test_feed(void)
{
    a_quote_reads_back();
    json_has_one_shape_in_any_order();
    the_book_keeps_the_latest();
    stamps_become_ticks();
    stages_add_up();
    a_burst_is_due_at_once();
    messages_of_a_run_have_one_length();
}
