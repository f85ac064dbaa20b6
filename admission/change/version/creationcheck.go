package version

import (
	"context"
	"fmt"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	admissionlisters "k8s.io/client-go/listers/admissionregistration/v1"

	"github.com/breakwater-dev/breakwater/admission/change/suspend"
	"github.com/breakwater-dev/breakwater/admission/server/webhookconfig"
	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
	"github.com/breakwater-dev/breakwater/internal/managedfields"
	"github.com/breakwater-dev/breakwater/internal/workload"
)

const (
	// namespaceTimeout limits the request for the namespace.
	namespaceTimeout = 2 * time.Second
	// margin covers the clock skew between API servers, and the delay until they
	// observe a label or a webhook.
	margin = 10 * time.Second
)

// CreationCheck finds workloads whose creation the webhook missed: they have no
// release annotations, but were created after the webhook was installed and the
// namespace opted in. They are releases, not baselines.
type CreationCheck struct {
	Namespaces corev1client.NamespacesGetter
	Mutating   admissionlisters.MutatingWebhookConfigurationLister
}

// Missed reports whether the workload was created after the webhook was installed and
// the namespace opted in. It returns false if one of these times is unknown.
func (g *CreationCheck) Missed(ctx context.Context, w *workload.Workload) (bool, error) {
	ctx, cancel := context.WithTimeout(ctx, namespaceTimeout)
	defer cancel()
	ns, err := g.Namespaces.Namespaces().Get(ctx, w.Namespace, metav1.GetOptions{})
	if err != nil {
		return false, fmt.Errorf("get namespace %s: %w", w.Namespace, err)
	}
	optedIn, known := managedfields.LastWrite(ns.ManagedFields, "metadata", "labels", v1alpha1.NamespaceLabel)
	if !known {
		return false, nil
	}
	configs, err := g.Mutating.List(labels.Everything())
	if err != nil {
		return false, fmt.Errorf("list MutatingWebhookConfigurations: %w", err)
	}
	installed, known := installedAt(configs, suspend.MutatingWebhook(w.Kind))
	if !known {
		return false, nil
	}
	created := w.CreationTimestamp.Time
	return created.After(optedIn.Add(margin)) && created.After(installed.Add(margin)), nil
}

// installedAt returns the time when a webhook was installed.
func installedAt(configs []*admissionregistrationv1.MutatingWebhookConfiguration, webhook string) (time.Time, bool) {
	for _, c := range configs {
		if at, known := webhookconfig.InstalledAt(c, webhook); known {
			return at, true
		}
	}
	return time.Time{}, false
}
