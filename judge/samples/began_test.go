package samples

import (
	"maps"
	"slices"
	"testing"
)

func TestAPodBeganIfOthersWereScrapedBeforeItsFirstSample(t *testing.T) {
	cells := func(from, to int, without ...int) map[int]bool {
		out := map[int]bool{}
		for c := from; c <= to; c++ {
			out[c] = !slices.Contains(without, c)
		}
		return out
	}
	for name, c := range map[string]struct {
		first   int
		scraped map[int]bool
		want    bool
	}{
		"a new pod":                                    {0, cells(-40, 20), true},
		"a pod that starts before the release":         {-3, cells(-40, 20), true},
		"a pod that starts during the analysis":        {12, cells(-40, 20), true},
		"a pod that existed":                           {-40, cells(-40, 20), false},
		"a pod that existed, and two scrapes failed":   {-38, cells(-40, 20), false},
		"a pod that existed, and three scrapes failed": {-37, cells(-40, 20), false},
		"a pod that was unseen for four cells":         {-36, cells(-40, 20), true},
		"all pods have a first sample":                 {-10, cells(-10, 20), false},
		"all pods have a first sample, this one later": {-8, cells(-10, 20), false},
		"Prometheus restarted just before":             {0, cells(-40, 20, -2, -1), false},
		"one scrape failed just before":                {0, cells(-40, 20, -1), true},
		"Prometheus restarted a minute before":         {0, cells(-40, 20, -8, -7, -6, -5), true},
		"the only pod":                                 {0, cells(0, 20), false},
		"others begin later":                           {0, cells(3, 20), false},
	} {
		if got := began(c.first, -40, c.scraped); got != c.want {
			t.Errorf("%s: began %t, want %t", name, got, c.want)
		}
	}
}

func TestPodsThatBeganAreFoundInTheirSeries(t *testing.T) {
	series := func(pod, code string, from float64) Series {
		s := Series{Labels: map[string]string{"pod": pod, "code": code}}
		for at := from; at <= 300; at += 15 {
			s.Points = append(s.Points, Point{T: at, V: 100})
		}
		return s
	}
	got := Began([]Series{series("old", "200", -595), series("old", "500", 90), series("new", "200", 5), series("new", "500", 60), series("newer", "200", 170)},
		Grid{Width: 15}, -600, Pod)
	if names := slices.Sorted(maps.Keys(got)); !slices.Equal(names, []string{"new", "newer"}) {
		t.Errorf("%v began, want new and newer", names)
	}
}
