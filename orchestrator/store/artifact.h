/* SPDX-License-Identifier: Apache-2.0 */
/* What a name on a command line of fetch, verify, lock or bundle stands for: a dataset, an image, a source, or a report,
   meaning everything it needs. Prefixes `dataset:`, `image:`, `source:`, `report:` say which; without one the id is looked
   for among datasets, images and reports, and must be one of them only. `ID.synthetic` is the synthetic form of dataset ID.
   `image:REFERENCE` is an image of any registry, by its whole name; `logs:REPORT` the source that a report's logs are in. */
#pragma once

#include "base/opt.h"
#include "report/report.h"

enum artifact_kind { ARTIFACT_DATASET, ARTIFACT_IMAGE, ARTIFACT_SOURCE, ARTIFACT_REPORT };
#define ARTIFACT_KINDS 4

struct artifact {
    enum artifact_kind kind;
    /* The id; a source has URL@COMMIT, or URL@REF, which only lock can resolve, and a part of one :PATH,PATH behind it. */
    struct str name;
    bool is_synthetic; /* the synthetic version of a dataset */
};

struct artifacts {
    struct artifact *items; /* in the arena */
    size_t n;
};

extern const char *const ARTIFACT_KIND_NAMES[ARTIFACT_REPORT + 1];
/* "dataset:cityscapes"; a synthetic dataset's name has its ".synthetic". */
char *artifact_text(struct arena *arena, const struct artifact *artifact);

/* ERR_USAGE if the name is unknown or ambiguous. */
MUST_CHECK int artifact_resolve(struct arena *arena, const char *root, const char *name,
                                struct artifact *ret_artifact, struct err *err);
/* What names stand for, each once. For a report that is what its stacks need: datasets, then images, then sources, by name.
   Datasets generated on the device, and sources without commit, branch or tag, are left out: they cannot be fetched.
   is_synthetic: the datasets' synthetic versions, but of what a rehearsal takes as it is; ERR_USAGE for a name that can have
   none. */
MUST_CHECK int artifacts_of(struct arena *arena, const char *root, const struct opt_list *names,
                            bool is_synthetic, struct artifacts *ret_artifacts, struct err *err);
