#include "lib/facts.h"

#include <errno.h>
#include <stdio.h>
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
static int read_isolated(struct host_facts *facts)
{
    char boot[4096];
    char partitions[4096];
    char both[sizeof(boot) + sizeof(partitions)];
    file_line(boot, sizeof(boot), facts->root, "/sys/devices/system/cpu/isolated");
    file_line(partitions, sizeof(partitions), facts->root, "/sys/fs/cgroup/cpuset.cpus.isolated");
    bool has_both = boot[strspn(boot, " ")] && partitions[strspn(partitions, " ")];
    (void)snprintf(both, sizeof(both), "%s%s%s", boot, has_both ? "," : "", partitions);
    int rc = cpu_list_parse(&facts->isolated, both);
    return rc == -ENOMEM ? rc : 0;
}

int host_facts_init(struct host_facts *facts, const char *root)
{
    *facts = (struct host_facts){.root = root};
    int rc = file_cpus(&facts->online, root, "/sys/devices/system/cpu/online");
    if (!rc)
        rc = read_isolated(facts);
    if (!rc)
        rc = file_cpus(&facts->nohz_full, root, "/sys/devices/system/cpu/nohz_full");
    snapshot_take(&facts->files, root, paths, sizeof(paths) / sizeof(*paths));
    cut_cpuinfo(&facts->files.texts[0]);
    return rc;
}

void host_facts_deinit(struct host_facts *facts)
{
    cpu_list_deinit(&facts->online);
    cpu_list_deinit(&facts->isolated);
    cpu_list_deinit(&facts->nohz_full);
    snapshot_deinit(&facts->files);
}

int host_siblings(struct cpu_list *siblings, const struct host_facts *facts, unsigned cpu)
{
    struct cpu_list all;
    struct cpu_list own = {&cpu, 1};
    int rc = file_cpus(&all, facts->root, "/sys/devices/system/cpu/cpu%u/topology/thread_siblings_list", cpu);
    if (rc)
        return rc;
    rc = cpu_list_without(siblings, &all, &own);
    cpu_list_deinit(&all);
    return rc;
}

int host_allowed_cpus(struct cpu_list *allowed)
{
    return cpu_list_allowed(allowed, 0);
}
