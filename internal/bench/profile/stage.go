package profile

import (
	"slices"
	"strings"
)

// Stages of a packet's way through weir, in order.
const (
	Entry    = "entry"    // the program's start, and code between the stages
	Parse    = "parse"    // headers and their checks
	LookUp   = "look-up"  // hash, home or tuple table, and the wait for the state
	Track    = "track"    // the state's update by the packet
	Queues   = "queues"   // the counter of the connection, if the interface has queues
	Counters = "counters" // counters of reasons and paths
	NAT      = "NAT"      // addresses, ports and checksums
	Redirect = "redirect" // TTL, MTU, next hop, MAC addresses, the helper
	Transmit = "transmit" // the kernel's half of the redirect, to the next device's ring
	Miss     = "miss"     // programs behind the tail call: none for a known connection
)

// Other work of a core in a benchmark.
const (
	Receive   = "receive and count"  // both devices' rings, and the counting program
	Generator = "generator"          // writing the frames, and sending them
	Sweep     = "weir's sweep"       // the timer that walks the states, with and without traffic
	Timer     = "weir's queue timer" // the timer that drains the queues, if it is on this core
	Others    = "others"             // interrupts, other programs
)

// Stages are all stages of weir, in the order of a packet's way.
var Stages = []string{Entry, Parse, LookUp, Track, Queues, Counters, NAT, Redirect, Transmit, Miss}

// Harness is time that weir does not spend on a frame.
var Harness = []string{Receive, Generator, Sweep, Timer, Others}

// byFunction has the functions whose file contains several stages.
var byFunction = map[string]string{
	"interface_get": Entry, "interface_is_present": Entry, "interface_is_plain": Entry,
	"addr_equal": LookUp, "tuple_equal": LookUp,
	"rewrite_l4_csum": NAT, "rewrite_addresses": NAT, "rewrite_ports": NAT, "rewrite_translate": NAT, "rewrite_translate_to": NAT, "rewrite_csum": NAT,
	"hook_ifindex": Entry, "hook_data": Parse, "hook_data_end": Parse, "hook_length": Parse,
	"nexthop_get": Redirect,
}

// byFile has the files whose functions all belong to one stage.
var byFile = map[string]string{
	"xdp.bpf.c": Entry, "fast.h": Entry, "tail.h": Entry, "scratch.h": Entry, "shared.h": Entry, "settings.h": Entry, "verifier.h": Entry,
	"parse.h": Parse, "packet.h": Parse, "addr.h": Parse, "icmp.h": Parse, "extension.h": Parse,
	"lookup.h": LookUp, "touch.h": LookUp, "nat_port.h": LookUp, "tuple.h": LookUp, "state.h": LookUp, "hint.h": LookUp, "bound.h": LookUp, "extra.h": LookUp, "prefetch.h": LookUp, "prefetch_map.h": LookUp,
	"track.h": Track, "limit.h": Track, "source.h": Track, "count.h": Counters, "csum.h": NAT,
	"queue_packet.h": Queues, "queue_trip.h": Queues, "admit.h": Queues, "queue.h": Queues,
	"rewrite.h": Redirect, "stateless.h": Miss, "output.h": Redirect, "af_to_plain.h": Redirect, "family.h": Redirect, "gateway.h": Redirect, "policy.h": Redirect, "handoff.h": Redirect, "nexthop.h": Redirect, "encap.h": Redirect, "xdp.h": Redirect, "qos.h": Redirect, "scrub.h": Redirect, "scrub_header.h": Redirect, "state_scrub.h": Redirect,
}

// fastPrograms are the XDP programs that packets of known connections run. They run the
// second if they are prefetched.
var fastPrograms = []string{"weir_xdp", "weir_xdp_prefetch"}

// Stage returns what a core was doing, by the innermost address that belongs to a stage.
func (m *Map) Stage(stack Stack) string {
	transmit := false
	for _, address := range stack {
		p := m.At(address)
		switch {
		case p.Program == foreign:
			return Others
		case slices.Contains(fastPrograms, p.Program):
			return stageOf(p)
		case strings.HasPrefix(p.Program, "weir_gc"):
			return Sweep
		case strings.HasPrefix(p.Program, "weir_queue"):
			return Timer
		case strings.HasPrefix(p.Program, "weir_"):
			return Miss
		case p.Program == "generate":
			return Generator
		case p.Program != "":
			return Receive // the program that counts, or only redirects
		case p.Function == "xdp_do_redirect" || p.Function == "xdp_do_flush" || p.Function == "__xdp_do_flush" || p.Function == "__dev_flush":
			transmit = true
		case p.Function == "veth_poll" && transmit:
			return Transmit
		case p.Function == "veth_poll":
			return Receive
		case strings.HasPrefix(p.Function, "bpf_test_run_xdp_live") || p.Function == "bpf_prog_test_run_xdp":
			return Generator
		}
	}
	return Others
}

func stageOf(p Place) string {
	if stage := byFunction[p.Function]; stage != "" {
		return stage
	}
	if stage := byFile[p.File]; stage != "" {
		return stage
	}
	return Entry
}

// Split counts the stacks by stage.
func (m *Map) Split(stacks []Stack) map[string]int {
	counts := map[string]int{}
	for _, s := range stacks {
		counts[m.Stage(s)]++
	}
	return counts
}
