/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * Fragments that come before their first one. A packet cannot wait inside a program, so the
 * frame goes to the daemon. It gives the frame back as soon as the first fragment has been
 * passed (internal/fw/daemon/fragment.go). Then it is a late fragment like any other.
 */
#ifndef WEIR_PATH_EARLY_FRAGMENT_H
#define WEIR_PATH_EARLY_FRAGMENT_H

#include "observe/record.h"
#include "packet/fragment.h"

#define EARLY_BYTES	 2048
#define EARLY_RING_BYTES (512 << 10)

struct early_fragment {
	__u32 ifindex; /* of the hook */
	__u32 length;  /* bytes of data */
	struct fragment_key key;
	__u8 data[EARLY_BYTES]; /* the frame as it came */
};
_Static_assert(__builtin_offsetof(struct early_fragment, data) == 48, "earlyHead of fragment.go");

/* kept; written by packets, read by the daemon. A full ring drops the fragment. */
struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, EARLY_RING_BYTES);
} early_fragments SEC(".maps");

/* Gives the frame to the daemon. Returns 0 if that cannot be done: no daemon waits for it,
 * the ring is full, the frame is too long, or it has no Ethernet header. */
__noinline int early_fragment_hold(hook_ctx *ctx, struct scratch *s)
{
	const struct interface *i;
	struct early_fragment *e;
	__u64 n;

	if (!s)
		return 0;
	i = interface_get(hook_ifindex(ctx));
	if (!(*(volatile __u32 *)&shared.recording & RECORDING_EARLY) || daemon_is_dead() || !i ||
	    i->flags & INTERFACE_L3 || hook_is_tagged(ctx))
		return 0;
	n = hook_length(ctx);
	if (!n || n > EARLY_BYTES)
		return 0;
	e = bpf_ringbuf_reserve(&early_fragments, sizeof(*e), 0);
	if (!e)
		return 0;
	e->ifindex = hook_ifindex(ctx);
	fragment_key_fill(&e->key, &s->packet);
	e->length = n;
	keep_bound(n);
	if (!n || n > EARLY_BYTES || hook_load(ctx, 0, e->data, n)) {
		bpf_ringbuf_discard(e, 0);
		return 0;
	}
	bpf_ringbuf_submit(e, 0);
	return 1;
}

#endif
