/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* The frames by which a concentrator ends a session, for TCX. */
#ifndef WEIR_PACKET_PPPOE_END_H
#define WEIR_PACKET_PPPOE_END_H

#include <linux/bpf.h>
#include <linux/if_ether.h>
#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>

#include "packet/pppoe.h"

/* A frame of either type of PPPoE, up to what its length counts. */
struct pppoe_head {
	struct ethhdr eth;
	__be16 kind;
	__be16 id;
	__be16 length;
};

/* An LCP packet of a session, up to its data. */
struct pppoe_lcp {
	struct pppoe_head head;
	__be16 proto;
	__u8 code, id;
	__be16 length; /* from code on */
};
_Static_assert(sizeof(struct pppoe_head) == 20 && sizeof(struct pppoe_lcp) == 26, "as in the frame");

enum pppoe_end {
	PPPOE_ENDS_NOTHING,
	PPPOE_ENDS_PADT,      /* a PADT				*/
	PPPOE_ENDS_TERMINATE, /* an LCP Terminate-Request	*/
	PPPOE_ENDS,
};

/* Returns what a frame ends its session by, if its lengths agree. Whose session that is, the caller
 * looks at. A frame may have padding. */
static __always_inline enum pppoe_end pppoe_ends(struct __sk_buff *skb, struct pppoe_lcp *l)
{
	int control = skb->protocol == bpf_htons(ETH_P_PPP_SES);
	__u32 length;

	if (!control && skb->protocol != bpf_htons(ETH_P_PPP_DISC))
		return PPPOE_ENDS_NOTHING;
	if (bpf_skb_load_bytes(skb, 0, &l->head, sizeof(l->head)))
		return PPPOE_ENDS_NOTHING;
	length = bpf_ntohs(l->head.length);
	if (!l->head.id || skb->len < sizeof(l->head) + length)
		return PPPOE_ENDS_NOTHING;
	if (!control)
		return l->head.kind == bpf_htons(PPPOE_PADT) ? PPPOE_ENDS_PADT : PPPOE_ENDS_NOTHING;
	if (l->head.kind != bpf_htons(PPPOE_SESSION) || bpf_skb_load_bytes(skb, 0, l, sizeof(*l)) ||
	    l->proto != bpf_htons(PPP_LCP) || l->code != LCP_TERMINATE || bpf_ntohs(l->length) < LCP_LEAST ||
	    bpf_ntohs(l->length) + sizeof(l->proto) != length)
		return PPPOE_ENDS_NOTHING;
	return PPPOE_ENDS_TERMINATE;
}

#endif
