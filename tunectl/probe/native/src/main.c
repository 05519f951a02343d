#include <stdio.h>
#include <string.h>

#include "bench/bench.h"
#include "jitter/jitter.h"
#include "lib/output.h"
#include "lib/parent.h"
#include "selftest/selftest.h"
#include "sentinel/sentinel.h"
#include "wake/wake.h"

/* The experiments. To add one, add a folder and a row. */
static const struct {
    const struct command *command;
    int (*main)(int argc, char **argv);     /* parses, runs and writes; returns the exit status, or OPTIONS_ARE_OVER */
} experiments[] = {
    {&jitter_command, jitter_main},
    {&wake_command, wake_main},
    {&selftest_command, selftest_main},
    {&sentinel_command, sentinel_main},
    {&bench_command, bench_main},
};

enum { EXPERIMENTS = sizeof(experiments) / sizeof(*experiments), TEXTS_MOST = 4 * EXPERIMENTS, NAMES_MOST = 256 };

static const char introduction[] =
    "tunectl-probe measures how often, and for how long, a CPU is taken away from a spinning thread, and how long a\n"
    "waiting thread takes to have its message.\n"
    "\n";

static int print_help(void)
{
    const char *texts[TEXTS_MOST] = {introduction};
    size_t n = 1;
    for (size_t i = 0; i < EXPERIMENTS; i++)
        texts[n++] = experiments[i].command->synopsis;
    texts[n++] = "  tunectl-probe --help | --version\n";
    for (size_t i = 0; i < EXPERIMENTS; i++)
        if (experiments[i].command->help[0]) {
            texts[n++] = "\n";
            texts[n++] = experiments[i].command->help;
        }
    texts[n++] = options_exit_status;
    return options_print(texts);
}

/* "jitter, wake and bench" */
static const char *names(char text[NAMES_MOST], const char *last)
{
    size_t used = 0;
    for (size_t i = 0; i < EXPERIMENTS && used < NAMES_MOST; i++) {
        const char *before = i == 0 ? "" : i + 1 < EXPERIMENTS ? ", " : last;
        used += (size_t)snprintf(text + used, NAMES_MOST - used, "%s%s", before, experiments[i].command->name);
    }
    return text;
}

/* What can be asked without naming an experiment. */
static int without_experiment(int argc, char **argv)
{
    char text[NAMES_MOST];
    const char *word = argc > 1 ? argv[1] : "";
    static const char version[] = "tunectl-probe " TUNECTL_VERSION "\n";
    if (argc < 2)
        return print_error(EXIT_USAGE, "say what to do: %s (see --help)", names(text, " or "));
    if (strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0)
        return print_help();
    if (strcmp(word, "--version") == 0)
        return options_print((const char *[]){version, NULL});
    if (word[0] == '-')
        return print_error(EXIT_USAGE, "%s is no option here (see --help)", word);
    return print_error(EXIT_USAGE, "there is no command %s; there are %s", word, names(text, " and "));
}

int main(int argc, char **argv)
{
    size_t at = 0;
    if (!parent_follow())
        return print_error(EXIT_FAILED, "whoever started it has ended");
    while (at < EXPERIMENTS && (argc < 2 || strcmp(argv[1], experiments[at].command->name) != 0))
        at++;
    int status = at < EXPERIMENTS ? experiments[at].main(argc, argv) : without_experiment(argc, argv);
    return status == OPTIONS_ARE_OVER ? EXIT_OK : status;
}
