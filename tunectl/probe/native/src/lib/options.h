/* The command line of an experiment: a table, one row for each option. */
#ifndef TUNECTL_LIB_OPTIONS_H
#define TUNECTL_LIB_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* What an option's value is, and so the type of the field it is stored in. */
enum option_kind {
    OPTION_FLAG,            /* no value; bool */
    OPTION_TEXT,            /* const char *, which points into argv */
    OPTION_NUMBER,          /* a whole number from `from` to `to`; any integer of 4 or 8 bytes */
    OPTION_PARSED,          /* by `parse` */
};

struct option_row {
    const char *name;       /* "duration", typed as --duration */
    enum option_kind kind;
    size_t offset;          /* of the field in the options' struct */
    size_t size;
    uint64_t from;
    uint64_t to;
    /* Stores the value of option `name` ("--duration") in `options`. Returns EXIT_OK, or EXIT_USAGE with the reason on stderr. */
    int (*parse)(void *options, const char *name, const char *text);
};

#define OPTION_FIELD(type, field) offsetof(type, field), sizeof(((type *)0)->field)
#define OPTION_ROW_FLAG(name, type, field) {name, OPTION_FLAG, OPTION_FIELD(type, field), 0, 0, NULL}
#define OPTION_ROW_TEXT(name, type, field) {name, OPTION_TEXT, OPTION_FIELD(type, field), 0, 0, NULL}
#define OPTION_ROW_NUMBER(name, type, field, from, to) {name, OPTION_NUMBER, OPTION_FIELD(type, field), from, to, NULL}
#define OPTION_ROW_PARSED(name, parse) {name, OPTION_PARSED, 0, 0, 0, 0, parse}

/* An experiment as the command line knows it. */
struct command {
    const char *name;       /* "jitter" */
    const char *synopsis;   /* its lines of the program's own --help, */
    const char *help;       /* and its paragraph there; empty where the experiment's --help has it */
    const char *usage;      /* what its --help prints; NULL: synopsis and help */
    const char *hint;       /* for errors: where its options are explained, "--help" */
    const struct option_row *rows;
    size_t rows_n;
};

/* Limits that several experiments share. */
#define THRESHOLD_MOST_NS UINT64_C(1000000000000)
#define FIFO_PRIORITY_MOST 99

enum { OPTIONS_ARE_OVER = -1 };

/*
 * Stores what follows `tunectl-probe NAME` in `options`, a struct whose fields have their defaults. Returns EXIT_OK; EXIT_USAGE
 * with the reason on stderr; or OPTIONS_ARE_OVER when help or the version was printed and nothing is left to do.
 */
int options_parse(const struct command *command, void *options, int argc, char **argv);

/* Prints texts, the last of them NULL, on standard output. Returns OPTIONS_ARE_OVER, or EXIT_FAILED with the reason on stderr. */
int options_print(const char *const *texts);

/* Ends the help of the program and of each experiment. */
extern const char options_exit_status[];

#endif
