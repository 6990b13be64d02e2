/* SPDX-License-Identifier: Apache-2.0 */
/* A dataset that is made from another one's images: each file of the tree goes into a record as it is, with its class. The
   names and numbers of the files to write are those of the dataset's groups of records; the order of the records is drawn
   from a fixed seed.

   RecordIO: magic, length and kind of a part (u32 each), its bytes, zeros up to a multiple of 4; bytes that look like the
   magic at such a place are left out and end a part. Beside PREFIX.rec, PREFIX.idx has a line "NUMBER OFFSET" a record.
   Source: dmlc-core, src/recordio.cc and include/dmlc/recordio.h; MXNet, python/mxnet/recordio.py (IRHeader). */
#include "base/base.h"

#include <fcntl.h>

#include "base/fs.h"
#include "base/rng.h"
#include "prep/ordered.h"
#include "prep/samples.h"
#include "prep/tfrecord.h"
#include "prep/verb.h"

#define IMAGE_BYTES_MAX  (64u << 20)
#define RECORD_BYTES_MAX (80u << 20)
#define INDEX_BYTES_MAX  (1u << 30)
#define ORDER_SEED       0
#define PARTS_MAX        99999 /* five digits in a name */
#define RECORDIO_MAGIC   0xced7230au
#define RECORDIO_HEADER  24 /* flag (u32), label (f32), two numbers (u64) */

struct records_args {
    const char *dataset, *source, *tree, *list, *out;
    bool is_synthetic;
};

static const struct opt OPTS[] = {
    OPT(struct records_args, dataset, "dataset", "the dataset.json of what is made",
        .value = "FILE"),
    OPT(struct records_args, source, "source", "the dataset.json of what it is made from",
        .value = "FILE"),
    OPT(struct records_args, tree, "tree", "the unpacked source", .value = "FOLDER"),
    OPT(struct records_args, list, "list",
        "the source's list of SHA-256; each file is compared with it", .value = "FILE"),
    OPT(struct records_args, out, "out", "where the records are written", .value = "FOLDER"),
    OPT(struct records_args, is_synthetic, "synthetic", "the tree is the synthetic dataset"),
    OPT_END,
};

struct record_group {
    const char *folder;
    const struct tree_source *source;
    const struct samples *samples;
    struct str stem; /* begins the files' names */
    enum dataset_recipe recipe;
    size_t n_parts;
};

struct record_room {
    struct file_bytes file;
    struct strbuf record, index;
    const char *path; /* the file that is being written */
    int fd;
};

static void release_room(void *slot)
{
    struct record_room *room = slot;
    file_bytes_release(&room->file);
    strbuf_release(&room->record);
    strbuf_release(&room->index);
}

static void add_part(struct strbuf *out, uint32_t kind, const char *bytes, size_t len)
{
    strbuf_add_le32(out, RECORDIO_MAGIC);
    strbuf_add_le32(out, kind << 29 | (uint32_t)len);
    strbuf_add(out, bytes, len);
}

static void recordio_append(struct strbuf *out, struct str file, float label, uint64_t number)
{
    CLEANUP(strbuf) struct strbuf whole = STRBUF(RECORD_BYTES_MAX);
    const uint32_t magic = htole32(RECORDIO_MAGIC);
    uint32_t bits;
    size_t from = 0;
    memcpy(&bits, &label, sizeof(bits));
    strbuf_add_le32(&whole, 0);
    strbuf_add_le32(&whole, bits);
    strbuf_add_le32(&whole, (uint32_t)number);
    for (size_t idx = 0; idx < 3; idx++) { /* the number's upper half, and the second number */
        strbuf_add_le32(&whole, idx ? 0 : (uint32_t)(number >> 32));
    }
    ASSERT(whole.len == RECORDIO_HEADER);
    strbuf_add_str(&whole, file);
    for (size_t at = 0; at + 4 <= whole.len; at += 4) {
        if (memcmp(whole.ptr + at, &magic, 4) == 0) {
            add_part(out, from ? 2 : 1, whole.ptr + from, at - from);
            from = at + 4;
        }
    }
    add_part(out, from ? 3 : 0, whole.ptr + from, whole.len - from);
    strbuf_add(out, "\0\0\0", -whole.len & 3);
}

static const char *name_of(struct arena *arena, const struct record_group *m, size_t part,
                           const char *end)
{
    return m->recipe == RECIPE_RECORDIO
               ? arena_printf(arena, "%s/%.*s.%s", m->folder, STR_ARG(m->stem), end)
               : arena_printf(arena, "%s/%.*s-%05zu-of-%05zu", m->folder, STR_ARG(m->stem), part,
                              m->n_parts);
}

static int write_records(const struct record_group *m, size_t part, struct record_room *room,
                         const atomic_bool *is_cancelled, struct err *err)
{
    uint64_t offset = 0;
    for (size_t idx = part; idx < m->samples->n && !*is_cancelled; idx += m->n_parts) {
        const struct image_sample *sample = &m->samples->items[idx];
        if (tree_source_read(m->source, sample->path, IMAGE_BYTES_MAX, &room->file, err) < 0) {
            return -1;
        }
        struct str file = {(const char *)room->file.ptr, room->file.len};
        if (m->recipe == RECIPE_RECORDIO) {
            strbuf_printf(&room->index, "%zu\t%" PRIu64 "\n", idx, offset);
            recordio_append(&room->record, file, (float)sample->label, idx);
        } else {
            tfrecord_append_image(&room->record, file, (uint64_t)sample->label + 1);
        }
        offset += room->record.len;
        if (fs_write_all(room->fd, room->record.ptr, room->record.len, room->path, err) < 0) {
            return -1;
        }
        strbuf_clear(&room->record);
    }
    return 0;
}

static int write_part(void *ctx, size_t part, void *slot, const atomic_bool *is_cancelled,
                      struct err *err)
{
    CLEANUP(arena) struct arena arena = ARENA_EMPTY;
    const struct record_group *m = ctx;
    struct record_room *room = slot;
    const char *path = name_of(&arena, m, part, "rec");
    CLEANUP(fd) int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
    if (fd < 0) {
        return err_errno(err, "create", path);
    }
    if (!room->record.cap_bytes) {
        strbuf_init(&room->record, RECORD_BYTES_MAX);
        strbuf_init(&room->index, INDEX_BYTES_MAX);
    }
    strbuf_clear(&room->index);
    room->path = path;
    room->fd = fd;
    if (write_records(m, part, room, is_cancelled, err) < 0) {
        return -1;
    }
    return m->recipe == RECIPE_RECORDIO
               ? fs_write_atomic(name_of(&arena, m, part, "idx"), strbuf_str(&room->index), err)
               : 0;
}

static void shuffle(struct samples *samples)
{
    struct rng rng;
    rng_init(&rng, ORDER_SEED);
    for (size_t n = samples->n; n > 1; n--) {
        size_t at = (size_t)rng_below(&rng, n);
        struct image_sample last = samples->items[n - 1];
        samples->items[n - 1] = samples->items[at];
        samples->items[at] = last;
    }
}

/* The stem is what stands before "-*" or, of RecordIO, whose index has a line a record, before ".idx". */
static int make_group(struct arena *arena, struct record_group *m, struct samples_opts *from,
                      const struct dataset_group *group, struct err *err)
{
    CLEANUP(samples) struct samples samples = {0};
    const struct str end = m->recipe == RECIPE_RECORDIO ? STR_LIT(".idx") : STR_LIT("-*");
    if (!group->split.ptr || !str_ends(group->glob, end) || group->n_files < 1 ||
        group->n_files > (m->recipe == RECIPE_RECORDIO ? 1 : PARTS_MAX)) {
        return err_set(err, ERR_MANIFEST,
                       "group %.*s: expected a split, a glob that ends in \"%.*s\" and the number "
                       "of files",
                       STR_ARG(group->name), STR_ARG(end));
    }
    from->split = group->split;
    if (samples_find(arena, from, &samples, err) < 0) {
        return -1;
    }
    if (samples.kind != SHARD_CLASSES) {
        return err_set(err, ERR_MANIFEST, "%.*s: expected images with a class each",
                       STR_ARG(from->dataset->id));
    }
    shuffle(&samples);
    m->samples = &samples;
    m->stem = str_sub(group->glob, 0, group->glob.len - end.len);
    m->n_parts = (size_t)group->n_files < samples.n ? (size_t)group->n_files : samples.n;
    const struct ordered jobs = {.ctx = m,
                                 .n_jobs = m->n_parts,
                                 .n_threads = from->n_threads,
                                 .slot_bytes = sizeof(struct record_room),
                                 .slot_release = release_room,
                                 .work = write_part};
    return ordered_run(&jobs, err);
}

static int make(const struct cmd_ctx *ctx UNUSED, struct cmd_call *call, struct err *err)
{
    const struct records_args *args = call->args;
    struct tree_source tree = {.folder = args->tree};
    struct dataset dataset = {0}, source = {0};
    if (!args->source || !args->tree || !args->list || !args->out) {
        return err_set(err, ERR_USAGE, "--source, --tree, --list and --out are needed");
    }
    if (verb_dataset(call->arena, args->dataset, &dataset, err) < 0 ||
        verb_dataset(call->arena, args->source, &source, err) < 0 ||
        tree_source_list(call->arena, args->list, &tree, err) < 0) {
        return -1;
    }
    if (!str_eq(dataset.made_from.dataset, source.id)) {
        return err_set(err, ERR_USAGE, "%s is not made from %s", dataset.id.ptr, source.id.ptr);
    }
    struct record_group m = {
        .folder = args->out, .source = &tree, .recipe = dataset.made_from.recipe};
    struct samples_opts from = {.dataset = &source,
                                .dataset_path = args->source,
                                .source = &tree,
                                .is_synthetic = args->is_synthetic,
                                .is_brief = true,
                                .n_threads = ordered_cores()};
    for (size_t idx = 0; idx < dataset.n_groups; idx++) {
        if (dataset.groups[idx].role == ROLE_RECORDS &&
            make_group(call->arena, &m, &from, &dataset.groups[idx], err) < 0) {
            return -1;
        }
    }
    return 0;
}

const struct cmd VERB_RECORDS =
    CMD("records", "--dataset FILE --source FILE --tree FOLDER --list FILE --out FOLDER",
        "make TFRecords or RecordIO of an unpacked dataset's images", OPTS, make,
        CMD_ARGS(struct records_args), CMD_OPERANDS(0, 0, "expected no operand"));
