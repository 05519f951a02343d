#include "hedge/run.h"

#include <string.h>

#include "lib/options.h"
#include "lib/thread.h"
#include "lib/ticks.h"

enum {
    LEAD_MS = 20,               /* from the start of the threads to the first request's time */
    CALIBRATION_TURNS = 2000,
    CALIBRATION_ROUNDS = 64,
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

/* ---- the threads */

static void await_start(const struct hedge_run *run)
{
    while (ticks_now() < run->start_ticks)
        continue;
}

static uint64_t now_of(const struct hedge_run *run)
{
    return ticks_now() - run->start_ticks;
}

/* The stamp comes behind the load that found the answer, or the work. */
static uint64_t now_behind(const struct hedge_run *run)
{
    return ticks_after_loads() - run->start_ticks;
}

static void prepare_client(void *context)
{
    struct hedge_run *run = context;
    struct client *c = &run->client;
    hedge_plan(run);
    for (unsigned s = 0; s < SERVERS; s++)
        memset((void *)c->lanes[s].copies, 0, (c->n + 1) * sizeof(*c->lanes[s].copies));
}

/* So many turns of the chain as take the time that was asked for, by the fastest of some rounds: nothing interrupted that one. */
static void calibrate(struct server *server, double service_ticks)
{
    uint64_t fastest = UINT64_MAX;
    for (unsigned i = 0; i < CALIBRATION_ROUNDS; i++) {
        uint64_t ticks = chain_ticks(CALIBRATION_TURNS);
        fastest = ticks < fastest ? ticks : fastest;
    }
    double turns = service_ticks * (double)CALIBRATION_TURNS / (double)fastest;
    server->turns = turns < 1.0 ? 1 : (uint64_t)(turns + 0.5);
    server->work_ticks = server->turns * fastest / CALIBRATION_TURNS;
}

static void prepare_server(struct hedge_run *run, unsigned s)
{
    struct server *server = &run->servers[s];
    memset(server->service, 0, run->client.n * sizeof(*server->service));
    memset((void *)server->answers, 0, (run->client.n + 1) * sizeof(*server->answers));
    calibrate(server, (double)run->pair.options->service_ns * run->pair.clock.initial.hz / 1e9);
}

/* No system call, and nothing that waits, between the two readings of what the thread has used. */
static void serve(struct hedge_run *run, unsigned s)
{
    struct server *server = &run->servers[s];
    struct lane *lane = &run->client.lanes[s];
    await_start(run);
    struct usage before = usage_now();
    uint64_t ready = now_of(run);
    uint64_t looked = ready;
    for (size_t n = 0; !atomic_load_explicit(&run->is_over, memory_order_relaxed);) {
        uint32_t request;
        if (ready >= server->stalls.next)
            for (uint64_t end = stalls_pass(&server->stalls); looked < end;)
                looked = now_of(run);
        if (!lane_take(lane, &request)) {
            ready = now_of(run);
            server->free_ticks += hedge_counted(run, looked, ready);
            looked = ready;
            continue;
        }
        uint64_t started = now_of(run);
        chain_run(server->turns);
        uint64_t done = now_behind(run);
        server->service[request] = ticks_narrowed(done - ready);
        atomic_store_explicit(&server->answers[n++], (uint64_t)ticks_narrowed(done - started) << 32 | (request + 1), memory_order_release);
        looked = ready = done;
    }
    server->used = usage_since(&before);
}

static void take_answer(struct hedge_run *run, unsigned s)
{
    struct server *server = &run->servers[s];
    uint64_t answer = atomic_load_explicit(&server->answers[server->taken], memory_order_acquire);
    if (!answer)
        return;
    server->taken++;
    client_answer(&run->client, s, (uint32_t)answer - 1, (uint32_t)(answer >> 32), now_behind(run));
}

static void run_client(void *context)
{
    struct hedge_run *run = context;
    struct client *c = &run->client;
    await_start(run);
    struct usage before = usage_now();
    uint64_t now = now_of(run);
    for (; now < run->end_ticks && !client_is_done(c) && !stop_is_asked(); now = now_of(run)) {
        if (c->next < c->n && c->requests[c->next].due <= now)
            (void)client_arrive(c, now);
        take_answer(run, SERVER_A);
        take_answer(run, SERVER_B);
        (void)client_hedge(c, now);
    }
    run->used = usage_since(&before);
    hedge_end(run, now);
    atomic_store(&run->is_over, true);
}

static void prepare_a(void *run)
{
    prepare_server(run, SERVER_A);
}

static void prepare_b(void *run)
{
    prepare_server(run, SERVER_B);
}

static void serve_a(void *run)
{
    serve(run, SERVER_A);
}

static void serve_b(void *run)
{
    serve(run, SERVER_B);
}

/* ---- the run */

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
    .prepare = {prepare_client, prepare_a, prepare_b},
    .work = {run_client, serve_a, serve_b},
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
