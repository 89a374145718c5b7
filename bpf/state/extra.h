/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * What only some states have. It is beside the states, so that these stay four cache lines.
 * Bits of state.entered say what of it is valid. All else is left
 * from another state that had the same index.
 */
#ifndef WEIR_STATE_EXTRA_H
#define WEIR_STATE_EXTRA_H

#include "state/state.h"

struct extra {
	/* By side, in and out: the interfaces that a bound side takes packets at, mostly
	 * the same one twice (state/bound.h). In extras[0] the first word is 1 as soon as states may be bound. */
	__u16 bound[2][2];
	__u8 tos[2]; /* the type of service that packets of each direction get */
	__u16 copy[2]; /* by side: the next hop of copies, with FLOW_COPIED */
	__u8 pad0[2];
};
_Static_assert(sizeof(struct extra) == 16, "an index into extras is a shift");

/* kept; by the state's index. mmapped by the daemon and by reading commands. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1); /* state_capacity + 1, by the loader */
	__type(key, __u32);
	__type(value, struct extra);
} extras SEC(".maps");

static __always_inline struct extra *extra_get(__u32 index)
{
	return bpf_map_lookup_elem(&extras, &index);
}

#endif
