// Runs a hundred children at once on one thread, and counts what each writes in its own object.
#include <iostream>
#include <minder.hpp>

struct job {
    std::size_t bytes = 0;
    bool succeeded = false;
};

int main() try {
    minder::command echo("echo", {"text"});
    echo.stdio(MINDER_STDIN, MINDER_NULL).stdio(MINDER_STDOUT, MINDER_PIPE);
    minder::set set;
    std::vector<job> jobs(100);
    minder::spawn_options options;
    for (auto &job : jobs) {
        options.user = &job;
        set.spawn(echo, options);
    }

    set.wait_all([&](const minder::event &event) {
        auto *job = event.user<struct job>();
        if (event.kind() == MINDER_EVENT_OUTPUT) job->bytes += event.bytes().size();
        if (event.kind() == MINDER_EVENT_DONE) job->succeeded = event.exit().success();
    });
    std::size_t bytes = 0, failed = 0;
    for (const auto &job : jobs) {
        bytes += job.bytes;
        failed += !job.succeeded;
    }
    std::cout << jobs.size() << " children, " << failed << " failed, " << bytes << " bytes\n";
} catch (const minder::error &error) {
    std::cerr << "many_children: " << error.what() << '\n';
    return 1;
}
