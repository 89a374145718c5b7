/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* What a frame of a PPPoE session has in front of its packet. */
#ifndef WEIR_PACKET_PPPOE_H
#define WEIR_PACKET_PPPOE_H

#include <linux/if_ether.h>
#include <bpf/bpf_endian.h>

/* RFC 2516, 4: the header, and PPP's protocol field. */
struct session {
	__be16 kind; /* version and type, code */
	__be16 id;
	__be16 length; /* of what follows this field */
	__be16 proto;
};
#define PPPOE_LENGTH	  8
#define PPPOE_SESSION	  0x1100 /* version 1, type 1, code 0: session data */
#define PPP_IP		  0x0021
#define PPP_IPV6	  0x0057
#define PPP_LCP		  0xc021
#define PPPOE_PADT	  0x11a7 /* code 0xa7: the session is over (5.5) */
#define LCP_TERMINATE	  5	 /* RFC 1661, 5.5 */
#define LCP_TERMINATE_ACK 6
#define LCP_LEAST	  4	 /* bytes of a packet of LCP: code, id, length */
_Static_assert(sizeof(struct session) == PPPOE_LENGTH, "as in the frame");

/* Returns the EtherType of the packets of a PPP protocol; 0: it carries no IP. */
static __always_inline __be16 session_type(__be16 proto)
{
	if (proto == bpf_htons(PPP_IP))
		return bpf_htons(ETH_P_IP);
	return proto == bpf_htons(PPP_IPV6) ? bpf_htons(ETH_P_IPV6) : 0;
}

/* Returns the PPP protocol of packets of an EtherType; 0: of none. */
static __always_inline __be16 session_proto(__be16 type)
{
	if (type == bpf_htons(ETH_P_IP))
		return bpf_htons(PPP_IP);
	return type == bpf_htons(ETH_P_IPV6) ? bpf_htons(PPP_IPV6) : 0;
}

static __always_inline int mac_differs(const __u8 *a, const __u8 *b)
{
	int i, differs = 0;

	for (i = 0; i < ETH_ALEN; i++)
		differs |= a[i] ^ b[i];
	return differs;
}

#endif
