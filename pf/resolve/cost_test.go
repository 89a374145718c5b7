package resolve

import (
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"
)

// Limits for 64 kB of text: a second, and this many bytes of memory. The number of rules
// is limited separately. 2000 rules cost little compared with the text itself.
const (
	costBytes  = 64 << 10
	costTime   = time.Second
	costMemory = 256 << 20
)

// A costlyText is a piece, repeated to 64 kB, between two others.
type costlyText struct{ name, before, piece, after string }

// costly are texts whose repetition was or could be expensive. %d is replaced by the
// number of the repetition.
var costly = []costlyText{
	{"nothing right", "", "x%d\n", ""},
	{"misspelt words", "", "pass frm { a%d }\n", ""},
	{"unknown names", "pass from { ", "nosuch%d ", "}\n"},
	{"unknown ports", "pass proto tcp to port { ", "nosuch%d ", "}\n"},
	{"unknown protocols", "pass proto { ", "nosuch%d ", "}\n"},
	{"unknown interfaces", "", "pass on nosuch%d\n", ""},
	{"unknown tables", "", "pass from <t%d>\n", ""},
	{"tables", "", "table <t%d> { 10.0.0.0/8 }\n", ""},
	{"other tables than known", "", "table <t%d>\npass from <u%d>\n", ""},
	{"a table twice", "", "table <t> { 10.0.0.0/8 }\n", ""},
	{"a table of many", "table <t> { ", "10.0.%d ", "}\n"},
	{"macros", "", "m%d = x\n", ""},
	{"macro of itself", "m = x\n", "m = \"$m x\"\n", ""},
	{"macros that double", "m = x\n" + strings.Repeat("m = $m $m\n", 39), "# %d\n", ""},
	{"a macro of words that is used often", "m = \"" + strings.Repeat("1 ", 4000) + "\"\npass from { ", "$m ", "}\n"},
	{"owners", "pass proto tcp ", "user %d ", "\n"},
	{"unknown macros", "", "pass on $m%d\n", ""},
	{"uses of a macro", "m = \"{ lo0, em0, em1 }\"\n", "pass on $m\n", ""},
	{"open braces", "pass from ", "{", ""},
	{"open parentheses", "pass keep state ", "(", ""},
	{"open anchors", "", "anchor {\n", ""},
	{"closed braces", "", "}", ""},
	{"negations", "pass from ", "! ", "10.0.0.1\n"},
	{"one long string", "pass label \"", "%d ", "\"\n"},
	{"open strings", "", "\"%d\n", ""},
	{"continued lines", "pass ", "\\\n", "in\n"},
	{"comments", "", "# %d\\\n", ""},
	{"signs", "", "<>=!", ""},
	{"rules", "", "pass in on em0 proto tcp from 10.0.0.1 to port %d\n", ""},
	{"shadowed rules", "block quick all\n", "pass in quick from 10.0.%d\n", ""},
	{"labels of macros", "", "pass label \"$if $srcaddr $dstaddr $nr %d\"\n", ""},
	{"a list against a list", "pass from { 10.0.0.1 10.0.0.2 } to { ", "10.%d.0.0/16 ", "}\n"},
	{"nothing fits", "pass inet6 from { 10.0.0.1 10.0.0.2 } to { ", "10.0.0.1 ", "}\n"},
	{"antispoof", "", "antispoof for em1\n", ""},
	{"skip", "set skip on { ", "em%d ", "}\n"},
	{"timeouts", "set timeout { ", "tcp.first %d ", "}\n"},
	{"pools", "", "match out on em0 inet nat-to { 10.0.0.1 10.0.0.2 }\n", ""},
	{"translations", "", "nat on em0 inet from 10.0.%d.0/24 to any -> 10.0.0.1\n", ""},
	{"a pool of many", "match out on em0 inet nat-to { ", "10.0.%d ", "}\n"},
	{"groups", "", "set interface-group g%d { em0 em1 }\n", ""},
	{"ranges", "table <t> { ", "10.0.0.1 - 10.%d.0.0 ", "}\n"},
	{"icmp", "pass inet proto icmp icmp-type { ", "%d code 0 ", "}\n"},
	{"queues", "", "queue q%d on em0 bandwidth 1M\n", ""},
	{"queues of queues", "queue q on em0 bandwidth 1G\n", "queue q%d parent q bandwidth 1K\n", ""},
}

// TestCost checks that no text of 64 kB takes long or much memory.
func TestCost(t *testing.T) {
	host, err := ReadHost("testdata/host.json")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range costly {
		src := c.text()
		t.Run(c.name, func(t *testing.T) {
			took, used := time.Duration(0), uint64(0)
			for range 3 { // the machine may be busy once
				took, used = cost(src, host)
				if took < costTime {
					break
				}
			}
			if took >= costTime || used > costMemory {
				t.Errorf("%v and %d MiB", took, used>>20)
			}
		})
	}
}

func (c *costlyText) text() []byte {
	var b strings.Builder
	b.WriteString(c.before)
	for i := 0; b.Len() < costBytes; i++ {
		b.WriteString(strings.ReplaceAll(c.piece, "%d", strconv.Itoa(i)))
	}
	b.WriteString(c.after)
	return []byte(b.String())
}

// cost loads a text and returns the time and the allocated bytes.
func cost(src []byte, host *Host) (time.Duration, uint64) {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	start := time.Now()
	_, list := LoadWith("in", src, host, Settings{MaxRules: fuzzRules})
	_ = list.Fprint(&strings.Builder{})
	took := time.Since(start)
	runtime.ReadMemStats(&after)
	return took, after.TotalAlloc - before.TotalAlloc
}
