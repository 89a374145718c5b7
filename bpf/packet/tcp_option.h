/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* The options of a SYN. */
#ifndef WEIR_PACKET_TCP_OPTION_H
#define WEIR_PACKET_TCP_OPTION_H

#include <linux/tcp.h>

#include "path/scratch.h"

/* A walk through the options of a SYN. */
struct tcp_option_walk {
	const struct scratch *s;
	__u32 at;
	__u32 length;
	int scale; /* -1: not found */
};

/* Reads the next option. 1: there are no more. */
static long tcp_option_step(__u32 n, void *data)
{
	struct tcp_option_walk *w = data;
	__u32 at = w->at;
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
		if (kind == 3 && size == 3) {
			w->scale = w->s->options[at + 2] > 14 ? 14 : w->s->options[at + 2];
			return 1;
		}
	}
	w->at = at + size;
	return 0;
}

/* Returns the window scale of a SYN (RFC 7323, 2), or -1. The options are copied,
 * because the verifier follows bytes of a buffer better than those of a frame. */
__noinline int tcp_option_wscale(hook_ctx *ctx, struct scratch *s)
{
	struct tcp_option_walk w = { .s = s, .scale = -1 };
	__u32 length;

	if (!s || s->packet.tuple.proto != IPPROTO_TCP || !(s->packet.tcp_flags & TCP_SYN))
		return -1;
	length = s->packet.tcp_header - sizeof(struct tcphdr);
	if (!length || length > TCP_MAX_OPTIONS)
		return -1;
	if (hook_load(ctx, s->packet.l4_offset + sizeof(struct tcphdr), s->options, length))
		return -1;
	w.length = length;
	bpf_loop(TCP_MAX_OPTIONS, tcp_option_step, &w, 0);
	return w.scale;
}

#endif
