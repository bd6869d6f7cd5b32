/**
 * @file
 *
 * minder for C++17: the handles of minder.h as classes, errors as exceptions, times of std::chrono.
 *
 * Every class is a handle: it moves and does not copy. A moved-from object may only be destroyed or assigned. The
 * rules of minder.h about threads hold. An error is thrown as minder::error. A destructor throws nothing.
 */
#ifndef MINDER_HPP
#define MINDER_HPP

#include <minder.h>

#include <chrono>
#include <cstdint>
#include <exception>
#include <initializer_list>
#include <iterator>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

namespace minder {

/** An error of the library: its status and one line of text. */
class error : public std::runtime_error {
public:
    error(minder_status status, int os_error, const char *text)
        : std::runtime_error(text), status_(status), os_error_(os_error) {}

    /** Returns the status, which is negative. */
    minder_status status() const noexcept { return status_; }
    /** Returns the number that the operating system gave; 0 if it gave none. */
    int os_error() const noexcept { return os_error_; }

private:
    minder_status status_;
    int os_error_;
};

/** Throws the last error of this thread if `status` is one. Returns the status otherwise. */
inline minder_status check(minder_status status) {
    if (status < 0) throw error(status, minder_last_os_error(), minder_last_error());
    return status;
}

/** Throws an error if the library does not fit the header that the program was compiled with. */
inline void check_version() { check(minder_check_version(MINDER_VERSION)); }

/** A time, as the library takes it. */
using duration = std::chrono::nanoseconds;
/** A wait without a limit. */
inline constexpr duration forever{-1};

/** The end of a child: see minder_exit. */
struct exit_info : minder_exit {
    exit_info() : minder_exit(MINDER_INIT(minder_exit)) {}
    explicit exit_info(const minder_exit &exit) : minder_exit(exit) {}

    /** Returns whether it exited with code 0. */
    bool success() const noexcept { return kind == MINDER_EXIT_CODE && code == 0; }
    /** Returns the processor time that it used. */
    duration cpu_time() const noexcept { return duration(user + system); }
};

/** How to kill a child with everything that it started. The default kills at once. */
class termination {
public:
    termination() = default;
    /** Asks by SIGTERM, and kills after `grace`. */
    static termination graceful(duration grace) {
        termination how;
        how.grace_ = grace;
        return how;
    }
    /** Sends these signals with a pause after each, and kills after the last one. */
    static termination signals(std::initializer_list<std::pair<int, duration>> steps) {
        termination how;
        for (const auto &[signal, pause] : steps) how.steps_.push_back({signal, 0, pause.count()});
        return how;
    }

private:
    friend class set;
    friend class child;
    friend class command;
    friend struct output_options;

    /** The structure for one call: it points into this object. */
    minder_termination raw() const {
        auto raw = MINDER_INIT(minder_termination);
        raw.step_count = static_cast<std::uint32_t>(steps_.size());
        raw.steps = steps_.data();
        raw.grace = grace_.count();
        return raw;
    }

    duration grace_{0};
    std::vector<minder_signal_step> steps_;
};

namespace detail {

/** Owns a handle. */
template <typename T, void (*free)(T *)> struct free_handle {
    void operator()(T *handle) const noexcept { free(handle); }
};
template <typename T, void (*free)(T *)> using owned = std::unique_ptr<T, free_handle<T, free>>;

inline const std::uint8_t *bytes_of(std::string_view text) {
    return reinterpret_cast<const std::uint8_t *>(text.data());
}
inline std::string_view text_of(const std::uint8_t *bytes, std::size_t len) {
    return {reinterpret_cast<const char *>(bytes), len};
}

/** Returns a limit as the options of C take it. There zero sets no limit: the shortest one is a nanosecond. */
inline std::int64_t limit_of(const std::optional<duration> &limit) {
    if (!limit) return 0;
    return *limit == duration(0) ? 1 : limit->count();
}

} // namespace detail

/** What a command wrote, and how it exited. */
class output {
public:
    /** Returns how it exited. */
    exit_info exit() const {
        exit_info exit;
        check(minder_output_exit(handle_.get(), &exit));
        return exit;
    }
    /** Returns what it wrote to its standard output. Valid as long as this object. */
    std::string_view stdout_bytes() const { return bytes(MINDER_STDOUT); }
    /** Returns what it wrote to its standard error. Valid as long as this object. */
    std::string_view stderr_bytes() const { return bytes(MINDER_STDERR); }

private:
    friend class command;
    explicit output(minder_output *handle) : handle_(handle) {}

    std::string_view bytes(minder_stream stream) const {
        std::size_t len = 0;
        const auto *bytes = minder_output_bytes(handle_.get(), stream, &len);
        return detail::text_of(bytes, len);
    }

    detail::owned<minder_output, minder_output_free> handle_;
};

/** How to run a command to its end. */
struct output_options {
    /** How long the child may run; no limit by default. Zero ends it at once; a negative time sets no limit. */
    std::optional<duration> timeout;
    /** How it is killed after that. */
    termination kill;
    /** What it reads as its standard input. */
    std::string_view input;
    /** Whether the standard error arrives in the standard output. */
    bool merge_stderr = false;
    /** The most bytes of output; 0: the default. */
    std::size_t max_bytes = 0;
};

/** A child process: see minder_child. */
class child {
public:
    /** Returns the pid. */
    std::uint32_t pid() const noexcept { return minder_child_pid(handle_.get()); }

    /** Waits until the child exits. Returns nothing after the time-out. */
    std::optional<exit_info> wait(duration timeout) {
        exit_info exit;
        if (check(minder_child_wait(handle_.get(), timeout.count(), &exit)) != MINDER_OK) return std::nullopt;
        return exit;
    }
    /** Waits until the child exits. Closes its input first. */
    exit_info wait() { return *wait(forever); }

    /** Kills the child with everything that it started, or sends the first signal. */
    void kill(const termination &how = {}) {
        const auto raw = how.raw();
        check(minder_child_kill(handle_.get(), &raw));
    }
    /** Kills the child with everything that it started, and waits until all of them have exited. */
    exit_info kill_and_wait(const termination &how = {}) {
        const auto raw = how.raw();
        exit_info exit;
        check(minder_child_kill_and_wait(handle_.get(), &raw, &exit));
        return exit;
    }

    /** Writes to its standard input, which is a pipe. Blocks while that is full. */
    void write(std::string_view text) {
        check(minder_child_write(handle_.get(), detail::bytes_of(text), text.size(), nullptr));
    }
    /** Closes its standard input. */
    void close_stdin() { check(minder_child_close_stdin(handle_.get())); }

    /** Reads from an output, which is a pipe. Returns how many bytes it read; 0 at the end. */
    std::size_t read(minder_stream stream, void *buffer, std::size_t capacity) {
        std::size_t count = 0;
        check(minder_child_read(handle_.get(), stream, static_cast<std::uint8_t *>(buffer), capacity, &count));
        return count;
    }
    /** Reads an output to its end. */
    std::string read_all(minder_stream stream = MINDER_STDOUT) {
        std::string all;
        std::vector<char> buffer(64 << 10);
        while (std::size_t count = read(stream, buffer.data(), buffer.size())) all.append(buffer.data(), count);
        return all;
    }
    /** Returns our end of the pipe of a stream. It belongs to the child. */
    minder_fd fd(minder_stream stream) const noexcept { return minder_child_fd(handle_.get(), stream); }
    /** Sets the size of its terminal. */
    void resize(std::uint16_t rows, std::uint16_t columns) {
        check(minder_child_resize(handle_.get(), rows, columns));
    }

private:
    friend class command;
    friend class guardian;
    explicit child(minder_child *handle) : handle_(handle) {}
    detail::owned<minder_child, minder_child_free> handle_;
};

/** A program, its arguments and its environment: see minder_command. The setters return the command. */
class command {
public:
    explicit command(const std::string &program) : handle_(minder_command_new(program.c_str())) {
        if (!handle_) check(MINDER_INVALID);
    }
    command(const std::string &program, std::initializer_list<std::string> args) : command(program) {
        for (const auto &text : args) arg(text);
    }

    command &arg(const std::string &arg) { return set(minder_command_arg(get(), arg.c_str())); }
    command &env(const std::string &name, const std::string &value) {
        return set(minder_command_env(get(), name.c_str(), value.c_str()));
    }
    command &env_remove(const std::string &name) {
        return set(minder_command_env(get(), name.c_str(), nullptr));
    }
    command &env_clear() { return set(minder_command_env_clear(get())); }
    command &current_dir(const std::string &dir) {
        return set(minder_command_current_dir(get(), dir.c_str()));
    }
    command &stdio(minder_stream stream, minder_stdio stdio) {
        return set(minder_command_stdio(get(), stream, stdio));
    }
    command &stdio_fd(minder_stream stream, minder_fd fd) {
        return set(minder_command_stdio_fd(get(), stream, fd));
    }
    command &stdio_file(minder_stream stream, const std::string &path, bool append = false) {
        return set(minder_command_stdio_file(get(), stream, path.c_str(), append));
    }
    command &pass_fd(minder_fd fd) { return set(minder_command_pass_fd(get(), fd)); }
    command &group(minder_group group) { return set(minder_command_group(get(), group)); }
    command &terminal(std::uint16_t rows, std::uint16_t columns) {
        return set(minder_command_terminal(get(), rows, columns));
    }
    command &nice(int nice) { return set(minder_command_nice(get(), nice)); }
    /** Linux. */
    command &timer_slack(std::chrono::nanoseconds slack) {
        const auto count = slack.count() < 0 ? 0 : slack.count();
        return set(minder_command_timer_slack(get(), static_cast<std::uint64_t>(count)));
    }
    command &die_with_parent(bool yes) { return set(minder_command_die_with_parent(get(), yes)); }

    /** Starts the command. */
    minder::child spawn() const {
        minder_child *child = nullptr;
        check(minder_command_spawn(get(), &child));
        return minder::child(child);
    }
    /** Runs the command to its end, and returns what it wrote. */
    minder::output output(const output_options &options = {}) const {
        const auto kill = options.kill.raw();
        auto raw = MINDER_INIT(minder_output_options);
        raw.merge_stderr = options.merge_stderr;
        raw.timeout = detail::limit_of(options.timeout);
        raw.kill = &kill;
        raw.max_bytes = options.max_bytes;
        raw.input = options.input.empty() ? nullptr : detail::bytes_of(options.input);
        raw.input_len = options.input.size();
        minder_output *output = nullptr;
        check(minder_command_output(get(), &raw, &output));
        return minder::output(output);
    }

private:
    friend class set;
    friend class guardian;
    minder_command *get() const noexcept { return handle_.get(); }
    command &set(minder_status status) {
        check(status);
        return *this;
    }
    detail::owned<minder_command, minder_command_free> handle_;
};

/** A process on the list of a guardian, until it is destroyed or released: see minder_guarded. */
class guarded_process {
public:
    /** Removes the process from the list. To be called before it is reaped. */
    void release() noexcept { handle_.reset(); }

private:
    friend class guardian;
    explicit guarded_process(minder_guarded *handle) : handle_(handle) {}
    detail::owned<minder_guarded, minder_guarded_free> handle_;
};

/** A program that ends the children when this process is killed: see minder_guardian. */
class guardian {
public:
    explicit guardian(const minder_guardian_options &options = MINDER_INIT(minder_guardian_options)) {
        minder_guardian *made = nullptr;
        check(minder_guardian_new(&options, &made));
        handle_.reset(made);
    }
    /** Returns the pid of the program; 0 on Windows. */
    std::uint32_t pid() const noexcept { return minder_guardian_pid(get()); }
    /** Starts a guarded command. */
    minder::child spawn(const command &command) {
        minder_child *child = nullptr;
        check(minder_guardian_spawn(get(), command.get(), &child));
        return minder::child(child);
    }
    /** Puts a child that was started by other code on the list, such as by fork(2). */
    [[nodiscard]] guarded_process guard(std::uint32_t pid) {
        minder_guarded *guarded = nullptr;
        check(minder_guardian_guard(get(), pid, &guarded));
        return guarded_process(guarded);
    }
    /** Returns the handle, for minder_set_options. */
    minder_guardian *get() const noexcept { return handle_.get(); }

private:
    detail::owned<minder_guardian, minder_guardian_free> handle_;
};

/** An event of a set. Valid until the next call that takes events. */
struct event {
    const minder_event *raw;

    minder_child_id child() const noexcept { return raw->child; }
    /** Returns the object that spawn_options::user or set::set_user() gave to the child. Its type is that one. */
    template <typename T> T *user() const noexcept { return static_cast<T *>(raw->user); }
    minder_event_kind kind() const noexcept { return static_cast<minder_event_kind>(raw->kind); }
    minder_stream stream() const noexcept { return static_cast<minder_stream>(raw->stream); }
    /** Returns what the child wrote. */
    std::string_view bytes() const noexcept { return detail::text_of(raw->bytes, raw->len); }
    /** Returns how the child exited. Only for the kinds that have it. */
    exit_info exit() const { return exit_info(*raw->exit); }
};

/** Options of a child in a set: see minder_spawn_options. */
struct spawn_options {
    minder_overflow overflow = MINDER_OVERFLOW_BLOCK;
    minder_output_mode output_mode = MINDER_OUTPUT_STREAM;
    minder_restart restart = MINDER_RESTART_NEVER;
    /**
     * How long the child may run, restarts included; no limit by default. Zero ends it at once; a negative time
     * sets no limit.
     */
    std::optional<duration> timeout;
    /** How it is killed after that. */
    termination timeout_kill;
    /** Zero is the default of each. */
    duration restart_delay{0}, restart_max_delay{0}, restart_stable_after{0};
    std::uint32_t restart_max_count = 0;
    /** The program's object for the child, for event::user(). It lives until MINDER_EVENT_DONE. */
    void *user = nullptr;
};

/** Many children, and the thread that serves them: see minder_set. */
class set {
public:
    explicit set(const minder_set_options &options = MINDER_INIT(minder_set_options)) {
        minder_set *made = nullptr;
        check(minder_set_new(&options, &made));
        handle_.reset(made);
        events_.reset(minder_events_new());
    }

    minder_child_id spawn(const command &command, const spawn_options &options = {}) {
        const auto kill = options.timeout_kill.raw();
        auto raw = MINDER_INIT(minder_spawn_options);
        raw.overflow = options.overflow;
        raw.output_mode = options.output_mode;
        raw.restart = options.restart;
        raw.timeout = detail::limit_of(options.timeout);
        raw.timeout_kill = &kill;
        raw.restart_delay = options.restart_delay.count();
        raw.restart_max_delay = options.restart_max_delay.count();
        raw.restart_stable_after = options.restart_stable_after.count();
        raw.restart_max_count = options.restart_max_count;
        raw.user = options.user;
        minder_child_id child = 0;
        check(minder_set_spawn(get(), command.get(), &raw, &child));
        return child;
    }
    /** Queues bytes for the input of a child. Returns how many there was room for. */
    std::size_t write(minder_child_id child, std::string_view text) {
        std::size_t written = 0;
        check(minder_set_write(get(), child, detail::bytes_of(text), text.size(), &written));
        return written;
    }
    void close_stdin(minder_child_id child) { check(minder_set_close_stdin(get(), child)); }
    void kill(minder_child_id child, const termination &how = {}) {
        const auto raw = how.raw();
        check(minder_set_kill(get(), child, &raw));
    }
    void restart(minder_child_id child, const termination &how = {}) {
        const auto raw = how.raw();
        check(minder_set_restart(get(), child, &raw));
    }
    void suspend(minder_child_id child) { check(minder_set_suspend(get(), child)); }
    void resume(minder_child_id child) { check(minder_set_resume(get(), child)); }
    void resize(minder_child_id child, std::uint16_t rows, std::uint16_t columns) {
        check(minder_set_resize(get(), child, rows, columns));
    }
    std::uint32_t pid(minder_child_id child) const {
        std::uint32_t pid = 0;
        check(minder_set_pid(get(), child, &pid));
        return pid;
    }

    /** Returns the object that spawn_options::user or set_user() gave to the child. Its type is that one. */
    template <typename T> T *user(minder_child_id child) const {
        void *user = nullptr;
        check(minder_set_user(get(), child, &user));
        return static_cast<T *>(user);
    }
    /** Gives another object to a child. Events that are taken later have it. */
    void set_user(minder_child_id child, void *user) { check(minder_set_set_user(get(), child, user)); }

    /** Returns a descriptor for another loop: readable while take() would hand over an event. */
    minder_fd fd() const noexcept { return minder_set_fd(get()); }
    /** Returns how many children were started whose end was not taken yet. */
    std::size_t children() const noexcept { return minder_set_children(get()); }
    /** Waits for an event. Returns whether there is one before the time-out. */
    bool wait(duration timeout = forever) { return check(minder_set_wait(get(), timeout.count())) == MINDER_OK; }

    /** Hands over the events that have come. Returns how many. Never blocks. */
    template <typename Handler> std::size_t take(Handler &&handler, std::size_t max_bytes = SIZE_MAX) {
        std::size_t count = 0;
        check(minder_set_take(get(), events_.get(), max_bytes, &count));
        while (const minder_event *raw = minder_events_next(events_.get())) handler(event{raw});
        return count;
    }
    /** Hands over every event until all children are done. */
    template <typename Handler> void wait_all(Handler &&handler) {
        take(handler); // what is left if a handler has thrown
        while (children() > 0) {
            wait();
            take(handler);
        }
    }
    /** Throws the first error since the last call that belongs to no other call. */
    void check_errors() { check(minder_set_take_error(get())); }
    /** Kills all children: they are asked to exit, and killed after `grace`. Ends the thread. */
    void stop(duration grace = duration(0)) { check(minder_set_stop(get(), grace.count())); }

private:
    minder_set *get() const noexcept { return handle_.get(); }
    detail::owned<minder_set, minder_set_free> handle_;
    detail::owned<minder_events, minder_events_free> events_;
};

/** Waits for descriptors, processes and timers: see minder_poller. */
class poller {
public:
    explicit poller(const char *backend = nullptr) {
        minder_poller *made = nullptr;
        check(minder_poller_new(backend, &made));
        handle_.reset(made);
    }

    std::string_view backend() const noexcept { return minder_poller_backend(get()); }
    void add(minder_fd fd, std::uint32_t interest, std::uint64_t token) {
        check(minder_poller_add(get(), fd, interest, token));
    }
    void modify(minder_fd fd, std::uint32_t interest, std::uint64_t token) {
        check(minder_poller_modify(get(), fd, interest, token));
    }
    void arm(minder_fd fd, std::uint32_t interest, std::uint64_t token) {
        check(minder_poller_arm(get(), fd, interest, token));
    }
    void remove(minder_fd fd) { check(minder_poller_delete(get(), fd)); }
    void add_process(std::uint32_t pid, std::uint64_t token) {
        check(minder_poller_add_process(get(), pid, token));
    }
    void remove_process(std::uint32_t pid) { check(minder_poller_delete_process(get(), pid)); }
    void add_timer(std::uint64_t token, duration delay, duration tolerance = duration(0)) {
        check(minder_poller_add_timer(get(), token, delay.count(), tolerance.count()));
    }
    void remove_timer(std::uint64_t token) { check(minder_poller_delete_timer(get(), token)); }

    /** Waits, and calls `handler` with each minder_ready. Returns MINDER_OK, _TIMED_OUT or _WOKEN. */
    template <typename Handler> minder_status wait(Handler &&handler, duration timeout = forever) {
        minder_ready ready[128];
        std::size_t count = 0;
        const auto status = check(minder_poller_wait(get(), timeout.count(), ready, std::size(ready), &count));
        for (std::size_t i = 0; i < count; i++) handler(ready[i]);
        return status;
    }
    /** Ends the running wait, or else the next one. From any thread. */
    void notify() { check(minder_poller_notify(get())); }
    minder_fd fd() const noexcept { return minder_poller_fd(get()); }
    /** Replaces this by an empty poller, in a process that was made by fork(2). */
    void renew() {
        minder_poller *raw = handle_.release();
        const auto status = minder_poller_renew(&raw);
        handle_.reset(raw);
        check(status);
    }

private:
    minder_poller *get() const noexcept { return handle_.get(); }
    detail::owned<minder_poller, minder_poller_free> handle_;
};

/** A message, and where its frame begins in the stream. It converts to its bytes. */
struct frame {
    /** The message without header and terminator. Valid as long as the chunk, until the next call of the framer. */
    std::string_view bytes;
    /** How many bytes of the stream are before the frame, whose header is part of it. */
    std::uint64_t offset = 0;

    operator std::string_view() const noexcept { return bytes; }
};

/** How a framer reads: see minder_framer_options. */
struct framer_options {
    minder_frame_format format = MINDER_FRAME_LINES;
    /** Whether CR before LF does not count as part of a line. */
    bool strip_cr = false;
    /** Whether the last line may lack its LF: finish() returns it. */
    bool allow_unterminated_line = false;
    /** The most bytes of a message; 0: the default. */
    std::size_t max_frame_bytes = 0;
    /** What errors call the stream; empty: they do not name it. */
    std::string label;
};

/**
 * Makes messages of one stream: see minder_framer.
 *
 * A malformed frame is an exception. This loop continues after it, and loses no message of the chunk:
 *
 *     for (std::string_view rest = event.bytes(); !rest.empty();) {
 *         try {
 *             framer.take(rest, handle_message);
 *         } catch (const minder::error &) {
 *             if (!framer.resync()) throw; // it is from handle_message
 *         }
 *     }
 */
class framer {
public:
    explicit framer(const framer_options &options) {
        auto raw = MINDER_INIT(minder_framer_options);
        raw.format = options.format;
        raw.strip_cr = options.strip_cr;
        raw.allow_unterminated_line = options.allow_unterminated_line;
        raw.max_frame_bytes = options.max_frame_bytes;
        raw.label = options.label.empty() ? nullptr : options.label.c_str();
        minder_framer *made = nullptr;
        check(minder_framer_new(&raw, &made));
        handle_.reset(made);
    }
    explicit framer(minder_frame_format format, std::size_t max_frame_bytes = 0, const char *label = nullptr)
        : framer(framer_options{format, false, false, max_frame_bytes, label ? label : ""}) {}

    /**
     * Takes the next message from `rest`, which then begins after what was taken. Returns nothing when all bytes
     * are taken and no message is whole.
     *
     * Throws an error if the frame is malformed or too long. `rest` begins where that was found, and each
     * further call throws the same error, until resync().
     */
    std::optional<frame> next(std::string_view &rest) {
        auto raw = MINDER_INIT(minder_frame);
        const auto *bytes = detail::bytes_of(rest);
        std::size_t left = rest.size();
        const auto status = minder_framer_next(handle_.get(), &bytes, &left, &raw);
        rest.remove_prefix(rest.size() - left);
        return found(status, raw);
    }
    /**
     * Takes all of `rest`, and calls `handler` with each message as a minder::frame or a std::string_view.
     *
     * After an exception, `rest` begins where a malformed frame was found, or after the message for which the
     * handler has thrown. The program continues with it, after resync().
     */
    template <typename Handler> void take(std::string_view &rest, Handler &&handler) {
        while (const auto message = next(rest)) handler(*message);
    }
    /** The same for a chunk of which nothing is left after an exception: the stream cannot be continued then. */
    template <typename Handler> void take(const std::string_view &chunk, Handler &&handler) {
        std::string_view rest = chunk;
        take(rest, std::forward<Handler>(handler));
    }
    /** Skips the frame that caused an error. Returns whether there was one. */
    bool resync() { return check(minder_framer_resync(handle_.get())) == MINDER_OK; }
    /**
     * Ends the stream. Returns the last line if it has no LF and that is allowed. Throws an error if the stream
     * ended within a message.
     */
    std::optional<frame> finish() {
        auto raw = MINDER_INIT(minder_frame);
        const auto status = minder_framer_finish(handle_.get(), &raw);
        return found(status, raw);
    }

private:
    static std::optional<frame> found(minder_status status, const minder_frame &raw) {
        if (check(status) != MINDER_OK) return std::nullopt;
        return frame{detail::text_of(raw.bytes, raw.len), raw.offset};
    }

    detail::owned<minder_framer, minder_framer_free> handle_;
};

/** What a processor returned or threw, for the finisher. */
template <typename R> class outcome {
public:
    /** Creates the outcome of a processor that threw this. */
    explicit outcome(std::exception_ptr exception) : exception_(std::move(exception)) {}
    /** Creates the outcome of a processor that returned. A value may be an exception, too. */
    template <typename Value>
    outcome(std::in_place_t, Value &&value) : value_(std::in_place, std::forward<Value>(value)) {}

    /** Returns whether the processor returned. */
    explicit operator bool() const noexcept { return !exception_; }
    /** Returns what the processor threw; null if it returned. */
    const std::exception_ptr &exception() const noexcept { return exception_; }
    /** Returns what the processor returned, or throws what it threw. */
    R &value() {
        if (exception_) std::rethrow_exception(exception_);
        return *value_;
    }

private:
    std::optional<R> value_;
    std::exception_ptr exception_;
};

/** The same for a processor that returns nothing. */
template <> class outcome<void> {
public:
    outcome() = default;
    explicit outcome(std::exception_ptr exception) : exception_(std::move(exception)) {}

    explicit operator bool() const noexcept { return !exception_; }
    const std::exception_ptr &exception() const noexcept { return exception_; }
    void value() const {
        if (exception_) std::rethrow_exception(exception_);
    }

private:
    std::exception_ptr exception_;
};

/** What came of a run: see minder_execute_summary. */
using execute_summary = minder_execute_summary;

/**
 * Processes objects concurrently, and finishes each on the caller's thread.
 *
 * The processor is called with each object, on any thread, for at most `degree` objects at once. The finisher
 * is called with each object and its outcome, as soon as the processor has ended, for one object at a time, on the
 * thread of the caller. It needs no locks. If it returns a bool, false starts no further object, and the finisher
 * is not called again.
 *
 * The outcome has a copy of what a processor returns by reference. An exception of a processor is an outcome. An
 * exception of the finisher starts no further object, and leaves DoForAllObjects() or DoSerial() when the
 * running ones have ended. No exception passes through the library.
 */
class ConcurrentExecution {
public:
    /** Creates an execution with at most `degree` threads; 0: as many as there are processors. */
    explicit ConcurrentExecution(unsigned degree = 0) : options_(MINDER_INIT(minder_execute_options)) {
        options_.degree = degree;
    }
    /** Creates an execution whose DoForAllObjects() is DoSerial(). */
    static ConcurrentExecution serial() {
        ConcurrentExecution execution(1);
        execution.options_ = execution.serial_options();
        return execution;
    }
    /** Sets the order in which objects start. `costs` has a number for each object of the next calls. */
    ConcurrentExecution &order(minder_order order, std::vector<std::uint64_t> costs = {}) {
        options_.order = order;
        costs_ = std::move(costs);
        return *this;
    }
    /** Starts the objects by chance: the same seed gives the same order. */
    ConcurrentExecution &random_order(std::uint64_t seed) {
        options_.seed = seed;
        return order(MINDER_ORDER_RANDOM);
    }

    /**
     * Sets how many times an object is processed until its processor throws nothing; 0 or 1: once. The finisher
     * gets the last outcome.
     */
    ConcurrentExecution &max_attempts(std::uint32_t count) {
        options_.max_attempts = count;
        return *this;
    }

    /** Processes and finishes `count` objects. */
    template <typename Object, typename Processor, typename Finisher>
    execute_summary DoForAllObjects(std::size_t count, Object *objects, Processor &&processor,
                                    Finisher &&finisher) const {
        return run(options_, count, objects, processor, finisher);
    }
    /** Processes and finishes all objects of a container, such as a vector, a list or an array. */
    template <typename Container, typename Processor, typename Finisher>
    execute_summary DoForAllObjects(Container &objects, Processor &&processor, Finisher &&finisher) const {
        return run(options_, std::size(objects), std::begin(objects), processor, finisher);
    }

    /**
     * Processes and finishes `count` objects one after the other, on the caller's thread: the same call in its
     * serial form. Order, attempts, outcomes and exceptions are those of DoForAllObjects(). By default the order is
     * that of the array.
     */
    template <typename Object, typename Processor, typename Finisher>
    execute_summary DoSerial(std::size_t count, Object *objects, Processor &&processor,
                             Finisher &&finisher) const {
        return run(serial_options(), count, objects, processor, finisher);
    }
    /** Processes and finishes all objects of a container one after the other, on the caller's thread. */
    template <typename Container, typename Processor, typename Finisher>
    execute_summary DoSerial(Container &objects, Processor &&processor, Finisher &&finisher) const {
        return run(serial_options(), std::size(objects), std::begin(objects), processor, finisher);
    }

private:
    /** One call. */
    template <typename Object, typename Result, typename Processor, typename Finisher> struct one_run {
        /** An object and the outcome of its processor: that of the last attempt. */
        struct slot {
            Object *object = nullptr;
            std::optional<outcome<Result>> result;
        };

        Processor &processor;
        Finisher &finisher;
        std::vector<slot> slots;
        /** What the finisher threw. */
        std::exception_ptr thrown;

        static std::int32_t process(void *user, void *object) noexcept {
            auto &self = *static_cast<one_run *>(user);
            auto &one = *static_cast<slot *>(object);
            try {
                if constexpr (std::is_void_v<Result>) {
                    self.processor(*one.object);
                    one.result.emplace();
                } else {
                    one.result.emplace(std::in_place, self.processor(*one.object));
                }
                return 0;
            } catch (...) {
                one.result.emplace(std::current_exception());
                return 1;
            }
        }
        static std::int32_t finish(void *user, void *object, std::int32_t) noexcept {
            auto &self = *static_cast<one_run *>(user);
            auto &one = *static_cast<slot *>(object);
            try {
                using wish = std::decay_t<std::invoke_result_t<Finisher &, Object &, outcome<Result>>>;
                auto result = std::move(*one.result);
                one.result.reset();
                if constexpr (std::is_same_v<wish, bool>) {
                    return self.finisher(*one.object, std::move(result)) ? 0 : 1;
                } else {
                    self.finisher(*one.object, std::move(result));
                    return 0;
                }
            } catch (...) {
                self.thrown = std::current_exception();
                return 1;
            }
        }
    };

    minder_execute_options serial_options() const {
        auto options = options_;
        options.serial = 1;
        return options;
    }

    template <typename Iterator, typename Processor, typename Finisher>
    execute_summary run(minder_execute_options options, std::size_t count, Iterator object,
                        Processor &processor, Finisher &finisher) const {
        static_assert(std::is_lvalue_reference_v<decltype(*object)>,
                      "ConcurrentExecution: the container has no objects in memory (std::vector<bool>)");
        using Object = std::remove_reference_t<decltype(*object)>;
        constexpr bool can_process = std::is_invocable_v<Processor &, Object &>;
        static_assert(can_process, "ConcurrentExecution: the processor cannot be called with `Object &`");
        auto summary = MINDER_INIT(minder_execute_summary);
        if constexpr (can_process) {
            using Result = std::decay_t<std::invoke_result_t<Processor &, Object &>>;
            constexpr bool can_finish = std::is_invocable_v<Finisher &, Object &, outcome<Result>>;
            static_assert(can_finish, "ConcurrentExecution: the finisher cannot be called with `Object &` and "
                                      "`minder::outcome<R>`, where R is what the processor returns");
            if constexpr (can_finish) {
                if (!costs_.empty() && costs_.size() != count) {
                    throw std::invalid_argument("ConcurrentExecution: there are not as many costs as objects");
                }
                options.costs = costs_.empty() ? nullptr : costs_.data();
                one_run<Object, Result, Processor, Finisher> run{processor, finisher, {}, nullptr};
                run.slots.resize(count);
                std::vector<void *> pointers;
                pointers.reserve(count);
                for (auto &slot : run.slots) {
                    slot.object = std::addressof(*object++);
                    pointers.push_back(&slot);
                }
                const auto status =
                    minder_execute(&options, pointers.data(), count, run.process, run.finish, &run, &summary);
                if (run.thrown) std::rethrow_exception(run.thrown);
                check(status);
            }
        }
        return summary;
    }

    minder_execute_options options_;
    std::vector<std::uint64_t> costs_;
};

} // namespace minder

#endif // MINDER_HPP
