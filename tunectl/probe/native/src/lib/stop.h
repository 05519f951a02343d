/*
 * When the measuring ends: a deadline that SIGINT, SIGTERM and SIGHUP bring forward to now. And a probe ends with the program
 * that started it: nothing of ours stays behind on a CPU that somebody trades on.
 */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

/*
 * Installs the handlers and blocks the signals in the calling thread, which must be the only one yet. Threads that measure
 * call stop_listen: they take the signals themselves, because under SCHED_FIFO on a shared CPU no other thread would run.
 */
void stop_init(void);
void stop_listen(void);

/* Sets the deadline, in ticks, unless a signal came first. */
void stop_at(uint64_t deadline);

/* As a signal does. */
void stop_now(void);

/* Is the run ended before its deadline? */
bool stop_is_asked(void);

/* For loop_run. Before stop_at it lies in the endless future. */
const _Atomic uint64_t *stop_deadline(void);

/*
 * The parent's process id, where the starter gives it: a starter that dies before parent_follow is then noticed, too. Without
 * it, a program that ignores SIGHUP (nohup) is meant to outlive whoever started it.
 */
#define PARENT_VARIABLE "TUNECTL_PROBE_PARENT"

/* From now on SIGTERM comes when the parent ends. Once, before any thread is started. False where the parent has ended already. */
bool parent_follow(void);

/* Has the parent ended since? Never true where nobody is followed. */
bool parent_is_gone(void);
