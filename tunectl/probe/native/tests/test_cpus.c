#include "check.h"
#include "lib/host.h"

#include <errno.h>

static void reads_as(const char *text, const unsigned *ids, size_t n)
{
    struct cpus list;
    CHECK(cpus_parse(&list, text) == 0);
    CHECK(has_only(&list, ids, n));
}

#define READS_AS(text, ...) \
    reads_as(text, (const unsigned[]){__VA_ARGS__}, sizeof((const unsigned[]){__VA_ARGS__}) / sizeof(unsigned))

static void is_refused(const char *text)
{
    struct cpus list;
    CHECK(cpus_parse(&list, text) != 0);
}

static void reads_a_long_list(void)
{
    struct cpus list;
    CHECK(cpus_parse(&list, "0-9999:1/2") == 0);
    CHECK(cpus_count(&list) == 5000 && cpus_have(&list, 9998) && !cpus_have(&list, 9999));
}

static void subtracts(void)
{
    struct cpus all, some;
    CHECK(cpus_parse(&all, "0-7") == 0);
    CHECK(cpus_parse(&some, "2-3,7,99") == 0);
    struct cpus left = cpus_without(&all, &some);
    struct cpus common = cpus_common(&all, &some);
    CHECK(HAS_ONLY(&left, 0, 1, 4, 5, 6));
    CHECK(HAS_ONLY(&common, 2, 3, 7));
    CHECK(cpus_next(&left, 0) == 0 && cpus_next(&left, 2) == 4 && cpus_next(&left, 7) == CPU_LIMIT);
}

void test_cpus(void)
{
    reads_as("", NULL, 0);
    reads_as("  \n", NULL, 0);
    reads_as("      (null)\n", NULL, 0);
    READS_AS("3", 3);
    READS_AS("2-5,8\n", 2, 3, 4, 5, 8);
    READS_AS("8, 2-5 ,3", 2, 3, 4, 5, 8);
    READS_AS("0-31:2/8", 0, 1, 8, 9, 16, 17, 24, 25);
    READS_AS("1023-1026,8191", 1023, 1024, 1025, 1026, 8191);
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
    reads_a_long_list();
    subtracts();
}
