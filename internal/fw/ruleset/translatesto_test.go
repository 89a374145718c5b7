package ruleset_test

import (
	"testing"

	"weir/internal/fw/ruleset"
	"weir/pf/resolve"
)

// Rules translate to the addresses of an interface only where they name it in parentheses.
func TestTranslatesTo(t *testing.T) {
	for text, want := range map[string][2]bool{
		"pass out on wan0 nat-to (wan0)":                                             {false, true},
		"pass out on wan0 nat-to (wan0:0)":                                           {true, false},
		"pass out on wan0 nat-to (uplinks)":                                          {false, true},
		"pass in on lan0 proto tcp to port 80 rdr-to (wan0)":                         {false, true},
		"pass in on lan0 inet6 to 64:ff9b::/96 af-to inet from (wan0:0)":             {true, false},
		"pass in on lan0 inet6 to 64:ff9b::/96 af-to inet from (wan0)":               {false, true},
		"pass in on lan0 inet to 192.0.2.9 af-to inet6 from 2001:db8::1 to (wan0)":   {false, true},
		"pass in on lan0 inet to 192.0.2.9 af-to inet6 from 2001:db8::1 to (wan0:0)": {true, false},
		"pass in on lan0 inet6 to 64:ff9b::/96 af-to inet from 192.0.2.7":            {},
		"pass out on wan1 nat-to (wan1)":                                             {},
		"pass out on wan0 inet nat-to 192.0.2.7":                                     {},
		"pass out on wan0 from (wan0)":                                               {},
		"pass out on wan0 inet from any to any":                                      {},
	} {
		rules, list := resolve.Load("weir.conf", []byte(text+"\n"), nil)
		if rules == nil {
			t.Fatal(list.Err())
		}
		first, all := ruleset.TranslatesTo(rules.Rules, &ruleset.Interface{Name: "wan0", Groups: []string{"uplinks"}})
		if got := [2]bool{first, all}; got != want {
			t.Errorf("%s: %v, want %v", text, got, want)
		}
	}
}
