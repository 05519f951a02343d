#include "check.h"
#include "jitter/tracefs.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static struct span span_of(const char *text)
{
    return (struct span){text, strlen(text)};
}

static void finds_the_mount(void)
{
    struct span point;
    CHECK(tracefs_mount_point(span_of("proc /proc proc rw 0 0\ntracefs /sys/kernel/tracing tracefs rw,nosuid 0 0\n"), &point));
    CHECK(span_is(point, "/sys/kernel/tracing"));
    CHECK(!tracefs_mount_point(span_of("tracefs /mnt ext4 rw 0 0\n\n x\n"), &point));
    CHECK(!tracefs_mount_point(span_of(""), &point));
}

static void reads_the_start_time(void)
{
    uint64_t start;
    CHECK(tracefs_start_time(span_of("17 (a) b) S 1 17 17 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 1 0 987654 1000 20\n"), &start));
    CHECK(start == 987654);
    CHECK(!tracefs_start_time(span_of("17 (a) S 1 17"), &start));
    CHECK(!tracefs_start_time(span_of("17"), &start));
}

static void masks(const char *list, const char *mask)
{
    struct cpu_list cpus;
    CHECK(cpu_list_parse(&cpus, list) == 0);
    char *text = cpu_list_mask(&cpus);
    CHECK(text && strcmp(text, mask) == 0);
    free(text);
    cpu_list_deinit(&cpus);
}

static bool is_there(const char *root, const char *path)
{
    char full[512];
    struct stat status;
    (void)snprintf(full, sizeof(full), "%s%s", root, path);
    return stat(full, &status) == 0;
}

static void make(const char *root, const char *path)
{
    char full[512];
    (void)snprintf(full, sizeof(full), "%s%s", root, path);
    CHECK(mkdir(full, 0700) == 0);
}

static void put(const char *root, const char *path, const char *text)
{
    char full[512];
    (void)snprintf(full, sizeof(full), "%s%s", root, path);
    FILE *f = fopen(full, "w");
    CHECK(f && fputs(text, f) >= 0 && fclose(f) == 0);
}

/* A host where process 17 lives, since tick 987654, and 18 does not. */
static void sweeps_only_what_nobody_owns(const char *root)
{
    static const char *const left[] = {"tunectl-18-5", "tunectl-17-5"};
    static const char *const kept[] = {"tunectl-17-987654", "tunectl-18", "tunectl-x-5", "tunectl--5", "tunectl-18-", "rtla"};
    char path[512];
    char tracefs[PATH_MAX];
    make(root, "/proc");
    make(root, "/proc/17");
    make(root, "/trace");
    make(root, "/trace/instances");
    CHECK(tracefs_find(tracefs, root) == -ENOENT);
    put(root, "/proc/mounts", "proc /proc proc rw 0 0\n");
    CHECK(tracefs_find(tracefs, root) == -ENOENT);
    put(root, "/proc/mounts", "tracefs /trace tracefs rw 0 0\n");
    put(root, "/proc/17/stat", "17 (a) b) S 1 17 17 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 1 0 987654 1000 20\n");
    CHECK(tracefs_find(tracefs, root) == 0 && strcmp(tracefs + strlen(root), "/trace") == 0);
    for (size_t i = 0; i < sizeof(left) / sizeof(*left); i++) {
        (void)snprintf(path, sizeof(path), "/trace/instances/%s", left[i]);
        make(root, path);
    }
    for (size_t i = 0; i < sizeof(kept) / sizeof(*kept); i++) {
        (void)snprintf(path, sizeof(path), "/trace/instances/%s", kept[i]);
        make(root, path);
    }
    tracefs_sweep(tracefs, root);
    for (size_t i = 0; i < sizeof(left) / sizeof(*left); i++) {
        (void)snprintf(path, sizeof(path), "/trace/instances/%s", left[i]);
        CHECK(!is_there(root, path));
    }
    for (size_t i = 0; i < sizeof(kept) / sizeof(*kept); i++) {
        (void)snprintf(path, sizeof(path), "/trace/instances/%s", kept[i]);
        CHECK(is_there(root, path));
    }
}

/* A directory that is no tracefs: whatever was made is taken away again. */
static void an_instance_that_fails_leaves_nothing(const char *root)
{
    struct trace_instance t;
    char tracefs[PATH_MAX];
    CHECK(tracefs_find(tracefs, root) == 0);
    CHECK(trace_instance_init(&t, tracefs, root) == -ENOENT);
    CHECK(t.path[0] && access(t.path, F_OK) == 0);
    char path[PATH_MAX];
    memcpy(path, t.path, sizeof(path));
    CHECK(trace_instance_deinit(&t) == 0 && access(path, F_OK) != 0);
    CHECK(trace_instance_deinit(&t) == 0);
    CHECK(trace_instance_init(&t, "/nonexistent", root) == -ENOENT && !t.path[0]);
}

void test_tracefs(void)
{
    char root[] = "/tmp/tunectl-probe-test-XXXXXX";
    char command[64];
    CHECK(mkdtemp(root) != NULL);
    finds_the_mount();
    reads_the_start_time();
    masks("", "0");
    masks("1", "2");
    masks("0-3,31", "8000000f");
    masks("32-33", "3,00000000");
    masks("64", "1,00000000,00000000");
    sweeps_only_what_nobody_owns(root);
    an_instance_that_fails_leaves_nothing(root);
    (void)snprintf(command, sizeof(command), "rm -r '%s'", root);
    CHECK(system(command) == 0);
}
