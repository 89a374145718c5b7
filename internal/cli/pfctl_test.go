package cli

import (
	"strings"
	"testing"

	"weir/internal/fw/control"
	"weir/internal/fw/state"
)

// Options are read as getopt(3) does, and words may be abbreviated as for pfctl.
func TestPfctlOptions(t *testing.T) {
	for line, want := range map[string]pfctl{
		"-nvf pf.conf":                       {dry: true, verbose: 1, file: "pf.conf"},
		"-vvsr":                              {verbose: 2, show: "rules"},
		"-s Sources":                         {show: "Sources"},
		"-ss":                                {show: "states"},
		"-sn":                                {show: "nat"},
		"-sa":                                {show: "all"},
		"-sT":                                {show: "Tables"},
		"-Fs":                                {clear: "states"},
		"-FS":                                {clear: "Sources"},
		"-ef pf.conf":                        {enable: true, file: "pf.conf"},
		"-t bad -T add 192.0.2.1 -x":         {table: "bad", command: "add", words: []string{"192.0.2.1", "-x"}},
		"-qtbad -Td -f /etc/bad":             {quiet: true, table: "bad", command: "delete", file: "/etc/bad"},
		"-Tl -fpf.conf":                      {command: "load", file: "pf.conf"},
		"-k 10.0.0.0/8 -k 192.0.2.1":         {kill: []string{"10.0.0.0/8", "192.0.2.1"}},
		"-a ftp-proxy -t bad -T show -- ! a": {anchor: "ftp-proxy", table: "bad", command: "show", words: []string{"!", "a"}},
		"-K 10.0.0.1 -i em0":                 {forget: []string{"10.0.0.1"}, iface: "em0"},
		"-M -i em0 -Fs":                      {clear: "states", iface: "em0"},
		"-x loud":                            {debug: "loud"},
		"-x Misc -f pf.conf":                 {debug: "misc", file: "pf.conf"},
		"-Sf pf.conf":                        {file: "pf.conf", noDNS: true},
		"-a own -Ef pf.conf":                 {anchor: "own", hold: true, file: "pf.conf"},
		"-X 18446744073709551615":            {release: "18446744073709551615"},
		"-nROf pf.conf":                      {dry: true, file: "pf.conf"},
	} {
		var got pfctl
		if err := got.parse(strings.Fields(line)); err != nil {
			t.Errorf("%s: %v", line, err)
			continue
		}
		if got.file != want.file || got.show != want.show || got.clear != want.clear || got.table != want.table || got.command != want.command ||
			got.iface != want.iface || got.anchor != want.anchor || got.verbose != want.verbose || got.dry != want.dry || got.quiet != want.quiet ||
			got.enable != want.enable || got.hold != want.hold || got.release != want.release || got.debug != want.debug || want.noDNS != got.noDNS || strings.Join(got.kill, " ") != strings.Join(want.kill, " ") ||
			strings.Join(got.forget, " ") != strings.Join(want.forget, " ") || strings.Join(got.words, " ") != strings.Join(want.words, " ") {
			t.Errorf("%s: %+v, want %+v", line, got, want)
		}
	}
	for line, want := range map[string]string{
		"-Q":               "has no option -Q",
		"-f":               "-f must be followed by a value",
		"-s nothing":       "-s takes ether, nat,",
		"-T add 192.0.2.1": "-T must be used with -t TABLE",
		"-t bad":           "-t must be used with -T COMMAND",
		"-T load":          "-T load must be used with -f FILE",
		"-sr 192.0.2.1":    "addresses are for -T",
		"-k a -k b -k c":   "twice at most",
		"-R -f pf.conf":    "-R loads only the filter rules of a file",
		"-Of pf.conf":      "-O loads only the options of a file",
		"-A -f pf.conf":    "-A loads only the queues of a file",
		"-X token":         "-X takes a token that -E has printed",
		"-D x -f pf.conf":  "is not of the form macro=value",
		"-x noisy":         "-x takes none, urgent,",
		"-m -f pf.conf":    "has no option -m: write the option into the rule file",
	} {
		if err := new(pfctl).parse(strings.Fields(line)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", line, err, want)
		}
	}
	for _, test := range [][2]string{
		{"/usr/local/sbin/pfctl -sr", "pfctl -sr"}, {"pfctl", "pfctl"}, {"/usr/bin/weir rules", "rules"}, {"weir", ""},
	} {
		if got := strings.Join(Arguments(strings.Fields(test[0])), " "); got != test[1] {
			t.Errorf("called as %q: %q, want %q", test[0], got, test[1])
		}
	}
}

// Addresses without a word mean the same as for pfctl -k.
func TestParseKill(t *testing.T) {
	v := &state.View{Proto: "tcp"}
	f, err := parseKill([]string{"10.0.0.0/8", "2001:db8::1", "port", "80"})
	if err != nil || len(f.From) != 1 || len(f.To) != 1 || f.Port != 80 || f.Match(v) {
		t.Errorf("%+v, %v", f, err)
	}
	if f, err = parseKill([]string{"proto", "tcp"}); err != nil || f.Empty() || !f.Match(v) {
		t.Errorf("%+v, %v", f, err)
	}
	if f, err = parseKill(nil); err != nil || !f.Empty() {
		t.Errorf("%+v, %v", f, err)
	}
	for _, wrong := range [][]string{{"10.0.0.1", "10.0.0.2", "10.0.0.3"}, {"host"}, {"10.0.0.300"}, {"id", "x"}, {"all"}} {
		if _, err := parseKill(wrong); err == nil {
			t.Errorf("%q is accepted", wrong)
		}
	}
}

func TestParseSession(t *testing.T) {
	s := parseSession("2001:db8::2 50000 2001:db8::1 22")
	if s == nil || s.client.String() != "[2001:db8::2]:50000" || s.server.Port() != 22 {
		t.Errorf("%+v", s)
	}
	s = parseSession("::ffff:192.0.2.2 50000 192.0.2.1 22")
	if s == nil || s.client.String() != "192.0.2.2:50000" {
		t.Errorf("%+v", s)
	}
	for _, wrong := range []string{"", "192.0.2.2 50000", "a b c d", "192.0.2.2 99999 192.0.2.1 22"} {
		if s := parseSession(wrong); s != nil {
			t.Errorf("%q: %+v", wrong, s)
		}
	}
}

// What is said of a change is what pfctl says.
func TestTableSaid(t *testing.T) {
	for _, test := range []struct {
		task   tableTask
		result control.TableResult
		want   string
	}{
		{tableTask{command: control.TableAdd}, control.TableResult{Added: 2, Total: 3, Created: true}, "1 table created.|2/3 addresses added."},
		{tableTask{command: control.TableAdd, dry: true}, control.TableResult{Added: 3, Total: 3}, "3/3 addresses added (dummy)."},
		{tableTask{command: control.TableDelete}, control.TableResult{Deleted: 1, Total: 1}, "1/1 addresses deleted."},
		{tableTask{command: control.TableReplace}, control.TableResult{}, "no changes."},
		{tableTask{command: control.TableReplace}, control.TableResult{Added: 1, Deleted: 2, Changed: 3}, "1 addresses added.|2 addresses deleted.|3 addresses changed."},
		{tableTask{command: control.TableTest}, control.TableResult{Matched: 1, Total: 2}, "1/2 addresses match."},
		{tableTask{command: control.TableExpire}, control.TableResult{Deleted: 4, Total: 4}, "4/4 addresses expired."},
		{tableTask{command: control.TableFlush}, control.TableResult{Deleted: 9}, "9 addresses deleted."},
		{tableTask{command: control.TableKill}, control.TableResult{Deleted: 1}, "1 table deleted."},
		{tableTask{command: control.TableZero}, control.TableResult{Cleared: 1}, "1 table/stats cleared."},
		{tableTask{command: control.TableZero, words: []string{"a"}}, control.TableResult{Cleared: 1, Total: 1}, "1/1 addresses cleared."},
	} {
		if got := strings.Join(test.task.said(&test.result), "|"); got != test.want {
			t.Errorf("%s: %q, want %q", test.task.command, got, test.want)
		}
	}
}

func TestTableUsage(t *testing.T) {
	for _, test := range []struct {
		args   string
		want   string
		status int
	}{
		{"table add 192.0.2.1", "name the table: -t NAME", 2},
		{"table -t " + strings.Repeat("a", 32) + " show", "at most 31 characters", 2},
		{"table -t a@b show", "is no name of a table", 2},
		{"table -t bad show 192.0.2.1", "takes no argument", 2},
		{"table -t bad expire", "name one number of seconds", 2},
		{"table -t bad expire soon", "is no number of seconds", 2},
		{"table -t bad add 192.0.2.1-192.0.2.9", "is not an address", 1},
		{"table -t bad show", "no daemon runs in this network namespace", 1},
		{"kill", "weir flush states ends all", 2},
		{"kill -K host 192.0.2.1 port 1", "nothing is loaded", 1},
		{"flush", "say what", 2},
		{"flush rules", "weir stop removes weir", 1},
		{"flush everything", "flush takes states or sources", 2},
		{"states --sort size", "--sort takes rate, bytes, packets or age", 2},
		{"pfctl -d", "-d would open the box", 1},
		{"pfctl -Fa", "weir stop removes weir", 1},
		{"pfctl -e", "pfctl: nothing is loaded", 1},
		{"pfctl -E", "pfctl: nothing is loaded", 1},
		{"pfctl -X 1", "pfctl: nothing is loaded", 1},
	} {
		stdout, stderr, status := run(t, strings.Fields(test.args)...)
		if status != test.status || stdout != "" || !strings.Contains(stderr, test.want) {
			t.Errorf("weir %s: status %d, stdout %q, stderr %q; want status %d and %q", test.args, status, stdout, stderr, test.status, test.want)
		}
	}
}

// Tables in rules have their number of addresses as pfctl -vv prints it.
func TestTablesWithCounts(t *testing.T) {
	entries := map[string]int{"bad": 3, "own@a/b": 2, "own": 7}
	for text, want := range map[string]string{
		"block drop in quick from <bad> to ! <bad>":                                                "block drop in quick from <bad:3> to ! <bad:3>",
		`pass in from <own> to <none> label "<bad>"`:                                               `pass in from <own:2> to <none:*> label "<bad>"`,
		"pass in proto tcp from any port 1 >< 5 to any port < 9 keep state (overload <bad> flush)": "pass in proto tcp from any port 1 >< 5 to any port < 9 keep state (overload <bad> flush)",
		"pass in all": "pass in all",
	} {
		if got := withCounts(text, "a/b", entries); got != want {
			t.Errorf("%s becomes %s, want %s", text, got, want)
		}
	}
	if got := withCounts("pass from <own> to any", "", entries); got != "pass from <own:7> to any" {
		t.Error(got)
	}
}
