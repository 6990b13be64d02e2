/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"

#include "train/checkpoint.h"

#include "base/fs.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#define NAME_MAX_BYTES (GRAPH_NAME_MAX + 32)

/* ---- the tensors ---- */

enum part { PART_VALUE, PART_MOMENT1, PART_MOMENT2, PART_COUNT };

static const char *const PREFIXES[PART_COUNT] = {"", "optimizer.moment1.", "optimizer.moment2."};

static enum net_opt_part opt_part(enum part part)
{
    return part == PART_MOMENT1 ? NET_MOMENT1 : NET_MOMENT2;
}

static enum dtype kept_type(const struct net *net, int id)
{
    const struct value *value = &net->graph->values[id];
    bool has_master = value->kind == VALUE_PARAM && net_has_opt(net, id, NET_MASTER);
    return has_master ? DT_F32 : value->dtype;
}

/* Which tensors are kept: a parameter, a statistic, a moment. False for any other value. */
static bool is_kept(const struct net *net, int id, enum part part)
{
    const struct value *value = &net->graph->values[id];
    if (part == PART_VALUE) {
        return value->kind == VALUE_PARAM || value->kind == VALUE_STATE;
    }
    bool has_second = opt_has_moment2(net->update.rule.method);
    return value->kind == VALUE_PARAM && (part == PART_MOMENT1 || has_second);
}

static void name_of(const struct net *net, int id, enum part part, char ret_name[NAME_MAX_BYTES])
{
    snprintf(ret_name, NAME_MAX_BYTES, "%s%s", PREFIXES[part], net->graph->values[id].name);
}

static int64_t bytes_of(const struct net *net, int id)
{
    return shape_count(&net->graph->values[id].shape) * dtype_bytes(kept_type(net, id));
}

/* ---- writing ---- */

/* A tensor of the file that is being written. */
struct item {
    int id;
    enum part part;
};

struct source {
    const struct net *net;
    const struct item *items;
    void *buffer; /* of the largest */
};

static const void *fetch(void *ctx, int tensor)
{
    const struct source *source = ctx;
    const struct item *item = &source->items[tensor];
    if (item->part != PART_VALUE) {
        net_read_opt(source->net, item->id, opt_part(item->part), source->buffer);
    } else if (source->net->graph->values[item->id].kind == VALUE_PARAM &&
               net_has_opt(source->net, item->id, NET_MASTER)) {
        net_read_opt(source->net, item->id, NET_MASTER, source->buffer);
    } else {
        net_read(source->net, item->id, source->buffer);
    }
    return source->buffer;
}

static int list_tensors(const struct net *net, struct arena *arena, struct item *items,
                        struct st_tensor *tensors, int64_t *ret_largest)
{
    int n = 0;
    *ret_largest = 0;
    for (enum part part = PART_VALUE; part < PART_COUNT; part++) {
        for (int id = 0; id < net->graph->n_values; id++) {
            if (!is_kept(net, id, part)) {
                continue;
            }
            char name[NAME_MAX_BYTES];
            name_of(net, id, part, name);
            items[n] = (struct item){id, part};
            tensors[n++] = (struct st_tensor){.name = arena_printf(arena, "%s", name),
                                              .dtype = kept_type(net, id),
                                              .shape = net->graph->values[id].shape,
                                              .bytes = bytes_of(net, id)};
            *ret_largest = bytes_of(net, id) > *ret_largest ? bytes_of(net, id) : *ret_largest;
        }
    }
    return n;
}

/* In the order of the file. */
enum fact {
    FACT_FORMAT,
    FACT_VERSION,
    FACT_PROGRAM,
    FACT_MODEL,
    FACT_DTYPE,
    FACT_OPTIMIZER,
    FACT_STEP,
    FACT_UPDATES,
    FACT_SKIPPED,
    FACT_GOOD,
    FACT_LOSS_SCALING,
    FACT_LOSS_SCALE,
    FACT_DATA,
    FACT_DATA_SEED,
    FACT_SEED,
    FACT_SAMPLES,
    FACT_COUNT
};

static const char *const KEYS[FACT_COUNT] = {
    [FACT_FORMAT] = "format",
    [FACT_VERSION] = "version",
    [FACT_PROGRAM] = "program",
    [FACT_MODEL] = "model",
    [FACT_DTYPE] = "dtype",
    [FACT_OPTIMIZER] = "optimizer",
    [FACT_STEP] = "step",
    [FACT_UPDATES] = "updates",
    [FACT_SKIPPED] = "skipped",
    [FACT_GOOD] = "good_updates",
    [FACT_LOSS_SCALING] = "loss_scaling",
    [FACT_LOSS_SCALE] = "loss_scale",
    [FACT_DATA] = "data",
    [FACT_DATA_SEED] = "data_seed",
    [FACT_SEED] = "seed",
    [FACT_SAMPLES] = "samples_per_step",
};

static const char *number(struct arena *arena, int64_t value)
{
    return arena_printf(arena, "%" PRId64, value);
}

static const char *kept_dtype_name(const struct train_opts *opts)
{
    return dtype_name(opts->dtype == DT_F64 ? DT_F64 : DT_F32);
}

int checkpoint_write(const struct train_opts *opts, const struct net *net, const char *data,
                     int64_t step, struct checkpoint_saved *ret_saved, struct err *err)
{
    CLEANUP(arena) struct arena arena = ARENA_EMPTY;
    size_t n_max = (size_t)net->graph->n_values * PART_COUNT;
    struct item *items = arena_array(&arena, struct item, n_max);
    struct st_tensor *tensors = arena_array(&arena, struct st_tensor, n_max);
    struct opt_state state;
    int64_t largest = 0;
    int n = list_tensors(net, &arena, items, tensors, &largest);
    net_read_opt_state(net, &state);
    const char *const values[FACT_COUNT] = {
        [FACT_FORMAT] = CHECKPOINT_FORMAT,
        [FACT_VERSION] = number(&arena, CHECKPOINT_VERSION),
        [FACT_PROGRAM] = REPERF_VERSION,
        [FACT_MODEL] = opts->model->name,
        [FACT_DTYPE] = kept_dtype_name(opts),
        [FACT_OPTIMIZER] = opt_method_name(opts->rule.method),
        [FACT_STEP] = number(&arena, step),
        [FACT_UPDATES] = number(&arena, state.n_updates),
        [FACT_SKIPPED] = number(&arena, state.n_skipped),
        [FACT_GOOD] = number(&arena, state.n_good),
        [FACT_LOSS_SCALING] = opt_scaling_name(opts->rule.scaling),
        [FACT_LOSS_SCALE] = arena_printf(&arena, "%.9g", (double)state.loss_scale),
        [FACT_DATA] = data,
        [FACT_DATA_SEED] = number(&arena, opts->data_seed),
        [FACT_SEED] = number(&arena, opts->seed),
        [FACT_SAMPLES] = number(&arena, samples_per_step(opts)),
    };
    struct st_meta meta[FACT_COUNT];
    for (int i = 0; i < FACT_COUNT; i++) {
        meta[i] = (struct st_meta){KEYS[i], values[i]};
    }
    CLEANUP(free) void *buffer = xcalloc((size_t)largest + 1, 1);
    struct source source = {net, items, buffer};
    const struct st_content content = {.meta = meta,
                                       .n_meta = FACT_COUNT,
                                       .tensors = tensors,
                                       .n_tensors = n,
                                       .fetch = fetch,
                                       .ctx = &source};
    for (int i = 0; i < n; i++) {
        ret_saved->n_bytes += tensors[i].bytes;
    }
    return st_write_sealed(opts->save_path, &content, ret_saved->sha256, err);
}

/* ---- reading ---- */

static int need_fact(const struct st_file *file, enum fact fact, const char **ret_value,
                     struct err *err)
{
    *ret_value = st_find_meta(file, KEYS[fact]);
    return *ret_value ? 0 : err_set(err, ERR_PARSE, "not a checkpoint: it has no %s", KEYS[fact]);
}

/* The file's text must be this run's. */
static int same(const struct st_file *file, enum fact fact, const char *wanted, struct err *err)
{
    const char *found = NULL;
    if (need_fact(file, fact, &found, err) < 0) {
        return -1;
    }
    return strcmp(found, wanted) == 0 ? 0
                                      : err_set(err, ERR_PARSE, "%s is %.80s, this run's is %.80s",
                                                KEYS[fact], found, wanted);
}

static int same_number(const struct st_file *file, enum fact fact, int64_t wanted, struct err *err)
{
    CLEANUP(arena) struct arena arena = ARENA_EMPTY;
    return same(file, fact, number(&arena, wanted), err);
}

static int count_of(const struct st_file *file, enum fact fact, int64_t *ret_count, struct err *err)
{
    const char *text = NULL;
    if (need_fact(file, fact, &text, err) < 0) {
        return -1;
    }
    if (str_to_i64(str_of(text), 0, INT64_C(1) << 53, ret_count, err) < 0) {
        err->code = ERR_PARSE;
        return err_wrap(err, "%s", KEYS[fact]);
    }
    return 0;
}

static int loss_scale_of(const struct st_file *file, float *ret_scale, struct err *err)
{
    const char *text = NULL;
    double value = 0.0;
    if (need_fact(file, FACT_LOSS_SCALE, &text, err) < 0) {
        return -1;
    }
    if (str_to_f64(str_of(text), &value, err) < 0 || value < (double)OPT_SCALE_MIN ||
        value > (double)OPT_SCALE_MAX) {
        *err = (struct err){0};
        return err_set(err, ERR_PARSE, "loss_scale %.40s: expected %g to %g", text,
                       (double)OPT_SCALE_MIN, (double)OPT_SCALE_MAX);
    }
    *ret_scale = (float)value;
    return 0;
}

static int check_facts(const struct st_file *file, const struct train_opts *opts, struct err *err)
{
    const char *format = st_find_meta(file, KEYS[FACT_FORMAT]);
    if (!format || strcmp(format, CHECKPOINT_FORMAT) != 0) {
        return err_set(err, ERR_PARSE, "not a checkpoint of this program");
    }
    if (same_number(file, FACT_VERSION, CHECKPOINT_VERSION, err) < 0 ||
        same(file, FACT_MODEL, opts->model->name, err) < 0 ||
        same(file, FACT_DTYPE, kept_dtype_name(opts), err) < 0 ||
        same(file, FACT_OPTIMIZER, opt_method_name(opts->rule.method), err) < 0 ||
        same_number(file, FACT_SEED, opts->seed, err) < 0 ||
        same_number(file, FACT_SAMPLES, samples_per_step(opts), err) < 0) {
        return -1;
    }
    return 0;
}

static int check_tensor(const struct net *net, int id, enum part part, const struct st_file *file,
                        struct err *err)
{
    char name[NAME_MAX_BYTES];
    name_of(net, id, part, name);
    const struct st_tensor *tensor = st_find(file, name);
    const struct shape *wanted = &net->graph->values[id].shape;
    if (!tensor) {
        return err_set(err, ERR_PARSE, "tensor %s is missing", name);
    }
    if (tensor->dtype != kept_type(net, id) || !shape_eq(&tensor->shape, wanted)) {
        char found[SHAPE_TEXT_MAX];
        char expected[SHAPE_TEXT_MAX];
        shape_text(&tensor->shape, found);
        shape_text(wanted, expected);
        return err_set(err, ERR_PARSE, "tensor %s: %s %s, expected %s %s", name,
                       st_dtype_text(tensor->dtype), found, st_dtype_text(kept_type(net, id)),
                       expected);
    }
    return 0;
}

/* Each that is needed is there, and their number is right, so there is no other. */
static int check_tensors(const struct net *net, const struct st_file *file, struct err *err)
{
    int n = 0;
    for (enum part part = PART_VALUE; part < PART_COUNT; part++) {
        for (int id = 0; id < net->graph->n_values; id++) {
            if (is_kept(net, id, part)) {
                n++;
                if (check_tensor(net, id, part, file, err) < 0) {
                    return -1;
                }
            }
        }
    }
    return n == file->n_tensors
               ? 0
               : err_set(err, ERR_PARSE, "%d tensors, this run has %d", file->n_tensors, n);
}

static int read_counts(struct checkpoint *checkpoint, struct err *err)
{
    const struct st_file *file = &checkpoint->file;
    struct opt_state *state = &checkpoint->state;
    const char *scaling = NULL;
    if (need_fact(file, FACT_LOSS_SCALING, &scaling, err) < 0 ||
        count_of(file, FACT_STEP, &checkpoint->step, err) < 0 ||
        count_of(file, FACT_UPDATES, &state->n_updates, err) < 0 ||
        count_of(file, FACT_SKIPPED, &state->n_skipped, err) < 0 ||
        count_of(file, FACT_GOOD, &state->n_good, err) < 0 ||
        loss_scale_of(file, &state->loss_scale, err) < 0) {
        return -1;
    }
    if (state->n_updates + state->n_skipped != checkpoint->step ||
        state->n_good > state->n_updates) {
        return err_set(err, ERR_PARSE, "its step, updates and skipped contradict each other");
    }
    return 0;
}

static int understand(struct arena *arena, const struct train_opts *opts, const struct net *net,
                      struct str content, struct checkpoint *checkpoint, struct err *err)
{
    if (st_check_seal(content, checkpoint->sha256, err) < 0 ||
        st_parse(arena, content, &checkpoint->file, err) < 0 ||
        check_facts(&checkpoint->file, opts, err) < 0 || read_counts(checkpoint, err) < 0) {
        return -1;
    }
    return check_tensors(net, &checkpoint->file, err);
}

int checkpoint_read(struct arena *arena, const struct train_opts *opts, const struct net *net,
                    const char *path, struct checkpoint *ret_checkpoint, struct err *err)
{
    struct str content;
    struct checkpoint checkpoint = {0};
    if (fs_read(arena, path, (size_t)ST_FILE_BYTES_MAX, &content, err) < 0) {
        return err_wrap(err, "--load");
    }
    if (understand(arena, opts, net, content, &checkpoint, err) < 0) {
        return err_wrap(err, "--load %s", path);
    }
    *ret_checkpoint = checkpoint;
    return 0;
}

int checkpoint_check_data(const struct checkpoint *checkpoint, const struct train_opts *opts,
                          const char *data, struct err *err)
{
    if (same(&checkpoint->file, FACT_DATA, data, err) < 0 ||
        same_number(&checkpoint->file, FACT_DATA_SEED, opts->data_seed, err) < 0) {
        return err_wrap(err, "--load %s", opts->load_path);
    }
    return 0;
}

static void fill_one(const struct checkpoint *checkpoint, struct net *net, int id, enum part part)
{
    char name[NAME_MAX_BYTES];
    name_of(net, id, part, name);
    const struct st_tensor *tensor = st_find(&checkpoint->file, name);
    /* In the file it is unaligned; a device needs its elements aligned. */
    CLEANUP(free) void *data = xcalloc((size_t)tensor->bytes + 1, 1);
    memcpy(data, tensor->data, (size_t)tensor->bytes);
    if (part == PART_VALUE) {
        net_write(net, id, data);
    } else {
        net_write_opt(net, id, opt_part(part), data);
    }
}

void checkpoint_fill(const struct checkpoint *checkpoint, struct net *net)
{
    for (enum part part = PART_VALUE; part < PART_COUNT; part++) {
        for (int id = 0; id < net->graph->n_values; id++) {
            if (is_kept(net, id, part)) {
                fill_one(checkpoint, net, id, part);
            }
        }
    }
    /* A scale belongs to its kind of training: a run with another scaling starts with its own. */
    struct opt_state state = checkpoint->state;
    const char *scaling = opt_scaling_name(net->update.rule.scaling);
    if (strcmp(st_find_meta(&checkpoint->file, KEYS[FACT_LOSS_SCALING]), scaling) != 0) {
        state.loss_scale = opt_state_start(&net->update.rule).loss_scale;
        state.n_good = 0;
    }
    net_write_opt_state(net, &state);
}

int checkpoint_try_path(const char *path, struct err *err)
{
    CLEANUP(arena) struct arena arena = ARENA_EMPTY;
    if (fs_check_target(path, err) < 0) {
        return err_wrap(err, "--save");
    }
    char *temporary = arena_printf(&arena, "%s.tmp.%ld", path, (long)getpid());
    CLEANUP(fd) int fd = open(temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
    if (fd < 0) {
        return err_set(err, err_code_of_errno(errno), "--save %s: %s", path, err_errno_text(errno));
    }
    unlink(temporary);
    return 0;
}
