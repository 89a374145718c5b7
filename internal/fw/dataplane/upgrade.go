package dataplane

import (
	"slices"
	"strings"

	"weir/internal/fw/bpfload"
	"weir/internal/fw/reason"
)

// A past holds what BTF does not say about an earlier layout: names that have changed
// since, and the order of numbers. If you change a name or a number that tables hold, add
// it to the earlier layouts.
type past struct {
	fields bpfload.Renames   // old "struct.field" to the field's present name
	maps   map[string]string // old pin to map
	lacks  []string          // kept maps that came later, or belonged to a generation
	// Sizes of the values of kept maps that have another form now and that the layout's
	// object does not declare. A Downgrade makes them anew.
	values  map[string]uint32
	reasons []string // by number
	// The program that imports a state, and the struct that is its argument.
	importer, argument string
	gc                 string // the program that starts the garbage collection
}

// pasts holds the earlier layouts that states can be taken over from, by number.
var pasts = map[uint32]past{
	8: {
		fields: bpfload.Renames{
			"interface.slot": "counters",
			"shared.ahead":   "prefetch", "shared.promised": "hinted", "shared.swept": "gc_state",
			"shared.aged": "gc_nexthop", "shared.aged_at": "gc_nexthop_at", "shared.unlisted": "gc_unlisted", "shared.aging": "gc_lock",
		},
		maps:     map[string]string{"promises": mapHints, "answer_sources": mapRejectSources, "answer_counters": mapRejectCounters},
		lacks:    []string{mapHandoffs, mapTableCounters, mapTableLengths, mapTableRules, mapLimits, mapSources, mapSourceIndex, mapExtras, mapEarlyFragments, mapEndpoints, mapLimiters, mapLimited, mapPoolLoads, mapPoolUses, mapPolicies, mapNormals},
		values:   map[string]uint32{mapFragments: 52, mapPathCounters: 16},
		reasons:  reasons8,
		importer: "weir_adopt", argument: "adoption", gc: "weir_sweep_start",
	},
	9: {
		lacks:    []string{mapLimits, mapSources, mapSourceIndex, mapExtras, mapEarlyFragments, mapEndpoints, mapLimiters, mapLimited, mapPoolLoads, mapPoolUses, mapPolicies, mapNormals},
		values:   map[string]uint32{mapFragments: 64, mapPathCounters: 16},
		reasons:  reasons9,
		importer: programImport, argument: argumentImport, gc: programStart,
	},
	10: {
		lacks:    []string{mapEndpoints, mapLimiters, mapLimited, mapPoolLoads, mapPoolUses, mapPolicies, mapNormals},
		values:   map[string]uint32{mapPathCounters: 16},
		reasons:  reasons10,
		importer: programImport, argument: argumentImport, gc: programStart,
	},
	11: {
		lacks:    []string{mapPoolLoads, mapPoolUses, mapPolicies, mapNormals},
		values:   map[string]uint32{mapPathCounters: 16},
		reasons:  reasons11,
		importer: programImport, argument: argumentImport, gc: programStart,
	},
	12: {
		lacks:    []string{mapPolicies, mapNormals},
		values:   map[string]uint32{mapPathCounters: 16},
		reasons:  reasons12,
		importer: programImport, argument: argumentImport, gc: programStart,
	},
	13: {
		lacks:    []string{mapPolicies, mapNormals},
		values:   map[string]uint32{mapPathCounters: 16},
		reasons:  reasons13,
		importer: programImport, argument: argumentImport, gc: programStart,
	},
	14: {
		lacks:    []string{mapNormals},
		values:   map[string]uint32{mapPathCounters: 16},
		reasons:  reasons15,
		importer: programImport, argument: argumentImport, gc: programStart,
	},
	15: {
		lacks:    []string{mapNormals},
		reasons:  reasons15,
		importer: programImport, argument: argumentImport, gc: programStart,
	},
}

// reasons8 holds the reasons of layout 8 in order, by their present names.
var reasons8 = []string{
	"state", "rule", "no-rule", "implicit", "skip", "local", "other-mac", "up-neighbour", "up-ttl", "up-mtu",
	"up-options", "up-multicast", "up-probe", "up-device", "up-nexthop", "up-route", "marked", "block", "unloaded",
	"short", "malformed", "martian-source", "martian-destination", "land", "ip-option", "routing-header",
	"extension-chain", "fragment-short", "fragment-overlap", "fragment-orphan", "fragment-memory", "state-mismatch",
	"state-limit", "state-busy", "tuple-error", "tuple-taken", "nat-ports", "nat-address", "icmp-mismatch", "guard",
	"hint-stale", "metadata", "interface", "internal",
}

// reasons9 is the same for layout 9.
var reasons9 = []string{
	"state", "rule", "no-rule", "implicit", "skip", "local", "other-mac", "up-neighbour", "up-ttl", "up-mtu",
	"up-options", "up-multicast", "up-probe", "up-device", "up-nexthop", "up-route", "up-mark", "marked", "block",
	"unloaded", "short", "malformed", "martian-source", "martian-destination", "land", "ip-option", "routing-header",
	"extension-chain", "fragment-short", "fragment-overlap", "fragment-orphan", "fragment-memory", "state-mismatch",
	"state-limit", "state-busy", "tuple-error", "tuple-taken", "nat-ports", "nat-address", "mark-taken",
	"icmp-mismatch", "guard", "hint-stale", "metadata", "interface", "internal",
}

// reasons10 is the same for layout 10.
var reasons10 = []string{
	"state", "rule", "no-rule", "implicit", "skip", "local", "other-mac", "up-neighbour", "up-ttl", "up-mtu",
	"up-options", "up-multicast", "up-probe", "up-device", "up-nexthop", "up-route", "up-mark", "marked", "block",
	"unloaded", "short", "malformed", "ip-checksum", "tcp-flags", "martian-source", "martian-destination", "land",
	"ip-option", "routing-header", "extension-chain", "fragment-short", "fragment-overlap", "fragment-orphan",
	"fragment-held", "fragment-memory", "state-mismatch", "max-pkt-rate", "state-limit", "max-states",
	"max-src-nodes", "max-src-states", "max-src-conn", "max-src-conn-rate", "overload", "src-nodes", "state-busy",
	"tuple-error", "tuple-taken", "nat-ports", "nat-address", "mark-taken", "icmp-mismatch", "guard", "hint-stale",
	"metadata", "gateway", "gateway-ttl", "gateway-mtu", "divert", "interface", "internal",
}

// reasons11 is the same for layout 11.
var reasons11 = []string{
	"state", "rule", "no-rule", "implicit", "skip", "local", "other-mac", "up-neighbour", "up-ttl", "up-mtu",
	"up-options", "up-multicast", "up-probe", "up-device", "up-copy", "up-nexthop", "up-route", "up-mark", "marked",
	"block", "unloaded", "short", "malformed", "ip-checksum", "tcp-flags", "martian-source", "martian-destination",
	"land", "ip-option", "routing-header", "extension-chain", "fragment-short", "fragment-overlap",
	"fragment-orphan", "fragment-held", "fragment-memory", "state-mismatch", "max-pkt-rate", "state-limit",
	"max-states", "max-src-nodes", "max-src-states", "max-src-conn", "max-src-conn-rate", "overload", "src-nodes",
	"state-busy", "tuple-error", "tuple-taken", "nat-ports", "nat-address", "af-to", "mark-taken", "icmp-mismatch",
	"guard", "hint-stale", "metadata", "gateway", "gateway-ttl", "gateway-mtu", "divert", "interface", "internal",
	"state-limiter", "source-limiter",
}

// reasons12 is the same for layout 12.
var reasons12 = []string{
	"state", "rule", "no-rule", "implicit", "skip", "local", "other-mac", "up-neighbour", "up-ttl", "up-mtu",
	"up-options", "up-multicast", "up-probe", "up-device", "up-copy", "up-program", "up-nexthop", "up-route",
	"up-mark", "marked", "block", "unloaded", "short", "malformed", "ip-checksum", "tcp-flags", "martian-source",
	"martian-destination", "land", "ip-option", "routing-header", "extension-chain", "fragment-short",
	"fragment-overlap", "fragment-orphan", "fragment-held", "fragment-memory", "state-mismatch", "max-pkt-rate",
	"state-limit", "max-states", "max-src-nodes", "max-src-states", "max-src-conn", "max-src-conn-rate",
	"overload", "src-nodes", "state-busy", "tuple-error", "tuple-taken", "nat-ports", "nat-address", "af-to",
	"mark-taken", "icmp-mismatch", "guard", "hint-stale", "metadata", "gateway", "gateway-ttl", "gateway-mtu",
	"divert", "interface", "internal", "state-limiter", "source-limiter",
}

// reasons13 is the same for layout 13.
var reasons13 = []string{
	"state", "rule", "no-rule", "implicit", "skip", "local", "other-mac", "up-neighbour", "up-ttl", "up-mtu",
	"up-options", "up-multicast", "up-probe", "up-device", "up-copy", "up-program", "up-nexthop", "up-route", "up-mark",
	"marked", "block", "unloaded", "short", "malformed", "ip-checksum", "tcp-flags", "martian-source",
	"martian-destination", "land", "ip-option", "routing-header", "extension-chain", "fragment-short",
	"fragment-overlap", "fragment-orphan", "fragment-held", "fragment-memory", "state-mismatch", "max-pkt-rate",
	"state-limit", "max-states", "max-src-nodes", "max-src-states", "max-src-conn", "max-src-conn-rate", "overload",
	"src-nodes", "state-busy", "tuple-error", "tuple-taken", "nat-ports", "nat-address", "af-to", "mark-taken",
	"icmp-mismatch", "guard", "hint-stale", "metadata", "gateway", "gateway-ttl", "gateway-mtu", "divert", "interface",
	"internal", "state-limiter", "source-limiter", "queue",
}

// reasons15 is the same for layouts 14 and 15.
var reasons15 = []string{
	"state", "rule", "no-rule", "implicit", "skip", "local", "other-mac", "up-neighbour", "up-ttl", "up-mtu",
	"up-options", "up-multicast", "up-probe", "up-device", "up-copy", "up-program", "up-nexthop", "up-route", "up-mark",
	"up-policy", "marked", "block", "unloaded", "short", "malformed", "ip-checksum", "tcp-flags", "martian-source",
	"martian-destination", "land", "ip-option", "routing-header", "extension-chain", "fragment-short",
	"fragment-overlap", "fragment-orphan", "fragment-held", "fragment-memory", "state-mismatch", "max-pkt-rate",
	"state-limit", "max-states", "max-src-nodes", "max-src-states", "max-src-conn", "max-src-conn-rate", "overload",
	"src-nodes", "state-busy", "tuple-error", "tuple-taken", "nat-ports", "nat-address", "af-to", "mark-taken",
	"icmp-mismatch", "guard", "hint-stale", "metadata", "gateway", "gateway-ttl", "gateway-mtu", "divert", "interface",
	"internal", "state-limiter", "source-limiter", "queue", "policy",
}

// argumentImport is the argument of programImport.
const argumentImport = "import"

// importProgram returns the program of a layout that imports a state, and the struct that is
// its argument.
func importProgram(layout uint32) (program, argument string) {
	if p, known := pasts[layout]; known {
		return p.importer, p.argument
	}
	return programImport, argumentImport
}

// keptMapsOf returns the maps of an earlier layout that outlive a reload, by their present
// names.
func keptMapsOf(layout uint32) []string {
	return slices.DeleteFunc(slices.Clone(keptMaps), func(name string) bool {
		return slices.Contains(pasts[layout].lacks, name)
	})
}

// gcProgram returns the program of a layout that starts the garbage collection.
func gcProgram(layout uint32) string {
	if p, known := pasts[layout]; known {
		return p.gc
	}
	return programStart
}

// renames returns the fields of a layout that have another name now.
func renames(layout uint32) bpfload.Renames { return pasts[layout].fields }

// formerName returns a present field's name in an earlier layout.
func formerName(structure, field string, layout uint32) string {
	for then, now := range pasts[layout].fields {
		if then, ok := strings.CutPrefix(then, structure+"."); ok && now == field {
			return then
		}
	}
	return field
}

// mapName returns the name of the map with this pin.
func mapName(pin string, layout uint32) string {
	if now, ok := pasts[layout].maps[pin]; ok {
		return now
	}
	if pin == pinName(mapShared) {
		return mapShared
	}
	return pin
}

// formerRenames returns the inverse of renames.
func formerRenames(layout uint32) bpfload.Renames {
	former := make(bpfload.Renames)
	for then, now := range pasts[layout].fields {
		structure, field, _ := strings.Cut(then, ".")
		former[structure+"."+now] = field
	}
	return former
}

// formerMap returns a present map's name in an earlier layout.
func formerMap(name string, layout uint32) string {
	for pin, now := range pasts[layout].maps {
		if now == name {
			return pin
		}
	}
	return name
}

// reasonCount returns how many reasons a layout has, which is the number of counters per
// interface.
func reasonCount(layout uint32) uint32 {
	if known := pasts[layout].reasons; known != nil {
		return uint32(len(known))
	}
	return uint32(reason.Count)
}

// reasonNow returns the present number of a layout's reason. It returns false if there is
// none.
func reasonNow(number, layout uint32) (uint32, bool) {
	known := pasts[layout].reasons
	if known == nil {
		return number, number < uint32(reason.Count)
	}
	now, err := reason.Parse(known[number])
	return uint32(now), err == nil
}

// reasonThen returns the number that a reason had in a layout. It returns false if there
// was none.
func reasonThen(now, layout uint32) (uint32, bool) {
	known := pasts[layout].reasons
	if known == nil {
		return now, true
	}
	then := slices.Index(known, reason.Reason(now).String())
	return uint32(then), then >= 0
}

// sameReasons reports whether a layout's reason counters match the present ones.
func sameReasons(layout uint32) bool {
	count := reasonCount(layout)
	for number := range count {
		if now, ok := reasonNow(number, layout); !ok || now != number {
			return false
		}
	}
	return count == uint32(reason.Count)
}
