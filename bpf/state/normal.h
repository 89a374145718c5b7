/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * What a connection has to which rules with scrub (reassemble tcp) apply: for each end the
 * largest TTL that it has sent, a random offset that is added to its timestamps, and those that
 * it has sent and echoed. docs/packet-path.md, 16.
 *
 * An entry is made with its state, and removed by the garbage collection. It takes memory only
 * while it is there. Cost when no rule asks for it: the programs have no code for it, and one
 * test for each state that ends.
 */
#ifndef WEIR_STATE_NORMAL_H
#define WEIR_STATE_NORMAL_H

#include <bpf/bpf_helpers.h>

#include "config.h"
#include "packet/packet.h"
#include "shared.h"
#include "state/state.h"

/* Bits of normal_way.flags. With none of the first two, packets of that direction stay as they are. */
#define NORMAL_ENTERS	0x01 /* rules ask for it where its packets come in ... */
#define NORMAL_LEAVES	0x02 /* ... and where they leave			*/
#define NORMAL_STAMPED	0x04 /* its SYN had timestamps: they get an offset	*/
#define NORMAL_CHECKED	0x08 /* a timestamp has been echoed: they are checked	*/
#define NORMAL_IDLED	0x10 /* too old, or idle for too long: they no longer are */
#define NORMAL_DATA_STAMPED 0x20 /* its first data had timestamps			*/
#define NORMAL_DATA_BARE    0x40 /* or had none					*/
#define NORMAL_BEGUN	0x80 /* it has had a packet				*/
#define NORMAL_ASKED	(NORMAL_ENTERS | NORMAL_LEAVES)

/* One direction. Timestamps are as its end sends them. */
struct normal_way {
	__u32 offset; /* random */
	__u32 first;  /* the lowest timestamp */
	__u32 value;  /* the largest timestamp */
	__u32 echo;   /* the largest timestamp of the other end that it has echoed */
	__u32 seen;   /* tick of the last timestamp */
	__u8 flags;   /* NORMAL_* */
	__u8 ttl;     /* the largest one: where packets come in with NORMAL_ENTERS, else where they leave */
	__u8 pad0[2];
};

struct normal {
	struct normal_way way[2]; /* by direction */
};
_Static_assert(sizeof(struct normal) == 48, "as in importing (copy.go)");

/* kept; by the state's index, with FLOW_NORMAL. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, 1); /* by the loader */
	__type(key, __u32);
	__type(value, struct normal);
} normals SEC(".maps");

/* The fastest clock that RFC 7323 allows has 1,000 ticks a second. pf allows 10 % more. */
#define NORMAL_RATE (1100 / TICKS_PER_SECOND)
_Static_assert(NORMAL_RATE * TICKS_PER_SECOND == 1100, "whole timestamps in a tick");

/* Beyond, timestamps may have wrapped, and are no longer checked: pf's limits. */
#define NORMAL_IDLE (24 * 24 * 60 * 60 * TICKS_PER_SECOND) /* since the last timestamp of an end */
#define NORMAL_AGE  (12 * 24 * 60 * 60 * TICKS_PER_SECOND) /* of the connection */

static __always_inline int normal_is(const struct state *st)
{
	return reassembles_tcp && st->flow_forth.flags & FLOW_NORMAL;
}

/* Returns what a state has; 0: nothing. */
static __always_inline struct normal *normal_get(const struct state *st, __u32 index)
{
	return normal_is(st) ? bpf_map_lookup_elem(&normals, &index) : 0;
}

static __always_inline struct normal_way *normal_way(struct normal *n, __u32 d)
{
	return d & 1 ? &n->way[1] : &n->way[0];
}

/* Returns the least TTLs for packets of a direction, as in packet.scrub. */
static __always_inline __u32 normal_ttls(const struct state *st, __u32 index, __u32 d)
{
	struct normal *n = normal_get(st, index);
	const struct normal_way *w;

	if (!n)
		return 0;
	w = normal_way(n, d);
	if (w->flags & NORMAL_ENTERS)
		return SCRUB_TTLS(w->ttl, 0);
	return w->flags & NORMAL_LEAVES ? SCRUB_TTLS(0, w->ttl) : 0;
}

/* Stops checking the timestamps of one end if they may have wrapped. */
static __always_inline void normal_age(struct normal_way *w, __u32 age)
{
	if (w->flags & NORMAL_CHECKED && (shared.now - w->seen > NORMAL_IDLE || age > NORMAL_AGE))
		w->flags = (w->flags & ~NORMAL_CHECKED) | NORMAL_IDLED;
}

/* Returns by how much a timestamp may be larger than the last one of its end. */
static __always_inline __u32 normal_drift(const struct normal_way *own)
{
	__u64 drift = ((__u64)(shared.now - own->seen) + shared.timeout_stamp) * NORMAL_RATE;

	return drift > 0x7fffffff ? 0x7fffffff : drift;
}

/* Returns a packet's echo as its other end has sent it. */
static __always_inline __u32 normal_echo(const struct normal_way *other, __u32 echo)
{
	return echo && other->flags & NORMAL_STAMPED ? echo - other->offset : echo;
}

#define stamp_before(a, b) ((__s32)((a) - (b)) < 0)

/* Whether timestamps fit those of before: no older than what the other end has echoed, no newer
 * than its clock can be, and the echo of what the other end has sent. */
static __always_inline int normal_stamp_fits(const struct normal_way *own, const struct normal_way *other,
					     __u32 value, __u32 echo)
{
	if (stamp_before(value, other->echo) || stamp_before(own->value + normal_drift(own), value))
		return 0;
	return !echo || (!stamp_before(other->value, echo) && !stamp_before(echo, other->first));
}

/*
 * Whether a segment of a state may pass by its timestamps. As in pf, before the connection is
 * established they are not checked, data needs them if the first data had them, and a reset
 * needs none.
 */
__noinline int normal_fits(const struct state *st, __u32 d, const struct packet *p, const struct stamp *stamp,
			   struct normal *n)
{
	struct normal_way *own, *other;

	if (!st || !p || !stamp || !n)
		return 0;
	own = normal_way(n, d);
	other = normal_way(n, !d);
	if (stamp->count > 1)
		return 0;
	normal_age(own, shared.now - st->created);
	normal_age(other, 0);
	if (!(own->flags & other->flags & NORMAL_CHECKED))
		return 1;
	if (!stamp->count)
		return p->tcp_flags & TCP_RST || !p->payload || !(own->flags & NORMAL_DATA_STAMPED);
	if (st->flow_forth.peer < PEER_ESTABLISHED || st->flow_back.peer < PEER_ESTABLISHED)
		return 1;
	return normal_stamp_fits(own, other, stamp->value, normal_echo(other, stamp->echo));
}

/* Notes the first packet of a direction. Only a SYN begins timestamps. */
static __always_inline void normal_begin(struct normal_way *own, const struct packet *p, const struct stamp *stamp)
{
	own->flags |= NORMAL_BEGUN;
	if (!(p->tcp_flags & TCP_SYN) || stamp->count != 1)
		return;
	own->flags |= NORMAL_STAMPED;
	own->first = stamp->value;
}

/* Notes the timestamps of a packet; echo: as the other end has sent it. */
static __always_inline void normal_note_stamp(struct normal_way *own, __u32 value, __u32 echo)
{
	int checked = own->flags & NORMAL_CHECKED;

	own->seen = shared.now;
	if (!checked || !stamp_before(value, own->value))
		own->value = value;
	if (!echo)
		return;
	if (!checked || !stamp_before(echo, own->echo))
		own->echo = echo;
	if (!checked && (stamp_before(value, own->first) || !own->first))
		own->first = value;
	own->flags |= NORMAL_CHECKED; /* a timestamp has come back */
}

/* Notes what a segment that fits its state has. */
__noinline int normal_update(__u32 d, const struct packet *p, const struct stamp *stamp, struct normal *n)
{
	struct normal_way *own, *other;
	__u8 ttl;

	if (!p || !stamp || !n)
		return 0;
	own = normal_way(n, d);
	other = normal_way(n, !d);
	if (!(own->flags & NORMAL_ASKED))
		return 0;
	if (!(own->flags & NORMAL_BEGUN))
		normal_begin(own, p, stamp);
	ttl = p->ttl;
	if (!(own->flags & NORMAL_ENTERS) && !(p->flags & PACKET_EGRESS) && ttl)
		ttl--; /* as it leaves */
	if (own->ttl < ttl)
		own->ttl = ttl;
	if (!(own->flags & NORMAL_STAMPED))
		return 0;
	if (p->payload && !(own->flags & (NORMAL_DATA_STAMPED | NORMAL_DATA_BARE)))
		own->flags |= stamp->count ? NORMAL_DATA_STAMPED : NORMAL_DATA_BARE;
	if (stamp->count == 1 && !(own->flags & NORMAL_IDLED))
		normal_note_stamp(own, stamp->value, normal_echo(other, stamp->echo));
	return 0;
}

/* Gives a state an entry: by direction, where rules ask for it. < 0: there is no room. */
__noinline int normal_make(struct state *st, __u32 index, __u8 forth, __u8 back)
{
	struct normal n = {};
	__u32 i;

	if (!st)
		return -1;
	n.way[0].offset = bpf_get_prandom_u32();
	n.way[1].offset = bpf_get_prandom_u32();
	n.way[0].flags = forth;
	n.way[1].flags = back;
	if (bpf_map_update_elem(&normals, &index, &n, BPF_ANY))
		return -1;
	st->flow_forth.flags |= FLOW_NORMAL;
	if (!(st->flags & STATE_LOG)) {
		for (i = 0; i < STATE_LOGS; i++) {
			st->flow_forth.log[i] = 0;
			st->flow_back.log[i] = 0;
		}
		st->flags |= STATE_LOG; /* each packet takes the slow path */
	}
	st->qos |= KEPT_MIN_TTL;
	return 0;
}

/*
 * The same for an imported state. What the old table saw after it was copied is not known here,
 * so its timestamps are checked again when each end has sent one, as pf does with states of
 * another firewall. < 0: there is no room. Then the connection cannot go on, as its ends know its
 * timestamps with their offsets.
 */
static __always_inline int normal_import(__u32 index, struct normal n)
{
	n.way[0].flags &= ~NORMAL_CHECKED;
	n.way[1].flags &= ~NORMAL_CHECKED;
	return bpf_map_update_elem(&normals, &index, &n, BPF_ANY);
}

#endif
