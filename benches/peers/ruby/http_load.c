/* Loads an HTTP server on 127.0.0.1 with a fixed number of requests, and checks every byte of each response.
 *   http_load PORT [--connections N] [--requests N] [--warm N] [--idle N] [--close] [--pid PID] [--limit S]
 * Each of the N connections sends a request, waits for the response, and sends the next one. With --close,
 * each request has a separate connection. --idle opens further connections first, which never send. The first
 * requests (--warm) are not measured; when all of them were answered, the measurement starts. The program
 * fails after S seconds. Prints lines `name,value`: requests, seconds, p50_us, p99_us, server_cpu_ns and
 * client_cpu_ns.
 * server_cpu_ns is the processor time of the process PID, with all its threads and those that ended, from the
 * first measured request to the last response, before a connection is closed; 0 without --pid.
 *
 * A server may serve one connection until its end, and leave the others waiting: a connection that was never
 * answered does not count as having sent a request.
 * Build: cc -O2 -o http_load http_load.c */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <getopt.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define EVENTS_MAX 64

static const char kept_request[] = "GET / HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n";
static const char kept_response[] = "HTTP/1.1 200 OK\r\nContent-Length: 11\r\n\r\nHello World";
static const char last_request[] = "GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n";
static const char last_response[] =
    "HTTP/1.1 200 OK\r\nContent-Length: 11\r\nConnection: close\r\n\r\nHello World";

struct connection {
    int fd;
    bool is_served;     /* a request was answered */
    bool is_waiting;    /* for a response, or for the rest of it */
    size_t got;         /* bytes of the response */
    long long since;
};

static struct connection *connections;
static int connections_count = 64, idle_count, epoll;
static long requests = 10000, warm;
static bool is_closing;
static struct sockaddr_in server = { .sin_family = AF_INET };
/* The responses of the present phase, and requests on the way on connections that were answered before. */
static long answered, pending, target;
static long long *latencies;

static void fail(const char *what)
{
    fprintf(stderr, "http_load: %s (after %ld of %ld responses)\n", what, answered, target);
    exit(1);
}

static void check(bool good, const char *what)
{
    if (good)
        return;
    perror(what);
    fail("the system refused a call");
}

static void on_alarm(int signal)
{
    static const char text[] = "http_load: the time limit was reached\n";

    (void)signal;
    if (write(2, text, sizeof text - 1) < 0)
        _exit(2);
    _exit(1);
}

static long long now(clockid_t clock)
{
    struct timespec time;

    check(clock_gettime(clock, &time) == 0, "clock_gettime");
    return time.tv_sec * 1000000000LL + time.tv_nsec;
}

static int open_socket(void)
{
    int on = 1, fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    check(fd >= 0, "socket");
    check(setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on) == 0, "TCP_NODELAY");
    check(connect(fd, (struct sockaddr *)&server, sizeof server) == 0, "connect");
    return fd;
}

static void open_connection(struct connection *of)
{
    struct epoll_event event = { .events = EPOLLIN, .data.ptr = of };

    of->fd = open_socket();
    check(epoll_ctl(epoll, EPOLL_CTL_ADD, of->fd, &event) == 0, "epoll_ctl");
}

/* Sends a request if the phase wants one more. */
static void ask(struct connection *of)
{
    const char *text = is_closing ? last_request : kept_request;
    size_t size = (is_closing ? sizeof last_request : sizeof kept_request) - 1;

    if (of->is_waiting || (of->is_served && answered + pending >= target))
        return;
    of->since = now(CLOCK_MONOTONIC);
    if (of->fd < 0)
        open_connection(of);
    /* Nothing else is on its way, so the request fits. */
    if (send(of->fd, text, size, MSG_NOSIGNAL | MSG_DONTWAIT) != (ssize_t)size)
        fail("a request was not sent in one piece");
    of->got = 0;
    of->is_waiting = true;
    pending += of->is_served;
}

static void finish(struct connection *of)
{
    pending -= of->is_served;
    of->is_served = true;
    of->is_waiting = false;
    if (latencies && answered < target)
        latencies[answered] = now(CLOCK_MONOTONIC) - of->since;
    answered++;
    ask(of);
}

/* Reads what is there and compares it. With --close, the end of the connection is part of the response. */
static void take(struct connection *of)
{
    const char *text = is_closing ? last_response : kept_response;
    size_t size = (is_closing ? sizeof last_response : sizeof kept_response) - 1;
    char buffer[4096];
    ssize_t got = recv(of->fd, buffer, sizeof buffer, MSG_DONTWAIT);

    if (got < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    check(got >= 0, "recv");
    if (!of->is_waiting)
        fail(got == 0 ? "the server closed a connection" : "the server sent what was not asked for");
    if ((size_t)got > size - of->got || memcmp(buffer, text + of->got, (size_t)got) != 0)
        fail("a response differs");
    of->got += (size_t)got;
    if (got == 0 && (!is_closing || of->got < size))
        fail("the server closed a connection before its response was complete");
    if (is_closing && got == 0) {
        close(of->fd);
        of->fd = -1;
        finish(of);
    } else if (!is_closing && of->got == size) {
        finish(of);
    }
}

/* Runs until this number of requests was answered, and none is on its way. */
static void run(long count)
{
    struct epoll_event events[EVENTS_MAX];

    answered = 0;
    target = count;
    for (int n = 0; n < connections_count; n++)
        ask(&connections[n]);
    while (answered < target || pending > 0) {
        int ready = epoll_wait(epoll, events, EVENTS_MAX, -1);

        check(ready >= 0 || errno == EINTR, "epoll_wait");
        for (int n = 0; n < ready; n++)
            take(events[n].data.ptr);
    }
}

static int compare(const void *a, const void *b)
{
    long long left = *(const long long *)a, right = *(const long long *)b;

    return (left > right) - (left < right);
}

/* Measures the requests and prints the lines. */
static void measure(pid_t pid)
{
    long long begin, end, client = 0, used = 0;
    clockid_t clock = CLOCK_PROCESS_CPUTIME_ID;

    check(pid == 0 || clock_getcpuclockid(pid, &clock) == 0, "clock_getcpuclockid");
    latencies = calloc((size_t)requests, sizeof *latencies);
    check(latencies != NULL, "calloc");
    client = now(CLOCK_PROCESS_CPUTIME_ID);
    used = now(clock);
    begin = now(CLOCK_MONOTONIC);
    run(requests);
    end = now(CLOCK_MONOTONIC);
    used = now(clock) - used;
    client = now(CLOCK_PROCESS_CPUTIME_ID) - client;
    qsort(latencies, (size_t)requests, sizeof *latencies, compare);
    printf("requests,%ld\nseconds,%.6f\n", answered, (double)(end - begin) / 1e9);
    printf("p50_us,%.1f\n", (double)latencies[requests / 2] / 1e3);
    printf("p99_us,%.1f\n", (double)latencies[requests * 99 / 100] / 1e3);
    printf("server_cpu_ns,%lld\nclient_cpu_ns,%lld\n", pid ? used : 0, client);
}

static long number(const char *text, long least)
{
    char *end;
    long value = strtol(text, &end, 10);

    if (*text == '\0' || *end != '\0' || value < least || value > 1000000000) {
        fprintf(stderr, "http_load: invalid number \"%s\": expected at least %ld\n", text, least);
        exit(2);
    }
    return value;
}

int main(int argc, char **argv)
{
    static const struct option options[] = {
        { "connections", required_argument, NULL, 'c' }, { "requests", required_argument, NULL, 'r' },
        { "warm", required_argument, NULL, 'w' },        { "idle", required_argument, NULL, 'i' },
        { "close", no_argument, NULL, 'x' },             { "pid", required_argument, NULL, 'p' },
        { "limit", required_argument, NULL, 'l' },       { NULL, 0, NULL, 0 },
    };
    long limit = 60;
    pid_t pid = 0;
    int option;

    while ((option = getopt_long(argc, argv, "", options, NULL)) != -1) {
        switch (option) {
        case 'c': connections_count = (int)number(optarg, 1); break;
        case 'r': requests = number(optarg, 1); break;
        case 'w': warm = number(optarg, 0); break;
        case 'i': idle_count = (int)number(optarg, 0); break;
        case 'x': is_closing = true; break;
        case 'p': pid = (pid_t)number(optarg, 1); break;
        case 'l': limit = number(optarg, 1); break;
        default: return 2;
        }
    }
    if (optind + 1 != argc) {
        fprintf(stderr, "usage: http_load PORT [OPTION]...\n");
        return 2;
    }
    server.sin_port = htons((unsigned short)number(argv[optind], 1));
    server.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    signal(SIGALRM, on_alarm);
    alarm((unsigned)limit);
    epoll = epoll_create1(EPOLL_CLOEXEC);
    check(epoll >= 0, "epoll_create1");
    /* They are accepted before the others, so before the first response. */
    for (int n = 0; n < idle_count; n++)
        open_socket();
    connections = calloc((size_t)connections_count, sizeof *connections);
    check(connections != NULL, "calloc");
    for (int n = 0; n < connections_count; n++)
        connections[n].fd = -1;
    run(warm);
    measure(pid);
    return 0;
}
