/* SPDX-License-Identifier: Apache-2.0 */
/* Words of a row's machine against those of a log's path. */
#include "unit.h"

#include "judge/identity.h"

TEST(a_path_names_the_machine_or_another_or_none)
{
    static const struct {
        const char *machine, *path;
        enum identity_state wanted;
    } ROWS[] = {
        {"1CC H100 80GB SXM5", "results/1cc_H100_80GB_SXM5_v1/resnet50/a.txt", ID_PROVEN},
        {"SMC H100 80GB SXM5", "results/1cc_H100_80GB_SXM5_v1/resnet50/a.txt", ID_CONTRADICTED},
        {"1CC H100", "results/smc_A100/a.txt",
         ID_UNPROVEN}, /* no part of it speaks of this machine */
        {"8x NVIDIA V100 32GB", "logs/resnet50_v100_fp32_bs96/gpu8.log", ID_PROVEN},
        {"DGX V100", "logs/resnet50_v100_fp32_bs96/gpu8.log",
         ID_UNPROVEN}, /* of the model, not of a machine */
        {"Lambda Cloud - RTX A6000", "tower-A6000/resnet50.log", ID_CONTRADICTED},
        {"RTX 4090", "logs/run1.log", ID_UNPROVEN},
        {"", "logs/run1.log", ID_UNPROVEN},
    };
    for (size_t idx = 0; idx < ARRAY_LEN(ROWS); idx++) {
        const struct identity_machine_words row = {str_of(ROWS[idx].machine), STR_LIT("resnet50"),
                                                   STR_LIT("pytorch")};
        if (identity_machine(&row, str_of(ROWS[idx].path)) != ROWS[idx].wanted) {
            fail_msg("%s, %s", ROWS[idx].machine, ROWS[idx].path);
        }
    }
}
