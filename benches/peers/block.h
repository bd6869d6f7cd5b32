/* What blast.c writes and sink.c reads. */
#include <stdint.h>
#include <string.h>

enum { BLOCK = 64 * 1024 };
