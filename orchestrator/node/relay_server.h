/* SPDX-License-Identifier: Apache-2.0 */
/* The relay on a node (`reperf-node relay WORK`), which stages files (fleet/stage.h): it reads on stdin what the node is to have, checks
   what exists, and receives the rest as a tar stream, from a TCP connection or on stdin, which it passes on to the next node while it
   writes (codec/relay.h).

     order --> look --> ready --> next, last: a connection with the token --+--> stream --> complete
                         (waits)  stream: stdin ----------------------------+

   Invariants: a file grows in ROOT/.reperf-partial/HEX and gets its name only when its digest is the order's; what a broken stream
   left there is continued by the next relay; one relay takes one stream, and ends when stdin does, because then the orchestrator is
   gone. Its stdout and its exit status say how it went. */
#ifndef NODE_RELAY_SERVER_H
#define NODE_RELAY_SERVER_H

int relay_main(const char *work_folder); /* the exit status */

#endif
