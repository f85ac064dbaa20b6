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
	// labelPolicy is the name of the policy that protects the label of pods, and of its
	// binding.
	labelPolicy = "breakwater-permission-label"
	// finalizerPolicy is the name of the policy that protects the finalizer of pods, and of
	// its binding.
	finalizerPolicy = "breakwater-permission-finalizer"
	// configurationsPolicy is the name of the policy that restricts what the webhook may write
	// to webhook configurations, and of its binding.
	configurationsPolicy = "breakwater-permission-webhook-configurations"
)

// guards returns the guards that config/permission installs.
func guards(ctx context.Context) selfcheck.Plan {
	return planOf(namespaceinformer.Get(ctx).Lister())
}

func planOf(namespaces corelisters.NamespaceLister) selfcheck.Plan {
	policies := []string{labelPolicy, finalizerPolicy, configurationsPolicy}
	return selfcheck.Plan{
		Service: service,
		Guards: []selfcheck.Guard{
			{Configuration: configuration, Mutating: true, Webhook: "mpodpermission.kb.io",
				Namespaces: func() ([]*corev1.Namespace, error) {
					return selfcheck.NamespacesToGuard(namespaces, labels.Set{podmeta.Label: podmeta.LabelEnabled})
				}},
			// The webhook only reports early what the pod's condition reports later.
			{Configuration: configuration, Webhook: "vpermissionset.kb.io", Ignores: true},
		},
		Policies: policies, Bindings: policies,
	}
}
