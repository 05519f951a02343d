#include "options.h"

#include <ctype.h>
#include <errno.h>
#include <getopt.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "complain.h"

enum {
    OPTION_CPUS = 256,
    OPTION_DURATION,
    OPTION_THRESHOLD,
    OPTION_FIFO,
    OPTION_EVENTS,
    OPTION_ATTRIBUTE,
    OPTION_OUTPUT,
    OPTION_ROUNDS,
    OPTION_CPU,
    OPTION_PERIOD,
    OPTION_DUTY,
    OPTION_LINES,
    OPTION_ROOT,
    OPTION_HELP,
    OPTION_VERSION,
};

static const double max_duration_s = 30.0 * 24 * 3600;
static const uint64_t max_events = UINT64_C(1) << 26;
static const uint64_t max_threshold_ns = UINT64_C(1000000000000);

static const char usage[] =
    "tunectl-probe measures how often, and for how long, a CPU is taken away from a spinning thread, and how long a\n"
    "waiting thread takes to have its message.\n"
    "\n"
    "  tunectl-probe jitter [--cpus LIST] [--duration S] [--threshold-ns N] [--fifo PRIO] [--events N]\n"
    "                       [--attribute] [--output FILE]\n"
    "  tunectl-probe wake [...]      (see tunectl-probe wake --help)\n"
    "  tunectl-probe selftest [--cpus CPU] [--output FILE]\n"
    "  tunectl-probe sentinel --cpu N [--period S] [--duty PERCENT] [--threshold-ns N] [--fifo PRIO] [--lines N]\n"
    "  tunectl-probe bench [--cpus CPU] [--rounds N]\n"
    "  tunectl-probe --help | --version\n"
    "\n"
    "jitter: one spinning thread per CPU; every gap between two of its counter readings that is longer than the\n"
    "threshold is an interruption. The result is a JSON document (schema tunectl.probe.jitter/1).\n"
    "  --cpus LIST        CPUs to probe, as in 2-5,8 (default: the isolated CPUs, else the nohz_full ones)\n"
    "  --duration S       seconds to measure (default 5)\n"
    "  --threshold-ns N   shortest interruption reported (default: 16 times the cost of a turn of the loop)\n"
    "  --fifo PRIO        spin under SCHED_FIFO with this priority, 1 to 99; low is enough\n"
    "  --events N         interruptions listed with their stamps, per CPU (default 65536); beyond it they are\n"
    "                     counted, in the histogram and in events_lost\n"
    "  --attribute        trace the kernel on the probed CPUs, to name the cause of each interruption (needs root and a\n"
    "                     mounted tracefs; without, the counters have to do); lengthens each interruption a little\n"
    "  --output FILE      write the document there (default: standard output)\n"
    "SIGINT and SIGTERM end the measuring and still give the result so far.\n"
    "\n"
    "selftest: are interruptions of known length, at known times, all found on this host? (JSON, schema\n"
    "tunectl.probe.selftest/1; some twelve seconds; a full pass needs CAP_SYS_NICE). Exit status 1 unless all are.\n"
    "\n"
    "sentinel: stays on one CPU and prints a line of JSON (schema tunectl.probe.sentinel/1) each period: the clock the core\n"
    "really runs at, and how long the CPU went away while the sentinel spun. Ends with its parent, or when nobody reads.\n"
    "  --cpu N            the CPU it may use\n"
    "  --period S         from 0.1 to 10 seconds (default 1)\n"
    "  --duty PERCENT     of the time it spins, in ten stretches a period (default 2)\n"
    "  --lines N          end after so many (default: stay)\n"
    "\n"
    "bench: the loop's cost against a bare read-and-compare loop, in alternating rounds (JSON).\n"
    "  --rounds N         (default 51)\n"
    "\n"
    "Exit status: 0 done, 1 failed, 2 wrong usage.\n";

static const struct option long_options[] = {
    {"cpus", required_argument, NULL, OPTION_CPUS},
    {"duration", required_argument, NULL, OPTION_DURATION},
    {"threshold-ns", required_argument, NULL, OPTION_THRESHOLD},
    {"fifo", required_argument, NULL, OPTION_FIFO},
    {"events", required_argument, NULL, OPTION_EVENTS},
    {"attribute", no_argument, NULL, OPTION_ATTRIBUTE},
    {"output", required_argument, NULL, OPTION_OUTPUT},
    {"rounds", required_argument, NULL, OPTION_ROUNDS},
    {"cpu", required_argument, NULL, OPTION_CPU},
    {"period", required_argument, NULL, OPTION_PERIOD},
    {"duty", required_argument, NULL, OPTION_DUTY},
    {"lines", required_argument, NULL, OPTION_LINES},
    {"root", required_argument, NULL, OPTION_ROOT}, /* for tests: the host's files below a directory */
    {"help", no_argument, NULL, OPTION_HELP},
    {"version", no_argument, NULL, OPTION_VERSION},
    {NULL, 0, NULL, 0},
};

int parse_uint(const char *name, const char *text, uint64_t from, uint64_t to, uint64_t *value)
{
    char *end = NULL;
    errno = 0;
    unsigned long long v = isdigit((unsigned char)text[0]) ? strtoull(text, &end, 10) : 0;
    if (!end || *end || errno || v < from || v > to)
        return complain(EXIT_USAGE, "%s %s: expected a whole number from %llu to %llu", name, text,
                        (unsigned long long)from, (unsigned long long)to);
    *value = v;
    return EXIT_OK;
}

static int parse_seconds(const char *text, double *seconds)
{
    char *end;
    double s = strtod(text, &end);
    if (end == text || *end || !isfinite(s) || s <= 0.0 || s > max_duration_s)
        return complain(EXIT_USAGE, "--duration %s: expected seconds, more than 0 and at most %.0f", text, max_duration_s);
    *seconds = s;
    return EXIT_OK;
}

/* Ten stretches of a period are long against a clock measurement, and a signal is heard after each. */
static int parse_period(const char *text, double *seconds)
{
    char *end;
    double s = strtod(text, &end);
    if (end == text || *end || !(s >= 0.1 && s <= 10.0))
        return complain(EXIT_USAGE, "--period %s: expected seconds, from 0.1 to 10", text);
    *seconds = s;
    return EXIT_OK;
}

static int apply_to_sentinel(struct sentinel_options *o, int option, const char *text)
{
    uint64_t value = 0;
    int status = EXIT_OK;
    switch (option) {
    case OPTION_CPU:
        status = parse_uint("--cpu", text, 0, CPU_LIMIT - 1, &value);
        o->cpu = (long)value;
        return status;
    case OPTION_PERIOD:
        return parse_period(text, &o->period_s);
    case OPTION_DUTY:
        status = parse_uint("--duty", text, 1, 100, &value);
        o->duty_percent = (unsigned)value;
        return status;
    default:
        return parse_uint("--lines", text, 1, UINT64_MAX, &o->lines);
    }
}

static int apply(struct options *o, int option, const char *text)
{
    uint64_t value = 0;
    int status = EXIT_OK;
    switch (option) {
    case OPTION_CPUS:
        o->jitter.cpus = o->bench.cpus = o->selftest.cpus = text;
        return EXIT_OK;
    case OPTION_DURATION:
        return parse_seconds(text, &o->jitter.duration_s);
    case OPTION_THRESHOLD:
        status = parse_uint("--threshold-ns", text, 1, max_threshold_ns, &value);
        o->jitter.threshold_ns = o->sentinel.threshold_ns = value;
        return status;
    case OPTION_FIFO:
        status = parse_uint("--fifo", text, 1, 99, &value);
        o->jitter.fifo_priority = o->sentinel.fifo_priority = (int)value;
        return status;
    case OPTION_EVENTS:
        status = parse_uint("--events", text, 0, max_events, &value);
        o->jitter.gaps_capacity = (size_t)value;
        return status;
    case OPTION_ATTRIBUTE:
        o->jitter.attribute = true;
        return EXIT_OK;
    case OPTION_OUTPUT:
        o->jitter.output = o->selftest.output = text;
        return EXIT_OK;
    case OPTION_ROUNDS:
        status = parse_uint("--rounds", text, 1, 100000, &value);
        o->bench.rounds = (unsigned)value;
        return status;
    case OPTION_ROOT:
        o->jitter.root = o->selftest.root = o->sentinel.root = text;
        return EXIT_OK;
    case OPTION_CPU:
    case OPTION_PERIOD:
    case OPTION_DUTY:
    case OPTION_LINES:
        return apply_to_sentinel(&o->sentinel, option, text);
    default:
        return EXIT_USAGE;
    }
}

static bool belongs_to(int option, enum command command)
{
    bool is_sentinels = option == OPTION_CPU || option == OPTION_PERIOD || option == OPTION_DUTY || option == OPTION_LINES;
    if (option == OPTION_ROOT)
        return true;
    if (command == COMMAND_SENTINEL)
        return is_sentinels || option == OPTION_THRESHOLD || option == OPTION_FIFO;
    if (is_sentinels)
        return false;
    if (option == OPTION_CPUS)
        return true;
    if (command == COMMAND_SELFTEST)
        return option == OPTION_OUTPUT;
    return (option == OPTION_ROUNDS) == (command == COMMAND_BENCH);
}

static int choose_command(struct options *o, int argc, char **argv)
{
    const char *name = argc > 1 ? argv[1] : NULL;
    if (!name)
        return complain(EXIT_USAGE, "say what to do: jitter, wake, selftest, sentinel or bench (see --help)");
    if (strcmp(name, "jitter") == 0)
        o->command = COMMAND_JITTER;
    else if (strcmp(name, "bench") == 0)
        o->command = COMMAND_BENCH;
    else if (strcmp(name, "wake") == 0)
        o->command = COMMAND_WAKE;
    else if (strcmp(name, "selftest") == 0)
        o->command = COMMAND_SELFTEST;
    else if (strcmp(name, "sentinel") == 0)
        o->command = COMMAND_SENTINEL;
    else if (name[0] != '-')
        return complain(EXIT_USAGE, "there is no command %s; there are jitter, wake, selftest, sentinel and bench", name);
    return EXIT_OK;
}

static int print(struct options *o, const char *text)
{
    o->command = COMMAND_NONE;
    if (fputs(text, stdout) < 0 || fflush(stdout))
        return complain(EXIT_FAILED, "cannot write standard output: %s", strerror(errno));
    return EXIT_OK;
}

static int parse_wake(struct options *o, int argc, char **argv)
{
    bool is_done = false;
    int status = wake_options_parse(&o->wake, argc, argv, &is_done);
    if (is_done)
        o->command = COMMAND_NONE;
    return status;
}

int options_parse(struct options *options, int argc, char **argv)
{
    *options = (struct options){
        .jitter = {.duration_s = 5.0, .gaps_capacity = 65536, .root = ""},
        .bench = {.rounds = 51},
        .selftest = {.root = ""},
        .sentinel = {.cpu = SENTINEL_NO_CPU, .period_s = 1.0, .duty_percent = 2, .root = ""},
    };
    int status = choose_command(options, argc, argv);
    if (options->command == COMMAND_WAKE)
        return parse_wake(options, argc, argv);
    optind = options->command == COMMAND_NONE ? 1 : 2;
    opterr = 0;
    while (!status) {
        int before = optind;
        int option = getopt_long(argc, argv, "+:h", long_options, NULL);
        if (option == -1)
            break;
        if (option == OPTION_HELP || option == 'h')
            return print(options, usage);
        if (option == OPTION_VERSION)
            return print(options, "tunectl-probe " TUNECTL_VERSION "\n");
        if (option == ':')
            return complain(EXIT_USAGE, "%s needs a value (see --help)", argv[before]);
        if (option == '?' || options->command == COMMAND_NONE || !belongs_to(option, options->command))
            return complain(EXIT_USAGE, "%s is no option here (see --help)", argv[before]);
        status = apply(options, option, optarg);
    }
    if (!status && optind < argc)
        return complain(EXIT_USAGE, "%s is one argument too many (see --help)", argv[optind]);
    return status;
}
