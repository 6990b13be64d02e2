/* SPDX-License-Identifier: Apache-2.0 */
/* Which bars and transfers are not of a training's steps. */
#include "base/base.h"

#include "draft/suggest.h"

#include "log/numbers.h"

#include <math.h>

#define TURNS_MAX 3 /* loops that take turns */
#define AGAIN_FAR                                                                                  \
    0.25 /* the last value of a bar is the mean of all, the one before it is smoothed */
#define TURNS_FEW    4   /* bars; with fewer, a first one may be slow by itself */
#define TURNS_FAR    1.1 /* the lowest of one loop over the highest of another */
#define TURNS_FAR_OF 2.0 /* with few */

/* Bars of what comes before the first step. Sources: the bars of huggingface_hub, datasets and transformers. */
static bool is_preparing(const struct survey_number *n)
{
    static const char *const WORDS[] = {
        "loading",    "fetching",   "downloading",  "download",      "extracting",   "map",
        "filter",     "tokenizer",  "num_proc",     "tokenizing",    "split",        "saving",
        "resolving",  "casting",    "creating",     "checksums",     "converting",   "convert",
        "filtering",  "scanning",   "caching",      "chunks",        "grouping",     "packing",
        "flattening", "preparing",  "prepare",      "preprocessing", "preprocess",   "building",
        "encoding",   "indexing",   "reading",      "parsing",       "copying",      "copy",
        "moving",     "unpacking",  "unzipping",    "decompressing", "collecting",   "installing",
        "uploading",  "upload",     "hashing",      "verifying",     "shuffling",    "cleaning",
        "sorting",    "counting",   "resizing",     "writing",       "transforming", "importing",
        "exporting",  "statistics", "vocab",        "vocabulary",    "features",     "shards",
        "files",      "tokenize",   "tokenization", "syncing",       "receiving",    NULL};
    int64_t end = str_find(n->example, STR_LIT("%"));
    struct str before =
        str_sub(n->example, 0, end > 0 ? (size_t)end : 0); /* "train: Scanning /d" */
    return survey_has_word(n->lead, WORDS) || survey_has_word(before, WORDS);
}

/* Examples a second, in a bar, are those of a data set's map; a bar without a length and without a word or a loss of a training may be
   of anything. */
static bool is_bar_of_data(const struct survey_number *n)
{
    static const char *const TRAINS[] = {"train", "training", "loss", "train_loss", "epoch", NULL};
    return n->is_bar && (str_starts(n->unit, STR_LIT("example")) ||
                         (n->is_open && !survey_has_word(n->example, TRAINS)));
}

/* Bytes on a line that says what is transferred. Sources: pip, curl, wget, apt, git. */
static bool is_transfer(const struct survey_number *n)
{
    static const char *const WORDS[] = {"eta",        "fetched",     "receiving", "saved",
                                        "downloaded", "downloading", "uploaded",  "uploading",
                                        "objects",    "wget",        NULL};
    return survey_has_word(n->example, WORDS);
}

bool suggest_is_preparing(const struct survey_number *n, bool is_of_bytes)
{
    return is_of_bytes ? n->is_bar || is_transfer(n) || is_preparing(n)
                       : n->is_bar && (is_preparing(n) || is_bar_of_data(n));
}

/* Of the bars that reached their end the next one; a bar that is drawn again there, at about the same value, is one. */
static const struct survey_point *next_full(const struct survey_number *n, size_t *at)
{
    const struct survey_point *found = NULL;
    for (; *at < n->n_points; (*at)++) {
        const struct survey_point *p = &n->points[*at];
        bool is_again =
            found && p->is_full && fabs(p->value - found->value) <= AGAIN_FAR * found->value;
        if (found && !is_again) {
            break;
        }
        found = p->is_full ? p : found;
    }
    return found;
}

/* The least and the most of every `of`-th bar, from each beginning. */
static bool differs(const struct survey_number *n, size_t of, bool may_again)
{
    double min[TURNS_MAX];
    double max[TURNS_MAX];
    size_t count = 0;
    const struct survey_point *p;
    for (size_t at = 0; at < n->n_points;) {
        p = may_again ? next_full(n, &at) : &n->points[at++];
        if (!p || !p->is_full) {
            continue;
        }
        size_t turn = count % of;
        min[turn] = count < of || p->value < min[turn] ? p->value : min[turn];
        max[turn] = count < of || p->value > max[turn] ? p->value : max[turn];
        count++;
    }
    double far = count < TURNS_FEW ? TURNS_FAR_OF : TURNS_FAR;
    bool is_enough = of == 2 ? count >= 2 : count >= 2 * of;
    for (size_t at = 0; is_enough && at < of * of; at++) {
        if (min[at / of] > far * max[at % of]) {
            return true;
        }
    }
    return false;
}

bool suggest_takes_turns(const struct survey_number *n)
{
    bool has_open = false;
    for (size_t idx = 0; idx < n->n_points; idx++) {
        has_open = has_open || (n->points[idx].total >= 0 && !n->points[idx].is_full);
    }
    for (size_t of = 2; n->is_bar && of <= TURNS_MAX; of++) {
        if (differs(n, of, has_open)) {
            return true;
        }
    }
    return false;
}
