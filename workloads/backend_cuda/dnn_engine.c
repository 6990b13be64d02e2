/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"

#include "backend_cuda/dnn_engine.h"

#include "base/str.h"

#define CONFIGS_MAX  64 /* requested of one heuristic */
#define NOTES_MAX    16
#define NAME_PREFIX  "cudnn "
#define COMPILED_MAX 2 /* of one graph: the compiler is slow */

/* True if it did; else err is set (an err that is set stays). */
static bool passed(const struct dnn_api *api, cudnnStatus_t status, const char *what,
                   struct err *err)
{
    if (status != CUDNN_STATUS_SUCCESS) {
        dnn_api_error(api, status, what, err);
    }
    return status == CUDNN_STATUS_SUCCESS;
}

static void destroy(const struct dnn_api *api, cudnnBackendDescriptor_t *desc)
{
    if (*desc) {
        (void)api->cudnnBackendDestroyDescriptor(*desc);
        *desc = NULL;
    }
}

static bool create(const struct dnn_api *api, cudnnBackendDescriptorType_t type,
                   cudnnBackendDescriptor_t *ret_desc, struct err *err)
{
    return passed(api, api->cudnnBackendCreateDescriptor(type, ret_desc), "descriptor", err);
}

static bool set_desc(const struct dnn_api *api, cudnnBackendDescriptor_t desc,
                     cudnnBackendAttributeName_t name, cudnnBackendDescriptor_t value,
                     const char *what, struct err *err)
{
    return passed(
        api, api->cudnnBackendSetAttribute(desc, name, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &value),
        what, err);
}

int dnn_device_describe(struct dnn_device *device, const char *json, struct err *err)
{
#if CUDNN_VERSION >= 90800
    const struct dnn_api *api = device->api;
    if (api->load.version < 90800) {
        return err_set(err, ERR_USAGE,
                       "cudnn: plans without a device need 9.8.0 or newer; found %s",
                       api->load.path);
    }
    if (!create(api, CUDNN_BACKEND_DEVICEPROP_DESCRIPTOR, &device->property, err) ||
        !passed(api,
                api->cudnnBackendSetAttribute(device->property,
                                              CUDNN_ATTR_DEVICEPROP_JSON_REPRESENTATION,
                                              CUDNN_TYPE_CHAR, (int64_t)strlen(json), json),
                "description of a device", err) ||
        !passed(api, api->cudnnBackendFinalize(device->property), "description of a device", err)) {
        destroy(api, &device->property);
        return -1;
    }
    return 0;
#else
    (void)device;
    (void)json;
    return err_set(err, ERR_USAGE, "cudnn: built with headers that know no device properties");
#endif
}

/* Sets the device that desc is for; with a real device that is the handle's. */
static bool set_property(const struct dnn_device *device, cudnnBackendDescriptor_t desc,
                         cudnnBackendAttributeName_t name, struct err *err)
{
    return !device->property ||
           set_desc(device->api, desc, name, device->property, "device of a plan", err);
}

#if CUDNN_VERSION >= 90800
#define HEUR_DEVICE   CUDNN_ATTR_ENGINEHEUR_DEVICEPROP
#define ENGINE_DEVICE CUDNN_ATTR_ENGINE_DEVICEPROP
#define PLAN_DEVICE   CUDNN_ATTR_EXECUTION_PLAN_DEVICEPROP
#else /* never called: property is NULL */
#define HEUR_DEVICE   CUDNN_ATTR_ENGINEHEUR_MODE
#define ENGINE_DEVICE CUDNN_ATTR_ENGINE_GLOBAL_INDEX
#define PLAN_DEVICE   CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG
#endif

void dnn_engine_release(const struct dnn_api *api, struct dnn_engine *engine)
{
    destroy(api, &engine->plan);
    destroy(api, &engine->config);
    destroy(api, &engine->engine);
    for (int i = 0; i < engine->n_knobs; i++) {
        destroy(api, &engine->knobs[i]);
    }
    engine->n_knobs = 0;
}

/* ---- an engine's notes ---- */

/* Reads the notes; false: an engine that the rules forbid, which is counted. */
static bool fits_rules(const struct dnn_api *api, const struct dnn_rules *rules,
                       struct dnn_engine *engine, struct dnn_refused *refused)
{
    cudnnBackendNumericalNote_t notes[NOTES_MAX];
    cudnnBackendBehaviorNote_t behaviour[NOTES_MAX];
    int64_t n = 0;
    bool is_allowed = true;
    engine->info.is_deterministic = true;
    if (api->cudnnBackendGetAttribute(engine->engine, CUDNN_ATTR_ENGINE_NUMERICAL_NOTE,
                                      CUDNN_TYPE_NUMERICAL_NOTE, NOTES_MAX, &n,
                                      notes) != CUDNN_STATUS_SUCCESS) {
        refused->n_failed++;
        return false;
    }
    for (int64_t i = 0; i < n; i++) {
        bool is_rounded = notes[i] == CUDNN_NUMERICAL_NOTE_TENSOR_CORE ||
                          notes[i] == CUDNN_NUMERICAL_NOTE_DOWN_CONVERT_INPUTS;
        engine->info.is_deterministic &= notes[i] != CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC;
        is_allowed &= !is_rounded || rules->allows_tensor_cores;
        /* Sums in less than float, and transforms that cost digits. */
        is_allowed &= notes[i] != CUDNN_NUMERICAL_NOTE_REDUCED_PRECISION_REDUCTION &&
                      notes[i] != CUDNN_NUMERICAL_NOTE_WINOGRAD_TILE_6x6 &&
                      notes[i] != CUDNN_NUMERICAL_NOTE_WINOGRAD_TILE_13x13;
    }
    if (api->cudnnBackendGetAttribute(engine->engine, CUDNN_ATTR_ENGINE_BEHAVIOR_NOTE,
                                      CUDNN_TYPE_BEHAVIOR_NOTE, NOTES_MAX, &n,
                                      behaviour) != CUDNN_STATUS_SUCCESS) {
        refused->n_failed++;
        return false;
    }
    for (int64_t i = 0; i < n; i++) {
        engine->info.is_compiled |= behaviour[i] == CUDNN_BEHAVIOR_NOTE_RUNTIME_COMPILATION;
    }
    int *why = !is_allowed                                           ? &refused->n_rounding
               : !engine->info.is_deterministic                      ? &refused->n_any_order
               : engine->info.is_compiled && !rules->allows_compiled ? &refused->n_compiled
                                                                     : NULL;
    if (why) {
        *why += 1;
    }
    return !why;
}

static void add_reason(char *text, int n, const char *why)
{
    size_t len = strlen(text);
    if (n > 0) {
        (void)snprintf(text + len, DNN_REFUSED_TEXT_MAX - len, "%s%d %s", len > 0 ? ", " : "", n,
                       why);
    }
}

void dnn_refused_text(const struct dnn_refused *refused, const struct dnn_rules *rules,
                      char ret_text[DNN_REFUSED_TEXT_MAX])
{
    char large[128];
    (void)snprintf(large, sizeof(large),
                   "need more than %" PRId64 " bytes of workspace (the least: %" PRId64 ")",
                   rules->workspace_max_bytes, refused->least_workspace_bytes);
    ret_text[0] = '\0';
    add_reason(ret_text, refused->n_any_order, "add in an order that may vary");
    add_reason(ret_text, refused->n_rounding, "round inputs or sums");
    add_reason(ret_text, refused->n_compiled, "would be compiled first");
    add_reason(ret_text, refused->n_large, large);
    add_reason(ret_text, refused->n_failed, "cannot be built");
    if (ret_text[0] == '\0') {
        (void)snprintf(ret_text, DNN_REFUSED_TEXT_MAX, "cuDNN offers none");
    }
}

/* "cudnn ENGINE KNOB=VALUE ...", knobs by number and in the order of cuDNN. */
static bool read_name(const struct dnn_api *api, struct dnn_engine *engine, struct err *err)
{
    int64_t index = -1;
    int64_t n = 0;
    for (engine->n_knobs = 0; engine->n_knobs < DNN_KNOBS_MAX; engine->n_knobs++) {
        if (!create(api, CUDNN_BACKEND_KNOB_CHOICE_DESCRIPTOR, &engine->knobs[engine->n_knobs],
                    err)) {
            return false;
        }
    }
    if (!passed(api,
                api->cudnnBackendGetAttribute(engine->engine, CUDNN_ATTR_ENGINE_GLOBAL_INDEX,
                                              CUDNN_TYPE_INT64, 1, &n, &index),
                "engine's number", err) ||
        !passed(api,
                api->cudnnBackendGetAttribute(engine->config, CUDNN_ATTR_ENGINECFG_KNOB_CHOICES,
                                              CUDNN_TYPE_BACKEND_DESCRIPTOR, DNN_KNOBS_MAX, &n,
                                              engine->knobs),
                "engine's knobs", err)) {
        return false;
    }
    char *name = engine->info.name;
    int len = snprintf(name, PLAN_NAME_MAX, NAME_PREFIX "%" PRId64, index);
    for (int64_t i = 0; i < n && len < PLAN_NAME_MAX; i++) {
        int64_t value = 0;
        int64_t count = 0;
        cudnnBackendKnobType_t type = CUDNN_KNOB_TYPE_COUNTS;
        if (!passed(api,
                    api->cudnnBackendGetAttribute(engine->knobs[i],
                                                  CUDNN_ATTR_KNOB_CHOICE_KNOB_TYPE,
                                                  CUDNN_TYPE_KNOB_TYPE, 1, &count, &type),
                    "knob", err) ||
            !passed(api,
                    api->cudnnBackendGetAttribute(engine->knobs[i],
                                                  CUDNN_ATTR_KNOB_CHOICE_KNOB_VALUE,
                                                  CUDNN_TYPE_INT64, 1, &count, &value),
                    "knob's value", err)) {
            return false;
        }
        len +=
            snprintf(name + len, (size_t)(PLAN_NAME_MAX - len), " %d=%" PRId64, (int)type, value);
    }
    if (len >= PLAN_NAME_MAX) {
        (void)snprintf(name, PLAN_NAME_MAX, NAME_PREFIX "%" PRId64 " ?", index);
    }
    return true;
}

/* ---- plans ---- */

/* The engine's plan, if it can be built within the rules; false: not this one, which is no error, and is counted. */
static bool make_plan(const struct dnn_device *device, const struct dnn_rules *rules,
                      struct dnn_engine *engine, struct dnn_refused *refused, struct err *why)
{
    const struct dnn_api *api = device->api;
    int64_t n = 0;
    int64_t *bytes = &engine->info.workspace_bytes;
    cudnnHandle_t handle = device->handle;
    if (!create(api, CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR, &engine->plan, why) ||
        (handle &&
         !passed(api,
                 api->cudnnBackendSetAttribute(engine->plan, CUDNN_ATTR_EXECUTION_PLAN_HANDLE,
                                               CUDNN_TYPE_HANDLE, 1, &handle),
                 "plan's handle", why)) ||
        !set_property(device, engine->plan, PLAN_DEVICE, why) ||
        !set_desc(api, engine->plan, CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, engine->config,
                  "plan's engine", why) ||
        !passed(api, api->cudnnBackendFinalize(engine->plan), "plan", why) ||
        !passed(api,
                api->cudnnBackendGetAttribute(engine->plan,
                                              CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE,
                                              CUDNN_TYPE_INT64, 1, &n, bytes),
                "plan's workspace", why)) {
        refused->n_failed++;
        return false;
    }
    if (*bytes > rules->workspace_max_bytes) {
        bool is_least = refused->n_large == 0 || *bytes < refused->least_workspace_bytes;
        refused->least_workspace_bytes = is_least ? *bytes : refused->least_workspace_bytes;
        refused->n_large++;
        int failed = err_set(why, ERR_WORKLOAD, "%s needs %" PRId64 " bytes of workspace",
                             engine->info.name, *bytes);
        ASSERT(failed < 0);
        return false;
    }
    return true;
}

static bool has_name(const struct dnn_engine *engines, int n, const char *name)
{
    for (int i = 0; i < n; i++) {
        if (strcmp(engines[i].info.name, name) == 0) {
            return true;
        }
    }
    return false;
}

/* Takes over the config. True: `engine` was added; false: it is empty. */
static bool take_config(const struct dnn_device *device, const struct dnn_rules *rules,
                        cudnnBackendDescriptor_t config, struct dnn_engine *engine,
                        struct dnn_refused *refused)
{
    const struct dnn_api *api = device->api;
    struct err why = {0};
    int64_t n = 0;
    *engine = (struct dnn_engine){.config = config};
    if (create(api, CUDNN_BACKEND_ENGINE_DESCRIPTOR, &engine->engine, &why) &&
        passed(api,
               api->cudnnBackendGetAttribute(config, CUDNN_ATTR_ENGINECFG_ENGINE,
                                             CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &n, &engine->engine),
               "engine", &why) &&
        fits_rules(api, rules, engine, refused) && read_name(api, engine, &why)) {
        return true;
    }
    dnn_engine_release(api, engine);
    return false;
}

/* Asks one heuristic for its configurations: *ret_n of them, owned by the caller. A graph that it does not know has none. */
static void ask(const struct dnn_device *device, const struct dnn_graph *graph,
                cudnnBackendHeurMode_t mode, cudnnBackendDescriptor_t *configs, int64_t *ret_n)
{
    const struct dnn_api *api = device->api;
    cudnnBackendDescriptor_t heuristic = NULL;
    struct err why = {0};
    int n_made = 0;
    int64_t n = 0;
    if (create(api, CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR, &heuristic, &why) &&
        set_desc(api, heuristic, CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, graph->graph,
                 "heuristic's graph", &why) &&
        passed(api,
               api->cudnnBackendSetAttribute(heuristic, CUDNN_ATTR_ENGINEHEUR_MODE,
                                             CUDNN_TYPE_HEUR_MODE, 1, &mode),
               "heuristic's mode", &why) &&
        set_property(device, heuristic, HEUR_DEVICE, &why) &&
        passed(api, api->cudnnBackendFinalize(heuristic), "heuristic", &why)) {
        while (n_made < CONFIGS_MAX &&
               create(api, CUDNN_BACKEND_ENGINECFG_DESCRIPTOR, &configs[n_made], &why)) {
            n_made++;
        }
        if (api->cudnnBackendGetAttribute(heuristic, CUDNN_ATTR_ENGINEHEUR_RESULTS,
                                          CUDNN_TYPE_BACKEND_DESCRIPTOR, n_made, &n,
                                          configs) != CUDNN_STATUS_SUCCESS) {
            n = 0;
        }
    }
    n = n < n_made ? n : n_made; /* it may report more than was requested */
    for (int64_t i = n; i < n_made; i++) {
        destroy(api, &configs[i]);
    }
    destroy(api, &heuristic);
    *ret_n = n;
}

int dnn_engines_find(const struct dnn_device *device, const struct dnn_graph *graph,
                     const struct dnn_rules *rules, int n_max, struct dnn_engine *ret_engines,
                     struct dnn_refused *ret_refused)
{
    static const cudnnBackendHeurMode_t MODES[] = {CUDNN_HEUR_MODE_A, CUDNN_HEUR_MODE_FALLBACK};
    cudnnBackendDescriptor_t configs[CONFIGS_MAX];
    int n_compiled = 0;
    int n = 0;
    *ret_refused = (struct dnn_refused){0};
    for (size_t m = 0; m < ARRAY_LEN(MODES) && n < n_max; m++) {
        int64_t n_configs = 0;
        ask(device, graph, MODES[m], configs, &n_configs);
        for (int64_t i = 0; i < n_configs; i++) {
            struct dnn_engine engine;
            struct err why = {0};
            if (n == n_max) {
                destroy(device->api, &configs[i]);
                continue;
            }
            if (!take_config(device, rules, configs[i], &engine, ret_refused)) {
                continue;
            }
            bool is_wanted = !has_name(ret_engines, n, engine.info.name) &&
                             (!engine.info.is_compiled || n_compiled < COMPILED_MAX);
            if (is_wanted && make_plan(device, rules, &engine, ret_refused, &why)) {
                n_compiled += engine.info.is_compiled;
                ret_engines[n++] = engine;
            } else {
                dnn_engine_release(device->api, &engine);
            }
        }
    }
    return n;
}

/* ---- by name ---- */

static bool add_knob(const struct dnn_api *api, struct str word, struct dnn_engine *engine,
                     struct err *err)
{
    struct str type_text;
    struct str value_text = word;
    int64_t type = 0;
    int64_t value = 0;
    if (!str_next(&value_text, '=', &type_text) || !value_text.ptr ||
        engine->n_knobs == DNN_KNOBS_MAX ||
        str_to_i64(type_text, 0, CUDNN_KNOB_TYPE_COUNTS - 1, &type, err) < 0 ||
        str_to_i64(value_text, INT32_MIN, INT32_MAX, &value, err) < 0) {
        return false;
    }
    cudnnBackendKnobType_t knob_type = (cudnnBackendKnobType_t)type;
    cudnnBackendDescriptor_t *knob = &engine->knobs[engine->n_knobs];
    if (!create(api, CUDNN_BACKEND_KNOB_CHOICE_DESCRIPTOR, knob, err)) {
        return false;
    }
    engine->n_knobs++;
    return passed(api,
                  api->cudnnBackendSetAttribute(*knob, CUDNN_ATTR_KNOB_CHOICE_KNOB_TYPE,
                                                CUDNN_TYPE_KNOB_TYPE, 1, &knob_type),
                  "knob", err) &&
           passed(api,
                  api->cudnnBackendSetAttribute(*knob, CUDNN_ATTR_KNOB_CHOICE_KNOB_VALUE,
                                                CUDNN_TYPE_INT64, 1, &value),
                  "knob's value", err) &&
           passed(api, api->cudnnBackendFinalize(*knob), "knob", err);
}

static bool make_named(const struct dnn_device *device, const struct dnn_graph *graph,
                       const char *name, struct dnn_engine *engine, struct err *err)
{
    const struct dnn_api *api = device->api;
    struct str rest = str_of(name);
    struct str word;
    int64_t index = 0;
    if (!str_next(&rest, ' ', &word) || !str_eq_z(word, "cudnn") || !str_next(&rest, ' ', &word) ||
        str_to_i64(word, 0, INT32_MAX, &index, err) < 0) {
        return false;
    }
    while (str_next(&rest, ' ', &word)) {
        if (!add_knob(api, word, engine, err)) {
            return false;
        }
    }
    return create(api, CUDNN_BACKEND_ENGINE_DESCRIPTOR, &engine->engine, err) &&
           set_desc(api, engine->engine, CUDNN_ATTR_ENGINE_OPERATION_GRAPH, graph->graph,
                    "engine's graph", err) &&
           passed(api,
                  api->cudnnBackendSetAttribute(engine->engine, CUDNN_ATTR_ENGINE_GLOBAL_INDEX,
                                                CUDNN_TYPE_INT64, 1, &index),
                  "engine's number", err) &&
           set_property(device, engine->engine, ENGINE_DEVICE, err) &&
           passed(api, api->cudnnBackendFinalize(engine->engine), "engine", err) &&
           create(api, CUDNN_BACKEND_ENGINECFG_DESCRIPTOR, &engine->config, err) &&
           set_desc(api, engine->config, CUDNN_ATTR_ENGINECFG_ENGINE, engine->engine, "engine",
                    err) &&
           (engine->n_knobs == 0 ||
            passed(api,
                   api->cudnnBackendSetAttribute(engine->config, CUDNN_ATTR_ENGINECFG_KNOB_CHOICES,
                                                 CUDNN_TYPE_BACKEND_DESCRIPTOR, engine->n_knobs,
                                                 engine->knobs),
                   "engine's knobs", err)) &&
           passed(api, api->cudnnBackendFinalize(engine->config), "engine's settings", err);
}

int dnn_engine_named(const struct dnn_device *device, const struct dnn_graph *graph,
                     const struct dnn_rules *rules, const char *name, struct dnn_engine *ret_engine,
                     struct err *err)
{
    struct dnn_engine engine = {0};
    struct dnn_refused refused = {0};
    char why[DNN_REFUSED_TEXT_MAX];
    (void)snprintf(engine.info.name, PLAN_NAME_MAX, "%s", name);
    if (make_named(device, graph, name, &engine, err) &&
        fits_rules(device->api, rules, &engine, &refused) &&
        make_plan(device, rules, &engine, &refused, err)) {
        *ret_engine = engine;
        return 0;
    }
    dnn_engine_release(device->api, &engine);
    dnn_refused_text(&refused, rules, why);
    return err->code != ERR_NONE
               ? -1
               : err_set(err, ERR_WORKLOAD, "\"%s\" is not available: %s", name, why);
}
