/* What line_flood.c writes and reader.c reads. */
#include <stdint.h>
#include <string.h>

enum { BLOCK = 64 * 1024 };
