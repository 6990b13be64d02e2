/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"

#include "prep/verb.h"

int verb_dataset(struct arena *arena, const char *path, struct dataset *ret_dataset,
                 struct err *err)
{
    CLEANUP(json_doc) struct json_doc doc = {0};
    if (!path) {
        return err_set(err, ERR_USAGE, "--dataset is needed: a dataset.json");
    }
    return json_read_file(path, &doc, err) < 0 ? -1
                                               : dataset_decode(&doc.root, arena, ret_dataset, err);
}
