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

/* Words of many lines in many logs, however rare their letters are; the commonest first. Where a fragment is among them, or -1. */
static int64_t common_at(const char *fragment)
{
    static const char WORDS[] =
        " - INFO - [INFO]: |DLL 20|ips: | samples/sec| images/sec|time: | loss: |_loss: | total|"
        "memory: |batch |train |Train: |[TRAIN] | step: | iter: |Iteration: | Iter: [| epoch: [|"
        " Epoch: [|";
    const char *hit = memmem(WORDS, sizeof(WORDS) - 1, fragment, RARITY_BYTES);
    return hit ? hit - WORDS : -1;
}

uint32_t rarity_common(struct str text, size_t *ret_offset)
{
    uint32_t least = UINT32_MAX;
    *ret_offset = 0;
    for (size_t at = 0; at + RARITY_BYTES <= text.len && at <= OFFSET_MAX; at++) {
        int64_t word = common_at(text.ptr + at);
        uint32_t product = word < 0 ? 1 : UINT32_MAX - (uint32_t)word;
        for (size_t idx = 0; word < 0 && idx < RARITY_BYTES; idx++) {
            product *= rarity_weight((unsigned char)text.ptr[at + idx]);
        }
        if (product < least) {
            least = product;
            *ret_offset = at;
        }
    }
    return least;
}
