/* SPDX-License-Identifier: Apache-2.0 */
/* What PaddleSeg's networks are made of, under its names. */
#ifndef MODELS_PADDLE_H
#define MODELS_PADDLE_H

#include "models/model.h"

#define CITYSCAPES_CLASSES 19
#define CITYSCAPES_IGNORED 255 /* Source: Cityscapes' train ids. */

/* OWNER._conv, then OWNER._batch_norm. conv.name is not looked at. */
int paddle_conv_bn(struct graph *graph, int x, const char *owner, struct conv_opts conv,
                   bool has_relu);

/* To the height and width of value `like`, bilinear, corners not aligned. */
int paddle_resize_like(struct graph *graph, int x, int like);

/* logits (N, C, h, w) to the image's size, and the loss over labelled pixels; the graph's outputs "logits" and "loss". */
void paddle_segmentation_loss(struct graph *graph, int logits, int labels,
                              const struct model_opts *opts);

#endif
