/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * Packets that meet the queues of an interface: those that come in, before they are sent on
 * or given to the box, and those that leave, as the last step. docs/packet-path.md, 23.
 *
 * Cost when no interface has queues: none (queues). Else one read of queue_data.places.
 */
#ifndef WEIR_PATH_QUEUE_PACKET_H
#define WEIR_PATH_QUEUE_PACKET_H

#include "packet/csum.h"
#include "packet/packet.h"
#include "path/qos.h"
#include "path/queue_loss.h"
#include "path/scratch.h"
#include "state/state.h"

#define IP_CE 3 /* in the bits of congestion (RFC 3168) */

/* Whether an address is one of a site, not of the Internet (RFC 1918, 6598, 3927, 4193). */
static __always_inline int queue_is_private(const struct addr *a)
{
	__u32 v4 = addr_v4(a);

	if (addr_is4(a))
		return v4 >> 24 == 10 || v4 >> 20 == 0xac1 || v4 >> 16 == 0xc0a8 || v4 >> 22 == 0x191 || v4 >> 16 == 0xa9fe;
	return (a->word[0] & bpf_htonl(0xfe000000)) == bpf_htonl(0xfc000000) || addr_is_link_local(a);
}

/* Whether the first of a packet's two ends is the host. in: it came in at the interface with
 * the queue. */
static __always_inline int queue_is_first(const struct addr *first, const struct addr *second, int first_sends, int in)
{
	int a = queue_is_private(first), b = queue_is_private(second);

	return a != b ? a : first_sends != in;
}

/*
 * The host is the end that has an address of a site. If both have, or none, it is the end that
 * translation hides, or else the one that is not behind the interface.
 */
static __u64 queue_find_host(const struct queue_ask *a, const void *packet)
{
	const struct packet *p = packet;
	__u32 shaper = a->shaper;
	const struct queue_shaper *sh = queue_shaper_get(shaper);
	const struct addr *client, *server, *host;
	const struct state *st;
	int first, in = sh->in;

	if (!p)
		return 0;
	st = a->hashed ? 0 : state_get(STATE_INDEX(a->flow));
	if (!st) {
		first = queue_is_first(&p->tuple.src, &p->tuple.dst, 1, in);
		host = first ? &p->tuple.src : &p->tuple.dst;
	} else {
		client = &st->forth.tuple.src;
		server = &st->back.tuple.src;
		first = queue_is_first(client, server, !STATE_DIRECTION(a->flow), in);
		if (st->flags & STATE_NAT && queue_is_private(client) == queue_is_private(server))
			first = !addr_equal(client, &st->back.tuple.dst);
		host = first ? client : server;
	}
	return ((__u64)host->word[0] << 32 | host->word[1]) * QUEUE_MIX ^ ((__u64)host->word[2] << 32 | host->word[3]);
}

/* Returns the bytes of one packet on the line. */
static __always_inline __u32 queue_line(const struct queue_shaper *sh, __u32 length)
{
	__s32 whole = (__s32)length + sh->overhead; /* which may be below zero */
	__u32 bytes = whole < (__s32)sh->mpu ? sh->mpu : whole;

	if (sh->cells == QUEUE_ATM)
		return (bytes + 47) / 48 * 53;
	if (sh->cells == QUEUE_PTM)
		return bytes + (bytes + 63) / 64;
	return bytes;
}

/* The same of a super-packet: each segment has headers of its own. more: bytes that each packet takes beyond what the tree
 * says. */
static __noinline __u32 queue_bytes(hook_ctx *ctx, const struct packet *p, const struct queue_shaper *sh, __u32 more)
{
	__u32 size = hook_gso_size(ctx), headers, payload;

	(void)ctx;
	if (!size)
		return queue_line(sh, p->length + more);
	headers = p->l4_offset - p->l3_offset + (p->tuple.proto == IPPROTO_TCP ? p->tcp_header : sizeof(struct udphdr));
	payload = p->length - headers;
	headers += more;
	return payload / size * queue_line(sh, headers + size) + (payload % size ? queue_line(sh, headers + payload % size) : 0);
}

/* Returns a packet's ECN field; 0 if it cannot be read. */
static __always_inline __u8 queue_ecn(hook_ctx *ctx, const struct packet *p)
{
	__be16 word;

	if (p->family == 4)
		return p->tos & IP_CE;
	return hook_load(ctx, p->l3_offset, &word, sizeof(word)) ? 0 : bpf_ntohs(word) >> 4 & IP_CE;
}

/* Tells the receiver of congestion, if the packet's ends know how to (RFC 3168, 5). */
static __always_inline void queue_tell(hook_ctx *ctx, const struct packet *p, __u32 class)
{
	struct queue_class *c = queue_class_get(class);
	__u16 word, was, check;

	if (hook_load(ctx, p->l3_offset, &word, sizeof(word)))
		return;
	was = word;
	if (p->family == 4) {
		if (!(word & bpf_htons(IP_CE)) || (word & bpf_htons(IP_CE)) == bpf_htons(IP_CE))
			return;
		word |= bpf_htons(IP_CE);
		if (hook_load(ctx, p->l3_offset + 10, &check, sizeof(check)))
			return;
		check = csum_apply(check, csum_fold(csum_word_diff(was, word)));
		hook_store(ctx, p->l3_offset + 10, &check, sizeof(check));
		hook_store(ctx, p->l3_offset, &word, sizeof(word));
	} else {
		if (!(word & bpf_htons(IP_CE << 4)) || (word & bpf_htons(IP_CE << 4)) == bpf_htons(IP_CE << 4))
			return;
		word |= bpf_htons(IP_CE << 4);
		hook_store_summed(ctx, p->l3_offset, &word, sizeof(word));
	}
	if (c)
		__sync_fetch_and_add(&c->marked, 1);
}

/* Whether a packet takes the second of a pair of queues: as qos_is_urgent(). */
static __always_inline int queue_is_urgent(const struct packet *p)
{
	return (p->tuple.proto == IPPROTO_TCP && p->fragment != FRAGMENT_LATER && p->tcp_flags & TCP_ACK && !p->payload) ||
	       p->tos & IP_LOW_DELAY;
}

/* Whether a qdisc holds a packet. XDP reaches none where packets leave. What comes in waits on its
 * way to the stack, so it does not if the stack cannot deliver it: then it is counted. */
static __always_inline int queue_is_held(const struct queue_shaper *sh, const struct scratch *s, const struct packet *p,
					 const struct state *st, __u32 number)
{
	if (!sh->in)
		return sh->held && !HOOK_IS_XDP;
	if (!sh->held || p->flags & PACKET_ICMP_ERROR)
		return 0;
	if (!st)
		return !s->chosen;
	return !(st->entered & KEPT_ROUTE(STATE_DIRECTION(number)) || state_changes_family(st) ||
		 (st->flow_forth.flags | st->flow_back.flags) & FLOW_COPIED);
}

/*
 * Tells the queue that holds a packet which host it is of. The number has the last ten bits of the
 * address, mixed with all others: hosts of one /22 have different ones.
 */
static __always_inline void queue_tell_host(hook_ctx *ctx, const struct queue_ask *a, const struct packet *p)
{
	const struct queue_class *c = queue_class_get(a->class);
	__u64 host;
	__u32 n;

	if (!c || c->fair == QUEUE_FLOW)
		return;
	host = queue_find_host(a, p);
	n = bpf_ntohl((__u32)(host >> 32 ^ host));
	n ^= n >> 10 ^ n >> 20;
	hook_tell_host(ctx, TELL_HOST | (n & TELL_HOST_NUMBER) | (c->fair == QUEUE_HOST ? TELL_HOST_ALONE : 0));
}

/* Names a packet's class of the qdisc that holds it. */
static __always_inline void queue_hold(hook_ctx *ctx, struct scratch *s, const struct queue_shaper *sh, const struct packet *p)
{
	struct queue_ask *a = &s->ask;
	__u32 class = queue_class_of(a, sh, 0);

	if (class & QUEUE_MEMBER_PAIR && a->urgent)
		class = queue_class_of(a, sh, 1);
	class &= QUEUE_MEMBER_CLASS;
	if (class < sh->first)
		return;
	a->class = class;
	class = (class - sh->first + 1) & 0xffff;
	if (sh->in) {
		s->waits = class;
		return;
	}
	a->handle = QUEUE_HANDLE | class;
	a->fallback = class + sh->first - 1 == sh->fallback;
	hook_classify(ctx, a->handle, a->fallback);
	if (!HOOK_IS_XDP)
		queue_tell_host(ctx, a, p);
}

#define QUEUE_TREE 0xffu
#define QUEUE_MORE 8 /* where queue_place.out_more or in_more is, beside the number of a tree */

/* Counts a packet in its queue of a tree. tree: with QUEUE_MORE. number: of its state; 0: none. UNDECIDED: it passes.
 * Pointers to its bytes must be loaded again. */
__noinline enum reason queue_packet(hook_ctx *ctx, const struct packet *p, __u32 tree, __u32 number)
{
	const struct state *st = number ? state_get(STATE_INDEX(number)) : 0;
	struct scratch *s = scratch_get();
	__u32 shaper = tree & QUEUE_TREE;
	struct queue_ask *a;
	int verdict;

	if (!p || !s)
		return UNDECIDED;
	a = &s->ask; /* the stack is too small */
	a->shaper = shaper;
	a->flow = number;
	a->bytes = queue_bytes(ctx, p, queue_shaper_get(shaper), tree >> QUEUE_MORE);
	a->queue = 0;
	a->other = 0;
	a->hashed = 0;
	a->urgent = 0;
	a->ecn = queue_ecn(ctx, p);
	a->cwr = p->tuple.proto == IPPROTO_TCP && p->fragment != FRAGMENT_LATER && p->tcp_flags & TCP_CWR;
	if (st) {
		a->queue = state_queue(st, STATE_DIRECTION(number));
		a->other = state_queue(st, !STATE_DIRECTION(number));
		a->urgent = a->queue && queue_is_urgent(p);
	}
	if (!a->queue) /* rules of a side without state have set it */
		a->queue = p->qos >> QOS_QUEUE_SHIFT;
	if (!st) {
		a->hashed = 1;
		a->flow = tuple_hash(&p->tuple) & (QUEUE_FLOWS - 1);
	}
	a->handle = 0;
	a->class = 0;
	asm volatile("" : "+r"(a)); /* all of it is in memory now */
	if (queue_is_held(queue_shaper_get(shaper), s, p, st, number)) {
		queue_hold(ctx, s, queue_shaper_get(shaper), p);
		return UNDECIDED;
	}
	verdict = queue_admit(a, p);
	if (verdict == QUEUE_DROP)
		return REASON_QUEUE;
	if (verdict == QUEUE_MARK)
		queue_tell(ctx, p, a->class);
	return UNDECIDED;
}

/* Returns the tree that packets of an interface meet; 0: none. */
static __always_inline __u32 queue_tree(__u32 ifindex, int in)
{
	const struct queue_place *place = &queue_data.places[ifindex & (MAX_IFINDEX - 1)];

	return in ? place->in : place->out;
}

/* Returns the bytes that packets of an interface take beyond what their tree says. */
static __always_inline __u32 queue_more(__u32 ifindex, int in)
{
	const struct queue_place *place = &queue_data.places[ifindex & (MAX_IFINDEX - 1)];

	return in ? place->in_more : place->out_more;
}

/* Begins with a packet at an interface: it waits nowhere yet. */
static __always_inline void queue_forget(__u32 ifindex)
{
	struct scratch *s = queues && queue_tree(ifindex, 1) ? scratch_get() : 0;

	if (s)
		s->waits = 0;
}

/* A function, to save stack. */
__noinline __u32 queue_waits_there(void)
{
	const struct scratch *s = scratch_get();

	return s ? s->waits : 0;
}

/* Returns the class in which a packet that has come in by an interface waits on its way to the stack; 0: it does
 * not wait. */
static __always_inline __u32 queue_waits_in(__u32 ifindex)
{
	return queues && queue_tree(ifindex, 1) ? queue_waits_there() : 0;
}

static __always_inline __u32 queue_waits(const struct packet *p)
{
	return queue_waits_in(p->ifindex);
}

/* Has a packet that has come in by an interface wait in a class. What comes out of the qdisc goes on to
 * the stack, and meets TCX ingress no more. Returns the action. */
__noinline int queue_wait(hook_ctx *ctx, __u32 ifindex, __u32 class)
{
	const struct interface *i = interface_get(ifindex);
	__u32 device = queue_shaper_get(queue_tree(ifindex, 1))->device;

	return i && device ? hook_wait(ctx, device, QUEUE_HANDLE | class, parse_is_bare(ctx, i)) : HOOK_PASS;
}

/* Has the counter of a connection in the cache when a packet of it is counted. */
static __always_inline void queue_expect(__u32 number)
{
	const struct queue_counter *q = queues ? queue_counter_get(queue_place_of(number)) : 0;

	if (q)
		touch(q->key);
}

/* Counts a packet of a known connection in its queue of a tree, if nothing is special about
 * it. more: queue_more(). Returns 0 if queue_packet() has to do it. */
static __always_inline int queue_known(hook_ctx *ctx, const struct packet *p, const struct state *st, __u32 number, __u32 tree,
				       __u32 more)
{
	const struct queue_shaper *sh = queue_shaper_get(tree);
	__u32 queue = state_queue(st, STATE_DIRECTION(number)) ? : p->qos >> QOS_QUEUE_SHIFT;

	(void)ctx;
	if (sh->held && (sh->in || !HOOK_IS_XDP))
		return 0;
	return !hook_gso_size(ctx) && queue_admit_known(sh, tree, number, queue, queue_line(sh, p->length + more));
}

/* Counts a packet that has come in. Pointers to its bytes must be loaded again. */
static __always_inline enum reason queue_in(hook_ctx *ctx, const struct packet *p, __u32 number)
{
	__u32 tree = queues ? queue_tree(p->ifindex, 1) : 0;

	return tree ? queue_packet(ctx, p, tree | queue_more(p->ifindex, 1) << QUEUE_MORE, number) : UNDECIDED;
}

/* Counts a packet that leaves by an interface. Likewise. */
static __always_inline enum reason queue_out(hook_ctx *ctx, const struct packet *p, __u32 number, __u32 ifindex)
{
	__u32 tree = queues ? queue_tree(ifindex, 0) : 0;

	return tree ? queue_packet(ctx, p, tree | queue_more(ifindex, 0) << QUEUE_MORE, number) : UNDECIDED;
}

/* Names the class again, after the packet's priority has been set. ifindex: as for queue_out(). */
static __always_inline void queue_again(hook_ctx *ctx, __u32 ifindex)
{
	const struct scratch *s = queues && queue_tree(ifindex, 0) ? scratch_get() : 0;

	if (s && s->ask.handle)
		hook_classify(ctx, s->ask.handle, s->ask.fallback);
}

/* As queue_out(), for who goes on with the headers. */
static __always_inline enum reason queue_leaves(hook_ctx *ctx, struct headers *h, const struct packet *p, __u32 number,
						__u32 ifindex)
{
	enum reason r = queue_out(ctx, p, number, ifindex);

	return r == UNDECIDED && headers_reload(h, p, hook_data(ctx), hook_data_end(ctx)) ? REASON_INTERNAL : r;
}

#endif
