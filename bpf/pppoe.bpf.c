// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
/*
 * The devices of PPPoE sessions. Each is one end of a veth pair, without ARP. The other
 * end is its line, which has no address.
 *
 *   weir_pppoe_in   TCX ingress of the carrier, before all others: takes what is in front
 *                   of a session's packets off, and gives them to TCX ingress of the
 *                   session's device. XDP has taken it off already where it has decided.
 *                   Answers the concentrator's echo requests, with or without a daemon, and
 *                   closes the session when the concentrator ends it
 *   weir_pppoe_out  TCX ingress of the line: what the device has sent. Puts the session in
 *                   front and sends the frame by the carrier
 */
#include <linux/bpf.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <linux/ip.h>
#include <linux/ipv6.h>
#include <linux/pkt_cls.h>
#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>

#include "config.h"
#include "hook/context.h"
#include "packet/pppoe.h"
#include "packet/pppoe_end.h"

#define PPPOE_ENTRIES 1024

/* By the daemon. id: of a session at a carrier, or one of these. */
struct pppoe_key {
	__u32 ifindex;
	__u32 id;
};
#define PPPOE_DEVICE 0x10000 /* ifindex is a session's device	*/
#define PPPOE_LINE   0x20000 /* ifindex is a line		*/

struct pppoe_session {
	__u32 carrier;
	__u32 device; /* 0: the concentrator has ended the session */
	__be16 id;
	__u8 peer[6]; /* the concentrator's MAC */
	__u8 local[6];
	__u16 mtu; /* bytes of the largest packet that may be sent */
	__be32 magic; /* ours, in LCP; 0: none. 32 bits as in the frame */
	__u32 second; /* of the last answer, of the monotonic clock */
	__u32 answers; /* to echo requests, in that second */
};

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, PPPOE_ENTRIES);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, struct pppoe_key);
	__type(value, struct pppoe_session);
} pppoe_sessions SEC(".maps");

/* What a device has beside its session, by its index. A map of its own: pppoe_sessions may be an
 * earlier program's. */
struct pppoe_life {
	__u32 line;  /* of the device: by the daemon */
	enum pppoe_end ended; /* by what the concentrator has ended the session */
	__u32 heard; /* another number when packets of the session come, every PPPOE_HEARD jiffies */
	__u32 pad;
};
#define PPPOE_HEARD 256

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, MAX_IFINDEX);
	__type(key, __u32);
	__type(value, struct pppoe_life);
} pppoe_lives SEC(".maps");

/* How many frames of each enum pppoe_end have ended a session; [PPPOE_ENDS_NOTHING]: how many such
 * frames were dropped, beyond PPPOE_ENDS_SECOND. */
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, PPPOE_ENDS);
	__type(key, __u32);
	__type(value, __u64);
} pppoe_ended SEC(".maps");

/* How many frames that end sessions have gone on to the clients. */
struct pppoe_storm {
	__u32 second; /* of the monotonic clock */
	__u32 frames; /* in that second */
};
#define PPPOE_ENDS_SECOND 100

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct pppoe_storm);
} pppoe_storms SEC(".maps");

/* What was dropped. */
enum pppoe_drop {
	PPPOE_DROP_PEER,   /* in the session, but not from its concentrator	*/
	PPPOE_DROP_LENGTH, /* lengths that contradict each other		*/
	PPPOE_DROP_OUT,	   /* no IP, too long, or no session is up		*/
	PPPOE_DROP_KERNEL, /* the kernel has no memory				*/
	PPPOE_DROP_OVER,   /* of a session that has just ended			*/
	PPPOE_DROP_ECHO,   /* echo requests, beyond PPPOE_ECHOES		*/
	PPPOE_DROPS,
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, PPPOE_DROPS);
	__type(key, __u32);
	__type(value, __u64);
} pppoe_drops SEC(".maps");

/* A frame that weir_pppoe_in has dropped, for those who capture. */
#define PPPOE_LOST_BYTES 256
struct pppoe_lost {
	__u64 time; /* ns, CLOCK_BOOTTIME */
	__u32 ifindex;
	__u32 length;
	__u16 captured; /* bytes of data */
	__u8 why;	/* enum pppoe_drop; PPPOE_DROPS: beyond PPPOE_ENDS_SECOND */
	__u8 pad[5];
	__u8 data[PPPOE_LOST_BYTES];
};

const struct pppoe_lost *pppoe_lost_type __attribute__((unused)); /* bpf2go finds the type by it */

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 1 << 18);
} pppoe_losses SEC(".maps");

/* Whether anybody captures: 1. By the daemon. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, __u32);
} pppoe_watched SEC(".maps");

/* A frame of a session, up to its packet. */
struct pppoe_frame {
	__u8 dst[6], src[6];
	__be16 type;
	struct session session;
} __attribute__((packed));

/* An LCP echo request or reply (RFC 1661, 5.8). */
struct pppoe_echo {
	struct pppoe_frame frame;
	__u8 code, id;
	__be16 length; /* of the packet, from code on */
	__be32 magic;
} __attribute__((packed));
#define PPPOE_ECHO_REQUEST 9
#define PPPOE_ECHO_REPLY   10
#define PPPOE_ECHO_LEAST   8 /* code to magic */
#define PPPOE_ECHOES	   20 /* requests of a session that are answered in a second */

static __always_inline struct pppoe_session *pppoe_find(__u32 ifindex, __u32 id)
{
	struct pppoe_key key = {.ifindex = ifindex, .id = id};

	return bpf_map_lookup_elem(&pppoe_sessions, &key);
}

static __always_inline int pppoe_drop(__u32 why)
{
	__u64 *count = bpf_map_lookup_elem(&pppoe_drops, &why);

	if (count)
		(*count)++;
	return TCX_DROP;
}

/* Shows a frame that is dropped to those who capture. Without room it is not shown. */
static __noinline int pppoe_show(struct __sk_buff *skb, __u32 why)
{
	__u32 zero = 0, *watched = bpf_map_lookup_elem(&pppoe_watched, &zero);
	struct pppoe_lost *lost;
	__u64 rest = skb->len - 1ULL; /* beyond the first byte: Linux 6.12 wants to see that a size is not 0 */

	if (!watched || !*watched)
		return 0;
	lost = bpf_ringbuf_reserve(&pppoe_losses, sizeof(*lost), 0);
	if (!lost)
		return 0;
	lost->time = bpf_ktime_get_boot_ns();
	lost->ifindex = skb->ifindex;
	lost->length = skb->len;
	lost->why = why;
	if (rest > PPPOE_LOST_BYTES - 1)
		rest = PPPOE_LOST_BYTES - 1;
	asm volatile("" : "+r"(rest));
	lost->captured = bpf_skb_load_bytes(skb, 0, lost->data, rest + 1) ? 0 : rest + 1;
	bpf_ringbuf_submit(lost, 0);
	return 0;
}

static __always_inline int pppoe_lose(struct __sk_buff *skb, __u32 why)
{
	pppoe_show(skb, why);
	return pppoe_drop(why);
}

/* Returns the interface of the session that a packet is of, if XDP has decided about it, and taken the
 * session off; 0: it has not. A frame with a tag in the skb is a VLAN device's. */
static __always_inline __u32 pppoe_decided(struct __sk_buff *skb)
{
	const struct metadata *m = as_pointer(skb->data_meta);

	if (skb->vlan_present || (void *)(m + 1) > hook_data(skb) || m->magic != METADATA_MAGIC || m->ifindex == skb->ifindex)
		return 0;
	return m->ifindex;
}

/*
 * Makes a session's frame one of an IP packet, for the kernel too. The kernel's
 * bpf_skb_adjust_room() refuses frames that are no IP packets for it. Only the helpers for
 * VLAN tags change what a frame is for the kernel: it is told so where a tag, which is
 * pushed for that, is taken out.
 */
static __always_inline int pppoe_strip(struct __sk_buff *skb, __be16 type)
{
	const __u32 inner = 2 * ETH_ALEN + 4; /* of the type behind the tag */

	if ((skb->vlan_present && bpf_skb_vlan_pop(skb)) || bpf_skb_vlan_push(skb, bpf_htons(ETH_P_8021Q), 1) ||
	    bpf_skb_vlan_push(skb, bpf_htons(ETH_P_8021Q), 1) ||
	    bpf_skb_store_bytes(skb, inner, &type, sizeof(type), BPF_F_RECOMPUTE_CSUM) || bpf_skb_vlan_pop(skb) ||
	    bpf_skb_vlan_pop(skb))
		return -1;
	return bpf_skb_adjust_room(skb, -PPPOE_LENGTH, BPF_ADJ_ROOM_MAC, 0);
}

/* Bytes of the shortest packet of an EtherType. The kernel takes a session off no shorter one. */
static __always_inline __u32 pppoe_least(__be16 type)
{
	return type == bpf_htons(ETH_P_IPV6) ? sizeof(struct ipv6hdr) : sizeof(struct iphdr);
}

static __always_inline __u32 pppoe_second(void)
{
	return bpf_ktime_get_ns() / 1000000000;
}

/* Whether a request of a session may still be answered. */
static __always_inline int pppoe_may_answer(struct pppoe_session *s)
{
	__u32 second = pppoe_second();

	if (s->second != second) {
		s->second = second;
		s->answers = 0;
	}
	return __sync_fetch_and_add(&s->answers, 1) < PPPOE_ECHOES;
}

static __always_inline void pppoe_count_end(__u32 by)
{
	__u64 *count = bpf_map_lookup_elem(&pppoe_ended, &by);

	if (count)
		(*count)++;
}

/* Closes the entry of a session at another index. */
static __always_inline void pppoe_close_at(const struct pppoe_session *s, __u32 ifindex, __u32 id)
{
	struct pppoe_session *other = pppoe_find(ifindex, id);

	if (other && other->id == s->id && other->carrier == s->carrier)
		other->device = 0;
}

/* Closes a session. The daemon is told by pppoe_lives, and makes another. 0: it was closed already. */
static __noinline int pppoe_close(struct pppoe_session *s, __u32 by)
{
	struct pppoe_life *life;
	__u32 device;

	if (!s)
		return 0;
	device = s->device;
	if (!device || __sync_val_compare_and_swap(&s->device, device, 0) != device)
		return 0;
	life = bpf_map_lookup_elem(&pppoe_lives, &device);
	if (life) {
		life->ended = by;
		pppoe_close_at(s, life->line, PPPOE_LINE);
	}
	pppoe_close_at(s, device, PPPOE_DEVICE);
	pppoe_count_end(by);
	return 1;
}

/* Answers an LCP Terminate-Request by a copy of the frame. The frame is as it was then: the client is to
 * have it too. < 0: it is not. */
static __noinline int pppoe_acknowledge(struct __sk_buff *skb, struct pppoe_session *s)
{
	struct pppoe_lcp request, answer;

	if (!s || bpf_skb_load_bytes(skb, 0, &request, sizeof(request)))
		return 0;
	answer = request;
	__builtin_memcpy(answer.head.eth.h_dest, s->peer, ETH_ALEN);
	__builtin_memcpy(answer.head.eth.h_source, s->local, ETH_ALEN);
	answer.code = LCP_TERMINATE_ACK;
	if (bpf_skb_store_bytes(skb, 0, &answer, sizeof(answer), BPF_F_RECOMPUTE_CSUM))
		return 0;
	bpf_clone_redirect(skb, skb->ifindex, 0);
	return bpf_skb_store_bytes(skb, 0, &request, sizeof(request), BPF_F_RECOMPUTE_CSUM);
}

/* Whether another frame that ends a session may go on to the clients. */
static __always_inline int pppoe_goes_on(void)
{
	__u32 zero = 0, second = pppoe_second();
	struct pppoe_storm *storm = bpf_map_lookup_elem(&pppoe_storms, &zero);

	if (!storm)
		return 1;
	if (storm->second != second) {
		storm->second = second;
		storm->frames = 0;
	}
	return __sync_fetch_and_add(&storm->frames, 1) < PPPOE_ENDS_SECOND;
}

/* Handles a frame that ends a session, of whomever. */
static __noinline int pppoe_over(struct __sk_buff *skb)
{
	struct pppoe_lcp l;
	enum pppoe_end by = pppoe_ends(skb, &l);
	struct pppoe_session *s;
	int closed = 0;

	if (by == PPPOE_ENDS_NOTHING || skb->pkt_type == PACKET_OTHERHOST)
		return TCX_NEXT;
	s = pppoe_find(skb->ifindex, bpf_ntohs(l.head.id));
	if (s && !mac_differs(l.head.eth.h_dest, s->local) && !mac_differs(l.head.eth.h_source, s->peer)) {
		closed = pppoe_close(s, by);
		if (by == PPPOE_ENDS_TERMINATE && pppoe_may_answer(s) && pppoe_acknowledge(skb, s))
			return pppoe_lose(skb, PPPOE_DROP_KERNEL);
	}
	if (closed || pppoe_goes_on()) /* what has closed a session closes it for XDP, too */
		return TCX_NEXT;
	pppoe_show(skb, PPPOE_DROPS);
	pppoe_count_end(PPPOE_ENDS_NOTHING);
	return TCX_DROP;
}

/* Answers an LCP echo request. The client gets all other control frames, and requests that look
 * wrong. A session that is over has no answers. */
static __always_inline int pppoe_control(struct __sk_buff *skb, struct pppoe_session *s)
{
	struct pppoe_echo e;
	__u32 length;

	if (bpf_skb_load_bytes(skb, 0, &e, sizeof(e)) || e.frame.session.proto != bpf_htons(PPP_LCP) || e.code != PPPOE_ECHO_REQUEST)
		return pppoe_over(skb);
	length = bpf_ntohs(e.length);
	if (length < PPPOE_ECHO_LEAST || length > s->mtu || bpf_ntohs(e.frame.session.length) != length + sizeof(e.frame.session.proto) ||
	    skb->len < sizeof(e.frame) + length || !s->device || (e.magic && e.magic == s->magic))
		return TCX_NEXT;
	if (!pppoe_may_answer(s))
		return pppoe_lose(skb, PPPOE_DROP_ECHO);
	__builtin_memcpy(e.frame.dst, s->peer, ETH_ALEN);
	__builtin_memcpy(e.frame.src, s->local, ETH_ALEN);
	e.code = PPPOE_ECHO_REPLY;
	e.magic = s->magic;
	if (bpf_skb_store_bytes(skb, 0, &e, sizeof(e), BPF_F_RECOMPUTE_CSUM))
		return pppoe_lose(skb, PPPOE_DROP_KERNEL);
	return bpf_redirect(skb->ifindex, 0);
}

/* Notes that a packet of a device's session has come. */
static __always_inline void pppoe_hear(__u32 device)
{
	struct pppoe_life *life = bpf_map_lookup_elem(&pppoe_lives, &device);
	__u32 now = bpf_jiffies64() / PPPOE_HEARD;

	if (life && life->heard != now)
		life->heard = now;
}

SEC("tcx/ingress")
int weir_pppoe_in(struct __sk_buff *skb)
{
	struct pppoe_session *s;
	struct pppoe_frame f;
	__u32 device = pppoe_decided(skb);
	__be16 type;

	if (device) {
		s = pppoe_find(device, PPPOE_DEVICE);
		if (!s || !s->device || s->carrier != skb->ifindex)
			return pppoe_lose(skb, PPPOE_DROP_OVER);
		pppoe_hear(device);
		return bpf_redirect(device, BPF_F_INGRESS);
	}
	if (skb->vlan_present && skb->vlan_tci & 0x0fff)
		return TCX_NEXT;
	if (skb->protocol == bpf_htons(ETH_P_PPP_DISC))
		return pppoe_over(skb);
	if (skb->protocol != bpf_htons(ETH_P_PPP_SES) || bpf_skb_load_bytes(skb, 0, &f, sizeof(f)))
		return TCX_NEXT;
	s = pppoe_find(skb->ifindex, bpf_ntohs(f.session.id));
	if (!s || mac_differs(f.dst, s->local))
		return TCX_NEXT;
	if (mac_differs(f.src, s->peer))
		return pppoe_lose(skb, PPPOE_DROP_PEER);
	if (f.session.kind != bpf_htons(PPPOE_SESSION))
		return TCX_NEXT;
	type = session_type(f.session.proto);
	if (!type)
		return pppoe_control(skb, s);
	if (skb->gso_size || bpf_ntohs(f.session.length) < sizeof(f.session.proto) + pppoe_least(type) ||
	    skb->len < sizeof(f) - sizeof(f.session.proto) + bpf_ntohs(f.session.length))
		return pppoe_lose(skb, PPPOE_DROP_LENGTH);
	device = s->device;
	if (!device)
		return pppoe_lose(skb, PPPOE_DROP_OVER);
	pppoe_hear(device);
	return pppoe_strip(skb, type) ? pppoe_lose(skb, PPPOE_DROP_KERNEL) : bpf_redirect(device, BPF_F_INGRESS);
}

SEC("tcx/ingress")
int weir_pppoe_out(struct __sk_buff *skb)
{
	const struct pppoe_session *s = pppoe_find(skb->ifindex, PPPOE_LINE);
	struct pppoe_frame f = {
		.type = bpf_htons(ETH_P_PPP_SES),
		.session = {.kind = bpf_htons(PPPOE_SESSION), .proto = session_proto(skb->protocol)},
	};
	__u32 length = skb->len - sizeof(struct ethhdr) + sizeof(f.session.proto);

	if (!s || !s->device || !f.session.proto || skb->gso_size || length > 0xffff)
		return pppoe_drop(PPPOE_DROP_OUT);
	f.session.id = s->id;
	f.session.length = bpf_htons(length);
	__builtin_memcpy(f.dst, s->peer, ETH_ALEN);
	__builtin_memcpy(f.src, s->local, ETH_ALEN);
	if (bpf_skb_adjust_room(skb, PPPOE_LENGTH, BPF_ADJ_ROOM_MAC, 0) || bpf_skb_store_bytes(skb, 0, &f, sizeof(f), 0))
		return pppoe_drop(PPPOE_DROP_KERNEL);
	if (skb->cb[3] == NOTE_PRIORITY)
		skb->priority = skb->cb[4];
	return bpf_redirect(s->carrier, 0);
}

char LICENSE[] SEC("license") = "Dual BSD/GPL";
