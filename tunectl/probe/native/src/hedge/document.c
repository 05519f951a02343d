#include <math.h>
#include <stdlib.h>

#include "hedge/run.h"

enum { SLOW_PERCENTILE = 99 };

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

void hedge_write_measured(struct json *j, void *context)
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

void hedge_write_asked(struct json *j, const void *context)
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

void hedge_write_run(struct json *j, const void *context)
{
    json_bool(j, "simulated", ((const struct hedge_run *)context)->pair.options->is_simulated);
}
