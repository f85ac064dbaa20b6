package samples

import (
	"math"
	"testing"
)

func TestTheIncreaseOfACounter(t *testing.T) {
	g := Grid{Origin: 0, Width: 15}
	for name, c := range map[string]struct {
		points    []Point
		beganLate bool
		want      map[int]float64
	}{
		"of each cell":                          {[]Point{{0, 5}, {15, 7}, {30, 10}}, false, map[int]float64{0: 2, 1: 3}},
		"begins at 0 after a reset":             {[]Point{{0, 100}, {15, 3}}, false, map[int]float64{0: 3}},
		"has the first value of a late series":  {[]Point{{15, 4}, {30, 5}}, true, map[int]float64{0: 4, 1: 1}},
		"has no first value of an early series": {[]Point{{15, 4}}, false, map[int]float64{}},
		"is spread over a gap":                  {[]Point{{0, 0}, {60, 8}}, false, map[int]float64{0: 2, 1: 2, 2: 2, 3: 2}},
		"ignores what is no number":             {[]Point{{0, 1}, {15, math.NaN()}, {20, math.Inf(1)}, {22, 3}}, false, map[int]float64{1: 2}},
		"of nothing":                            {nil, true, map[int]float64{}},
	} {
		cells := Cells{}
		Increase(cells, g, c.points, c.beganLate)
		if len(cells) != len(c.want) {
			t.Errorf("%s: %v, want %v", name, cells, c.want)
		}
		for k, v := range c.want {
			if cells[k] != v {
				t.Errorf("%s: %v, want %v", name, cells, c.want)
			}
		}
	}
}

func TestARateDoesNotDependOnTheSamplesInACell(t *testing.T) {
	s := Series{Labels: map[string]string{"pod": "a"}}
	for i := range 13 { // 2 a second, a sample each 10 seconds, cells of 15 seconds
		s.Points = append(s.Points, Point{T: float64(10 * i), V: float64(20 * i)})
	}
	for cell, got := range Rates([]Series{s}, Grid{Width: 15})["a"] {
		if math.Abs(got-2) > 1e-9 {
			t.Errorf("cell %d has rate %v, want 2", cell, got)
		}
	}
}
