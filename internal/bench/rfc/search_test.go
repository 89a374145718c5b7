package rfc

import (
	"errors"
	"math"
	"math/rand/v2"
	"testing"

	"weir/internal/stats"
)

var strict = Goal{Precision: 0.01, Tries: 1}

// device carries up to a limit and loses the rest, and always a certain share.
func device(limit, always float64) Trial {
	return func(rate float64) (float64, error) {
		return max(always, 1-limit/rate), nil
	}
}

// TestSearchMonotone finds the limit of devices that have one.
func TestSearchMonotone(t *testing.T) {
	for _, limit := range []float64{1_000, 1_234, 50_000, 777_777, 3_000_000, 9_999_999} {
		f, err := Search(1_000, 10_000_000, strict, device(limit, 0))
		if err != nil {
			t.Fatal(err)
		}
		if f.Rate > limit || f.Rate < limit*0.989 || f.Bound {
			t.Errorf("limit %v: found %+v", limit, f)
		}
		if f.Step <= 0 || f.Rate+f.Step < limit || f.Step > 0.0101*(f.Rate+f.Step) {
			t.Errorf("limit %v: found %v, and that %v more is too much", limit, f.Rate, f.Step)
		}
		if f.Trials > 8 {
			t.Errorf("limit %v: %d trials", limit, f.Trials)
		}
	}
}

// TestSearchFrom finds the same limit from every start, and takes few trials from a start
// near it.
func TestSearchFrom(t *testing.T) {
	const lowest, highest, limit = 1_000, 10_000_000, 500_000
	for start, most := range map[float64]int{1: 40, 100_000: 20, 0.92 * limit: 9, 0.999 * limit: 4, 1.05 * limit: 10, highest: 10, 2 * highest: 10} {
		f, err := SearchFrom(start, lowest, highest, strict, device(limit, 0))
		if err != nil || f.Rate > limit || f.Rate+f.Step < limit || f.Step > 0.0101*limit || f.Bound || f.Trials > most {
			t.Errorf("from %v: %+v, %v; want %v in %d trials at most", start, f, err, limit, most)
		}
	}
	f, err := SearchFrom(0.9*highest, lowest, highest, strict, device(2*highest, 0))
	if err != nil || !f.Bound || f.Rate != highest {
		t.Errorf("a fast device: %+v, %v", f, err)
	}
	if f, err := SearchFrom(limit, lowest, highest, strict, device(lowest/2, 0)); err != nil || f.Rate != 0 {
		t.Errorf("a slow device: %+v, %v", f, err)
	}
}

// TestSearchStarts: results neither move nor come closer together if runs start at what
// earlier runs found. The device's limit is different in each run.
func TestSearchStarts(t *testing.T) {
	const limit, noise, runs = 500_000.0, 0.05, 2000
	results := map[bool]stats.Sample{}
	for _, learns := range []bool{false, true} {
		random := rand.New(rand.NewPCG(5, 6))
		b := &bench{earlier: &stats.Sample{}, random: random}
		for range runs {
			of := device(limit*(1+noise*random.NormFloat64()), 0)
			f, err := SearchFrom(b.start(10_000_000), 1_000, 10_000_000, Goal{Precision: 0.02, Tries: 1}, of)
			if err != nil {
				t.Fatal(err)
			}
			results[learns] = append(results[learns], f.Rate)
			if b.learn(f); !learns || len(*b.earlier) > 5 {
				b.earlier = &stats.Sample{}
			}
		}
	}
	spread := func(s stats.Sample) float64 { return math.Sqrt(s.Variance()) }
	if a, b := spread(results[false]), spread(results[true]); b < 0.93*a || b > 1.07*a {
		t.Errorf("spread %v without, %v with earlier runs", a, b)
	}
	if a, b := results[false].Mean(), results[true].Mean(); math.Abs(a-b) > 0.01*limit {
		t.Errorf("mean %v without, %v with earlier runs", a, b)
	}
	last, covariance := results[true], 0.0
	for i := 1; i < len(last); i++ {
		covariance += (last[i] - last.Mean()) * (last[i-1] - last.Mean())
	}
	if r := covariance / last.Variance() / float64(len(last)-1); math.Abs(r) > 0.06 {
		t.Errorf("a run's result follows the one before: correlation %v", r)
	}
}

// TestSearchFurther: a goal that allows more loss finds the same rate as a search of its
// own, and repeats almost no trials.
func TestSearchFurther(t *testing.T) {
	const highest = 10_000_000
	loose := Goal{Loss: 0.1, Precision: 0.01, Tries: 2}
	for _, test := range []struct {
		name         string
		device       Trial
		limit, trial float64 // limit at which a tenth is lost, and the trials allowed for it
		bound        bool
	}{
		{"a sharp limit", func(rate float64) (float64, error) { return map[bool]float64{true: 0.6}[rate > 500_000], nil }, 500_000, 0, false},
		{"a slope", device(500_000, 0), 500_000 / 0.9, 10, false},
		{"a fast device", device(2*highest, 0), highest, 0, true},
		{"one that only just loses", device(0.95*highest, 0), highest, 3, true},
		{"one that always loses a little", device(500_000, 0.05), 500_000 / 0.9, 20, false},
	} {
		for _, start := range []float64{highest, 0.95 * test.limit} {
			first, err := SearchFrom(start, 1_000, highest, Goal{Precision: 0.01, Tries: 2}, test.device)
			if err != nil {
				t.Fatal(err)
			}
			made := 0
			f, err := first.Further(1_000, highest, loose, func(rate float64) (float64, error) {
				made++
				return test.device(rate)
			})
			if err != nil || f.Rate > test.limit*1.000001 || f.Rate+f.Step < test.limit || f.Step > 0.0101*test.limit || f.Bound != test.bound {
				t.Errorf("%s, from %v: %+v, %v; want the limit at %v", test.name, start, f, err, test.limit)
			}
			if float64(made) > test.trial {
				t.Errorf("%s, from %v: %d trials, want %v at most", test.name, start, made, test.trial)
			}
		}
	}
}

// TestSearchHopeless: a rate that loses most frames is offered once, however many tries
// there are.
func TestSearchHopeless(t *testing.T) {
	offered := map[float64]int{}
	f, err := Search(1_000, 10_000_000, Goal{Precision: 0.01, Tries: 3}, func(rate float64) (float64, error) {
		offered[rate]++
		return device(500_000, 0)(rate)
	})
	if err != nil || f.Rate < 0.98*500_000 || offered[10_000_000] != 1 {
		t.Errorf("%+v, %v; the highest rate was offered %d times", f, err, offered[10_000_000])
	}
}

// TestSearchEnds covers devices that are faster or slower than all offered rates.
func TestSearchEnds(t *testing.T) {
	f, err := Search(1_000, 10_000, strict, device(20_000, 0))
	if err != nil || !f.Bound || f.Rate != 10_000 || f.Trials != 1 {
		t.Errorf("a fast device: %+v, %v", f, err)
	}
	f, err = Search(1_000, 10_000, strict, device(500, 0))
	if err != nil || f.Bound || f.Rate != 0 {
		t.Errorf("a slow device: %+v, %v", f, err)
	}
	for _, span := range [][2]float64{{0, 10}, {10, 5}, {math.NaN(), 10}} {
		if _, err := Search(span[0], span[1], strict, device(1, 0)); err == nil {
			t.Errorf("a search from %v to %v was not refused", span[0], span[1])
		}
	}
	broken := errors.New("broken")
	if _, err := Search(1, 10, strict, func(float64) (float64, error) { return 0, broken }); !errors.Is(err, broken) {
		t.Errorf("a trial's error became %v", err)
	}
}

// TestSearchSteady: a device that always loses a little passes only if that loss is
// allowed.
func TestSearchSteady(t *testing.T) {
	lossy := device(500_000, 0.0005)
	f, err := Search(1_000, 10_000_000, strict, lossy)
	if err != nil || f.Rate != 0 {
		t.Errorf("no loss allowed: %+v, %v", f, err)
	}
	f, err = Search(1_000, 10_000_000, Goal{Loss: 0.001, Precision: 0.01, Tries: 1}, lossy)
	if err != nil || f.Rate < 490_000 || f.Rate > 500_600 {
		t.Errorf("0.1 %% allowed: %+v, %v", f, err)
	}
}

// TestSearchNoisy: one trial in five loses frames for reasons of its own. Several tries
// find the limit, one try falls short.
func TestSearchNoisy(t *testing.T) {
	const limit, runs = 2_000_000, 200
	short := map[int]int{}
	for _, tries := range []int{1, 4} {
		random := rand.New(rand.NewPCG(1, uint64(tries)))
		noisy := func(rate float64) (float64, error) {
			loss, err := device(limit, 0)(rate)
			if random.Float64() < 0.2 {
				loss = max(loss, 0.002)
			}
			return loss, err
		}
		for range runs {
			f, err := Search(1_000, 10_000_000, Goal{Precision: 0.01, Tries: tries}, noisy)
			if err != nil {
				t.Fatal(err)
			}
			if f.Rate > limit {
				t.Fatalf("found %v, above the limit", f.Rate)
			}
			if f.Rate < 0.95*limit {
				short[tries]++
			}
		}
	}
	if short[1] < runs/20 || short[4] > runs/50 {
		t.Errorf("of %d searches fell short: %d that tried once, %d that tried four times", runs, short[1], short[4])
	}
}

// TestSearchUnluckyGuess: if only the guess was lost, the lowest rate is not offered,
// because its trial takes longest with many connections.
func TestSearchUnluckyGuess(t *testing.T) {
	const lowest, highest, limit = 1_000, 6_000_000, 500_000
	offered := 0
	least := float64(highest)
	f, err := Search(lowest, highest, Goal{Precision: 0.05, Tries: 2}, func(rate float64) (float64, error) {
		offered++
		least = min(least, rate)
		if offered <= 4 {
			return max(0.01, 1-limit/rate), nil
		}
		return max(0, 1-limit/rate), nil
	})
	if err != nil || f.Rate < 0.9*limit || f.Rate > limit || least < 10*lowest {
		t.Errorf("found %+v, %v, after %v was offered", f, err, least)
	}
}

// TestSearchBounded: no device keeps a search busy for long, whatever it loses.
func TestSearchBounded(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 4))
	const tries, precision = 3, 0.01
	rates := 2 * math.Log2(10_000/precision)
	for name, trial := range map[string]Trial{
		"2 % at every rate":      func(float64) (float64, error) { return 0.02, nil },
		"all at every rate":      func(float64) (float64, error) { return 1, nil },
		"one frame of millions":  func(float64) (float64, error) { return 1e-7, nil },
		"at random":              func(float64) (float64, error) { return max(0, random.Float64()-0.7), nil },
		"a little at every rate": device(1_000, 0.001),
		"2 %, but slowly none": func(rate float64) (float64, error) {
			if rate < 1_300 {
				return 0, nil
			}
			return 0.02, nil
		},
	} {
		for range 200 {
			f, err := Search(1_000, 10_000_000, Goal{Precision: precision, Tries: tries}, trial)
			if err != nil {
				t.Fatal(err)
			}
			if f.Trials > tries*int(rates) {
				t.Fatalf("%s: %d trials", name, f.Trials)
			}
			if steady := name == "2 % at every rate" || name == "all at every rate"; steady && (f.Rate != 0 || f.Trials > 4*tries) {
				t.Fatalf("%s: found %+v, want that there is none after 12 trials", name, f)
			}
		}
	}
}
