package doctor

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"strings"

	"weir/internal/host/cpulist"
	"weir/internal/pattern"
)

// ErrForeign is returned, wrapped, for a file in no form that doctor reads. Doctor
// guesses nothing from such a file.
var ErrForeign = errors.New("cannot read this")

// maxBundle limits the size of a file after decompression.
const maxBundle = 64 << 20

// WriteBundle writes a snapshot in the form of docs/doctor-bundle.md: JSON,
// compressed with gzip.
func WriteBundle(w io.Writer, s *Snapshot) error {
	z := gzip.NewWriter(w)
	encoder := json.NewEncoder(z)
	encoder.SetIndent("", " ")
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(s); err != nil {
		return fmt.Errorf("write the bundle: %w", err)
	}
	if err := z.Close(); err != nil {
		return fmt.Errorf("write the bundle: %w", err)
	}
	return nil
}

// readAll reads the whole file and decompresses gzip.
func readAll(r io.Reader) ([]byte, error) {
	text, err := io.ReadAll(io.LimitReader(r, maxBundle+1))
	if err == nil && bytes.HasPrefix(text, []byte{0x1f, 0x8b}) {
		text, err = gunzip(text)
	}
	if err != nil {
		return nil, err
	}
	if len(text) > maxBundle {
		return nil, fmt.Errorf("%w: it has more than %d MiB", ErrForeign, maxBundle>>20)
	}
	return text, nil
}

func gunzip(text []byte) ([]byte, error) {
	z, err := gzip.NewReader(bytes.NewReader(text))
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrForeign, err)
	}
	text, err = io.ReadAll(io.LimitReader(z, maxBundle+1))
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrForeign, err)
	}
	return text, nil
}

// parseBundle refuses unknown names. A misspelt name would otherwise count as a fact that
// was not read.
func parseBundle(text []byte) (*Snapshot, error) {
	var head struct {
		Format  string
		Version int
	}
	if err := json.Unmarshal(text, &head); err != nil {
		return nil, fmt.Errorf("%w: not a bundle of weir doctor: %w", ErrForeign, err)
	}
	if head.Format != Format {
		return nil, fmt.Errorf("%w: JSON, but its format is not %q", ErrForeign, Format)
	}
	if head.Version != Version {
		return nil, fmt.Errorf("%w: a bundle of version %d; this weir reads version %d", ErrForeign, head.Version, Version)
	}
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.DisallowUnknownFields()
	s := new(Snapshot)
	if err := decoder.Decode(s); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrForeign, err)
	}
	if err := s.check(); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrForeign, err)
	}
	return s, nil
}

// mostQueues limits the queues accepted for a card: the kernel's queue numbers have 16
// bits.
const mostQueues = 1 << 16

// check refuses a snapshot that contradicts itself.
func (s *Snapshot) check() error {
	if math.IsNaN(s.Seconds) || s.Seconds < 0 || s.Wished < 0 {
		return fmt.Errorf("%g seconds between the samples", s.Seconds)
	}
	if (s.Before == nil) != (s.After == nil) || s.Before != nil && s.Seconds == 0 {
		return errors.New("two samples, before and after, need the seconds between them")
	}
	seen := map[string]bool{}
	for i := range s.Interfaces {
		n := &s.Interfaces[i]
		if n.Name == "" || seen[n.Name] {
			return fmt.Errorf("an interface's name is invalid or occurs twice: %q", n.Name)
		}
		seen[n.Name] = true
		if count := n.queueCount(); count < 0 || count > mostQueues || n.RxQueues < 0 || n.RxQueues > mostQueues {
			return fmt.Errorf("%s has %d receive queues: more than a card can have, or fewer", n.Name, count)
		}
		for _, list := range n.RPS {
			if _, err := cpulist.Parse(list); err != nil {
				return fmt.Errorf("rps of %s: %w", n.Name, err)
			}
		}
		for _, r := range n.NAPI {
			if r.Thread == nil {
				continue
			}
			if _, err := cpulist.Parse(r.Thread.CPUs); err != nil || r.Thread.CPU < 0 || r.Thread.CPU > cpulist.MaxCPU {
				return fmt.Errorf("the thread of queue %d of %s: cores %q and %d: %w", r.Queue, n.Name, r.Thread.CPUs, r.Thread.CPU, err)
			}
		}
	}
	if err := s.checkNames(); err != nil {
		return err
	}
	if err := s.checkCores(); err != nil {
		return err
	}
	if s.Weir != nil {
		for _, p := range s.Weir.NATPorts {
			if p.Low > p.High {
				return fmt.Errorf("ports from %d to %d", p.Low, p.High)
			}
		}
	}
	for _, irq := range s.IRQs {
		for _, list := range []string{irq.Affinity, irq.Effective} {
			if _, err := cpulist.Parse(list); err != nil {
				return fmt.Errorf("interrupt %d: %w", irq.Number, err)
			}
		}
	}
	return nil
}

// plainName matches names that a shell takes as they are, and no program as an option. Doctor's commands have them unquoted.
var plainName = pattern.New(`^[\pL\pN_.][\pL\pN_.:@+=,%#-]*$`)

// checkNames refuses names that would make another command of a remedy. The kernel allows them.
func (s *Snapshot) checkNames() error {
	var names []string
	for i := range s.Interfaces {
		n := &s.Interfaces[i]
		names = append(names, n.Name, n.Driver, n.Master, n.Parent)
		if n.PCI != nil {
			names = append(names, n.PCI.Address)
		}
	}
	for _, w := range s.Workers {
		names = append(names, w.Name)
	}
	for _, t := range s.Tunnels {
		names = append(names, t.Interface)
	}
	for _, c := range s.Chains {
		names = append(names, strings.Fields(c.Name)...)
	}
	if s.Weir != nil {
		for _, i := range s.Weir.Interfaces {
			names = append(names, i.Name)
		}
		for i := range s.Weir.Sessions {
			names = append(names, s.Weir.Sessions[i].Name, s.Weir.Sessions[i].On)
		}
	}
	for _, c := range []*Counters{s.Before, s.After} {
		if c == nil {
			continue
		}
		for i := range c.VPN {
			names = append(names, c.VPN[i].Interface)
		}
		for i := range c.Qdiscs {
			names = append(names, c.Qdiscs[i].Interface)
		}
	}
	for _, name := range names {
		if name != "" && !plainName.MatchString(name) {
			return fmt.Errorf("the name %q has characters that a shell takes for something else: doctor's commands would not be safe", name)
		}
	}
	return nil
}

// checkCores refuses core numbers that cannot exist, because a mask has no bit for them.
func (s *Snapshot) checkCores() error {
	var ids []int
	for _, c := range s.CPUs {
		ids = append(append(ids, c.ID), c.Siblings...)
	}
	for _, w := range s.Workers {
		ids = append(ids, w.CPU)
	}
	for _, c := range []*Counters{s.Before, s.After} {
		if c == nil {
			continue
		}
		ids = slices.AppendSeq(ids, maps.Keys(c.CPUs))
		ids = slices.AppendSeq(ids, maps.Keys(c.Softnet))
		ids = slices.AppendSeq(ids, maps.Keys(c.Throttle))
		for i := range c.VPN {
			for _, w := range c.VPN[i].Workers {
				if _, err := cpulist.Parse(w.CPUs); err != nil {
					return fmt.Errorf("worker %d of %s: %w", w.Queue, c.VPN[i].Interface, err)
				}
				ids = append(ids, w.CPU)
			}
		}
		for _, by := range c.IRQs {
			ids = slices.AppendSeq(ids, maps.Keys(by))
		}
		for _, by := range c.Softirqs {
			ids = slices.AppendSeq(ids, maps.Keys(by))
		}
	}
	for _, id := range ids {
		if id < 0 || id > cpulist.MaxCPU {
			return fmt.Errorf("core %d: cores are numbered from 0 to %d", id, cpulist.MaxCPU)
		}
	}
	return nil
}
