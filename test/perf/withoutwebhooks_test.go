//go:build bench

package perf

import (
	"context"
	"errors"
	"fmt"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"
)

// partOfBreakwater selects all objects that Breakwater installs.
var partOfBreakwater = metav1.ListOptions{LabelSelector: "app.kubernetes.io/part-of=breakwater"}

// withoutWebhooks runs a function while no webhook or policy of Breakwater is
// registered at the API server, and then registers them again.
func (b *benchmark) withoutWebhooks(ctx context.Context, do func()) (err error) {
	objects, err := dynamic.NewForConfig(b.config)
	if err != nil {
		return err
	}
	client := func(resource string) dynamic.ResourceInterface {
		return objects.Resource(admissionregistrationv1.SchemeGroupVersion.WithResource(resource))
	}
	found := map[string][]unstructured.Unstructured{}
	for _, resource := range []string{"validatingwebhookconfigurations", "mutatingwebhookconfigurations", "validatingadmissionpolicybindings"} {
		list, err := client(resource).List(ctx, partOfBreakwater)
		if err != nil {
			return err
		}
		found[resource] = list.Items
	}
	if len(found["validatingwebhookconfigurations"]) == 0 || len(found["validatingadmissionpolicybindings"]) == 0 {
		return fmt.Errorf("Breakwater is not installed: run make up") //nolint:staticcheck // a name
	}
	// Register them also after an interrupt.
	defer func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Minute)
		defer cancel()
		for resource, all := range found {
			for i := range all {
				all[i].SetResourceVersion("")
				all[i].SetUID("")
				_, failed := client(resource).Create(ctx, &all[i], metav1.CreateOptions{})
				err = errors.Join(err, failed)
			}
		}
	}()
	for resource := range found {
		if err := client(resource).DeleteCollection(ctx, metav1.DeleteOptions{}, partOfBreakwater); err != nil {
			return err
		}
	}
	do()
	return nil
}
