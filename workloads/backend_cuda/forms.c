/* SPDX-License-Identifier: Apache-2.0 */
/* Plain or fused: both lists of calls are run in turn on buffers of their sizes, and the faster one is kept like a plan. */
#include "base/base.h"

#include "core/forms.h"

#include "backend_cuda/cuda.h"
#include "backend_cuda/layout.h"
#include "backend_cuda/tune.h"
#include "base/arena.h"
#include "base/log.h"
#include "base/strbuf.h"
#include "core/sha256.h"

#define NAMES_MAX 120 /* of the fused calls, in the key; the digest covers what is cut off */
#define TEXT_MAX  16384

/* An answer, so that equal sites are compared once. */
struct said {
    struct said *next; /* owned */
    char key[PLAN_CALL_MAX];
    enum form_choice choice;
    struct form_times times;
};

/* Calls that stay prepared, since the network needs their plans next. */
struct kept {
    struct kept *next; /* owned */
    struct kernel_args args;
};

struct cuda_forms {
    struct said *said; /* owned */
    struct kept *kept; /* owned */
};

void cuda_forms_open(struct cuda *cuda)
{
    cuda->forms = xcalloc(1, sizeof(*cuda->forms));
}

void cuda_forms_close(struct cuda *cuda)
{
    struct cuda_forms *forms = cuda->forms;
    if (!forms) {
        return;
    }
    while (forms->said) {
        struct said *said = forms->said;
        forms->said = said->next;
        free(said);
    }
    while (forms->kept) {
        struct kept *kept = forms->kept;
        forms->kept = kept->next;
        cuda_unprepare(cuda, &kept->args);
        free(kept);
    }
    free(forms);
    cuda->forms = NULL;
}

/* ---- the key ---- */

static bool is_conv(enum kernel_id id)
{
    return id == K_CONV_FWD || id == K_CONV_BWD_DATA || id == K_CONV_BWD_WEIGHT ||
           id == K_CONV_STATS_FWD || id == K_CONV_BWD_DATA_BN || id == K_NORM_CONV_BWD_WEIGHT;
}

static bool is_norm(enum kernel_id id)
{
    return id == K_BN_FWD || id == K_BN_BWD || id == K_BN_ADD_FWD || id == K_BN_ADD_BWD ||
           id == K_BN_FINALIZE || id == K_BN_APPLY || id == K_BN_BWD_APPLY;
}

static void write_conv(struct strbuf *text, const struct conv_geom *g)
{
    strbuf_printf(text, " n%" PRId64 " c%" PRId64 " h%" PRId64 " w%" PRId64 " k%" PRId64, g->n,
                  g->c, g->h, g->w, g->k);
    strbuf_printf(text, " r%" PRId64 " s%" PRId64 " stride%" PRId64 "x%" PRId64, g->r, g->s,
                  g->stride_h, g->stride_w);
    strbuf_printf(text, " pad%" PRId64 "x%" PRId64 " dil%" PRId64 "x%" PRId64 " g%" PRId64,
                  g->pad_h, g->pad_w, g->dil_h, g->dil_w, g->groups);
}

static void write_call(struct strbuf *text, const struct form_call *call)
{
    const struct kernel_args *args = &call->args;
    strbuf_printf(text, "%s %s added%u in%x", kernel_name(args->id), dtype_name(args->dtype),
                  args->accumulate, args->has_in);
    if (is_conv(args->id)) {
        write_conv(text, &args->geom.conv);
    } else if (is_norm(args->id)) {
        strbuf_printf(text, "%s", args->geom.bn.has_relu ? " relu" : "");
    }
    for (int k = 0; k < KERNEL_IN_MAX; k++) {
        strbuf_printf(text, " %d", call->in[k]);
    }
    for (int k = 0; k < KERNEL_OUT_MAX; k++) {
        strbuf_printf(text, " %d", call->out[k]);
    }
    strbuf_add_z(text, "\n");
}

/* Everything that the two times depend on besides the device and the libraries. */
static void digest(const struct cuda *cuda, const struct forms *forms,
                   char ret_hex[SHA256_HEX_LEN + 1])
{
    CLEANUP(strbuf) struct strbuf text;
    struct sha256 sha;
    const struct form *both[] = {&forms->plain, &forms->fused};
    strbuf_init(&text, TEXT_MAX);
    strbuf_printf(&text, "%d%d\n", cuda->is_amp, cuda->has_tf32);
    for (size_t i = 0; i < ARRAY_LEN(both); i++) {
        for (int k = 0; k < both[i]->n_calls; k++) {
            write_call(&text, &both[i]->calls[k]);
        }
        strbuf_add_z(&text, "\n");
    }
    for (int i = 0; i < forms->n_buffers; i++) {
        char shape[SHAPE_TEXT_MAX];
        shape_text(&forms->buffers[i].shape, shape);
        strbuf_printf(&text, "%s %s %d\n", dtype_name(forms->buffers[i].dtype), shape,
                      (int)forms->buffers[i].role);
    }
    sha256_init(&sha);
    sha256_add(&sha, text.ptr, text.len);
    sha256_hex(&sha, ret_hex);
}

static void make_key(const struct cuda *cuda, const struct forms *forms, char key[PLAN_CALL_MAX])
{
    CLEANUP(strbuf) struct strbuf names;
    CLEANUP(strbuf) struct strbuf shape;
    char hex[SHA256_HEX_LEN + 1];
    strbuf_init(&names, TEXT_MAX);
    strbuf_init(&shape, TEXT_MAX);
    for (int i = 0; i < forms->fused.n_calls; i++) {
        const struct kernel_args *args = &forms->fused.calls[i].args;
        strbuf_printf(&names, "%s%s", i > 0 ? "+" : "", kernel_name(args->id));
        if (is_conv(args->id) && shape.len == 0) {
            write_conv(&shape, &args->geom.conv);
        }
    }
    digest(cuda, forms, hex);
    int len = snprintf(key, PLAN_CALL_MAX, "forms; %.*s%.100s; %s",
                       names.len < NAMES_MAX ? (int)names.len : NAMES_MAX, names.ptr,
                       shape.len > 0 ? shape.ptr : "", hex);
    ASSERT(len > 0 && len < PLAN_CALL_MAX);
}

/* ---- timing ---- */

/* The two lists as they are timed. */
enum { FUSED, PLAIN, LISTS };

struct race {
    struct cuda *cuda;
    const struct forms *forms;
    const struct form *lists[LISTS];
    struct kernel_args args[LISTS][FORM_CALLS_MAX]; /* prepared */
};

/* Stays prepared until the backend is released. */
static int prepare_all(struct race *race, int64_t *ret_workspace_bytes, struct err *err)
{
    struct cuda_forms *forms = race->cuda->forms;
    for (int i = 0; i < LISTS; i++) {
        for (int k = 0; k < race->lists[i]->n_calls; k++) {
            struct kernel_args *args = &race->args[i][k];
            *args = race->lists[i]->calls[k].args;
            args->stream = 0;
            if (is_norm(args->id)) {
                args->geom.bn.n_ranks = 1; /* communication between ranks is the same in both */
            }
            if (cuda_prepare(race->cuda, args, err) < 0) {
                return -1;
            }
            struct kept *kept = xcalloc(1, sizeof(*kept));
            *kept = (struct kept){.next = forms->kept, .args = *args};
            forms->kept = kept;
            if (args->workspace_bytes > *ret_workspace_bytes) {
                *ret_workspace_bytes = args->workspace_bytes;
            }
        }
    }
    return 0;
}

static bool run_list(void *ctx, int i, void *const *buffers, cudaStream_t stream UNUSED)
{
    const struct race *race = ctx;
    const struct form *list = race->lists[i];
    for (int k = 0; k < list->n_calls; k++) {
        struct kernel_args args = race->args[i][k];
        for (int j = 0; j < KERNEL_IN_MAX; j++) {
            int at = list->calls[k].in[j];
            args.in[j] = at == FORM_ABSENT ? NULL : buffers[at];
        }
        for (int j = 0; j < KERNEL_OUT_MAX; j++) {
            int at = list->calls[k].out[j];
            args.out[j] = at == FORM_ABSENT ? NULL : buffers[at];
        }
        args.workspace = buffers[race->forms->n_buffers];
        cuda_run(race->cuda, &args);
    }
    return race->cuda->err.code == ERR_NONE;
}

static int time_lists(struct race *race, struct form_times *ret_times, struct err *err)
{
    struct cuda *cuda = race->cuda;
    const struct forms *forms = race->forms;
    enum dtype dtypes[TUNE_BUFFERS_MAX];
    int64_t ns[LISTS] = {0};
    int best = 0;
    struct tune tune = {.n_ways = LISTS,
                        .run = run_list,
                        .ctx = race,
                        .n_buffers = forms->n_buffers + 1,
                        .dtype = cuda->is_amp ? DT_F16 : DT_F32,
                        .dtypes = dtypes,
                        .stream = cuda->streams[0]};
    _Static_assert(FORM_BUFFERS_MAX + 1 <= TUNE_BUFFERS_MAX, "and the workspace");
    for (int i = 0; i < forms->n_buffers; i++) {
        const struct layout layout = layout_of(&forms->buffers[i], cuda->channel_pad);
        tune.buffer_bytes[i] = layout_bytes(&layout);
        dtypes[i] = forms->buffers[i].dtype;
    }
    dtypes[forms->n_buffers] = tune.dtype;
    if (prepare_all(race, &tune.buffer_bytes[forms->n_buffers], err) < 0 ||
        tune_choose(&tune, ns, &best, err) < 0) {
        return -1;
    }
    if (cuda->err.code != ERR_NONE) {
        return err_set(err, cuda->err.code, "%s", cuda->err.msg);
    }
    *ret_times = (struct form_times){.plain_ns = ns[PLAIN], .fused_ns = ns[FUSED]};
    return 0;
}

/* ---- choosing ---- */

static bool find_kept_choice(struct cuda *cuda, struct said *said)
{
    struct plan_choice choice;
    if (!plan_book_find(&cuda->book, said->key, &choice)) {
        return false;
    }
    bool is_fused = strcmp(choice.plan, "fused") == 0;
    if (!is_fused && strcmp(choice.plan, "plain") != 0) {
        log_line(LOG_WARN, "plan cache: %s is neither fused nor plain; it is chosen again",
                 choice.plan);
        return false;
    }
    said->choice = is_fused ? FORM_FASTER : FORM_SLOWER;
    return true;
}

static void keep_choice(struct cuda *cuda, const struct said *said)
{
    bool is_fused = said->choice == FORM_FASTER;
    struct plan_choice choice = {.time_ns = is_fused ? said->times.fused_ns : said->times.plain_ns};
    (void)snprintf(choice.plan, sizeof(choice.plan), "%s", is_fused ? "fused" : "plain");
    plan_book_put(&cuda->book, said->key, &choice);
}

static int choose(struct cuda *cuda, const struct forms *forms, struct said *said, struct err *err)
{
    for (int i = 0; i < forms->fused.n_calls; i++) {
        if (!cuda_supports(cuda, &forms->fused.calls[i].args)) {
            said->choice = FORM_UNSUPPORTED;
            return 0;
        }
    }
    if (!cuda_is_tuned(cuda) || find_kept_choice(cuda, said) || !cuda_may_time(cuda)) {
        return 0;
    }
    struct race *race = xcalloc(1, sizeof(*race));
    *race = (struct race){.cuda = cuda, .forms = forms};
    race->lists[FUSED] = &forms->fused;
    race->lists[PLAIN] = &forms->plain;
    int status = time_lists(race, &said->times, err);
    free(race);
    if (status < 0) {
        return -1;
    }
    if (said->times.fused_ns > 0 && said->times.plain_ns > 0) { /* else memory was short */
        said->choice = said->times.fused_ns <= said->times.plain_ns ? FORM_FASTER : FORM_SLOWER;
        keep_choice(cuda, said);
    }
    return 0;
}

int cuda_compare(void *self, const struct forms *forms, enum form_choice *ret_choice,
                 struct form_times *ret_times, struct err *err)
{
    struct cuda *cuda = self;
    char key[PLAN_CALL_MAX];
    make_key(cuda, forms, key);
    struct said *said = cuda->forms->said;
    while (said && strcmp(said->key, key) != 0) {
        said = said->next;
    }
    if (!said) {
        said = xcalloc(1, sizeof(*said));
        memcpy(said->key, key, sizeof(key));
        said->choice = FORM_UNTIMED;
        if (choose(cuda, forms, said, err) < 0) {
            free(said);
            return -1;
        }
        said->next = cuda->forms->said;
        cuda->forms->said = said;
    }
    *ret_choice = said->choice;
    *ret_times = said->times;
    return 0;
}
