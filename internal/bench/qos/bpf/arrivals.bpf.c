// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
/*
 * Counts what arrives at a host behind the queues, in bytes of the line, by flow and by
 * time. A flow is known by its server's port. Super-packets count as the frames that a
 * line carries.
 */
#include <linux/bpf.h>
#include <linux/if_ether.h>
#include <linux/in.h>
#include <linux/ip.h>
#include <linux/pkt_cls.h>
#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>

#define FLOWS 64	/* the last one is for all other packets */
#define BEHIND_FRAME 24 /* checksum, preamble and gap of Ethernet */
#define LEAST_FRAME 84	/* with them */

const volatile __u64 begin;	 /* time of the first bin, ns */
const volatile __u64 bin_ns = 1; /* length of a bin */
const volatile __u32 bins;
const volatile __u16 first_port; /* of the first flow's server */
const volatile __u8 from_server; /* the port is the source */

struct cell {
	__u64 bytes;
	__u32 frames;
	__u32 marked; /* frames with ECN's CE */
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__type(key, __u32);
	__type(value, struct cell);
	__uint(max_entries, 1); /* set to bins * FLOWS */
} cells SEC(".maps");

/* Reads the header of TCP or UDP: the flow, and the length of the header. */
static __always_inline __u32 flow_of(struct __sk_buff *skb, __u32 at, __u8 protocol, __u32 *header)
{
	__be16 port;
	__u8 doff;
	__u32 flow;

	*header = at + 8;
	if (protocol != IPPROTO_TCP && protocol != IPPROTO_UDP)
		return FLOWS - 1;
	if (protocol == IPPROTO_TCP) {
		if (bpf_skb_load_bytes(skb, at + 12, &doff, 1))
			return FLOWS - 1;
		*header = at + (doff >> 4) * 4;
	}
	if (bpf_skb_load_bytes(skb, at + (from_server ? 0 : 2), &port, 2))
		return FLOWS - 1;
	flow = bpf_ntohs(port) - first_port;
	return flow < FLOWS ? flow : FLOWS - 1;
}

SEC("tcx/ingress")
int count_arrival(struct __sk_buff *skb)
{
	__u64 bin = (bpf_ktime_get_ns() - begin) / bin_ns;
	__u32 frames = 1, header, flow, key;
	__u64 bytes = skb->len;
	struct iphdr ip;
	struct cell *c;

	if (skb->protocol != bpf_htons(ETH_P_IP) || bin >= bins || bpf_skb_load_bytes(skb, ETH_HLEN, &ip, sizeof(ip)))
		return TCX_NEXT;
	flow = flow_of(skb, ETH_HLEN + ip.ihl * 4, ip.protocol, &header);
	if (skb->gso_size && skb->len > header) {
		frames = (skb->len - header + skb->gso_size - 1) / skb->gso_size;
		bytes += (__u64)(frames - 1) * header;
	}
	bytes += (__u64)frames * BEHIND_FRAME;
	if (bytes < LEAST_FRAME)
		bytes = LEAST_FRAME;
	key = bin * FLOWS + flow;
	c = bpf_map_lookup_elem(&cells, &key);
	if (!c)
		return TCX_NEXT;
	__sync_fetch_and_add(&c->bytes, bytes);
	__sync_fetch_and_add(&c->frames, frames);
	if ((ip.tos & 3) == 3)
		__sync_fetch_and_add(&c->marked, frames);
	return TCX_NEXT;
}

char _license[] SEC("license") = "Dual BSD/GPL";
