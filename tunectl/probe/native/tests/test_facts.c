#include "check.h"
#include "lib/facts.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* A host of a few files below a temporary directory. */
static void put(const char *root, const char *path, const char *text)
{
    char full[512];
    (void)snprintf(full, sizeof(full), "%s%s", root, path);
    for (char *slash = strchr(full + strlen(root) + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        (void)mkdir(full, 0700);
        *slash = '/';
    }
    FILE *f = fopen(full, "w");
    CHECK(f != NULL);
    if (f) {
        CHECK(fputs(text, f) >= 0);
        CHECK(fclose(f) == 0);
    }
}

static void remove_tree(const char *root)
{
    char command[600];
    (void)snprintf(command, sizeof(command), "rm -r '%s'", root);
    CHECK(system(command) == 0);
}

static void an_isolated_metal_host(const char *root)
{
    struct host_facts f;
    struct cpu_list siblings;
    char text[64];
    put(root, "/sys/devices/system/cpu/online", "0-7\n");
    put(root, "/sys/devices/system/cpu/isolated", "2-3\n");
    put(root, "/sys/fs/cgroup/cpuset.cpus.isolated", "6\n");
    put(root, "/sys/devices/system/cpu/nohz_full", "   (null)\n");
    put(root, "/sys/devices/system/cpu/cpu2/topology/thread_siblings_list", "2,6\n");
    put(root, "/proc/cpuinfo", "processor : 0\nflags\t\t: tsc constant_tsc nonstop_tsc_not nonstop_tsc\n\nprocessor : 1\n");
    put(root, "/proc/sys/kernel/sched_rt_runtime_us", "-1\n");
    CHECK(host_facts_init(&f, root) == 0);
    CHECK(f.online.n == 8 && f.nohz_full.n == 0);
    CHECK(strcmp(cpu_list_format(&f.isolated, text, sizeof(text)), "2-3,6") == 0);
    CHECK(!f.is_virtual && f.has_stable_tsc && f.rt_runtime_us == -1 && f.rt_period_us == 1000000);
    CHECK(host_siblings(&siblings, &f, 2) == 0 && siblings.n == 1 && siblings.ids[0] == 6);
    cpu_list_deinit(&siblings);
    CHECK(host_siblings(&siblings, &f, 3) == 0 && siblings.n == 0);
    cpu_list_deinit(&siblings);
    host_facts_deinit(&f);
}

static void a_guest_without_stable_tsc(const char *root)
{
    struct host_facts f;
    put(root, "/proc/cpuinfo", "processor : 0\nflags\t\t: constant_tsc hypervisor\n");
    CHECK(host_facts_init(&f, root) == 0);
    CHECK(f.is_virtual && !f.has_stable_tsc);
    host_facts_deinit(&f);
    put(root, "/proc/cpuinfo", "processor : 0\nFeatures : fp asimd\n");
    put(root, "/sys/class/dmi/id/sys_vendor", "QEMU\n");
    CHECK(host_facts_init(&f, root) == 0);
    CHECK(f.is_virtual && f.has_stable_tsc);
    host_facts_deinit(&f);
}

static void a_host_without_files(void)
{
    struct host_facts f;
    CHECK(host_facts_init(&f, "/nonexistent") == 0);
    CHECK(f.online.n == 0 && f.isolated.n == 0 && !f.is_virtual && f.rt_runtime_us == -1 && f.boot_id[0] == '\0');
    host_facts_deinit(&f);
}

void test_facts(void)
{
    char root[] = "/tmp/tunectl-probe-test-XXXXXX";
    CHECK(mkdtemp(root) != NULL);
    an_isolated_metal_host(root);
    a_guest_without_stable_tsc(root);
    remove_tree(root);
    a_host_without_files();
}
