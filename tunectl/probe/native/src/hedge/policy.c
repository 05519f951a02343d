#include "hedge/client.h"

void policy_init(struct policy *p, const struct policy_rules *rules)
{
    *p = (struct policy){.rules = *rules, .tokens = POLICY_BUCKET};
    p->delay = rules->percentile > 0.0 ? POLICY_NEVER : rules->delay;
}

static bool is_full(const struct policy *p, size_t queue)
{
    return p->rules.shed && queue >= p->rules.shed;
}

bool policy_admits(struct policy *p, size_t queue)
{
    if (is_full(p, queue))
        return false;
    p->tokens += p->rules.budget;
    if (p->tokens > (double)POLICY_BUCKET)
        p->tokens = POLICY_BUCKET;
    return true;
}

uint64_t policy_late_at(const struct policy *p, uint64_t due)
{
    return p->delay == POLICY_NEVER ? POLICY_NEVER : due + p->delay;
}

enum policy_verdict policy_judge(struct policy *p, uint64_t due, uint64_t now, size_t queue)
{
    if (now < policy_late_at(p, due))
        return POLICY_WAIT;
    if (is_full(p, queue))
        return POLICY_DENIED;
    if (p->rules.budget >= 1.0)
        return POLICY_HEDGE;
    if (p->tokens < 1.0)
        return POLICY_OVER_BUDGET;
    p->tokens -= 1.0;
    return POLICY_HEDGE;
}

/* In place of the oldest. */
static void put(struct follower *f, uint16_t bucket)
{
    if (f->n == POLICY_WINDOW) {
        uint16_t oldest = f->window[f->next];
        f->counts[oldest]--;
        f->below -= oldest < f->bucket;
    } else {
        f->n++;
    }
    f->window[f->next] = bucket;
    f->next = (f->next + 1) % POLICY_WINDOW;
    f->counts[bucket]++;
    f->below += bucket < f->bucket;
}

/* To the bucket that holds the answer of that rank, 0 for the shortest. */
static void move_to(struct follower *f, size_t rank)
{
    while (f->below > rank)
        f->below -= f->counts[--f->bucket];
    while (f->below + f->counts[f->bucket] <= rank)
        f->below += f->counts[f->bucket++];
}

void policy_learn(struct policy *p, uint64_t latency)
{
    struct follower *f = &p->follower;
    if (p->rules.percentile <= 0.0)
        return;
    put(f, (uint16_t)histogram_index(latency));
    move_to(f, (size_t)(p->rules.percentile * (double)f->n));
    if (f->n >= POLICY_FEWEST)
        p->delay = histogram_first(f->bucket + 1);
}
