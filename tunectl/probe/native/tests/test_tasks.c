#include <grp.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "check.h"
#include "lib/host.h"
#include "lib/tasks.h"

/* proc(5): state 3, flags 9, processor 39, rt_priority 40, policy 41. */
static const char line[] = "77 (a) (b) R 1 77 77 0 -1 2097216 0 0 0 0 1 2 0 0 20 0 1 0 100 0 0 18446744073709551615 0 0 0 0 0 0 0 0 0"
                           " 0 0 0 17 3 50 1 0 0 0\n";

/* A process on one CPU; root's is in 2,000 groups, so the list of its CPUs begins some 20 kB into its status. */
static void wait_in_many_groups(int ready, unsigned cpu)
{
    gid_t groups[2000];
    cpu_set_t set;
    for (unsigned i = 0; i < 2000; i++)
        groups[i] = 1000000000U + i;
    CPU_ZERO(&set);
    CPU_SET(cpu, &set);
    bool is_set = (setgroups(2000, groups) == 0 || geteuid() != 0) && sched_setaffinity(0, sizeof(set), &set) == 0;
    if (is_set && write(ready, "r", 1) == 1)
        (void)pause();
    _exit(1);
}

static void test_a_status_of_many_groups(void)
{
    struct cpus allowed;
    int ready[2];
    char byte;
    unsigned cpu = (unsigned)sched_getcpu();
    CHECK(pipe(ready) == 0);
    pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0)
        wait_in_many_groups(ready[1], cpu);
    CHECK(read(ready[0], &byte, 1) == 1);
    allowed = cpus_allowed(child);
    CHECK(cpus_count(&allowed) == 1 && cpus_have(&allowed, cpu));
    CHECK(task_switches(child, child) > 0);
    CHECK(kill(child, SIGKILL) == 0 && waitpid(child, NULL, 0) == child);
    allowed = cpus_allowed(child);
    CHECK(cpus_count(&allowed) == 0);
    CHECK(task_switches(child, child) == 0);
    (void)close(ready[0]);
    (void)close(ready[1]);
}

void test_tasks(void)
{
    test_a_status_of_many_groups();
    struct task task;
    char text[TASK_TEXT_SIZE];
    CHECK(task_parse(&task, line));
    CHECK(task.tid == 77 && task.state == 'R' && task.cpu == 3 && task.rt_priority == 50 && task.policy == 1);
    CHECK(strcmp(task.name, "a) (b") == 0);
    CHECK(task_is_kernel(&task));
    CHECK(strcmp(task_format(&task, text), "a) (b (tid 77, SCHED_FIFO 50)") == 0);
    CHECK(task_parse(&task, "5 (x\033[2J\n) S 1 1 1 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 1 0 0 1 0 0 0 0 0 0 0 0 0 0 0 0 17 0 0 0 0 0 0"));
    CHECK(strcmp(task_format(&task, text), "x?[2J? (tid 5)") == 0);
    CHECK(!task_is_kernel(&task));
    CHECK(!task_parse(&task, ""));
    CHECK(!task_parse(&task, "77 (cut) R 1 77"));
    CHECK(!task_parse(&task, ")("));
}
