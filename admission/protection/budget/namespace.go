package budget

import (
	"context"
	"fmt"

	admissionv1 "k8s.io/api/admission/v1"
	apierrs "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	corev1listers "k8s.io/client-go/listers/core/v1"
)

// Namespaces reads namespaces.
type Namespaces struct {
	Lister corev1listers.NamespaceLister
	Client corev1client.NamespacesGetter
}

// deletedWithNamespace reports whether the request deletes an object because its
// namespace terminates. Budgets do not decide such a request. The matchConditions exclude
// the namespace controller by its user name, but without
// --use-service-account-credentials it has no user name of its own.
func (n Namespaces) deletedWithNamespace(ctx context.Context, req *admissionv1.AdmissionRequest) (bool, error) {
	if req.Operation != admissionv1.Delete {
		return false, nil
	}
	if cached, err := n.Lister.Get(req.Namespace); err != nil || cached.DeletionTimestamp == nil {
		return false, nil //nolint:nilerr // budgets decide in an unknown namespace
	}
	// Confirm with a live read: a new namespace may have the same name.
	live, err := n.Client.Namespaces().Get(ctx, req.Namespace, metav1.GetOptions{})
	if apierrs.IsNotFound(err) {
		return true, nil
	} else if err != nil {
		return false, fmt.Errorf("read namespace %s: %w", req.Namespace, err)
	}
	return live.DeletionTimestamp != nil, nil
}
