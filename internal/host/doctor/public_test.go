package doctor

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// publicCase is a sick machine of somebody else, made from what a public thread shows.
type publicCase struct {
	name   string
	Thread string `json:"thread"` // its address
	Shows  string `json:"shows"`  // what the thread shows
	Cure   string `json:"cure"`   // what helped there
	// Causes are the checks that may name the cause; none: nothing is wrong. Remedy is a
	// part of a remedy that such a finding must have.
	Causes  []string        `json:"causes"`
	Remedy  string          `json:"remedy,omitempty"`
	Limit   Limit           `json:"limit,omitempty"` // verdict if nothing is wrong
	Assumed []string        `json:"assumed,omitempty"`
	Bundle  json.RawMessage `json:"bundle"` // what the thread does not show is left out, or assumed
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

// heldOut reports whether a case was kept from those who wrote the checks: a third, by the
// hash of its file's name.
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
		if !strings.HasPrefix(c.Thread, "https://") || c.Shows == "" || c.Cure == "" {
			t.Errorf("%s: no thread, or nothing that it shows", c.name)
		}
		if threads[c.Thread] != "" {
			t.Errorf("%s and %s come from one thread", c.name, threads[c.Thread])
		}
		threads[c.Thread] = c.name
		if (len(c.Causes) == 0) == (c.Limit == "") {
			t.Errorf("%s: a case has either causes or a limit", c.name)
		}
	}
	if held := slices.DeleteFunc(slices.Clone(all), func(c publicCase) bool { return !c.heldOut() }); len(held) < len(all)/4 {
		t.Errorf("%d of %d cases are held out", len(held), len(all))
	}
}
