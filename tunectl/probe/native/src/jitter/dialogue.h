/*
 * With --wait-for-go: whoever started the program may prepare something between the start of its threads and the measuring,
 * such as a trace of the kernel. Lines on standard error, and answers on standard input:
 *
 *     ready 700 2:701 3:702    the main thread, and of each CPU the thread that will measure there
 *     fault                    (asked) measure a page fault
 *     fault 1234               the median of 501, in ticks of the counter, on the CPU of the main thread, caches warm
 *     go                       (asked) measure
 *     until 3 123 456          a gap of that length (--until) ended the run: on CPU 3, with its first and last stamp
 *     done                     measured
 */
#ifndef TUNECTL_JITTER_DIALOGUE_H
#define TUNECTL_JITTER_DIALOGUE_H

#include "jitter/run.h"

/* Once the workers stand ready. Returns the exit status, not 0 where standard input ended before "go"; the reason is on stderr. */
int dialogue_await_go(const struct jitter_run *run);
void dialogue_say_done(void);

/* With or without --wait-for-go. */
void dialogue_say_until(const struct worker *reached);

#endif
