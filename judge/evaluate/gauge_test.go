package evaluate

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/breakwater-dev/breakwater/apis/judge/v1alpha1"
	"github.com/breakwater-dev/breakwater/judge/catalog"
	"github.com/breakwater-dev/breakwater/judge/samples"
)

func TestARiseOfThreadsFailsIfItLasts(t *testing.T) {
	for name, c := range map[string]struct {
		until time.Duration
		want  v1alpha1.Verdict
	}{
		"until the end":             {time.Hour, v1alpha1.VerdictFail},
		"a minute after the change": {90 * time.Second, v1alpha1.VerdictPass},
	} {
		w := world{rand: rand.New(rand.NewPCG(1, 18)), new: 1, old: 2, noise: 0.01, factor: 1}
		d := w.gauge(5 * time.Minute)
		d.Name, d.Sustained = "threads", true
		for _, s := range d.New.All {
			for i, p := range s.Points {
				if p.T > start && p.T < start+c.until.Seconds() {
					s.Points[i] = samples.Point{T: p.T, V: 4 * p.V}
				}
			}
		}
		if e := looks(d, 5*time.Minute, "1%").Metrics[0]; e.Verdict != c.want {
			t.Errorf("%s: %s (%s), want %s", name, e.Verdict, e.Message, c.want)
		}
	}
}

func TestAGaugeThatIsZeroOnTheOldPods(t *testing.T) {
	constant := func(value float64) func(float64) float64 { return func(float64) float64 { return value } }
	for name, c := range map[string]struct {
		news      func(t float64) float64
		absolute  string
		direction v1alpha1.Direction
		want      v1alpha1.Verdict
	}{
		"far above":                             {constant(1000), "1", v1alpha1.DirectionHigher, v1alpha1.VerdictFail},
		"far above, no absolute change":         {constant(1000), "", v1alpha1.DirectionHigher, v1alpha1.VerdictFail},
		"growing":                               {func(t float64) float64 { return max(0, t) }, "1", v1alpha1.DirectionHigher, v1alpha1.VerdictFail},
		"also zero":                             {constant(0), "1", v1alpha1.DirectionHigher, v1alpha1.VerdictPass},
		"also zero, no absolute change":         {constant(0), "", v1alpha1.DirectionHigher, v1alpha1.VerdictPass},
		"less than the smallest change":         {constant(0.5), "1", v1alpha1.DirectionHigher, v1alpha1.VerdictPass},
		"above for a moment":                    {func(t float64) float64 { return map[bool]float64{true: 20}[t > 100 && t < 116] }, "1", v1alpha1.DirectionHigher, v1alpha1.VerdictPass},
		"above, and only lower values are bad":  {constant(1000), "1", v1alpha1.DirectionLower, v1alpha1.VerdictPass},
		"below":                                 {constant(-5), "1", v1alpha1.DirectionLower, v1alpha1.VerdictFail},
		"below, and only higher values are bad": {constant(-5), "1", v1alpha1.DirectionHigher, v1alpha1.VerdictPass},
		"below, and both are bad":               {constant(-5), "1", v1alpha1.DirectionEither, v1alpha1.VerdictFail},
	} {
		for _, before := range []bool{false, true} {
			w := world{rand: rand.New(rand.NewPCG(1, 18)), new: 2, old: 3, factor: 1, before: before}
			d := w.gauge(5 * time.Minute)
			d.Signal, d.Direction, d.SmallestChange = catalog.Custom, c.direction, &v1alpha1.Change{Relative: "50%", Absolute: c.absolute}
			for _, side := range []struct {
				series []samples.Series
				value  func(float64) float64
			}{{d.New.All, c.news}, {d.Old.All, constant(0)}} {
				for _, s := range side.series {
					for i := range s.Points {
						s.Points[i].V = side.value(s.Points[i].T - start)
					}
				}
			}
			if r := looks(d, 5*time.Minute, "1%"); r.Verdict != c.want {
				t.Errorf("%s, only the time before is left: %t: %s (%s), want %s", name, before, r.Verdict, r.Message, c.want)
			}
		}
	}
}

func TestCPUIsComparedPerRequest(t *testing.T) {
	for name, c := range map[string]struct {
		world world
		want  v1alpha1.Verdict
	}{
		"30 % more for each request":                        {world{new: 2, old: 2, load: 20, factor: 1.3}, v1alpha1.VerdictFail},
		"no change":                                         {world{new: 2, old: 2, load: 20, factor: 1}, v1alpha1.VerdictPass},
		"twice the requests, and no old pods left":          {world{new: 2, old: 2, load: 20, factor: 1, before: true, ramp: 2}, v1alpha1.VerdictPass},
		"twice the CPU for each request, no old pods left":  {world{new: 2, old: 2, load: 20, factor: 2, before: true}, v1alpha1.VerdictFail},
		"20 times the CPU of so few requests that few need": {world{new: 2, old: 2, load: 0.02, factor: 20}, v1alpha1.VerdictPass},
	} {
		c.world.rand = rand.New(rand.NewPCG(1, 18))
		if r := looks(c.world.cpu(5*time.Minute), 5*time.Minute, "1%"); r.Metrics[0].Verdict != c.want {
			t.Errorf("%s: %s (%s), want %s", name, r.Metrics[0].Verdict, r.Metrics[0].Message, c.want)
		}
	}
}
