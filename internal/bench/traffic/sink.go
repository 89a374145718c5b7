package traffic

import (
	"errors"
	"fmt"
	"time"

	"weir/internal/bench/testbed"
	"weir/internal/fw/bpfload"
)

// sink is a program at the frames' far end, and the map in which it counts.
type sink struct {
	objects *bpfload.Objects
	link    *bpfload.Link
	memory  *bpfload.Memory
}

// load loads a compiled program of this package. what names it in errors.
func load(what string, compiled func() (*bpfload.Spec, error), o bpfload.Options) (*bpfload.Objects, error) {
	spec, err := compiled()
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", what, err)
	}
	objects, err := bpfload.Load([]*bpfload.Spec{spec}, o)
	if err != nil {
		return nil, fmt.Errorf("load %s: %w", what, err)
	}
	return objects, nil
}

// newSink makes a sink from loaded objects. It also returns the map with the program's
// counts, one value for each core.
func newSink[T any](objects *bpfload.Objects, counts string) (k sink, values []T, err error) {
	k.objects = objects
	if k.memory, err = bpfload.MapMemory(objects.Maps[counts]); err == nil {
		values, err = bpfload.Values[T](k.memory)
	}
	if err != nil {
		return k, nil, errors.Join(err, k.Close())
	}
	return k, values, nil
}

// attach attaches the sink, and closes it if that fails.
func (k *sink) attach(b *testbed.Testbed, p testbed.Place, hook bpfload.Hook, program string) (err error) {
	if k.link, err = b.Attach(p, hook, k.objects.Programs[program]); err != nil {
		return errors.Join(err, k.Close())
	}
	return nil
}

func (k *sink) Close() error {
	var errs []error
	if k.link != nil {
		errs = append(errs, testbed.Detach(k.link))
	}
	if k.memory != nil {
		errs = append(errs, k.memory.Close())
	}
	return errors.Join(append(errs, k.objects.Close())...)
}

// waitUntilStill waits until no more frames arrive. If none has come yet, the core that takes
// them may not have had its turn on a busy machine.
func waitUntilStill(count func() uint64) {
	const pause = 2 * time.Millisecond
	for last, tries := count(), 0; tries < 100; tries++ {
		time.Sleep(pause)
		now := count()
		if now == last && now > 0 {
			return
		}
		last = now
	}
}
