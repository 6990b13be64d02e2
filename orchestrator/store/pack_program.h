/* SPDX-License-Identifier: Apache-2.0 */
/* reperf-pack, the program next to this one that knows JPEG, PNG and HDF5: started, its stderr relayed, ended with us. */
#ifndef STORE_PACK_PROGRAM_H
#define STORE_PACK_PROGRAM_H

#include "net/net_session.h"
#include "store/store.h"

#define PACK_PROGRAM "reperf-pack"

/* $REPERF_PACK, else reperf-pack next to the program `self`; ERR_WORKLOAD where there is none. */
MUST_CHECK int pack_program_find(struct arena *arena, const char *self, const char **ret_path,
                                 struct err *err);
/* argv[0] from pack_program_find, ended by NULL. Its stdout goes to out. A failure carries its own last line and its status. */
MUST_CHECK int pack_program_run(struct arena *arena, const struct store *store,
                                const struct net_opts *net, const char *const *argv,
                                struct strbuf *out, struct err *err);

#endif
