package version

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	admissionlisters "k8s.io/client-go/listers/admissionregistration/v1"

	"github.com/breakwater-dev/breakwater/admission/change/suspend"
	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
	"github.com/breakwater-dev/breakwater/internal/workload"
)

const (
	// guardedTimeout bounds the question to the API server.
	guardedTimeout = 2 * time.Second
	// margin is for clocks of API servers that differ, and for how late one
	// hears of a label or a webhook.
	margin = 10 * time.Second
)

// CreationCheck tells since when the API server calls the webhook for new workloads.
// A workload that was created later and has no version was created while the
// webhook was down: it is a release, not a baseline.
type CreationCheck struct {
	Namespaces corev1client.NamespacesGetter
	Mutating   admissionlisters.MutatingWebhookConfigurationLister
}

// Missed says whether the workload was created when its creation should have
// been asked about. It is false when that is not known for certain.
func (g *CreationCheck) Missed(ctx context.Context, w *workload.Workload) (bool, error) {
	ctx, cancel := context.WithTimeout(ctx, guardedTimeout)
	defer cancel()
	ns, err := g.Namespaces.Namespaces().Get(ctx, w.Namespace, metav1.GetOptions{})
	if err != nil {
		return false, fmt.Errorf("get namespace %s: %w", w.Namespace, err)
	}
	optedIn, known := written(ns.ManagedFields, "f:metadata", "f:labels", "f:"+v1alpha1.NamespaceLabel)
	if !known {
		return false, nil
	}
	configs, err := g.Mutating.List(labels.Everything())
	if err != nil {
		return false, fmt.Errorf("list configurations: %w", err)
	}
	installed, known := installed(configs, suspend.MutatingWebhook(w.Kind))
	if !known {
		return false, nil
	}
	created := w.CreationTimestamp.Time
	return created.After(optedIn.Add(margin)) && created.After(installed.Add(margin)), nil
}

// installed returns when a webhook was there at the latest.
func installed(configs []*admissionregistrationv1.MutatingWebhookConfiguration, webhook string) (time.Time, bool) {
	for _, c := range configs {
		if at, known := written(c.ManagedFields, "f:webhooks", fmt.Sprintf(`k:{"name":%q}`, webhook)); known {
			return at, true
		}
	}
	return time.Time{}, false
}

// written returns a time at which the field had its value already: the last
// write of those who own it. Each may have written other fields since, so the
// value may be older, and is never younger.
func written(managed []metav1.ManagedFieldsEntry, path ...string) (time.Time, bool) {
	var last time.Time
	for _, entry := range managed {
		if !owns(entry.FieldsV1, path) {
			continue
		}
		if entry.Time == nil {
			return time.Time{}, false
		}
		if entry.Time.After(last) {
			last = entry.Time.Time
		}
	}
	return last, !last.IsZero()
}

func owns(fields *metav1.FieldsV1, path []string) bool {
	if fields == nil {
		return false
	}
	raw := json.RawMessage(fields.Raw)
	for _, name := range path {
		var level map[string]json.RawMessage
		if json.Unmarshal(raw, &level) != nil {
			return false
		}
		var ok bool
		if raw, ok = level[name]; !ok {
			return false
		}
	}
	return true
}
