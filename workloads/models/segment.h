/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by the segmentation networks. */
#pragma once

#include "models/model.h"

#define CITYSCAPES_CLASSES 19
#define CITYSCAPES_IGNORED 255 /* Source: Cityscapes' train ids. */

/* With PaddleSeg's names: OWNER._conv, then OWNER._batch_norm. conv.name is ignored. */
int paddle_conv_bn(struct graph *graph, int x, const char *owner, struct conv_opts conv,
                   bool has_relu);

/* To the height and width of value `like`, bilinear, corners not aligned. */
int segment_resize_like(struct graph *graph, int x, int like);

/* logits (N, C, h, w) to the image's size, and the loss over labelled pixels; the graph's outputs "logits" and "loss". */
void segment_loss(struct graph *graph, int logits, int labels, const struct model_opts *opts);

/* The same for a head used only in training: weight times its loss is added, without outputs. */
void segment_auxiliary_loss(struct graph *graph, int logits, int labels,
                            const struct model_opts *opts, double weight);
