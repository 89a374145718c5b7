/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * A state: what weir remembers of one connection. 256 bytes, four cache lines. Every
 * packet reads line 0. Packets of direction 1 and of translated connections read line 2.
 * Both are rarely written. Packets in direction 0 write line 1, those in direction 1
 * write line 3. So two cores that handle the two directions do not fight. The lines that
 * one direction reads and writes are neighbours, so the second one arrives sooner.
 *
 * Direction 0 is the direction of the packet that made the state.
 *
 * A state is at its home, the index that its first tuple's hash names, or at one of the
 * next. So most packets of direction 0 find it with one read of memory.
 *
 * Life: FREE -> NEW (one core fills it) -> LIVE -> DEAD (by anyone, one
 * compare-and-exchange) -> DYING (by the garbage collection, which notes the time) ->
 * LEAVING (by the same, DEAD_GRACE ticks later: it removes the tuples from the tuple
 * table) -> FREE. User space writes only the status LIVE -> DEAD into a state, except
 * for copies that no packet has used yet (copy.go).
 */
#ifndef WEIR_STATE_STATE_H
#define WEIR_STATE_STATE_H

#include <bpf/bpf_helpers.h>

#include "config.h"
#include "packet/tuple.h"

#define STATE_LAYOUT 16 /* changes when a value in kept maps changes its form or meaning:
			  states, the tuple table, paths and their counters, struct shared, struct
			  prefetch_note.
			  A reload then converts the states (internal/fw/dataplane/upgrade.go) */

enum status {
	STATUS_FREE,
	STATUS_NEW,
	STATUS_LIVE,
	STATUS_DEAD,
	STATUS_DYING,
	STATUS_LEAVING,
};

/* The connection's phase determines its timeout; the names are those of set timeout. */
enum phase {
	PHASE_TCP_FIRST,
	PHASE_TCP_OPENING,
	PHASE_TCP_ESTABLISHED,
	PHASE_TCP_CLOSING,
	PHASE_TCP_FINWAIT,
	PHASE_TCP_CLOSED,
	PHASE_UDP_FIRST,
	PHASE_UDP_SINGLE,
	PHASE_UDP_MULTIPLE,
	PHASE_ICMP_FIRST,
	PHASE_ICMP_ERROR,
	PHASE_OTHER_FIRST,
	PHASE_OTHER_SINGLE,
	PHASE_OTHER_MULTIPLE,
	PHASE_COUNT,
};

/* How far one end of a connection has got; it only grows while the state lives. */
enum peer {
	PEER_CLOSED,	  /* nothing seen yet; UDP and others: no traffic	*/
	PEER_SYN_SENT,	  /* TCP: SYN seen; others: one packet seen (single)	*/
	PEER_ESTABLISHED, /* TCP: its SYN was acknowledged; others: the other end replied */
	PEER_CLOSING,	  /* sent FIN						*/
	PEER_FIN_WAIT_2,  /* its FIN was acknowledged				*/
	PEER_TIME_WAIT,	  /* reset						*/
};

/* Bits of state.flags. */
#define STATE_IN	0x01 /* direction 0 crossed rules `in' and may enter	       */
#define STATE_OUT	0x02 /* direction 0 crossed rules `out' and may leave	       */
#define STATE_NAT	0x04 /* the two tuples are not each other's mirror	       */
#define STATE_EVALUATE_IN	0x08 /* the side where direction 0 came in keeps no state:    */
#define STATE_EVALUATE_OUT 0x10 /* every packet is evaluated; the same where it left */
#define STATE_OPTIONS	0x20 /* allow-opts: packets with IP options may pass	       */

#define STATE_LOG	0x40 /* a rule logs all packets: flow_forth.log has those of the side */
			     /* where direction 0 came in, flow_back.log of where it left.  */
			     /* Or it counts them (max-pkt-rate), or looks into them (FLOW_NORMAL) */
#define STATE_MARK	0x80 /* rules have set bits of the mark				       */
/* The number of rules of one side that can log all packets of a state. */
#define STATE_LOGS	3

/* Bits of state.qos. The first two have no names: bit d says that packets of direction d
 * have a priority or a queue. The others say how the connection's packets are normalised
 * (state/state_scrub.h). */
#define KEPT_NO_DF     0x0c
#define KEPT_RANDOM_ID 0x30
#define KEPT_OF(d)     (0x55 << ((d) & 1)) /* the bits of a direction, of those that have one */
#define KEPT_MIN_TTL   0x40 /* the least TTLs in flow_back.mark are valid */
#define KEPT_MAX_MSS   0x80 /* the MSS in flow_back.mark is valid	    */
#define KEPT_WAYS      0x02 /* of state.entered: the two directions differ */
#define KEPT_TOS(d)    (0x10 << ((d) & 1)) /* of state.entered: extra.tos of the direction is valid */
#define STATES_BOUND_IN  0x04 /* of state.entered: the side where direction 0 came in is bound */
#define STATES_BOUND_OUT 0x08 /* to interfaces (state/extra.h), and that where it left	   */
#define STATES_BOUND	 (STATES_BOUND_IN | STATES_BOUND_OUT)
#define KEPT_ENTERED   0x01 /* of state.entered: the tuple of direction 0 is in the tuple table */
#define KEPT_ROUTE(d)  (0x40 << ((d) & 1)) /* of state.entered: a rule has chosen where packets of direction d go; with NEXTHOP_LOCAL to a socket */
#define KEPT_ROUTES    0xc0
#define KEPT_SCRUB     (KEPT_NO_DF | KEPT_RANDOM_ID | KEPT_MIN_TTL | KEPT_MAX_MSS)

/* Bits of flow.flags. */
#define FLOW_SEEN    0x01 /* TCP: seqlo and seqhi are valid */
#define FLOW_GRANTED 0x02 /* TCP: grant is valid */
#define FLOW_SCALED  0x04 /* TCP: this end offered a window scale		       */
#define FLOW_COPIED  0x10 /* with STATE_LOG: of the side where direction 0 came in, in flow_back of where it left: copies are sent (state/extra.h) */
#define FLOW_POOLED  0x20 /* of flow_forth: it counts at addresses of pools (state/pool_count.h) */
#define FLOW_PROGRAM 0x40 /* with FLOW_COPIED: the packets themselves go there, to a program (path/divert_packet.h) */
#define FLOW_NORMAL  0x80 /* of flow_forth, with STATE_LOG: rules with scrub (reassemble tcp) apply to it (state/normal.h) */
#define FLOW_EXPORTED 0x20 /* of flow_back: a rule with pflow has made it (state/export.h) */
#define FLOW_MAPPED  0x08 /* UDP, of flow_forth: it counts under a mapping (state/endpoint.h) */

#define NEXTHOP_NONE  0 /* not looked up yet					*/
#define NEXTHOP_LOCAL 1 /* the box itself, or left to the stack */
#define NEXTHOP_FIRST 2

/* A direction's read-mostly half; written at creation and when its next hop changes. */
struct course {
	struct tuple tuple;	    /* packets of this direction arrive with it		*/
	__u16 nexthop;		    /* index into nexthops[]; NEXTHOP_NONE or _LOCAL	*/
	__u16 csum_addr;	    /* one's complement sum to add for changed addresses */
	__u16 csum_port;	    /* likewise for changed ports			*/
	__u16 nexthop_generation;   /* of the routes that nexthop was found with	*/
};

/* A direction's written half; written by this direction, except where said. */
struct flow {
	__u64 packets;
	__u64 bytes;	/* of whole IP packets					*/
	__u32 last;	/* tick of the last packet				*/
	__u32 seqlo;	/* TCP: highest sequence number sent, plus 1		*/
	__u32 seqhi;	/* TCP: highest number it may send by its own first packet */
	__u32 grant;	/* TCP: highest number that it allows the other end to send */
	__u32 max_win;	/* TCP: largest window offered, in bytes		*/
	__u8 peer;	/* enum peer; written by both directions, only grows	*/
	__u8 wscale;	/* TCP: window scale, 0 to 14				*/
	__u8 flags;	/* FLOW_*						*/
	__u8 prio;	/* priorities of its packets, as in struct rule; 0: none */
	__u32 log[STATE_LOGS]; /* STATE_LOG: global ids + 1 of rules that log all packets */
	__u32 limits;	 /* in flow_back state_limits(); in flow_forth SCRUB_VALUES(), with KEPT_WAYS */
	__u32 mark_mask; /* STATE_MARK: bits of the mark that rules have set, for the same side as log */
	__u32 mark;	 /* STATE_MARK: in flow_forth the values of those bits, for both sides; in flow_back SCRUB_VALUES() */
};

struct state {
	/* line 0: all that packets of direction 0 read, except for NAT */
	struct course forth;
	__u16 path;	/* index into path_counters				*/
	__u16 queue_forth; /* number of the queue that set queue names for direction 0; 0: none */
	__u32 status;	/* enum status; changed by compare-and-exchange only	*/
	__u8 phase;	/* enum phase						*/
	__u8 flags;	/* STATE_*						*/
	__u8 qos;	/* bit d: packets of direction d have a priority or a queue; KEPT_* */
	__u8 entered;	/* KEPT_ENTERED, KEPT_WAYS, STATES_BOUND_*, KEPT_TOS(), KEPT_ROUTES */
	__u32 check_at; /* tick before which it cannot expire; DYING: before which it is not released */
	/* line 1 */
	struct flow flow_forth;
	/* line 2 */
	struct course back;
	__u32 created;	/* tick							*/
	__u32 rule_in;	/* global id of the rule that decided, 0: none		*/
	__u32 rule_out;
	__u16 tag;	/* set by the side that keeps state; 0: none			*/
	__u16 queue_back; /* the same for direction 1 */
	/* line 3 */
	struct flow flow_back;
} __attribute__((aligned(64)));

_Static_assert(MAX_PATHS <= 1 << 16, "state.path holds the index of any");
_Static_assert(sizeof(struct course) == 48, "course");
_Static_assert(sizeof(struct flow) == 64, "a flow is one cache line");
_Static_assert(sizeof(struct state) == 256, "a state is four cache lines");
_Static_assert(__builtin_offsetof(struct state, flow_back) == __builtin_offsetof(struct state, flow_forth) + 128,
	       "state_flow()");

static __always_inline struct course *state_course(struct state *s, __u32 direction)
{
	return direction ? &s->back : &s->forth;
}

static __always_inline struct flow *state_flow(const struct state *s, __u32 direction)
{
	return (struct flow *)((char *)&s->flow_forth + (direction & 1) * 128);
}

/* Returns the numbers of the limits that count the state: LIMITS_* (state/limit.h). */
static __always_inline __u32 *state_limits(const struct state *s)
{
	return (__u32 *)&s->flow_back.limits;
}

/* Whether a rule with divert-to or divert-reply has made the state: packets of this
 * direction go to a socket of the box, whatever their destination. */
static __always_inline int state_is_diverted(const struct state *s, __u32 d)
{
	return s->entered & KEPT_ROUTE(d) && state_course((struct state *)s, d)->nexthop == NEXTHOP_LOCAL;
}

static __always_inline int state_has_socket(const struct state *s)
{
	return state_is_diverted(s, 0) || state_is_diverted(s, 1);
}

/* Whether a rule with af-to has made the state: its tuples are of two address families. */
static __always_inline int state_changes_family(const struct state *s)
{
	return af_to && s->flags & STATE_NAT && addr_is4(&s->forth.tuple.dst) != addr_is4(&s->back.tuple.src);
}

/* Whether a side keeps no state: each packet meets the rules of that side. */
static __always_inline int state_is_evaluated(const struct state *s)
{
	return s->flags & (STATE_EVALUATE_IN | STATE_EVALUATE_OUT);
}

/* Returns the number of the queue for packets of a direction; 0: none. */
static __always_inline __u16 state_queue(const struct state *s, __u32 direction)
{
	return direction ? s->queue_back : s->queue_forth;
}

/* kept; the states themselves, index 0 unused. mmapped for reading. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1); /* state_capacity + 1, by the loader */
	__type(key, __u32);
	__type(value, struct state);
} states SEC(".maps");

#define STATE_NUMBER(index, direction) ((index) << 1 | (direction))
#define STATE_INDEX(number)	       ((number) >> 1)
#define STATE_DIRECTION(number)	       ((number) & 1)

static __always_inline struct state *state_get(__u32 index)
{
	return bpf_map_lookup_elem(&states, &index);
}

/* Reads a line of memory that is needed soon: reads in a row are waited for only once. */
#define touch(field) asm volatile("" ::"r"(*(const volatile __u32 *)&(field)))

/* Whether the number's state and direction have this tuple. */
static __always_inline int state_has_tuple(__u32 number, const struct tuple *t)
{
	struct state *s = state_get(STATE_INDEX(number));

	return s && tuple_equal(&state_course(s, STATE_DIRECTION(number))->tuple, t);
}

/* Returns the crossing that a packet of this direction makes at this hook. */
static __always_inline __u8 state_crossing(__u32 direction, int in)
{
	if (in)
		return direction ? STATE_OUT : STATE_IN;
	return direction ? STATE_IN : STATE_OUT;
}

/* Returns the tuple of the packet as it will leave, in the order of its own direction. */
static __always_inline void state_leaving_tuple(struct tuple *t, const struct state *st, __u32 d)
{
	tuple_reverse(t, d ? &st->forth.tuple : &st->back.tuple);
}

#endif
