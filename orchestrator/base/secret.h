/* SPDX-License-Identifier: Apache-2.0 */
/* What looks like a secret, by its name or by its value: one filter at every door by which text leaves (-C, captured
   environment, argv of engines, URLs, messages). */
#pragma once

#include "base/str.h"

/* Either may be empty. Names: HF_TOKEN, MYSQL_PWD, API_CRED; values: tokens of known services, JWT, PEM, a URL with a login. */
bool secret_is(struct str name, struct str value);
/* The variable is a condition of a measurement (CUDA_*, NCCL_*, OMP_*, ...); children get these. */
bool secret_is_condition(struct str name);
/* And what is kept of the environment: conditions that look like no secret. */
bool secret_may_keep(struct str name, struct str value);
/* Each byte of a secret value in the text becomes "*": passwords in URLs, NAME=VALUE of such a name, tokens. */
void secret_hide(char *text, size_t len);
