package sequential

import "math"

// Block has the events of new and old pods in one interval of time, and their
// exposure: requests for a share of bad requests, pod seconds for events.
type Block struct {
	New, NewExposure, Old, OldExposure float64
	// Cell is the number of the interval.
	Cell int
}

// ratios are the rate ratios of the mixture, as logarithms: from 1.05 to 1000, with equal
// weights, on a logarithmic scale that is denser near 1.
var ratios = func() []float64 {
	var out []float64
	for r := math.Log(1.05); r < math.Log(1000); r *= 1.18 {
		out = append(out, r)
	}
	return out
}()

// logLikelihood of rate ratio exp(logRatio), given the events of each block and
// their exposure: an event is of the new pods with probability
// ratio*newExposure/(ratio*newExposure+oldExposure).
func logLikelihood(blocks []Block, logRatio, dispersion float64) float64 {
	ratio, total := math.Exp(logRatio), 0.0
	for _, b := range blocks {
		if b.NewExposure <= 0 || b.OldExposure <= 0 || b.New+b.Old == 0 {
			continue
		}
		n := ratio * b.NewExposure
		total += b.New*math.Log(n/(n+b.OldExposure)) + b.Old*math.Log(b.OldExposure/(n+b.OldExposure))
	}
	return total / dispersion
}

// RatesHigher returns the logarithm of the e-value against "the rate of the new
// pods is not higher than that of the old ones".
func RatesHigher(blocks []Block, dispersion float64) float64 { return mixture(blocks, dispersion, 1) }

// RatesLower returns the logarithm of the e-value against "not lower".
func RatesLower(blocks []Block, dispersion float64) float64 { return mixture(blocks, dispersion, -1) }

func mixture(blocks []Block, dispersion, sign float64) float64 {
	null := logLikelihood(blocks, 0, dispersion)
	values := make([]float64, len(ratios))
	for i, r := range ratios {
		values[i] = logLikelihood(blocks, sign*r, dispersion) - null
	}
	return LogMean(values)
}

// RatioInterval returns the rate ratios that are not excluded at rate alpha.
func RatioInterval(blocks []Block, dispersion, alpha float64) (low, high float64) {
	values := make([]float64, 0, 2*len(ratios)+1)
	for _, r := range ratios {
		values = append(values, logLikelihood(blocks, r, dispersion), logLikelihood(blocks, -r, dispersion))
	}
	values = append(values, logLikelihood(blocks, 0, dispersion))
	limit := LogMean(values) - math.Log(1/alpha)
	low, high = 0, math.Inf(1)
	inside := false
	const steps = 400
	edge := math.Log(10000)
	for i := range steps + 1 {
		r := -edge + 2*edge*float64(i)/steps
		ok := logLikelihood(blocks, r, dispersion) > limit
		if ok && !inside && i > 0 {
			low, inside = math.Exp(r), true
		}
		if ok && i == 0 {
			inside = true
		}
		if !ok && inside {
			return low, math.Exp(r)
		}
	}
	return low, high
}

// Ratio returns the Mantel-Haenszel estimate of the rate ratio. Without an event of the
// old pods, it counts half an event for them.
func Ratio(blocks []Block) float64 {
	above, below, half := 0.0, 0.0, 0.0
	for _, b := range blocks {
		n := b.NewExposure + b.OldExposure
		if b.NewExposure <= 0 || b.OldExposure <= 0 {
			continue
		}
		above += b.New * b.OldExposure / n
		below += b.Old * b.NewExposure / n
		half = math.Max(half, b.NewExposure/n)
	}
	if above == 0 && below == 0 {
		return 1
	}
	return above / math.Max(below, half/2)
}

// LogMean returns the logarithm of the mean of exp(values): the mean of e-values
// is an e-value.
func LogMean(values []float64) float64 {
	if len(values) == 0 {
		return 0
	}
	top := math.Inf(-1)
	for _, v := range values {
		top = math.Max(top, v)
	}
	if math.IsInf(top, 0) {
		return top
	}
	sum := 0.0
	for _, v := range values {
		sum += math.Exp(v - top)
	}
	return top + math.Log(sum/float64(len(values)))
}
