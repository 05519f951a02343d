#include "check.h"
#include "lib/host.h"

static bool is_same(const struct cpus *a, const struct cpus *b)
{
    return CPU_EQUAL_S(sizeof(*a), a->sets, b->sets);
}

/* Moves, and compares both what it says and where the kernel says that this thread may run with `expected`. */
static void check_move(const struct host_facts *facts, struct cpus measured, struct cpus expected)
{
    CHECK(cpus_pin(0, &facts->online) == 0);
    struct cpus chosen = housekeeping_move(facts, &measured);
    struct cpus now = cpus_allowed(0);
    CHECK(is_same(&chosen, &expected));
    CHECK(is_same(&now, cpus_count(&expected) ? &expected : &facts->online));
}

/* With two CPUs or more. */
static void the_main_thread_goes_where_nothing_is_measured(struct host_facts *facts)
{
    struct cpus all = facts->online;
    struct cpus none = {0};
    struct cpus first = {0};
    cpus_add(&first, cpus_next(&all, 0));
    struct cpus rest = cpus_without(&all, &first);
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
    struct host_facts facts = {.root = "", .online = cpus_allowed(0)};
    struct cpus all = facts.online;
    CHECK(cpus_count(&all) > 0);
    if (cpus_count(&all) > 1)
        the_main_thread_goes_where_nothing_is_measured(&facts);
    CHECK(cpus_pin(0, &all) == 0);
}
