/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * What a packet changes in its state: TCP windows and peers, phases, times,
 * counters. docs/packet-path.md, step 9.
 */
#ifndef WEIR_STATE_TRACK_H
#define WEIR_STATE_TRACK_H

#include "state/limit.h"
#include "state/lookup.h"
#include "packet/parse.h"
#include "verifier.h"

/* What SYN and FIN add to the length of a segment. No test: each would be two ways. */
#define TCP_FLAGS_LENGTH(flags) (((flags) >> 1 & 1) + ((flags) & 1))
_Static_assert(TCP_FIN == 1 && TCP_SYN == 2, "TCP_FLAGS_LENGTH()");

/* Tolerance of the acknowledgement tests: a full unscaled window and a segment. */
#define MAX_ACK_WINDOW (0xffff + 1500)

#define seq_before(a, b) ((__s32)((a) - (b)) < 0)
#define seq_after(a, b)	 ((__s32)((a) - (b)) > 0)

static __always_inline void track_peer(struct flow *f, __u8 to)
{
	if (reread(f->peer) < to)
		f->peer = to;
}

static __always_inline void track_phase(struct state *s, __u8 phase)
{
	if (s->phase != phase) {
		s->phase = phase;
		s->check_at = shared.now; /* the new timeout may be shorter */
	}
}

static __always_inline __u8 track_tcp_phase(const struct flow *a, const struct flow *b)
{
	__u8 first = reread(a->peer), second = reread(b->peer);
	__u8 low = first < second ? first : second;
	__u8 high = first < second ? reread(b->peer) : reread(a->peer);

	if (low >= PEER_FIN_WAIT_2)
		return PHASE_TCP_CLOSED;
	if (low >= PEER_CLOSING)
		return PHASE_TCP_FINWAIT;
	if (low < PEER_ESTABLISHED)
		return PHASE_TCP_OPENING;
	if (high >= PEER_CLOSING)
		return PHASE_TCP_CLOSING;
	return PHASE_TCP_ESTABLISHED;
}

static __always_inline __u32 track_at_least_1(__u32 x)
{
	return x ? x : 1;
}

/* One TCP segment, relative to its state. */
struct track_segment {
	__u32 seq;
	__u32 end;
	__u32 ack;
	__u32 win;
	const struct packet *packet;
	__u8 scale; /* of the acknowledgement test: this end's, if both scale */
};

/* Returns the segment's flags. */
static __always_inline __u8 track_flags(const struct track_segment *g)
{
	return reread(g->packet->tcp_flags);
}

/* Whether it acknowledges anything: resets may have the flag without. */
static __always_inline int track_acks(const struct track_segment *g)
{
	__u8 flags = track_flags(g);

	return flags & TCP_ACK && !(flags & TCP_RST && !g->packet->ack);
}

static __always_inline int track_scaled(const struct flow *a, const struct flow *b)
{
	return a->flags & b->flags & FLOW_SCALED;
}

/* Whether a RST fits: only at the very edge of what its end has sent. */
static __always_inline int track_reset_fits(const struct flow *f, const struct track_segment *g, __u32 seq)
{
	return !(track_flags(g) & TCP_RST) || seq - f->seqlo + 1 <= 2;
}

static __always_inline int track_ack_fits(const struct flow *t, const struct track_segment *g)
{
	__s32 skew = t->seqlo - g->ack;

	if (!(reread(t->flags) & FLOW_SEEN)) /* there is nothing to test it by */
		return 1;
	return skew >= -MAX_ACK_WINDOW && (__s64)skew <= (__s64)MAX_ACK_WINDOW << g->scale;
}

/* Returns the highest sequence number that this end may send. */
static __always_inline __u32 track_limit(const struct flow *f, const struct flow *t)
{
	if (t->flags & FLOW_GRANTED && seq_after(t->grant, f->seqhi))
		return t->grant;
	return f->seqhi;
}

static __always_inline void track_update(struct flow *f, const struct track_segment *g)
{
	__u32 grant = g->ack + track_at_least_1(g->win);

	if (f->max_win < g->win)
		f->max_win = g->win;
	if (seq_after(g->end, f->seqlo))
		f->seqlo = g->end;
	/* the limit from the start must not seem to be in the future after 2 GiB */
	if (seq_after(f->seqlo, f->seqhi))
		f->seqhi = f->seqlo;
	if (track_acks(g) && (!(f->flags & FLOW_GRANTED) || seq_after(grant, f->grant))) {
		f->grant = grant;
		f->flags |= FLOW_GRANTED;
	}
}

/* Handles this end's first segment: a SYN, or what follows one that was not seen. */
static __always_inline void track_first(struct flow *f, const struct flow *t, const struct track_segment *g, int wscale)
{
	f->seqlo = g->seq;
	f->seqhi = g->end + t->max_win;
	f->flags |= FLOW_SEEN;
	if (track_flags(g) & TCP_SYN && wscale >= 0) {
		f->wscale = wscale;
		f->flags |= FLOW_SCALED;
	}
	track_peer(f, PEER_SYN_SENT);
}

/* Whether the segment completes a handshake: it acknowledges the SYN of an end that has
 * acknowledged this one's. */
static __always_inline int track_completes(const struct flow *f, const struct flow *t, const struct track_segment *g)
{
	return track_flags(g) & TCP_ACK && t->peer == PEER_SYN_SENT && f->peer >= PEER_ESTABLISHED;
}

/* Updates the peers after a segment that was in window, or loosely so. */
static __always_inline void track_peers(struct flow *f, struct flow *t, const struct track_segment *g, int in_window)
{
	if (track_flags(g) & TCP_FIN)
		track_peer(f, PEER_CLOSING);
	if (in_window) {
		if (track_flags(g) & TCP_SYN)
			track_peer(f, PEER_SYN_SENT);
		if (track_flags(g) & TCP_ACK) {
			if (reread(t->peer) == PEER_SYN_SENT)
				t->peer = PEER_ESTABLISHED;
			else if (reread(t->peer) == PEER_CLOSING && !seq_before(g->ack, t->seqlo))
				t->peer = PEER_FIN_WAIT_2;
		}
	}
	if (track_flags(g) & TCP_RST) {
		f->peer = PEER_TIME_WAIT;
		t->peer = PEER_TIME_WAIT;
	}
}

/* Updates the peers by flags alone, as pf does for sloppy states: it may see only one half
 * of the connection. Returns whether the segment completes the handshake. */
static __always_inline int track_sloppy_peers(struct flow *f, struct flow *t, __u8 flags)
{
	if (flags & TCP_SYN)
		track_peer(f, PEER_SYN_SENT);
	if (flags & TCP_FIN)
		track_peer(f, PEER_CLOSING);
	if (!(flags & TCP_ACK))
		return 0;
	if (reread(t->peer) == PEER_SYN_SENT) {
		t->peer = PEER_ESTABLISHED;
		return reread(f->peer) >= PEER_ESTABLISHED;
	}
	if (reread(t->peer) == PEER_CLOSING) {
		t->peer = PEER_FIN_WAIT_2;
	} else if (f->peer == PEER_SYN_SENT && t->peer == PEER_CLOSED) {
		f->peer = PEER_ESTABLISHED; /* only this half is seen */
		t->peer = PEER_ESTABLISHED;
		return 1;
	} else if (f->peer == PEER_CLOSING && t->peer == PEER_ESTABLISHED && !(t->flags & FLOW_SEEN)) {
		t->peer = PEER_CLOSING; /* likewise */
	}
	return 0;
}

/* Handles a later segment of a sloppy state. Sequence numbers stay as they are. */
static __always_inline int track_sloppy(struct state *s, struct flow *f, struct flow *t, __u8 flags)
{
	int over = UNDECIDED;

	if (track_sloppy_peers(f, t, flags))
		over = limit_connect(s);
	if (flags & TCP_RST) {
		f->peer = PEER_TIME_WAIT;
		t->peer = PEER_TIME_WAIT;
	}
	track_phase(s, track_tcp_phase(f, t));
	return over;
}

/*
 * Handles a later segment of a connection; wscale is that of a SYN's option, or -1.
 * Returns UNDECIDED (goes on), REASON_STATE_MISMATCH (nothing changed), or the limit of
 * its source that the connection exceeds (the state has ended). This is a global function so that the verifier walks its many paths once, and not again for each
 * path of its callers.
 */
__noinline int track_tcp(struct state *s, __u32 d, const struct packet *p, int wscale)
{
	struct flow *f, *t;
	__u32 seq, limit, low;
	struct track_segment g;
	int in_window, over;

	if (!s || !p)
		return REASON_INTERNAL;
	f = state_flow(s, d);
	t = state_flow(s, !d);
	if (limits_are_sloppy(s))
		return track_sloppy(s, f, t, p->tcp_flags);
	seq = p->seq;
	g.packet = p;
	g.seq = seq;
	g.end = seq + p->payload + TCP_FLAGS_LENGTH(p->tcp_flags);
	g.ack = track_acks(&g) ? p->ack : t->seqlo;
	g.scale = 0;
	if (!(f->flags & FLOW_SEEN)) {
		/* a reply must know what was asked: a blind SYN-ACK sets no window. Both
		 * ends already scale if the state was imported from a socket. */
		g.scale = track_scaled(f, t) ? f->wscale : 0;
		if (!track_ack_fits(t, &g))
			return REASON_STATE_MISMATCH;
		track_first(f, t, &g, wscale);
	}
	g.scale = track_scaled(f, t) ? f->wscale : 0;
	g.win = p->window << (track_flags(&g) & TCP_SYN ? 0 : g.scale);
	limit = track_limit(f, t);
	if (g.seq == g.end) {
		asm volatile(""); /* one branch: else the compiler makes one for each value */
		g.seq = f->seqlo;
		g.end = f->seqlo;
	}
	low = f->seqlo - t->max_win;
	if (!track_reset_fits(f, &g, seq))
		return REASON_STATE_MISMATCH;
	in_window = !seq_after(g.end, limit) && !seq_before(g.seq, low) && track_ack_fits(t, &g);
	if (!in_window) {
		if (t->flags & FLOW_SEEN && t->peer < PEER_FIN_WAIT_2 && f->peer < PEER_FIN_WAIT_2)
			return REASON_STATE_MISMATCH;
		if (seq_after(g.end, limit + MAX_ACK_WINDOW) ||
		    seq_before(g.seq, f->seqlo - MAX_ACK_WINDOW))
			return REASON_STATE_MISMATCH;
	}
	if (s->phase != PHASE_TCP_ESTABLISHED && in_window && track_completes(f, t, &g) && *state_limits(s)) {
		over = limit_connect(s);
		if (over != UNDECIDED)
			return over;
	}
	track_update(f, &g);
	if (track_flags(&g) & (TCP_FIN | TCP_SYN | TCP_RST) || s->phase != PHASE_TCP_ESTABLISHED) {
		track_peers(f, t, &g, in_window);
		track_phase(s, track_tcp_phase(f, t));
	}
	return UNDECIDED;
}

/* UDP and everything else except TCP. */
static __always_inline void track_other(struct state *s, __u32 d, const struct packet *p)
{
	struct flow *f = state_flow(s, d), *t = state_flow(s, !d);
	__u8 first = p->tuple.proto == IPPROTO_UDP ? PHASE_UDP_FIRST : PHASE_OTHER_FIRST;

	if (icmp_is(p->family, p->tuple.proto)) {
		track_phase(s, PHASE_ICMP_ERROR);
		return;
	}
	/* Both ends have replied: nothing changes, and the other's cache line is not
	 * touched. */
	if (s->phase == first + 2)
		return;
	track_peer(f, PEER_SYN_SENT);
	if (t->peer == PEER_SYN_SENT)
		t->peer = PEER_ESTABLISHED;
	track_phase(s, f->peer == PEER_ESTABLISHED && t->peer == PEER_ESTABLISHED ? first + 2 : first + 1);
}

static __always_inline void track_count(struct state *s, __u32 d, const struct packet *p)
{
	struct flow *f = state_flow(s, d);

	f->last = shared.now;
	f->packets++;
	f->bytes += p->length;
}

/* Whether a SYN opens a connection: it is neither a reply nor part of a handshake that
 * goes on. */
static __always_inline int track_opens(const struct packet *p)
{
	return (p->tcp_flags & (TCP_SYN | TCP_ACK)) == TCP_SYN;
}

/*
 * Whether a segment that does not fit is answered by a reset: nothing that fits has
 * answered the SYN yet. A server that still holds an older connection of these ports in
 * TIME_WAIT answers a SYN with an ACK of that connection. The client never sees it, so
 * weir says for it that there is no such connection (RFC 9293, 3.5.2).
 */
static __always_inline int track_is_answered(const struct state *s, __u32 d, const struct packet *p)
{
	const struct flow *f = d ? &s->flow_back : &s->flow_forth, *t = d ? &s->flow_forth : &s->flow_back;

	return t->peer == PEER_SYN_SENT && f->peer <= PEER_SYN_SENT && !(p->tcp_flags & TCP_RST);
}

/* Whether both ends are done: a new connection may take the tuple. */
static __always_inline int track_is_over(const struct state *s)
{
	return s->flow_forth.peer >= PEER_FIN_WAIT_2 && s->flow_back.peer >= PEER_FIN_WAIT_2;
}

static __always_inline int track_is_established(const struct state *s)
{
	return s->flow_forth.peer >= PEER_ESTABLISHED && s->flow_back.peer >= PEER_ESTABLISHED;
}

#endif
