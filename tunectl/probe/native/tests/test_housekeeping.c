#include "check.h"
#include "lib/housekeeping.h"

static bool is_same(const struct cpu_list *a, const struct cpu_list *b)
{
    bool same = a->n == b->n;
    for (size_t i = 0; same && i < a->n; i++)
        same = a->ids[i] == b->ids[i];
    return same;
}

/* Moves, and compares both what it says and where the kernel says that this thread may run with `expected`. */
static void check_move(const struct host_facts *facts, struct cpu_list measured, struct cpu_list expected)
{
    struct cpu_list chosen;
    struct cpu_list now;
    CHECK(cpu_list_pin(&facts->online) == 0);
    CHECK(housekeeping_move(&chosen, facts, &measured) == 0);
    CHECK(host_allowed_cpus(&now) == 0);
    CHECK(is_same(&chosen, &expected));
    CHECK(is_same(&now, expected.n ? &expected : &facts->online));
    cpu_list_deinit(&chosen);
    cpu_list_deinit(&now);
}

/* With two CPUs or more; `rest` is all of them but the first. */
static void the_main_thread_goes_where_nothing_is_measured(struct host_facts *facts)
{
    struct cpu_list all = facts->online;
    struct cpu_list none = {0};
    struct cpu_list first = {all.ids, 1};
    struct cpu_list rest = {all.ids + 1, all.n - 1};
    check_move(facts, first, rest);
    check_move(facts, rest, first);
    check_move(facts, all, none);
    /* Isolated ones only where there is no other. */
    facts->isolated = first;
    check_move(facts, none, rest);
    check_move(facts, rest, first);
    facts->isolated = rest;
    check_move(facts, none, first);
    check_move(facts, first, rest);
}

void test_housekeeping(void)
{
    struct host_facts facts = {.root = ""};
    CHECK(host_allowed_cpus(&facts.online) == 0 && facts.online.n > 0);
    if (facts.online.n > 1)
        the_main_thread_goes_where_nothing_is_measured(&facts);
    CHECK(cpu_list_pin(&facts.online) == 0);
    cpu_list_deinit(&facts.online);
}
