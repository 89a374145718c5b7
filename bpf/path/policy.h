/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * IPsec policies that belong to no xfrm interface. The kernel looks them up where it forwards a
 * packet, and a redirect skips that. So what a policy may select goes up to the stack. The
 * daemon writes the policies (internal/fw/dataplane/policy.go). docs/packet-path.md, 25.
 *
 * Selectors that test the same bits share a shape, and a policy is an entry of a hash table
 * under its shape and those bits. So a search takes one look-up for each shape. As in the
 * kernel, the least priority wins.
 *
 * Cost without policies: the test of shared.policies.
 */
#ifndef WEIR_PATH_POLICY_H
#define WEIR_PATH_POLICY_H

#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

#include "packet/icmp.h"
#include "packet/packet.h"
#include "packet/sanity.h"
#include "path/scratch.h"
#include "route/policy_map.h"
#include "shared.h"
#include "state/rule_mark.h"
#include "state/state.h"
#include "verifier.h"

static __always_inline const struct policy_list *policy_list(__u32 number)
{
	return &shared.policy_lists[number & (2 * POLICY_LISTS - 1)];
}

/* Returns the verdict of two policies of the same priority. The older one wins, which only the kernel knows. */
static __always_inline enum policy_verdict policy_of_two(enum policy_verdict one, enum policy_verdict other)
{
	return one >= POLICY_SECRET && other >= POLICY_SECRET ? POLICY_SECRET : POLICY_STACK;
}

/* Tries one shape. */
static long policy_step(__u32 i, void *unused)
{
	struct scratch *s = scratch_get();
	const struct policy *found;
	const struct policy_key *shape;
	const word64 *mask, *packet;
	word64 *key;
	__u32 n;

	(void)unused;
	if (!s || i >= POLICY_SHAPES)
		return 1;
	shape = &policy_list(s->policy.list)->shape[i];
	mask = (const word64 *)shape;
	packet = (const word64 *)&s->policy.packet;
	key = (word64 *)&s->policy.key;
	for (n = 0; n < sizeof(struct policy_key) / sizeof(word64); n++)
		key[n] = packet[n] & mask[n];
	if (!s->policy.known && (shape->sport || shape->dport)) {
		s->policy.key.sport = 0;
		s->policy.key.dport = 0;
		s->policy.key.portless = 1;
	}
	s->policy.key.list = s->policy.list;
	s->policy.key.shape = i;
	found = bpf_map_lookup_elem(&policies, &s->policy.key);
	if (!found)
		return 0;
	if (s->policy.key.portless) {
		if (!s->policy.doubted || found->priority < s->policy.doubt)
			s->policy.doubt = found->priority;
		s->policy.doubted = 1;
	} else if (!s->policy.found || found->priority < s->policy.priority) {
		s->policy.found = 1;
		s->policy.priority = found->priority;
		s->policy.verdict = found->verdict;
	} else if (found->priority == s->policy.priority && found->verdict != s->policy.verdict) {
		s->policy.verdict = policy_of_two(found->verdict, s->policy.verdict);
	}
	return 0;
}

/* Returns what the search has found. Whether a policy with ports selects a packet whose ports are not
 * known, only the kernel knows; a policy that is held does not leave it to the kernel. */
static __always_inline enum policy_verdict policy_found(const struct policy_search *w)
{
	if (w->doubted && w->verdict != POLICY_HELD && (!w->found || w->doubt <= w->priority))
		return POLICY_STACK;
	return w->verdict;
}

/* Writes the ports that the kernel compares with a selector's, and whether they are known. */
static __always_inline void policy_ports(struct policy_search *w, const struct packet *p, const struct tuple *t)
{
	w->packet.sport = t->sport;
	w->packet.dport = t->dport;
	w->known = 1;
	if (p && (t->proto == IPPROTO_ICMP || t->proto == IPPROTO_ICMPV6)) {
		w->packet.sport = bpf_htons(p->icmp_type);
		w->packet.dport = bpf_htons(p->icmp_code);
		w->known = t->proto == p->tuple.proto;
	} else if (!tuple_has_ports(t->proto)) {
		w->known = 0;
	}
	if (p && p->fragment != FRAGMENT_NONE)
		w->known = 0;
}

/*
 * Returns what the policies of a direction say about a packet with a tuple that leaves by an
 * interface. mark: without weir's own bits. p: NULL if the tuple alone is known of it: of ICMP
 * neither type nor code.
 */
__noinline enum policy_verdict policy_search(const struct packet *p, const struct tuple *t, __u32 ifindex, __u32 mark,
					     __u32 direction)
{
	__u32 word = *(const volatile __u32 *)&shared.policies; /* one table for the whole search */
	struct scratch *s = scratch_get();
	const struct policy_list *l;

	if (!s || !t || word & POLICY_ALL)
		return POLICY_STACK;
	s->policy.list = (direction & 1) << 1;
	if (!addr_is4(&t->dst))
		s->policy.list |= 1;
	if (!(word & POLICY_LIST << (reread(s->policy.list) & (POLICY_LISTS - 1))))
		return POLICY_CLEAR;
	/* computed: so the loads from a list depend on the word, and no core does them before */
	s->policy.list += (word & POLICY_SECOND) * (POLICY_LISTS / POLICY_SECOND);
	s->policy.packet.src = t->src;
	s->policy.packet.dst = t->dst;
	s->policy.packet.mark = mark;
	s->policy.packet.ifindex = ifindex;
	s->policy.packet.proto = t->proto;
	policy_ports(&s->policy, p, t);
	l = policy_list(reread(s->policy.list));
	s->policy.found = 0;
	s->policy.doubted = 0;
	s->policy.verdict = l->otherwise;
	bpf_loop(l->count, policy_step, 0, 0);
	s->policy.verdict = policy_found(&s->policy);
	return reread(s->policy.verdict);
}

/* Whether a packet has been decrypted. The stack drops it if no policy selects it. */
static __always_inline int policy_has_opened(hook_ctx *ctx, struct scratch *s)
{
#if HOOK_IS_XDP
	(void)s;
	asm volatile("" : : "r"(ctx)); /* else the compiler lets callers pass anything, as it is not used */
	return 0;
#else
	return xfrm_states && !bpf_skb_get_xfrm_state(ctx, 0, &s->policy.opened, sizeof(s->policy.opened), 0);
#endif
}

/* Whether the stack would have to find the policy by which a packet was decrypted. A rule may have another way for
 * what came by an xfrm interface: the interface says whose it is. */
static __always_inline int policy_must_check(hook_ctx *ctx, struct scratch *s)
{
	const struct interface *i = interface_get(s->packet.ifindex);

	return !(i && i->flags & INTERFACE_FRAMED) && policy_has_opened(ctx, s);
}

/* Whether only the stack may forward a packet that comes in: a policy may select it, as the stack
 * sees it or as it leaves. number: of its state; 0: it has none, and is translated. */
__noinline int policy_takes(hook_ctx *ctx, const struct packet *p, __u32 number, __u32 ifindex)
{
	struct scratch *s = scratch_get();
	const struct state *st;
	struct tuple *t;
	__u32 mark;

	if (!p || !s || policy_has_opened(ctx, s))
		return 1;
	t = &s->policy.tuple;
	*t = p->tuple;
	mark = p->mark;
	if (number) {
		st = state_get(STATE_INDEX(number));
		if (!st)
			return 1;
		mark = rule_mark_route(st, STATE_DIRECTION(number), mark);
		state_leaving_tuple(t, st, STATE_DIRECTION(number));
		if (st->flags & STATE_NAT) {
			if (policy_search(p, t, ifindex, mark, POLICY_OUT) != POLICY_CLEAR)
				return 1;
			t->src = p->tuple.src; /* the stack does not see it translated */
			t->sport = p->tuple.sport;
		}
	}
	return policy_search(p, t, ifindex, mark, POLICY_OUT) != POLICY_CLEAR ||
	       policy_search(p, t, ifindex, mark, POLICY_FORWARD) != POLICY_CLEAR;
}

/* Returns why a packet goes up if a policy may select it; else r, which says why it cannot be redirected. */
__noinline enum reason policy_obstacle(hook_ctx *ctx, const struct packet *p, __u32 number, __u32 ifindex, enum reason r)
{
	return policy_takes(ctx, p, number, ifindex) ? REASON_UP_POLICY : r;
}

/* policy_takes() for a packet whose address family changes. leaves: its tuple then; mark likewise. */
__noinline int policy_takes_family(const struct packet *p, const struct tuple *leaves, __u32 ifindex, __u32 mark)
{
	if (!p || !leaves)
		return 1;
	return policy_search(p, leaves, ifindex, mark, POLICY_OUT) != POLICY_CLEAR ||
	       policy_search(p, &p->tuple, ifindex, p->mark, POLICY_FORWARD) != POLICY_CLEAR;
}

/*
 * Whether a packet that the stack forwards must not leave in clear. Its source is not translated yet. A fragment
 * has the ports of its state: the stack may have had it whole.
 */
__noinline int policy_forbids(const struct packet *p, __u32 number)
{
	const struct packet *of = p; /* whose ports are searched for */
	struct scratch *s = scratch_get();
	const struct state *st;
	struct tuple *t;

	if (!p || !s)
		return 0;
	t = &s->policy.tuple;
	*t = p->tuple;
	st = number ? state_get(STATE_INDEX(number)) : 0;
	if (st && p->fragment != FRAGMENT_NONE && st->forth.tuple.proto == t->proto && !icmp_is(p->family, t->proto)) {
		of = 0;
		state_leaving_tuple(t, st, STATE_DIRECTION(number));
		t->src = p->tuple.src;
		t->sport = state_course((struct state *)st, STATE_DIRECTION(number))->tuple.sport;
	}
	if (policy_search(of, t, p->ifindex, p->mark, POLICY_OUT) >= POLICY_SECRET)
		return 1;
	if (!st || !(st->flags & STATE_NAT))
		return 0;
	state_leaving_tuple(t, st, STATE_DIRECTION(number));
	return policy_search(of, t, p->ifindex, p->mark, POLICY_OUT) >= POLICY_SECRET;
}

/* Whether what leaves by an interface without the stack may be selected: a copy, or an answer of weir's. */
static __always_inline int policy_keeps(const struct packet *p, const struct tuple *t, __u32 ifindex, __u32 mark)
{
	return policy_search(p, t, ifindex, mark, POLICY_OUT) != POLICY_CLEAR;
}

/* Whether a packet that the stack seems to forward may be the box's own: what a policy encrypts keeps
 * the interface by which it came in, and comes from an address of the box. */
static __always_inline int policy_may_have_sealed(const struct packet *p)
{
	return !icmp_is(p->family, p->tuple.proto) && bpf_map_lookup_elem(&addresses, &p->tuple.src);
}

#endif
