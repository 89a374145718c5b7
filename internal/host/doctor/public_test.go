package doctor

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"weir/internal/testenv"
)

// publicCase is a sick machine of somebody else, made from what a public thread shows.
type publicCase struct {
	name   string
	Thread string `json:"thread"` // its address
	Shows  string `json:"shows"`  // what the thread shows
	Cure   string `json:"cure"`   // what helped there
	// Causes are the checks that may name the cause; none: nothing is wrong. Remedy is a
	// part of a remedy that such a finding must have.
	Causes  []string `json:"causes"`
	Remedy  string   `json:"remedy,omitempty"`
	Limit   Limit    `json:"limit,omitempty"` // verdict if nothing is wrong
	Assumed []string `json:"assumed,omitempty"`
	// First is what doctor made of it when it saw it for the first time, if the case was
	// added after the checks: nothing was changed in between.
	First string `json:"first,omitempty"`
	// Set tells the sets apart that were added later, from 1 on; 0: the first of them.
	Set int `json:"set,omitempty"`
	// Silent: no figure in it differs from a sound machine's, so that no check can tell. It counts in all figures, and not
	// for the share that must be right.
	Silent bool            `json:"silent,omitempty"`
	Bundle json.RawMessage `json:"bundle"` // what the thread does not show is left out, or assumed
}

// readPublic reads all cases, sorted by name.
func readPublic(t *testing.T) (all []publicCase) {
	t.Helper()
	files, err := filepath.Glob("testdata/public/*.json")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		c := publicCase{name: strings.TrimSuffix(filepath.Base(file), ".json")}
		decoder := json.NewDecoder(bytes.NewReader(text))
		decoder.DisallowUnknownFields()
		if err := decoder.Decode(&c); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		all = append(all, c)
	}
	return all
}

// heldOut reports whether a case was not to be looked at by those who wrote the checks: a
// third, by the hash of its file's name.
func (c *publicCase) heldOut() bool {
	sum := sha256.Sum256([]byte(c.name + ".json"))
	return hex.EncodeToString(sum[:1])[0] <= '5'
}

// TestPublicCases checks that each case is whole: a bundle that doctor reads, an address,
// and a verdict that doctor can reach.
func TestPublicCases(t *testing.T) {
	all := readPublic(t)
	if len(all) < 60 {
		t.Errorf("%d cases; want 60 or more", len(all))
	}
	threads := map[string]string{}
	for i := range all {
		c := &all[i]
		if _, err := Read(bytes.NewReader(c.Bundle)); err != nil {
			t.Errorf("%s: %v", c.name, err)
		}
		if !strings.HasPrefix(c.Thread, "https://") && !strings.HasPrefix(c.Thread, "http://") || c.Shows == "" || c.Cure == "" {
			t.Errorf("%s: no thread, or nothing that it shows", c.name)
		}
		thread, _, _ := strings.Cut(c.Thread, "#")
		if threads[thread] != "" {
			t.Errorf("%s and %s come from one thread", c.name, threads[thread])
		}
		threads[thread] = c.name
		if c.Set > 0 && c.First == "" {
			t.Errorf("%s: what doctor made of it at first is not said", c.name)
		}
		if (len(c.Causes) == 0) == (c.Limit == "") {
			t.Errorf("%s: a case has either causes or a limit", c.name)
		}
	}
	if held := slices.DeleteFunc(slices.Clone(all), func(c publicCase) bool { return !c.heldOut() }); len(held) < len(all)/4 {
		t.Errorf("%d of %d cases are held out", len(held), len(all))
	}
}

// Outcomes of a public case.
const (
	rightFirst = "right"
	partly     = "partly" // the cause is found, but not first, or its remedy is another
	wrongFirst = "wrong"
)

// judge examines a case and says how far doctor got.
func (c *publicCase) judge(t *testing.T) (r *Report, got string) {
	t.Helper()
	s, err := Read(bytes.NewReader(c.Bundle))
	if err != nil {
		t.Fatalf("%s: %v", c.name, err)
	}
	if r, err = Examine(s, nil); err != nil {
		t.Fatalf("%s: %v", c.name, err)
	}
	if len(c.Causes) == 0 {
		if r.Verdict.Check == "" && r.Verdict.Limit == c.Limit {
			return r, rightFirst
		}
		return r, wrongFirst
	}
	for i := range r.Findings {
		f := &r.Findings[i]
		if f.Severity == Notice || !slices.Contains(c.Causes, f.Check) {
			continue
		}
		offers := slices.ContainsFunc(f.Remedies, func(m Remedy) bool { return strings.Contains(m.Command+" "+m.Text, c.Remedy) })
		if f.Check == r.Verdict.Check && offers {
			return r, rightFirst
		}
		got = partly
	}
	return r, cmp.Or(got, wrongFirst)
}

// least is the share of cases that must be right first, of those that show something.
const least = 0.95

// TestPublicFigures judges all cases, prints the figures, and writes the tables of
// docs/doctor.md.
func TestPublicFigures(t *testing.T) {
	count, later := map[bool]map[string]int{false: {}, true: {}}, map[int]map[string]int{}
	var table strings.Builder
	table.WriteString("| Machine | Cause there | doctor names first | |\n|---|---|---|---|\n")
	all := readPublic(t)
	for i := range all {
		c := &all[i]
		r, got := c.judge(t)
		count[c.heldOut()][got]++
		if c.Silent && got == rightFirst {
			t.Errorf("%s is right, and said to show nothing", c.name)
		}
		if got != rightFirst {
			t.Logf("%s: %s: want %v, %q, %s; got %s: %s", got, c.name, c.Causes, c.Remedy, c.Limit, r.Verdict.Check, r.Verdict.Sentence)
		}
		there := cmp.Or(strings.Join(c.Causes, " or "), "none: "+string(c.Limit))
		switch {
		case c.First != "":
			set := max(1, c.Set)
			if later[set] == nil {
				later[set] = map[string]int{}
			}
			later[set][c.First]++
			got += "; at first " + c.First
		case c.heldOut():
			got += ", held out"
		}
		fmt.Fprintf(&table, "| [%s](%s) | %s | %s | %s |\n", c.name, c.Thread, there, cmp.Or(r.Verdict.Check, "none: "+string(r.Verdict.Limit)), got)
	}
	right := count[false][rightFirst] + count[true][rightFirst]
	for _, held := range []bool{false, true} {
		by := count[held]
		t.Logf("held out %t: %d right first, %d partly, %d wrong", held, by[rightFirst], by[partly], by[wrongFirst])
	}
	var sets strings.Builder
	for _, set := range slices.Sorted(maps.Keys(later)) {
		by := later[set]
		fmt.Fprintf(&sets, "- Set %d: of %d, %d right at first, %d partly, %d wrong.\n", set, by[rightFirst]+by[partly]+by[wrongFirst], by[rightFirst], by[partly], by[wrongFirst])
	}
	t.Log("added later, at first sight:\n" + sets.String())
	silent := 0
	for i := range all {
		if all[i].Silent {
			silent++
		}
	}
	if share := float64(right) / float64(len(all)-silent); share < least {
		t.Errorf("%.1f %% right first; want %.0f %%", 100*share, 100*least)
	}
	for i := range machines {
		m := &machines[i]
		r, err := Examine(m.build().s, nil)
		if err != nil {
			t.Fatal(err)
		}
		got := rightFirst
		if r.Verdict.Check != m.check || r.Verdict.Limit != m.limit {
			got = wrongFirst
		}
		fmt.Fprintf(&table, "| %s (our own) | %s | %s | %s |\n", m.name, cmp.Or(m.check, "none: "+string(m.limit)), cmp.Or(r.Verdict.Check, "none: "+string(r.Verdict.Limit)), got)
	}
	uncured := 0
	for i := range all {
		if strings.HasPrefix(all[i].Cure, "none") {
			uncured++
		}
	}
	inDocument(t, "cases", fmt.Sprintf("%d of %d machines of others: right first. The threads of %d name no cure. %d, all wrong, show no figure that differs from a sound machine's. What was added later, at first sight:\n\n%s\n%s",
		right, len(all), uncured, silent, sets.String(), table.String()))
	inDocument(t, "graph", DrawGraph())
}

// inDocument compares a generated part of docs/doctor.md, between two comments, or writes
// it anew.
func inDocument(t *testing.T, part, want string) {
	t.Helper()
	const file = "../../../docs/doctor.md"
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	begin, end := "<!-- "+part+": generated -->\n", "<!-- end of "+part+" -->"
	before, rest, found := strings.Cut(string(text), begin)
	got, after, ends := strings.Cut(rest, end)
	switch {
	case !found || !ends:
		t.Fatalf("docs/doctor.md has no part %q", part)
	case got == want:
	case testenv.Updating():
		if err := os.WriteFile(file, []byte(before+begin+want+end+after), 0o644); err != nil {
			t.Fatal(err)
		}
	default:
		t.Errorf("docs/doctor.md: the part %q is old; WEIR_TEST_UPDATE=1 writes it anew", part)
	}
}
