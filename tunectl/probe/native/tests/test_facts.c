#include "check.h"
#include "lib/account.h"
#include "lib/host.h"

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

static const char V1[] = "32 31 0:29 / /sys/cpu rw - cgroup cgroup rw,cpuacct,cpu\n41 31 0:38 / /sys/unified rw - cgroup2 cgroup2 rw\n";
static const char V2[] = "31 23 0:28 / /sys/cg rw shared:4 - cgroup2 cgroup2 rw\n";

/* Its files stand for all cases; a case is what it is in, and what is mounted. */
static void put_groups(const char *root)
{
    put(root, "/sys/cpu/release_agent", "\n");
    put(root, "/sys/cpu/cpu.stat", "nr_throttled 0\nthrottled_time 0\n");
    put(root, "/sys/cpu/a/cpu.stat", "nr_throttled 9\nthrottled_time 7000000\n");
    put(root, "/sys/cpu/a/b/cpu.stat", "nr_throttled 9\nthrottled_time 500000\n");
    put(root, "/sys/cg/cpu.stat", "usage_usec 5\n");
    put(root, "/sys/cg/a/cpu.stat", "usage_usec 5\nnr_throttled 9\nthrottled_usec 30\n");
    put(root, "/sys/cg/a/off/cpu.stat", "usage_usec 5\n");
    put(root, "/sys/ns/cgroup.events", "populated 1\n");
    put(root, "/sys/ns/cpu.stat", "usage_usec 5\nthrottled_usec 2\n");
    put(root, "/sys/ns1/cpu.stat", "throttled_time 4000\n");
}

static void a_throttle_is_what_the_groups_count_and_whole_where_none_stands_beyond(const char *root)
{
    static const struct {
        const char *groups;
        const char *mounts;
        uint64_t us;
        bool is_whole;
    } cases[] = {
        {"2:cpu,cpuacct:/a/b\n0::/\n", V1, 7500, true},
        {"0::/\n2:cpu:/a\n", V1, 7000, true},
        {"2:cpu:/\n", V1, 0, true},
        {"2:cpu:/gone\n", V1, 0, false},
        {"1:cpuset:/a\n0::/a/off\n", V2, 30, true},
        {"0::/\n", V2, 0, true},
        {"0::/a\n", V1, 0, false},
        {"0::/a\n", "", 0, false},
        {"0::/\n", "31 23 0:28 / /sys/ns rw - cgroup2 cgroup rw\n", 2, false},
        {"0::/\n", "31 23 0:28 /.. /sys/cg rw - cgroup2 cgroup rw\n", 0, false},
        {"0::/../a\n", V2, 0, false},
        {"2:cpu:/\n", "32 31 0:29 / /sys/ns1 rw - cgroup cgroup rw,cpu\n", 4, false},
        {"0::/box/a\n", "31 23 0:28 /box /sys/cg rw - cgroup2 cgroup rw\n", 30, false},
        {"0::/boxes\n", "31 23 0:28 /box /sys/cg rw - cgroup2 cgroup rw\n", 0, false},
        {"0::/box/a\n", "30 23 0:28 /box/a /sys/ns rw - cgroup2 cgroup rw\n31 23 0:28 /box /sys/cg rw - cgroup2 cgroup rw\n", 30, false},
        {"", V2, 0, false},
    };
    put_groups(root);
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        put(root, "/proc/7/cgroup", cases[i].groups);
        put(root, "/proc/self/mountinfo", cases[i].mounts);
        struct throttle throttle = throttle_read(root, 7);
        CHECK(throttle.us == cases[i].us && throttle.is_whole == cases[i].is_whole);
    }
}

static void what_may_have_been_throttled_unseen_is_not_known(void)
{
    static const struct {
        struct throttle before;
        struct throttle after;
        int64_t us;
    } cases[] = {
        {{5, true, 0}, {9, true, 80000}, 4},
        {{5, true, 0}, {9, true, 3000}, 3},                 /* others of the group stood still for the rest */
        {{5, true, 0}, {5, true, 80000000}, 0},
        {{5, false, 0}, {5, false, 80000000}, ACCOUNT_UNKNOWN},
        {{5, true, 0}, {5, false, 80000000}, ACCOUNT_UNKNOWN},
        {{5, false, 0}, {5, false, 999999}, 0},
        {{5, false, ACCOUNT_UNKNOWN}, {5, false, 0}, ACCOUNT_UNKNOWN},
        {{5, false, ACCOUNT_UNKNOWN}, {9, false, 0}, 4},
        {{9, true, 0}, {5, true, 80000000}, ACCOUNT_UNKNOWN},    /* it was moved to another group */
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++)
        CHECK(throttled_us(&cases[i].before, &cases[i].after) == cases[i].us);
}

static void a_wait_is_that_of_a_thread_that_is_there(void)
{
    struct throttle throttle = {0};
    throttle_add_wait(&throttle, getpid());
    CHECK(throttle.waited_ns >= 0);
    throttle_add_wait(&throttle, -1);
    throttle_add_wait(&throttle, getpid());
    CHECK(throttle.waited_ns == ACCOUNT_UNKNOWN);
}

void test_facts(void)
{
    what_may_have_been_throttled_unseen_is_not_known();
    a_wait_is_that_of_a_thread_that_is_there();
    a_value_stands_behind_its_own_key_alone();
    char root[] = "/tmp/tunectl-probe-test-XXXXXX";
    CHECK(mkdtemp(root) != NULL);
    an_isolated_metal_host(root);
    a_throttle_is_what_the_groups_count_and_whole_where_none_stands_beyond(root);
    remove_tree(root);
    a_host_without_files();
}
