#include "check.h"
#include "lib/output.h"
#include "sentinel/sentinel.h"

#include <string.h>
#include <unistd.h>

enum { MANY = 500 };

static struct gap_group groups[MANY];

static struct sentinel_reading reading_of(const struct gap_lengths *lengths)
{
    return (struct sentinel_reading){
        .cpu = 3,
        .period_s = 1.0,
        .core_khz = 3500000.4,
        .counter_khz = 2300000.0,
        .threshold_ns = 160,
        .spin_ns = 2e7,
        .gaps = lengths->gaps,
        .max_ns = 900.0,
        .lengths = lengths,
        .tick_ns = 0.5,
    };
}

static void a_line_is_whole(void)
{
    char line[SENTINEL_LINE_MOST];
    groups[0] = (struct gap_group){400.0, 2};
    groups[1] = (struct gap_group){1800.0, 1};
    struct gap_lengths lengths = {.groups = groups, .n = 2, .gaps = 3, .exact = true};
    struct sentinel_reading reading = reading_of(&lengths);
    size_t length = sentinel_line(line, sizeof(line), &reading);
    CHECK(length == strlen(line) && line[length - 1] == '\n');
    CHECK(strstr(line, "\"cpu\":3,") && strstr(line, "\"core_khz\":3500000,") && strstr(line, "\"gaps\":3,"));
    CHECK(strstr(line, "\"gap_ns\":[[200,2],[900,1]]}\n") != NULL);
    lengths.n = 0;
    CHECK(sentinel_line(line, sizeof(line), &reading) > 0);
    CHECK(strstr(line, "\"gap_ns\":[]}\n") != NULL);
}

/* However many lengths there are, the longest are listed, every gap is counted, and the line fits what a pipe takes whole. */
static void many_lengths_fit(void)
{
    char line[SENTINEL_LINE_MOST];
    uint64_t counted = 0;
    for (size_t i = 0; i < MANY; i++)
        groups[i] = (struct gap_group){1e15 + (double)i, UINT64_C(1000000000)};
    struct gap_lengths lengths = {.groups = groups, .n = MANY, .gaps = MANY * UINT64_C(1000000000)};
    struct sentinel_reading reading = reading_of(&lengths);
    CHECK(sentinel_line(line, sizeof(line), &reading) > 0);
    size_t listed = 0;
    for (const char *at = strstr(line, "gap_ns\":[["); at && (at = strchr(at, ',')); at = strchr(at, '[')) {
        unsigned long long count = 0;
        CHECK(sscanf(at, ",%llu]", &count) == 1);
        counted += count;
        listed++;
    }
    CHECK(listed == SENTINEL_GROUPS_MOST + 1);
    CHECK(counted == lengths.gaps);
}

static void a_line_that_does_not_fit_is_none(void)
{
    char line[SENTINEL_LINE_MOST];
    groups[0] = (struct gap_group){400.0, 2};
    struct gap_lengths lengths = {.groups = groups, .n = 1, .gaps = 2};
    struct sentinel_reading reading = reading_of(&lengths);
    size_t whole = sentinel_line(line, sizeof(line), &reading);
    for (size_t size = 1; size <= whole; size++)
        CHECK(sentinel_line(line, size, &reading) == 0);
    CHECK(sentinel_line(line, whole + 1, &reading) == whole);
}

static int parse(struct sentinel_options *options, const char *first, const char *second)
{
    char copies[2][32];
    (void)snprintf(copies[0], sizeof(copies[0]), "%s", first);
    (void)snprintf(copies[1], sizeof(copies[1]), "%s", second);
    char *argv[] = {(char[]){"tunectl-probe"}, (char[]){"sentinel"}, copies[0], copies[1], NULL};
    return sentinel_options_parse(options, 4, argv);
}

static void options_are_read(void)
{
    struct sentinel_options o;
    CHECK(parse(&o, "--cpu", "5") == EXIT_OK);
    CHECK(o.cpu == 5 && o.duty_percent == 2 && o.lines == 0);
    CHECK(o.period_s > 0.99 && o.period_s < 1.01);
    CHECK(parse(&o, "--period", "0.25") == EXIT_OK && o.period_s < 0.26);
    CHECK(o.cpu == SENTINEL_NO_CPU);
    CHECK(parse(&o, "--duty", "100") == EXIT_OK && o.duty_percent == 100);
    CHECK(parse(&o, "--lines", "7") == EXIT_OK && o.lines == 7);
    CHECK(parse(&o, "--threshold-ns", "700") == EXIT_OK && o.threshold_ns == 700);
}

void test_sentinel(void)
{
    a_line_is_whole();
    many_lengths_fit();
    a_line_that_does_not_fit_is_none();
    options_are_read();
}
