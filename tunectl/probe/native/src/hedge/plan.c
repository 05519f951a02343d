#include <stdlib.h>
#include <string.h>

#include "hedge/run.h"
#include "lib/options.h"
#include "hedge/random.h"

enum { WARM_UPS_LEAST = 100, WARM_UPS_MOST = 10000, GRACE_MS = 10, GRACE_SERVICES = 10 };

uint64_t hedge_seed(const struct hedge_run *run, unsigned stream)
{
    uint64_t state = run->pair.options->seed * STREAMS + stream;
    return random_next(&state);
}

static bool is_percentile(const char *text, double *share)
{
    if (text[0] != 'p' || strspn(text + 1, "0123456789.") != strlen(text + 1))
        return false;
    char *end;
    double percent = strtod(text + 1, &end);
    *share = percent / 100.0;
    return !*end && percent >= 50.0 && percent <= 99.9;
}

static bool is_delay(const char *text, uint64_t *ns)
{
    char *end;
    *ns = strtoull(text, &end, 10);
    return text[0] >= '0' && text[0] <= '9' && !*end && *ns <= UINT64_C(1000000000);
}

int hedge_read_rules(struct hedge_run *run)
{
    const struct options *o = run->pair.options;
    struct policy_rules *rules = &run->rules;
    uint64_t ns = 0;
    *rules = (struct policy_rules){.delay = POLICY_NEVER, .budget = o->budget, .shed = o->shed, .cancels = !o->keeps_copies};
    if (is_delay(o->delay, &ns))
        rules->delay = (uint64_t)((double)ns * run->pair.clock.initial.hz / 1e9);
    else if (strcmp(o->delay, "none") != 0 && !is_percentile(o->delay, &rules->percentile))
        return print_error(EXIT_USAGE, "--delay %.20s: expected none, p50 to p99.9, or ns up to 1000000000", o->delay);
    return EXIT_OK;
}

int hedge_get_memory(struct hedge_run *run)
{
    const struct options *o = run->pair.options;
    double asked = o->duration_s * 1e9 * 2.0 * o->load / (double)o->service_ns + 0.5;
    if (!(asked >= 1.0 && asked <= HEDGE_MOST - WARM_UPS_MOST))
        return print_error(EXIT_USAGE, "--load %g for --duration %g s: that is %.0f requests of %u ns, expected 1 to %d", o->load,
                           o->duration_s, asked, o->service_ns, HEDGE_MOST - WARM_UPS_MOST);
    size_t wanted = (size_t)asked;
    size_t half = wanted / 2;
    size_t warm_ups = half < WARM_UPS_LEAST ? WARM_UPS_LEAST : half > WARM_UPS_MOST ? WARM_UPS_MOST : half;
    struct client *c = &run->client;
    size_t n = warm_ups + wanted;
    struct request *requests = memory_map(n * sizeof(*requests));
    bool is_there = requests != NULL;
    for (unsigned s = 0; s < SERVERS; s++) {
        struct server *server = &run->servers[s];
        c->lanes[s].copies = memory_map((n + 1) * sizeof(*c->lanes[s].copies));
        server->service = memory_map(n * sizeof(*server->service));
        server->answers = memory_map((n + 1) * sizeof(*server->answers));
        is_there = is_there && c->lanes[s].copies && server->service && server->answers;
    }
    if (!is_there)
        return print_error(EXIT_FAILED, "out of memory (a shorter --duration needs less)");
    client_init(c, requests, n, warm_ups, &run->rules);
    return EXIT_OK;
}

void stalls_init(struct stalls *stalls, bool has_any, uint64_t seed, double ticks_per_ns)
{
    *stalls = (struct stalls){.next = 0, .seed = seed, .ticks_per_ns = ticks_per_ns};
    (void)stalls_pass(stalls);
    if (!has_any)
        stalls->next = UINT64_MAX;
}

uint64_t stalls_pass(struct stalls *stalls)
{
    double length_ns = (double)HEDGE_STALL_US * 1e3;
    double pauses_per_stall = (double)(100 - HEDGE_STALLED_PERCENT) / (double)HEDGE_STALLED_PERCENT;
    double pause_ns = length_ns * pauses_per_stall * random_exponential(&stalls->seed);
    uint64_t end = stalls->next + (uint64_t)(length_ns * stalls->ticks_per_ns);
    stalls->next = end + (uint64_t)(pause_ns * stalls->ticks_per_ns);
    return end;
}

/* For answers to the last requests: a queue of some, where the work of one is long. */
static double grace_ns(unsigned service_ns)
{
    double least = (double)GRACE_MS * 1e6;
    double services = (double)GRACE_SERVICES * (double)service_ns;
    return services > least ? services : least;
}

void hedge_plan(struct hedge_run *run)
{
    const struct options *o = run->pair.options;
    struct client *c = &run->client;
    double ticks_per_ns = run->pair.clock.initial.hz / 1e9;
    double gap_ticks = (double)o->service_ns / (2.0 * o->load) * ticks_per_ns;
    uint64_t seed = hedge_seed(run, STREAM_ARRIVALS);
    double due = 0.0;
    for (size_t i = 0; i < c->n; i++) {
        due += gap_ticks * random_exponential(&seed);
        c->requests[i].due = (uint64_t)due;
        c->requests[i].first = (uint16_t)(random_next(&seed) >> 63);
    }
    run->counted_from = c->requests[c->warm_ups].due;
    run->counted_until = (uint64_t)due;
    run->end_ticks = (uint64_t)due + (uint64_t)(grace_ns(o->service_ns) * ticks_per_ns);
    unsigned of_b = STREAM_STALLS + (o->stall != STALL_COMMON);
    stalls_init(&run->servers[SERVER_A].stalls, o->stall >= STALL_A, hedge_seed(run, STREAM_STALLS), ticks_per_ns);
    stalls_init(&run->servers[SERVER_B].stalls, o->stall >= STALL_BOTH, hedge_seed(run, of_b), ticks_per_ns);
}

uint64_t hedge_counted(const struct hedge_run *run, uint64_t from, uint64_t to)
{
    uint64_t begin = from > run->counted_from ? from : run->counted_from;
    uint64_t end = to < run->counted_until ? to : run->counted_until;
    return end > begin ? end - begin : 0;
}

void hedge_end(struct hedge_run *run, uint64_t now)
{
    run->measured_ticks = hedge_counted(run, 0, now);
}
