/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * The operating system that a SYN comes from, for rules with os: the first fingerprint
 * that fits the SYN as it came, as in pf (pf_osfp.c). Nothing is looked up unless a rule
 * asks.
 */
#ifndef WEIR_RULES_FINGERPRINT_H
#define WEIR_RULES_FINGERPRINT_H

#include <linux/tcp.h>

#include "path/scratch.h"

/* How a number is compared; as in pf/fingerprint. */
enum fingerprint_kind {
	FINGERPRINT_EXACTLY,
	FINGERPRINT_ANY,
	FINGERPRINT_MULTIPLE,
	FINGERPRINT_TIMES_MSS,
	FINGERPRINT_TIMES_MTU,
};

/* Options of a SYN, three bits each. */
enum fingerprint_option {
	FINGERPRINT_NOP = 1,
	FINGERPRINT_SCALE,
	FINGERPRINT_MSS,
	FINGERPRINT_SACK,
	FINGERPRINT_TIME,
};
#define FINGERPRINT_OPTION_BITS 3
#define FINGERPRINT_OPTIONS	20
#define MAX_FINGERPRINTS	4096 /* as in pf/fingerprint */

/* Routers lower a TTL by so much at most. */
#define FINGERPRINT_HOPS 40
/* What a window may be a multiple of, if a router has lowered the MSS. */
#define FINGERPRINT_USUAL_MSS 1460
#define FINGERPRINT_USUAL_MTU 1500
#define FINGERPRINT_HEADERS   40 /* of IPv4 and TCP */
/* Fingerprints are those of IPv4. IPv6's header is longer, and has no such bit. */
#define FINGERPRINT_LONGER 20
#define FINGERPRINT_DF_ANY 2

struct fingerprint {
	__u64 options; /* the last one in the lowest bits */
	__u16 window;
	__u16 size; /* bytes of the IP packet */
	__u16 mss;
	__u16 scale;
	__u8 window_kind;
	__u8 size_kind;
	__u8 mss_kind;
	__u8 scale_kind;
	__u8 ttl;
	__u8 df;
	__u8 zero_time;
	__u8 pad0[1];
};

/* Belongs to one generation. Written by the loader. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1); /* by the loader */
	__type(key, __u32);
	__type(value, struct fingerprint);
} fingerprints SEC(".maps");

/* A SYN, and the walks through its options and the fingerprints. */
struct fingerprint_walk {
	struct fingerprint syn; /* its kinds are not valid */
	__u32 at; /* of the next option */
	__u32 length;
	__u32 count; /* options so far */
	__u32 found; /* number of the fingerprint; 0: none */
	__u32 broken; /* no fingerprint has such options */
	__u8 options[TCP_MAX_OPTIONS];
};

/* The walk of each core. On the stack the verifier would follow every value of it. */
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct fingerprint_walk);
} fingerprint_walks SEC(".maps");

static __always_inline struct fingerprint_walk *fingerprint_walk_get(void)
{
	__u32 zero = 0;

	return bpf_map_lookup_elem(&fingerprint_walks, &zero);
}

static __always_inline __u32 fingerprint_byte(const struct fingerprint_walk *w, __u32 offset)
{
	__u32 at = w->at + offset;

	return at < TCP_MAX_OPTIONS ? w->options[at] : 0;
}

/* Notes an option with its value. Returns its number; 0: no fingerprint has it. */
static __always_inline __u32 fingerprint_note(struct fingerprint_walk *w, __u32 kind, __u32 size)
{
	switch (kind) {
	case 2:
		if (size >= 4)
			w->syn.mss = fingerprint_byte(w, 2) << 8 | fingerprint_byte(w, 3);
		return FINGERPRINT_MSS;
	case 3:
		if (size >= 3)
			w->syn.scale = fingerprint_byte(w, 2);
		return FINGERPRINT_SCALE;
	case 4:
		return FINGERPRINT_SACK;
	case 8:
		if (size >= 10 && !(fingerprint_byte(w, 2) | fingerprint_byte(w, 3) | fingerprint_byte(w, 4) |
				    fingerprint_byte(w, 5)))
			w->syn.zero_time = 1;
		return FINGERPRINT_TIME;
	}
	return 0;
}

/* Reads the next option. 1: there are no more. */
static long fingerprint_option_step(__u32 n, void *data)
{
	struct fingerprint_walk *w = fingerprint_walk_get();
	__u32 kind, size = 1, option = FINGERPRINT_NOP;

	(void)n;
	(void)data;
	if (!w || w->at >= w->length)
		return 1;
	kind = fingerprint_byte(w, 0);
	if (kind == 0)
		return 1;
	if (kind != 1) {
		size = w->at + 1 < w->length ? fingerprint_byte(w, 1) : 0;
		option = size < 2 || w->at + size > w->length ? 0 : fingerprint_note(w, kind, size);
	}
	if (!option || w->count == FINGERPRINT_OPTIONS) {
		w->broken = 1;
		return 1;
	}
	w->syn.options = w->syn.options << FINGERPRINT_OPTION_BITS | option;
	w->count++;
	w->at += size;
	return 0;
}

static __always_inline int fingerprint_number(__u32 kind, __u32 want, __u32 is)
{
	if (kind == FINGERPRINT_ANY)
		return 1;
	return kind == FINGERPRINT_MULTIPLE ? want && is % want == 0 : want == is;
}

/* Whether a window is so many times a size, or the usual one. */
static __always_inline int fingerprint_times(__u32 window, __u32 times, __u32 size, __u32 usual)
{
	return window == times * size || window == times * usual;
}

static __always_inline int fingerprint_window(const struct fingerprint *f, const struct fingerprint *syn)
{
	if (f->window_kind == FINGERPRINT_TIMES_MSS)
		return syn->mss && fingerprint_times(syn->window, f->window, syn->mss, FINGERPRINT_USUAL_MSS);
	if (f->window_kind == FINGERPRINT_TIMES_MTU)
		return syn->mss && fingerprint_times(syn->window, f->window, syn->mss + FINGERPRINT_HEADERS,
						     FINGERPRINT_USUAL_MTU);
	return fingerprint_number(f->window_kind, f->window, syn->window);
}

/* Compares the next fingerprint. 1: it fits. */
static long fingerprint_step(__u32 n, void *data)
{
	struct fingerprint_walk *w = fingerprint_walk_get();
	const struct fingerprint *syn, *f = bpf_map_lookup_elem(&fingerprints, &n);

	(void)data;
	if (!w || !f)
		return 1;
	syn = &w->syn;
	if (f->options != syn->options || f->zero_time != syn->zero_time)
		return 0;
	if (f->df != syn->df && syn->df != FINGERPRINT_DF_ANY)
		return 0;
	if (f->ttl < syn->ttl || f->ttl - syn->ttl > FINGERPRINT_HOPS)
		return 0;
	if (!fingerprint_number(f->size_kind, f->size, syn->size) ||
	    !fingerprint_number(f->mss_kind, f->mss, syn->mss) ||
	    !fingerprint_number(f->scale_kind, f->scale, syn->scale) || !fingerprint_window(f, syn))
		return 0;
	w->found = n + 1;
	return 1;
}

/* Fills in what the headers say. < 0: they cannot be read. */
static __always_inline int fingerprint_headers(hook_ctx *ctx, const struct packet *p, struct fingerprint_walk *w)
{
	__u32 length = p->tcp_header - sizeof(struct tcphdr);
	__be16 fragment = 0;

	__builtin_memset(w, 0, sizeof(*w));
	if (length > TCP_MAX_OPTIONS)
		return -1;
	if (length && hook_load(ctx, p->l4_offset + sizeof(struct tcphdr), w->options, length))
		return -1;
	w->length = length;
	if (p->family == 4 && hook_load(ctx, p->l3_offset + __builtin_offsetof(struct iphdr, frag_off), &fragment,
					sizeof(fragment)))
		return -1;
	w->syn.size = p->length - (p->family == 6 ? FINGERPRINT_LONGER : 0);
	w->syn.ttl = p->ttl;
	w->syn.window = p->window;
	w->syn.df = p->family == 6 ? FINGERPRINT_DF_ANY : !!(fragment & bpf_htons(0x4000));
	return 0;
}

/* Returns the number of the packet's fingerprint, of so many. 0: it has none, or is no SYN;
 * NO_SYSTEM: it is not TCP. */
__noinline __u32 fingerprint_find(hook_ctx *ctx, const struct scratch *s, __u32 all)
{
	struct fingerprint_walk *w = fingerprint_walk_get();
	const struct packet *p;

	if (!s || !w)
		return 0;
	p = &s->packet;
	if (p->tuple.proto != IPPROTO_TCP)
		return NO_SYSTEM;
	if ((p->tcp_flags & (TCP_SYN | TCP_ACK)) != TCP_SYN || p->fragment != FRAGMENT_NONE ||
	    fingerprint_headers(ctx, p, w))
		return 0;
	bpf_loop(TCP_MAX_OPTIONS, fingerprint_option_step, 0, 0);
	if (w->broken)
		return 0;
	bpf_loop(all < MAX_FINGERPRINTS ? all : MAX_FINGERPRINTS, fingerprint_step, 0, 0);
	return w->found;
}

#endif
