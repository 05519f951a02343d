/* When the measuring ends: a deadline that SIGINT, SIGTERM and SIGHUP bring forward to now. */
#ifndef TUNECTL_LIB_STOP_H
#define TUNECTL_LIB_STOP_H

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

#endif
