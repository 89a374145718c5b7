package resolve_test

import (
	"strings"
	"testing"

	"weir/pf/resolve"
)

// What dummynet does and queues here cannot is refused, where it stands and with the reason. Nothing of it is
// loaded with another meaning.
func TestDummynetRefused(t *testing.T) {
	const pipe = "pipe 1 config bw 5Mbit/s\n"
	host := testHost(t)
	for text, want := range map[string]string{
		"pipe 1 config bw 5Mbit/s delay 20ms\npass in on em0 dnpipe 1":                     "in:1:26: this version does not enforce delay of dummynet; tc-netem(8)",
		"pipe 1 config bw 5Mbit/s plr 0.1\npass in on em0 dnpipe 1":                        "in:1:26: this version does not enforce plr of dummynet; tc-netem(8)",
		"pipe 1 config bw 5Mbit/s mask src-ip 0xffffffff\npass in on em0 dnpipe 1":         "in:1:31: this version does not enforce a pipe for each host; write mask in a queue",
		pipe + "pass in on em0 dnpipe 1\npass in on em1 dnpipe 1":                          "in:1:1: this version does not enforce a pipe on more than one interface or direction",
		pipe + "pass in on em0 dnpipe (1, 1)":                                              "in:1:1: this version does not enforce a pipe on more than one interface or direction",
		pipe + "pass in dnpipe 1":                                                          "in:2:9: this version does not enforce dnpipe in a rule without one interface and a direction",
		pipe + "pass on em0 dnpipe 1":                                                      "in:2:13: this version does not enforce dnpipe in a rule without one interface and a direction",
		pipe + "pass in on inside dnpipe 1":                                                "in:2:19: this version does not enforce dnpipe in a rule without one interface and a direction",
		pipe + "anchor \"x\" in on em0 dnpipe 1":                                           "in:2:22: this version does not enforce dnpipe of an anchor",
		pipe + "pass in on em0 dnpipe 2":                                                   "in:2:16: this version does not enforce dnpipe without a configuration; write or include it before the rule: pipe 2 config",
		pipe + "pass in on em0 dnqueue 1":                                                  "in:2:16: this version does not enforce dnqueue without a configuration; write or include it before the rule: queue 1 config",
		pipe + "dummynet in on em0 proto tcp all pipe 1":                                   "in:2:1: this version does not enforce a dummynet rule; rules for connections with a pipe for each direction",
		pipe + "ether pass in on em0 dnpipe 1":                                             "in:2:1: this version does not enforce ether … dnpipe; write dnpipe in a rule for packets",
		pipe + "queue a on em0 bandwidth 9M default\npass out on em0 dnpipe 1":             "in:1:1: em0 has queues already, so it can have no pipe",
		pipe + "queue a on em0 bandwidth 9M default\npass out on em0 set queue a dnpipe 1": "in:3:29: a rule has a queue or a dnpipe",
		"queue 2 config pipe 9\npass in on em0 dnqueue 2":                                  "in:1:21: pipe 9 is not configured",
		"anchor \"x\" {\npipe 1 config bw 5Mb\n}":                                          "in:2:1: pipes are not configured in an anchor",
	} {
		_, list := resolve.Load("in", []byte(text+"\n"), host)
		list.Enforce()
		if err := list.Err(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s:\ngot  %v\nwant %s", text, err, want)
		}
	}
}
