package dataplane

import (
	"errors"
	"fmt"
	"slices"
	"sync/atomic"

	"weir/internal/fw/bpfload"
	"weir/internal/fw/ruleset"
)

// An entry is an attached program with the array of its tail-called programs. Their names
// begin with its own.
type entry struct{ name, tails string }

// entryIngress is TCX ingress. What programs write comes in there alone.
const entryIngress = "weir_tc_in"

var entries = []entry{entryXDP, {entryIngress, "in_tails"}, {"weir_tc_out", "out_tails"}}

var entryXDP = entry{"weir_xdp", "tails"}

// entries are those of this generation.
func (d *Dataplane) entries() []entry {
	if d.config.Spread {
		return append(slices.Clone(entries), entryCore)
	}
	return entries
}

// tailNames holds the suffixes of the programs' names, by enum tail of bpf/hook/tail.h. If
// the owners' program is loaded, it is called in place of miss, and calls miss as
// tailRules.
var tailNames = [...]string{tailMiss, "error", "fragment", "slow", tailCapture, tailFamily, tailProgram, tailEther}

// rareTails are those that are loaded when they are needed.
var rareTails = []string{tailCapture, tailFamily, tailProgram, tailEther}

const (
	tailMiss    = "miss"
	tailCapture = "capture"
	tailOwner   = "owner"
	tailFamily  = "family"
	tailProgram = "program"
	tailEther   = "ether"

	tailRules = len(tailNames)
)

// programStart arms the garbage collection's timer, programQueueStart that of the queues.
// programQueueChange gives a queue other rates, and programQueueHost says of which host a packet is
// that the kernel holds. programImport enters states that user space makes or copies. programReceive
// gives the stack a frame.
const (
	programStart   = "weir_gc_start"
	programImport  = "weir_import"
	programReceive = "weir_receive"

	programQueueStart  = "weir_queue_start"
	programQueueChange = "weir_queue_change"
	programQueueHost   = "weir_queue_host"
)

// The kernel takes long to verify a program. So programs that few users need are loaded
// when they are needed: those of the XDP hook when an interface has it, the capture
// programs when somebody captures, those that look up a packet's user and group when a
// rule asks, those that translate to the other address family, the one that takes packets back
// from programs of divert-packet, and those for frames that meet ether rules.

// initialPrograms returns the programs that Build loads.
func (d *Dataplane) initialPrograms() []string {
	names := []string{programStart}
	if len(d.config.Program.Shapers) > 0 {
		names = append(names, programQueueStart, programQueueChange)
	}
	for _, e := range entries {
		if !d.config.later && (e != entryXDP || d.config.XDP) {
			names = append(names, e.programs(d.rare(false)...)...)
		}
	}
	if d.kept && d.tables.hasPrefetchDevices() {
		names = append(names, programPrefetch)
	}
	return names
}

// programs returns the entry's own program and its tail-called programs: those that it
// always has, and the given rare ones.
func (e entry) programs(rare ...string) []string {
	names := []string{e.name}
	for _, tail := range tailNames {
		if !slices.Contains(rareTails, tail) {
			names = append(names, e.name+"_"+tail)
		}
	}
	for _, tail := range rare {
		if tail == tailProgram && e.name != entryIngress {
			continue
		}
		names = append(names, e.name+"_"+tail)
	}
	return names
}

// rare returns which rare programs packets go through now.
func (d *Dataplane) rare(capture bool) (tails []string) {
	if capture || d.captures() {
		tails = append(tails, tailCapture)
	}
	if d.owners {
		tails = append(tails, tailOwner)
	}
	if d.changesFamily() {
		tails = append(tails, tailFamily)
	}
	if d.copies() {
		tails = append(tails, tailProgram)
	}
	if d.config.Program.Ethers > 0 {
		tails = append(tails, tailEther)
	}
	return tails
}

// ErrOwners is returned (wrapped) if the kernel refuses the programs that look up a
// packet's user and group.
var ErrOwners = errors.New("this kernel cannot look up the sockets of packets, which rules with user or group need (it must have BTF: /sys/kernel/btf/vmlinux)")

// needOwners loads the programs that look up a packet's user and group, if rules ask for
// these. Packets go through them from then on.
func (d *Dataplane) needOwners(p *ruleset.Program) error {
	if d.owners || !p.AsksOwners() {
		return nil
	}
	var names []string
	for _, e := range d.entries() {
		if d.objects.Programs[e.name] != nil {
			names = append(names, e.name+"_"+tailOwner)
		}
	}
	if err := d.need(names...); err != nil {
		return fmt.Errorf("%w: %w", ErrOwners, err)
	}
	d.owners = true
	return nil
}

// captures reports whether packets go through the capture programs. An earlier process
// may have switched that on.
func (d *Dataplane) captures() bool {
	if d.old != nil && d.old.captures() {
		return true
	}
	t := d.tables
	return t != nil && t.shared != nil && atomic.LoadUint32(&t.shared.Recording)&(1<<CaptureRing) != 0
}

// needXDP loads the programs of the XDP hook if an interface is to have it. Its error
// counts as that interface's, as if the driver had refused them. So the interface may be
// attached without XDP.
func (d *Dataplane) needXDP(attachments ...Attachment) error {
	for _, a := range attachments {
		if !a.XDP {
			continue
		}
		if err := d.need(entryXDP.programs(d.rare(false)...)...); err != nil {
			return &AttachError{Attachment: a, Err: &RefusalError{Said: "its programs do not load", Err: err}}
		}
		break
	}
	return nil
}

// needCapture loads the capture programs for the hooks whose other programs are loaded.
func (d *Dataplane) needCapture() error { return d.need(d.capturing()...) }

func (d *Dataplane) capturing() []string {
	var names []string
	for _, e := range d.entries() {
		if d.objects.Programs[e.name] != nil {
			names = append(names, e.programs(d.rare(true)...)...)
		}
	}
	return names
}

// CapturePreparation returns a function that makes the kernel verify the programs that
// SetCapture will need. It takes seconds. The dataplane may be used, or closed,
// meanwhile.
func (d *Dataplane) CapturePreparation() func() error {
	names := d.capturing()
	return func() error { return d.objects.Prepare(names...) }
}

// need loads programs that are not loaded yet, and puts them into their tail-call arrays.
func (d *Dataplane) need(names ...string) error {
	if err := d.objects.Need(names...); err != nil {
		return err
	}
	return d.fillTails()
}

// fillTails puts the loaded programs into their tail-call arrays.
func (d *Dataplane) fillTails() error {
	for _, e := range d.entries() {
		m := d.objects.Maps[e.tails]
		if m == nil {
			return fmt.Errorf("the objects have no map %s", e.tails)
		}
		program := func(tail string) *bpfload.Program { return d.objects.Programs[e.name+"_"+tail] }
		if program(tailOwner) != nil { // first what it calls
			if err := put(m, tailRules, program(tailMiss)); err != nil {
				return err
			}
		}
		for i, tail := range tailNames {
			p := program(tail)
			if tail == tailMiss && program(tailOwner) != nil {
				p = program(tailOwner)
			}
			if p == nil {
				continue
			}
			if err := put(m, i, p); err != nil {
				return err
			}
		}
	}
	return nil
}

func put(m *bpfload.Map, slot int, p *bpfload.Program) error {
	if err := m.Put(uint32(slot), p); err != nil {
		return fmt.Errorf("put %s into %s: %w", p, m, err)
	}
	return nil
}
