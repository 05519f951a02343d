/* The whole test harness: CHECK reports and counts, run_* are called from main. */
#ifndef TUNECTL_CHECK_H
#define TUNECTL_CHECK_H

#include <stdio.h>

#include "lib/host.h"
#include "hedge/random.h"

extern unsigned checks_done;
extern unsigned checks_failed;

#define CHECK(condition)                                                          \
    do {                                                                          \
        checks_done++;                                                            \
        if (!(condition)) {                                                       \
            checks_failed++;                                                      \
            (void)fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #condition); \
        }                                                                         \
    } while (0)

void test_histogram(void);
void test_recorder(void);
void test_loop(void);
void test_cpus(void);
void test_clock(void);
void test_json(void);
void test_facts(void);
void test_transport(void);
void test_exchange(void);
void test_wake_case(void);
void test_series(void);
void test_sentinel(void);
void test_threshold(void);
void test_housekeeping(void);
void test_tasks(void);
void test_claims(void);
void test_websocket(void);
void test_feed(void);
void test_hedge(void);
void test_pair(void);

/* Are the CPUs of the set these, and no others? */
#define HAS_ONLY(set, ...) \
    has_only(set, (const unsigned[]){__VA_ARGS__}, sizeof((const unsigned[]){__VA_ARGS__}) / sizeof(unsigned))

static inline bool has_only(const struct cpus *set, const unsigned *ids, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (!cpus_have(set, ids[i]))
            return false;
    return cpus_count(set) == n;
}

#endif
