package protection

import (
	"context"
	"fmt"
	"slices"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/discovery/cached/memory"
	admissionlisters "k8s.io/client-go/listers/admissionregistration/v1"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/restmapper"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/record"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	kubeclient "knative.dev/pkg/client/injection/kube/client"
	validatinginformer "knative.dev/pkg/client/injection/kube/informers/admissionregistration/v1/validatingwebhookconfiguration"
	namespaceinformer "knative.dev/pkg/client/injection/kube/informers/core/v1/namespace"
	pdbinformer "knative.dev/pkg/client/injection/kube/informers/policy/v1/poddisruptionbudget"
	"knative.dev/pkg/injection"
	"knative.dev/pkg/injection/clients/dynamicclient"

	"github.com/breakwater-dev/breakwater/admission"
	"github.com/breakwater-dev/breakwater/admission/protection/budget"
	"github.com/breakwater-dev/breakwater/admission/protection/cascade"
	"github.com/breakwater-dev/breakwater/admission/protection/deletion"
	"github.com/breakwater-dev/breakwater/admission/protection/deletionflow"
	"github.com/breakwater-dev/breakwater/admission/protection/denialevents"
	"github.com/breakwater-dev/breakwater/apis/policy/v1alpha1"
	policyclient "github.com/breakwater-dev/breakwater/client/injection/client"
	budgetinformer "github.com/breakwater-dev/breakwater/client/injection/informers/policy/v1alpha1/podunavailablebudget"
	"github.com/breakwater-dev/breakwater/internal/groupcommit"
	"github.com/breakwater-dev/breakwater/internal/metrics"
	"github.com/breakwater-dev/breakwater/internal/ownerchain"
	"github.com/breakwater-dev/breakwater/internal/podlist"
)

// newHandlers returns the handler of each webhook, by its name.
func newHandlers(ctx context.Context, recorder record.EventRecorder, denials *denialevents.Publisher, w watches) (map[string]admission.Handler, error) {
	objects, err := metadata.NewForConfig(injection.GetConfig(ctx))
	if err != nil {
		return nil, fmt.Errorf("create metadata client: %w", err)
	}
	guard, err := newBudgetGuard(ctx, recorder, objects, w)
	if err != nil {
		return nil, err
	}
	flows, err := newDeletionFlowGuard(ctx, recorder, objects, guard.PDBs)
	if err != nil {
		return nil, err
	}
	guard.Denials, flows.Denials = denials, denials
	exists := configurationExists(validatinginformer.Get(ctx).Lister())
	budgets := withAffinity(ctx, deletion.Handler{Budgets: guard, FlowControl: flows, ConfigurationExists: exists, Requests: admission.NewRequests(metrics.Meter())}, w.replicas)
	return map[string]admission.Handler{
		cascade.Webhook: cascade.Handler{Core: kubeclient.Get(ctx).CoreV1(), Objects: objects, Recorder: recorder, Denials: denials},

		deletionflow.Webhook:          flows,
		deletionflow.NamespaceWebhook: deletion.NamespaceHandler{FlowControl: flows, CascadingDenies: cascadingDenies(validatinginformer.Get(ctx).Lister())},
		deletionflow.ObjectWebhook:    deletionflow.ObjectHandler{Clock: clock.RealClock{}, Recorder: recorder},

		budget.PodWebhook:     budgets,
		budget.OwnerWebhook:   budgets,
		budget.RestartWebhook: budgets,
		budget.ObjectWebhook:  budget.ObjectHandler{Namespaces: kubeclient.Get(ctx).CoreV1().Namespaces()},
	}, nil
}

func newBudgetGuard(ctx context.Context, recorder record.EventRecorder, objects metadata.Interface, w watches) (budget.Guard, error) {
	kube, policies := kubeclient.Get(ctx), policyclient.Get(ctx).PolicyV1alpha1()
	mapper := restmapper.NewDeferredDiscoveryRESTMapper(memory.NewMemCacheClient(kube.Discovery()))
	recent, references := budget.NewRecentDeletions(), budget.NewChargeReferences()
	if _, err := budgetinformer.Get(ctx).Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    func(obj any) { observeBudget(recent, nil, obj) },
		UpdateFunc: func(before, after any) { observeBudget(recent, before, after) },
	}); err != nil {
		return budget.Guard{}, fmt.Errorf("watch budgets: %w", err)
	}
	lister := budgetinformer.Get(ctx).Lister()
	return budget.Guard{
		Budgets: lister, Client: policies, Controller: w.leases, Pods: kube.CoreV1(), PodLists: podlist.ForDeletions(kube.CoreV1()),
		Owners:     ownerchain.New(objects, mapper).WithObjects(dynamicclient.Get(ctx)),
		Namespaces: budget.Namespaces{Lister: namespaceinformer.Get(ctx).Lister(), Client: kube.CoreV1()},
		PDBs:       budget.PodDisruptionBudgets{Lister: pdbinformer.Get(ctx).Lister(), Client: kube.PolicyV1()},
		Commit:     budget.NewCommitter(lister, policies, references, countGroups("PodUnavailableBudget")),
		Recorder:   recorder, Recent: recent, References: references, Replica: w.self,
		FailsClosed: failsClosed(validatinginformer.Get(ctx).Lister()),
	}, nil
}

func observeBudget(recent *budget.RecentDeletions, before, after any) {
	if b, ok := after.(*v1alpha1.PodUnavailableBudget); ok {
		old, _ := before.(*v1alpha1.PodUnavailableBudget) // nil for a new budget
		recent.Observe(old, b)
	}
}

// registered returns a webhook of the configuration; nil if it does not exist.
func registered(configurations admissionlisters.ValidatingWebhookConfigurationLister, name string) *admissionregistrationv1.ValidatingWebhook {
	config, err := configurations.Get(Configuration)
	if err != nil {
		return nil
	}
	i := slices.IndexFunc(config.Webhooks, func(w admissionregistrationv1.ValidatingWebhook) bool { return w.Name == name })
	if i < 0 {
		return nil
	}
	return &config.Webhooks[i]
}

// failsClosed reports whether the API server denies a request about a pod when the
// webhook does not answer. If the policy is unknown, failsClosed assumes that of the
// manifest: Fail.
func failsClosed(configurations admissionlisters.ValidatingWebhookConfigurationLister) func() bool {
	return func() bool {
		w := registered(configurations, budget.PodWebhook)
		return w == nil || ptr.Deref(w.FailurePolicy, admissionregistrationv1.Fail) == admissionregistrationv1.Fail
	}
}

// cascadingDenies reports whether the API server asks the webhook of cascading deletion about each protected Namespace,
// and denies a request that it does not answer. If the configuration is deleted or restricted, it does not.
func cascadingDenies(configurations admissionlisters.ValidatingWebhookConfigurationLister) func() bool {
	return func() bool {
		w := registered(configurations, cascade.Webhook)
		return w != nil && ptr.Deref(w.FailurePolicy, admissionregistrationv1.Ignore) == admissionregistrationv1.Fail && asksAboutNamespaces(w)
	}
}

// asksAboutNamespaces reports whether a webhook is asked about all Namespaces that its match conditions in the manifest select.
func asksAboutNamespaces(w *admissionregistrationv1.ValidatingWebhook) bool {
	selects := func(s *metav1.LabelSelector) bool { return s != nil && len(s.MatchLabels)+len(s.MatchExpressions) > 0 }
	restricted := slices.ContainsFunc(w.MatchConditions, func(c admissionregistrationv1.MatchCondition) bool {
		return c.Name != "is-not-terminating" && c.Name != "is-protected"
	})
	return !restricted && !selects(w.NamespaceSelector) && !selects(w.ObjectSelector) &&
		slices.ContainsFunc(w.Rules, func(r admissionregistrationv1.RuleWithOperations) bool {
			return slices.Contains(r.Resources, "namespaces") || slices.Contains(r.Resources, "*")
		})
}

// countGroups returns a function that records the group commits of a kind of object.
func countGroups(kind string) func(groupcommit.Stats) {
	meter := metrics.Meter()
	requests := metrics.NewHistogram(meter, "breakwater_group_commit_requests")
	writes := metrics.NewCounter(meter, "breakwater_group_commit_writes_total")
	return func(o groupcommit.Stats) {
		ctx := context.Background()
		requests.Record(ctx, float64(o.Size), kind)
		writes.Add(ctx, int64(o.Conflicts), kind, "conflict")
		if o.Written {
			writes.Add(ctx, 1, kind, "written")
		}
	}
}
