package main

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	corelisters "k8s.io/client-go/listers/core/v1"
	namespaceinformer "knative.dev/pkg/client/injection/kube/informers/core/v1/namespace"

	"github.com/breakwater-dev/breakwater/permission/podmeta"
	"github.com/breakwater-dev/breakwater/reconciler/selfcheck"
)

const (
	// configuration and service are the names of the webhook's objects. The package
	// of the webhook is not imported, because that would register its informers.
	configuration = "breakwater-permission"
	service       = "permission-webhook"
)

// guards returns the webhooks and denying policies that config/permission installs, which the
// self-check compares with the cluster.
func guards(ctx context.Context) selfcheck.Plan {
	return planOf(namespaceinformer.Get(ctx).Lister())
}

func planOf(namespaces corelisters.NamespaceLister) selfcheck.Plan {
	policies := []string{
		"breakwater-permission-label", "breakwater-permission-pods", "breakwater-permission-pod-status", "breakwater-permission-finalizer",
		"breakwater-permission-webhook-configurations", "breakwater-permission-configmaps",
	}
	return selfcheck.Plan{
		Service: service,
		Webhooks: []selfcheck.RequiredWebhook{
			{Configuration: configuration, Mutating: true, Webhook: "mpodpermission.kb.io",
				Namespaces: func() ([]*corev1.Namespace, error) {
					return selfcheck.NamespacesToGuard(namespaces, labels.Set{podmeta.Label: podmeta.LabelEnabled})
				}},
			// The webhook only reports early what the pod's condition reports later.
			{Configuration: configuration, Webhook: "vpermissionset.kb.io", FailsOpen: true},
		},
		Policies: policies, Bindings: policies,
	}
}
