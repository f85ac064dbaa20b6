package server

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/utils/clock"
	"knative.dev/pkg/logging"

	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
	"github.com/breakwater-dev/breakwater/permission/podmeta"
	"github.com/breakwater-dev/breakwater/permission/settings"
)

// announcementPolicy is the name of the policy that protects the announced addresses, and of its
// binding (config/samples/announced-address.yaml).
const announcementPolicy = "breakwater-permission-announced-address"

// announcementGuardTTL is how long the answer of announcementGuard is used again.
const announcementGuardTTL = 10 * time.Second

// announcementGuard reads the policy that protects the announced addresses. Without it, anyone
// who may write pods could write the annotation.
type announcementGuard struct {
	kube  kubernetes.Interface
	clock clock.PassiveClock

	mu   sync.Mutex
	read time.Time
	from time.Time
	err  error
}

// protects reports whether the policy protects the annotation of a pod since its creation.
func (g *announcementGuard) protects(ctx context.Context, created time.Time) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if now := g.clock.Now(); g.read.IsZero() || now.Sub(g.read) >= announcementGuardTTL {
		g.read = now
		g.from, g.err = g.since(ctx)
		if g.err != nil {
			logging.FromContext(ctx).Errorw("Announced addresses are not used", "error", g.err)
		}
	}
	return g.err == nil && !created.Before(g.from)
}

// since returns the creation of the first pod whose annotation the policy protects.
func (g *announcementGuard) since(ctx context.Context) (time.Time, error) {
	// The answer is used for other calls, too.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), callTimeout)
	defer cancel()
	client := g.kube.AdmissionregistrationV1()
	policy, err := client.ValidatingAdmissionPolicies().Get(ctx, announcementPolicy, metav1.GetOptions{})
	if err != nil {
		return time.Time{}, err
	}
	binding, err := client.ValidatingAdmissionPolicyBindings().Get(ctx, announcementPolicy, metav1.GetOptions{})
	if err != nil {
		return time.Time{}, err
	}
	return protectedFrom(policy, binding)
}

// protectedFrom returns the creation of the first pod whose annotation the policy protects. Like
// a change of the settings, a new policy needs time to take effect.
func protectedFrom(p *admissionregistrationv1.ValidatingAdmissionPolicy, b *admissionregistrationv1.ValidatingAdmissionPolicyBinding) (time.Time, error) {
	ref := b.Spec.ParamRef
	switch {
	case p.Spec.FailurePolicy != nil && *p.Spec.FailurePolicy != admissionregistrationv1.Fail:
		return time.Time{}, errors.New("ValidatingAdmissionPolicy " + announcementPolicy + " must have failurePolicy Fail")
	case !slices.Contains(b.Spec.ValidationActions, admissionregistrationv1.Deny):
		return time.Time{}, errors.New("ValidatingAdmissionPolicyBinding " + announcementPolicy + " must have the validation action Deny")
	case b.Spec.PolicyName != announcementPolicy || b.Spec.MatchResources != nil ||
		ref == nil || ref.Namespace != v1alpha1.SystemNamespace || ref.Name != podmeta.ConfigName || ref.Selector != nil:
		return time.Time{}, errors.New("ValidatingAdmissionPolicyBinding " + announcementPolicy +
			" must bind the policy of this name to ConfigMap " + podmeta.ConfigName + ", without matchResources")
	}
	from := p.CreationTimestamp.Time
	if b.CreationTimestamp.After(from) {
		from = b.CreationTimestamp.Time
	}
	return from.Add(settings.AnnouncedAddressDelay), nil
}
