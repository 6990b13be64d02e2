/* SPDX-License-Identifier: Apache-2.0 */
/* TensorBoard's event files: their scalars as JSON lines, one for each step: {"step":10,"time":1700000000.5,"loss":2.5}.
   Everything else in them is passed over. Pure. */
#pragma once

#include "base/strbuf.h"

bool tf_events_is(struct str file);
/* ERR_INTEGRITY with the record and its byte if a checksum is wrong, ERR_PARSE if a record is not well formed. A file that ends
   in the midst of a record ends in the midst of a line. */
MUST_CHECK int tf_events_read(struct str file, struct strbuf *out, struct err *err);
