// Adds up numbers on four threads. The finisher runs on this thread, and needs no locks.
#include <iostream>
#include <minder.hpp>
#include <numeric>

int main() {
    std::vector<unsigned> jobs{1000, 10, 100};
    unsigned total = 0;

    minder::ConcurrentExecution execution(4);
    const auto summary = execution.DoForAllObjects(
        jobs,
        [](unsigned &last) { // on any thread, for at most four jobs at once
            std::vector<unsigned> numbers(last);
            std::iota(numbers.begin(), numbers.end(), 1);
            return std::accumulate(numbers.begin(), numbers.end(), 0u);
        },
        [&](unsigned &, minder::outcome<unsigned> sum) { // on this thread; value() rethrows what was thrown
            total += sum.value();
        });
    std::cout << summary.succeeded << " jobs, total " << total << '\n';
}
