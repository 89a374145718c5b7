package dataplane

import (
	"math/bits"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unsafe"

	"github.com/google/go-cmp/cmp"

	"weir/internal/fw/ruleset"
)

// Constants that Go code repeats have the headers' values.
func TestNumbersMatchHeaders(t *testing.T) {
	config, shared, states := header(t, "config.h"), header(t, "shared.h"), header(t, "state/state.h")
	counts, rules, prefixes := header(t, "observe/count.h"), header(t, "rules/ruleset.h"), header(t, "rules/prefix_map.h")
	pages, packets := header(t, "rules/table_page.h"), header(t, "packet/packet.h")
	for _, test := range []struct {
		header, name string
		want         int
	}{
		{config, "MAX_IFINDEX", MaxIfindex},
		{config, "MAX_PATHS", maxPaths},
		{config, "MAX_NEXTHOPS", MaxNextHops + nexthopFirst},
		{counts, "PATHS_RESERVED", reservedPaths},
		{counts, "PATH_FIRST", firstPath},
		{states, "NEXTHOP_LOCAL", nexthopLocal},
		{config, "MAX_STATES", maxStates},
		{config, "METADATA_MAGIC", metadataMagic},
		{config, "METADATA_NEXTHOP", metadataNexthop},
		{config, "METADATA_PROBE", metadataProbe},
		{config, "METADATA_ALONE", metadataAlone},
		{config, "METADATA_BRIDGE", metadataBridge},
		{config, "QOS_PRIO", qosPrio},
		{counts, "MAX_INTERFACES", MaxInterfaces},
		{shared, "NEXTHOP_L3", nexthopL3},
		{shared, "NEXTHOP_CHOSEN", nexthopChosen},
		{shared, "NEXTHOP_FIXED", nexthopFixed},
		{shared, "NEXTHOP_NEAR", nexthopNear},
		{shared, "NEXTHOP_NARROW", nexthopNarrow},
		{states, "KEPT_ROUTES", keptRoutes},
		{counts, "PATH_NONE", pathNone},
		{counts, "PATH_OVERFLOW", pathFull},
		{shared, "INTERFACE_PRESENT", int(InterfacePresent)},
		{shared, "INTERFACE_SKIP", int(InterfaceSkip)},
		{shared, "INTERFACE_L3", int(InterfaceL3)},
		{shared, "INTERFACE_FRAMED", int(InterfaceFramed)},
		{shared, "INTERFACE_XDP", int(InterfaceXDP)},
		{shared, "INTERFACE_TARGET", int(InterfaceTarget)},
		{shared, "INTERFACE_LO", int(InterfaceLoopback)},
		{shared, "INTERFACE_STATIC4", int(InterfaceStatic4)},
		{shared, "INTERFACE_STATIC6", int(InterfaceStatic6)},
		{shared, "INTERFACE_BARE", int(interfaceBare)},
		{shared, "INTERFACE_STACKED", int(InterfaceStacked)},
		{shared, "NEXTHOP_XDP", nexthopXDP},
		{config, "MAX_LOGICALS", maxLogicals},
		{config, "LOGICAL_BUCKET", logicalBucket},
		{config, "ENCAP_LAYERS", encapLayers},
		{states, "STATE_LAYOUT", stateLayout},
		{states, "KEPT_NO_DF", keptNoDF},
		{states, "KEPT_RANDOM_ID", keptRandomID},
		{states, "KEPT_MIN_TTL", keptMinTTL},
		{states, "KEPT_MAX_MSS", keptMaxMSS},
		{states, "KEPT_WAYS", keptWays},
		{states, "STATES_BOUND_IN", statesBoundIn},
		{packets, "SCRUB_NO_DF", int(ruleset.NoDF)},
		{packets, "SCRUB_RANDOM_ID", int(ruleset.RandomID)},
		{packets, "SCRUB_TOS", int(ruleset.TOS)},
		{pages, "TABLE_PAGE_LINES", tablePageLines},
		{pages, "TABLE_PAGES", tablePages},
		{prefixes, "TABLE_CHANGES", ruleset.MaxOverrides},
		{prefixes, "ROUTE_MTUS", routeMTUsAt},
		{rules, "EPOCH_BITS", bits.Len32(maxEpoch)},
	} {
		if got := define(t, test.header, test.name); got != test.want {
			t.Errorf("%s is %d in the header, %d in Go", test.name, got, test.want)
		}
	}
}

// The enums and flags of records are those of the header, in its order.
func TestRecordsMatchHeader(t *testing.T) {
	records := header(t, "observe/record.h")
	for _, test := range []struct {
		enum string
		want []string
	}{
		{"record_kind", []string{"RECORD_LOG", "RECORD_BEFORE", "RECORD_AFTER"}},
		{"verdict", []string{"VERDICT_PASS", "VERDICT_DROP", "VERDICT_REDIRECT", "VERDICT_UP"}},
		{"ring", []string{"RING_LOG", "RING_CAPTURE", "RING_COUNT"}},
	} {
		if diff := cmp.Diff(test.want, enumerators(t, records, test.enum)); diff != "" {
			t.Errorf("enum %s (-Go +header):\n%s", test.enum, diff)
		}
	}
	if got := define(t, header(t, "observe/log.h"), "LOG_BYTES"); got != LogBytes {
		t.Errorf("LOG_BYTES is %d in the header, %d in Go", got, LogBytes)
	}
	for name, want := range map[string]int{"RECORD_L3": RecordL3, "RECORD_ALL": RecordAll} {
		if got := define(t, records, name); got != want {
			t.Errorf("%s is %d in the header, %d in Go", name, got, want)
		}
	}
}

// enumerators returns the names of an enum, in order.
func enumerators(tb testing.TB, header, enum string) []string {
	tb.Helper()
	_, body, found := strings.Cut(header, "enum "+enum+" {")
	if !found {
		tb.Fatalf("no enum %s", enum)
	}
	body, _, _ = strings.Cut(body, "};")
	var names []string
	for _, m := range regexp.MustCompile(`(?m)^\s*([A-Z0-9_]+),`).FindAllStringSubmatch(body, -1) {
		names = append(names, m[1])
	}
	return names
}

func TestTailsMatchHeader(t *testing.T) {
	_, body, _ := strings.Cut(header(t, "hook/tail.h"), "enum tail {")
	body, _, _ = strings.Cut(body, "TAIL_COUNT")
	var names []string
	for _, m := range regexp.MustCompile(`TAIL_([A-Z]+),`).FindAllStringSubmatch(body, -1) {
		names = append(names, strings.ToLower(m[1]))
	}
	want := slices.Insert(slices.Clone(tailNames[:]), tailRules, "rules")
	if diff := cmp.Diff(names, want); diff != "" {
		t.Errorf("tails (-header +Go):\n%s", diff)
	}
}

// Keys and values of inner maps have the sizes of the Go types.
func TestInnerMapsMatch(t *testing.T) {
	spec := must(loadXdp())(t)
	for name, want := range map[string][2]uintptr{
		mapRuleSets:     {4, unsafe.Sizeof(xdpRuleSet{})},
		mapTablePages:   {4, unsafe.Sizeof(ruleset.Line{})},
		mapTableChanges: {unsafe.Sizeof(tablePrefix{}), 4},
	} {
		inner := spec.Maps[name].InnerMap
		if got := [2]uintptr{uintptr(inner.KeySize), uintptr(inner.ValueSize)}; got != want {
			t.Errorf("maps in %s have keys and values of %d bytes, want %d", name, got, want)
		}
	}
}

// Every map of the headers is either kept or belongs to a generation.
func TestMapsAreClassified(t *testing.T) {
	specs := must(loadSpecs())(t)
	kept := make(map[string]bool)
	for _, name := range keptMaps {
		kept[name] = true
	}
	generation := map[string]bool{
		"tails": true, "in_tails": true, "out_tails": true, "gc_timers": true, "scratches": true, "walks": true, "rejects": true, "rule_cache": true, "nexthop_cache": true, "captures": true, "noted": true, "prefetch_devices": true, "prefetches": true,
		"rule_sets": true, "rules": true, "rule_trees": true, "rule_lines": true,
		"rule_classes": true, "rule_vectors": true, "rule_counters": true,
		"pools": true, "pool_addresses": true, "pool_turns": true, "pool_sticky": true, "pool_works": true, "import_uses": true, "table_pages": true, "table_changes": true, "ether_answers": true, "rule_order": true, "rule_carried": true, "queue_pairs": true, mapQueueData: true, mapQueueClasses: true, mapQueueCounters: true, mapQueueHosts: true, mapQueueActive: true, mapQueueLosses: true, mapQueueRTTs: true, mapSteerFrames: true, mapSpreadSlots: true, mapSpreadCores: true, mapSpreadFrames: true, mapSpreadNext: true, mapSpreadStays: true, mapFlowRing: true, mapFlowsLost: true, "core_tails": true, "queue_members": true, "queue_timers": true, "fingerprints": true, "fingerprint_walks": true,
	}
	for _, spec := range specs {
		for name := range spec.Maps {
			if !kept[name] && !generation[name] && !strings.HasPrefix(name, ".rodata") {
				t.Errorf("map %s is neither kept nor a generation's", name)
			}
		}
		for name, v := range spec.Variables {
			if v.SectionName == mapShared && name != "shared" {
				t.Errorf("variable %s stands in %s, which all objects share", name, mapShared)
			}
		}
	}
}

func header(tb testing.TB, name string) string {
	tb.Helper()
	return string(must(os.ReadFile("../../../bpf/" + name))(tb))
}

// define returns the number that a header #defines for a name.
func define(tb testing.TB, header, name string) int {
	tb.Helper()
	m := regexp.MustCompile(`(?m)^#define\s+` + name + `\s+(0x[0-9a-f]+|[0-9]+)u?\b`).FindStringSubmatch(header)
	if m == nil {
		tb.Fatalf("no #define %s", name)
	}
	n, err := strconv.ParseInt(m[1], 0, 64)
	check(tb, err)
	return int(n)
}
