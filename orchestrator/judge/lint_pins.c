/* SPDX-License-Identifier: Apache-2.0 */
/* Images, sources, data and versions: what would be another thing tomorrow. */
#include "base/base.h"

#include "judge/lint_parts.h"

#define VERSION_PARTS 3

static void lint_image(struct lint *lint, const struct stack *s)
{
    if (s->image_tag.ptr && !s->image_digest.ptr) {
        lint_add(lint, "image-tag-mutable", s, ".image_digest",
                 "image %s is named by its tag, without a digest", s->image_tag.ptr);
    }
}

/* The first run of digits, dot, digits, dot, digits: "2.5.0" in "2.5.0-cuda11.2". */
static struct str version_in(struct str s)
{
    for (size_t from = 0; from < s.len; from++) {
        size_t at = from;
        int parts = 0;
        if (from > 0 &&
            ((s.ptr[from - 1] >= '0' && s.ptr[from - 1] <= '9') || s.ptr[from - 1] == '.')) {
            continue;
        }
        while (parts < VERSION_PARTS) {
            size_t digits = at;
            while (at < s.len && s.ptr[at] >= '0' && s.ptr[at] <= '9') {
                at++;
            }
            if (at == digits) {
                break;
            }
            parts++;
            if (parts < VERSION_PARTS) {
                if (at >= s.len || s.ptr[at] != '.') {
                    break;
                }
                at++;
            }
        }
        if (parts == VERSION_PARTS) {
            return str_sub(s, from, at - from);
        }
    }
    return STR_EMPTY;
}

static void lint_image_version(struct lint *lint, const struct stack *s)
{
    struct str stated = STR_EMPTY;
    int64_t colon = s->image_tag.ptr ? str_find(s->image_tag, STR_LIT(":")) : -1;
    struct str tag =
        colon >= 0 ? version_in(str_sub(s->image_tag, (size_t)colon + 1, SIZE_MAX)) : STR_EMPTY;
    struct str run;
    if (!tag.ptr || !stack_condition(s, "framework_version", &stated) || !stated.ptr) {
        return;
    }
    run = version_in(stated);
    if (run.ptr && stated.ptr == run.ptr && !str_eq(tag, run)) {
        lint_add(lint, "image-version-differs", s, ".image_tag",
                 "the image is tagged %.*s and the framework is stated to be %s", STR_ARG(tag),
                 stated.ptr);
    }
}

static bool is_page_url(struct str url)
{
    return str_find(url, STR_LIT("/tree/")) >= 0 || str_find(url, STR_LIT("/blob/")) >= 0;
}

static void lint_sources(struct lint *lint, const struct stack *s)
{
    for (size_t idx = 0; idx < s->n_sources; idx++) {
        const struct pin_source *source = &s->sources[idx];
        const char *place = arena_printf(lint->arena, ".sources[%zu]", idx);
        if (!source->commit.ptr) {
            lint_add(lint, "source-not-pinned", s, place, "%s is named by %s%s, without a commit",
                     source->repository.ptr,
                     source->ref.ptr ? "branch or tag " : "nothing but its URL",
                     source->ref.ptr ? source->ref.ptr : "");
        }
        if (source->printed_url.ptr && is_page_url(source->printed_url)) {
            lint_add(lint, "url-not-cloneable", s, place, "git cannot clone %s",
                     source->printed_url.ptr);
        }
    }
}

static void lint_version(struct lint *lint, const struct stack *s)
{
    static const char *const MOVING[] = {"develop", "master", "main", "nightly", "latest", NULL};
    struct str version = STR_EMPTY;
    struct str commit = STR_EMPTY;
    if (!stack_condition(s, "framework_version", &version) || !version.ptr ||
        (stack_condition(s, "framework_commit", &commit) && commit.ptr)) {
        return;
    }
    for (const char *const *name = MOVING; *name; name++) {
        if (str_eq_z(version, *name)) {
            lint_add(lint, "framework-version-moving", s, ".conditions.framework_version",
                     "the framework's version is stated as \"%s\", without a commit", version.ptr);
        }
    }
}

/* "1.8.3.post107" is CUDA 10, "2.5.0.post112" CUDA 11.2; "1.6.0+cu102" CUDA 10.2. Source: the frameworks' own naming of
   packages: PaddlePaddle before 2.0 counts the CUDA major and the cuDNN major, later CUDA's major and minor, as PyTorch. */
static bool wheel_cuda(struct str version, char *ret, size_t size)
{
    int64_t post = str_find(version, STR_LIT(".post"));
    int64_t cu = str_find(version, STR_LIT("+cu"));
    struct str digits = post >= 0 ? str_sub(version, (size_t)post + 5, SIZE_MAX)
                        : cu >= 0 ? str_sub(version, (size_t)cu + 3, SIZE_MAX)
                                  : STR_EMPTY;
    bool is_old = post >= 0 && (version.ptr[0] == '0' || version.ptr[0] == '1');
    for (size_t idx = 0; idx < digits.len; idx++) {
        if (digits.ptr[idx] < '0' || digits.ptr[idx] > '9') {
            return false;
        }
    }
    if (digits.len != 3) {
        return false;
    }
    snprintf(ret, size, "%.2s.%c", digits.ptr, is_old ? '0' : digits.ptr[2]);
    return true;
}

static void lint_wheel(struct lint *lint, const struct stack *s)
{
    char built[16];
    for (size_t idx = 0; idx < lint->report->n_cases; idx++) {
        const struct report_case *c = &lint->report->cases[idx];
        struct str version = STR_EMPTY;
        struct str cuda = STR_EMPTY;
        if (c->stack != s || !case_condition(c, "framework_version", &version) || !version.ptr ||
            !case_condition(c, "cuda", &cuda) || !cuda.ptr ||
            !wheel_cuda(version, built, sizeof(built))) {
            continue;
        }
        if (!str_starts(cuda, str_of(built))) {
            lint_add(lint, "cuda-of-wheel-differs", s, ".conditions.framework_version",
                     "package %s is built for CUDA %s, and CUDA %s is stated", version.ptr, built,
                     cuda.ptr);
        }
    }
}

static bool mentions_checksum(struct str text)
{
    return str_find(text, STR_LIT("md5sum")) >= 0 || str_find(text, STR_LIT("sha1sum")) >= 0 ||
           str_find(text, STR_LIT("sha256sum")) >= 0 || str_find(text, STR_LIT("sha512sum")) >= 0;
}

static void lint_data(struct lint *lint, const struct stack *s)
{
    if (!s->dataset.ptr) {
        return;
    }
    for (size_t idx = 0; idx < s->n_commands; idx++) {
        if (s->commands[idx].printed.ptr && mentions_checksum(s->commands[idx].printed)) {
            return;
        }
    }
    lint_add(lint, "dataset-no-checksum", s, ".dataset",
             "data set %s is used, and no printed command checks it", s->dataset.ptr);
}

void lint_pins(struct lint *lint)
{
    for (size_t idx = 0; idx < lint->report->n_stacks; idx++) {
        const struct stack *s = &lint->report->stacks[idx];
        if (!stack_has_cells(lint->report, s)) {
            continue;
        }
        lint_image(lint, s);
        lint_image_version(lint, s);
        lint_sources(lint, s);
        lint_version(lint, s);
        lint_wheel(lint, s);
        lint_data(lint, s);
    }
}
