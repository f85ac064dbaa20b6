package judge_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cloudevents/sdk-go/v2/event"
	"go.opentelemetry.io/otel/metric/noop"
	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clienttesting "k8s.io/client-go/testing"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
	judgev1alpha1 "github.com/breakwater-dev/breakwater/apis/judge/v1alpha1"
	"github.com/breakwater-dev/breakwater/events"
	"github.com/breakwater-dev/breakwater/events/delivery"
	"github.com/breakwater-dev/breakwater/functions"
	ft "github.com/breakwater-dev/breakwater/functions/functionstest"
	"github.com/breakwater-dev/breakwater/functions/judge"
	"github.com/breakwater-dev/breakwater/internal/eventsigning"
	"github.com/breakwater-dev/breakwater/judge/prometheus"
	"github.com/breakwater-dev/breakwater/judge/samples"
)

// broker records events, or fails.
type broker struct {
	mu     sync.Mutex
	fails  bool
	events []event.Event
}

func (b *broker) Deliver(_ context.Context, e event.Event) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.fails {
		return errors.New("the Broker is unreachable")
	}
	b.events = append(b.events, e)
	return nil
}

// fixture is function judge with a fake API server and a Broker.
type fixture struct {
	*ft.Cluster
	handle functions.Function
	broker *broker
	clock  *clocktesting.FakePassiveClock
}

// duration is that of the analysis in the tests.
const duration = 5 * time.Minute

// newFixture returns a release with a MetricCheck and batches, whose metrics reader reads.
func newFixture(t *testing.T, reader func(context.Context) (judge.Source, error), batches ...*v1alpha1.ChangePod) *fixture {
	t.Helper()
	check := &judgev1alpha1.MetricCheck{
		ObjectMeta: metav1.ObjectMeta{Namespace: ft.Namespace, Name: "check"},
		Spec: judgev1alpha1.MetricCheckSpec{
			DefaultMetrics: judgev1alpha1.DiscoverNone, Callers: judgev1alpha1.DiscoverNone, AnalysisDuration: metav1.Duration{Duration: duration},
			Metrics: []judgev1alpha1.Metric{{
				Name: "http-errors", Kind: judgev1alpha1.KindRatio, Direction: judgev1alpha1.DirectionHigher, Weight: judgev1alpha1.WeightAlone,
				Query: `requests_total{{{pods}}}`, Bad: `errors_total{{{pods}}}`,
			}},
		},
	}
	objects := []runtime.Object{ft.NewRelease(), check}
	for _, b := range batches {
		objects = append(objects, b)
	}
	f := &fixture{Cluster: ft.New(t, objects...), broker: &broker{}, clock: clocktesting.NewFakePassiveClock(ft.Now())}
	for name, attempt := range map[string]string{"sleep-new": "1", "sleep-old": "0"} {
		rs := &appsv1.ReplicaSet{ObjectMeta: metav1.ObjectMeta{
			Namespace: ft.Namespace, Name: name, Annotations: map[string]string{v1alpha1.VersionKey: ft.Version, v1alpha1.AttemptAnnotation: attempt},
			OwnerReferences: []metav1.OwnerReference{{Kind: "Deployment", Name: "sleep", UID: "deployment", Controller: new(true)}},
		}}
		if err := f.Kube.Tracker().Add(rs); err != nil {
			t.Fatal(err)
		}
	}
	f.handle = f.newFunction(reader, ft.EventKeys())
	return f
}

func (f *fixture) newFunction(reader func(context.Context) (judge.Source, error), keys eventsigning.Keys) functions.Function {
	return judge.New(judge.Options{
		Change: f.Change, Kube: f.Kube, CurrentSource: reader, Broker: f.broker,
		Signer: ft.JudgeKey("metrics"), Verifier: keys, Clock: f.clock, Meter: noop.Meter{},
	})
}

// newBatch returns the release's nth batch, which judge metrics judges.
func newBatch(n int, edit ...func(*v1alpha1.ChangePod)) *v1alpha1.ChangePod {
	return ft.NewBatch(n, []string{"sleep-new-a"}, append([]func(*v1alpha1.ChangePod){func(p *v1alpha1.ChangePod) {
		p.CreationTimestamp = metav1.NewTime(ft.Now())
		p.OwnerReferences[0].Controller = new(true)
		p.Spec.Judges = []v1alpha1.Judge{{Name: v1alpha1.JudgeMetrics, TimeoutSeconds: 420, NoVerdict: v1alpha1.NoVerdictHold, Check: ft.Namespace + "/check"}}
	}}, edit...)...)
}

// wakeUp returns the wake-up of a batch.
func wakeUp(n int, edit ...func(*events.ChangePodReady)) events.ChangePodReady {
	d := events.ChangePodReady{
		Namespace: ft.Namespace, Name: ft.BatchName(n), UID: newBatch(n).UID, ChangeWorkload: ft.Release,
		Version: ft.Version, Attempt: 1, Stage: v1alpha1.StagePost, Judge: v1alpha1.JudgeMetrics,
	}
	for _, e := range edit {
		e(&d)
	}
	return d
}

// eventOf returns an event as the controller sends it.
func eventOf(t *testing.T, d events.Data) event.Event {
	t.Helper()
	e, err := events.New(d)
	if err != nil {
		t.Fatal(err)
	}
	return ft.SignedByController(t, e)
}

// wake sends the wake-up of a batch.
func (f *fixture) wake(t *testing.T, n int, edit ...func(*events.ChangePodReady)) error {
	t.Helper()
	return f.handle(t.Context(), eventOf(t, wakeUp(n, edit...)))
}

// traffic answers with counters: new and old pods serve 10 requests/s. newFails and oldFails are the
// percentages of them that fail. Its clock is that of the fixture's release.
type traffic struct {
	newFails, oldFails float64
	// oldEnd is how long after the start of the release the old pods end, and failsUntil how long after it
	// requests of the new pods fail; 0 means always.
	oldEnd, failsUntil time.Duration
	queries            atomic.Int64
}

func (tr *traffic) Range(_ context.Context, expression string, from, to time.Time, _ time.Duration) ([]samples.Series, error) {
	tr.queries.Add(1)
	var out []samples.Series
	for pod, share := range map[string]float64{"sleep-new-a": tr.newFails, "sleep-old-a": tr.oldFails} {
		rate := 10.0
		if strings.Contains(expression, "errors_total") {
			rate *= share / 100
		}
		s := samples.Series{Labels: map[string]string{"namespace": ft.Namespace, "pod": pod}}
		start, end := ft.Now(), to
		if pod == "sleep-old-a" {
			start = start.Add(-time.Hour)
			if last := ft.Now().Add(tr.oldEnd); tr.oldEnd > 0 && last.Before(to) {
				end = last
			}
		}
		for at := start; !at.After(end); at = at.Add(10 * time.Second) {
			if at.After(from) {
				elapsed := at.Sub(start)
				if tr.failsUntil > 0 && strings.Contains(expression, "errors_total") {
					elapsed = min(elapsed, tr.failsUntil)
				}
				s.Points = append(s.Points, samples.Point{T: float64(at.Unix()), V: float64(int(rate * elapsed.Seconds()))})
			}
		}
		if len(s.Points) > 0 {
			out = append(out, s)
		}
	}
	return out, nil
}

func (tr *traffic) source(context.Context) (judge.Source, error) {
	return judge.Source{Reader: tr, Labels: judge.Labels{Namespace: "namespace", Pod: "pod"}}, nil
}

// lookUntilFinal wakes the function every 20 s until the record is final.
func (f *fixture) lookUntilFinal(t *testing.T) *judgev1alpha1.Record {
	t.Helper()
	for range 30 {
		if err := f.wake(t, 1); err != nil {
			t.Fatal(err)
		}
		if r := f.ChangePod(ft.BatchName(1)).Status.MetricRecord; r.Final {
			return r
		}
		f.clock.SetTime(f.clock.Now().Add(20 * time.Second))
	}
	t.Fatalf("the analysis does not end: %+v", f.ChangePod(ft.BatchName(1)).Status.MetricRecord)
	return nil
}

// verdict returns the verdict in the last event.
func (f *fixture) verdict(t *testing.T) events.JudgeVerdict {
	t.Helper()
	if len(f.broker.events) == 0 {
		t.Fatal("no verdict was sent")
	}
	e := f.broker.events[len(f.broker.events)-1]
	if err := ft.JudgeKey("metrics").Verify(t.Context(), e); err != nil {
		t.Error(err)
	}
	d, err := events.ParseJudgeVerdict(e)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func TestABadReleaseFailsEarlyAndAGoodOnePassesAtTheEnd(t *testing.T) {
	for name, tc := range map[string]struct {
		fails float64
		want  judgev1alpha1.Verdict
	}{
		"7 % of the requests fail": {7, judgev1alpha1.VerdictFail},
		"as many fail as before":   {0.2, judgev1alpha1.VerdictPass},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t, (&traffic{newFails: tc.fails, oldFails: 0.2}).source, newBatch(1))
			record := f.lookUntilFinal(t)
			early := f.clock.Now().Before(ft.Now().Add(duration))
			if record.Verdict != tc.want || early != (tc.want == judgev1alpha1.VerdictFail) || len(record.Metrics) == 0 {
				t.Errorf("verdict %s, early %t, %d metrics: %s", record.Verdict, early, len(record.Metrics), record.Message)
			}
			got := f.verdict(t)
			if got.Judge != "metrics" || got.Verdict != string(tc.want) || got.UID != newBatch(1).UID || got.Message != record.Message || got.Attempt != 1 {
				t.Errorf("sent %+v", got)
			}
			if n := len(f.broker.events); n != 1 {
				t.Errorf("%d verdicts were sent", n)
			}
		})
	}
}

// The judges of a batch are those of its creation. With the shorter duration, the compared time would
// begin in the future, and at the end without the old pods.
func TestABatchKeepsTheAnalysisDurationOfItsCreation(t *testing.T) {
	const long, short = 30 * time.Minute, 5 * time.Minute
	for name, tc := range map[string]struct {
		look time.Duration
		// stored is the start of the compared time of an earlier look; 0 means that there was none.
		stored time.Duration
	}{
		"soon after the change":                           {2 * time.Minute, 0},
		"at the end, when the old pods have ended":        {long, 0},
		"an earlier look stored the start of the release": {2 * time.Minute, time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t, (&traffic{newFails: 30, oldFails: 0.2, oldEnd: 6 * time.Minute}).source, newBatch(1, func(p *v1alpha1.ChangePod) {
				p.Spec.Judges[0].TimeoutSeconds = int32((long + v1alpha1.AnalysisGrace) / time.Second)
				if tc.stored != 0 {
					p.Status.MetricRecord = &judgev1alpha1.Record{Looks: 1, Target: judgev1alpha1.Target{StartTime: metav1.NewTime(ft.Now().Add(tc.stored))}}
				}
			}))
			f.changeCheck(t, func(c *judgev1alpha1.MetricCheckSpec) { c.AnalysisDuration.Duration = short })
			f.clock.SetTime(ft.Now().Add(tc.look))
			if err := f.wake(t, 1); err != nil {
				t.Fatal(err)
			}
			r := f.ChangePod(ft.BatchName(1)).Status.MetricRecord
			if r.Verdict != judgev1alpha1.VerdictFail || r.Target.StartTime.After(ft.Now().Add(time.Minute)) {
				t.Errorf("verdict %s, reason %s, compared since %s: %s", r.Verdict, r.Reason, r.Target.StartTime.Sub(ft.Now()), r.Message)
			}
		})
	}
}

// No data is never a pass.
func TestWithoutUsableDataThereIsNoPass(t *testing.T) {
	answer := func(status int, body string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(status)
			_, _ = w.Write([]byte(strings.ReplaceAll(body, "NOW", "1778328300"))) // the end of the analysis
		}
	}
	const matrix = `{"status":"success","data":{"resultType":"matrix","result":[%]}}`
	series := func(s string) string { return strings.ReplaceAll(matrix, "%", s) }
	const pod = `"metric":{"namespace":"default","pod":"sleep-new-a"}`
	for name, handler := range map[string]http.HandlerFunc{
		"an empty answer":  answer(http.StatusOK, series("")),
		"NaN":              answer(http.StatusOK, series(`{`+pod+`,"values":[[NOW,"NaN"]]}`)),
		"one stale sample": answer(http.StatusOK, series(`{`+pod+`,"values":[[1778328010,"1"]]}`)),
		"server error":     answer(http.StatusInternalServerError, "boom"),
		"no Prometheus":    answer(http.StatusOK, "<html>"),
		"a wrong query":    answer(http.StatusBadRequest, `{"status":"error","errorType":"bad_data","error":"parse error"}`),
		"too slow": func(_ http.ResponseWriter, r *http.Request) {
			_, _ = io.Copy(io.Discard, r.Body) // only then the server sees that the client leaves
			<-r.Context().Done()
		},
	} {
		t.Run(name, func(t *testing.T) {
			server := httptest.NewServer(handler)
			defer server.Close()
			client, err := prometheus.New(server.URL, 200*time.Millisecond, nil)
			if err != nil {
				t.Fatal(err)
			}
			f := newFixture(t, func(context.Context) (judge.Source, error) {
				return judge.Source{Reader: client, Labels: judge.Labels{Namespace: "namespace", Pod: "pod"}}, nil
			}, newBatch(1))
			for _, after := range []time.Duration{0, duration / 2, duration + time.Second} {
				f.clock.SetTime(ft.Now().Add(after))
				if err := f.wake(t, 1); err != nil {
					t.Fatal(err)
				}
			}
			record := f.ChangePod(ft.BatchName(1)).Status.MetricRecord
			if record.Verdict != judgev1alpha1.VerdictNone || record.Message == "" {
				t.Errorf("record is %+v", record)
			}
			for _, e := range f.broker.events {
				if d, err := events.ParseJudgeVerdict(e); err != nil || d.Verdict != "none" {
					t.Errorf("sent %+v, %v", d, err)
				}
			}
		})
	}
}

func TestAPrometheusThatIsNotConfiguredIsNamedInTheRecord(t *testing.T) {
	f := newFixture(t, func(context.Context) (judge.Source, error) {
		return judge.Source{}, &functions.ConfigError{Err: errors.New("prometheus-url is not set")}
	}, newBatch(1))
	f.clock.SetTime(ft.Now().Add(duration))
	if err := f.wake(t, 1); err != nil {
		t.Fatal(err)
	}
	if r := f.ChangePod(ft.BatchName(1)).Status.MetricRecord; r.Verdict != judgev1alpha1.VerdictNone || !strings.Contains(r.Message, "prometheus-url is not set") {
		t.Errorf("record is %+v", r)
	}
}

// Prometheus still has the samples of the analysis.
func TestThePassOfAReleaseComesWhenPrometheusAnswersAgain(t *testing.T) {
	tr := &traffic{newFails: 0.2, oldFails: 0.2}
	down := true
	f := newFixture(t, func(ctx context.Context) (judge.Source, error) {
		if down {
			return judge.Source{}, &functions.ConfigError{Err: errors.New("down")}
		}
		return tr.source(ctx)
	}, newBatch(1))
	f.clock.SetTime(ft.Now().Add(duration + time.Hour))
	if err := f.wake(t, 1); err != nil {
		t.Fatal(err)
	}
	if r := f.ChangePod(ft.BatchName(1)).Status.MetricRecord; r.Final || len(f.broker.events) != 0 {
		t.Errorf("record is %+v, %d events", r, len(f.broker.events))
	}
	down = false
	if err := f.wake(t, 1); err != nil {
		t.Fatal(err)
	}
	if got := f.verdict(t); got.Verdict != "pass" {
		t.Errorf("sent %+v", got)
	}
}

// A wrong query is rejected for as long as the batch is held.
func TestAfterTheAnalysisALookWithoutMetricsIsStoredOnce(t *testing.T) {
	f := newFixture(t, func(context.Context) (judge.Source, error) {
		return judge.Source{}, &functions.ConfigError{Err: errors.New("down")}
	}, newBatch(1))
	stored := 0
	f.Change.PrependReactor("patch", "changepods", func(clienttesting.Action) (bool, runtime.Object, error) {
		stored++
		return false, nil, nil
	})
	for i, want := range []int{1, 2, 3, 3, 3} { // the third look is the first one after the analysis
		f.clock.SetTime(ft.Now().Add(time.Duration(i) * duration / 2))
		if err := f.wake(t, 1); err != nil {
			t.Fatal(err)
		}
		if stored != want {
			t.Errorf("look %d: %d records were stored, want %d", i+1, stored, want)
		}
	}
}

// partlySlow answers only queries of http-errors.
type partlySlow struct{ *traffic }

func (p partlySlow) Range(ctx context.Context, expression string, from, to time.Time, step time.Duration) ([]samples.Series, error) {
	if strings.Contains(expression, "slow_total") {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	return p.traffic.Range(ctx, expression, from, to, step)
}

// The event ends after 40 s. The in-memory Broker answers the controller when the function has answered.
func TestAFailIsStoredAndSentWhenOtherQueriesDoNotEnd(t *testing.T) {
	const coldStart = 4 * time.Second
	for name, tc := range map[string]struct {
		batch *v1alpha1.ChangePod
		// prepare changes the release before the look.
		prepare func(*testing.T, *fixture)
		record  func(*v1alpha1.ChangePod) *judgev1alpha1.Record
	}{
		"analysis": {newBatch(1), func(_ *testing.T, f *fixture) { f.clock.SetTime(ft.Now().Add(2 * time.Minute)) },
			func(p *v1alpha1.ChangePod) *judgev1alpha1.Record { return p.Status.MetricRecord }},
		"probation": {passedBatch(), func(t *testing.T, f *fixture) { f.onProbation(t, 0, 10*time.Minute) },
			func(p *v1alpha1.ChangePod) *judgev1alpha1.Record { return p.Status.Probation }},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := newFixture(t, func(context.Context) (judge.Source, error) {
					return judge.Source{Reader: partlySlow{&traffic{newFails: 20, oldFails: 0.2}}, Labels: judge.Labels{Namespace: "namespace", Pod: "pod"}}, nil
				}, tc.batch)
				f.addMetric(t, slowMetric())
				tc.prepare(t, f)
				ctx, cancel := context.WithTimeout(t.Context(), 40*time.Second)
				defer cancel()
				f.Change.PrependReactor("patch", "*", func(clienttesting.Action) (bool, runtime.Object, error) {
					return ctx.Err() != nil, nil, ctx.Err()
				})
				start := time.Now()
				if err := f.handle(ctx, eventOf(t, wakeUp(1))); err != nil {
					t.Error(err)
				}
				if took := time.Since(start); took > delivery.DefaultSendTimeout-coldStart {
					t.Errorf("the look took %s", took)
				}
				if r := tc.record(f.ChangePod(ft.BatchName(1))); r == nil || r.Verdict != judgev1alpha1.VerdictFail {
					t.Errorf("the record is %+v, want a fail", r)
				}
				if len(f.broker.events) != 1 {
					t.Errorf("%d verdicts were sent", len(f.broker.events))
				}
			})
		})
	}
}

// addMetric adds a metric to the MetricCheck.
func (f *fixture) addMetric(t *testing.T, m judgev1alpha1.Metric) {
	t.Helper()
	f.changeCheck(t, func(c *judgev1alpha1.MetricCheckSpec) { c.Metrics = append(c.Metrics, m) })
}

// changeCheck changes the MetricCheck.
func (f *fixture) changeCheck(t *testing.T, change func(*judgev1alpha1.MetricCheckSpec)) {
	t.Helper()
	checks := f.Change.JudgeV1alpha1().MetricChecks(ft.Namespace)
	check, err := checks.Get(t.Context(), "check", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	change(&check.Spec)
	if _, err := checks.Update(t.Context(), check, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
}

// checkSentAgain loses the verdict of a look. The next wake-up has to send it without a query.
func (f *fixture) checkSentAgain(t *testing.T, tr *traffic) {
	t.Helper()
	f.broker.fails = true
	if err := f.wake(t, 1); functions.ResultOf(err) != functions.ResultRetry {
		t.Errorf("got %v", err)
	}
	f.broker.fails = false
	before := tr.queries.Load()
	if err := f.wake(t, 1); err != nil {
		t.Fatal(err)
	}
	if got := f.verdict(t); got.Verdict != "fail" || tr.queries.Load() != before {
		t.Errorf("verdict %s after %d more queries", got.Verdict, tr.queries.Load()-before)
	}
}

func TestALostVerdictIsSentAgainFromTheRecord(t *testing.T) {
	tr := &traffic{newFails: 7, oldFails: 0.2}
	f := newFixture(t, tr.source, newBatch(1))
	f.clock.SetTime(ft.Now().Add(2 * time.Minute))
	f.checkSentAgain(t, tr)
}

func TestAnOutdatedWakeUpReadsNoMetrics(t *testing.T) {
	for name, tc := range map[string]struct {
		batch *v1alpha1.ChangePod
		wake  func(*events.ChangePodReady)
	}{
		"the batch was deleted":      {newBatch(2), nil},
		"another batch has its name": {newBatch(1, func(p *v1alpha1.ChangePod) { p.UID = "other" }), nil},
		"the batch has no release":   {newBatch(1, func(p *v1alpha1.ChangePod) { p.OwnerReferences = nil }), nil},
		"the release was deleted": {newBatch(1, func(p *v1alpha1.ChangePod) {
			p.OwnerReferences[0].Name, p.OwnerReferences[0].UID = "deleted", "deleted"
		}), nil},
		"the verdict is stored": {newBatch(1, func(p *v1alpha1.ChangePod) {
			p.Status.Judges = []v1alpha1.JudgeVerdict{{Judge: "metrics", Stage: v1alpha1.StagePost, Verdict: "none"}}
		}), nil},
		"the batch has another judge": {newBatch(1, func(p *v1alpha1.ChangePod) { p.Spec.Judges[0].Name = "canary" }), nil},
		"another judge is woken":      {newBatch(1), func(d *events.ChangePodReady) { d.Judge = "canary" }},
		"the server is woken":         {newBatch(1), func(d *events.ChangePodReady) { d.Judge = "" }},
	} {
		t.Run(name, func(t *testing.T) {
			tr := &traffic{}
			f := newFixture(t, tr.source, tc.batch)
			var edit []func(*events.ChangePodReady)
			if tc.wake != nil {
				edit = append(edit, tc.wake)
			}
			if err := f.wake(t, 1, edit...); err != nil {
				t.Fatal(err)
			}
			if tr.queries.Load() != 0 || f.Patches() != 0 || len(f.broker.events) != 0 {
				t.Errorf("%d queries, %d writes, %d events", tr.queries.Load(), f.Patches(), len(f.broker.events))
			}
		})
	}
}

func TestADeletedMetricCheckIsNoVerdict(t *testing.T) {
	f := newFixture(t, (&traffic{}).source, newBatch(1, func(p *v1alpha1.ChangePod) { p.Spec.Judges[0].Check = "default/deleted" }))
	if err := f.wake(t, 1); err != nil {
		t.Fatal(err)
	}
	if got := f.verdict(t); got.Verdict != "none" || got.Reason != judge.ReasonNoMetricCheck {
		t.Errorf("sent %+v", got)
	}
}

// ofNamespaces records the namespaces of queries.
type ofNamespaces struct {
	*traffic
	seen sync.Map
}

func (n *ofNamespaces) Range(ctx context.Context, expression string, from, to time.Time, step time.Duration) ([]samples.Series, error) {
	n.seen.Store(prometheus.Namespace(ctx), true)
	return n.traffic.Range(ctx, expression, from, to, step)
}

func TestTheQueriesOfALookAreOfTheNamespaceOfTheRelease(t *testing.T) {
	for name, onProbation := range map[string]bool{"analysis": false, "probation": true} {
		t.Run(name, func(t *testing.T) {
			reader, batch := &ofNamespaces{traffic: &traffic{}}, newBatch(1)
			if onProbation {
				batch = passedBatch()
			}
			f := newFixture(t, func(context.Context) (judge.Source, error) {
				return judge.Source{Reader: reader, Labels: judge.Labels{Namespace: "namespace", Pod: "pod"}}, nil
			}, batch)
			if onProbation {
				f.onProbation(t, 0, 10*time.Minute)
			}
			if err := f.wake(t, 1); err != nil {
				t.Fatal(err)
			}
			var got []string
			reader.seen.Range(func(namespace, _ any) bool {
				got = append(got, namespace.(string))
				return true
			})
			if len(got) != 1 || got[0] != ft.Namespace {
				t.Errorf("the queries are of namespaces %q", got)
			}
		})
	}
}

// A release of many pods has as many batches.
func TestAThousandBatchesOfAReleaseShareTheirQueries(t *testing.T) {
	const batches = 1000
	tr := &traffic{newFails: 0.2, oldFails: 0.2}
	var all []*v1alpha1.ChangePod
	for n := 1; n <= batches; n++ {
		all = append(all, newBatch(n))
	}
	var f *fixture
	var shared *judge.SharedReader
	f = newFixture(t, func(context.Context) (judge.Source, error) {
		return judge.Source{Reader: shared, Labels: judge.Labels{Namespace: "namespace", Pod: "pod"}}, nil
	}, all...)
	shared = judge.NewSharedReader(tr, 10, f.clock)
	f.clock.SetTime(ft.Now().Add(time.Minute))
	if err := f.wake(t, 1); err != nil {
		t.Fatal(err)
	}
	one := tr.queries.Load() // the queries of one look at one batch
	f.clock.SetTime(ft.Now().Add(2 * time.Minute))
	var wg sync.WaitGroup
	for n := 1; n <= batches; n++ {
		wg.Go(func() {
			if err := f.wake(t, n); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if got := tr.queries.Load() - one; got > one || one == 0 {
		t.Errorf("%d queries for %d batches, want at most the %d of one", got, batches, one)
	}
}
