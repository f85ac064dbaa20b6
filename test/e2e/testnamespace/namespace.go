// Package testnamespace creates the namespaces of end-to-end tests.
package testnamespace

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrs "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"

	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
)

// Create creates a namespace and waits until pods can be created in it: the API
// server denies pods before the ServiceAccount "default" exists.
func Create(ctx context.Context, kube kubernetes.Interface, meta metav1.ObjectMeta) (*corev1.Namespace, error) {
	n, err := kube.CoreV1().Namespaces().Create(ctx, &corev1.Namespace{ObjectMeta: meta}, metav1.CreateOptions{})
	if err != nil {
		return nil, fmt.Errorf("create a namespace: %w", err)
	}
	err = wait.PollUntilContextTimeout(ctx, 50*time.Millisecond, time.Minute, true, func(ctx context.Context) (bool, error) {
		_, err := kube.CoreV1().ServiceAccounts(n.Name).Get(ctx, "default", metav1.GetOptions{})
		if apierrs.IsNotFound(err) {
			return false, nil
		}
		return err == nil, err
	})
	if err != nil {
		return nil, fmt.Errorf("wait for the ServiceAccount default of %s: %w", n.Name, err)
	}
	return n, nil
}

// OptedIn creates a namespace that is opted in and returns its name. An error ends the test.
func OptedIn(t testing.TB, kube kubernetes.Interface, prefix string) string {
	t.Helper()
	n, err := Create(t.Context(), kube, metav1.ObjectMeta{
		GenerateName: prefix, Labels: map[string]string{v1alpha1.NamespaceLabel: v1alpha1.NamespaceEnabled},
	})
	if err != nil {
		t.Fatal(err)
	}
	return n.Name
}

// Delete deletes a namespace. It tries again while a webhook does not answer: the tests of
// protection, which may run meanwhile, stop the webhook that decides this request.
func Delete(ctx context.Context, kube kubernetes.Interface, name string) error {
	var last error
	err := wait.PollUntilContextCancel(ctx, time.Second, true, func(ctx context.Context) (bool, error) {
		last = kube.CoreV1().Namespaces().Delete(ctx, name, metav1.DeleteOptions{})
		return last == nil || !apierrs.IsInternalError(last), nil
	})
	return errors.Join(err, last)
}
