#include "lib/facts.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/files.h"

/* One word of a space-separated line. */
static bool has_word(const char *line, const char *word)
{
    size_t length = strlen(word);
    for (const char *at = strstr(line, word); at; at = strstr(at + 1, word)) {
        char before = at == line ? ' ' : at[-1];
        if ((before == ' ' || before == '\t') && (at[length] == ' ' || at[length] == '\0'))
            return true;
    }
    return false;
}

/* The "flags" line of the first CPU in /proc/cpuinfo, x86 only. */
static void read_cpu_flags(struct host_facts *facts)
{
    struct text text;
    facts->has_stable_tsc = true;
    if (file_read(&text, facts->root, "/proc/cpuinfo"))
        return;
    char *flags = strstr(text.bytes, "\nflags");
    if (flags) {
        flags[1 + strcspn(flags + 1, "\n")] = '\0';
        facts->is_virtual = has_word(flags, "hypervisor");
        facts->has_stable_tsc = has_word(flags, "constant_tsc") && has_word(flags, "nonstop_tsc");
    }
    text_deinit(&text);
}

/* Where no flag tells: the firmware's vendor, as a hypervisor writes it. */
static bool is_virtual_by_firmware(const char *root)
{
    static const char *const vendors[] = {"QEMU", "KVM", "VMware", "Xen", "innotek", "Parallels", "Google Compute Engine"};
    char vendor[128];
    char product[128];
    char hypervisor[32];
    file_line(vendor, sizeof(vendor), root, "/sys/class/dmi/id/sys_vendor");
    file_line(product, sizeof(product), root, "/sys/class/dmi/id/product_name");
    file_line(hypervisor, sizeof(hypervisor), root, "/sys/hypervisor/type");
    for (size_t i = 0; i < sizeof(vendors) / sizeof(*vendors); i++)
        if (strstr(vendor, vendors[i]) || strstr(product, vendors[i]))
            return true;
    return hypervisor[0] != '\0';
}

static long long read_number(const char *root, const char *path, long long otherwise)
{
    char line[64];
    char *end;
    file_line(line, sizeof(line), root, "%s", path);
    long long value = strtoll(line, &end, 10);
    return end == line ? otherwise : value;
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
    read_cpu_flags(facts);
    facts->is_virtual = facts->is_virtual || is_virtual_by_firmware(root);
    file_line(facts->clocksource, sizeof(facts->clocksource), root,
              "/sys/devices/system/clocksource/clocksource0/current_clocksource");
    facts->rt_runtime_us = read_number(root, "/proc/sys/kernel/sched_rt_runtime_us", -1);
    facts->rt_period_us = read_number(root, "/proc/sys/kernel/sched_rt_period_us", 1000000);
    file_line(facts->boot_id, sizeof(facts->boot_id), root, "/proc/sys/kernel/random/boot_id");
    return rc;
}

void host_facts_deinit(struct host_facts *facts)
{
    cpu_list_deinit(&facts->online);
    cpu_list_deinit(&facts->isolated);
    cpu_list_deinit(&facts->nohz_full);
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

/* From a list in a file: sched_getaffinity needs a mask of the kernel's size. */
int host_allowed_cpus(struct cpu_list *allowed)
{
    static const char key[] = "\nCpus_allowed_list:";
    struct text text;
    *allowed = (struct cpu_list){0};
    if (file_read(&text, "", "/proc/self/status"))
        return 0;
    char *found = strstr(text.bytes, key);
    int rc = 0;
    if (found) {
        found += sizeof(key) - 1;
        found[strcspn(found, "\n")] = '\0';
        rc = cpu_list_parse(allowed, found);
    }
    text_deinit(&text);
    return rc == -ENOMEM ? rc : 0;
}
