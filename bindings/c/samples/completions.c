/* Reads an answer of a language server into cells, and prints the completions in it. */
#include <minder_cells.h>
#include <stdio.h>
#include <string.h>

/* What clangd wrote for `p->`, where p points to a structure. In a program it is the output of a child. */
static const char OUTPUT[] =
    "Content-Length: 851\r\n\r\n"
    "{\"id\":2,\"jsonrpc\":\"2.0\",\"result\":{\"isIncomplete\":false,"
    "\"items\":[{\"detail\":\"int\",\"filterText\":\"x\",\"insertText\":\"x\","
    "\"insertTextFormat\":1,\"kind\":5,\"label\":\" x\",\"score\":1.6082059144973755,"
    "\"sortText\":\"4032264fx\",\"textEdit\":{\"newText\":\"x\","
    "\"range\":{\"end\":{\"character\":14,\"line\":7},\"start\":{\"character\":14,\"line\":7}}}},"
    "{\"detail\":\"int\",\"filterText\":\"y\",\"insertText\":\"y\",\"insertTextFormat\":1,"
    "\"kind\":5,\"label\":\" y\",\"score\":1.6082059144973755,\"sortText\":\"4032264fy\","
    "\"textEdit\":{\"newText\":\"y\",\"range\":{\"end\":{\"character\":14,\"line\":7},"
    "\"start\":{\"character\":14,\"line\":7}}}},{\"detail\":\"double (*)(const struct point *)\","
    "\"filterText\":\"norm\",\"insertText\":\"norm\",\"insertTextFormat\":1,\"kind\":5,"
    "\"label\":\" norm\",\"score\":0.8436853289604187,\"sortText\":\"40a8043dnorm\","
    "\"textEdit\":{\"newText\":\"norm\",\"range\":{\"end\":{\"character\":14,\"line\":7},"
    "\"start\":{\"character\":14,\"line\":7}}}}]}}";

static int fail(const char *what) {
    fprintf(stderr, "completions: %s: %s\n", what, minder_last_error());
    return 1;
}

/* Returns the text of a value, and stores its length: it has no NUL at its end. */
static const char *text_of(const minder_cells *cells, minder_cell cell, int *len) {
    size_t bytes = 0;
    const char *text = minder_cells_text(cells, cell, &bytes);
    *len = (int)bytes;
    return text == NULL ? "" : text;
}

static int print_completions(const minder_cells *cells) {
    /* A value that is missing is MINDER_NO_CELL, and so is everything in it. */
    const minder_cell result = minder_cells_get(cells, minder_cells_root(cells), "result");
    const minder_cell items = minder_cells_get(cells, result, "items");
    if (minder_cells_type(cells, items) != MINDER_CELL_ARRAY) return fail("no items");
    printf("%zu completions\n", minder_cells_len(cells, items));
    for (size_t i = 0; i < minder_cells_len(cells, items); i++) {
        const minder_cell item = minder_cells_index(cells, items, i);
        int label_len, detail_len;
        const char *label = text_of(cells, minder_cells_get(cells, item, "label"), &label_len);
        const char *detail = text_of(cells, minder_cells_get(cells, item, "detail"), &detail_len);
        if (label_len > 0 && *label == ' ') { /* clangd marks what needs no #include so */
            label++;
            label_len--;
        }
        printf("%.*s: %.*s\n", label_len, label, detail_len, detail);
    }
    return 0;
}

int main(void) {
    minder_framer_options options = MINDER_INIT(minder_framer_options);
    options.format = MINDER_FRAME_CONTENT_LENGTH;
    minder_framer *framer = NULL;
    if (minder_framer_new(&options, &framer) != MINDER_OK) return fail("framer");
    minder_cells_pool *pool = minder_cells_pool_new();

    const uint8_t *rest = (const uint8_t *)OUTPUT;
    size_t left = strlen(OUTPUT);
    minder_frame frame = MINDER_INIT(minder_frame);
    int status = 0;
    while (status == 0 && minder_framer_next(framer, &rest, &left, &frame) == MINDER_OK) {
        minder_cells *cells = NULL;
        if (minder_cells_parse(pool, frame.bytes, frame.len, &cells, NULL) != MINDER_OK)
            status = fail("answer"); /* the text has the position */
        else
            status = print_completions(cells);
        minder_cells_free(cells); /* all values at once; the pool keeps the memory for the next answer */
    }
    minder_cells_pool_free(pool);
    minder_framer_free(framer);
    return status;
}
