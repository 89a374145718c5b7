package dataplane

// The Makefile pins the compiler and its flags (make generate), because another compiler
// makes other bytes. Types are generated once, from the XDP object, because all objects
// include the same headers.

//go:generate go tool bpf2go -target bpfel -type interface -type nexthop -type course -type flow -type addr -type tuple -type record -type capture_filter -type capture_setting -type rule_set -type queue_rate -type queue_class -type queue_counter -type queue_host -type queue_clock -type queue_shaper -type queue_loss -type queue_rtt -type spread_bucket -type spread_slot -type spread_core -type prefetch -type policy_list xdp ../../../bpf/xdp.bpf.c
//go:generate go tool bpf2go -target bpfel -no-global-types tc ../../../bpf/tc.bpf.c
//go:generate go tool bpf2go -target bpfel -no-global-types -type queue_change shaping ../../../bpf/queue.bpf.c
//go:generate go tool bpf2go -target bpfel -no-global-types gc ../../../bpf/gc.bpf.c

//go:generate go run ./shuffle -bpf ../../../bpf -o testdata/layouts/99_bpfel.o
