package evaluate

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/breakwater-dev/breakwater/apis/judge/v1alpha1"
	"github.com/breakwater-dev/breakwater/judge/samples"
)

// labeled gives the series a label.
func labeled(series []samples.Series, label, value string) {
	for _, s := range series {
		s.Labels[label] = value
	}
}

func TestRequestsAreComparedIfTheNewVersionRenamesTheirKinds(t *testing.T) {
	for name, c := range map[string]struct {
		factor float64
		want   v1alpha1.Verdict
	}{
		"30 % of the requests fail": {300, v1alpha1.VerdictFail},
		"no change":                 {1, v1alpha1.VerdictPass},
	} {
		for _, before := range []bool{false, true} {
			w := world{rand: rand.New(rand.NewPCG(1, 18)), new: 2, old: 3, load: 5, share: 0.001, factor: c.factor, before: before}
			d := w.ratio(5 * time.Minute)
			labeled(d.Old.All, "handler", "/users/:id")
			labeled(d.New.All, "handler", "/users/{id}")
			if r := looks(d, 5*time.Minute, "1%"); r.Verdict != c.want {
				t.Errorf("%s, only the time before is left: %t: %s (%s), want %s", name, before, r.Verdict, r.Message, c.want)
			}
		}
	}
}

// The series of the share of failed requests are those of calls and requests here.
func TestCallsAreComparedIfTheNewVersionRenamesTheirKinds(t *testing.T) {
	for name, c := range map[string]struct {
		factor float64
		server string
		want   v1alpha1.Verdict
	}{
		"no change":                            {1, "payments", v1alpha1.VerdictPass},
		"another server":                       {1, "payments-v2", v1alpha1.VerdictPass},
		"no calls":                             {0, "payments", v1alpha1.VerdictFail},
		"a third of the calls, another server": {0.3, "payments-v2", v1alpha1.VerdictFail},
	} {
		w := world{rand: rand.New(rand.NewPCG(1, 18)), new: 2, old: 3, load: 20, share: 0.5, factor: c.factor}
		d := w.ratio(5 * time.Minute)
		d.Direction, d.SmallestChange = v1alpha1.DirectionEither, &v1alpha1.Change{Relative: "25%", Absolute: "0.02"}
		for side, server := range map[*Pair]string{&d.Old: "payments", &d.New: c.server} {
			for i, s := range side.Bad {
				side.Bad[i].Labels = map[string]string{"pod": s.Labels["pod"], "server_address": server}
			}
		}
		if r := looks(d, 5*time.Minute, "1%"); r.Verdict != c.want {
			t.Errorf("%s: %s (%s), want %s", name, r.Verdict, r.Message, c.want)
		}
	}
}

func TestBadEventsOfKindsThatTheirTotalHasNotAreComparedIfTheOldPodsHadNone(t *testing.T) {
	w := world{rand: rand.New(rand.NewPCG(1, 18)), new: 2, old: 3, load: 20, share: 0.3, factor: 1}
	d := w.ratio(5 * time.Minute)
	d.Old.Bad = nil
	for i, s := range d.New.Bad {
		d.New.Bad[i].Labels = map[string]string{"pod": s.Labels["pod"], "server_address": "payments"}
	}
	if r := looks(d, 5*time.Minute, "1%"); r.Verdict != v1alpha1.VerdictFail {
		t.Errorf("%s (%s), want a fail", r.Verdict, r.Message)
	}
}
