/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"

#include "prep/synth.h"

#include "base/fs.h"
#include "base/progress.h"
#include "base/publish.h"
#include "base/strbuf.h"
#include "base/temp.h"
#include "codec/tar_make.h"
#include "prep/draw.h"
#include "prep/hdf5.h"
#include "prep/jpeg.h"
#include "prep/ordered.h"
#include "prep/png.h"
#include "prep/tfrecord.h"

/* The bytes of each file of a synthetic dataset. */

#define QUALITY 95 /* 0.6 bytes a pixel, as the photographs of ImageNet have */
#define GREY_BYTE(p)                                                                               \
    (((p)[0] * 77 + (p)[1] * 150 + (p)[2] * 29) >> 8) /* luma of BT.601, in 1/256 */

/* In place: from three bytes a pixel to one. */
static void to_grey(uint8_t *pixels, size_t n)
{
    for (size_t idx = 0; idx < n; idx++) {
        pixels[idx] = (uint8_t)GREY_BYTE(pixels + idx * 3);
    }
}

/* Inverted, without black: (R, G, B, 255). Needs four bytes a pixel. */
static void to_cmyk(uint8_t *pixels, size_t n)
{
    for (size_t idx = n; idx-- > 0;) {
        memmove(pixels + idx * 4, pixels + idx * 3, 3);
        pixels[idx * 4 + 3] = UINT8_MAX;
    }
}

static int make_object(const struct synth_member *member, uint8_t **ret_bytes, size_t *ret_len,
                       struct err *err)
{
    size_t n = (size_t)member->width * member->height;
    CLEANUP(free) uint8_t *pixels = xmalloc(n * 4);
    struct jpeg_picture picture = {pixels, member->width, member->height, 3, QUALITY};
    draw_object(member->seed, member->label, member->width, member->height, pixels);
    if (member->format == FILE_PNG) {
        struct png_picture png = {.pixels = pixels,
                                  .width = member->width,
                                  .height = member->height,
                                  .n_channels = 3,
                                  .bits = 8};
        return png_encode(&png, ret_bytes, ret_len, err);
    }
    if (member->traits & TRAIT_GREY) {
        to_grey(pixels, n);
        picture.n_channels = 1;
    } else if (member->traits & TRAIT_CMYK) {
        to_cmyk(pixels, n);
        picture.n_channels = 4;
    }
    return jpeg_encode(&picture, ret_bytes, ret_len, err);
}

static int make_street(const struct synth_member *member, uint8_t **ret_bytes, size_t *ret_len,
                       struct err *err)
{
    size_t n = (size_t)member->width * member->height;
    CLEANUP(free) uint8_t *labels = xmalloc(n);
    CLEANUP(free) uint8_t *pixels = NULL;
    struct png_picture picture = {.pixels = labels,
                                  .width = member->width,
                                  .height = member->height,
                                  .n_channels = 1,
                                  .bits = 8};
    draw_street_labels(member->seed, member->width, member->height, labels);
    if (member->kind == SYNTH_STREET) {
        pixels = xmalloc(n * 3);
        draw_street(member->seed, member->width, member->height, labels, pixels);
        picture.pixels = pixels;
        picture.n_channels = 3;
    }
    if (member->format == FILE_JPEG) {
        struct jpeg_picture jpeg = {picture.pixels, picture.width, picture.height,
                                    picture.n_channels, QUALITY};
        ASSERT(member->kind == SYNTH_STREET);
        return jpeg_encode(&jpeg, ret_bytes, ret_len, err);
    }
    return png_encode(&picture, ret_bytes, ret_len, err);
}

static int make_records(const struct synth_member *member, const struct dataset_pack *pack,
                        uint8_t **ret_bytes, size_t *ret_len, struct err *err)
{
    struct tokens_shape shape = {(uint32_t)pack->sequence, (uint32_t)pack->predictions};
    size_t row_len = tokens_len(&shape);
    CLEANUP(free)
    int32_t *rows = xcalloc(member->n_rows ? member->n_rows : 1, row_len * sizeof(*rows));
    CLEANUP(strbuf) struct strbuf text = {0};
    for (uint32_t idx = 0; idx < member->n_rows; idx++) {
        tokens_draw(member->seed + idx, &shape, rows + idx * row_len);
    }
    if (member->format == FILE_HDF5) {
        return hdf5_make(rows, member->n_rows, &shape, ret_bytes, ret_len, err);
    }
    strbuf_init(&text, (size_t)1 << 32);
    for (uint32_t idx = 0; idx < member->n_rows; idx++) {
        tfrecord_append(&text, &shape, rows + idx * row_len);
    }
    *ret_len = text.len;
    *ret_bytes = xmalloc(text.len ? text.len : 1);
    memcpy(*ret_bytes, text.ptr, text.len);
    return 0;
}

/* One member's bytes, from malloc. On any thread, but SYNTH_RECORDS in HDF5 on one alone (libhdf5). */
static int synth_make(const struct synth_member *member, const struct dataset_pack *pack,
                      uint8_t **ret_bytes, size_t *ret_len, struct err *err)
{
    switch (member->kind) {
    case SYNTH_OBJECT:
        return make_object(member, ret_bytes, ret_len, err);
    case SYNTH_STREET:
    case SYNTH_STREET_LABELS:
        return make_street(member, ret_bytes, ret_len, err);
    case SYNTH_RECORDS:
        return make_records(member, pack, ret_bytes, ret_len, err);
    case SYNTH_TEXT:
        break;
    }
    *ret_len = member->text.len;
    *ret_bytes = xmalloc(member->text.len + 1);
    memcpy(*ret_bytes, member->text.ptr, member->text.len);
    return 0;
}

#define INNER_BYTES_MAX ((size_t)1 << 33)

/* One member of an archive: a file, or an archive of a folder's files inside it. */
struct synth_entry {
    struct str name;
    size_t first, n; /* of the plan's members; 0 of them is never */
    bool is_inner;
};

struct synth_writer {
    const struct synth_opts *opts;
    const struct synth_plan *plan;
    struct str prefix; /* of the tree's paths that this archive holds; it does not say it itself */
    struct synth_entry *entries;
    size_t n_entries;
    struct tar_maker tar;
    struct progress *progress;
    size_t n_done;
};

struct synth_slot {
    uint8_t *bytes; /* from malloc */
    size_t len;
    struct strbuf inner;
};

static void slot_release(void *ptr)
{
    struct synth_slot *slot = ptr;
    free(slot->bytes);
    strbuf_release(&slot->inner);
}

static struct str name_inside(const struct synth_writer *w, struct str path)
{
    return str_sub(path, w->prefix.len, SIZE_MAX);
}

static int make_inner(const struct synth_writer *w, const struct synth_entry *entry,
                      struct synth_slot *slot, const atomic_bool *is_cancelled, struct err *err)
{
    CLEANUP(tar_maker) struct tar_maker tar = TAR_MAKER_EMPTY;
    struct digest_value ignored;
    strbuf_release(&slot->inner);
    strbuf_init(&slot->inner, INNER_BYTES_MAX);
    if (tar_make_open_inner(&tar, &slot->inner, err) < 0) {
        return -1;
    }
    for (size_t idx = entry->first; idx < entry->first + entry->n; idx++) {
        const struct synth_member *member = &w->plan->members[idx];
        struct str name = name_inside(w, member->path);
        int64_t slash = str_find(name, STR_LIT("/"));
        uint8_t *bytes = NULL;
        size_t len = 0;
        if (atomic_load(is_cancelled)) {
            return err_set(err, ERR_INTERRUPTED, "interrupted");
        }
        if (synth_make(member, &w->opts->dataset->pack, &bytes, &len, err) < 0) {
            return err_wrap(err, "%.*s", STR_ARG(member->path));
        }
        int result =
            tar_make_bytes(&tar, str_sub(name, (size_t)slash + 1, SIZE_MAX), bytes, len, err);
        free(bytes);
        if (result < 0) {
            return -1;
        }
    }
    return tar_make_close(&tar, &ignored, err);
}

/* libhdf5 is for one thread: the caller's. */
static bool is_for_caller(const struct synth_member *member)
{
    return member->kind == SYNTH_RECORDS && member->format == FILE_HDF5;
}

static int make_one(const struct synth_writer *w, const struct synth_entry *entry,
                    struct synth_slot *slot, struct err *err)
{
    const struct synth_member *member = &w->plan->members[entry->first];
    if (synth_make(member, &w->opts->dataset->pack, &slot->bytes, &slot->len, err) < 0) {
        return err_wrap(err, "%.*s", STR_ARG(member->path));
    }
    return 0;
}

static int prepare(void *ctx, size_t job, void *slot, struct err *err)
{
    const struct synth_writer *w = ctx;
    const struct synth_entry *entry = &w->entries[job];
    if (!entry->is_inner && is_for_caller(&w->plan->members[entry->first])) {
        return make_one(w, entry, slot, err);
    }
    return 0;
}

static int work(void *ctx, size_t job, void *slot, const atomic_bool *is_cancelled, struct err *err)
{
    const struct synth_writer *w = ctx;
    const struct synth_entry *entry = &w->entries[job];
    if (entry->is_inner) {
        return make_inner(w, entry, slot, is_cancelled, err);
    }
    return is_for_caller(&w->plan->members[entry->first]) ? 0 : make_one(w, entry, slot, err);
}

static int done(void *ctx, size_t job, void *ptr, struct err *err)
{
    struct synth_writer *w = ctx;
    struct synth_slot *slot = ptr;
    const struct synth_entry *entry = &w->entries[job];
    int result = entry->is_inner
                     ? tar_make_bytes(&w->tar, entry->name, slot->inner.ptr, slot->inner.len, err)
                     : tar_make_bytes(&w->tar, entry->name, slot->bytes, slot->len, err);
    free(slot->bytes);
    slot->bytes = NULL;
    w->n_done += entry->n;
    progress_set(w->progress, w->n_done);
    return result;
}

/* The archive of the tree's path: the one whose folder it is in; else the one for the top. NULL: none. */
static const struct dataset_file *file_of(const struct dataset_file *files, size_t n_files,
                                          struct str path)
{
    const struct dataset_file *best = NULL;
    for (size_t idx = 0; idx < n_files; idx++) {
        const struct dataset_file *file = &files[idx];
        bool is_in =
            !file->into.ptr || (str_starts(path, file->into) && path.len > file->into.len &&
                                path.ptr[file->into.len] == '/');
        if (is_in && (!best || file->into.len > best->into.len)) {
            best = file;
        }
    }
    return best;
}

static int add_entry(struct synth_writer *w, struct arena *arena, const struct dataset_file *file,
                     size_t member, struct err *err)
{
    struct str name = name_inside(w, w->plan->members[member].path);
    int64_t slash = str_find(name, STR_LIT("/"));
    struct synth_entry *last = w->n_entries ? &w->entries[w->n_entries - 1] : NULL;
    if (!file->is_nested) {
        w->entries[w->n_entries++] = (struct synth_entry){name, member, 1, false};
        return 0;
    }
    if (slash <= 0) {
        return err_set(err, ERR_MANIFEST,
                       "%.*s holds archives of folders, and %.*s lies in no folder",
                       STR_ARG(file->name), STR_ARG(name));
    }
    struct str inner = str_of(arena_printf(arena, "%.*s.tar", (int)slash, name.ptr));
    if (last && str_eq(last->name, inner) && last->first + last->n == member) {
        last->n++;
        return 0;
    }
    w->entries[w->n_entries++] = (struct synth_entry){inner, member, 1, true};
    return 0;
}

static int write_file(struct synth_writer *w, struct arena *arena, const struct dataset_file *file,
                      struct synth_file *ret_file, struct err *err)
{
    const char *path = fs_join(arena, w->opts->folder, file->name.ptr);
    bool is_gzip = str_eq_z(file->unpack, "tar.gz");
    struct ordered spec = {.ctx = w,
                           .n_jobs = w->n_entries,
                           .n_threads = w->opts->n_threads,
                           .slot_bytes = sizeof(struct synth_slot),
                           .slot_release = slot_release,
                           .prepare = prepare,
                           .work = work,
                           .done = done,
                           .should_stop = w->opts->should_stop};
    spec.n_ahead = file->is_nested ? w->opts->n_threads + 1 : 0; /* whole folders in memory */
    if (!is_gzip && !str_eq_z(file->unpack, "tar")) {
        return err_set(err, ERR_MANIFEST, "%.*s: only tar and tar.gz can be made, not %.*s",
                       STR_ARG(file->name), STR_ARG(file->unpack));
    }
    CLEANUP(temp) struct temp *temp = NULL;
    if (fs_check_target(path, err) < 0) {
        return -1;
    }
    if (temp_file(path, 0644, &temp) < 0) {
        return err_errno(err, "create", path);
    }
    int result = tar_make_open(&w->tar, temp->fd, is_gzip, err);
    result = result < 0 ? -1 : ordered_run(&spec, err);
    result = result < 0 ? -1 : tar_make_close(&w->tar, &ret_file->value, err);
    result = result < 0 ? -1 : publish_file(temp->fd, temp->path, path, err);
    tar_maker_cleanup(&w->tar);
    ret_file->name = file->name;
    return result;
}

int synth_write(struct arena *arena, const struct synth_opts *opts, struct synth_result *ret_result,
                struct err *err)
{
    const struct dataset *dataset = opts->dataset;
    const bool has_own = dataset->synthetic.n_files > 0;
    const struct dataset_file *files = has_own ? dataset->synthetic.files : dataset->files;
    size_t n_files = has_own ? dataset->synthetic.n_files : dataset->n_files;
    struct synth_plan plan = {0};
    struct progress progress;
    struct synth_result result = {arena_array(arena, struct synth_file, n_files + 1), n_files};
    size_t n_placed = 0;
    struct synth_writer w = {
        .opts = opts, .plan = &plan, .tar = TAR_MAKER_EMPTY, .progress = &progress};
    if (!dataset->synthetic.is_there || !n_files) {
        return err_set(err, ERR_MANIFEST, "%.*s has no synthetic version", STR_ARG(dataset->id));
    }
    if (synth_plan_make(arena, opts, &plan, err) < 0 || fs_mkdir_p(opts->folder, err) < 0) {
        return -1;
    }
    progress_start(&progress, clock_system(), "synthesise", "files", plan.n);
    for (size_t idx = 0; idx < n_files; idx++) {
        w.entries = arena_array(arena, struct synth_entry, plan.n + 1);
        w.n_entries = 0;
        w.prefix = files[idx].into.ptr
                       ? str_of(arena_printf(arena, "%.*s/", STR_ARG(files[idx].into)))
                       : STR_EMPTY;
        for (size_t member = 0; member < plan.n; member++) {
            if (file_of(files, n_files, plan.members[member].path) != &files[idx]) {
                continue;
            }
            n_placed++;
            if (add_entry(&w, arena, &files[idx], member, err) < 0) {
                return -1;
            }
        }
        if (write_file(&w, arena, &files[idx], &result.files[idx], err) < 0) {
            return err_wrap(err, "%.*s", STR_ARG(files[idx].name));
        }
    }
    progress_end(&progress);
    if (n_placed != plan.n) {
        return err_set(err, ERR_MANIFEST, "%zu of %zu files belong to no archive",
                       plan.n - n_placed, plan.n);
    }
    *ret_result = result;
    return 0;
}
