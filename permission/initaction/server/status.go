package server

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/labstack/echo/v4"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	apierrs "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/breakwater-dev/breakwater/internal/auth"
	"github.com/breakwater-dev/breakwater/permission/api"
	"github.com/breakwater-dev/breakwater/permission/initaction/protocol"
	"github.com/breakwater-dev/breakwater/permission/podbreaker"
	"github.com/breakwater-dev/breakwater/permission/podmeta"
)

// The attributes of the SubjectAccessReview. The subresource does not exist; it is
// used for RBAC only.
const (
	resource    = "pods"
	subresource = "permission"
	verbGet     = "get"
	verbReset   = "reset"
)

// Status is the answer of GET /v1/pods/{namespace}/{name} and of a reset.
type Status struct {
	Namespace string   `json:"namespace"`
	Pod       string   `json:"pod"`
	UID       string   `json:"uid"`
	IPs       []string `json:"ips"`
	Sets      []string `json:"sets"`
	// Authorized, Reason and Message are the fields of the pod's condition.
	Authorized bool   `json:"authorized"`
	Reason     string `json:"reason,omitempty"`
	Message    string `json:"message,omitempty"`
	// Breaker is MayBegin, Busy, OpenDenied or OpenFailed. MayBegin: an attempt may begin, because
	// the breaker is closed, or because it is open by failures and its interval has passed.
	Breaker podbreaker.State `json:"breaker"`
	Denied  int              `json:"denied"`
	Failed  int              `json:"failed"`
	NextTry *time.Time       `json:"nextTry,omitempty"`
	// Applications are the pod's applications at the permission centre.
	Applications []api.Application `json:"applications"`
	// Unreachable is the error if the call to the permission centre failed.
	Unreachable string `json:"unreachable,omitempty"`
}

// status returns why a pod waits.
func (s *server) status(c echo.Context) error {
	pod, _, err := s.authorizedPod(c, verbGet)
	if err != nil {
		return err
	}
	return c.JSON(http.StatusOK, s.podStatus(c, pod))
}

// reset closes the breaker of a pod, so that a new attempt begins at once.
func (s *server) reset(c echo.Context) error {
	pod, user, err := s.authorizedPod(c, verbReset)
	if err != nil {
		return err
	}
	if s.draining() {
		return errDraining
	}
	ctx, key := c.Request().Context(), podbreaker.Key(pod.Namespace, pod.Name)
	before := s.Breaker.Peek(key, pod.UID, s.Clock.Now(), "")
	if _, err := s.Breaker.Do(ctx, podbreaker.Request{Operation: podbreaker.Reset, Key: key, UID: pod.UID, Now: s.Clock.Now()}); err != nil {
		return err
	}
	newConditionReporter(s, pod).closed(ctx, before.Entry, user.Username)
	// Reset the applications too. If the centre is unreachable, the next call of the
	// pod begins the attempt.
	if all, err := s.listApplications(ctx, pod); err == nil {
		for _, app := range all {
			if isDeniedOrFailed(app.State) && before.Entry.Counted[app.ID] >= app.Attempt && s.awaitLimit(ctx, pod.Namespace) {
				_ = s.Centre.Reset(ctx, app.ID)
			}
		}
	}
	s.Notifier.Notify(string(pod.UID))
	return c.JSON(http.StatusOK, s.podStatus(c, pod))
}

// authorizedPod returns the pod if RBAC allows the user the verb.
func (s *server) authorizedPod(c echo.Context, verb string) (*corev1.Pod, authenticationv1.UserInfo, error) {
	user, err := s.authenticate(c)
	if err != nil {
		return nil, user, err
	}
	ctx, namespace, name := c.Request().Context(), c.Param("namespace"), c.Param("name")
	review, err := auth.ReviewAccess(ctx, s.Kube.AuthorizationV1(), user, authorizationv1.ResourceAttributes{
		Namespace: namespace, Name: name, Verb: verb, Resource: resource, Subresource: subresource,
	})
	if err != nil {
		return nil, user, err
	}
	if !review.Allowed {
		return nil, user, problemf(http.StatusForbidden, "Forbidden", "user %s is not allowed to %s %s/%s in namespace %s; ask its owner for a role with this verb",
			user.Username, verb, resource, subresource, namespace)
	}
	pod, err := s.Kube.CoreV1().Pods(namespace).Get(ctx, name, metav1.GetOptions{})
	if apierrs.IsNotFound(err) {
		return nil, user, problemf(http.StatusNotFound, "NotFound", "pod %s/%s does not exist", namespace, name)
	} else if err != nil {
		return nil, user, err
	}
	if podmeta.InitContainer(pod) == nil {
		return nil, user, problemf(http.StatusNotFound, "NotFound", "pod %s/%s requests no permissions: it has no init container %s", namespace, name, protocol.ContainerName)
	}
	return pod, user, nil
}

func (s *server) podStatus(c echo.Context, pod *corev1.Pod) Status {
	look := s.Breaker.Peek(podbreaker.Key(pod.Namespace, pod.Name), pod.UID, s.Clock.Now(), "")
	status := Status{Namespace: pod.Namespace, Pod: pod.Name, UID: string(pod.UID), IPs: podmeta.IPs(pod), Sets: podmeta.Sets(pod),
		Breaker: look.State, Denied: look.Entry.Denied, Failed: look.Entry.Failed, Applications: []api.Application{}}
	if !look.Next.IsZero() {
		status.NextTry = &look.Next
	}
	if condition := podmeta.Condition(pod, podmeta.ConditionAuthorized); condition != nil {
		status.Authorized, status.Reason, status.Message = condition.Status == corev1.ConditionTrue, condition.Reason, condition.Message
	}
	all, err := s.listApplications(c.Request().Context(), pod)
	if err != nil {
		status.Unreachable = err.Error()
	} else {
		status.Applications = append(status.Applications, all...)
	}
	return status
}

// listApplications reads the applications of a pod from the centre.
func (s *server) listApplications(ctx context.Context, pod *corev1.Pod) ([]api.Application, error) {
	if !s.awaitLimit(ctx, pod.Namespace) {
		return nil, errors.New("the rate limit (centre-calls-per-second) allowed no call to the permission centre in time, or this replica is shutting down; retry")
	}
	return s.Centre.ListByPod(ctx, s.Settings().Cluster, string(pod.UID))
}
