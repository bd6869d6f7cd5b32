// Starts one child by the installed library.
#include <minder.hpp>

int main() {
    minder::check_version();
    return minder::command("true").spawn().wait().code;
}
