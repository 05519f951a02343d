#include "wake/reflector.h"

#include <arpa/inet.h>
#include <errno.h>
#include <inttypes.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

#include "lib/clock.h"
#include "lib/facts.h"
#include "lib/output.h"
#include "lib/stop.h"
#include "lib/thread.h"
#include "lib/ticks.h"
#include "wake/lines.h"
#include "wake/mechanisms.h"
#include "wake/placement.h"
#include "wake/wait_method.h"

enum { HELLO_MS = 5000, END_EVERY_MS = 10, NAME_MOST = 31 };

struct server {
    const struct wake_options *options;
    struct host_facts facts;
    struct placement placement;
    struct clock_span clock;
    int fd;
    struct lines lines;         /* of the client being served */
    struct transport transport;           /* of the case being measured */
    const struct wait_method *method;
    uint64_t token;             /* of its greeting */
    pthread_t thread;
    bool is_reflecting;
};

static int prepare_thread(const struct server *s)
{
    int rc = thread_pin(s->placement.receiver);
    return rc ? rc : thread_use_fifo(s->options->fifo_priority);
}

/* Every message goes back with two stamps; a greeting that was said twice does not. */
static void *reflect(void *argument)
{
    struct server *s = argument;
    struct message m;
    (void)prctl(PR_SET_NAME, "wake-reflector");
    if (prepare_thread(s))
        (void)print_error(EXIT_FAILED, "cannot run on CPU %u as asked: the figures are of another", s->placement.receiver);
    while (s->method->receive(&s->transport, &m) == 0) {
        if (m.sequence == s->token)
            continue;
        m.remote_received = ticks_after_loads();
        int rc;
        do {
            m.remote_sent = ticks_now();
            rc = s->transport.mechanism->send(&s->transport, &m);
        } while (rc == -EAGAIN && !s->transport.is_cut);
        if (rc)
            break;
    }
    return NULL;
}

static void end_case(struct server *s)
{
    struct timespec pause = {.tv_nsec = END_EVERY_MS * 1000000L};
    while (s->is_reflecting) {
        transport_end(&s->transport, true);
        (void)clock_nanosleep(CLOCK_MONOTONIC, 0, &pause, NULL);
        s->is_reflecting = pthread_tryjoin_np(s->thread, NULL) != 0;
    }
    transport_close(&s->transport);
}

/* A socket at the address the client came to, at any port. */
static int data_socket(const struct server *s, int type)
{
    struct sockaddr_storage own = {0};
    socklen_t length = sizeof(own);
    if (getsockname(s->lines.fd, (struct sockaddr *)&own, &length))
        return -errno;
    if (own.ss_family == AF_INET6)
        ((struct sockaddr_in6 *)&own)->sin6_port = 0;
    else
        ((struct sockaddr_in *)&own)->sin_port = 0;
    int fd = socket(own.ss_family, type | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return -errno;
    if (bind(fd, (struct sockaddr *)&own, length) || (type == SOCK_STREAM && listen(fd, 1))) {
        int rc = -errno;
        (void)close(fd);
        return rc;
    }
    return fd;
}

/* The connection that begins with the greeting. */
static int accept_stream(struct server *s, int listener)
{
    int on = 1;
    struct message hello;
    int rc = wait_readable(listener, HELLO_MS);
    int fd = rc ? rc : accept4(listener, NULL, NULL, SOCK_CLOEXEC);
    (void)close(listener);
    if (fd < 0)
        return rc ? rc : -errno;
    s->transport.receive_fd = fd;
    rc = wait_readable(fd, HELLO_MS);
    if (!rc && recv(fd, &hello, sizeof(hello), MSG_DONTWAIT) != (ssize_t)sizeof(hello))
        rc = -EPROTO;
    if (!rc && hello.sequence != s->token)
        rc = -EPROTO;
    if (!rc && setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on)))
        rc = -errno;
    return rc;
}

/* Connected to the sender of the greeting; other datagrams are passed over. */
static int accept_datagrams(struct server *s, int fd)
{
    struct message hello = {0};
    struct sockaddr_storage peer;
    socklen_t length;
    s->transport.receive_fd = fd;
    do {
        int rc = wait_readable(fd, HELLO_MS);
        if (rc)
            return rc;
        length = sizeof(peer);
        (void)recvfrom(fd, &hello, sizeof(hello), MSG_DONTWAIT, (struct sockaddr *)&peer, &length);
    } while (hello.sequence != s->token);
    return connect(fd, (struct sockaddr *)&peer, length) ? -errno : 0;
}

static int start_reflecting(struct server *s, unsigned busy_poll_us)
{
    s->transport.send_fd = dup(s->transport.receive_fd);
    int rc = s->transport.send_fd < 0 ? -errno : s->method->prepare(&s->transport, busy_poll_us);
    if (!rc)
        rc = thread_start(&s->thread, reflect, s);
    s->is_reflecting = rc == 0;
    return rc;
}

static const struct mechanism *mechanism_named(const char *name)
{
    for (size_t i = 0; i < mechanisms_n; i++)
        if (mechanisms[i].socket_type && strcmp(mechanisms[i].name, name) == 0)
            return &mechanisms[i];
    return NULL;
}

static const struct wait_method *wait_method_named(const char *name)
{
    for (size_t i = 0; i < wait_methods_n; i++)
        if (strcmp(wait_methods[i].name, name) == 0)
            return &wait_methods[i];
    return NULL;
}

/* "open MECHANISM WAY BUSY_POLL_US TOKEN". Returns 0, or -errno when the client is to be dropped. */
static int open_case(struct server *s, const char *line)
{
    char mechanism[NAME_MOST + 1];
    char method[NAME_MOST + 1];
    unsigned us;
    if (sscanf(line, "open %31s %31s %u %" SCNu64, mechanism, method, &us, &s->token) != 4)
        return -EPROTO;
    s->method = wait_method_named(method);
    s->transport = (struct transport){.mechanism = mechanism_named(mechanism), .send_fd = -1, .receive_fd = -1, .epoll_fd = -1,
                            .receive_flags = MSG_DONTWAIT, .is_remote = true};
    if (!s->method || !s->transport.mechanism)
        return lines_write(&s->lines, "refused it does not know %s by %s\n", mechanism, method);
    int type = s->transport.mechanism->socket_type;
    int fd = data_socket(s, type);
    if (fd < 0)
        return lines_write(&s->lines, "refused %s\n", strerror(-fd));
    int rc = lines_write(&s->lines, "port %u\n", socket_port(fd));
    if (rc)
        (void)close(fd);
    else
        rc = type == SOCK_STREAM ? accept_stream(s, fd) : accept_datagrams(s, fd);
    if (!rc)
        rc = start_reflecting(s, us);
    if (rc == -EINTR || rc == -ECONNRESET)
        return rc;
    return rc ? lines_write(&s->lines, "refused %s\n", strerror(-rc)) : lines_write(&s->lines, "ready\n");
}

static int obey(struct server *s, const char *line)
{
    if (strncmp(line, "open ", 5) == 0) {
        end_case(s);
        return open_case(s, line);
    }
    if (strcmp(line, "close") != 0)
        return -EPROTO;
    end_case(s);
    return lines_write(&s->lines, "closed\n");
}

static void serve_client(struct server *s, int fd)
{
    char line[LINE_MOST];
    s->lines = (struct lines){.fd = fd};
    s->transport = (struct transport){.send_fd = -1, .receive_fd = -1, .epoll_fd = -1};
    int rc = lines_read(&s->lines, line, HELLO_MS);
    if (!rc && strcmp(line, "tunectl-wake 1") != 0)
        rc = -EPROTO;
    if (!rc)
        rc = lines_write(&s->lines, "tunectl-wake 1 %.3f %u\n", s->clock.initial.hz, s->placement.receiver);
    while (!rc) {
        rc = lines_read(&s->lines, line, -1);
        if (!rc)
            rc = obey(s, line);
    }
    end_case(s);
    (void)close(fd);
}

static int serve(struct server *s)
{
    char reason[LINE_MOST];
    s->fd = address_socket(s->options->listen, 1, reason, sizeof(reason));
    if (s->fd < 0)
        return print_error(EXIT_FAILED, "--listen %s: %s", s->options->listen, reason);
    (void)print_error(EXIT_OK, "listening at %.*s:%u, CPU %u", (int)(strrchr(s->options->listen, ':') - s->options->listen),
                      s->options->listen, socket_port(s->fd), s->placement.receiver);
    stop_listen();
    while (wait_readable(s->fd, -1) == 0) {
        int fd = accept4(s->fd, NULL, NULL, SOCK_CLOEXEC);
        if (fd >= 0)
            serve_client(s, fd);
    }
    (void)close(s->fd);
    return EXIT_OK;
}

int reflector_serve(const struct wake_options *options)
{
    struct server s = {.options = options};
    struct cpu_list housekeeping = {0};
    if (host_facts_init(&s.facts, options->root))
        return print_error(EXIT_FAILED, "out of memory");
    int status = placement_choose(&s.placement, &s.facts, options->cpus, options->among);
    stop_init();
    if (!status)
        status = placement_leave(&s.placement, &s.facts, &housekeeping);
    if (!status) {
        clock_span_begin(&s.clock);
        status = serve(&s);
    }
    cpu_list_deinit(&housekeeping);
    host_facts_deinit(&s.facts);
    return status;
}
