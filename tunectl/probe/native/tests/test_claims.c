#include <sched.h>
#include <signal.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "check.h"
#include "lib/tasks.h"

struct heard {
    pid_t tid;
    unsigned times;
};

static void hear_one(const struct task *task, void *context)
{
    struct heard *heard = context;
    heard->times += task->tid == heard->tid;
}

static void put(pid_t tid, unsigned cpu, unsigned other)
{
    struct timespec moment = {0, 20000000};
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(cpu, &set);
    CPU_SET(other, &set);
    (void)sched_setaffinity(tid, sizeof(set), &set);
    (void)nanosleep(&moment, NULL);
}

/* A thread that may run on a measured CPU, and on another one that nobody measures: it wants the first only where it runs there. */
static void look_at(struct heard *heard, unsigned mine, unsigned others)
{
    struct cpus cpus = {0};
    struct cpus none = {0};
    struct host_facts facts = {.root = "/nonexistent"};
    cpus_add(&cpus, mine);
    put(heard->tid, mine, others);
    struct claims *claims = claims_new(&cpus, &none, 0, &facts, hear_one, heard);
    CHECK(claims);
    put(heard->tid, others, others);
    claims_look(claims);
    CHECK(heard->times == 0);
    put(heard->tid, mine, mine);
    claims_look(claims);
    CHECK(heard->times == 1);
    claims_free(claims);
}

void test_claims(void)
{
    struct cpus allowed = cpus_allowed(0);
    unsigned first = cpus_next(&allowed, 0);
    if (cpus_count(&allowed) < 2)
        return;
    struct heard heard = {.tid = fork()};
    while (heard.tid == 0)
        continue;
    look_at(&heard, cpus_next(&allowed, first + 1), first);
    (void)kill(heard.tid, SIGKILL);
    (void)waitpid(heard.tid, NULL, 0);
}
