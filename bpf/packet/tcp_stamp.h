/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* The timestamps of a TCP segment (RFC 7323, 3), which scrub (reassemble tcp) reads and changes. */
#ifndef WEIR_PACKET_TCP_STAMP_H
#define WEIR_PACKET_TCP_STAMP_H

#include <linux/tcp.h>

#include "packet/csum.h"
#include "packet/rewrite.h"
#include "path/scratch.h"
#include "verifier.h"

#define STAMP_KIND   8
#define STAMP_LENGTH 10 /* of the option */

/* A walk through the options of a segment, in s->options. */
struct stamp_walk {
	struct scratch *s; /* option_at is where the next one is */
	__u32 length;
};

/* Reads the next option. 1: there are no more. */
static long stamp_step(__u32 n, void *data)
{
	struct stamp_walk *w = data;
	__u32 at = w->s->option_at;
	__u8 kind, size = 1;

	(void)n;
	if (at >= w->length || at >= TCP_MAX_OPTIONS)
		return 1;
	kind = w->s->options[at];
	if (kind == 0)
		return 1;
	if (kind != 1) {
		size = w->s->options[at + 1];
		if (size < 2 || at + size > w->length)
			return 1;
		if (kind == STAMP_KIND && size == STAMP_LENGTH) {
			w->s->stamp.at = at + 2;
			w->s->stamp.count++;
		}
	}
	w->s->option_at = at + size;
	return 0;
}

/* Reads four bytes of the options. */
static __always_inline __u32 stamp_word(const struct scratch *s, __u32 at)
{
	const __u8 *o = s->options;

	if (at > TCP_MAX_OPTIONS - 4)
		return 0;
	return (__u32)o[at] << 24 | o[at + 1] << 16 | o[at + 2] << 8 | o[at + 3];
}

/* The place of the timestamps that most segments have: behind two options NOP, and nothing else. */
#define STAMP_ALONE 12
#define STAMP_HEAD  0x0101080a

/*
 * Reads the timestamps of the packet in the scratch: s->stamp. Its count is 0 if it has none, or
 * if its options are malformed in front of them. A function of its own, so that the verifier
 * follows it once.
 */
__noinline int stamp_read(hook_ctx *ctx, struct scratch *s)
{
	struct stamp_walk w = { .s = s };
	__u32 length;

	if (!s)
		return 0;
	s->stamp.count = 0;
	s->stamp.at = 0;
	length = s->packet.tcp_header - sizeof(struct tcphdr);
	if (length < STAMP_LENGTH || length > TCP_MAX_OPTIONS ||
	    hook_load(ctx, s->packet.l4_offset + sizeof(struct tcphdr), s->options, length))
		return 0;
	if (length == STAMP_ALONE && stamp_word(s, 0) == STAMP_HEAD) {
		s->stamp.at = 4;
		s->stamp.count = 1;
	} else {
		w.length = length;
		s->option_at = 0;
		bpf_loop(TCP_MAX_OPTIONS, stamp_step, &w, 0);
	}
	s->stamp.value = stamp_word(s, s->stamp.at);
	s->stamp.echo = stamp_word(s, reread(s->stamp.at) + 4);
	return 0;
}

/* Writes four bytes, and returns the difference of the checksum if they are at an even place. */
static __always_inline __u32 stamp_put(__u8 *to, __u32 old, __u32 new)
{
	to[0] = new >> 24;
	to[1] = new >> 16;
	to[2] = new >> 8;
	to[3] = new;
	return csum_word_diff(bpf_htons(old >> 16), bpf_htons(new >> 16)) + csum_word_diff(bpf_htons(old), bpf_htons(new));
}

/* Replaces the timestamps that stamp_read() has found. < 0: the frame is gone. */
static __always_inline int stamp_write(hook_ctx *ctx, struct scratch *s, __u32 value, __u32 echo)
{
	__u32 at = s->stamp.at, diff;
	struct headers h;
	__u8 bytes[8];

	if ((value == s->stamp.value && echo == s->stamp.echo) || at > TCP_MAX_OPTIONS - sizeof(bytes))
		return 0;
	diff = csum_fold(stamp_put(bytes, s->stamp.value, value) + stamp_put(bytes + 4, s->stamp.echo, echo));
	if (at & 1) /* the sum sees them with their bytes exchanged */
		diff = (diff >> 8 | diff << 8) & 0xffff;
	if (hook_store(ctx, s->packet.l4_offset + sizeof(struct tcphdr) + at, bytes, sizeof(bytes)) ||
	    headers_reload(&h, &s->packet, hook_data(ctx), hook_data_end(ctx)) || !header_tcp(&h))
		return -1;
	if (diff) /* else the two changes cancel each other in the sum */
		rewrite_csum(ctx, h.l4, s->packet.l4_offset, CSUM_AT_TCP, 0, diff, 0);
	return 0;
}

#endif
