/* Made by `cargo xtask c-header` from bindings/c/src and bindings/c/header. Do not edit. */

#ifndef MINDER_H
#define MINDER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/** A descriptor; a HANDLE on Windows. */
#ifdef _WIN32
typedef void *minder_fd;
#define MINDER_NO_FD ((minder_fd)0)
#else
typedef int minder_fd;
#define MINDER_NO_FD (-1)
#endif

/** A wait without a limit. */
#define MINDER_FOREVER ((int64_t)-1)
/** A microsecond, a millisecond and a second, in nanoseconds. */
#define MINDER_MICROSECOND ((int64_t)1000)
#define MINDER_MILLISECOND ((int64_t)1000000)
#define MINDER_SECOND ((int64_t)1000000000)

#ifdef __cplusplus
extern "C" {
#endif
