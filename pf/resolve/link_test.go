package resolve_test

import (
	"maps"
	"slices"
	"testing"

	"weir/pf/ast"
	"weir/pf/resolve"
)

// cakeLinks are the keywords of tc-cake(8), each with what the page says that it is equivalent to. Only raw
// differs here: it counts the IP packet (docs/language.md).
var cakeLinks = map[string]resolve.Link{
	"raw":          {},
	"conservative": {Overhead: 48, Cells: ast.ATM},

	"atm":   {Cells: ast.ATM},
	"ptm":   {Cells: ast.PTM},
	"noatm": {},

	"pppoa-vcmux":     {Overhead: 10, Cells: ast.ATM},
	"pppoa-llc":       {Overhead: 14, Cells: ast.ATM},
	"pppoe-vcmux":     {Overhead: 32, Cells: ast.ATM},
	"pppoe-llcsnap":   {Overhead: 40, Cells: ast.ATM},
	"bridged-vcmux":   {Overhead: 24, Cells: ast.ATM},
	"bridged-llcsnap": {Overhead: 32, Cells: ast.ATM},
	"ipoa-vcmux":      {Overhead: 8, Cells: ast.ATM},
	"ipoa-llcsnap":    {Overhead: 16, Cells: ast.ATM},

	"pppoe-ptm":   {Overhead: 30, Cells: ast.PTM},
	"bridged-ptm": {Overhead: 22, Cells: ast.PTM},

	"docsis":     {Overhead: 18, MPU: 64},
	"ethernet":   {Overhead: 38, MPU: 84},
	"ether-vlan": {Overhead: 4},
}

// linkOf returns the line of a root that says so.
func linkOf(t *testing.T, words string) resolve.Link {
	t.Helper()
	return load(t, "queue up on em0 bandwidth 10M "+words+" default\n").Queues[0].Link
}

// Each word after link means what tc-cake(8) says, and no word is missing.
func TestLinks(t *testing.T) {
	for word, want := range cakeLinks {
		want.Known = true
		if want.Cells == ast.AnyCells {
			want.Cells = ast.Plain
		}
		if got := linkOf(t, "link "+word); got != want {
			t.Errorf("link %s: got %+v, want %+v", word, got, want)
		}
	}
	if ours, theirs := slices.Sorted(maps.Keys(ast.Links)), slices.Sorted(maps.Keys(cakeLinks)); !slices.Equal(ours, theirs) {
		t.Errorf("the words are %v, in tc-cake(8) %v", ours, theirs)
	}
	for words, want := range map[string]resolve.Link{
		"link { pppoe-ptm ether-vlan }":             {Overhead: 34, Cells: ast.PTM},
		"link { ethernet ether-vlan }":              {Overhead: 42, MPU: 84, Cells: ast.Plain},
		"link docsis overhead 22":                   {Overhead: 22, MPU: 64, Cells: ast.Plain},
		"link { atm ether-vlan } overhead -4 mpu 9": {Overhead: -4, MPU: 9, Cells: ast.ATM},
	} {
		want.Known = true
		if got := linkOf(t, words); got != want {
			t.Errorf("%s: got %+v, want %+v", words, got, want)
		}
	}
}
