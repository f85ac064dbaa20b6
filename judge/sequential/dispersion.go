package sequential

import "math"

// Cell has the events of one pod in one interval of time, and their exposure.
type Cell struct{ Events, Exposure float64 }

// OverTime returns how much more the events of each pod vary over time than
// independent events do: 1 for a Poisson process. Each element has the cells of
// one pod in order; pods of both versions count, each around its own rate.
func OverTime(pods [][]Cell) float64 {
	square, mean, freedom, used := 0.0, 0.0, 0.0, 0.0
	for _, cells := range pods {
		events, exposure := total(cells)
		if events < 2 || exposure <= 0 {
			continue
		}
		n := 0.0
		for _, c := range cells {
			if c.Exposure <= 0 {
				continue
			}
			expected := events * c.Exposure / exposure
			square += (c.Events - expected) * (c.Events - expected)
			n++
		}
		mean += events
		freedom += n - 1
		used += n
	}
	return upper(square, mean, used, freedom)
}

// BetweenPods returns how much more the totals of pods of one version vary than
// independent events do.
func BetweenPods(pods [][]Cell) float64 {
	var totals []Cell
	for _, cells := range pods {
		events, exposure := total(cells)
		totals = append(totals, Cell{events, exposure})
	}
	events, exposure := total(totals)
	if events < 2 || exposure <= 0 {
		return 1
	}
	square, used := 0.0, 0.0
	for _, c := range totals {
		if c.Exposure <= 0 {
			continue
		}
		expected := events * c.Exposure / exposure
		square += (c.Events - expected) * (c.Events - expected)
		used++
	}
	return upper(square, events, used, used-1)
}

func total(cells []Cell) (events, exposure float64) {
	for _, c := range cells {
		events += c.Events
		exposure += c.Exposure
	}
	return events, exposure
}

// upper returns a cautious estimate of the variance per mean: the estimate is
// divided by a low quantile of what chance gives, if it is above 1 beyond chance.
// Squares are added up before they are divided: a cell with hardly any exposure
// would outweigh all others.
func upper(square, mean, used, freedom float64) float64 {
	if freedom < 1 || mean <= 0 {
		return 1
	}
	phi := square / mean * used / freedom
	if phi <= 1 {
		return 1
	}
	// Wilson-Hilferty: the 20 % quantile of chi-square/freedom.
	k := 2 / (9 * freedom)
	q := math.Pow(math.Max(1-k-0.84*math.Sqrt(k), 0.2), 3)
	// Above chance only: at one standard deviation the correction is complete.
	weight := math.Min(1, (phi-1)/math.Sqrt(2/freedom))
	return 1 + (phi-1)*(1+weight*(1/q-1))
}
