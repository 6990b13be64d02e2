/* SPDX-License-Identifier: Apache-2.0 */
/* cuDNN's plans without a device: every convolution of every model is planned for the GPU described in tests/cuda/h100.json, and for
   that of tests/cuda/v100.json by a cuDNN that still has kernels for it. Without the toolkit or cuDNN the tests are named skips. */
#ifdef REPERF_HAVE_CUDA
#define UNIT_OWN_MAIN
#endif
#include "unit.h"

#ifndef REPERF_HAVE_CUDA

TEST(plans_need_a_toolkit)
{
    print_message("built without the CUDA toolkit and cuDNN's headers\n");
    skip();
}

#else

#include <dlfcn.h>
#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/lsan_interface.h>
#endif

#include "backend_cuda/dnn.h"
#include "backend_cuda/dnn_plan.h"
#include "backend_cuda/lt.h"
#include "base/clock.h"
#include "base/fs.h"
#include "models/model.h"
#include "wl_fuse.h"

/* For MODE=asan: memory that the libraries' heuristics keep is not ours to free. */
const char *__lsan_default_suppressions(void); /* NOLINT: the sanitizer's name */
const char *__lsan_default_suppressions(void)
{
    return "leak:libcudnn\n";
}

struct fixture {
    struct arena arena;
    char *device_json; /* of the H100 */
    char *volta_json;
    const char *missing; /* why nothing can be planned; NULL: it can */
    int version;         /* of the library */
};

/* cuDNN looks for the driver's library (the toolkit's stub of it will do; the loader finds a loaded one by its soname) and opens
   and closes the runtime compiler repeatedly, which a leak checker reports. */
static void load_what_cudnn_looks_for(void)
{
    if (!dlopen("libcuda.so.1", RTLD_NOW | RTLD_GLOBAL)) {
        (void)dlopen("/usr/local/cuda/lib64/stubs/libcuda.so", RTLD_NOW | RTLD_GLOBAL);
    }
    (void)dlopen("/usr/local/cuda/lib64/libnvrtc.so", RTLD_NOW | RTLD_GLOBAL);
}

static void cuda_describe(struct cuda *cuda, bool is_amp)
{
    *cuda = (struct cuda){.is_amp = is_amp, .channel_pad = is_amp ? 8 : 4};
}

static int open_described(struct cuda *cuda, const char *device_json, bool is_amp, struct err *err)
{
    struct plan_opts opts = {.allows_nondeterministic = true, .device_json = device_json};
    cuda_describe(cuda, is_amp);
    return dnn_open(cuda, &opts, err);
}

static int set_up(void **state)
{
    struct fixture *f = calloc(1, sizeof(*f));
    struct err err = {0};
    struct str hopper;
    struct str volta;
    struct cuda cuda;
    *state = f;
    load_what_cudnn_looks_for();
    if (fs_read(&f->arena, "tests/cuda/h100.json", 65536, &hopper, &err) < 0 ||
        fs_read(&f->arena, "tests/cuda/v100.json", 65536, &volta, &err) < 0) {
        print_message("%s\n", err.msg);
        return -1;
    }
    f->device_json = str_z(&f->arena, hopper);
    f->volta_json = str_z(&f->arena, volta);
    if (open_described(&cuda, f->device_json, true, &err) < 0) {
        f->missing = arena_printf(&f->arena, "%s", err.msg);
        return 0;
    }
    print_message("%s\n", dnn_version(&cuda));
    f->version = cuda.dnn->api.load.version;
    dnn_close(&cuda);
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *f = *state;
    arena_release(&f->arena);
    free(f);
    return 0;
}

static bool is_planned(enum kernel_id id)
{
    return id == K_CONV_FWD || id == K_CONV_BWD_DATA || id == K_CONV_BWD_WEIGHT ||
           id == K_CONV_STATS_FWD || id == K_CONV_BWD_DATA_BN || id == K_NORM_CONV_BWD_WEIGHT;
}

static bool is_depthwise(const struct conv_geom *g)
{
    return g->groups > 1 && g->groups == g->c && g->groups == g->k;
}

struct tally {
    int n_calls, n_failed;
    int n_of[K_COUNT];
    int64_t workspace_max_bytes;
};

/* Plans the calls of a finished graph; calls without a plan are printed. */
static void plan_calls(struct cuda *cuda, const struct graph *graph, struct tally *tally)
{
    struct kernel_args *kept = calloc((size_t)graph->n_calls, sizeof(*kept));
    int n_kept = 0;
    for (int i = 0; i < graph->n_calls; i++) {
        struct kernel_args args = graph->calls[i].args;
        struct err err = {0};
        if (!is_planned(args.id) || is_depthwise(&args.geom.conv)) {
            continue;
        }
        for (int k = 0; k < KERNEL_IN_MAX; k++) {
            args.has_in |= (unsigned)(graph->calls[i].in[k] != NO_VALUE) << k;
        }
        tally->n_calls++;
        tally->n_of[args.id]++;
        if (dnn_prepare(cuda, &args, &err) < 0) {
            print_message("%s\n", err.msg);
            tally->n_failed++;
            continue;
        }
        if (args.workspace_bytes > tally->workspace_max_bytes) {
            tally->workspace_max_bytes = args.workspace_bytes;
        }
        assert_true(args.workspace_bytes <= (args.dtype == DT_F16 ? PLAN_WORKSPACE_MAX_BYTES
                                                                  : PLAN_WORKSPACE_F32_MAX_BYTES));
        const struct dnn_plan *plan = args.prepared;
        struct plan_info info = plan->is_matmul ? lt_plan_info(&plan->matmul) : plan->engine.info;
        assert_true(info.is_deterministic);
        assert_false(info.is_compiled);
        kept[n_kept++] = args;
    }
    for (int i = 0; i < n_kept; i++) {
        dnn_unprepare(cuda, &kept[i]);
    }
    free(kept);
}

static const struct {
    const char *model;
    int64_t batch;
    int n_fused[3]; /* at least, in the order of FUSED_IDS: a lost fusion makes them fewer */
} NETWORKS[] = {{"resnet50", 256, {52, 47, 32}},
                {"hrnet_w18", 8, {306, 240, 129}},
                {"deeplabv3p", 4, {54, 50, 32}},
                {"deeplabv3p_mmseg", 4, {64, 56, 34}}};

enum form { FULL, HALF, FUSED };
static const char *const FORM_NAMES[] = {"fp32", "amp", "amp fused"};

static void fuse(struct graph *graph)
{
    struct fuse_support support = fuse_support_hopper();
    struct fuse_policy policy = fuse_supported(&support);
    PASSES(graph_fuse(graph, &policy, NULL, ERR));
}

static const enum kernel_id FUSED_IDS[] = {K_CONV_STATS_FWD, K_CONV_BWD_DATA_BN,
                                           K_NORM_CONV_BWD_WEIGHT};

static void plan_networks(const char *device_json, enum form form)
{
    bool is_amp = form != FULL;
    int n_failed = 0;
    for (size_t i = 0; i < ARRAY_LEN(NETWORKS); i++) {
        const struct model *model = model_find(NETWORKS[i].model);
        const struct model_opts opts = {.batch = NETWORKS[i].batch,
                                        .height = model->height_default,
                                        .width = model->width_default};
        const struct graph_types types = {is_amp ? DT_F16 : DT_F32, DT_F32, DT_F32};
        struct tally tally = {0};
        struct cuda cuda;
        struct graph *graph = graph_new_typed(ARENA, &types);
        int64_t start_ns = clock_system().mono_ns(NULL);
        model->build(graph, &opts);
        PASSES(graph_finish(graph, ERR));
        if (form == FUSED) {
            fuse(graph);
        }
        PASSES(open_described(&cuda, device_json, is_amp, ERR));
        plan_calls(&cuda, graph, &tally);
        dnn_close(&cuda);
        print_message("%s %s: %d calls, %d without a plan, workspace %.1f MB, %.1f s\n",
                      model->name, FORM_NAMES[form], tally.n_calls, tally.n_failed,
                      (double)tally.workspace_max_bytes / 1e6,
                      (double)(clock_system().mono_ns(NULL) - start_ns) / 1e9);
        n_failed += tally.n_failed;
        assert_true(tally.n_calls > 100);
        for (size_t k = 0; k < ARRAY_LEN(FUSED_IDS); k++) {
            print_message("  %s: %d\n", kernel_name(FUSED_IDS[k]), tally.n_of[FUSED_IDS[k]]);
            assert_true(tally.n_of[FUSED_IDS[k]] >= (form == FUSED ? NETWORKS[i].n_fused[k] : 0));
        }
    }
    assert_int_equal(n_failed, 0);
}

#define NEED_PLANS(f)                                                                              \
    do {                                                                                           \
        if ((f)->missing) {                                                                        \
            print_message("%s\n", (f)->missing);                                                   \
            skip();                                                                                \
        }                                                                                          \
    } while (0)

TEST_WITH(every_convolution_in_half_precision, NULL, NULL)
{
    struct fixture *f = *state;
    NEED_PLANS(f);
    plan_networks(f->device_json, HALF);
}

TEST_WITH(every_convolution_in_full_precision, NULL, NULL)
{
    struct fixture *f = *state;
    NEED_PLANS(f);
    plan_networks(f->device_json, FULL);
}

TEST_WITH(every_fused_convolution, NULL, NULL)
{
    struct fixture *f = *state;
    NEED_PLANS(f);
    plan_networks(f->device_json, FUSED);
}

/* The last cuDNN with kernels for Volta plans every call for it, too; an earlier or later one is a named skip. */
TEST_WITH(every_convolution_for_volta, NULL, NULL)
{
    struct fixture *f = *state;
    NEED_PLANS(f);
    if (f->version >= DNN_VOLTA_VERSION_END) {
        print_message("cuDNN %d has no kernels for Volta; 9.10 is the last that has\n", f->version);
        skip();
    }
    plan_networks(f->volta_json, HALF);
    plan_networks(f->volta_json, FULL);
}

/* BERT has no convolution, and cuBLASLt cannot be asked without a device. What can be checked here: its matrices' rows are whole vectors
   of 8 in half precision, except for the logits of the vocabulary and of the two sentences, which are stored as their shape says. */
TEST(matrices_of_bert)
{
    const struct graph_types types = {DT_F16, DT_F32, DT_F32};
    const struct model *model = model_find("bert_base");
    struct graph *graph = graph_new_typed(ARENA, &types);
    model->build(graph, &(struct model_opts){
                            .batch = 96, .sequence = 128, .predictions = 20, .has_dropout = true});
    PASSES(graph_finish(graph, ERR));
    int n_even = 0;
    int n_of_words = 0;
    int n_of_sentences = 0;
    for (int i = 0; i < graph->n_calls; i++) {
        const struct kernel_args *args = &graph->calls[i].args;
        const struct linear_geom *g = &args->geom.linear;
        assert_false(is_planned(args->id));
        if (args->id != K_LINEAR_FWD && args->id != K_LINEAR_BWD_DATA &&
            args->id != K_LINEAR_BWD_WEIGHT) {
            continue;
        }
        assert_int_equal(g->c % 8, 0);
        n_even += g->k % 8 == 0;
        n_of_words += g->k == 30522;
        n_of_sentences += g->k == 2;
    }
    /* 12 layers of 4 matrices, the pooler and the head's, three calls each. */
    assert_int_equal(n_even, (12 * 4 + 2) * 3);
    assert_int_equal(n_of_words, 3);
    assert_int_equal(n_of_sentences, 3);
}

/* Fused calls of ResNet-50's first stage, which cuDNN has; and one that it has not: a dilation of 16. */
static const struct wish {
    enum kernel_id id;
    unsigned has_in;
    int64_t c, h, w, k, window, dil;
} WISHES[] = {{K_CONV_STATS_FWD, 3U, 64, 56, 56, 256, 1, 1},
              {K_CONV_STATS_FWD, 15U, 64, 56, 56, 256, 1, 1},
              {K_NORM_CONV_BWD_WEIGHT, 15U, 64, 56, 56, 256, 1, 1},
              {K_CONV_BWD_DATA_BN, 3U, 64, 56, 56, 256, 1, 1},
              {K_CONV_BWD_DATA_BN, 3U | 1U << 7 | 1U << 8, 64, 56, 56, 256, 1, 1},
              {K_CONV_STATS_FWD, 15U, 512, 64, 128, 512, 3, 16}};
#define N_HAD 5

static struct kernel_args args_of(const struct wish *wish)
{
    int64_t pad = wish->dil * (wish->window - 1) / 2;
    return (struct kernel_args){.id = wish->id,
                                .dtype = DT_F16,
                                .has_in = wish->has_in,
                                .geom.conv = {.n = 4,
                                              .c = wish->c,
                                              .h = wish->h,
                                              .w = wish->w,
                                              .k = wish->k,
                                              .r = wish->window,
                                              .s = wish->window,
                                              .p = wish->h,
                                              .q = wish->w,
                                              .stride_h = 1,
                                              .stride_w = 1,
                                              .pad_h = pad,
                                              .pad_w = pad,
                                              .dil_h = wish->dil,
                                              .dil_w = wish->dil,
                                              .groups = 1}};
}

/* A chosen engine is rebuilt from its name alone, which is what is kept from run to run. */
TEST_WITH(engines_by_name, NULL, NULL)
{
    struct fixture *f = *state;
    struct err err = {0};
    struct cuda cuda;
    struct dnn_api api;
    struct dnn_engine engines[12];
    const struct dnn_rules rules = {.allows_tensor_cores = true,
                                    .workspace_max_bytes = PLAN_WORKSPACE_MAX_BYTES};
    NEED_PLANS(f);
    cuda_describe(&cuda, true);
    assert_int_equal(dnn_api_open(&api, &err), 0);
    struct dnn_device device = {.api = &api};
    assert_int_equal(dnn_device_describe(&device, f->device_json, &err), 0);
    for (size_t i = 0; i < N_HAD; i++) {
        struct kernel_args args = args_of(&WISHES[i]);
        struct dnn_call call = dnn_call_of(&cuda, &args);
        struct dnn_refused refused;
        struct dnn_graph graph;
        assert_int_equal(dnn_graph_make(&graph, &api, NULL, &call, &err), 0);
        int n = dnn_engines_find(&device, &graph, &rules, 12, engines, &refused);
        assert_true(n >= 1);
        for (int k = 0; k < n; k++) {
            struct dnn_engine again;
            if (dnn_engine_named(&device, &graph, &rules, engines[k].info.name, &again, &err) < 0) {
                fail_msg("%s", err.msg);
            }
            assert_string_equal(again.info.name, engines[k].info.name);
            assert_int_equal(again.info.workspace_bytes, engines[k].info.workspace_bytes);
            dnn_engine_release(&api, &again);
            dnn_engine_release(&api, &engines[k]);
        }
        static const char *const BAD[] = {"",          "cudnn",      "cudnn x",       "cudnn 9999",
                                          "cudnn 2 1", "cudnn 2 1=", "cudnn 2 999=1", "cublaslt 2"};
        for (size_t k = 0; k < ARRAY_LEN(BAD); k++) {
            struct dnn_engine none;
            struct err why = {0};
            assert_int_equal(dnn_engine_named(&device, &graph, &rules, BAD[k], &none, &why), -1);
            assert_true(why.code != ERR_NONE && why.msg[0] != '\0');
        }
        dnn_graph_release(&graph);
    }
    api.cudnnBackendDestroyDescriptor(device.property);
    dnn_api_close(&api);
}

/* An invalid device, and a network's layer without a plan: a message that names it. */
TEST_WITH(errors_name_what_is_wrong, NULL, NULL)
{
    struct fixture *f = *state;
    struct plan_opts opts = {.device_json = "{\"no\": \"device\"}"};
    struct cuda cuda;
    NEED_PLANS(f);
    cuda_describe(&cuda, true);
    FAILS(dnn_open(&cuda, &opts, ERR), ERR_ANY);
    assert_null(cuda.dnn);
    SAYS("cudnn: description of a device");
    PASSES(open_described(&cuda, f->device_json, true, ERR));
    struct kernel_args args = args_of(&WISHES[N_HAD]);
    FAILS(dnn_prepare(&cuda, &args, ERR), ERR_ANY);
    assert_null(args.prepared);
    SAYS("conv_stats_fwd f16 n4 c512 h64 w128 k512 r3 s3");
    dnn_close(&cuda);
    dnn_close(&cuda);
}

UNIT_MAIN(set_up, tear_down)

int main(void)
{
    int status = unit_run();
#ifdef __SANITIZE_ADDRESS__
    __lsan_do_leak_check(); /* now, while cuDNN's libraries are loaded: they unload themselves at exit */
#endif
    return status;
}

#endif
