package faultinjection

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"

	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
	"github.com/breakwater-dev/breakwater/internal/workload"
)

// FunctionsReady returns an error unless every function of Breakwater and every Trigger is ready.
func FunctionsReady(ctx context.Context, objects dynamic.Interface) error {
	for _, kind := range []schema.GroupVersionResource{
		workload.KnativeService.GroupVersionResource(),
		{Group: "eventing.knative.dev", Version: "v1", Resource: "triggers"},
	} {
		list, err := objects.Resource(kind).Namespace(v1alpha1.SystemNamespace).List(ctx, metav1.ListOptions{})
		if err != nil {
			return err
		}
		for _, o := range list.Items {
			status, _ := o.Object["status"].(map[string]any)
			if !workload.HasCondition(status, "Ready", "True") {
				return fmt.Errorf("%s %s is not ready: %v", o.GetKind(), o.GetName(), status["conditions"])
			}
		}
	}
	return nil
}
