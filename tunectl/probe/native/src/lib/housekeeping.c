#include "lib/housekeeping.h"

int housekeeping_move(struct cpu_list *chosen, const struct host_facts *facts, const struct cpu_list *measured)
{
    struct cpu_list others;
    struct cpu_list not_isolated;
    *chosen = (struct cpu_list){0};
    int rc = cpu_list_without(&others, &facts->online, measured);
    if (rc)
        return rc;
    rc = cpu_list_without(&not_isolated, &others, &facts->isolated);
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
