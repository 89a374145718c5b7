/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * A note on an skb that one of weir's TCX programs redirects to the next: from ingress
 * to the egress of another device, or from egress to the ingress of the same device. It
 * is in skb->cb, which no driver or queue sees in between. Only weir knows the secret,
 * so nothing else can claim that weir has handled a packet.
 */
#ifndef WEIR_HOOK_NOTE_H
#define WEIR_HOOK_NOTE_H

#include <linux/bpf.h>

#include "config.h"

static __always_inline void note_write(struct __sk_buff *skb, __u32 ifindex)
{
	skb->cb[0] = note_secret[0];
	skb->cb[1] = note_secret[1];
	skb->cb[2] = ifindex;
	if (skb->cb[3] != NOTE_PRIORITY)
		skb->cb[3] = 0;
}

/* In cb[3] of a note from TCX egress to TCX ingress, beside the number of the next hop that a rule
 * has chosen for the packet. cb[4] is the packet's priority, which the kernel forgets on that way. */
#define NOTE_NEXTHOP	    0x6e780000u
#define NOTE_NEXTHOP_NUMBER 0x0000ffffu

/* Returns the number of that next hop; 0: there is none. */
static __always_inline __u32 note_nexthop(const struct __sk_buff *skb)
{
	return (skb->cb[3] & ~NOTE_NEXTHOP_NUMBER) == NOTE_NEXTHOP ? skb->cb[3] & NOTE_NEXTHOP_NUMBER : 0;
}

/* Notes the packet's priority, for the program behind the veth pair of a PPPoE device. */
static __always_inline void note_priority(struct __sk_buff *skb)
{
	skb->cb[3] = NOTE_PRIORITY;
	skb->cb[4] = skb->priority;
}

/* Notes a next hop and the packet's priority there. */
static __always_inline void note_send(struct __sk_buff *skb, __u32 ifindex, __u32 nexthop, __u32 priority)
{
	note_write(skb, ifindex);
	skb->cb[3] = NOTE_NEXTHOP | (nexthop & NOTE_NEXTHOP_NUMBER);
	skb->cb[4] = priority;
}

/* In cb[3] of a note from TCX to TCX egress: the skb is a frame that an ether rule sends there as
 * it is. */
#define NOTE_BRIDGE 2

/* Whether weir has redirected the skb to here. */
static __always_inline int note_is(const struct __sk_buff *skb)
{
	return skb->cb[0] == note_secret[0] && skb->cb[1] == note_secret[1] && skb->cb[2] == skb->ifindex;
}

static __always_inline int note_is_bridge(const struct __sk_buff *skb)
{
	return note_is(skb) && skb->cb[3] == NOTE_BRIDGE;
}

/* The same, and removes the note: if a device sends the skb on by another one, the note
 * must not go with it. */
static __always_inline int note_take(struct __sk_buff *skb)
{
	if (!note_is(skb))
		return 0;
	skb->cb[0] = 0;
	skb->cb[1] = 0;
	return 1;
}

/* Notes the tag of a frame, which the kernel takes out before the hooks of the VLAN device run. */
static __always_inline void note_tag(struct __sk_buff *skb)
{
	skb->cb[0] = note_secret[0];
	skb->cb[1] = ~note_secret[1];
	skb->cb[2] = skb->vlan_tci;
}

/* Whether there is such a note; *tci is then the tag. */
static __always_inline int note_is_tag(const struct __sk_buff *skb, __u16 *tci)
{
	*tci = skb->cb[2];
	return skb->cb[0] == note_secret[0] && skb->cb[1] == (__u32)~note_secret[1];
}

#endif
