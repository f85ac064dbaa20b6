package main

import (
	"context"
	"reflect"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/sets"
	corelisters "k8s.io/client-go/listers/core/v1"
	namespaceinformer "knative.dev/pkg/client/injection/kube/informers/core/v1/namespace"

	"github.com/breakwater-dev/breakwater/apis/policy/v1alpha1"
	flowinformer "github.com/breakwater-dev/breakwater/client/injection/informers/policy/v1alpha1/poddeletionflowcontrol"
	budgetinformer "github.com/breakwater-dev/breakwater/client/injection/informers/policy/v1alpha1/podunavailablebudget"
	listers "github.com/breakwater-dev/breakwater/client/listers/policy/v1alpha1"
	"github.com/breakwater-dev/breakwater/reconciler/selfcheck"
)

// guards returns the webhooks, denying policies and CRDs that config/protection installs, which
// the self-check compares with the cluster.
func guards(ctx context.Context) selfcheck.Plan {
	return planOf(namespaceinformer.Get(ctx).Lister(), budgetinformer.Get(ctx).Lister(), flowinformer.Get(ctx).Lister())
}

func planOf(namespaces corelisters.NamespaceLister, budgets listers.PodUnavailableBudgetLister, flows listers.PodDeletionFlowControlLister) selfcheck.Plan {
	const static, generatedDefault = "breakwater-protection", "breakwater-generated-default"
	budgetNamespaces := func() ([]*corev1.Namespace, error) { return withBudgets(namespaces, budgets, none) }
	budgetWebhook := func(webhook string, reached func() ([]*corev1.Namespace, error)) selfcheck.RequiredWebhook {
		return selfcheck.RequiredWebhook{Configuration: static, Webhook: webhook,
			Namespaces: reached, NamespaceLabel: v1alpha1.HasBudgetLabel, Value: v1alpha1.HasBudgetValue}
	}
	hasFlowControls := func() (bool, error) {
		all, err := flows.List(labels.Everything())
		return len(all) > 0, err
	}
	flowControlWebhook := func(webhook string, reached func() ([]*corev1.Namespace, error)) selfcheck.RequiredWebhook {
		return selfcheck.RequiredWebhook{Configuration: "breakwater-deletionflow", Webhook: webhook, Wanted: hasFlowControls, Namespaces: reached}
	}
	return selfcheck.Plan{
		Service: "protection-webhook",
		Webhooks: []selfcheck.RequiredWebhook{
			// vpodbudget.kb.io also decides by flow control, in every namespace with
			// the label.
			budgetWebhook("vpodbudget.kb.io", func() ([]*corev1.Namespace, error) {
				if yes, err := hasFlowControls(); err != nil || !yes {
					return budgetNamespaces()
				}
				return withBudgets(namespaces, budgets, labeled)
			}),
			budgetWebhook("vownerbudget.kb.io", budgetNamespaces), budgetWebhook("vrestartbudget.kb.io", budgetNamespaces),
			{Configuration: static, Webhook: "vpodunavailablebudget.kb.io"},
			// failurePolicy is Ignore: a limit can be raised while the webhook is down.
			{Configuration: static, Webhook: "vpoddeletionflowcontrol.kb.io", FailsOpen: true},
			{Configuration: static, Webhook: "vcascade.kb.io"},
			flowControlWebhook("vdeletionflow.kb.io", func() ([]*corev1.Namespace, error) {
				all, err := selfcheck.NamespacesToGuard(namespaces, nil)
				return slices.DeleteFunc(all, labeled), err
			}),
			flowControlWebhook("vnamespacedeletionflow.kb.io", func() ([]*corev1.Namespace, error) { return selfcheck.NamespacesToGuard(namespaces, nil) }),
		},
		Policies: []string{
			"breakwater-cascading-deletion-replicas", "breakwater-cascading-deletion-status", "breakwater-delete-protection-always",
			generatedDefault, "breakwater-protection-namespaces",
			"breakwater-protection-webhook-configurations", "breakwater-protection-budgets",
		},
		Bindings: []string{
			"breakwater-cascading-deletion-replicas", "breakwater-delete-protection-replicas",
			"breakwater-cascading-deletion-status", "breakwater-delete-protection-status", "breakwater-delete-protection-always",
			generatedDefault, "breakwater-protection-namespaces",
			"breakwater-protection-webhook-configurations", "breakwater-protection-budgets",
		},
		// The controller keeps the last valid default until it restarts.
		FailingOpen: []string{generatedDefault},
		CRDs: []selfcheck.CRD{
			{Name: "podunavailablebudgets." + v1alpha1.SchemeGroupVersion.Group, Version: v1alpha1.SchemeGroupVersion.Version, Type: reflect.TypeFor[v1alpha1.PodUnavailableBudget]()},
			{Name: "poddeletionflowcontrols." + v1alpha1.SchemeGroupVersion.Group, Version: v1alpha1.SchemeGroupVersion.Version, Type: reflect.TypeFor[v1alpha1.PodDeletionFlowControl]()},
		},
	}
}

func none(*corev1.Namespace) bool { return false }

// labeled reports whether the webhooks of budgets select the namespace.
func labeled(n *corev1.Namespace) bool {
	return n.Labels[v1alpha1.HasBudgetLabel] == v1alpha1.HasBudgetValue
}

// withBudgets returns the namespaces that have a budget, and those for which function also
// is true.
func withBudgets(namespaces corelisters.NamespaceLister, budgets listers.PodUnavailableBudgetLister, also func(*corev1.Namespace) bool) ([]*corev1.Namespace, error) {
	found, err := budgets.List(labels.Everything())
	if err != nil {
		return nil, err
	}
	names := sets.New[string]()
	for _, b := range found {
		names.Insert(b.Namespace)
	}
	all, err := selfcheck.NamespacesToGuard(namespaces, nil)
	return slices.DeleteFunc(all, func(n *corev1.Namespace) bool { return !names.Has(n.Name) && !also(n) }), err
}
