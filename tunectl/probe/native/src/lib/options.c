#include "lib/options.h"

#include <ctype.h>
#include <errno.h>
#include <getopt.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/host.h"

/* What an option's value is, and so the type of the field it is stored in. */
enum option_kind {
    FLAG,       /* no value; bool */
    TEXT,       /* const char *, which points into argv */
    NUMBER,     /* a whole number; any integer of 4 or 8 bytes */
    SECONDS,    /* double */
    REAL,       /* double */
    CHOICE,     /* one of some words; unsigned: which */
};

struct option_row {
    unsigned experiments;       /* bits of enum experiment */
    const char *name;           /* "duration", typed as --duration */
    const char *value;          /* how the help calls its value; NULL for a flag */
    enum option_kind kind;
    size_t offset;              /* of the field, and its size */
    size_t size;
    double from;
    double to;
    const char *otherwise;      /* its value where it is not given, NULL: 0; of a CHOICE the words, the first of which is that */
    const char *help;           /* lines; NULL for what is no user's: from tunectl, or for tests */
};

#define AT(field) offsetof(struct options, field), sizeof(((struct options *)0)->field)

static const struct option_row rows[] = {
    {OF_JITTER, "cpus", "LIST", TEXT, AT(cpus), 0, 0, NULL,
     "CPUs to probe, as in 2-5,8 (default: the isolated CPUs, else the nohz_full ones)"},
    {OF_WAKE | OF_FEED | OF_CONTENTION, "cpus", "S,R", TEXT, AT(cpus), 0, 0, NULL,
     "the sender's CPU and the receiver's (default: the last two isolated ones, else the last two allowed ones)"},
    {OF_HEDGE, "cpus", "C,A,B", TEXT, AT(cpus), 0, 0, NULL,
     "the client's CPU and those of both servers (default: the last three isolated ones, else the last three allowed ones)"},
    {OF_HEDGE, "simulate", NULL, FLAG, AT(is_simulated), 0, 0, NULL,
     "the same client and policy on simulated time: no CPU is needed, and the result is the same everywhere"},
    {OF_HEDGE, "load", "X", REAL, AT(load), 0.001, 2, "0.1", "of each server, without second copies and stalls"},
    {OF_HEDGE, "service-ns", "N", NUMBER, AT(service_ns), 500, 1e8, "3000", "work of a request"},
    {OF_HEDGE, "delay", "WHEN", TEXT, AT(delay), 0, 0, "none",
     "a request without an answer after so many ns from due gets a second copy; pNN: after that percentile of the\n"
     "latest answers; none: never"},
    {OF_HEDGE, "no-cancel", NULL, FLAG, AT(keeps_copies), 0, 0, NULL, "the other copy is worked on also where the answer is there"},
    {OF_HEDGE, "budget", "X", REAL, AT(budget), 0, 1, "1", "second copies for each request, on average; 1: no limit"},
    {OF_HEDGE, "shed", "N", NUMBER, AT(shed), 0, 1e6, "0", "a queue of so many refuses what comes; 0: none does"},
    {OF_HEDGE, "stall", "WHO", CHOICE, AT(stall), 0, 0, "none, a, both, common",
     "none, a, both, common (both at the same instants): 300 us, 1 % of the time"},
    {OF_HEDGE, "seed", "N", NUMBER, AT(seed), 0, 1e15, "1", "of all that is drawn: arrivals, stalls"},
    {OF_HEDGE, "shared", NULL, FLAG, AT(may_share), 0, 0, NULL, NULL},
    {OF_SENTINEL, "cpu", "N", NUMBER, AT(cpu), 0, CPU_LIMIT - 1, "-1", "the CPU it may use"},
    {OF_FEED, "transport", "NAME", CHOICE, AT(transport), 0, 0, "tcp, udp, multicast, multicast-ab",
     "tcp, udp, multicast, multicast-ab (each message twice)"},
    {OF_FEED, "format", "NAME", CHOICE, AT(format), 0, 0, "ws-json, json, binary", "ws-json (tcp only), json, binary"},
    {OF_FEED, "symbols", "N", NUMBER, AT(symbols), 1, 64, "1", "messages are of so many symbols, in turns"},
    {OF_FEED, "rate", "N", NUMBER, AT(rate), 1, 1e6, "10000", "messages a second"},
    {OF_CONTENTION, "buffers", "FROM", CHOICE, AT(buffers), 0, 0, "malloc, pool", "malloc, or pool: the sender's own"},
    {OF_CONTENTION, "hand-over", "BY", CHOICE, AT(hand_over), 0, 0, "mutex, futex, ring",
     "mutex: the receiver looks under a lock; futex: it sleeps; ring: it looks without a lock"},
    {OF_CONTENTION, "threads", "N", NUMBER, AT(threads), 2, 64, "2", "that take buffers; those beyond two are on other CPUs"},
    {OF_CONTENTION, "bytes", "N", NUMBER, AT(buffer_bytes), 64, 1 << 20, "16384", "of the largest buffer"},
    {OF_CONTENTION, "rate", "N", NUMBER, AT(rate), 1, 1e6, "20000", "buffers a second"},
    {OF_FEED, "burst", "N", NUMBER, AT(burst), 1, 256, "1", "so many are due together"},
    {OF_FEED, "plan", "FILE", TEXT, AT(plan), 0, 0, NULL,
     "for `tunectl probe feed --replay`: lines of ns and bytes, when each message is due and how long it is; --rate warms up"},
    {OF_FEED, "waiting", "NAME", CHOICE, AT(waiting), 0, 0, "poll0, poll, busy-poll",
     "poll sleeps, poll0 spins, busy-poll has the kernel poll a device"},
    {OF_FEED, "tls", "NAME", CHOICE, AT(has_tls), 0, 0, "off, ktls", "off, or ktls: the kernel encrypts and decrypts"},
    {OF_FEED, "alloc", "N", NUMBER, AT(alloc), 0, 64, "0", "the receiver copies each message into new memory so often"},
    {OF_FEED, "stamps", "NAME", CHOICE, AT(has_no_stamps), 0, 0, "sw, off", "sw: the kernel stamps what comes; off"},
    {OF_FEED, "rcvbuf", "BYTES", NUMBER, AT(rcvbuf), 1, 1 << 30, "8388608",
     "of the sockets that receive datagrams, to be had beyond net.core.rmem_max with CAP_NET_ADMIN"},
    {OF_FEED, "phc", "DEVICE", TEXT, AT(phc), 0, 0, NULL, NULL},
    {OF_JITTER | OF_FEED | OF_HEDGE | OF_CONTENTION, "duration", "S", SECONDS, AT(duration_s), 1e-6, 24 * 3600, "5", "seconds to measure"},
    {OF_SENTINEL, "period", "S", SECONDS, AT(period_s), 0.1, 10, "1", "from line to line"},
    {OF_SENTINEL, "duty", "PERCENT", NUMBER, AT(duty_percent), 1, 100, "2",
     "of the time it spins, in ten stretches a period"},
    {OF_JITTER | OF_SENTINEL, "threshold-ns", "N", NUMBER, AT(threshold_ns), 1, 1e12, NULL,
     "shortest interruption reported (default: 16 turns of the loop, as a round figure)"},
    {OF_JITTER | OF_WAKE | OF_SENTINEL | OF_FEED | OF_HEDGE | OF_CONTENTION, "fifo", "PRIO", NUMBER, AT(fifo_priority), 1, 99, NULL,
     "measure under SCHED_FIFO with this priority, 1 to 99; low is enough"},
    {OF_JITTER, "events", "N", NUMBER, AT(gaps_capacity), 0, 1 << 26, "65536",
     "interruptions listed with their stamps, per CPU, the last eighth for those of 50 us and more;\n"
     "beyond it they are counted, in the histogram and in events_lost"},
    {OF_JITTER, "until", "NS", NUMBER, AT(until_ns), 1, 1e12, NULL,
     "end on all CPUs at the first interruption of so many ns or more; a line on standard error says which,\n"
     "\"until\" with its CPU and both stamps"},
    {OF_SENTINEL, "lines", "N", NUMBER, AT(lines), 1, 1e15, NULL, "end after so many (default: stay)"},
    {OF_WAKE, "case", "M:W:MS", TEXT, AT(wake_case), 0, 0, "tcp:block:10",
     "mechanism, way to wait, and ms from message to message.\n"
     "Mechanisms: channel, eventfd, pipe, unix, tcp, udp, timerfd; clock_nanosleep, by block alone; eventloop, by epoll\n"
     "and epoll0 alone. Ways: block, poll, epoll sleep; poll0, epoll0, nonblock, minimal spin; busy-poll (tcp, udp)"},
    {OF_WAKE, "messages", "N", NUMBER, AT(messages), 1, 1e7, "99", "to send"},
    {OF_WAKE, "bytes", "N", NUMBER, AT(bytes), 32, 4096, "32", "of a message"},
    {OF_WAKE, "fds", "N", NUMBER, AT(fds), 1, 65536, "1", "descriptors in the set of a poll or epoll, all but one idle"},
    {OF_WAKE, "dirty-kib", "N", NUMBER, AT(dirty_kib), 1, 1 << 20, NULL,
     "the receiver writes to so much memory after each message: the next finds its caches cold"},
    {OF_WAKE | OF_FEED, "busy-poll-us", "N", NUMBER, AT(busy_poll_us), 1, 1e6, "50", "time given to SO_BUSY_POLL, in us"},
    {OF_WAKE, "cold-sender", NULL, FLAG, AT(has_cold_sender), 0, 0, NULL,
     "let the sender grow cold between messages, as the receiver does"},
    {OF_JITTER, "intrude", NULL, FLAG, AT(intrude), 0, 0, NULL,
     "spin also where a thread that can run nowhere else wants the CPU; without, such a CPU is left\n"
     "alone, or left within 10 ms, and is not measured"},
    {OF_WAKE | OF_FEED | OF_HEDGE | OF_CONTENTION, "intrude", NULL, FLAG, AT(intrude), 0, 0, NULL,
     "stay also where a thread that can run nowhere else wants one of the CPUs; without, it gets the CPU\n"
     "within 10 ms, and the run fails"},
    {OF_JITTER, "wait-for-go", NULL, FLAG, AT(wait_for_go), 0, 0, NULL,
     "say \"ready\" and the threads on standard error once all stand ready, and measure when standard\ninput says \"go\""},
    {OF_JITTER, "inject", "WHAT", TEXT, AT(inject), 0, 0, NULL,
     "interrupt the first of the CPUs on purpose, for `tunectl probe selftest`: preemption or ipi, how often,\n"
     "how long and how far apart in ns, as in preemption,200,20000,1000000. The run ends when that is done"},
    {OF_FEED, "socket", "FD", NUMBER, AT(socket), 3, INT_MAX, "-1", NULL},
    {OF_WAKE, "socket", "FD", NUMBER, AT(socket), 3, INT_MAX, "-1",
     "for `tunectl probe wake --connect` and `--listen`: measure round trips over this connected socket"},
    {OF_WAKE, "peer-hz", "N", NUMBER, AT(peer_hz), 1e3, 1e12, NULL, "the rate of the other host's counter"},
    {OF_FEED, "reflect", NULL, FLAG, AT(is_reflector), 0, 0, NULL, NULL},
    {OF_WAKE, "reflect", NULL, FLAG, AT(is_reflector), 0, 0, NULL,
     "be the other host: a line of JSON says the counter's rate; then every message goes\nback over --socket"},
    {OF_JITTER, "progress", NULL, FLAG, AT(shows_progress), 0, 0, NULL,
     "lines on standard error: the longest interruption of each CPU so far"},
    {OF_JITTER, "group", "FD", NUMBER, AT(group), 0, 1 << 20, "-1", NULL},
    {OF_JITTER | OF_WAKE | OF_SENTINEL | OF_FEED | OF_HEDGE | OF_CONTENTION, "root", "DIR", TEXT, AT(root), 0, 0, "", NULL},
};

enum { ROWS = sizeof(rows) / sizeof(*rows), FIRST_ROW = 256, HELP = 512, VERSION = 513, HELP_COLUMN = 21 };

int print_error(int status, const char *format, ...)
{
    char message[1024];
    va_list args;
    va_start(args, format);
    (void)vsnprintf(message, sizeof(message), format, args);
    va_end(args);
    (void)fprintf(stderr, "tunectl-probe: %s\n", message);
    return status;
}

/* The lines of a help text, each but the first below the column that the first begins in. */
static void put_lines(const struct option_row *row)
{
    const char *text = row->help;
    for (const char *end; (end = strchr(text, '\n')); text = end + 1)
        (void)printf("%.*s\n%*s", (int)(end - text), text, HELP_COLUMN, "");
    (void)printf("%s", text);
    if (row->otherwise && row->otherwise[0] != '-')
        (void)printf(" (default %.*s)", row->kind == CHOICE ? (int)strcspn(row->otherwise, ",") : INT_MAX, row->otherwise);
    (void)putchar('\n');
}

void options_put_help(const struct command *command)
{
    (void)printf("  tunectl-probe %s [OPTIONS]\n%s", command->name, command->about);
    for (size_t i = 0; i < ROWS; i++) {
        if (!(rows[i].experiments & command->experiment) || !rows[i].help)
            continue;
        int used = printf("  --%s %s", rows[i].name, rows[i].value ? rows[i].value : "");
        (void)printf("%*s", used < HELP_COLUMN ? HELP_COLUMN - used : 1, "");
        put_lines(&rows[i]);
    }
    (void)printf("%s\n", command->holds ? "SIGINT and SIGTERM end the measuring and still give the result so far.\n" : "");
}

int options_end_output(const char *line)
{
    (void)printf("%s\n", line);
    if (fflush(stdout) || ferror(stdout))
        return print_error(EXIT_FAILED, "cannot write standard output: %s", strerror(errno));
    return OPTIONS_ARE_OVER;
}

static int store_number(const struct option_row *row, void *field, const char *text)
{
    char *end = NULL;
    errno = 0;
    uint64_t value = isdigit((unsigned char)text[0]) ? strtoull(text, &end, 10) : 0;
    if (text == row->otherwise)     /* -1: none is given */
        value = (uint64_t)strtoll(text, &end, 10);
    else if (!end || *end || errno || (double)value < row->from || (double)value > row->to)
        return print_error(EXIT_USAGE, "--%s %s: expected a whole number from %.0f to %.0f", row->name, text, row->from, row->to);
    uint32_t narrow = (uint32_t)value;
    memcpy(field, row->size == sizeof(narrow) ? (const void *)&narrow : (const void *)&value, row->size);
    return EXIT_OK;
}

static int store_real(const struct option_row *row, double *field, const char *text)
{
    const char *what = row->kind == SECONDS ? "seconds" : "a number";
    char *end;
    *field = strtod(text, &end);
    if (end == text || *end || !(*field >= row->from && *field <= row->to))
        return print_error(EXIT_USAGE, "--%s %s: expected %s, from %.9g to %.9g", row->name, text, what, row->from, row->to);
    return EXIT_OK;
}

static int store_choice(const struct option_row *row, unsigned *field, const char *text)
{
    const char *word = row->otherwise;
    for (*field = 0; text != row->otherwise; (*field)++, word += strspn(word, ", ")) {
        size_t length = strcspn(word, ",");
        if (!length)
            return print_error(EXIT_USAGE, "--%s %.40s: expected one of %s", row->name, text, row->otherwise);
        if (strlen(text) == length && strncmp(word, text, length) == 0)
            break;
        word += length;
    }
    return EXIT_OK;
}

static int store(const struct option_row *row, struct options *options, const char *text)
{
    void *field = (char *)options + row->offset;
    if (row->kind == FLAG)
        *(bool *)field = true;
    else if (row->kind == TEXT)
        *(const char **)field = text;
    else if (row->kind == CHOICE)
        return store_choice(row, field, text);
    else
        return row->kind == NUMBER ? store_number(row, field, text) : store_real(row, field, text);
    return EXIT_OK;
}

/* The table in the form getopt_long takes; the value it returns for a row is FIRST_ROW and the row's index. */
static void fill_long_options(struct option *list, const struct command *command)
{
    for (size_t i = 0; i < ROWS; i++)
        if (rows[i].experiments & command->experiment)
            *list++ = (struct option){rows[i].name, rows[i].value ? required_argument : no_argument, NULL, FIRST_ROW + (int)i};
    *list++ = (struct option){"help", no_argument, NULL, HELP};
    *list++ = (struct option){"version", no_argument, NULL, VERSION};
    *list = (struct option){0};
}

int options_parse(const struct command *command, struct options *options, int argc, char **argv)
{
    struct option list[ROWS + 3];
    int status = EXIT_OK;
    *options = (struct options){0};
    for (size_t i = 0; i < ROWS; i++)
        if (rows[i].otherwise && rows[i].experiments & command->experiment)
            (void)store(&rows[i], options, rows[i].otherwise);
    fill_long_options(list, command);
    optind = 2;
    opterr = 0;
    while (!status) {
        int before = optind;
        int option = getopt_long(argc, argv, "+:h", list, NULL);
        if (option == -1)
            break;
        if (option == HELP || option == 'h') {
            options_put_help(command);
            return options_end_output(OPTIONS_EXIT_STATUS);
        }
        if (option == VERSION)
            return options_end_output(OPTIONS_VERSION);
        if (option == ':' || option == '?')
            return print_error(EXIT_USAGE, "%s %s (see tunectl-probe %s --help)", argv[before],
                               option == ':' ? "needs a value" : "is no option here", command->name);
        status = store(&rows[option - FIRST_ROW], options, optarg);
    }
    if (!status && optind < argc)
        return print_error(EXIT_USAGE, "%s is one argument too many (see tunectl-probe %s --help)", argv[optind], command->name);
    return status;
}
