#include "check.h"
#include "lib/clock.h"
#include "lib/pair.h"
#include "wake/run.h"

#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <string.h>
#include <unistd.h>

enum { ENDS_OF_THREE = 3 };

static const struct pair_roles three = {ENDS_OF_THREE, {"client", "a", "b"}, "three"};

/* The CPUs that are taken on a host, "2,3"; the message is thrown away where none are. */
static int chosen(char *taken, size_t size, const struct pair_roles *roles, const char *cpus, struct host_facts facts)
{
    const struct pair_experiment experiment = {.roles = roles};
    const struct options options = {.cpus = cpus, .intrude = true};
    struct pair pair = {.experiment = &experiment, .options = &options, .facts = facts};
    int errors = dup(STDERR_FILENO);
    CHECK(freopen("/dev/null", "w", stderr) != NULL);
    int status = pair_choose(&pair);
    CHECK(fflush(stderr) == 0 && dup2(errors, STDERR_FILENO) >= 0 && close(errors) == 0);
    taken[0] = '\0';
    for (size_t i = 0; i < roles->n; i++) {
        (void)snprintf(taken + strlen(taken), size - strlen(taken), "%s%u", i ? "," : "", pair.ends[i].cpu);
        CHECK(status || cpus_have(&pair.cpus, pair.ends[i].cpu));
    }
    return status;
}

static struct cpus of(const char *text)
{
    struct cpus cpus;
    CHECK(cpus_parse(&cpus, text) == 0);
    return cpus;
}

static void takes(const char *expected, const struct pair_roles *roles, const char *cpus, struct host_facts facts)
{
    char taken[64];
    CHECK(chosen(taken, sizeof(taken), roles, cpus, facts) == EXIT_OK);
    CHECK(strcmp(taken, expected) == 0);
}

static void without_a_word_the_last_isolated_cpus_are_taken(void)
{
    static const struct {
        const char *isolated;
        const char *two;
        const char *three;
    } hosts[] = {
        {"2-5", "4,5", "3,4,5"}, {"1,6", "1,6", "1,1,6"}, {"3", "3,3", "3,3,3"}, {"0-2", "1,2", "0,1,2"}, {"0,4,7", "4,7", "0,4,7"},
    };
    for (size_t i = 0; i < sizeof(hosts) / sizeof(*hosts); i++) {
        struct host_facts facts = {.root = "", .online = of("0-7"), .isolated = of(hosts[i].isolated)};
        takes(hosts[i].two, &pair_sender_and_receiver, NULL, facts);
        takes(hosts[i].three, &three, NULL, facts);
    }
}

/* Those of this process, where none is isolated. */
static void else_the_last_allowed_cpus_are_taken(void)
{
    char expected[64];
    unsigned last = 0, before = 0;
    struct cpus allowed = cpus_allowed(0);
    before = last = cpus_next(&allowed, 0);
    for (unsigned cpu = cpus_next(&allowed, last + 1); cpu < CPU_LIMIT; cpu = cpus_next(&allowed, cpu + 1)) {
        before = last;
        last = cpu;
    }
    (void)snprintf(expected, sizeof(expected), "%u,%u", before, last);
    takes(expected, &pair_sender_and_receiver, NULL, (struct host_facts){.root = "", .online = allowed});
}

static void the_cpus_that_are_named_are_taken_in_their_order(void)
{
    struct host_facts facts = {.root = "", .online = of("0-7"), .isolated = of("2-5")};
    char taken[64];
    takes("7,0", &pair_sender_and_receiver, "7,0", facts);
    takes("3,3", &pair_sender_and_receiver, "3,3", facts);
    takes("7,0,3", &three, "7,0,3", facts);
    facts.online = of("0-6");
    CHECK(chosen(taken, sizeof(taken), &pair_sender_and_receiver, "0,7", facts) == EXIT_USAGE);
    CHECK(chosen(taken, sizeof(taken), &pair_sender_and_receiver, "7,0", facts) == EXIT_USAGE);
    static const char *const wrong[] = {"", "3", "3,", "3,4,5", "3;4", "a,b", "3,4x", "3-4", "3,,4"};
    for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++)
        CHECK(chosen(taken, sizeof(taken), &pair_sender_and_receiver, wrong[i], facts) == EXIT_USAGE);
    CHECK(chosen(taken, sizeof(taken), &three, "3,4", facts) == EXIT_USAGE);
}

static atomic_uint prepared[ENDS_OF_THREE], worked[ENDS_OF_THREE], strays;
static struct pair running;

static void prepare_end(unsigned side)
{
    prepared[side]++;
}

static void work_end(unsigned side)
{
    worked[side]++;
    strays += (unsigned)sched_getcpu() != running.ends[side].cpu || prctl(PR_GET_TIMERSLACK) != 1;
}

static void prepare_0(void *context) { (void)context; prepare_end(0); }
static void prepare_1(void *context) { (void)context; prepare_end(1); }
static void prepare_2(void *context) { (void)context; prepare_end(2); }
static void work_0(void *context) { (void)context; work_end(0); }
static void work_1(void *context) { (void)context; work_end(1); }
static void work_2(void *context) { (void)context; work_end(2); }

/* For ever: it ends with the process. */
static void never_end(void *context)
{
    (void)context;
    for (;;)
        (void)pause();
}

static int no_patience(const void *context)
{
    (void)context;
    return 0;
}

/* All threads on these CPUs, to their end; `last` is what the last of them does. */
static bool runs(const struct pair_roles *roles, const unsigned *on, pair_step last, int (*patience_ms)(const void *context))
{
    static const struct options options = {.intrude = true};
    static struct pair_experiment experiment;
    experiment = (struct pair_experiment){.command = &wake_command, .roles = roles, .prepare = {prepare_0, prepare_1, prepare_2},
                                          .work = {work_0, work_1, work_2}};
    experiment.work[roles->n - 1] = last;
    struct clock_span span;
    clock_span_begin(&span);
    running = (struct pair){.experiment = &experiment, .options = &options, .ticks_per_ns = span.initial.hz / 1e9};
    for (size_t i = 0; i < roles->n; i++) {
        running.ends[i].cpu = on[i];
        prepared[i] = worked[i] = 0;
    }
    strays = 0;
    CHECK(pair_start(&running) == EXIT_OK);
    for (size_t i = 0; i < roles->n; i++)
        CHECK(prepared[i] == 1 && worked[i] == 0 && running.ends[i].tid != 0 && running.ends[i].side == i);
    CHECK(running.timer_slack_ns == 1 && running.ends[0].tid != running.ends[1].tid);
    bool is_over = pair_work(&running, patience_ms);
    pair_end(&running, is_over);
    return is_over;
}

static void each_thread_prepares_and_works_once_on_its_cpu(void)
{
    struct cpus allowed = cpus_allowed(0);
    unsigned first = cpus_next(&allowed, 0);
    unsigned second = cpus_next(&allowed, first + 1);
    CHECK(runs(&pair_sender_and_receiver, (unsigned[]){first, first}, work_1, NULL));
    CHECK(worked[0] == 1 && worked[1] == 1 && strays == 0 && !running.offset.is_known);
    CHECK(runs(&three, (unsigned[]){first, first, first}, work_2, NULL));
    CHECK(worked[0] == 1 && worked[1] == 1 && worked[2] == 1 && strays == 0 && !running.offset.is_known);
    if (second == CPU_LIMIT)
        return;
    /* Between two CPUs a stamp takes its time, there and back. */
    CHECK(runs(&pair_sender_and_receiver, (unsigned[]){first, second}, work_1, NULL));
    CHECK(worked[0] == 1 && worked[1] == 1 && strays == 0);
    CHECK(!running.offset.is_known || running.offset.least_ticks < running.offset.most_ticks);
    CHECK(runs(&three, (unsigned[]){second, first, second}, work_2, NULL) && strays == 0 && !running.offset.is_known);
}

static void one_that_does_not_end_is_left(void)
{
    struct cpus allowed = cpus_allowed(0);
    unsigned cpu = cpus_next(&allowed, 0);
    CHECK(!runs(&pair_sender_and_receiver, (unsigned[]){cpu, cpu}, never_end, no_patience));
    CHECK(worked[0] == 1);
}

static void a_reason_names_the_error(void)
{
    struct pair pair = {.reason = ""};
    pair_cannot(&pair, "open it", -ENOENT);
    CHECK(strcmp(pair.reason, "cannot open it: No such file or directory") == 0);
    pair_cannot(&pair, "open it", -EMFILE);
    CHECK(strcmp(pair.reason, "cannot open it: Too many open files (ulimit -n)") == 0);
}

void test_pair(void)
{
    each_thread_prepares_and_works_once_on_its_cpu();
    one_that_does_not_end_is_left();
    a_reason_names_the_error();
    without_a_word_the_last_isolated_cpus_are_taken();
    else_the_last_allowed_cpus_are_taken();
    the_cpus_that_are_named_are_taken_in_their_order();
}
