/* SPDX-License-Identifier: Apache-2.0 */
/* Which bars and transfers are not of a training's steps. */
#include "base/base.h"

#include "draft/suggest.h"

#include "log/numbers.h"

/* Bars of what comes before the first step. Sources: the bars of huggingface_hub, datasets and transformers. */
static bool is_preparing(const struct survey_number *n)
{
    static const char WORDS[] =
        "loading fetching downloading download extracting map filter tokenizer num_proc tokenizing "
        "split saving resolving casting creating checksums converting convert filtering scanning "
        "caching chunks grouping packing flattening preparing prepare preprocessing preprocess "
        "building encoding indexing reading parsing copying copy moving unpacking unzipping "
        "decompressing collecting installing uploading upload hashing verifying shuffling cleaning "
        "sorting counting resizing writing transforming importing exporting statistics vocab "
        "vocabulary features shards files tokenize tokenization syncing receiving";
    int64_t end = str_find(n->example, STR_LIT("%"));
    struct str before =
        str_sub(n->example, 0, end > 0 ? (size_t)end : 0); /* "train: Scanning /d" */
    return survey_has_word(n->lead, WORDS) || survey_has_word(before, WORDS);
}

/* Examples a second, in a bar, are those of a data set's map; a bar without a length and without a word or a loss of a training may be
   of anything. */
static bool is_bar_of_data(const struct survey_number *n)
{
    return n->is_bar &&
           (str_starts(n->unit, STR_LIT("example")) ||
            (n->is_open && !survey_has_word(n->example, "train training loss train_loss epoch")));
}

/* Bytes on a line that says what is transferred. Sources: pip, curl, wget, apt, git. */
static bool is_transfer(const struct survey_number *n)
{
    static const char WORDS[] =
        "eta fetched receiving saved downloaded downloading uploaded uploading objects wget";
    return survey_has_word(n->example, WORDS);
}

bool suggest_is_preparing(const struct survey_number *n, bool is_of_bytes)
{
    return is_of_bytes ? n->is_bar || is_transfer(n) || is_preparing(n)
                       : n->is_bar && (is_preparing(n) || is_bar_of_data(n));
}
