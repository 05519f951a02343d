#include "lib/tasks.h"

#include <ctype.h>
#include <dirent.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { KERNEL_THREAD = 0x00200000 /* PF_KTHREAD */, KTHREADD = 2, FILE_SIZE = 4096, TAIL = 1024 };

static int open_file(pid_t pid, pid_t tid, const char *name)
{
    char path[96];
    (void)snprintf(path, sizeof(path), "/proc/%d/task/%d/%s", (int)pid, (int)tid, name);
    return open(path, O_RDONLY | O_CLOEXEC);
}

/* A short file of a thread in one read; an empty text where it has ended. */
static void read_file(char text[FILE_SIZE], pid_t pid, pid_t tid, const char *name)
{
    int fd = open_file(pid, tid, name);
    ssize_t got = fd < 0 ? 0 : read(fd, text, FILE_SIZE - 1);
    text[got > 0 ? got : 0] = '\0';
    if (fd >= 0)
        (void)close(fd);
}

bool task_parse(struct task *task, const char *text)
{
    const char *open_at = strchr(text, '(');
    const char *close_at = strrchr(text, ')');
    if (!open_at || !close_at || close_at < open_at)
        return false;
    *task = (struct task){.tid = (pid_t)strtol(text, NULL, 10)};
    size_t length = (size_t)(close_at - open_at - 1);
    for (size_t i = 0; i < length && i + 1 < sizeof(task->name); i++)
        task->name[i] = isprint((unsigned char)open_at[i + 1]) ? open_at[i + 1] : '?';
    /* The fields of proc(5) behind the name: state is field 3, flags 9, processor 39, rt_priority 40, policy 41. */
    int found = sscanf(close_at + 1,
                       " %c %*d %*d %*d %*d %*d %lu %*u %*u %*u %*u %*u %*u %*d %*d %*d %*d %*d %*d %*u %*u %*d %*u %*u %*u %*u"
                       " %*u %*u %*u %*u %*u %*u %*u %*u %*u %*d %u %u %u",
                       &task->state, &task->flags, &task->cpu, &task->rt_priority, &task->policy);
    return found == 5;
}

char *task_format(const struct task *task, char text[TASK_TEXT_SIZE])
{
    const char *class = task->policy == SCHED_FIFO ? ", SCHED_FIFO" : task->policy == SCHED_RR ? ", SCHED_RR" : "";
    char how[32] = "";
    if (*class)
        (void)snprintf(how, sizeof(how), "%s %u", class, task->rt_priority);
    (void)snprintf(text, TASK_TEXT_SIZE, "%s (tid %d%s)", task->name, (int)task->tid, how);
    return text;
}

bool task_is_kernel(const struct task *task)
{
    return task->flags & KERNEL_THREAD;
}

bool task_read(struct task *task, pid_t pid, pid_t tid)
{
    char text[FILE_SIZE];
    read_file(text, pid, tid, "stat");
    bool is_there = task_parse(task, text);
    task->pid = pid;
    return is_there;
}

struct task_account task_account(pid_t pid, pid_t tid)
{
    char text[FILE_SIZE];
    unsigned long long ran = 0;
    unsigned long long waited = 0;
    unsigned long long slices = 0;
    read_file(text, pid, tid, "schedstat");
    bool is_there = sscanf(text, "%llu %llu %llu", &ran, &waited, &slices) == 3;
    return is_there ? (struct task_account){ran, waited, slices} : (struct task_account){0};
}

/*
 * The end of a thread's status. A list of 65,536 groups comes before it, so the file is read part by part: memory for all of it
 * would be given back, and that interrupts the measured CPUs.
 */
static void read_status_end(char text[FILE_SIZE], pid_t pid, pid_t tid)
{
    int fd = open_file(pid, tid, "status");
    size_t held = 0;
    for (ssize_t got; fd >= 0 && (got = read(fd, text + held, FILE_SIZE - 1 - held)) > 0;) {
        held += (size_t)got;
        size_t surplus = held > TAIL ? held - TAIL : 0;
        held -= surplus;
        memmove(text, text + surplus, held);
    }
    text[held] = '\0';
    if (fd >= 0)
        (void)close(fd);
}

uint64_t task_switches(pid_t pid, pid_t tid)
{
    static const char key[] = "\nvoluntary_ctxt_switches:";
    char text[FILE_SIZE];
    unsigned long long voluntary = 0;
    unsigned long long others = 0;
    read_status_end(text, pid, tid);
    const char *at = strstr(text, key);
    bool is_there = at && sscanf(at + sizeof(key) - 1, "%llu nonvoluntary_ctxt_switches: %llu", &voluntary, &others) == 2;
    return is_there ? voluntary + others : 0;
}

/* The numbers that name entries of a directory, to be freed by the caller; NULL where it has none. */
static pid_t *read_ids(const char *path, size_t *n)
{
    DIR *directory = opendir(path);
    size_t capacity = 0;
    pid_t *ids = NULL;
    *n = 0;
    for (struct dirent *entry; directory && (entry = readdir(directory));) {
        if (!isdigit((unsigned char)entry->d_name[0]))
            continue;
        if (*n == capacity) {
            capacity = capacity ? 2 * capacity : 256;
            pid_t *larger = realloc(ids, capacity * sizeof(*ids));
            if (!larger)
                break;
            ids = larger;
        }
        ids[(*n)++] = (pid_t)strtol(entry->d_name, NULL, 10);
    }
    if (directory)
        (void)closedir(directory);
    return ids;
}

/* Is a control group the whole path of a line of /proc/PID/cgroup? Below a group of his, a user gives what names he likes. */
static bool is_group(const char *text, const char *group)
{
    size_t length = strlen(group);
    for (const char *line = text; line && *line; line = strchr(line, '\n')) {
        line += *line == '\n';
        const char *path = strchr(line, ':');
        path = path ? strchr(path + 1, ':') : NULL;
        if (path && strncmp(path + 1, group, length) == 0 && path[1 + length] == '\n')
            return true;
    }
    return false;
}

/*
 * Is a process that has this program's name this program, started by root, by who started this one, or by the monitor's service,
 * whose user is no fixed one? Anybody may take the name, and start the program. It may be another installation's, or one that was
 * replaced since. One that is not shown to us is not compared.
 */
static bool is_probe(pid_t pid)
{
    struct stat owner;
    char path[64];
    char text[FILE_SIZE];
    read_file(text, pid, pid, "cgroup");
    if (is_group(text, "/system.slice/tunectl-monitor.service"))
        return true;
    (void)snprintf(path, sizeof(path), "/proc/%d", (int)pid);
    if (stat(path, &owner) != 0 || (owner.st_uid != 0 && owner.st_uid != geteuid()))
        return false;
    (void)snprintf(path, sizeof(path), "/proc/%d/exe", (int)pid);
    ssize_t length = readlink(path, text, sizeof(text) - 1);
    if (length <= 0)
        return true;
    text[length] = '\0';
    const char *name = strrchr(text, '/');
    return name && (strcmp(name, "/tunectl-probe") == 0 || strcmp(name, "/tunectl-probe (deleted)") == 0);
}

static void visit_threads(pid_t pid, task_visitor visit, void *context)
{
    char path[64];
    struct task task;
    size_t n;
    /* A kernel thread is a process of one thread: its first look tells. */
    if (!task_read(&task, pid, pid) || task_is_kernel(&task) || (strcmp(task.name, "tunectl-probe") == 0 && is_probe(pid)))
        return;
    (void)snprintf(path, sizeof(path), "/proc/%d/task", (int)pid);
    pid_t *tids = read_ids(path, &n);
    for (size_t i = 0; i < n; i++)
        if (task_read(&task, pid, tids[i]))
            visit(&task, context);
    free(tids);
}

bool tasks_are_all_seen(void)
{
    struct task first;
    return task_read(&first, KTHREADD, KTHREADD) && task_is_kernel(&first);
}

void tasks_visit(task_visitor visit, void *context)
{
    size_t n;
    pid_t *pids = read_ids("/proc", &n);
    /* /proc lists them in ascending order. */
    for (size_t i = n; i-- > 0;)
        if (pids[i] != getpid())
            visit_threads(pids[i], visit, context);
    free(pids);
}
