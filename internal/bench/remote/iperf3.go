package remote

import (
	"bytes"
	"context"
	"fmt"
	"os/exec"
	"runtime"
	"strconv"
	"time"

	"golang.org/x/sys/unix"

	"weir/internal/bench/iperf"
)

const (
	// IPerf3Port is the port of a stock iperf3 server.
	IPerf3Port = 5201
	// iperf3Slack is how long iperf3 may take beyond its time, to connect, end and
	// exchange results.
	iperf3Slack = 10 * time.Second
	// keptUp is the share of the due datagrams that a sender has to send.
	keptUp = 0.97
)

// direction is one direction of a run. UDP rates count whole frames.
type direction struct {
	Bytes       uint64        // bytes that arrived
	Window      time.Duration // time in which they were counted
	Series      []float64     // bit/s of each interval, as the client's iperf3 measured
	Packets     uint64        // UDP: sent
	Lost        uint64
	Reordered   uint64
	Jitter      time.Duration // RFC 3550, section 6.4.1
	Retransmits uint64        // TCP segments
	Held        bool          // the sender did not keep up with the rate
}

// rate returns what arrived in bit/s.
func (d *direction) rate() float64 {
	if d.Window <= 0 {
		return 0
	}
	return float64(d.Bytes) * 8 / d.Window.Seconds()
}

// loss returns the share of UDP datagrams that did not arrive.
func (d *direction) loss() float64 {
	if d.Packets == 0 {
		return 0
	}
	return float64(d.Lost) / float64(d.Packets)
}

// traffic runs the client's iperf3 and stores its results.
func (r *result) traffic(ctx context.Context, tool *iperf.Tool, host string, port uint16) error {
	run := &r.granted
	text, err := runIPerf3(ctx, tool.Path, run.clientArguments(host, port), run.time()+iperf3Slack)
	if err != nil {
		return err
	}
	got, err := iperf.Parse(text)
	if err != nil {
		return fmt.Errorf("%s", plain(err.Error()))
	}
	ahead, back := iperf.Series(text)
	r.up = run.direction(got, ahead)
	switch {
	case run.Direction == Down:
		r.up, r.down = nil, r.up
	case run.Direction == Both && got.Back == nil:
		return fmt.Errorf("iperf3 %s did not measure both directions", tool.Version)
	case run.Direction == Both:
		r.down = run.direction(got.Back, back)
	}
	r.process, r.remote = got.HostCPU/100*got.Seconds, got.RemoteCPU/100*got.Seconds
	r.full = fullEnds(got, tool.Version.Threads())
	return nil
}

// direction converts iperf3's counts of payload to whole frames.
func (r *Run) direction(got *iperf.Result, series []float64) *direction {
	scale := 1.0
	if r.Protocol == UDP {
		scale = float64(r.Frame) / float64(r.Payload)
	}
	d := &direction{
		Bytes: uint64(got.Rate * scale * got.Seconds / 8), Window: time.Duration(got.Seconds * float64(time.Second)),
		Packets: uint64(got.Packets), Lost: uint64(max(got.Lost, 0)), Reordered: uint64(got.Reordered),
		Jitter: time.Duration(got.Jitter * float64(time.Millisecond)), Retransmits: uint64(max(got.Retransmits, 0)),
	}
	for _, v := range series {
		d.Series = append(d.Series, v*scale)
	}
	d.Held = r.Protocol == UDP && float64(got.Packets)*float64(r.Frame)*8 < keptUp*float64(r.Rate)*got.Seconds
	return d
}

// fullEnds returns the ends whose iperf3 used all the time it can: that of one core, or
// of one for each stream. It assumes that the other side has our version.
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

func seconds(d time.Duration) string { return strconv.Itoa(int(d / time.Second)) }

// clientArguments returns the arguments of the client's iperf3.
func (r *Run) clientArguments(host string, port uint16) []string {
	interval := max(250*time.Millisecond, r.time()/100).Seconds()
	args := []string{
		"-c", host, "-p", strconv.Itoa(int(port)), "-J", "-t", seconds(r.Count), "-O", seconds(r.Omit),
		"-i", strconv.FormatFloat(interval, 'f', 2, 64), "--connect-timeout", strconv.Itoa(int(handshakePatience.Milliseconds())),
	}
	switch r.Direction {
	case Both:
		args = append(args, "--bidir")
	case Down:
		args = append(args, "-R")
	}
	if r.Protocol == TCP {
		args = append(args, "-P", strconv.Itoa(r.Connections))
		if r.Rate > 0 {
			args = append(args, "-b", strconv.FormatFloat(float64(r.Rate)/float64(r.Connections), 'f', 0, 64))
		}
		return args
	}
	// iperf3 counts payload.
	rate := float64(r.Rate) * float64(r.Payload) / float64(r.Frame)
	return append(args, "-u", "-l", strconv.Itoa(r.Payload), "-b", strconv.FormatFloat(rate, 'f', 0, 64))
}

// serverArguments returns the arguments of the server's iperf3: one test, on one address,
// within the limit. iperf3 ends a test that exceeds the limit for a second.
func (r *Run) serverArguments(bind string, port uint16, bounded bool) []string {
	args := []string{"-s", "-1", "-J", "-p", strconv.Itoa(int(port)), "-B", bind}
	if bounded {
		const tolerance = 1.25 // for bursts
		args = append(args, "--server-bitrate-limit", strconv.FormatFloat(r.total()*tolerance, 'f', 0, 64)+"/1")
	}
	return args
}

// runIPerf3 runs iperf3 for at most the given time and returns what it printed. The
// kernel kills it when this process ends.
func runIPerf3(ctx context.Context, program string, args []string, patience time.Duration) ([]byte, error) {
	// The signal comes when the thread that started the program ends.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	limited, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	cmd := exec.CommandContext(limited, program, args...)
	cmd.SysProcAttr = &unix.SysProcAttr{Pdeathsig: unix.SIGKILL}
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	err := cmd.Run()
	switch {
	case ctx.Err() != nil:
		return nil, context.Cause(ctx)
	case limited.Err() != nil:
		return nil, fmt.Errorf("iperf3 did not end within %s", patience)
	case err != nil && stdout.Len() == 0:
		return nil, fmt.Errorf("iperf3: %w %s", err, plain(stderr.String()))
	}
	return stdout.Bytes(), nil // the JSON says what failed
}
