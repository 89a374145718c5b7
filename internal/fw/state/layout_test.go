package state

import (
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// This package has the same numbers as bpf/state/state.h.
func TestNumbersMatchHeader(t *testing.T) {
	text, err := os.ReadFile("../../../bpf/state/state.h")
	if err != nil {
		t.Fatal(err)
	}
	header := string(text)
	if diff := cmp.Diff(wantPhases(), enumNames(t, header, "phase")); diff != "" {
		t.Errorf("enum phase (-package +header):\n%s", diff)
	}
	peers := []string{
		PeerClosed: "PEER_CLOSED", PeerSynSent: "PEER_SYN_SENT", PeerEstablished: "PEER_ESTABLISHED",
		PeerClosing: "PEER_CLOSING", PeerFinWait2: "PEER_FIN_WAIT_2", PeerTimeWait: "PEER_TIME_WAIT",
	}
	if diff := cmp.Diff(peers, enumNames(t, header, "peer")); diff != "" {
		t.Errorf("enum peer (-package +header):\n%s", diff)
	}
	flags := map[string]int{
		"IN": int(In), "OUT": int(Out), "NAT": int(NAT), "EVALUATE_IN": int(EvaluateIn), "EVALUATE_OUT": int(EvaluateOut),
		"OPTIONS": int(Options), "LOG": int(Log), "MARK": int(Marked),
	}
	if diff := cmp.Diff(flags, defines(t, header, "STATE")); diff != "" {
		t.Errorf("STATE_* (-package +header):\n%s", diff)
	}
	flows := map[string]int{"SEEN": int(FlowSeen), "GRANTED": int(FlowGranted), "SCALED": int(FlowScaled), "MAPPED": int(FlowMapped), "COPIED": int(FlowCopied), "POOLED": int(FlowPooled), "PROGRAM": int(FlowProgram), "NORMAL": int(FlowNormal), "EXPORTED": int(FlowExported)}
	if diff := cmp.Diff(flows, defines(t, header, "FLOW")); diff != "" {
		t.Errorf("FLOW_* (-package +header):\n%s", diff)
	}
}

// wantPhases returns each phase's name in the header's spelling: tcp.finwait is
// PHASE_TCP_FINWAIT.
func wantPhases() []string {
	var names []string
	for p := range PhaseCount {
		names = append(names, "PHASE_"+strings.ToUpper(strings.ReplaceAll(p.String(), ".", "_")))
	}
	return append(names, "PHASE_COUNT")
}

// enumNames returns the names of an enum whose values count from 0.
func enumNames(t *testing.T, header, name string) []string {
	t.Helper()
	_, body, ok := strings.Cut(header, "enum "+name+" {")
	if !ok {
		t.Fatalf("no enum %s", name)
	}
	body, _, _ = strings.Cut(body, "};")
	var names []string
	for _, m := range regexp.MustCompile(`(?m)^\s*([A-Z0-9_]+),`).FindAllStringSubmatch(body, -1) {
		names = append(names, m[1])
	}
	return names
}

// defines returns the bits #defined as PREFIX_NAME 0x….
func defines(t *testing.T, header, prefix string) map[string]int {
	t.Helper()
	bits := make(map[string]int)
	for _, m := range regexp.MustCompile(`(?m)^#define `+prefix+`_([A-Z_]+)\s+0x([0-9a-f]+)`).FindAllStringSubmatch(header, -1) {
		n, err := strconv.ParseInt(m[2], 16, 32)
		if err != nil {
			t.Fatal(err)
		}
		bits[m[1]] = int(n)
	}
	return bits
}
