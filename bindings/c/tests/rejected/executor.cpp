// Calls that do not compile. Each case has one error, with the text of its line; `cargo xtask c` checks it.
#include <minder.hpp>
#include <string>

void call(const minder::ConcurrentExecution &execution, std::vector<int> &objects) {
#if CASE == 1 // the processor cannot be called with `Object &`
    execution.DoForAllObjects(objects, [](std::string &) {}, [](int &, minder::outcome<void>) {});
#elif CASE == 2 // the finisher cannot be called with `Object &` and `minder::outcome<R>`
    execution.DoForAllObjects(objects, [](int &object) { return object; }, [](int &) {});
#elif CASE == 3 // the finisher cannot be called with `Object &` and `minder::outcome<R>`
    execution.DoSerial(objects, [](int &object) { return object; }, [](int &, minder::outcome<void>) {});
#elif CASE == 4 // the processor cannot be called with `Object &`
    execution.DoSerial(objects.size(), objects.data(), [] {}, [](int &, minder::outcome<void>) {});
#endif
}
