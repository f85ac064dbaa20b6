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

// endsWith reports whether the request deletes an object because its namespace
// terminates, which is not judged. The matchConditions name the namespace controller,
// but without --use-service-account-credentials it is not known by its own name.
func (n Namespaces) endsWith(ctx context.Context, req *admissionv1.AdmissionRequest) (bool, error) {
	if req.Operation != admissionv1.Delete {
		return false, nil
	}
	if cached, err := n.Lister.Get(req.Namespace); err != nil || cached.DeletionTimestamp == nil {
		return false, nil //nolint:nilerr // an unknown namespace is judged
	}
	// Confirm with a live read: a new namespace may have the name.
	live, err := n.Client.Namespaces().Get(ctx, req.Namespace, metav1.GetOptions{})
	if apierrs.IsNotFound(err) {
		return true, nil
	} else if err != nil {
		return false, fmt.Errorf("read namespace %s: %w", req.Namespace, err)
	}
	return live.DeletionTimestamp != nil, nil
}
