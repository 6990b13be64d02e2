/* SPDX-License-Identifier: Apache-2.0 */
/* What the doctor found, for people and for programs. */
#pragma once

#include "fleet/doctor.h"

struct doctor_view {
    const struct inventory *inventory;
    const struct report *report; /* or NULL */
    const struct doctor_result *result;
    bool want_all; /* also passed checks */
    bool want_color;
};

void doctor_out_text(const struct doctor_view *view, struct strbuf *out);
/* manifests/schema/doctor-output.json */
void doctor_out_json(const struct doctor_view *view, struct strbuf *out);
