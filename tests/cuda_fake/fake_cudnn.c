/* SPDX-License-Identifier: Apache-2.0 */
/* Replaces cuDNN under its own names: the graph API, as its manual defines it. Descriptors keep what was set; an operation graph is
   computed by loops (fake_cudnn_ops.c) when its plan runs. Built as a shared library, so that all of dnn*.c runs on the emulated device: tensors
   and their numbers, += , what is made aside, engines, names, timing, workspace. It dies of misuse: attributes of a descriptor that is not
   finalised or gone, a result that nobody made, descriptors that are left at the end.

   Engines, best first: 5 sums in any order and must not be taken; 8 wants more workspace than there is; 2; 6 is offered and fails when it runs;
   4; 3, the one without tensor cores; and 0, which is always there. */
#include "base/base.h"

#include "tests/cuda_fake/fake_cudnn.h"

#include "tests/cuda_fake/fake.h"

#define ALIVE_MAX 200000

static struct descriptor *all[ALIVE_MAX]; /* freed at the end: queued work may still read them */
static int n_all;
static int n_alive;
static cudaStream_t streams[64];
static int n_handles;

static const struct engine {
    int64_t index, workspace;
    bool is_tensor_core, is_any_order, is_compiled;
} ENGINES[] = {{5, 0, true, true, false},      {8, INT64_C(1) << 41, true, false, false},
               {2, 3000, true, false, false},  {6, 100, true, false, false},
               {4, 0, true, false, false},     {7, 0, false, false, true},
               {3, 1000, false, false, false}, {0, 2000, false, false, false}};

/* REPERF_FAKE_WORKSPACE=N: engine 2, the first that may be taken, needs so many bytes. */
static int64_t workspace_of(const struct engine *engine)
{
    const char *bytes = engine->index == 2 ? getenv("REPERF_FAKE_WORKSPACE") : NULL;
    return bytes ? strtol(bytes, NULL, 10) : engine->workspace;
}

/* REPERF_FAKE_CUDNN=N: it reports version N. */
size_t cudnnGetVersion(void)
{
    const char *version = getenv("REPERF_FAKE_CUDNN");
    return version ? strtoul(version, NULL, 10) : CUDNN_VERSION;
}

const char *cudnnGetErrorString(cudnnStatus_t status)
{
    return status == CUDNN_STATUS_SUCCESS ? "success" : "made-up failure";
}

void cudnnGetLastErrorString(char *message, size_t max_size)
{
    (void)snprintf(message, max_size, "made up");
}

cudnnStatus_t cudnnCreate(cudnnHandle_t *handle)
{
    n_handles++;
    *handle = (cudnnHandle_t)(uintptr_t)n_handles;
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnDestroy(cudnnHandle_t handle)
{
    (void)handle;
    n_handles--;
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnSetStream(cudnnHandle_t handle, cudaStream_t stream)
{
    streams[(uintptr_t)handle] = stream;
    return CUDNN_STATUS_SUCCESS;
}

static struct descriptor *living(cudnnBackendDescriptor_t ptr)
{
    struct descriptor *desc = ptr;
    if (!desc || desc->magic != DESCRIPTOR_MAGIC || desc->is_gone) {
        fake_die("cudnn: a descriptor that is none, or gone");
    }
    return desc;
}

static struct descriptor *finished(cudnnBackendDescriptor_t ptr)
{
    struct descriptor *desc = living(ptr);
    if (!desc->is_final) {
        fake_die("cudnn: a descriptor is used before it is finalised");
    }
    return desc;
}

cudnnStatus_t cudnnBackendCreateDescriptor(cudnnBackendDescriptorType_t type,
                                           cudnnBackendDescriptor_t *ret_desc)
{
    struct descriptor *desc = calloc(1, sizeof(*desc));
    if (n_all == ALIVE_MAX) {
        fake_die("cudnn: too many descriptors");
    }
    desc->magic = DESCRIPTOR_MAGIC;
    desc->type = type;
    all[n_all++] = desc;
    n_alive++;
    *ret_desc = desc;
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnBackendDestroyDescriptor(cudnnBackendDescriptor_t ptr)
{
    living(ptr)->is_gone = true;
    n_alive--;
    return CUDNN_STATUS_SUCCESS;
}

__attribute__((destructor)) static void nothing_is_left(void)
{
    for (int i = 0; i < n_all; i++) {
        for (int k = 0; k < all[i]->n_attributes; k++) {
            free(all[i]->attributes[k].data);
        }
        free(all[i]);
    }
    if (n_alive != 0 || n_handles != 0) {
        (void)fprintf(stderr, "made-up cudnn: %d descriptors and %d handles are not destroyed\n",
                      n_alive, n_handles);
        _Exit(99);
    }
}

/* ---- attributes ---- */

static size_t size_of(cudnnBackendAttributeType_t type)
{
    bool is_small = type == CUDNN_TYPE_BOOLEAN || type == CUDNN_TYPE_CHAR;
    bool is_large = type == CUDNN_TYPE_HANDLE || type == CUDNN_TYPE_INT64 ||
                    type == CUDNN_TYPE_DOUBLE || type == CUDNN_TYPE_VOID_PTR ||
                    type == CUDNN_TYPE_BACKEND_DESCRIPTOR;
    return is_small ? 1 : is_large ? 8 : 4;
}

static void keep(struct descriptor *desc, cudnnBackendAttributeName_t name, int64_t count,
                 const void *values, size_t bytes)
{
    if (desc->n_attributes == ATTRIBUTES_MAX) {
        fake_die("cudnn: too many attributes");
    }
    struct attribute *to = &desc->attributes[desc->n_attributes++];
    *to = (struct attribute){.name = name, .count = count, .data = calloc(1, bytes + 1)};
    memcpy(to->data, values, bytes);
}

cudnnStatus_t cudnnBackendSetAttribute(cudnnBackendDescriptor_t ptr,
                                       cudnnBackendAttributeName_t name,
                                       cudnnBackendAttributeType_t type, int64_t count,
                                       const void *values)
{
    struct descriptor *desc = living(ptr);
    if (desc->is_final || count < 1) {
        fake_die("cudnn: an attribute is set too late, or to nothing");
    }
    if (type == CUDNN_TYPE_BACKEND_DESCRIPTOR) {
        for (int64_t i = 0; i < count; i++) {
            (void)finished(((const cudnnBackendDescriptor_t *)values)[i]);
        }
    }
    keep(desc, name, count, values, (size_t)count * size_of(type));
    return CUDNN_STATUS_SUCCESS;
}

const struct attribute *attribute_of(const struct descriptor *desc,
                                     cudnnBackendAttributeName_t name)
{
    for (int i = 0; i < desc->n_attributes; i++) {
        if (desc->attributes[i].name == name) {
            return &desc->attributes[i];
        }
    }
    return NULL;
}

int64_t whole_of(const struct descriptor *desc, cudnnBackendAttributeName_t name)
{
    const struct attribute *at = attribute_of(desc, name);
    if (!at) {
        fake_die("cudnn: an attribute is missing");
    }
    return *(const int64_t *)at->data;
}

struct descriptor *child_of(const struct descriptor *desc, cudnnBackendAttributeName_t name)
{
    const struct attribute *at = attribute_of(desc, name);
    return at ? *(struct descriptor *const *)at->data : NULL;
}

static const struct engine *engine_of(int64_t index)
{
    for (size_t i = 0; i < ARRAY_LEN(ENGINES); i++) {
        if (ENGINES[i].index == index) {
            return &ENGINES[i];
        }
    }
    return NULL;
}

/* ---- finalising ---- */

cudnnStatus_t cudnnBackendFinalize(cudnnBackendDescriptor_t ptr)
{
    struct descriptor *desc = living(ptr);
    if (desc->is_final) {
        fake_die("cudnn: finalised twice");
    }
    if (desc->type == CUDNN_BACKEND_ENGINE_DESCRIPTOR &&
        !engine_of(whole_of(desc, CUDNN_ATTR_ENGINE_GLOBAL_INDEX))) {
        return CUDNN_STATUS_BAD_PARAM;
    }
    desc->is_final = true;
    return CUDNN_STATUS_SUCCESS;
}

/* ---- asking ---- */

/* REPERF_FAKE_ENGINES=none: there are none; failing: none of them runs; a number: only this one is offered. */
static bool engines_are(const char *what)
{
    const char *said = getenv("REPERF_FAKE_ENGINES");
    return said && strcmp(said, what) == 0;
}

static void become_engine(struct descriptor *engine, int64_t index, struct descriptor *graph)
{
    engine->n_attributes = 0;
    keep(engine, CUDNN_ATTR_ENGINE_GLOBAL_INDEX, 1, &index, sizeof(index));
    keep(engine, CUDNN_ATTR_ENGINE_OPERATION_GRAPH, 1, (const void *)&graph, sizeof(graph));
    engine->is_final = true;
}

/* The heuristics return all engines but 0, the fallback only that one. */
static int64_t results(const struct descriptor *heuristic, int64_t n_max, void *values)
{
    struct descriptor *graph = child_of(heuristic, CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH);
    const struct attribute *mode = attribute_of(heuristic, CUDNN_ATTR_ENGINEHEUR_MODE);
    bool is_fallback = *(const int32_t *)mode->data == CUDNN_HEUR_MODE_FALLBACK;
    bool is_fused = fake_graph_is_fused(graph);
    int64_t n = 0;
    if (engines_are("none") || (is_fused && (is_fallback || !fake_graph_is_fusable(graph)))) {
        return 0;
    }
    for (size_t i = 0; i < ARRAY_LEN(ENGINES) && n < n_max; i++) {
        char number[8];
        (void)snprintf(number, sizeof(number), "%d", (int)ENGINES[i].index);
        bool is_offered =
            !getenv("REPERF_FAKE_ENGINES") || engines_are("failing") || engines_are(number);
        if (is_offered && (ENGINES[i].index == 0) == is_fallback) {
            struct descriptor *config = ((struct descriptor **)values)[n++];
            keep(config, FAKE_ENGINE_INDEX, 1, &ENGINES[i].index, sizeof(int64_t));
            keep(config, FAKE_GRAPH, 1, (const void *)&graph, sizeof(graph));
            config->is_final = true;
        }
    }
    return n;
}

static int64_t index_of_config(const struct descriptor *config, struct descriptor **ret_graph)
{
    struct descriptor *engine = child_of(config, CUDNN_ATTR_ENGINECFG_ENGINE);
    *ret_graph =
        engine ? child_of(engine, CUDNN_ATTR_ENGINE_OPERATION_GRAPH) : child_of(config, FAKE_GRAPH);
    return engine ? whole_of(engine, CUDNN_ATTR_ENGINE_GLOBAL_INDEX)
                  : whole_of(config, FAKE_ENGINE_INDEX);
}

static const struct engine *engine_of_config(const struct descriptor *config,
                                             struct descriptor **ret_graph)
{
    const struct engine *engine = engine_of(index_of_config(config, ret_graph));
    if (!engine) {
        fake_die("cudnn: a plan of an engine that there is not");
    }
    return engine;
}

static cudnnStatus_t get_notes(const struct descriptor *engine, cudnnBackendAttributeName_t name,
                               int64_t *count, void *values)
{
    const struct engine *is = engine_of(whole_of(engine, CUDNN_ATTR_ENGINE_GLOBAL_INDEX));
    cudnnBackendNumericalNote_t *notes = values;
    *count = 0;
    if (name == CUDNN_ATTR_ENGINE_NUMERICAL_NOTE && is->is_tensor_core) {
        notes[(*count)++] = CUDNN_NUMERICAL_NOTE_TENSOR_CORE;
    }
    if (name == CUDNN_ATTR_ENGINE_NUMERICAL_NOTE && is->is_any_order) {
        notes[(*count)++] = CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC;
    }
    if (name == CUDNN_ATTR_ENGINE_BEHAVIOR_NOTE && is->is_compiled) {
        ((cudnnBackendBehaviorNote_t *)values)[(*count)++] =
            CUDNN_BEHAVIOR_NOTE_RUNTIME_COMPILATION;
    }
    return CUDNN_STATUS_SUCCESS;
}

static cudnnStatus_t get_knobs(int64_t *count, void *values)
{
    const cudnnBackendKnobType_t type = CUDNN_KNOB_TYPE_TILE_SIZE;
    const int64_t value = 7;
    struct descriptor *knob = *(struct descriptor **)values;
    keep(knob, CUDNN_ATTR_KNOB_CHOICE_KNOB_TYPE, 1, &type, sizeof(type));
    keep(knob, CUDNN_ATTR_KNOB_CHOICE_KNOB_VALUE, 1, &value, sizeof(value));
    knob->is_final = true;
    *count = 1;
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnBackendGetAttribute(cudnnBackendDescriptor_t const ptr,
                                       cudnnBackendAttributeName_t name,
                                       cudnnBackendAttributeType_t type, int64_t n_max,
                                       int64_t *count, void *values)
{
    const struct descriptor *desc = finished(ptr);
    struct descriptor *graph = NULL;
    (void)type;
    *count = 1;
    if (name == CUDNN_ATTR_ENGINEHEUR_RESULTS) {
        *count = results(desc, n_max, values);
        return CUDNN_STATUS_SUCCESS;
    }
    if (name == CUDNN_ATTR_ENGINECFG_ENGINE) {
        int64_t index = index_of_config(desc, &graph);
        become_engine(*(struct descriptor **)values, index, graph);
        return CUDNN_STATUS_SUCCESS;
    }
    if (name == CUDNN_ATTR_ENGINECFG_KNOB_CHOICES) {
        return get_knobs(count, values);
    }
    if (name == CUDNN_ATTR_ENGINE_NUMERICAL_NOTE || name == CUDNN_ATTR_ENGINE_BEHAVIOR_NOTE) {
        return get_notes(desc, name, count, values);
    }
    if (name == CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE) {
        struct descriptor *config = child_of(desc, CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG);
        *(int64_t *)values = workspace_of(engine_of_config(config, &graph));
        return CUDNN_STATUS_SUCCESS;
    }
    const struct attribute *at = attribute_of(desc, name);
    if (!at) {
        return CUDNN_STATUS_BAD_PARAM;
    }
    size_t bytes = name == CUDNN_ATTR_KNOB_CHOICE_KNOB_TYPE ? 4 : 8;
    memcpy(values, at->data, bytes);
    return CUDNN_STATUS_SUCCESS;
}

/* ---- running ---- */

cudnnStatus_t cudnnBackendExecute(cudnnHandle_t handle, cudnnBackendDescriptor_t plan_ptr,
                                  cudnnBackendDescriptor_t pack_ptr)
{
    const struct descriptor *plan = finished(plan_ptr);
    const struct descriptor *pack = finished(pack_ptr);
    struct descriptor *graph = NULL;
    struct descriptor *config = child_of(plan, CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG);
    const struct engine *engine = engine_of_config(config, &graph);
    const struct attribute *uids = attribute_of(pack, CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS);
    const struct attribute *pointers = attribute_of(pack, CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS);
    const struct attribute *workspace = attribute_of(pack, CUDNN_ATTR_VARIANT_PACK_WORKSPACE);
    if (engine->index == 6 || engines_are("failing")) {
        return CUDNN_STATUS_NOT_SUPPORTED;
    }
    if (engine->is_any_order || uids->count != pointers->count || uids->count > BINDINGS_MAX) {
        fake_die("cudnn: an engine that must not be taken, or pointers without numbers");
    }
    struct work *work = calloc(1, sizeof(*work));
    work->graph = graph;
    work->is_compiled = engine->is_compiled;
    work->n = (int)uids->count;
    memcpy(work->uids, uids->data, (size_t)uids->count * sizeof(int64_t));
    memcpy(work->pointers, pointers->data, (size_t)uids->count * sizeof(void *));
    work->workspace = *(void *const *)workspace->data;
    work->workspace_bytes = workspace_of(engine);
    fake_enqueue(streams[(uintptr_t)handle], "cudnn", fake_compute, work, free);
    return CUDNN_STATUS_SUCCESS;
}
