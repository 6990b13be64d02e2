/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"

#include "base/rarity.h"

#define OFFSET_MAX 255

/* Bytes in a thousand of logs, roughly. Source: the published logs, each counted alike; read 2026-11-26. */
uint32_t rarity_weight(unsigned char c)
{
    static const char COMMON[] = " 0e:ts12oarin.lcp3-46,d587/_9mu'hbg]fIy[vwLDN)=(<T|kFSM>P";
    const char *hit = c ? strchr(COMMON, c) : NULL;
    size_t rank = hit ? (size_t)(hit - COMMON) : sizeof(COMMON);
    return rank < 1    ? 138
           : rank < 9  ? 40
           : rank < 20 ? 22
           : rank < 32 ? 13
           : rank < 43 ? 5
           : hit       ? 3
                       : 1;
}

/* Whether it stands in many lines of many logs, however rare its letters are. */
static bool is_common(const char *fragment)
{
    static const char WORDS[] =
        " - INFO - [INFO]: |DLL 20| Epoch: [|, epoch: [| Iter: [|, iter: |Iteration: | step: |"
        "train |Train: |[TRAIN] | loss: |_loss: |time: |ips: | samples/sec| images/sec| total| "
        "memory: "
        "|batch ";
    return memmem(WORDS, sizeof(WORDS) - 1, fragment, RARITY_BYTES) != NULL;
}

uint32_t rarity_common(struct str text, size_t *ret_offset)
{
    uint32_t least = UINT32_MAX;
    *ret_offset = 0;
    for (size_t at = 0; at + RARITY_BYTES <= text.len && at <= OFFSET_MAX; at++) {
        uint32_t product = is_common(text.ptr + at) ? UINT32_MAX : 1;
        for (size_t idx = 0; product < UINT32_MAX && idx < RARITY_BYTES; idx++) {
            product *= rarity_weight((unsigned char)text.ptr[at + idx]);
        }
        if (product < least) {
            least = product;
            *ret_offset = at;
        }
    }
    return least;
}
