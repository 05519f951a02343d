#include "lib/facts.h"

#include <string.h>

/* What Python reads of it: kept as it stands, and written so. */
static const char *const paths[] = {
    "/proc/cpuinfo",
    "/proc/sys/kernel/sched_rt_period_us",
    "/proc/sys/kernel/sched_rt_runtime_us",
    "/sys/class/dmi/id/product_name",
    "/sys/class/dmi/id/sys_vendor",
    "/sys/hypervisor/type",
};

/* Of the first CPU: the others are like it. */
static void cut_cpuinfo(struct text *text)
{
    char *end = text->bytes ? strstr(text->bytes, "\n\n") : NULL;
    if (end)
        text->length = (size_t)(end - text->bytes);
}

/* Isolated at boot, or since Linux 6.7 by a cpuset partition; older files simply are not there. */
static struct cpus read_isolated(const char *root)
{
    struct cpus isolated = cpus_of(file_read(root, "/sys/devices/system/cpu/isolated"));
    struct cpus partitions = cpus_of(file_read(root, "/sys/fs/cgroup/cpuset.cpus.isolated"));
    CPU_OR_S(sizeof(isolated), isolated.sets, isolated.sets, partitions.sets);
    return isolated;
}

void host_facts_init(struct host_facts *facts, const char *root)
{
    *facts = (struct host_facts){.root = root};
    facts->online = cpus_of(file_read(root, "/sys/devices/system/cpu/online"));
    facts->isolated = read_isolated(root);
    facts->nohz_full = cpus_of(file_read(root, "/sys/devices/system/cpu/nohz_full"));
    snapshot_take(&facts->files, root, paths, sizeof(paths) / sizeof(*paths));
    cut_cpuinfo(&facts->files.texts[0]);
}

void host_facts_deinit(struct host_facts *facts)
{
    snapshot_deinit(&facts->files);
}

struct cpus host_core(const struct host_facts *facts, unsigned cpu)
{
    struct cpus core = cpus_of(file_read(facts->root, "/sys/devices/system/cpu/cpu%u/topology/thread_siblings_list", cpu));
    cpus_add(&core, cpu);
    return core;
}

struct cpus housekeeping_move(const struct host_facts *facts, const struct cpus *measured)
{
    /* From the best on. Whoever started this process may know of more isolated CPUs than the kernel does, and keeps it off them. */
    enum { INHERITED, NOT_ISOLATED, OTHERS, SETS };
    struct cpus sets[SETS];
    struct cpus allowed = cpus_allowed(0);
    sets[OTHERS] = cpus_without(&facts->online, measured);
    sets[NOT_ISOLATED] = cpus_without(&sets[OTHERS], &facts->isolated);
    sets[INHERITED] = cpus_common(&sets[NOT_ISOLATED], &allowed);
    for (size_t i = 0; i < SETS; i++)
        if (cpus_pin(0, &sets[i]) == 0)
            return sets[i];
    return (struct cpus){0};
}
