// Exceptions of processors and finishers, errors of the library, and moved handles.
#include <atomic>
#include <cstdio>
#include <cstdlib>
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

int main() {
    minder::check_version();
    for (const auto &execution : {minder::ConcurrentExecution(4), minder::ConcurrentExecution::serial()}) {
        exception_of_a_processor_reaches_the_finisher(execution);
        exception_of_a_finisher_reaches_the_caller(execution);
    }
    finisher_stops_by_its_result();
    costs_set_the_order();
    seed_sets_the_order();
    errors_have_a_status_and_a_text();
    handles_move();
    exception_in_a_handler_loses_no_event();
    poller_calls_its_handler();
    framer_hands_over_messages();
    std::puts("exceptions: ok");
}
