package db_test

import (
	"encoding/csv"
	"os"
	"strings"
	"testing"

	"weir/internal/host/tune/db"
	"weir/internal/testenv"
)

func load(t *testing.T) *db.DB {
	t.Helper()
	d, err := db.Load()
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// TestRows checks that each row of the table of the guides' settings is one record, and
// that no record has a row that the table does not have.
func TestRows(t *testing.T) {
	file, err := os.Open(testenv.Shared(t, "tunables.csv"))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	rows, err := csv.NewReader(file).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	type row struct{ key, os, value string }
	records := map[row]int{}
	for _, r := range load(t).Records {
		if r.Row != nil {
			records[row{r.Key, r.Row.OS, r.Row.Value}]++
		}
	}
	if len(rows) < 2 || strings.Join(rows[0][:4], ",") != "os,name,default,recommended" {
		t.Fatalf("the table begins with %q", rows[0])
	}
	for _, r := range rows[1:] {
		at := row{r[1], r[0], r[3]}
		if records[at] != 1 {
			t.Errorf("%q has %d records", at, records[at])
		}
		delete(records, at)
	}
	for at := range records {
		t.Errorf("the table has no row %q", at)
	}
}

// TestReferences checks that conflicting and replacing keys are in the database, so
// nobody is sent to a key that explain does not know.
func TestReferences(t *testing.T) {
	d := load(t)
	for _, r := range d.Records {
		for _, other := range r.Conflicts {
			if d.ByKey(other) == nil {
				t.Errorf("%s: conflicts with %s, which has no record", r.Key, other)
			}
		}
		if r.Renamed != "" && d.Match(strings.Replace(r.Renamed, ".N.", ".0.", 1)) == nil {
			t.Errorf("%s: its heir %s has no record", r.Key, r.Renamed)
		}
	}
}

// TestWriteWhole checks that the text never claims that weir sets what it refuses or does
// not set.
func TestWriteWhole(t *testing.T) {
	d := load(t)
	for key, want := range map[string]string{
		"hw.pci.enable_msix": "\n  refused for  0\n", "hw.ix.flow_control": "\n  said of      0\n",
		"net.ipv4.tcp_tw_reuse": "", "net.ipv4.ip_early_demux": "\n  weir sets    0\n",
	} {
		for _, r := range d.Match(key) {
			var b strings.Builder
			if err := d.Entry(r).WriteWhole(&b); err != nil {
				t.Fatal(err)
			}
			text := b.String()
			if !strings.Contains(text, want) || strings.Contains(text, "weir sets") != strings.Contains(want, "weir sets") {
				t.Errorf("%s: want %q:\n%s", key, want, text)
			}
		}
	}
}

// TestSentences checks that texts are whole sentences, because they are printed as they
// are.
func TestSentences(t *testing.T) {
	for _, r := range load(t).Records {
		for _, s := range []string{r.Rationale, r.Risk, r.Reason} {
			switch {
			case s == "":
			case r.Account == db.Elsewhere && !strings.HasPrefix(s, "not a router's business: "):
				t.Errorf("%s: %q does not say whose business it is", r.Key, s)
			case r.Account != db.Elsewhere && !strings.HasSuffix(s, "."):
				t.Errorf("%s: %q ends without a full stop", r.Key, s)
			}
		}
	}
}

func TestByKey(t *testing.T) {
	d := load(t)
	if got := len(d.ByKey("net.inet.ip.redirect")); got != 2 {
		t.Errorf("net.inet.ip.redirect has %d records, want FreeBSD's and pfSense's", got)
	}
	if got := d.ByKey("net.inet.ip.nonsense"); got != nil {
		t.Errorf("nonsense: %v", got)
	}
	for key, want := range map[string]string{"dev.igb.3.fc": "dev.igb.N.fc", "dev.ixl.0.iflib.rx_budget": "dev.igb.N.iflib.rx_budget", "hw.em.txd": "hw.igb.txd", "hw.vtnet.0.lro_disable": "hw.vtnet.lro_disable", "-vlanhwtso": "-tso -vlanhwtso", "-lro": "-lro"} {
		if got := d.Match(key); len(got) != 1 || got[0].Key != want {
			t.Errorf("%s: %v, want %s", key, got, want)
		}
	}
	if got := d.Match("hw.igb.0.rxd"); got != nil { // only vtnet(4) has such keys for one card
		t.Errorf("hw.igb.0.rxd: %s", got[0].Key)
	}
	for _, r := range d.Match("dev.igb.3.nonsense") {
		if r.System == "freebsd" {
			t.Errorf("nonsense of a device: %s", r.Key)
		}
	}
	for key, want := range map[string]string{
		"vfs.zfs.arc_max": "vfs.zfs.*", "vfs.nfs.x": "vfs.*", "hw.ix.enable_aim": "hw.ix.enable_aim", "hw.ix.rxd": "hw.igb.rxd",
		"net.ipv4.conf.eth0.rp_filter": "net.ipv4.conf.*.rp_filter", "net.ipv4.tcp_rmem": "net.ipv4.tcp_rmem", "net.ipv4.tcp_collapse_max_bytes": "net.ipv4.tcp_*",
	} {
		if got := d.Match(key); len(got) != 1 || got[0].Key != want {
			t.Errorf("%s: %v, want %s", key, got, want)
		}
	}
	// weir's own measurement proved no effect, so the evidence is the kernel's
	// document.
	if r := d.ByKey("net.ipv4.ip_early_demux")[0]; r.Grade() != db.Vendor || !r.Evidence[0].Unproven {
		t.Errorf("ip_early_demux: grade %s, %+v", r.Grade(), r.Evidence)
	}
	r := d.ByKey("net.inet.ip.maxfragpackets")[0]
	if r.Account != db.Refused || !strings.Contains(r.Reason, "EDNS") {
		t.Errorf("maxfragpackets: %s, %s", r.Account, r.Reason)
	}
	if p := d.Place(r); p.Persistence != "runtime" {
		t.Errorf("its place: %+v", p)
	}
}

// TestHardeningIsDocumented checks that the page has a row for each setting of a guide that
// weir's own path has something to say about.
func TestHardeningIsDocumented(t *testing.T) {
	page, err := os.ReadFile("../../../../docs/tune.md")
	if err != nil {
		t.Fatal(err)
	}
	d, err := db.Load()
	if err != nil {
		t.Fatal(err)
	}
	seen := 0
	for _, r := range d.Records {
		if r.Weir == "" || r.Row == nil {
			continue
		}
		if seen++; !strings.Contains(string(page), "`"+r.Key+"`") {
			t.Errorf("docs/tune.md has no %s", r.Key)
		}
	}
	if seen < 15 {
		t.Errorf("only %d settings say what weir does", seen)
	}
}
