/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * FreeBSD's ether rules: whether a frame passes, and the tag with which its packet meets the
 * other rules (docs/packet-path.md, 22). Each frame meets them, also those of known
 * connections. So what they said about frames like this one is kept, and most frames find
 * it there.
 *
 * Only interfaces with INTERFACE_ETHER_IN or INTERFACE_ETHER_OUT have such rules. Their frames
 * take a tail call from the entry program to one that has the same path, and this in it.
 */
#ifndef WEIR_PATH_ETHER_H
#define WEIR_PATH_ETHER_H

#include "observe/rule_path.h"
#include "path/handoff.h"
#include "path/scratch.h"
#include "rules/match.h"

/* What the rules said about a frame. Within an epoch of the rule set they say the same about
 * an equal one, unless a rule tests a table, whose entries may change. */
struct ether_answer {
	struct ether_frame frame;
	__u32 path;  /* that it counts under; PATH_NONE: no rule has matched */
	__u32 rule;  /* global id + 1 of the rule that blocks it; 0: it passes */
	__u32 tag;
	__u32 bridge; /* as in struct rule */
};

/* Returned for a frame that no ether rule ends: no action of a program. */
#define ETHER_GOES_ON (-2)

/* One cache per CPU. */
#define ETHER_ANSWERS 1024
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, ETHER_ANSWERS);
	__type(key, __u32);
	__type(value, struct ether_answer);
} ether_answers SEC(".maps");

/* Returns the entry for a frame, whether or not it holds its answer. */
static __always_inline struct ether_answer *ether_answer_get(const struct ether_frame *f)
{
	const word64 *k = (const word64 *)f;
	__u64 h = (k[0] * 0x9e3779b97f4a7c15ULL) ^ (k[1] * 0xc2b2ae3d27d4eb4fULL);
	__u32 at;

	h += (k[2] * 0x165667b19e3779f9ULL) ^ (k[3] * 0x27d4eb2f165667c5ULL);
	h ^= (k[4] * 0x85ebca77c2b2ae63ULL) + (k[5] * 0xff51afd7ed558ccdULL) + k[6] * 0xc4ceb9fe1a85ec53ULL;
	at = (h ^ h >> 29) >> 22 & (ETHER_ANSWERS - 1);
	return bpf_map_lookup_elem(&ether_answers, &at);
}

static __always_inline int ether_frame_equal(const struct ether_frame *a, const struct ether_frame *b)
{
	const word64 *x = (const word64 *)a, *y = (const word64 *)b;
	__u64 differ = 0;
	int i;

	for (i = 0; i < (int)(sizeof(*a) / sizeof(word64)); i++)
		differ |= x[i] ^ y[i];
	return !differ;
}

/* Walks from w->from to the next rule that leads elsewhere, or to the last ether rule. */
static __always_inline void ether_run(struct visit *v)
{
	struct walk *w = v->w;

	w->words = 0;
	w->part = 0;
	w->todo = walk_blocks(w) & v->set->stations & ~0ULL << walk_block(w, w->from);
	w->todo &= ~0ULL >> (63 - walk_block(w, w->stop));
	if (w->todo)
		bpf_loop(rule_chunks * (CHUNK_RULES + 1), visit_step, v, 0);
}

/* Goes on behind an anchor, or in it. 1: there are no more rules. */
static long ether_step(__u32 n, void *data)
{
	struct visit *v = data;
	struct walk *w = v->w;
	const struct rule *r;
	__u32 number;

	if (n) {
		number = w->translates;
		if (number == NO_RULE || w->broken)
			return 1;
		r = bpf_map_lookup_elem(&rules, rule_index(w, v->set, number));
		if (!r) {
			w->broken = 1;
			return 1;
		}
		w->translates = NO_RULE;
		w->from = rule_next(w, v->set, number, r);
		if (w->from > w->stop)
			return 1;
	}
	ether_run(v);
	return 0;
}

/* Looks up the classes of a frame. It has no ports, and without an IP packet no addresses: rules
 * that ask for addresses match it all the same, as in pf. */
static __always_inline void ether_classify(struct crossing *cr, const struct rule_set *set, int bare)
{
	cr->known = 0;
	cr->epoch = set->epoch;
	tree_classify(cr, set);
	if (!bare)
		return;
	cr->class[FIELD_DST] = set->all;
	cr->class[FIELD_SRC] = set->all;
	cr->class[FIELD_DST_TABLES] = set->all;
	cr->class[FIELD_SRC_TABLES] = set->all;
}

/* Begins a crossing with a frame. */
static __always_inline void ether_start(struct crossing *cr, const struct ether_frame *f)
{
	__u32 type = f->type & 0xffff;

	cr->src = f->src;
	cr->dst = f->dst;
	cr->sport = 0;
	cr->dport = 0;
	cr->proto = 0;
	cr->family = type == ETH_P_IPV6 ? 6 : 4;
	cr->direction = f->type >> 31;
	cr->ifindex = f->ifindex;
	cr->fragment = 0;
	cr->tag = 0;
	cr->ether = ETHER_KEY | type;
	__builtin_memcpy(cr->mac, f->mac, sizeof(cr->mac));
	cr->following = 0;
	cr->followed = 0;
	cr->matches = 0;
	cr->rule = 0;
	cr->action = ACTION_PASS;
}

/* Evaluates the rules for the frame in s->frame. */
__noinline int ether_evaluate(struct scratch *s, const struct rule_set *set)
{
	struct crossing *cr;
	struct visit v = {};
	const struct rule *r;
	const __u32 *index;
	struct walk *w;
	__u32 zero = 0;

	if (!s || !set)
		return -1;
	w = bpf_map_lookup_elem(&walks, &zero);
	if (!w)
		return -1;
	cr = &s->in;
	s->bridge = 0;
	ether_start(cr, &s->frame);
	match_start(cr, w, set);
	ether_classify(cr, set, (s->frame.type & 0xffff) != ETH_P_IP && (s->frame.type & 0xffff) != ETH_P_IPV6);
	walk_start(w, cr);
	w->from = 0;
	w->stop = set->ethers - 1;
	v.cr = cr;
	v.w = w;
	v.set = set;
	bpf_loop(MAX_RULES, ether_step, &v, 0);
	if (w->broken)
		return -1;
	if (w->last == NO_RULE)
		return 0;
	index = rule_index(w, set, w->last);
	r = bpf_map_lookup_elem(&rules, index);
	if (!r)
		return -1;
	visit_note(cr, *index);
	cr->rule = rule_base + *index + 1;
	cr->action = r->flags & RULE_BLOCK ? ACTION_BLOCK : ACTION_PASS;
	s->bridge = r->flags & RULE_BLOCK ? 0 : r->bridge;
	return 0;
}

/* Answers for the frame in s->frame, and counts it. Returns the answer's tag, or < 0: it is
 * blocked. s->bridge is where a frame that passes goes as it is. */
__noinline int ether_judge(struct scratch *s, __u32 bytes)
{
	const struct rule_set *set = rule_set_get();
	struct ether_answer *a;

	if (!s || !set)
		return -1;
	if (!set->ethers)
		return 0;
	s->frame.epoch = set->epoch;
	a = ether_answer_get(&s->frame);
	if (!a)
		return -1;
	if (set->ether_tables || !ether_frame_equal(&a->frame, &s->frame)) {
		if (ether_evaluate(s, set))
			return -1;
		a->frame = s->frame;
		a->path = rule_path_index(s, STATE_IN);
		a->rule = s->in.action == ACTION_BLOCK ? s->in.rule : 0;
		a->tag = s->in.tag;
		a->bridge = s->bridge;
	}
	s->bridge = a->bridge;
	if (a->path != PATH_NONE)
		count_path(a->path, 0, bytes);
	if (!a->rule)
		return a->tag;
	s->in.rule = a->rule; /* for captures */
	s->out.action = ACTION_PASS;
	return -1;
}

/* Fills in s->frame but for the addresses of an IP packet. < 0: there is no frame. */
static __always_inline int ether_fill(hook_ctx *ctx, struct scratch *s, __u32 ifindex, __u32 type, int out)
{
	const __u32 *mac = hook_data(ctx);

	if ((void *)(mac + 3) > hook_data_end(ctx))
		return -1;
	s->frame.mac[0] = mac[0];
	s->frame.mac[1] = mac[1];
	s->frame.mac[2] = mac[2];
	s->frame.type = type | (__u32)out << 31;
	s->frame.ifindex = ifindex;
	s->frame.src = (struct addr){};
	s->frame.dst = (struct addr){};
	return 0;
}

/* Begins a frame: no ether rule has tagged its packet. */
static __always_inline void ether_begin(void)
{
	struct scratch *s = scratch_get();

	if (s)
		s->tag = 0;
}

/* Whether frames that come in by the device meet ether rules. */
static __always_inline int ether_asks(hook_ctx *ctx)
{
	const struct interface *i = interface_get(hook_ifindex(ctx));

	return i && i->flags & INTERFACE_ETHER_IN;
}

/* Whether a frame that comes in is blocked. r: the parser's result. Frames for other stations
 * and those that are dropped anyway meet no rules; those with the tag of no VLAN device meet
 * them there. */
__noinline int ether_in(hook_ctx *ctx, const struct packet *p, enum reason r)
{
	struct scratch *s = scratch_get();
	const struct interface *i;
	__be16 type = 0;
	int tag;

	if (!p || !s)
		return 1;
	s->tag = 0;
	s->bridge = 0;
	i = interface_get(p->ifindex);
	if (!i)
		return 1;
	if ((r != UNDECIDED && r != REASON_IMPLICIT) || !(i->flags & INTERFACE_ETHER_IN) || i->flags & INTERFACE_SKIP)
		return 0;
	if (r == UNDECIDED)
		type = p->family == 4 ? bpf_htons(ETH_P_IP) : bpf_htons(ETH_P_IPV6);
	else if (hook_load(ctx, p->l3_offset - sizeof(type), &type, sizeof(type)))
		return 1;
	if (HOOK_IS_XDP && logical_is_tag(type))
		return 0;
	if (ether_fill(ctx, s, p->ifindex, bpf_ntohs(type), 0))
		return 1;
	if (r == UNDECIDED) {
		s->frame.src = p->tuple.src;
		s->frame.dst = p->tuple.dst;
	}
	tag = ether_judge(s, hook_length(ctx));
	if (tag < 0)
		return 1;
	s->tag = tag;
	return 0;
}

/* Whether a frame is blocked where TCX lets it out, as it leaves. */
__noinline int ether_out(hook_ctx *ctx)
{
	const struct interface *i = interface_get(hook_ifindex(ctx));
	struct scratch *s = scratch_get();
	__be16 type;

	if (!i || !s)
		return 1;
	s->bridge = 0;
	if (!(i->flags & INTERFACE_ETHER_OUT) || i->flags & INTERFACE_SKIP)
		return 0;
	if (hook_load(ctx, __builtin_offsetof(struct ethhdr, h_proto), &type, sizeof(type)) ||
	    ether_fill(ctx, s, hook_ifindex(ctx), bpf_ntohs(type), 1))
		return 1;
	if (type == bpf_htons(ETH_P_IPV6)) {
		if (hook_load(ctx, sizeof(struct ethhdr) + __builtin_offsetof(struct ipv6hdr, saddr), &s->frame.src,
			      2 * sizeof(struct addr)))
			return 1;
	} else if (type == bpf_htons(ETH_P_IP)) {
		__be32 addr[2];

		if (hook_load(ctx, sizeof(struct ethhdr) + __builtin_offsetof(struct iphdr, saddr), addr, sizeof(addr)))
			return 1;
		addr_set4(&s->frame.src, addr[0]);
		addr_set4(&s->frame.dst, addr[1]);
	}
	return ether_judge(s, hook_length(ctx)) < 0;
}

/* Sends a frame to the interface that ether rules have chosen for it, as it is. why: the reason
 * under which it is counted; UNDECIDED: it is already. Returns the action. */
static __always_inline int ether_bridge(hook_ctx *ctx, const struct interface *i, const struct packet *p, enum reason why)
{
	const struct scratch *s = scratch_get();
	const struct interface *o;
	int action;

	if (!s || !s->bridge)
		return ETHER_GOES_ON;
	o = interface_get(s->bridge);
	if (!interface_is_present(o) || o->flags & INTERFACE_L3)
		return count_verdict(i, REASON_INTERFACE, hook_length(ctx));
	action = hook_bridge(ctx, s->bridge, p);
	if (HOOK_IS_XDP && action < 0) {
		handoff_make_bare(ctx);
		return count_verdict(i, REASON_METADATA, hook_length(ctx));
	}
	if (why != UNDECIDED)
		count_reason(i, why, hook_length(ctx));
	return action;
}

#endif
