package keeper

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"net"
	"net/http"
	"path/filepath"
	"slices"

	"weir/internal/fw/rundir"
	"weir/internal/host/cpulist"
	"weir/internal/host/doctor"
	"weir/internal/host/filelock"
	"weir/internal/host/proc"
	"weir/internal/vpn/datapath"
)

// workers is an engine with workers of its own.
type workers interface {
	Work() []datapath.Work
	SocketLost() uint64
	Place(queue int, cores []int) error
}

// places says on which cores workers are to run, by placeKey. They are on disk for the next process, until
// the next boot.
type places map[string]string

func placeKey(tunnel string, queue int) string { return fmt.Sprintf("%s:%d", tunnel, queue) }

func placesFile(f rundir.Folder) string { return filepath.Join(f.VPN(), "affinity.json") }

func readPlaces(f rundir.Folder) (places, error) {
	p := places{}
	err := rundir.ReadJSON(placesFile(f), &p)
	if errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	return p, err
}

// placeWorkers has the workers of an engine run where they are to.
func (t *running) placeWorkers() {
	e, ok := t.engine.(workers)
	if !ok {
		return
	}
	all, err := readPlaces(t.keeper.Folder)
	if err != nil {
		t.keeper.Log.Warn("read where workers are to run", "error", err)
	}
	for queue := range e.Work() {
		list, placed := all[placeKey(t.of.Name, queue)]
		if !placed {
			continue
		}
		cores, err := cpulist.Parse(list)
		if err == nil {
			err = e.Place(queue, cores)
		}
		if err != nil {
			t.keeper.Log.Warn("have a worker run where it is to", "interface", t.of.Name, "worker", queue, "error", err)
		}
	}
}

// placement is what POST /affinity asks for.
type placement struct {
	Interface string `json:"interface"`
	Queue     int    `json:"queue"`
	Cores     string `json:"cores"`
}

// place has a worker run on some cores, and remembers that. The error is fs.ErrNotExist if there is none.
func (k *keeper) place(p placement) error {
	cores, err := cpulist.Parse(p.Cores)
	if err != nil {
		return err
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	t := k.tunnels[p.Interface]
	if t == nil || t.engine == nil {
		return fmt.Errorf("tunnel %s: %w", p.Interface, fs.ErrNotExist)
	}
	e, ok := t.engine.(workers)
	if !ok {
		return fmt.Errorf("a worker of %s: %w: its engine is the %s's", p.Interface, fs.ErrNotExist, t.engine.Name())
	}
	if err := e.Place(p.Queue, cores); errors.Is(err, datapath.ErrNoWorker) {
		return fmt.Errorf("worker %d of %s: %w", p.Queue, p.Interface, fs.ErrNotExist)
	} else if err != nil {
		return err
	}
	return remember(k.Folder, p)
}

// remember writes where a worker is to run.
func remember(f rundir.Folder, p placement) error {
	all, err := readPlaces(f)
	if err != nil {
		return err
	}
	all[placeKey(p.Interface, p.Queue)] = p.Cores
	return rundir.WriteJSON(placesFile(f), all)
}

// taskFolder has the threads of this process.
const taskFolder = "/proc/self/task"

// counts tells what the tunnels have carried, by whom and where.
func (k *keeper) counts() []doctor.VPNCount {
	k.mu.Lock()
	defer k.mu.Unlock()
	all := []doctor.VPNCount{}
	for i := range k.wanted.WireGuard {
		if t := k.tunnels[k.wanted.WireGuard[i].Name]; t.engine != nil {
			all = append(all, t.count())
		}
	}
	return all
}

func (t *running) count() doctor.VPNCount {
	c := doctor.VPNCount{Interface: t.of.Name, Engine: t.engine.Name(), Via: t.via(), Workers: []doctor.VPNWorker{}}
	e, ok := t.engine.(workers)
	if !ok {
		return c
	}
	c.SocketLost = e.SocketLost()
	for queue, w := range e.Work() {
		n := doctor.VPNWorker{
			Queue: queue, Thread: w.Thread, CPUs: cpulist.Format(w.Allowed),
			SentPackets: w.SentPackets, SentBytes: w.SentBytes, SentLost: w.SentLost,
			ReceivedPackets: w.ReceivedPackets, ReceivedBytes: w.ReceivedBytes, ReceivedLost: w.ReceivedLost,
		}
		if ticks, core, err := proc.Process(taskFolder, w.Thread); err == nil { // else it has just ended
			n.Ticks, n.CPU = ticks, core
		}
		c.Workers = append(c.Workers, n)
	}
	return c
}

// via returns the interfaces that packets to the peers leave by.
func (t *running) via() []string {
	names, ways := map[string]bool{}, newCards()
	for _, s := range t.states {
		if !s.Endpoint.IsValid() {
			continue
		}
		if i, err := net.InterfaceByIndex(ways.indexTo(&s, t.of.Port)); err == nil { // else no route leads there now
			names[i.Name] = true
		}
	}
	return slices.Sorted(maps.Keys(names))
}

// serveAffinity answers who asks where the workers run, and moves them.
func (k *keeper) serveAffinity(mux *http.ServeMux) {
	mux.HandleFunc("GET /affinity", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		json.NewEncoder(w).Encode(k.counts()) //nolint:errcheck // the other end has gone
	})
	mux.HandleFunc("POST /affinity", func(w http.ResponseWriter, r *http.Request) {
		var p placement
		err := json.NewDecoder(r.Body).Decode(&p)
		if err == nil {
			err = k.place(p)
		}
		switch {
		case errors.Is(err, fs.ErrNotExist):
			http.Error(w, err.Error(), http.StatusNotFound)
		case err != nil:
			http.Error(w, err.Error(), http.StatusBadRequest)
		default:
			k.Log.Info("a worker runs elsewhere", "interface", p.Interface, "worker", p.Queue, "cores", p.Cores)
		}
	})
}

// ReadWork asks the process that keeps the tunnels what they have carried, by whom and where.
func ReadWork(ctx context.Context, f rundir.Folder) (all []doctor.VPNCount, err error) {
	err = ask(ctx, f, http.MethodGet, "/affinity", nil, &all)
	return all, err
}

// A Placer tells where workers run, and moves them, for weir affinity. Without the process it knows where the next
// one will have them.
type Placer struct {
	Context context.Context //nolint:containedctx // of the command that uses it
	Folder  rundir.Folder
}

// Cores returns the cores that a worker may run on. The error is fs.ErrNotExist if there is none.
func (p Placer) Cores(tunnel string, queue int) (string, error) {
	all, err := ReadWork(p.Context, p.Folder)
	if errors.Is(err, ErrNotRunning) {
		return p.recorded(tunnel, queue)
	}
	if err != nil {
		return "", err
	}
	for i := range all {
		for _, w := range all[i].Workers {
			if all[i].Interface == tunnel && w.Queue == queue {
				return w.CPUs, nil
			}
		}
	}
	return "", fs.ErrNotExist
}

func (p Placer) recorded(tunnel string, queue int) (string, error) {
	all, err := readPlaces(p.Folder)
	if err != nil {
		return "", err
	}
	cores, placed := all[placeKey(tunnel, queue)]
	if !placed {
		return "", fs.ErrNotExist
	}
	return cores, nil
}

// Place has a worker run on some cores.
func (p Placer) Place(tunnel string, queue int, cores string) error {
	place := placement{tunnel, queue, cores}
	text, err := json.Marshal(place)
	if err != nil {
		return err
	}
	err = ask(p.Context, p.Folder, http.MethodPost, "/affinity", bytes.NewReader(text), nil)
	if !errors.Is(err, ErrNotRunning) {
		return err
	}
	lock, err := filelock.File(filepath.Join(p.Folder.VPN(), "lock"), filelock.Try) // else it has just begun
	if err != nil {
		return err
	}
	defer lock.Close()
	return remember(p.Folder, place)
}
