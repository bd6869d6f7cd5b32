// Runs one command for at most ten seconds, and prints what it wrote.
#include <iostream>
#include <minder.hpp>

int main() try {
    using namespace std::chrono_literals;
    minder::output_options options;
    options.timeout = 10s;
    options.merge_stderr = true;

    const minder::command shell("sh", {"-c", "echo text; echo message >&2; exit 3"});
    const auto output = shell.output(options);
    std::cout << output.stdout_bytes() << "exit code " << output.exit().code << '\n';
} catch (const minder::error &error) {
    std::cerr << "spawn_and_read: " << error.what() << '\n';
    return 1;
}
