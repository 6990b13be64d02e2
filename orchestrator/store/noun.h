/* SPDX-License-Identifier: Apache-2.0 */
/* What a name on a command line of fetch, verify, lock or bundle stands for: a dataset, an image, a source, or a report, which is
   all that it needs. Prefixes `dataset:`, `image:`, `source:`, `report:` say which; without one the id is looked for among
   datasets, images and reports, and must be one of them only. `ID.synthetic` is the twin of dataset ID. `image:REFERENCE`
   is an image of any registry, by its whole name; `logs:REPORT` the source that a report's logs are in. */
#ifndef STORE_NOUN_H
#define STORE_NOUN_H

#include "report/report.h"

enum noun_kind { NOUN_DATASET, NOUN_IMAGE, NOUN_SOURCE, NOUN_REPORT };
#define NOUN_KINDS 4

struct noun {
    enum noun_kind kind;
    struct str name; /* id; of a source: URL@COMMIT, or URL@REF, which only lock can resolve */
    bool is_twin;    /* of a dataset: its synthetic twin */
};

struct nouns {
    struct noun *items; /* in the arena */
    size_t n;
};

const char *noun_kind_name(enum noun_kind kind);
/* "dataset:cityscapes"; a twin's name has its ".synthetic". */
char *noun_text(struct arena *arena, const struct noun *noun);

/* ERR_USAGE where the name is of no known thing, or of two. */
MUST_CHECK int noun_resolve(struct arena *arena, const char *root, const char *name,
                            struct noun *ret_noun, struct err *err);
/* What the stacks of a report need, each once: datasets, then images, then sources, by name. A dataset that is made up on the
   device, and a source without commit, branch and tag, are left out: nothing can be fetched. */
MUST_CHECK int noun_of_report(struct arena *arena, const char *root, const char *report,
                              struct nouns *ret_nouns, struct err *err);

#endif
