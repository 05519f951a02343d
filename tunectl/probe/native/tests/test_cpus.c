#include "check.h"
#include "lib/cpus.h"

#include <errno.h>
#include <string.h>

static void reads_as(const char *text, const char *formatted)
{
    struct cpu_list list;
    char out[256];
    int rc = cpu_list_parse(&list, text);
    CHECK(rc == 0);
    if (rc == 0 && strcmp(cpu_list_format(&list, out, sizeof(out)), formatted) != 0) {
        (void)fprintf(stderr, "\"%s\" reads as \"%s\", not \"%s\"\n", text, out, formatted);
        CHECK(false);
    }
    cpu_list_deinit(&list);
}

static void is_refused(const char *text)
{
    struct cpu_list list;
    CHECK(cpu_list_parse(&list, text) != 0);
    cpu_list_deinit(&list);
}

static void cuts_a_long_list(void)
{
    struct cpu_list list;
    char out[16];
    CHECK(cpu_list_parse(&list, "0-9999:1/2") == 0);
    CHECK(list.n == 5000);
    cpu_list_format(&list, out, sizeof(out));
    CHECK(strlen(out) < sizeof(out));
    CHECK(strcmp(out + strlen(out) - 4, ",...") == 0);
    cpu_list_deinit(&list);
}

static void subtracts(void)
{
    struct cpu_list all, some, left;
    char out[64];
    CHECK(cpu_list_parse(&all, "0-7") == 0);
    CHECK(cpu_list_parse(&some, "2-3,7,99") == 0);
    CHECK(cpu_list_without(&left, &all, &some) == 0);
    CHECK(strcmp(cpu_list_format(&left, out, sizeof(out)), "0-1,4-6") == 0);
    CHECK(cpu_list_has(&left, 6) && !cpu_list_has(&left, 7));
    cpu_list_deinit(&all);
    cpu_list_deinit(&some);
    cpu_list_deinit(&left);
}

void test_cpus(void)
{
    reads_as("", "");
    reads_as("  \n", "");
    reads_as("      (null)\n", "");
    reads_as("3", "3");
    reads_as("2-5,8\n", "2-5,8");
    reads_as("8, 2-5 ,3", "2-5,8");
    reads_as("0-31:2/8", "0-1,8-9,16-17,24-25");
    reads_as("1023-1026,8191", "1023-1026,8191");
    is_refused("5-2");
    is_refused("1,");
    is_refused(",1");
    is_refused("-1");
    is_refused("a");
    is_refused("1 2");
    is_refused("0-7:0/2");
    is_refused("0-7:1/0");
    is_refused("0-7:3/2");
    is_refused("0-7:1");
    is_refused("99999999999999999999");
    is_refused("65536");
    is_refused("(null)x");
    cuts_a_long_list();
    subtracts();
}
