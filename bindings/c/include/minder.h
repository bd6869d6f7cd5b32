/**
 * @file
 *
 * minder: start, watch, time and schedule thousands of child processes.
 *
 * This header is the reference of the C interface. `minder.hpp` is the same for C++.
 *
 * STATUS. Most functions return a minder_status. MINDER_OK is 0. A positive status is not an error: there
 * is no result, such as MINDER_TIMED_OUT. A negative status is an error. minder_last_error() returns its
 * text, one line that names the subject and the reason. The text belongs to the calling thread: other
 * threads do not change it, and a call that succeeds does not change it either.
 *
 * HANDLES. A function with "new", "spawn" or "install" in its name returns a handle, which the caller
 * frees with the function that its documentation names. Freeing NULL does nothing. All other functions
 * return MINDER_INVALID for NULL and for a handle of another type. A handle must not be used after it was
 * freed, nor freed while another thread uses it.
 *
 * THREADS. Every handle may be used by several threads at the same time, unless its section says
 * otherwise. The library calls back on the thread of the caller, and on other threads only where a
 * function says so.
 *
 * STRINGS are terminated by NUL. They are bytes on Unix, and UTF-8 on Windows. The library copies what it
 * keeps.
 *
 * TIMES are in nanoseconds, in int64_t: 5 * MINDER_SECOND. A negative time-out, MINDER_FOREVER, sets no
 * limit. A wait with a time-out of zero returns at once. No wait ends before its time-out without a
 * result.
 *
 * STRUCTURES with a member `size` grow in later versions. Initialise them with MINDER_INIT, which sets
 * the size and clears the rest: minder_exit end = MINDER_INIT(minder_exit). Zero in an option is its
 * default. A library that is older than the header refuses options that it does not know. A member
 * `reserved` of an option must be zero: another number is MINDER_INVALID.
 *
 * NUMBERS of statuses, kinds and flags are stable. Later versions add some: ignore kinds of events that
 * you do not know.
 *
 * FORK. A process that was made by fork(2) cannot use the children, sets and pollers of its parent. The
 * functions return MINDER_FORKED there, and freeing such a handle is safe. minder_poller_renew() replaces a
 * poller.
 *
 * PANICS. A panic of the library is a defect. It does not leave the library: the function returns
 * MINDER_PANIC. C++ exceptions must not leave a callback.
 */
/* Made by `cargo xtask c-header` from bindings/c/src and bindings/c/header. Do not edit. */

#ifndef MINDER_H
#define MINDER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/** A descriptor; a HANDLE on Windows. */
#ifdef _WIN32
typedef void *minder_fd;
#define MINDER_NO_FD ((minder_fd)0)
#else
typedef int minder_fd;
#define MINDER_NO_FD (-1)
#endif

/** A wait without a limit. */
#define MINDER_FOREVER ((int64_t)-1)
/** A microsecond, a millisecond and a second, in nanoseconds. */
#define MINDER_MICROSECOND ((int64_t)1000)
#define MINDER_MILLISECOND ((int64_t)1000000)
#define MINDER_SECOND ((int64_t)1000000000)

#ifdef __cplusplus
extern "C" {
#endif

/*
 * Status and errors: what a function returns, and the text of the last error.
 */

/**
 * The result of a function: 0, a positive number for "no result", or a negative number for an
 * error.
 */
enum minder_status
#if defined(__cplusplus) || __STDC_VERSION__ >= 202311L
  : int32_t
#endif // defined(__cplusplus) || __STDC_VERSION__ >= 202311L
 {
    /** It succeeded. */
    MINDER_OK = 0,
    /** The time-out has passed. Nothing else is wrong. */
    MINDER_TIMED_OUT = 1,
    /** minder_poller_notify() was called. */
    MINDER_WOKEN = 2,
    /** There is nothing to return: no message is whole. */
    MINDER_NONE = 3,
    /** The program does not exist, or is not in PATH. */
    MINDER_NOT_FOUND = -1,
    /** The program, directory or process exists, but this process may not use it. */
    MINDER_PERMISSION_DENIED = -2,
    /** No descriptor, process or memory is free now. It may succeed after a child has exited. */
    MINDER_EXHAUSTED = -3,
    /** The arguments and the environment are longer than the operating system allows. */
    MINDER_TOO_LONG = -4,
    /** An argument is invalid: NULL, a handle of another type, a source that is registered twice. */
    MINDER_INVALID = -5,
    /** The child, source or timer is not known, or no longer. */
    MINDER_UNKNOWN = -6,
    /** The operating system lacks the mechanism, or a policy of this machine forbids it. */
    MINDER_UNSUPPORTED = -7,
    /** A limit that the caller set is reached. */
    MINDER_LIMIT = -8,
    /** Anything else: see minder_last_error() and minder_last_os_error(). */
    MINDER_FAILED = -9,
    /** The library has a defect: it panicked. The text says where. */
    MINDER_PANIC = -10,
    /** The handle belongs to the parent of this process, which was made by fork(2). */
    MINDER_FORKED = -11,
};
#ifndef __cplusplus
#if __STDC_VERSION__ >= 202311L
typedef enum minder_status minder_status;
#else
typedef int32_t minder_status;
#endif // __STDC_VERSION__ >= 202311L
#endif // __cplusplus

/**
 * Returns the text of the last error of this thread, on one line; "" if there was none.
 *
 * The text is valid until the next call on this thread that fails.
 *
 * Why not an argument of every function for it: a caller that ignores the text has nothing to pass and
 * nothing to free, and no text is lost on the way through several functions of the caller. errno and
 * libgit2 work in the same way. SQLite keeps the text in the handle, which fails where the handle could
 * not be made. GLib passes a GError **, which needs an argument for each call.
 */
const char *minder_last_error(void);

/**
 * Returns the number that the operating system gave to the last error of this thread: errno, or that of
 * GetLastError() on Windows; 0 if it gave none.
 */
int minder_last_os_error(void);

/** Returns the name of a status, such as "MINDER_NOT_FOUND"; "?" for another number. */
const char *minder_status_name(int32_t status);


/*
 * Version: the library that a program has at run time, and the header it was compiled with.
 */

/** The major version of this header. */
#define MINDER_VERSION_MAJOR 0

/** The minor version of this header. */
#define MINDER_VERSION_MINOR 1

/** The patch level of this header. */
#define MINDER_VERSION_PATCH 0

/** Returns the version of the library: major << 16 | minor << 8 | patch. Compare it with MINDER_VERSION. */
uint32_t minder_version(void);

/** Returns the version of the library as text, such as "0.1.0". */
const char *minder_version_text(void);

/**
 * Checks that a program compiled with this header can use the library. Pass MINDER_VERSION.
 *
 * Returns MINDER_UNSUPPORTED if the major versions differ, if they are 0 and the minor versions differ, or
 * if the library is older than the header.
 */
minder_status minder_check_version(uint32_t header_version);


/*
 * Termination: how to kill a child with everything that it started.
 *
 * A kill reaches the process group of the child (on Windows its job object), and the descendants that
 * left it and can be found. Pass NULL to kill at once, MINDER_GRACEFUL(5 * MINDER_SECOND) to ask by
 * SIGTERM and to kill what is left after five seconds, or a structure with a sequence of signals. On
 * Windows there is no signal to ask with, and the child is killed at once.
 */

/** The most signals before the kill. */
#define MINDER_SIGNALS_MAX 8

/** A signal, and the pause after it. */
typedef struct {
    /** The number of the signal, such as SIGINT. */
    int32_t signal;
    /** Zero. */
    uint32_t reserved;
    /** The longest wait for the tree to exit after the signal, in nanoseconds. */
    int64_t pause;
} minder_signal_step;

/**
 * The way in which a child is killed: signals that ask it to exit, and a kill after the last
 * pause.
 */
typedef struct {
    /** The size of this structure. */
    uint32_t size;
    /** The number of steps, at most MINDER_SIGNALS_MAX. If there are none, `grace` is used. */
    uint32_t step_count;
    /** The signals in order. */
    const minder_signal_step *steps;
    /** The wait after SIGTERM. Zero kills at once. */
    int64_t grace;
} minder_termination;


/*
 * Exit: how a child ended and what it used.
 */

/** The way in which a child exited. */
enum minder_exit_kind
#if defined(__cplusplus) || __STDC_VERSION__ >= 202311L
  : int32_t
#endif // defined(__cplusplus) || __STDC_VERSION__ >= 202311L
 {
    /** It exited with a code. */
    MINDER_EXIT_CODE = 1,
    /** A signal killed it (Unix). */
    MINDER_EXIT_SIGNAL = 2,
    /** It exited, but other code of this process took its status first, or SIGCHLD is ignored. */
    MINDER_EXIT_UNKNOWN = 3,
};
#ifndef __cplusplus
#if __STDC_VERSION__ >= 202311L
typedef enum minder_exit_kind minder_exit_kind;
#else
typedef int32_t minder_exit_kind;
#endif // __STDC_VERSION__ >= 202311L
#endif // __cplusplus

/**
 * The exit of a child, and the resources that it used, including those of descendants that it
 * waited for.
 */
typedef struct {
    /** The size of this structure. */
    uint32_t size;
    /** One of minder_exit_kind. */
    int32_t kind;
    /** The exit code, if it exited with one; otherwise -1. */
    int32_t code;
    /** The signal that killed it, if one did; otherwise 0. */
    int32_t signal;
    /** It wrote a core file. */
    bool core_dumped;
    /** `user`, `system` and `max_rss` are known. */
    bool has_usage;
    /** Its time-out came while it ran. */
    bool timed_out;
    /** A kill was requested while it ran, by a call or by its time-out. */
    bool killed;
    /** Its outputs were closed, because a process that it left behind kept them open and wrote nothing. */
    bool leaked;
    /** Members of its process group are still running. */
    bool left_running;
    /** Zero. */
    uint8_t reserved[2];
    /** The processor time in user mode, in nanoseconds. */
    int64_t user;
    /** The processor time in the kernel, in nanoseconds. */
    int64_t system;
    /** The time for which minder_set_suspend() suspended it, in nanoseconds. */
    int64_t suspended;
    /** The largest resident set, in bytes. On Unix it is at least that of this process at the start. */
    uint64_t max_rss;
    /** The number of bytes of output that were dropped: see MINDER_OVERFLOW_DROP_OLDEST. */
    uint64_t dropped;
} minder_exit;


/*
 * Command: a program, its arguments, and the environment in which it starts.
 *
 * A child inherits nothing by accident: it gets the three standard streams, no other descriptor, no
 * blocked signal, and the limit on descriptors that this process was started with. One command can be
 * started many times.
 *
 * A setter that fails is remembered: every later start of the command fails with the same error. So a
 * program may ignore the statuses of the setters and check that of the start.
 */

/** One of the standard streams of a child. */
enum minder_stream
#if defined(__cplusplus) || __STDC_VERSION__ >= 202311L
  : int32_t
#endif // defined(__cplusplus) || __STDC_VERSION__ >= 202311L
 {
    /** Standard input. */
    MINDER_STDIN = 0,
    /** Standard output, or all output of a child on a terminal. */
    MINDER_STDOUT = 1,
    /** Standard error. */
    MINDER_STDERR = 2,
};
#ifndef __cplusplus
#if __STDC_VERSION__ >= 202311L
typedef enum minder_stream minder_stream;
#else
typedef int32_t minder_stream;
#endif // __STDC_VERSION__ >= 202311L
#endif // __cplusplus

/** The connection of a standard stream. */
enum minder_stdio
#if defined(__cplusplus) || __STDC_VERSION__ >= 202311L
  : int32_t
#endif // defined(__cplusplus) || __STDC_VERSION__ >= 202311L
 {
    /** That of this process. The default of minder_command_spawn() and minder_set_spawn(). */
    MINDER_INHERIT = 0,
    /** The null device: an empty input, an output that is discarded. */
    MINDER_NULL = 1,
    /** A pipe, whose other end the library has. */
    MINDER_PIPE = 2,
    /** For MINDER_STDERR: whatever the standard output is connected to. */
    MINDER_SAME_AS_STDOUT = 3,
};
#ifndef __cplusplus
#if __STDC_VERSION__ >= 202311L
typedef enum minder_stdio minder_stdio;
#else
typedef int32_t minder_stdio;
#endif // __STDC_VERSION__ >= 202311L
#endif // __cplusplus

/** The process group or session in which a child starts. */
enum minder_group
#if defined(__cplusplus) || __STDC_VERSION__ >= 202311L
  : int32_t
#endif // defined(__cplusplus) || __STDC_VERSION__ >= 202311L
 {
    /** A new process group, in the session of this process. The default. */
    MINDER_GROUP_NEW = 0,
    /** The group of this process. The tree of the child cannot be killed as a whole. */
    MINDER_GROUP_INHERIT = 1,
    /** A new session, without a terminal. */
    MINDER_GROUP_SESSION = 2,
};
#ifndef __cplusplus
#if __STDC_VERSION__ >= 202311L
typedef enum minder_group minder_group;
#else
typedef int32_t minder_group;
#endif // __STDC_VERSION__ >= 202311L
#endif // __cplusplus

/** A program, its arguments and its environment. Freed by minder_command_free(). */
typedef struct minder_command minder_command;

/**
 * Creates a command that runs a program without arguments. A name with a slash is used as it is, and any
 * other is searched for in PATH.
 *
 * Returns NULL if `program` is NULL or not UTF-8 (Windows). All functions accept that NULL and fail.
 */
minder_command *minder_command_new(const char *program);

/** Frees a command. Children that it started are not affected. */
void minder_command_free(minder_command *command);

/** Adds one argument. The program receives it unchanged: no shell, no splitting. */
minder_status minder_command_arg(minder_command *command, const char *arg);

/** Adds several arguments: an array that ends with NULL. */
minder_status minder_command_args(minder_command *command, const char *const *args);

/** Sets a variable in the environment of the child; removes it if `value` is NULL. */
minder_status minder_command_env(minder_command *command, const char *name, const char *value);

/** Clears the environment of the child, including the variables that were set before. */
minder_status minder_command_env_clear(minder_command *command);

/** Sets the working directory of the child. Default: that of this process. */
minder_status minder_command_current_dir(minder_command *command, const char *dir);

/** Connects a stream, one of minder_stream, as one of minder_stdio says. */
minder_status minder_command_stdio(minder_command *command, int32_t stream, int32_t stdio);

/**
 * Connects a stream to an open descriptor, which the library duplicates. MINDER_INVALID if it is not open.
 */
minder_status minder_command_stdio_fd(minder_command *command,
                                      int32_t stream,
                                      minder_fd fd);

/**
 * Connects a stream to a file, which is opened now. An input is read from it. For an output the file is
 * created if it is missing; it is emptied, or with `append` written at its end.
 */
minder_status minder_command_stdio_file(minder_command *command,
                                        int32_t stream,
                                        const char *path,
                                        bool append);

/**
 * Passes an open descriptor to the child, with the same number, in addition to its streams: 3 or
 * more. The command takes the descriptor over, and closes it when it is freed. MINDER_INVALID if
 * it is not open, or the command has it already. Windows: a start fails.
 */
minder_status minder_command_pass_fd(minder_command *command, minder_fd fd);

/** Sets the process group or session of the child: one of minder_group. */
minder_status minder_command_group(minder_command *command, int32_t group);

/**
 * Starts the child in a new session on a new pseudo-terminal of this size. The three streams are that
 * terminal, except an input that is MINDER_NULL. Linux, macOS and FreeBSD.
 */
minder_status minder_command_terminal(minder_command *command,
                                      uint16_t rows,
                                      uint16_t columns);

/** Adds to the niceness of the child and its descendants. */
minder_status minder_command_nice(minder_command *command, int nice);

/**
 * Sets the timer slack of the child, in nanoseconds, which its descendants inherit: the time by which
 * the kernel may delay its sleeps and time-outs. Linux; elsewhere a start fails with MINDER_UNSUPPORTED.
 */
minder_status minder_command_timer_slack(minder_command *command,
                                         uint64_t nanoseconds);

/**
 * Asks the kernel to kill the child when the thread that started it ends (Linux). The thread of a
 * minder_set lives as long as the set. On Windows every child dies with this process.
 */
minder_status minder_command_die_with_parent(minder_command *command, bool yes);


/*
 * Output: one command, run to its end, with what it wrote.
 */

/** The output of a command, and its exit. Freed by minder_output_free(). */
typedef struct minder_output minder_output;

/** The options of a command that runs to its end. */
typedef struct {
    /** The size of this structure. */
    uint32_t size;
    /** Not 0: the standard error arrives in the standard output, in the order of the writes. */
    int32_t merge_stderr;
    /** The longest time for which the child may run, in nanoseconds. 0: without a limit. */
    int64_t timeout;
    /** The way in which it is killed after that. */
    const minder_termination *kill;
    /** The most bytes of output. 0: the default. More than that is MINDER_LIMIT. */
    size_t max_bytes;
    /** The standard input of the child; NULL: nothing. */
    const uint8_t *input;
    /** The number of bytes of `input`. */
    size_t input_len;
} minder_output_options;

/**
 * Starts a command, waits until it exits, and stores what it wrote. The options may be NULL.
 *
 * A child that fails or is killed is not an error: see minder_output_exit(). Its outputs are pipes, and
 * its input is empty, unless the command or the options set them.
 */
minder_status minder_command_output(const minder_command *command,
                                    const minder_output_options *options,
                                    minder_output **output);

/** Frees an output with its bytes. */
void minder_output_free(minder_output *output);

/** Stores how the command exited. */
minder_status minder_output_exit(const minder_output *output, minder_exit *exit);

/**
 * Returns the bytes of MINDER_STDOUT or MINDER_STDERR, and stores their number. They are valid until the
 * output is freed. A NUL, which does not count, follows the last byte.
 */
const uint8_t *minder_output_bytes(const minder_output *output,
                                   int32_t stream,
                                   size_t *len);


/*
 * Child: one process, for programs that have few of them. Several threads may wait for it, write to it and
 * kill it at the same time.
 */

/** A child process. Freed by minder_child_free(). */
typedef struct minder_child minder_child;

/** Starts a command, and stores the child. */
minder_status minder_command_spawn(const minder_command *command, minder_child **child);

/**
 * Frees a child, and closes its pipes. It is not killed: if it still runs, it becomes a zombie when it
 * exits, until a later start or wait of this library reaps it.
 */
void minder_child_free(minder_child *child);

/** Returns the pid; 0 for NULL. No other process gets it before the child was waited for. */
uint32_t minder_child_pid(const minder_child *child);

/**
 * Waits until the child exits, for at most `timeout`, and stores how it exited; `exit` may be NULL.
 *
 * Returns MINDER_TIMED_OUT if it still runs. A time-out of 0 only asks. A wait without a limit
 * (MINDER_FOREVER) first closes the input of the child, which might otherwise wait for more. The outputs
 * stay open: read them before, since a child blocks while its pipe is full.
 */
minder_status minder_child_wait(const minder_child *child,
                                int64_t timeout,
                                minder_exit *exit);

/**
 * Kills the child with everything that it started, or sends the first signal of `how`. Returns at once.
 * Without effect after the child was waited for.
 */
minder_status minder_child_kill(const minder_child *child,
                                const minder_termination *how);

/**
 * Kills the child with everything that it started, with all signals and pauses of `how`. Waits until all
 * of them have exited, and stores how the child exited; `exit` may be NULL.
 */
minder_status minder_child_kill_and_wait(const minder_child *child,
                                         const minder_termination *how,
                                         minder_exit *exit);

/**
 * Writes to the standard input of the child, which is MINDER_PIPE. Blocks while the pipe is full. Stores
 * how many bytes were written; less than `len` only after an error.
 */
minder_status minder_child_write(const minder_child *child,
                                 const uint8_t *bytes,
                                 size_t len,
                                 size_t *written);

/** Closes the standard input of the child: it reads the end of it. Without effect if it has none. */
minder_status minder_child_close_stdin(const minder_child *child);

/**
 * Reads what the child wrote to MINDER_STDOUT or MINDER_STDERR, which is MINDER_PIPE. Blocks while there
 * is nothing. Stores how many bytes were read; 0 at the end.
 */
minder_status minder_child_read(const minder_child *child,
                                int32_t stream,
                                uint8_t *buffer,
                                size_t capacity,
                                size_t *count);

/**
 * Returns our end of the pipe of a stream, for read(2), write(2) or a loop of the caller; MINDER_NO_FD if
 * the stream is not a pipe. It belongs to the child: do not close it.
 */
minder_fd minder_child_fd(const minder_child *child,
                          int32_t stream);

/** Sets the size of the terminal of a child that was started with minder_command_terminal(). */
minder_status minder_child_resize(const minder_child *child, uint16_t rows, uint16_t columns);


/*
 * Events: what happens to the children of a set.
 *
 * For one child the events come in this order: MINDER_EVENT_OUTPUT and MINDER_EVENT_EOF of each stream in
 * the order of the bytes; MINDER_EVENT_EXITED after the last byte; MINDER_EVENT_DONE after everything
 * else. A child that is started again reports each run in this way, with MINDER_EVENT_RESTARTING in place
 * of MINDER_EVENT_DONE.
 *
 * A minder_events is for one thread at a time: it holds the events that minder_set_take() moved there.
 */

/** The kind of an event. */
enum minder_event_kind
#if defined(__cplusplus) || __STDC_VERSION__ >= 202311L
  : int32_t
#endif // defined(__cplusplus) || __STDC_VERSION__ >= 202311L
 {
    /** The child wrote `bytes` to `stream`. */
    MINDER_EVENT_OUTPUT = 1,
    /** `stream` is at its end. */
    MINDER_EVENT_EOF = 2,
    /** There is room again for minder_set_write(). */
    MINDER_EVENT_WRITABLE = 3,
    /** The signal `signal` stopped the child (job control). */
    MINDER_EVENT_STOPPED = 4,
    /** The child exited as `exit` says. */
    MINDER_EVENT_EXITED = 5,
    /**
     * A run ended as `exit` says, and the child is started again after `delay`, for the `restarts`-th
     * time.
     */
    MINDER_EVENT_RESTARTING = 6,
    /** The child was started again as the process `pid`. */
    MINDER_EVENT_RESTARTED = 7,
    /** The child could not be started again: `error` says why. Another attempt or the end follows. */
    MINDER_EVENT_RESTART_FAILED = 8,
    /**
     * The child is done as `exit` says: it exited, and its outputs ended or were closed. Its id is not
     * valid any more.
     */
    MINDER_EVENT_DONE = 9,
};
#ifndef __cplusplus
#if __STDC_VERSION__ >= 202311L
typedef enum minder_event_kind minder_event_kind;
#else
typedef int32_t minder_event_kind;
#endif // __STDC_VERSION__ >= 202311L
#endif // __cplusplus

/** Events that were taken from a set. Freed by minder_events_free(). */
typedef struct minder_events minder_events;

/**
 * Names a child of a set. It is valid until the child is done. No set of this process gives it out again
 * before 2^31 other children were started.
 */
typedef uint64_t minder_child_id;

/** An event. The library makes these structures, and later versions may add members at the end. */
typedef struct {
    /** The child that it is about. */
    minder_child_id child;
    /** One of minder_event_kind. */
    int32_t kind;
    /** One of minder_stream, for MINDER_EVENT_OUTPUT and MINDER_EVENT_EOF. */
    int32_t stream;
    /** The output of the child; NULL for other kinds. No NUL follows. */
    const uint8_t *bytes;
    /** The number of bytes. */
    size_t len;
    /** The exit of the child; NULL for other kinds. */
    const minder_exit *exit;
    /** Why the child could not be started again; NULL for other kinds. */
    const char *error;
    /** The time until the next start, in nanoseconds. */
    int64_t delay;
    /** The number of times that the child was started again. */
    uint64_t restarts;
    /** The new process. */
    uint32_t pid;
    /** The signal that stopped the child. */
    int32_t signal;
    /**
     * The pointer that minder_spawn_options or minder_set_set_user() gave to the child; NULL by
     * default. Every kind has it. MINDER_EVENT_DONE is the last event of the child: the host may
     * free its object then.
     */
    void *user;
} minder_event;

/** Creates an empty list of events. Never returns NULL. */
minder_events *minder_events_new(void);

/** Frees a list of events, with those that were not looked at. */
void minder_events_free(minder_events *events);

/**
 * Returns the next event, or NULL if there is none. The event and its bytes are valid until the next call
 * with this list; then their memory counts no more in the limits of the set.
 */
const minder_event *minder_events_next(minder_events *events);

/** Returns how many events minder_events_next() has left. */
size_t minder_events_count(const minder_events *events);


/*
 * Guardian: a small program that ends the children of this process when it is killed, `kill -9` included.
 *
 * It is for a process that may not fork: an editor, an interpreter, a plugin. The program is
 * `minder-guardian`, which is installed with the library. Guarded are the children of a set with
 * minder_set_options.guardian, those of minder_guardian_spawn(), and processes of minder_guardian_guard().
 */

/** A process on the list of a guardian. Freed by minder_guarded_free(), before the process is reaped. */
typedef struct minder_guarded minder_guarded;

/** The program that ends children. Freed by minder_guardian_free(). */
typedef struct minder_guardian minder_guardian;

/** The options with which the program is started. Zero is the default of each. */
typedef struct {
    /** The size of this structure. */
    uint32_t size;
    /** Not 0: descendants are found even if they left the group and lost their parent (Linux). */
    int32_t tag;
    /** Not 0: the program is started again if it has exited. Otherwise the next start of a child fails. */
    int32_t restart;
    /** Not 0: the program prints to the standard error of this process what it could not kill. */
    int32_t inherit_stderr;
    /** The time between SIGTERM and SIGKILL. Default: the children are killed at once. */
    int64_t grace;
    /** The longest wait until the program is ready. Default: 10 s. */
    int64_t start_timeout;
    /**
     * The path of the program; NULL: $MINDER_GUARDIAN, or `minder-guardian` in the directory of
     * this program or in PATH.
     */
    const char *program;
} minder_guardian_options;

/** Starts the program, waits until it is ready, and stores the handle. The options may be NULL. */
minder_status minder_guardian_new(const minder_guardian_options *options,
                                  minder_guardian **guardian);

/**
 * Frees a handle. Sets and children that are guarded keep the program; with the last of them it exits, and
 * children that still run are not guarded any more.
 */
void minder_guardian_free(minder_guardian *guardian);

/** Returns the pid of the program; 0 on Windows, where job objects do its work, and for NULL. */
uint32_t minder_guardian_pid(const minder_guardian *guardian);

/** Starts a guarded command, and stores the child: see minder_command_spawn(). */
minder_status minder_guardian_spawn(const minder_guardian *guardian,
                                    const minder_command *command,
                                    minder_child **child);

/**
 * Puts a child of this process that was started by other code on the list, such as by fork(2), and stores
 * the handle. Not on Windows (MINDER_UNSUPPORTED).
 *
 * The child is killed like the others, with its process group if it leads one at the time of this call. It
 * is not guarded before this call has returned. If this process may be killed in between, let the child
 * first read a byte from a pipe, which this process writes after the call: at end of file the child exits.
 * The child has to close its copy of the pipe's other end.
 *
 * A pid that is not that of a child, or of one that was reaped, is MINDER_UNKNOWN.
 */
minder_status minder_guardian_guard(const minder_guardian *guardian,
                                    uint32_t pid,
                                    minder_guarded **guarded);

/**
 * Frees a handle, and removes the process from the list. To be called before the process is reaped by
 * wait(2) or a similar function: afterwards its pid and its group may be those of other processes. The
 * process runs on. In a process that was made by fork(2) the list stays as it is.
 */
void minder_guarded_free(minder_guarded *guarded);


/*
 * Set: many children, and a thread that reads their outputs all the time.
 *
 * The program watches one descriptor, minder_set_fd(), in its loop, or waits by minder_set_wait(). Then
 * it takes the events. Output in memory is limited, and so is everything that waits. Where there is no
 * room, a child blocks, its output goes to a file, or its oldest bytes are dropped.
 *
 *     while (minder_set_children(set) > 0 && minder_set_wait(set, MINDER_FOREVER) == MINDER_OK) {
 *         minder_set_take(set, events, SIZE_MAX, NULL);
 *         while ((event = minder_events_next(events)) != NULL)
 *             if (event->kind == MINDER_EVENT_OUTPUT) fwrite(event->bytes, 1, event->len, stdout);
 *     }
 */

/** The treatment of output for which there is no room in memory. */
enum minder_overflow
#if defined(__cplusplus) || __STDC_VERSION__ >= 202311L
  : int32_t
#endif // defined(__cplusplus) || __STDC_VERSION__ >= 202311L
 {
    /** Stop reading the child until events were taken and looked at. It blocks when its pipe is full. */
    MINDER_OVERFLOW_BLOCK = 0,
    /** Write the output to a private file, and hand it over in order when there is room. */
    MINDER_OVERFLOW_SPILL = 1,
    /** Drop the oldest bytes that were not taken, and count them in minder_exit. */
    MINDER_OVERFLOW_DROP_OLDEST = 2,
};
#ifndef __cplusplus
#if __STDC_VERSION__ >= 202311L
typedef enum minder_overflow minder_overflow;
#else
typedef int32_t minder_overflow;
#endif // __STDC_VERSION__ >= 202311L
#endif // __cplusplus

/** The time at which output is handed over. */
enum minder_output_mode
#if defined(__cplusplus) || __STDC_VERSION__ >= 202311L
  : int32_t
#endif // defined(__cplusplus) || __STDC_VERSION__ >= 202311L
 {
    /** As it arrives. */
    MINDER_OUTPUT_STREAM = 0,
    /** All of it after the exit. It needs MINDER_OVERFLOW_SPILL or MINDER_OVERFLOW_DROP_OLDEST. */
    MINDER_OUTPUT_AT_EXIT = 1,
};
#ifndef __cplusplus
#if __STDC_VERSION__ >= 202311L
typedef enum minder_output_mode minder_output_mode;
#else
typedef int32_t minder_output_mode;
#endif // __STDC_VERSION__ >= 202311L
#endif // __cplusplus

/** The condition under which a child is started again after it exited. */
enum minder_restart
#if defined(__cplusplus) || __STDC_VERSION__ >= 202311L
  : int32_t
#endif // defined(__cplusplus) || __STDC_VERSION__ >= 202311L
 {
    /** Never. */
    MINDER_RESTART_NEVER = 0,
    /** After a signal and after any code except 0. */
    MINDER_RESTART_ON_FAILURE = 1,
    /** Always. */
    MINDER_RESTART_ALWAYS = 2,
};
#ifndef __cplusplus
#if __STDC_VERSION__ >= 202311L
typedef enum minder_restart minder_restart;
#else
typedef int32_t minder_restart;
#endif // __STDC_VERSION__ >= 202311L
#endif // __cplusplus

/** Many children, and the thread that serves them. Freed by minder_set_free(). */
typedef struct minder_set minder_set;

/** The limits of a set. Zero is the default of each. */
typedef struct {
    /** The size of this structure. */
    uint32_t size;
    /** Not 0: MINDER_EVENT_EXITED comes when a child exits, even before its last bytes. */
    int32_t eager_exit;
    /** The most children at once. A child counts until its end was taken. Default: 65,536. */
    size_t max_children;
    /** The most bytes of output in memory, in the set and in lists of events. Default: 16 MiB. */
    size_t max_buffered_bytes;
    /** The most bytes of output in memory for one child. Default: 1 MiB. */
    size_t max_child_bytes;
    /** The size of one read, at most 16 MiB. Default: 64 KiB. */
    size_t read_buffer_bytes;
    /** The most bytes that wait to be written to one child. Default: 256 KiB. */
    size_t max_input_bytes;
    /**
     * The time for which the thread waits for more after a small piece of output. Default: it does
     * not.
     */
    int64_t coalesce_delay;
    /** The delay before the first read of an output. Default: none. */
    int64_t read_delay;
    /**
     * The time for which an output may be silent after the exit before it is closed. Default: 100
     * ms. MINDER_FOREVER: it is never closed.
     */
    int64_t leak_timeout;
    /**
     * The interval at which the thread polls for children that were stopped by a signal. Default:
     * never.
     */
    int64_t stop_poll_interval;
    /** The longest time for which a call waits for the thread. Default: 30 s. */
    int64_t call_timeout;
    /** The directory for spilled output; NULL: that for temporary files. */
    const char *spill_dir;
    /** The wait backend, as minder_poller_backend() names it; NULL: the best one. */
    const char *backend;
    /** Ends the children when this process is killed; NULL: nothing does. The set keeps the guardian. */
    const minder_guardian *guardian;
} minder_set_options;

/** The options of one child of a set. Zero is the default of each. */
typedef struct {
    /** The size of this structure. */
    uint32_t size;
    /** One of minder_overflow. */
    int32_t overflow;
    /** One of minder_output_mode. */
    int32_t output_mode;
    /** One of minder_restart. */
    int32_t restart;
    /** The longest time for which the child may run, restarts included. Default: without a limit. */
    int64_t timeout;
    /** The way in which it is killed after that. */
    const minder_termination *timeout_kill;
    /** The delay before the first restart. It doubles. Default: 100 ms. */
    int64_t restart_delay;
    /** The longest delay before a restart. Default: 60 s. */
    int64_t restart_max_delay;
    /** The time for which a child has to run so that the delay begins anew. Default: 10 s. */
    int64_t restart_stable_after;
    /** The most restarts in a row. Default: any number. */
    uint32_t restart_max_count;
    /** Zero. */
    uint32_t reserved;
    /**
     * The place where minder_set_spawn() stores the pid, as minder_set_pid() returns it; NULL:
     * nowhere. The pid is 0 if the start fails, or if another thread has taken the end of the
     * child meanwhile.
     */
    uint32_t *pid;
    /**
     * A pointer of the host, such as to its object for this child: every event of the child has it, also
     * after a restart. The library does not touch what it points to. Default: NULL.
     */
    void *user;
} minder_spawn_options;

/** Starts the thread of a set, and stores the set. The options may be NULL. */
minder_status minder_set_new(const minder_set_options *options, minder_set **set);

/**
 * Frees a set. It ends the thread and closes the pipes, and it kills no child: call minder_set_stop()
 * before. In a forked process it only frees what belongs to that process.
 */
void minder_set_free(minder_set *set);

/**
 * Starts a child on the thread of the set, waits until it was started, and stores its id. The options may
 * be NULL; their `pid` is where the pid is stored.
 */
minder_status minder_set_spawn(const minder_set *set,
                               const minder_command *command,
                               const minder_spawn_options *options,
                               minder_child_id *child);

/**
 * Queues bytes for the standard input of a child, as many as there is room for, and stores how many. If
 * that is not all, MINDER_EVENT_WRITABLE reports that there is room again. Never blocks.
 */
minder_status minder_set_write(const minder_set *set,
                               minder_child_id child,
                               const uint8_t *bytes,
                               size_t len,
                               size_t *written);

/** Closes the standard input of a child after the queued bytes were written. */
minder_status minder_set_close_stdin(const minder_set *set, minder_child_id child);

/** Kills a child with everything that it started. Returns at once; MINDER_EVENT_DONE reports the end. */
minder_status minder_set_kill(const minder_set *set,
                              minder_child_id child,
                              const minder_termination *how);

/** Kills a child with everything that it started, and starts it again. The child has a restart policy. */
minder_status minder_set_restart(const minder_set *set,
                                 minder_child_id child,
                                 const minder_termination *how);

/** Suspends a child with everything that it started. Its time-out does not run meanwhile. */
minder_status minder_set_suspend(const minder_set *set, minder_child_id child);

/** Resumes a child that is suspended. */
minder_status minder_set_resume(const minder_set *set, minder_child_id child);

/** Sets the size of the terminal of a child that was started with minder_command_terminal(). */
minder_status minder_set_resize(const minder_set *set,
                                minder_child_id child,
                                uint16_t rows,
                                uint16_t columns);

/** Stores the pid of a child. Once the child is done, the pid may belong to another process. */
minder_status minder_set_pid(const minder_set *set, minder_child_id child, uint32_t *pid);

/**
 * Stores the pointer that the host gave to a child: in its options, or by minder_set_set_user().
 * MINDER_UNKNOWN once MINDER_EVENT_DONE of the child was taken.
 */
minder_status minder_set_user(const minder_set *set, minder_child_id child, void **user);

/**
 * Gives another pointer of the host to a child. Events that are taken later have it; those in a list keep
 * the one before, so keep its object until they were looked at. MINDER_UNKNOWN once MINDER_EVENT_DONE of
 * the child was taken.
 */
minder_status minder_set_set_user(const minder_set *set,
                                  minder_child_id child,
                                  void *user);

/**
 * Returns a descriptor for the loop of the program: readable exactly while minder_set_take() would move an
 * event. Watch it level-triggered, do not read from it, and do not close it.
 */
minder_fd minder_set_fd(const minder_set *set);

/**
 * Waits until minder_set_take() would move an event, for at most `timeout`. Returns MINDER_TIMED_OUT if
 * there is none. A set without children waits, too: another thread may start one.
 */
minder_status minder_set_wait(const minder_set *set,
                              int64_t timeout);

/**
 * Moves events to the end of a list, and stores how many; `count` may be NULL. Never blocks.
 *
 * The events come child by child. The call stops before the moved bytes of output exceed `max_bytes`, but
 * moves one event if there is one.
 */
minder_status minder_set_take(const minder_set *set,
                              minder_events *events,
                              size_t max_bytes,
                              size_t *count);

/** Returns how many children were started whose end was not taken yet. */
size_t minder_set_children(const minder_set *set);

/** Returns how many bytes of output wait to be taken. */
size_t minder_set_queued_bytes(const minder_set *set);

/**
 * Returns the first error since the last call that belongs to no other call, such as a spill file that
 * cannot be written; MINDER_OK if there was none. The set continues after such an error.
 */
minder_status minder_set_take_error(const minder_set *set);

/**
 * Kills all children with everything that they started, ends the thread, and waits for that. The children
 * are asked to exit, and killed after `grace`; at once if that is 0. Events that were not taken are
 * dropped. Later calls with this set fail.
 */
minder_status minder_set_stop(const minder_set *set,
                              int64_t grace);


/*
 * Poller: waits for descriptors, processes and timers, by epoll, io_uring, kqueue, poll or a completion
 * port.
 *
 * It is level-triggered, unless a flag of the interest says otherwise: a source that stays ready is
 * reported by every wait. A change by another thread takes effect in a running wait. Delete a source
 * before it is closed.
 */

/** A read would not block; a process has exited. */
#define MINDER_READABLE 1

/** A write would not block. */
#define MINDER_WRITABLE 2

/** In an interest: report the source once, until minder_poller_arm() or minder_poller_modify(). */
#define MINDER_ONESHOT 4

/** In an interest: report each change once. */
#define MINDER_EDGE 8

/** In a report: the other side is closed, or the source has an error. A read or write returns which. */
#define MINDER_CLOSED 16

/** In a report: a timer has expired. */
#define MINDER_EXPIRED 32

/** In an interest: the descriptor is a SOCKET of Windows. Without effect elsewhere. */
#define MINDER_SOCKET 64

/** The highest token. The others are reserved. */
#define MINDER_TOKEN_MAX (UINT64_MAX - 16)

/** Waits for many sources. Freed by minder_poller_free(). */
typedef struct minder_poller minder_poller;

/** One source or timer that is ready. Its size does not change: the caller has an array of them. */
typedef struct {
    /** The token that it was registered with. */
    uint64_t token;
    /** MINDER_READABLE, MINDER_WRITABLE, MINDER_CLOSED, MINDER_EXPIRED. */
    uint32_t flags;
    /** Zero. */
    uint32_t reserved;
} minder_ready;

/** Opens a wait backend by its name, such as "epoll" or "io_uring", or the best one for NULL. */
minder_status minder_poller_new(const char *backend, minder_poller **poller);

/** Frees a poller. Its sources stay open. */
void minder_poller_free(minder_poller *poller);

/**
 * Replaces a poller by an empty one with the same backend: in a process that was made by fork(2), or to
 * drop all registrations. Frees the old handle, even if the new one cannot be made and is NULL.
 */
minder_status minder_poller_renew(minder_poller **poller);

/** Returns the name of the backend; "" for NULL. */
const char *minder_poller_backend(const minder_poller *poller);

/** Registers a descriptor. MINDER_INVALID if it is registered already. */
minder_status minder_poller_add(const minder_poller *poller,
                                minder_fd fd,
                                uint32_t interest,
                                uint64_t token);

/**
 * Changes the interest and the token of a descriptor, and enables it again if it is MINDER_ONESHOT.
 * MINDER_UNKNOWN if it is not registered.
 */
minder_status minder_poller_modify(const minder_poller *poller,
                                   minder_fd fd,
                                   uint32_t interest,
                                   uint64_t token);

/**
 * Registers a descriptor, or changes its interest and token if it is registered. For a scheduler that does
 * not learn whether the descriptor was closed and its number used again since.
 */
minder_status minder_poller_arm(const minder_poller *poller,
                                minder_fd fd,
                                uint32_t interest,
                                uint64_t token);

/**
 * Deletes a descriptor. Waits that begin after this call do not report it. MINDER_UNKNOWN if it is not
 * registered.
 */
minder_status minder_poller_delete(const minder_poller *poller,
                                   minder_fd fd);

/**
 * Registers the exit of a process, a child or not: MINDER_READABLE is reported from its exit until it is
 * deleted. MINDER_UNKNOWN if there is no such process (any more).
 */
minder_status minder_poller_add_process(const minder_poller *poller,
                                        uint32_t pid,
                                        uint64_t token);

/** Deletes a process. */
minder_status minder_poller_delete_process(const minder_poller *poller, uint32_t pid);

/**
 * Adds a timer, which is reported once, after `delay` and within `tolerance` of it. Timers share wake-ups
 * where their tolerances allow it. MINDER_INVALID for a token that has a timer.
 */
minder_status minder_poller_add_timer(const minder_poller *poller,
                                      uint64_t token,
                                      int64_t delay,
                                      int64_t tolerance);

/** Deletes a timer. MINDER_UNKNOWN if the token has none, or it was reported. */
minder_status minder_poller_delete_timer(const minder_poller *poller, uint64_t token);

/**
 * Waits until a source is ready, a timer has expired or minder_poller_notify() is called, for at most
 * `timeout`. Fills the array of the caller, and stores how many elements it filled.
 *
 * Returns MINDER_TIMED_OUT with none, and MINDER_WOKEN after a notification, maybe with some. If the
 * array is too small, the next wait reports the rest, even if its sources were deleted meanwhile: some
 * hundred elements are enough for all sources. A signal does not end the wait.
 */
minder_status minder_poller_wait(const minder_poller *poller,
                                 int64_t timeout,
                                 minder_ready *ready,
                                 size_t capacity,
                                 size_t *count);

/** Ends the running wait, or else the next one. May be called from any thread. */
minder_status minder_poller_notify(const minder_poller *poller);

/**
 * Returns a descriptor for another loop: readable while minder_poller_wait() would return at once.
 * MINDER_NO_FD on Windows.
 */
minder_fd minder_poller_fd(const minder_poller *poller);


/*
 * Executor: runs a function for many objects, some at once, and another one for each that is done.
 *
 * The processor runs on threads of the library, at most `degree` at once. The finisher runs on the thread
 * that called minder_execute(), for one object at a time, as soon as its processor has ended: it needs no
 * locks. The same call with `serial` runs both on the caller's thread, one object after the other.
 *
 * An executor has no handle: everything about it is in its options, and it ends with its call.
 */

/** In which order objects start. */
enum minder_order
#if defined(__cplusplus) || __STDC_VERSION__ >= 202311L
  : int32_t
#endif // defined(__cplusplus) || __STDC_VERSION__ >= 202311L
 {
    /** In the order of the array. */
    MINDER_ORDER_FIFO = 0,
    /** Those with the least cost first: the best mean time until an object is done. */
    MINDER_ORDER_SHORTEST_FIRST = 1,
    /** Those with the greatest cost first: the best time until all are done. */
    MINDER_ORDER_LONGEST_FIRST = 2,
    /** By chance: the same seed gives the same order. */
    MINDER_ORDER_RANDOM = 3,
};
#ifndef __cplusplus
#if __STDC_VERSION__ >= 202311L
typedef enum minder_order minder_order;
#else
typedef int32_t minder_order;
#endif // __STDC_VERSION__ >= 202311L
#endif // __cplusplus

/** The options of a run. Zero is the default of each. */
typedef struct {
    /** The size of this structure. */
    uint32_t size;
    /** The most processors at once. Default: as many as the machine has processors. */
    uint32_t degree;
    /** One of minder_order. */
    int32_t order;
    /** Not 0: both functions run on the caller's thread, one object after the other. */
    int32_t serial;
    /**
     * The number of times that an object is processed at most, until its processor returns 0.
     * Default: once.
     */
    uint32_t max_attempts;
    /** Zero. */
    uint32_t reserved;
    /** The cost of each object, in any unit, for the orders by cost; NULL: they are equal. */
    const uint64_t *costs;
    /** For MINDER_ORDER_RANDOM. */
    uint64_t seed;
} minder_execute_options;

/**
 * Processes an object, on any thread. Returns 0, or a number that the finisher gets. No exception and no
 * longjmp(3) may leave it.
 */
typedef int32_t (*minder_processor)(void *user, void *object);

/**
 * Finishes an object, on the thread of the caller, with what its processor returned. Returns 0 to
 * continue; with another number no further object starts, and the finisher is not called again, even for
 * objects that were processed before or still run. No exception and no longjmp(3) may leave it.
 */
typedef int32_t (*minder_finisher)(void *user, void *object, int32_t result);

/** The result of a run. */
typedef struct {
    /** The size of this structure. */
    uint32_t size;
    /** The number of threads that were started. */
    uint32_t threads;
    /** The number of objects whose processor returned 0 in the end. */
    uint64_t succeeded;
    /** The number of objects whose processor returned another number in the end. */
    uint64_t failed;
    /** The number of objects that were not processed, because the finisher stopped the run. */
    uint64_t not_run;
} minder_execute_summary;

/**
 * Runs `processor` and then `finisher` for each of the `count` objects, and returns when all are
 * finished. The options and the summary may be NULL. `user` is passed to both functions.
 *
 * The processors of several objects run at the same time. Two finishers never run at the same
 * time. The library does not touch the objects, and passes each to one processor at a time.
 *
 * Returns MINDER_INVALID if `count` is more than memory can hold, and MINDER_EXHAUSTED if the memory for the
 * objects is not free. No function was called then.
 */
minder_status minder_execute(const minder_execute_options *options,
                             void *const *objects,
                             size_t count,
                             minder_processor processor,
                             minder_finisher finisher,
                             void *user,
                             minder_execute_summary *summary);


/*
 * Framer: messages in the output of a child, which arrives in chunks that end anywhere.
 *
 * One framer for each stream of each child takes the chunks, and returns whole messages. A message that
 * lies whole in a chunk is not copied. A framer is for one thread at a time.
 *
 *     const uint8_t *rest = event->bytes;
 *     size_t left = event->len;
 *     for (;;) {
 *         const minder_status status = minder_framer_next(framer, &rest, &left, &frame);
 *         if (status == MINDER_OK) handle_message(frame.bytes, frame.len);
 *         else if (status == MINDER_NONE || minder_framer_resync(framer) != MINDER_OK) break;
 *     }
 *
 * The loop ends when all bytes of the chunk are taken. After a malformed frame it continues with the rest
 * of the chunk, in which the next frame may begin. A program that gives the stream up after an error ends
 * the loop there.
 */

/** The separator of messages. */
enum minder_frame_format
#if defined(__cplusplus) || __STDC_VERSION__ >= 202311L
  : int32_t
#endif // defined(__cplusplus) || __STDC_VERSION__ >= 202311L
 {
    /** Lines that end with LF. */
    MINDER_FRAME_LINES = 0,
    /** Texts that end with NUL: `find -print0`, `git -z`. */
    MINDER_FRAME_NUL = 1,
    /** A header with Content-Length, as language servers (LSP) and debug adapters (DAP) write it. */
    MINDER_FRAME_CONTENT_LENGTH = 2,
    /** A length of four bytes, the highest first. */
    MINDER_FRAME_LENGTH_BE32 = 3,
    /** A length of four bytes, the lowest first. */
    MINDER_FRAME_LENGTH_LE32 = 4,
};
#ifndef __cplusplus
#if __STDC_VERSION__ >= 202311L
typedef enum minder_frame_format minder_frame_format;
#else
typedef int32_t minder_frame_format;
#endif // __STDC_VERSION__ >= 202311L
#endif // __cplusplus

/** Makes messages of one stream. Freed by minder_framer_free(). */
typedef struct minder_framer minder_framer;

/** The options of a framer. Zero is the default of each. */
typedef struct {
    /** The size of this structure. */
    uint32_t size;
    /** One of minder_frame_format. */
    int32_t format;
    /** Not 0: CR before LF does not count as part of a line. */
    int32_t strip_cr;
    /** Not 0: the last line may lack its LF. */
    int32_t allow_unterminated_line;
    /** The most bytes of a message. Default: 16 MiB. */
    size_t max_frame_bytes;
    /** The name of the stream in errors; NULL: they do not name it. */
    const char *label;
} minder_framer_options;

/** A message. */
typedef struct {
    /** The size of this structure. */
    uint32_t size;
    /** Zero. */
    uint32_t reserved;
    /**
     * The message without header and terminator. Valid until the next call with the framer, and only as
     * long as the bytes that were passed.
     */
    const uint8_t *bytes;
    /** The number of bytes. */
    size_t len;
    /** The position in the stream at which the frame begins. */
    uint64_t offset;
} minder_frame;

/** Creates a framer. The options may be NULL: lines. */
minder_status minder_framer_new(const minder_framer_options *options, minder_framer **framer);

/** Frees a framer. */
void minder_framer_free(minder_framer *framer);

/**
 * Takes bytes from `*bytes`, which has `*len`, until a message is whole, and stores that. Moves both
 * behind what it took.
 *
 * Returns MINDER_NONE when all bytes are taken and no message is whole. A message that is too long is
 * MINDER_LIMIT, and a malformed header is MINDER_INVALID: then each further call returns the same error and
 * takes nothing, until minder_framer_resync(). `*bytes` points to where the error was found: after
 * minder_framer_resync(), pass this rest of the chunk again.
 */
minder_status minder_framer_next(minder_framer *framer,
                                 const uint8_t **bytes,
                                 size_t *len,
                                 minder_frame *frame);

/**
 * Ends the stream. Stores the last line if it may lack its LF. Returns MINDER_NONE if there is none, and
 * MINDER_FAILED if the stream ended within a message.
 */
minder_status minder_framer_finish(minder_framer *framer,
                                   minder_frame *frame);

/**
 * Skips the frame that caused an error: the next call of minder_framer_next() looks for the one after it,
 * in the rest of the same chunk and in those that follow.
 *
 * Returns MINDER_NONE if there was no such error, and does nothing then.
 */
minder_status minder_framer_resync(minder_framer *framer);

/**
 * Writes a message in a format, for the input of a child. Stores how many bytes that takes. Writes
 * nothing, and returns MINDER_LIMIT, if the buffer has less room; it may be NULL if `capacity` is 0.
 */
minder_status minder_frame_encode(int32_t format,
                                  const uint8_t *message,
                                  size_t len,
                                  uint8_t *buffer,
                                  size_t capacity,
                                  size_t *needed);


/** The version of this header, for minder_check_version(). */
#define MINDER_VERSION \
    ((uint32_t)(MINDER_VERSION_MAJOR << 16 | MINDER_VERSION_MINOR << 8 | MINDER_VERSION_PATCH))

#ifdef __cplusplus
} /* extern "C" */

/** Returns a structure with its size, and zero in all other members. */
template <typename T> inline T minder_initial() {
    T structure{};
    structure.size = sizeof(T);
    return structure;
}

#define MINDER_INIT(type) minder_initial<type>()
#else
/** The initial value of a structure: its size, and zero in all other members. */
#define MINDER_INIT(type) { .size = sizeof(type) }

/** For an argument `how`: SIGTERM, and a kill after `time` nanoseconds. */
#define MINDER_GRACEFUL(time) \
    (&(const minder_termination){ .size = sizeof(minder_termination), .grace = (time) })
#endif

#endif /* MINDER_H */
