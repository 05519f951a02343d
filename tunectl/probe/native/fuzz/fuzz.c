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

#include "jitter/run.h"
#include "lib/cpus.h"
#include "lib/output.h"
#include "sentinel/sentinel.h"
#include "wake/run.h"

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
    "cpu0 ", "\xff", "--", "--cpus", "--duration", "nan", "1e999", "0x1p4",
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

/* A mangled copy of `seed`, exactly as large as its length and a NUL; to be freed. */
static char *mangled(const char *seed)
{
    static char text[LARGEST];
    size_t length = strlen(seed);
    memcpy(text, seed, length);
    for (uint64_t left = draw(12); left; left--)
        mutate_once(text, &length);
    char *exact = malloc(length + 1);
    if (!exact)
        fail("out of memory");
    memcpy(exact, text, length);
    exact[length] = '\0';
    return exact;
}

static void fuzz_cpus(const char *text)
{
    struct cpus list;
    struct cpus again;
    static char written[8 * CPU_LIMIT];
    size_t used = 0;
    if (cpus_parse(&list, text))
        return;
    written[0] = '\0';
    for (unsigned cpu = cpus_next(&list, 0); cpu < CPU_LIMIT; cpu = cpus_next(&list, cpu + 1))
        used += (size_t)snprintf(written + used, sizeof(written) - used, "%s%u", used ? "," : "", cpu);
    claim(cpus_parse(&again, written) == 0 && CPU_EQUAL_S(sizeof(list), again.sets, list.sets), "a list reads back as another");
}

static void fuzz_account(const char *text)
{
    char line[OCCUPANCY_LINE];
    occupancy_find_cpu(line, text, 1);
    claim(strlen(line) < sizeof(line) && !strchr(line, '\n'), "an account is no line");
}

static void fuzz_case(const char *text)
{
    struct wake_case c;
    if (wake_case_parse(&c, text))
        claim(c.mechanism && c.method && c.idle_ms >= 0.0 && c.idle_ms <= 60000.0, "a case that cannot be");
}

/* The options of the experiment that `argv` names, whatever it says. */
static int parse(int argc, char **argv)
{
    const char *name = argc > 1 ? argv[1] : "";
    struct options options;
    if (strcmp(name, "wake") == 0)
        return options_parse(&wake_command, &options, argc, argv);
    if (strcmp(name, "sentinel") == 0)
        return options_parse(&sentinel_command, &options, argc, argv);
    if (strcmp(name, "jitter") != 0)
        return EXIT_USAGE;
    int status = options_parse(&jitter_command, &options, argc, argv);
    claim(status || (options.duration_s > 0.0 && options.duration_s < 1e9 && options.fifo_priority <= 99),
          "a request out of bounds was accepted");
    return status;
}

/* The command line, cut into words; whatever it says, it answers with a status and does nothing. */
static void fuzz_options(const char *text)
{
    enum { WORDS = 32 };
    char *argv[WORDS + 2] = {"tunectl-probe"};
    char *copy = strdup(text);
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

static const char stat_text[] = "cpu  10 20 30\ncpu1 1 2 3 4 5 6 7 8 9 10\nintr 5 1 2 3\n";
static const struct {
    const char *seed;
    void (*run)(const char *);
} targets[] = {
    {stat_text, fuzz_account},
    {"version 17\ntimestamp 5\ncpu1 0 0 5 0 0 0 700 80 9\ndomain0 3 1 2\n", fuzz_account},
    {"timerfd:epoll0:12.5", fuzz_case},
    {"0,2-5,8-31:1/4\n", fuzz_cpus},
    {"   (null)\n", fuzz_cpus},
    {"jitter --cpus 2-3 --duration 5 --threshold-ns 100 --fifo 1 --events 10 --wait-for-go --output x --root y", fuzz_options},
    {"sentinel --cpu 2 --period 0.5 --duty 3 --lines 3", fuzz_options},
    {"wake --cpus 2,3 --case tcp:block:10 --messages 9 --bytes 64 --fds 3 --dirty-kib 9 --socket 9 --output x", fuzz_options},
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
        char *text = mangled(targets[target].seed);
        bool is_options = targets[target].run == fuzz_options;
        if (is_options)
            (void)(dup2(quiet, STDERR_FILENO) + dup2(quiet, STDOUT_FILENO));
        targets[target].run(text);
        if (is_options)
            (void)dup2(errors, STDERR_FILENO);
        free(text);
    }
    (void)fprintf(stderr, "fuzz: %llu rounds from seed %llu, nothing found\n", (unsigned long long)rounds,
                  (unsigned long long)seed);
    return 0;
}
