/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* Counting: every verdict under its interface and reason, every packet that
 * rules let pass under their path. */
#ifndef WEIR_OBSERVE_COUNT_H
#define WEIR_OBSERVE_COUNT_H


#include "maps.h"

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

/* Tells the capturing program why. */
static __noinline void count_note(enum reason r)
{
	__u32 *note = count_noted_get();

	if (note)
		*note = r;
}

/* key: the interface's slot and the reason; flags: the interface's. */
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

static __always_inline void count_path(__u32 path, __u32 bytes)
{
	count_add(bpf_map_lookup_elem(&path_counters, &path), bytes);
}

/* Not static and for numbers alone: the verifier follows it once, however many ends the
 * packet's way has. */
__noinline int count_global(__u32 key, __u32 bytes, __u32 flags, enum reason r)
{
	count_key(key, bytes, flags, r);
	return 0;
}

/* The end of a packet's way that is not a redirect. */
static __always_inline int count_verdict(const struct interface *i, enum reason r, __u32 bytes)
{
	count_global(i->counters + r, bytes, i->flags, r);
	return r > REASON_LAST_PASS ? HOOK_DROP : HOOK_PASS;
}

static __always_inline const struct interface *interface_get(__u32 ifindex)
{
	return ifindex < MAX_IFINDEX ? &shared.interfaces[ifindex & (MAX_IFINDEX - 1)] : 0;
}

static __always_inline int interface_is_present(const struct interface *i)
{
	return i && i->flags & INTERFACE_PRESENT;
}

/* Present, and nobody captures its packets: one test for both. */
static __always_inline int interface_is_unwatched(const struct interface *i)
{
	return i && (i->flags & (INTERFACE_PRESENT | INTERFACE_CAPTURE)) == INTERFACE_PRESENT;
}

#endif
