package traffic

import (
	"errors"
	"time"

	"weir/internal/bench/testbed"
	"weir/internal/fw/bpfload"
)

// sink is a program at their far end and the map that it counts in.
type sink struct {
	objects *bpfload.Objects
	link    *bpfload.Link
	memory  *bpfload.Memory
}

// newSink makes a sink of what was loaded, and gives what its program counts,
// one value for each core.
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

// attach lets frames come to the sink; it is closed if they cannot.
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

// waitUntilStill waits until no more frames come.
func waitUntilStill(count func() uint64) {
	const pause = 2 * time.Millisecond
	for last, tries := count(), 0; tries < 100; tries++ {
		time.Sleep(pause)
		now := count()
		if now == last {
			return
		}
		last = now
	}
}
