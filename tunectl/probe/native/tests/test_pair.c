#include "check.h"
#include "lib/pair.h"

#include <stdio.h>
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

void test_pair(void)
{
    without_a_word_the_last_isolated_cpus_are_taken();
    else_the_last_allowed_cpus_are_taken();
    the_cpus_that_are_named_are_taken_in_their_order();
}
