/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * Records of packets, for people: what rules log, and what is captured. They go through
 * two ring buffers, which only the daemon reads. Nothing is written while nobody reads
 * (shared.recording). A full ring costs a packet nothing except counting the lost
 * record.
 */
#ifndef WEIR_OBSERVE_RECORD_H
#define WEIR_OBSERVE_RECORD_H

#include "observe/count.h"
#include "shared.h"

enum record_kind {
	RECORD_LOG,    /* a rule with log matched the packet			*/
	RECORD_BEFORE, /* captured as it came					*/
	RECORD_AFTER,  /* captured as it leaves					*/
};

/* The fate of a packet. A log record has VERDICT_PASS or VERDICT_DROP: the verdict of
 * the rules, not how the packet went on. */
enum verdict {
	VERDICT_PASS,	  /* passed by the rules, or let out at TCX egress	*/
	VERDICT_DROP,
	VERDICT_REDIRECT, /* onto the wire of peer_ifindex			*/
	VERDICT_UP,	  /* to the stack					*/
};

/* Bits of record.flags. */
#define RECORD_L3  0x01 /* data begins with the IP header			*/
#define RECORD_ALL 0x02 /* logged because of log (all): not the packet that made the state */
#define RECORD_USER 0x04 /* log (user), and the packet belongs to a socket of the box */

#define RECORD_WHY 16 /* in peer_ifindex: QUEUE_MEMBER_CLASS is what remains */

/* The head of a record; captured bytes of data follow. The rest of the reserved room is
 * not part of it. */
struct record {
	__u64 time;	    /* ns, CLOCK_BOOTTIME				*/
	__u32 ifindex;	    /* of the crossing, or of the hook			*/
	__u32 rule;	    /* global id + 1 of the rule that logs or decided; 0: none */
	__u32 state;	    /* index; 0: none					*/
	__u32 length;	    /* bytes of the frame, RECORD_L3: of the IP packet	*/
	__u16 captured;	    /* bytes of data					*/
	__u8 kind;	    /* enum record_kind					*/
	__u8 reason;	    /* enum reason					*/
	__u8 verdict;	    /* enum verdict					*/
	__u8 direction;	    /* enum direction					*/
	__u8 flags;	    /* RECORD_*						*/
	__u8 family;	    /* 4, 6; 0: not IP					*/
	__u32 peer_ifindex; /* RECORD_AFTER: where it goes; dropped as REASON_QUEUE: the queue's class, and
			     * enum queue_why << RECORD_WHY;
			     * RECORD_USER: the socket's user; else 0 */
	__u32 readers;	    /* captured packets: 1 << n for each reader n that wants it */
};
_Static_assert(sizeof(struct record) == 40, "the head of a record");

/* The rings, as bits of shared.recording and as indices of records_lost. */
enum ring {
	RING_LOG,
	RING_CAPTURE,
	RING_COUNT,
};

/* kept; written by packets, read by the daemon. Bytes are a power of two: some
 * 8,000 log records, and as many of captured frames of 1,000 bytes. */
#define LOG_RING_BYTES	   (2 << 20)
#define CAPTURE_RING_BYTES (8 << 20)

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, LOG_RING_BYTES);
} log_ring SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, CAPTURE_RING_BYTES);
} capture_ring SEC(".maps");

/* kept; by enum ring: records that found no room. */
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, RING_COUNT);
	__type(key, __u32);
	__type(value, __u64);
} records_lost SEC(".maps");

/* clang compares one copy of a length and passes another one, for which the verifier
 * knows no bound. The empty asm makes them one register (any kernel). */
#define keep_bound(n) asm volatile("" : "+r"(n))

/* A bit of shared.recording: the daemon waits for fragments that come before their first. */
#define RECORDING_EARLY 0x80000000u

/* Whether anybody reads the ring. */
static __always_inline int record_wanted(enum ring ring)
{
	return *(volatile __u32 *)&shared.recording & 1 << ring;
}

static __always_inline void record_lost(enum ring ring)
{
	__u32 key = ring;
	__u64 *lost = bpf_map_lookup_elem(&records_lost, &key);

	if (lost)
		(*lost)++;
}

/*
 * Submits a filled record. The reader looks every few milliseconds. It is woken only if
 * the ring is more than a quarter full, so a flood of records does not cost each packet
 * a wake-up. reserved: the size of the record with all its room.
 */
#define record_submit(ring, bytes, record, reserved)                                            \
	({                                                                                      \
		__u64 unread = bpf_ringbuf_query(&(ring), BPF_RB_AVAIL_DATA);                   \
		bpf_ringbuf_submit(record,                                                      \
				   unread >= (bytes) / 4 && unread < (bytes) / 4 + 2 * (reserved) ? \
					   BPF_RB_FORCE_WAKEUP : BPF_RB_NO_WAKEUP);              \
	})

#endif
