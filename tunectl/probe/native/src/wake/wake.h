/* The experiment `wake`: how long until a waiting thread has a message? */
#ifndef TUNECTL_WAKE_WAKE_H
#define TUNECTL_WAKE_WAKE_H

#include "wake/run.h"

extern const struct command wake_command;

/* "tcp:block:10". False for a text that names no case that can be. */
bool wake_case_parse(struct wake_case *c, const char *text);

/* Runs and writes what it counted, or is the other host's end. Returns the exit status, or OPTIONS_ARE_OVER. */
int wake_main(int argc, char **argv);

#endif
