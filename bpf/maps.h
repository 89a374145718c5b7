/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * Every map but those of the rules (rules/ruleset.h): what it holds, who writes it,
 * who reads it, how it is emptied.
 *
 * "kept" maps outlive a reload: the new programs are loaded over them and the
 * loader compares STATE_LAYOUT. The others belong to one generation.
 */
#ifndef WEIR_MAPS_H
#define WEIR_MAPS_H

#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

#include "config.h"
#include "observe/reason.h"
#include "state/state.h"

/* Bits of interface.flags. */
#define INTERFACE_PRESENT 0x01 /* weir's programs are attached		     */
#define INTERFACE_SKIP	  0x02 /* set skip on				     */
#define INTERFACE_L3	  0x04 /* no Ethernet header (tun, WireGuard, ppp)    */
#define INTERFACE_XDP	  0x08 /* XDP judges what comes in; TCX ingress only marks */
#define INTERFACE_TARGET  0x10 /* can be reached by an XDP redirect	     */
#define INTERFACE_LO	  0x20 /* loopback: no sanity			     */
#define INTERFACE_STATIC4 0x40 /* has an IPv4 address without end of life: DHCP only if asked */
#define INTERFACE_STATIC6 0x80 /* has a global IPv6 address without end of life: likewise */
#define INTERFACE_CAPTURE 0x100 /* packets go by the capturing programs (observe/capture.h) */
#define INTERFACE_BARE	  0x200 /* XDP found no room for metadata and does no more;
				* set by the packet that meets it		     */
#define INTERFACE_DEVMAP	  0x400 /* redirects to it go by exits (path/prefetch.h)	     */
#define INTERFACE_PREFETCH	  0x800 /* and packets may go there after a first look	     */

struct interface {
	__u8 mac[6];
	__u8 pad0[2];
	__u32 flags; /* INTERFACE_*: by the daemon, but for INTERFACE_BARE */
	__u32 counters; /* its first in interface_counters, times REASON_COUNT */
	__u32 mtu;
	__u32 parent; /* of a VLAN device: index of the interface that carries it; 0: none */
	__u16 tag;    /* that the parent's frames then bear: 802.1Q, priority and VID */
	__u8 pad1[2];
	__u32 asked; /* tick at which a DHCP client of the box last asked there, 0: never; by packets */
};
_Static_assert(sizeof(struct interface) == 32, "an index into interfaces[] is a shift");

/* Where packets go next. Changed in place: by the packet that finds it stale
 * (all fields), by the daemon (nothing). A state holds its index. */
struct nexthop {
	__u8 dst[6]; /* MACs in the order of the frame */
	__u8 src[6];
	__u16 mtu;
	__u16 tag;  /* 802.1Q; valid iff NEXTHOP_TAGGED				*/
	__u32 ifindex;
	__u32 checked; /* tick of the last look-up					*/
	__u32 probed;  /* tick at which a packet last went by the stack		*/
	__u32 used;    /* tick; the daemon probes neighbours in use		*/
	__u8 flags;    /* NEXTHOP_*						*/
	__u8 family;   /* of gateway						*/
	__u8 pad0[6];
	struct addr gateway; /* the neighbour's address			*/
	__u32 stage;	     /* enum nexthop_stage; changed by compare-and-exchange	*/
	__u32 parent;	     /* of a VLAN device; valid iff NEXTHOP_TAGGED		*/
};
_Static_assert(sizeof(struct nexthop) == 64, "a next hop is one cache line");

/* How a number of a next hop is given back (route/nexthop_gc.h). */
enum nexthop_stage {
	NEXTHOP_LISTED,	   /* in nexthop_index, or about to be				*/
	NEXTHOP_UNLISTED,  /* no longer: no look-up finds it, states may hold it	*/
	NEXTHOP_FORGOTTEN, /* no state uses it: routes have another generation		*/
	NEXTHOP_FREE,	   /* in nexthops_free					*/
};

#define NEXTHOP_VALID 0x01 /* the MACs are known and the device is there		*/
#define NEXTHOP_XDP   0x02 /* XDP can redirect to the device			*/
#define NEXTHOP_L3    0x04 /* the device takes packets without Ethernet header	*/
#define NEXTHOP_TAGGED 0x08 /* a VLAN device: XDP can redirect to its parent, with the tag */

/*
 * What every packet reads, in one place and without a map look-up. One writer
 * for each cache line: the timer, the daemon, the packets.
 */
struct shared {
	/* written by the sweeping timer */
	__u32 now;		     /* ticks					*/
	__u32 timeout[PHASE_COUNT];  /* ticks, adaptive scaling applied		*/
	__u32 timeout_frag;	     /* ticks					*/
	__u32 gc_state;		     /* cursor of the sweep			*/
	__u32 states;		     /* in use, as of the last tick		*/
	__u32 bumped;		     /* tick of the last bump without a daemon	*/
	__u32 gc_nexthop;		     /* cursor of the walk over next hops, 0: none	*/
	__u32 gc_nexthop_at;		     /* tick at which the last one ended		*/
	__u32 gc_unlisted;		     /* it has taken next hops out of nexthop_index	*/
	__u32 gc_lock;		     /* 1: a timer takes its part of that walk		*/
	__u8 pad0[36];
	/* written by the daemon */
	__u32 heartbeat;	     /* tick at which the daemon was last alive	*/
	__u32 route_generation;	     /* bumped at route events, also by packets that see one */
	__u32 timeout_set[PHASE_COUNT]; /* ticks, as configured			*/
	__u32 timeout_frag_set;
	__u32 adaptive_start;	     /* states; 0 with adaptive_end 0: off		*/
	__u32 adaptive_end;
	__u32 limit;		     /* set limit states				*/
	__u32 recording;	     /* 1 << enum ring (observe/record.h): somebody reads it	*/
	__u32 prefetch;		     /* 1: packets are looked at twice (path/prefetch.h) */
	__u32 pad1[10];
	/* written by packets that make states, next hops or paths */
	__u32 states_made;	     /* wraps; minus those released: in use		*/
	__u32 states_released;	     /* wraps; mostly by the sweep			*/
	__u32 nexthops_high;	     /* numbers of next hops ever given		*/
	__u32 nexthops_unused;	     /* those in nexthops_free				*/
	__u32 paths_high;	     /* paths in use, the reserved ones apart	*/
	__u32 paths_reserved;	     /* reserved paths in use			*/
	__u32 pad2[10];
	struct interface interfaces[MAX_IFINDEX];
	struct nexthop nexthops[MAX_NEXTHOPS];
	__u16 hinted[HINTED];    /* numbers of next hops that promises name; by packets */
};

/* kept; mmapped by the daemon and by reading commands. */
extern struct shared shared;

static __always_inline int daemon_is_dead(void)
{
	return shared.now - shared.heartbeat >= DAEMON_DEAD;
}

/* kept; the states themselves, index 0 unused. mmapped for reading. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1); /* state_capacity + 1, by the loader */
	__type(key, __u32);
	__type(value, struct state);
} states SEC(".maps");

/* kept; what a first look is told of states (state/hint.h), those of a cache line together:
 * state n is word n % HINTS of value n / HINTS. */
#define HINTS 16
struct hints {
	__u32 word[HINTS];
};
_Static_assert(sizeof(struct hints) == 64, "promises of a cache line");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1); /* by the loader */
	__type(key, __u32);
	__type(value, struct hints);
} hints SEC(".maps");

/* kept; the tuple table (state/table.h), which knows whose a tuple is: a bucket is a
 * cache line. A slot is tag << 32 | index << 1 | direction, 0: empty. */
struct bucket {
	__u64 slot[BUCKET_SLOTS];
	__u32 lock;    /* 1: somebody enters a tuple, or takes out a spilled one	*/
	__u32 spilled; /* tuples of this bucket in spilled_tuples			*/
};
_Static_assert(sizeof(struct bucket) == 64, "a bucket is one cache line");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1); /* a power of two, by the loader */
	__type(key, __u32);
	__type(value, struct bucket);
} tuples SEC(".maps");

/* kept; what does not fit into its bucket: tuple -> index << 1 | direction. Never
 * LRU: losing one half of a NAT pair strands the other. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1); /* by the loader */
	__type(key, struct tuple);
	__type(value, __u32);
} spilled_tuples SEC(".maps");

/* kept; (interface, gateway) -> index into shared.nexthops. */
struct nexthop_key {
	struct addr gateway;
	__u32 ifindex;
	__u32 pad0;
};

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, MAX_NEXTHOPS);
	__type(key, struct nexthop_key);
	__type(value, __u32);
} nexthop_index SEC(".maps");

/* kept; numbers that next hops have given back. */
struct {
	__uint(type, BPF_MAP_TYPE_QUEUE);
	__uint(max_entries, MAX_NEXTHOPS);
	__uint(key_size, 0);
	__type(value, __u32);
} nexthops_free SEC(".maps");

/* Numbers of next hops by a hash of their keys; whoever uses one compares. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 256);
	__type(key, __u32);
	__type(value, __u32);
} nexthop_cache SEC(".maps");

struct counter {
	__u64 packets;
	__u64 bytes; /* of whole IP packets */
};

/* kept; by interface.slot + reason. Written by packets, read by info. */
#define MAX_INTERFACES 256
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, (MAX_INTERFACES + 1) * REASON_COUNT); /* the last: interfaces beyond */
	__type(key, __u32);
	__type(value, struct counter);
} interface_counters SEC(".maps");

/* The enum reason under which this core counted a packet last, where
 * INTERFACE_CAPTURE is set. Written by count_note(), read by observe/capture.h. */
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, __u32);
} noted SEC(".maps");

/* kept; a path is the set of rules that a packet is counted under. [0] counts
 * packets that no rule matched, [1] those for which no path was free. The last
 * PATHS_RESERVED are for paths of deciding rules alone, taken when the others
 * are used up. */
#define PATH_NONE	0
#define PATH_OVERFLOW	1
#define PATH_FIRST	2
#define PATHS_RESERVED	4096
struct path {
	__u32 rule[2 * MAX_MATCHES]; /* global ids + 1 in order, first in then out; 0: none */
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, MAX_PATHS);
	__type(key, __u32);
	__type(value, struct counter);
} path_counters SEC(".maps");

/* kept; which path stands for which rules. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, MAX_PATHS);
	__type(key, struct path);
	__type(value, __u32);
} paths SEC(".maps");

/* Addresses of the box: source addresses no frame may come in with.
 * kept; written by the daemon. value: ifindex. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 4096);
	__type(key, struct addr);
	__type(value, __u32);
} addresses SEC(".maps");

/* What answers to blocked packets (path/reject.h) must know of the box's addresses. kept;
 * written by the daemon. The first: which address they come from; of interface 0
 * where the interface has none. */
enum reject_source_kind {
	REJECT_SOURCE_IP4 = 4,
	REJECT_SOURCE_IP6 = 6,
	REJECT_SOURCE_LINK_LOCAL = 10,
};

struct reject_source_key {
	__u32 ifindex;
	__u32 kind;
};

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 4096);
	__type(key, struct reject_source_key);
	__type(value, struct addr);
} reject_sources SEC(".maps");

/* Broadcast addresses of the box's networks; value: 1. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 4096);
	__type(key, struct addr);
	__type(value, __u32);
} broadcasts SEC(".maps");

/* What became of blocked packets whose rule has them answered. kept; read by info. */
enum rejected {
	REJECTED_RST,
	REJECTED_ICMP,
	REJECTED_LAST_GIVEN = REJECTED_ICMP,
	REJECTED_LIMIT, /* not, because of REJECT_RATE			*/
	REJECTED_NOT,	/* not, because it could not be made or sent	*/
	REJECTED_COUNT,
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, REJECTED_COUNT);
	__type(key, __u32);
	__type(value, struct counter);
} reject_counters SEC(".maps");

/* The fragments of one packet. kept; LRU: a lost entry costs one packet. */
struct fragment_key {
	struct addr src;
	struct addr dst;
	__u32 id;
	__u8 proto;
	__u8 family; /* | FRAGMENT_EGRESS: the box's own packet */
	__u16 zone;
};

#define FRAGMENT_EGRESS 0x80
#define FRAGMENT_RANGES 8
struct fragment_entry {
	__u32 busy; /* a core works on it: fragments of one packet may spread over cores */
	__u32 state;   /* index << 1 | direction; 0: the first was passed without a state */
	__u32 path;    /* counted under, if state is 0			   */
	__u32 started; /* tick							   */
	__u32 ranges;  /* number of ranges in use				   */
	struct {
		__u16 start, end; /* in units of 8 bytes, end excluded */
	} range[FRAGMENT_RANGES];
};

struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 8192);
	__type(key, struct fragment_key);
	__type(value, struct fragment_entry);
} fragments SEC(".maps");

/* One timer that sweeps. */
struct gc_timer {
	struct bpf_timer timer;
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct gc_timer);
} gc_timers SEC(".maps");

#endif
