#include "lib/options.h"

#include <ctype.h>
#include <errno.h>
#include <getopt.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/cpus.h"
#include "lib/output.h"

/* What an option's value is, and so the type of the field it is stored in. */
enum option_kind {
    FLAG,       /* no value; bool */
    TEXT,       /* const char *, which points into argv */
    NUMBER,     /* a whole number; any integer of 4 or 8 bytes */
    SECONDS,    /* double */
    REAL,       /* double */
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
    const char *help;           /* lines; NULL for what is no user's: from tunectl, or for tests */
};

#define AT(field) offsetof(struct options, field), sizeof(((struct options *)0)->field)

static const struct option_row rows[] = {
    {OF_JITTER, "cpus", "LIST", TEXT, AT(cpus), 0, 0,
     "CPUs to probe, as in 2-5,8 (default: the isolated CPUs, else the nohz_full ones)"},
    {OF_WAKE | OF_FEED, "cpus", "S,R", TEXT, AT(cpus), 0, 0,
     "the sender's CPU and the receiver's (default: the last two isolated ones, else the last two allowed ones)"},
    {OF_HEDGE, "cpus", "C,A,B", TEXT, AT(cpus), 0, 0,
     "the client's CPU and those of both servers (default: the last three isolated ones, else the last three allowed ones)"},
    {OF_HEDGE, "simulate", NULL, FLAG, AT(is_simulated), 0, 0,
     "the same client and policy on simulated time: no CPU is needed, and the result is the same everywhere"},
    {OF_HEDGE, "load", "X", REAL, AT(load), 0.001, 2, "of each server, without second copies and stalls (default 0.1)"},
    {OF_HEDGE, "service-ns", "N", NUMBER, AT(service_ns), 500, 1e8, "work of a request (default 3000)"},
    {OF_HEDGE, "delay", "WHEN", TEXT, AT(delay), 0, 0,
     "a request without an answer after so many ns from due gets a second copy; pNN: after that percentile of the\n"
     "latest answers; none: never (default none)"},
    {OF_HEDGE, "no-cancel", NULL, FLAG, AT(keeps_copies), 0, 0, "the other copy is worked on also where the answer is there"},
    {OF_HEDGE, "budget", "X", REAL, AT(budget), 0, 1, "second copies for each request, on average; 1: no limit (default 1)"},
    {OF_HEDGE, "shed", "N", NUMBER, AT(shed), 0, 1e6, "a queue of so many refuses what comes; 0: none does (default 0)"},
    {OF_HEDGE, "stall", "WHO", TEXT, AT(stall), 0, 0,
     "none, a, both, common (both at the same instants): 300 us, 1 % of the time (default none)"},
    {OF_HEDGE, "seed", "N", NUMBER, AT(seed), 0, 1e15, "of all that is drawn: arrivals, stalls (default 1)"},
    {OF_HEDGE, "shared", NULL, FLAG, AT(may_share), 0, 0, NULL},
    {OF_SENTINEL, "cpu", "N", NUMBER, AT(cpu), 0, CPU_LIMIT - 1, "the CPU it may use"},
    {OF_FEED, "transport", "NAME", TEXT, AT(transport), 0, 0, "tcp, udp, multicast, multicast-ab (each message twice) (default tcp)"},
    {OF_FEED, "format", "NAME", TEXT, AT(format), 0, 0, "ws-json (tcp only), json, binary (default ws-json)"},
    {OF_FEED, "symbols", "N", NUMBER, AT(symbols), 1, 64, "messages are of so many symbols, in turns (default 1)"},
    {OF_FEED, "rate", "N", NUMBER, AT(rate), 1, 1e6, "messages a second (default 10000)"},
    {OF_FEED, "burst", "N", NUMBER, AT(burst), 1, 256, "so many are due together (default 1)"},
    {OF_FEED, "plan", "FILE", TEXT, AT(plan), 0, 0,
     "for `tunectl probe feed --replay`: lines of ns and bytes, when each message is due and how long it is; --rate warms up"},
    {OF_FEED, "waiting", "NAME", TEXT, AT(waiting), 0, 0, "poll sleeps, poll0 spins, busy-poll has the kernel poll a device (default poll0)"},
    {OF_FEED, "tls", "NAME", TEXT, AT(tls), 0, 0, "off, or ktls: the kernel encrypts and decrypts (default off)"},
    {OF_FEED, "alloc", "N", NUMBER, AT(alloc), 0, 64, "the receiver copies each message into new memory so often (default 0)"},
    {OF_FEED, "stamps", "NAME", TEXT, AT(stamps), 0, 0, "sw: the kernel stamps what comes; off (default sw)"},
    {OF_FEED, "phc", "DEVICE", TEXT, AT(phc), 0, 0, NULL},
    {OF_JITTER | OF_FEED | OF_HEDGE, "duration", "S", SECONDS, AT(duration_s), 1e-6, 24 * 3600, "seconds to measure (default 5)"},
    {OF_SENTINEL, "period", "S", SECONDS, AT(period_s), 0.1, 10, "from line to line (default 1)"},
    {OF_SENTINEL, "duty", "PERCENT", NUMBER, AT(duty_percent), 1, 100,
     "of the time it spins, in ten stretches a period (default 2)"},
    {OF_JITTER | OF_SENTINEL, "threshold-ns", "N", NUMBER, AT(threshold_ns), 1, 1e12,
     "shortest interruption reported (default: 16 turns of the loop, as a round figure)"},
    {OF_JITTER | OF_WAKE | OF_SENTINEL | OF_FEED | OF_HEDGE, "fifo", "PRIO", NUMBER, AT(fifo_priority), 1, 99,
     "measure under SCHED_FIFO with this priority, 1 to 99; low is enough"},
    {OF_JITTER, "events", "N", NUMBER, AT(gaps_capacity), 0, 1 << 26,
     "interruptions listed with their stamps, per CPU (default 65536); beyond it they are\n"
     "counted, in the histogram and in events_lost"},
    {OF_JITTER, "until", "NS", NUMBER, AT(until_ns), 1, 1e12,
     "end on all CPUs at the first interruption of so many ns or more; a line on standard error says which,\n"
     "\"until\" with its CPU and both stamps"},
    {OF_SENTINEL, "lines", "N", NUMBER, AT(lines), 1, 1e15, "end after so many (default: stay)"},
    {OF_WAKE, "case", "M:W:MS", TEXT, AT(wake_case), 0, 0,
     "mechanism, way to wait, and ms from message to message (default tcp:block:10).\n"
     "Mechanisms: channel, eventfd, pipe, unix, tcp, udp, timerfd; clock_nanosleep, by block alone; eventloop, by epoll\n"
     "and epoll0 alone. Ways: block, poll, epoll sleep; poll0, epoll0, nonblock, minimal spin; busy-poll (tcp, udp)"},
    {OF_WAKE, "messages", "N", NUMBER, AT(messages), 1, 1e7, "to send (default 99)"},
    {OF_WAKE, "bytes", "N", NUMBER, AT(bytes), 32, 4096, "of a message (default 32)"},
    {OF_WAKE, "fds", "N", NUMBER, AT(fds), 1, 65536, "descriptors in the set of a poll or epoll, all but one idle (default 1)"},
    {OF_WAKE, "dirty-kib", "N", NUMBER, AT(dirty_kib), 1, 1 << 20,
     "the receiver writes to so much memory after each message: the next finds its caches cold"},
    {OF_WAKE | OF_FEED, "busy-poll-us", "N", NUMBER, AT(busy_poll_us), 1, 1e6, "time given to SO_BUSY_POLL, in us (default 50)"},
    {OF_WAKE, "cold-sender", NULL, FLAG, AT(has_cold_sender), 0, 0,
     "let the sender grow cold between messages, as the receiver does"},
    {OF_JITTER, "intrude", NULL, FLAG, AT(intrude), 0, 0,
     "spin also where a thread that can run nowhere else wants the CPU; without, such a CPU is left\n"
     "alone, or left within 10 ms, and is not measured"},
    {OF_WAKE | OF_FEED | OF_HEDGE, "intrude", NULL, FLAG, AT(intrude), 0, 0,
     "stay also where a thread that can run nowhere else wants one of the CPUs; without, it gets the CPU\n"
     "within 10 ms, and the run fails"},
    {OF_JITTER, "wait-for-go", NULL, FLAG, AT(wait_for_go), 0, 0,
     "say \"ready\" and the threads on standard error once all stand ready, and measure when standard\ninput says \"go\""},
    {OF_JITTER, "inject", "WHAT", TEXT, AT(inject), 0, 0,
     "interrupt the first of the CPUs on purpose, for `tunectl probe selftest`: preemption or ipi, how often,\n"
     "how long and how far apart in ns, as in preemption,200,20000,1000000. The run ends when that is done"},
    {OF_FEED, "socket", "FD", NUMBER, AT(socket), 3, INT_MAX, NULL},
    {OF_WAKE, "socket", "FD", NUMBER, AT(socket), 3, INT_MAX,
     "for `tunectl probe wake --connect` and `--listen`: measure round trips over this connected socket"},
    {OF_WAKE, "peer-hz", "N", NUMBER, AT(peer_hz), 1e3, 1e12, "the rate of the other host's counter"},
    {OF_FEED, "reflect", NULL, FLAG, AT(is_reflector), 0, 0, NULL},
    {OF_WAKE, "reflect", NULL, FLAG, AT(is_reflector), 0, 0,
     "be the other host: a line of JSON says the counter's rate; then every message goes\nback over --socket"},
    {OF_JITTER, "progress", NULL, FLAG, AT(shows_progress), 0, 0,
     "lines on standard error: the longest interruption of each CPU so far"},
    {OF_JITTER, "group", "FD", NUMBER, AT(group), 0, 1 << 20, NULL},
    {OF_JITTER | OF_WAKE | OF_SENTINEL | OF_FEED | OF_HEDGE, "root", "DIR", TEXT, AT(root), 0, 0, NULL},
};

enum { ROWS = sizeof(rows) / sizeof(*rows), FIRST_ROW = 256, HELP = 512, VERSION = 513, HELP_COLUMN = 21 };

static const struct options defaults = {
    .root = "",
    .duration_s = 5.0,
    .gaps_capacity = 65536,
    .group = -1,
    .wake_case = "tcp:block:10",
    .messages = 99,
    .bytes = 32,
    .fds = 1,
    .busy_poll_us = 50,
    .socket = -1,
    .transport = "tcp",
    .format = "ws-json",
    .waiting = "poll0",
    .tls = "off",
    .stamps = "sw",
    .symbols = 1,
    .rate = 10000,
    .burst = 1,
    .load = 0.1,
    .service_ns = 3000,
    .delay = "none",
    .budget = 1.0,
    .stall = "none",
    .seed = 1,
    .cpu = -1,
    .period_s = 1.0,
    .duty_percent = 2,
};

/* The lines of a help text, each but the first below the column that the first begins in. */
static void put_lines(const char *text)
{
    for (const char *end; (end = strchr(text, '\n')); text = end + 1)
        (void)printf("%.*s\n%*s", (int)(end - text), text, HELP_COLUMN, "");
    (void)printf("%s\n", text);
}

void options_put_help(const struct command *command)
{
    (void)printf("  tunectl-probe %s [OPTIONS]\n%s", command->name, command->about);
    for (size_t i = 0; i < ROWS; i++) {
        if (!(rows[i].experiments & command->experiment) || !rows[i].help)
            continue;
        int used = printf("  --%s %s", rows[i].name, rows[i].value ? rows[i].value : "");
        (void)printf("%*s", used < HELP_COLUMN ? HELP_COLUMN - used : 1, "");
        put_lines(rows[i].help);
    }
    (void)printf("%s\n", command->end);
}

static int end_output(void)
{
    if (fflush(stdout) || ferror(stdout))
        return print_error(EXIT_FAILED, "cannot write standard output: %s", strerror(errno));
    return OPTIONS_ARE_OVER;
}

int options_end_help(void)
{
    (void)printf("Exit status: 0 done, 1 failed, 2 wrong usage.\n");
    return end_output();
}

int options_print_version(void)
{
    (void)printf("tunectl-probe " TUNECTL_VERSION "\n");
    return end_output();
}

static int store_number(const struct option_row *row, void *field, const char *text)
{
    char *end = NULL;
    errno = 0;
    uint64_t value = isdigit((unsigned char)text[0]) ? strtoull(text, &end, 10) : 0;
    if (!end || *end || errno || (double)value < row->from || (double)value > row->to)
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

static int store(const struct option_row *row, struct options *options, const char *text)
{
    void *field = (char *)options + row->offset;
    if (row->kind == FLAG)
        *(bool *)field = true;
    else if (row->kind == TEXT)
        *(const char **)field = text;
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
    *options = defaults;
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
            return options_end_help();
        }
        if (option == VERSION)
            return options_print_version();
        if (option == ':' || option == '?')
            return print_error(EXIT_USAGE, "%s %s (see tunectl-probe %s --help)", argv[before],
                               option == ':' ? "needs a value" : "is no option here", command->name);
        status = store(&rows[option - FIRST_ROW], options, optarg);
    }
    if (!status && optind < argc)
        return print_error(EXIT_USAGE, "%s is one argument too many (see tunectl-probe %s --help)", argv[optind], command->name);
    return status;
}
