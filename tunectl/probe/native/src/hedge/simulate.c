#include "hedge/run.h"
#include "hedge/random.h"
#include "lib/ticks.h"

/* A server's work: nine tenths of it always the same, the rest exponential. */
static const double SAME = 0.9;

enum state {
    IDLE,       /* looks for a copy; `at` is its next stall */
    WORKING,    /* done at `at` */
    STALLED,    /* until `at` */
};

struct simulated {
    struct server *server;
    enum state state;
    uint64_t at;
    uint64_t ready;
    uint64_t idle;      /* since when, while it is */
    uint64_t work;
    uint32_t request;
    uint64_t seed;
};

struct simulation {
    struct hedge_run *run;
    struct simulated servers[SERVERS];
};

static uint64_t draw_work(struct simulation *sim, struct simulated *v)
{
    return (uint64_t)((double)sim->run->pair.options->service_ns * (SAME + (1.0 - SAME) * random_exponential(&v->seed)));
}

/* What the server does next, at the head of its loop. */
static void look(struct simulation *sim, unsigned s, uint64_t now)
{
    struct simulated *v = &sim->servers[s];
    if (now >= v->server->stalls.next) {
        uint64_t end = stalls_pass(&v->server->stalls);
        v->state = STALLED;
        v->at = end > now ? end : now;
    } else if (lane_take(&sim->run->client.lanes[s], &v->request)) {
        v->state = WORKING;
        v->work = draw_work(sim, v);
        v->at = now + v->work;
    } else {
        v->state = IDLE;
        v->idle = now;
        v->at = v->server->stalls.next;
    }
}

/* Its time has come; or, where it is idle, a copy. */
static void wake(struct simulation *sim, unsigned s, uint64_t now)
{
    struct simulated *v = &sim->servers[s];
    if (v->state == WORKING) {
        v->server->service[v->request] = ticks_narrowed(now - v->ready);
        client_answer(&sim->run->client, s, v->request, ticks_narrowed(v->work), now);
    }
    if (v->state == IDLE)
        v->server->free_ticks += hedge_counted(sim->run, v->idle, now);
    if (v->state != STALLED)
        v->ready = now;
    look(sim, s, now);
}

static void sent(struct simulation *sim, int server, uint64_t now)
{
    if (server != NOWHERE && sim->servers[server].state == IDLE)
        wake(sim, (unsigned)server, now);
}

/* All that the client does at one moment. */
static void serve_client(struct simulation *sim, uint64_t now)
{
    struct client *c = &sim->run->client;
    if (c->next < c->n && c->requests[c->next].due <= now)
        sent(sim, client_arrive(c, now), now);
    for (int server; (server = client_hedge(c, now)) != NOWHERE;)
        sent(sim, server, now);
}

void hedge_simulate(struct hedge_run *run)
{
    struct client *c = &run->client;
    struct simulation sim = {.run = run};
    hedge_plan(run);
    for (unsigned s = 0; s < SERVERS; s++) {
        sim.servers[s] = (struct simulated){.server = &run->servers[s], .seed = hedge_seed(run, STREAM_WORK + s)};
        look(&sim, s, 0);
    }
    for (uint64_t now = 0; !client_is_done(c);) {
        uint64_t at[] = {sim.servers[SERVER_A].at, sim.servers[SERVER_B].at, client_next(c)};
        uint64_t soonest = at[0] < at[1] ? at[0] : at[1];
        soonest = soonest < at[2] ? soonest : at[2];
        now = soonest > now ? soonest : now;
        if (now >= run->end_ticks)
            break;
        if (at[SERVER_A] <= now)
            wake(&sim, SERVER_A, now);
        else if (at[SERVER_B] <= now)
            wake(&sim, SERVER_B, now);
        else
            serve_client(&sim, now);
    }
    hedge_end(run, run->end_ticks);
}
