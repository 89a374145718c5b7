/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * What rules log (docs/packet-path.md, Log): a record for each crossing and rule
 * that logs. Only the programs behind the tail call write any.
 */
#ifndef WEIR_LOG_H
#define WEIR_LOG_H

#include "record.h"
#include "scratch.h"

/* Bytes of a packet that its record holds: all headers, and the beginning of what
 * they carry (tcpdump and pflogd take as much or less). */
#define LOG_BYTES 216

struct log_record {
	struct record head;
	__u8 data[LOG_BYTES];
};
_Static_assert(sizeof(struct log_record) == 256, "with the ring's own 8 bytes 264");

/* Writes a record about the packet at the crossing that s->log tells of. */
__noinline int log_write(hook_ctx *ctx, struct scratch *s, __u32 rule)
{
	const struct packet *p;
	struct log_record *l;
	__u32 length;

	if (!s)
		return 0;
	l = bpf_ringbuf_reserve(&log_ring, sizeof(*l), 0);
	if (!l) {
		record_lost(RING_LOG);
		return 0;
	}
	p = &s->packet;
	l->head = s->log;
	l->head.time = bpf_ktime_get_boot_ns();
	l->head.rule = rule;
	l->head.length = p->length;
	l->head.kind = RECORD_LOG;
	l->head.flags |= RECORD_L3;
	l->head.family = p->family;
	length = p->length;
	if (length > LOG_BYTES)
		length = LOG_BYTES;
	if (length && !hook_load(ctx, p->l3_offset, l->data, length))
		l->head.captured = length;
	record_submit(log_ring, LOG_RING_BYTES, l, sizeof(*l) + 8);
	return 0;
}

#endif
