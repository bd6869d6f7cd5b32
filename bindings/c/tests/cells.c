/* JSON as cells: types, limits, errors, and wrong use. */
#include "check.h"

#include <limits.h>
#include <math.h>
#include <minder_cells.h>

static minder_cells_pool *pool;

static minder_cells *parse(const char *json) {
    minder_cells *cells = NULL;
    size_t offset = 99;
    OK(minder_cells_parse(pool, (const uint8_t *)json, strlen(json), &cells, &offset));
    CHECK(cells != NULL && offset == 0);
    return cells;
}

static bool has_text(const minder_cells *cells, minder_cell cell, const char *expected, size_t len) {
    size_t found = 99;
    const char *text = minder_cells_text(cells, cell, &found);
    return text != NULL && found == len && memcmp(text, expected, len) == 0;
}

static void values_have_types(void) {
    static const char JSON[] = "[null, true, false, 7, -2.5, \"a\\u0000\\u00e9\", [], {}]";
    static const int32_t TYPES[] = { MINDER_CELL_NULL,  MINDER_CELL_BOOL, MINDER_CELL_BOOL,
                                     MINDER_CELL_INTEGER, MINDER_CELL_FLOAT, MINDER_CELL_TEXT,
                                     MINDER_CELL_ARRAY, MINDER_CELL_OBJECT };
    minder_cells *cells = parse(JSON);
    const minder_cell root = minder_cells_root(cells);
    CHECK(minder_cells_type(cells, root) == MINDER_CELL_ARRAY && minder_cells_len(cells, root) == 8);
    CHECK(minder_cells_bytes(cells) >= 5 * 16);
    int64_t number = 99;
    for (size_t i = 0; i < 8; i++) {
        const minder_cell cell = minder_cells_index(cells, root, i);
        CHECK(cell != MINDER_NO_CELL && minder_cells_type(cells, cell) == TYPES[i]);
        CHECK(minder_cells_bool(cells, cell) == (i == 1));
        CHECK((minder_cells_integer(cells, cell, &number) == MINDER_OK) == (i == 3));
        CHECK((minder_cells_text(cells, cell, NULL) != NULL) == (i == 5));
        CHECK(minder_cells_len(cells, cell) == 0);
    }
    CHECK(number == 7);
    CHECK(minder_cells_index(cells, root, 8) == MINDER_NO_CELL);
    CHECK(has_text(cells, minder_cells_index(cells, root, 5), "a\0\xc3\xa9", 4));
    minder_cells_free(cells);
}

static void numbers_keep_their_values(void) {
    minder_cells *cells = parse("[9223372036854775807, -9223372036854775808, 18446744073709551615, 1.5,"
                                " 18446744073709551616]");
    const minder_cell root = minder_cells_root(cells);
    int64_t integer = 0;
    uint64_t count = 0;
    double number = 0;
    OK(minder_cells_integer(cells, minder_cells_index(cells, root, 0), &integer));
    OK(minder_cells_unsigned(cells, minder_cells_index(cells, root, 0), &count));
    CHECK(integer == INT64_MAX && count == INT64_MAX);
    OK(minder_cells_integer(cells, minder_cells_index(cells, root, 1), &integer));
    CHECK(integer == INT64_MIN);
    CHECK_STATUS(minder_cells_unsigned(cells, minder_cells_index(cells, root, 1), &count), MINDER_NONE);
    OK(minder_cells_unsigned(cells, minder_cells_index(cells, root, 2), &count));
    CHECK_STATUS(minder_cells_integer(cells, minder_cells_index(cells, root, 2), &integer), MINDER_NONE);
    CHECK(count == UINT64_MAX && integer == INT64_MIN);
    OK(minder_cells_number(cells, minder_cells_index(cells, root, 2), &number));
    CHECK(fabs(number - 18446744073709551616.0) < 1);
    OK(minder_cells_number(cells, minder_cells_index(cells, root, 3), &number));
    CHECK(fabs(number - 1.5) < 1e-9);
    CHECK(minder_cells_type(cells, minder_cells_index(cells, root, 4)) == MINDER_CELL_FLOAT);
    CHECK_STATUS(minder_cells_number(cells, root, &number), MINDER_NONE);
    CHECK_STATUS(minder_cells_number(cells, minder_cells_index(cells, root, 3), NULL), MINDER_INVALID);
    minder_cells_free(cells);
}

static void objects_are_read_by_key_and_in_order(void) {
    minder_cells *cells = parse("{\"id\": 2, \"result\": {\"items\": [{\"label\": \"x\"}]}, \"id\": 3}");
    const minder_cell root = minder_cells_root(cells);
    static const char *const KEYS[] = { "id", "result", "id" };
    CHECK(minder_cells_len(cells, root) == 3);
    for (size_t i = 0; i < 3; i++) {
        CHECK(has_text(cells, minder_cells_key(cells, root, i), KEYS[i], strlen(KEYS[i])));
        CHECK(minder_cells_value(cells, root, i) != MINDER_NO_CELL);
    }
    CHECK(minder_cells_key(cells, root, 3) == MINDER_NO_CELL);
    CHECK(minder_cells_value(cells, root, SIZE_MAX) == MINDER_NO_CELL);
    /* The last one of two. */
    int64_t id = 0;
    OK(minder_cells_integer(cells, minder_cells_get(cells, root, "id"), &id));
    CHECK(id == 3);
    OK(minder_cells_integer(cells, minder_cells_value(cells, root, 0), &id));
    CHECK(id == 2);
    /* A chain, and one that breaks off. */
    const minder_cell items = minder_cells_get(cells, minder_cells_get(cells, root, "result"), "items");
    CHECK(has_text(cells, minder_cells_get(cells, minder_cells_index(cells, items, 0), "label"), "x", 1));
    const minder_cell none = minder_cells_get(cells, minder_cells_get(cells, root, "error"), "message");
    CHECK(none == MINDER_NO_CELL && minder_cells_type(cells, none) == MINDER_CELL_NONE);
    CHECK(minder_cells_len(cells, none) == 0 && minder_cells_text(cells, none, NULL) == NULL);
    CHECK(minder_cells_get(cells, root, "\xff") == MINDER_NO_CELL);
    CHECK(minder_cells_get(cells, items, "id") == MINDER_NO_CELL);
    CHECK(minder_cells_index(cells, root, 0) == MINDER_NO_CELL);
    minder_cells_free(cells);
}

static void values_are_printed(void) {
    minder_cells *cells = parse("{\"a\": [1, \"\\n\"], \"b\": null}");
    const minder_cell cell = minder_cells_get(cells, minder_cells_root(cells), "a");
    char text[16] = "";
    size_t needed = 0;
    CHECK_STATUS(minder_cells_print(cells, cell, NULL, 0, &needed), MINDER_LIMIT);
    CHECK(needed == 8);
    CHECK_STATUS(minder_cells_print(cells, cell, NULL, 8, NULL), MINDER_INVALID);
    OK(minder_cells_print(cells, cell, text, sizeof text, &needed));
    CHECK(needed == 8 && memcmp(text, "[1,\"\\n\"]", 9) == 0);
    CHECK_STATUS(minder_cells_print(cells, MINDER_NO_CELL, text, 16, &needed), MINDER_NONE);
    CHECK(needed == 0);
    minder_cells_free(cells);
}

static void errors_have_a_position(void) {
    static const struct {
        const char *json;
        size_t offset;
    } WRONG[] = { { "", 0 }, { "[1, 2", 5 }, { "[1,]", 3 }, { "{} x", 3 }, { "[\"\xff\"]", 2 }, { "[01]", 2 } };
    for (size_t i = 0; i < sizeof WRONG / sizeof *WRONG; i++) {
        minder_cells *cells = (minder_cells *)pool;
        size_t offset = 99;
        const char *json = WRONG[i].json;
        const minder_status status =
            minder_cells_parse(pool, (const uint8_t *)json, strlen(json), &cells, &offset);
        CHECK(status == MINDER_INVALID && cells == NULL);
        if (offset != WRONG[i].offset) fprintf(stderr, "`%s`: byte %zu\n", json, offset);
        CHECK(offset == WRONG[i].offset && strstr(minder_last_error(), "invalid JSON at byte ") != NULL);
    }
}

/* A number of other cells is no value, or another one: no memory is read that is not theirs. */
static void made_up_cells_do_no_harm(void) {
    minder_cells *cells = parse("{\"a\": [1, 2.5, \"text\"], \"b\": {\"c\": [[], {}]}}");
    uint64_t state = 1;
    for (int i = 0; i < 20000; i++) {
        state = state * 6364136223846793005u + 1442695040888963407u;
        const minder_cell cell = i < 400 ? (minder_cell)i : state >> (i % 64);
        int64_t number;
        size_t len;
        minder_cells_type(cells, cell);
        minder_cells_integer(cells, cell, &number);
        minder_cells_text(cells, cell, &len);
        minder_cells_len(cells, cell);
        minder_cells_index(cells, cell, 1);
        minder_cells_key(cells, cell, 0);
    }
    minder_cells_free(cells);
}

static void wrong_handles_are_refused(void) {
    CHECK_STATUS(minder_cells_parse(NULL, NULL, 0, NULL, NULL), MINDER_INVALID);
    minder_cells *cells = NULL;
    CHECK_STATUS(minder_cells_parse(NULL, NULL, 0, &cells, NULL), MINDER_INVALID);
    CHECK_STATUS(minder_cells_parse(pool, NULL, 4, &cells, NULL), MINDER_INVALID);
    minder_cells_free(NULL);
    minder_cells_pool_free(NULL);
    const minder_cells *const other = (const minder_cells *)pool;
    CHECK(minder_cells_root(NULL) == MINDER_NO_CELL && minder_cells_root(other) == MINDER_NO_CELL);
    CHECK(minder_cells_bytes(other) == 0 && minder_cells_type(other, 7) == MINDER_CELL_NONE);
    CHECK(!minder_cells_bool(other, 31) && minder_cells_len(other, 7) == 0);
    int64_t number = 0;
    CHECK_STATUS(minder_cells_integer(other, 0, &number), MINDER_INVALID);
    CHECK_STATUS(minder_cells_unsigned(other, 0, NULL), MINDER_INVALID);
    CHECK_STATUS(minder_cells_number(other, 0, NULL), MINDER_INVALID);
    CHECK_STATUS(minder_cells_print(other, 0, NULL, 0, NULL), MINDER_INVALID);
    CHECK(minder_cells_text(other, 0, NULL) == NULL && minder_cells_index(other, 0, 0) == MINDER_NO_CELL);
    CHECK(minder_cells_get(other, 0, NULL) == MINDER_NO_CELL && minder_cells_key(other, 0, 0) == MINDER_NO_CELL);
    CHECK(minder_cells_value(other, 0, 0) == MINDER_NO_CELL);
}

/* Nested to a depth for which a recursive parser has no stack. */
static void depth_has_no_limit(void) {
    const size_t depth = 100000;
    char *json = malloc(2 * depth + 1);
    CHECK(json != NULL);
    memset(json, '[', depth);
    memset(json + depth, ']', depth);
    json[2 * depth] = 0;
    minder_cells *cells = parse(json);
    minder_cell cell = minder_cells_root(cells);
    size_t levels = 0;
    for (; cell != MINDER_NO_CELL; cell = minder_cells_index(cells, cell, 0)) levels++;
    CHECK(levels == depth);
    free(json);
    minder_cells_free(cells);
}

int main(void) {
    pool = minder_cells_pool_new();
    values_have_types();
    numbers_keep_their_values();
    objects_are_read_by_key_and_in_order();
    values_are_printed();
    errors_have_a_position();
    made_up_cells_do_no_harm();
    wrong_handles_are_refused();
    depth_has_no_limit();
    /* Cells outlive their pool. */
    minder_cells *cells = parse("[1]");
    minder_cells_pool_free(pool);
    CHECK(minder_cells_len(cells, minder_cells_root(cells)) == 1);
    minder_cells_free(cells);
    puts("cells: ok");
    return 0;
}
