/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * divert-to: a packet is given to a socket of the box, with the destination that it has.
 * As with the kernel's TPROXY, a connection's own socket comes first, then the one that
 * the rule names: for TCP the listening one, which takes SYNs and the end of the
 * handshake. No other service of the box gets such a packet. Replies to a socket with
 * divert-reply have only the connection's own.
 *
 * The kernel delivers only what its routes say is the box's: a routing rule of the daemon
 * says so for MARK_DIVERT. Sockets can only be assigned at TCX ingress.
 */
#ifndef WEIR_PATH_DIVERT_H
#define WEIR_PATH_DIVERT_H

#include "rules/ruleset.h"
#include "rules/pool.h"
#include "packet/socket.h"
#include "state/lookup.h"

#if HOOK_IS_XDP
/* TCX ingress of the same device does it. */
static __always_inline enum reason divert_assign(hook_ctx *ctx, const struct packet *p, __u32 number)
{
	(void)ctx;
	(void)p;
	(void)number;
	return UNDECIDED;
}
#else

/* Returns the socket that the rule of a state names: its address, with the port for
 * ifindex. NULL: the rule is not in force any more. */
static __always_inline const struct pool_address *divert_target(const struct state *st, __u8 family)
{
	__u32 index = st->rule_in - 1 - rule_base;
	const struct rule *r = st->rule_in ? bpf_map_lookup_elem(&rules, &index) : 0;
	const struct pool *pool;
	__u64 rows;

	if (!r || r->route != ROUTES_DIVERT)
		return 0;
	index = r->route_pool;
	pool = bpf_map_lookup_elem(&pools, &index);
	if (!pool)
		return 0;
	rows = family == 6 ? pool->rows6 : pool->rows4;
	index = (__u32)rows;
	return rows >> 32 ? bpf_map_lookup_elem(&pool_addresses, &index) : 0;
}

/* Makes the tuple that of the socket which a rule names. Without an address it is any
 * socket with the port that takes the packet's destination. */
static __always_inline void divert_tuple(struct bpf_sock_tuple *t, const struct pool_address *to, __u8 family)
{
	socket_tuple_listening(t, family);
	if (family == 4) {
		if (to->first.word[3])
			t->ipv4.daddr = to->first.word[3];
		t->ipv4.dport = bpf_htons(to->ifindex);
		return;
	}
	if (to->first.word[0] | to->first.word[1] | to->first.word[2] | to->first.word[3])
		__builtin_memcpy(t->ipv6.daddr, &to->first, sizeof(t->ipv6.daddr));
	t->ipv6.dport = bpf_htons(to->ifindex);
}

/* Gives a packet of TCP to a socket. 0: done; < 0: there is none. own: only the
 * connection's own. */
static __always_inline int divert_tcp(hook_ctx *ctx, struct bpf_sock_tuple *t, __u32 length, int own, int syn)
{
	struct bpf_sock *sk = bpf_skc_lookup_tcp(ctx, t, length, BPF_F_CURRENT_NETNS, 0);
	long rc = -1;

	if (!sk)
		return -1;
	if (own ? sk->state != BPF_TCP_LISTEN && !(syn && sk->state == BPF_TCP_TIME_WAIT) : sk->state == BPF_TCP_LISTEN)
		rc = bpf_sk_assign(ctx, sk, 0);
	bpf_sk_release(sk);
	return rc ? -1 : 0;
}

/* The same for UDP. */
static __always_inline int divert_udp(hook_ctx *ctx, struct bpf_sock_tuple *t, __u32 length, int own)
{
	struct bpf_sock *sk = bpf_sk_lookup_udp(ctx, t, length, BPF_F_CURRENT_NETNS, 0);
	long rc = -1;

	if (!sk)
		return -1;
	if (!own || sk->state == BPF_TCP_ESTABLISHED) /* connected */
		rc = bpf_sk_assign(ctx, sk, 0);
	bpf_sk_release(sk);
	return rc ? -1 : 0;
}

/* Gives a packet of a state, by its number, to its socket. UNDECIDED: done. */
__noinline enum reason divert_assign(hook_ctx *ctx, const struct packet *p, __u32 number)
{
	struct bpf_sock_tuple t = {};
	const struct pool_address *to;
	struct state *st;
	__u32 length;
	int tcp, syn;

	if (!p)
		return REASON_INTERNAL;
	st = state_get(STATE_INDEX(number));
	if (!st)
		return REASON_INTERNAL;
	tcp = p->tuple.proto == IPPROTO_TCP;
	syn = tcp && p->tcp_flags & TCP_SYN;
	length = socket_tuple(&t, p, 0);
	if (!(tcp ? divert_tcp(ctx, &t, length, 1, syn) : divert_udp(ctx, &t, length, 1)))
		return UNDECIDED;
	if (STATE_DIRECTION(number)) /* divert-reply */
		return REASON_DIVERT;
	to = divert_target(st, p->family);
	if (!to) {
		if (syn || !tcp)
			state_kill(st, STATE_INDEX(number)); /* the next one meets the rules in force */
		return REASON_DIVERT;
	}
	divert_tuple(&t, to, p->family);
	return (tcp ? divert_tcp(ctx, &t, length, 0, syn) : divert_udp(ctx, &t, length, 0)) ? REASON_DIVERT : UNDECIDED;
}
#endif

#endif
