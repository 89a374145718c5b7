/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * Queues that hold no packets. Each interface and direction may have a tree of classes, and
 * each connection has a counter in one of them: the bytes that it has sent, and that a real
 * queue would still hold. A packet is sent at once, or dropped if its connection's counter
 * has no room. A timer drains the counters at the rate that the tree gives them
 * (queue/drain.h). Packets only compare and add (queue/admit.h): they take no lock, and only one
 * that would be dropped looks at the clock, because the timer may be late. docs/queues.md explains the method.
 *
 *   shaper   the tree of one interface and direction
 *   class    a queue of pf.conf
 *   host     the connections of one address in a class
 *   counter  one connection, in one class
 *
 * Units: bytes on the line. "fine" amounts are in 1/65536 bytes.
 */
#ifndef WEIR_QUEUE_QUEUE_H
#define WEIR_QUEUE_QUEUE_H

#include <linux/types.h>
#include <bpf/bpf_helpers.h>

#include "config.h"

#define QUEUE_FINE 16 /* bits of a fine amount below the point */

/* How a line cuts packets: shaper.Cells. */
enum queue_cells {
	QUEUE_PLAIN,
	QUEUE_ATM, /* 53 bytes for 48, the last cell filled up */
	QUEUE_PTM, /* 65 bytes for 64 */
};

/* Between whom a class is shared: shaper.Fairness. */
enum queue_fair {
	QUEUE_HOST_FLOW,
	QUEUE_FLOW,
	QUEUE_HOST,
};

#define QUEUE_HELD_BY 2

/* Written by the loader; [0] is none. */
struct queue_shaper {
	__s16 overhead; /* bytes that a packet takes beyond its IP packet	     */
	__u16 mpu;	/* the least bytes of a packet with them		     */
	__u8 cells;	/* enum queue_cells					     */
	__u8 in;	/* it shapes what comes in				     */
	__u8 set_by;	/* who has given it another rate than the rules have; 0: nobody */
	__u8 held;	/* a qdisc holds its packets; weir only names their class. QUEUE_HELD_BY + the
			 * number of a core: that core goes on with those that XDP passes to the stack */
	__u32 first;	/* its root; its classes follow, parents before children     */
	__u32 classes;
	__u32 fallback; /* the class of packets that name none; 0: they are not shaped */
	__u32 epoch;	/* changes when classes change: counters of before are not used */
	__u32 device;	/* with held, of what comes in: the interface whose qdisc that is */
};

/* A rate of the tree, in 2^-24 bytes per microsecond. For `first` milliseconds of a busy
 * period it is burst. */
struct queue_rate {
	__u64 rate;
	__u64 burst;
	__u32 first;
	__u32 pad;
};

/* Why a packet is dropped: docs/queues.md. */
enum queue_why {
	QUEUE_FULL_COUNT, /* its connection owes all that it may */
	QUEUE_OF_YOUNG,	  /* the new connections of its host or class owe all that they may together */
	QUEUE_OF_DEAF,	  /* its connection pays no heed to losses, so it gets its share alone */
	QUEUE_OF_START,	  /* one loss, to tell a connection that starts */
	QUEUE_REASONS,
};

struct queue_class {
	/* written by the loader */
	__u32 shaper;
	__u32 parent;	/* 0: it is a root */
	__u32 child;	/* the first; others follow */
	__u32 children;
	__u32 weight;
	__u8 priority;	/* 0 to 15 */
	__u8 fair;	/* enum queue_fair */
	__u8 ecn;
	__u8 changes;	/* how often depth has changed; wraps */
	__u32 window;	/* milliseconds: the time over which bursts are judged */
	__u32 refit;	/* depth, in 1/65536 of what it was before the last change */
	__u64 depth;	/* bytes that a counter may hold */
	__u64 ceiling;	/* bytes per millisecond: the most that it or a class above it allows */
	struct queue_rate min; /* 0: none */
	struct queue_rate max; /* 0: none; a root has one */
	__u32 pad2[8];

	/* written by the timer */
	__u64 virtual;	/* fine: what each host with backlog has been given since the start */
	__u64 level;	/* fine, per millisecond: what one more host would get; smoothed */
	__u64 step;	/* fine, per millisecond: what each host with a need was given last */
	__u64 most;	/* fine, per millisecond: what all together could have had then */
	__u64 backlog;	/* bytes: the needs of its counters */
	__u64 owed;	/* bytes that young counters have sent and that are not yet drained; of a root: in its tree */
	__u64 credit;	/* fine: given to hosts that did not need it */
	__u64 need;	/* fine: what it can use in this pass */
	__u64 grant;	/* fine: what it gets in this pass */
	__u64 spare;	/* fine: what it could have had beyond that */
	__u64 saved;	/* fine: what max allowed and it did not get, of the last milliseconds */
	__u64 allowed;	/* fine: what max allows in this pass */
	__u64 rest;	/* fine: too little for each of its hosts */
	__u32 hosts;	/* with a need */
	__u32 counters;	/* likewise */
	__u32 busy;	/* millisecond at which its busy period began */
	__u32 last;	/* millisecond at which it last had backlog */
	__u32 lazy;	/* of a root: lazy counters in its tree */
	__u32 busy_leaves; /* of a root: classes in its tree whose counters have a need */
	__u32 sharers;	/* weights of its children that have shared its grant; those of the highest priority */
	__u32 first;	/* that priority */
	__u32 tree;	/* of a root: counters with a need in its tree */
	__u8 full;	/* its young counters owe much: new ones have to share */
	__u8 crowded;	/* and they owe more than their share of that */
	__u8 hungry;	/* it gets less than it needs */
	__u8 easy;	/* its children get all that they need */
	__u32 weights;	/* of its children with a need */
	__u32 levels;	/* a bit for each of their priorities */
	__u64 sure;	/* fine: what is guaranteed to them */
	__u64 asked;	/* fine: what they need */
	__u64 idle;	/* of a root, fine, per millisecond: what each lazy counter may be rid of */
	/* statistics, by the timer */
	__u64 sent;
	__u64 packets;
	__u64 granted;	/* bytes */
	__u64 served;	/* of a root: queue_run.total up to which its tree has been given time */
	__u64 why[QUEUE_REASONS]; /* packets of drops, by enum queue_why */

	/* written by packets and the timer */
	__s64 fresh;	/* bytes that new counters may take until the next pass */
	__s64 trickle;	/* the same for those whose host or class is full */
	__u64 marked;	/* packets */
	__u64 drops;	/* packets; by the timer */
	__u64 lost;	/* bytes of them; by the timer */
	__u64 shared;	/* packets whose counter is another connection's, because none was free */
	__u64 pad6[2];
} __attribute__((aligned(64)));

/* Bytes and packets in one word, which one addition counts. Bytes wrap at 2^44. */
#define QUEUE_PACKET	    (1ULL << 44)
#define QUEUE_PACKED(bytes) (QUEUE_PACKET | (bytes))
#define QUEUE_BYTES(word)   ((word) & (QUEUE_PACKET - 1))

#define QUEUE_END ~0u

#define QUEUE_PART 64 /* of a share of a window, for an amount in one byte */

/* Bits of queue_counter.kind: packets count elsewhere. */
#define QUEUE_IS_PAIR 1 /* urgent ones under the key with QUEUE_KEY_URGENT */
#define QUEUE_IS_HOST 2 /* all under the key of their host */

/* How far a connection has found its rate. */
enum queue_pace {
	QUEUE_STARTS,
	QUEUE_TOLD,    /* of congestion; it slows down after a round trip */
	QUEUE_HEARS,   /* likewise, in the window after that */
	QUEUE_HEARD,   /* likewise, in the one after that */
	QUEUE_SETTLED,
	QUEUE_SLOWED,  /* a burst was judged; it has still to slow down */
};

/* News of congestion for a connection. */
enum queue_news {
	QUEUE_NO_NEWS,
	QUEUE_NEWS, /* its next packet tells of congestion; by the timer */
	QUEUE_COST, /* a packet was dropped for it; by packets */
	QUEUE_SENT, /* a packet has a mark, and the sender has not said yet that it has slowed down; by packets */
};

struct queue_counter {
	/* read and written by packets */
	__u64 key;	/* of queue_key(); 0: free				*/
	__u64 sent;	/* QUEUE_PACKED: all that has passed			*/
	__u64 until;	/* the value that the bytes of sent may reach; by the timer */
	__u64 dropped;	/* QUEUE_PACKED						*/
	__u64 host;	/* key of its host					*/
	__u32 class;
	__u32 rate;	/* bytes per millisecond that it gets; by the timer	*/
	__u32 next;	/* in the list of a core (queue_head): index + 1, QUEUE_END; 0: it is in none */
	__u8 fresh : 1;	/* the timer has not given it any room yet		*/
	__u8 why : 2;	/* enum queue_why of what is beyond until; by the timer	*/
	__u8 tell;	/* enum queue_news					*/
	__u8 kind;	/* QUEUE_IS_*						*/
	__u8 grace;	/* QUEUE_PART of its share: room beyond until, for packets with marks; by the timer */
	__u32 place;	/* in queue_active; by the timer			*/
	__u32 self;	/* its own index					*/
	/* the timer's own */
	__u64 seen;	/* sent, when it was last looked at			*/
	__u64 size;	/* bytes of backlog, with magic				*/
	__u64 magic;	/* bytes of it that were never sent: a full queue slows a burst down */
	__u64 served;	/* fine: the host's virtual amount up to which it is drained */
	__u32 window;	/* bytes in the present window				*/
	__u32 began;	/* millisecond at which that began			*/
	union {
		__u32 missed; /* bytes dropped in it				*/
		__u32 before; /* while it starts: bytes in the window before it */
	};
	__u32 need;	/* bytes of size that it has to be rid of to get its share */
	union {
		__u16 born;   /* while it is young: millisecond of its first packet; wraps */
		__u16 looked; /* later: millisecond at which it was last looked at; wraps  */
	};
	__u8 pace;	/* enum queue_pace					*/
	__u8 high;	/* the step of what it owes at which marks begin	*/
	__u32 last;	/* millisecond of the last packet			*/
	__u32 at;	/* index of its host + 1; 0: it has none yet		*/
	__u8 young : 1;	/* what it owes counts at its host and class		*/
	__u8 calm : 2;	/* windows with less than half its share, in a row	*/
	__u8 fast : 1;	/* it starts, and sent more than 1.25 shares in the window before */
	__u8 lazy : 1;	/* it has magic, and room enough			*/
	__u8 steady : 1; /* it is deaf, so it gets its share and little more at once */
	__u8 hush : 2;	/* windows that remain for its sender to hear of a mark	*/
	__u8 changes;	/* those of its class that its backlog fits		*/
	__u8 deaf;	/* windows in which it paid no heed to losses		*/
	__u8 hurt : 2;	/* 2: it has lost packets; less by one for each window in which it sends */
	__u8 waits : 6; /* windows for which its windows are 250 ms or more: it waits for its timer (queue_wait) */
} __attribute__((aligned(64)));
_Static_assert(sizeof(struct queue_counter) == 128, "two lines: the packets' and the timer's");

struct queue_host {
	__u64 key;	/* of queue_host_key(); 0: free				*/
	__u64 virtual;	/* fine: what each counter with backlog has been given	*/
	__u64 served;	/* the class's virtual amount up to which it is drained	*/
	__u64 rest;	/* fine: too little for each of its counters		*/
	__u64 owed;	/* bytes that young counters have sent and that are not yet drained */
	__u64 level;	/* fine, per millisecond: what one more counter would get; smoothed */
	__u32 backlogged; /* counters with a need				*/
	__u32 counters;	/* all							*/
	__u32 last;	/* millisecond at which a counter was last there	*/
	__u16 tick;	/* of its last update; wraps				*/
	__u8 full;	/* its young counters owe much: they have to share with new ones */
	__u8 crowded;	/* and they owe more than their share			*/
} __attribute__((aligned(64)));
_Static_assert(sizeof(struct queue_host) == 64, "one line");

/* By the timer. */
struct queue_clock {
	__u64 last;	/* nanoseconds up to which the tree has been served	*/
	__u32 ms;	/* of that						*/
	__u32 tick;	/* number of runs					*/
	__u32 active;	/* counters in queue_active				*/
	__u32 busy;	/* those of them that have backlog, or had it just now: the first */
	__u32 cursor;	/* over the busy ones					*/
	__u32 quiet;	/* over the others					*/
	__u32 taken;	/* over new counters: index + 1				*/
	__u32 lock;
	__u64 stop;	/* nanoseconds at which the present part of a run ends	*/
	__u64 longest;	/* nanoseconds of the longest run			*/
	__u64 spent;	/* of all runs						*/
	__u64 late;	/* runs that came more than QUEUE_LATE_NS late		*/
	__u64 lost;	/* nanoseconds that were not served, because a run came too late */
};

/* Where the work on trees is (queue/shares.h). */
enum queue_phase {
	QUEUE_NEXT,	  /* it looks for a tree */
	QUEUE_NEEDS,	  /* of the classes of the tree */
	QUEUE_SERVES,	  /* likewise */
	QUEUE_GUARANTEES, /* of the children of parent, as what follows */
	QUEUE_SCALES,
	QUEUE_WEIGHS,
	QUEUE_FILLS,
};

/* A run of the timer. It is not on its stack: the verifier would walk all values. */
struct queue_run {
	__u64 us;    /* microseconds that it serves */
	__u32 ms;
	__u32 tick;
	__u64 total; /* microseconds that all runs have served */
	__u32 start; /* the first tree that it has begun; 0: none yet */
	/* The tree that is being given time. It may go on in the next run. */
	__u32 tree;
	__u64 given;   /* microseconds */
	__u64 left;    /* fine: of the grant of parent */
	__u64 wants;   /* of its children */
	__u64 weights; /* of those that want more */
	__u64 hungry;  /* likewise, after this round */
	__u32 began;   /* the millisecond at which it began */
	__u32 begin;   /* its classes */
	__u32 end;
	__u32 phase;   /* enum queue_phase */
	__u32 at;      /* the number of the next class in it */
	__u32 parent;  /* the class whose children are served */
	__u32 next;    /* the number of the class that is served afterwards */
	__u32 levels;  /* a bit for each priority that wants anything */
	__u32 level;
	__u32 rounds;
};

/* Counters of a core that the timer has to look at: the index of the first + 1. */
struct queue_head {
	__u32 first;
	__u32 pad[15];
} __attribute__((aligned(64)));

/* Which trees the packets of an interface meet. */
struct queue_place {
	__u8 out;
	__u8 in;
	__u8 out_more; /* bytes that they take on that line beyond what the tree says: a tag */
	__u8 in_more;
};

/* Whether the slot of a connection follows a segment (queue/trip.h). */
enum trip {
	TRIP_IDLE,
	TRIP_DUE,
	TRIP_ARMED,
	TRIP_UNDER_WAY,
};

struct queue_trip {
	__u32 number; /* of the state, with the direction of the segment; 0: none */
	__u32 end;    /* of the segment; armed: of all that was sent */
	__u32 ms;     /* when it was sent, or the slot was armed */
	__u32 class;
};

/* Samples of one stretch of QUEUE_RTT_MS. */
struct queue_rtt_part {
	__u32 window; /* its number */
	__u32 counts[QUEUE_RTT_BUCKETS];
};

struct queue_rtt {
	struct queue_rtt_part part[2]; /* even windows, odd ones */
};

/* One section for all programs of a generation. */
struct queue_section {
	struct queue_clock clock;
	struct queue_run run;
	struct queue_head heads[QUEUE_CPUS];
	struct queue_shaper shapers[QUEUE_SHAPERS];	/* by the loader */
	struct queue_place places[MAX_IFINDEX];		/* likewise; by interface */
	__u8 full[QUEUE_FULL];	/* by the timer: QUEUE_FULL_AT(host) owes much */
	__u8 on[QUEUE_TRIPS];	/* enum trip */
	struct queue_trip trips[QUEUE_TRIPS];
};
#define QUEUE_FULL_AT(key) ((__u32)((key) >> 24) & (QUEUE_FULL - 1))

extern struct queue_section queue_data;

/* A packet, for its queue. */
struct queue_ask {
	__u32 shaper;
	__u32 bytes;	/* on the line */
	__u32 flow;	/* the number of its state, or a hash; below QUEUE_FLOWS */
	__u16 queue;	/* number of its queue, or of a pair of queues; 0: none */
	__u16 other;	/* the queue of the other direction, if the tree does not have that one */
	__u8 hashed;	/* flow is a hash */
	__u8 ecn;	/* its ECN field (RFC 3168, 5); 0: a mark has no effect */
	__u8 cwr;	/* its sender has slowed down for a mark (RFC 3168, 6.1.2) */
	__u8 urgent;	/* of a pair it takes the second */
	__u8 fallback;	/* handle is that of the default */
	__u32 class;	/* its class, or that which drops it; 0: none */
	__u32 why;	/* enum queue_why, if it is dropped */
	__u32 handle;	/* its class of the qdisc that holds the packet; 0: none holds it */
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1); /* classes + 1, by the loader; [0] is none */
	__type(key, __u32);
	__type(value, struct queue_class);
} queue_classes SEC(".maps");

/* The class of a queue's number in a tree: QUEUE_MEMBER(). By the loader. */
#define QUEUE_MEMBER(shaper, queue) ((shaper) << 16 | (queue))
#define QUEUE_MEMBER_URGENT (1u << 31) /* of the key: for urgent packets */
#define QUEUE_MEMBER_PAIR   (1u << 31) /* of the value: urgent packets have a class of their own */
#define QUEUE_MEMBER_CLASS  0xffffu
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, __u32);
} queue_members SEC(".maps");

/* queue_slots counters by their key, and then one for each class, for connections that find
 * no free one. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct queue_counter);
} queue_counters SEC(".maps");

/* Likewise queue_host_slots hosts. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct queue_host);
} queue_hosts SEC(".maps");

/* Indices of the counters that the timer drains, in no order. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, __u32);
} queue_active SEC(".maps");

/* Round-trip times by class; as queue_classes. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct queue_rtt);
} queue_rtts SEC(".maps");

static __always_inline struct queue_class *queue_class_get(__u32 index)
{
	return bpf_map_lookup_elem(&queue_classes, &index);
}

static __always_inline struct queue_counter *queue_counter_get(__u32 index)
{
	return bpf_map_lookup_elem(&queue_counters, &index);
}

/* Returns the bytes that a counter has room for; < 0: none. */
static __always_inline __s64 queue_room(const struct queue_counter *q, __u64 sent)
{
	return (__s64)((q->until - sent) << 20) >> 20;
}

static __always_inline struct queue_host *queue_host_get(__u32 index)
{
	return bpf_map_lookup_elem(&queue_hosts, &index);
}

static __always_inline struct queue_shaper *queue_shaper_get(__u32 number)
{
	return &queue_data.shapers[number & (QUEUE_SHAPERS - 1)];
}

/* Returns the number of the highest bit of 16; 0 if none is set. */
static __always_inline __u32 queue_highest(__u32 bits)
{
	__u32 n = 0;

	if (bits >> 8)
		n = 8;
	if (bits >> (n + 4))
		n += 4;
	if (bits >> (n + 2))
		n += 2;
	return bits >> (n + 1) ? n + 1 : n;
}

#define QUEUE_MIX 0x9e3779b97f4a7c15ULL

/* Returns the key of a host in a class. */
static __always_inline __u64 queue_host_key(__u64 host, __u32 class)
{
	host ^= (__u64)class << 40;
	host *= QUEUE_MIX;
	host ^= host >> 29;
	return host | 1;
}

/* Returns where the search for a key begins: the first of QUEUE_WAYS in a row. */
static __always_inline __u32 queue_slot(__u64 key, __u32 slots)
{
	return (__u32)(key * QUEUE_MIX >> 32) & (slots - 1) & ~(QUEUE_WAYS - 1);
}

#endif
