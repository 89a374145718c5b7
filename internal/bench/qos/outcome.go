package qos

import (
	"weir/internal/bench/iperf"
	"weir/internal/bench/probe"
)

// outcome is one run of a scene on a path.
type outcome struct {
	scene          *scene
	up, down       *arrivals // from the beginning of the data to their end
	results        []*iperf.Result
	idle, loaded   *probe.Delays
	sparse, oneWay *probe.Delays
	rpm            [2]float64      // down, up
	busy           map[int]float64 // share of each core
	spent          float64         // seconds of all cores
	interrupts     float64         // seconds of all cores
}

// frame is the TCP payload of a full frame.
const frame = 1448

// goodput returns bit/s of TCP's data in one direction.
func (o *outcome) goodput(down bool) (rate float64) {
	for i, f := range o.scene.flows {
		if f.down == down {
			rate += o.results[i].Rate
		}
	}
	return rate
}

// gigabits returns what arrived in both directions.
func (o *outcome) gigabits() float64 { return (o.up.all().sum() + o.down.all().sum()) * 8 / 1e9 }

// settledFlows returns the connections after their start, each in the direction of its data.
// Those of a scene in both directions are compared with each other in each.
func (o *outcome) settledFlows() (flows []series) {
	for i, f := range o.scene.flows {
		from := o.up
		if f.down {
			from = o.down
		}
		s := from.flows[i]
		flows = append(flows, s.between(settled, bin*1<<30))
	}
	return flows
}

// tcpLoss returns the per cent of segments that were sent again.
func (o *outcome) tcpLoss() float64 {
	var again, sent float64
	for _, r := range o.results {
		again += float64(max(r.Retransmits, 0))
		sent += r.Sent / frame
	}
	if sent == 0 {
		return 0
	}
	return 100 * again / sent
}

// bbrShare returns what BBR has of all, compared with its part of the connections.
func (o *outcome) bbrShare() float64 {
	var its, all, connections float64
	for i, f := range o.settledFlows() {
		all += f.sum()
		if o.scene.flows[i].congestion == bbr {
			its += f.sum()
			connections++
		}
	}
	return its / all / (connections / float64(len(o.scene.flows)))
}

// marks returns the per cent of packets that arrived with CE.
func (o *outcome) marks() float64 {
	var marked, all float64
	for i := range o.scene.flows {
		marked, all = marked+o.up.marked[i], all+o.up.frames[i]
	}
	if all == 0 {
		return 0
	}
	return 100 * marked / all
}

// added returns how many milliseconds a quantile of the loaded round trips is above the
// median of the idle ones.
func (o *outcome) added(quantile float64) float64 {
	return o.loaded.Millis.Quantile(quantile) - o.idle.Millis.Quantile(0.5)
}
