package evaluate

import (
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/breakwater-dev/breakwater/apis/judge/v1alpha1"
	"github.com/breakwater-dev/breakwater/judge/catalog"
	"github.com/breakwater-dev/breakwater/judge/samples"
)

// podLife is that of one pod, in seconds from the release.
type podLife struct {
	name, uid string
	// created is its creation, 0 if it is not known.
	created float64
	// first and last are its first and its last sample.
	first, last float64
	// restarts are those until the first sample, and later the times of others.
	restarts float64
	later    []float64
	// killed: its container was killed before the first sample. endedOtherwise is the time in which its last end
	// had another reason.
	killed         bool
	endedOtherwise [2]float64
	// sidecar has the restarts of a second container until the first sample, and sidecarLater the times
	// of others.
	sidecar      float64
	sidecarLater []float64
	// init: the container app is an init container, of this restartPolicy.
	init          bool
	restartPolicy string
	// unready is the time in which it is not Ready, and crashing that in which its container waits to be
	// restarted.
	unready, crashing [2]float64
	// otherReplica: the series of the reason is from another replica of Prometheus, which scrapes 7 s later.
	otherReplica bool
	// clock is how many seconds the clock of Prometheus is behind that of the API server.
	clock float64
	// exporter is the address of kube-state-metrics.
	exporter string
}

// seen returns the samples of a reason: it has none while the reason does not apply.
func seen(s samples.Series) samples.Series {
	s.Points = slices.DeleteFunc(s.Points, func(at samples.Point) bool { return at.V == 0 })
	return s
}

// series returns what kube-state-metrics shows of a pod.
func (p podLife) series() []samples.Series {
	of := func(name string, labels map[string]string, value func(at float64) float64) samples.Series {
		s := samples.Series{Labels: map[string]string{"__name__": name, "pod": p.name, "uid": p.uid, "instance": p.exporter}}
		for k, v := range labels {
			s.Labels[k] = v
		}
		for at := p.first; at <= p.last; at += 15 {
			s.Points = append(s.Points, samples.Point{T: start + at - p.clock, V: value(at)})
		}
		return s
	}
	counter := func(restarts float64, later []float64) func(float64) float64 {
		return func(at float64) float64 {
			n := restarts
			for _, l := range later {
				if l <= at {
					n++
				}
			}
			return n
		}
	}
	constant := func(v float64) func(float64) float64 { return func(float64) float64 { return v } }
	within := func(span [2]float64, inside, outside float64) func(float64) float64 {
		return func(at float64) float64 {
			if at >= span[0] && at < span[1] {
				return inside
			}
			return outside
		}
	}
	out := []samples.Series{
		of("kube_pod_status_ready", map[string]string{"condition": "true"}, within(p.unready, 0, 1)),
		of(restartsTotal, map[string]string{"container": "app"}, counter(p.restarts, p.later)),
	}
	if p.sidecar != 0 || p.sidecarLater != nil {
		out = append(out, of(restartsTotal, map[string]string{"container": "sidecar"}, counter(p.sidecar, p.sidecarLater)))
	}
	if p.crashing != [2]float64{} {
		reason := seen(of("kube_pod_container_status_waiting_reason", map[string]string{"container": "app", "reason": "CrashLoopBackOff"}, within(p.crashing, 1, 0)))
		for i := range reason.Points {
			if p.otherReplica {
				reason.Points[i].T += 7
			}
		}
		out = append(out, reason)
	}
	if p.created != 0 {
		out = append(out, of(catalog.PodCreated, nil, constant(start+p.created)))
	}
	if p.killed {
		out = append(out, seen(of(lastTerminated, map[string]string{"container": "app", "reason": oomKilled}, within(p.endedOtherwise, 0, 1))))
	}
	if p.init {
		for _, s := range out {
			if s.Labels["container"] == "app" {
				s.Labels["__name__"] = strings.Replace(s.Labels["__name__"], "kube_pod_container_", "kube_pod_init_container_", 1)
			}
		}
		out = append(out, of("kube_pod_init_container_info", map[string]string{"container": "app", "restart_policy": p.restartPolicy}, constant(1)))
	}
	return out
}

// A pod that existed before the range may have restarted at any time, so only the restarts of a pod
// that began in the range count from zero.
func TestRestartsAndKillsOfNewPodsCountFromTheirCreation(t *testing.T) {
	const end, day = 290, -86400
	old := func(edit func(*podLife)) []podLife {
		var out []podLife
		for _, name := range []string{"old-1", "old-2", "old-3"} {
			p := podLife{name: name, created: day, first: -595, last: end}
			edit(&p)
			out = append(out, p)
		}
		return out
	}
	quiet := old(func(*podLife) {})
	unknown := old(func(p *podLife) { p.created = 0 })
	const atStart, oom = "restarts again and again since the start: new-1", "out of memory (OOMKilled) at the start: new-1"
	for name, c := range map[string]struct {
		news, olds      []podLife
		referenceBefore bool
		// want is the reason of a fail; empty for none.
		want string
	}{
		"twice before the first scrape":                       {[]podLife{{name: "new-1", created: -40, first: 5, last: end, restarts: 2}}, quiet, false, atStart},
		"twice before the release":                            {[]podLife{{name: "new-1", created: -120, first: -100, last: end, restarts: 1, later: []float64{-50}}}, quiet, false, atStart},
		"twice before the first scrape, late in the analysis": {[]podLife{{name: "new-1", created: 180, first: 215, last: end, restarts: 2}}, quiet, false, atStart},
		"once before the first scrape and once after it":      {[]podLife{{name: "new-1", created: -40, first: 5, last: end, restarts: 1, later: []float64{100}}}, quiet, false, atStart},
		"once before the first scrape":                        {[]podLife{{name: "new-1", created: -40, first: 5, last: end, restarts: 1}}, quiet, false, ""},
		"each pod once, before its first scrape": {[]podLife{{name: "new-1", created: -40, first: 5, last: end, restarts: 1},
			{name: "new-2", created: 10, first: 35, last: end, restarts: 1}}, quiet, false, ""},
		"the creation is not known":                            {[]podLife{{name: "new-1", first: 5, last: end, restarts: 2}}, unknown, false, atStart},
		"the creation is not known, and the pod existed":       {[]podLife{{name: "new-1", first: -595, last: end, restarts: 7}}, unknown, false, ""},
		"a pod of last week":                                   {[]podLife{{name: "new-1", created: 7 * day, first: -595, last: end, restarts: 7}}, quiet, false, ""},
		"a pod of last week that was not scraped":              {[]podLife{{name: "new-1", created: 7 * day, first: 5, last: end, restarts: 7}}, quiet, false, ""},
		"Prometheus restarted":                                 {[]podLife{{name: "new-1", first: -95, last: end, restarts: 7}}, old(func(p *podLife) { p.created, p.first = 0, -95 }), false, ""},
		"Prometheus restarted just before the first sample":    {[]podLife{{name: "new-1", first: 50, last: end, restarts: 7}}, slices.Concat(old(func(p *podLife) { p.created, p.last = 0, -100 }), []podLife{{name: "old-4", first: 40, last: end}}), false, ""},
		"Prometheus restarted, and the creation is known":      {[]podLife{{name: "new-1", created: -120, first: -95, last: end, restarts: 2}}, old(func(p *podLife) { p.first = -95 }), false, atStart},
		"kube-state-metrics was replaced":                      {[]podLife{{name: "new-1", first: -595, last: 50, restarts: 2, exporter: "a"}, {name: "new-1", first: 65, last: end, restarts: 2, exporter: "b"}}, unknown, false, ""},
		"kube-state-metrics was replaced after one restart":    {[]podLife{{name: "new-1", created: -40, first: 5, last: 50, restarts: 1, exporter: "a"}, {name: "new-1", created: -40, first: 65, last: end, restarts: 1, exporter: "b"}}, quiet, false, ""},
		"two kube-state-metrics show one restart":              {[]podLife{{name: "new-1", created: -40, first: 5, last: end, later: []float64{60}, exporter: "a"}, {name: "new-1", created: -40, first: 9, last: end, later: []float64{60}, exporter: "b"}}, quiet, false, ""},
		"two kube-state-metrics show two restarts":             {[]podLife{{name: "new-1", created: -40, first: 5, last: end, later: []float64{60, 120}, exporter: "a"}, {name: "new-1", created: -40, first: 9, last: end, later: []float64{60, 120}, exporter: "b"}}, quiet, false, "2 restarts"},
		"one of two kube-state-metrics ended":                  {[]podLife{{name: "new-1", uid: "a", created: -40, first: 5, last: 80, later: []float64{60}, exporter: "a"}, {name: "new-1", uid: "a", created: -40, first: 9, last: end, later: []float64{60, 82}, exporter: "b"}}, quiet, false, "2 restarts"},
		"two kube-state-metrics show a restart of each pod":    {[]podLife{{name: "new-1", created: -40, first: 5, last: end, later: []float64{60}, exporter: "a"}, {name: "new-1", created: -40, first: 9, last: end, later: []float64{60}, exporter: "b"}, {name: "new-2", created: -40, first: 5, last: end, later: []float64{60}, exporter: "a"}}, quiet, false, "2 restarts"},
		"the old pods restarted as often in their life":        {[]podLife{{name: "new-1", created: -40, first: 5, last: end, restarts: 2}}, old(func(p *podLife) { p.restarts = 2 }), false, ""},
		"an old pod that began restarted as often":             {[]podLife{{name: "new-1", created: -40, first: 5, last: end, restarts: 2}}, []podLife{{name: "old-1", created: -300, first: -290, last: end, restarts: 2}}, false, ""},
		"one of three old pods restarted as often":             {[]podLife{{name: "new-1", created: -40, first: 5, last: end, restarts: 2}}, slices.Concat(quiet[:2], []podLife{{name: "old-3", created: -300, first: -290, last: end, restarts: 2}}), false, atStart},
		"the old pods restart at the same time, half as often": {[]podLife{{name: "new-1", created: -40, first: 5, last: end, restarts: 2}}, old(func(p *podLife) { p.later = []float64{60} }), false, ""},
		"one of three old pods restarts at the same time":      {[]podLife{{name: "new-1", created: -40, first: 5, last: end, restarts: 2}}, slices.Concat(quiet[:2], old(func(p *podLife) { p.later = []float64{60} })[2:]), false, atStart},
		"no old pods": {[]podLife{{name: "new-1", created: -40, first: 5, last: end, restarts: 2}}, nil, false, atStart},
		"pods of a DaemonSet, whose old pods are gone": {[]podLife{{name: "new-1", created: -40, first: 5, last: end, restarts: 2},
			{name: "new-2", created: 10, first: 35, last: end, restarts: 2}}, nil, true, ""},
		"pods of a DaemonSet that restart again later":      {[]podLife{{name: "new-1", created: -40, first: 5, last: end, restarts: 2, later: []float64{60, 120}}}, nil, true, "2 restarts"},
		"a pod of a StatefulSet":                            {[]podLife{{name: "new-1", uid: "a", created: day, first: -595, last: -20}, {name: "new-1", uid: "b", created: -15, first: 5, last: end, restarts: 2}}, nil, true, atStart},
		"a pod of a StatefulSet that replaces a restarting": {[]podLife{{name: "new-1", uid: "a", created: day, first: -595, last: -20, restarts: 2}, {name: "new-1", uid: "b", created: -15, first: 5, last: end, restarts: 2}}, nil, true, ""},
		"a pod of a StatefulSet that replaces one of a short release": {[]podLife{{name: "new-1", uid: "a", created: -400, first: -390, last: -20, restarts: 3},
			{name: "new-1", uid: "b", created: -15, first: 5, last: end}}, quiet, false, ""},
		"a pod of a StatefulSet that replaces one of a short release, and the creation is not known": {[]podLife{{name: "new-1", uid: "a", first: -390, last: -20, restarts: 3},
			{name: "new-1", uid: "b", first: 5, last: end}}, unknown, false, ""},
		"a pod of a StatefulSet that replaces one that restarts until then": {[]podLife{{name: "new-1", uid: "a", created: day, first: -595, last: 80, later: []float64{20, 50, 70}},
			{name: "new-1", uid: "b", created: 85, first: 100, last: end}}, nil, true, ""},
		"a pod of a StatefulSet that replaces one that restarts until then, and restarts": {[]podLife{{name: "new-1", uid: "a", created: day, first: -595, last: 80},
			{name: "new-1", uid: "b", created: 85, first: 100, last: end, later: []float64{150, 200}}}, nil, true, "2 restarts"},
		"a pod of a StatefulSet that replaces one that was killed": {[]podLife{{name: "new-1", uid: "a", created: -400, first: -390, last: -20, restarts: 1, killed: true},
			{name: "new-1", uid: "b", created: -15, first: 5, last: end}}, quiet, false, ""},
		"each container once, before the first scrape": {[]podLife{{name: "new-1", created: -40, first: 5, last: end, restarts: 1, sidecar: 1}}, quiet, false, ""},
		"each container once":                          {[]podLife{{name: "new-1", created: -40, first: 5, last: end, later: []float64{60}, sidecarLater: []float64{60}}}, quiet, false, ""},
		"each container once, of a pod of last week":   {[]podLife{{name: "new-1", created: 7 * day, first: -595, last: end, restarts: 4, later: []float64{60}, sidecar: 7, sidecarLater: []float64{60}}}, quiet, false, ""},
		"each container of two pods once":              {[]podLife{{name: "new-1", created: -40, first: 5, last: end, later: []float64{60}, sidecarLater: []float64{60}}, {name: "new-2", created: -40, first: 5, last: end, later: []float64{60}, sidecarLater: []float64{60}}}, quiet, false, "2 restarts"},
		"one container once, and the other twice":      {[]podLife{{name: "new-1", created: -40, first: 5, last: end, later: []float64{60}, sidecarLater: []float64{60, 120}}}, quiet, false, "2 restarts"},
		"a sidecar twice":                              {[]podLife{{name: "new-1", created: -40, first: 5, last: end, init: true, restartPolicy: "Always", later: []float64{60, 120}}}, quiet, false, "2 restarts"},
		"a sidecar twice before the first scrape":      {[]podLife{{name: "new-1", created: -40, first: 5, last: end, init: true, restartPolicy: "Always", restarts: 2}}, quiet, false, atStart},
		"a sidecar as often as those of the old pods in their life": {[]podLife{{name: "new-1", created: -40, first: 5, last: end, init: true, restartPolicy: "Always", restarts: 2}},
			old(func(p *podLife) { p.init, p.restartPolicy, p.restarts = true, "Always", 2 }), false, ""},
		"a sidecar and the other container once": {[]podLife{{name: "new-1", created: -40, first: 5, last: end, init: true, restartPolicy: "Always", later: []float64{60}, sidecarLater: []float64{60}}}, quiet, false, ""},
		"a sidecar that is killed":               {[]podLife{{name: "new-1", created: -40, first: -10, last: end, init: true, restartPolicy: "Always", restarts: 1, killed: true}}, quiet, false, oom},
		"a sidecar that waits":                   {[]podLife{{name: "new-1", created: -40, first: 5, last: end, init: true, restartPolicy: "Always", crashing: [2]float64{20, 400}}}, quiet, false, "containers do not run: new-1"},
		"an init container that was retried until the pod started": {[]podLife{{name: "new-1", created: -40, first: 5, last: end, init: true, restarts: 1, later: []float64{10, 30, 70},
			killed: true, endedOtherwise: [2]float64{70, 400}, unready: [2]float64{0, 75}}}, quiet, false, ""},
		"an init container that is retried until now": {[]podLife{{name: "new-1", created: -40, first: 5, last: end, init: true, restarts: 1, later: []float64{10, 30, 70, 150},
			crashing: [2]float64{20, 400}, unready: [2]float64{0, 400}}}, quiet, false, "not Ready since the start: new-1"},
		"the clock of Prometheus is behind that of the API server": {[]podLife{{name: "new-1", uid: "a", created: 10, first: 20, last: end, restarts: 2, clock: 30}}, quiet, false, atStart},
		"an OOM kill before the first scrape":                      {[]podLife{{name: "new-1", created: -40, first: -10, last: end, restarts: 1, killed: true}}, quiet, false, oom},
		"an OOM kill of a pod of last week":                        {[]podLife{{name: "new-1", created: 7 * day, first: -595, last: end, restarts: 1, killed: true}}, quiet, false, ""},
		"an OOM kill of a pod of last week that was killed before": {[]podLife{{name: "new-1", created: 7 * day, first: -595, last: end, restarts: 1, killed: true, later: []float64{100}}},
			quiet, false, "out of memory (OOMKilled): new-1"},
		"the same, and the old pods were killed again, too": {[]podLife{{name: "new-1", created: 7 * day, first: -595, last: end, restarts: 1, killed: true, later: []float64{100}}},
			old(func(p *podLife) { p.restarts, p.killed, p.later = 1, true, []float64{60} }), false, ""},
		"an OOM kill just before the release, whose back-off ends after it": {[]podLife{{name: "new-1", created: 7 * day, first: -595, last: end, killed: true, crashing: [2]float64{-60, 30}, later: []float64{30}}},
			quiet, false, ""},
		"the same, and an OOM kill after it": {[]podLife{{name: "new-1", created: 7 * day, first: -595, last: end, killed: true, crashing: [2]float64{-60, 30}, later: []float64{30, 100}}},
			quiet, false, "out of memory (OOMKilled): new-1; 2 restarts"},
		"a container that waits":  {[]podLife{{name: "new-1", created: -40, first: 5, last: end, crashing: [2]float64{20, 400}}}, quiet, false, "containers do not run: new-1"},
		"a container that waited": {[]podLife{{name: "new-1", created: -40, first: 5, last: end, crashing: [2]float64{20, 80}}}, quiet, false, ""},
		"a container that waits, as another replica of Prometheus saw":  {[]podLife{{name: "new-1", created: -40, first: 5, last: end, crashing: [2]float64{20, 400}, otherReplica: true}}, quiet, false, "containers do not run: new-1"},
		"a container that waited, as another replica of Prometheus saw": {[]podLife{{name: "new-1", created: -40, first: 5, last: end, crashing: [2]float64{20, 80}, otherReplica: true}}, quiet, false, ""},
		"a container that waited until now":                             {[]podLife{{name: "new-1", created: -40, first: 5, last: end, crashing: [2]float64{20, end}}}, quiet, false, ""},
		"a container that has begun to wait":                            {[]podLife{{name: "new-1", created: -40, first: 5, last: end, crashing: [2]float64{end, 400}}}, quiet, false, ""},
		"a container that waits after it ran": {[]podLife{{name: "new-1", created: -40, first: 5, last: end, crashing: [2]float64{200, 400}}},
			old(func(p *podLife) { p.crashing = [2]float64{-100, -50} }), false, "containers do not run: new-1"},
		"a container that waits, as those of the old pods do": {[]podLife{{name: "new-1", created: -40, first: 5, last: end, crashing: [2]float64{20, 400}}},
			old(func(p *podLife) { p.crashing = [2]float64{-100, 400} }), false, ""},
		"a container that waits, as those of the old pods did until they were deleted": {[]podLife{{name: "new-1", created: -40, first: 5, last: end, crashing: [2]float64{20, 400}}},
			old(func(p *podLife) { p.crashing, p.last = [2]float64{-100, 400}, -10 }), false, ""},
		"a container that waits, seen by two kube-state-metrics": {[]podLife{{name: "new-1", created: -40, first: 5, last: end, crashing: [2]float64{20, 400}, exporter: "a"},
			{name: "new-1", created: -40, first: 9, last: end, crashing: [2]float64{20, 400}, exporter: "b"}}, quiet, false, "containers do not run: new-1"},
		"an OOM kill, and the old pods were killed at theirs": {[]podLife{{name: "new-1", created: -40, first: -10, last: end, restarts: 1, killed: true}},
			old(func(p *podLife) { p.restarts, p.killed = 1, true }), false, ""},
	} {
		t.Run(name, func(t *testing.T) {
			at := time.UnixMilli(int64(start * 1000))
			in := Input{Check: Defaulted(v1alpha1.MetricCheckSpec{}), Target: v1alpha1.Target{StartTime: metav1.NewTime(at)}, Now: at.Add(5 * time.Minute), End: at.Add(5 * time.Minute)}
			d := Data{Metric: catalog.Metric{Signal: catalog.Health}, ReferenceBefore: c.referenceBefore}
			for _, p := range c.news {
				d.New.All = append(d.New.All, p.series()...)
			}
			for _, p := range c.olds {
				d.Old.All = append(d.Old.All, p.series()...)
			}
			if c.referenceBefore {
				d.Old = d.New
			}
			o := compareMetric(in, d)
			if o.message != c.want {
				t.Errorf("the message is %q, want %q", o.message, c.want)
			}
			if c.want == "" != (o.reason == "") || strings.HasPrefix(c.want, "restarts") && o.New.Value != "2" {
				t.Errorf("reason %q, %s events", o.reason, o.New.Value)
			}
		})
	}
}

// The repair of a StatefulSet has the names of the pods of the version that failed. Their OOM kills do not excuse those of the
// new pods. Fewer restarts than theirs are no evidence, and more are a fail.
func TestTheOOMKillsOfPodsThatMayBeOfAFailedVersionAreNoReference(t *testing.T) {
	const day = -86400
	at := time.UnixMilli(int64(start * 1000))
	for name, c := range map[string]struct {
		before, now podLife
		want        string
	}{
		"both were killed":             {podLife{restarts: 3, killed: true}, podLife{restarts: 1, killed: true}, "out of memory (OOMKilled) at the start: new-1"},
		"both restart again and again": {podLife{restarts: 9}, podLife{restarts: 2}, ""},
		"only the new one does":        {podLife{}, podLife{restarts: 2}, "restarts again and again since the start: new-1"},
	} {
		t.Run(name, func(t *testing.T) {
			c.before.name, c.before.uid, c.before.created, c.before.first, c.before.last = "new-1", "a", day, -595, -45
			c.now.name, c.now.uid, c.now.created, c.now.first, c.now.last = "new-1", "b", -40, -10, 290
			series := append(c.before.series(), c.now.series()...)
			d := Data{Metric: catalog.Metric{Signal: catalog.Health}, ReferenceBefore: true, New: Pair{All: series}, Old: Pair{All: series}}
			in := Input{Check: Defaulted(v1alpha1.MetricCheckSpec{}), Metrics: []Data{d}, Now: at.Add(5 * time.Minute), End: at.Add(5 * time.Minute),
				Target: v1alpha1.Target{New: `pod="new-1"`, NoReferenceBefore: true, StartTime: metav1.NewTime(at)}}
			e := Evaluate(in, nil).Metrics[0]
			if failed := e.Verdict == v1alpha1.VerdictFail; failed != (c.want != "") || failed && e.Message != c.want {
				t.Errorf("verdict %s: %q, want %q", e.Verdict, e.Message, c.want)
			}
		})
	}
}

func TestAContainerWithoutItsImageFailsTheRelease(t *testing.T) {
	for _, reasons := range [][]string{{"ErrImagePull"}, {"ImagePullBackOff"}, {"InvalidImageName"}, {"ErrImageNeverPull"}, {"ImageInspectError"}, {"RegistryUnavailable"},
		{"SignatureValidationFailed"}, {"ErrImagePull", "ImagePullBackOff"}} {
		at := time.UnixMilli(int64(start * 1000))
		d := Data{Metric: catalog.Metric{Signal: catalog.Health}}
		for _, s := range (podLife{name: "new-1", created: -40, first: 5, last: 290, crashing: [2]float64{0, 400}}).series() {
			if s.Labels["reason"] != "CrashLoopBackOff" {
				d.New.All = append(d.New.All, s)
				continue
			}
			for i, reason := range reasons { // they alternate
				one := samples.Series{Labels: maps.Clone(s.Labels)}
				one.Labels["reason"] = reason
				for k := i; k < len(s.Points); k += len(reasons) {
					one.Points = append(one.Points, s.Points[k])
				}
				d.New.All = append(d.New.All, one)
			}
		}
		d.Old.All = podLife{name: "old-1", created: -86400, first: -595, last: 290}.series()
		o := compareMetric(Input{Check: Defaulted(v1alpha1.MetricCheckSpec{}), Target: v1alpha1.Target{StartTime: metav1.NewTime(at)}, Now: at.Add(5 * time.Minute), End: at.Add(5 * time.Minute)}, d)
		if want := "containers do not run: new-1"; o.message != want {
			t.Errorf("%s: the message is %q, want %q", reasons, o.message, want)
		}
	}
}

// An update in place keeps the pod, its UID and its series. It restarts each container once.
func TestTheHealthBeforeAnUpdateInPlaceDoesNotCount(t *testing.T) {
	const end, day = 290, -86400
	const updated = 60.0
	for name, c := range map[string]struct {
		pod podLife
		// since is since when the pod is new.
		since float64
		want  string
	}{
		"only the update": {podLife{created: 7 * day, first: -595, restarts: 3, later: []float64{75}}, updated, ""},
		"only the update, and the creation is not known":     {podLife{first: -595, restarts: 3, later: []float64{75}}, updated, ""},
		"only the update of two containers":                  {podLife{created: 7 * day, first: -595, later: []float64{75}, sidecar: 4, sidecarLater: []float64{90}}, updated, ""},
		"kube-state-metrics shows it after a minute":         {podLife{created: 7 * day, first: -595, later: []float64{120}}, updated, ""},
		"a young pod that was updated twice":                 {podLife{created: -300, first: -285, later: []float64{-60, 75}}, updated, ""},
		"a young pod that was updated, and one restart":      {podLife{created: -300, first: -285, later: []float64{75, 150}}, updated, "2 restarts"},
		"one restart more":                                   {podLife{created: 7 * day, first: -595, later: []float64{75, 150}}, updated, "2 restarts"},
		"updated before the compared time":                   {podLife{created: 7 * day, first: -595, later: []float64{-30}}, -40, ""},
		"updated before the compared time, and a restart":    {podLife{created: 7 * day, first: -595, later: []float64{-30, 150}}, -40, "2 restarts"},
		"updated long before, and a restart":                 {podLife{created: 7 * day, first: -595, later: []float64{150}}, -900, "2 restarts"},
		"a replaced pod that restarts":                       {podLife{uid: "b", created: updated, first: 70, later: []float64{150}}, updated, "2 restarts"},
		"a replaced pod without a UID that restarts":         {podLife{created: updated, first: -595, later: []float64{150}}, updated, "2 restarts"},
		"a pod that was not updated, and a restart":          {podLife{created: 7 * day, first: -595, later: []float64{150}}, 0, "2 restarts"},
		"restarts of the version before":                     {podLife{created: 7 * day, first: -595, later: []float64{20, 40, 75}}, updated, ""},
		"restarts of the version before, and of the new one": {podLife{created: 7 * day, first: -595, later: []float64{20, 40, 75, 150}}, updated, "2 restarts"},
		"a slow start":                            {podLife{created: 7 * day, first: -595, unready: [2]float64{50, 400}}, updated, ""},
		"not Ready long after a slow start":       {podLife{created: 7 * day, first: -595, unready: [2]float64{190, 400}}, updated, "not Ready any more: web-2, web-3"},
		"not Ready since the update":              {podLife{created: 7 * day, first: -595, unready: [2]float64{20, 400}}, 30, "not Ready since the start: web-2, web-3"},
		"not Ready before the update":             {podLife{created: 7 * day, first: -595, unready: [2]float64{-240, 0}}, -5, ""},
		"killed before the update of a young pod": {podLife{created: -300, first: -285, killed: true}, updated, ""},
		"killed since the update of a young pod":  {podLife{created: -300, first: 75, killed: true}, updated, "out of memory (OOMKilled): web-2, web-3"},
		"killed just before the update":           {podLife{created: -300, first: -285, killed: true, later: []float64{75}}, updated, ""},
		"killed before the update, and since":     {podLife{created: -300, first: -285, killed: true, endedOtherwise: [2]float64{75, 150}, later: []float64{75, 150}}, updated, "out of memory (OOMKilled): web-2, web-3; 2 restarts"},
		"killed before the update, and a restart": {podLife{created: -300, first: -285, killed: true, endedOtherwise: [2]float64{90, 400}, later: []float64{90, 150}}, updated, "2 restarts"},
		"a crash loop until an update just now":   {podLife{created: 7 * day, first: -595, crashing: [2]float64{-100, 400}}, 280, ""},
		"a crash loop since the update":           {podLife{created: 7 * day, first: -595, crashing: [2]float64{100, 400}}, updated, "containers do not run: web-2, web-3"},
	} {
		t.Run(name, func(t *testing.T) {
			at := time.UnixMilli(int64(start * 1000))
			target := v1alpha1.Target{StartTime: metav1.NewTime(at)}
			d := Data{Metric: catalog.Metric{Signal: catalog.Health}}
			for _, pod := range []string{"web-2", "web-3"} {
				p := c.pod
				p.name, p.last = pod, end
				d.New.All = append(d.New.All, p.series()...)
			}
			if c.since != 0 {
				target.NewSince = newSinceOf([]string{"web-2", "web-3"}, c.since)
			}
			for _, pod := range []string{"web-0", "web-1"} {
				p := podLife{name: pod, created: 7 * day, first: -595, last: end}
				if c.pod.created == 0 {
					p.created = 0
				}
				d.Old.All = append(d.Old.All, p.series()...)
			}
			o := compareMetric(Input{Check: Defaulted(v1alpha1.MetricCheckSpec{}), Target: target, Now: at.Add(5 * time.Minute), End: at.Add(5 * time.Minute)}, d)
			if o.message != c.want {
				t.Errorf("the message is %q, want %q", o.message, c.want)
			}
		})
	}
}
