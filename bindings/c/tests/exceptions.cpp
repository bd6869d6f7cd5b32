// Exceptions of processors and finishers, errors of the library, and moved handles.
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <list>
#include <minder.hpp>
#include <numeric>
#include <thread>

#define CHECK(condition)                                                                            \
    do {                                                                                            \
        if (!(condition)) {                                                                         \
            std::fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #condition);                    \
            std::exit(1);                                                                           \
        }                                                                                           \
    } while (0)

using namespace std::chrono_literals;

static void exception_of_a_processor_reaches_the_finisher(const minder::ConcurrentExecution &execution) {
    std::vector<int> objects(20);
    std::iota(objects.begin(), objects.end(), 0);
    const auto caller = std::this_thread::get_id();
    int values = 0, exceptions = 0;
    const auto summary = execution.DoForAllObjects(
        objects,
        [](int &object) {
            if (object % 4 == 0) throw std::runtime_error("object " + std::to_string(object));
            return std::to_string(object);
        },
        [&](int &object, minder::outcome<std::string> text) {
            CHECK(std::this_thread::get_id() == caller);
            CHECK(bool(text) == (object % 4 != 0));
            try {
                CHECK(text.value() == std::to_string(object));
                values++;
            } catch (const std::runtime_error &error) {
                CHECK(error.what() == "object " + std::to_string(object));
                exceptions++;
            }
        });
    CHECK(values == 15 && exceptions == 5 && summary.succeeded == 15 && summary.failed == 5);
}

static void exception_of_a_finisher_reaches_the_caller(const minder::ConcurrentExecution &execution) {
    std::vector<int> objects(10000); // more than may wait for the finisher
    std::atomic<int> processed = 0;
    int finished = 0;
    try {
        execution.DoForAllObjects(
            objects.size(), objects.data(), [&](int &) { processed++; },
            [&](int &, minder::outcome<void>) {
                if (++finished == 3) throw std::logic_error("enough");
            });
        CHECK(false);
    } catch (const std::logic_error &error) {
        CHECK(std::string_view(error.what()) == "enough");
    }
    // No finisher was called after that, and the rest was not started.
    CHECK(finished == 3 && processed < 10000);
}

static void finisher_stops_by_its_result() {
    std::vector<int> objects(100);
    int finished = 0;
    const auto summary = minder::ConcurrentExecution::serial().DoForAllObjects(
        objects, [](int &object) { return object; },
        [&](int &, minder::outcome<int>) { return ++finished < 7; });
    CHECK(finished == 7 && summary.not_run == 93 && summary.threads == 0);

    // On threads, many more have been processed when it answers.
    objects.resize(1000);
    finished = 0;
    std::atomic<int> processed = 0;
    minder::ConcurrentExecution(4).DoForAllObjects(
        objects, [&](int &) { processed++; },
        [&](int &, minder::outcome<void>) {
            while (finished == 0 && processed < 100) std::this_thread::yield();
            return ++finished < 7;
        });
    CHECK(finished == 7);
}

static void costs_set_the_order() {
    std::vector<unsigned> objects{3, 1, 2}, order;
    minder::ConcurrentExecution execution(1);
    execution.order(MINDER_ORDER_SHORTEST_FIRST, {3, 1, 2});
    execution.DoForAllObjects(
        objects, [](unsigned &) {},
        [&](unsigned &object, minder::outcome<void>) { order.push_back(object); });
    CHECK((order == std::vector<unsigned>{1, 2, 3}));
}

static void seed_sets_the_order() {
    std::vector<int> objects(100);
    std::iota(objects.begin(), objects.end(), 0);
    const auto order = [&](std::uint64_t seed) {
        std::vector<int> started;
        minder::ConcurrentExecution execution(1);
        execution.random_order(seed).DoForAllObjects(
            objects, [](int &) {}, [&](int &object, minder::outcome<void>) { started.push_back(object); });
        return started;
    };
    CHECK(order(1) == order(1) && order(1) != order(2) && order(1) != objects);
}

static void reference_of_a_processor_is_copied(const minder::ConcurrentExecution &execution) {
    std::vector<std::string> objects{"one", "two"};
    std::vector<std::string> copies;
    execution.DoForAllObjects(
        objects, [](std::string &object) -> const std::string & { return object; },
        [&](std::string &object, minder::outcome<std::string> copy) {
            CHECK(copy.value() == object && &copy.value() != &object);
            copies.push_back(copy.value());
        });
    CHECK(copies.size() == 2);
    int sum = 0;
    std::vector<int> numbers{1, 2};
    execution.DoForAllObjects(
        numbers, [](int &number) -> int & { return number; },
        [&](int &, minder::outcome<int> number) { sum += number.value(); });
    CHECK(sum == 3);
}

static void exception_that_is_returned_is_a_value(const minder::ConcurrentExecution &execution) {
    std::vector<int> objects{0, 1, 2};
    int returned = 0, thrown = 0;
    const auto summary = execution.DoForAllObjects(
        objects,
        [](int &object) -> std::exception_ptr {
            if (object == 0) throw std::runtime_error("thrown");
            return object == 1 ? std::make_exception_ptr(std::logic_error("returned")) : nullptr;
        },
        [&](int &object, minder::outcome<std::exception_ptr> outcome) {
            CHECK(bool(outcome) == (object != 0));
            if (outcome) {
                CHECK((outcome.value() != nullptr) == (object == 1));
                returned++;
                return;
            }
            try {
                outcome.value();
                CHECK(false);
            } catch (const std::runtime_error &) {
                thrown++;
            }
        });
    CHECK(returned == 2 && thrown == 1 && summary.failed == 1);
}

static void processor_that_throws_is_called_again() {
    for (auto execution : {minder::ConcurrentExecution(4), minder::ConcurrentExecution::serial()}) {
        std::vector<int> objects{0, 1, 2, 3, 9}, finished;
        std::vector<std::atomic<int>> calls(objects.size());
        const auto summary = execution.max_attempts(4).DoForAllObjects(
            objects,
            [&](int &object) {
                // It throws as many times as its number says.
                auto &count = calls[static_cast<std::size_t>(&object - objects.data())];
                if (count++ < object) throw std::runtime_error("again");
                return count.load();
            },
            [&](int &object, minder::outcome<int> count) {
                CHECK(bool(count) == (object != 9));
                if (count) CHECK(count.value() == object + 1);
                finished.push_back(object);
            });
        CHECK(summary.succeeded == 4 && summary.failed == 1 && finished.size() == 5);
        CHECK(calls[0] == 1 && calls[3] == 4 && calls[4] == 4);
    }
}

static void serial_form_finishes_each_object_before_the_next() {
    const minder::ConcurrentExecution execution(4);
    std::list<std::string> objects{"one", "two", "three"}; // a container without data()
    const auto caller = std::this_thread::get_id();
    std::vector<std::string> calls;
    const auto summary = execution.DoSerial(
        objects,
        [&](std::string &object) {
            CHECK(std::this_thread::get_id() == caller);
            calls.push_back("process " + object);
            if (object == "two") throw std::runtime_error(object);
            return object.size();
        },
        [&](std::string &object, minder::outcome<std::size_t> size) {
            CHECK(std::this_thread::get_id() == caller && bool(size) == (object != "two"));
            calls.push_back("finish " + object);
        });
    CHECK((calls == std::vector<std::string>{"process one", "finish one", "process two", "finish two",
                                             "process three", "finish three"}));
    CHECK(summary.threads == 0 && summary.succeeded == 2 && summary.failed == 1);

    // An exception of the finisher ends the run before the next object.
    int array[] = {1, 2, 3}, processed = 0;
    try {
        execution.DoSerial(
            3, array, [&](int &) { processed++; },
            [&](int &object, minder::outcome<void>) {
                if (object == 2) throw std::logic_error("enough");
            });
        CHECK(false);
    } catch (const std::logic_error &) {
        CHECK(processed == 2);
    }

    // The concurrent form of the same execution is not affected.
    const auto concurrent = execution.DoForAllObjects(
        objects, [](std::string &) {}, [](std::string &, minder::outcome<void>) {});
    CHECK(concurrent.threads > 0 && concurrent.succeeded == 3);
}

static void objects_results_and_functions_may_be_move_only() {
    const minder::ConcurrentExecution execution(2);
    std::vector<std::unique_ptr<int>> objects;
    for (int i = 0; i < 20; i++) objects.push_back(std::make_unique<int>(i));
    int sum = 0;
    const auto process = [unit = std::make_unique<int>(1)](std::unique_ptr<int> &object) {
        return std::make_unique<int>(*object + *unit);
    };
    auto finish = [&, unit = std::make_unique<int>(1)](auto &, minder::outcome<std::unique_ptr<int>> result) {
        sum += *std::move(result.value()) - *unit;
    };
    execution.DoForAllObjects(objects, process, finish);
    execution.DoSerial(objects, process, std::move(finish));
    CHECK(sum == 2 * 190);
}

static void empty_containers_call_nothing() {
    const minder::ConcurrentExecution execution(2);
    std::vector<int> none;
    const std::list<int> constant;
    const auto process = [](const int &) { CHECK(false); };
    const auto finish = [](const int &, minder::outcome<void>) { CHECK(false); };
    for (const auto &summary :
         {execution.DoForAllObjects(none, process, finish), execution.DoSerial(none, process, finish),
          execution.DoForAllObjects(constant, process, finish), execution.DoSerial(constant, process, finish),
          execution.DoSerial(0, none.data(), process, finish)}) {
        CHECK(summary.succeeded == 0 && summary.failed == 0 && summary.not_run == 0 && summary.threads == 0);
    }
}

static void timeout_of_zero_ends_a_child_at_once() {
    const minder::command sleep("sleep", {"600"});
    minder::set set;
    minder::spawn_options options;
    options.timeout = 0s;
    set.spawn(sleep, options);
    int late = 0;
    set.wait_all([&](const minder::event &event) {
        if (event.kind() == MINDER_EVENT_DONE) late += event.exit().timed_out && event.exit().killed;
    });
    CHECK(late == 1);
    minder::output_options limits;
    limits.timeout = 0s;
    CHECK(sleep.output(limits).exit().timed_out);
    // Neither no value nor a negative one is a limit.
    limits.timeout = minder::forever;
    CHECK(minder::command("true").output(limits).exit().success());
    options.timeout.reset();
    set.spawn(minder::command("true"), options);
    set.wait_all([&](const minder::event &event) {
        if (event.kind() == MINDER_EVENT_DONE) CHECK(event.exit().success());
    });
}

static void errors_have_a_status_and_a_text() {
    try {
        minder::command("no-such-program-anywhere").spawn();
        CHECK(false);
    } catch (const minder::error &error) {
        CHECK(error.status() == MINDER_NOT_FOUND);
        CHECK(std::string_view(error.what()).find("`no-such-program-anywhere`") != std::string_view::npos);
    }
}

static void handles_move() {
    minder::command cat("cat");
    cat.stdio(MINDER_STDIN, MINDER_PIPE).stdio(MINDER_STDOUT, MINDER_PIPE).env("A", "b").current_dir("/");
    auto child = cat.spawn();
    auto moved = std::move(child);
    moved.write("text");
    moved.close_stdin();
    CHECK(moved.read_all() == "text");
    CHECK(moved.wait().success());

    minder::set first;
    minder::set set = std::move(first);
    minder::spawn_options options;
    options.timeout = 50ms;
    const auto id = set.spawn(minder::command("sleep", {"600"}), options);
    CHECK(set.pid(id) > 1 && set.children() == 1);
    bool timed_out = false;
    set.wait_all([&](const minder::event &event) {
        if (event.kind() == MINDER_EVENT_DONE) timed_out = event.exit().timed_out;
    });
    CHECK(timed_out);
    set.spawn(minder::command("sleep", {"600"}));
    set.stop(1s);
}

static void exception_in_a_handler_loses_no_event() {
    minder::set set;
    for (int i = 0; i < 10; i++) set.spawn(minder::command("true"));
    int done = 0, thrown = 0;
    for (;;) {
        try {
            set.wait_all([&](const minder::event &event) {
                if (event.kind() != MINDER_EVENT_DONE) return;
                done++;
                throw std::runtime_error("busy");
            });
            break;
        } catch (const std::runtime_error &) {
            thrown++;
        }
    }
    CHECK(done == 10 && thrown == 10);
}

static void object_of_a_child_comes_with_its_events() {
    struct object {
        std::string text;
        bool is_done = false;
    };
    object first, second;
    minder::set set;
    minder::spawn_options options;
    options.user = &first;
    minder::command echo("echo", {"text"});
    const auto child = set.spawn(echo.stdio(MINDER_STDOUT, MINDER_PIPE), options);
    CHECK(set.user<object>(child) == &first);
    set.set_user(child, &second);
    const auto plain = set.spawn(minder::command("true"));
    set.wait_all([&](const minder::event &event) {
        auto *object = event.user<struct object>();
        CHECK((object == nullptr) == (event.child() == plain));
        if (object == nullptr) return;
        object->text += event.bytes();
        object->is_done |= event.kind() == MINDER_EVENT_DONE;
    });
    CHECK(second.text == "text\n" && second.is_done && first.text.empty());
    try {
        set.user<object>(child);
        CHECK(false);
    } catch (const minder::error &error) {
        CHECK(error.status() == MINDER_UNKNOWN);
    }
}

static void poller_calls_its_handler() {
    minder::poller poller;
    poller.add_timer(7, 1ms);
    std::uint64_t token = 0;
    CHECK(poller.wait([&](const minder_ready &ready) { token = ready.token; }) == MINDER_OK && token == 7);
    poller.notify();
    CHECK(poller.wait([](const minder_ready &) {}) == MINDER_WOKEN);
    CHECK(poller.wait([](const minder_ready &) {}, 0ms) == MINDER_TIMED_OUT);
    poller.renew();
    CHECK(!poller.backend().empty());
}

static void framer_hands_over_messages() {
    minder::framer framer(MINDER_FRAME_LINES);
    std::vector<std::string> lines;
    const auto keep = [&](std::string_view line) { lines.emplace_back(line); };
    framer.take("one\ntw", keep);
    framer.take("o\nrest", keep);
    CHECK((lines == std::vector<std::string>{"one", "two"}));
    try {
        framer.finish();
        CHECK(false);
    } catch (const minder::error &error) {
        CHECK(error.status() == MINDER_FAILED);
    }
}

/** A stream with two malformed headers, and messages before, between and after them. */
static const std::string MALFORMED = "Content-Length: 1\r\n\r\n7Warning!\nContent-Length: 2\r\n\r\n{}"
                                     "Content-Length: 2\r\n\r\n[]Content-Length: x\r\n\r\n"
                                     "Content-Length: 4\r\n\r\nnull";

static void framer_continues_after_malformed_frames() {
    // Wherever the stream is cut.
    for (std::size_t cut = 0; cut <= MALFORMED.size(); cut++) {
        minder::framer framer(MINDER_FRAME_CONTENT_LENGTH);
        std::vector<std::string> messages;
        std::vector<std::uint64_t> offsets;
        int errors = 0;
        for (std::string_view rest : {std::string_view(MALFORMED).substr(0, cut),
                                      std::string_view(MALFORMED).substr(cut)}) {
            while (!rest.empty()) {
                try {
                    framer.take(rest, [&](const minder::frame &frame) {
                        messages.emplace_back(frame.bytes);
                        offsets.push_back(frame.offset);
                    });
                } catch (const minder::error &error) {
                    CHECK(error.status() == MINDER_INVALID);
                    CHECK(framer.resync());
                    errors++;
                }
            }
        }
        CHECK((messages == std::vector<std::string>{"7", "{}", "[]", "null"}) && errors == 2);
        CHECK((offsets == std::vector<std::uint64_t>{0, 31, 54, 98}));
        CHECK(!framer.resync() && !framer.finish());
    }
}

static void framer_continues_after_an_exception_of_the_handler() {
    minder::framer framer(MINDER_FRAME_LINES);
    std::vector<std::string> lines;
    int thrown = 0;
    for (std::string_view rest = "one\ntwo\nthree\n"; !rest.empty();) {
        try {
            framer.take(rest, [&](std::string_view line) {
                lines.emplace_back(line);
                throw std::runtime_error("busy");
            });
        } catch (const std::runtime_error &) {
            CHECK(!framer.resync()); // no frame is malformed
            thrown++;
        }
    }
    CHECK((lines == std::vector<std::string>{"one", "two", "three"}) && thrown == 3);
}

static void framer_has_all_options() {
    minder::framer_options options;
    options.strip_cr = true;
    options.allow_unterminated_line = true;
    options.max_frame_bytes = 6;
    options.label = "stdout";
    minder::framer framer(options);
    std::string_view rest = "one\r\ntoo long\r\ntwo\r\nlast";
    auto line = framer.next(rest);
    CHECK(line && line->bytes == "one" && line->offset == 0);
    try {
        framer.next(rest);
        CHECK(false);
    } catch (const minder::error &error) {
        CHECK(error.status() == MINDER_LIMIT);
        CHECK(std::string_view(error.what()).find("`stdout`") != std::string_view::npos);
    }
    CHECK(framer.resync());
    line = framer.next(rest);
    CHECK(line && line->bytes == "two" && line->offset == 15);
    CHECK(!framer.next(rest) && rest.empty());
    line = framer.finish();
    CHECK(line && line->bytes == "last" && line->offset == 20);
    CHECK(!framer.finish());
}

int main() {
    minder::check_version();
    for (const auto &execution : {minder::ConcurrentExecution(4), minder::ConcurrentExecution::serial()}) {
        exception_of_a_processor_reaches_the_finisher(execution);
        exception_of_a_finisher_reaches_the_caller(execution);
        reference_of_a_processor_is_copied(execution);
        exception_that_is_returned_is_a_value(execution);
    }
    finisher_stops_by_its_result();
    costs_set_the_order();
    seed_sets_the_order();
    processor_that_throws_is_called_again();
    serial_form_finishes_each_object_before_the_next();
    objects_results_and_functions_may_be_move_only();
    empty_containers_call_nothing();
    timeout_of_zero_ends_a_child_at_once();
    errors_have_a_status_and_a_text();
    handles_move();
    exception_in_a_handler_loses_no_event();
    object_of_a_child_comes_with_its_events();
    poller_calls_its_handler();
    framer_hands_over_messages();
    framer_continues_after_malformed_frames();
    framer_continues_after_an_exception_of_the_handler();
    framer_has_all_options();
    std::puts("exceptions: ok");
}
