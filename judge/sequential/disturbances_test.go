package sequential

import (
	"maps"
	"math"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// cellsOf returns cells of 100 requests with the given events.
func cellsOf(events ...float64) []Count {
	out := make([]Count, len(events))
	for i, e := range events {
		out[i] = Count{Events: e, Exposure: 100}
	}
	return out
}

func TestADisturbanceIsAnIntervalFarAboveTheOthers(t *testing.T) {
	for name, c := range map[string]struct {
		cells []Count
		want  []int
	}{
		"one interval of many":             {cellsOf(0, 0, 70, 0, 0, 0), []int{2}},
		"a stop at the edge of two":        {cellsOf(0, 0, 70, 66, 0, 0), []int{2, 3}},
		"three of six are no exception":    {cellsOf(0, 0, 70, 66, 60, 0), nil},
		"a fault in each interval":         {cellsOf(7, 9, 6, 12, 8, 7), nil},
		"a disturbance on top of a fault":  {cellsOf(7, 9, 6, 90, 8, 7), []int{3}},
		"few events":                       {cellsOf(0, 0, 5, 0, 0, 0), nil},
		"too few intervals to know others": {cellsOf(0, 70, 0, 0), nil},
		"intervals without requests":       {append(cellsOf(0, 70, 0, 0), Count{}, Count{}), nil},
	} {
		if diff := cmp.Diff(c.want, slices.Sorted(maps.Keys(Disturbances(c.cells, math.Inf(1))))); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

func TestADisturbanceOfBothSidesIsJoint(t *testing.T) {
	few, both, high := Block{New: 1, Old: 2}, Block{New: 120, Old: 150}, Block{New: 300, Old: 2}
	for name, c := range map[string]struct {
		// last are the last of 20 intervals, others the others.
		others         Block
		last           []Block
		joint, onlyNew []int
	}{
		"none":                               {few, nil, nil, nil},
		"both sides, in many intervals":      {few, slices.Repeat([]Block{both}, 6), []int{14, 15, 16, 17, 18, 19}, nil},
		"only old pods":                      {few, slices.Repeat([]Block{{Old: 300}}, 4), []int{16, 17, 18, 19}, nil},
		"only new pods, in two intervals":    {few, slices.Repeat([]Block{high}, 2), []int{18, 19}, nil},
		"only new pods, in three intervals":  {few, slices.Repeat([]Block{high}, 3), nil, []int{17, 18, 19}},
		"only new pods, in nine intervals":   {few, slices.Repeat([]Block{high}, 9), nil, []int{11, 12, 13, 14, 15, 16, 17, 18, 19}},
		"both sides, during one of new pods": {few, []Block{high, high, both, high, both, high}, []int{16, 18}, []int{14, 15, 17, 19}},
		"both sides, others without events":  {Block{}, slices.Repeat([]Block{both}, 6), nil, nil},
		"new pods, others without events":    {Block{}, slices.Repeat([]Block{high}, 6), nil, []int{14, 15, 16, 17, 18, 19}},
		"new pods, in four that do not last": {Block{}, []Block{high, {}, {}, high, {}, {}, high, {}, {}, high}, nil, nil},
		"new pods, in four with events":      {Block{}, slices.Repeat([]Block{high}, 4), nil, []int{16, 17, 18, 19}},
	} {
		blocks := append(slices.Repeat([]Block{c.others}, 20-len(c.last)), c.last...)
		for i := range blocks {
			blocks[i].NewExposure, blocks[i].OldExposure, blocks[i].Cell = 2000, 3000, i
		}
		joint, onlyNew := JointDisturbances(blocks, math.Inf(1))
		if diff := cmp.Diff([][]int{c.joint, c.onlyNew}, [][]int{slices.Sorted(maps.Keys(joint)), slices.Sorted(maps.Keys(onlyNew))}); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

func TestOneDisturbanceIsNoEvidence(t *testing.T) {
	threshold := 6.7
	for name, c := range map[string]struct {
		events []float64
		span   int
		fails  bool
	}{
		"all events in one interval":                {[]float64{60, 0, 0, 0}, 1, false},
		"the same events over all intervals":        {[]float64{15, 15, 15, 15}, 1, true},
		"a disturbance at the edge of two, one out": {[]float64{60, 60, 0, 0}, 1, true},
		"a disturbance at the edge of two, two out": {[]float64{60, 60, 0, 0}, 2, false},
		"few events are never a disturbance":        {[]float64{5, 5, 5, 5}, 1, true},
		"no interval out":                           {[]float64{60, 0, 0, 0}, 0, true},
	} {
		var blocks []Block
		for i, e := range c.events {
			blocks = append(blocks, Block{New: e, NewExposure: 100, OldExposure: 200, Cell: i})
		}
		if got := RatesHigher(blocks, 1, c.span); got >= threshold != c.fails {
			t.Errorf("%s: cell by cell: logarithm of the e-value %.1f, want a fail: %t", name, got, c.fails)
		}
		pools := []Pool{{New: cellsOf(c.events...), Old: Count{Exposure: 800}}}
		if got := PoolsHigher(pools, 1, c.span); got >= threshold != c.fails {
			t.Errorf("%s: against another time: logarithm of the e-value %.1f, want a fail: %t", name, got, c.fails)
		}
	}
}

func TestADisturbanceOfNewPodsIsAtMostAsLongAsTheLongest(t *testing.T) {
	for name, c := range map[string]struct {
		// each is the number of 2000 requests of the new pods that fail in the last two of five intervals.
		each    float64
		longest float64
		joint   []int
		onlyNew []int
	}{
		"two halves and a little more": {1020, 1, nil, []int{3, 4}},
		"less than two halves":         {980, 1, []int{3, 4}, nil},
		"two intervals may be whole":   {2000, 4, []int{3, 4}, nil},
	} {
		var blocks []Block
		var cells []Count
		for i, failed := range []float64{0, 0, 0, c.each, c.each} {
			blocks = append(blocks, Block{New: failed, NewExposure: 2000, OldExposure: 3000, Cell: i})
			cells = append(cells, Count{Events: failed, Exposure: 2000})
		}
		joint, onlyNew := JointDisturbances(blocks, c.longest)
		want := [][]int{c.joint, c.onlyNew, c.joint}
		got := [][]int{slices.Sorted(maps.Keys(joint)), slices.Sorted(maps.Keys(onlyNew)), slices.Sorted(maps.Keys(Disturbances(cells, c.longest)))}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}
