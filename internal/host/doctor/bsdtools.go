package doctor

import (
	"fmt"
	"strconv"
	"strings"

	"weir/internal/pattern"
)

// BSD is what FreeBSD's tools tell of a machine.
type BSD struct {
	Cores      []BSDCore         `json:"cores,omitzero"`      // top -P
	Threads    []BSDThread       `json:"threads,omitzero"`    // top -H, without idle ones
	Interrupts map[string]uint64 `json:"interrupts,omitzero"` // vmstat -i: since the start, by name
	Mbufs      *Mbufs            `json:"mbufs,omitempty"`     // netstat -m; nil: not read
}

// BSDCore is how a core spent its time, in percent.
type BSDCore struct {
	ID        int     `json:"id"`
	User      float64 `json:"user"` // with nice
	System    float64 `json:"system"`
	Interrupt float64 `json:"interrupt"`
	Idle      float64 `json:"idle"`
}

// BSDThread is a thread with its share of a core's time, in percent.
type BSDThread struct {
	Name string  `json:"name"` // "intr{irq264: igb0:rxq0}"
	Time float64 `json:"time"`
}

// Mbufs are the buffers that packets wait in.
type Mbufs struct {
	Clusters int    `json:"clusters"` // in use and kept
	Max      int    `json:"max"`
	Denied   uint64 `json:"denied"` // requests since the start
	Delayed  uint64 `json:"delayed"`
}

var (
	bsdCore     = pattern.New(`^CPU (\d+):\s+([\d.]+)% user,\s+([\d.]+)% nice,\s+([\d.]+)% system,\s+([\d.]+)% interrupt,\s+([\d.]+)% idle$`)
	bsdThread   = pattern.New(`^\s*\d+\s+\S+(?:\s+\S+){3,}\s+([\d.]+)%\s+(\S.*)$`)
	bsdIRQ      = pattern.New(`^((?:irq\d+|cpu\d+|stray irq\d+)\S*(?: \S+)*)\s+(\d+)\s+(\d+)$`)
	bsdClusters = pattern.New(`^\d+/\d+/(\d+)/(\d+) mbuf clusters in use \(current/cache/total/max\)$`)
	bsdRequests = pattern.New(`^([\d/]+) requests for (?:mbufs|jumbo clusters) (denied|delayed) \(.*\)$`)
	// Lines without a relevant figure.
	bsdOther = pattern.New(`^(?:last pid:.*|\d+ (?:processes|threads):.*|(?:Mem|ARC|Swap|CPU):.*|\s+[\d.]+[KMGT]? \w+.*|\s*PID\s+USERNAME.*|` +
		`interrupt\s+total\s+rate|Total\s+\d+\s+\d+|[\d/K]+ (?:mbufs?|mbuf\+clusters|4k|9k|16k|bytes|requests|sfbufs|sendfile|pages|bogus|truncated)\b.*)$`)
)

// readBSDTools reads the outputs of FreeBSD's top -P (with -H or -S), vmstat -i and netstat -m,
// one or several, one after the other.
func readBSDTools(text string) (*Snapshot, error) {
	b := &BSD{Interrupts: map[string]uint64{}}
	stray := ""
	for number, line := range lines(text) {
		line = strings.TrimRight(line, " ")
		switch core, irq, clusters, requests, thread := bsdCore.FindStringSubmatch(line), bsdIRQ.FindStringSubmatch(line), bsdClusters.FindStringSubmatch(line), bsdRequests.FindStringSubmatch(line), bsdThread.FindStringSubmatch(line); {
		case core != nil:
			b.Cores = append(b.Cores, BSDCore{ID: whole(core[1]), User: decimal(core[2]) + decimal(core[3]), System: decimal(core[4]), Interrupt: decimal(core[5]), Idle: decimal(core[6])})
		case clusters != nil:
			b.mbufs().Clusters, b.mbufs().Max = whole(clusters[1]), whole(clusters[2])
		case requests != nil:
			for n := range strings.SplitSeq(requests[1], "/") {
				if requests[2] == "denied" {
					b.mbufs().Denied += uint64(whole(n))
				} else {
					b.mbufs().Delayed += uint64(whole(n))
				}
			}
		case irq != nil:
			b.Interrupts[irq[1]] = uint64(whole(irq[2]))
		case thread != nil:
			if !strings.HasPrefix(thread[2], "idle") && !strings.HasPrefix(thread[2], "[") { // [intr] is all its threads, without -H
				b.Threads = append(b.Threads, BSDThread{Name: thread[2], Time: decimal(thread[1])})
			}
		case !bsdOther.MatchString(line) && stray == "":
			stray = fmt.Sprintf("line %d: %q", number, line)
		}
	}
	switch {
	case len(b.Cores)+len(b.Interrupts) == 0 && b.Mbufs == nil:
		return nil, errOther
	case stray != "":
		return nil, fmt.Errorf("%s does not belong there", stray)
	}
	s := &Snapshot{BSD: b}
	s.Host.System = "FreeBSD"
	return s, nil
}

func (b *BSD) mbufs() *Mbufs {
	if b.Mbufs == nil {
		b.Mbufs = &Mbufs{}
	}
	return b.Mbufs
}

// decimal returns a number that a pattern matched.
func decimal(digits string) float64 {
	f, err := strconv.ParseFloat(digits, 64)
	if err != nil {
		return 0
	}
	return f
}
