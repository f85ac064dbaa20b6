package protection

import (
	"context"
	"fmt"
	"os"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/metric"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/client-go/discovery/cached/memory"
	admissionlisters "k8s.io/client-go/listers/admissionregistration/v1"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/restmapper"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/record"
	"k8s.io/utils/clock"
	kubeclient "knative.dev/pkg/client/injection/kube/client"
	validatinginformer "knative.dev/pkg/client/injection/kube/informers/admissionregistration/v1/validatingwebhookconfiguration"
	pdbinformer "knative.dev/pkg/client/injection/kube/informers/policy/v1/poddisruptionbudget"
	"knative.dev/pkg/injection"
	"knative.dev/pkg/injection/clients/dynamicclient"

	"github.com/breakwater-dev/breakwater/admission"
	"github.com/breakwater-dev/breakwater/admission/protection/budget"
	"github.com/breakwater-dev/breakwater/admission/protection/cascade"
	"github.com/breakwater-dev/breakwater/admission/protection/deletionflow"
	"github.com/breakwater-dev/breakwater/admission/protection/denialevents"
	"github.com/breakwater-dev/breakwater/apis/policy/v1alpha1"
	policyclient "github.com/breakwater-dev/breakwater/client/injection/client"
	budgetinformer "github.com/breakwater-dev/breakwater/client/injection/informers/policy/v1alpha1/podunavailablebudget"
	"github.com/breakwater-dev/breakwater/internal/groupcommit"
	"github.com/breakwater-dev/breakwater/internal/ownerchain"
)

// newHandlers returns the handler of each webhook, by its name.
func newHandlers(ctx context.Context, recorder record.EventRecorder, denials *denialevents.Publisher) (map[string]admission.Handler, error) {
	objects, err := metadata.NewForConfig(injection.GetConfig(ctx))
	if err != nil {
		return nil, fmt.Errorf("create metadata client: %w", err)
	}
	guard, err := newBudgetGuard(ctx, recorder, objects)
	if err != nil {
		return nil, err
	}
	flows, err := newDeletionFlowGuard(ctx, recorder, guard.PDBs)
	if err != nil {
		return nil, err
	}
	guard.Denials, flows.Denials = denials, denials
	budgets := withAffinity(ctx, guard)
	return map[string]admission.Handler{
		cascade.Webhook: cascade.Handler{Core: kubeclient.Get(ctx).CoreV1(), Objects: objects, Recorder: recorder, Denials: denials},

		deletionflow.Webhook: flows,
		// A separate recorder, so that the rate limit of denials does not drop the
		// Event that names who closed a breaker.
		deletionflow.ObjectWebhook: deletionflow.Object{Clock: clock.RealClock{}, Recorder: newRecorder(ctx, kubeclient.Get(ctx))},

		budget.PodWebhook:     budgets,
		budget.OwnerWebhook:   budgets,
		budget.RestartWebhook: budgets,
		budget.ObjectWebhook:  budget.Object{Namespaces: kubeclient.Get(ctx).CoreV1().Namespaces()},
	}, nil
}

func newBudgetGuard(ctx context.Context, recorder record.EventRecorder, objects metadata.Interface) (budget.Guard, error) {
	kube, policies := kubeclient.Get(ctx), policyclient.Get(ctx).PolicyV1alpha1()
	observe, err := groupMetrics("budget")
	if err != nil {
		return budget.Guard{}, err
	}
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
		Budgets: lister, Client: policies, Pods: kube.CoreV1(),
		Owners:   ownerchain.New(objects, mapper).WithSelectors(dynamicclient.Get(ctx)),
		PDBs:     budget.Disruptions{Lister: pdbinformer.Get(ctx).Lister(), Client: kube.PolicyV1()},
		Commit:   budget.NewCommitter(lister, policies, references, groupcommit.Options{Observe: observe}),
		Recorder: recorder, Recent: recent, References: references, Replica: os.Getenv("POD_NAME"),
		FailsClosed: failsClosed(validatinginformer.Get(ctx).Lister()),
	}, nil
}

func observeBudget(recent *budget.RecentDeletions, before, after any) {
	if b, ok := after.(*v1alpha1.PodUnavailableBudget); ok {
		old, _ := before.(*v1alpha1.PodUnavailableBudget) // nil for a new budget
		recent.Observe(old, b)
	}
}

// failsClosed says whether the API server denies a request about a pod when the
// webhook does not answer. Unknown is treated like the manifest, which says Fail.
func failsClosed(configurations admissionlisters.ValidatingWebhookConfigurationLister) func() bool {
	return func() bool {
		config, err := configurations.Get(Configuration)
		if err != nil {
			return true
		}
		for _, w := range config.Webhooks {
			if w.Name == budget.PodWebhook && w.FailurePolicy != nil {
				return *w.FailurePolicy == admissionregistrationv1.Fail
			}
		}
		return true
	}
}

// groupMetrics returns a function that records the commits of groups.
func groupMetrics(what string) (func(groupcommit.Outcome), error) {
	meter := otel.Meter(meterName)
	size, err := meter.Int64Histogram("breakwater."+what+".group.size",
		metric.WithDescription("Requests that shared one decision"),
		metric.WithExplicitBucketBoundaries(1, 2, 5, 10, 20, 50, 100, 200, 500))
	if err != nil {
		return nil, fmt.Errorf("create histogram: %w", err)
	}
	writes, err := meter.Int64Counter("breakwater."+what+".writes", metric.WithDescription("Status writes of the webhook that succeeded"))
	if err != nil {
		return nil, fmt.Errorf("create counter: %w", err)
	}
	conflicts, err := meter.Int64Counter("breakwater."+what+".conflicts", metric.WithDescription("Status writes of the webhook that failed with a conflict and were retried"))
	if err != nil {
		return nil, fmt.Errorf("create counter: %w", err)
	}
	return func(o groupcommit.Outcome) {
		ctx := context.Background()
		size.Record(ctx, int64(o.Size))
		conflicts.Add(ctx, int64(o.Conflicts))
		if o.Written {
			writes.Add(ctx, 1)
		}
	}, nil
}
