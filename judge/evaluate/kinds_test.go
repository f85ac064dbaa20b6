package evaluate

import (
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/breakwater-dev/breakwater/apis/judge/v1alpha1"
	"github.com/breakwater-dev/breakwater/judge/catalog"
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

// The old requests beyond the largest kinds are not those that the new version renamed.
func TestRequestsAreComparedIfTheNewVersionRenamesMoreThanTheLargestKinds(t *testing.T) {
	for name, c := range map[string]struct {
		share, factor float64
		// frequent and rare are the parts of the old errors that frequent and rare kinds have.
		frequent, rare float64
		want           v1alpha1.Verdict
	}{
		"30 % of the requests fail, formerly many rare ones":  {0.02, 15, 0, 1, v1alpha1.VerdictFail},
		"no change, and rare requests had no errors formerly": {0.02, 1, 1, 0, v1alpha1.VerdictPass},
	} {
		for _, before := range []bool{false, true} {
			w := world{rand: rand.New(rand.NewPCG(1, 18)), new: 2, old: 3, load: 5, share: c.share, factor: c.factor, before: before}
			d := w.ratio(5 * time.Minute)
			const frequent, rare = 0.95, 0.05
			d.Old.All = slices.Concat(divided(good(d.Old.All), "/:id/", frequent, rare), divided(d.Old.Bad, "/:id/", c.frequent, c.rare))
			d.Old.Bad = divided(d.Old.Bad, "/:id/", c.frequent, c.rare)
			d.New.All, d.New.Bad = divided(d.New.All, "/{id}/", frequent, rare), divided(d.New.Bad, "/{id}/", frequent, rare)
			if r := looks(d, 5*time.Minute, "1%"); r.Verdict != c.want {
				t.Errorf("%s, only the time before is left: %t: %s (%s), want %s", name, before, r.Verdict, r.Message, c.want)
			}
		}
	}
}

// good returns the series of requests without errors.
func good(series []samples.Series) []samples.Series {
	return slices.DeleteFunc(slices.Clone(series), func(s samples.Series) bool { return s.Labels["code"] != "200" })
}

// divided divides each series into as many kinds as are compared one by one, which together have the part
// frequent of its events, and five more, which have the part rare.
func divided(series []samples.Series, prefix string, frequent, rare float64) []samples.Series {
	return slices.Concat(kinds(maxStrata, series, prefix, frequent), kinds(5, series, prefix+"rare-", rare))
}

// kinds divides a part of each series into n kinds of the same size.
func kinds(n int, series []samples.Series, prefix string, part float64) []samples.Series {
	var out []samples.Series
	for _, s := range series {
		for i := range n {
			one := samples.Series{Labels: maps.Clone(s.Labels)}
			one.Labels["handler"] = prefix + strconv.Itoa(i)
			for _, p := range s.Points {
				one.Points = append(one.Points, samples.Point{T: p.T, V: p.V * part / float64(n)})
			}
			out = append(out, one)
		}
	}
	return out
}

// A request that fails before it is routed has no route.
func TestAFailedRequestMayBeOfAnotherKind(t *testing.T) {
	for name, c := range map[string]struct {
		// share is the part of the requests that fail, and factor that of the new ones compared with the old ones.
		share, factor float64
		// none: no old request fails.
		none bool
		// callers: the callers cause these failures, for example with requests that are not allowed.
		callers bool
		want    v1alpha1.Verdict
	}{
		"40 % of the new requests fail":                   {0.001, 400, false, false, v1alpha1.VerdictFail},
		"95 % of the new requests fail":                   {0.001, 950, false, false, v1alpha1.VerdictFail},
		"40 % of the new requests fail, and no old ones":  {1, 0.4, true, false, v1alpha1.VerdictFail},
		"40 % of the new requests are rejected":           {0.01, 40, false, true, v1alpha1.VerdictFail},
		"40 % of the new requests fail, and few old ones": {0.0002, 2000, false, false, v1alpha1.VerdictFail},
		"no change, 2 % fail":                             {0.02, 1, false, false, v1alpha1.VerdictPass},
		"no change, few fail":                             {0.001, 1, false, false, v1alpha1.VerdictPass},
	} {
		for _, before := range []bool{false, true} {
			w := world{rand: rand.New(rand.NewPCG(1, 18)), new: 2, old: 3, load: 5, share: c.share, factor: c.factor, before: before}
			d := w.ratio(5 * time.Minute)
			d.CausedByCallers = c.callers
			if c.none {
				labeled(d.Old.Bad, "code", "200")
				d.Old.Bad = nil
			}
			labeled(good(d.Old.All), "http_route", "/orders")
			labeled(good(d.New.All), "http_route", "/orders")
			want := c.want
			if c.callers && before {
				want = v1alpha1.VerdictPass // callers may send more of them than before
			}
			if r := looks(d, 5*time.Minute, "1%"); r.Verdict != want {
				t.Errorf("%s, only the time before is left: %t: %s (%s), want %s", name, before, r.Verdict, r.Message, want)
			}
		}
	}
}

// Some old requests without a route did not fail.
func TestAKindMayFollowFromTheOutcomeInTheNewVersionOnly(t *testing.T) {
	for _, rejected := range []float64{1, 6, 20} {
		for _, before := range []bool{false, true} {
			w := world{rand: rand.New(rand.NewPCG(1, 18)), new: 2, old: 3, load: 5, share: 0.0005, factor: 800, before: before}
			d := w.ratio(5 * time.Minute)
			labeled(good(d.Old.All), "http_route", "/orders")
			labeled(good(d.New.All), "http_route", "/orders")
			scanned := samples.Series{Labels: map[string]string{"pod": "old-0", "code": "404"}}
			for _, p := range d.Old.All[0].Points {
				scanned.Points = append(scanned.Points, samples.Point{T: p.T, V: math.Floor(rejected * (p.T - d.Old.All[0].Points[0].T) / 600)})
			}
			d.Old.All = append(d.Old.All, scanned)
			if r := looks(d, 5*time.Minute, "1%"); r.Verdict != v1alpha1.VerdictFail {
				t.Errorf("%g old requests without a route in 10 minutes, only the time before is left: %t: %s (%s), want a fail", rejected, before, r.Verdict, r.Message)
			}
		}
	}
}

// Callers may send more wrong requests than before the change.
func TestRejectedRequestsWithoutAKindAreComparedOnlyAtTheSameTime(t *testing.T) {
	for name, kind := range map[string]func(side Pair) Pair{
		"the kind follows from the answer": func(side Pair) Pair { labeled(side.Bad, "uri", "NOT_FOUND"); return side },
		"one kind":                         func(side Pair) Pair { return side },
		"only all requests have a kind": func(side Pair) Pair {
			return Pair{kinds(1, side.All, "/orders/", 1), side.Bad}
		},
	} {
		for before, want := range map[bool]v1alpha1.Verdict{false: v1alpha1.VerdictFail, true: v1alpha1.VerdictPass} {
			w := world{rand: rand.New(rand.NewPCG(1, 18)), new: 2, old: 3, load: 20, share: 0.03, factor: 4, before: before}
			d := w.ratio(5 * time.Minute)
			d.CausedByCallers = true
			d.Old, d.New = kind(d.Old), kind(d.New)
			r := looks(d, 5*time.Minute, "1%")
			if r.Verdict != want {
				t.Errorf("12 %% of new and 3 %% of old requests, %s, only the time before is left: %t: %s (%s, e-value %s), want %s",
					name, before, r.Verdict, r.Message, r.Metrics[0].EValue, want)
			}
			if m := r.Metrics[0].Message; strings.Contains(m, "callers cause") != (before && name != "the kind follows from the answer") {
				t.Errorf("%s, only the time before is left: %t: message %q", name, before, m)
			}
		}
	}
}

// If the new version rejects most requests, it is the likely cause.
func TestAVersionThatRejectsMostRequestsFailsAlsoWithoutOldPods(t *testing.T) {
	for name, kind := range map[string]func(side Pair) Pair{
		"one kind":                      func(side Pair) Pair { return side },
		"only all requests have a kind": func(side Pair) Pair { return Pair{kinds(1, side.All, "/orders/", 1), side.Bad} },
	} {
		w := world{rand: rand.New(rand.NewPCG(1, 18)), new: 2, old: 3, load: 20, share: 0.03, factor: 30, before: true}
		d := w.ratio(5 * time.Minute)
		d.CausedByCallers = true
		d.Old, d.New = kind(d.Old), kind(d.New)
		if r := looks(d, 5*time.Minute, "1%"); r.Verdict != v1alpha1.VerdictFail {
			t.Errorf("90 %% of new requests are rejected, %s: %s (%s), want a fail", name, r.Verdict, r.Message)
		}
	}
}

// The old pods have few requests, and all pods get four times as many wrong ones as before the change.
func TestFewOldRequestsAreNoReasonToCompareRejectedRequestsWithTheTimeBefore(t *testing.T) {
	failed := 0
	for seed := range uint64(100) {
		w := world{rand: rand.New(rand.NewPCG(seed, 21)), new: 1, old: 1, load: 3}
		d := w.ratio(5 * time.Minute)
		d.CausedByCallers = true
		// rejects makes the requests of a pod: load per second from the change on, and 3 before.
		rejects := func(side *Pair, pod string, from, load float64) {
			ok, bad := 0.0, 0.0
			good := seriesOf(map[string]string{"pod": pod, "code": "200"}, from, 300, func(float64) float64 { return 0 })
			rejected := seriesOf(map[string]string{"pod": pod, "code": "404"}, from, 300, func(float64) float64 { return 0 })
			for i, p := range good.Points {
				perSecond, share := 3.0, 0.03
				if p.T >= start {
					perSecond, share = load, 0.12
				}
				ok += w.poisson(perSecond * (1 - share) * 15)
				bad += w.poisson(perSecond * share * 15)
				good.Points[i].V, rejected.Points[i].V = ok, bad
			}
			side.All, side.Bad = []samples.Series{good, rejected}, []samples.Series{rejected}
		}
		rejects(&d.Old, "old-0", -600, 0.13)
		rejects(&d.New, "new-0", 0, 3)
		if r := looks(d, 5*time.Minute, "1%"); r.Verdict == v1alpha1.VerdictFail {
			failed++
		}
	}
	if failed > 1 {
		t.Errorf("%d of 100 releases fail, although as many requests of old pods are rejected at the same time", failed)
	}
}

func TestANewKindOfRequestsIsNoChangeIfAsManyFail(t *testing.T) {
	for _, part := range []float64{0.15, 0.25, 0.4} {
		w := world{rand: rand.New(rand.NewPCG(1, 18)), new: 2, old: 3, load: 5, share: 0.04, factor: 1}
		d := w.ratio(5 * time.Minute)
		d.Old.All = kinds(1, d.Old.All, "/", 1)
		d.Old.Bad = kinds(1, d.Old.Bad, "/", 1)
		d.New.All = slices.Concat(kinds(1, d.New.All, "/", 1-part), kinds(1, d.New.All, "/new", part))
		d.New.Bad = slices.Concat(kinds(1, d.New.Bad, "/", 1-part), kinds(1, d.New.Bad, "/new", part))
		if r := looks(d, 5*time.Minute, "1%"); r.Verdict != v1alpha1.VerdictPass {
			t.Errorf("a new kind is %g of all requests: %s (%s), want a pass", part, r.Verdict, r.Message)
		}
	}
}

// The paths of rare requests contain ids, so the new pods have other ones.
func TestADifferentMixOfRequestsIsNoChangeIfTheNamesOfRareKindsDiffer(t *testing.T) {
	for name, c := range map[string]struct {
		// mix is the factor of the requests for reports, of which half fail. failed is the part of the others that fail.
		mix, failed float64
		want        v1alpha1.Verdict
	}{
		"five times as many requests for reports": {5, 0, v1alpha1.VerdictPass},
		"other requests fail, too":                {1, 0.05, v1alpha1.VerdictFail},
	} {
		for _, before := range []bool{false, true} {
			w := world{rand: rand.New(rand.NewPCG(1, 18)), new: 2, old: 3, load: 20, share: 0.01, factor: c.mix, before: before}
			d := w.ratio(5 * time.Minute)
			for side, ids := range map[*Pair]string{&d.Old: "/users/1", &d.New: "/users/2"} {
				others, failed := good(side.All), 0.0
				reports := kinds(1, side.Bad, "/reports/", 1)
				done := kinds(1, side.Bad, "/reports/", 1)
				labeled(done, "code", "200")
				if side == &d.New {
					failed = c.failed
				}
				faults := kinds(19, others, "/", failed)
				labeled(faults, "code", "500")
				side.Bad = slices.Concat(reports, faults)
				side.All = slices.Concat(side.Bad, done, kinds(19, others, "/", 0.35-failed), kinds(60, others, ids, 0.65))
			}
			if r := looks(d, 5*time.Minute, "1%"); r.Verdict != c.want {
				t.Errorf("%s, only the time before is left: %t: %s (%s), want %s", name, before, r.Verdict, r.Message, c.want)
			}
		}
	}
}

// The paths of most requests contain ids, so the new pods have other ones.
func TestADifferentMixOfRequestsIsNoChangeOfTheirLatencyIfTheNamesOfRareKindsDiffer(t *testing.T) {
	for name, c := range map[string]struct {
		// mix is the factor of the requests for reports, which take longer. factor is that of the times of requests with ids,
		// and named that of all others.
		mix, factor, named float64
		// known: the old pods have series of the new ids.
		known bool
		want  v1alpha1.Verdict
	}{
		"five times as many requests for reports":      {5, 1, 1, false, v1alpha1.VerdictPass},
		"requests with ids take longer":                {1, 2, 1, false, v1alpha1.VerdictFail},
		"requests with known ids take longer":          {1, 2, 1, true, v1alpha1.VerdictFail},
		"requests without ids take longer":             {1, 1, 2, false, v1alpha1.VerdictFail},
		"all take longer, with more of the fast kinds": {0.1, 2, 2, false, v1alpha1.VerdictFail},
	} {
		for _, before := range []bool{false, true} {
			var d Data
			for i, one := range []struct {
				names  func(ids string) string
				n      int
				part   float64
				factor float64
			}{
				{func(string) string { return "/" }, 19, 0.35, c.named},
				{func(ids string) string { return "/users/" + ids }, 60, 0.65, c.factor},
				{func(string) string { return "/reports/" }, 1, 0.02, c.named},
			} {
				w := world{rand: rand.New(rand.NewPCG(1, 18)), new: 2, old: 3, load: 20, factor: one.factor, before: before}
				l := w.latency(5 * time.Minute)
				mix := 1.0
				if i == 2 {
					takeLong(l.New.All)
					takeLong(l.Old.All)
					mix = c.mix
				}
				d.Metric = l.Metric
				d.Old.All = append(d.Old.All, kinds(one.n, l.Old.All, one.names("1"), one.part)...)
				d.New.All = append(d.New.All, kinds(one.n, l.New.All, one.names("2"), one.part*mix)...)
				if c.known && i == 1 {
					// The old pods have requests with these ids long before the change, and few since then.
					d.Old.All = append(d.Old.All, kinds(one.n, still(l.Old.All), one.names("2"), 1)...)
				}
			}
			if r := looks(d, 5*time.Minute, "1%"); r.Verdict != c.want {
				t.Errorf("%s, only the time before is left: %t: %s (%s), want %s", name, before, r.Verdict, r.Message, c.want)
			}
		}
	}
}

func TestALatencyDoesNotPassByProbesAlone(t *testing.T) {
	w := world{rand: rand.New(rand.NewPCG(1, 18)), new: 2, old: 3, load: 20, factor: 1}
	d := w.latency(5 * time.Minute)
	d.Old.All = slices.Concat(kinds(1, d.Old.All, "/orders/", 0.95), kinds(1, d.Old.All, "/healthz/", 0.05))
	d.New.All = kinds(1, d.New.All, "/healthz/", 0.05)
	if r := looks(d, 5*time.Minute, "1%"); r.Verdict != v1alpha1.VerdictNone || r.Metrics[0].Reason != v1alpha1.ReasonInsufficientData {
		t.Errorf("%s, reason %s: %s", r.Verdict, r.Metrics[0].Reason, r.Metrics[0].Message)
	}
}

// still returns counters that do not change.
func still(series []samples.Series) []samples.Series {
	var out []samples.Series
	for _, s := range series {
		one := samples.Series{Labels: s.Labels}
		for _, p := range s.Points {
			one.Points = append(one.Points, samples.Point{T: p.T, V: 7})
		}
		out = append(out, one)
	}
	return out
}

// takeLong moves all requests to the buckets above 0.1 s, half of them above 1 s.
func takeLong(series []samples.Series) {
	for i := range series {
		part := map[string]float64{"0.25": 0.5, "0.5": 0.5, "1": 0.5, "+Inf": 1}[series[i].Labels["le"]]
		for k := range series[i].Points {
			series[i].Points[k].V *= part
		}
	}
}

// The series of the share of failed requests are those of calls and requests here.
func TestCallsAreComparedIfTheNewVersionRenamesTheirKinds(t *testing.T) {
	for name, c := range map[string]struct {
		factor float64
		server string
		// added: each call is also made to another server, twice. first: the old pods made no calls.
		added, first bool
		want         v1alpha1.Verdict
	}{
		"no change":                            {1, "payments", false, false, v1alpha1.VerdictPass},
		"another server":                       {1, "payments-v2", false, false, v1alpha1.VerdictPass},
		"no calls":                             {0, "payments", false, false, v1alpha1.VerdictFail},
		"a third of the calls, another server": {0.3, "payments-v2", false, false, v1alpha1.VerdictFail},
		"twice as many calls to a new server":  {1, "payments", true, false, v1alpha1.VerdictPass},
		"a third of the calls, and those to a new server": {0.3, "payments", true, false, v1alpha1.VerdictFail},
		"the first calls": {1, "payments", false, true, v1alpha1.VerdictPass},
	} {
		w := world{rand: rand.New(rand.NewPCG(1, 18)), new: 2, old: 3, load: 20, share: 0.5, factor: c.factor}
		d := w.ratio(5 * time.Minute)
		d.Signal, d.Direction, d.SmallestChange = catalog.Outgoing, v1alpha1.DirectionEither, &v1alpha1.Change{Relative: "25%", Absolute: "0.02"}
		d.Old.Bad, d.New.Bad = to("payments", d.Old.Bad, 1), to(c.server, d.New.Bad, 1)
		if c.added {
			d.New.Bad = append(d.New.Bad, to("recommendations", d.New.Bad, 2)...)
		}
		if c.first {
			d.Old.Bad = nil
		}
		if m := looks(d, 5*time.Minute, "1%").Metrics[0]; m.Verdict != c.want {
			t.Errorf("%s: %s (%s), want %s", name, m.Verdict, m.Message, c.want)
		}
	}
}

// With more than the largest kinds, calls that are added are among the rare ones.
func TestCallsThatAreOnlyAddedDoNotHideOrFakeAChangeOfRareOnes(t *testing.T) {
	for name, c := range map[string]struct {
		// rare is the factor of the new calls of rare kinds.
		rare float64
		// ids: the rare kinds, or some of them, have other names. added: as many calls as all others are made to a new server.
		ids   string
		added bool
		want  v1alpha1.Verdict
	}{
		"no change":                           {1, "", false, v1alpha1.VerdictPass},
		"calls to a new server":               {1, "", true, v1alpha1.VerdictPass},
		"three times as many":                 {3, "", false, v1alpha1.VerdictFail},
		"three times as many, and the others": {3, "", true, v1alpha1.VerdictFail},
		"a fifth of them":                     {0.2, "", false, v1alpha1.VerdictFail},
		"a fifth of them, and the others":     {0.2, "", true, v1alpha1.VerdictFail},
		"other names":                         {1, "01234", false, v1alpha1.VerdictPass},
		"a fifth of them, other names":        {0.2, "01234", false, v1alpha1.VerdictFail},
		"other names of two of five":          {1, "12", false, v1alpha1.VerdictPass},
		"a fifth, other names of two of five": {0.2, "12", false, v1alpha1.VerdictFail},
	} {
		w := world{rand: rand.New(rand.NewPCG(1, 18)), new: 2, old: 3, load: 20, share: 0.5, factor: 1}
		d := w.ratio(5 * time.Minute)
		d.Signal, d.Direction, d.SmallestChange = catalog.Outgoing, v1alpha1.DirectionEither, &v1alpha1.Change{Relative: "25%", Absolute: "0.02"}
		const frequent, rare = 0.85, 0.15
		calls := to("payments", d.New.Bad, 1)
		d.Old.Bad = divided(to("payments", d.Old.Bad, 1), "q", frequent, rare)
		d.New.Bad = divided(calls, "q", frequent, rare*c.rare)
		for _, s := range d.New.Bad {
			if kind, isRare := strings.CutPrefix(s.Labels["handler"], "qrare-"); isRare && strings.Contains(c.ids, kind) {
				s.Labels["handler"] += "-" + s.Labels["pod"]
			}
		}
		if c.added {
			d.New.Bad = append(d.New.Bad, to("recommendations", calls, 1)...)
		}
		m := looks(d, 5*time.Minute, "1%").Metrics[0]
		if m.Verdict != c.want {
			t.Errorf("%s: %s (%s), want %s", name, m.Verdict, m.Message, c.want)
		}
		if factor := decimal(t, m.New.Value) / decimal(t, m.Old.Value); c.ids == "" && m.Verdict == v1alpha1.VerdictPass && (factor < 0.5 || factor > 2) {
			t.Errorf("%s: a pass shows a change: new %s, old %s", name, m.New.Value, m.Old.Value)
		}
	}
}

func decimal(t *testing.T, value string) float64 {
	t.Helper()
	number, err := strconv.ParseFloat(value, 64)
	if err != nil {
		t.Fatal(err)
	}
	return number
}

// to returns series of calls to a server: times as many as those of other series.
func to(server string, series []samples.Series, times float64) []samples.Series {
	var out []samples.Series
	for _, s := range series {
		one := samples.Series{Labels: map[string]string{"pod": s.Labels["pod"], "server_address": server}}
		for _, p := range s.Points {
			one.Points = append(one.Points, samples.Point{T: p.T, V: p.V * times})
		}
		out = append(out, one)
	}
	return out
}

func TestBadEventsOfKindsThatTheirTotalHasNotAreComparedIfTheOldPodsHadNone(t *testing.T) {
	for name, c := range map[string]struct{ old, new func(Pair) []samples.Series }{
		"no bad events": {
			old: func(Pair) []samples.Series { return nil },
			new: func(p Pair) []samples.Series { return to("payments", p.Bad, 1) },
		},
		"only bad events of another kind": {
			old: func(p Pair) []samples.Series { return to("stock", p.Bad, 0.1) },
			new: func(p Pair) []samples.Series {
				return slices.Concat(to("stock", p.Bad, 0.1), to("payments", p.Bad, 1))
			},
		},
	} {
		w := world{rand: rand.New(rand.NewPCG(1, 18)), new: 2, old: 3, load: 20, share: 0.3, factor: 1}
		d := w.ratio(5 * time.Minute)
		d.Old.Bad, d.New.Bad = c.old(d.Old), c.new(d.New)
		if r := looks(d, 5*time.Minute, "1%"); r.Verdict != v1alpha1.VerdictFail {
			t.Errorf("%s: %s (%s), want a fail", name, r.Verdict, r.Message)
		}
	}
}
