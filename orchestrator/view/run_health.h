/* SPDX-License-Identifier: Apache-2.0 */
/* The nodes of a run with --each-node beside each other: what judge/health.h says of its cells, as text and JSON. */
#pragma once

#include "judge/health.h"
#include "view/page.h"
#include "view/run_view.h"

/* view->health of a run with --each-node, by the limits of that file, or (NULL) of the data folder; nothing of another run. */
MUST_CHECK int run_health_of(struct arena *arena, const char *root, const char *limits_path,
                             struct run_view *view, struct err *err);

/* 1 where there is an outlier, or something was not measured (its cause's status is that of the run). */
int run_health_status(const struct health *health);

/* ERR_NODE: the run was not of --each-node, or of another inventory, did not measure one of its nodes, could compare nothing of
   them, or there is a finding of one or of a pair of them. */
MUST_CHECK int run_health_admits(const struct run_view *view, const struct inventory *inventory,
                                 struct err *err);

void run_health_page(const struct health *health, struct page *page);
void run_health_text(const struct health *health, struct strbuf *out);
/* A member of the documents of compare and run: manifests/schema/health.json. */
/* Nothing where health is NULL. */
void run_health_encode(const struct health *health, const char *key, struct json_out *out);
