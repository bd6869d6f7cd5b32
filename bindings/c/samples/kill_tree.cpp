// Kills a shell with everything that it started: it is asked first, and killed after a second.
#include <iostream>
#include <minder.hpp>

int main() try {
    using namespace std::chrono_literals;
    const minder::command shell("sh", {"-c", "sleep 600 & sleep 600; true"});
    auto child = shell.spawn();
    if (!child.wait(10ms)) std::cout << "it runs\n";
    const auto exit = child.kill_and_wait(minder::termination::graceful(1s));
    std::cout << "signal " << exit.signal << '\n';
} catch (const minder::error &error) {
    std::cerr << "kill_tree: " << error.what() << '\n';
    return 1;
}
