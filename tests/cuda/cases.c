/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/cuda/cases.h"

bool held_case(struct held_call *call, enum kernel_id id, int idx)
{
    const struct held_cases *const families[] = {cases_image, cases_plane, cases_rows};
    for (size_t i = 0; i < ARRAY_LEN(families); i++) {
        if (idx < families[i][id].n) {
            call->args.id = id;
            families[i][id].make(call, idx);
            return true;
        }
    }
    return false;
}
