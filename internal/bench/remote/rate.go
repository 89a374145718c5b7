package remote

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// Rate is a number of bits per second. It is also the value of a flag: 10M, 2.5G.
type Rate float64

var prefixes = []struct {
	name   string
	factor float64
}{{"T", 1e12}, {"G", 1e9}, {"M", 1e6}, {"K", 1e3}}

// String writes a rate in the unit that fits best.
func (r Rate) String() string {
	if r == 0 {
		return "unlimited"
	}
	return prefixed(float64(r), "bit/s")
}

func prefixed(v float64, unit string) string {
	for _, p := range prefixes {
		if v >= p.factor {
			return strconv.FormatFloat(v/p.factor, 'g', 4, 64) + " " + p.name + unit
		}
	}
	return strconv.FormatFloat(v, 'g', 4, 64) + " " + unit
}

// ParseRate reads a rate: a number with the unit K, M, G or T bits per second. 0 means no
// limit.
func ParseRate(text string) (Rate, error) {
	number, factor := strings.ToUpper(strings.TrimSpace(text)), 1.0
	for _, p := range prefixes {
		if rest, found := strings.CutSuffix(number, p.name); found {
			number, factor = rest, p.factor
			break
		}
	}
	v, err := strconv.ParseFloat(number, 64)
	if err != nil || math.IsNaN(v) || v < 0 || v*factor > maxRate {
		return 0, fmt.Errorf("%q is no rate: a number with K, M or G bits per second, as 100M", text)
	}
	return Rate(v * factor), nil
}

// Set implements flag.Value.
func (r *Rate) Set(text string) (err error) {
	*r, err = ParseRate(text)
	return err
}

// Type implements pflag.Value.
func (*Rate) Type() string { return "rate" }

// Bytes is an amount of data as the value of a flag: 10G.
type Bytes uint64

// String writes an amount in the unit that fits best.
func (b Bytes) String() string { return prefixed(float64(b), "byte") }

// Set implements flag.Value.
func (b *Bytes) Set(text string) error {
	r, err := ParseRate(text)
	if err != nil || r < 1 {
		return fmt.Errorf("%q is no amount: a number with K, M or G bytes, as 10G", text)
	}
	*b = Bytes(r)
	return nil
}

// Type implements pflag.Value.
func (*Bytes) Type() string { return "bytes" }
