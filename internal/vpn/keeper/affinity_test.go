package keeper

import (
	"context"
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"weir/internal/fw/rundir"
	"weir/internal/testenv"
	"weir/internal/vpn/datapath"
	"weir/internal/vpn/tunnel"
	"weir/pf/resolve"
)

// engineOfTest has two workers.
type engineOfTest struct {
	tunnel.Engine
	at [2][]int
}

func (e *engineOfTest) Name() string { return "userspace" }

func (e *engineOfTest) Work() []datapath.Work {
	return []datapath.Work{{Thread: os.Getpid(), Allowed: e.at[0], SentBytes: 5, ReceivedLost: 1}, {Allowed: e.at[1]}}
}

func (e *engineOfTest) SocketLost() uint64 { return 7 }

func (e *engineOfTest) Place(queue int, cores []int) error {
	if queue < 0 || queue >= len(e.at) {
		return datapath.ErrNoWorker
	}
	e.at[queue] = cores
	return nil
}

// Where a worker is to run outlives the process, and can be told and put back without one.
func TestPlacer(t *testing.T) {
	testenv.NeedRoot(t) // nobody else may connect
	folder := rundir.Folder(filepath.Join(t.TempDir(), "run"))
	if err := os.MkdirAll(folder.VPN(), 0o700); err != nil {
		t.Fatal(err)
	}
	p := Placer{Context: t.Context(), Folder: folder}
	if _, err := p.Cores("wg0", 1); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("without a process: %v", err)
	}
	e := &engineOfTest{at: [2][]int{{0}, {0}}}
	k := &keeper{Config: Config{Folder: folder, Log: slog.New(slog.DiscardHandler)}, wanted: resolve.Tunnels{WireGuard: []resolve.WireGuard{{Name: "wg0"}}}}
	r := &running{keeper: k, of: k.wanted.WireGuard[0], engine: e}
	k.tunnels = map[string]*running{"wg0": r}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() { ended <- k.serve(ctx) }()
	for until := time.Now().Add(5 * time.Second); ; time.Sleep(time.Millisecond) {
		if _, err := ReadWork(ctx, folder); err == nil {
			break
		} else if time.Now().After(until) {
			t.Fatal(err)
		}
	}
	all, err := ReadWork(ctx, folder)
	if err != nil || len(all) != 1 || all[0].SocketLost != 7 || len(all[0].Workers) != 2 || all[0].Workers[0].SentBytes != 5 || all[0].Workers[0].ReceivedLost != 1 {
		t.Errorf("%+v, %v", all, err)
	}
	if err := p.Place("wg0", 1, "0-2"); err != nil || !slices.Equal(e.at[1], []int{0, 1, 2}) {
		t.Errorf("%v, %v", e.at, err)
	}
	if cores, err := p.Cores("wg0", 1); err != nil || cores != "0-2" {
		t.Errorf("%q, %v", cores, err)
	}
	for _, wrong := range []func() error{
		func() error { return p.Place("wg1", 0, "0") }, func() error { return p.Place("wg0", 2, "0") },
		func() error { _, err := p.Cores("wg0", 2); return err },
	} {
		if err := wrong(); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("what is not there: %v", err)
		}
	}
	if err := p.Place("wg0", 0, "x"); err == nil || errors.Is(err, fs.ErrNotExist) {
		t.Errorf("no list of cores: %v", err)
	}
	stop()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	if cores, err := p.Cores("wg0", 1); err != nil || cores != "0-2" {
		t.Errorf("after the process: %q, %v", cores, err)
	}
	if err := p.Place("wg0", 1, "1"); err != nil {
		t.Error(err)
	}
	next := &engineOfTest{}
	r.engine = next
	r.placeWorkers()
	if !slices.Equal(next.at[1], []int{1}) || next.at[0] != nil {
		t.Errorf("the next process has %v", next.at)
	}
}
