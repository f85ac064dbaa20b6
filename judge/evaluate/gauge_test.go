package evaluate

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/breakwater-dev/breakwater/apis/judge/v1alpha1"
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
