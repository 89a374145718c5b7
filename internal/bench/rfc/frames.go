package rfc

import (
	"context"
	"fmt"
	"math"

	"weir/internal/bench/tester"
	"weir/internal/bench/traffic"
	"weir/internal/units"
)

const (
	// lowest is the lowest rate that a search tries, in frames per second.
	lowest = 1000
	// probeFrames is the number of frames that measure the generator's speed.
	probeFrames = 200_000
	// tolerance is the share of loss allowed in the second throughput. A machine
	// loses a few frames by itself now and then, and that must not decide the result.
	tolerance = 0.001
	mega      = 1e6
)

func (b *bench) udp(frame int) traffic.Case {
	return traffic.Case{Frame: frame, Flows: b.o.Flows, Family: 4, Protocol: traffic.UDP}
}

// stamped returns the same case with room for a time stamp.
func (b *bench) stamped(frame int) traffic.Case {
	c := b.udp(frame)
	c.Frame = traffic.StampedSize(frame, c)
	return c
}

func frameSizes(o *Options) []int { return o.Frames }

// line returns the highest rate at which the generator can send such frames.
func (b *bench) line(ctx context.Context, r *tester.Tester, frame int, stamps bool) (float64, error) {
	key := lineKey{frame, stamps}
	if rate := b.lines[key]; rate > 0 {
		return rate, nil
	}
	const more = 100e6 // more than the generator can send
	o, err := r.Send(ctx, tester.Load{Rate: more, Frames: probeFrames, Stamps: stamps})
	if err != nil {
		return 0, err
	}
	if o.Offered < lowest {
		return 0, fmt.Errorf("the generator sent %v frames per second, which is too few to measure with", o.Offered)
	}
	b.lines[key] = o.Offered
	return o.Offered, nil
}

// keptUp is the share of a rate that the generator has to reach.
const keptUp = 0.97

// offer sends frames for the length of a trial, or for a share of it.
func (b *bench) offer(ctx context.Context, r *tester.Tester, l tester.Load, share float64) (tester.Outcome, error) {
	l.Frames = uint32(min(max(l.Rate*b.o.Trial.Seconds()*share, 100), math.MaxUint32))
	return b.send(ctx, r, l, l.Rate)
}

// throughput searches for the highest rate whose loss is within the limit.
func (b *bench) throughput(ctx context.Context, r *tester.Tester, frame int, loss float64, l tester.Load, f *finding) (Found, error) {
	return b.searches(r, frame, l, f).find(ctx, loss)
}

// searches finds rates for the same frames on the same path, one after the other. Each
// allows more loss than the one before.
type searches struct {
	bench   *bench
	tester  *tester.Tester
	frame   int
	load    tester.Load
	finding *finding
	sent    map[float64]float64 // what the generator sent, by rate
	before  Found
}

func (b *bench) searches(r *tester.Tester, frame int, l tester.Load, f *finding) *searches {
	return &searches{bench: b, tester: r, frame: frame, load: l, finding: f, sent: map[float64]float64{}}
}

func (s *searches) find(ctx context.Context, loss float64) (Found, error) {
	o := s.bench.o
	line, err := s.bench.line(ctx, s.tester, s.frame, s.load.Stamps)
	if err != nil {
		return Found{}, err
	}
	goal := Goal{Loss: loss, Precision: o.Precision, Tries: o.Tries}
	trial := func(rate float64) (float64, error) {
		s.load.Rate = rate
		o, err := s.bench.offer(ctx, s.tester, s.load, 1)
		s.finding.foreign = max(s.finding.foreign, o.Foreign)
		s.finding.illegal += o.Illegal
		s.sent[rate] = o.Offered
		return o.Loss(), err
	}
	var found Found
	if len(s.sent) > 0 {
		found, err = s.before.Further(lowest, line, goal, trial)
	} else {
		found, err = SearchFrom(s.bench.start(line), lowest, line, goal, trial)
		s.bench.learn(found)
	}
	s.before = found
	// If the generator fell behind, the trial says nothing about that rate.
	if sent := s.sent[found.Rate]; sent > 0 && sent < keptUp*found.Rate {
		found.Rate, found.Step, found.Bound = sent, 0, true
	}
	return found, err
}

// limit names the generator if it was the limit.
func (f *Found) limit() string {
	if f.Bound {
		return limitGenerator
	}
	return ""
}

// nothing explains a search that found no rate.
func (f *Found) nothing(what string) string {
	return fmt.Sprintf("%s at every rate down to 1,000 per second: the search ended after %s", what, units.Plural(f.Trials, "trial"))
}

func measureThroughput(ctx context.Context, b *bench, path string, frame int) (f finding, err error) {
	err = b.with(ctx, path, b.udp(frame), func(r *tester.Tester) error {
		search := b.searches(r, frame, tester.Load{}, &f)
		none, err := search.find(ctx, 0)
		if err != nil {
			return err
		}
		if none.Rate == 0 {
			f.invalid = none.nothing("frames were lost")
			return nil
		}
		some, err := search.find(ctx, tolerance)
		if err != nil {
			return err
		}
		f.figures = []figure{
			none.figure("throughput", "Mpps", 1/mega),
			some.figure("with 0.1 % loss", "Mpps", 1/mega),
			none.figure("bit rate", "Gbit/s", float64(frame)*8/1e9),
		}
		f.limit = none.limit()
		return nil
	})
	return f, err
}

func measureLatency(ctx context.Context, b *bench, path string, frame int) (f finding, err error) {
	c := b.stamped(frame)
	err = b.with(ctx, path, c, func(r *tester.Tester) error {
		found, err := b.throughput(ctx, r, c.Frame, tolerance, tester.Load{Stamps: true}, &f)
		if err != nil || found.Rate == 0 {
			f.invalid = found.nothing("over 0.1 % of frames were lost")
			return err
		}
		f.limit = found.limit()
		full, err := b.offer(ctx, r, tester.Load{Rate: found.Rate, Stamps: true}, 2)
		if err != nil {
			return err
		}
		half, err := b.offer(ctx, r, tester.Load{Rate: max(found.Rate/2, lowest), Stamps: true}, 2)
		if err != nil {
			return err
		}
		if full.Arrived == 0 || half.Arrived == 0 {
			f.invalid = "no frame arrived"
			return nil
		}
		f.figures = latencyFigures(&half.Latency, &full.Latency)
		for _, p := range half.Latency.CDF() {
			p.Value /= 1000
			f.spread = append(f.spread, p)
		}
		return nil
	})
	return f, err
}

// latencyFigures returns figures in µs.
func latencyFigures(half, full *traffic.Latency) []figure {
	return []figure{
		less("median at half throughput", "µs", half.Quantile(0.5)/1000),
		less("p99 at half throughput", "µs", half.Quantile(0.99)/1000),
		less("p99.9 at half throughput", "µs", half.Quantile(0.999)/1000),
		less("mean at throughput", "µs", full.Mean/1000),
		less("p99 at throughput", "µs", full.Quantile(0.99)/1000),
	}
}

// measureLoss offers 100 %, 90 % and so on of the generator's rate, until two rates in a
// row lose nothing.
func measureLoss(ctx context.Context, b *bench, path string, frame int) (f finding, err error) {
	err = b.with(ctx, path, b.udp(frame), func(r *tester.Tester) error {
		line, err := b.line(ctx, r, frame, false)
		if err != nil {
			return err
		}
		for percent, clean := 100, 0; percent > 0 && clean < 2; percent -= 10 {
			rate := max(line*float64(percent)/100, lowest)
			o, err := b.offer(ctx, r, tester.Load{Rate: rate}, 1)
			if err != nil {
				return err
			}
			f.foreign = max(f.foreign, o.Foreign)
			f.curve = append(f.curve, xy{float64(percent), o.Loss() * 100})
			if clean++; o.Arrived < o.Sent {
				clean = 0
			}
			if percent == 100 {
				f.figures = []figure{less("loss at the highest rate", "%", o.Loss()*100)}
			}
		}
		return nil
	})
	return f, err
}

// measureBackToBack searches for the longest burst at full speed without loss.
func measureBackToBack(ctx context.Context, b *bench, path string, frame int) (f finding, err error) {
	err = b.with(ctx, path, b.udp(frame), func(r *tester.Tester) error {
		line, err := b.line(ctx, r, frame, false)
		if err != nil {
			return err
		}
		longest := max(line*b.o.Trial.Seconds(), 2)
		found, err := Search(1, longest, Goal{Precision: 0.05, Tries: b.o.Tries}, func(burst float64) (float64, error) {
			o, err := b.send(ctx, r, tester.Load{Frames: uint32(burst)}, line)
			f.foreign = max(f.foreign, o.Foreign)
			return o.Loss(), err
		})
		burst := found.figure("longest burst", "frames", 1)
		burst.value = math.Floor(found.Rate)
		f.take(&found, "not even single frames came through in "+units.Plural(found.Trials, "trial"), burst, found.figure("time of it", "ms", 1000/line))
		return err
	})
	return f, err
}

// searchSeconds estimates the time of a search with building the path, which takes 2 s
// for weir. The number of trials and their overhead were measured on two cores.
func searchSeconds(o *Options) float64 {
	return 2 + 1.25*math.Log2(1/o.Precision)*float64(1+o.Tries)/2*(o.Trial.Seconds()+0.15)
}

// latencySeconds estimates a search and two trials of twice the length.
func latencySeconds(o *Options) float64 { return searchSeconds(o) + 4*o.Trial.Seconds() }

func rfc2544() Standard {
	return Standard{
		Name: "rfc2544", Frames: true, Title: "RFC 2544: frames through a router",
		About: "how many frames per second are forwarded without loss, how long they take, how many are lost at higher rates, and how long a burst may be",
		Tests: []Test{
			{Name: "throughput", Title: "Throughput", Where: "RFC 2544, section 26.1", unit: "bytes", variants: frameSizes,
				About:   "The highest rate at which no frame is lost, by search.",
				seconds: searchSeconds, measure: measureThroughput},
			{Name: "latency", Title: "Latency", Where: "RFC 2544, section 26.2", unit: "bytes", variants: frameSizes,
				About:   "Every frame carries the time at which it was sent; at the throughput of 0.1 % loss, and at half of it.",
				seconds: latencySeconds, measure: measureLatency},
			{Name: "loss", Title: "Frame loss rate", Where: "RFC 2544, section 26.3", unit: "bytes", variants: frameSizes,
				About:   "The share of frames that are lost at 100 %, 90 % and so on of what the generator can send, until nothing is lost twice in a row.",
				seconds: func(o *Options) float64 { return 1.5 + 6*(o.Trial.Seconds()+0.1) }, measure: measureLoss},
			{Name: "back-to-back", Title: "Back-to-back frames", Where: "RFC 2544, section 26.4, and RFC 9004", unit: "bytes", variants: frameSizes,
				About:   "The longest burst, as fast as the generator can send, of which no frame is lost.",
				seconds: searchSeconds, measure: measureBackToBack},
		},
		Differs: []string{
			"Frames go one way, from the LAN to the internet, to 4,096 hosts from 64; RFC 2544 also asks for both ways at once.",
			"No wire limits the speed: the highest rate is what the generator can send, and a path that reaches it is limited by the generator.",
			"A rate that loses frames is tried again, up to three times in all (once with --full), because other programs on the machine also cause losses; a second throughput allows 0.1 %.",
			"Every frame carries a stamp, not one; latency is that of the wire's two ends, stored and forwarded; system recovery and reset are not tested.",
		},
	}
}
