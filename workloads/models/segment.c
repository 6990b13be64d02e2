/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"

#include "models/segment.h"

int paddle_conv_bn(struct graph *graph, int x, const char *owner, struct conv_opts conv,
                   bool has_relu)
{
    conv.name = arena_printf(graph->arena, "%s._conv", owner);
    x = graph_conv(graph, x, &conv);
    return graph_bn(graph, x,
                    &(struct bn_opts){.name = arena_printf(graph->arena, "%s._batch_norm", owner),
                                      .has_relu = has_relu,
                                      .is_paddles = true});
}

int segment_resize_like(struct graph *graph, int x, int like)
{
    if (x == NO_VALUE || like == NO_VALUE) {
        return NO_VALUE;
    }
    const struct shape *shape = &graph->values[like].shape;
    return graph_upsample(graph, x,
                          &(struct upsample_opts){.height = shape->dim[2], .width = shape->dim[3]});
}

void segment_loss(struct graph *graph, int logits, int labels, const struct model_opts *opts)
{
    logits = graph_upsample(graph, logits,
                            &(struct upsample_opts){.height = opts->height, .width = opts->width});
    graph_output(graph, "logits", logits);
    int loss = graph_loss(graph, logits, labels,
                          &(struct loss_opts){.label_smoothing = opts->label_smoothing,
                                              .ignore_label = CITYSCAPES_IGNORED});
    graph_output(graph, "loss", loss);
}

void segment_auxiliary_loss(struct graph *graph, int logits, int labels,
                            const struct model_opts *opts, double weight)
{
    logits = graph_upsample(graph, logits,
                            &(struct upsample_opts){.height = opts->height, .width = opts->width});
    (void)graph_loss(graph, logits, labels,
                     &(struct loss_opts){.label_smoothing = opts->label_smoothing,
                                         .ignore_label = CITYSCAPES_IGNORED,
                                         .weight = weight});
}
