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

#include "feed/run.h"
#include "hedge/run.h"
#include "jitter/run.h"
#include "lib/host.h"
#include "lib/options.h"
#include "hedge/random.h"
#include "sentinel/sentinel.h"
#include "wake/run.h"

enum { LARGEST = 4096 };

static uint64_t state;  /* the same stream for the same seed */

static uint64_t draw(uint64_t below)
{
    return random_next(&state) % below;
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
    "cpu0 ", "\xff", "--", "--cpus", "--duration", "nan", "1e999", "0x1p4", "\"", "\\", "{", "}", "\"u\":", "\x81\x7e", "\x01\x02", "\x80\x01",
    "\x89\x7d",
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

/* A mangled copy of a seed, exactly as large as its length, `*n` in the end, and a NUL; to be freed. */
static char *mangled(const char *seed, size_t *n)
{
    static char text[LARGEST];
    size_t length = *n;
    memcpy(text, seed, length);
    for (uint64_t left = draw(12); left; left--)
        mutate_once(text, &length);
    char *exact = malloc(length + 1);
    if (!exact)
        fail("out of memory");
    memcpy(exact, text, length);
    exact[length] = '\0';
    *n = length;
    return exact;
}

static void fuzz_cpus(const char *text, size_t length)
{
    (void)length;
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

static void fuzz_case(const char *text, size_t length)
{
    (void)length;
    struct wake_case c;
    if (wake_case_parse(&c, text))
        claim(c.mechanism && c.method && c.idle_ms >= 0.0 && c.idle_ms <= 60000.0, "a case that cannot be");
}

static int parse_hedge(int argc, char **argv)
{
    struct options options;
    struct hedge_run run = {.pair = {.options = &options, .clock.initial.hz = 1e9}};
    int status = options_parse(&hedge_command, &options, argc, argv);
    if (status)
        return status;
    status = hedge_read_rules(&run);
    claim(status || (run.rules.percentile >= 0.0 && run.rules.percentile < 1.0 && run.rules.budget >= 0.0 && options.load > 0.0),
          "rules out of bounds were accepted");
    return status;
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
    if (strcmp(name, "feed") == 0)
        return options_parse(&feed_command, &options, argc, argv);
    if (strcmp(name, "hedge") == 0)
        return parse_hedge(argc, argv);
    if (strcmp(name, "jitter") != 0)
        return EXIT_USAGE;
    int status = options_parse(&jitter_command, &options, argc, argv);
    claim(status || (options.duration_s > 0.0 && options.duration_s < 1e9 && options.fifo_priority <= 99),
          "a request out of bounds was accepted");
    return status;
}

/* The command line, cut into words; whatever it says, it answers with a status and does nothing. */
static void fuzz_options(const char *text, size_t length)
{
    (void)length;
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

static void fuzz_quote(const char *text, size_t length)
{
    struct quote q;
    struct quote back;
    char written[QUOTE_JSON_MOST];
    if (!quote_read_json(&q, text, length))
        return;
    claim(q.symbol[0] && !q.symbol[QUOTE_SYMBOL - 1] && q.bid_price >= 0 && q.ask_size >= 0, "a quote that cannot be");
    claim(quote_read_json(&back, written, quote_write_json(written, &q, 0)) && memcmp(&back, &q, sizeof(q)) == 0,
          "a quote reads back as another");
}

static void fuzz_record(const char *text, size_t length)
{
    static struct book book;
    struct quote q;
    if (quote_read_binary(&q, (const uint8_t *)text, length))
        (void)book_apply(&book, &q);
}

/* What a reader makes of the bytes, its events and their data, into `sum`. Returns how many it took; `failed` ends it. */
static size_t digest(struct websocket_reader *reader, const uint8_t *bytes, size_t n, uint64_t *sum, bool *failed)
{
    size_t used = 0;
    while (!*failed) {
        size_t taken;
        enum websocket_event event = websocket_next(reader, bytes + used, n - used, &taken);
        *failed = event == WEBSOCKET_FAILED;
        if (event == WEBSOCKET_MORE)
            break;
        *sum = *sum * 31 + (*failed ? reader->code : event);
        if (*failed)
            break;
        claim(taken >= 2 && taken <= n - used, "a frame beyond its bytes");
        claim(reader->length <= reader->most || reader->length <= WEBSOCKET_CONTROL_MOST, "a message beyond its limit");
        for (size_t i = 0; i < reader->length; i++)
            *sum = *sum * 31 + reader->data[i];
        used += taken;
    }
    return used;
}

/* Cut anywhere, the same bytes are the same frames. */
static void fuzz_frames(const char *text, size_t length)
{
    static struct websocket_reader reader;
    const uint8_t *bytes = (const uint8_t *)text;
    size_t most = 1 + (size_t)draw(300);
    size_t cut = (size_t)draw(length + 1);
    uint64_t sums[2] = {0};
    bool failed[2] = {false};
    websocket_init(&reader, most);
    (void)digest(&reader, bytes, length, &sums[0], &failed[0]);
    websocket_init(&reader, most);
    size_t used = digest(&reader, bytes, cut, &sums[1], &failed[1]);
    (void)digest(&reader, bytes + used, length - used, &sums[1], &failed[1]);
    claim(sums[0] == sums[1] && failed[0] == failed[1], "frames differ by where they were cut");
}

static const char frames[] = "\x81\x05hello\x01\x02" "ab" "\x89\x01?" "\x00\x02" "c\xc3" "\x80\x01\xa4" "\x82\x7e\x00\x80"
                             "0123456789012345678901234567890123456789012345678901234567890123"
                             "0123456789012345678901234567890123456789012345678901234567890123" "\x88\x02\x03\xe8";
static const char record[QUOTE_BINARY] = "TOB1\x40\0\0\0\1\0\0\0\0\0\0\0SYM01";
static const char quote_text[] = "{\"s\":\"SYM01\",\"u\":1000000000,\"b\":\"25000.12345678\",\"B\":\"1.5\",\"a\":\"25000.2\",\"A\":\"2\",\"T\":17}";
static const struct {
    const char *seed;
    void (*run)(const char *text, size_t length);
    size_t length;              /* 0: as a text's */
} targets[] = {
    {"timerfd:epoll0:12.5", fuzz_case, 0},
    {"0,2-5,8-31:1/4\n", fuzz_cpus, 0},
    {"   (null)\n", fuzz_cpus, 0},
    {quote_text, fuzz_quote, 0},
    {record, fuzz_record, sizeof(record)},
    {frames, fuzz_frames, sizeof(frames) - 1},
    {"feed --cpus 2,3 --transport udp --format json --symbols 4 --rate 9 --burst 2 --waiting poll --tls off --alloc 2", fuzz_options, 0},
    {"hedge --simulate --load 0.85 --service-ns 3000 --delay p95 --no-cancel --budget 0.1 --shed 4 --stall common --seed 7", fuzz_options, 0},
    {"jitter --cpus 2-3 --duration 5 --threshold-ns 100 --fifo 1 --events 10 --wait-for-go --output x --root y", fuzz_options, 0},
    {"sentinel --cpu 2 --period 0.5 --duty 3 --lines 3", fuzz_options, 0},
    {"wake --cpus 2,3 --case tcp:block:10 --messages 9 --bytes 64 --fds 3 --dirty-kib 9 --socket 9 --output x", fuzz_options, 0},
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
        size_t length = targets[target].length ? targets[target].length : strlen(targets[target].seed);
        char *text = mangled(targets[target].seed, &length);
        bool is_options = targets[target].run == fuzz_options;
        if (is_options)
            (void)(dup2(quiet, STDERR_FILENO) + dup2(quiet, STDOUT_FILENO));
        targets[target].run(text, length);
        if (is_options)
            (void)dup2(errors, STDERR_FILENO);
        free(text);
    }
    (void)fprintf(stderr, "fuzz: %llu rounds from seed %llu, nothing found\n", (unsigned long long)rounds,
                  (unsigned long long)seed);
    return 0;
}
