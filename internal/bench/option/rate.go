package option

import (
	"fmt"
	"strconv"
	"strings"

	"weir/internal/units"
)

// MaxRate keeps sums of rates from overflowing.
const MaxRate = 1e12

// Rate is a number of bits per second. It is also the value of a flag: 10M, 2.5G.
type Rate float64

// String writes a rate in the unit that fits best.
func (r Rate) String() string {
	if r == 0 {
		return "unlimited"
	}
	return prefixed(float64(r), "bit/s")
}

func prefixed(v float64, unit string) string {
	prefix := ""
	for _, next := range "KMGT" {
		if v < 1e3 {
			break
		}
		v, prefix = v/1e3, string(next)
	}
	return strconv.FormatFloat(v, 'g', 4, 64) + " " + prefix + unit
}

// ParseRate reads a rate: a number with the unit K, M, G or T bits per second. 0 means no
// limit.
func ParseRate(text string) (Rate, error) {
	v, err := units.Parse(strings.TrimSpace(text), 1e3)
	if err != nil || !(v >= 0 && v <= MaxRate) {
		return 0, fmt.Errorf("%q is no rate: a number with K, M or G bits per second, as 100M", text)
	}
	return Rate(v), nil
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
