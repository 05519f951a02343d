/* A probe ends with the program that started it: nothing of ours stays behind on a CPU that somebody trades on. */
#ifndef TUNECTL_LIB_PARENT_H
#define TUNECTL_LIB_PARENT_H

#include <stdbool.h>

/*
 * The parent's process id, where the starter gives it: a starter that dies before parent_follow is then noticed, too. Without
 * it, a program that ignores SIGHUP (nohup) is meant to outlive whoever started it.
 */
#define PARENT_VARIABLE "TUNECTL_PROBE_PARENT"

/* From now on SIGTERM comes when the parent ends. Once, before any thread is started. False where the parent has ended already. */
bool parent_follow(void);

/* Has the parent ended since? Never true where nobody is followed. */
bool parent_is_gone(void);

#endif
