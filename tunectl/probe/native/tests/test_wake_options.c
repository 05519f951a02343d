#include "check.h"
#include "lib/output.h"
#include "wake/lines.h"
#include "wake/mechanisms.h"
#include "wake/options.h"
#include "wake/wait_method.h"

#include <string.h>
#include <unistd.h>

enum { WORDS_MOST = 8 };

/* Parses "wake" and these words, which end with NULL. */
static int parse(struct wake_options *options, const char *const *words)
{
    char *argv[WORDS_MOST + 3] = {(char[]){"tunectl-probe"}, (char[]){"wake"}};
    char copies[WORDS_MOST][64];
    int argc = 2;
    for (size_t i = 0; words[i]; i++) {
        (void)strncpy(copies[i], words[i], sizeof(copies[i]) - 1);
        copies[i][sizeof(copies[i]) - 1] = '\0';
        argv[argc++] = copies[i];
    }
    return wake_options_parse(options, argc, argv);
}

static void defaults(void)
{
    struct wake_options o;
    CHECK(parse(&o, (const char *[]){NULL}) == EXIT_OK);
    CHECK(o.messages == 99 && o.idles == 4 && o.idle_ms[0] < 1e-9 && o.busy_poll_us == 50 && o.fifo_priority == 0);
    CHECK(o.mechanisms == (1U << mechanisms_n) - 1 && o.wait_methods == (1U << wait_methods_n) - 1);
}

static void lists(void)
{
    struct wake_options o;
    CHECK(parse(&o, (const char *[]){"--mechanisms", "udp,channel", "--waiting", "sleeping,minimal", NULL}) == EXIT_OK);
    CHECK(__builtin_popcount(o.mechanisms) == 2 && __builtin_popcount(o.wait_methods) == 4);
    CHECK(parse(&o, (const char *[]){"--idle-ms", "0.5,7", NULL}) == EXIT_OK);
    CHECK(o.idles == 2 && o.idle_ms[0] > 0.49 && o.idle_ms[0] < 0.51 && o.idle_ms[1] > 6.9);
    CHECK(parse(&o, (const char *[]){"--connect", "10.0.0.2:7000", NULL}) == EXIT_OK);
    for (size_t i = 0; i < mechanisms_n; i++)
        CHECK((o.mechanisms >> i & 1) == (mechanisms[i].socket_type != 0));
}

/* The complaints go to standard error; a test's log need not show them. */
static void refusals(void)
{
    static const char *const wrong[][4] = {
        {"--mechanisms", "tpc"}, {"--mechanisms", ""}, {"--mechanisms", "tcp,"}, {"--waiting", "sleep"},
        {"--idle-ms", ""}, {"--idle-ms", "1,"}, {"--idle-ms", "-1"}, {"--idle-ms", "nan"}, {"--idle-ms", "60001"},
        {"--idle-ms", "1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1"}, {"--messages", "0"}, {"--messages", "10000001"},
        {"--fifo", "100"}, {"--busy-poll-us", "0"}, {"--bogus", "1"}, {"more"}, {"--cpus"},
    };
    struct wake_options o;
    int saved = dup(STDERR_FILENO);
    FILE *null = freopen("/dev/null", "w", stderr);
    int statuses[sizeof(wrong) / sizeof(*wrong)];
    for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++)
        statuses[i] = parse(&o, wrong[i]);
    CHECK(null != NULL);
    (void)fflush(stderr);
    (void)dup2(saved, STDERR_FILENO);
    (void)close(saved);
    for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++)
        CHECK(statuses[i] == EXIT_USAGE);
}

static void addresses(void)
{
    static const char *const wrong[] = {"", "7000", ":7000", "host:", "[::1:7000", "[]:7000", "1.2.3.4:x", "[::1]7000"};
    char reason[LINE_MOST];
    for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++) {
        CHECK(address_socket(wrong[i], 1, reason, sizeof(reason)) == -1);
        CHECK(strstr(reason, "expected ADDRESS:PORT") != NULL);
    }
    int fd = address_socket("127.0.0.1:0", 1, reason, sizeof(reason));
    CHECK(fd >= 0 && socket_port(fd) > 0);
    (void)close(fd);
}

static void lines_come_whole(void)
{
    int fds[2];
    char line[LINE_MOST];
    CHECK(socketpair(AF_UNIX, SOCK_STREAM, 0, fds) == 0);
    struct lines reader = {.fd = fds[0]};
    struct lines writer = {.fd = fds[1]};
    CHECK(lines_write(&writer, "one %d\ntwo", 1) == 0);
    CHECK(lines_write(&writer, "\n") == 0);
    CHECK(lines_read(&reader, line, 1000) == 0 && strcmp(line, "one 1") == 0);
    CHECK(lines_read(&reader, line, 1000) == 0 && strcmp(line, "two") == 0);
    CHECK(lines_read(&reader, line, 1) != 0);
    for (int i = 0; i < 3; i++)
        CHECK(lines_write(&writer, "%0100d", 0) == 0);
    CHECK(lines_read(&reader, line, 1000) != 0);
    (void)close(fds[1]);
    (void)close(fds[0]);
}

void test_wake_options(void)
{
    defaults();
    lists();
    refusals();
    addresses();
    lines_come_whole();
}
