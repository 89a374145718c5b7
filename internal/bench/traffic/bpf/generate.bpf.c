// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
/*
 * The frame generator. Run on live frames (BPF_PROG_TEST_RUN), it writes one frame of
 * the next flow and sends it out of its device. Frames are recycled with the router's
 * changes, so it writes the whole header each time. One loaded copy belongs to one
 * thread.
 */
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

#include "flow.h"
#include "frame.h"

/* The header, with zeroes where flows differ, and its length, which is even. */
const volatile __u64 header[HEADER_WORDS];
const volatile __u32 header_len;
const volatile __u8 ipv6;
const volatile __u32 tag_len; /* bytes of a VLAN tag in front of the EtherType, or of a PPPoE session */
const volatile __u8 tcp;
const volatile __u8 back; /* from the far end to the near one */

/* 16-bit sums of the parts that all frames share. */
const volatile __u32 ip_sum;
const volatile __u32 l4_sum;

/* The lowest 32 bits of the hosts' networks. */
const volatile __u32 source_net;
const volatile __u32 target_net;

/* This copy's flows, its step through them, and how often. */
const volatile __u32 first_flow;
const volatile __u32 flows;
const volatile __u32 step;
const volatile __u64 limit; /* frames; 0: no limit */

/* Trains: 1 to this many frames of a flow follow each other. A power of 2; 1: no trains. */
const volatile __u32 longest_train = 1;

/* The flows come in the order of the map `order`, which has so many entries (a power of
 * 2). 0: step by step. An entry has the position of a flow, the number of the frame among
 * those of the flow in `order`, and how many these are; both wrap. */
const volatile __u32 order_len;
#define ORDER_FLOW(entry)   ((__u32)(entry))
#define ORDER_NUMBER(entry) ((__u16)((entry) >> 32))
#define ORDER_FRAMES(entry) ((__u16)((entry) >> 48))

/* Sizes: the bytes by which the frames are shorter than the first, in turn. */
#define SIZES 12
const volatile __u8 mixed;
const volatile __u16 shorter[SIZES];

/* TCP: the sequence number grows by this with each frame of a flow. It starts again after
 * 256 steps, so that it stays in the window. */
const volatile __u32 sequence;
const volatile __u32 sequence_step;
#define SEQUENCE_MASK 0xff

/* IPv4: the id of a frame is its number within its flow, and wraps. */
const volatile __u8 numbered;

/* Pacing: how many frames leave together, and the ns between these bursts. 0: as fast as
 * possible. */
const volatile __u64 burst_ns;
const volatile __u32 burst_frames;

/* The ns between bursts that make up for late ones. 0: none do. */
const volatile __u64 catch_up_ns;

/* Offset of the payload, into which the time of sending is written, or 0. Its complement
 * follows, so the checksum does not change. */
const volatile __u32 stamp_at;

/* Bytes in front of the frame that the generator makes room for itself. */
const volatile __u32 grows;

/* One of this many frames comes from this network, which no rule passes. 0: none. */
const volatile __u32 illegal_every;
const volatile __u32 illegal_net;

/* A burst that is later than this counts as late. */
#define LATE_NS 20000

/* ns; reading the clock takes about 30. */
#define MAX_LOOKS (1 << 20)

struct pace {
	__u64 due_ns; /* when the next burst is due */
	__u64 first_ns;
	__u64 last_ns;
	__u64 frames;
	__u64 late; /* late bursts */
	__u64 waited_ns;
	__u64 unused[2];
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__type(key, __u32);
	__type(value, struct pace);
	__uint(max_entries, 1);
} paces SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__type(key, __u32);
	__type(value, struct answer);
	__uint(max_entries, 1);
} answers SEC(".maps");

/* Positions of flows, mapped into the program's memory. An entry of an array takes eight
 * bytes at least. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__type(key, __u32);
	__type(value, __u64);
	__uint(max_entries, 1); /* set to order_len */
} order SEC(".maps");

static __u64 sent;
static __u32 position;
static __u32 rounds;
static __u32 train;	     /* frames left of the present one */
static __u32 within;	     /* number of the frame within its train, or of its flow's within `order` */
static __u32 frames = 1;     /* of its flow, at most, in a round */
static __u32 dice = 0x9e3779b1; /* not 0 */
static __u32 turn;	     /* in `order` */
static __u32 size;	     /* in `shorter` */

struct ends {
	__u32 source, target;
	__u16 source_port, target_port;
};

/* xorshift32 (Marsaglia 2003) */
static __always_inline __u32 roll(void)
{
	dice ^= dice << 13;
	dice ^= dice >> 17;
	dice ^= dice << 5;
	return dice;
}

static __always_inline void move_on(void)
{
	__u64 *next;
	__u32 at;

	if (longest_train > 1) {
		if (train) {
			train--;
			within++;
			return;
		}
		train = roll() & (longest_train - 1);
		within = 0;
		frames = longest_train;
	}
	if (order_len) {
		at = ++turn & (order_len - 1);
		if (!at)
			rounds++;
		next = bpf_map_lookup_elem(&order, &at);
		if (next && ORDER_FLOW(*next) < flows) {
			position = ORDER_FLOW(*next);
			within = ORDER_NUMBER(*next);
			frames = ORDER_FRAMES(*next);
		}
		return;
	}
	position += step;
	if (position >= flows)
		position -= flows;
	if (!position) /* all flows had their turn */
		rounds++;
}

/* The number of the frame within its flow. In trains some numbers are left out. */
static __always_inline __u32 number_within(void)
{
	return rounds * frames + within;
}

static __always_inline int illegal(void)
{
	return illegal_every && sent % illegal_every == 0;
}

static __always_inline struct ends ends_of(__u32 number)
{
	struct flow flow = flow_of(number);
	struct ends ends = {
		.source = (illegal() ? illegal_net : source_net) | flow.source,
		.target = target_net | flow.target,
		.source_port = flow.source_port,
		.target_port = flow.target_port,
	};
	struct answer *answer;

	if (!back)
		return ends;
	answer = bpf_map_lookup_elem(&answers, &number);
	if (answer && answer->out) {
		ends.source = answer->addr;
		ends.source_port = answer->port;
	}
	return (struct ends){ ends.target, ends.source, ends.target_port, ends.source_port };
}

/* Copies one step of the header. The verifier knows len, so only the needed steps
 * remain. */
#define COPY(type, frame, at) (*(type *)((frame) + (at)) = *(const volatile type *)((const volatile __u8 *)header + (at)))

static __always_inline void copy_header(void *frame, __u32 len)
{
	__u32 at = 0;

#pragma unroll
	for (int i = 0; i < HEADER_WORDS; i++) {
		if (at + 8 <= len) {
			COPY(__u64, frame, at);
			at += 8;
		}
	}
	if (len & 4)
		COPY(__u32, frame, len & ~7u);
	if (len & 2)
		COPY(__u16, frame, len & ~3u);
}

static __always_inline __u32 halves(__u32 value)
{
	return (value >> 16) + (value & 0xffff);
}

/* The complement of a number that is to be taken off a sum. */
static __always_inline __u32 less(__u16 number)
{
	return 0xffffu - number;
}

/* cut: the bytes by which the frame is shorter than its header says. */
static __always_inline void write_l4(void *l4, const struct ends *ends, __u32 addresses, __u16 cut)
{
	__u32 sum = l4_sum + addresses + ends->source_port + ends->target_port;
	__u16 check;

	put16(l4, ends->source_port);
	put16(l4 + 2, ends->target_port);
	if (mixed) {
		sum += less(cut); /* in the pseudo header */
		if (!tcp) {
			put16(l4 + UDP_LEN, get16(l4 + UDP_LEN) - cut);
			sum += less(cut);
		}
	}
	if (tcp) {
		__u32 seq = sequence + (number_within() & SEQUENCE_MASK) * sequence_step;

		put32(l4 + TCP_SEQ, seq);
		put16(l4 + TCP_SUM, ~fold(sum + halves(seq)));
		return;
	}
	check = ~fold(sum);
	put16(l4 + UDP_SUM, check ? check : 0xffff); /* 0 means no checksum (RFC 768) */
}

static long is_due(__u32 turn, const __u64 *due_ns)
{
	(void)turn;
	return bpf_ktime_get_ns() >= *due_ns;
}

/* Waits busily until the next burst is due: the core does nothing else. */
static __always_inline void keep_pace(struct pace *p)
{
	__u64 now, at;

	p->frames++;
	if ((p->frames - 1) % burst_frames)
		return;
	now = bpf_ktime_get_ns();
	if (!p->due_ns)
		p->first_ns = p->due_ns = now;
	if (now > p->due_ns + LATE_NS) {
		p->late++;
		if (!catch_up_ns)
			p->due_ns = now;
	}
	at = p->due_ns;
	if (at < p->last_ns + catch_up_ns)
		at = p->last_ns + catch_up_ns;
	p->last_ns = now;
	if (now < at) {
		bpf_loop(MAX_LOOKS, is_due, &at, 0);
		p->last_ns = bpf_ktime_get_ns();
		p->waited_ns += p->last_ns - now;
	}
	p->due_ns += burst_ns;
}

/* Illegal frames are stamped with 1, so that one that passes is recognised. */
static __always_inline void stamp(void *frame, const void *end)
{
	__u64 now = illegal() ? 1 : bpf_ktime_get_ns();

	if (frame + stamp_at + STAMP_LEN > end)
		return;
	put64(frame + stamp_at, now);
	put64(frame + stamp_at + 8, ~now);
}

SEC("xdp")
int generate(struct xdp_md *ctx)
{
	void *frame = (void *)(long)ctx->data, *end = (void *)(long)ctx->data_end, *at;
	__u32 len = header_len, addresses, zero = 0, ip_more = ip_sum;
	struct pace *p;
	struct ends ends;
	__u16 cut = 0;

	if (limit && sent >= limit)
		return XDP_DROP;
	if (grows) {
		if (bpf_xdp_adjust_head(ctx, -(int)grows))
			return XDP_ABORTED;
		frame = (void *)(long)ctx->data;
		end = (void *)(long)ctx->data_end;
	}
	if (frame + len > end)
		return XDP_ABORTED;
	if (burst_ns) {
		p = bpf_map_lookup_elem(&paces, &zero);
		if (!p)
			return XDP_ABORTED;
		keep_pace(p);
	}
	if (mixed) {
		if (++size >= SIZES)
			size = 0;
		cut = shorter[size];
		if (cut && bpf_xdp_adjust_tail(ctx, -(int)cut))
			return XDP_ABORTED;
		frame = (void *)(long)ctx->data;
		end = (void *)(long)ctx->data_end;
		if (frame + len > end)
			return XDP_ABORTED;
	}
	sent++;
	ends = ends_of(first_flow + position);
	addresses = halves(ends.source) + halves(ends.target);
	copy_header(frame, len);
	at = frame + tag_len;
	if (mixed) {
		if (tag_len == 8)
			put16(frame + SESSION_LEN, get16(frame + SESSION_LEN) - cut);
		if (ipv6)
			put16(at + IP6_LEN, get16(at + IP6_LEN) - cut);
		else
			put16(at + IP4_LEN, get16(at + IP4_LEN) - cut);
		ip_more += less(cut);
	}
	if (ipv6) {
		put32(at + IP6_SOURCE_LOW, ends.source);
		put32(at + IP6_TARGET_LOW, ends.target);
		write_l4(at + IP6_L4, &ends, addresses, cut);
	} else {
		put32(at + IP4_SOURCE, ends.source);
		put32(at + IP4_TARGET, ends.target);
		if (numbered)
			put16(at + IP4_ID, number_within());
		put16(at + IP4_SUM, ~fold(ip_more + addresses + (numbered ? number_within() & 0xffff : 0)));
		write_l4(at + IP4_L4, &ends, addresses, cut);
	}
	if (stamp_at)
		stamp(frame, end);
	move_on();
	return XDP_TX;
}

char _license[] SEC("license") = "Dual BSD/GPL";
