/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * Whose socket a packet belongs to, for rules with user and group. As in pf
 * (pf_socket_lookup): the socket that sends the packet, or the one that it is for, a
 * connected one before a listening one. Packets that are forwarded belong to nobody.
 *
 * This needs the kernel's own types (BTF), whose fields are found when the program is
 * loaded. So it is a program of its own, in front of the one with the rules, and it is
 * loaded only if a rule asks.
 */
#ifndef WEIR_PATH_OWNER_H
#define WEIR_PATH_OWNER_H

#include <bpf/bpf_core_read.h>

#include "packet/socket.h"
#include "path/fast.h"
#include "rules/fact.h"

/* The fields of the kernel's types that are read here. */
#define KERNEL_TYPE __attribute__((preserve_access_index))

struct owner_id {
	__u32 val;
} KERNEL_TYPE;

struct inode___weir {
	struct owner_id i_gid;
} KERNEL_TYPE;

struct socket_alloc___weir { /* begins with the struct socket that sk_socket points to */
	struct inode___weir vfs_inode;
} KERNEL_TYPE;

struct net_pointer {
	void *net;
} KERNEL_TYPE;

struct sock_common___weir {
	struct net_pointer skc_net;
	__u16 skc_num; /* the local port, host order */
} KERNEL_TYPE;

struct sock___weir {
	struct sock_common___weir __sk_common;
	struct owner_id sk_uid;
	void *sk_socket; /* NULL: no program has it yet, or any more */
	__u16 sk_type;
} KERNEL_TYPE;

extern void *bpf_rdonly_cast(const void *object, __u32 type) __ksym;

#define owner_cast(object, type) ((const type *)bpf_rdonly_cast(object, bpf_core_type_id_kernel(type)))

/* Reads the owner of a socket: the user and group that the process which made it had for
 * files (its file system ids, which follow the effective ones). fchown() changes them.
 * Sockets of the kernel are root's. */
static __always_inline void owner_read(struct owner *o, const struct sock___weir *sk)
{
	void *socket = sk->sk_socket;

	o->user = sk->sk_uid.val;
	o->group = socket ? owner_cast(socket, struct socket_alloc___weir)->vfs_inode.i_gid.val : NOBODY;
}

/*
 * Looks up the socket of a packet in the namespace of its device. A connection of TCP that
 * is over (TIME_WAIT) has none: then it is the listening one. If no program has the
 * connection's socket, as before accept(), the group is that of the listening one, too.
 */
__noinline int owner_find(hook_ctx *ctx, struct scratch *s, int out)
{
	struct bpf_sock_tuple t = {};
	struct owner listening = {NOBODY, NOBODY};
	const struct packet *p;
	struct bpf_sock *sk;
	__u32 length;

	if (!s)
		return 0;
	p = &s->packet;
	length = socket_tuple(&t, p, out);
	if (p->tuple.proto == IPPROTO_TCP)
		sk = bpf_sk_lookup_tcp(ctx, &t, length, BPF_F_CURRENT_NETNS, 0);
	else
		sk = bpf_sk_lookup_udp(ctx, &t, length, BPF_F_CURRENT_NETNS, 0);
	if (sk) {
		owner_read(&s->owner, owner_cast(sk, struct sock___weir));
		bpf_sk_release(sk);
	}
	if (p->tuple.proto != IPPROTO_TCP || (s->owner.user != NOBODY && s->owner.group != NOBODY))
		return 0;
	socket_tuple_listening(&t, p->family);
	sk = bpf_sk_lookup_tcp(ctx, &t, length, BPF_F_CURRENT_NETNS, 0);
	if (!sk)
		return 0;
	owner_read(&listening, owner_cast(sk, struct sock___weir));
	bpf_sk_release(sk);
	if (s->owner.user == NOBODY)
		s->owner.user = listening.user;
	s->owner.group = listening.group;
	return 0;
}

/* Whether a packet has an owner to look up: it meets the rules, and has ports. Until then
 * it is nobody's. */
static __always_inline int owner_start(struct scratch *s)
{
	__u8 proto = s->packet.tuple.proto;

	s->owner = (struct owner){NOBODY, NOBODY};
	s->owned = 1;
	return (s->then == SLOW_END || s->then == SLOW_FRAGMENT) && (proto == IPPROTO_TCP || proto == IPPROTO_UDP);
}

/* Whether a packet that comes in is for the box. */
static __always_inline int owner_is_here(const struct packet *p)
{
	__u32 ifindex;

	return fact_is_own(&p->tuple.dst, &ifindex) || addr_is_limited_broadcast(&p->tuple.dst);
}

/* The program for what comes in. */
static __always_inline int owner_in(hook_ctx *ctx, void *tails)
{
	struct scratch *s = scratch_get();
	const struct interface *i;

	if (!s)
		return HOOK_DROP;
	if (owner_start(s) && owner_is_here(&s->packet))
		owner_find(ctx, s, 0);
	bpf_tail_call(ctx, tails, TAIL_RULES);
	i = interface_get(s->packet.ifindex);
	return i ? count_verdict(i, REASON_INTERNAL, s->packet.length) : HOOK_DROP;
}

#endif
