// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
/*
 * The checker at the end of the path, which runs before anything is counted. Every frame
 * has to be the one that was sent, with valid checksums and only the changes that a
 * router and a translator make. At the far end it also notes where a flow's answers go.
 */
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

#include "flow.h"
#include "frame.h"

/* The expected header, and a mask of its bits that are compared here. Addresses, ports
 * and checksums are checked one by one. */
const volatile __u64 header[HEADER_WORDS];
const volatile __u64 compared[HEADER_WORDS];
const volatile __u32 header_len;
const volatile __u32 frame_len;
const volatile __u32 tag_len; /* bytes of a VLAN tag in front of the EtherType, or of a PPPoE session */
const volatile __u16 ethertype; /* host order */
const volatile __u8 ipv6;
const volatile __u8 tcp;
const volatile __u8 back;
const volatile __u8 translated;	  /* by the router: the source on the way out */
const volatile __u32 source_net;  /* as in generate.bpf.c */
const volatile __u32 target_net;
const volatile __u32 router_addr; /* address that sources are translated to */
const volatile __u32 flows;	  /* known flows: 0 to flows - 1 */
const volatile __u8 turn;	  /* number of this frame within a connection, from 1 */

/* Why a frame is wrong; check.go has a text for each. */
enum fault {
	FAULT_NONE,
	FAULT_LENGTH,
	FAULT_HEADER,
	FAULT_FLOW,
	FAULT_TARGET,
	FAULT_SOURCE,
	FAULT_PORT,
	FAULT_IP_SUM,
	FAULT_L4_SUM,
	FAULTS,
};

#define SHOWN_WORDS 10

struct finding {
	__u64 frames[FAULTS]; /* by fault; index 0: correct frames */
	__u64 flows;	      /* seen for the first time in this turn */
	__u64 shown_fault;    /* fault of the first wrong frame, and its beginning */
	__u64 shown[SHOWN_WORDS];
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__type(key, __u32);
	__type(value, struct finding);
	__uint(max_entries, 1); /* set to the number of cores */
} findings SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__type(key, __u32);
	__type(value, struct answer);
	__uint(max_entries, 1); /* set to the number of flows */
} answers SEC(".maps");

#define MAX_PAIRS 760 /* of bytes in the longest frame */

/* The verifier knows the length, so this loop has no other exit than its end. */
static __always_inline __u64 sum_bytes(const void *frame, __u32 from, __u32 to)
{
	__u64 sum = 0;

	for (__u32 i = 0; i < MAX_PAIRS && from + 2 <= to; i++, from += 2)
		sum += get16(frame + from);
	if (from < to)
		sum += (__u64)(*(const __u8 *)(frame + from)) << 8;
	return sum;
}

static __always_inline int header_differs(const void *frame)
{
	__u32 at = 0, len = frame_len;

#pragma unroll
	for (int i = 0; i < HEADER_WORDS; i++, at += 8) {
		if (at + 8 > len || at >= header_len)
			return 0;
		if ((*(const __u64 *)(frame + at) ^ header[i]) & compared[i])
			return 1;
	}
	return 0;
}

/* The sum of the addresses is the same code for both families: header_differs has
 * compared their upper parts, whose sum is in the pseudo header. */
static __always_inline __u64 pseudo_sum(const void *frame, __u32 l4_len)
{
	__u64 sum = l4_len + (tcp ? 6 : 17);
	int first = ipv6 ? ETH_LEN + 8 : IP4_SOURCE;

#pragma unroll
	for (int i = 0; i < 16; i++) {
		if (ipv6 || i < 4)
			sum += get16(frame + first + 2 * i);
	}
	return sum;
}

static __always_inline int l4_sum_holds(const void *frame)
{
	int offset = ipv6 ? IP6_L4 : IP4_L4;

	if (!tcp && !get16(frame + offset + UDP_SUM))
		return 0; /* 0 means no checksum, and our frames have one */
	return fold(pseudo_sum(frame, frame_len - tag_len - offset) + sum_bytes(frame, offset, frame_len - tag_len)) == 0xffff;
}

static __always_inline enum fault examine_out(struct answer *answer, const struct flow *flow, __u32 addr, __u16 port,
					      struct finding *finding)
{
	if (addr != (translated ? router_addr : (source_net | flow->source)))
		return FAULT_SOURCE;
	if (translated ? !port || (answer->out && answer->port != port) : port != flow->source_port)
		return FAULT_PORT;
	answer->addr = addr;
	answer->port = port;
	if (answer->out != turn)
		finding->flows++;
	answer->out = turn;
	return FAULT_NONE;
}

static __always_inline enum fault examine_back(struct answer *answer, const struct flow *flow, __u32 addr, __u16 port,
					       struct finding *finding)
{
	if (addr != (source_net | flow->source))
		return FAULT_SOURCE;
	if (port != flow->source_port)
		return FAULT_PORT;
	if (answer->back != turn)
		finding->flows++;
	answer->back = turn;
	return FAULT_NONE;
}

/* tagged is the frame with its tag, if it has one. */
static __always_inline enum fault examine(const void *tagged, struct finding *finding)
{
	const void *frame = tagged + tag_len; /* the IP header is then where it is without a tag */
	int offset = ipv6 ? IP6_L4 : IP4_L4;
	__u32 source = get32(frame + (ipv6 ? IP6_SOURCE_LOW : IP4_SOURCE));
	__u32 target = get32(frame + (ipv6 ? IP6_TARGET_LOW : IP4_TARGET));
	__u16 source_port = get16(frame + offset), target_port = get16(frame + offset + 2);
	__u32 near = back ? target : source, far = back ? source : target;
	__u16 near_port = back ? target_port : source_port, far_port = back ? source_port : target_port;
	__u32 number = flow_number(far, far_port);
	struct flow flow = flow_of(number);
	struct answer *answer;

	if (header_differs(tagged))
		return FAULT_HEADER;
	if (!ipv6 && fold(sum_bytes(frame, ETH_LEN, IP4_L4)) != 0xffff)
		return FAULT_IP_SUM;
	if (!l4_sum_holds(frame))
		return FAULT_L4_SUM;
	if (far != (target_net | flow.target) || far_port != flow.target_port)
		return FAULT_TARGET;
	answer = bpf_map_lookup_elem(&answers, &number);
	if (number >= flows || !answer)
		return FAULT_FLOW;
	return back ? examine_back(answer, &flow, near, near_port, finding)
		    : examine_out(answer, &flow, near, near_port, finding);
}

static __always_inline void show(struct finding *finding, enum fault fault, const void *frame)
{
	__u32 len = frame_len;

	if (finding->shown_fault)
		return;
	finding->shown_fault = fault;
#pragma unroll
	for (int i = 0; i < SHOWN_WORDS; i++) {
		if ((i + 1) * 8u <= len)
			finding->shown[i] = *(const __u64 *)(frame + 8 * i);
	}
}

SEC("xdp")
int check(struct xdp_md *ctx)
{
	const void *frame = (void *)(long)ctx->data, *end = (void *)(long)ctx->data_end;
	__u32 core = bpf_get_smp_processor_id();
	struct finding *finding;
	enum fault fault;

	if (!is_ours(frame + tag_len, end, ethertype, tcp ? 6 : 17))
		return XDP_PASS;
	finding = bpf_map_lookup_elem(&findings, &core);
	if (!finding)
		return XDP_ABORTED;
	if (frame + frame_len > end || frame + frame_len + 1 <= end) {
		finding->frames[FAULT_LENGTH]++;
		return XDP_DROP;
	}
	fault = examine(frame, finding);
	if (fault)
		show(finding, fault, frame);
	finding->frames[fault]++;
	return XDP_DROP;
}

char _license[] SEC("license") = "Dual BSD/GPL";
