/* SPDX-License-Identifier: Apache-2.0 */
/* The doctor's scripts, for struct remote's exec; in the arena. */
#ifndef FLEET_DOCTOR_SCRIPT_H
#define FLEET_DOCTOR_SCRIPT_H

#include "base/strbuf.h"

const char *doctor_script_probe(struct arena *arena);
const char *doctor_script_listen(struct arena *arena);
const char *doctor_script_connect(struct arena *arena);

#endif
