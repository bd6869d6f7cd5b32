// Runs a hundred children at once on one thread, and counts what they write.
#include <iostream>
#include <minder.hpp>

int main() try {
    minder::command echo("echo", {"text"});
    echo.stdio(MINDER_STDIN, MINDER_NULL).stdio(MINDER_STDOUT, MINDER_PIPE);
    minder::set set;
    for (int i = 0; i < 100; i++) set.spawn(echo);

    std::size_t bytes = 0, done = 0, failed = 0;
    set.wait_all([&](const minder::event &event) {
        if (event.kind() == MINDER_EVENT_OUTPUT) bytes += event.bytes().size();
        if (event.kind() == MINDER_EVENT_DONE) {
            done++;
            failed += !event.exit().success();
        }
    });
    std::cout << done << " children, " << failed << " failed, " << bytes << " bytes\n";
} catch (const minder::error &error) {
    std::cerr << "many_children: " << error.what() << '\n';
    return 1;
}
