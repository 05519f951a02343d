#include "check.h"
#include "hedges.h"
#include "hedge/random.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void exponential_numbers_are_so(void)
{
    enum { N = 200000 };
    uint64_t seed = 7;
    double sum = 0.0, squares = 0.0;
    unsigned above_1 = 0, above_3 = 0;
    for (unsigned i = 0; i < N; i++) {
        double x = random_exponential(&seed);
        sum += x;
        squares += x * x;
        above_1 += x > 1.0;
        above_3 += x > 3.0;
    }
    /* Six standard deviations each: mean 1, mean square 2, exp(-1), exp(-3). */
    CHECK(sum / N > 0.9866 && sum / N < 1.0134);
    CHECK(squares / N > 1.94 && squares / N < 2.06);
    CHECK(above_1 > 0.36788 * N - 1294 && above_1 < 0.36788 * N + 1294);
    CHECK(above_3 > 0.04979 * N - 584 && above_3 < 0.04979 * N + 584);
}

static struct policy *policy_of(struct policy_rules rules)
{
    static struct policy p;
    policy_init(&p, &rules);
    return &p;
}

static void a_request_is_late_at_its_delay_and_not_before(void)
{
    struct policy *p = policy_of((struct policy_rules){.delay = 50, .budget = 1.0});
    CHECK(policy_late_at(p, 1000) == 1050);
    CHECK(policy_judge(p, 1000, 1049, 0) == POLICY_WAIT);
    CHECK(policy_judge(p, 1000, 1050, 999) == POLICY_HEDGE);
    p = policy_of((struct policy_rules){.delay = 0, .budget = 1.0});
    CHECK(policy_judge(p, 1000, 1000, 0) == POLICY_HEDGE);
    p = policy_of((struct policy_rules){.delay = POLICY_NEVER, .budget = 1.0});
    CHECK(policy_judge(p, 0, UINT64_MAX - 1, 0) == POLICY_WAIT && policy_late_at(p, 7) == POLICY_NEVER);
}

static void a_full_queue_refuses_and_denies(void)
{
    struct policy *p = policy_of((struct policy_rules){.delay = 0, .budget = 0.0, .shed = 4});
    CHECK(policy_admits(p, 3) && !policy_admits(p, 4));
    CHECK(policy_judge(p, 0, 0, 4) == POLICY_DENIED && p->tokens == POLICY_BUCKET);
    CHECK(policy_judge(p, 0, 0, 3) == POLICY_HEDGE && p->tokens == POLICY_BUCKET - 1);
    p = policy_of((struct policy_rules){.delay = 0, .budget = 1.0});
    CHECK(policy_admits(p, 1 << 30) && policy_judge(p, 0, 0, 1 << 30) == POLICY_HEDGE);
}

static void a_budget_is_a_share_and_a_bucket(void)
{
    struct policy *p = policy_of((struct policy_rules){.delay = 0, .budget = 0.25});
    for (unsigned i = 0; i < POLICY_BUCKET; i++)
        CHECK(policy_judge(p, 0, 0, 0) == POLICY_HEDGE);
    CHECK(policy_judge(p, 0, 0, 0) == POLICY_OVER_BUDGET);
    for (unsigned i = 0; i < 3; i++)
        CHECK(policy_admits(p, 0) && policy_judge(p, 0, 0, 0) == POLICY_OVER_BUDGET);
    CHECK(policy_admits(p, 0) && policy_judge(p, 0, 0, 0) == POLICY_HEDGE);
    for (unsigned i = 0; i < 8 * POLICY_BUCKET; i++)
        CHECK(policy_admits(p, 0));
    CHECK(p->tokens == POLICY_BUCKET);
    p = policy_of((struct policy_rules){.delay = 0, .budget = 1.0});
    for (unsigned i = 0; i < 10 * POLICY_BUCKET; i++)
        CHECK(policy_judge(p, 0, 0, 0) == POLICY_HEDGE);
}

static int compare(const void *left, const void *right)
{
    uint64_t a = *(const uint64_t *)left;
    uint64_t b = *(const uint64_t *)right;
    return (a > b) - (a < b);
}

/* What the follower should say of these answers: the end of the bucket of the one of that rank, all of them sorted. */
static uint64_t percentile_of(const uint64_t *answers, size_t n, double share)
{
    static uint64_t sorted[POLICY_WINDOW];
    for (size_t i = 0; i < n; i++)
        sorted[i] = answers[i];
    qsort(sorted, n, sizeof(*sorted), compare);
    return histogram_first(histogram_index(sorted[(size_t)(share * (double)n)]) + 1);
}

/* Answers that change their ways: short, then long, then both in turns. */
static uint64_t some_answer(uint64_t *seed, size_t i)
{
    uint64_t short_one = random_next(seed) % 5000;
    uint64_t long_one = 300000 + random_next(seed) % (UINT64_C(1) << (i % 40));
    return i / 3000 % 3 == 0 ? short_one : i / 3000 % 3 == 1 || i % 10 == 0 ? long_one : short_one;
}

static void a_delay_follows_the_percentile_of_the_latest_answers(void)
{
    enum { N = 20000 };
    static uint64_t answers[N];
    static const double shares[] = {0.5, 0.95, 0.99, 0.999};
    uint64_t seed = 3;
    for (size_t i = 0; i < N; i++)
        answers[i] = some_answer(&seed, i);
    for (size_t k = 0; k < sizeof(shares) / sizeof(*shares); k++) {
        struct policy *p = policy_of((struct policy_rules){.delay = 5, .percentile = shares[k], .budget = 1.0});
        for (size_t i = 0; i < N; i++) {
            CHECK(i >= POLICY_FEWEST || p->delay == POLICY_NEVER);
            policy_learn(p, answers[i]);
            size_t n = i + 1 < POLICY_WINDOW ? i + 1 : POLICY_WINDOW;
            if (i % 101 == 0 && n >= POLICY_FEWEST)
                CHECK(p->delay == percentile_of(answers + i + 1 - n, n, shares[k]));
        }
    }
}

static void a_copy_is_started_or_cancelled(void)
{
    _Atomic uint32_t copies[5] = {0};
    struct lane lane = {.copies = copies};
    uint32_t request;
    CHECK(!lane_take(&lane, &request));
    for (uint32_t i = 0; i < 4; i++)
        CHECK(lane_send(&lane, 10 * i) == i);
    CHECK(lane_take(&lane, &request) && request == 0);
    CHECK(!lane_cancel(&lane, 0) && lane_cancel(&lane, 1) && lane_cancel(&lane, 2));
    CHECK(lane_take(&lane, &request) && request == 30 && !lane_cancel(&lane, 3));
    CHECK(!lane_take(&lane, &request));
}

static void stalls_take_one_percent_and_never_overlap(void)
{
    enum { N = 20000 };
    struct stalls a, b;
    uint64_t end = 0, stalled = 0;
    stalls_init(&a, true, 5, 2.0);
    stalls_init(&b, true, 5, 2.0);
    for (unsigned i = 0; i < N; i++) {
        CHECK(a.next >= end && a.next == b.next);
        stalled += 2000 * HEDGE_STALL_US;
        end = stalls_pass(&a);
        CHECK(end == b.next + 2000 * HEDGE_STALL_US);
        (void)stalls_pass(&b);
    }
    double share = (double)stalled / (double)end;
    CHECK(share > 0.0096 && share < 0.0104);
    stalls_init(&a, false, 5, 2.0);
    CHECK(a.next == UINT64_MAX);
}

static struct options asked(double load, const char *delay)
{
    return (struct options){.load = load, .delay = delay, .service_ns = 3000, .budget = 1.0, .seed = 1,
                            .duration_s = 0.01, .is_simulated = true, .root = ""};
}

/* Kept until the next. */
static struct hedge_run *simulated(const struct options *options)
{
    static struct hedge_run run;
    run = (struct hedge_run){.pair = {.options = options, .clock.initial.hz = 1e9}};
    CHECK(hedge_read_rules(&run) == 0 && hedge_get_memory(&run) == 0);
    hedge_simulate(&run);
    return &run;
}

/* What became of the requests that count, and of their copies. */
struct hedge_counts {
    uint64_t offered;
    uint64_t answered;
    uint64_t shed;
    uint64_t unanswered;
    uint64_t hedged;
    uint64_t won;
    uint64_t lost;
    uint64_t hedge_cancelled;
    uint64_t hedge_unfinished;
    uint64_t denied;
    uint64_t over_budget;
    uint64_t wasted;            /* copies that came back to a request with an answer */
    uint64_t cancelled_unstarted;
    uint64_t unfinished;        /* copies that did not come back */
    uint64_t below_floor;       /* answers by a hedge before its own delay and the fastest reply: there is none */
};

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

static struct hedge_counts hedge_count(const struct client *c)
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

static void everything_adds_up(const struct options *o)
{
    struct hedge_run *run = simulated(o);
    struct client *c = &run->client;
    struct hedge_counts n = hedge_count(c);
    uint64_t done = 0;
    CHECK(n.offered == c->n - c->warm_ups);
    CHECK(n.offered == n.answered + n.shed + n.unanswered);
    CHECK(n.offered - n.shed + n.hedged == n.answered + n.wasted + n.cancelled_unstarted + n.unfinished);
    CHECK(n.hedged == n.won + n.lost + n.hedge_cancelled + n.hedge_unfinished);
    CHECK(n.hedged + n.denied + n.over_budget <= n.offered - n.shed);
    CHECK(n.below_floor == 0);
    CHECK(!o->keeps_copies || n.cancelled_unstarted == 0);
    CHECK(o->shed || n.shed + n.denied == 0);
    CHECK(!o->shed || c->queue_most <= o->shed);
    CHECK(o->budget < 1.0 || n.over_budget == 0);
    CHECK(o->budget >= 1.0 || (double)n.hedged <= o->budget * (double)(n.offered - n.shed) + POLICY_BUCKET);
    /* By the servers' own account: what they were done with, and the client knows of. */
    for (size_t i = c->warm_ups; i < c->n; i++)
        for (unsigned s = 0; s < SERVERS; s++)
            done += run->servers[s].service[i] != 0;
    CHECK(done == n.answered + n.wasted);
    hedge_free_memory(run);
}

static void everything_adds_up_whatever_is_asked_for(void)
{
    static const char *const delays[] = {"none", "0", "p50", "p95", "p99.9", "4000", "300000"};
    static const double budgets[] = {1.0, 0.1, 0.0, 0.01};
    static const double loads[] = {0.05, 0.3, 0.7, 0.85, 1.2};
    uint64_t seed = 11;
    for (unsigned i = 0; i < 400; i++) {
        struct options o = asked(loads[random_next(&seed) % 5], delays[random_next(&seed) % 7]);
        o.stall = (unsigned)(random_next(&seed) % 4);
        o.budget = budgets[random_next(&seed) % 4];
        o.shed = (unsigned)(random_next(&seed) % 3 * 2);
        o.keeps_copies = random_next(&seed) % 2;
        o.service_ns = (unsigned)(500 + random_next(&seed) % 20000);
        o.duration_s = 0.002 + 0.01 * random_unit(&seed);
        o.seed = i;
        everything_adds_up(&o);
    }
}

/* Requests 0 to 3 are warm-ups in no case: the counts of a client whose requests are written down here. */
static void what_became_of_each_request_is_counted_once(void)
{
    enum { A = 1, B = 2, IN = REQUEST_CAME | REQUEST_ADMITTED, ANSWERED = REQUEST_ANSWERED, HEDGED = REQUEST_HEDGED };
    static struct request requests[] = {
        {.state = IN | ANSWERED | REQUEST_DONE * A},                                        /* a warm-up */
        {.state = IN | ANSWERED | REQUEST_DONE * A},
        {.state = REQUEST_CAME},                                                            /* shed */
        {.state = IN},                                                                      /* nowhere yet */
        {.state = IN | ANSWERED | HEDGED | REQUEST_DONE * (A | B)},                         /* the hedge lost */
        {.state = IN | ANSWERED | HEDGED | REQUEST_DONE * (A | B) | REQUEST_WON, .answered = 150, .delay = 100},
        {.state = IN | ANSWERED | HEDGED | REQUEST_DONE * A | REQUEST_CANCELLED * B},
        {.state = IN | ANSWERED | HEDGED | REQUEST_DONE * B | REQUEST_CANCELLED * A | REQUEST_WON, .answered = 149, .delay = 100},
        {.state = IN | ANSWERED | HEDGED | REQUEST_DONE * A},                               /* the hedge is not back */
        {.state = IN | ANSWERED | HEDGED | REQUEST_DONE * B | REQUEST_WON, .answered = 500, .delay = 100},
        {.state = IN | HEDGED},
        {.state = IN | ANSWERED | REQUEST_DONE * A | REQUEST_DENIED},
        {.state = IN | ANSWERED | REQUEST_DONE * A | REQUEST_OVER_BUDGET},
        {.state = 0},                                                                       /* not due by the end */
    };
    struct client c = {.requests = requests, .n = 14, .next = 13, .warm_ups = 1, .fastest_ticks = 50};
    struct hedge_counts n = hedge_count(&c);
    CHECK(n.offered == 12 && n.answered == 9 && n.shed == 1 && n.unanswered == 2);
    CHECK(n.hedged == 7 && n.won == 3 && n.lost == 1 && n.hedge_cancelled == 1 && n.hedge_unfinished == 2);
    CHECK(n.denied == 1 && n.over_budget == 1);
    CHECK(n.wasted == 2 && n.cancelled_unstarted == 2 && n.unfinished == 5);
    CHECK(n.below_floor == 1);  /* 149 < 100 + 50 */
}

enum { STEPS = 5 };

/* Requests due at 0, 1000, ... and 4000; the first is a warm-up. */
static struct client *stepped(struct policy_rules rules, const unsigned first[STEPS])
{
    static struct client c;
    static struct request requests[STEPS];
    static _Atomic uint32_t copies[SERVERS][STEPS + 1];
    c = (struct client){.lanes = {{.copies = copies[SERVER_A]}, {.copies = copies[SERVER_B]}}};
    for (size_t i = 0; i < STEPS; i++)
        requests[i] = (struct request){.due = 1000 * i, .first = (uint16_t)first[i]};
    for (size_t i = 0; i <= STEPS; i++)
        copies[SERVER_A][i] = copies[SERVER_B][i] = 0;
    client_init(&c, requests, STEPS, 1, &rules);
    return &c;
}

/* The server takes its next copy, which is of this request. */
static bool takes(struct client *c, unsigned server, uint32_t request)
{
    uint32_t taken = UINT32_MAX;
    return lane_take(&c->lanes[server], &taken) && taken == request;
}

static void a_client_step_by_step(void)
{
    struct client *c = stepped((struct policy_rules){.delay = 100, .budget = 1.0, .cancels = true}, (unsigned[]){0, 0, 1, 0, 1});
    struct request *r = c->requests;
    CHECK(client_next(c) == 0 && client_arrive(c, 0) == SERVER_A);
    CHECK(client_next(c) == 100 && client_hedge(c, 99) == NOWHERE && client_hedge(c, 100) == SERVER_B);
    CHECK(r[0].delay == 100 && r[0].sent[SERVER_A] == 0 && r[0].sent[SERVER_B] == 100 && client_hedge(c, 100) == NOWHERE);
    CHECK(c->queue[SERVER_A] == 1 && c->queue[SERVER_B] == 1 && client_next(c) == 1000);
    /* The other copy was not started: it is taken back. A warm-up is counted nowhere. */
    CHECK(takes(c, SERVER_A, 0));
    client_answer(c, SERVER_A, 0, 40, 150);
    CHECK(r[0].state == (REQUEST_CAME | REQUEST_ADMITTED | REQUEST_HEDGED | REQUEST_ANSWERED | REQUEST_DONE | REQUEST_CANCELLED << SERVER_B));
    CHECK(r[0].answered == 150 && c->queue[SERVER_A] == 0 && c->queue[SERVER_B] == 0);
    CHECK(c->busy_ticks == 0 && c->wasted_ticks == 0 && c->fastest_ticks == UINT64_MAX && c->queue_most == 0);
    /* One without a hedge. */
    CHECK(client_arrive(c, 1000) == SERVER_A && takes(c, SERVER_A, 1));
    client_answer(c, SERVER_A, 1, 50, 1060);
    CHECK(r[1].state == (REQUEST_CAME | REQUEST_ADMITTED | REQUEST_ANSWERED | REQUEST_DONE));
    CHECK(c->fastest_ticks == 60 && c->busy_ticks == 50 && c->queue_most == 1);
    /* The hedge wins, and the first copy, which was started, is wasted. */
    CHECK(client_arrive(c, 2000) == SERVER_B && takes(c, SERVER_B, 2));
    CHECK(client_hedge(c, 2100) == SERVER_A && takes(c, SERVER_A, 2));
    client_answer(c, SERVER_A, 2, 70, 2200);
    CHECK(c->queue[SERVER_B] == 1 && c->wasted_ticks == 0);
    client_answer(c, SERVER_B, 2, 80, 2300);
    CHECK(r[2].state == (REQUEST_CAME | REQUEST_ADMITTED | REQUEST_HEDGED | REQUEST_ANSWERED | REQUEST_WON | REQUEST_DONE << SERVER_A | REQUEST_DONE << SERVER_B));
    CHECK(r[2].answered == 2200 && c->wasted_ticks == 80 && c->busy_ticks == 200 && c->fastest_ticks == 60);
    /* A client that is late, and a queue. */
    CHECK(client_arrive(c, 3010) == SERVER_A && client_hedge(c, 3100) == SERVER_B && client_arrive(c, 4000) == SERVER_B);
    CHECK(r[3].sent[SERVER_A] == 10 && r[3].sent[SERVER_B] == 100 && c->queue_most == 2 && client_next(c) == 4100);
    CHECK(takes(c, SERVER_A, 3) && !client_is_done(c));
    client_answer(c, SERVER_A, 3, 90, 4000);     /* the last was due by then */
    CHECK(takes(c, SERVER_B, 4) && c->busy_ticks == 200 && !client_is_done(c));
    client_answer(c, SERVER_B, 4, 10, 4090);
    CHECK(client_is_done(c) && client_hedge(c, 4100) == NOWHERE && client_next(c) == POLICY_NEVER);
    CHECK(!(r[4].state & (REQUEST_HEDGED | REQUEST_CANCELLED)) && c->queue[SERVER_A] + c->queue[SERVER_B] == 0);
    for (size_t i = 0; i < QUARTERS; i++)
        CHECK(c->arrivals[i] == 1 && c->queues[i] == (i == 3 ? 2 : 0));
}

static void without_cancelling_every_copy_is_worked_off(void)
{
    struct client *c = stepped((struct policy_rules){.delay = 0, .budget = 1.0}, (unsigned[]){0, 1, 0, 0, 0});
    CHECK(client_arrive(c, 0) == SERVER_A && client_hedge(c, 0) == SERVER_B && client_arrive(c, 1000) == SERVER_B);
    CHECK(client_hedge(c, 1000) == SERVER_A && takes(c, SERVER_A, 0) && takes(c, SERVER_A, 1));
    client_answer(c, SERVER_A, 0, 5, 1010);
    client_answer(c, SERVER_A, 1, 5, 1020);
    CHECK(takes(c, SERVER_B, 0) && takes(c, SERVER_B, 1) && !client_is_done(c));
    client_answer(c, SERVER_B, 0, 5, 1030);
    client_answer(c, SERVER_B, 1, 7, 1040);
    CHECK(c->wasted_ticks == 7 && c->busy_ticks == 22);     /* of the warm-up nothing is wasted, and all is work */
}

static void what_is_refused_denied_or_over_budget_is_marked(void)
{
    struct client *c = stepped((struct policy_rules){.delay = 10, .budget = 1.0, .shed = 1}, (unsigned[]){0, 0, 1, 0, 0});
    struct request *r = c->requests;
    CHECK(client_arrive(c, 0) == SERVER_A && client_arrive(c, 1000) == NOWHERE && client_arrive(c, 2000) == SERVER_B);
    CHECK(r[1].state == REQUEST_CAME && c->queue[SERVER_A] == 1 && c->lanes[SERVER_A].sent == 1);
    CHECK(client_hedge(c, 2010) == NOWHERE && c->oldest == 3);
    CHECK(r[0].state == (REQUEST_CAME | REQUEST_ADMITTED | REQUEST_DENIED) && r[2].state == r[0].state);
    c = stepped((struct policy_rules){.delay = 10, .budget = 0.0}, (unsigned[]){0, 0, 0, 0, 0});
    c->policy.tokens = 1.0;
    CHECK(client_arrive(c, 0) == SERVER_A && client_arrive(c, 1000) == SERVER_A);
    CHECK(client_hedge(c, 1010) == SERVER_B && client_hedge(c, 1010) == NOWHERE);
    CHECK(r[1].state == (REQUEST_CAME | REQUEST_ADMITTED | REQUEST_OVER_BUDGET));
}

static void only_the_measured_time_counts(void)
{
    struct hedge_run run = {.counted_from = 100, .counted_until = 200};
    CHECK(hedge_counted(&run, 0, 100) == 0 && hedge_counted(&run, 0, 101) == 1 && hedge_counted(&run, 50, 150) == 50);
    CHECK(hedge_counted(&run, 120, 150) == 30 && hedge_counted(&run, 150, 900) == 50 && hedge_counted(&run, 200, 900) == 0);
    hedge_end(&run, 150);
    CHECK(run.measured_ticks == 50);
    hedge_end(&run, 900);
    CHECK(run.measured_ticks == 100);
}

/* Twice as many servers as a load of 1 needs; the warm-ups come before what was asked for. */
static void a_plan_has_what_was_asked_for(void)
{
    static const struct {
        double duration_s;
        size_t wanted;
        size_t warm_ups;
    } plans[] = {{0.003, 200, 100}, {0.0030075, 201, 100}, {0.015, 1000, 500}, {0.6, 40000, 10000}};
    for (size_t k = 0; k < sizeof(plans) / sizeof(*plans); k++) {
        struct options o = asked(0.1, "none");
        o.duration_s = plans[k].duration_s;
        struct hedge_run *run = simulated(&o);
        struct client *c = &run->client;
        CHECK(c->warm_ups == plans[k].warm_ups && c->n == plans[k].wanted + plans[k].warm_ups);
        CHECK(run->counted_from == c->requests[c->warm_ups].due && run->counted_until == c->requests[c->n - 1].due);
        CHECK(run->end_ticks == run->counted_until + 10000000);
        CHECK(run->measured_ticks == run->counted_until - run->counted_from);
        size_t at_b = 0;
        for (size_t i = 0; i < c->n; i++) {
            CHECK(i == 0 || c->requests[i].due >= c->requests[i - 1].due);
            at_b += c->requests[i].first;
        }
        CHECK(at_b > c->n * 35 / 100 && at_b < c->n * 65 / 100);
        uint64_t idle = run->servers[SERVER_A].free_ticks + run->servers[SERVER_B].free_ticks;
        CHECK(idle > run->measured_ticks * 17 / 10 && idle < run->measured_ticks * 19 / 10);
        double mean = (double)run->counted_until / (double)c->n;
        CHECK(mean > 0.75 * 15000.0 && mean < 1.25 * 15000.0);
        hedge_free_memory(run);
    }
    struct options o = asked(0.1, "none");
    o.service_ns = 2000000;
    o.duration_s = 1.0;
    struct hedge_run *run = simulated(&o);
    CHECK(run->end_ticks == run->counted_until + 20000000);
    hedge_free_memory(run);
}

/* Where each stalls alone nobody else does; seeds differ. */
static void the_servers_stall_as_was_asked_for(void)
{
    static const struct {
        unsigned stall;
        bool a;
        bool b;
    } kinds[] = {{STALL_NONE, false, false}, {STALL_A, true, false}, {STALL_BOTH, true, true}, {STALL_COMMON, true, true}};
    for (size_t k = 0; k < sizeof(kinds) / sizeof(*kinds); k++) {
        struct options o = asked(0.1, "none");
        o.stall = kinds[k].stall;
        o.duration_s = 0.05;
        struct hedge_run *run = simulated(&o);
        uint64_t a = run->servers[SERVER_A].stalls.next, b = run->servers[SERVER_B].stalls.next;
        CHECK((a != UINT64_MAX) == kinds[k].a && (b != UINT64_MAX) == kinds[k].b);
        CHECK(!kinds[k].b || (a == b) == (o.stall == STALL_COMMON));
        hedge_free_memory(run);
    }
    struct options one = asked(0.1, "none"), other = asked(0.1, "none");
    other.seed = 2;
    struct hedge_run first = {.pair.options = &one}, second = {.pair.options = &other};
    for (unsigned s = 0; s < STREAMS; s++)
        for (unsigned t = 0; t < STREAMS; t++)
            CHECK(hedge_seed(&first, s) != hedge_seed(&second, t) && (s == t || hedge_seed(&first, s) != hedge_seed(&first, t)));
}

static void words_that_are_no_rules_are_refused(void)
{
    static const char *const wrong[] = {"", "p", "p49.9", "p99.91", "p1e2", "p99x", "-1", "+1", " 1", "1x", "1000000001", "nonex", "P95"};
    static const char *const right[] = {"p50", "p99.9", "0", "1000000000", "none"};
    struct options o = asked(0.1, "none");
    struct hedge_run run = {.pair = {.options = &o, .clock.initial.hz = 1e9}};
    int errors = dup(STDERR_FILENO);
    CHECK(freopen("/dev/null", "w", stderr) != NULL);
    unsigned accepted = 0, refused = 0;
    for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++) {
        o.delay = wrong[i];
        refused += hedge_read_rules(&run) == EXIT_USAGE;
    }
    for (size_t i = 0; i < sizeof(right) / sizeof(*right); i++) {
        o.delay = right[i];
        accepted += hedge_read_rules(&run) == EXIT_OK;
    }
    CHECK(fflush(stderr) == 0 && dup2(errors, STDERR_FILENO) >= 0 && close(errors) == 0);
    CHECK(refused == sizeof(wrong) / sizeof(*wrong) && accepted == sizeof(right) / sizeof(*right));
}

/* Mean wait of a queue with random arrivals: load * s * (1 + cv^2) / (2 * (1 - load)) (Pollaczek, Khinchine); here cv is 0.1. */
static void one_server_waits_as_the_formula_says(void)
{
    static const double loads[] = {0.1, 0.5, 0.8};
    for (unsigned k = 0; k < 3; k++) {
        struct options o = asked(loads[k], "none");
        o.duration_s = 1.0;
        struct hedge_run *run = simulated(&o);
        double sum = 0.0;
        for (size_t i = run->client.warm_ups; i < run->client.n; i++)
            sum += (double)(run->client.requests[i].answered - run->client.requests[i].due);
        double mean = sum / (double)(run->client.n - run->client.warm_ups);
        double expected = 3000.0 + loads[k] * 3000.0 * 1.01 / (2.0 * (1.0 - loads[k]));
        CHECK(mean > 0.97 * expected && mean < 1.03 * expected);
        hedge_free_memory(run);
    }
}

static void slow_at_the_same_time_is_seen(void)
{
    struct options o = asked(0.1, "0");
    o.keeps_copies = true;
    o.duration_s = 1.0;
    for (unsigned common = 0; common < 2; common++) {
        o.stall = common ? STALL_COMMON : STALL_BOTH;
        struct hedge_run *run = simulated(&o);
        struct hedge_together t = hedge_relate(run);
        double expected = (double)t.pairs * 1e-4;
        CHECK(t.pairs == run->client.n - run->client.warm_ups && t.served[SERVER_A] == t.pairs);
        CHECK(t.slow[SERVER_A] <= t.pairs / 100 && t.slow[SERVER_A] > t.pairs / 100 - 50);
        CHECK(common ? (double)t.both_slow > 3.0 * expected : (double)t.both_slow < 3.0 * expected);
        hedge_free_memory(run);
    }
}

static void words_become_rules(void)
{
    struct options o = asked(0.1, "p99");
    struct hedge_run run = {.pair = {.options = &o, .clock.initial.hz = 2e9}};
    CHECK(hedge_read_rules(&run) == 0 && run.rules.percentile == 0.99 && run.rules.delay == POLICY_NEVER && run.rules.cancels);
    o.delay = "1500";
    CHECK(hedge_read_rules(&run) == 0 && run.rules.percentile == 0.0 && run.rules.delay == 3000);
    o.delay = "none";
    CHECK(hedge_read_rules(&run) == 0 && run.rules.percentile == 0.0 && run.rules.delay == POLICY_NEVER);
}

void test_hedge(void)
{
    exponential_numbers_are_so();
    a_request_is_late_at_its_delay_and_not_before();
    a_full_queue_refuses_and_denies();
    a_budget_is_a_share_and_a_bucket();
    a_delay_follows_the_percentile_of_the_latest_answers();
    a_copy_is_started_or_cancelled();
    stalls_take_one_percent_and_never_overlap();
    everything_adds_up_whatever_is_asked_for();
    what_became_of_each_request_is_counted_once();
    a_client_step_by_step();
    without_cancelling_every_copy_is_worked_off();
    what_is_refused_denied_or_over_budget_is_marked();
    only_the_measured_time_counts();
    a_plan_has_what_was_asked_for();
    the_servers_stall_as_was_asked_for();
    words_that_are_no_rules_are_refused();
    one_server_waits_as_the_formula_says();
    slow_at_the_same_time_is_seen();
    words_become_rules();
}
