/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* IPv6 extension headers (RFC 8200, 4): the walk through their chain. */
#ifndef WEIR_PACKET_EXTENSION_H
#define WEIR_PACKET_EXTENSION_H

#include <linux/in.h>

#include "packet/packet.h"
#include "observe/reason.h"
#include "verifier.h"

#define NEXT_HOP_BY_HOP	 0
#define NEXT_ROUTING	 43
#define NEXT_FRAGMENT	 44
#define NEXT_AUTH	 51
#define NEXT_DESTINATION 60

static __always_inline int extension_is(__u8 next)
{
	return next == NEXT_HOP_BY_HOP || next == NEXT_ROUTING || next == NEXT_FRAGMENT ||
	       next == NEXT_AUTH || next == NEXT_DESTINATION;
}

/* A walk through a chain of extension headers: first where it begins, afterwards where
 * it ended. */
struct extension_chain {
	__u32 offset; /* of the first header from the frame's start; afterwards behind the last */
	__u32 length; /* bytes from there to the packet's end; afterwards what is left */
	__u8 next;    /* its kind; afterwards the protocol behind the chain */
	__u8 flags;   /* PACKET_* to add					*/
	__u8 fragment; /* enum fragment						*/
	__u8 more;
	__u16 fragment_offset;
	__u16 fragment_length;
	__u32 fragment_id;
};

struct extension {
	__u8 next;
	__u8 length;
	__be16 fragment; /* in a routing header: its type and segments left */
	__be32 id;
};

/* Returns the size of a header of this kind, from its length field. */
static __always_inline __u32 extension_size(__u8 kind, __u8 length)
{
	if (kind == NEXT_FRAGMENT)
		return sizeof(struct extension);
	return kind == NEXT_AUTH ? (length + 2) * 4 : (length + 1) * 8;
}

/* Reads the fragment header. UNDECIDED, or why the packet is dropped. */
static __always_inline enum reason extension_fragment(struct extension_chain *e, const struct extension *x)
{
	__u16 fragment = bpf_ntohs(x->fragment);
	__u32 payload = e->length - sizeof(*x);

	if (e->flags & PACKET_FRAGMENT_HEADER)
		return REASON_MALFORMED;
	e->flags |= PACKET_FRAGMENT_HEADER;
	if (!(fragment & ~6))
		return UNDECIDED; /* atomic (RFC 6946) */
	e->more = fragment & 1;
	e->fragment_offset = fragment & ~7;
	e->fragment_length = payload;
	e->fragment_id = x->id;
	e->fragment = e->fragment_offset ? FRAGMENT_LATER : FRAGMENT_FIRST;
	if ((e->more && payload & 7) || e->fragment_offset + payload > 65535)
		return REASON_MALFORMED;
	return UNDECIDED;
}

/* Reads one header of the chain; i is its position. */
__noinline enum reason extension_step(struct extension_chain *e, const struct extension *x, int i)
{
	enum reason r;
	__u32 size;

	if (!e || !x)
		return REASON_INTERNAL;
	size = extension_size(e->next, x->length);
	switch (reread(e->next)) {
	case NEXT_HOP_BY_HOP:
		if (i)
			return REASON_MALFORMED;
		e->flags |= PACKET_OPTIONS;
		break;
	case NEXT_DESTINATION:
		e->flags |= PACKET_OPTIONS;
		break;
	case NEXT_ROUTING:
		if (!(bpf_ntohs(x->fragment) >> 8))
			return REASON_ROUTING_HEADER;
		break;
	case NEXT_FRAGMENT:
		r = extension_fragment(e, x);
		if (r != UNDECIDED)
			return r;
		break;
	}
	if (size > e->length)
		return e->fragment == FRAGMENT_FIRST ? REASON_FRAGMENT_SHORT : REASON_SHORT;
	e->next = x->next;
	e->offset += size;
	e->length -= size;
	return UNDECIDED;
}

/* Walks the chain (RFC 8200, 4). It is verified apart from its callers, and pointers
 * into the frame do not cross this boundary: so headers are copied. */
__noinline enum reason extension_walk(hook_ctx *ctx, struct extension_chain *e)
{
	struct extension x;
	enum reason r;
	__u32 start;
	int i;

	if (!e)
		return REASON_INTERNAL;
	start = e->offset;
	for (i = 0; i < IPV6_EXT_MAX_CHAIN; i++) {
		if (!extension_is(e->next) || e->fragment == FRAGMENT_LATER)
			break;
		if (e->length < sizeof(x) || hook_load(ctx, e->offset, &x, sizeof(x)))
			return e->fragment == FRAGMENT_FIRST ? REASON_FRAGMENT_SHORT : REASON_SHORT;
		r = extension_step(e, &x, i);
		if (r != UNDECIDED)
			return r;
		if (e->offset - start > IPV6_EXT_MAX_BYTES)
			return REASON_EXTENSION_CHAIN;
	}
	if (e->fragment != FRAGMENT_LATER && extension_is(e->next))
		return REASON_EXTENSION_CHAIN;
	return UNDECIDED;
}

/*
 * Goes behind the chain of a packet that is not filtered here: one that an ICMP error
 * quotes, or one that a capture filter looks at. e->fragment becomes FRAGMENT_LATER where
 * nothing of L4 follows. Returns < 0 where the chain is longer than limit, or than the
 * packet; e stands at its last readable header then.
 */
__noinline int extension_skip(hook_ctx *ctx, struct extension_chain *e, __u32 limit)
{
	struct extension x;
	__u32 start, size;
	int i;

	if (!e)
		return -1;
	start = e->offset;
	for (i = 0; i < IPV6_EXT_MAX_CHAIN && extension_is(e->next); i++) {
		if (e->offset - start > limit || e->length < sizeof(x) || hook_load(ctx, e->offset, &x, sizeof(x)))
			return -1;
		size = extension_size(e->next, x.length);
		if (e->next == NEXT_FRAGMENT && x.fragment & bpf_htons(0xfff8))
			e->fragment = FRAGMENT_LATER;
		e->next = x.next;
		if (e->fragment == FRAGMENT_LATER)
			return 0;
		e->offset += size;
		e->length = size < e->length ? e->length - size : 0;
	}
	return 0;
}

#endif
