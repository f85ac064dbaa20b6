package ownerchain

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// maxDepth is the longest chain that is followed; the longest known one has five owners:
// ReplicaSet, Deployment, Revision, Configuration and Service of Knative.
const maxDepth = 8

// Walk calls visit for each controller above an object with these references, the
// nearest first. visit returns the references of the controller. The walk ends when
// there are none, or with the error of visit.
func Walk(refs []metav1.OwnerReference, visit func(schema.GroupVersionKind, *metav1.OwnerReference) ([]metav1.OwnerReference, error)) error {
	for range maxDepth {
		ref := metav1.GetControllerOfNoCopy(&metav1.ObjectMeta{OwnerReferences: refs})
		if ref == nil {
			return nil
		}
		gv, err := schema.ParseGroupVersion(ref.APIVersion)
		if err != nil {
			return fmt.Errorf("parse apiVersion of owner %s: %w", ref.Name, err)
		}
		if refs, err = visit(gv.WithKind(ref.Kind), ref); err != nil {
			return err
		}
	}
	return nil
}
