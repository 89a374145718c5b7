/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * A card that cannot spread its frames gives all of them to one core. That core then hands a part on to
 * others by a cpumap, where a program goes on as weir_xdp does. It looks into tags and sessions for that,
 * as most cards do not. Connections are told apart by a hash, which names one of SPREAD_BUCKETS buckets. The
 * daemon says which core each bucket should have; it gets that core when no frame of the bucket can be on
 * its way any more, so that frames of a connection stay in order. docs/packet-path.md, 24.
 */
#ifndef WEIR_PATH_SPREAD_H
#define WEIR_PATH_SPREAD_H

#include <linux/in.h>
#include <linux/ip.h>
#include <linux/ipv6.h>
#include <bpf/bpf_helpers.h>

#include "observe/count.h"
#include "packet/logical.h"
#include "packet/pppoe.h"

/* Frames have left after so long without one of the bucket, too: in units of 1,024 ns. */
#define SPREAD_GAP    4000

/* In a bucket's stamp, beside a time: there is one, and frames have been dropped since. */
#define SPREAD_STAMP  1
#define SPREAD_DRAINS 2

/* If so many ticks pass without a frame taken, none waits: the kernel could not hand some over. The
 * daemon looks for fewer than SPREAD_ROOM. */
#define SPREAD_STUCK 100

/* A core that receives takes over from another that has received nothing for so many ticks. */
#define SPREAD_QUIET 10

struct spread_bucket {
	__u8 core;   /* that goes on with its frames, + 1; 0: the core that receives */
	__u8 wanted; /* by the daemon, likewise */
	__u16 tick;  /* of its last frame: those that were dropped do not count here */
	__u32 stamp; /* time of it, and SPREAD_*, while the bucket is to move; else 0 */
	__u32 seen;  /* spread_slot.seen at it: wraps */
	__u32 given; /* number of it among those of the interface that the core was given: wraps at 16 bits */
	__u32 frames; /* that came: wraps */
};

/* What the core that receives knows of the frames of an interface. */
struct spread_slot {
	__u32 receiver; /* the core that receives, + 1 */
	__u32 tick;	/* of the last frame */
	__u32 seen;	/* frames; wraps */
	__u32 ifindex;	/* by the daemon */
	__u32 format;	/* in the first slot: what the maps mean, by the loader */
	__u32 pad[11];
	struct spread_bucket bucket[SPREAD_BUCKETS];
};

/*
 * What waits for a core. Cores that give write the first line, the core itself the second. Frames are numbered by
 * interface, too: one core receives its frames, and so gives them in the order of their numbers. What several cores give
 * waits in another order than it was given, as each has some in a queue of its own until its poll ends.
 */
struct spread_core {
	__u32 given;
	__u32 full; /* frames dropped, as too many waited */
	__u32 lost; /* frames given that no core has taken: the kernel could not hand them over */
	__u16 gave[SPREAD_SLOTS]; /* of given, by interface; wraps */
	__u32 pad0[5];
	__u32 taken; /* or lost */
	__u32 tick; /* at which the last was, or the first was given to an empty queue */
	__u32 seen; /* given, when it was last read: giving cores write that line for each frame */
	__u16 took[SPREAD_SLOTS]; /* of taken, by interface; wraps */
	__u32 pad1[5];
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, SPREAD_SLOTS);
	__type(key, __u32);
	__type(value, struct spread_slot);
} spread_slots SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, SPREAD_CORES);
	__type(key, __u32);
	__type(value, struct spread_core);
} spread_cores SEC(".maps");

/* The frames on their way. Entries are the loader's, with weir_spread_take. */
struct {
	__uint(type, BPF_MAP_TYPE_CPUMAP);
	__uint(max_entries, SPREAD_CORES); /* fewer, by the loader */
	__uint(key_size, sizeof(__u32));
	__uint(value_size, sizeof(struct bpf_cpumap_val));
} spread_frames SEC(".maps");

/* The program of the live generation that goes on with them: what is on its way stays in its queue when a
 * generation takes over. */
struct {
	__uint(type, BPF_MAP_TYPE_PROG_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, __u32);
} spread_next SEC(".maps");

/* weir_xdp, for what stays. */
struct {
	__uint(type, BPF_MAP_TYPE_PROG_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, __u32);
} spread_stays SEC(".maps");

/* weir_xdp's tail-called programs, loaded again for cpumaps: some kernels mix no kinds in one map. */
struct {
	__uint(type, BPF_MAP_TYPE_PROG_ARRAY);
	__uint(max_entries, TAIL_COUNT);
	__type(key, __u32);
	__type(value, __u32);
} core_tails SEC(".maps");

static __always_inline __u32 spread_mix(__u64 a, __u64 b)
{
	__u64 hash = a * 0x9e3779b97f4a7c15ULL ^ b * 0xd6e8feb86659fd93ULL;

	hash ^= hash >> 32;
	return (hash * 0x9e3779b97f4a7c15ULL) >> 32;
}

/* The same for both directions. Only weir knows the key. */
static __always_inline __u64 spread_pair(__u64 one, __u64 other, __u32 n)
{
	__u64 key = (__u64)hash_keys[n] << 32 | hash_keys[n + 1];

	return (one ^ key) * (other ^ key);
}

/* A fragment has its addresses and protocol only, the first too: the others have to follow it. */
static __always_inline __u64 spread_ports(const void *l4, const void *end, __u8 proto, int fragment)
{
	const __be16 *port = l4;

	if (fragment || (proto != IPPROTO_TCP && proto != IPPROTO_UDP && proto != IPPROTO_SCTP) ||
	    (const void *)(port + 2) > end)
		return proto;
	return spread_pair(port[0], port[1], 2) + proto;
}

static __always_inline int spread_ip4(const struct iphdr *ip, const void *end, __u32 *hash)
{
	if ((const void *)(ip + 1) > end || ip->ihl != 5)
		return -1;
	*hash = spread_mix(spread_pair(ip->saddr, ip->daddr, 0),
			   spread_ports(ip + 1, end, ip->protocol, ip->frag_off & bpf_htons(0x3fff)));
	return 0;
}

static __always_inline __u64 spread_fold(const struct in6_addr *a)
{
	const __u32 *w = (const __u32 *)a;

	return ((__u64)w[0] << 32 | w[1]) * 0xd6e8feb86659fd93ULL ^ ((__u64)w[2] << 32 | w[3]);
}

/* With extension headers it has its addresses only. */
static __always_inline int spread_ip6(const struct ipv6hdr *ip, const void *end, __u32 *hash)
{
	if ((const void *)(ip + 1) > end)
		return -1;
	*hash = spread_mix(spread_pair(spread_fold(&ip->saddr), spread_fold(&ip->daddr), 0),
			   extension_is(ip->nexthdr) ? 0 : spread_ports(ip + 1, end, ip->nexthdr, 0));
	return 0;
}

/* Hashes the connection of a frame; < 0: it has none, or one that only the stack knows. */
static __always_inline int spread_hash(struct xdp_md *ctx, __u32 *hash)
{
	void *data = hook_data(ctx), *end = hook_data_end(ctx), *at = data + sizeof(struct ethhdr);
	const struct session *s;
	const struct tag *tag;
	__be16 type;

	if (at > end)
		return -1;
	type = ((struct ethhdr *)data)->h_proto;
	if (logical_is_tag(type)) {
		tag = at;
		if ((void *)(tag + 1) > end)
			return -1;
		type = tag->proto;
		at += sizeof(*tag);
	}
	if (type == bpf_htons(ETH_P_PPP_SES)) {
		s = at;
		if ((void *)(s + 1) > end)
			return -1;
		type = session_type(s->proto);
		at += sizeof(*s);
	}
	if (type == bpf_htons(ETH_P_IP))
		return spread_ip4(at, end, hash);
	return type == bpf_htons(ETH_P_IPV6) ? spread_ip6(at, end, hash) : -1;
}

static __always_inline __u32 spread_stamp(void)
{
	return ((bpf_ktime_get_ns() >> 10) & ~(__u32)(SPREAD_STAMP | SPREAD_DRAINS)) | SPREAD_STAMP;
}

/* Whether no frame of a bucket came for so long that none can wait to be sent. */
static __always_inline int spread_rests(const struct spread_bucket *b, __u32 stamp)
{
	return (__u16)((__u16)shared.now - b->tick) >= SPREAD_IDLE ||
	       (b->stamp && stamp - (b->stamp & ~(__u32)SPREAD_DRAINS) >= SPREAD_GAP);
}

/* Whether the last frame that a core was given of a bucket is among those that wait for it. Numbers wrap, and that of a
 * bucket may be old, or another core's: if the first frame for its new core was dropped, it has not been given one. */
static __always_inline int spread_waits(const struct spread_bucket *b, __u16 gave, __u16 took)
{
	__u16 wait = gave - took;

	return (__s16)wait > 0 && (__u16)(b->given - took) < wait;
}

/* Whether no frame of a bucket can be on its way any more. number: of the slot. */
static __always_inline int spread_is_settled(const struct spread_slot *slot, __u32 number, const struct spread_bucket *b,
					     __u32 stamp)
{
	int rests = spread_rests(b, stamp);
	const struct spread_core *c;
	__u32 core = (__u32)b->core - 1;
	__u16 took;

	if (!b->core)
		return rests || slot->seen - b->seen > SPREAD_POLL;
	c = bpf_map_lookup_elem(&spread_cores, &core);
	if (!c)
		return 1;
	number &= SPREAD_SLOTS - 1;
	took = *(volatile const __u16 *)&c->took[number];
	if (spread_waits(b, *(volatile const __u16 *)&c->gave[number], took))
		return 0;
	return rests || (__u16)(took - b->given) >= SPREAD_TAKEN;
}

/* Gives a bucket the core that it is to have, if it can. Returns the stamp of this frame; 0: it needs none. */
static __always_inline __u32 spread_move(const struct spread_slot *slot, __u32 number, struct spread_bucket *b)
{
	__u32 stamp;

	if (b->core == b->wanted)
		return 0;
	stamp = spread_stamp();
	if (!spread_is_settled(slot, number, b, stamp))
		return stamp;
	b->core = b->wanted;
	return 0;
}

#define SPREAD_STAYS -1

/* How many frames may wait before one of a bucket. Of one that is to leave all are dropped after the first, until it
 * has left: else its own frames could keep the queue as long as it may be, and it would stay. */
static __always_inline __s32 spread_room(const struct spread_bucket *b)
{
	if (b->core == b->wanted)
		return SPREAD_ROOM;
	return b->stamp & SPREAD_DRAINS ? 0 : SPREAD_LEAVE;
}

/* Notes that no frame waits for a core. */
static __always_inline void spread_forget(struct spread_core *c)
{
	__u32 i;

	for (i = 0; i < SPREAD_SLOTS; i++)
		c->took[i] = c->gave[i];
}

/* Whether so many frames wait for a core that there is no room for another one. number: of the interface's slot. */
static __always_inline int spread_is_full(struct spread_core *c, __u32 number, __s32 room)
{
	__u32 taken = *(volatile __u32 *)&c->taken, given = *(volatile __u32 *)&c->given;

	number &= SPREAD_SLOTS - 1;
	if (given == taken && c->tick != shared.now) {
		c->tick = shared.now; /* it has had nothing to take */
		if (c->took[number] != c->gave[number]) /* it has counted some for a core that was offline */
			c->took[number] = c->gave[number];
	}
	if ((__s32)(given - taken) < room)
		return 0;
	if (shared.now - c->tick < SPREAD_STUCK)
		return 1;
	if (__sync_val_compare_and_swap(&c->taken, taken, given) == taken) { /* given never goes back: buckets name numbers */
		__sync_fetch_and_add(&c->lost, given - taken);
		spread_forget(c);
	}
	return 0;
}

/* Notes a frame that stays or is handed over. stamp: as spread_move() returns it. */
static __always_inline void spread_note(const struct spread_slot *slot, struct spread_bucket *b, __u32 stamp)
{
	b->stamp = stamp;
	b->seen = slot->seen;
	b->tick = shared.now;
}

/* Drops a frame for which its core has no room. */
static __always_inline int spread_drop(struct xdp_md *ctx, struct spread_core *c, struct spread_bucket *b, __u32 stamp)
{
	if (b->core == b->wanted) /* else the daemon knows */
		__sync_fetch_and_add(&c->full, 1);
	else
		b->stamp = (b->stamp ?: stamp) | SPREAD_DRAINS;
	return count_verdict(interface_get(hook_ifindex(ctx)) ?: &shared.interfaces[0], REASON_QUEUE, hook_length(ctx));
}

/* Hands a frame to the core of its bucket. Returns the action; SPREAD_STAYS: the core takes none. */
static __always_inline int spread_give(struct xdp_md *ctx, const struct spread_slot *slot, __u32 number,
				       struct spread_bucket *b, __u32 stamp)
{
	__u32 core = (__u32)b->core - 1;
	struct spread_core *c = bpf_map_lookup_elem(&spread_cores, &core);
	int action;

	if (c && spread_is_full(c, number, spread_room(b)))
		return spread_drop(ctx, c, b, stamp);
	spread_note(slot, b, stamp);
	if (!c)
		return SPREAD_STAYS;
	action = bpf_redirect_map(&spread_frames, core, XDP_ABORTED);
	if (action != XDP_REDIRECT)
		return SPREAD_STAYS;
	__sync_fetch_and_add(&c->given, 1);
	b->given = c->gave[number & (SPREAD_SLOTS - 1)]++;
	return action;
}

/* Returns the action for a frame that another core goes on with, or SPREAD_STAYS. */
static __always_inline int spread(struct xdp_md *ctx)
{
	__u32 number = hook_ifindex(ctx) & (SPREAD_SLOTS - 1), me = bpf_get_smp_processor_id() + 1, hash, stamp;
	struct spread_slot *slot = bpf_map_lookup_elem(&spread_slots, &number);
	struct spread_bucket *b;

	if (!slot || spread_hash(ctx, &hash))
		return SPREAD_STAYS;
	if (slot->receiver != me) {
		if (slot->receiver && shared.now - slot->tick < SPREAD_QUIET)
			return SPREAD_STAYS;
		slot->receiver = me;
	}
	slot->tick = shared.now;
	slot->seen++;
	b = &slot->bucket[hash & (SPREAD_BUCKETS - 1)];
	b->frames++;
	stamp = spread_move(slot, number, b);
	if (b->core)
		return spread_give(ctx, slot, number, b, stamp);
	spread_note(slot, b, stamp);
	return SPREAD_STAYS;
}

/* Whether this core has been given a frame that it has not taken. */
static __always_inline int spread_is_given(struct spread_core *c)
{
	if ((__s32)(c->seen - c->taken) > 0)
		return 1;
	c->seen = *(volatile __u32 *)&c->given;
	return (__s32)(c->seen - c->taken) > 0;
}

/* Counts a frame that this core takes over. It may be that of a core that is offline: the kernel
 * has the thread of that one run here, and nothing tells which thread runs. */
static __always_inline void spread_take(struct xdp_md *ctx)
{
	__u32 core = bpf_get_smp_processor_id();
	struct spread_core *c = bpf_map_lookup_elem(&spread_cores, &core);

	if (c && spread_is_given(c)) {
		c->tick = shared.now;
		c->took[hook_ifindex(ctx) & (SPREAD_SLOTS - 1)]++;
		c->taken++;
	}
}

#endif
