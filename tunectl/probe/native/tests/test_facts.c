#include "check.h"
#include "lib/host.h"
#include "lib/tasks.h"

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
    struct cpus core;
    put(root, "/sys/devices/system/cpu/online", "0-7\n");
    put(root, "/sys/devices/system/cpu/isolated", "2-3\n");
    put(root, "/sys/fs/cgroup/cpuset.cpus.isolated", "6\n");
    put(root, "/sys/devices/system/cpu/nohz_full", "   (null)\n");
    put(root, "/sys/devices/system/cpu/cpu2/topology/thread_siblings_list", "2,6\n");
    put(root, "/proc/cpuinfo", "processor : 0\nflags : tsc\n\nprocessor : 1\n");
    host_facts_init(&f, root);
    CHECK(cpus_count(&f.online) == 8 && cpus_count(&f.nohz_full) == 0);
    CHECK(HAS_ONLY(&f.isolated, 2, 3, 6));
    CHECK(strcmp(f.files.files[0].path, "/proc/cpuinfo") == 0 && f.files.files[0].text.length == strlen("processor : 0\nflags : tsc"));
    core = host_core(&f, 2);
    CHECK(HAS_ONLY(&core, 2, 6));
    core = host_core(&f, 3);
    CHECK(HAS_ONLY(&core, 3));
    host_facts_deinit(&f);
}

static void a_host_without_files(void)
{
    struct host_facts f;
    host_facts_init(&f, "/nonexistent");
    CHECK(cpus_count(&f.online) == 0 && cpus_count(&f.isolated) == 0 && f.files.files[0].text.length == 0);
    host_facts_deinit(&f);
}

static void a_value_stands_behind_its_own_key_alone(void)
{
    static const char text[] = "se.nr_migrations       :  12\nnr_migrations\t: 7\nnr_migrations_cold: 3\nthrottled_usec 5\nodd x\n";
    CHECK(account_value(text, "nr_migrations", -1) == 7);
    CHECK(account_value(text, "se.nr_migrations", -1) == 12);
    CHECK(account_value(text, "throttled_usec", 0) == 5);
    CHECK(account_value(text, "odd", -1) == -1);
    CHECK(account_value(text, "migrations", -1) == -1 && account_value("", "odd", -1) == -1);
}

void test_facts(void)
{
    a_value_stands_behind_its_own_key_alone();
    char root[] = "/tmp/tunectl-probe-test-XXXXXX";
    CHECK(mkdtemp(root) != NULL);
    an_isolated_metal_host(root);
    remove_tree(root);
    a_host_without_files();
}
