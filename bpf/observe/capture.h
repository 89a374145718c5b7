/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * Capture: packets as they came and as they leave, with what was decided, for the
 * readers of capture_ring. docs/packet-path.md, Capture.
 *
 * An interface with INTERFACE_CAPTURE sends its packets through a program of its own. It
 * keeps a copy and runs the whole path as a function (a tail call in a function returns
 * to its caller). Then it looks at what became of the packet. Cost when off: one flag
 * test at entry, one when the verdict is counted.
 */
#ifndef WEIR_OBSERVE_CAPTURE_H
#define WEIR_OBSERVE_CAPTURE_H

#include "state/lookup.h"
#include "route/nexthop.h"
#include "observe/record.h"
#include "path/scratch.h"

/* The most bytes of a frame in a record: a jumbo frame. */
#define CAPTURE_BYTES	9216
/* The bytes of those that the filter may read: more than packet/parse.h reads. A power
 * of two. */
#define CAPTURE_HEADERS 1024
/* The most alternatives of all readers' filters together, and the most readers at a
 * time. */
#define CAPTURE_FILTERS 64
#define CAPTURE_READERS 16
/* VLAN tags that the filter looks behind. */
#define CAPTURE_TAGS	2

/* Bits of capture_filter.flags. */
#define FILTER_ALL	 0x01 /* everything, including what is not IP or malformed */
#define FILTER_PROTO	 0x02 /* proto is tested */
#define FILTER_SPORT	 0x04 /* sport_low to sport_high are tested */
#define FILTER_DPORT	 0x08
#define FILTER_NOT_SRC	 0x10 /* any source but that				*/
#define FILTER_NOT_DST	 0x20
#define FILTER_NOT_SPORT 0x40
#define FILTER_NOT_DPORT 0x80

/* One alternative; zero fields are not tested. Masks that are not zero include the bits
 * of the IPv4 prefix. Ports in host order. */
struct capture_filter {
	struct addr src, src_mask;
	struct addr dst, dst_mask;
	__u16 sport_low, sport_high;
	__u16 dport_low, dport_high;
	__u32 ifindex; /* where the packet came in or leaves; 0: anywhere */
	__u32 readers; /* 1 << reader, for each reader with this filter */
	__u8 family;   /* 4, 6; 0: either				*/
	__u8 proto;
	__u8 flags; /* FILTER_*					*/
	__u8 pad[5];
};

struct capture_setting {
	__u32 snap;  /* bytes of a frame to be copied, at most CAPTURE_BYTES	*/
	__u32 count; /* of filter[]					*/
	struct capture_filter filter[CAPTURE_FILTERS];
};

/* kept; the filters. Written by the daemon. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct capture_setting);
} capture_filters SEC(".maps");

/* The fields of a frame that the filter tests, read from its headers without checks. */
struct capture_seen {
	struct addr src, dst;
	__u16 sport, dport; /* host order; valid iff ports */
	__u8 family;	    /* 4, 6; 0: not IP	   */
	__u8 proto;
	__u8 ports; /* it has ports */
	__u8 pad;
};

struct capture {
	struct record head; /* of the packet as it came, with its bytes behind it */
	__u8 data[CAPTURE_BYTES];
	struct capture_seen before, after;
	__u8 headers[CAPTURE_HEADERS];
	__u32 there; /* valid bytes of headers[] */
	__u32 bare;  /* headers[] begin with the IP header       */
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct capture);
} captures SEC(".maps");

static __always_inline struct capture *capture_get(void)
{
	__u32 zero = 0;

	return bpf_map_lookup_elem(&captures, &zero);
}

static __always_inline struct capture_setting *capture_setting_get(void)
{
	__u32 zero = 0;

	return bpf_map_lookup_elem(&capture_filters, &zero);
}

/* Returns a byte of the headers; the caller has checked that it is there. */
static __always_inline __u32 capture_byte(const struct capture *c, __u32 at)
{
	return c->headers[at & (CAPTURE_HEADERS - 1)];
}

static __always_inline __u32 capture_word(const struct capture *c, __u32 at)
{
	return capture_byte(c, at) << 8 | capture_byte(c, at + 1);
}

static __always_inline void capture_addr(const struct capture *c, struct addr *a, __u32 at, __u32 size)
{
	__u8 *to = (__u8 *)a;
	__u32 i;

	a->word[0] = a->word[1] = 0;
	a->word[2] = ADDR4_PREFIX;
	for (i = 0; i < 16; i++)
		if (i < size)
			to[16 - size + i] = capture_byte(c, at + i);
}

/* Ports behind the IP header, of a packet or its first fragment. */
static __always_inline void capture_l4(const struct capture *c, struct capture_seen *s, __u32 at)
{
	if (s->proto != IPPROTO_TCP && s->proto != IPPROTO_UDP)
		return;
	if (at + 4 > c->there)
		return;
	s->sport = capture_word(c, at);
	s->dport = capture_word(c, at + 2);
	s->ports = 1;
}

static __always_inline void capture_ip4(const struct capture *c, struct capture_seen *s, __u32 at)
{
	if (at + sizeof(struct iphdr) > c->there)
		return;
	s->family = 4;
	capture_addr(c, &s->src, at + 12, 4);
	capture_addr(c, &s->dst, at + 16, 4);
	s->proto = capture_byte(c, at + 9);
	if (!(capture_word(c, at + 6) & IP_OFFSET))
		capture_l4(c, s, at + (capture_byte(c, at) & 0xf) * 4);
}

static __always_inline void capture_ip6(hook_ctx *ctx, const struct capture *c, struct capture_seen *s, __u32 at)
{
	struct extension_chain e = {};

	if (at + sizeof(struct ipv6hdr) > c->there)
		return;
	s->family = 6;
	capture_addr(c, &s->src, at + 8, 16);
	capture_addr(c, &s->dst, at + 24, 16);
	e.next = capture_byte(c, at + 6);
	e.offset = at + sizeof(struct ipv6hdr);
	e.length = c->there - e.offset;
	extension_skip(ctx, &e, CAPTURE_HEADERS);
	s->proto = e.next;
	if (e.fragment != FRAGMENT_LATER)
		capture_l4(c, s, e.offset);
}

/* Reads the headers for the filter. A frame that packet/parse.h would refuse is read as
 * far as possible, so that malformed frames are found too. */
__noinline int capture_see(hook_ctx *ctx, struct capture *c, int after)
{
	struct capture_seen *s;
	__u32 at = 0, kind = 0, i;

	if (!c)
		return 0;
	s = after ? &c->after : &c->before;
	s->family = 0;
	s->proto = 0;
	s->ports = 0;
	if (c->bare) {
		kind = c->there && capture_byte(c, 0) >> 4 == 6 ? ETH_P_IPV6 : ETH_P_IP;
	} else {
		at = sizeof(struct ethhdr);
		if (at <= c->there)
			kind = capture_word(c, 12);
		for (i = 0; i < CAPTURE_TAGS && (kind == ETH_P_8021Q || kind == ETH_P_8021AD); i++) {
			kind = at + 4 <= c->there ? capture_word(c, at + 2) : 0;
			at += 4;
		}
	}
	if (kind == ETH_P_IP)
		capture_ip4(c, s, at);
	else if (kind == ETH_P_IPV6)
		capture_ip6(ctx, c, s, at);
	return 0;
}

static __always_inline int capture_in_prefix(const struct addr *a, const struct addr *prefix, const struct addr *mask)
{
	const word64 *x = (const word64 *)a, *y = (const word64 *)prefix, *m = (const word64 *)mask;

	return !(((x[0] ^ y[0]) & m[0]) | ((x[1] ^ y[1]) & m[1]));
}

/* Whether one alternative selects a frame, apart from its interface. */
__noinline int capture_selects(const struct capture_filter *f, const struct capture_seen *s)
{
	__u32 flags;

	if (!f || !s)
		return 0;
	flags = f->flags;
	if (flags & FILTER_ALL)
		return 1;
	if (!s->family || (f->family && f->family != s->family))
		return 0;
	if (flags & FILTER_PROTO && f->proto != s->proto)
		return 0;
	if (capture_in_prefix(&s->src, &f->src, &f->src_mask) == !!(flags & FILTER_NOT_SRC))
		return 0;
	if (capture_in_prefix(&s->dst, &f->dst, &f->dst_mask) == !!(flags & FILTER_NOT_DST))
		return 0;
	if (flags & (FILTER_SPORT | FILTER_DPORT) && !s->ports)
		return 0;
	if (flags & FILTER_SPORT &&
	    (s->sport >= f->sport_low && s->sport <= f->sport_high) == !!(flags & FILTER_NOT_SPORT))
		return 0;
	if (flags & FILTER_DPORT &&
	    (s->dport >= f->dport_low && s->dport <= f->dport_high) == !!(flags & FILTER_NOT_DPORT))
		return 0;
	return 1;
}

/* Returns the readers that want the packet, as it came or as it leaves. */
__noinline __u32 capture_readers(struct capture *c, __u32 peer)
{
	struct capture_setting *setting = capture_setting_get();
	__u32 readers = 0, count, i;

	if (!c || !setting)
		return 0;
	count = setting->count;
	for (i = 0; i < CAPTURE_FILTERS && i < count; i++) {
		struct capture_filter *f = &setting->filter[i];

		if (f->ifindex && f->ifindex != c->head.ifindex && f->ifindex != peer)
			continue;
		if (capture_selects(f, &c->before) || capture_selects(f, &c->after))
			readers |= f->readers;
	}
	return readers;
}

/* clang compares one copy of a length and passes another one, for which the verifier
 * knows no bound. The empty asm makes them one register (any kernel). */
#define keep_bound(n) asm volatile("" : "+r"(n))

/* Reads a frame's first bytes, without the tags behind its MACs: 0, or < 0. */
static __always_inline int capture_read(hook_ctx *ctx, __u8 *to, __u32 bytes, __u32 front)
{
	if (!front)
		return hook_load(ctx, 0, to, bytes);
	if (bytes <= 2 * ETH_ALEN)
		return -1;
	return hook_load(ctx, 0, to, 2 * ETH_ALEN) ||
	       hook_load(ctx, 2 * ETH_ALEN + front, to + 2 * ETH_ALEN, bytes - 2 * ETH_ALEN);
}

/* Copies the frame behind the record's head. */
static __always_inline void capture_load(hook_ctx *ctx, struct capture *c, int bare, __u32 front)
{
	struct capture_setting *setting = capture_setting_get();
	__u32 length = hook_length(ctx) - front;
	__u64 n = length;

	c->head.time = bpf_ktime_get_boot_ns();
	c->head.length = length;
	c->head.captured = 0;
	c->head.flags = bare ? RECORD_L3 : 0;
	if (setting && n > setting->snap)
		n = setting->snap;
	keep_bound(n);
	if (n > CAPTURE_BYTES)
		n = CAPTURE_BYTES;
	if (n && !capture_read(ctx, c->data, n, front))
		c->head.captured = n;
}

static __always_inline void capture_headers(hook_ctx *ctx, struct capture *c, int bare, __u32 front)
{
	__u64 n = hook_length(ctx) - front;

	keep_bound(n);
	if (n > CAPTURE_HEADERS)
		n = CAPTURE_HEADERS;
	c->there = 0;
	c->bare = bare;
	if (n && !capture_read(ctx, c->headers, n, front))
		c->there = n;
}

/* Writes the record into the ring, or counts it as lost. Wakes the reader as
 * record_submit() does. */
static __always_inline void capture_write(struct capture *c)
{
	__u64 n = c->head.captured;
	__u64 unread = bpf_ringbuf_query(&capture_ring, BPF_RB_AVAIL_DATA);
	__u64 quarter = CAPTURE_RING_BYTES / 4;

	keep_bound(n);
	if (n > CAPTURE_BYTES)
		n = CAPTURE_BYTES;
	if (bpf_ringbuf_output(&capture_ring, c, sizeof(c->head) + n,
			       unread >= quarter && unread < quarter + 2 * CAPTURE_BYTES ? BPF_RB_FORCE_WAKEUP :
											   BPF_RB_NO_WAKEUP))
		record_lost(RING_CAPTURE);
}

/* Keeps the packet as it came. Returns < 0 if nobody would read it. */
__noinline int capture_before(hook_ctx *ctx, int out)
{
	__u32 ifindex = HOOK_IS_XDP ? BELONGS_TO(logical_of(ctx, hook_ifindex(ctx))) : hook_ifindex(ctx);
	const struct interface *i = interface_get(ifindex);
	struct capture *c = capture_get();
	struct scratch *s = scratch_get();
	__u32 *note = count_noted_get();

	if (!i || !c || !s || !note || !record_wanted(RING_CAPTURE) || daemon_is_dead())
		return -1;
	*note = UNDECIDED;
	s->state = 0;
	s->nexthop = 0;
	s->in.rule = 0;
	s->out.rule = 0;
	s->in.action = ACTION_PASS;
	s->out.action = ACTION_PASS;
	c->head.ifindex = ifindex;
	c->head.direction = out ? DIRECTION_OUT : DIRECTION_IN;
	capture_load(ctx, c, i->flags & INTERFACE_L3, HOOK_IS_XDP ? i->front : 0);
	capture_headers(ctx, c, i->flags & INTERFACE_L3, HOOK_IS_XDP ? i->front : 0);
	capture_see(ctx, c, 0);
	return 0;
}

/* Finds the state of a packet that took the fast path, which leaves no trace in the
 * scratch. */
__noinline int capture_state(const struct tuple *t)
{
	struct scratch *s = scratch_get();
	__u32 number = 0;

	if (s && t && lookup_state(t, &number))
		s->state = number;
	return 0;
}

static __always_inline __u32 capture_rule(const struct scratch *s, const struct state *st, __u32 why, int out)
{
	if (why == REASON_BLOCK || why == REASON_UNLOADED)
		return s->out.action == ACTION_BLOCK ? s->out.rule : s->in.rule;
	if (st)
		return st->rule_in && !out ? st->rule_in : st->rule_out;
	return s->in.rule && !out ? s->in.rule : s->out.rule;
}

static __always_inline __u8 capture_verdict(int action, int out)
{
	if (action == HOOK_DROP)
		return VERDICT_DROP;
	if (action != HOOK_PASS)
		return VERDICT_REDIRECT;
	return out ? VERDICT_PASS : VERDICT_UP;
}

/* Returns the interface that a redirected packet leaves by; front: the bytes of tags
 * that were added. */
static __always_inline __u32 capture_peer(const struct scratch *s, const struct state *st, __u32 why, __u32 ifindex,
					  __u32 *front)
{
	__u32 n = st ? state_course((struct state *)st, STATE_DIRECTION(s->state))->nexthop : s->nexthop;

	if (why > REASON_LAST_PASS)
		return ifindex; /* a reject, to the sender */
	if (n < NEXTHOP_FIRST)
		return 0;
	*front = HOOK_IS_XDP ? nexthop_get(n)->encap.length : 0;
	return nexthop_get(n)->ifindex;
}

/* Writes what came and what leaves, if a reader wants it. */
__noinline int capture_after(hook_ctx *ctx, int action, int out)
{
	struct capture *c = capture_get();
	struct scratch *s = scratch_get();
	const struct interface *i, *o;
	const struct state *st;
	__u32 *note = count_noted_get(), why, peer = 0, readers, front;
	int bare;

	if (!c || !s || !note || *note >= UNDECIDED)
		return 0; /* nothing was decided here */
	why = *note;
	i = interface_get(c->head.ifindex);
	st = s->state ? state_get(STATE_INDEX(s->state)) : 0;
	if (!i)
		return 0;
	front = HOOK_IS_XDP ? i->front : 0;
	if (capture_verdict(action, out) == VERDICT_REDIRECT)
		peer = capture_peer(s, st, why, c->head.ifindex, &front);
	o = interface_get(peer);
	/* a packet without Ethernet header has got one if the device needs it */
	bare = i->flags & INTERFACE_L3 && !(peer && o && !(o->flags & INTERFACE_L3));
	capture_headers(ctx, c, bare, front);
	capture_see(ctx, c, 1);
	readers = capture_readers(c, peer);
	if (!readers)
		return 0;
	c->head.readers = readers;
	c->head.kind = RECORD_BEFORE;
	c->head.family = c->before.family;
	c->head.state = STATE_INDEX(s->state);
	c->head.rule = 0;
	c->head.reason = 0;
	c->head.verdict = 0;
	c->head.peer_ifindex = 0;
	capture_write(c);
	capture_load(ctx, c, bare, front);
	c->head.kind = RECORD_AFTER;
	c->head.family = c->after.family;
	c->head.rule = capture_rule(s, st, why, out);
	c->head.reason = why;
	c->head.verdict = capture_verdict(action, out);
	c->head.peer_ifindex = peer;
	capture_write(c);
	return 0;
}

#endif
