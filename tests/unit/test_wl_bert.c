/* SPDX-License-Identifier: Apache-2.0 */
/* BERT: its size, its names, its gradient as a whole, its inputs, and that it learns. */
#include "wl_gradient.h"

#include "graph/traffic.h"
#include "models/bert.h"
#include "models/tokens.h"
#include "train/train.h"

static const struct bert_size SMALL = {
    .layers = 2, .width = 32, .heads = 4, .inner = 48, .vocabulary = 2100, .positions = 16};

static const struct model SMALL_MODEL = {
    .name = "small", .kind = MODEL_TOKENS, .n_classes = 2100, .ignore_label = TOKEN_UNUSED};

/* Source: research on the reports' models: parameters of BERT-base's pre-training network with 30,522 words, multiply-accumulates
   of a sequence of 128 tokens with 20 predictions: 11.174 G in the encoder's layers, 0.481 G in the head for masked words. */
TEST(base_has_its_size)
{
    struct graph *graph = graph_new(ARENA, DT_F32);
    int64_t in_layers = 0;
    int64_t in_head = 0;
    model_bert_base.build(graph,
                          &(struct model_opts){.batch = 1, .sequence = 128, .predictions = 20});
    PASSES(graph_finish(graph, ERR));
    for (int i = 0; i < graph->n_ops; i++) {
        const struct op *op = &graph->ops[i];
        const char *name = op->kind == OP_LINEAR ? graph->values[op->in[2]].name : "";
        bool is_head = strncmp(name, "cls.predictions", 15) == 0;
        bool is_layer = op->kind == OP_ATTENTION || strncmp(name, "bert.encoder", 12) == 0;
        in_head += is_head ? op->macs : 0;
        in_layers += is_layer ? op->macs : 0;
    }
    assert_int_equal(graph_n_trainable(graph), 110106428);
    assert_int_equal(graph_n_running(graph), 0);
    assert_int_equal((graph_macs(graph) + 500000) / 1000000, 11655);
    assert_int_equal((in_layers + 500000) / 1000000, 11174);
    assert_int_equal((in_head + 500000) / 1000000, 481);
}

TEST(names_are_hugging_faces)
{
    static const char *const names[] = {
        "bert.embeddings.word_embeddings.weight",
        "bert.embeddings.position_embeddings.weight",
        "bert.embeddings.token_type_embeddings.weight",
        "bert.embeddings.LayerNorm.bias",
        "bert.encoder.layer.11.attention.self.query.weight",
        "bert.encoder.layer.0.attention.self.key.bias",
        "bert.encoder.layer.3.attention.output.dense.weight",
        "bert.encoder.layer.3.attention.output.LayerNorm.weight",
        "bert.encoder.layer.7.intermediate.dense.bias",
        "bert.encoder.layer.7.output.LayerNorm.bias",
        "bert.pooler.dense.weight",
        "cls.predictions.bias",
        "cls.predictions.transform.dense.bias",
        "cls.predictions.transform.LayerNorm.weight",
        "cls.seq_relationship.weight",
    };
    struct graph *graph = graph_new(ARENA, DT_F32);
    model_bert_base.build(graph,
                          &(struct model_opts){.batch = 2, .sequence = 16, .predictions = 3});
    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        if (graph_find(graph, names[i]) == NO_VALUE) {
            fail_msg("there is no %s", names[i]);
        }
    }
    assert_int_equal(graph_find(graph, "cls.predictions.decoder.weight"), NO_VALUE); /* tied */
    assert_int_equal(graph_find(graph, "logits"), NO_VALUE); /* not asked for, not kept */
}

static void make_small(struct fixture *f, enum dtype dtype, int n_threads,
                       const struct model_opts *opts)
{
    fixture_init(f, dtype, CPU_PLAIN, n_threads);
    bert_build(f->graph, &SMALL, opts);
    fixture_ready(f, 5);
    synthetic_batch(&f->net, &SMALL_MODEL, 3, 0);
    set_step(&f->net, 4);
}

TEST(whole_gradient)
{
    for (int has_dropout = 0; has_dropout < 2; has_dropout++) {
        struct fixture f;
        make_small(&f, DT_F64, 2,
                   &(struct model_opts){.batch = 3,
                                        .sequence = 13,
                                        .predictions = 4,
                                        .label_smoothing = 0.05,
                                        .has_dropout = has_dropout == 1});
        /* Not at a fresh network, which has biases of 0 and attends to all tokens alike. */
        for (int i = 0; i < f.graph->n_params; i++) {
            fill_spread(&f, f.graph->params[i], 50 + (uint64_t)i);
        }
        assert_true(best_directional_error(&f, 1000, 1.0) < 1e-5);
        assert_true(best_directional_error(&f, 2000, 1.0) < 1e-5);
        assert_true(best_directional_error(&f, 1000, 1.001) > 1e-4); /* the test can fail */
        fixture_release(&f);
    }
}

static void learn(enum dtype dtype, int n_threads, double ret_losses[2])
{
    struct fixture f;
    make_small(
        &f, dtype, n_threads,
        &(struct model_opts){.batch = 4, .sequence = 16, .predictions = 4, .has_dropout = true});
    ret_losses[0] = loss_now(&f);
    for (int step = 0; step < 8; step++) {
        net_update(&f.net, 0.02);
        set_step(&f.net, 5 + step);
        ret_losses[1] = loss_now(&f);
    }
    fixture_release(&f);
}

/* A fresh network knows nothing: ln 2100 for the word and ln 2 for the sentence. Losses do not depend on the number of threads. */
TEST(loss_falls_on_a_fixed_batch)
{
    double two[2];
    double one[2];
    learn(DT_F32, 2, two);
    learn(DT_F32, 1, one);
    assert_true(fabs(two[0] - log(2100.0) - log(2.0)) < 0.2);
    assert_true(two[1] < two[0] - 0.5);
    assert_true(two[0] == one[0]);
    assert_true(two[1] == one[1]);
}

/* ---- dropout, addition and layer norm in one ---- */

static bool wants_all(void *self UNUSED, const struct graph *graph UNUSED,
                      enum fuse_pattern pattern UNUSED, int op UNUSED)
{
    return true;
}

static const struct fuse_policy ALL = {.wants = wants_all};

/* The largest relative difference of a gradient. */
static double off_by(const struct fixture *f, const struct fixture *from)
{
    double worst = 0.0;
    for (int i = 0; i < f->graph->n_params; i++) {
        int param = f->graph->params[i];
        CLEANUP(free) double *got = read_doubles(f, f->graph->values[param].grad);
        CLEANUP(free) double *want = read_doubles(from, from->graph->values[param].grad);
        double off = rel_error(got, want, count_of(f, param));
        worst = off <= worst ? worst : off; /* NaN is the worst */
    }
    return worst;
}

static void make_either(struct fixture *f, const struct fuse_policy *policy)
{
    struct fuse_report report;
    fixture_init(f, DT_F64, CPU_PLAIN, 2);
    bert_build(
        f->graph, &SMALL,
        &(struct model_opts){.batch = 3, .sequence = 13, .predictions = 4, .has_dropout = true});
    PASSES(graph_finish(f->graph, ERR));
    PASSES(graph_fuse(f->graph, policy, &report, ERR));
    assert_int_equal(report.n_sites[FUSE_DROP_ADD_NORM], 2 * SMALL.layers);
    PASSES(net_plan(&f->net, &f->arena, f->graph, &f->backend, ERR));
    PASSES(net_alloc(&f->net, ERR));
    for (int i = 0; i < f->graph->n_params; i++) {
        fill_spread(f, f->graph->params[i], 50 + (uint64_t)i);
    }
    synthetic_batch(&f->net, &SMALL_MODEL, 3, 0);
    set_step(&f->net, 4);
}

TEST(one_call_for_dropout_addition_and_layer_norm_gives_the_same)
{
    const struct fuse_policy none = fuse_none();
    struct fixture plain;
    struct fixture fused;
    int n_faults = 0;
    make_either(&plain, &none);
    make_either(&fused, &ALL);
    double loss = loss_now(&plain);
    assert_true(fabs(loss_now(&fused) - loss) <= 1e-12 * loss);
    assert_true(off_by(&fused, &plain) <= 1e-12);
    for (int i = 0; i < fused.graph->n_calls; i++) {
        struct kernel_args *args = &fused.net.calls[i].args;
        assert_true(args->id != K_ADD_FWD && args->id != K_ADD_BWD);
        if (args->id == K_DROP_ADD_NORM_FWD || args->id == K_DROP_ADD_NORM_BWD) {
            args->geom.drop_add_norm.dropout.stream++; /* other elements are dropped */
            (void)loss_now(&fused);
            assert_true(off_by(&fused, &plain) > 1e-7);
            args->geom.drop_add_norm.dropout.stream--;
            n_faults++;
        }
    }
    assert_int_equal(n_faults, 4 * SMALL.layers);
    fixture_release(&fused);
    fixture_release(&plain);
}

static int64_t bytes_of(void *self UNUSED, const struct tensor_desc *desc)
{
    return shape_count(&desc->shape) * dtype_bytes(desc->dtype);
}

/* Of each of the 24: three calls forward and four backward become one each, and of the 7 and 9 times that one of their tensors is
   moved, 4 and 4 are left. */
TEST(a_fused_step_has_fewer_kernels_and_moves_less)
{
    const struct fuse_policy policies[2] = {fuse_none(), ALL};
    const int64_t tensor_bytes = INT64_C(96) * 128 * 768 * 2;
    int n_calls[2];
    int64_t bytes[2] = {0, 0};
    for (int i = 0; i < 2; i++) {
        struct graph *graph = graph_new_typed(
            ARENA, &(struct graph_types){.dtype = DT_F16, .norm = DT_F32, .stat = DT_F32});
        model_bert_base.build(
            graph, &(struct model_opts){
                       .batch = 96, .sequence = 128, .predictions = 20, .has_dropout = true});
        PASSES(graph_finish(graph, ERR));
        PASSES(graph_fuse(graph, &policies[i], NULL, ERR));
        n_calls[i] = graph->n_calls;
        for (int k = 0; k < graph->n_calls; k++) {
            bytes[i] += traffic_of_call(graph, &graph->calls[k], bytes_of, NULL).floor_bytes;
        }
    }
    print_message("# %d calls that move %.2f GB become %d that move %.2f GB\n", n_calls[0],
                  1e-9 * (double)bytes[0], n_calls[1], 1e-9 * (double)bytes[1]);
    assert_int_equal(n_calls[0] - n_calls[1], 24 * (7 - 2));
    assert_int_equal(bytes[0] - bytes[1], 24 * (7 + 9 - 4 - 4) * tensor_bytes);
}

TEST(dropout_goes_by_the_step)
{
    struct fixture f;
    make_small(
        &f, DT_F64, 2,
        &(struct model_opts){.batch = 2, .sequence = 9, .predictions = 3, .has_dropout = true});
    double first = loss_now(&f);
    set_step(&f.net, 5);
    double second = loss_now(&f);
    set_step(&f.net, 4);
    assert_true(first != second);
    assert_true(loss_now(&f) == first);
    fixture_release(&f);
}

/* ---- synthetic data ---- */

struct counts {
    int64_t predicted, padded, next;
};

static struct counts count_batch(const struct fixture *f, const struct token_form *form, int64_t n)
{
    struct counts counts = {0};
    int64_t *parts[TOKEN_PARTS];
    for (enum token_part part = TOKENS_IDS; part < TOKEN_PARTS; part++) {
        int64_t each = token_part_count(form, part);
        parts[part] = xcalloc((size_t)(n * each), sizeof(int64_t));
        net_read(&f->net, graph_find(f->graph, token_part_name(part)), parts[part]);
        PASSES(tokens_within(form, part, parts[part], n * each, ERR));
    }
    for (int64_t i = 0; i < n * form->sequence; i++) {
        bool is_padding = parts[TOKENS_MASK][i] == 0;
        counts.padded += is_padding;
        assert_true(!is_padding || (parts[TOKENS_IDS][i] == 0 && parts[TOKENS_SEGMENTS][i] == 0));
        assert_true(i % form->sequence != 0 || parts[TOKENS_IDS][i] == 101); /* [CLS] */
    }
    for (int64_t i = 0; i < n * form->predictions; i++) {
        int64_t at = i / form->predictions * form->sequence + parts[TOKENS_POSITIONS][i];
        bool is_used = parts[TOKENS_MASKED][i] != TOKEN_UNUSED;
        int64_t seen = parts[TOKENS_IDS][at];
        counts.predicted += is_used;
        assert_true(!is_used || seen == 103 || seen == parts[TOKENS_MASKED][i]); /* [MASK] */
        assert_true(!is_used || parts[TOKENS_MASK][at] == 1);
    }
    for (int64_t i = 0; i < n; i++) {
        counts.next += parts[TOKENS_NEXT][i];
    }
    for (enum token_part part = TOKENS_IDS; part < TOKEN_PARTS; part++) {
        free(parts[part]);
    }
    return counts;
}

TEST(synthetic_sequences_are_what_bert_reads)
{
    const struct token_form form = {.sequence = 128, .predictions = 20, .vocabulary = 30522};
    FIXTURE(f, DT_F32, CPU_PLAIN, 1);
    model_bert_tiny.build(f.graph,
                          &(struct model_opts){.batch = 40, .sequence = 128, .predictions = 20});
    fixture_ready(&f, 1);
    synthetic_batch(&f.net, &model_bert_tiny, 1, 0);
    struct counts counts = count_batch(&f, &form, 40);
    /* A quarter of the places is padding, a seventh of the words is predicted, half of the sentences follow. */
    assert_true(counts.padded > 40 * 128 / 6 && counts.padded < 40 * 128 / 3);
    assert_true(counts.predicted > 40 * 8 && counts.predicted < 40 * 18);
    assert_true(counts.next > 8 && counts.next < 32);
}

TEST(tokens_out_of_range_are_named)
{
    const struct token_form form = {.sequence = 8, .predictions = 3, .vocabulary = 100};
    static const struct {
        enum token_part part;
        int64_t limit;
    } cases[] = {{TOKENS_IDS, 100},     {TOKENS_SEGMENTS, 2}, {TOKENS_MASK, 2},
                 {TOKENS_POSITIONS, 8}, {TOKENS_MASKED, 100}, {TOKENS_NEXT, 2}};
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        int64_t values[] = {0, cases[i].limit - 1, 1};
        PASSES(tokens_within(&form, cases[i].part, values, 3, ERR));
        values[2] = cases[i].limit;
        FAILS(tokens_within(&form, cases[i].part, values, 3, ERR), ERR_INTEGRITY);
        SAYS(token_part_name(cases[i].part));
        SAYS("element 2");
        values[1] = -1;
        FAILS_WITH(tokens_within(&form, cases[i].part, values, 3, ERR), ERR_ANY, "element 1 is -1");
    }
}
