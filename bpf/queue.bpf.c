// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
/*
 * The timer of the queues. It runs every millisecond without the help of user space, so
 * limits hold when the daemon is dead. It is loaded if there are queues.
 *
 *   weir_queue_start   run by the loader: arms the timer; again where the kernel had no memory
 *                      for it, -ENOMEM
 *   weir_queue_change  run by the loader: queue/change.h
 *   queue_timer_run    queue/drain.h
 *   weir_queue_host    a filter of the kernel's queues: the host of a packet that waits there
 */
#include <linux/bpf.h>
#include <linux/errno.h>
#include <bpf/bpf_helpers.h>

#include "settings.h"
#include "queue/change.h"
#include "queue/drain.h"

struct queue_timer {
	struct bpf_timer timer;
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct queue_timer);
} queue_timers SEC(".maps");

#define CLOCK_MONOTONIC_KERNEL 1

/* The callback of the timer. */
static int queue_timer_run(void *map, int *key, struct queue_timer *t)
{
	(void)map;
	(void)key;
	queue_turn(0);
	bpf_timer_start(&t->timer, QUEUE_TICK_NS, 0);
	return 0;
}

SEC("syscall")
int weir_queue_start(void *ctx)
{
	__u32 zero = 0;
	struct queue_timer *t = bpf_map_lookup_elem(&queue_timers, &zero);
	int error;

	(void)ctx;
	if (!t)
		return -ENOENT;
	error = bpf_timer_init(&t->timer, &queue_timers, CLOCK_MONOTONIC_KERNEL);
	if (error && error != -EBUSY) /* busy: an earlier attempt got this far */
		return error;
	error = bpf_timer_set_callback(&t->timer, queue_timer_run);
	if (error)
		return error;
	return bpf_timer_start(&t->timer, 0, 0);
}

SEC("syscall")
int weir_queue_change(struct queue_change *ctx)
{
	return queue_change_class(ctx);
}

/*
 * What TCX has told of the packet's host (TELL_HOST), in the form that CAKE takes from a filter: the upper
 * half is the host, the lower one the queue. 0: CAKE looks at the packet itself.
 */
SEC("tc")
int weir_queue_host(struct __sk_buff *skb)
{
	__u32 told = skb->tc_index, number;

	if ((told & ~(TELL_HOST_ALONE | TELL_HOST_NUMBER)) != TELL_HOST)
		return 0;
	number = (told & TELL_HOST_NUMBER) + 1;
	return number << 16 | (told & TELL_HOST_ALONE ? number : 0);
}
