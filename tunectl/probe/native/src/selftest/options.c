#include "selftest/options.h"

static const struct option_row option_rows[] = {
    OPTION_ROW_TEXT("cpus", struct selftest_options, cpus),
    OPTION_ROW_TEXT("output", struct selftest_options, output),
    OPTION_ROW_TEXT("root", struct selftest_options, root),     /* for tests: the host's files below a directory */
};

const struct command selftest_command = {
    .name = "selftest",
    .synopsis = "  tunectl-probe selftest [--cpus CPU] [--output FILE]\n",
    .help =
        "selftest: are interruptions of known length, at known times, all found on this host? (JSON, schema\n"
        "tunectl.probe.selftest/1; some twelve seconds; a full pass needs CAP_SYS_NICE). Exit status 1 unless all are.\n",
    .hint = "--help",
    .rows = option_rows,
    .rows_n = sizeof(option_rows) / sizeof(*option_rows),
};

int selftest_options_parse(struct selftest_options *options, int argc, char **argv)
{
    *options = (struct selftest_options){.root = ""};
    return options_parse(&selftest_command, options, argc, argv);
}
