/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* The tuple by which the kernel knows the socket of a packet. */
#ifndef WEIR_PACKET_SOCKET_H
#define WEIR_PACKET_SOCKET_H

#include <linux/bpf.h>

#include "packet/packet.h"

/* Fills the tuple as the socket sees it: it is the destination. Returns its length. */
static __always_inline __u32 socket_tuple(struct bpf_sock_tuple *t, const struct packet *p, int out)
{
	const struct addr *remote = out ? &p->tuple.dst : &p->tuple.src;
	const struct addr *local = out ? &p->tuple.src : &p->tuple.dst;
	__be16 remote_port = out ? p->tuple.dport : p->tuple.sport;
	__be16 local_port = out ? p->tuple.sport : p->tuple.dport;

	if (p->family == 4) {
		t->ipv4.saddr = remote->word[3];
		t->ipv4.daddr = local->word[3];
		t->ipv4.sport = remote_port;
		t->ipv4.dport = local_port;
		return sizeof(t->ipv4);
	}
	__builtin_memcpy(t->ipv6.saddr, remote, sizeof(t->ipv6.saddr));
	__builtin_memcpy(t->ipv6.daddr, local, sizeof(t->ipv6.daddr));
	t->ipv6.sport = remote_port;
	t->ipv6.dport = local_port;
	return sizeof(t->ipv6);
}

/* Makes the tuple one that only a listening socket has, or one that is not connected. */
static __always_inline void socket_tuple_listening(struct bpf_sock_tuple *t, __u8 family)
{
	if (family == 4) {
		t->ipv4.saddr = 0;
		t->ipv4.sport = 0;
		return;
	}
	__builtin_memset(t->ipv6.saddr, 0, sizeof(t->ipv6.saddr));
	t->ipv6.sport = 0;
}

#endif
