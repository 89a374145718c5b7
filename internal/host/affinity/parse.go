package affinity

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"weir/internal/host/cpulist"
	"weir/internal/host/doctor"
	"weir/internal/host/tune"
)

// Parse reads the arguments of weir affinity set, and checks them against the host:
//
//	eth1:3=2            queue 3 of eth1 is received on core 2
//	eth1=0-3            its queues in turn, one core each
//	irq41=2             an interrupt
//	eth1:0/rps=0-3      the stack spreads its packets over these cores; none: over none
//	eth1:0/xps=0        these cores send through it
//	eth1/threaded=on    it receives in threads
//	eth1/queues=4       the number of queues that it uses
//	wg0:1=3             worker 1 of a tunnel of weir vpn run
//	wg0=0-3             its workers in turn, one core each
func Parse(words []string, s *doctor.Snapshot) ([]tune.Change, error) {
	var all []tune.Change
	for _, word := range words {
		changes, err := parseOne(word, s)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", word, err)
		}
		all = append(all, changes...)
	}
	return all, nil
}

var errForm = errors.New("want eth1:3=2, eth1=0-3, irq41=2, eth1:0/rps=0-3, eth1:0/xps=0, eth1/threaded=on or eth1/queues=4")

func parseOne(word string, s *doctor.Snapshot) ([]tune.Change, error) {
	what, value, found := strings.Cut(word, "=")
	if !found || what == "" || value == "" {
		return nil, errForm
	}
	what, kind, _ := strings.Cut(what, "/")
	name, number, hasQueue := cutQueue(what)
	queue := 0
	if hasQueue {
		var err error
		if queue, err = strconv.Atoi(number); err != nil || queue < 0 {
			return nil, errForm
		}
	}
	if irq, isIRQ := strings.CutPrefix(what, "irq"); isIRQ && kind == "" && !hasQueue {
		if n, err := strconv.Atoi(irq); err == nil {
			return parseIRQ(n, value, s)
		}
	}
	i := slices.IndexFunc(s.Interfaces, func(i doctor.Interface) bool { return i.Name == name })
	if i < 0 {
		return nil, fmt.Errorf("there is no interface %q", name)
	}
	if kind == "queues" || kind == "threaded" {
		if hasQueue {
			return nil, errForm
		}
		return parseDevice(name, kind, value)
	}
	cpus, err := coresOf(value, s)
	if err != nil {
		return nil, err
	}
	switch {
	case (kind == "rps" || kind == "xps") && hasQueue:
		if have := queuesOf(&s.Interfaces[i], kind); have > 0 && queue >= have {
			return nil, fmt.Errorf("%s has %d queues for %s, from 0 on", name, have, kind)
		}
		return one(tune.QueueKey{Interface: name, What: kind, Queue: queue}, cpulist.Format(cpus)), nil
	case kind != "" || len(cpus) == 0:
		return nil, errForm
	case isTunnel(name, s):
		return placeWorkers(name, queue, hasQueue, cpus, s)
	case hasQueue:
		k, err := receiverOf(name, queue, s)
		return one(k, cpulist.Format(cpus)), err
	}
	return inTurn(name, cpus, s)
}

// workersOf returns the workers of a tunnel of weir vpn run.
func workersOf(name string, s *doctor.Snapshot) []doctor.VPNWorker {
	if s.After == nil {
		return nil
	}
	if i := slices.IndexFunc(s.After.VPN, func(c doctor.VPNCount) bool { return c.Interface == name }); i >= 0 {
		return s.After.VPN[i].Workers
	}
	return nil
}

func isTunnel(name string, s *doctor.Snapshot) bool { return len(workersOf(name, s)) > 0 }

// placeWorkers assigns cores to one worker of a tunnel, or one core to each in turn.
func placeWorkers(name string, queue int, one bool, cpus []int, s *doctor.Snapshot) (all []tune.Change, err error) {
	for _, w := range workersOf(name, s) {
		k := tune.QueueKey{Interface: name, What: tune.Worker, Queue: w.Queue}
		switch {
		case !one:
			all = append(all, tune.Change{Key: k.String(), To: strconv.Itoa(cpus[len(all)%len(cpus)])})
		case w.Queue == queue:
			all = append(all, tune.Change{Key: k.String(), To: cpulist.Format(cpus)})
		}
	}
	if len(all) == 0 {
		return nil, fmt.Errorf("%s has no worker %d", name, queue)
	}
	return all, nil
}

// queuesOf returns the number of an interface's queues with a mask of a kind, 0 if unknown.
func queuesOf(i *doctor.Interface, kind string) int {
	if kind == "xps" {
		return i.TxQueues
	}
	return max(len(i.RPS), i.RxQueues)
}

// cutQueue finds the queue's number after the last colon, because an alias may also have
// one.
func cutQueue(what string) (name, number string, found bool) {
	i := strings.LastIndexByte(what, ':')
	if i < 0 {
		return what, "", false
	}
	return what[:i], what[i+1:], true
}

func parseDevice(name, kind, value string) ([]tune.Change, error) {
	switch {
	case kind == "queues":
		if n, err := strconv.Atoi(value); err != nil || n < 1 {
			return nil, fmt.Errorf("%q queues: want a number from 1", value)
		}
	case value == "on":
		value = "1"
	case value == "off":
		value = "0"
	default:
		return nil, errors.New("want on or off")
	}
	return one(tune.QueueKey{Interface: name, What: kind}, value), nil
}

// coresOf reads a list of online cores; "none" is the empty list.
func coresOf(value string, s *doctor.Snapshot) ([]int, error) {
	if value == "none" {
		return nil, nil
	}
	cpus, err := cpulist.Parse(value)
	if err != nil {
		return nil, err
	}
	for _, id := range cpus {
		if !slices.ContainsFunc(s.CPUs, func(c doctor.CPU) bool { return c.ID == id }) {
			return nil, fmt.Errorf("there is no online cpu%d", id)
		}
	}
	return cpus, nil
}

func parseIRQ(number int, value string, s *doctor.Snapshot) ([]tune.Change, error) {
	i := slices.IndexFunc(s.IRQs, func(irq doctor.IRQ) bool { return irq.Number == number })
	if i < 0 {
		return nil, fmt.Errorf("interrupt %d belongs to no interface of this network namespace", number)
	}
	cpus, err := coresOf(value, s)
	if err == nil && len(cpus) == 0 {
		err = errForm
	}
	return one(interruptKey(&s.IRQs[i]), cpulist.Format(cpus)), err
}

// one returns a single change.
func one(k tune.QueueKey, to string) []tune.Change {
	return []tune.Change{{Key: k.String(), To: to}}
}

func interruptKey(irq *doctor.IRQ) tune.QueueKey {
	return tune.QueueKey{Interface: irq.Interface, What: string(doctor.KindIRQ), IRQ: irq.Number, Name: irq.Name}
}

// receiverOf returns the key that decides where a queue is received: its interrupt's, or
// its thread's.
func receiverOf(name string, queue int, s *doctor.Snapshot) (tune.QueueKey, error) {
	for _, p := range doctor.Affinities(s).Queues {
		if p.Interface != name || p.Queue != queue {
			continue
		}
		if p.Thread {
			return tune.QueueKey{Interface: name, What: string(doctor.KindThread), Queue: queue}, nil
		}
		if i := slices.IndexFunc(s.IRQs, func(irq doctor.IRQ) bool { return irq.Number == p.IRQ }); p.IRQ > 0 && i >= 0 {
			return interruptKey(&s.IRQs[i]), nil
		}
		return tune.QueueKey{}, fmt.Errorf("queue %d of %s has neither an interrupt nor a thread: the core that sends to it also receives; see %s/threaded=on and %s:%d/rps", queue, name, name, name, queue)
	}
	return tune.QueueKey{}, fmt.Errorf("%s has no queue %d, or is down", name, queue)
}

// inTurn assigns the cores to an interface's queues in turn.
func inTurn(name string, cpus []int, s *doctor.Snapshot) (all []tune.Change, err error) {
	for _, p := range doctor.Affinities(s).Queues {
		if p.Interface != name {
			continue
		}
		k, err := receiverOf(name, p.Queue, s)
		if err != nil {
			return nil, err
		}
		all = append(all, one(k, strconv.Itoa(cpus[len(all)%len(cpus)]))...)
	}
	if len(all) == 0 {
		return nil, fmt.Errorf("the queues of %s are unknown, or it is down", name)
	}
	return all, nil
}
