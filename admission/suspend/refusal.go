package suspend

import (
	"net/http"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// refusal is the status that the API server passes on. kubectl prints
//
//	Error from server (<reason>): admission webhook "…" denied the request: <message>
//
// so the reason has to hold the words too. Neither the code nor
// details.retryAfterSeconds, which stays 0, may invite to try again: client-go
// would sleep on it and park the workers of other controllers.
func refusal(d *appsv1.Deployment, message string, causes []metav1.StatusCause) metav1.Status {
	return metav1.Status{
		Code:    http.StatusForbidden,
		Reason:  metav1.StatusReason(Words(d.Name)),
		Message: message,
		Details: &metav1.StatusDetails{
			Group:  appsv1.GroupName,
			Kind:   "deployments",
			Name:   d.Name,
			UID:    d.UID,
			Causes: causes,
		},
	}
}
