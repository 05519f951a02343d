#include "check.h"
#include "lib/options.h"
#include "sentinel/sentinel.h"

#include <string.h>
#include <unistd.h>

enum { MANY = 500 };

static struct histogram histogram;

static struct sentinel period(void)
{
    static const struct options options = {.cpu = 3, .period_s = 1.0};
    return (struct sentinel){
        .options = &options,
        .recorder = {.histogram = &histogram, .gaps_total = 3, .max_ticks = 1800},
        .rate.hz = 2e9,
        .threshold_ticks = 320,
        .spin_ticks = 40000000,
        .cycles_per_tick = 1.7500002,
    };
}

static void a_line_is_whole(void)
{
    char line[SENTINEL_LINE_MOST];
    struct sentinel r = period();
    memset(&histogram, 0, sizeof(histogram));
    CHECK(sentinel_line(line, sizeof(line), &r) > 0);
    CHECK(strstr(line, "\"gap_ns\":[]}\n") != NULL);
    histogram_add(&histogram, 400);
    histogram_add(&histogram, 400);
    histogram_add(&histogram, 1800);
    size_t length = sentinel_line(line, sizeof(line), &r);
    CHECK(length == strlen(line) && line[length - 1] == '\n');
    CHECK(strstr(line, "\"cpu\":3,") && strstr(line, "\"core_khz\":3500000,") && strstr(line, "\"gaps\":3,"));
    CHECK(strstr(line, "\"gap_ns\":[[200,2],[900,1]]}\n") != NULL);
}

/* However many lengths there are, the longest are listed, every gap is counted, and the line fits what a pipe takes whole. */
static void many_lengths_fit(void)
{
    char line[SENTINEL_LINE_MOST];
    uint64_t counted = 0;
    struct sentinel r = period();
    memset(&histogram, 0, sizeof(histogram));
    for (size_t i = 0; i < MANY; i++)
        histogram.buckets[HISTOGRAM_BUCKETS / 2 + i] = (struct histogram_bucket){UINT64_C(1000000000), UINT64_C(1) << 62};
    CHECK(sentinel_line(line, sizeof(line), &r) > 0);
    size_t listed = 0;
    for (const char *at = strstr(line, "gap_ns\":[["); at && (at = strchr(at, ',')); at = strchr(at, '[')) {
        unsigned long long count = 0;
        CHECK(sscanf(at, ",%llu]", &count) == 1);
        counted += count;
        listed++;
    }
    CHECK(listed == SENTINEL_GROUPS_MOST + 1);
    CHECK(counted == MANY * UINT64_C(1000000000));
}

static void a_line_that_does_not_fit_is_none(void)
{
    char line[SENTINEL_LINE_MOST];
    struct sentinel r = period();
    memset(&histogram, 0, sizeof(histogram));
    histogram_add(&histogram, 400);
    size_t whole = sentinel_line(line, sizeof(line), &r);
    for (size_t size = 1; size <= whole; size++)
        CHECK(sentinel_line(line, size, &r) == 0);
    CHECK(sentinel_line(line, whole + 1, &r) == whole);
}

static int parse(struct options *options, const char *first, const char *second)
{
    char copies[2][32];
    (void)snprintf(copies[0], sizeof(copies[0]), "%s", first);
    (void)snprintf(copies[1], sizeof(copies[1]), "%s", second);
    char *argv[] = {(char[]){"tunectl-probe"}, (char[]){"sentinel"}, copies[0], copies[1], NULL};
    return options_parse(&sentinel_command, options, 4, argv);
}

static void options_are_read(void)
{
    struct options o;
    CHECK(parse(&o, "--cpu", "5") == EXIT_OK);
    CHECK(o.cpu == 5 && o.duty_percent == 2 && o.lines == 0);
    CHECK(o.period_s > 0.99 && o.period_s < 1.01);
    CHECK(parse(&o, "--period", "0.25") == EXIT_OK && o.period_s < 0.26);
    CHECK(o.cpu == -1);
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
