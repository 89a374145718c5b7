/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* The end of a PPPoE session, at TCX ingress of its carrier. */
#ifndef WEIR_PATH_SESSION_END_H
#define WEIR_PATH_SESSION_END_H

#include "packet/logical.h"
#include "packet/pppoe_end.h"

/* Closes the session for XDP that a frame ends. A global function: the verifier follows it once. */
__noinline int session_end(struct __sk_buff *skb)
{
	struct pppoe_lcp l;
	__u32 ifindex;

	if (pppoe_ends(skb, &l) == PPPOE_ENDS_NOTHING)
		return 0;
	ifindex = logical_find(hook_ifindex(skb), bpf_htons(ETH_P_PPP_SES), bpf_ntohs(l.head.id));
	if (ifindex && logical_is_from(&l.head.eth, ifindex) &&
	    !mac_differs(l.head.eth.h_dest, shared.interfaces[ifindex & (MAX_IFINDEX - 1)].mac))
		logical_close(ifindex);
	return 0;
}

#endif
