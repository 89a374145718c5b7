/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* Definitions of what config.h and shared.h declare; each entry file includes it once. */
#ifndef WEIR_SETTINGS_H
#define WEIR_SETTINGS_H

#include "config.h"
#include "queue/queue.h"
#include "shared.h"

const volatile __u32 hash_keys[HASH_KEYS] = { 0 };
const volatile __u64 pool_secret = 0;
const volatile __u32 prefetch_secret = 0;
const volatile __u32 random_seed = 0;
const volatile __u32 bucket_mask = 0;
const volatile __u32 state_capacity = 0;
const volatile __u32 source_capacity = 0;
const volatile __u32 rule_base = 0;
const volatile __u32 rule_chunks = 1;
const volatile __u32 mark_mask = 0xe0000000;
const volatile __u8 mark_shift = 29;
const volatile __u8 handoff_records = 5;
const volatile __u8 route_marks = 0;
const volatile __u8 xfrm_states = 0;
const volatile __u32 note_secret[2] = { 0 };
const volatile __u8 states_bound = 0;
const volatile __u8 af_to = 0;
const volatile __u8 copies = 0;
const volatile __u8 ether_rules = 0;
const volatile __u8 limiters_defined = 0;
const volatile __u8 least_states = 0;
const volatile __u8 reassembles_tcp = 0;
const volatile __u8 flows_exported = 0;
const volatile __u8 queues = 0;
const volatile __u32 queue_slots = 8;
const volatile __u32 queue_host_slots = 8;
const volatile __u32 queue_cpus = 1;
const volatile __u8 unloaded = 0;

/* The loader makes .bss one map for all objects. */
struct shared shared;

/* Likewise .data.queue. */
struct queue_section queue_data SEC(".data.queue");

char LICENSE[] SEC("license") = "Dual BSD/GPL";

#endif
