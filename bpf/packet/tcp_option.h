/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* The options of a SYN. */
#ifndef WEIR_PACKET_TCP_OPTION_H
#define WEIR_PACKET_TCP_OPTION_H

#include <linux/tcp.h>

#include "packet/csum.h"
#include "path/scratch.h"
#include "verifier.h"

/* A walk through the options of a SYN, in s->options. */
struct tcp_option_walk {
	struct scratch *s; /* option_at is where the next one is */
	__u32 length;
	__u32 diff; /* of the checksum, by what was lowered */
	__u16 mss;  /* larger ones are lowered to it; 0: none is */
	__s8 scale; /* the first one; -1: none is found */
};

/* Lowers the MSS at an offset of the options. At an odd offset the checksum sees it with
 * its bytes exchanged. */
static __always_inline void tcp_option_lower(struct tcp_option_walk *w, __u32 at)
{
	__u8 *o = &w->s->options[at];
	__u16 old = o[0] << 8 | o[1];

	if (!w->mss || old <= w->mss)
		return;
	o[0] = w->mss >> 8;
	o[1] = w->mss;
	if (at & 1)
		w->diff += csum_word_diff(old, w->mss);
	else
		w->diff += csum_word_diff(bpf_htons(old), bpf_htons(w->mss));
}

/* Reads the next option. 1: there are no more. */
static long tcp_option_step(__u32 n, void *data)
{
	struct tcp_option_walk *w = data;
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
		if (reread(w->s->options[at]) == 2 && size == 4)
			tcp_option_lower(w, at + 2);
		if (reread(w->s->options[at]) == 3 && size == 3 && w->scale < 0)
			w->scale = w->s->options[at + 2] > 14 ? 14 : w->s->options[at + 2];
	}
	w->s->option_at = at + size;
	return 0;
}

/* Walks through the options of a SYN. They are copied, because the verifier follows bytes of a
 * buffer better than those of a frame. 0: the packet has none. */
static __always_inline __u32 tcp_option_run(hook_ctx *ctx, struct tcp_option_walk *w)
{
	struct scratch *s = w->s;
	__u32 length;

	if (!s || s->packet.tuple.proto != IPPROTO_TCP || !(s->packet.tcp_flags & TCP_SYN))
		return 0;
	length = s->packet.tcp_header - sizeof(struct tcphdr);
	if (!length || length > TCP_MAX_OPTIONS ||
	    hook_load(ctx, s->packet.l4_offset + sizeof(struct tcphdr), s->options, length))
		return 0;
	w->length = length;
	s->option_at = 0;
	bpf_loop(TCP_MAX_OPTIONS, tcp_option_step, w, 0);
	return length;
}

/* Returns the window scale of a SYN (RFC 7323, 2), or -1. */
__noinline int tcp_option_wscale(hook_ctx *ctx, struct scratch *s)
{
	struct tcp_option_walk w = { .s = s, .scale = -1 };

	tcp_option_run(ctx, &w);
	return w.scale;
}

#endif
