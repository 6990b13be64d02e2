/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of the fake cuDNN share. */
#pragma once

#include <cudnn_graph.h>
#include <stdbool.h>

#define DESCRIPTOR_MAGIC  0x64657363
#define ATTRIBUTES_MAX    16
#define BINDINGS_MAX      32
#define FAKE_ENGINE_INDEX ((cudnnBackendAttributeName_t)90001)
#define FAKE_GRAPH        ((cudnnBackendAttributeName_t)90002)

struct attribute {
    cudnnBackendAttributeName_t name;
    int64_t count;
    void *data; /* owned */
};

struct descriptor {
    unsigned magic;
    cudnnBackendDescriptorType_t type;
    bool is_final, is_gone;
    int n_attributes;
    struct attribute attributes[ATTRIBUTES_MAX];
};

/* One run of a plan, in the stream's queue. */
struct work {
    const struct descriptor *graph;
    bool is_compiled;
    int n;
    int64_t uids[BINDINGS_MAX];
    void *pointers[BINDINGS_MAX];
    void *workspace;
    int64_t workspace_bytes;
};

const struct attribute *attribute_of(const struct descriptor *desc,
                                     cudnnBackendAttributeName_t name);
int64_t whole_of(const struct descriptor *desc, cudnnBackendAttributeName_t name);
struct descriptor *child_of(const struct descriptor *desc, cudnnBackendAttributeName_t name);

/* More than a convolution and its bias; and if so, in the types in which the real library fuses. */
bool fake_graph_is_fused(const struct descriptor *graph);
bool fake_graph_is_fusable(const struct descriptor *graph);
void fake_compute(void *work);
