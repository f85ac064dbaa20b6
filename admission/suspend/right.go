package suspend

import (
	"context"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	authorizationclient "k8s.io/client-go/kubernetes/typed/authorization/v1"

	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
)

// rightTimeout bounds the question, so that it is answered within the
// timeoutSeconds of the webhook also after the history was asked.
const rightTimeout = 2 * time.Second

// Reviewer asks the API server, by SubjectAccessReview. Nothing is stored by
// it, so a dry run asks too.
type Reviewer struct {
	Client authorizationclient.SubjectAccessReviewsGetter
}

var _ Rights = Reviewer{}

// Bypass implements Rights.
func (r Reviewer) Bypass(ctx context.Context, user authenticationv1.UserInfo, namespace string) Right {
	ctx, cancel := context.WithTimeout(ctx, rightTimeout)
	defer cancel()
	review, err := r.Client.SubjectAccessReviews().Create(ctx, &authorizationv1.SubjectAccessReview{
		Spec: authorizationv1.SubjectAccessReviewSpec{
			User: user.Username, UID: user.UID, Groups: user.Groups, Extra: extra(user),
			ResourceAttributes: &authorizationv1.ResourceAttributes{
				Namespace: namespace,
				Verb:      v1alpha1.BypassVerb,
				Group:     v1alpha1.GroupName,
				Version:   v1alpha1.SchemeGroupVersion.Version,
				Resource:  "changeworkloads",
			},
		},
	}, metav1.CreateOptions{})
	if err != nil {
		return Right{Err: err}
	}
	s := review.Status
	return Right{Granted: s.Allowed && !s.Denied, Reason: s.Reason}
}

func extra(user authenticationv1.UserInfo) map[string]authorizationv1.ExtraValue {
	if user.Extra == nil {
		return nil
	}
	all := make(map[string]authorizationv1.ExtraValue, len(user.Extra))
	for key, values := range user.Extra {
		all[key] = authorizationv1.ExtraValue(values)
	}
	return all
}
