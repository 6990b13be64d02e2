/* SPDX-License-Identifier: Apache-2.0 */
/* Before base.h: a member of the library's has the name of a call that base/banned.h takes away. */
#include <hdf5.h>

#include "base/base.h"

#include "prep/hdf5.h"

#include "base/arena.h"
#include "sys/pool.h"

#define GZIP_LEVEL 4
#define GROW_BYTES (1u << 20)

#define TEXT_(x) #x
#define TEXT(x)  TEXT_(x)

struct hdf5_file {
    hid_t file;
    hid_t sets[TOKENS_PARTS];
    struct tokens_shape shape;
    uint32_t n_rows;
    int32_t *column; /* owned: one part of some rows */
    size_t column_len;
};

/* The innermost message of the library's own stack of errors. */
static herr_t keep_first(unsigned n, const H5E_error2_t *item, void *ctx)
{
    const char **text = ctx;
    if (n == 0 && item->desc) {
        *text = item->desc;
    }
    return 0;
}

static int fail(const char *what, struct err *err)
{
    const char *text = "no reason given";
    (void)H5Ewalk2(H5E_DEFAULT, H5E_WALK_UPWARD, keep_first, &text);
    return err_set(err, ERR_INTEGRITY, "HDF5: %s: %s", what, text);
}

static int check_set(struct hdf5_file *file, enum tokens_part part, struct err *err)
{
    const char *name = tokens_part_name(part);
    const int wanted_rank = part == TOKENS_NEXT ? 1 : 2;
    hsize_t dims[2] = {0, 1};
    hid_t type = H5Dget_type(file->sets[part]);
    hid_t space = H5Dget_space(file->sets[part]);
    bool is_whole = type >= 0 && H5Tget_class(type) == H5T_INTEGER;
    int rank = space >= 0 ? H5Sget_simple_extent_ndims(space) : -1;
    int got = rank == wanted_rank ? H5Sget_simple_extent_dims(space, dims, NULL) : -1;
    (void)H5Tclose(type);
    (void)H5Sclose(space);
    if (!is_whole || got != wanted_rank) {
        return err_set(err, ERR_INTEGRITY, "%s: expected whole numbers in %d dimensions, found %d",
                       name, wanted_rank, rank);
    }
    if (wanted_rank == 2 && dims[1] != tokens_part_len(&file->shape, part)) {
        return err_set(err, ERR_INTEGRITY, "%s: %llu numbers a row, expected %zu", name,
                       (unsigned long long)dims[1], tokens_part_len(&file->shape, part));
    }
    if (dims[0] > HDF5_ROWS_MAX || (part != TOKENS_INPUT && dims[0] != file->n_rows)) {
        return err_set(err, ERR_INTEGRITY, "%s: %llu rows, expected %u", name,
                       (unsigned long long)dims[0],
                       part == TOKENS_INPUT ? HDF5_ROWS_MAX : file->n_rows);
    }
    file->n_rows = (uint32_t)dims[0];
    return 0;
}

int hdf5_open(const char *path, const struct tokens_shape *shape, struct hdf5_file **ret_file,
              struct err *err)
{
    CLEANUP(turn) struct turn turn UNUSED = turn_take();
    CLEANUP(hdf5) struct hdf5_file *file = xcalloc(1, sizeof(*file));
    (void)H5Eset_auto2(H5E_DEFAULT, NULL, NULL); /* nothing is printed */
    file->shape = *shape;
    for (enum tokens_part part = TOKENS_INPUT; part < TOKENS_PARTS; part++) {
        file->sets[part] = -1;
    }
    file->file = H5Fopen(path, H5F_ACC_RDONLY, H5P_DEFAULT);
    if (file->file < 0) {
        return fail("open", err);
    }
    for (enum tokens_part part = TOKENS_INPUT; part < TOKENS_PARTS; part++) {
        file->sets[part] = H5Dopen2(file->file, tokens_part_name(part), H5P_DEFAULT);
        if (file->sets[part] < 0) {
            return fail(tokens_part_name(part), err);
        }
        if (check_set(file, part, err) < 0) {
            return -1;
        }
    }
    *ret_file = file;
    file = NULL;
    return 0;
}

uint32_t hdf5_n_rows(const struct hdf5_file *file)
{
    return file->n_rows;
}

static int read_part(struct hdf5_file *file, enum tokens_part part, uint32_t first, uint32_t n,
                     struct err *err)
{
    int rank = part == TOKENS_NEXT ? 1 : 2;
    hsize_t start[2] = {first, 0};
    hsize_t count[2] = {n, tokens_part_len(&file->shape, part)};
    hid_t space = H5Dget_space(file->sets[part]);
    hid_t memory = H5Screate_simple(rank, count, NULL);
    herr_t status = space < 0 || memory < 0 ? -1 : 0;
    if (status >= 0) {
        status = H5Sselect_hyperslab(space, H5S_SELECT_SET, start, NULL, count, NULL);
    }
    if (status >= 0) {
        status =
            H5Dread(file->sets[part], H5T_NATIVE_INT32, memory, space, H5P_DEFAULT, file->column);
    }
    (void)H5Sclose(space);
    (void)H5Sclose(memory);
    return status < 0 ? fail(tokens_part_name(part), err) : 0;
}

int hdf5_read(struct hdf5_file *file, uint32_t first, uint32_t n, int32_t *rows, struct err *err)
{
    CLEANUP(turn) struct turn turn UNUSED = turn_take();
    size_t row_len = tokens_len(&file->shape);
    ASSERT(first <= file->n_rows && n <= file->n_rows - first);
    if (file->column_len < (size_t)n * TOKENS_SEQUENCE_MAX) {
        file->column_len = (size_t)n * TOKENS_SEQUENCE_MAX;
        file->column = xrealloc(file->column, file->column_len * sizeof(*file->column));
    }
    for (enum tokens_part part = TOKENS_INPUT; part < TOKENS_PARTS; part++) {
        size_t len = tokens_part_len(&file->shape, part);
        size_t at = tokens_part_at(&file->shape, part);
        if (read_part(file, part, first, n, err) < 0) {
            return -1;
        }
        for (uint32_t row = 0; row < n; row++) {
            memcpy(rows + row * row_len + at, file->column + row * len, len * sizeof(*rows));
        }
    }
    return 0;
}

void hdf5_close(struct hdf5_file *file)
{
    if (!file) {
        return;
    }
    CLEANUP(turn) struct turn turn UNUSED = turn_take();
    for (enum tokens_part part = TOKENS_INPUT; part < TOKENS_PARTS; part++) {
        if (file->sets[part] >= 0) {
            (void)H5Dclose(file->sets[part]);
        }
    }
    if (file->file >= 0) {
        (void)H5Fclose(file->file);
    }
    free(file->column);
    free(file);
}

/* ---- writing ---- */

static int write_part(hid_t file, enum tokens_part part, const int32_t *column, uint32_t n,
                      size_t len)
{
    bool is_small = part == TOKENS_SEGMENT || part == TOKENS_MASK || part == TOKENS_NEXT;
    int rank = part == TOKENS_NEXT ? 1 : 2;
    hsize_t dims[2] = {n, len};
    hid_t space = H5Screate_simple(rank, dims, NULL);
    hid_t how = H5Pcreate(H5P_DATASET_CREATE);
    hid_t set;
    herr_t status;
    (void)H5Pset_obj_track_times(how, 0); /* or the time would be in the bytes */
    (void)H5Pset_chunk(how, rank, dims);
    (void)H5Pset_deflate(how, GZIP_LEVEL);
    set = H5Dcreate2(file, tokens_part_name(part), is_small ? H5T_STD_I8LE : H5T_STD_I32LE, space,
                     H5P_DEFAULT, how, H5P_DEFAULT);
    status = set < 0 ? -1 : H5Dwrite(set, H5T_NATIVE_INT32, H5S_ALL, H5S_ALL, H5P_DEFAULT, column);
    (void)H5Dclose(set);
    (void)H5Pclose(how);
    (void)H5Sclose(space);
    return status < 0 ? -1 : 0;
}

static int write_parts(hid_t file, const int32_t *rows, uint32_t n,
                       const struct tokens_shape *shape, struct err *err)
{
    CLEANUP(free) int32_t *column = xcalloc(n, shape->sequence * sizeof(*column));
    for (enum tokens_part part = TOKENS_INPUT; part < TOKENS_PARTS; part++) {
        size_t len = tokens_part_len(shape, part);
        for (uint32_t row = 0; row < n; row++) {
            memcpy(column + row * len, rows + row * tokens_len(shape) + tokens_part_at(shape, part),
                   len * sizeof(*column));
        }
        if (write_part(file, part, column, n, len) < 0) {
            return fail(tokens_part_name(part), err);
        }
    }
    return 0;
}

static int take_image(hid_t file, uint8_t **ret_bytes, size_t *ret_len, struct err *err)
{
    ssize_t len = H5Fflush(file, H5F_SCOPE_LOCAL) < 0 ? -1 : H5Fget_file_image(file, NULL, 0);
    uint8_t *bytes = len > 0 ? xmalloc((size_t)len) : NULL;
    if (len <= 0 || H5Fget_file_image(file, bytes, (size_t)len) != len) {
        free(bytes);
        return fail("image of the file", err);
    }
    *ret_bytes = bytes;
    *ret_len = (size_t)len;
    return 0;
}

int hdf5_make(const int32_t *rows, uint32_t n, const struct tokens_shape *shape,
              uint8_t **ret_bytes, size_t *ret_len, struct err *err)
{
    CLEANUP(turn) struct turn turn UNUSED = turn_take();
    hid_t access = H5Pcreate(H5P_FILE_ACCESS);
    hid_t file;
    ASSERT(shape->predictions <= shape->sequence);
    (void)H5Eset_auto2(H5E_DEFAULT, NULL, NULL);
    (void)H5Pset_fapl_core(access, GROW_BYTES, 0); /* in memory, no file behind it */
    file = H5Fcreate("memory.hdf5", H5F_ACC_TRUNC, H5P_DEFAULT, access);
    (void)H5Pclose(access);
    if (file < 0) {
        return fail("create", err);
    }
    int result = write_parts(file, rows, n, shape, err);
    result = result < 0 ? -1 : take_image(file, ret_bytes, ret_len, err);
    (void)H5Fclose(file);
    return result;
}

const char *hdf5_library(void)
{
    return "HDF5 " TEXT(H5_VERS_MAJOR) "." TEXT(H5_VERS_MINOR) "." TEXT(H5_VERS_RELEASE);
}
