#include "jitter/tracefs.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "lib/files.h"

static const char prefix[] = "tunectl-";

bool tracefs_mount_point(struct span mounts, struct span *point)
{
    struct span line;
    while (span_line(&mounts, &line)) {
        (void)span_word(&line);
        struct span where = span_word(&line);
        if (where.length && span_is(span_word(&line), "tracefs")) {
            *point = where;
            return true;
        }
    }
    return false;
}

/* "PID (NAME) S ppid ...": the name may hold anything, parentheses and blanks included; fields count from behind it. */
bool tracefs_start_time(struct span stat, uint64_t *start)
{
    enum { STATE = 3, START_TIME = 22 };
    struct span rest;
    struct span word = {0};
    if (!span_behind_last(stat, ")", &rest))
        return false;
    for (int field = STATE; field <= START_TIME; field++)
        word = span_word(&rest);
    return span_number(word, start);
}

int tracefs_find(char path[PATH_MAX], const char *root)
{
    struct text mounts;
    struct span point;
    int rc = file_read(&mounts, root, "/proc/mounts");
    if (rc)
        return rc;
    if (!tracefs_mount_point((struct span){mounts.bytes, mounts.length}, &point))
        rc = -ENOENT;
    else if (snprintf(path, PATH_MAX, "%s%.*s", root, (int)point.length, point.at) >= PATH_MAX)
        rc = -ENAMETOOLONG;
    text_deinit(&mounts);
    return rc;
}

/* 0 for a process that is not there. */
static uint64_t start_time_of(const char *root, uint64_t pid)
{
    struct text stat;
    uint64_t start = 0;
    if (file_read(&stat, root, "/proc/%" PRIu64 "/stat", pid))
        return 0;
    if (!tracefs_start_time((struct span){stat.bytes, stat.length}, &start))
        start = 0;
    text_deinit(&stat);
    return start;
}

/* "tunectl-PID-START" of a process that is no more, or whose number another has by now. */
static bool is_stale(const char *root, const char *name)
{
    uint64_t pid;
    uint64_t start;
    struct span whole = {name, strlen(name)};
    struct span behind;
    if (!span_starts(whole, prefix) || !span_behind_last(whole, "-", &behind) || !span_number(behind, &start))
        return false;
    const char *number = name + strlen(prefix);
    if (behind.at <= number || !span_number((struct span){number, (size_t)(behind.at - number) - 1}, &pid))
        return false;
    return start_time_of(root, pid) != start;
}

/*
 * Should the owner live after all, in a PID namespace we do not see, the kernel refuses: it holds a file of the instance open.
 */
void tracefs_sweep(const char *tracefs, const char *root)
{
    char path[PATH_MAX];
    if (snprintf(path, sizeof(path), "%s/instances", tracefs) >= PATH_MAX)
        return;
    DIR *directory = opendir(path);
    if (!directory)
        return;
    for (struct dirent *entry = readdir(directory); entry; entry = readdir(directory))
        if (is_stale(root, entry->d_name))
            (void)unlinkat(dirfd(directory), entry->d_name, AT_REMOVEDIR);
    (void)closedir(directory);
}

int trace_instance_init(struct trace_instance *t, const char *tracefs, const char *root)
{
    *t = (struct trace_instance){.switch_fd = -1};
    uint64_t pid = (uint64_t)getpid();
    char switch_path[PATH_MAX + 16];
    int length = snprintf(t->path, sizeof(t->path), "%s/instances/%s%" PRIu64 "-%" PRIu64, tracefs, prefix, pid,
                          start_time_of(root, pid));
    if (length >= PATH_MAX || mkdir(t->path, 0700)) {
        t->path[0] = '\0';
        return length >= PATH_MAX ? -ENAMETOOLONG : -errno;
    }
    (void)snprintf(switch_path, sizeof(switch_path), "%s/tracing_on", t->path);
    t->switch_fd = open(switch_path, O_RDWR | O_CLOEXEC);
    return t->switch_fd < 0 ? -errno : trace_instance_switch(t, false);
}

/* A reader of the same file elsewhere (a curious `cat`) makes the kernel refuse for as long as it reads. */
int trace_instance_deinit(struct trace_instance *t)
{
    enum { ATTEMPTS = 50 };
    struct timespec pause = {.tv_nsec = 20 * 1000 * 1000};
    int rc = 0;
    if (!t->path[0])
        return 0;
    if (t->switch_fd >= 0)
        (void)close(t->switch_fd);
    t->switch_fd = -1;
    for (int i = 0; i < ATTEMPTS; i++) {
        rc = rmdir(t->path) ? -errno : 0;
        if (rc != -EBUSY)
            break;
        (void)nanosleep(&pause, NULL);
    }
    if (!rc)
        t->path[0] = '\0';
    return rc;
}

static int write_whole(int fd, const char *text)
{
    size_t length = strlen(text);
    ssize_t put = write(fd, text, length);
    return put < 0 ? -errno : (size_t)put == length ? 0 : -EIO;
}

int trace_instance_write(const struct trace_instance *t, const char *text, const char *path, ...)
{
    char full[PATH_MAX];
    va_list args;
    int used = snprintf(full, sizeof(full), "%s/", t->path);
    va_start(args, path);
    int rest = vsnprintf(full + used, sizeof(full) - (size_t)used, path, args);
    va_end(args);
    if (rest < 0 || used + rest >= PATH_MAX)
        return -ENAMETOOLONG;
    int fd = open(full, O_WRONLY | O_TRUNC | O_CLOEXEC);
    if (fd < 0)
        return -errno;
    int rc = write_whole(fd, text);
    (void)close(fd);
    return rc;
}

int trace_instance_confine(const struct trace_instance *t, const struct cpu_list *cpus)
{
    char *mask = cpu_list_mask(cpus);
    int rc = mask ? trace_instance_write(t, mask, "tracing_cpumask") : -ENOMEM;
    free(mask);
    return rc;
}

int trace_instance_switch(const struct trace_instance *t, bool on)
{
    return write_whole(t->switch_fd, on ? "1" : "0");
}
