/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * Whose socket sends a packet of the box. TCX egress only. Several sockets of UDP may share
 * a port, so the packet itself says which one has sent it. What the kernel answers for TCP
 * comes from a socket of its own: the connection's is looked up.
 */
#ifndef WEIR_PATH_SENDER_H
#define WEIR_PATH_SENDER_H

#include "path/owner.h"

#define SOCK_TYPE_DGRAM 2 /* SOCK_DGRAM */

struct net_device___weir {
	struct net_pointer nd_net;
} KERNEL_TYPE;

struct sk_buff___weir {
	struct net_device___weir *dev;
	struct sock___weir *sk;
} KERNEL_TYPE;

extern void *bpf_cast_to_kern_ctx(void *ctx) __ksym;

/*
 * Reads the owner of the socket that a packet of UDP carries. < 0: it does not show who
 * sends the packet. The socket may be of another namespace, whose macvlan or ipvlan is on
 * this device. Or a tunnel has wrapped the packet of the socket into another, which has
 * another port.
 */
static __always_inline int sender_read(struct __sk_buff *skb, struct scratch *s)
{
	const struct sk_buff___weir *kernel = bpf_cast_to_kern_ctx(skb);
	const struct net_device___weir *dev = kernel->dev;
	const struct sock___weir *sk = kernel->sk;

	if (!sk || !dev || sk->sk_type != SOCK_TYPE_DGRAM || sk->__sk_common.skc_num != bpf_ntohs(s->packet.tuple.sport) ||
	    sk->__sk_common.skc_net.net != dev->nd_net.net)
		return -1;
	owner_read(&s->owner, sk);
	return 0;
}

/* The program for what the box sends. */
static __always_inline int sender_out(struct __sk_buff *skb, void *tails)
{
	struct scratch *s = scratch_get();
	const struct interface *i;

	if (!s)
		return HOOK_DROP;
	if (owner_start(s) && !skb->ingress_ifindex && (s->packet.tuple.proto == IPPROTO_TCP || sender_read(skb, s)))
		owner_find(skb, s, 1);
	bpf_tail_call(skb, tails, TAIL_RULES);
	i = interface_get(s->packet.ifindex);
	return i ? count_verdict(i, REASON_INTERNAL, s->packet.length) : HOOK_DROP;
}

#endif
