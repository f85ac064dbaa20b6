package suspend

import (
	"net/http"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/breakwater-dev/breakwater/internal/workload"
)

// refusal is the status that the API server passes on. kubectl prints
//
//	Error from server (<reason>): admission webhook "…" denied the request: <message>
//
// so the reason has to hold the words too. Neither the code nor
// details.retryAfterSeconds, which stays 0, may invite to try again: client-go
// would sleep on it and park the workers of other controllers.
func refusal(w *workload.Workload, message string, causes []metav1.StatusCause) metav1.Status {
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
