package suspend

import (
	"context"
	"testing"

	"github.com/google/go-cmp/cmp"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	clientgotesting "k8s.io/client-go/testing"
)

func TestTheReviewIsAboutTheAuthorOfTheRequest(t *testing.T) {
	client := fake.NewClientset()
	var asked authorizationv1.SubjectAccessReviewSpec
	answer := authorizationv1.SubjectAccessReviewStatus{Allowed: true, Reason: "by a role"}
	var failure error
	client.PrependReactor("create", "subjectaccessreviews", func(a clientgotesting.Action) (bool, runtime.Object, error) {
		review := a.(clientgotesting.CreateAction).GetObject().(*authorizationv1.SubjectAccessReview).DeepCopy()
		asked, review.Status = review.Spec, answer
		return true, review, failure
	})
	user := authenticationv1.UserInfo{
		Username: "alice", UID: "7", Groups: []string{"team-a"}, Extra: map[string]authenticationv1.ExtraValue{"scopes": {"a", "b"}},
	}
	ask := func() Authorization {
		return AccessReviewer{client.AuthorizationV1()}.MayBypass(t.Context(), user, "default")
	}

	if diff := cmp.Diff(Authorization{Allowed: true, Reason: "by a role"}, ask()); diff != "" {
		t.Error(diff)
	}
	want := authorizationv1.SubjectAccessReviewSpec{
		User: "alice", UID: "7", Groups: []string{"team-a"}, Extra: map[string]authorizationv1.ExtraValue{"scopes": {"a", "b"}},
		ResourceAttributes: &authorizationv1.ResourceAttributes{
			Namespace: "default", Verb: "bypass", Group: "app.ops.cloud.alipay.com", Version: "v1alpha1", Resource: "changeworkloads",
		},
	}
	if diff := cmp.Diff(want, asked); diff != "" {
		t.Error(diff)
	}
	answer.Denied = true
	if ask().Allowed {
		t.Error("what is denied is granted")
	}
	failure = context.DeadlineExceeded
	if got := ask(); got.Allowed || got.Err == nil {
		t.Errorf("an error is %+v", got)
	}
}
