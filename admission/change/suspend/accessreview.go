package suspend

import (
	"context"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	authorizationclient "k8s.io/client-go/kubernetes/typed/authorization/v1"

	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
	"github.com/breakwater-dev/breakwater/internal/auth"
)

// reviewTimeout limits the access review, so that it and the history query together
// fit the timeoutSeconds of the webhook.
const reviewTimeout = 2 * time.Second

// AccessReviewer is an Authorizer that creates SubjectAccessReviews. They are not
// stored, so dry runs may create them too.
type AccessReviewer struct {
	Client authorizationclient.SubjectAccessReviewsGetter
}

var _ Authorizer = AccessReviewer{}

// MayBypass implements Authorizer.
func (r AccessReviewer) MayBypass(ctx context.Context, user authenticationv1.UserInfo, namespace string) Authorization {
	ctx, cancel := context.WithTimeout(ctx, reviewTimeout)
	defer cancel()
	s, err := auth.ReviewAccess(ctx, r.Client, user, authorizationv1.ResourceAttributes{
		Namespace: namespace,
		Verb:      v1alpha1.BypassVerb,
		Group:     v1alpha1.GroupName,
		Version:   v1alpha1.SchemeGroupVersion.Version,
		Resource:  "changeworkloads",
	})
	return Authorization{Allowed: s.Allowed && !s.Denied, Reason: s.Reason, Err: err}
}
