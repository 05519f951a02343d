#include "check.h"
#include "lib/cpus.h"

#include <errno.h>
#include <string.h>

static void reads_as(const char *text, const char *formatted)
{
    struct cpus list;
    char out[256];
    int rc = cpus_parse(&list, text);
    CHECK(rc == 0);
    if (rc == 0 && strcmp(cpus_format(&list, out, sizeof(out)), formatted) != 0) {
        (void)fprintf(stderr, "\"%s\" reads as \"%s\", not \"%s\"\n", text, out, formatted);
        CHECK(false);
    }
}

static void is_refused(const char *text)
{
    struct cpus list;
    CHECK(cpus_parse(&list, text) != 0);
}

static void cuts_a_long_list(void)
{
    struct cpus list;
    char out[16];
    CHECK(cpus_parse(&list, "0-9999:1/2") == 0);
    CHECK(cpus_count(&list) == 5000);
    cpus_format(&list, out, sizeof(out));
    CHECK(strlen(out) < sizeof(out));
    CHECK(strcmp(out + strlen(out) - 4, ",...") == 0);
}

static void subtracts(void)
{
    struct cpus all, some;
    char out[64];
    CHECK(cpus_parse(&all, "0-7") == 0);
    CHECK(cpus_parse(&some, "2-3,7,99") == 0);
    struct cpus left = cpus_without(&all, &some);
    struct cpus common = cpus_common(&all, &some);
    CHECK(strcmp(cpus_format(&left, out, sizeof(out)), "0-1,4-6") == 0);
    CHECK(cpus_have(&left, 6) && !cpus_have(&left, 7));
    CHECK(strcmp(cpus_format(&common, out, sizeof(out)), "2-3,7") == 0);
    CHECK(cpus_next(&left, 0) == 0 && cpus_next(&left, 2) == 4 && cpus_next(&left, 7) == CPU_LIMIT);
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
