#include <stdio.h>
#include <string.h>

#include "contention/run.h"
#include "feed/run.h"
#include "hedge/run.h"
#include "jitter/run.h"
#include "lib/options.h"
#include "lib/thread.h"
#include "sentinel/sentinel.h"
#include "wake/run.h"

/* The experiments. To add one, add a folder and a row. */
static const struct {
    const struct command *command;
    int (*main)(int argc, char **argv);     /* parses, runs and writes; returns the exit status, or OPTIONS_ARE_OVER */
    const struct pair_experiment *pair;     /* instead, where threads do it together */
} experiments[] = {
    {&jitter_command, jitter_main, NULL},
    {&wake_command, NULL, &wake_experiment},
    {&feed_command, NULL, &feed_experiment},
    {&hedge_command, NULL, &hedge_experiment},
    {&contention_command, NULL, &contention_experiment},
    {&sentinel_command, sentinel_main, NULL},
};

enum { EXPERIMENTS = sizeof(experiments) / sizeof(*experiments) };

static int print_help(void)
{
    (void)printf("tunectl-probe measures how often, and for how long, a CPU is taken away from a spinning thread, and how long a\n"
                 "waiting thread takes to have its message; and what a second copy of a late request gains, and what\n"
                 "locks and allocators cost.\n\n");
    for (size_t i = 0; i < EXPERIMENTS; i++)
        options_put_help(experiments[i].command);
    return options_end_output(OPTIONS_EXIT_STATUS);
}

/* What can be asked without naming an experiment. */
static int without_experiment(const char *word)
{
    if (!word)
        return print_error(EXIT_USAGE, "say what to do (see --help)");
    if (strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0)
        return print_help();
    if (strcmp(word, "--version") == 0)
        return options_end_output(OPTIONS_VERSION);
    return print_error(EXIT_USAGE, word[0] == '-' ? "%s is no option here (see --help)" : "there is no command %s (see --help)", word);
}

int main(int argc, char **argv)
{
    const char *word = argc > 1 ? argv[1] : NULL;
    size_t at = 0;
    if (!parent_follow())
        return print_error(EXIT_FAILED, "whoever started it has ended");
    while (at < EXPERIMENTS && (!word || strcmp(word, experiments[at].command->name) != 0))
        at++;
    int status = at == EXPERIMENTS     ? without_experiment(word)
                 : experiments[at].main ? experiments[at].main(argc, argv)
                                        : pair_main(experiments[at].pair, argc, argv);
    return status == OPTIONS_ARE_OVER ? EXIT_OK : status;
}
