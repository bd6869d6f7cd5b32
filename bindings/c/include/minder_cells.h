/**
 * @file
 *
 * minder_cells.h: JSON as cells, to be walked without a copy of each value.
 *
 * A message is parsed into one block of cells of 16 bytes. A minder_cell names a value among them: it needs
 * no free, and is valid as long as its minder_cells. Freeing these costs the same for one value and for a
 * million.
 *
 *     minder_cells *cells = NULL;
 *     if (minder_cells_parse(pool, bytes, len, &cells, NULL) != MINDER_OK) puts(minder_last_error());
 *     const minder_cell items = minder_cells_get(cells, minder_cells_root(cells), "items");
 *     for (size_t i = 0; i < minder_cells_len(cells, items); i++)
 *         use(minder_cells_index(cells, items, i));
 *     minder_cells_free(cells);
 *
 * What a value lacks is MINDER_NO_CELL, and so is everything in MINDER_NO_CELL: a chain of calls needs one
 * check at its end. Use a minder_cell with its own minder_cells: with others it names another value or none.
 *
 * The rules of minder.h hold. Several threads may read the same cells.
 */
/* Made by `cargo xtask c-header` from bindings/c/src/cells.rs. Do not edit. */

#ifndef MINDER_CELLS_H
#define MINDER_CELLS_H

#include <minder.h>

#ifdef __cplusplus
extern "C" {
#endif

/** The type of a value. */
enum minder_cell_type
#if defined(__cplusplus) || __STDC_VERSION__ >= 202311L
  : int32_t
#endif // defined(__cplusplus) || __STDC_VERSION__ >= 202311L
 {
    /** There is no value: it is MINDER_NO_CELL. */
    MINDER_CELL_NONE = 0,
    /** `null`. */
    MINDER_CELL_NULL = 1,
    /** `true` or `false`: minder_cells_bool(). */
    MINDER_CELL_BOOL = 2,
    /** An integer of 64 bits: minder_cells_integer() and minder_cells_unsigned(). */
    MINDER_CELL_INTEGER = 3,
    /** Another number: minder_cells_number(). */
    MINDER_CELL_FLOAT = 4,
    /** A string, or the key of an object: minder_cells_text(). */
    MINDER_CELL_TEXT = 5,
    /** Several values: minder_cells_len() and minder_cells_index(). */
    MINDER_CELL_ARRAY = 6,
    /**
     * Keys and values: minder_cells_get(), or minder_cells_len(), minder_cells_key() and
     * minder_cells_value().
     */
    MINDER_CELL_OBJECT = 7,
};
#ifndef __cplusplus
#if __STDC_VERSION__ >= 202311L
typedef enum minder_cell_type minder_cell_type;
#else
typedef int32_t minder_cell_type;
#endif // __STDC_VERSION__ >= 202311L
#endif // __cplusplus

/** The cells of one message. Freed by minder_cells_free(). */
typedef struct minder_cells minder_cells;

/** Keeps the memory of cells that were freed for the next message. Freed by minder_cells_pool_free(). */
typedef struct minder_cells_pool minder_cells_pool;

/** A value among cells. */
typedef uint64_t minder_cell;

/** No value. No minder_cell of a value has this number. */
#define MINDER_NO_CELL UINT64_MAX

/** Creates a pool. Never returns NULL. It keeps the memory of at most 16 messages, together 64 MiB. */
minder_cells_pool *minder_cells_pool_new(void);

/** Frees a pool. Cells that were made with it stay valid. */
void minder_cells_pool_free(minder_cells_pool *pool);

/**
 * Parses JSON (RFC 8259) of any depth, and stores its cells, which do not refer to `bytes`.
 *
 * Returns MINDER_INVALID if it is not JSON, and MINDER_EXHAUSTED if there is no memory. `offset`, which may
 * be NULL, is then the byte at which that was found; minder_last_error() says the same. An integer that does
 * not fit into 64 bits becomes a float.
 */
minder_status minder_cells_parse(const minder_cells_pool *pool,
                                 const uint8_t *bytes,
                                 size_t len,
                                 minder_cells **cells,
                                 size_t *offset);

/** Frees the cells of a message, all at once. */
void minder_cells_free(minder_cells *cells);

/** Returns the whole message. */
minder_cell minder_cells_root(const minder_cells *cells);

/** Returns how many bytes the cells have. */
size_t minder_cells_bytes(const minder_cells *cells);

/** Returns the type of a value, one of minder_cell_type. */
int32_t minder_cells_type(const minder_cells *cells, minder_cell cell);

/** Returns whether a value is `true`. */
bool minder_cells_bool(const minder_cells *cells, minder_cell cell);

/** Stores an integer. Returns MINDER_NONE, and stores nothing, for other values and if it does not fit. */
minder_status minder_cells_integer(const minder_cells *cells,
                                   minder_cell cell,
                                   int64_t *number);

/** Stores an integer that is not negative. Returns MINDER_NONE, and stores nothing, for other values. */
minder_status minder_cells_unsigned(const minder_cells *cells,
                                    minder_cell cell,
                                    uint64_t *number);

/**
 * Stores a number as a float; an integer beyond 2^53 is rounded. Returns MINDER_NONE, and stores nothing,
 * for other values.
 */
minder_status minder_cells_number(const minder_cells *cells,
                                  minder_cell cell,
                                  double *number);

/**
 * Returns the text of a string or a key, and stores its number of bytes; NULL for other values. It is UTF-8,
 * may contain NUL, and no NUL follows. Valid as long as the cells.
 */
const char *minder_cells_text(const minder_cells *cells,
                              minder_cell cell,
                              size_t *len);

/** Returns how many elements an array has, or how many entries an object; 0 for other values. */
size_t minder_cells_len(const minder_cells *cells, minder_cell cell);

/** Returns an element of an array; MINDER_NO_CELL for other values and behind the end. */
minder_cell minder_cells_index(const minder_cells *cells, minder_cell cell, size_t index);

/**
 * Returns the value of a key in an object, the last one if it occurs several times; MINDER_NO_CELL if there
 * is none. It compares the keys one after the other.
 */
minder_cell minder_cells_get(const minder_cells *cells,
                             minder_cell cell,
                             const char *key);

/** Returns the key of an entry of an object, in the order of the message; MINDER_NO_CELL behind the end. */
minder_cell minder_cells_key(const minder_cells *cells,
                             minder_cell cell,
                             size_t index);

/** Returns the value of an entry of an object, in the order of the message; MINDER_NO_CELL behind the end. */
minder_cell minder_cells_value(const minder_cells *cells,
                               minder_cell cell,
                               size_t index);

/**
 * Writes a value as JSON, such as a part of an answer that the next request contains. Stores how many bytes
 * that takes. Writes nothing, and returns MINDER_LIMIT, if the buffer has less room; it may be NULL if
 * `capacity` is 0. MINDER_NONE for MINDER_NO_CELL.
 */
minder_status minder_cells_print(const minder_cells *cells,
                                 minder_cell cell,
                                 char *buffer,
                                 size_t capacity,
                                 size_t *needed);

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* MINDER_CELLS_H */
