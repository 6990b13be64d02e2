/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"

#include "models/model.h"

static const struct model *const MODELS[] = {
    &model_resnet50,  &model_hrnet_w18, &model_deeplabv3p, &model_deeplabv3p_mmseg,
    &model_bert_base, &model_bert_tiny, &model_bert_nano};

const struct model *model_at(int idx)
{
    return idx < (int)ARRAY_LEN(MODELS) ? MODELS[idx] : NULL;
}

const struct model *model_find(const char *name)
{
    for (size_t i = 0; i < ARRAY_LEN(MODELS); i++) {
        if (strcmp(MODELS[i]->name, name) == 0) {
            return MODELS[i];
        }
    }
    return NULL;
}
