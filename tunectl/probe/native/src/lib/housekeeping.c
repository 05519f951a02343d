#include "lib/housekeeping.h"

static bool is_in(unsigned cpu, const void *list)
{
    return cpu_list_has(list, cpu);
}

/* Whoever started this process may know of more isolated CPUs than the kernel does, and keeps it off them. */
static int prefer_inherited(struct cpu_list *list)
{
    struct cpu_list inherited;
    struct cpu_list both;
    int rc = host_allowed_cpus(&inherited);
    if (rc)
        return rc;
    rc = cpu_list_filter(&both, list, is_in, &inherited);
    cpu_list_deinit(&inherited);
    if (rc)
        return rc;
    struct cpu_list *unused = both.n ? list : &both;
    struct cpu_list kept = both.n ? both : *list;
    cpu_list_deinit(unused);
    *list = kept;
    return 0;
}

int housekeeping_move(struct cpu_list *chosen, const struct host_facts *facts, const struct cpu_list *measured)
{
    struct cpu_list others;
    struct cpu_list not_isolated;
    *chosen = (struct cpu_list){0};
    int rc = cpu_list_without(&others, &facts->online, measured);
    if (rc)
        return rc;
    rc = cpu_list_without(&not_isolated, &others, &facts->isolated);
    if (!rc)
        rc = prefer_inherited(&not_isolated);
    if (!rc && cpu_list_pin(&not_isolated) == 0) {
        cpu_list_deinit(&others);
        *chosen = not_isolated;
        return 0;
    }
    cpu_list_deinit(&not_isolated);
    if (!rc && cpu_list_pin(&others) == 0)
        *chosen = others;
    else
        cpu_list_deinit(&others);
    return rc;
}
