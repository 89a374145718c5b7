/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * Settings and limits of the dataplane. Settings are const volatile: the loader
 * writes them before the verifier runs, which then removes the dead branches.
 */
#ifndef WEIR_CONFIG_H
#define WEIR_CONFIG_H

#include <linux/types.h>

/* Time. One tick is 10 ms; ticks are 32 bits and compared by signed difference,
 * so spans up to 248 days are told apart. */
#define TICK_NS		 10000000ULL
#define TICKS_PER_SECOND 100

/* The bound of indices into interfaces[]. The kernel numbers interfaces from 1 in each
 * network namespace, so only a host that created 16,383 of them exceeds it. */
#define MAX_IFINDEX	 16384
/* Next hops known at once: 64 bytes each. */
#define MAX_NEXTHOPS	 32768
/* Distinct sets of matched rules that are counted separately. */
#define MAX_PATHS	 16384
/* Rules of one set, after expansion. */
#define MAX_RULES	 65536
/* Rules that one crossing of one packet is counted under. */
#define MAX_MATCHES	 8

/* Extension headers of a packet. */
#define IPV6_EXT_MAX_CHAIN 8
#define IPV6_EXT_MAX_BYTES 512
/* Headers begin within this many bytes of the frame's start. The verifier needs a bound;
 * this one is far beyond any encapsulation and any chain. */
#define HEADERS_MAX	   4096
#define TCP_MAX_OPTIONS	   40
/* Tags and PPPoE sessions that a frame may have, in any mix. */
#define ENCAP_LAYERS	   2
/* Room for logical interfaces, and how many entries are searched for one: those of a
 * cache line. */
#define MAX_LOGICALS	   16384
#define LOGICAL_BUCKET	   8
#define BUCKET_SLOTS	   7
#define TUPLES_TRIES	   64 /* tries at a bucket that other cores hold */
#define NAT_PORT_TRIES	   1024
/* A state's home, and the indices next to it, at which a tuple is searched before the
 * tuple table is read. */
#define HOME_PROBES	   3
/* Homes while there are few states, and by how much they grow (state/home.h), and ticks
 * within which a quarter of them is taken if far more states are to come. */
#define HOMES_LEAST	   8192
#define HOMES_FACTOR	   16
#define HOMES_LATELY	   32
/* The same for hints: those of 16 states are neighbours. */
#define HINT_PROBES	   8
/* Indices that a new state tries: those first, and then any. At most three of four are
 * taken, so at the limit it finds none once in 10^7 times. */
#define ALLOC_TRIES	   64

/* A state is released this many ticks after it was marked dead: by then no
 * packet on any core still holds a pointer to it. */
#define DEAD_GRACE	   10
/* States that one run of the timer looks at, every GC_NS. */
#define GC_SLICE	   4096
#define GC_NS	   10000000ULL
/* A packet that meets an older next hop looks it up again. */
#define NEXTHOP_FRESH	   (1 * TICKS_PER_SECOND)
/* Without the daemon, one packet per next hop and this span goes through the stack,
 * which then probes the neighbour. */
#define NEXTHOP_PROBE	   (30 * TICKS_PER_SECOND)
/* A next hop that no packet has used for this long gives its number back. The walks over
 * the table begin this long after the last one ended. One run of the timer looks at this
 * many. */
#define NEXTHOP_IDLE	   (60 * TICKS_PER_SECOND)
#define NEXTHOP_WALK	   50
#define NEXTHOP_SLICE	   64
_Static_assert(NEXTHOP_WALK > DEAD_GRACE, "between two walks packets end");
/* If its heartbeat is older, the daemon counts as dead. */
#define DAEMON_DEAD	   (3 * TICKS_PER_SECOND)

/* For this long after a DHCP client of the box has asked, servers' replies come in even
 * if the box has an address without end of life: clients repeat within 64 s. */
#define DHCP_PATIENCE	   (64 * TICKS_PER_SECOND)

/* Rejects (block return) that a core sends in a second, and at
 * once after a pause. */
#define REJECT_RATE	   1000
#define REJECT_BURST	   200

/*
 * skb->mark belongs to the administrator, except for the bits of mark_mask (set
 * mark-mask). Their value says where TCX egress finds what was decided about a packet
 * that the stack forwards (path/handoff.h). The guard (nftables table inet weir) drops
 * packets without a value.
 */
enum mark {
	MARK_NONE,   /* not one of weir's						    */
	MARK_CAME,   /* the packet's tuple is the one that its state knows it by	    */
	MARK_LEAVES, /* the packet is as it leaves: its state has the tuple of its reply */
	MARK_DIVERT, /* a socket of the box has it, or an ICMP error about such a packet: the
			 daemon's routing rule delivers it, whatever its destination */
	MARK_RECORD, /* and above: record number (value - MARK_RECORD) of its tuple	    */
};

/* Records of packets that look the same in the stack, and how long they are kept: the
 * stack waits 3 s for a neighbour, then sends errors about them. */
#define HANDOFF_RECORDS	   8
#define HANDOFF_LIFE	   (10 * TICKS_PER_SECOND)

/* Rules whose states are limited, or were: states hold their numbers. */
#define MAX_LIMITS	   16384
/* set limit src-nodes */
#define MAX_SOURCES	   0x00ffffffu
/* Tries at a source that another core makes or removes right now. */
#define SOURCE_TRIES	   4
/* State limiters by their id, and then source limiters (state/limiter_map.h). */
#define MAX_LIMITERS	   512
/* Tries to add to the threshold of a source that other cores add to. */
#define RATE_TRIES	   8
/* Sources that one run of the timer looks at. */
#define SOURCE_SLICE	   1024
/* A source that is over is kept this long without states, so that a daemon that was dead
 * finds it. */
#define SOURCE_OVER	   (3600 * TICKS_PER_SECOND)

#define MAX_STATES	   0x03ffffffu
#define MAX_NUMBER	   (MAX_STATES << 1 | 1)

/* IPsec policies that are followed (path/policy.h), and the forms that the selectors of a
 * direction and family may have. Beyond, the stack forwards everything. */
#define MAX_POLICIES	   16384
#define POLICY_SHAPES	   32

/* What rules set in skb->priority; 0: nothing. The number of the queue is above these
 * bits. */
#define QOS_PRIO	   0x8000 /* a priority is given */
#define QOS_PRIO_MASK	   0x7
#define QOS_QUEUE_SHIFT	   16

/* The qdisc whose classes are those of a tree of queues: internal/fw/htb. */
#define QUEUE_HANDLE	   0x77660000u

/* In skb->cb[3] of a packet whose priority weir has set: cb[4] is that priority. A veth pair forgets
 * it, as that of a PPPoE device does. */
#define NOTE_PRIORITY	   0x7072696fu

/* skb->tc_index of a packet that waits where it leaves: the number of its host, for queues that share
 * among hosts. They see the packet after its translation. */
#define TELL_HOST	   0x7000u
#define TELL_HOST_ALONE   0x0400u /* the connections of a host share one queue */
#define TELL_HOST_NUMBER  0x03ffu

/* Bits of the mark that the rules on the way out have set on a packet without a state.
 * The packet gets them where it leaves: they must not steer its route, by which those
 * rules were chosen. */
struct out_mark {
	__u32 bits;
	__u32 mask;
};

/* How fragments that come in meet the rules (shared.fragments). */
enum fragment_rules {
	FRAGMENTS_FOLLOW, /* they follow their first one */
	FRAGMENTS_ALONE,  /* set reassemble no: each meets them for itself */
	FRAGMENTS_LISTED, /* the first of FreeBSD's scrub rules that matches one decides */
};

/* What XDP leaves in front of a frame for TCX ingress of the frame's interface: the
 * device itself, or a VLAN device on it. */
struct metadata {
	__u32 magic;
	__u32 mark;    /* that the packet gets					*/
	__u32 number;  /* METADATA_*, and of the packet's state or next hop; 0: none. Without
			* METADATA_REDIRECT the class in which it waits (path/queue_packet.h) */
	__u32 ifindex; /* of that interface; no other one accepts it */
	__u32 qos;     /* for skb->priority: QOS_*				*/
	struct out_mark out; /* valid iff TCX redirects it and it has no state */
};
#define METADATA_REDIRECT  0x80000000u /* TCX ingress redirects it */
#define METADATA_NEXTHOP   0x40000000u /* it has no state, and number is that of its next hop */
#define METADATA_PROBE	   0x20000000u /* the kernel is to send it, so that it probes the neighbour */
#define METADATA_ALONE	   0x10000000u /* a fragment that met the rules for itself, if they choose which do */
#define METADATA_BRIDGE	   0x08000000u /* an ether rule sends the frame on as it is: the rest is the index of an interface */
#define METADATA_MAGIC	   0x77656972u

/* Between a frame's two passes (path/prefetch.h) this is in place of its MACs. For a
 * moment the programs of two generations read each other's: another form needs another
 * STATE_LAYOUT. */
struct prefetch_note {
	__u32 secret; /* prefetch_secret			*/
	__u32 index;  /* of the state			*/
	__u16 nexthop;
	__u16 ifindex; /* where it came in		*/
};
_Static_assert(sizeof(struct prefetch_note) == 12, "two MACs");
_Static_assert(MAX_IFINDEX <= 1 << 16 && MAX_NEXTHOPS <= 1 << 16, "they fit into a note");

/* Prefetch (path/prefetch.h): the first passes of a core whose second passes are still
 * due: those of one bulk of a devmap. */
#define PREFETCH_BATCH		   16
/* Packets of the connections that a core has seen last take one pass: as many states as a
 * second-level cache holds. */
#define PREFETCH_RECENT		   1024
/* Next hops that hints can name at once: a byte of the hint. */
#define HINTED	   256
/* After this many packets of an interface in a row without a hint, the next ones do not
 * look for one, up to PREFETCH_MISSES_MAX. */
#define PREFETCH_MISSES		   64
#define PREFETCH_MISSES_MAX	   1024
/* However long its timeout, the timer looks at a state this often, so that a shorter
 * timeout set meanwhile takes effect. */
#define GC_REVISIT	   (10 * TICKS_PER_SECOND)

/* Queues (queue/queue.h). Trees, one for each interface and direction; [0] is none. */
#define QUEUE_SHAPERS	   256
/* A key is looked for at this many places. */
#define QUEUE_WAYS	   8
#define QUEUE_CPUS	   1024
#define QUEUE_TRIES	   16
/* The timer runs this often. It serves at most QUEUE_MOST_NS at once; the rest is lost. If it
 * is later than QUEUE_LATE_NS, packets take what it would have given them, for QUEUE_LATE_MS
 * at most. */
#define QUEUE_TICK_NS	   1000000ULL
#define QUEUE_MOST_NS	   100000000ULL
#define QUEUE_LATE_NS	   2000000ULL
#define QUEUE_LATE_MS	   100
/* Counters without backlog that one run looks at; new ones that it takes over from one core.
 * How long it takes over new ones at most; when it stops looking at counters; how long it gives time to trees, and in how
 * many steps: all together less than 100 microseconds. */
#define QUEUE_SLICE	   256
#define QUEUE_NEW	   1024
#define QUEUE_TAKE_NS	   15000
#define QUEUE_WALK_NS	   40000
#define QUEUE_TREES_NS	   40000
#define QUEUE_TREE_STEPS   (1 << 20)
/* Places for the hosts that owe too much. */
#define QUEUE_FULL	   65536
/* Milliseconds: a counter without packets is idle after QUEUE_IDLE, or QUEUE_KEPT if packets
 * of it count elsewhere too, or QUEUE_HURT if it has lost some. One without backlog is looked at less often after QUEUE_CALM. A
 * host without counters is forgotten after QUEUE_HOST_IDLE. A connection is young for
 * QUEUE_YOUTH. A tree without backlog rests after QUEUE_REST. */
#define QUEUE_IDLE	   200
#define QUEUE_HURT	   500
#define QUEUE_KEPT	   10000
#define QUEUE_CALM	   20
#define QUEUE_HOST_IDLE	   200
#define QUEUE_YOUTH	   1000
#define QUEUE_REST	   500
/* Milliseconds of silence that tell that TCP has waited for its retransmission timer, and that the round trip is short: Linux
 * waits 200 ms and a round trip. For QUEUE_WAITS windows, one is at least as long as the latter. */
#define QUEUE_TIMER	   180
#define QUEUE_TIMER_MOST   250
#define QUEUE_WAITS	   8
/* Marks (ECN): a share has QUEUE_STEPS steps. A connection with a share of QUEUE_AWAITED or more gets a further mark only when
 * its sender has said that it has heard, or QUEUE_HUSH windows have passed, and when it owes QUEUE_MARGIN steps more. */
#define QUEUE_STEPS	   32
#define QUEUE_AWAITED	   (4 * QUEUE_TELL)
#define QUEUE_HUSH	   2
#define QUEUE_MARGIN	   4
/* Windows whose share a connection can save up by sending less: what it may send at once. */
#define QUEUE_EARNED	   3
/* The least share of a window of which a connection is told in time. */
#define QUEUE_TELL	   (32 * QUEUE_PACKET_BYTES)
/* Who loses less than an eighth of its share of a window has slowed down. */
#define QUEUE_FEW	   8
/* Windows in which a connection paid no heed to losses, so that it gets little at once, until there are half as many; the
 * most that count. By which part of its share it may then exceed it, and what it may send at once. */
#define QUEUE_DEAF	   8
#define QUEUE_DEAF_MOST	   32
#define QUEUE_STEADY	   36
/* Who owes twice of what it may, because its share has become smaller, pays back a sixteenth of what it gets. */
#define QUEUE_PAID_BACK	   16
/* Bytes of a packet, and the least share of a window. */
#define QUEUE_PACKET_BYTES 1538
#define QUEUE_LEAST	   (2 * QUEUE_PACKET_BYTES)
/* What new connections may take in one run of the timer: bytes, and time at the class's rate. */
#define QUEUE_FRESH	   65536
#define QUEUE_FRESH_MS	   4
/* Bytes that may wait for those that must share. */
#define QUEUE_TRICKLE	   (4 * QUEUE_PACKET_BYTES)
/* A lower priority gets at least 1/64 of what is there. */
#define QUEUE_FLOOR	   6
/* A class that is limited may catch up on what it did not get in so many milliseconds, or in the last pass. */
#define QUEUE_SAVED	   20
/* Round-trip times (queue/trip.h): slots, and the part of them that one run of the timer looks at;
 * buckets, and milliseconds of one part of the samples; how long a segment is followed, and how long a
 * slot waits for the next one. */
#define QUEUE_TRIPS	   4096
#define QUEUE_TRIP_TURN	   64
#define QUEUE_RTT_BUCKETS  176
#define QUEUE_RTT_MS	   8192
#define QUEUE_TRIP_MOST	   10000
#define QUEUE_TRIP_ARMED   2000
/* Rounds in which one class shares among its children. */
#define QUEUE_ROUNDS	   64

/* Spreading (path/spread.h). Interfaces that may spread: those whose indices differ in their
 * last bits. Sets of connections of each, and cores. */
#define SPREAD_SLOTS	   16
#define SPREAD_BUCKETS	   512
#define SPREAD_CORES	   255
/* Frames that may wait for a core. The kernel's queue is longer, so that it never drops
 * silently. */
#define SPREAD_ROOM	   8192
/* Frames of a queue that does not empty: the core works off less than it is given, and buckets
 * have to leave it. Those have less room, so that they find the moment to leave. */
#define SPREAD_STANDING	   1024
#define SPREAD_LEAVE	   (SPREAD_STANDING - 256)
/* A frame that this core has handled itself has left when so many more have come in: a poll
 * has at most 256, and sends what it has redirected at its end. */
#define SPREAD_POLL	   256
/* Likewise one that another core has begun with, when it has begun with so many more: it sends
 * what it has redirected after 8, and merges what goes to the stack until 64 have come. */
#define SPREAD_TAKEN	   80
/* Or after so many ticks without a frame of the bucket. */
#define SPREAD_IDLE	   2

/* Set by the loader. */
#define HASH_KEYS	   10
extern const volatile __u32 hash_keys[HASH_KEYS]; /* kept over a reload, as the tuple table is */
extern const volatile __u64 pool_secret; /* likewise				       */
extern const volatile __u32 prefetch_secret; /* likewise; in memory it begins as a group's MAC    */
extern const volatile __u32 random_seed;  /* 0: from the kernel; tests set another	       */
extern const volatile __u32 bucket_mask;  /* number of buckets of the tuple table, minus 1      */
extern const volatile __u32 state_capacity;  /* room for states: set limit states and a third more */
extern const volatile __u32 source_capacity; /* room for them and those of limiters, a third more */
extern const volatile __u32 rule_base;	  /* global id of rule 0 of this set		       */
extern const volatile __u32 rule_chunks;  /* 512-rule chunks of this set, 1 to 64	       */
extern const volatile __u32 mark_mask;	  /* weir's own bits of skb->mark, which are adjacent */
extern const volatile __u8 mark_shift;	  /* the lowest of them					  */
extern const volatile __u8 handoff_records; /* how many the values of mark_mask tell apart */
extern const volatile __u8 xfrm_states;	  /* bpf_skb_get_xfrm_state() exists (CONFIG_XFRM)	       */
extern const volatile __u8 route_marks;	  /* bpf_fib_lookup() knows marks (Linux 6.10)	       */
extern const volatile __u32 note_secret[2]; /* kept over a reload; see hook/note.h		  */
extern const volatile __u8 states_bound;  /* states may be bound to interfaces (state/bound.h) */
extern const volatile __u8 copies;	  /* states may have copies sent (path/copy.h) */
extern const volatile __u8 af_to;	  /* states may have sides of two address families (path/af_to.h) */
extern const volatile __u8 ether_rules;	  /* frames meet ether rules (path/ether.h) */
extern const volatile __u8 limiters_defined; /* rules may use limiters (state/limiter.h) */
extern const volatile __u8 least_states;  /* rules may have pools with least-states (state/pool_count.h) */
extern const volatile __u8 reassembles_tcp; /* states may have normals (state/normal.h) */
extern const volatile __u8 flows_exported; /* states may be told to collectors (state/export.h) */
extern const volatile __u8 queues;	  /* interfaces may have queues (queue/queue.h) */
extern const volatile __u32 queue_slots;  /* counters in queue_counters, a power of two, without those of classes */
extern const volatile __u32 queue_host_slots; /* likewise queue_hosts */
extern const volatile __u32 queue_cpus;	  /* cores that may handle packets */
extern const volatile __u8 unloaded;	  /* the built-in set: no file has been loaded	       */

#endif
