// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
/*
 * The clock and the garbage collection: a bpf_timer that runs every 10 ms without the help
 * of user space, so the state table lives on when the daemon is dead.
 *
 *   weir_gc_start   run by the loader: arms the timer; again where the kernel
 *                      had no memory for it (it may not wait for any), -ENOMEM
 *   gc_run             sets shared.now, scales the timeouts, walks a slice of
 *                      the states: expired -> dead -> dying -> leaving -> free,
 *                      those of the next hops and of the sources
 *   weir_import         run by the loader on each state of a table that it copies
 *   weir_receive        run by the loader on fragments that waited for their first
 */
#include <linux/bpf.h>
#include <linux/errno.h>
#include <bpf/bpf_helpers.h>

#include "path/handoff_map.h"
#include "state/import.h"
#include "route/nexthop_gc.h"
#include "route/policy_map.h"
#include "settings.h"
#include "state/gc.h"
#include "state/source_gc.h"

/* The callback of the timer. */
static int gc_run(void *map, int *key, struct gc_timer *s)
{
	(void)map;
	(void)key;
	gc_clock();
	gc_timeouts();
	gc_bump_routes();
	bpf_loop(gc_count(), gc_step, 0, 0);
	nexthop_gc_run();
	source_gc_run();
	bpf_timer_start(&s->timer, GC_NS, 0);
	return 0;
}

/* Gives frames that had to wait to the stack, as if they had just come in. */
SEC("xdp")
int weir_receive(struct xdp_md *ctx)
{
	(void)ctx;
	return XDP_PASS;
}

SEC("syscall")
int weir_import(struct import *a)
{
	return import_state(a);
}

SEC("syscall")
int weir_gc_start(void *ctx)
{
	__u32 zero = 0;
	struct gc_timer *s = bpf_map_lookup_elem(&gc_timers, &zero);
	int error;

	(void)ctx;
	if (!s)
		return -ENOENT;
	gc_clock();
	gc_timeouts();
	error = bpf_timer_init(&s->timer, &gc_timers, CLOCK_MONOTONIC_KERNEL);
	if (error && error != -EBUSY) /* busy: an earlier attempt got this far */
		return error;
	error = bpf_timer_set_callback(&s->timer, gc_run);
	if (error)
		return error;
	return bpf_timer_start(&s->timer, 0, 0);
}
