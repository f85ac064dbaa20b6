package selfcheck

import (
	"context"
	"crypto/x509"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apiextensionsclient "k8s.io/apiextensions-apiserver/pkg/client/clientset/clientset/typed/apiextensions/v1"
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
	"github.com/breakwater-dev/breakwater/internal/eventrecorder"
	"github.com/breakwater-dev/breakwater/internal/webhookpeers"
)

const (
	// interval is the time between checks; Prometheus rarely scrapes more
	// often.
	interval = 10 * time.Second
	// confirmAfter is the delay of the second check that confirms a finding.
	confirmAfter = 2 * time.Second
	// ReasonGuardEnforced is the reason of the Event when the last finding of a
	// guard has ended.
	ReasonGuardEnforced = "GuardEnforced"
	// ReasonFindingEnded is the reason of the Event when a finding has ended and
	// its guard has other findings, or is not required now.
	ReasonFindingEnded = "FindingEnded"
)

// Key is the only key of the queue.
var Key = types.NamespacedName{Name: "guards"}

// Reconciler runs the checks in the leader.
type Reconciler struct {
	reconciler.LeaderAwareFuncs

	plan      Plan
	admission admissionclient.AdmissionregistrationV1Interface
	endpoints discoveryclient.EndpointSlicesGetter
	crds      apiextensionsclient.CustomResourceDefinitionInterface
	unchanged *unchanged
	presented func(ctx context.Context, address, host string) (*x509.Certificate, error)
	recorder  record.EventRecorder
	clock     clock.PassiveClock

	mu sync.Mutex
	// found are the findings of the last check, and unenforced the confirmed ones. checked
	// reports whether a check has run.
	found, unenforced []Finding
	checked           bool
	// repeated is when the Events of all findings were recorded again.
	repeated time.Time
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
	if pending := r.note(ctx, r.gather(ctx)); pending {
		return controller.NewRequeueAfter(confirmAfter)
	}
	return controller.NewRequeueAfter(interval)
}

// gather reads the input of Decide.
func (r *Reconciler) gather(ctx context.Context) Input {
	s := Input{Now: r.clock.Now(), Service: r.plan.Service, Host: r.plan.Service + "." + v1alpha1.SystemNamespace + ".svc"}
	ready, err := webhookpeers.List(ctx, r.endpoints, s.Service)
	s.Failed, s.Ready = appendFailure(nil, s.Service, err), len(ready)
	for _, replica := range ready {
		if c, err := r.presented(ctx, replica.Address, s.Host); err == nil {
			s.Served = append(s.Served, c)
		}
	}
	entries, failed := r.entries(ctx)
	s.Entries, s.Failed = entries, append(s.Failed, failed...)
	s.Policies, failed = r.policies(ctx)
	s.Failed = append(s.Failed, failed...)
	s.Schemas, failed = r.schemas(ctx)
	s.Failed = append(s.Failed, failed...)
	return s
}

// note stores findings, reports changes, and all findings again after RepeatAfter. It returns
// whether a finding must be confirmed.
func (r *Reconciler) note(ctx context.Context, in Input) (pending bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	found, was := Decide(in), r.unenforced
	r.unenforced = confirmed(r.found, found)
	unconfirmed := without(found, r.unenforced)
	kept := in.kept(without(was, found), unconfirmed)
	r.unenforced = append(r.unenforced, kept...)
	r.found, r.checked = append(found, kept...), true
	reported := without(r.unenforced, was)
	if in.Now.Sub(r.repeated) >= eventrecorder.RepeatAfter {
		reported, r.repeated = r.unenforced, in.Now
	}
	for _, f := range reported {
		logging.FromContext(ctx).Warnw("the self-check found a problem", "reason", f.Reason, "object", f.Object, "message", f.Message)
		r.recorder.Event(r.deployment(), corev1.EventTypeWarning, f.Reason, f.Object+": "+f.Message)
	}
	for _, f := range onePerReason(without(was, r.unenforced)) {
		if reason, message, report := in.ended(f, r.unenforced); report {
			logging.FromContext(ctx).Infow("a finding of the self-check has ended", "reason", f.Reason, "object", f.Object, "message", message)
			r.recorder.Event(r.deployment(), corev1.EventTypeNormal, reason, message)
		}
	}
	return len(unconfirmed) > 0
}

// forget drops findings when this replica stops leading: the new leader exposes
// them.
func (r *Reconciler) forget() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.found, r.unenforced, r.checked = nil, nil, false
}

// deployment is the object of the Events.
func (r *Reconciler) deployment() *corev1.ObjectReference {
	return &corev1.ObjectReference{APIVersion: "apps/v1", Kind: "Deployment", Namespace: v1alpha1.SystemNamespace, Name: r.plan.Service}
}

// metricValues returns 1 or 0 by reason; nil if this replica is not the leader.
func (r *Reconciler) metricValues() map[string]int64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.checked || !r.IsLeaderFor(Key) {
		return nil
	}
	reasons := sets.New[string]()
	for _, f := range r.unenforced {
		reasons.Insert(f.Reason)
	}
	all := map[string]int64{}
	for _, reason := range Reasons() {
		if all[reason] = 0; reasons.Has(reason) {
			all[reason] = 1
		}
	}
	return all
}
