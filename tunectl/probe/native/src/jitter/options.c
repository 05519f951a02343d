#include "jitter/options.h"

#include <math.h>
#include <stdlib.h>

#include "lib/output.h"

#define EVENTS_MOST (UINT64_C(1) << 26)

static const double duration_most_s = 30.0 * 24 * 3600;

static int parse_duration(void *options, const char *name, const char *text)
{
    char *end;
    double s = strtod(text, &end);
    if (end == text || *end || !isfinite(s) || s <= 0.0 || s > duration_most_s)
        return print_error(EXIT_USAGE, "%s %s: expected seconds, more than 0 and at most %.0f", name, text, duration_most_s);
    ((struct jitter_options *)options)->duration_s = s;
    return EXIT_OK;
}

static const struct option_row option_rows[] = {
    OPTION_ROW_TEXT("cpus", struct jitter_options, cpus),
    OPTION_ROW_PARSED("duration", parse_duration),
    OPTION_ROW_NUMBER("threshold-ns", struct jitter_options, threshold_ns, 1, THRESHOLD_MOST_NS),
    OPTION_ROW_NUMBER("fifo", struct jitter_options, fifo_priority, 1, FIFO_PRIORITY_MOST),
    OPTION_ROW_NUMBER("events", struct jitter_options, gaps_capacity, 0, EVENTS_MOST),
    OPTION_ROW_FLAG("attribute", struct jitter_options, attribute),
    OPTION_ROW_FLAG("intrude", struct jitter_options, intrude),
    OPTION_ROW_NUMBER("group", struct jitter_options, group, 0, 1 << 20),  /* from tunectl */
    OPTION_ROW_TEXT("output", struct jitter_options, output),
    OPTION_ROW_TEXT("root", struct jitter_options, root),   /* for tests: the host's files below a directory */
};

const struct command jitter_command = {
    .name = "jitter",
    .synopsis =
        "  tunectl-probe jitter [--cpus LIST] [--duration S] [--threshold-ns N] [--fifo PRIO] [--events N]\n"
        "                       [--attribute] [--intrude] [--output FILE]\n",
    .help =
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
        "  --intrude          spin also where a thread that can run nowhere else wants the CPU; without, such a CPU is left\n"
        "                     alone, or left within 10 ms, and is not measured\n"
        "  --output FILE      write the document there (default: standard output)\n"
        "SIGINT and SIGTERM end the measuring and still give the result so far.\n",
    .hint = "--help",
    .rows = option_rows,
    .rows_n = sizeof(option_rows) / sizeof(*option_rows),
};

int jitter_options_parse(struct jitter_options *options, int argc, char **argv)
{
    *options = (struct jitter_options){.duration_s = 5.0, .gaps_capacity = 65536, .root = "", .group = -1};
    return options_parse(&jitter_command, options, argc, argv);
}
