/*
 * Every parser of the probe, and its command line, fed with mangled text. Made for the sanitizers: each input lies in a block of
 * exactly its size, so that a step beyond it is seen. What goes wrong is the same on every run with the same arguments.
 *
 *   fuzz ROUNDS [SEED]
 */
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "jitter/causes.h"
#include "jitter/counters.h"
#include "jitter/options.h"
#include "jitter/periods.h"
#include "jitter/tracefs.h"
#include "jitter/tracestream.h"
#include "lib/cpus.h"
#include "lib/output.h"
#include "selftest/options.h"
#include "sentinel/options.h"
#include "wake/options.h"

enum { LARGEST = 4096 };

/* As in the tests: splitmix64, the same stream for the same seed. */
static uint64_t state;

static uint64_t draw(uint64_t below)
{
    uint64_t z = (state += UINT64_C(0x9e3779b97f4a7c15));
    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return (z ^ (z >> 31)) % below;
}

static void fail(const char *what)
{
    (void)fprintf(stderr, "fuzz: %s\n", what);
    abort();
}

static void claim(bool holds, const char *what)
{
    if (!holds)
        fail(what);
}

/* Words that mean something to one parser or another: cut in anywhere, they reach further than random bytes do. */
static const char *const words[] = {
    "\n", " ", ":", "[", "]", "(", ")", "-", ",", "/", "0", "9", "18446744073709551616", "4294967295", "-1", "=", "CPU0", "CPU",
    "cpu0 ", "tracefs", " ==> next_comm=", " next_pid=", "action=", "name=", "irq=", "reason:", "function ", "remote shootdown",
    "overrun:", "dropped events:", "sched_switch: ", "softirq_entry: ", "\xff", "--", "--cpus", "--duration", "nan", "1e999", "0x1p4",
};

static void insert(char *text, size_t *length, const char *piece, size_t piece_length, size_t at)
{
    if (*length + piece_length > LARGEST)
        return;
    memmove(text + at + piece_length, text + at, *length - at);
    memcpy(text + at, piece, piece_length);
    *length += piece_length;
}

static void mutate_once(char *text, size_t *length)
{
    size_t at = (size_t)draw(*length + 1);
    size_t span = (size_t)draw(24);
    const char *word = words[draw(sizeof(words) / sizeof(*words))];
    char copy[24];
    switch (draw(5)) {
    case 0:
        if (at < *length)
            text[at] = (char)draw(256);
        break;
    case 1:
        insert(text, length, word, strlen(word), at);
        break;
    case 2: /* a piece is cut out */
        span = span > *length - at ? *length - at : span;
        memmove(text + at, text + at + span, *length - at - span);
        *length -= span;
        break;
    case 3: /* a piece is doubled */
        span = span > *length - at ? *length - at : span;
        memcpy(copy, text + at, span);
        insert(text, length, copy, span, at);
        break;
    default: /* and it ends here, rarely */
        if (draw(8) == 0)
            *length = at;
    }
}

/* A mangled copy of `seed`, exactly as large as its length, or with a NUL behind it; to be freed. */
static char *mangled(const char *seed, size_t *length, bool with_nul)
{
    static char text[LARGEST];
    *length = strlen(seed);
    memcpy(text, seed, *length);
    for (uint64_t left = draw(12); left; left--)
        mutate_once(text, length);
    char *exact = malloc(*length + with_nul + (*length + with_nul == 0));
    if (!exact)
        fail("out of memory");
    memcpy(exact, text, *length);
    if (with_nul)
        exact[*length] = '\0';
    return exact;
}

static void fuzz_counters(struct span text)
{
    struct cpu_list cpus;
    struct counter_table table;
    struct cpu_times times;
    if (cpu_list_parse(&cpus, "0-3,200"))
        fail("out of memory");
    if (counter_table_parse(&table, text.at, text.length, &cpus) == 0) {
        for (size_t row = 0; row < table.n_rows; row++)
            claim(counter_delta(&table, &table, row, 4) == 0, "a table differs from itself");
        counter_table_deinit(&table);
    }
    (void)cpu_times_parse(&times, text.at, text.length, 1);
    cpu_list_deinit(&cpus);
}

static void fuzz_cpu_list(struct span text)
{
    struct cpu_list list;
    struct cpu_list again;
    static char formatted[1 << 20];
    if (cpu_list_parse(&list, text.at))
        return;
    cpu_list_format(&list, formatted, sizeof(formatted));
    claim(cpu_list_parse(&again, formatted) == 0 && again.n == list.n, "a list reads back as another");
    char *mask = cpu_list_mask(&list);
    claim(mask && strlen(mask) > 0, "a list without a mask");
    free(mask);
    cpu_list_deinit(&list);
    cpu_list_deinit(&again);
}

static void fuzz_mounts(struct span text)
{
    struct span point;
    uint64_t start;
    if (tracefs_mount_point(text, &point))
        claim(point.at >= text.at && point.at + point.length <= text.at + text.length, "a mount point from elsewhere");
    (void)tracefs_start_time(text, &start);
    (void)trace_stats_lost(text);
}

static int join(void *causes, const struct trace_event *event)
{
    return causes_add(causes, event);
}

/* The whole way of a trace: pieces of any size, lines, events, causes, table. */
static void fuzz_trace(struct span text)
{
    static struct tracestream stream;
    static struct cause_row rows[CAUSE_LABELS_MAX];
    struct gap gaps[] = {{1, 2}, {10, 300}, {400, 500}, {1000, UINT64_C(40000000000000)}};
    struct recorder recorder = {.gaps = gaps, .gaps_listed = 4, .gaps_total = 4};
    struct causes causes;
    uint64_t count = 0;
    if (causes_init(&causes, gaps, 4, 4711))
        fail("out of memory");
    stream.length = 0;
    stream.skipping = false;
    for (size_t at = 0; at < text.length;) {
        size_t piece = (size_t)draw(64) + 1;
        piece = piece > text.length - at ? text.length - at : piece;
        claim(tracestream_feed(&stream, text.at + at, piece, join, &causes) == 0, "a piece failed");
        at += piece;
    }
    claim(causes_finish(&causes, draw(2)) == 0, "the end failed");
    for (size_t n = causes_table(rows, &causes, &recorder); n-- > 0;)
        count += rows[n].count;
    claim(count == 4, "a gap is in no row, or in two");
    causes_deinit(&causes);
}

/* Gaps at moments made of the text's own bytes. */
static void fuzz_periods(struct span text)
{
    struct period periods[PERIODS_MAX];
    struct gap *gaps = calloc(text.length + 1, sizeof(*gaps));
    uint64_t at = 1;
    size_t n;
    for (size_t i = 0; gaps && i < text.length; i++) {
        at += (uint64_t)(unsigned char)text.at[i] * 100000 + 1;
        gaps[i] = (struct gap){at, at + draw(3000000) + 1};
        at = gaps[i].end + 1;
    }
    if (!gaps || periods_find(periods, &n, gaps, text.length, 1e9, NULL))
        fail("out of memory");
    claim(n <= PERIODS_MAX, "too many periods");
    for (size_t i = 0; i < n; i++) {
        claim(periods[i].example < text.length, "a period of other gaps");
        claim(periods[i].coverage >= 0.0 && periods[i].coverage <= 1.0, "more or less of a period than there can be");
    }
    free(gaps);
}

/* The options of the experiment that `argv` names, whatever it says. */
static int parse(int argc, char **argv)
{
    const char *name = argc > 1 ? argv[1] : "";
    struct jitter_options jitter;
    struct wake_options wake;
    struct selftest_options selftest;
    struct sentinel_options sentinel;
    if (strcmp(name, "wake") == 0)
        return wake_options_parse(&wake, argc, argv);
    if (strcmp(name, "selftest") == 0)
        return selftest_options_parse(&selftest, argc, argv);
    if (strcmp(name, "sentinel") == 0)
        return sentinel_options_parse(&sentinel, argc, argv);
    if (strcmp(name, "jitter") != 0)
        return EXIT_USAGE;
    int status = jitter_options_parse(&jitter, argc, argv);
    claim(status || (jitter.duration_s > 0.0 && jitter.duration_s < 1e9 && jitter.fifo_priority <= 99),
          "a request out of bounds was accepted");
    return status;
}

/* The command line, cut into words; whatever it says, it answers with a status and does nothing. */
static void fuzz_options(struct span text)
{
    enum { WORDS = 32 };
    char *argv[WORDS + 2] = {"tunectl-probe"};
    char *copy = strdup(text.at);
    int argc = 1;
    char *rest = NULL;
    if (!copy)
        fail("out of memory");
    for (char *word = strtok_r(copy, " ", &rest); word && argc <= WORDS; word = strtok_r(NULL, " ", &rest))
        argv[argc++] = word;
    int status = parse(argc, argv);
    claim(status == EXIT_OK || status == EXIT_USAGE || status == OPTIONS_ARE_OVER, "another status than 0 or 2");
    free(copy);
}

static const char interrupts[] = "            CPU0       CPU2       CPU3\n   8:          0          1          2  IR-IO-APIC  rtc0\n"
                                 " LOC:        100        200        300   Local timer interrupts\n ERR:          7\n";
static const char stat_text[] = "cpu  10 20 30\ncpu1 1 2 3 4 5 6 7 8 9 10\nintr 5 1 2 3\n";
static const char mounts[] = "proc /proc proc rw 0 0\ntracefs /sys/kernel/tracing tracefs rw,nosuid 0 0\n";
static const char pid_stat[] = "17 (a) b) S 1 17 17 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 1 0 987654 1000 20\n";
static const char trace_stats[] = "entries: 3161\noverrun: 4\ncommit overrun: 1\ndropped events: 30\n";
static const char trace[] =
    "# tracer: nop\n"
    " qemu-system-x86-3039    [001] d.h.. 20: local_timer_entry: vector=236\n"
    " qemu-system-x86-3039    [001] d.h.. 30: irq_handler_entry: irq=36 name=virtio1-req.0\n"
    "           <...>-9       [001] ..s.. 40: softirq_entry: vec=1 [action=TIMER]\n"
    "           probe-4711    [128] d..2. 410: sched_switch: prev_comm=probe prev_pid=4711 prev_prio=120 prev_state=R ==> "
    "next_comm=kworker/1:2 next_pid=32198 next_prio=120\n"
    "     kworker/1:2-32198   [001] ..... 420: workqueue_execute_start: work struct 000000000e31c2ef: function vmstat_update\n"
    "              sh-3369    ( 3369) [001] d.h2. 2000: tlb_flush: pages:3 reason:remote shootdown (1)\n"
    "              sh-3369    [001] d.Z1. 36356935452468: nmi_handler: perf_event_nmi_handler+0x0/0x50 delta_ns: 2311 handled: 1\n";

static const struct {
    const char *seed;
    void (*run)(struct span);
    bool with_nul;
} targets[] = {
    {interrupts, fuzz_counters, false},
    {stat_text, fuzz_counters, false},
    {"0,2-5,8-31:1/4\n", fuzz_cpu_list, true},
    {"   (null)\n", fuzz_cpu_list, true},
    {mounts, fuzz_mounts, false},
    {pid_stat, fuzz_mounts, false},
    {trace_stats, fuzz_mounts, false},
    {trace, fuzz_trace, false},
    {trace, fuzz_trace, false},
    {"ddddddddddddddddddddddddddddddddddddddddddddd", fuzz_periods, false},
    {"jitter --cpus 2-3 --duration 5 --threshold-ns 100 --fifo 1 --events 10 --attribute --output x --root y", fuzz_options, true},
    {"selftest --cpus 2 --output x", fuzz_options, true},
    {"sentinel --cpu 2 --period 0.5 --duty 3 --lines 3", fuzz_options, true},
    {"wake --cpus 2,3 --idle-ms 0,1,10 --messages 9 --output x", fuzz_options, true},
};

int main(int argc, char **argv)
{
    uint64_t rounds = argc > 1 ? strtoull(argv[1], NULL, 10) : 0;
    uint64_t seed = argc > 2 ? strtoull(argv[2], NULL, 10) : 1;
    int quiet = open("/dev/null", O_WRONLY);
    int errors = dup(STDERR_FILENO);
    if (!rounds || quiet < 0 || errors < 0)
        return print_error(EXIT_USAGE, "usage: fuzz ROUNDS [SEED]");
    state = seed;
    /* The answers to bad command lines are silenced; the round at fault is found again by its number and the seed. */
    for (uint64_t i = 0; i < rounds; i++) {
        size_t target = (size_t)(i % (sizeof(targets) / sizeof(*targets)));
        size_t length;
        char *text = mangled(targets[target].seed, &length, targets[target].with_nul);
        bool is_options = targets[target].run == fuzz_options;
        if (is_options)
            (void)(dup2(quiet, STDERR_FILENO) + dup2(quiet, STDOUT_FILENO));
        targets[target].run((struct span){text, length});
        if (is_options)
            (void)dup2(errors, STDERR_FILENO);
        free(text);
    }
    (void)fprintf(stderr, "fuzz: %llu rounds from seed %llu, nothing found\n", (unsigned long long)rounds,
                  (unsigned long long)seed);
    return 0;
}
