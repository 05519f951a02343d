#include "check.h"

unsigned checks_done;
unsigned checks_failed;

int main(void)
{
    test_histogram();
    test_recorder();
    test_loop();
    test_stats();
    test_cpus();
    test_clock();
    test_counters();
    test_json();
    test_facts();
    test_transport();
    test_exchange();
    test_wake_options();
    test_series();
    test_periods();
    test_tracetext();
    test_causes();
    test_tracefs();
    test_recall();
    test_victim();
    test_sentinel();
    test_threshold();
    test_housekeeping();
    test_tasks();
    test_claims();
    (void)printf("%u checks, %u failed\n", checks_done, checks_failed);
    return checks_failed != 0;
}
