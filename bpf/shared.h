/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * What every packet reads, in one place and without a map look-up: interfaces, next
 * hops, clock, timeouts and settings that change while packets pass.
 *
 * Each map is beside the code that owns it. "kept" maps outlive a reload: the new
 * programs are loaded over them, and the loader compares STATE_LAYOUT. The others belong
 * to one generation.
 */
#ifndef WEIR_SHARED_H
#define WEIR_SHARED_H

#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

#include "config.h"
#include "observe/reason.h"
#include "route/policy_key.h"
#include "state/state.h"

/* Bits of interface.flags. */
#define INTERFACE_PRESENT 0x01 /* weir's programs are attached		     */
#define INTERFACE_SKIP	  0x02 /* set skip on				     */
#define INTERFACE_L3	  0x04 /* no Ethernet header (tun, WireGuard, ppp)    */
#define INTERFACE_XDP	  0x08 /* XDP handles what comes in; TCX ingress only marks */
#define INTERFACE_TARGET  0x10 /* can be reached by an XDP redirect	     */
#define INTERFACE_LO	  0x20 /* loopback: no sanity			     */
#define INTERFACE_STATIC4 0x40 /* has an IPv4 address without end of life: DHCP only if asked */
#define INTERFACE_STATIC6 0x80 /* has a global IPv6 address without end of life: likewise */
#define INTERFACE_CAPTURE 0x100 /* packets go through the capturing programs (observe/capture.h) */
#define INTERFACE_BARE	  0x200 /* XDP found no room for metadata and does no more;
				* set by the packet that meets it		     */
#define INTERFACE_DEVMAP	  0x400 /* redirects to it go through prefetch_devices */
#define INTERFACE_PREFETCH	  0x800 /* packets may also go there after a first pass */
#define INTERFACE_STACKED	  0x1000 /* gives packets on to the device below (macvlan, ipvlan) */
#define INTERFACE_SCATTERED	  0x2000 /* a target that takes frames in several buffers, too */
#define INTERFACE_PROGRAM	  0x4000 /* the device of a program of divert-packet: what it writes meets no rules */
#define INTERFACE_READ	  0x8000 /* such a program has it open */
#define INTERFACE_ETHER_IN	  0x10000 /* frames that come in meet ether rules (path/ether.h) */
#define INTERFACE_ETHER_OUT	  0x20000 /* likewise frames that leave: no XDP redirect goes there */
#define INTERFACE_HOLDS	  0x40000 /* a qdisc holds what leaves (23): likewise */
#define INTERFACE_FRAMED	  0x80000 /* with INTERFACE_L3: what comes in may have an Ethernet header, and may have
				   * none (XFRM interfaces: that of the frame which the ESP packet came in) */

struct interface {
	__u8 mac[6];
	__u8 front; /* XDP: bytes between the Ethernet header and the IP header of its frames */
	__s8 line; /* of a PPPoE interface: how far its line is from its own index. mac of the line's is the
		    * concentrator's, and asked the tick at which XDP last had a packet of the session, within a
		    * second. 0: it has no session; packets set it, and parent, to 0 when the session is over */
	__u32 flags; /* INTERFACE_*: by the daemon, except INTERFACE_BARE */
	__u32 counters; /* its first in interface_counters, times REASON_COUNT */
	__u32 mtu;
	__u32 parent; /* of a logical interface: index of the interface that carries it; 0: none */
	__u16 tag;    /* of the parent's frames: priority and VID, or PPPoE session */
	__be16 tag_type; /* its EtherType: 802.1Q, 802.1ad or PPPoE */
	__u32 asked; /* tick at which a DHCP client of the box last asked there, 0: never; of a PPPoE line: see line; by packets */
};
_Static_assert(sizeof(struct interface) == 32, "an index into interfaces[] is a shift");

/* One thing that a frame has between its MACs and its IP header: a VLAN tag, or a
 * PPPoE session. */
struct layer {
	__be16 type; /* EtherType: 802.1Q, 802.1ad, PPPoE; 0: none	*/
	__be16 id;   /* priority and VID, or the session		*/
};

/* How XDP sends a frame to a next hop. TCX gives it to the next hop's own device, and
 * the kernel does the rest. */
struct encap {
	struct layer layer[ENCAP_LAYERS]; /* the outermost first			*/
	__u16 device; /* that carries the frame: the next hop's own, or the one below it */
	__u8 length;  /* bytes that the layers take				*/
	__u8 excess;  /* bytes by which a packet of the MTU is too long for that device	*/
};

/* Where packets go next. Changed in place: all fields by the packet that finds it stale,
 * none by the daemon. A state has its index. */
struct nexthop {
	__u8 dst[6]; /* MACs in the order of the frame */
	__u8 src[6];
	__u16 mtu;
	__u8 flags;    /* NEXTHOP_*						*/
	__u8 family;   /* of gateway						*/
	__u32 ifindex;
	__u32 checked; /* tick of the last look-up					*/
	__u32 probed;  /* tick at which a packet last went through the stack */
	__u32 used;    /* tick; the daemon probes neighbours in use		*/
	struct encap encap;
	__u32 stage;	     /* enum nexthop_stage; changed by compare-and-exchange	*/
	struct addr gateway; /* the neighbour's address; see NEXTHOP_CHOSEN	*/
};
_Static_assert(sizeof(struct nexthop) == 64, "a next hop is one cache line");

/* The stages of giving back a next hop's number (route/nexthop_gc.h). */
enum nexthop_stage {
	NEXTHOP_LISTED,	   /* in nexthop_index, or about to be				*/
	NEXTHOP_UNLISTED,  /* no longer: no look-up finds it, but states may have it */
	NEXTHOP_FORGOTTEN, /* no state uses it: routes have another generation		*/
	NEXTHOP_FREE,	   /* in nexthops_free					*/
};

#define NEXTHOP_VALID 0x01 /* the MACs are known and the device is there		*/
#define NEXTHOP_XDP   0x02 /* XDP can redirect to the device that carries it	*/
#define NEXTHOP_L3    0x04 /* the device takes packets without Ethernet header	*/
#define NEXTHOP_SCATTERED 0x08 /* with NEXTHOP_XDP: it takes frames in several buffers, too */
#define NEXTHOP_CHOSEN 0x10 /* a rule has chosen it: gateway is the rule's, and may be behind the neighbour */
#define NEXTHOP_FIXED 0x20 /* and the rule names its interface too		*/
#define NEXTHOP_NEAR  0x40 /* and the gateway is the neighbour itself		*/
#define NEXTHOP_NARROW 0x80 /* the route has an MTU of its own, which is mtu		*/
#define NEXTHOP_HOW   (NEXTHOP_CHOSEN | NEXTHOP_FIXED | NEXTHOP_NARROW)

/*
 * What every packet reads, in one place and without a map look-up. Each cache line has
 * one writer: the timer, the daemon, or the packets.
 */
struct shared {
	/* written by the timer of the garbage collection */
	__u32 now;		     /* ticks					*/
	__u32 timeout[PHASE_COUNT];  /* ticks, adaptive scaling applied		*/
	__u32 timeout_frag;	     /* ticks					*/
	__u32 gc_state;		     /* cursor over the states			*/
	__u32 states;		     /* in use, as of the last tick		*/
	__u32 bumped;		     /* tick of the last bump without a daemon	*/
	__u32 gc_nexthop;		     /* cursor of the walk over next hops, 0: none	*/
	__u32 gc_nexthop_at;		     /* tick at which the last one ended		*/
	__u32 gc_unlisted;		     /* it has taken next hops out of nexthop_index	*/
	__u32 gc_lock;		     /* 1: a timer takes its part of that walk		*/
	__u32 gc_source;	     /* cursor over the sources				*/
	__u32 timeout_part;	     /* by how much timeouts are scaled, in 1024ths	*/
	__u32 homes;		     /* indices that homes are among (state/home.h); also by packets that make states */
	__u32 states_lately;	     /* in use at lately_at			*/
	__u32 lately_at;	     /* tick; a new one after HOMES_LATELY	*/
	__u8 pad0[16];
	/* written by the daemon */
	__u32 heartbeat;	     /* tick at which the daemon was last alive	*/
	__u32 route_generation;	     /* bumped at route events, also by packets that notice one */
	__u32 timeout_set[PHASE_COUNT]; /* ticks, as configured			*/
	__u32 timeout_frag_set;
	__u32 adaptive_start;	     /* states; 0 with adaptive_end 0: off		*/
	__u32 adaptive_end;
	__u32 limit;		     /* set limit states				*/
	__u32 recording;	     /* 1 << enum ring (observe/record.h): somebody reads it	*/
	__u32 prefetch;		     /* 1: packets take two passes (path/prefetch.h) */
	__u32 table_rules;	     /* rules in the map of that name, or more		*/
	__u32 source_limit;	     /* set limit src-nodes				*/
	__u32 limiter_room;	     /* sources of all source limiters together		*/
	__u32 policies;		     /* POLICY_* (route/policy_key.h)			*/
	__u32 timeout_stamp;	     /* tcp.tsdiff, ticks				*/
	__u32 fragments;	     /* enum fragment_rules				*/
	__u32 pad1[4];
	/* written by packets that make states, next hops or paths */
	__u32 states_made;	     /* wraps; minus those released: in use		*/
	__u32 states_released;	     /* wraps; mostly by the garbage collection			*/
	__u32 nexthops_high;	     /* numbers of next hops ever given		*/
	__u32 nexthops_unused;	     /* those in nexthops_free				*/
	__u32 paths_high;	     /* paths in use, the reserved ones apart	*/
	__u32 paths_reserved;	     /* reserved paths in use			*/
	__u32 sources;		     /* in use					*/
	__u32 overloads;	     /* how often the daemon had to look at a source; wraps */
	__u32 limiter_sources;	     /* those of limiters, in use */
	__u32 pad2[7];
	struct interface interfaces[MAX_IFINDEX];
	__u64 logicals[MAX_LOGICALS]; /* by the daemon; packet/logical.h			*/
	struct nexthop nexthops[MAX_NEXTHOPS];
	struct policy_list policy_lists[2 * POLICY_LISTS]; /* two tables; by the daemon */
	__u16 hinted[HINTED];    /* numbers of next hops that hints name; by packets */
};

/* kept; mmapped by the daemon and by reading commands. */
extern struct shared shared;

static __always_inline int daemon_is_dead(void)
{
	return shared.now - shared.heartbeat >= DAEMON_DEAD;
}

static __always_inline const struct interface *interface_get(__u32 ifindex)
{
	return ifindex < MAX_IFINDEX ? &shared.interfaces[ifindex & (MAX_IFINDEX - 1)] : 0;
}

static __always_inline int interface_is_present(const struct interface *i)
{
	return i && i->flags & INTERFACE_PRESENT;
}

/* Whether the interface is present, nobody captures its packets, frames meet no ether rules,
 * and it has none of the flags in bare: one test for all. ether: INTERFACE_ETHER_IN or
 * INTERFACE_ETHER_OUT. */
static __always_inline int interface_is_plain(const struct interface *i, __u32 ether, __u32 bare)
{
	__u32 asked = INTERFACE_PRESENT | INTERFACE_CAPTURE | bare | (ether_rules ? ether : 0);

	return i && (i->flags & asked) == INTERFACE_PRESENT;
}

/* Whether whoever is at the other end gets all that leaves: nobody there is to be told apart. */
static __always_inline int interface_has_one_peer(const struct interface *i)
{
	return i->flags & INTERFACE_L3 || i->line;
}

static __always_inline struct nexthop *nexthop_get(__u16 number)
{
	return &shared.nexthops[number & (MAX_NEXTHOPS - 1)];
}

#endif
