/* What the loop costs against a bare read-and-compare loop, in alternating rounds: bench CPU. JSON. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "lib/clock.h"
#include "lib/host.h"
#include "lib/json.h"
#include "lib/loop.h"
#include "../recorders.h"
#include "lib/options.h"
#include "lib/thread.h"
#include "lib/ticks.h"

enum { ROUNDS = 51, ROUND_US = 2000, GAPS_CAPACITY = 65536, CALIBRATION_US = 20000 };

/* Ticks per undisturbed turn, a value for each round. */
struct bench {
    struct recorder recorder;
    double *bare;
    double *real;
    double *ratio;
    unsigned rounds;
    uint64_t threshold_ticks;
    uint64_t round_ticks;
};

static int bench_init(struct bench *b, unsigned rounds, double hz)
{
    *b = (struct bench){.rounds = rounds, .round_ticks = (uint64_t)(hz / 1e6 * (double)ROUND_US)};
    b->bare = calloc(rounds, sizeof(*b->bare));
    b->real = calloc(rounds, sizeof(*b->real));
    b->ratio = calloc(rounds, sizeof(*b->ratio));
    if (!b->bare || !b->real || !b->ratio)
        return -ENOMEM;
    double step_ticks = loop_step_ticks(b->round_ticks, 50, b->round_ticks / 100);
    b->threshold_ticks = (uint64_t)((double)DEFAULT_THRESHOLD_STEPS * step_ticks);
    return recorder_init(&b->recorder, GAPS_CAPACITY);
}

static void bench_deinit(struct bench *b)
{
    recorder_deinit(&b->recorder);
    free(b->bare);
    free(b->real);
    free(b->ratio);
}

/*
 * `turns` turns of the least loop that can see a gap: read, compare, next. What the real loop is judged against.
 * Returns the ticks taken without those of the gaps, and the gaps' number in `*gaps`.
 */
static __attribute__((noinline)) uint64_t loop_bare(uint64_t turns, uint64_t threshold, uint64_t *gaps)
{
    uint64_t gap_count = 0;
    uint64_t gap_ticks = 0;
    uint64_t start = ticks_now();
    uint64_t before = start;
    for (uint64_t left = turns; left; left--) {
        uint64_t now = ticks_now();
        if (__builtin_expect(now - before > threshold, 0)) {
            gap_count++;
            gap_ticks += now - before;
        }
        before = now;
    }
    *gaps = gap_count;
    return before - start - gap_ticks;
}

static double bare_turn_ticks(const struct bench *b, uint64_t turns)
{
    uint64_t gaps;
    uint64_t ticks = loop_bare(turns, b->threshold_ticks, &gaps);
    return (double)ticks / (double)(turns - gaps);
}

/* The loop as it measures, recording included; `*turns` is how many it made. */
static double real_turn_ticks(struct bench *b, uint64_t *turns)
{
    struct loop_totals totals;
    recorder_reset(&b->recorder);
    _Atomic uint64_t deadline = ticks_now() + b->round_ticks;
    loop_run(&b->recorder, b->threshold_ticks, &deadline, &totals);
    *turns = totals.turns;
    return (double)totals.quiet_ticks / (double)totals.quiet_turns;
}

/* Which loop goes first alternates, so that a clock that drifts favours neither. */
static void bench_run(struct bench *b)
{
    uint64_t turns;
    (void)real_turn_ticks(b, &turns);
    for (unsigned i = 0; i < b->rounds; i++) {
        if (i % 2)
            b->bare[i] = bare_turn_ticks(b, turns);
        b->real[i] = real_turn_ticks(b, &turns);
        if (i % 2 == 0)
            b->bare[i] = bare_turn_ticks(b, turns);
        b->ratio[i] = b->real[i] / b->bare[i];
    }
}

static int compare_reals(const void *left, const void *right)
{
    double a = *(const double *)left;
    double b = *(const double *)right;
    return (a > b) - (a < b);
}

static double median(double *values, unsigned n)
{
    qsort(values, n, sizeof(*values), compare_reals);
    return n % 2 ? values[n / 2] : (values[n / 2 - 1] + values[n / 2]) / 2.0;
}

static int bench_write(struct bench *b, double hz)
{
    struct json j = {.stream = stdout};
    json_open(&j, NULL, '{');
    json_uint(&j, "rounds", b->rounds);
    json_real(&j, "bare_ns", median(b->bare, b->rounds) * 1e9 / hz, 3);
    json_real(&j, "loop_ns", median(b->real, b->rounds) * 1e9 / hz, 3);
    json_real(&j, "ratio", median(b->ratio, b->rounds), 4);
    json_close(&j, '}');
    if (fflush(stdout) || ferror(stdout))
        return print_error(EXIT_FAILED, "cannot write standard output: %s", strerror(errno));
    return EXIT_OK;
}

static int pin_to(const char *text)
{
    struct cpus cpus;
    if (cpus_parse(&cpus, text) || cpus_count(&cpus) == 0)
        return print_error(EXIT_USAGE, "--cpus %s is not a CPU list; write one like 3", text);
    int rc = thread_pin(cpus_next(&cpus, 0));
    if (rc)
        (void)print_error(EXIT_USAGE, "cannot run on CPU %u: %s", cpus_next(&cpus, 0), strerror(-rc));
    return rc ? EXIT_USAGE : EXIT_OK;
}

int main(int argc, char **argv)
{
    int status = argc == 2 ? pin_to(argv[1]) : print_error(EXIT_USAGE, "name one CPU");
    if (status)
        return status;
    struct clock_pair first = clock_pair_now();
    struct timespec pause = {.tv_nsec = CALIBRATION_US * 1000L};
    (void)clock_nanosleep(CLOCK_MONOTONIC, 0, &pause, NULL);
    double hz = clock_rate_between(first, clock_pair_now(), 1).hz;
    struct bench bench;
    status = bench_init(&bench, ROUNDS, hz) ? print_error(EXIT_FAILED, "out of memory") : EXIT_OK;
    if (!status) {
        bench_run(&bench);
        status = bench_write(&bench, hz);
    }
    bench_deinit(&bench);
    return status;
}
