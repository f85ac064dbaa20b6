package webhookhealth

import (
	"context"
	"crypto/x509"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	admissionclient "k8s.io/client-go/kubernetes/typed/admissionregistration/v1"
	discoveryclient "k8s.io/client-go/kubernetes/typed/discovery/v1"
	"k8s.io/client-go/tools/record"
	"k8s.io/utils/clock"
	"knative.dev/pkg/controller"
	"knative.dev/pkg/logging"
	"knative.dev/pkg/reconciler"

	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
	"github.com/breakwater-dev/breakwater/internal/webhookpeers"
)

const (
	// every is how often it is looked; Prometheus rarely asks more often.
	every = 10 * time.Second
	// again is when what was found is looked at once more, before it counts.
	again = 2 * time.Second
	// ReasonClosed is the reason of the Event that a guard is closed again.
	ReasonClosed = "GuardClosed"
)

// Key is the one thing that is looked after.
var Key = types.NamespacedName{Name: "guards"}

// Reconciler looks, in the leader.
type Reconciler struct {
	reconciler.LeaderAwareFuncs

	plan      Plan
	admission admissionclient.AdmissionregistrationV1Interface
	endpoints discoveryclient.EndpointSlicesGetter
	presented func(ctx context.Context, address, host string) (*x509.Certificate, error)
	recorder  record.EventRecorder
	clock     clock.PassiveClock

	mu sync.Mutex
	// found is what the last look showed; open is what counts; looked says that
	// there was one.
	found, open []Finding
	looked      bool
}

var (
	_ controller.Reconciler  = (*Reconciler)(nil)
	_ reconciler.LeaderAware = (*Reconciler)(nil)
)

// Reconcile implements controller.Reconciler.
func (r *Reconciler) Reconcile(ctx context.Context, key string) error {
	if !r.IsLeaderFor(Key) {
		r.forget()
		return controller.NewSkipKey(key)
	}
	if pending := r.note(ctx, Decide(r.gather(ctx))); pending {
		return controller.NewRequeueAfter(again)
	}
	return controller.NewRequeueAfter(every)
}

// gather finds out what there is.
func (r *Reconciler) gather(ctx context.Context) Seen {
	s := Seen{Now: r.clock.Now(), Service: r.plan.Service, Host: r.plan.Service + "." + v1alpha1.SystemNamespace + ".svc"}
	ready, err := webhookpeers.List(ctx, r.endpoints, s.Service)
	s.Failed, s.Ready = appendError(nil, err), len(ready)
	for _, replica := range ready {
		if c, err := r.presented(ctx, replica.Address, s.Host); err == nil {
			s.Served = append(s.Served, c)
		}
	}
	entries, failed := r.entries(ctx)
	s.Entries, s.Failed = entries, append(s.Failed, failed...)
	s.Policies, failed = policies(ctx, r.admission, r.plan)
	s.Failed = append(s.Failed, failed...)
	return s
}

// note remembers what was found, tells what has changed, and says whether
// something has to be looked at again before it counts.
func (r *Reconciler) note(ctx context.Context, found []Finding) (pending bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	was := r.open
	r.open = lasting(r.found, found)
	r.found, r.looked = found, true
	for _, f := range fresh(was, r.open) {
		logging.FromContext(ctx).Warnw("a guard is open", "reason", f.Reason, "guard", f.Guard, "message", f.Message)
		r.recorder.Event(r.deployment(), corev1.EventTypeWarning, f.Reason, f.Guard+": "+f.Message)
	}
	for _, f := range fresh(r.open, was) {
		logging.FromContext(ctx).Infow("a guard is closed again", "reason", f.Reason, "guard", f.Guard)
		r.recorder.Event(r.deployment(), corev1.EventTypeNormal, ReasonClosed, f.Guard+": not "+f.Reason+" any more")
	}
	return len(fresh(r.open, found)) > 0
}

// forget is for who leads no more: another shows what is open.
func (r *Reconciler) forget() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.found, r.open, r.looked = nil, nil, false
}

// deployment is what the Events are about.
func (r *Reconciler) deployment() *corev1.ObjectReference {
	return &corev1.ObjectReference{APIVersion: "apps/v1", Kind: "Deployment", Namespace: v1alpha1.SystemNamespace, Name: r.plan.Service}
}

// now returns 1 or 0 by reason; nil where this replica does not look.
func (r *Reconciler) now() map[string]int64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.looked || !r.IsLeaderFor(Key) {
		return nil
	}
	open := sets.New[string]()
	for _, f := range r.open {
		open.Insert(f.Reason)
	}
	all := map[string]int64{}
	for _, reason := range Reasons() {
		if all[reason] = 0; open.Has(reason) {
			all[reason] = 1
		}
	}
	return all
}
