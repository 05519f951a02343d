#include "check.h"

unsigned checks_done;
unsigned checks_failed;

int main(void)
{
    test_histogram();
    test_recorder();
    test_loop();
    test_cpus();
    test_clock();
    test_json();
    test_facts();
    test_transport();
    test_exchange();
    test_wake_case();
    test_series();
    test_sentinel();
    test_threshold();
    test_housekeeping();
    test_tasks();
    test_claims();
    test_websocket();
    test_feed();
    test_hedge();
    test_pair();
    (void)printf("%u checks, %u failed\n", checks_done, checks_failed);
    return checks_failed != 0;
}
