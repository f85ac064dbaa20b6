package podpermission

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/tools/cache"
	"knative.dev/pkg/controller"

	"github.com/breakwater-dev/breakwater/permission/api"
	"github.com/breakwater-dev/breakwater/permission/centreclient"
	"github.com/breakwater-dev/breakwater/permission/podmeta"
)

func TestACentreThatDoesNotAnswerIsCalledByOnePodAtATime(t *testing.T) {
	at := func(seconds float64) time.Time { return zero.Add(time.Duration(seconds * float64(time.Second))) }
	timeout := context.DeadlineExceeded
	wrapped := fmt.Errorf("revoke: %w", &centreclient.StatusError{Status: 503})
	type call struct {
		begin, end float64
		err        error
	}
	for name, tc := range map[string]struct {
		calls []call
		// probes are the seconds at which pods want to call, one after the other.
		probes []float64
		want   []bool
	}{
		"before the first call":                     {nil, []float64{0, 0}, []bool{true, true}},
		"after an answer":                           {[]call{{0, 10, nil}}, []float64{10, 10}, []bool{true, true}},
		"after an error response":                   {[]call{{0, 10, wrapped}}, []float64{10, 10}, []bool{true, true}},
		"within 5 s after a timeout":                {[]call{{0, 10, timeout}}, []float64{10, 12, 14.9}, []bool{false, false, false}},
		"5 s after a timeout":                       {[]call{{0, 10, timeout}}, []float64{15, 15, 19.9, 20}, []bool{true, false, false, true}},
		"after a short call without an answer":      {[]call{{0, 1, timeout}}, []float64{1.9, 2, 2}, []bool{false, true, false}},
		"after a call that is refused at once":      {[]call{{0, 0, timeout}}, []float64{0}, []bool{true}},
		"after a timeout and then an answer":        {[]call{{0, 10, timeout}, {0, 11, nil}}, []float64{11, 11}, []bool{true, true}},
		"a timeout of a call from before an answer": {[]call{{1, 9, nil}, {0, 10, timeout}}, []float64{10, 10}, []bool{true, true}},
		"a timeout of a call from after an answer":  {[]call{{0, 1, nil}, {2, 10, timeout}}, []float64{10}, []bool{false}},
		"after two timeouts":                        {[]call{{0, 10, timeout}, {4, 14, timeout}}, []float64{15, 19}, []bool{false, true}},
	} {
		t.Run(name, func(t *testing.T) {
			var o outageState
			for _, c := range tc.calls {
				o = o.ended(at(c.begin), at(c.end), c.err)
			}
			for i, seconds := range tc.probes {
				var err error
				o, err = o.begin(at(seconds))
				if (err == nil) != tc.want[i] || err != nil && !errors.Is(err, timeout) {
					t.Errorf("call at %g s: %v, want one: %v", seconds, err, tc.want[i])
				}
			}
		})
	}
}

// hangingCentre answers no call: each takes as long as its client waits.
type hangingCentre struct {
	w     *fixture
	calls int
}

func (c *hangingCentre) Revoke(context.Context, api.RevokeRequest) (api.RevokeResult, error) {
	c.calls++
	c.w.clock.SetTime(c.w.clock.Now().Add(10 * time.Second))
	return api.RevokeResult{}, context.DeadlineExceeded
}

func TestAHangingCentreKeepsNoPodBeyondTheDeadlineAndBlocksNoOther(t *testing.T) {
	const pods = 50
	w := newFixture(t, pod(), nil)
	all := cache.NewIndexer(cache.MetaNamespaceKeyFunc, cache.Indexers{})
	for n := range pods {
		p := pod(phase(corev1.PodFailed), deleted, func(p *corev1.Pod) { p.Name, p.UID = fmt.Sprint("ended-", n), types.UID(fmt.Sprint(n)) })
		if err := errors.Join(all.Add(p), w.kube.Tracker().Add(p)); err != nil {
			t.Fatal(err)
		}
	}
	w.pods = corelisters.NewPodLister(all)
	centre := &hangingCentre{w: w}
	w.Reconciler.centre = centre
	// reconcile reconciles all pods, and returns how many have the finalizer.
	reconcile := func() (protected int) {
		for n := range pods {
			name := fmt.Sprint("ended-", n)
			if err := w.Reconcile(t.Context(), "default/"+name); err != nil {
				if requeued, _ := controller.IsRequeueKey(err); !requeued {
					t.Fatal(err)
				}
			}
			p, err := w.kube.CoreV1().Pods("default").Get(t.Context(), name, metav1.GetOptions{})
			if err != nil {
				t.Fatal(err)
			}
			if podmeta.HasFinalizer(p) {
				protected++
			}
		}
		return protected
	}
	if protected := reconcile(); protected != pods || centre.calls != 1 {
		t.Errorf("%d calls before the deadline, want 1; %d pods have the finalizer, want %d", centre.calls, protected, pods)
	}
	w.clock.SetTime(zero.Add(5 * time.Minute))
	if protected := reconcile(); protected != 0 || centre.calls != 2 {
		t.Errorf("%d calls at the deadline, want 2; %d pods have the finalizer, want none", centre.calls, protected)
	}
}
