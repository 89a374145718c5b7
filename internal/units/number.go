package units

import (
	"math"
	"strconv"
	"strings"
)

// Thousands writes a whole number with commas.
func Thousands(n int) string {
	s := strconv.Itoa(n)
	first := 0
	if n < 0 {
		first = 1
	}
	for i := len(s) - 3; i > first; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

// Plural writes "1 core" and "2 cores".
func Plural(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return Thousands(n) + " " + noun + "s"
}

// Digits writes a number with so many significant digits, and commas. NaN is a dash.
func Digits(v float64, digits int) string {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return "–"
	}
	if v == 0 {
		return "0"
	}
	v = rounded(v, digits)
	decimals := digits - 1 - int(math.Floor(math.Log10(math.Abs(v))))
	if decimals < 0 {
		return Thousands(int(math.Round(v)))
	}
	text := strconv.FormatFloat(v, 'f', decimals, 64)
	whole, fraction, found := strings.Cut(text, ".")
	n, err := strconv.Atoi(whole)
	if err != nil || n == 0 {
		return text // "-0.5" keeps its sign
	}
	if whole = Thousands(n); found {
		return whole + "." + fraction
	}
	return whole
}

// rounded rounds to the significant digits, so that 9.999 counts as 10.
func rounded(v float64, digits int) float64 {
	r, err := strconv.ParseFloat(strconv.FormatFloat(v, 'e', digits-1, 64), 64)
	if err != nil {
		return v
	}
	return r
}

// prefixes are the SI prefixes of short numbers.
var prefixes = []struct {
	factor float64
	suffix string
}{{1e12, "T"}, {1e9, "G"}, {1e6, "M"}, {1e3, "k"}}

// Short writes a number with at most three significant digits, and with an SI prefix if
// it has more than four digits: 950, 1.5k, 65.5k, 1M. It is for places without room, such
// as axes.
func Short(v float64) string {
	for _, p := range prefixes {
		if math.Abs(v) >= p.factor*0.9995 {
			return trim(strconv.FormatFloat(v/p.factor, 'g', 3, 64)) + p.suffix
		}
	}
	return trim(strconv.FormatFloat(v, 'g', 3, 64))
}

// trim removes trailing zeros after the point.
func trim(text string) string {
	if !strings.Contains(text, ".") || strings.Contains(text, "e") {
		return text
	}
	return strings.TrimSuffix(strings.TrimRight(text, "0"), ".")
}

// Parse reads a number with an optional prefix K, M, G or T, in either case. Each is base
// times the one before.
func Parse(text string, base float64) (float64, error) {
	number, factor := text, 1.0
	for at, prefix := range "KMGT" {
		if rest, found := strings.CutSuffix(strings.ToUpper(text), string(prefix)); found {
			number, factor = rest, math.Pow(base, float64(at+1))
		}
	}
	v, err := strconv.ParseFloat(number, 64)
	return v * factor, err
}
