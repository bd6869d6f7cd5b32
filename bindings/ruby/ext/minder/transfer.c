/*
 * Reads and writes that never block the thread, for the hooks io_read, io_write, io_pread and io_pwrite.
 *
 * A descriptor may be in blocking mode, such as an inherited standard stream: changing that would change it
 * for every process that shares it. Sockets and pipes have calls that do not wait in either mode. Of
 * anything else a poll tells whether a call would wait. A stored file never waits for another process; it
 * is read without the lock of the interpreter.
 */

#include "scheduler.h"

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <ruby/io.h>
#include <ruby/io/buffer.h>
#include <ruby/thread.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

/* The most bytes of one write to something in blocking mode that may wait for a reader. A pipe that can be
 * written to has room for as many. */
#define BLOCKING_WRITE_MAX PIPE_BUF

enum direction { READ, WRITE };

/* A call of read(2), write(2), pread(2) or pwrite(2). */
struct transfer {
    int fd;
    enum direction direction;
    char *bytes;
    size_t size;
    /* The offset in the file; -1 for the present one. */
    off_t offset;
    ssize_t count;
    int error;
};

static void *transfer_now(void *argument) {
    struct transfer *transfer = argument;
    do {
        if (transfer->offset >= 0 && transfer->direction == READ)
            transfer->count = pread(transfer->fd, transfer->bytes, transfer->size, transfer->offset);
        else if (transfer->offset >= 0)
            transfer->count = pwrite(transfer->fd, transfer->bytes, transfer->size, transfer->offset);
        else if (transfer->direction == READ)
            transfer->count = read(transfer->fd, transfer->bytes, transfer->size);
        else
            transfer->count = write(transfer->fd, transfer->bytes, transfer->size);
    } while (transfer->count < 0 && errno == EINTR);
    transfer->error = errno;
    return NULL;
}

static enum file_kind kind_of(int fd) {
    struct stat status;
    if (fstat(fd, &status) != 0) return FILE_OTHER;
    if (S_ISSOCK(status.st_mode)) return FILE_SOCKET;
    if (S_ISFIFO(status.st_mode)) return FILE_PIPE;
    return S_ISREG(status.st_mode) || S_ISBLK(status.st_mode) || S_ISDIR(status.st_mode) ? FILE_STORED : FILE_OTHER;
}

/* Transfers by calls that wait in no mode. Returns false if the system has none for this descriptor. */
static bool transfer_without_waiting(struct transfer *transfer, enum file_kind kind) {
    if (kind == FILE_SOCKET) {
        do {
            transfer->count = transfer->direction == READ
                ? recv(transfer->fd, transfer->bytes, transfer->size, MSG_DONTWAIT)
                : send(transfer->fd, transfer->bytes, transfer->size, MSG_DONTWAIT | MSG_NOSIGNAL);
        } while (transfer->count < 0 && errno == EINTR);
        transfer->error = errno;
        return true;
    }
#ifdef RWF_NOWAIT
    if (kind == FILE_PIPE) {
        struct iovec part = { .iov_base = transfer->bytes, .iov_len = transfer->size };
        do {
            transfer->count = transfer->direction == READ
                ? preadv2(transfer->fd, &part, 1, -1, RWF_NOWAIT)
                : pwritev2(transfer->fd, &part, 1, -1, RWF_NOWAIT);
        } while (transfer->count < 0 && errno == EINTR);
        transfer->error = errno;
        return transfer->count >= 0 || (transfer->error != EOPNOTSUPP && transfer->error != ENOSYS);
    }
#endif
    return false;
}

/* Transfers after a poll has reported that the call does not wait. */
static void transfer_after_poll(struct transfer *transfer) {
    struct pollfd one = { .fd = transfer->fd, .events = transfer->direction == READ ? POLLIN : POLLOUT };
    int count;
    while ((count = poll(&one, 1, 0)) < 0 && errno == EINTR) continue;
    if (count == 0) {
        transfer->count = -1;
        transfer->error = EAGAIN;
        return;
    }
    if (transfer->direction == WRITE && transfer->size > BLOCKING_WRITE_MAX) transfer->size = BLOCKING_WRITE_MAX;
    transfer_now(transfer);
}

/* Transfers some bytes. Returns their number, or the negative number of an error. */
static ssize_t transfer_some(struct transfer *transfer, enum file_kind kind) {
    if (kind == FILE_STORED || transfer->offset >= 0) {
        rb_nogvl(transfer_now, transfer, RUBY_UBF_IO, NULL, 0);
    } else if (!transfer_without_waiting(transfer, kind)) {
        transfer_after_poll(transfer);
    }
    if (transfer->count >= 0) return transfer->count;
    return -(transfer->error == EWOULDBLOCK ? EAGAIN : transfer->error);
}

/* Returns the bytes of a buffer from an offset on. */
static void locate(struct transfer *transfer, VALUE buffer, size_t offset) {
    size_t size;
    if (transfer->direction == READ) {
        void *base;
        rb_io_buffer_get_bytes_for_writing(buffer, &base, &size);
        transfer->bytes = base;
    } else {
        const void *base;
        rb_io_buffer_get_bytes_for_reading(buffer, &base, &size);
        transfer->bytes = (char *)base;
    }
    if (offset > size) rb_raise(rb_eArgError, "the offset lies behind the end of the buffer");
    transfer->bytes += offset;
    transfer->size = size - offset;
}

/*
 * Transfers at least `length` bytes, and waits for them; with 0, what can be transferred now. Returns how
 * many, which is less at the end of the file, or the negative number of an error.
 */
static VALUE transfer(VALUE self, enum direction direction, int argc, VALUE *argv) {
    rb_check_arity(argc, 3, 4);
    struct scheduler *scheduler = scheduler_here(self);
    VALUE io = argv[0], buffer = argv[1];
    size_t length = NUM2SIZET(argv[2]), start = argc > 3 ? NUM2SIZET(argv[3]) : 0, done = 0;
    int events = direction == READ ? RUBY_IO_READABLE : RUBY_IO_WRITABLE;
    for (;;) {
        struct transfer call = { .direction = direction, .offset = -1 };
        struct descriptor *descriptor = descriptors_find(scheduler, io, &call.fd);
        /* IO#reopen may have made another kind of file of it. */
        if (descriptor->kind == FILE_UNKNOWN || descriptor->kind == FILE_STORED) descriptor->kind = kind_of(call.fd);
        /* The buffer may have moved while the fiber waited. */
        locate(&call, buffer, start + done);
        if (call.size == 0) return SIZET2NUM(done);
        ssize_t count = transfer_some(&call, descriptor->kind);
        if (count == -ENOTSOCK && descriptor->kind == FILE_SOCKET) {
            descriptor->kind = FILE_UNKNOWN;
            continue;
        }
        if (count == 0) return SIZET2NUM(done);
        if (count > 0) {
            done += (size_t)count;
            if (done >= length) return SIZET2NUM(done);
        } else if (count != -EAGAIN) {
            return done > 0 ? SIZET2NUM(done) : LONG2NUM(count);
        } else if (done >= length) {
            return done > 0 ? SIZET2NUM(done) : LONG2NUM(count);
        } else {
            /* Without waiting, a stored file is read and written only as far as it is in memory. */
            if (descriptor->kind == FILE_PIPE) descriptor->kind = kind_of(call.fd);
            if (descriptor->kind != FILE_STORED) descriptors_wait(scheduler, io, events, MINDER_FOREVER);
        }
    }
}

VALUE scheduler_io_read(int argc, VALUE *argv, VALUE self) {
    return transfer(self, READ, argc, argv);
}

VALUE scheduler_io_write(int argc, VALUE *argv, VALUE self) {
    return transfer(self, WRITE, argc, argv);
}

/* Returns the offset in the file that the hook got. Ruby 3.1 passes that of a write as the bits of its
 * object (IO::Buffer#pwrite converts it twice). */
static off_t offset_in_file(enum direction direction, VALUE from) {
    off_t offset = NUM2OFFT(from);
#if RUBY_API_VERSION_MAJOR == 3 && RUBY_API_VERSION_MINOR == 1
    /* What is no Fixnum is an offset beyond any file, or that of a direct call. */
    if (direction == WRITE) offset = FIXNUM_P((VALUE)offset) ? FIX2LONG((VALUE)offset) : -1;
#endif
    return offset;
}

/* Transfers at an offset of a file: Ruby 3.1 passes (io, buffer, length, from), later versions (io, buffer,
 * from, length, offset). */
static VALUE transfer_at(VALUE self, enum direction direction, int argc, VALUE *argv) {
    rb_check_arity(argc, 4, 5);
    struct scheduler *scheduler = scheduler_here(self);
    VALUE length = argc == 5 ? argv[3] : argv[2], from = argc == 5 ? argv[2] : argv[3];
    struct transfer call = { .direction = direction, .offset = offset_in_file(direction, from) };
    if (call.offset < 0) return LONG2NUM(-EINVAL);
    descriptors_find(scheduler, argv[0], &call.fd);
    locate(&call, argv[1], argc == 5 ? NUM2SIZET(argv[4]) : 0);
    size_t wanted = NUM2SIZET(length);
    if (wanted > 0 && wanted < call.size) call.size = wanted;
    return LONG2NUM(transfer_some(&call, FILE_STORED));
}

VALUE scheduler_io_pread(int argc, VALUE *argv, VALUE self) {
    return transfer_at(self, READ, argc, argv);
}

VALUE scheduler_io_pwrite(int argc, VALUE *argv, VALUE self) {
    return transfer_at(self, WRITE, argc, argv);
}
