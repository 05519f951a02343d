/*
 * What the client of `hedge` costs by itself, over 1,000,000 requests and without a clock or another thread: bench-hedge CPU. JSON: ns
 * a request that is sent once and answered; ns more for a second copy that is sent, and cancelled; ns an answer that a percentile
 * follows; the least of some rounds.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/json.h"
#include "lib/options.h"
#include "hedge/random.h"
#include "../hedges.h"

enum { REQUESTS = 1000000, ROUNDS = 9, KINDS = 3 };

static struct hedge_run run;

static void make(const char *delay)
{
    static struct options options;
    options = (struct options){.load = 0.5, .service_ns = 3000, .delay = delay, .budget = 1.0, .duration_s = REQUESTS * 3e-6};
    memset(&run, 0, sizeof(run));
    run.pair.options = &options;
    run.pair.clock.initial.hz = 1e9;
    if (hedge_read_rules(&run) || hedge_get_memory(&run))
        abort();
    hedge_plan(&run);
}

/* Each request comes, is hedged where it may be, and is answered some 3 us after it was due. Returns ns. */
static uint64_t pass(const char *delay)
{
    make(delay);
    struct client *c = &run.client;
    uint64_t seed = 1;
    uint64_t start = clock_ns(CLOCK_MONOTONIC);
    for (size_t i = 0; i < c->n; i++) {
        uint64_t due = c->requests[i].due;
        unsigned first = c->requests[i].first;
        uint32_t request;
        (void)client_arrive(c, due);
        (void)client_hedge(c, due);
        if (lane_take(&c->lanes[first], &request))
            client_answer(c, first, request, 3000, due + 3000 + random_next(&seed) % 1000);
    }
    uint64_t ns = clock_ns(CLOCK_MONOTONIC) - start;
    if (!client_is_done(c))
        abort();
    hedge_free_memory(&run);
    return ns;
}

int main(int argc, char **argv)
{
    static const char *const delays[KINDS] = {"none", "0", "p95"};
    struct json j = {.stream = stdout};
    double least[KINDS] = {1e18, 1e18, 1e18};
    if (argc != 2 || thread_pin((unsigned)strtoul(argv[1], NULL, 10)))
        return print_error(EXIT_USAGE, "usage: bench-hedge CPU");
    for (unsigned round = 0; round < ROUNDS; round++)
        for (unsigned kind = 0; kind < KINDS; kind++) {
            double ns = (double)pass(delays[kind]) / REQUESTS;
            least[kind] = ns < least[kind] ? ns : least[kind];
        }
    json_open(&j, NULL, '{');
    json_real(&j, "request_ns", least[0], 1);
    json_real(&j, "second_copy_ns", least[1] - least[0], 1);
    json_real(&j, "follow_ns", least[2] - least[0], 1);
    json_close(&j, '}');
    (void)putchar('\n');
    return EXIT_OK;
}
