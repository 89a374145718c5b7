/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* Counting: every verdict under its interface and reason, every packet that rules pass
 * under its rule path. */
#ifndef WEIR_OBSERVE_COUNT_H
#define WEIR_OBSERVE_COUNT_H

#include "shared.h"

struct counter {
	__u64 packets;
	__u64 bytes; /* of whole IP packets */
};

/* kept; by interface.counters + reason. Written by packets, read by info. */
#define MAX_INTERFACES 256
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, (MAX_INTERFACES + 1) * REASON_COUNT); /* the last: interfaces beyond */
	__type(key, __u32);
	__type(value, struct counter);
} interface_counters SEC(".maps");

/* The enum reason under which this core last counted a packet, if INTERFACE_CAPTURE is
 * set. Written by count_note(), read by observe/capture.h. */
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, __u32);
} noted SEC(".maps");

/* kept; a path is the set of rules that a packet is counted under. [0] counts packets
 * that no rule matched, [1] those for which no path was free. The last PATHS_RESERVED
 * are for paths of deciding rules alone, used when the others are used up. */
#define PATH_NONE	0
#define PATH_OVERFLOW	1
#define PATH_FIRST	2
#define PATHS_RESERVED	4096
#define PATH_COUNTED	~0u /* no index: the packet is already counted */
struct path {
	__u32 rule[2 * MAX_MATCHES]; /* global ids + 1 in order; 0: none. From MAX_MATCHES on: of the out crossing */
};

/* Of a path: by the direction of its states. What has no state counts as direction 0. Both
 * are side by side, 32 bytes together, so a packet takes no longer than with one counter. */
struct path_counter {
	struct counter way[2];
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, MAX_PATHS);
	__type(key, __u32);
	__type(value, struct path_counter);
} path_counters SEC(".maps");

/* kept; the path of each set of rules. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, MAX_PATHS);
	__type(key, struct path);
	__type(value, __u32);
} paths SEC(".maps");

static __always_inline void count_add(struct counter *c, __u32 bytes)
{
	if (c) {
		c->packets++;
		c->bytes += bytes;
	}
}

static __always_inline __u32 *count_noted_get(void)
{
	__u32 zero = 0;

	return bpf_map_lookup_elem(&noted, &zero);
}

/* Tells the capturing program the reason. */
static __noinline void count_note(enum reason r)
{
	__u32 *note = count_noted_get();

	if (note)
		*note = r;
}

/* key: the interface's first counter plus the reason; flags: the interface's. */
static __always_inline void count_key(__u32 key, __u32 bytes, __u32 flags, enum reason r)
{
	count_add(bpf_map_lookup_elem(&interface_counters, &key), bytes);
	if (flags & INTERFACE_CAPTURE)
		count_note(r);
}

static __always_inline void count_reason(const struct interface *i, enum reason r, __u32 bytes)
{
	count_key(i->counters + r, bytes, i->flags, r);
}

/* d: the direction of the packet in its state; without one 0. */
static __always_inline void count_path(__u32 path, __u32 d, __u32 bytes)
{
	struct path_counter *c = bpf_map_lookup_elem(&path_counters, &path);

	if (c)
		count_add(&c->way[d & 1], bytes);
}

/* The same off the fast path: a global function, which the verifier follows once. */
__noinline int count_path_global(__u32 path, __u32 d, __u32 bytes)
{
	count_path(path, d, bytes);
	return 0;
}

/* Counts a packet that is sent on: its verdict, and its rule path unless that is already
 * counted. */
static __always_inline void count_forwarded(const struct interface *i, enum reason r, __u32 path, __u32 d, __u32 bytes)
{
	if (path != PATH_COUNTED)
		count_path(path, d, bytes);
	count_reason(i, r, bytes);
}

/* A global function of numbers alone, so that the verifier follows it once for all ends
 * of the packet's path. */
__noinline int count_global(__u32 key, __u32 bytes, __u32 flags, enum reason r)
{
	count_key(key, bytes, flags, r);
	return 0;
}

/* Counts the end of a packet's path that is not a redirect, and returns the action. */
static __always_inline int count_verdict(const struct interface *i, enum reason r, __u32 bytes)
{
	count_global(i->counters + r, bytes, i->flags, r);
	return r > REASON_LAST_PASS ? HOOK_DROP : HOOK_PASS;
}

#endif
