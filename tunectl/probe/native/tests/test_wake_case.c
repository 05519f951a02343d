#include "check.h"
#include "wake/run.h"

#include <string.h>

static void a_case_is_read(void)
{
    struct wake_case c;
    CHECK(wake_case_parse(&c, "tcp:minimal:0.5"));
    CHECK(strcmp(c.mechanism->name, "tcp") == 0 && strcmp(c.method->name, "minimal") == 0);
    CHECK(c.idle_ms > 0.49 && c.idle_ms < 0.51);
    CHECK(wake_case_parse(&c, "channel:block:0") && wake_case_parse(&c, "channel:block:60000"));
    CHECK(wake_case_parse(&c, "timerfd:epoll0:1") && wake_case_parse(&c, "eventloop:epoll:1"));
}

static void a_case_that_cannot_be_is_none(void)
{
    static const char *const wrong[] = {
        "", "tcp", "tcp:block", "tcp:block:", "tpc:block:1", "tcp:sleeping:1", "tcp:block:x", "tcp:block:-1", "tcp:block:nan",
        "tcp:block:60001", "tcp:block:1,", "channel:poll:1", "pipe:busy-poll:1", "clock_nanosleep:minimal:1", "timerfd:block:0",
        "eventloop:block:1", ":block:1", "a_mechanism_with_a_long_name:block:1",
    };
    struct wake_case c;
    for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++)
        CHECK(!wake_case_parse(&c, wrong[i]));
}

void test_wake_case(void)
{
    a_case_is_read();
    a_case_that_cannot_be_is_none();
}
