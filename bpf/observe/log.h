/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * Logging by rules (docs/packet-path.md, 11): a record for each crossing and rule that
 * logs. Only the programs behind the tail call write records.
 */
#ifndef WEIR_OBSERVE_LOG_H
#define WEIR_OBSERVE_LOG_H

#include "packet/rewrite.h"
#include "state/lookup.h"
#include "observe/record.h"
#include "rules/ruleset.h"
#include "path/scratch.h"

/* Bytes of a packet in its record: all headers except long IPv6 chains, and the
 * beginning of the payload. */
#define LOG_BYTES 216

struct log_record {
	struct record head;
	__u8 data[LOG_BYTES];
};
_Static_assert(sizeof(struct log_record) == 256, "with the ring's own 8 bytes 264");

/* Sets ports and L4 checksum of a recorded packet to those that it leaves with. What is
 * only partly in the record stays as it came. */
static __always_inline void log_translate_l4(struct log_record *l, const struct packet *p, const struct tuple *to,
					     __u32 addr_diff)
{
	__u32 at = p->l4_offset - p->l3_offset, check = rewrite_csum_at(p->family, p->tuple.proto);
	__u32 check_at = at + check;

	asm volatile("" : "+r"(check_at)); /* the verifier must see the same number checked and used */
	if (check && check_at <= LOG_BYTES - sizeof(__u16))
		rewrite_copied_csum((__u16 *)(l->data + check_at), p->family, p->tuple.proto, addr_diff,
				    csum_fold(csum_word_diff(p->tuple.sport, to->sport) +
					      csum_word_diff(p->tuple.dport, to->dport)));
	if (at <= LOG_BYTES - 8)
		rewrite_ports((__be16 *)(l->data + at), p->family, p->tuple.proto, p->icmp_type, to->sport, to->dport);
}

/* Changes a recorded packet from what came into one with the tuple that it leaves with. */
static __always_inline void log_translate(struct log_record *l, const struct packet *p, const struct tuple *to)
{
	__u32 diff = csum_fold(csum_addr_diff(&p->tuple.src, &to->src) + csum_addr_diff(&p->tuple.dst, &to->dst));

	if (p->family == 4)
		rewrite_ip4((struct iphdr *)l->data, &to->src, &to->dst, diff);
	else
		rewrite_ip6((struct ipv6hdr *)l->data, &to->src, &to->dst);
	if (p->fragment != FRAGMENT_LATER)
		log_translate_l4(l, p, to, diff);
}

/* Writes a record about the packet for one rule; s->log has begun it. */
__noinline int log_write(hook_ctx *ctx, struct scratch *s, __u32 rule)
{
	const struct packet *p;
	struct log_record *l;
	__u32 length;

	if (!s)
		return 0;
	l = bpf_ringbuf_reserve(&log_ring, sizeof(*l), 0);
	if (!l) {
		record_lost(RING_LOG);
		return 0;
	}
	p = &s->packet;
	l->head = s->log;
	l->head.time = bpf_ktime_get_boot_ns();
	l->head.rule = rule;
	length = p->length;
	if (length > LOG_BYTES)
		length = LOG_BYTES;
	if (length && !hook_load(ctx, p->l3_offset, l->data, length)) {
		l->head.captured = length;
		if (s->leaves)
			log_translate(l, p, &s->tuple);
	}
	record_submit(log_ring, LOG_RING_BYTES, l, sizeof(*l) + 8);
	return 0;
}

/* Begins the records of one crossing. */
static __always_inline void log_begin(struct scratch *s, __u8 direction, __u32 ifindex, __u32 state, enum reason r,
				      __u8 flags)
{
	struct record *head = &s->log;

	__builtin_memset(head, 0, sizeof(*head));
	head->ifindex = ifindex;
	head->state = STATE_INDEX(state);
	head->length = s->packet.length;
	head->kind = RECORD_LOG;
	head->reason = r;
	head->verdict = r > REASON_LAST_PASS ? VERDICT_DROP : VERDICT_PASS;
	head->direction = direction;
	head->flags = RECORD_L3 | flags;
	head->family = s->packet.family;
}

/* Returns a rule of this generation, by its global id + 1. */
static __always_inline const struct rule *log_rule(__u32 id)
{
	__u32 number = id - 1 - rule_base;

	return bpf_map_lookup_elem(&rules, &number);
}

/* Adds the user of the packet's socket to the record for a rule with log (user). */
static __always_inline void log_user(struct scratch *s, const struct crossing *cr, const struct rule *rule)
{
	s->log.flags &= ~RECORD_USER;
	s->log.peer_ifindex = 0;
	if (!(rule->late & ASKS_LOG_USER) || !scratch_is_owner(s, cr) || s->owner.user == NOBODY)
		return;
	s->log.flags |= RECORD_USER;
	s->log.peer_ifindex = s->owner.user;
}

/* Writes a record for a rule of a crossing. followed: it is logged because of an earlier rule,
 * else if it says so itself. */
__noinline int log_matched(hook_ctx *ctx, struct scratch *s, int out, int followed, __u32 id)
{
	const struct rule *rule = log_rule(id);
	const struct crossing *cr;
	int logs;

	if (!s || !rule)
		return 0;
	cr = out ? &s->out : &s->in;
	logs = rule->flags & RULE_LOG;
	if (followed ? id == cr->rule && logs : !logs) /* it has a record, or needs none */
		return 0;
	log_user(s, cr, rule);
	return log_write(ctx, s, id);
}

/* Writes records of a crossing whose rules were evaluated, for each rule that matched
 * and logs. r: the reason it passes or is dropped with; state: the packet's, or 0. */
__noinline int log_crossing(hook_ctx *ctx, struct scratch *s, int out, __u32 state, enum reason r)
{
	const struct crossing *cr;
	int i;

	if (!s)
		return 0;
	cr = out ? &s->out : &s->in;
	log_begin(s, cr->direction, cr->ifindex, state, r, 0);
	for (i = 0; i < MAX_MATCHES && i < cr->matches; i++)
		log_matched(ctx, s, out, 0, cr->matched[i]);
	for (i = 0; i < MAX_FOLLOWED && i < cr->followed; i++)
		log_matched(ctx, s, out, 1, cr->follows[i]);
	return 0;
}

/* Returns why a crossing let the packet through. */
static __always_inline enum reason log_passed(const struct crossing *cr)
{
	return cr->rule ? REASON_RULE : REASON_NO_RULE;
}

/* Writes records of the crossings whose rules were evaluated. r: why the packet is
 * dropped, which goes into the last record; any other value if it is not dropped. */
__noinline int log_evaluated(hook_ctx *ctx, struct scratch *s, enum reason r)
{
	int dropped = reason_is_drop(r);
	const struct state *st;
	__u32 state;

	if (!s)
		return 0;
	state = dropped ? 0 : s->state;
	if (s->in.evaluated && s->in.logs) {
		s->leaves = 0;
		log_crossing(ctx, s, 0, state, dropped && !s->out.evaluated ? r : log_passed(&s->in));
	}
	if (!s->out.evaluated || !s->out.logs)
		return 0;
	s->leaves = 1;
	st = state_get(STATE_INDEX(s->state));
	if (dropped) { /* as the rules saw it */
		s->tuple.src = s->out.src;
		s->tuple.dst = s->out.dst;
		tuple_set_ports(&s->tuple, s->out.sport, s->out.dport, s->out.proto, 0);
	} else if (state && st) {
		state_leaving_tuple(&s->tuple, st, STATE_DIRECTION(s->state));
	} else {
		s->leaves = 0;
	}
	return log_crossing(ctx, s, 1, state, dropped ? r : log_passed(&s->out));
}

/* Records of the crossings that were just evaluated. */
static __always_inline void log_packet(hook_ctx *ctx, struct scratch *s, enum reason r)
{
	if (s->in.logs | s->out.logs && record_wanted(RING_LOG))
		log_evaluated(ctx, s, r);
}

/* Writes records of a state's packet, for the rules of a side that log all packets. */
__noinline int log_side(hook_ctx *ctx, struct scratch *s, __u8 side, __u8 direction, __u32 ifindex)
{
	const struct state *st;
	__u32 rule;
	int i;

	if (!s)
		return 0;
	st = state_get(STATE_INDEX(s->state));
	if (!st || !(st->flags & STATE_LOG))
		return 0;
	log_begin(s, direction, ifindex, s->state, REASON_STATE, RECORD_ALL);
	for (i = 0; i < STATE_LOGS; i++) {
		rule = state_flow(st, side != STATE_IN)->log[i];
		if (rule)
			log_write(ctx, s, rule);
	}
	return 0;
}

/* Keeps a rule that has matched, if it logs all packets, as the nth. Returns how many are kept
 * then. */
__noinline __u32 log_keep(struct flow *f, __u32 n, __u32 id)
{
	const struct rule *rule = log_rule(id);

	if (!f || !rule || !(rule->flags & RULE_LOG_ALL) || n >= STATE_LOGS)
		return n;
	f->log[n] = id;
	return n + 1;
}

/*
 * Keeps the rules of a crossing that log all packets of the state, for its side: the
 * first STATE_LOGS - 1 match rules, and the last rule of all, which decides.
 */
__noinline int log_note(struct state *st, const struct crossing *cr, __u8 side)
{
	struct flow *f;
	__u32 n = 0;
	int i;

	if (!st || !cr)
		return 0;
	f = state_flow(st, side != STATE_IN);
	__builtin_memset(f->log, 0, sizeof(f->log));
	if (!(cr->logs & CROSSING_LOG_ALL))
		return 0;
	for (i = 0; i < MAX_MATCHES && i < cr->matches; i++) {
		if (n == STATE_LOGS - 1 && i + 1 < cr->matches)
			continue;
		n = log_keep(f, n, cr->matched[i]);
	}
	return 0;
}

/* STATE_LOG if a side of a new state logs all its packets. A side that evaluates each
 * packet logs by itself. */
static __always_inline __u8 log_flag(const struct scratch *s, __u8 flags)
{
	__u8 logs = 0;

	if (flags & STATE_IN && !(flags & STATE_EVALUATE_IN))
		logs |= s->in.logs;
	if (flags & STATE_OUT && !(flags & STATE_EVALUATE_OUT))
		logs |= s->out.logs;
	return logs & CROSSING_LOG_ALL ? STATE_LOG : 0;
}

/* Fills in the log rules of a new state. */
static __always_inline void log_fill(struct state *st, const struct scratch *s, __u8 flags)
{
	if (!(flags & STATE_LOG))
		return;
	__builtin_memset(st->flow_forth.log, 0, sizeof(st->flow_forth.log));
	__builtin_memset(st->flow_back.log, 0, sizeof(st->flow_back.log));
	if (flags & STATE_IN && !(flags & STATE_EVALUATE_IN))
		log_note(st, &s->in, STATE_IN);
	if (flags & STATE_OUT && !(flags & STATE_EVALUATE_OUT))
		log_note(st, &s->out, STATE_OUT);
}

/* Adds a side to a live state that may now cross there, by cr's rules. */
static __always_inline void log_add_side(struct state *st, const struct crossing *cr, __u8 side)
{
	if (!(cr->logs & CROSSING_LOG_ALL))
		return;
	if (!(st->flags & STATE_LOG))
		__builtin_memset(state_flow(st, side == STATE_IN)->log, 0, sizeof(st->flow_forth.log));
	log_note(st, cr, side);
	st->flags |= STATE_LOG;
}

#endif
