// Package admissiontest builds admission requests for tests, applies the patches of
// their responses, and evaluates the matchConditions of webhooks and the validations of policies.
package admissiontest

import (
	"context"
	"encoding/json"
	"errors"
	"testing"

	jsonpatch "github.com/evanphx/json-patch/v5"
	admissionv1 "k8s.io/api/admission/v1"
	appsv1 "k8s.io/api/apps/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
	"github.com/breakwater-dev/breakwater/internal/workload"
	"github.com/breakwater-dev/breakwater/test/builder"
)

// User is the user name of the requests.
const User = "alice"

// Request returns the request to create after, or, if before is not nil, to update
// before to after.
func Request(t *testing.T, before, after *appsv1.Deployment) *admissionv1.AdmissionRequest {
	t.Helper()
	req := &admissionv1.AdmissionRequest{
		UID:       "request-uid",
		Kind:      metav1.GroupVersionKind{Group: "apps", Version: "v1", Kind: "Deployment"},
		Resource:  metav1.GroupVersionResource{Group: "apps", Version: "v1", Resource: "deployments"},
		Name:      after.Name,
		Namespace: after.Namespace,
		Operation: admissionv1.Create,
		UserInfo:  authenticationv1.UserInfo{Username: User},
		Object:    builder.Raw(t, after),
	}
	if before != nil {
		req.Operation = admissionv1.Update
		req.OldObject = builder.Raw(t, before)
	}
	return req
}

// Apply applies the response's patch to the object of its request, as the API
// server does before it calls the next webhook.
func Apply(t *testing.T, req *admissionv1.AdmissionRequest, res *admissionv1.AdmissionResponse) *appsv1.Deployment {
	t.Helper()
	if len(res.Patch) > 0 {
		patch, err := jsonpatch.DecodePatch(res.Patch)
		if err != nil {
			t.Fatal(err)
		}
		if req.Object.Raw, err = patch.Apply(req.Object.Raw); err != nil {
			t.Fatalf("apply %s: %v", res.Patch, err)
		}
	}
	d := &appsv1.Deployment{}
	if err := json.Unmarshal(req.Object.Raw, d); err != nil {
		t.Fatal(err)
	}
	return d
}

// History implements suspend.History.
type History struct {
	// Successes are versions that succeeded.
	Successes []string
	// Known are the releases that Releases returns.
	Known []*v1alpha1.ChangeWorkload
	// Unknown makes Succeeded return an error.
	Unknown bool
}

// Succeeded implements suspend.History.
func (h History) Succeeded(_ context.Context, _ *workload.Workload, version string) (bool, error) {
	if h.Unknown {
		return false, errors.New("the API server is unreachable")
	}
	for _, s := range h.Successes {
		if s == version {
			return true, nil
		}
	}
	return false, nil
}

// Releases implements suspend.History.
func (h History) Releases(*workload.Workload) []*v1alpha1.ChangeWorkload { return h.Known }
