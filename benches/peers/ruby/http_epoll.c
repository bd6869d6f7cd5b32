/* The HTTP server that the servers in Ruby are compared with: one thread, epoll(7), level-triggered.
 *   http_epoll [PORT]
 * It listens on 127.0.0.1 and prints the port on a line; without PORT, or with 0, the kernel chooses it. Each
 * request is answered with the same 11 bytes. A connection stays open unless the request contains the header
 * `Connection: close`. The server ends by a signal.
 * Build: cc -O2 -o http_epoll http_epoll.c */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

/* The largest request: a longer one ends its connection. */
#define REQUEST_MAX 8192
#define EVENTS_MAX 256

static const char kept[] = "HTTP/1.1 200 OK\r\nContent-Length: 11\r\n\r\nHello World";
static const char closing[] = "HTTP/1.1 200 OK\r\nContent-Length: 11\r\nConnection: close\r\n\r\nHello World";

struct connection {
    int fd;
    bool is_last;       /* the request that is answered wants the connection closed */
    const char *rest;   /* what is to be written */
    size_t rest_size;
    size_t size;        /* bytes in text that were read and not answered */
    char text[REQUEST_MAX];
};

static int epoll;

static void check(bool good, const char *what)
{
    if (good)
        return;
    perror(what);
    exit(1);
}

static void end(struct connection *of)
{
    /* Closing removes the only descriptor of the socket from the epoll set. */
    close(of->fd);
    free(of);
}

static void watch(struct connection *of, int operation, unsigned events)
{
    struct epoll_event event = { .events = events, .data.ptr = of };

    check(epoll_ctl(epoll, operation, of->fd, &event) == 0, "epoll_ctl");
}

static void accept_all(int listener)
{
    for (;;) {
        int fd = accept4(listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
        struct connection *of;

        if (fd < 0 && errno == EAGAIN)
            return;
        if (fd < 0 && (errno == ECONNABORTED || errno == EINTR))
            continue;
        check(fd >= 0, "accept4");
        /* The text is written before it is read. */
        of = malloc(sizeof *of);
        check(of != NULL, "malloc");
        of->fd = fd;
        of->is_last = false;
        of->rest_size = of->size = 0;
        watch(of, EPOLL_CTL_ADD, EPOLLIN);
    }
}

/* Returns the end of the request at the start of the text, or NULL if it is not complete; sets `is_last`. */
static char *parse(struct connection *of)
{
    static const char wanted[] = "connection: close\r\n";
    char *line = of->text, *limit = of->text + of->size, *next;

    of->is_last = false;
    while ((next = memchr(line, '\n', (size_t)(limit - line)))) {
        size_t size = (size_t)(++next - line);

        if (size == 2 && line[0] == '\r')
            return next;
        if (size == sizeof wanted - 1 && strncasecmp(line, wanted, size) == 0)
            of->is_last = true;
        line = next;
    }
    return NULL;
}

enum progress { DONE, WAITS, ENDED };

/* Writes the rest of a response. */
static enum progress flush(struct connection *of)
{
    while (of->rest_size > 0) {
        ssize_t done = send(of->fd, of->rest, of->rest_size, MSG_NOSIGNAL);

        if (done < 0 && errno == EINTR)
            continue;
        if (done < 0)
            return errno == EAGAIN ? WAITS : ENDED;
        of->rest += done;
        of->rest_size -= (size_t)done;
    }
    return of->is_last ? ENDED : DONE;
}

/* Answers the complete requests. */
static enum progress answer(struct connection *of)
{
    enum progress progress = DONE;
    char *next;

    while (progress == DONE && (next = parse(of))) {
        of->size -= (size_t)(next - of->text);
        if (of->size > 0)
            memmove(of->text, next, of->size);
        of->rest = of->is_last ? closing : kept;
        of->rest_size = (of->is_last ? sizeof closing : sizeof kept) - 1;
        progress = flush(of);
    }
    return progress;
}

static enum progress take(struct connection *of)
{
    ssize_t done = recv(of->fd, of->text + of->size, REQUEST_MAX - of->size, 0);

    if (done < 0)
        return errno == EAGAIN || errno == EINTR ? DONE : ENDED;
    if (done == 0)
        return ENDED;
    of->size += (size_t)done;
    enum progress progress = answer(of);
    return progress == DONE && of->size == REQUEST_MAX ? ENDED : progress;
}

static void serve(struct connection *of, unsigned events)
{
    bool has_waited = of->rest_size > 0;
    enum progress progress;

    if (has_waited) {
        progress = flush(of);
        if (progress == DONE)
            progress = answer(of);
    } else {
        progress = take(of);
    }
    if (progress == ENDED || (events & EPOLLERR))
        end(of);
    else if (has_waited != (progress == WAITS))
        watch(of, EPOLL_CTL_MOD, progress == WAITS ? EPOLLOUT : EPOLLIN);
}

static int listen_on(unsigned port)
{
    struct sockaddr_in address = { .sin_family = AF_INET, .sin_port = htons((unsigned short)port),
                                   .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
    socklen_t size = sizeof address;
    int on = 1, fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

    check(fd >= 0, "socket");
    check(setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) == 0, "setsockopt");
    check(bind(fd, (struct sockaddr *)&address, size) == 0, "bind");
    check(listen(fd, SOMAXCONN) == 0, "listen");
    check(getsockname(fd, (struct sockaddr *)&address, &size) == 0, "getsockname");
    printf("%u\n", (unsigned)ntohs(address.sin_port));
    check(fflush(stdout) == 0, "stdout");
    return fd;
}

int main(int argc, char **argv)
{
    struct epoll_event events[EVENTS_MAX], event = { .events = EPOLLIN };
    int listener = listen_on(argc > 1 ? (unsigned)atoi(argv[1]) : 0);

    epoll = epoll_create1(EPOLL_CLOEXEC);
    check(epoll >= 0, "epoll_create1");
    /* The listener is the event without a connection. */
    check(epoll_ctl(epoll, EPOLL_CTL_ADD, listener, &event) == 0, "epoll_ctl");
    for (;;) {
        int count = epoll_wait(epoll, events, EVENTS_MAX, -1);

        check(count >= 0 || errno == EINTR, "epoll_wait");
        for (int n = 0; n < count; n++) {
            if (events[n].data.ptr)
                serve(events[n].data.ptr, events[n].events);
            else
                accept_all(listener);
        }
    }
}
