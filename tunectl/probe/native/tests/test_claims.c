#include <sched.h>
#include <signal.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "check.h"
#include "lib/claims.h"

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
    struct cpu_list cpus = {&mine, 1};
    struct cpu_list none = {NULL, 0};
    struct host_facts facts = {.root = "/nonexistent"};
    put(heard->tid, mine, others);
    struct claims *claims = claims_new(&cpus, &none, &facts);
    CHECK(claims);
    put(heard->tid, others, others);
    claims_look(claims, hear_one, heard);
    CHECK(heard->times == 0);
    put(heard->tid, mine, mine);
    claims_look(claims, hear_one, heard);
    CHECK(heard->times == 1);
    claims_free(claims);
}

void test_claims(void)
{
    struct cpu_list allowed;
    if (host_allowed_cpus(&allowed))
        return;
    if (allowed.n > 1) {
        struct heard heard = {.tid = fork()};
        while (heard.tid == 0)
            continue;
        look_at(&heard, allowed.ids[1], allowed.ids[0]);
        (void)kill(heard.tid, SIGKILL);
        (void)waitpid(heard.tid, NULL, 0);
    }
    cpu_list_deinit(&allowed);
}
