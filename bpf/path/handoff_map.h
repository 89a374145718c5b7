/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* The map of the records of hand-offs. The garbage collection includes it without using
 * it: its object is kept for each layout, and a downgrade makes that layout's maps from
 * it. */
#ifndef WEIR_PATH_HANDOFF_MAP_H
#define WEIR_PATH_HANDOFF_MAP_H

#include <bpf/bpf_helpers.h>

#include "config.h"
#include "packet/packet.h"

/* The records of packets that look the same in the stack (handoff.h), for example
 * connections from one port to several addresses that lead to one server. Each
 * connection has its own record. */
struct handoff {
	__u64 record[HANDOFF_RECORDS]; /* tick << 32 | HANDOFF_*; 0: free		*/
	__u32 fingerprint[HANDOFF_RECORDS];  /* of the last packet; see handoff_fingerprint()	*/
	__u32 qos[HANDOFF_RECORDS];    /* QOS_* of the last packet			*/
	struct out_mark out[HANDOFF_RECORDS]; /* of the last packet, if it has no state	*/
};

/* kept; records, by the packet's tuple in the stack. Late fragments have no ports, so the
 * key has their id. With other tables of states it starts empty, because records hold
 * numbers of states. That costs only packets on their way. */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 8192);
	__type(key, struct tuple);
	__type(value, struct handoff);
} handoffs SEC(".maps");

#endif
