// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
/*
 * TCX: the same way for devices that XDP does not serve, and the box's own
 * packets. docs/packet-path.md has the picture.
 *
 *   weir_tc_in   what comes in. Where XDP decided, only its metadata becomes
 *                the mark; else as weir_xdp, with the programs of in_tails
 *   weir_tc_out  what leaves: marked packets are completed, unmarked forwarded
 *                ones dropped, the box's own filtered, with those of out_tails
 *   weir_tc_*_ether    the same, for interfaces whose frames meet ether rules
 *   weir_tc_*_capture  the whole way, watched (capture_filters, capture_ring)
 */
#include "hook/tc.h"
#include "settings.h"
#include "observe/capture.h"
#include "path/egress.h"
#include "path/ether.h"
#include "path/icmp_error.h"
#include "path/late_fragment.h"
#include "path/sender.h"
#include "path/session_end.h"

struct {
	__uint(type, BPF_MAP_TYPE_PROG_ARRAY);
	__uint(max_entries, TAIL_COUNT);
	__type(key, __u32);
	__type(value, __u32);
} in_tails SEC(".maps"), out_tails SEC(".maps");

/* A global function: the verifier follows it once, and not for each call. */
__noinline enum reason tc_parse_once(struct __sk_buff *skb, struct packet *p, int in)
{
	const struct interface *i;
	struct headers h;

	if (!p)
		return REASON_INTERNAL;
	i = interface_get(p->ifindex);
	if (!i)
		return REASON_INTERFACE;
	return parse(skb, p, &h, &i, skb->protocol, in, skb->gso_size != 0);
}

/* Parses the frame. If its headers are not linear, makes them so and parses again. */
static __always_inline enum reason tc_parse(struct __sk_buff *skb, struct packet *p, int in)
{
	enum reason r = tc_parse_once(skb, p, in);

	if ((r == REASON_SHORT || r == REASON_FRAGMENT_SHORT) && !hook_pull(skb))
		r = tc_parse_once(skb, p, in);
	return r;
}

/* Whether a packet still belongs to the state that XDP found for it. */
static __always_inline int tc_has_state(const struct packet *p, const struct state *st, __u32 number)
{
	const struct tuple *t = &state_course((struct state *)st, STATE_DIRECTION(number))->tuple;

	if (st->status == STATUS_FREE || st->status == STATUS_NEW)
		return 0;
	if (p->fragment == FRAGMENT_LATER) /* its tuple has no ports */
		return addr_equal(&t->src, &p->tuple.src) && addr_equal(&t->dst, &p->tuple.dst);
	return tuple_equal(t, &p->tuple);
}

/* Whether a packet that XDP has left is one of a state with two address families. */
static __noinline int tc_changes_family(const struct packet *p, __u32 number)
{
	const struct state *st = state_get(STATE_INDEX(number));

	return p && st && state_changes_family(st) && (family_is_error(p) || tc_has_state(p, st, number));
}

/* Redirects a packet that XDP let pass but whose device XDP cannot reach. */
static __noinline int tc_redirect_state(struct __sk_buff *skb, struct packet *p, __u32 what)
{
	__u32 number = what & MAX_NUMBER;
	const struct interface *i;
	struct state *st;

	if (!p)
		return HOOK_DROP;
	i = interface_get(p->ifindex);
	st = state_get(STATE_INDEX(number));
	if (!i || !st)
		return HOOK_DROP;
	if (!tc_has_state(p, st, number))
		return count_verdict(i, REASON_GUARD, p->length);
	scrub_set_state(p, st, number);
	if (what & METADATA_PROBE && st->entered & KEPT_ROUTE(STATE_DIRECTION(number)) &&
	    !(shared.policies && policy_takes(skb, p, number, nexthop_get(state_course(st, STATE_DIRECTION(number))->nexthop)->ifindex)))
		return gateway_state(skb, p, number, state_course(st, STATE_DIRECTION(number))->nexthop, REASON_UP_PROBE);
	return fast_forward(skb, p, i, st, number,
		       nexthop_get(state_course(st, STATE_DIRECTION(number))->nexthop), REASON_MARKED,
		       PATH_COUNTED, FORWARD_MARKED);
}

/* Gives a packet to the socket that XDP let it pass to. An ICMP error belongs to no state by
 * its own tuple; the kernel finds its socket. */
static __noinline int tc_divert(struct __sk_buff *skb, struct packet *p, const struct interface *i)
{
	struct state *st;
	__u32 number;
	enum reason r;

	if (!p || !i)
		return HOOK_DROP;
	r = tc_parse(skb, p, 1);
	if (r != UNDECIDED)
		return count_verdict(i, r, hook_length(skb));
	if (p->flags & PACKET_ICMP_ERROR)
		return HOOK_PASS;
	st = fast_state(p, tuple_hash(&p->tuple), 1, &number);
	if (!st || !state_is_diverted(st, STATE_DIRECTION(number)))
		return count_verdict(i, REASON_GUARD, p->length);
	r = divert_assign(skb, p, number);
	return r == UNDECIDED ? HOOK_PASS : count_verdict(i, r, p->length);
}

/* Returns the next hop of a packet without a state; 0: none is known. A function of its
 * own, to save stack. */
static __noinline __u32 tc_nexthop(struct __sk_buff *skb, struct packet *p)
{
	struct route_query q;
	struct scratch *s;

	if (!p)
		return 0;
	route_query_fill(&q, p, &p->tuple.dst, p->tuple.dport);
	if (route_lookup(skb, &q) != ROUTE_FORWARD)
		return 0;
	s = scratch_get();
	if (s)
		s->nexthop = q.number; /* the capturing program reads it */
	return q.number;
}

/* Like tc_redirect_state(), for packets without a state and ICMP errors of one. The
 * packet is already as it will leave, except for TTL and MACs. */
static __noinline int tc_redirect_stateless(struct __sk_buff *skb, struct packet *p, __u32 what,
					    const struct out_mark *out)
{
	__u32 number = what & (MAX_NEXTHOPS - 1);
	struct scratch *s = scratch_get();
	const struct interface *i;
	struct headers h;
	struct nexthop *n;
	enum reason r;

	if (!p || !s || !out)
		return HOOK_DROP;
	i = interface_get(p->ifindex);
	if (!i)
		return HOOK_DROP;
	s->out_mark = *out;
	if (headers_reload(&h, p, hook_data(skb), hook_data_end(skb)))
		return count_verdict(i, REASON_INTERNAL, p->length);
	n = nexthop_get(number);
	r = number ? fast_obstacle(skb, p, n) : REASON_UP_NEIGHBOUR;
	if (what & METADATA_PROBE && r == UNDECIDED)
		r = REASON_UP_PROBE;
	if (shared.policies && number)
		r = policy_obstacle(skb, p, 0, n->ifindex, r);
	if (r != UNDECIDED && r != REASON_UP_POLICY && number && gateway_is_chosen(n))
		return gateway_stateless(skb, s, p, number, r);
	if (r != UNDECIDED)
		return handoff_forward(skb, p, i, 0, 0, r);
	if (queues && queue_tree(n->ifindex, 0)) {
		r = queue_leaves(skb, &h, p, 0, n->ifindex);
		if (r != UNDECIDED)
			return count_verdict(i, r, p->length);
	}
	if (handoff_onward(skb, s, p, n))
		return count_verdict(i, REASON_MARK_TAKEN, p->length);
	rewrite_ttl(&h, p); /* XDP has done the rest */
	return fast_send(skb, &h, p, i, n, REASON_MARKED, PATH_COUNTED, 0);
}

/* Handles what TCX has redirected to here: a reject to the box itself, or a packet of the box
 * that goes to a gateway. */
static __noinline int tc_noted(struct __sk_buff *skb, const struct interface *i)
{
	__u32 nexthop = note_nexthop(skb);
	struct scratch *s = scratch_get();
	int action;

	note_take(skb);
	if (!nexthop || !s || !i)
		return HOOK_PASS;
	s->packet.ifindex = hook_ifindex(skb);
	s->packet.family = skb->protocol == bpf_htons(ETH_P_IP) ? 4 : 6;
	s->packet.flags = 0;
	s->packet.l3_offset = i->flags & INTERFACE_L3 ? 0 : sizeof(struct ethhdr);
	skb->priority = skb->cb[4];
	note_priority(skb);
	action = gateway_send(skb, &s->packet, nexthop);
	return action < 0 ? count_verdict(i, REASON_GATEWAY, hook_length(skb)) : action;
}

static __always_inline int tc_in_path(struct __sk_buff *skb, const struct interface *i, struct packet *p)
{
	int by_xdp = (i->flags & (INTERFACE_XDP | INTERFACE_BARE)) == INTERFACE_XDP;
	struct scratch *s = scratch_get();
	struct metadata *m;
	enum reason r;

	if (!s)
		return HOOK_DROP;
	m = &s->metadata; /* the stack is nearly used up */
	if (note_is(skb))
		return tc_noted(skb, i);
	if (skb->mark & mark_mask)
		skb->mark &= ~mark_mask;
	if (skb->vlan_present)
		note_tag(skb);
	if (tc_is_tagged(skb))
		return HOOK_PASS;
	if (tc_is_tagged_twice(skb))
		return count_verdict(i, REASON_MALFORMED, hook_length(skb));
	p->ifindex = hook_ifindex(skb);
	queue_forget(p->ifindex);
	/* if a frame still has a priority tag, the data in front of it is not weir's:
	 * XDP does not touch such frames */
	if (by_xdp && !skb->vlan_present && !hook_metadata(skb, m)) {
		hook_prioritize(skb, m->qos);
		skb->mark |= m->mark;
		if (ether_rules && m->number & METADATA_BRIDGE) {
			count_reason(i, REASON_MARKED, hook_length(skb));
			return hook_bridge(skb, m->number & (MAX_IFINDEX - 1), p);
		}
		if (!(m->number & METADATA_REDIRECT) && mark_value(m->mark) == MARK_DIVERT)
			return tc_divert(skb, p, i);
		if (!(m->number & METADATA_REDIRECT))
			return queues && m->number ? queue_wait(skb, p->ifindex, m->number) : HOOK_PASS;
		r = tc_parse(skb, p, 1);
		if (r != UNDECIDED)
			return count_verdict(i, r, hook_length(skb));
		handoff_take_alone(p, m->number);
		if (m->number & METADATA_NEXTHOP)
			return tc_redirect_stateless(skb, p, m->number, &m->out);
		if (af_to && m->number & MAX_NUMBER && tc_changes_family(p, m->number & MAX_NUMBER))
			return fast_tail_then(skb, &in_tails, p, i, family_is_error(p) ? TAIL_ERROR : TAIL_FAMILY,
					      m->number & MAX_NUMBER, 1, SLOW_LEFT);
		if (m->number & MAX_NUMBER)
			return gateway_end(skb, tc_redirect_state(skb, p, m->number));
		return tc_redirect_stateless(skb, p, tc_nexthop(skb, p), &m->out);
	}
	/* the stack removes it, too, but a redirect would keep it */
	if (skb->vlan_present && bpf_skb_vlan_pop(skb))
		return count_verdict(i, REASON_INTERNAL, hook_length(skb));
	r = tc_parse(skb, p, 1);
	if (r == REASON_IMPLICIT)
		session_end(skb);
	if (by_xdp && r <= REASON_LAST_PASS)
		return HOOK_PASS; /* XDP counted it */
	if (r != UNDECIDED)
		return count_verdict(i, r, hook_length(skb));
	if (copies && i->flags & INTERFACE_PROGRAM)
		return fast_tail(skb, &in_tails, p, i, TAIL_PROGRAM, 0, 0);
	return gateway_end(skb, fast_in(skb, &in_tails, p, i, FORWARD_FAST));
}

SEC("tcx/ingress")
int weir_tc_in(struct __sk_buff *skb)
{
	const struct interface *i = interface_get(hook_ifindex(skb));
	struct packet p;

	if (!interface_is_plain(i, INTERFACE_ETHER_IN, 0)) {
		if (!interface_is_present(i))
			return count_verdict(&shared.interfaces[0], REASON_INTERFACE, 0);
		if (i->flags & INTERFACE_CAPTURE)
			bpf_tail_call(skb, &in_tails, TAIL_CAPTURE);
		if (ether_rules && i->flags & INTERFACE_ETHER_IN) {
			bpf_tail_call(skb, &in_tails, TAIL_ETHER);
			return count_verdict(i, REASON_INTERNAL, hook_length(skb));
		}
	}
	return tc_in_path(skb, i, &p);
}

/* A function, so that what the programs behind the tail calls return comes back to its
 * caller. */
static __noinline int tc_in_captured(struct __sk_buff *skb)
{
	const struct interface *i = interface_get(hook_ifindex(skb));
	struct packet p = {};
	int action;

	if (!i)
		return HOOK_DROP;
	action = tc_in_path(skb, i, &p);
	capture_state(&p.tuple);
	return action;
}

/* Whether the frame has met the ether rules under XDP, or meets them elsewhere: what weir itself
 * has sent here meets none. r: the parser's result. XDP leaves priority tags to TCX. */
static __always_inline int tc_ether_is_done(struct __sk_buff *skb, const struct interface *i, enum reason r)
{
	return (i->flags & (INTERFACE_XDP | INTERFACE_BARE)) == INTERFACE_XDP && !skb->vlan_present &&
	       r <= REASON_LAST_PASS;
}

/* Lets a frame meet the ether rules. Returns the action if one ends it or sends it elsewhere. A
 * function of its own, to save stack. */
static __noinline int tc_ether(struct __sk_buff *skb)
{
	const struct interface *i = interface_get(hook_ifindex(skb));
	struct metadata m;
	struct packet p;
	enum reason r;

	if (!i)
		return HOOK_DROP;
	ether_begin();
	if (note_is(skb) || tc_is_tagged(skb) || tc_is_tagged_twice(skb))
		return ETHER_GOES_ON;
	if ((i->flags & (INTERFACE_XDP | INTERFACE_BARE)) == INTERFACE_XDP && !skb->vlan_present &&
	    !hook_metadata(skb, &m))
		return ETHER_GOES_ON;
	p.ifindex = hook_ifindex(skb);
	r = tc_parse(skb, &p, 1);
	if (tc_ether_is_done(skb, i, r))
		return ETHER_GOES_ON;
	if (ether_in(skb, &p, r))
		return count_verdict(i, REASON_BLOCK, hook_length(skb));
	return ether_bridge(skb, i, &p, REASON_RULE);
}

/* The same path for interfaces whose frames meet ether rules. */
static __noinline int tc_in_whole(struct __sk_buff *skb)
{
	const struct interface *i = interface_get(hook_ifindex(skb));
	struct packet p;

	return i ? tc_in_path(skb, i, &p) : HOOK_DROP;
}

SEC("tcx/ingress")
int weir_tc_in_ether(struct __sk_buff *skb)
{
	int action = tc_ether(skb);

	return action == ETHER_GOES_ON ? tc_in_whole(skb) : action;
}

SEC("tcx/ingress")
int weir_tc_in_capture(struct __sk_buff *skb)
{
	int unread = capture_before(skb, 0), action = ETHER_GOES_ON;

	if (ether_rules && ether_asks(skb))
		action = tc_ether(skb);
	if (action == ETHER_GOES_ON)
		action = tc_in_captured(skb);
	if (!unread)
		capture_after(skb, action, 0);
	return action;
}

SEC("tcx/ingress")
int weir_tc_in_miss(struct __sk_buff *skb)
{
	return miss_in(skb, &in_tails);
}

SEC("tcx/ingress")
int weir_tc_in_error(struct __sk_buff *skb)
{
	return icmp_error_in(skb, &in_tails);
}

SEC("tcx/ingress")
int weir_tc_in_fragment(struct __sk_buff *skb)
{
	return late_fragment_in(skb, &in_tails);
}

SEC("tcx/ingress")
int weir_tc_in_slow(struct __sk_buff *skb)
{
	return slow_in(skb, &in_tails);
}

SEC("tcx/ingress")
int weir_tc_in_family(struct __sk_buff *skb)
{
	return family_run(skb);
}

/* Sends on what a program of divert-packet has written. */
static __always_inline int tc_program(struct __sk_buff *skb)
{
	struct scratch *s = scratch_get();
	const struct interface *i;

	if (!s)
		return HOOK_DROP;
	i = interface_get(s->packet.ifindex);
	if (!i)
		return HOOK_DROP;
	if (divert_packet_find(s))
		return count_verdict(i, REASON_DIVERT, s->packet.length);
	if (divert_packet_turn(skb, s))
		return count_verdict(i, REASON_INTERNAL, s->packet.length);
	s->tracked = 1;
	s->tag = 0; /* ether rules have met the frame before */
	evaluate_nothing(s);
	return slow_finish(skb, s, SLOW_NEW, slow_decide(skb, s, SLOW_NEW));
}

SEC("tcx/ingress")
int weir_tc_in_program(struct __sk_buff *skb)
{
	return tc_program(skb);
}

SEC("tcx/ingress")
int weir_tc_in_owner(struct __sk_buff *skb)
{
	return owner_in(skb, &in_tails);
}

/* Whether weir has redirected the packet to here, and it is complete. On lo it will come
 * in again, and still needs the note. */
static __always_inline int tc_is_whole(struct __sk_buff *skb, const struct interface *i)
{
	return i->flags & INTERFACE_LO ? note_is(skb) : note_take(skb);
}

/* Records a first fragment that leaves: the stack may have fragmented a packet, or
 * reassembled it and fragmented it again. */
static __noinline int tc_first_fragment(const struct packet *p, __u32 decided)
{
	struct scratch *s = scratch_get();

	return !s || !p || handoff_first(s, p, decided) < 0;
}

static __always_inline int tc_out_path(struct __sk_buff *skb, const struct interface *i, struct packet *p)
{
	__u32 decided;
	enum reason r;

	if (tc_is_tagged(skb) || tc_is_whole(skb, i))
		return HOOK_PASS;
	if (!skb->ingress_ifindex && skb->mark & mark_mask)
		skb->mark &= ~mark_mask; /* programs of the box can set any bits */
	p->ifindex = hook_ifindex(skb);
	r = tc_parse(skb, p, 0);
	if (r != UNDECIDED)
		return count_verdict(i, r, hook_length(skb));
	queue_forget(p->ifindex);
	if (skb->ingress_ifindex && shared.policies && egress_is_sealed(skb, p)) {
		hook_leave_class(skb);
		hook_set_mark(skb, p->mark);
	} else if (skb->ingress_ifindex) {
		hook_leave_class(skb);
		decided = egress_decision(skb, p);
		if (!decided)
			return count_verdict(i, REASON_GUARD, p->length);
		if (p->fragment == FRAGMENT_FIRST && !(decided & HANDOFF_ALONE) && tc_first_fragment(p, decided))
			return count_verdict(i, REASON_MARK_TAKEN, p->length);
		if (!(decided & HANDOFF_MULTICAST))
			return egress_complete(skb, p, decided & HANDOFF_NUMBER);
		hook_set_mark(skb, p->mark);
		p->tuple.zone = p->ifindex; /* it also leaves elsewhere, perhaps with another translation */
	}
	return egress_fast(skb, &out_tails, p, i);
}

SEC("tcx/egress")
int weir_tc_out(struct __sk_buff *skb)
{
	const struct interface *i = interface_get(hook_ifindex(skb));
	struct packet p;

	if (!interface_is_plain(i, INTERFACE_ETHER_OUT, 0)) {
		if (!interface_is_present(i))
			return count_verdict(&shared.interfaces[0], REASON_INTERFACE, 0);
		if (i->flags & INTERFACE_CAPTURE)
			bpf_tail_call(skb, &out_tails, TAIL_CAPTURE);
		if (ether_rules && i->flags & INTERFACE_ETHER_OUT) {
			bpf_tail_call(skb, &out_tails, TAIL_ETHER);
			return count_verdict(i, REASON_INTERNAL, hook_length(skb));
		}
	}
	return tc_out_path(skb, i, &p);
}

/* Lets a packet that may leave meet the ether rules, as the frame that it is now. A tag that is
 * not in the frame is a VLAN device's, where it has met them. bridged: an ether rule has sent it
 * here. */
static __always_inline int tc_out_frame(struct __sk_buff *skb, int bridged, int action)
{
	const struct interface *i = interface_get(hook_ifindex(skb));
	int sent;

	if (!ether_rules || bridged || action != HOOK_PASS || tc_is_tagged(skb))
		return action;
	if (!i)
		return HOOK_DROP;
	if (ether_out(skb))
		return count_verdict(i, REASON_BLOCK, hook_length(skb));
	sent = ether_bridge(skb, i, 0, UNDECIDED);
	return sent == ETHER_GOES_ON ? action : sent;
}

static __noinline int tc_out_captured(struct __sk_buff *skb)
{
	const struct interface *i = interface_get(hook_ifindex(skb));
	struct packet p = {};
	int action;

	if (!i)
		return HOOK_DROP;
	action = tc_out_path(skb, i, &p);
	capture_state(&p.tuple);
	return action;
}

/* A function, for the same reason. */
static __noinline int tc_out_whole(struct __sk_buff *skb)
{
	const struct interface *i = interface_get(hook_ifindex(skb));
	struct packet p;

	return i ? tc_out_path(skb, i, &p) : HOOK_DROP;
}

SEC("tcx/egress")
int weir_tc_out_ether(struct __sk_buff *skb)
{
	int bridged = note_is_bridge(skb);

	return tc_out_frame(skb, bridged, tc_out_whole(skb));
}

SEC("tcx/egress")
int weir_tc_out_capture(struct __sk_buff *skb)
{
	int unread = capture_before(skb, 1), bridged = note_is_bridge(skb), action;

	action = tc_out_frame(skb, bridged, tc_out_captured(skb));

	if (!unread)
		capture_after(skb, action, 1);
	return action;
}

SEC("tcx/egress")
int weir_tc_out_miss(struct __sk_buff *skb)
{
	return egress_miss(skb);
}

SEC("tcx/egress")
int weir_tc_out_error(struct __sk_buff *skb)
{
	return icmp_error_out(skb, &out_tails);
}

SEC("tcx/egress")
int weir_tc_out_fragment(struct __sk_buff *skb)
{
	return egress_fragment(skb);
}

SEC("tcx/egress")
int weir_tc_out_slow(struct __sk_buff *skb)
{
	return egress_slow(skb, &out_tails);
}

SEC("tcx/egress")
int weir_tc_out_family(struct __sk_buff *skb)
{
	return family_run(skb);
}

SEC("tcx/egress")
int weir_tc_out_owner(struct __sk_buff *skb)
{
	return sender_out(skb, &out_tails);
}
