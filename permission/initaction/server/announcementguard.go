package server

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/utils/clock"
	"knative.dev/pkg/logging"

	"github.com/breakwater-dev/breakwater/permission/settings"
)

// announcementGuardTTL is how long the answer of announcementGuard is used again. During this time, and that
// of the read before it (at most apiServerTimeout), the server trusts an annotation that anyone may have
// written after the deletion of the policy.
const announcementGuardTTL = time.Second

// announcementGuard reads the policy that protects the announced addresses. Without it, anyone
// who may write pods could write the annotation.
type announcementGuard struct {
	kube  kubernetes.Interface
	clock clock.PassiveClock

	mu sync.Mutex
	// read is when from and err were read for these settings.
	read     time.Time
	settings settings.AnnouncedAddress
	// from is the creation of the first pod whose annotation is protected, unless there is an error.
	from time.Time
	err  error
}

// protects reports whether the policy protects the annotation of a pod since its creation.
func (g *announcementGuard) protects(ctx context.Context, a settings.AnnouncedAddress, created time.Time) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.read.IsZero() || g.clock.Since(g.read) >= announcementGuardTTL || g.settings != a {
		from, err := g.since(ctx, a)
		if err != nil && (g.err == nil || g.err.Error() != err.Error()) {
			logging.FromContext(ctx).Errorw("Announced addresses are not used, so each pod waits until the kubelet reports its address", "error", err)
		}
		// The time after the read: otherwise, while the API server is slow, each waiting call would read, too.
		g.read, g.settings, g.from, g.err = g.clock.Now(), a, from, err
	}
	return g.err == nil && !created.Before(g.from)
}

// since returns the creation of the first pod whose annotation the policy protects.
func (g *announcementGuard) since(ctx context.Context, a settings.AnnouncedAddress) (time.Time, error) {
	// The answer is used for other calls, too.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), apiServerTimeout)
	defer cancel()
	client := g.kube.AdmissionregistrationV1()
	policy, err := client.ValidatingAdmissionPolicies().Get(ctx, announcementPolicy, metav1.GetOptions{})
	if err != nil {
		return time.Time{}, fmt.Errorf("read ValidatingAdmissionPolicy %s: %w", announcementPolicy, err)
	}
	binding, err := client.ValidatingAdmissionPolicyBindings().Get(ctx, announcementPolicy, metav1.GetOptions{})
	if err != nil {
		return time.Time{}, fmt.Errorf("read ValidatingAdmissionPolicyBinding %s: %w", announcementPolicy, err)
	}
	return protectedFrom(policy, binding, a)
}

// protectedFrom returns the creation of the first pod whose annotation the policy protects. Only a
// policy that is unchanged since its creation tells how long it has protected the annotation. A new policy
// needs time to take effect.
func protectedFrom(p *admissionregistrationv1.ValidatingAdmissionPolicy, b *admissionregistrationv1.ValidatingAdmissionPolicyBinding, a settings.AnnouncedAddress) (time.Time, error) {
	const again = "; delete it and create it again from config/samples/announced-address.yaml"
	want := announcementPolicySpec(a)
	switch {
	case p.Generation != 1:
		return time.Time{}, errors.New("ValidatingAdmissionPolicy " + announcementPolicy + " was changed after its creation" + again)
	case b.Generation != 1:
		return time.Time{}, errors.New("ValidatingAdmissionPolicyBinding " + announcementPolicy + " was changed after its creation" + again)
	case !equality.Semantic.DeepEqual(p.Spec.Variables, want.Variables):
		return time.Time{}, fmt.Errorf("ValidatingAdmissionPolicy %s must have exactly the variables annotation and writer, with the values %q and %q of ConfigMap config-permission%s",
			announcementPolicy, a.Annotation, a.Writer, again)
	case !equality.Semantic.DeepEqual(withoutMessages(p.Spec), want):
		return time.Time{}, errors.New("ValidatingAdmissionPolicy " + announcementPolicy + " may not protect the annotation, because it differs from the sample" + again)
	case !equality.Semantic.DeepEqual(b.Spec, announcementBindingSpec()):
		return time.Time{}, errors.New("ValidatingAdmissionPolicyBinding " + announcementPolicy + " may not protect the annotation, because it differs from the sample" + again)
	}
	from := p.CreationTimestamp.Time
	if b.CreationTimestamp.After(from) {
		from = b.CreationTimestamp.Time
	}
	return from.Add(settings.AnnouncedAddressDelay), nil
}
