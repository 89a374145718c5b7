package autorate

import (
	"fmt"
	"io"
	"time"
)

// columns are those of the log. Rates are in Mbit/s, delays in milliseconds above the least.
const columns = "time,seconds,up_rate,up_load,up_delay,up_reason,down_rate,down_load,down_delay,down_reason,answered,lost,set\n"

// plain is how often a line is written in which no rate changes.
const plain = time.Second

// A record is the log: a line for each decision that changes a rate, and one each second.
type record struct {
	to   io.Writer
	last time.Duration
	any  bool
}

// line is what one line says.
type line struct {
	now       time.Time
	at        time.Duration
	rates     [2]float64 // bit/s; 0: the direction has no queues
	loads     [2]float64 // likewise
	decisions [2]Decision
	answered  int
	lost      int
	set       bool // the rates were set
	changed   bool
}

func (r *record) write(l *line) error {
	if r.to == nil || !l.changed && r.any && l.at-r.last < plain {
		return nil
	}
	if !r.any {
		if _, err := io.WriteString(r.to, columns); err != nil {
			return err
		}
	}
	r.any, r.last = true, l.at
	text := fmt.Sprintf("%s,%.1f", l.now.UTC().Format("2006-01-02T15:04:05.0Z"), l.at.Seconds())
	for d := range l.decisions {
		if l.rates[d] == 0 {
			text += ",,,,"
			continue
		}
		text += fmt.Sprintf(",%.3f,%.3f,%.1f,%s", l.rates[d]/1e6, l.loads[d]/1e6, l.decisions[d].Excess.Seconds()*1000, l.decisions[d].Reason)
	}
	set := "yes"
	if !l.set {
		set = "no"
	}
	_, err := fmt.Fprintf(r.to, "%s,%d,%d,%s\n", text, l.answered, l.lost, set)
	return err
}
