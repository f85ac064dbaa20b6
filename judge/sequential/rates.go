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

// logLikelihood returns the logarithm of the likelihood of rate ratio exp(logRatio), given the
// events of each block and their exposure. An event is of the new pods with probability
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

// RatesHigher returns the logarithm of the e-value against "the rate of the new pods is not
// higher than that of the old ones". A single disturbance must not decide, however many requests
// it concerns. So the e-value is also computed without each group of span neighbouring intervals,
// one group at a time, that has more than DisturbanceEvents events of the new pods. The smallest
// result is returned. With a span of 0 all intervals count.
func RatesHigher(blocks []Block, dispersion float64, span int) float64 {
	return mixture(blocks, dispersion, 1, span)
}

// RatesLower returns the logarithm of the e-value against "the rate of the new pods is not
// lower than that of the old ones".
func RatesLower(blocks []Block, dispersion float64, span int) float64 {
	return mixture(blocks, dispersion, -1, span)
}

func mixture(blocks []Block, dispersion, sign float64, span int) float64 {
	// The likelihood is a sum over the intervals.
	cells, events := map[int][]float64{}, map[int]float64{}
	total := make([]float64, len(ratios))
	for _, b := range blocks {
		one := []Block{b}
		null := logLikelihood(one, 0, dispersion)
		if cells[b.Cell] == nil {
			cells[b.Cell] = make([]float64, len(ratios))
		}
		events[b.Cell] += b.New
		for i, r := range ratios {
			v := logLikelihood(one, sign*r, dispersion) - null
			cells[b.Cell][i] += v
			total[i] += v
		}
	}
	least := LogMean(total)
	if span == 0 {
		return least
	}
	left := make([]float64, len(ratios))
	for first := range cells {
		copy(left, total)
		concerned := 0.0
		for c := first; c < first+span; c++ {
			concerned += events[c]
		}
		if concerned <= DisturbanceEvents {
			continue
		}
		for c := first; c < first+span; c++ {
			for i, v := range cells[c] {
				left[i] -= v
			}
		}
		least = math.Min(least, LogMean(left))
	}
	return least
}

// Pool has the cells of the new pods of one kind of request, and all old events that
// they are compared with.
type Pool struct {
	New []Count
	Old Count
}

// PoolsHigher is RatesHigher for events that are compared with those of another time.
func PoolsHigher(pools []Pool, dispersion float64, span int) float64 {
	return pooledMixture(pools, dispersion, 1, span)
}

// PoolsLower is RatesLower for events that are compared with those of another time.
func PoolsLower(pools []Pool, dispersion float64, span int) float64 {
	return pooledMixture(pools, dispersion, -1, span)
}

func pooledMixture(pools []Pool, dispersion, sign float64, span int) float64 {
	cells := 0
	for _, p := range pools {
		cells = max(cells, len(p.New))
	}
	least := mixture(Blocks(pools, 0, 0), dispersion, sign, 0)
	for first := 0; span > 0 && first < cells; first++ {
		concerned := 0.0
		for _, p := range pools {
			for i := first; i < min(first+span, len(p.New)); i++ {
				concerned += p.New[i].Events
			}
		}
		if concerned > DisturbanceEvents {
			least = math.Min(least, mixture(Blocks(pools, first, span), dispersion, sign, 0))
		}
	}
	return least
}

// Blocks returns one block for each pool. It leaves out the cells of the new pods from first
// on, as many as span says.
func Blocks(pools []Pool, first, span int) []Block {
	out := make([]Block, 0, len(pools))
	for _, p := range pools {
		b := Block{Old: p.Old.Events, OldExposure: p.Old.Exposure}
		for i, c := range p.New {
			if i < first || i >= first+span {
				b.New += c.Events
				b.NewExposure += c.Exposure
			}
		}
		out = append(out, b)
	}
	return out
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
