/* SPDX-License-Identifier: Apache-2.0 */
/* BERT, pre-training: masked words and next sentence. Parameter names are those of Hugging Face's BertForPreTraining.
   Source: Devlin et al., "BERT: pre-training of deep bidirectional transformers", sections 3 and A.2; google-research/bert at
   eedf5716ce1268e56f0a50264a88cafad334ac61, modeling.py and run_pretraining.py, for what the paper leaves out: the places of the
   layer norms, the decoder tied to the word embeddings, the deviation of 0.02, the layer norms' epsilon, the loss over the used
   predictions alone. */
#include "base/base.h"

#include "models/bert.h"
#include "models/tokens.h"

#define INIT_STD 0.02
#define NORM_EPS 1e-12
#define DROPOUT  0.1
#define SEGMENTS 2

/* The network while it is built. */
struct bert {
    struct graph *graph;
    const struct bert_size *size;
    const struct model_opts *opts;
    int in[TOKEN_PARTS];
    int step; /* NO_VALUE without dropout */
};

static const char *sub(const struct bert *b, const char *owner, const char *part)
{
    return arena_printf(b->graph->arena, "%s.%s", owner, part);
}

static int linear(const struct bert *b, int x, const char *name, int64_t out_features)
{
    return graph_linear_with(
        b->graph, x,
        &(struct linear_opts){.name = name, .out_features = out_features, .init_std = INIT_STD});
}

/* Logits of a loss. */
static int classes(const struct bert *b, int x, const char *name, int64_t n_classes)
{
    return graph_linear_with(
        b->graph, x,
        &(struct linear_opts){
            .name = name, .out_features = n_classes, .init_std = INIT_STD, .is_rounded = true});
}

static int dropout(const struct bert *b, int x)
{
    return b->step == NO_VALUE ? x : graph_dropout(b->graph, x, b->step, DROPOUT);
}

static void make_inputs(struct bert *b)
{
    const struct token_form form = {b->opts->sequence, b->opts->predictions, b->size->vocabulary};
    for (enum token_part part = TOKENS_IDS; part < TOKEN_PARTS; part++) {
        struct shape shape = SHAPE(b->opts->batch, token_part_count(&form, part));
        shape.n_dims = part == TOKENS_NEXT ? 1 : 2;
        b->in[part] = graph_input(b->graph, token_part_name(part), shape, DT_I64);
    }
    b->step = b->opts->has_dropout ? graph_input(b->graph, "step", SHAPE_SCALAR, DT_I64) : NO_VALUE;
}

static int embeddings(const struct bert *b, int *ret_word)
{
    const struct embed_opts opts = {.owner = "bert.embeddings",
                                    .width = b->size->width,
                                    .vocabulary = b->size->vocabulary,
                                    .positions = b->size->positions,
                                    .segments = SEGMENTS,
                                    .init_std = INIT_STD};
    int x = graph_embed(b->graph, b->in[TOKENS_IDS], b->in[TOKENS_SEGMENTS], &opts, ret_word);
    return dropout(b, graph_layer_norm(b->graph, x, "bert.embeddings.LayerNorm", NORM_EPS));
}

/* NAME.dense, dropout, and NAME.LayerNorm of its sum with the block's input. */
static int back_to(const struct bert *b, int x, int begin, const char *name)
{
    x = dropout(b, linear(b, x, sub(b, name, "dense"), b->size->width));
    return graph_layer_norm(b->graph, graph_add(b->graph, x, begin, false),
                            sub(b, name, "LayerNorm"), NORM_EPS);
}

static int attention(const struct bert *b, int x, const char *layer)
{
    const char *const names[3] = {sub(b, layer, "attention.self.query"),
                                  sub(b, layer, "attention.self.key"),
                                  sub(b, layer, "attention.self.value")};
    int y = graph_linear_joined(
        b->graph, x, names,
        &(struct linear_opts){.out_features = b->size->width, .init_std = INIT_STD});
    y = graph_attention(b->graph, y,
                        &(struct attention_opts){.heads = b->size->heads,
                                                 .mask = b->in[TOKENS_MASK],
                                                 .rate = b->step == NO_VALUE ? 0.0 : DROPOUT,
                                                 .step = b->step});
    return back_to(b, y, x, sub(b, layer, "attention.output"));
}

static int encoder(const struct bert *b, int x)
{
    for (int64_t i = 0; i < b->size->layers; i++) {
        const char *layer = arena_printf(b->graph->arena, "bert.encoder.layer.%" PRId64, i);
        x = attention(b, x, layer);
        int y = linear(b, x, sub(b, layer, "intermediate.dense"), b->size->inner);
        x = back_to(b, graph_gelu(b->graph, y), x, sub(b, layer, "output"));
    }
    return x;
}

/* Predicts the masked words: the decoder is the table of the word embeddings. */
static void masked_words(const struct bert *b, int x, int word)
{
    x = graph_gather(b->graph, x, b->in[TOKENS_POSITIONS], b->opts->batch);
    x = linear(b, x, "cls.predictions.transform.dense", b->size->width);
    x = graph_layer_norm(b->graph, graph_gelu(b->graph, x), "cls.predictions.transform.LayerNorm",
                         NORM_EPS);
    x = graph_linear_with(b->graph, x,
                          &(struct linear_opts){.name = "cls.predictions",
                                                .out_features = b->size->vocabulary,
                                                .init_std = INIT_STD,
                                                .is_tied = true,
                                                .weight = word,
                                                .is_rounded = true});
    if (b->opts->has_logits) {
        graph_output(b->graph, "logits", x);
    }
    (void)graph_row_loss(b->graph, x, b->in[TOKENS_MASKED],
                         &(struct loss_opts){.label_smoothing = b->opts->label_smoothing,
                                             .ignore_label = TOKEN_UNUSED});
}

/* Predicts from the first token whether the second half follows the first. */
static int next_sentence(const struct bert *b, int x)
{
    x = graph_gather(b->graph, x, NO_VALUE, b->opts->batch);
    x = graph_tanh(b->graph, linear(b, x, "bert.pooler.dense", b->size->width));
    x = classes(b, x, "cls.seq_relationship", 2);
    if (b->opts->has_logits) {
        graph_output(b->graph, "next_sentence_logits", x);
    }
    return graph_row_loss(b->graph, x, b->in[TOKENS_NEXT],
                          &(struct loss_opts){.label_smoothing = b->opts->label_smoothing,
                                              .ignore_label = LOSS_IGNORE_NONE});
}

void bert_build(struct graph *graph, const struct bert_size *size, const struct model_opts *opts)
{
    struct bert b = {.graph = graph, .size = size, .opts = opts};
    int word = NO_VALUE;
    make_inputs(&b);
    int x = encoder(&b, embeddings(&b, &word));
    masked_words(&b, x, word);
    graph_output(graph, "loss", next_sentence(&b, x));
}

enum { WORDS = 30522, FEW_WORDS = 2546 };

static const struct bert_size BASE = {
    .layers = 12, .width = 768, .heads = 12, .inner = 3072, .vocabulary = WORDS, .positions = 512};

/* Source: Turc et al., "Well-read students learn better" (2019), table 1: the smallest of google-research/bert's models. */
static const struct bert_size TINY = {
    .layers = 2, .width = 128, .heads = 2, .inner = 512, .vocabulary = WORDS, .positions = 512};

/* The same with a twelfth of the words, as many beyond a multiple of eight: nine tenths of the above are its word table. */
static const struct bert_size NANO = {
    .layers = 2, .width = 128, .heads = 2, .inner = 512, .vocabulary = FEW_WORDS, .positions = 512};

static void build_base(struct graph *graph, const struct model_opts *opts)
{
    bert_build(graph, &BASE, opts);
}

static void build_tiny(struct graph *graph, const struct model_opts *opts)
{
    bert_build(graph, &TINY, opts);
}

static void build_nano(struct graph *graph, const struct model_opts *opts)
{
    bert_build(graph, &NANO, opts);
}

#define BERT(name_, n_words, build_)                                                               \
    {                                                                                              \
        .name = name_, .kind = MODEL_TOKENS, .n_classes = n_words, .ignore_label = TOKEN_UNUSED,   \
        .sequence_default = 128, .sequence_max = 512, .predictions_default = 20, .build = build_,  \
    }

const struct model model_bert_base = BERT("bert_base", WORDS, build_base);
const struct model model_bert_tiny = BERT("bert_tiny", WORDS, build_tiny);
const struct model model_bert_nano = BERT("bert_nano", FEW_WORDS, build_nano);
