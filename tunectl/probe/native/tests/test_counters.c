#include "check.h"
#include "jitter/counters.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static struct cpu_list cpus_of(const char *text)
{
    struct cpu_list list;
    CHECK(cpu_list_parse(&list, text) == 0);
    return list;
}

static int parse(struct counter_table *t, const char *text, const struct cpu_list *cpus)
{
    return counter_table_parse(t, text, strlen(text), cpus);
}

static bool is_text(struct span s, const char *text)
{
    return s.length == strlen(text) && memcmp(s.at, text, s.length) == 0;
}

static const char interrupts[] =
    "            CPU0       CPU2       CPU3       \n"
    "   8:          0          1          2  IR-IO-APIC    8-edge      rtc0\n"
    " 133:    4294967290         22         33  IR-PCI-MSIX-0000:00:1f.0    0-edge      nvme0q\"1\\\n"
    " LOC:        100        200        300   Local timer interrupts\n"
    " ERR:          7\n"
    " MIS:          0\n"
    "IPI0:          4          5          6       Rescheduling interrupts\n"
    "\n"
    "garbage\n"
    " bad:          1          x          3   Not a count\n";

static void reads_interrupts_with_an_offline_cpu(void)
{
    struct cpu_list cpus = cpus_of("1-3");
    struct counter_table t;
    CHECK(parse(&t, interrupts, &cpus) == 0);
    CHECK(t.n_rows == 4 && t.n_cpus == 3);
    CHECK(is_text(t.rows[0].key, "8") && is_text(t.rows[0].description, "IR-IO-APIC    8-edge      rtc0"));
    CHECK(is_text(t.rows[1].key, "133"));
    CHECK(is_text(t.rows[2].key, "LOC") && is_text(t.rows[2].description, "Local timer interrupts"));
    CHECK(is_text(t.rows[3].key, "IPI0"));
    /* CPU 1 is offline and has no column; CPU 2 is the second column, not the third */
    CHECK(t.counts[2 * 3 + 0] == 0 && t.counts[2 * 3 + 1] == 200 && t.counts[2 * 3 + 2] == 300);
    counter_table_deinit(&t);
    cpu_list_deinit(&cpus);
}

static void moves_between_tables(void)
{
    static const char then_text[] = " CPU0\n 5: 4294967290 x\n 6: 10 y\n 9: 100 z\n";
    static const char now_text[] = " CPU0\n 5: 4 x\n 6: 12 y\n 7: 3 new\n 9: 2 z\n";
    struct cpu_list cpus = cpus_of("0");
    struct counter_table then, now;
    CHECK(parse(&then, then_text, &cpus) == 0 && parse(&now, now_text, &cpus) == 0);
    CHECK(counter_delta(&then, &now, 0, 0) == 10);  /* wrapped at 2^32 */
    CHECK(counter_delta(&then, &now, 1, 0) == 2);
    CHECK(counter_delta(&then, &now, 2, 0) == 3);   /* new */
    CHECK(counter_delta(&then, &now, 3, 0) == 2);   /* freed and requested again */
    counter_table_deinit(&then);
    CHECK(counter_delta(&then, &now, 1, 0) == 12);  /* nothing to compare with */
    counter_table_deinit(&now);
    cpu_list_deinit(&cpus);
}

static void reads_more_than_a_thousand_cpus(void)
{
    enum { CPUS = 4096, SIZE = CPUS * 40 };
    char *text = malloc(SIZE);
    size_t used = 0;
    CHECK(text != NULL);
    for (unsigned i = 0; i < CPUS; i++)
        used += (size_t)snprintf(text + used, SIZE - used, " CPU%u", i * 2);
    used += (size_t)snprintf(text + used, SIZE - used, "\nTIMER:");
    for (unsigned i = 0; i < CPUS; i++)
        used += (size_t)snprintf(text + used, SIZE - used, " %u", i);
    struct cpu_list cpus = cpus_of("2000,8190,8191");
    struct counter_table t;
    CHECK(counter_table_parse(&t, text, used, &cpus) == 0);
    CHECK(t.n_rows == 1 && t.counts[0] == 1000 && t.counts[1] == 4095 && t.counts[2] == 0);
    counter_table_deinit(&t);
    cpu_list_deinit(&cpus);
    free(text);
}

static void refuses_what_has_no_header(void)
{
    struct cpu_list cpus = cpus_of("0");
    struct counter_table t;
    CHECK(parse(&t, "", &cpus) == -EINVAL);
    CHECK(parse(&t, "\n", &cpus) == -EINVAL);
    CHECK(parse(&t, "no header\n 1: 2\n", &cpus) == -EINVAL);
    CHECK(parse(&t, "CPU\n", &cpus) == -EINVAL);
    CHECK(counter_table_parse(&t, NULL, 0, &cpus) == -EINVAL);
    cpu_list_deinit(&cpus);
}

static const char stat_text[] =
    "cpu  10 20 30 40 50 60 70 80 90 100\n"
    "cpu1 1 2 3 4 5 6 7 8 9 10\n"
    "cpu11 11 0 0 5\n"
    "intr 5 1 2 3\n"
    "ctxt 99\n";

static void reads_cpu_times(void)
{
    struct cpu_times t;
    CHECK(cpu_times_parse(&t, stat_text, strlen(stat_text), 1));
    CHECK(t.busy == 1 + 2 + 3 + 6 + 7 + 8 && t.idle == 9 && t.steal == 8);
    CHECK(cpu_times_parse(&t, stat_text, strlen(stat_text), 11));
    CHECK(t.busy == 11 && t.idle == 5 && t.steal == 0);
    CHECK(!cpu_times_parse(&t, stat_text, strlen(stat_text), 0));
    CHECK(!cpu_times_parse(&t, NULL, 0, 0));
}

/* Any bytes, exactly sized so that the address sanitizer sees a step beyond them. */
static void survives_mangled_text(void)
{
    struct cpu_list cpus = cpus_of("0-3");
    uint64_t state = 99;
    for (int round = 0; round < 3000; round++) {
        size_t size = sizeof(interrupts) - 1;
        size_t length = random_next(&state) % (size + 1);
        char *text = malloc(length + 1);
        CHECK(text != NULL);
        memcpy(text, interrupts, length);
        for (unsigned hits = (unsigned)(random_next(&state) % 8); length && hits; hits--)
            text[random_next(&state) % length] = (char)random_next(&state);
        char *exact = realloc(text, length ? length : 1);
        struct counter_table t;
        if (counter_table_parse(&t, exact, length, &cpus) == 0)
            for (size_t row = 0; row < t.n_rows; row++)
                CHECK(counter_delta(&t, &t, row, 0) <= UINT64_MAX);
        counter_table_deinit(&t);
        struct cpu_times times;
        (void)cpu_times_parse(&times, exact, length, 1);
        free(exact);
    }
    cpu_list_deinit(&cpus);
}

static void finds_the_timer(void)
{
    static char arm[] = " CPU0\n 11: 40 GICv3 27 Level arch_timer\n 12: 5 GICv3 28 Level other\n";
    static char x86[] = " CPU0\n LOC: 9 Local timer interrupts\n RES: 1 Rescheduling interrupts\n";
    struct cpu_list cpus = cpus_of("0");
    struct counters c = {0};
    CHECK(parse(&c.irq_after, arm, &cpus) == 0);
    CHECK(counters_timer_interrupts(&c, 0) == 40);
    counter_table_deinit(&c.irq_after);
    CHECK(parse(&c.irq_after, x86, &cpus) == 0);
    CHECK(counters_timer_interrupts(&c, 0) == 9);
    counter_table_deinit(&c.irq_after);
    cpu_list_deinit(&cpus);
}

void test_counters(void)
{
    reads_interrupts_with_an_offline_cpu();
    moves_between_tables();
    reads_more_than_a_thousand_cpus();
    refuses_what_has_no_header();
    reads_cpu_times();
    survives_mangled_text();
    finds_the_timer();
}
