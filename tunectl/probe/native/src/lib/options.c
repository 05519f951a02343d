#include "lib/options.h"

#include <ctype.h>
#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/output.h"

enum { ROWS_MOST = 24, FIRST_ROW = 256, HELP = 512, VERSION = 513, NAME_MOST = 32 };

const char options_exit_status[] = "\nExit status: 0 done, 1 failed, 2 wrong usage.\n";

int options_print(const char *const *texts)
{
    for (; *texts; texts++)
        (void)fputs(*texts, stdout);
    if (fflush(stdout) || ferror(stdout))
        return print_error(EXIT_FAILED, "cannot write standard output: %s", strerror(errno));
    return OPTIONS_ARE_OVER;
}

static int print_usage(const struct command *command)
{
    if (command->usage)
        return options_print((const char *[]){command->usage, NULL});
    return options_print((const char *[]){command->synopsis, "\n", command->help, options_exit_status, NULL});
}

static int parse_number(const char *name, const char *text, uint64_t from, uint64_t to, uint64_t *value)
{
    char *end = NULL;
    errno = 0;
    unsigned long long v = isdigit((unsigned char)text[0]) ? strtoull(text, &end, 10) : 0;
    if (!end || *end || errno || v < from || v > to)
        return print_error(EXIT_USAGE, "%s %s: expected a whole number from %llu to %llu", name, text,
                           (unsigned long long)from, (unsigned long long)to);
    *value = v;
    return EXIT_OK;
}

static int store_number(void *field, size_t size, const struct option_row *row, const char *name, const char *text)
{
    uint64_t value = 0;
    int status = parse_number(name, text, row->from, row->to, &value);
    uint32_t narrow = (uint32_t)value;
    if (!status)
        memcpy(field, size == sizeof(narrow) ? (const void *)&narrow : (const void *)&value, size);
    return status;
}

static int store(const struct option_row *row, void *options, const char *text)
{
    char name[NAME_MOST + 2];
    void *field = (char *)options + row->offset;
    (void)snprintf(name, sizeof(name), "--%s", row->name);
    switch (row->kind) {
    case OPTION_FLAG:
        *(bool *)field = true;
        return EXIT_OK;
    case OPTION_TEXT:
        *(const char **)field = text;
        return EXIT_OK;
    case OPTION_NUMBER:
        return store_number(field, row->size, row, name, text);
    default:
        return row->parse(options, name, text);
    }
}

/* The table in the form getopt_long takes; the value it returns for a row is FIRST_ROW and the row's index. */
static void fill_long_options(struct option *list, const struct command *command)
{
    size_t n = 0;
    for (; n < command->rows_n && n < ROWS_MOST; n++) {
        const struct option_row *row = &command->rows[n];
        list[n] = (struct option){row->name, row->kind == OPTION_FLAG ? no_argument : required_argument, NULL, FIRST_ROW + (int)n};
    }
    list[n++] = (struct option){"help", no_argument, NULL, HELP};
    list[n++] = (struct option){"version", no_argument, NULL, VERSION};
    list[n] = (struct option){0};
}

int options_parse(const struct command *command, void *options, int argc, char **argv)
{
    struct option list[ROWS_MOST + 3];
    int status = EXIT_OK;
    fill_long_options(list, command);
    optind = 2;
    opterr = 0;
    while (!status) {
        int before = optind;
        int option = getopt_long(argc, argv, "+:h", list, NULL);
        if (option == -1)
            break;
        if (option == HELP || option == 'h')
            return print_usage(command);
        if (option == VERSION)
            return options_print((const char *[]){"tunectl-probe " TUNECTL_VERSION "\n", NULL});
        if (option == ':')
            return print_error(EXIT_USAGE, "%s needs a value (see %s)", argv[before], command->hint);
        if (option == '?')
            return print_error(EXIT_USAGE, "%s is no option here (see %s)", argv[before], command->hint);
        status = store(&command->rows[option - FIRST_ROW], options, optarg);
    }
    if (!status && optind < argc)
        return print_error(EXIT_USAGE, "%s is one argument too many (see %s)", argv[optind], command->hint);
    return status;
}
