package stats

import "math"

// StudentQuantile returns the value that Student's t with df degrees of freedom (above 0,
// not necessarily a whole number) stays below with probability p, between 0 and 1.
func StudentQuantile(p, df float64) float64 {
	switch {
	case p < 0.5:
		return -StudentQuantile(1-p, df)
	case p == 0.5:
		return 0
	case p >= 1:
		return math.Inf(1)
	}
	low, high := 0.0, 1.0
	for studentTail(high, df) > 1-p {
		low, high = high, 2*high
	}
	for high-low > 1e-13*high {
		middle := (low + high) / 2
		if studentTail(middle, df) > 1-p {
			low = middle
		} else {
			high = middle
		}
	}
	return (low + high) / 2
}

// studentTail returns the probability that t exceeds a value of at least 0.
func studentTail(t, df float64) float64 {
	if math.IsInf(t, 1) {
		return 0
	}
	return incompleteBeta(df/2, 0.5, df/(df+t*t)) / 2
}

// incompleteBeta returns the regularised incomplete beta function I_x(a, b), by the
// continued fraction of DLMF 8.17.22.
func incompleteBeta(a, b, x float64) float64 {
	switch {
	case x <= 0:
		return 0
	case x >= 1:
		return 1
	case x > (a+1)/(a+b+2): // the fraction converges fast below only
		return 1 - incompleteBeta(b, a, 1-x)
	}
	front := math.Exp(a*math.Log(x) + b*math.Log1p(-x) - logBeta(a, b))
	return front / a / betaFraction(a, b, x)
}

// betaFraction evaluates 1 + d1/(1 + d2/(1 + ...)) from its far end.
func betaFraction(a, b, x float64) float64 {
	terms := 40 + int(min(2*math.Sqrt(max(a, b)), 4000)) // it converges within a few roots of these
	value := 1.0
	for m := terms; m >= 1; m-- {
		n := float64(m / 2)
		d := n * (b - n) * x / ((a + 2*n - 1) * (a + 2*n))
		if m%2 == 1 {
			d = -(a + n) * (a + b + n) * x / ((a + 2*n) * (a + 2*n + 1))
		}
		value = 1 + d/value
	}
	return value
}

func logBeta(a, b float64) float64 {
	la, _ := math.Lgamma(a)
	lb, _ := math.Lgamma(b)
	lab, _ := math.Lgamma(a + b)
	return la + lb - lab
}

// normalTail returns the probability that a standard normal value exceeds z.
func normalTail(z float64) float64 { return math.Erfc(z/math.Sqrt2) / 2 }
