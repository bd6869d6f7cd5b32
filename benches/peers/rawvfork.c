/* The floor: one thread, vfork and exec for every line of standard input, no capture, no record, no care.
 *   rawvfork -jN PROGRAM < lines
 * PROGRAM is a path; it gets the line as its only argument. Ends with 1 if a child did not end with 0. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static int reap(void)
{
    int status;

    return waitpid(-1, &status, 0) > 0 && status == 0 ? 0 : 1;
}

int main(int argc, char **argv)
{
    static int most, live, bad; /* Not on the stack that a vforked child shares. */
    char line[256];

    if (argc != 3 || strncmp(argv[1], "-j", 2) != 0 || (most = atoi(argv[1] + 2)) < 1) {
        fprintf(stderr, "usage: rawvfork -jN PROGRAM < lines\n");
        return 2;
    }
    while (fgets(line, sizeof line, stdin)) {
        char *args[] = { argv[2], line, NULL };
        pid_t child;

        line[strcspn(line, "\n")] = 0;
        if (live == most) {
            bad |= reap();
            live--;
        }
        child = vfork();
        if (child == 0) {
            execv(argv[2], args);
            _exit(127);
        }
        if (child < 0) {
            perror("vfork");
            return 1;
        }
        live++;
    }
    while (live-- > 0)
        bad |= reap();
    return bad;
}
