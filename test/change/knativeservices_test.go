//go:build controlplane

package change

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
	"github.com/breakwater-dev/breakwater/internal/knativetraffic"
	"github.com/breakwater-dev/breakwater/internal/workload"
	"github.com/breakwater-dev/breakwater/test/controlplane"
)

// latestRevision is the traffic of a Service as the tests write it.
var latestRevision = knativetraffic.Split{{"latestRevision": true, "percent": int64(100)}}

// Names of Services and Revisions are prefixes of others: web-1 and web-11.
func TestManyKnativeServicesAreReleasedAtOnce(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.useServing(t)
	all := make([]target, controlplane.Size(t, "KNATIVE_SERVICES", 20))
	for i := range all {
		all[i] = f.create(t, workload.KnativeService, object(t, strings.Replace(knativeService, "name: web", fmt.Sprintf("name: web-%d", i+1), 1)))
	}
	good, complete := rollOutEach(t, all)
	for i := range all {
		complete[i]()
	}
	for _, w := range all {
		w.awaitSaved(t, 1)
	}
	moved := f.watchTraffic(t)

	patchEach(t, all, releaseOf("v2"))
	bad, complete := rollOutEach(t, all)
	failed, verdict := func(i int) bool { return i%3 == 0 }, make([]time.Time, len(all))
	for i, w := range all {
		if !failed(i) {
			complete[i]()
			continue
		}
		batch := w.awaitBatch(t, 2)
		verdict[i] = time.Now()
		w.judge(t, batch, "unpass")
	}
	var until []time.Duration
	for i, w := range all {
		if failed(i) {
			until = append(until, moved.await(t, w.name).Sub(verdict[i]))
			complete[i]()
		}
	}
	for i, w := range all {
		if failed(i) {
			w.checkFailedRevision(t, bad[i], good[i])
		} else {
			w.checkPassedRevision(t)
		}
	}
	slices.Sort(until)
	t.Logf("of %d Services, %d failed; their traffic was back after %s in half of them, after %s in all",
		len(all), len(until), until[len(until)/2].Round(time.Millisecond), until[len(until)-1].Round(time.Millisecond))
}

// rollOutEach creates a Revision of each Service, with a pod.
func rollOutEach(t *testing.T, services []target) (revisions []string, complete []func()) {
	t.Helper()
	revisions, complete = make([]string, len(services)), make([]func(), len(services))
	for i, w := range services {
		revisions[i], complete[i] = w.createRevision(t, 1)
	}
	for i, w := range services {
		w.awaitAvailable(t, revisions[i]+"-deployment", 1)
	}
	return revisions, complete
}

// patchEach changes all workloads at the same time.
func patchEach(t *testing.T, workloads []target, body string) {
	t.Helper()
	errs := make([]error, len(workloads))
	var patches sync.WaitGroup
	for i, w := range workloads {
		patches.Go(func() { errs[i] = w.patch(t.Context(), body) })
	}
	patches.Wait()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
}

// checkFailedRevision checks a Service whose second release failed.
func (w target) checkFailedRevision(t *testing.T, bad, good string) {
	t.Helper()
	w.awaitPhase(t, v1alpha1.ReleaseSuspend, 2)
	live, err := w.get(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if want := (knativetraffic.Split{{"revisionName": good, "percent": int64(100)}}); !knativetraffic.Same(want, live.Traffic) {
		t.Errorf("%s: traffic %v, want %v", w.name, live.Traffic, want)
	}
	hold := v1alpha1.HoldOf(live.Annotations)
	if hold == nil || hold.Traffic == nil {
		t.Fatalf("%s: held with %q", w.name, live.Annotations[v1alpha1.HoldAnnotation])
	}
	if diff := cmp.Diff([]string{bad}, hold.Traffic.Failed); diff != "" || hold.Traffic.To != good || !knativetraffic.Same(latestRevision, hold.Traffic.Former) {
		t.Errorf("%s: hold of traffic is %+v, want that of %s", w.name, hold.Traffic, bad)
	}
	if err := w.patch(t.Context(), releaseOf("v3")); err == nil || !strings.Contains(err.Error(), "service "+w.name+" is suspended") {
		t.Errorf("%s: the next release: %v", w.name, err)
	}
}

// checkPassedRevision checks a Service whose second release passed.
func (w target) checkPassedRevision(t *testing.T) {
	t.Helper()
	w.awaitPhase(t, v1alpha1.ReleaseSuccess, 2)
	live, err := w.get(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if !knativetraffic.Same(latestRevision, live.Traffic) || live.Labels[v1alpha1.SuspendLabel] != "" || live.Annotations[v1alpha1.HoldAnnotation] != "" {
		t.Errorf("%s: traffic %v, labels %v, held with %q", w.name, live.Traffic, live.Labels, live.Annotations[v1alpha1.HoldAnnotation])
	}
}

// trafficMoves are the times at which the Services of a namespace ceased to send requests to their
// latest Revision, as a watch of them says.
type trafficMoves struct {
	mu sync.Mutex
	at map[string]time.Time
}

func (f fixture) watchTraffic(t *testing.T) *trafficMoves {
	t.Helper()
	watcher, err := f.Dynamic.Resource(workload.KnativeService.GroupVersionResource()).Namespace(f.namespace).Watch(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	m := &trafficMoves{at: map[string]time.Time{}}
	var watching sync.WaitGroup
	watching.Go(func() {
		for event := range watcher.ResultChan() {
			if u, ok := event.Object.(*unstructured.Unstructured); ok {
				m.see(u)
			}
		}
	})
	t.Cleanup(func() {
		watcher.Stop()
		watching.Wait()
	})
	return m
}

func (m *trafficMoves) see(service *unstructured.Unstructured) {
	w, err := workload.FromUnstructured(workload.KnativeService, service)
	if err != nil || (knativetraffic.Revisions{Latest: true}).Share(w.Traffic) > 0 {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if _, seen := m.at[w.Name]; !seen {
		m.at[w.Name] = time.Now()
	}
}

// await returns the time at which the traffic of a Service moved.
func (m *trafficMoves) await(t *testing.T, service string) (at time.Time) {
	t.Helper()
	await(t, "the traffic of "+service+" moves", func(context.Context) error {
		m.mu.Lock()
		defer m.mu.Unlock()
		at = m.at[service]
		if at.IsZero() {
			return errors.New("it is at the latest Revision")
		}
		return nil
	})
	return at
}
