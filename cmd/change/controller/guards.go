package main

import (
	"context"
	"reflect"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	corelisters "k8s.io/client-go/listers/core/v1"
	namespaceinformer "knative.dev/pkg/client/injection/kube/informers/core/v1/namespace"

	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
	judgev1alpha1 "github.com/breakwater-dev/breakwater/apis/judge/v1alpha1"
	"github.com/breakwater-dev/breakwater/reconciler/selfcheck"
)

// guards returns the webhooks, denying policies and CRDs that config/core installs, which the
// self-check compares with the cluster.
// FailsOpen marks webhooks whose failurePolicy is Ignore on purpose, because a miss is repaired: the
// controller checks settings and ConfigMap config-workloads itself, and, if a mutating webhook missed a
// workload, causes an update that calls this webhook. A miss of vrelease.kb.io is not repaired: the release is
// admitted without a release check.
func guards(ctx context.Context) selfcheck.Plan {
	return planOf(namespaceinformer.Get(ctx).Lister())
}

func planOf(namespaces corelisters.NamespaceLister) selfcheck.Plan {
	const static, judgeBeforeTraffic = "breakwater", "breakwater-judge-before-traffic"
	optedIn := func() ([]*corev1.Namespace, error) { return optedIn(namespaces) }
	policies := []string{
		"breakwater-openapi-writes-no-spec", "breakwater-immutable-specs",
		"breakwater-controller-pods", "breakwater-controller-workloads", "breakwater-controller-other-kinds", "breakwater-controller-revisions",
		"breakwater-functions-write-facts", "breakwater-saved-templates", "breakwater-templates-of-replicasets", "breakwater-replicasets",
		"breakwater-user-of-rollback-request", "breakwater-webhook-configurations", "breakwater-knative-revisions",
		judgeBeforeTraffic, "breakwater-size-of-metadata",
	}
	plan := selfcheck.Plan{
		Service: "webhook", Policies: policies, Bindings: policies,
		// The policy checks an annotation of namespaces. If it fails, it must not block their writes.
		FailingOpen: []string{judgeBeforeTraffic},
		Webhooks: []selfcheck.RequiredWebhook{
			{Configuration: static, Webhook: "vrelease.kb.io", FailsOpen: true, Namespaces: optedIn},
			{Configuration: static, Webhook: "vopsconfiginfo.kb.io", FailsOpen: true},
			{Configuration: static, Webhook: "vconfigworkloads.kb.io", FailsOpen: true},
			{Configuration: static, Webhook: "mopsconfiginfo.kb.io", FailsOpen: true, Mutating: true},
		},
		CRDs: []selfcheck.CRD{
			crd("changeworkloads", reflect.TypeFor[v1alpha1.ChangeWorkload]()), crd("changepods", reflect.TypeFor[v1alpha1.ChangePod]()),
			crd("opsconfiginfoes", reflect.TypeFor[v1alpha1.OpsConfigInfo]()), crd("releasechecks", reflect.TypeFor[v1alpha1.ReleaseCheck]()),
			{Name: "metricchecks." + judgev1alpha1.GroupName, Version: judgev1alpha1.SchemeGroupVersion.Version, Type: reflect.TypeFor[judgev1alpha1.MetricCheck]()},
		},
	}
	for _, kind := range []string{"deployment", "statefulset", "daemonset", "service"} {
		plan.Webhooks = append(plan.Webhooks,
			selfcheck.RequiredWebhook{Configuration: static, Webhook: "v" + kind + ".kb.io", Namespaces: optedIn},
			selfcheck.RequiredWebhook{Configuration: static, Webhook: "m" + kind + ".kb.io", Namespaces: optedIn, FailsOpen: true, Mutating: true})
	}
	return plan
}

func crd(resource string, t reflect.Type) selfcheck.CRD {
	return selfcheck.CRD{Name: resource + "." + v1alpha1.GroupName, Version: v1alpha1.SchemeGroupVersion.Version, Type: t}
}

// optedIn are the namespaces whose releases are judged.
func optedIn(namespaces corelisters.NamespaceLister) ([]*corev1.Namespace, error) {
	return selfcheck.NamespacesToGuard(namespaces, labels.Set{v1alpha1.NamespaceLabel: v1alpha1.NamespaceEnabled})
}
