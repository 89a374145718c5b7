package sample

import (
	"bytes"
	"math"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"weir/internal/bench/report"
)

const netstat = `TcpExt: SyncookiesSent InOctets
TcpExt: 1 2
IpExt: InNoRoutes InOctets OutOctets
IpExt: 0 123456 7
`

func TestCounter(t *testing.T) {
	if n, err := parseCounter(netstat, "IpExt", "InOctets"); err != nil || n != 123456 {
		t.Errorf("%v, %v", n, err)
	}
	for _, c := range [][2]string{{"IpExt", "InBits"}, {"UdpExt", "InOctets"}} {
		if n, err := parseCounter(netstat, c[0], c[1]); err == nil {
			t.Errorf("%v: %v", c, n)
		}
	}
	if n, err := parseCounter("IpExt: InOctets\nIpExt: many\n", "IpExt", "InOctets"); err == nil {
		t.Errorf("no number: %v", n)
	}
}

// TestWatch watches this host while it opens a connection to itself and sends.
func TestWatch(t *testing.T) {
	h, err := OpenHost()
	if err != nil {
		t.Fatal(err)
	}
	defer h.Close()
	w := NewWatch(Meter{Rates: []Rate{{Panel: "throughput", Unit: "bit/s", Name: "arriving", Factor: 8}, {Panel: "opened", Unit: "per s", Name: "opened", Factor: 1}},
		Read: func() ([]float64, error) {
			n, err := h.Read()
			return []float64{n.Octets, n.Opened}, err
		}})
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	const length = 2*Interval + Interval/2
	w.Begin(length)
	time.Sleep(Interval / 4)
	c, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if _, err := c.Write(make([]byte, 10_000)); err != nil {
		t.Fatal(err)
	}
	time.Sleep(length)
	r, err := w.End()
	if err != nil {
		t.Fatal(err)
	}
	if n := len(r.Moments); n < 2 || n > 3 {
		t.Fatalf("%d moments", n)
	}
	octets, opened := 0.0, 0.0
	for _, m := range r.Moments {
		octets, opened = octets+m.Values[0]/8*m.Took.Seconds(), opened+m.Values[1]*m.Took.Seconds()
		if err := m.Check(); err != nil || len(m.Cores) == 0 {
			t.Errorf("%+v: %v", m, err)
		}
	}
	if octets < 10_000 || opened < 1-1e-6 {
		t.Errorf("%v octets and %v connections were seen", octets, opened)
	}
	if r.Cost.Readings < 3 || r.Cost.Time <= 0 || !strings.Contains(r.Cost.String(), "ms of one core") {
		t.Errorf("cost %+v: %s", r.Cost, r.Cost)
	}
}

// TestWatchOfNothing: End returns even if the watch never began.
func TestWatchOfNothing(t *testing.T) {
	if r, err := NewWatch(Meter{}).End(); err != nil || len(r.Moments) != 0 {
		t.Errorf("%+v, %v", r, err)
	}
}

// TestDuring: the steps of a trial are one moment, and dropped ones are in none.
func TestDuring(t *testing.T) {
	var r Record
	busy := func() error {
		for end := time.Now().Add(60 * time.Millisecond); time.Now().Before(end); {
		}
		return nil
	}
	idle := func() error { time.Sleep(30 * time.Millisecond); return nil }
	for _, f := range []func() error{idle, busy, busy} {
		if err := r.During(f); err != nil {
			t.Fatal(err)
		}
	}
	r.Note(1, 2)
	if err := r.During(idle); err != nil {
		t.Fatal(err)
	}
	r.Drop()
	r.Note(3, 4)
	if len(r.Moments) != 1 {
		t.Fatalf("%d moments, want one", len(r.Moments))
	}
	m := r.Moments[0]
	if m.At < 140*time.Millisecond || m.Took != m.At || !cmp.Equal(m.Values, []float64{1, 2}) {
		t.Errorf("%+v", m)
	}
	if _, share := Busiest([]Point{m.Point}); share < 0.3 {
		t.Errorf("no core was busy: %+v", m.Cores)
	}
}

// record returns a record of two moments.
func record(values ...float64) *Record {
	r := &Record{About: "Two moments.", Rates: []Rate{{Panel: "frames", Unit: "Mpps", Name: "arrived"}, {Panel: "nothing", Name: "nothing"}}}
	for i, v := range values {
		r.Moments = append(r.Moments, Moment{Point{At: time.Duration(i+2) * time.Second, Took: time.Second,
			Cores: []Core{{ID: 0, Busy: 1}, {ID: 2, Busy: v / 10}}}, []float64{v, 0}})
	}
	return r
}

// TestChart: parts are side by side in time, and each has its own figures.
func TestChart(t *testing.T) {
	c, ok := Chart("Over time", []Part{{"kernel", false, record(1, 3)}, {"nft", false, nil}, {"weir", true, record(5, 7)}})
	if !ok || !strings.Contains(c.Note, "Two moments.") || len(c.Times.Panels) != 1 {
		t.Fatalf("%v: %+v", ok, c)
	}
	d := &report.Document{Kind: "test", Title: "test", Sections: []report.Section{{Title: "s", Charts: []report.Chart{c}}}}
	if err := d.Check(); err != nil {
		t.Fatal(err)
	}
	want := report.Table{
		Columns: []report.Column{{Name: "what", Words: true}, {Name: "frames: arrived, mean", Unit: "Mpps"}, {Name: "core 0", Unit: "% busy"}, {Name: "core 2", Unit: "% busy"}},
		Rows:    [][]string{{"kernel", "2.00 (1.00–3.00)", "100", "20"}, {"weir", "6.00 (5.00–7.00)", "100", "60"}}, Marked: []int{1},
	}
	if diff := cmp.Diff(want, c.Figures()); diff != "" {
		t.Error(diff)
	}
	if from := c.Times.Parts[1].From; math.Abs(from-2-4*gap) > 1e-9 {
		t.Errorf("the second part begins at %v", from)
	}
	var b bytes.Buffer
	if err := d.WriteText(&b, 100); err != nil {
		t.Fatal(err)
	}
	if _, ok := Chart("Over time", []Part{{"nft", false, nil}, {"weir", true, &Record{}}}); ok {
		t.Error("a chart of nothing")
	}
}

// BenchmarkLook measures one reading of the cores.
func BenchmarkLook(b *testing.B) {
	h, err := OpenHost()
	if err != nil {
		b.Fatal(err)
	}
	defer h.Close()
	b.Run("cores", func(b *testing.B) {
		var r Record
		for b.Loop() {
			if _, err := r.look(); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("host", func(b *testing.B) {
		for b.Loop() {
			if _, err := h.Read(); err != nil {
				b.Fatal(err)
			}
		}
	})
}
