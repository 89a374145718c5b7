/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * If the stack has to forward a packet, the packet's destination is translated and its
 * source is not. TCX egress uses the tuple to find the packet's state. The tuple is one
 * of the state's, or its mirror. If both addresses change, or there is no state, the
 * tuple has a record here. The mark says which of these holds (enum mark).
 */
#ifndef WEIR_PATH_HANDOFF_H
#define WEIR_PATH_HANDOFF_H

#include "observe/count.h"
#include "packet/rewrite.h"
#include "path/divert.h"
#include "path/queue_packet.h"
#include "path/queue_steer.h"
#include "path/scratch.h"
#include "path/scrub.h"
#include "state/lookup.h"
#include "state/rule_mark.h"

/* The content of a record. Its upper half is the tick of its last packet. */
#define HANDOFF_NUMBER	  MAX_NUMBER  /* of the state, with the packet's direction; 0: none     */
#define HANDOFF_ALONE	  0x20000000u /* a fragment that met the rules for itself */
#define HANDOFF_MULTICAST 0x40000000u /* TCX egress evaluates rules for it */
#define HANDOFF_PASSED	  0x80000000u /* always						  */
_Static_assert(MAX_NUMBER < HANDOFF_ALONE, "a number and its flags are one word");

#define HANDOFF_FRAGMENT 1 /* tuple.pad in the key of late fragments */

/* Makes a tuple the key of a packet's late fragments. */
static __always_inline void handoff_fragment(struct tuple *t, const struct packet *p)
{
	*(__u32 *)&t->sport = p->fragment_id;
	t->proto = p->family == 4 ? t->proto : 0; /* like fragment_key */
	t->pad = HANDOFF_FRAGMENT;
}

static __always_inline int handoff_is_live(__u64 record)
{
	return record && shared.now - (__u32)(record >> 32) < HANDOFF_LIFE;
}

/* Finds the record with this content, or takes a free one; < 0: all belong to others. */
__noinline int handoff_claim(struct handoff *h, __u32 what, __u32 records)
{
	__u64 now = (__u64)shared.now << 32 | what, old;
	__u32 i;

	if (!h)
		return -1;
	for (i = 0; i < HANDOFF_RECORDS; i++) {
		old = h->record[i];
		if ((__u32)old == what && handoff_is_live(old)) {
			/* only another core that records the same may come in between */
			if (old == now || (__u32)__sync_val_compare_and_swap(&h->record[i], old, now) == what)
				return i;
		}
	}
	for (i = 0; i < HANDOFF_RECORDS; i++) {
		old = h->record[i];
		if (i < records && !handoff_is_live(old) &&
		    __sync_val_compare_and_swap(&h->record[i], old, now) == old)
			return i;
	}
	return -1;
}

/* Records a packet under s->handoff; < 0: no record is left. */
__noinline int handoff_record(struct scratch *s, __u32 what, __u32 fingerprint, __u32 qos)
{
	struct handoff *h;
	int n;

	if (!s)
		return -1;
	h = bpf_map_lookup_elem(&handoffs, &s->handoff);
	if (!h) {
		s->record.record[0] = (__u64)shared.now << 32 | what;
		s->record.fingerprint[0] = fingerprint;
		s->record.qos[0] = qos;
		s->record.out[0] = s->out_mark;
		if (!bpf_map_update_elem(&handoffs, &s->handoff, &s->record, BPF_NOEXIST))
			return 0;
		h = bpf_map_lookup_elem(&handoffs, &s->handoff);
		if (!h)
			return -1;
	}
	n = handoff_claim(h, what, s->handoff.pad == HANDOFF_FRAGMENT ? 1 : handoff_records);
	if (n < 0)
		return n;
	asm volatile("" : "+r"(n)); /* else the compiler, which has seen handoff_claim(), leaves the bounds out */
	h->fingerprint[n & (HANDOFF_RECORDS - 1)] = fingerprint;
	h->qos[n & (HANDOFF_RECORDS - 1)] = qos;
	h->out[n & (HANDOFF_RECORDS - 1)] = s->out_mark;
	return n;
}

/* Whether a fragment without ports has met the rules for itself. */
static __always_inline int handoff_is_alone(const struct scratch *s, const struct packet *p)
{
	return fragment_rules_now() == FRAGMENTS_LISTED ? s->alone : fragment_is_alone(p);
}

/* Makes s->handoff the key of a fragment without ports. Returns what its record says of it. */
static __always_inline __u32 handoff_portless(struct scratch *s, const struct packet *p)
{
	handoff_fragment(&s->handoff, p);
	return handoff_is_alone(s, p) ? HANDOFF_ALONE : 0;
}

/* Returns METADATA_ALONE if TCX ingress is to know that the packet is such a fragment. */
static __always_inline __u32 handoff_alone(const struct packet *p)
{
	const struct scratch *s = p->fragment == FRAGMENT_LATER && fragment_rules_now() == FRAGMENTS_LISTED ? scratch_get() : 0;

	return s && s->alone ? METADATA_ALONE : 0;
}

/* Takes over what XDP has decided about a fragment. number: of its metadata. */
static __always_inline void handoff_take_alone(struct packet *p, __u32 number)
{
	struct scratch *s = fragment_is_listed(p) ? scratch_get() : 0;

	if (!s)
		return;
	s->alone = !!(number & METADATA_ALONE);
	if (s->alone)
		fragment_stand_alone(p);
}

/* Records that late fragments of a packet follow it. < 0: another packet has its id. */
static __always_inline int handoff_first(struct scratch *s, const struct packet *p, __u32 what)
{
	s->handoff = p->tuple;
	handoff_fragment(&s->handoff, p);
	return handoff_record(s, what, 0, 0);
}

/* Returns what tells a packet from others with its tuple. Any quote of it has this:
 * IPv4's id and the four bytes behind the ports. */
static __always_inline __u32 handoff_fingerprint(hook_ctx *ctx, const struct packet *p)
{
	__u32 l4 = 0;
	__u16 id = 0;

	if (p->family == 4)
		hook_load(ctx, p->l3_offset + 4, &id, sizeof(id));
	hook_load(ctx, p->l4_offset + 4, &l4, sizeof(l4));
	return l4 ^ id;
}

/* Returns HANDOFF_* of a live record of s->handoff, and what the rules set for its last
 * packet; 0: there is none. */
static __always_inline __u32 handoff_get(struct scratch *s, __u32 number, __u32 *qos)
{
	const struct handoff *h = bpf_map_lookup_elem(&handoffs, &s->handoff);
	__u64 record;

	if (!h || number >= HANDOFF_RECORDS)
		return 0;
	record = h->record[number];
	if (!handoff_is_live(record))
		return 0;
	*qos = h->qos[number];
	s->out_mark = h->out[number];
	return record;
}

/* Returns the record of a tuple whose last packet an error quotes, else the latest; 0:
 * no record has a state. */
static __always_inline __u32 handoff_choose(const struct handoff *h, __u32 fingerprint)
{
	__u64 record, best = 0;
	int i;

	for (i = 0; i < HANDOFF_RECORDS; i++) {
		record = h->record[i];
		if (!handoff_is_live(record) || !(record & HANDOFF_NUMBER))
			continue;
		if (h->fingerprint[i] == fingerprint)
			return record & HANDOFF_NUMBER;
		if (!best || (__s32)((__u32)(record >> 32) - (__u32)(best >> 32)) >= 0)
			best = record;
	}
	return best & HANDOFF_NUMBER;
}

/* Returns the state whose packet has these addresses in the stack; NULL: it has expired,
 * or its index belongs to another connection by now. */
static __always_inline struct state *handoff_state(__u32 number, const struct tuple *t)
{
	struct state *st = state_get(STATE_INDEX(number));
	const struct tuple *came, *reply;

	if (!st || st->status != STATUS_LIVE || state_expired(st, STATE_DIRECTION(number)))
		return 0;
	came = STATE_DIRECTION(number) ? &st->back.tuple : &st->forth.tuple;
	reply = STATE_DIRECTION(number) ? &st->forth.tuple : &st->back.tuple;
	if (!addr_equal(&reply->src, &t->dst) ||
	    (!addr_equal(&came->src, &t->src) && !addr_equal(&reply->dst, &t->src)))
		return 0;
	return st;
}

/* Returns the state of the packet that an error of the stack quotes, and sets its
 * number. */
static __always_inline struct state *handoff_quoted(const struct scratch *s, __u32 *number)
{
	const struct quote *q = &s->quote;
	const struct handoff *h = bpf_map_lookup_elem(&handoffs, &q->tuple);
	__u32 fingerprint = *(__u32 *)&q->l4[4];

	if (!h)
		return 0;
	if (s->packet.family == 4)
		fingerprint ^= *(__u16 *)&q->l3[4];
	*number = handoff_choose(h, fingerprint);
	return *number ? handoff_state(*number, &q->tuple) : 0;
}

/* Returns how TCX egress finds the state of a packet by its tuple in the stack.
 * MARK_NONE: it needs a record. Either the tuple is none of the state's, or the rules of
 * a side without state gave this packet its priority. reply: the tuple of its reply. */
static __always_inline enum mark handoff_by_state(const struct packet *p, const struct state *st,
						  const struct tuple *reply)
{
	if (p->qos && state_is_evaluated(st))
		return MARK_NONE;
	if (addr_equal(&reply->src, &p->tuple.dst) && reply->sport == p->tuple.dport)
		return MARK_CAME;
	if (addr_equal(&reply->dst, &p->tuple.src) && reply->dport == p->tuple.sport)
		return MARK_LEAVES;
	return MARK_NONE;
}

/* Returns how TCX egress finds a packet that the stack is to forward and whose
 * destination has been translated. MARK_NONE: not at all. number: of its state, 0: none. */
__noinline enum mark handoff_value(hook_ctx *ctx, const struct packet *p, __u32 number)
{
	struct scratch *s = scratch_get();
	const struct tuple *reply = 0;
	const struct state *st;
	enum mark value;
	__u32 fingerprint = 0, alone = 0;
	int n;

	if (!s || !p)
		return MARK_NONE;
	s->handoff = p->tuple;
	st = number ? state_get(STATE_INDEX(number)) : 0;
	if (st) {
		reply = STATE_DIRECTION(number) ? &st->forth.tuple : &st->back.tuple;
		s->handoff.dst = reply->src;
		s->handoff.dport = reply->sport;
	}
	if (p->fragment == FRAGMENT_LATER) {
		alone = handoff_portless(s, p);
	} else if (reply) {
		value = handoff_by_state(p, st, reply);
		if (value != MARK_NONE)
			return value;
		fingerprint = handoff_fingerprint(ctx, p);
	}
	n = handoff_record(s, HANDOFF_PASSED | alone | number, fingerprint, p->qos);
	return n < 0 ? MARK_NONE : MARK_RECORD + n;
}

/*
 * Sets the mark of a packet without a state, or of an ICMP error, that TCX redirects. If
 * its device gives it on to another one, the egress program there finds it by a record.
 * < 0: no record is left.
 */
static __always_inline int handoff_onward(hook_ctx *ctx, const struct scratch *s, const struct packet *p,
					  const struct nexthop *n)
{
	const struct interface *o = interface_get(n->ifindex);
	enum mark value = MARK_NONE;

	if (!HOOK_IS_XDP && o && o->flags & INTERFACE_STACKED) {
		value = handoff_value(ctx, p, 0);
		if (value == MARK_NONE)
			return -1;
	}
	hook_set_mark(ctx, mark_set(mark_leaving(p->mark, &s->out_mark), value));
	return 0;
}

/*
 * If a driver has no room in front of the frame, XDP cannot be used there: TCX would
 * evaluate again what XDP has decided. So the packet is dropped. From now on TCX handles
 * what comes in there.
 */
static __always_inline void handoff_make_bare(hook_ctx *ctx)
{
	struct interface *device = &shared.interfaces[hook_ifindex(ctx) & (MAX_IFINDEX - 1)];

	__sync_fetch_and_or(&device->flags, INTERFACE_BARE);
}

static __always_inline int handoff_no_headroom(hook_ctx *ctx, const struct packet *p, const struct interface *i)
{
	handoff_make_bare(ctx);
	return count_verdict(i, REASON_METADATA, p->length);
}

/* Passes the packet up to the stack, with the mark that it has there. It may have to wait before. number:
 * as for steer(). */
static __always_inline int handoff_pass_on(hook_ctx *ctx, const struct packet *p, const struct interface *i,
					   __u32 mark, enum reason why, __u32 number)
{
	__u32 waits = queue_waits(p);

	if (hook_handoff(ctx, mark, p, waits))
		return handoff_no_headroom(ctx, p, i);
	if (HOOK_IS_XDP || !queues || !waits)
		return steer(p, number, count_verdict(i, why, p->length));
	count_reason(i, why, p->length);
	return queue_wait(ctx, p->ifindex, waits);
}

/* The same for a packet that the stack does not send on. */
static __always_inline int handoff_pass(hook_ctx *ctx, const struct packet *p, const struct interface *i,
					__u32 mark, enum reason why)
{
	return handoff_pass_on(ctx, p, i, mark, why, STEER_STAYS);
}

/* Passes the packet to TCX ingress of the same device, because XDP cannot reach the next
 * hop. number: of the packet's state; 0: none, then out is what it leaves with. */
static __always_inline int handoff_redirect(hook_ctx *ctx, const struct packet *p, const struct interface *i,
					    __u32 number, const struct out_mark *out)
{
	if (p->scrub && scrub_up(ctx, p))
		return count_verdict(i, REASON_INTERNAL, p->length);
	if (hook_handoff_redirect(ctx, number | handoff_alone(p), p, out))
		return handoff_no_headroom(ctx, p, i);
	return steer(p, number, count_verdict(i, REASON_UP_DEVICE, p->length));
}

/*
 * Prepares a packet of a translated state for the stack to forward or to answer. The
 * destination is translated, the source is not (a source that is our own address would
 * be a martian). This is a function of its own so that untranslated packets need no
 * stack for it. Returns < 0 if the frame is gone.
 */
__noinline int handoff_translate(hook_ctx *ctx, const struct packet *p, __u32 number)
{
	const struct tuple *t, *other;
	const struct state *s;
	struct headers h;

	if (!p)
		return -1;
	s = state_get(STATE_INDEX(number));
	if (!s || headers_reload(&h, p, hook_data(ctx), hook_data_end(ctx)))
		return -1;
	t = &p->tuple;
	other = STATE_DIRECTION(number) ? &s->forth.tuple : &s->back.tuple;
	if (addr_equal(&other->src, &t->dst) && other->sport == t->dport)
		return 0;
	return rewrite_translate_to(ctx, &h, p, &t->src, &other->src, t->sport, other->sport);
}

/* Passes the packet up to the stack, which forwards it. */
static __always_inline int handoff_forward(hook_ctx *ctx, const struct packet *p, const struct interface *i,
				   const struct state *s, __u32 number, enum reason why)
{
	enum mark value;

	if (p->scrub && scrub_up(ctx, p))
		return count_verdict(i, REASON_INTERNAL, p->length);
	if (p->flags & PACKET_GROUP)
		return handoff_pass(ctx, p, i, p->mark, REASON_LOCAL);
	if (s && s->flags & STATE_NAT && handoff_translate(ctx, p, number))
		return count_verdict(i, REASON_INTERNAL, p->length);
	value = handoff_value(ctx, p, number);
	if (value == MARK_NONE)
		return count_verdict(i, REASON_MARK_TAKEN, p->length);
	return handoff_pass_on(ctx, p, i, mark_set(s ? rule_mark_route(s, STATE_DIRECTION(number), p->mark) : p->mark, value),
			       why, number);
}

/* Gives a packet of a state of divert-to to its socket. XDP leaves that to TCX ingress. */
static __always_inline int handoff_divert(hook_ctx *ctx, const struct packet *p, const struct interface *i,
					  const struct state *s, __u32 number, enum reason why)
{
	enum reason r = p->fragment == FRAGMENT_NONE ? divert_assign(ctx, p, number) : REASON_DIVERT;

	if (r != UNDECIDED)
		return count_verdict(i, r, p->length);
	return handoff_pass(ctx, p, i, mark_set(rule_mark_all(s, p->mark), MARK_DIVERT), why);
}

/* Returns the mark of a packet for the box itself. The stack may route a multicast
 * packet on, but not off a link on which its source is local. */
__noinline enum mark handoff_local_mark(const struct packet *p, const struct addr *dst)
{
	struct scratch *s = scratch_get();
	__u32 alone = 0;
	int n;

	if (!s || !p || !dst || !addr_is_multicast(dst) || p->tuple.zone)
		return MARK_NONE;
	s->handoff = p->tuple;
	s->handoff.dst = *dst;
	if (p->fragment == FRAGMENT_LATER)
		alone = handoff_portless(s, p);
	n = handoff_record(s, HANDOFF_PASSED | HANDOFF_MULTICAST | alone, 0, 0);
	return n < 0 ? MARK_NONE : MARK_RECORD + n;
}

/* Passes the packet up to the box itself. */
static __always_inline int handoff_local(hook_ctx *ctx, struct headers *h, const struct packet *p,
			     const struct interface *i, const struct state *s, __u32 number,
			     enum reason why)
{
	const struct addr *dst = &p->tuple.dst;
	const struct tuple *other;

	if (p->scrub && (scrub_up(ctx, p) || headers_reload(h, p, hook_data(ctx), hook_data_end(ctx))))
		return count_verdict(i, REASON_INTERNAL, p->length);
	if (s && state_is_diverted(s, STATE_DIRECTION(number)))
		return handoff_divert(ctx, p, i, s, number, why);
	if (s && s->flags & STATE_NAT) {
		other = STATE_DIRECTION(number) ? &s->forth.tuple : &s->back.tuple;
		dst = &other->src;
		if (rewrite_translate_to(ctx, h, p, &other->dst, dst, other->dport, other->sport))
			return count_verdict(i, REASON_INTERNAL, p->length);
	}
	return handoff_pass(ctx, p, i, mark_set(s ? rule_mark_all(s, p->mark) : p->mark, handoff_local_mark(p, dst)), why);
}

/* Passes the packet up to the stack because it has no route. The stack answers, and
 * quotes what the client sent except for the destination. Without a mark it cannot
 * forward the packet. */
static __always_inline int handoff_no_route(hook_ctx *ctx, const struct packet *p, const struct interface *i,
					  const struct state *s, __u32 number)
{
	if (p->scrub && scrub_up(ctx, p))
		return count_verdict(i, REASON_INTERNAL, p->length);
	if (s->flags & STATE_NAT) {
		if (handoff_translate(ctx, p, number))
			return count_verdict(i, REASON_INTERNAL, p->length);
		/* no error quotes a late fragment, because it has no ports to look up */
		if (p->fragment != FRAGMENT_LATER)
			handoff_value(ctx, p, number);
	}
	return handoff_pass(ctx, p, i, rule_mark_route(s, STATE_DIRECTION(number), p->mark), REASON_UP_ROUTE);
}

#endif
