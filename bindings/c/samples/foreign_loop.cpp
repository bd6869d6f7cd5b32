// A loop of the program itself, around poll(2): it watches one descriptor for all children.
#include <iostream>
#include <minder.hpp>
#include <poll.h>

int main() try {
    minder::command cat("cat");
    cat.stdio(MINDER_STDIN, MINDER_PIPE).stdio(MINDER_STDOUT, MINDER_PIPE);
    minder::set set;
    const auto child = set.spawn(cat);
    set.write(child, "text\n");
    set.close_stdin(child);

    pollfd watched{set.fd(), POLLIN, 0};
    while (set.children() > 0) {
        poll(&watched, 1, -1); // and whatever else the program watches
        set.take([](const minder::event &event) {
            if (event.kind() == MINDER_EVENT_OUTPUT) std::cout << event.bytes();
            if (event.kind() == MINDER_EVENT_EXITED) std::cout << "exit code " << event.exit().code << '\n';
        });
    }
} catch (const minder::error &error) {
    std::cerr << "foreign_loop: " << error.what() << '\n';
    return 1;
}
