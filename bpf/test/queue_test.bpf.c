// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
/* The queues alone: packets without bytes, and a clock that the test sets. */
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

__u64 test_now; /* 0: the real time */

static __u64 test_time(void)
{
	return test_now ? test_now : bpf_ktime_get_ns();
}

/* Packets look at the test's clock. The timer looks at the real one to see how long it has worked. */
#define bpf_ktime_get_ns() test_time()
#include "queue/admit.h"
#undef bpf_ktime_get_ns
#include "queue/change.h"
#include "queue/drain.h"

const volatile __u32 queue_slots = 8;
const volatile __u32 queue_host_slots = 8;
const volatile __u32 queue_cpus = 1;

struct queue_section queue_data SEC(".data.queue");

/* Packets of one connection, all of the same size. */
struct trial {
	struct queue_ask ask;
	__u64 host;
	__u64 now; /* nanoseconds; 0: the real time */
	__u32 packets;
	__u32 passed;
	__u32 marked;
	__u32 pad;
};

static __u64 queue_find_host(const struct queue_ask *a, const void *packet)
{
	const struct trial *t = packet;

	(void)a;
	return t->host;
}

static void queue_lost(const struct queue_ask *a)
{
	(void)a;
}

static long trial_step(__u32 n, void *data)
{
	struct trial *t = data;
	int verdict = queue_admit(&t->ask, t);

	(void)n;
	t->passed += verdict != QUEUE_DROP;
	t->marked += verdict == QUEUE_MARK;
	return 0;
}

SEC("syscall")
int queue_try(struct trial *ctx)
{
	struct trial t = {.ask = ctx->ask, .host = ctx->host};

	test_now = ctx->now;
	bpf_loop(ctx->packets, trial_step, &t, 0);
	ctx->passed = t.passed;
	ctx->marked = t.marked;
	return 0;
}

struct moment {
	__u64 now;  /* nanoseconds; 0: the real time */
	__u64 took; /* nanoseconds that the timer has worked */
};

SEC("syscall")
int queue_pass_time(struct moment *ctx)
{
	ctx->took = queue_turn(ctx->now);
	return 0;
}

SEC("syscall")
int weir_queue_change(struct queue_change *ctx)
{
	return queue_change_class(ctx);
}

char LICENSE[] SEC("license") = "Dual BSD/GPL";
