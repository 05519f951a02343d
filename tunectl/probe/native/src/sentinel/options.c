#include "sentinel/options.h"

#include <stdlib.h>

#include "lib/cpus.h"
#include "lib/output.h"

/* A period has ten stretches of spinning: each is long against a clock measurement, and a signal is heard after each. */
static int parse_period(void *options, const char *name, const char *text)
{
    char *end;
    double s = strtod(text, &end);
    if (end == text || *end || !(s >= 0.1 && s <= 10.0))
        return print_error(EXIT_USAGE, "%s %s: expected seconds, from 0.1 to 10", name, text);
    ((struct sentinel_options *)options)->period_s = s;
    return EXIT_OK;
}

static const struct option_row option_rows[] = {
    OPTION_ROW_NUMBER("cpu", struct sentinel_options, cpu, 0, CPU_LIMIT - 1),
    OPTION_ROW_PARSED("period", parse_period),
    OPTION_ROW_NUMBER("duty", struct sentinel_options, duty_percent, 1, 100),
    OPTION_ROW_NUMBER("threshold-ns", struct sentinel_options, threshold_ns, 1, THRESHOLD_MOST_NS),
    OPTION_ROW_NUMBER("fifo", struct sentinel_options, fifo_priority, 1, FIFO_PRIORITY_MOST),
    OPTION_ROW_NUMBER("lines", struct sentinel_options, lines, 1, UINT64_MAX),
    OPTION_ROW_TEXT("root", struct sentinel_options, root),     /* for tests: the host's files below a directory */
};

const struct command sentinel_command = {
    .name = "sentinel",
    .synopsis =
        "  tunectl-probe sentinel --cpu N [--period S] [--duty PERCENT] [--threshold-ns N] [--fifo PRIO] [--lines N]\n",
    .help =
        "sentinel: stays on one CPU and prints a line of JSON (schema tunectl.probe.sentinel/1) each period: the clock the core\n"
        "really runs at, and how long the CPU went away while the sentinel spun. Ends with its parent, or when nobody reads.\n"
        "  --cpu N            the CPU it may use\n"
        "  --period S         from 0.1 to 10 seconds (default 1)\n"
        "  --duty PERCENT     of the time it spins, in ten stretches a period (default 2)\n"
        "  --lines N          end after so many (default: stay)\n",
    .hint = "--help",
    .rows = option_rows,
    .rows_n = sizeof(option_rows) / sizeof(*option_rows),
};

int sentinel_options_parse(struct sentinel_options *options, int argc, char **argv)
{
    *options = (struct sentinel_options){.cpu = SENTINEL_NO_CPU, .period_s = 1.0, .duty_percent = 2, .root = ""};
    return options_parse(&sentinel_command, options, argc, argv);
}
