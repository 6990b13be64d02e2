/* SPDX-License-Identifier: Apache-2.0 */
/* The available models. A model is one file with one build function that writes its graph from top to bottom. */
#pragma once

#include "graph/graph.h"

/* The inputs of a network: "input" and "labels", or the inputs of models/tokens.h. */
enum model_kind { MODEL_IMAGES, MODEL_TOKENS };

struct model_opts {
    int64_t batch;
    int64_t height, width;         /* images */
    int64_t sequence, predictions; /* tokens */
    double label_smoothing;        /* 0 to below 1 */
    bool has_logits;  /* tokens: "logits" can be read after the step; of images they always can */
    bool has_dropout; /* if the network has dropout; it then creates the input "step", int64, () */
};

struct model {
    const char *name;
    enum model_kind kind;
    int64_t n_classes;    /* tokens: words */
    int64_t ignore_label; /* label of what does not count; LOSS_IGNORE_NONE: there is none */
    int64_t height_default, width_default; /* images: the default size */
    int64_t image_min;
    int64_t sequence_default, sequence_max, predictions_default; /* tokens */
    /* Creates the inputs, output "logits" and the loss; errors stay in the graph. */
    void (*build)(struct graph *graph, const struct model_opts *opts);
};

extern const struct model model_resnet50;
extern const struct model model_hrnet_w18;
extern const struct model model_deeplabv3p;
extern const struct model model_deeplabv3p_mmseg;
extern const struct model model_bert_base;
extern const struct model model_bert_tiny; /* the same in a small size, for tests */
extern const struct model model_bert_nano; /* that of few words: packed data has more */

/* NULL if there is none of that name. */
const struct model *model_find(const char *name);

/* The idx-th model, NULL past the last. */
const struct model *model_at(int idx);
