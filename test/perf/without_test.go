//go:build bench

package perf

import (
	"context"
	"errors"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// partOfBreakwater is the label of all that Breakwater installs.
var partOfBreakwater = metav1.ListOptions{LabelSelector: "app.kubernetes.io/part-of=breakwater"}

// without does something while no webhook and no policy of Breakwater is
// registered at the API server, and registers them again.
func (b *bed) without(ctx context.Context, do func()) (err error) {
	registrations := b.kube.AdmissionregistrationV1()
	validating, mutating, bindings := registrations.ValidatingWebhookConfigurations(), registrations.MutatingWebhookConfigurations(), registrations.ValidatingAdmissionPolicyBindings()
	vs, err1 := validating.List(ctx, partOfBreakwater)
	ms, err2 := mutating.List(ctx, partOfBreakwater)
	bs, err3 := bindings.List(ctx, partOfBreakwater)
	if err := errors.Join(err1, err2, err3); err != nil {
		return err
	}
	if len(vs.Items) == 0 || len(bs.Items) == 0 {
		return fmt.Errorf("Breakwater is not installed: run make up") //nolint:staticcheck // a name
	}
	// Also when the run is interrupted.
	defer func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Minute)
		defer cancel()
		errs := []error{err}
		for i := range vs.Items {
			again(&vs.Items[i])
			_, err := validating.Create(ctx, &vs.Items[i], metav1.CreateOptions{})
			errs = append(errs, err)
		}
		for i := range ms.Items {
			again(&ms.Items[i])
			_, err := mutating.Create(ctx, &ms.Items[i], metav1.CreateOptions{})
			errs = append(errs, err)
		}
		for i := range bs.Items {
			again(&bs.Items[i])
			_, err := bindings.Create(ctx, &bs.Items[i], metav1.CreateOptions{})
			errs = append(errs, err)
		}
		err = errors.Join(errs...)
	}()
	if err := errors.Join(
		validating.DeleteCollection(ctx, metav1.DeleteOptions{}, partOfBreakwater),
		mutating.DeleteCollection(ctx, metav1.DeleteOptions{}, partOfBreakwater),
		bindings.DeleteCollection(ctx, metav1.DeleteOptions{}, partOfBreakwater),
	); err != nil {
		return err
	}
	do()
	return nil
}

// again prepares an object to be created once more.
func again(o metav1.Object) {
	o.SetResourceVersion("")
	o.SetUID("")
}
