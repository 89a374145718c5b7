package collect

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"weir/internal/host/doctor"
)

// TestKernelLog reads records of /dev/kmsg: those of the kernel that doctor knows, without programs' and without lines of
// what they are about.
func TestKernelLog(t *testing.T) {
	var l doctor.Log
	for _, record := range []string{
		"4,100,60000000,-;nf_conntrack: nf_conntrack: table full, dropping packet\n SUBSYSTEM=net\n",
		"4,101,61000000,-;nf_conntrack: nf_conntrack: table full, dropping packet\n",
		"30,102,62000000,-;nf_conntrack: table full, says a program\n",
		"6,103,63000000,-;eth0: renamed from veth1\n",
		"nonsense",
	} {
		addRecord(&l, record, 100)
	}
	ago := 39.0
	if diff := cmp.Diff([]doctor.Message{{Text: "nf_conntrack: nf_conntrack: table full, dropping packet", Count: 2, LastHour: 2, Ago: &ago}}, l.Messages()); diff != "" {
		t.Error(diff)
	}
	file := filepath.Join(t.TempDir(), "kmsg")
	if _, err := kernelLog(file, 100); !os.IsNotExist(err) {
		t.Error(err)
	}
	if err := os.WriteFile(file, []byte("4,100,60000000,-;TCP: too many orphaned sockets\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	got, err := kernelLog(file, 100)
	if ago = 40; err != nil || len(got) != 1 || got[0].Ago == nil || *got[0].Ago != ago {
		t.Errorf("%v: %+v", err, got)
	}
}
