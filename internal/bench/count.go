package bench

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"strings"

	"weir/internal/fw/bpfload"
)

// countSink counts frames at the end of the way.
type countSink struct {
	objects  *bpfload.Objects
	link     *bpfload.Link
	memory   *bpfload.Memory
	counters []countCounter
}

func newCountSink(w *way, back bool) (*countSink, error) {
	objects, err := loadCountObjectsFor(w, nil)
	if err != nil {
		return nil, err
	}
	k := &countSink{objects: objects}
	if k.memory, err = bpfload.MapMemory(objects.Maps["counters"]); err != nil {
		return nil, errors.Join(err, k.close())
	}
	if k.counters, err = bpfload.Values[countCounter](k.memory); err != nil {
		return nil, errors.Join(err, k.close())
	}
	if w.egress() {
		k.link, err = w.net.attach(w.exit(back), bpfload.Egress, objects.Programs["count_egress"])
	} else {
		k.link, err = w.net.attach(w.end(back), bpfload.XDP, objects.Programs["count"])
	}
	if err != nil {
		return nil, errors.Join(err, k.close())
	}
	return k, nil
}

func (k *countSink) close() error {
	var errs []error
	if k.link != nil {
		errs = append(errs, detach(k.link))
	}
	if k.memory != nil {
		errs = append(errs, k.memory.Close())
	}
	return errors.Join(append(errs, k.objects.Close())...)
}

// reset forgets what was counted. No frames may be under way.
func (k *countSink) reset() {
	clear(k.counters)
}

// window is what a sink saw on one core.
type window struct {
	frames  uint64  // all of them
	seconds float64 // from the first time stamp to the last
	rate    float64 // frames per second between them; 0: too few came
}

// on is what was counted on one core.
func (k *countSink) on(core int) window {
	c := k.counters[core]
	w := window{frames: c.Frames}
	if ns := c.LastNs - c.FirstNs; c.LastNs > c.FirstNs {
		w.seconds = float64(ns) / 1e9
		w.rate = float64(c.LastFrames-c.FirstFrames) / w.seconds
	}
	return w
}

// windows gives what was counted on the cores that saw frames.
func (k *countSink) windows() []window {
	var seen []window
	for core := range k.counters {
		if w := k.on(core); w.frames > 0 {
			seen = append(seen, w)
		}
	}
	return seen
}

// loadCountObjectsFor loads the object with the sinks and the programs of the
// door.
func loadCountObjectsFor(w *way, values map[string]any) (*bpfload.Objects, error) {
	object, err := loadCount()
	if err != nil {
		return nil, fmt.Errorf("read the counting programs: %w", err)
	}
	kind := &frameSpec{ipv6: w.c.ipv6(), tcp: w.data(false)}
	all := map[string]any{"ethertype": kind.ethertype(), "protocol": kind.protocol()}
	for name, value := range values {
		all[name] = value
	}
	objects, err := bpfload.Load([]*bpfload.Spec{object}, bpfload.Options{
		Entries: map[string]uint32{"counters": possibleCores()}, Values: all,
	})
	if err != nil {
		return nil, fmt.Errorf("load the counting programs: %w", err)
	}
	return objects, nil
}

// attach attaches a program to a device of the lab.
func (n *network) attach(p place, hook bpfload.Hook, program *bpfload.Program) (*bpfload.Link, error) {
	var link *bpfload.Link
	err := n.lab.Do(p.host, func() error {
		var err error
		link, err = bpfload.Attach(program, hook, n.indexes[p])
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("%s in %s: %w", p.device, n.lab.Namespace(p.host), err)
	}
	return link, nil
}

func detach(l *bpfload.Link) error { return errors.Join(l.Detach(), l.Close()) }

// possibleCores is one more than the highest number a core can have.
func possibleCores() uint32 {
	b, err := os.ReadFile("/sys/devices/system/cpu/possible")
	if err == nil {
		list := strings.TrimSpace(string(b))
		last := list[strings.LastIndexAny(list, "-,")+1:]
		if n, err := strconv.Atoi(last); err == nil {
			return uint32(n) + 1
		}
	}
	return uint32(runtime.NumCPU())
}

// frameBytes are the bytes of a frame that a program stored as words.
func frameBytes(stored []uint64) []byte {
	var b []byte
	for _, w := range stored {
		b = binary.NativeEndian.AppendUint64(b, w)
	}
	return b
}
