/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * Which packets a capture shows: the readers' filters, and the headers of a frame that
 * they test. docs/packet-path.md, Capture.
 */
#ifndef WEIR_OBSERVE_CAPTURE_FILTER_H
#define WEIR_OBSERVE_CAPTURE_FILTER_H

#include "observe/record.h"
#include "packet/addr.h"
#include "packet/extension.h"

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
struct capture_fields {
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
	struct capture_fields before, after;
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
static __always_inline void capture_l4(const struct capture *c, struct capture_fields *s, __u32 at)
{
	if (!tuple_has_ports(s->proto))
		return;
	if (at + 4 > c->there)
		return;
	s->sport = capture_word(c, at);
	s->dport = capture_word(c, at + 2);
	s->ports = 1;
}

static __always_inline void capture_ip4(const struct capture *c, struct capture_fields *s, __u32 at)
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

static __always_inline void capture_ip6(hook_ctx *ctx, const struct capture *c, struct capture_fields *s, __u32 at)
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
__noinline int capture_parse(hook_ctx *ctx, struct capture *c, int after)
{
	struct capture_fields *s;
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
__noinline int capture_selects(const struct capture_filter *f, const struct capture_fields *s)
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

#endif
