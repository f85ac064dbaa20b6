package changepod

import (
	"context"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/ptr"
	"knative.dev/pkg/apis"
	"knative.dev/pkg/controller"

	"github.com/breakwater-dev/breakwater/apis/change/settings"
	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
	listers "github.com/breakwater-dev/breakwater/client/listers/change/v1alpha1"
)

func TestABatchWhoseReleaseIsNotInTheCacheIsLookedAtAgain(t *testing.T) {
	r := &Reconciler{changeWorkloads: listers.NewChangeWorkloadLister(cache.NewIndexer(cache.MetaNamespaceKeyFunc, cache.Indexers{}))}
	c := batch()
	if err := r.ReconcileKind(context.Background(), c); err != nil {
		t.Errorf("a batch that nobody owns: %v", err)
	}
	c.OwnerReferences = []metav1.OwnerReference{{UID: "u", Controller: ptr.To(true)}}
	if again, _ := controller.IsRequeueKey(r.ReconcileKind(context.Background(), c)); !again {
		t.Error("a batch that somebody owns is forgotten")
	}
}

func TestTheTimeOfAConditionMovesOnlyWithIt(t *testing.T) {
	c := batch(verdict(v1alpha1.StagePost, "pass"))
	d := Decide(Input{Now: t0, Settings: settings.Default(), ServerConfigured: true, ChangePod: c})
	c, _ = derive(c, d, settings.Default(), t0)
	for i := range c.Status.Conditions {
		c.Status.Conditions[i].LastTransitionTime = apis.VolatileTime{Inner: metav1.NewTime(t0)}
	}
	next, changed := derive(c, d, settings.Default(), t0.Add(time.Hour))
	if changed {
		t.Error("nothing has changed")
	}
	for _, cond := range next.Status.Conditions {
		if !cond.LastTransitionTime.Inner.Time.Equal(t0) {
			t.Errorf("%s moved to %s", cond.Type, cond.LastTransitionTime.Inner)
		}
	}
}
