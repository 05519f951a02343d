#include "lib/account.h"

#include <limits.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "lib/host.h"
#include "lib/tasks.h"

static const int64_t LEAST_WAIT_NS = 1000000;

int64_t account_value(const char *text, const char *key, int64_t otherwise)
{
    size_t length = strlen(key);
    for (const char *line = text; line && *line; line = strchr(line, '\n')) {
        line += *line == '\n';
        if (strncmp(line, key, length) != 0 || !strchr(" \t:", line[length]) || !line[length])
            continue;
        const char *at = line + length + strspn(line + length, " \t:");
        char *end;
        long long value = strtoll(at, &end, 10);
        return end == at ? otherwise : value;
    }
    return otherwise;
}

struct account account_now(void)
{
    struct account now = {.cpu = (unsigned)sched_getcpu(), .migrations = ACCOUNT_UNKNOWN};
    struct text text = file_read("", "/proc/thread-self/sched");
    now.waited_ns = task_account(getpid(), (pid_t)syscall(SYS_gettid)).waited_ns;
    now.migrations = account_value(text.bytes, "nr_migrations", ACCOUNT_UNKNOWN);
    if (now.migrations == ACCOUNT_UNKNOWN)
        now.migrations = account_value(text.bytes, "se.nr_migrations", ACCOUNT_UNKNOWN);
    text_deinit(&text);
    return now;
}

/* The hierarchy that counts CPU time, and a process's place in it. */
struct hierarchy {
    bool is_v1;
    char group[PATH_MAX];   /* the process's, from the root of our namespace */
    char mount[PATH_MAX];   /* where it is mounted, */
    char top[PATH_MAX];     /* and the group that stands there */
};

static bool has_item(const char *list, const char *item)
{
    size_t length = strlen(item);
    for (const char *at = list; at; at = strchr(at, ',')) {
        at += *at == ',';
        if (strncmp(at, item, length) == 0 && strchr(",:\n", at[length]))
            return true;
    }
    return false;
}

/* A line is "ID:controllers:path"; version 2 names no controllers, and counts where version 1 does not. */
static void find_group(struct hierarchy *h, const char *text)
{
    for (const char *line = text; line && *line; line = strchr(line, '\n')) {
        line += *line == '\n';
        const char *controllers = strchr(line, ':');
        const char *path = controllers ? strchr(controllers + 1, ':') : NULL;
        if (!path)
            continue;
        bool is_v1 = has_item(controllers + 1, "cpu");
        if (!is_v1 && (h->is_v1 || path != controllers + 1))
            continue;
        h->is_v1 = is_v1;
        (void)snprintf(h->group, sizeof(h->group), "%.*s", (int)strcspn(path + 1, "\n"), path + 1);
    }
}

/* What is below a group of its path; NULL for a group that is not below it. A path that begins with "/.." is outside our namespace. */
static const char *below(const char *path, const char *group)
{
    size_t length = strcmp(group, "/") == 0 ? 0 : strlen(group);
    bool is_ours = *path == '/' && strncmp(path, "/..", 3) != 0;
    return is_ours && strncmp(path, group, length) == 0 && strchr("/", path[length]) ? path + length : NULL;
}

/* The mount that holds the group, from as near the root as there is one. */
static bool find_mount(struct hierarchy *h, const char *text)
{
    struct hierarchy one = *h;
    for (const char *line = text; line && *line; line = strchr(line, '\n')) {
        line += *line == '\n';
        const char *kind = strstr(line, " - ");
        char options[256] = "";
        if (!kind || sscanf(line, "%*d %*d %*s %4095s %4095s", one.top, one.mount) != 2)
            continue;
        bool is_v2 = strncmp(kind, " - cgroup2 ", 11) == 0;
        bool is_v1 = sscanf(kind, " - cgroup%*[ ]%*s %255s", options) == 1 && has_item(options, "cpu");
        if ((h->is_v1 ? is_v1 : is_v2) && below(h->group, one.top) && (!*h->mount || strlen(one.top) < strlen(h->top)))
            *h = one;
    }
    return *h->mount;
}

static bool is_file(const char *root, const char *group, const char *name)
{
    struct text text = file_read(root, "%s/%s", group, name);
    bool is_there = text.bytes;
    text_deinit(&text);
    return is_there;
}

/* Of the group and all that hold it, up to the mount. A group of version 2 whose controller is off has no limit, and counts none. */
static struct throttle read_along(const char *root, const struct hierarchy *h)
{
    /* The root of its hierarchy, or a namespace's? The kernel gives the one a file that no other has (v1), or lacks (v2). */
    bool is_root = h->is_v1 ? is_file(root, h->mount, "release_agent") : !is_file(root, h->mount, "cgroup.events");
    struct throttle throttle = {.is_whole = strcmp(h->top, "/") == 0 && is_root};
    char path[2 * PATH_MAX];
    size_t least = strlen(h->mount);
    (void)snprintf(path, sizeof(path), "%s%s", h->mount, below(h->group, h->top));
    for (size_t length = strlen(path); length >= least; length = strlen(path)) {
        if (length > least && path[length - 1] == '/')
            path[length - 1] = '\0';
        struct text stat = file_read(root, "%s/cpu.stat", path);
        throttle.us += h->is_v1 ? (uint64_t)account_value(stat.bytes, "throttled_time", 0) / 1000
                                : (uint64_t)account_value(stat.bytes, "throttled_usec", 0);
        throttle.is_whole = throttle.is_whole && stat.bytes;
        text_deinit(&stat);
        *strrchr(path, '/') = '\0';
    }
    return throttle;
}

struct throttle throttle_read(const char *root, pid_t pid)
{
    struct hierarchy h = {0};
    struct text groups = file_read(root, "/proc/%d/cgroup", (int)pid);
    struct text mounts = file_read(root, "/proc/self/mountinfo");
    find_group(&h, groups.bytes);
    bool is_found = find_mount(&h, mounts.bytes);
    text_deinit(&groups);
    text_deinit(&mounts);
    return is_found ? read_along(root, &h) : (struct throttle){0};
}

void throttle_add_wait(struct throttle *throttle, pid_t tid)
{
    struct task_account task = task_account(tid, tid);
    if (!task.slices)
        throttle->waited_ns = ACCOUNT_UNKNOWN;
    else if (throttle->waited_ns != ACCOUNT_UNKNOWN)
        throttle->waited_ns += (int64_t)task.waited_ns;
}

int64_t throttled_us(const struct throttle *before, const struct throttle *after)
{
    bool is_counted = before->waited_ns != ACCOUNT_UNKNOWN && after->waited_ns != ACCOUNT_UNKNOWN;
    int64_t waited_ns = is_counted ? after->waited_ns - before->waited_ns : INT64_MAX;
    int64_t us = (int64_t)(after->us - before->us);
    if (us > 0)
        return us < waited_ns / 1000 ? us : waited_ns / 1000;
    bool is_none = (us == 0 && before->is_whole && after->is_whole) || waited_ns < LEAST_WAIT_NS;
    return is_none ? 0 : ACCOUNT_UNKNOWN;
}
