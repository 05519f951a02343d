#include "hedge/run.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "lib/options.h"
#include "lib/thread.h"
#include "lib/ticks.h"

enum {
    LEAD_MS = 20,               /* from the start of the threads to the first request's time */
    CALIBRATION_TURNS = 2000,
    CALIBRATION_ROUNDS = 64,
    SLOW_PERCENTILE = 99,
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

/* ---- the document */

static uint32_t service_of(const struct hedge_run *run, unsigned server, size_t i)
{
    return run->servers[server].service[i];
}

/* One figure of each request that has the bits, and of those only where it is known. */
enum figure { STATE, LATENCY, LATE, HEDGED_AFTER, SERVICE_A, SERVICE_B, SHORTER_OF_PAIR };

struct figures {
    const struct hedge_run *run;
    enum figure which;
    unsigned bits;
};

static bool take(const void *context, size_t i, int64_t *value)
{
    const struct figures *of = context;
    const struct request *r = &of->run->client.requests[i];
    uint32_t a = service_of(of->run, SERVER_A, i);
    uint32_t b = service_of(of->run, SERVER_B, i);
    switch (of->which) {
    case STATE:
        *value = r->first << 16 | r->state;
        break;
    case LATENCY:
        *value = (int64_t)(r->answered - r->due);
        break;
    case LATE:
        *value = r->sent[r->first];
        break;
    case HEDGED_AFTER:
        *value = r->delay;
        break;
    case SERVICE_A:
        *value = a;
        return a > 0;
    case SERVICE_B:
        *value = b;
        return b > 0;
    case SHORTER_OF_PAIR:
        *value = a < b ? a : b;
        return a && b;
    }
    return (r->state & of->bits) == of->bits;
}

static void write_figures(struct json *j, const char *key, const struct hedge_run *run, enum figure which, unsigned bits)
{
    const struct client *c = &run->client;
    values_write(j, key, c->warm_ups, c->next, take, &(struct figures){run, which, bits});
}

struct hedge_together hedge_relate(const struct hedge_run *run)
{
    const struct client *c = &run->client;
    struct hedge_together t = {.pairs = 0};
    for (unsigned s = 0; s < SERVERS; s++) {
        int64_t *sorted;
        size_t n = values_collect(&sorted, c->warm_ups, c->next, take, &(struct figures){run, s == SERVER_A ? SERVICE_A : SERVICE_B, 0});
        /* The nearest rank of the percentile. */
        t.above_ticks[s] = n ? (uint64_t)sorted[(n * SLOW_PERCENTILE + 99) / 100 - 1] : 0;
        t.served[s] = n;
        free(sorted);
    }
    for (size_t i = c->warm_ups; i < c->next; i++) {
        unsigned first = c->requests[i].first;
        bool is_slow[SERVERS];
        for (unsigned s = 0; s < SERVERS; s++) {
            is_slow[s] = service_of(run, s, i) > t.above_ticks[s];
            t.slow[s] += is_slow[s];
        }
        if (!service_of(run, SERVER_A, i) || !service_of(run, SERVER_B, i))
            continue;
        t.pairs++;
        t.first_slow[first] += is_slow[first];
        t.both_slow += is_slow[SERVER_A] && is_slow[SERVER_B];
    }
    return t;
}

static void write_counts(struct json *j, const struct hedge_run *run)
{
    const struct client *c = &run->client;
    uint64_t below_floor = 0;   /* answers by a hedge before its own delay and the fastest reply: there is none */
    for (const struct request *r = c->requests + c->warm_ups; r < c->requests + c->next; r++)
        below_floor += r->state & REQUEST_WON && r->answered - r->due < r->delay + c->fastest_ticks;
    json_counts(j, {"warm_ups", c->warm_ups}, {"below_floor", below_floor}, {"queue_max", c->queue_most},
                {"measured_ticks", run->measured_ticks}, {"busy_ticks", c->busy_ticks}, {"wasted_ticks", c->wasted_ticks},
                {"free_ticks", run->servers[SERVER_A].free_ticks + run->servers[SERVER_B].free_ticks});
    json_uints(j, "queue_sums", c->queues, QUARTERS);
    json_uints(j, "queue_arrivals", c->arrivals, QUARTERS);
    json_real(j, "fastest_ticks", c->fastest_ticks == UINT64_MAX ? NAN : (double)c->fastest_ticks, 0);
}

static void write_together(struct json *j, const struct hedge_run *run)
{
    struct hedge_together t = hedge_relate(run);
    json_open(j, "together", '{');
    json_uints(j, "served", t.served, SERVERS);
    json_uints(j, "slow", t.slow, SERVERS);
    json_uints(j, "above_ticks", t.above_ticks, SERVERS);
    json_uints(j, "first_slow", t.first_slow, SERVERS);
    json_counts(j, {"pairs", t.pairs}, {"both_slow", t.both_slow});
    json_close(j, '}');
}

static void write_threads(struct json *j, const struct hedge_run *run)
{
    const struct usage *used[HEDGE_ENDS] = {&run->used, &run->servers[SERVER_A].used, &run->servers[SERVER_B].used};
    json_open(j, "threads", '[');
    for (size_t i = 0; i < HEDGE_ENDS && !run->pair.options->is_simulated; i++) {
        json_open(j, NULL, '{');
        json_counts(j, {"cpu_ns", used[i]->cpu_ns}, {"ticks", used[i]->ticks}, {"preemptions", used[i]->preemptions},
                    {"page_faults", used[i]->minor_faults + used[i]->major_faults});
        json_close(j, '}');
    }
    json_close(j, ']');
}

static void write_measured(struct json *j, void *context)
{
    const struct hedge_run *run = context;
    write_counts(j, run);
    write_figures(j, "states", run, STATE, 0);
    write_figures(j, "latency", run, LATENCY, REQUEST_ANSWERED);
    write_figures(j, "won_latency", run, LATENCY, REQUEST_WON);
    write_figures(j, "late", run, LATE, REQUEST_ADMITTED);
    write_figures(j, "hedged_after", run, HEDGED_AFTER, REQUEST_HEDGED);
    json_open(j, "service", '{');
    write_figures(j, "a", run, SERVICE_A, 0);
    write_figures(j, "b", run, SERVICE_B, 0);
    json_close(j, '}');
    write_figures(j, "shorter_of_pair", run, SHORTER_OF_PAIR, 0);
    write_together(j, run);
    write_threads(j, run);
}

static void write_asked(struct json *j, const void *context)
{
    static const char *const stalls[] = {[STALL_NONE] = "none", [STALL_A] = "a", [STALL_BOTH] = "both", [STALL_COMMON] = "common"};
    const struct options *o = ((const struct hedge_run *)context)->pair.options;
    json_real(j, "load", o->load, 6);
    json_string(j, "delay", o->delay);
    json_bool(j, "cancel", !o->keeps_copies);
    json_real(j, "budget", o->budget, 6);
    json_string(j, "stall", stalls[o->stall]);
    json_counts(j, {"service_ns", o->service_ns}, {"shed_at", o->shed}, {"seed", o->seed});
}

static void write_run(struct json *j, const void *context)
{
    json_bool(j, "simulated", ((const struct hedge_run *)context)->pair.options->is_simulated);
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

static struct hedge_run the_run;

const struct pair_experiment hedge_experiment = {
    .pair = &the_run.pair,
    .run = &the_run,
    .command = &hedge_command,
    .roles = &roles,
    .prepare = {prepare_client, prepare_a, prepare_b},
    .work = {run_client, serve_a, serve_b},
    .check = check,
    .measure = measure,
    .write_run = write_run,
    .write_asked = write_asked,
    .write_measured = write_measured,
};
