/* Runs a program with pipes of 1 MiB instead of 64 KiB:
 *   widen PROGRAM [ARGUMENT]...
 * Enlarges the pipes that are its standard input and output, as far as they are pipes, and becomes the program. So a
 * comparison with a runner that enlarges its pipes compares the same pipes.
 * Build: cc -O2 -static -o widen widen.c */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

enum { SIZE = 1 << 20 };

int main(int argc, char **argv)
{
    int fd;

    if (argc < 2) {
        fprintf(stderr, "usage: widen PROGRAM [ARGUMENT]...\n");
        return 2;
    }
    for (fd = 0; fd < 2; fd++)
        if (fcntl(fd, F_GETPIPE_SZ) > 0 && fcntl(fd, F_SETPIPE_SZ, SIZE) < SIZE) {
            perror("widen");
            return 2;
        }
    execvp(argv[1], argv + 1);
    perror(argv[1]);
    return 127;
}
