#include "lib/housekeeping.h"

static bool is_in(unsigned cpu, const void *list)
{
    return cpu_list_has(list, cpu);
}

int housekeeping_move(struct cpu_list *chosen, const struct host_facts *facts, const struct cpu_list *measured)
{
    /* From the best on. Whoever started this process may know of more isolated CPUs than the kernel does, and keeps it off them. */
    enum { INHERITED, NOT_ISOLATED, OTHERS, LISTS };
    struct cpu_list lists[LISTS] = {0};
    struct cpu_list allowed;
    int rc = cpu_list_allowed(&allowed, 0);
    if (!rc)
        rc = cpu_list_without(&lists[OTHERS], &facts->online, measured);
    if (!rc)
        rc = cpu_list_without(&lists[NOT_ISOLATED], &lists[OTHERS], &facts->isolated);
    if (!rc)
        rc = cpu_list_filter(&lists[INHERITED], &lists[NOT_ISOLATED], is_in, &allowed);
    *chosen = (struct cpu_list){0};
    for (size_t i = 0; i < LISTS; i++) {
        if (!rc && chosen->n == 0 && cpu_list_pin(&lists[i]) == 0)
            *chosen = lists[i];
        else
            cpu_list_deinit(&lists[i]);
    }
    cpu_list_deinit(&allowed);
    return rc;
}
