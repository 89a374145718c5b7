package remote

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os/exec"
	"runtime"
	"strconv"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"weir/internal/bench/iperf"
	"weir/internal/bench/sample"
)

// IPerf3Port is that of a stock iperf3 server.
const IPerf3Port = 5201

// errBothWays says why iperf3 does not measure both directions at once.
var errBothWays = errors.New("iperf3 adds up both directions in one of its figures; a weir bench server tells them apart")

// withIPerf3 measures with a stock iperf3 server. The program iperf3 does it:
// its protocol has no description but its source, and changes with it; and a
// figure of iperf3's is one that anybody can check.
func (m *measured) withIPerf3(ctx context.Context, sampler *sample.Sampler) error {
	tool, err := iperf.Find(ctx)
	if err != nil {
		return err
	}
	m.noProbe = "iperf3 sends no echoes; a weir bench server does"
	return m.interleave(func(e *findings) error {
		if err := sleep(ctx, idleSpan); err != nil {
			return err
		}
		m.begin()
		r, err := m.iperf3Run(ctx, tool, e, sampler)
		if err == nil {
			e.results = append(e.results, r)
		}
		return err
	})
}

// iperf3Run is one run of the program, with what this machine did meanwhile.
func (m *measured) iperf3Run(ctx context.Context, tool *iperf.Tool, e *findings, sampler *sample.Sampler) (*result, error) {
	run := m.request(e)
	watching, stop := context.WithCancel(ctx)
	defer stop()
	r := &result{granted: run}
	var tasks sync.WaitGroup
	var sampling error
	tasks.Go(func() {
		sampling = sampler.Watch(watching, func(p sample.Point) { r.own = append(r.own, p) })
	})
	text, err := runIPerf3(ctx, tool.Path, iperf3Arguments(m.server.Addr().String(), m.server.Port(), &run), run.Omit+run.Count+iperf3Patience)
	stop()
	tasks.Wait()
	if err := errors.Join(err, sampling); err != nil {
		return nil, err
	}
	got, err := iperf.Parse(text)
	if err != nil {
		return nil, err
	}
	d := &direction{
		sent: sent{Bytes: uint64(got.Sent), Packets: uint64(got.Packets), Retransmits: uint64(max(got.Retransmits, 0))},
		received: received{
			Window: time.Duration(got.Seconds * float64(time.Second)), Whole: true, Packets: uint64(got.Packets - got.Lost),
			Jitter: time.Duration(got.Jitter * float64(time.Millisecond)), Series: iperf3Series(text),
		},
	}
	// By whole frames, as this package counts UDP.
	scale := 1.0
	if run.Protocol == UDP {
		scale = float64(run.Frame) / float64(run.Payload)
		d.sent.Held = float64(got.Packets)*float64(run.Frame)*8 < keptUp*run.Rate*got.Seconds
	}
	d.received.Bytes = uint64(got.Rate * scale * got.Seconds / 8)
	for i := range d.received.Series {
		d.received.Series[i] *= scale
	}
	if run.Up {
		r.up = d
	} else {
		r.down = d
	}
	r.full = fullEnds(got, tool.Version.Threads())
	return r, nil
}

// fullEnds are the ends whose iperf3 took all the time that it can use: of one
// core, or of one for each stream. The other side's is taken to be as new as ours.
func fullEnds(got *iperf.Result, threads bool) []string {
	cores := 1
	if threads {
		cores = max(got.Streams, 1)
	}
	var full []string
	for end, percent := range map[string]float64{"here": got.HostCPU, "there": got.RemoteCPU} {
		if percent >= 100*coreFull*float64(cores) {
			full = append(full, "the end: iperf3 "+end+" took all the time of its core")
		}
	}
	return full
}

// iperf3Arguments are those of one run: whole seconds, one at least.
func iperf3Arguments(host string, port uint16, r *Run) []string {
	args := []string{
		"-c", host, "-p", strconv.Itoa(int(port)), "-J", "-t", strconv.Itoa(max(int(r.Count.Round(time.Second).Seconds()), 1)),
		"-O", "1", "--connect-timeout", strconv.Itoa(int(handshakePatience.Milliseconds())),
	}
	if r.Down {
		args = append(args, "-R")
	}
	if r.Protocol == TCP {
		args = append(args, "-P", strconv.Itoa(r.Connections))
		if r.Rate > 0 {
			args = append(args, "-b", strconv.FormatFloat(r.Rate/float64(r.Connections), 'f', 0, 64))
		}
		return args
	}
	// iperf3 counts payload.
	rate := r.Rate * float64(r.Payload) / float64(r.Frame)
	return append(args, "-u", "-l", strconv.Itoa(r.Payload), "-b", strconv.FormatFloat(rate, 'f', 0, 64))
}

// iperf3Patience is what the program may take besides the time of its run.
const iperf3Patience = 30 * time.Second

// runIPerf3 runs the program for as long as patience; it ends with this process,
// however that ends.
func runIPerf3(ctx context.Context, program string, args []string, patience time.Duration) ([]byte, error) {
	// The kernel ends the program with the thread that started it.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.SysProcAttr = &unix.SysProcAttr{Pdeathsig: unix.SIGKILL}
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil && stdout.Len() == 0 {
		return nil, fmt.Errorf("iperf3: %w %s", err, plain(stderr.String()))
	}
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("iperf3 did not end: %w", err)
	}
	return stdout.Bytes(), nil // what went wrong stands in the JSON
}

// iperf3Series are the rates of the intervals that count, in bit/s.
func iperf3Series(text []byte) []float64 {
	var v struct {
		Intervals []struct {
			Sum struct {
				Rate    float64 `json:"bits_per_second"`
				Omitted bool    `json:"omitted"`
			} `json:"sum"`
		} `json:"intervals"`
	}
	if json.Unmarshal(text, &v) != nil {
		return nil
	}
	var series []float64
	for _, i := range v.Intervals {
		if !i.Sum.Omitted && within(i.Sum.Rate, 0, 1e15) {
			series = append(series, i.Sum.Rate)
		}
	}
	return series
}
