#include <sched.h>
#include <signal.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "check.h"
#include "lib/clock.h"
#include "lib/tasks.h"

/* Others of this machine may want a CPU more, and are handed over then. */
struct heard {
    pid_t tid;
    unsigned times;     /* this thread */
    unsigned any;       /* anybody */
};

static void hear(const struct task *task, void *context)
{
    struct heard *heard = context;
    heard->times += task->tid == heard->tid;
    heard->any++;
}

static void end(pid_t pid)
{
    (void)kill(pid, SIGKILL);
    (void)waitpid(pid, NULL, 0);
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

/*
 * A thread that may run on a measured CPU, and on another one that nobody measures: it wants the first only where it runs there, and
 * not with what it ran for elsewhere.
 */
static void look_at(struct heard *heard, unsigned mine, unsigned others)
{
    struct cpus cpus = {0};
    struct cpus none = {0};
    struct host_facts facts = {.root = "/nonexistent"};
    cpus_add(&cpus, mine);
    put(heard->tid, mine, others);
    struct claims *claims = claims_new(&cpus, &none, 0, &facts, hear, heard);
    CHECK(claims);
    put(heard->tid, others, others);
    claims_look(claims);
    put(heard->tid, mine, mine);
    claims_look(claims);
    CHECK(heard->times == 0);
    heard->any = 0;
    put(heard->tid, mine, mine);
    claims_look(claims);
    CHECK(heard->any == 1);
    claims_free(claims);
}

static uint64_t ran_until(uint64_t at_ns, uint64_t turn_ns, uint64_t every_ns)
{
    uint64_t into_ns = at_ns % every_ns;
    return at_ns / every_ns * turn_ns + (into_ns < turn_ns ? into_ns : turn_ns);
}

/* A turn of `turn_ns` every `every_ns`, seen by looks `look_ns` apart, the first of them at `phase_ns`: does it go beyond the share? */
static bool is_wanted(uint64_t turn_ns, uint64_t every_ns, uint64_t look_ns, uint64_t phase_ns)
{
    uint64_t beyond_ns = 0;
    uint64_t seen_ns = ran_until(phase_ns, turn_ns, every_ns);
    for (uint64_t at_ns = phase_ns + look_ns; beyond_ns < CLAIMS_WANTED_NS && at_ns < 20000000000; at_ns += look_ns) {
        uint64_t until_ns = ran_until(at_ns, turn_ns, every_ns);
        beyond_ns = claims_beyond_share(beyond_ns, until_ns - seen_ns, look_ns);
        seen_ns = until_ns;
    }
    return beyond_ns >= CLAIMS_WANTED_NS;
}

/* It is the share that decides, and no look: whenever they begin, and however late they come, who keeps within it is never heard. */
static void a_short_waker_is_never_heard_and_who_wants_more_always(void)
{
    static const uint64_t ms = 1000000;
    for (uint64_t phase_ns = 0; phase_ns < 1000 * ms; phase_ns += 37 * ms) {
        for (uint64_t look_ns = ms; look_ns <= 3000 * ms; look_ns = look_ns * 3 + ms / 7) {
            CHECK(!is_wanted(ms / 4, 250 * ms, look_ns, phase_ns));
            CHECK(!is_wanted(29 * ms / 10, 1000 * ms, look_ns, phase_ns));
            CHECK(is_wanted(ms / 4, 25 * ms, look_ns, phase_ns));
        }
        CHECK(is_wanted(4 * ms, 9000 * ms, ms, phase_ns));
        CHECK(is_wanted(20000 * ms, 20000 * ms, ms, phase_ns));
    }
}

/* Half a millisecond of work three times a second. */
static _Noreturn void nap(void)
{
    struct timespec pause = {0, 300000000};
    for (;;) {
        for (uint64_t end_ns = clock_ns(CLOCK_THREAD_CPUTIME_ID) + 500000; clock_ns(CLOCK_THREAD_CPUTIME_ID) < end_ns;)
            continue;
        (void)nanosleep(&pause, NULL);
    }
}

/* Each keeps within the share, and what they want of the core together does not. */
static void many_short_ones_are_heard_together(unsigned mine)
{
    pid_t children[8];
    struct cpus cpus = {0};
    struct cpus none = {0};
    struct host_facts facts = {.root = "/nonexistent"};
    struct heard heard = {0};
    struct timespec moment = {0, 1000000};
    cpus_add(&cpus, mine);
    for (size_t i = 0; i < 8; i++) {
        children[i] = fork();
        if (!children[i])
            nap();
        put(children[i], mine, mine);
    }
    struct claims *claims = claims_new(&cpus, &none, 0, &facts, hear, &heard);
    CHECK(claims);
    for (unsigned looks = 0; looks < 20000 && !heard.any; looks++) {
        (void)nanosleep(&moment, NULL);
        claims_look(claims);
    }
    CHECK(heard.any > 0);
    claims_free(claims);
    for (size_t i = 0; i < 8; i++)
        end(children[i]);
}

void test_claims(void)
{
    struct cpus allowed = cpus_allowed(0);
    unsigned first = cpus_next(&allowed, 0);
    a_short_waker_is_never_heard_and_who_wants_more_always();
    many_short_ones_are_heard_together(first);
    if (cpus_count(&allowed) < 2)
        return;
    struct heard heard = {.tid = fork()};
    while (heard.tid == 0)
        continue;
    look_at(&heard, cpus_next(&allowed, first + 1), first);
    end(heard.tid);
}
