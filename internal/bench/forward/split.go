package forward

import (
	"errors"
	"fmt"

	"weir/internal/bench/profile"
	"weir/internal/bench/testbed"
	"weir/internal/bench/traffic"
	"weir/internal/missing"
)

// leastSamples is the number of samples in a run below which shares are chance.
const leastSamples = 50

// nameSamples divides the time of a frame among the stages in proportion to the samples,
// and names the functions of each sample.
func (r *run) nameSamples(res *result) error {
	own, err := r.setup.Testbed.IngressProgram(testbed.NearDoor)
	if err != nil {
		return err
	}
	m, err := profile.NewMap(own)
	if err != nil {
		return err
	}
	if len(res.stacks) < leastSamples {
		return missing.Errorf("only %d samples of the core were taken: the kernel's timer does not sample it", len(res.stacks))
	}
	res.split = map[string]float64{}
	for stage, n := range m.Split(res.stacks) {
		res.split[stage] = 1000 / res.mpps * float64(n) / float64(len(res.stacks))
	}
	for _, stack := range res.stacks {
		res.calls = append(res.calls, m.Functions(stack))
	}
	return nil
}

// runSampled runs the generators and samples the core, if requested.
func (r *run) runSampled(gs []*traffic.Generator, frames []uint32) ([]profile.Stack, error) {
	if r.sampler == nil {
		return nil, traffic.RunAll(gs, frames)
	}
	if err := r.sampler.Start(); err != nil {
		return nil, err
	}
	err := traffic.RunAll(gs, frames)
	stacks, lost, stopping := r.sampler.Stop()
	if err := errors.Join(err, stopping); err != nil {
		return nil, err
	}
	if lost > len(stacks)/100 {
		return nil, fmt.Errorf("sample the core: %d of %d samples were lost", lost, lost+len(stacks))
	}
	return stacks, nil
}
