package suspend

import (
	"net/http"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/breakwater-dev/breakwater/internal/workload"
)

// denialStatus returns the status of a denial. kubectl prints
//
//	Error from server (<reason>): admission webhook "…" denied the request: <message>
//
// so the reason contains SuspendedMessage too. The code and retryAfterSeconds, which
// stays 0, must not request a retry: client-go would sleep and block the workers of
// other controllers.
func denialStatus(w *workload.Workload, message string, causes []metav1.StatusCause) metav1.Status {
	return metav1.Status{
		Code:    http.StatusForbidden,
		Reason:  metav1.StatusReason(SuspendedMessage(w.Kind, w.Name)),
		Message: message,
		Details: &metav1.StatusDetails{
			Group:  w.Kind.Group,
			Kind:   w.Kind.Resource,
			Name:   w.Name,
			UID:    w.UID,
			Causes: causes,
		},
	}
}
