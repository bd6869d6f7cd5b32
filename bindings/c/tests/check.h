/* Checks of the test programs: a failed one names its line and the last error of the library. */
#ifndef CHECK_H
#define CHECK_H

#include <minder.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CHECK(condition)                                                                            \
    do {                                                                                            \
        if (!(condition)) {                                                                         \
            fprintf(stderr, "%s:%d: %s; last error: %s\n", __FILE__, __LINE__, #condition,          \
                    minder_last_error());                                                           \
            exit(1);                                                                                \
        }                                                                                           \
    } while (0)

#define CHECK_STATUS(call, expected)                                                                \
    do {                                                                                            \
        const minder_status status_ = (call);                                                       \
        if (status_ != (expected)) {                                                                \
            fprintf(stderr, "%s:%d: %s is %s, not %s; last error: %s\n", __FILE__, __LINE__, #call, \
                    minder_status_name(status_), #expected, minder_last_error());                   \
            exit(1);                                                                                \
        }                                                                                           \
    } while (0)

#define OK(call) CHECK_STATUS(call, MINDER_OK)

/* Returns a shell that runs one line. */
static inline minder_command *shell(const char *line) {
    minder_command *command = minder_command_new("sh");
    minder_command_arg(command, "-c");
    minder_command_arg(command, line);
    return command;
}

#endif
