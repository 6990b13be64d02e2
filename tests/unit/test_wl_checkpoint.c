/* SPDX-License-Identifier: Apache-2.0 */
/* Checkpoints: a run that stops and resumes prints exactly the losses of an uninterrupted one, and leaves exactly the same file; a
   file that is damaged, truncated or of another run is refused before anything is trained. */
#include "wl_fixture.h"

#include "base/strbuf.h"
#include "scratch.h"
#include "train/checkpoint.h"
#include "wl_run.h"

#include <sys/stat.h>
#include <unistd.h>

/* Losses and rates of all steps, one behind the other. */
static const char *losses_of(struct arena *arena, const char *text)
{
    CLEANUP(strbuf) struct strbuf all = STRBUF(65536);
    for (const char *at = text; (at = strstr(at, "\"event\":\"step\"")) != NULL; at++) {
        const char *loss = strstr(at, "\"loss\":");
        const char *lr = strstr(at, "\"lr\":");
        strbuf_printf(&all, "%.*s %.*s\n", (int)strcspn(loss, ","), loss, (int)strcspn(lr, ",}"),
                      lr);
    }
    return arena_printf(arena, "%.*s", (int)all.len, all.ptr);
}

#define TINY                                                                                       \
    "--model bert_nano --backend plain --sequence 8 --batch 2 --data synthetic-fresh --lr 1e-3 "   \
    "--threads 2"

/* A run of n steps in one go, and in two parts: the same losses, and the same file, which is returned. */
static struct str goes_on(const char *options, int n)
{
    const char *whole = scratch_path("whole");
    const char *half = scratch_path("half");
    const char *rest = scratch_path("rest");
    const char *all = must_run(arena_printf(ARENA, "%s --steps %d --save %s", options, n, whole));
    const char *first =
        must_run(arena_printf(ARENA, "%s --steps %d --save %s", options, n - 1, half));
    const char *second =
        must_run(arena_printf(ARENA, "%s --steps 1 --load %s --save %s", options, half, rest));
    holds(second, arena_printf(ARENA, "\"first_step\":%d,\"loaded_sha256\":\"", n));
    holds(second, arena_printf(ARENA, "\"event\":\"checkpoint\",\"rank\":0,\"done_steps\":%d,", n));
    assert_string_equal(losses_of(ARENA, all), arena_printf(ARENA, "%s%s", losses_of(ARENA, first),
                                                            losses_of(ARENA, second)));
    struct str a = scratch_read(whole);
    struct str b = scratch_read(rest);
    struct str c = scratch_read(half);
    assert_true(str_eq(a, b));
    assert_true(c.len == a.len && !str_eq(a, c)); /* the test can fail */
    return a;
}

TEST(goes_on_bit_by_bit)
{
    static const char *const KINDS[] = {
        TINY " --optimizer sgd --schedule constant",
        TINY " --optimizer adamw --warmup-lr-steps 2 --schedule-steps 20",
        TINY " --schedule poly --schedule-covers-warmup --schedule-steps 20 --accumulate 2",
    };
    for (EACH(row, KINDS)) {
        (void)goes_on(*row, 3);
    }
}

/* Running statistics; the language model has dropout, which goes by the step's number. */
TEST(an_image_model_goes_on_too)
{
    struct str a = goes_on("--model hrnet_w18 --backend plain --image 32 --batch 2 --lr 1e-3 "
                           "--schedule constant --threads 2",
                           2);
    /* Any program can read it: parameters and statistics have their own names. */
    struct st_file file;
    PASSES(st_parse(ARENA, a, &file, ERR));
    const struct st_tensor *weight = st_find(&file, "head.cls.weight");
    assert_non_null(weight);
    assert_int_equal(weight->dtype, DT_F32);
    assert_string_equal(st_find_meta(&file, "model"), "hrnet_w18");
    assert_string_equal(st_find_meta(&file, "step"), "2");
    int n_moments = 0;
    int n_means = 0;
    for (int i = 0; i < file.n_tensors; i++) {
        n_moments += strncmp(file.tensors[i].name, "optimizer.moment1.", 18) == 0;
        n_means += strstr(file.tensors[i].name, "._mean") != NULL;
    }
    assert_true(n_moments > 100 && n_means > 50);
}

/* ---- what is refused, on a network of a few numbers ---- */

struct few {
    struct fixture f;
    struct train_opts opts;
};

static void few_init(struct few *few, enum opt_method method, int64_t width)
{
    struct opt_rule rule = sgd_rule();
    rule.method = method;
    fixture_init(&few->f, DT_F32, CPU_PLAIN, 1);
    int x = graph_input(few->f.graph, "input", SHAPE(2, 3), DT_F32);
    int labels = graph_input(few->f.graph, "labels", SHAPE(2), DT_I64);
    x = graph_linear(few->f.graph, x, "fc", width);
    (void)graph_loss(few->f.graph, x, labels,
                     &(struct loss_opts){.ignore_label = LOSS_IGNORE_NONE});
    PASSES(graph_finish(few->f.graph, ERR));
    PASSES(net_plan(&few->f.net, &few->f.arena, few->f.graph, &few->f.backend, ERR));
    PASSES(net_plan_optimizer(&few->f.net, &few->f.arena, &rule, NET_DECAY_ALL, ERR));
    PASSES(net_alloc(&few->f.net, ERR));
    net_init_values(&few->f.net, 1);
    few->opts = (struct train_opts){.model = &model_resnet50,
                                    .dtype = DT_F32,
                                    .batch = 2,
                                    .rule = rule,
                                    .ranks = {.n_ranks = 1},
                                    .load_path = "FILE"};
}

static void few_save(struct few *few, const char *path)
{
    struct checkpoint_saved saved = {0};
    struct opt_state state = opt_state_start(&few->opts.rule);
    state.n_updates = 1;
    state.n_good = 1;
    net_write_opt_state(&few->f.net, &state);
    few->opts.save_path = path;
    PASSES(checkpoint_write(&few->opts, &few->f.net, "synthetic", 1, &saved, ERR));
}

static void few_refuses(struct few *few, const char *path, const char *needle)
{
    struct checkpoint checkpoint;
    FAILS_WITH(checkpoint_read(ARENA, &few->opts, &few->f.net, path, &checkpoint, ERR), ERR_PARSE,
               needle);
}

static void few_takes(struct few *few, const char *path)
{
    struct checkpoint checkpoint;
    PASSES(checkpoint_read(ARENA, &few->opts, &few->f.net, path, &checkpoint, ERR));
    assert_int_equal(checkpoint.step, 1);
    PASSES(checkpoint_check_data(&checkpoint, &few->opts, "synthetic", ERR));
    FAILS(checkpoint_check_data(&checkpoint, &few->opts, "else", ERR), ERR_PARSE);
    SAYS("data is synthetic, this run's is else");
}

TEST(what_is_of_another_run_is_refused)
{
    const char *path = scratch_path("few");
    struct few few;
    struct few other;
    few_init(&few, OPT_ADAMW, 4);
    few_save(&few, path);
    few_takes(&few, path);
    few_init(&other, OPT_SGD, 4);
    few_refuses(&other, path, "optimizer is adamw, this run's is sgd");
    fixture_release(&other.f);
    few_init(&other, OPT_ADAMW, 5);
    few_refuses(&other, path, "tensor fc.weight: F32 [4, 3], expected F32 [5, 3]");
    fixture_release(&other.f);
    few_init(&other, OPT_ADAMW, 4);
    other.opts.model = &model_hrnet_w18;
    few_refuses(&other, path, "model is resnet50, this run's is hrnet_w18");
    other.opts = few.opts;
    other.opts.dtype = DT_F64;
    few_refuses(&other, path, "dtype is f32, this run's is f64");
    other.opts = few.opts;
    other.opts.seed = 4;
    few_refuses(&other, path, "seed is 0, this run's is 4");
    other.opts = few.opts;
    other.opts.rule.n_micro = 2;
    few_refuses(&other, path, "samples_per_step is 2, this run's is 4");
    fixture_release(&other.f);
    fixture_release(&few.f);
}

TEST(a_run_without_its_file_prints_nothing)
{
    refused(arena_printf(ARENA, TINY " --load %s/none", scratch_folder), ERR_NOT_FOUND, "none");
    refused(arena_printf(ARENA, TINY " --load %s", scratch_folder), ERR_IO, scratch_folder);
    refused(arena_printf(ARENA, TINY " --save %s/none/x", scratch_folder), ERR_NOT_FOUND, "--save");
    scratch_write(scratch_path("text"),
                  STR_LIT("this is some other file, and a long one at that, no tensors"));
    refused(arena_printf(ARENA, TINY " --load %s/text", scratch_folder), ERR_PARSE,
            "not a checkpoint");
}

/* Texts and tensors of a whole checkpoint with one thing changed, sealed again. */
struct forged {
    struct st_meta meta[ST_META_MAX];
    struct st_tensor tensors[16];
    struct st_content content;
};

static struct forged *forge(struct arena *arena, const char *path)
{
    struct forged *f = arena_new(arena, struct forged);
    struct st_file file;
    PASSES(st_read(arena, path, &file, ERR));
    assert_int_equal(file.n_tensors, 6); /* two parameters, two moments of each */
    memcpy(f->meta, file.meta + 1, (size_t)(file.n_meta - 1) * sizeof(*f->meta)); /* but the seal */
    memcpy(f->tensors, file.tensors, (size_t)file.n_tensors * sizeof(*f->tensors));
    f->content = (struct st_content){.meta = f->meta,
                                     .n_meta = file.n_meta - 1,
                                     .tensors = f->tensors,
                                     .n_tensors = file.n_tensors};
    return f;
}

static const char *write_forged(struct forged *f)
{
    char hex[SHA256_HEX_LEN + 1];
    const char *path = scratch_path("forged");
    PASSES(st_write_sealed(path, &f->content, hex, ERR));
    return path;
}

static void set_meta(struct forged *f, const char *key, const char *value)
{
    for (int i = 0; i < f->content.n_meta; i++) {
        if (strcmp(f->meta[i].key, key) == 0) {
            f->meta[i].value = value;
            return;
        }
    }
    fail_msg("no text %s", key);
}

TEST(what_is_sealed_but_wrong_is_refused)
{
    const char *path = scratch_path("few");
    const float extra = 1.0F;
    struct few few;
    few_init(&few, OPT_ADAMW, 4);
    few_save(&few, path);
    few_takes(&few, write_forged(forge(ARENA, path))); /* unchanged it is taken */
    static const struct {
        const char *key, *value, *needle;
    } TEXTS[] = {
        {"version", "2", "version is 2, this run's is 1"},
        {"format", "other", "not a checkpoint of this program"},
        {"step", "-1", "step"},
        {"step", "1x", "step"},
        {"step", "2", "contradict each other"},
        {"good_updates", "2", "contradict each other"},
        {"loss_scale", "nan", "loss_scale"},
        {"loss_scale", "1e30", "loss_scale"},
        {"loss_scale", "0", "loss_scale"},
    };
    for (EACH(row, TEXTS)) {
        struct forged *f = forge(ARENA, path);
        set_meta(f, row->key, row->value);
        few_refuses(&few, write_forged(f), row->needle);
    }
    struct forged *f = forge(ARENA, path);
    f->content.n_meta--;
    few_refuses(&few, write_forged(f), "it has no samples_per_step");
    for (int i = 0; i < 6; i++) { /* each tensor in turn */
        f = forge(ARENA, path);
        const char *name = f->tensors[i].name;
        f->tensors[i] = f->tensors[5];
        f->content.n_tensors--;
        few_refuses(&few, write_forged(f), arena_printf(ARENA, "tensor %s is missing", name));
    }
    f = forge(ARENA, path);
    f->tensors[f->content.n_tensors++] = (struct st_tensor){
        .name = "zzz", .dtype = DT_F32, .shape = SHAPE(1), .data = &extra, .bytes = 4};
    few_refuses(&few, write_forged(f), "7 tensors, this run has 6");
    fixture_release(&few.f);
}

/* A factor for every element of a tensor that is read from a file. */
static void scale(struct arena *arena, struct st_tensor *tensor, float factor)
{
    size_t count = (size_t)tensor->bytes / sizeof(float);
    float *values = arena_array(arena, float, count);
    memcpy(values, tensor->data, count * sizeof(float));
    for (size_t i = 0; i < count; i++) {
        values[i] *= factor;
    }
    tensor->data = values;
}

/* A finite loss with gradients that are not: the last layer returns 1e35, and the layer norm of embeddings near 0 multiplies it by
   a million. */
TEST(a_gradient_that_is_not_finite_ends_the_run)
{
    const char *path = scratch_path("huge");
    struct st_file file;
    char hex[SHA256_HEX_LEN + 1];
    (void)must_run(arena_printf(ARENA, TINY " --steps 1 --save %s", path));
    PASSES(st_read(ARENA, path, &file, ERR));
    int n_scaled = 0;
    for (int i = 0; i < file.n_tensors; i++) {
        struct st_tensor *tensor = &file.tensors[i];
        bool is_last = strcmp(tensor->name, "cls.seq_relationship.weight") == 0;
        bool is_embedding = strncmp(tensor->name, "bert.embeddings.", 16) == 0 &&
                            strstr(tensor->name, "_embeddings.weight") != NULL;
        if (is_last || is_embedding) {
            scale(ARENA, tensor, is_last ? 1e37F : 1e-20F);
            n_scaled++;
        }
    }
    assert_int_equal(n_scaled, 4);
    const struct st_content content = {.meta = file.meta + 1,
                                       .n_meta = file.n_meta - 1,
                                       .tensors = file.tensors,
                                       .n_tensors = file.n_tensors};
    PASSES(st_write_sealed(path, &content, hex, ERR));
    const char *text =
        run_of(arena_printf(ARENA, TINY " --steps 2 --load %s --save %s", path, path), NULL);
    assert_int_equal(ERR->code, ERR_WORKLOAD);
    const char *fatal = strstr(text, "{\"event\":\"fatal\",");
    assert_non_null(fatal);
    assert_non_null(strstr(fatal, "\"where\":\"step 1\",\"what\":\"a gradient is not finite\"}"));
    assert_string_equal(strchr(fatal, '\n'), "\n");  /* the last line, */
    assert_null(strstr(text, "\"event\":\"step\"")); /* of a run that has done no step */
    assert_memory_equal(scratch_read(path).ptr + 35, hex, SHA256_HEX_LEN); /* not saved over */
}

/* Every kind of damage, checked by the seal alone: fast enough to cover every part of the file. */
TEST(damage_is_found)
{
    static const double zeros[64];
    const struct st_tensor tensor = {
        .name = "a", .dtype = DT_F64, .shape = SHAPE(64), .data = zeros, .bytes = sizeof(zeros)};
    const struct st_meta meta = {"format", CHECKPOINT_FORMAT};
    const struct st_content content = {
        .meta = &meta, .n_meta = 1, .tensors = &tensor, .n_tensors = 1};
    const char *path = scratch_path("sealed");
    char hex[SHA256_HEX_LEN + 1];
    char again[SHA256_HEX_LEN + 1];
    PASSES(st_write_sealed(path, &content, hex, ERR));
    struct str whole = scratch_read(path);
    PASSES(st_check_seal(whole, again, ERR));
    assert_string_equal(hex, again);
    char *bytes = arena_alloc(ARENA, whole.len + 1, 1);
    for (size_t i = 0; i < whole.len * 8; i++) { /* every bit */
        memcpy(bytes, whole.ptr, whole.len);
        bytes[i / 8] = (char)(bytes[i / 8] ^ (1 << (i % 8)));
        FAILS(st_check_seal((struct str){bytes, whole.len}, again, ERR), ERR_INTEGRITY);
    }
    memcpy(bytes, whole.ptr, whole.len);
    bytes[whole.len] = '\0';
    for (size_t len = 0; len <= whole.len + 1; len++) { /* every length but its own */
        if (len != whole.len) {
            FAILS(st_check_seal((struct str){bytes, len}, again, ERR), ERR_INTEGRITY);
        }
    }
    scratch_write(path, str_sub(whole, 0, whole.len - 1));
    refused(arena_printf(ARENA, TINY " --load %s", path), ERR_INTEGRITY, "damaged or truncated");
}

UNIT_MAIN(scratch_group_start, scratch_group_end)
