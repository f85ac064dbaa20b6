package workload

import (
	corev1 "k8s.io/api/core/v1"
	apierrs "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgotesting "k8s.io/client-go/testing"

	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
)

// failing returns a reactor that answers a verb with an error.
func failing(verb string, with func() error) clientgotesting.ReactionFunc {
	return func(a clientgotesting.Action) (bool, runtime.Object, error) {
		return a.GetVerb() == verb, nil, with()
	}
}

func alreadyExists() error {
	return apierrs.NewAlreadyExists(v1alpha1.Resource("changeworkloads"), "sleep")
}

func terminating() error {
	err := apierrs.NewForbidden(v1alpha1.Resource("changeworkloads"), "sleep", nil)
	err.ErrStatus.Details.Causes = []metav1.StatusCause{{Type: corev1.NamespaceTerminatingCause}}
	return err
}
