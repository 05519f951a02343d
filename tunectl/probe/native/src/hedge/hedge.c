#include "hedge/run.h"
#include "lib/options.h"
#include "lib/thread.h"
#include "lib/ticks.h"

enum {
    LEAD_MS = 20,               /* from the start of the threads to the first request's time */
};

const struct command hedge_command = {
    .name = "hedge",
    .experiment = OF_HEDGE,
    .about =
        "hedge: does a second copy of a late request help, and at which load does it break down? The result is a JSON document of what\n"
        "was counted (schema tunectl.probe.hedge.raw/1); `tunectl probe hedge` chooses CPUs and cases, and makes figures of it.\n",
    .holds = "what was counted, in ticks of the clock; each value and how often it came, in turns. `tunectl probe hedge` makes "
             "percentiles, figures and warnings of it",
};

static const struct pair_roles roles = {
    HEDGE_ENDS, {"client", "a", "b"}, "the client's CPU and those of both servers, like 2,3,4"
};

static int conduct(struct hedge_run *run)
{
    struct pair *pair = &run->pair;
    int status = pair_start(pair);
    if (status)
        return status;
    run->start_ticks = ticks_now() + (uint64_t)((double)LEAD_MS * 1e6 * pair->ticks_per_ns);
    bool is_over = pair_work(pair, NULL);
    pair->is_interrupted = stop_is_asked();
    pair_end(pair, is_over);
    return is_over ? EXIT_OK : print_error(EXIT_FAILED, "a server did not end within two seconds: nothing was measured");
}

static int measure(void *context)
{
    struct hedge_run *run = context;
    int status = hedge_read_rules(run);
    if (!status)
        status = hedge_get_memory(run);
    if (!status && run->pair.options->is_simulated)
        hedge_simulate(run);
    else if (!status)
        status = conduct(run);
    run->pair.duration_s = (double)run->measured_ticks / run->pair.clock.initial.hz;
    return status;
}

static int check(void *context)
{
    struct pair *pair = &((struct hedge_run *)context)->pair;
    const struct options *o = pair->options;
    if (o->is_simulated)
        return o->cpus ? print_error(EXIT_USAGE, "--cpus: a simulation has none") : EXIT_OK;
    int status = pair_choose(pair);
    bool is_shared = cpus_count(&pair->cpus) < HEDGE_ENDS;
    if (!status && is_shared && (!o->may_share || o->fifo_priority))
        return print_error(EXIT_USAGE, "--cpus: all three threads spin, so each needs a CPU of its own");
    return status;
}

static const struct pair_experiment experiment = {
    .command = &hedge_command,
    .roles = &roles,
    .prepare = {hedge_prepare_client, hedge_prepare_a, hedge_prepare_b},
    .work = {hedge_run_client, hedge_serve_a, hedge_serve_b},
    .check = check,
    .measure = measure,
    .write_run = hedge_write_run,
    .write_asked = hedge_write_asked,
    .write_measured = hedge_write_measured,
};

int hedge_main(int argc, char **argv)
{
    static struct hedge_run run;
    return pair_main(&experiment, &run.pair, &run, argc, argv);
}
