package evaluate

import (
	"fmt"
	"math"

	"github.com/breakwater-dev/breakwater/apis/judge/v1alpha1"
	"github.com/breakwater-dev/breakwater/judge/samples"
)

const (
	// minimumRate is the rate of requests of a pod, per second, from which a value is compared
	// per request. Below it, the value does not depend on the requests much.
	minimumRate = 1
	// requestFloor is the betweenFloor of values per request: these do not depend on how
	// requests are distributed over the pods, and in recordings the pods of a version differ by
	// 2 to 3 %. It applies only with two old pods, or with pods on the same node.
	requestFloor = 0.03
)

// requestComparison compares a value per request.
type requestComparison struct {
	newMean, oldMean float64
	// logE is the logarithm of the e-value.
	logE float64
}

func (c requestComparison) message(unit string) string {
	if unit == "cores" {
		unit = "seconds"
	}
	return fmt.Sprintf("per request %s against %s", readable(c.newMean, unit), readable(c.oldMean, unit))
}

// perRequest compares the value divided by the rate of requests, and returns false if the
// requests of the pods are not known or too few. So a different load does not count as a
// change.
func (d Data) perRequest(f frame, newT, oldT, dayT podValues, warm map[string]int, nodes map[string]string) (requestComparison, bool) {
	if !d.PerRequest || len(d.Requests.New) == 0 || len(d.Requests.Old) == 0 {
		return requestComparison{}, false
	}
	newT, okNew := newT.per(samples.Rates(d.Requests.New, f.grid), 0, f.last)
	oldT, okOld := oldT.per(samples.Rates(d.Requests.Old, f.grid), -f.before, f.last)
	if !okNew || !okOld {
		return requestComparison{}, false
	}
	floor := requestFloor
	if len(oldT) < 2 {
		if same, ok := onSharedNodes(nodes, newT, oldT); ok && !d.ReferenceBefore {
			newT, oldT = newT.only(same), oldT.only(same)
		} else {
			floor = betweenFloor
		}
	}
	// The absolute change is a limit for the value itself, not for the value per request.
	if d.SmallestChange != nil {
		d.SmallestChange = &v1alpha1.Change{Relative: d.SmallestChange.Relative}
	}
	g := d.difference(newT, oldT, f, warm, d.ReferenceBefore, floor)
	if g.newSamples == 0 || g.oldSamples == 0 {
		return requestComparison{}, false
	}
	c := requestComparison{newMean: g.newMean, oldMean: g.oldMean, logE: g.logE(d)}
	if g.reference == v1alpha1.ReferenceBefore && len(dayT) > 0 {
		if dayT, ok := dayT.per(samples.Rates(d.Requests.Day, f.grid), 0, f.cells-1); ok {
			if day := d.difference(newT, dayT.shift(f), f, warm, true, floor); day.oldSamples >= 4 {
				c.logE = math.Min(c.logE, day.logE(d))
			}
		}
	}
	return c, true
}

// per divides the values by rates, and returns false if these are below minimumRate.
func (t podValues) per(rates map[string]samples.Cells, first, last int) (podValues, bool) {
	out, sum, n := podValues{}, 0.0, 0.0
	for pod, cells := range t {
		out[pod] = samples.Cells{}
		for c, v := range cells {
			if rate, ok := rates[pod][c]; ok && c >= first && c <= last {
				sum += rate
				n++
				if rate > 0 {
					out[pod][c] = v / rate
				}
			}
		}
	}
	return out, n > 0 && sum/n >= minimumRate
}
