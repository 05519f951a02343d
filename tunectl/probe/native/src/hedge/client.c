#include "hedge/client.h"

#include "lib/ticks.h"

void client_init(struct client *c, struct request *requests, size_t n, size_t warm_ups, const struct policy_rules *rules)
{
    c->requests = requests;
    c->n = n;
    c->warm_ups = warm_ups;
    c->fastest_ticks = UINT64_MAX;
    policy_init(&c->policy, rules);
}

static bool is_counted(const struct client *c, size_t i)
{
    return i >= c->warm_ups;
}

static bool is_open(const struct request *r)
{
    return (r->state & (REQUEST_ADMITTED | REQUEST_ANSWERED)) == REQUEST_ADMITTED;
}

uint64_t client_next(const struct client *c)
{
    uint64_t due = c->next < c->n ? c->requests[c->next].due : POLICY_NEVER;
    uint64_t late = c->oldest < c->next ? policy_late_at(&c->policy, c->requests[c->oldest].due) : POLICY_NEVER;
    return due < late ? due : late;
}

static int send(struct client *c, size_t i, unsigned server, uint64_t now)
{
    struct request *r = &c->requests[i];
    r->sent[server] = ticks_narrowed(now - r->due);
    r->place[server] = lane_send(&c->lanes[server], (uint32_t)i);
    c->queue[server]++;
    if (is_counted(c, i) && c->queue[server] > c->queue_most)
        c->queue_most = c->queue[server];
    return (int)server;
}

/* What a request meets that comes at a random moment, as Poisson arrivals do, is the mean over time. */
static void sample_queues(struct client *c, size_t i)
{
    size_t quarter = (i - c->warm_ups) * QUARTERS / (c->n - c->warm_ups);
    c->queues[quarter] += c->queue[SERVER_A] + c->queue[SERVER_B];
    c->arrivals[quarter]++;
}

int client_arrive(struct client *c, uint64_t now)
{
    size_t i = c->next++;
    struct request *r = &c->requests[i];
    if (is_counted(c, i))
        sample_queues(c, i);
    r->state |= REQUEST_CAME;
    if (!policy_admits(&c->policy, c->queue[r->first]))
        return NOWHERE;
    r->state |= REQUEST_ADMITTED;
    return send(c, i, r->first, now);
}

int client_hedge(struct client *c, uint64_t now)
{
    for (; c->oldest < c->next; c->oldest++) {
        struct request *r = &c->requests[c->oldest];
        unsigned other = !r->first;
        if (!is_open(r))
            continue;
        switch (policy_judge(&c->policy, r->due, now, c->queue[other])) {
        case POLICY_WAIT:
            return NOWHERE;
        case POLICY_DENIED:
            r->state |= REQUEST_DENIED;
            break;
        case POLICY_OVER_BUDGET:
            r->state |= REQUEST_OVER_BUDGET;
            break;
        case POLICY_HEDGE:
            r->state |= REQUEST_HEDGED;
            r->delay = ticks_narrowed(c->policy.delay);
            return send(c, c->oldest++, other, now);
        }
    }
    return NOWHERE;
}

static void cancel(struct client *c, struct request *r, unsigned server)
{
    bool is_there = server == r->first || r->state & REQUEST_HEDGED;
    if (!c->policy.rules.cancels || !is_there || r->state & (REQUEST_DONE << server))
        return;
    if (lane_cancel(&c->lanes[server], r->place[server])) {
        r->state |= (uint16_t)(REQUEST_CANCELLED << server);
        c->queue[server]--;
    }
}

void client_answer(struct client *c, unsigned server, uint32_t request, uint32_t work_ticks, uint64_t now)
{
    struct request *r = &c->requests[request];
    uint64_t reply = now - r->due - r->sent[server];
    r->state |= (uint16_t)(REQUEST_DONE << server);
    c->queue[server]--;
    if (now >= c->requests[c->warm_ups].due && now < c->requests[c->n - 1].due)
        c->busy_ticks += work_ticks;
    if (is_counted(c, request) && reply < c->fastest_ticks)
        c->fastest_ticks = reply;
    if (r->state & REQUEST_ANSWERED) {
        c->wasted_ticks += is_counted(c, request) ? work_ticks : 0;
        return;
    }
    r->answered = now;
    r->state |= server == r->first ? REQUEST_ANSWERED : REQUEST_ANSWERED | REQUEST_WON;
    policy_learn(&c->policy, now - r->due);
    cancel(c, r, !server);
}

bool client_is_done(const struct client *c)
{
    return c->next == c->n && c->queue[SERVER_A] + c->queue[SERVER_B] == 0;
}
