package dataplane

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"weir/internal/fw/shaper"
	"weir/internal/oracle/shares"
)

// Random trees and traffic get what the slow model says.
func TestQueueShares(t *testing.T) {
	for seed := range uint64(12) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			r := rand.New(rand.NewPCG(seed, 1))
			compareShares(t, r, randomTree(r))
		})
	}
}

// randomTree returns a tree of up to three levels, at a rate of 1 Mbit/s to 10 Gbit/s.
func randomTree(r *rand.Rand) shaper.Shaper {
	rate := uint64(math.Pow(10, 5+4*r.Float64()))
	s := shaper.Shaper{Interface: "wan0", Link: shaper.Link{Known: true}, Classes: []shaper.Class{
		{Name: "root", Parent: -1, Weight: 1, Max: shaper.Rate{Bytes: rate}},
	}}
	priorities := r.IntN(3) == 0
	for parent := 0; parent < len(s.Classes) && len(s.Classes) < 12; parent++ {
		if parent > 0 && r.IntN(3) > 0 {
			continue
		}
		n := 2 + r.IntN(4)
		s.Classes[parent].First, s.Classes[parent].Children = len(s.Classes), n
		sure := float64(rate) * 0.8
		if parent > 0 {
			sure = float64(s.Classes[parent].Min.Bytes)
		}
		for range n {
			c := shaper.Class{Name: fmt.Sprint("c", len(s.Classes)), Parent: parent, Weight: 1 + uint32(r.IntN(9))}
			if r.IntN(2) == 0 {
				c.Min.Bytes = uint64(sure / float64(n) * r.Float64())
			}
			if r.IntN(3) == 0 {
				c.Max.Bytes = max(c.Min.Bytes, uint64(float64(rate)*(0.05+r.Float64())))
			}
			if priorities {
				c.Priority = uint8(r.IntN(4))
			}
			s.Classes = append(s.Classes, c)
		}
	}
	return s
}

func compareShares(t *testing.T, r *rand.Rand, s shaper.Shaper) {
	h := newQueueHarness(t, 1000, s)
	rate := float64(s.Classes[0].Max.Bytes)
	offered := make([]float64, len(s.Classes))
	senders := make([][]*sender, len(s.Classes))
	number := uint32(1)
	var all []*sender
	for i := range s.Classes {
		if s.Classes[i].Children > 0 || r.IntN(6) == 0 {
			continue
		}
		for range 1 + r.IntN(6) {
			f := &sender{flow: flow{number: number, host: uint64(r.IntN(4)), queue: s.Classes[i].Name, bytes: uint32(64 + r.IntN(1400))}}
			f.rate = 8 * rate * math.Pow(10, -2*r.Float64())
			offered[i] += f.rate / 8
			senders[i] = append(senders[i], f)
			all = append(all, f)
			number++
		}
	}
	const settle, length = 3 * time.Second, 4 * time.Second
	offerAll(h, settle, all)
	for _, f := range all {
		f.passed = 0
	}
	offerAll(h, length, all)
	want := shares.Of(&s, offered)
	sum := 0.0
	for i := range s.Classes {
		if s.Classes[i].Children > 0 {
			continue
		}
		got := total(senders[i], length) / 8
		sum += got
		if diff := math.Abs(got - want[i]); diff > 0.02*want[i]+0.003*rate+3000 {
			t.Errorf("class %s gets %.4f of the rate, want %.4f (offered %.4f; %+v)", s.Classes[i].Name, got/rate, want[i]/rate, offered[i]/rate, s.Classes[i])
		}
	}
	if math.Abs(sum-want[0]) > 0.01*want[0]+3000 {
		t.Errorf("all get %.4f of the rate, want %.4f", sum/rate, want[0]/rate)
	}
}

// Hosts of a class share it equally, and connections their host's part: one with many
// connections gets no more.
func TestQueueHosts(t *testing.T) {
	const rate = 100_000_000
	for name, fair := range map[string]shaper.Fairness{"host-flow": shaper.FairHostFlow, "flow": shaper.FairFlow, "host": shaper.FairHost} {
		t.Run(name, func(t *testing.T) {
			s := oneClass(rate)
			s.Classes[0].Fair = fair
			h := newQueueHarness(t, 1000, s)
			number := uint32(1)
			var all []*sender
			hosts := make([][]*sender, 3)
			for host, n := range []int{1, 4, 20} {
				for range n {
					f := &sender{flow: flow{number: number, host: uint64(host + 1), bytes: 1000}, rate: rate}
					hosts[host], all, number = append(hosts[host], f), append(all, f), number+1
				}
			}
			const length = 5 * time.Second
			offerAll(h, 2*time.Second, all)
			for _, f := range all {
				f.passed = 0
			}
			offerAll(h, length, all)
			for host, n := range []float64{1, 4, 20} {
				want := 1 / 3.0
				if fair == shaper.FairFlow {
					want = n / 25
				}
				got := total(hosts[host], length) / rate
				if math.Abs(got-want) > 0.02*want+0.002 {
					t.Errorf("host %d with %.0f connections gets %.4f, want %.4f", host+1, n, got, want)
				}
				if fair == shaper.FairHost {
					continue
				}
				for _, f := range hosts[host] {
					if each := f.passedRate(length) / rate; math.Abs(each-want/n) > 0.05*want/n+0.001 {
						t.Errorf("a connection of host %d gets %.4f, want %.4f", host+1, each, want/n)
					}
				}
			}
		})
	}
}
