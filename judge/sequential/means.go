package sequential

import "math"

// MeanHigher returns the logarithm of the e-value against "the mean difference is
// not above 0": a normal mixture over positive differences. The estimate has the
// given variance; scale is the difference that is tested for.
func MeanHigher(estimate, variance, scale float64) float64 {
	if !(variance > 0) || math.IsNaN(estimate) {
		return 0
	}
	// One-sided Robbins mixture with a half-normal prior of scale:
	// 2*sqrt(v/(v+s2))*exp(z2/2*s2/(v+s2))*Phi(z*s/sqrt(v+s2)).
	s2 := scale * scale
	z := estimate / math.Sqrt(variance)
	shrink := s2 / (variance + s2)
	phi := 0.5 * math.Erfc(-z*math.Sqrt(shrink)/math.Sqrt2)
	return math.Log(2) + 0.5*math.Log(variance/(variance+s2)) + z*z/2*shrink + math.Log(math.Max(phi, 1e-300))
}

// MeanInterval returns the half width of the confidence sequence of the mean
// difference at rate alpha.
func MeanInterval(variance, scale, alpha float64) float64 {
	if variance == 0 {
		return 0
	}
	s2 := scale * scale
	return math.Sqrt(variance * (variance + s2) / s2 * 2 * (math.Log(1/alpha) + 0.5*math.Log((variance+s2)/variance)))
}

// LongRunVariance returns the variance of the mean of an autocorrelated series by
// batch means, and never less than that of an autocorrelation of 0.5 of its
// neighbours: the estimated correlation of short series is too low.
func LongRunVariance(values []float64) float64 {
	n := len(values)
	if n < 4 {
		return math.NaN()
	}
	single := Variance(values)
	floor := 3 * single / float64(n)
	best := floor
	for _, size := range []int{2, 4, 8} {
		batches := n / size
		if batches < 3 {
			break
		}
		means := make([]float64, batches)
		for b := range means {
			for _, v := range values[n-(b+1)*size : n-b*size] {
				means[b] += v / float64(size)
			}
		}
		best = math.Max(best, Variance(means)/float64(batches))
	}
	return best
}

// Variance returns the sample variance.
func Variance(values []float64) float64 {
	n := float64(len(values))
	if n < 2 {
		return 0
	}
	mean := 0.0
	for _, v := range values {
		mean += v / n
	}
	sum := 0.0
	for _, v := range values {
		sum += (v - mean) * (v - mean)
	}
	return sum / (n - 1)
}
