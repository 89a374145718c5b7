package dataplane

import (
	"slices"
	"strings"

	"weir/internal/fw/bpfload"
	"weir/internal/fw/reason"
)

// A past is what BTF does not say of an earlier layout: names that have changed since,
// and the order of numbers. Whoever changes a name or a number that tables hold adds it
// to the layouts before.
type past struct {
	fields  bpfload.Renames   // "struct.field" then: the field's name now
	maps    map[string]string // pin then: map now
	reasons []string          // by number
	// The program that imports a state, and the struct that it is run on.
	importer, argument string
}

// pasts are the layouts that states are taken over from, by number.
var pasts = map[uint32]past{
	8: {
		fields: bpfload.Renames{
			"interface.slot": "counters",
			"shared.ahead":   "prefetch", "shared.promised": "hinted", "shared.swept": "gc_state",
			"shared.aged": "gc_nexthop", "shared.aged_at": "gc_nexthop_at", "shared.unlisted": "gc_unlisted", "shared.aging": "gc_lock",
		},
		maps:     map[string]string{"promises": mapHints, "answer_sources": mapRejectSources, "answer_counters": mapRejectCounters},
		reasons:  reasons8,
		importer: "weir_adopt", argument: "adoption",
	},
}

// reasons8 are the reasons of layout 8, in order, by the names that they have now.
var reasons8 = []string{
	"state", "rule", "no-rule", "implicit", "skip", "local", "other-mac", "up-neighbour", "up-ttl", "up-mtu",
	"up-options", "up-multicast", "up-probe", "up-device", "up-nexthop", "up-route", "marked", "block", "unloaded",
	"short", "malformed", "martian-source", "martian-destination", "land", "ip-option", "routing-header",
	"extension-chain", "fragment-short", "fragment-overlap", "fragment-orphan", "fragment-memory", "state-mismatch",
	"state-limit", "state-busy", "tuple-error", "tuple-taken", "nat-ports", "nat-address", "icmp-mismatch", "guard",
	"hint-stale", "metadata", "interface", "internal",
}

// importer is the program of a layout that imports a state; argument is its struct.
func importer(layout uint32) (program, argument string) {
	if p, known := pasts[layout]; known {
		return p.importer, p.argument
	}
	return programImport, "import"
}

// renames are the fields of a layout that have another name now.
func renames(layout uint32) bpfload.Renames { return pasts[layout].fields }

// formerName is the name that a field of now had in a layout.
func formerName(structure, field string, layout uint32) string {
	for then, now := range pasts[layout].fields {
		if then, ok := strings.CutPrefix(then, structure+"."); ok && now == field {
			return then
		}
	}
	return field
}

// mapName is the name of the map that has this pin.
func mapName(pin string, layout uint32) string {
	if now, ok := pasts[layout].maps[pin]; ok {
		return now
	}
	if pin == pinName(mapShared) {
		return mapShared
	}
	return pin
}

// formerRenames are renames the other way about.
func formerRenames(layout uint32) bpfload.Renames {
	former := make(bpfload.Renames)
	for then, now := range pasts[layout].fields {
		structure, field, _ := strings.Cut(then, ".")
		former[structure+"."+now] = field
	}
	return former
}

// formerMap is the name that a map of now had in a layout.
func formerMap(name string, layout uint32) string {
	for pin, now := range pasts[layout].maps {
		if now == name {
			return pin
		}
	}
	return name
}

// reasonCount is how many reasons a layout has, and so the counters of an interface.
func reasonCount(layout uint32) uint32 {
	if known := pasts[layout].reasons; known != nil {
		return uint32(len(known))
	}
	return uint32(reason.Count)
}

// reasonNow is the number that a layout's reason has now; false: there is none such.
func reasonNow(number, layout uint32) (uint32, bool) {
	known := pasts[layout].reasons
	if known == nil {
		return number, number < uint32(reason.Count)
	}
	now, err := reason.Parse(known[number])
	return uint32(now), err == nil
}

// reasonThen is the number that a reason had in a layout; false: there was none such.
func reasonThen(now, layout uint32) (uint32, bool) {
	known := pasts[layout].reasons
	if known == nil {
		return now, true
	}
	then := slices.Index(known, reason.Reason(now).String())
	return uint32(then), then >= 0
}

// sameReasons reports whether a layout's counters of reasons are those of now.
func sameReasons(layout uint32) bool {
	count := reasonCount(layout)
	for number := range count {
		if now, ok := reasonNow(number, layout); !ok || now != number {
			return false
		}
	}
	return count == uint32(reason.Count)
}
