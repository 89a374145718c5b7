/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * A note on an skb that one TCX program of weir's redirects to the next: at ingress to
 * the egress of another device, at egress to the ingress of the same. It lies in
 * skb->cb, which no driver or queue gets to see in between. Only weir knows the secret,
 * so nothing else can say that weir has judged a packet.
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
}

/* Whether the skb has been redirected to here. */
static __always_inline int note_is(const struct __sk_buff *skb)
{
	return skb->cb[0] == note_secret[0] && skb->cb[1] == note_secret[1] && skb->cb[2] == skb->ifindex;
}

/* The same, and takes the note away: a device that sends the skb on by another one
 * must not take it along. */
static __always_inline int note_take(struct __sk_buff *skb)
{
	if (!note_is(skb))
		return 0;
	skb->cb[0] = 0;
	skb->cb[1] = 0;
	return 1;
}

#endif
