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

func TestTheAccessReviewIsForTheUserOfTheRequest(t *testing.T) {
	client := fake.NewClientset()
	var got authorizationv1.SubjectAccessReviewSpec
	answer := authorizationv1.SubjectAccessReviewStatus{Allowed: true, Reason: "by a role"}
	var failure error
	client.PrependReactor("create", "subjectaccessreviews", func(a clientgotesting.Action) (bool, runtime.Object, error) {
		review := a.(clientgotesting.CreateAction).GetObject().(*authorizationv1.SubjectAccessReview).DeepCopy()
		got, review.Status = review.Spec, answer
		return true, review, failure
	})
	user := authenticationv1.UserInfo{
		Username: "alice", UID: "7", Groups: []string{"team-a"}, Extra: map[string]authenticationv1.ExtraValue{"scopes": {"a", "b"}},
	}
	review := func() Authorization {
		return AccessReviewer{client.AuthorizationV1()}.MayBypass(t.Context(), user, "default")
	}

	if diff := cmp.Diff(Authorization{Allowed: true, Reason: "by a role"}, review()); diff != "" {
		t.Error(diff)
	}
	want := authorizationv1.SubjectAccessReviewSpec{
		User: "alice", UID: "7", Groups: []string{"team-a"}, Extra: map[string]authorizationv1.ExtraValue{"scopes": {"a", "b"}},
		ResourceAttributes: &authorizationv1.ResourceAttributes{
			Namespace: "default", Verb: "bypass", Group: "app.ops.cloud.alipay.com", Version: "v1alpha1", Resource: "changeworkloads",
		},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	answer.Denied = true
	if review().Allowed {
		t.Error("a denied review allows the bypass")
	}
	failure = context.DeadlineExceeded
	if got := review(); got.Allowed || got.Err == nil {
		t.Errorf("after an error: %+v", got)
	}
}
