#include <string.h>

#include "check.h"
#include "lib/tasks.h"

/* proc(5): state 3, flags 9, processor 39, rt_priority 40, policy 41. */
static const char line[] = "77 (a) (b) R 1 77 77 0 -1 2097216 0 0 0 0 1 2 0 0 20 0 1 0 100 0 0 18446744073709551615 0 0 0 0 0 0 0 0 0"
                           " 0 0 0 17 3 50 1 0 0 0\n";

void test_tasks(void)
{
    struct task task;
    char text[TASK_TEXT_SIZE];
    CHECK(task_parse(&task, line));
    CHECK(task.tid == 77 && task.state == 'R' && task.cpu == 3 && task.rt_priority == 50 && task.policy == 1);
    CHECK(strcmp(task.name, "a) (b") == 0);
    CHECK(task_is_kernel(&task));
    CHECK(strcmp(task_format(&task, text), "a) (b (tid 77, SCHED_FIFO 50)") == 0);
    CHECK(task_parse(&task, "5 (x\033[2J\n) S 1 1 1 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 1 0 0 1 0 0 0 0 0 0 0 0 0 0 0 0 17 0 0 0 0 0 0"));
    CHECK(strcmp(task_format(&task, text), "x?[2J? (tid 5)") == 0);
    CHECK(!task_is_kernel(&task));
    CHECK(!task_parse(&task, ""));
    CHECK(!task_parse(&task, "77 (cut) R 1 77"));
    CHECK(!task_parse(&task, ")("));
}
