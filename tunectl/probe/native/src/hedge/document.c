#include <math.h>

#include "hedge/run.h"
#include "lib/document.h"
#include "lib/json.h"
#include "lib/values.h"

enum { SLOW_PERCENTILE = 99 };

static const char *const names[SERVERS] = {"a", "b"};

static bool has(const struct request *r, unsigned bits)
{
    return (r->state & bits) != 0;
}

/* Of one copy: REQUEST_DONE, REQUEST_CANCELLED. */
static bool is(const struct request *r, unsigned bits, unsigned server)
{
    return has(r, bits << server);
}

/* Where a copy came that was not the answer: too late, cancelled, or nowhere by the end. */
static void count_copy(struct hedge_counts *n, const struct request *r, unsigned server)
{
    bool is_hedge = server != r->first;
    bool is_answer = has(r, REQUEST_ANSWERED) && has(r, REQUEST_WON) == is_hedge;
    if (is_hedge) {
        n->hedged++;
        n->won += is_answer;
        n->lost += !is_answer && is(r, REQUEST_DONE, server);
        n->hedge_cancelled += is(r, REQUEST_CANCELLED, server);
        n->hedge_unfinished += !is(r, REQUEST_DONE | REQUEST_CANCELLED, server);
    }
    n->wasted += !is_answer && is(r, REQUEST_DONE, server);
    n->cancelled_unstarted += is(r, REQUEST_CANCELLED, server);
    n->unfinished += !is(r, REQUEST_DONE | REQUEST_CANCELLED, server);
}

struct hedge_counts hedge_count(const struct client *c)
{
    struct hedge_counts n = {0};
    for (size_t i = c->warm_ups; i < c->next; i++) {
        const struct request *r = &c->requests[i];
        n.offered++;
        n.shed += !has(r, REQUEST_ADMITTED);
        n.answered += has(r, REQUEST_ANSWERED);
        n.unanswered += has(r, REQUEST_ADMITTED) && !has(r, REQUEST_ANSWERED);
        n.denied += has(r, REQUEST_DENIED);
        n.over_budget += has(r, REQUEST_OVER_BUDGET);
        n.below_floor += has(r, REQUEST_WON) && r->answered - r->due < r->delay + c->fastest_ticks;
        if (has(r, REQUEST_ADMITTED))
            count_copy(&n, r, r->first);
        if (has(r, REQUEST_HEDGED))
            count_copy(&n, r, !r->first);
    }
    return n;
}

static uint32_t service_of(const struct hedge_run *run, unsigned server, size_t i)
{
    return run->servers[server].service[i];
}

static size_t collect_service(const struct hedge_run *run, unsigned server, int64_t *scratch)
{
    const struct client *c = &run->client;
    size_t n = 0;
    for (size_t i = c->warm_ups; i < c->next; i++)
        if (service_of(run, server, i))
            scratch[n++] = service_of(run, server, i);
    return n;
}

/* The nearest rank of the percentile. */
static int64_t slow_above(int64_t *values, size_t n)
{
    return n ? values_sorted(values, n)[(n * SLOW_PERCENTILE + 99) / 100 - 1] : 0;
}

struct hedge_together hedge_relate(const struct hedge_run *run, int64_t *scratch)
{
    const struct client *c = &run->client;
    struct hedge_together t = {.pairs = 0};
    for (unsigned s = 0; s < SERVERS; s++) {
        t.served[s] = collect_service(run, s, scratch);
        t.above_ticks[s] = (uint64_t)slow_above(scratch, t.served[s]);
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
    struct hedge_counts n = hedge_count(c);
    json_uint(j, "warm_ups", c->warm_ups);
    json_uint(j, "offered", n.offered);
    json_uint(j, "answered", n.answered);
    json_uint(j, "shed", n.shed);
    json_uint(j, "unanswered", n.unanswered);
    json_uint(j, "hedged", n.hedged);
    json_uint(j, "won", n.won);
    json_uint(j, "lost", n.lost);
    json_uint(j, "hedge_cancelled", n.hedge_cancelled);
    json_uint(j, "hedge_unfinished", n.hedge_unfinished);
    json_uint(j, "denied", n.denied);
    json_uint(j, "over_budget", n.over_budget);
    json_uint(j, "wasted", n.wasted);
    json_uint(j, "cancelled_unstarted", n.cancelled_unstarted);
    json_uint(j, "unfinished", n.unfinished);
    json_uint(j, "below_floor", n.below_floor);
    json_uint(j, "queue_max", c->queue_most);
    json_uints(j, "queue_sums", c->queues, QUARTERS);
    json_uints(j, "queue_arrivals", c->arrivals, QUARTERS);
    json_uint(j, "measured_ticks", run->measured_ticks);
    json_uint(j, "busy_ticks", c->busy_ticks);
    json_uint(j, "free_ticks", run->servers[SERVER_A].free_ticks + run->servers[SERVER_B].free_ticks);
    json_uint(j, "wasted_ticks", c->wasted_ticks);
    json_real(j, "fastest_ticks", c->fastest_ticks == UINT64_MAX ? NAN : (double)c->fastest_ticks, 0);
}

/* One figure of each request that has the bits. */
enum figure { LATENCY, LATE, DELAY };

static void write_figures(struct json *j, const char *key, const struct client *c, unsigned bits, enum figure which, int64_t *scratch)
{
    size_t n = 0;
    for (size_t i = c->warm_ups; i < c->next; i++) {
        const struct request *r = &c->requests[i];
        if (has(r, bits))
            scratch[n++] = which == LATENCY ? (int64_t)(r->answered - r->due) : which == LATE ? r->sent[r->first] : r->delay;
    }
    values_write(j, key, scratch, n);
}

static void write_together(struct json *j, const struct hedge_run *run, int64_t *scratch)
{
    struct hedge_together t = hedge_relate(run, scratch);
    json_open(j, "together", '{');
    json_uints(j, "served", t.served, SERVERS);
    json_uints(j, "slow", t.slow, SERVERS);
    json_uints(j, "above_ticks", t.above_ticks, SERVERS);
    json_uint(j, "pairs", t.pairs);
    json_uints(j, "first_slow", t.first_slow, SERVERS);
    json_uint(j, "both_slow", t.both_slow);
    json_close(j, '}');
}

static void write_services(struct json *j, const struct hedge_run *run, int64_t *scratch)
{
    const struct client *c = &run->client;
    size_t n = 0;
    json_open(j, "service", '{');
    for (unsigned s = 0; s < SERVERS; s++)
        values_write(j, names[s], scratch, collect_service(run, s, scratch));
    json_close(j, '}');
    for (size_t i = c->warm_ups; i < c->next; i++) {
        uint32_t a = service_of(run, SERVER_A, i);
        uint32_t b = service_of(run, SERVER_B, i);
        if (a && b)
            scratch[n++] = a < b ? a : b;
    }
    values_write(j, "shorter_of_pair", scratch, n);
}

static void write_threads(struct json *j, const struct hedge_run *run)
{
    const struct usage *used[HEDGE_ENDS] = {&run->used, &run->servers[SERVER_A].used, &run->servers[SERVER_B].used};
    json_open(j, "threads", '[');
    for (size_t i = 0; i < HEDGE_ENDS && !run->options->is_simulated; i++) {
        json_open(j, NULL, '{');
        json_uint(j, "cpu_ns", used[i]->cpu_ns);
        json_uint(j, "ticks", used[i]->ticks);
        json_uint(j, "preemptions", used[i]->preemptions);
        json_uint(j, "page_faults", used[i]->minor_faults + used[i]->major_faults);
        json_close(j, '}');
    }
    json_close(j, ']');
}

static int write_case(struct json *j, const struct hedge_run *run)
{
    const struct options *o = run->options;
    const struct client *c = &run->client;
    int64_t *scratch = memory_map(c->n * sizeof(*scratch));
    if (!scratch)
        return -1;
    json_real(j, "load", o->load, 6);
    json_uint(j, "service_ns", o->service_ns);
    json_string(j, "delay", o->delay);
    json_bool(j, "cancel", !o->keeps_copies);
    json_real(j, "budget", o->budget, 6);
    json_uint(j, "shed_at", o->shed);
    json_string(j, "stall", o->stall);
    json_uint(j, "seed", o->seed);
    json_string(j, "reason", "");
    json_uint(j, "throttled_us", run->pair.throttled_us);
    write_counts(j, run);
    write_figures(j, "latency", c, REQUEST_ANSWERED, LATENCY, scratch);
    write_figures(j, "won_latency", c, REQUEST_WON, LATENCY, scratch);
    write_figures(j, "late", c, REQUEST_ADMITTED, LATE, scratch);
    write_figures(j, "hedged_after", c, REQUEST_HEDGED, DELAY, scratch);
    write_services(j, run, scratch);
    write_together(j, run, scratch);
    write_threads(j, run);
    return 0;
}

/* In the place of what pair_write says of threads and a counter. */
static void write_simulated(struct json *j)
{
    json_uints(j, "cpus", NULL, 0);
    json_open(j, "clock", '{');
    json_string(j, "source", "simulated");
    json_real(j, "hz", 1e9, 3);
    json_close(j, '}');
    json_null(j, "facts");
}

int hedge_document_write(FILE *stream, const void *context)
{
    const struct hedge_run *run = context;
    const struct options *o = run->options;
    struct json j = {.stream = stream};
    json_open(&j, NULL, '{');
    document_write_header(&j, "tunectl.probe.hedge.raw/1", &run->facts, run->at_s);
    json_string(&j, "holds", "what was counted, in ticks of the clock; each value and how often it came, in turns. `tunectl probe hedge` "
                "makes percentiles, figures and warnings of it");
    json_real(&j, "duration_s", (double)run->measured_ticks / run->clock.initial.hz, 3);
    json_bool(&j, "interrupted", run->is_interrupted);
    json_bool(&j, "simulated", o->is_simulated);
    json_uint(&j, "fifo_priority", (uint64_t)o->fifo_priority);
    if (o->is_simulated)
        write_simulated(&j);
    else
        pair_write(&j, &run->pair, &run->clock, &run->facts);
    json_open(&j, "cells", '[');
    json_open(&j, NULL, '{');
    int rc = write_case(&j, run);
    json_close(&j, '}');
    json_close(&j, ']');
    json_close(&j, '}');
    return rc;
}
