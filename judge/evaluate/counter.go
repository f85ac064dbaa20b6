package evaluate

import (
	"math"

	"github.com/breakwater-dev/breakwater/apis/judge/v1alpha1"
	"github.com/breakwater-dev/breakwater/judge/samples"
)

// counter compares events per pod and second.
func counter(d Data, f frame) outcome {
	newEvents, oldEvents, dayEvents := d.read(f, all)
	s := comparedCounts{
		newEvents: newEvents.pooled(), newAll: presence(d.New.All, f, 0, f.last).within(0, f.last, f.firstCells(d.New.All)),
		oldEvents: oldEvents.pooled(), oldAll: presence(d.Old.All, f, -f.before, f.last),
		dayEvents: dayEvents.pooled(), dayAll: presence(d.Day.All, f, 0, f.cells-1),
	}
	c := s.compare(f, d.ReferenceBefore, false, d.Direction)
	o := d.outcome(c, s, f)
	// The amount of data is the number of samples: a counter without events has data, too.
	compared := c.compared()
	o.newSamples, o.oldSamples = s.newAll.total()/f.grid.Width, compared.oldAll/f.grid.Width
	o.New.Samples, o.Old.Samples = int64(math.Round(compared.newAll/f.grid.Width)), int64(math.Round(o.oldSamples))
	if o.reason == v1alpha1.ReasonNoTraffic {
		o.reason, o.message = v1alpha1.ReasonInsufficientData, "the new pods have no samples"
	}
	return o
}

// presence returns the seconds of each cell in which a pod had samples.
func presence(series []samples.Series, f frame, first, last int) counts {
	pods := map[string]samples.Cells{}
	for pod, span := range samples.Spans(series) {
		cells := samples.Cells{}
		for c := max(first, f.grid.Cell(span.First)); c <= min(last, f.grid.Cell(span.Last)); c++ {
			cells[c] = f.grid.Width
		}
		pods[pod] = cells
	}
	return counts{"": pods}
}
