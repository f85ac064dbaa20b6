// Package calibrate counts how often the judge is right about past releases whose
// label is known.
package calibrate

import (
	"math"
	"sort"
	"time"

	"github.com/breakwater-dev/breakwater/apis/judge/v1alpha1"
)

// Outcome is the verdict on one labelled release.
type Outcome struct {
	Bad     bool
	Verdict v1alpha1.Verdict
	// Detection is the time from Ready to the fail, if there is one.
	Detection time.Duration
	// Failed are the metrics that failed, Judged those with a verdict.
	Failed, Judged []string
}

// Share is a proportion with its 95 % Wilson interval.
type Share struct {
	Value float64 `json:"value"`
	Low   float64 `json:"low"`
	High  float64 `json:"high"`
	Of    int     `json:"of"`
}

// DurationSummary has the median of times with its interval of 95 %, and the longest time, in seconds.
type DurationSummary struct {
	Median float64 `json:"median"`
	Low    float64 `json:"low"`
	High   float64 `json:"high"`
	Worst  float64 `json:"worst"`
}

// Score has the figures of one list. A release without a verdict counts as if
// insufficientDataPolicy were Hold: a bad one as missed, because it was not detected, and a
// good one as a false positive. HeldBad and HeldGood count these again.
type Score struct {
	Releases       int   `json:"releases"`
	Bad            int   `json:"bad"`
	Caught         int   `json:"caught"`
	Missed         int   `json:"missed"`
	FalsePositives int   `json:"falsePositives"`
	HeldGood       int   `json:"heldGood"`
	HeldBad        int   `json:"heldBad"`
	Precision      Share `json:"precision"`
	Recall         Share `json:"recall"`
	F1             Share `json:"f1"`
	Held           Share `json:"held"`
	// Detection is nil if no bad release was caught.
	Detection *DurationSummary `json:"timeToDetectionSeconds,omitempty"`
	Metrics   []Metric         `json:"metrics,omitempty"`
}

// Metric has the figures of one metric: in how many releases it was judged, and in how many it
// failed, alone or with others, whatever the verdict of the release was.
type Metric struct {
	Name              string `json:"name"`
	Judged            int    `json:"judged"`
	Caught            int    `json:"caught"`
	CaughtAlone       int    `json:"caughtAlone"`
	FalsePositives    int    `json:"falsePositives"`
	Recall            Share  `json:"recall"`
	FalsePositiveRate Share  `json:"falsePositiveRate"`
}

// ScoreOf counts outcomes.
func ScoreOf(outcomes []Outcome) Score {
	var s Score
	var times []float64
	for _, o := range outcomes {
		s.Releases++
		failed, held := o.Verdict == v1alpha1.VerdictFail, o.Verdict == v1alpha1.VerdictNone
		switch {
		case o.Bad && failed:
			s.Caught++
			times = append(times, o.Detection.Seconds())
		case o.Bad:
			s.Missed++
		case failed || held:
			s.FalsePositives++
		}
		if o.Bad {
			s.Bad++
		}
		if held && o.Bad {
			s.HeldBad++
		} else if held {
			s.HeldGood++
		}
	}
	s.Precision = Wilson(s.Caught, s.Caught+s.FalsePositives)
	s.Recall = Wilson(s.Caught, s.Bad)
	// F1 is 2s/(1+s), where s is the share of caught releases among caught and missed releases
	// and false positives.
	j := Wilson(s.Caught, s.Caught+s.FalsePositives+s.Missed)
	f1 := func(v float64) float64 { return 2 * v / (1 + v) }
	s.F1 = Share{f1(j.Value), f1(j.Low), f1(j.High), j.Of}
	s.Held = Wilson(s.HeldGood+s.HeldBad, s.Releases)
	s.Detection = median(times)
	s.Metrics = metrics(outcomes)
	return s
}

func metrics(outcomes []Outcome) []Metric {
	byName := map[string]*Metric{}
	bad := map[string]int{}
	for _, o := range outcomes {
		for _, name := range o.Judged {
			if byName[name] == nil {
				byName[name] = &Metric{Name: name}
			}
			byName[name].Judged++
			if o.Bad {
				bad[name]++
			}
		}
		for _, name := range o.Failed {
			m := byName[name]
			switch {
			case m == nil:
			case o.Bad:
				m.Caught++
				if len(o.Failed) == 1 {
					m.CaughtAlone++
				}
			default:
				m.FalsePositives++
			}
		}
	}
	out := make([]Metric, 0, len(byName))
	for name, m := range byName {
		m.Recall = Wilson(m.Caught, bad[name])
		m.FalsePositiveRate = Wilson(m.FalsePositives, m.Judged-bad[name])
		out = append(out, *m)
	}
	sort.Slice(out, func(i, j int) bool { return out[i].Name < out[j].Name })
	return out
}

// Wilson returns the share k of n with its interval of 95 %.
func Wilson(k, n int) Share {
	if n == 0 {
		return Share{0, 0, 1, 0}
	}
	const z = 1.959964
	p, m := float64(k)/float64(n), float64(n)
	centre := (p + z*z/(2*m)) / (1 + z*z/m)
	half := z / (1 + z*z/m) * math.Sqrt(p*(1-p)/m+z*z/(4*m*m))
	return Share{p, math.Max(0, centre-half), math.Min(1, centre+half), n}
}

// median returns the median and its interval from order statistics.
func median(values []float64) *DurationSummary {
	n := len(values)
	if n == 0 {
		return nil
	}
	sort.Float64s(values)
	half := 1.959964 * math.Sqrt(float64(n)) / 2
	low := max(0, int(math.Floor(float64(n)/2-half)))
	high := min(n-1, int(math.Ceil(float64(n)/2+half)))
	middle := (values[(n-1)/2] + values[n/2]) / 2
	return &DurationSummary{middle, values[low], values[high], values[n-1]}
}
