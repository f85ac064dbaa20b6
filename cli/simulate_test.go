package cli

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	dynamicfake "k8s.io/client-go/dynamic/fake"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
)

func TestASimulatedDrainLeavesOutPodsThatAreGone(t *testing.T) {
	kube := fake.NewClientset()
	kube.PrependReactor("create", "pods", func(a clienttesting.Action) (bool, runtime.Object, error) {
		name := a.(clienttesting.CreateAction).GetObject().(*policyv1.Eviction).Name
		switch name {
		case "gone":
			return true, nil, apierrors.NewNotFound(corev1.Resource("pods"), name)
		case "protected":
			return true, nil, apierrors.NewTooManyRequestsError("held by its budget")
		}
		return true, nil, nil
	})
	var pods []corev1.Pod
	for _, name := range []string{"free", "gone", "protected"} {
		pods = append(pods, corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name}})
	}
	all, err := (&app{}).simulateEvictions(t.Context(), &clients{kube: kube}, pods, func() []string { return nil })
	if err != nil || len(all) != 2 || !all[0].Allowed || all[1].Allowed || all[1].Object != "pod/protected" {
		t.Errorf("%+v, %v", all, err)
	}
}

func TestASimulatedDeletionHasTheOptionsOfKubectl(t *testing.T) {
	job := &unstructured.Unstructured{}
	job.SetAPIVersion("batch/v1")
	job.SetKind("Job")
	job.SetNamespace("shop")
	job.SetName("report")
	dynamic := dynamicfake.NewSimpleDynamicClient(runtime.NewScheme(), job)
	if err := (&clients{dynamic: dynamic}).deleteDryRun(t.Context(), target{batchv1.SchemeGroupVersion.WithResource("jobs"), job}); err != nil {
		t.Fatal(err)
	}
	sent := dynamic.Actions()[0].(clienttesting.DeleteAction).GetDeleteOptions()
	want := metav1.DeleteOptions{DryRun: []string{metav1.DryRunAll}, PropagationPolicy: new(metav1.DeletePropagationBackground)}
	if diff := cmp.Diff(want, sent); diff != "" {
		t.Error("(-want +got):", diff)
	}
}

// client-go repeats a request that is answered with 429 and Retry-After up to 10 times.
func TestASimulationRepeatsNoRequestThatWasDecided(t *testing.T) {
	for name, tc := range map[string]struct {
		contentType, body string
		requests, code    int
		output            string
	}{
		"a webhook answers 429": {"application/json", `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"TooManyRequests","code":429,"details":{"retryAfterSeconds":1}}`,
			1, 1, "would be denied"},
		"the API server limits requests": {"text/plain; charset=utf-8", "Too many requests, please try again later.\n", 2, 0, "would be allowed"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			requests := 0
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				if requests++; requests > 1 {
					w.Header().Set("Content-Type", "application/json")
					_, _ = io.WriteString(w, `{"kind":"Status","apiVersion":"v1","status":"Success"}`)
					return
				}
				w.Header().Set("Content-Type", tc.contentType)
				w.Header().Set("Retry-After", "1")
				w.WriteHeader(http.StatusTooManyRequests)
				_, _ = io.WriteString(w, tc.body)
			}))
			defer server.Close()
			var out bytes.Buffer
			code := Run(t.Context(), "", []string{"simulate", "evict", "web-0", "--server", server.URL, "--kubeconfig", os.DevNull},
				genericiooptions.IOStreams{Out: &out, ErrOut: &out})
			if code != tc.code || requests != tc.requests || !strings.Contains(out.String(), tc.output) {
				t.Errorf("code %d, %d requests, %s; want code %d, %d requests, %s", code, requests, out.String(), tc.code, tc.requests, tc.output)
			}
		})
	}
}

// A budget of 1 allows each of 5 evictions if they are asked alone.
func TestSeveralAllowedSimulationsAreNotAllowedTogether(t *testing.T) {
	const note = "Each request was decided alone: together, later ones may be denied.\n"
	first, second := simulated{Object: "pod/web-0", Allowed: true}, simulated{Object: "pod/web-1", Allowed: true}
	for name, tc := range map[string]struct {
		all  []simulated
		want string
	}{
		"one pod":               {[]simulated{first}, ""},
		"two pods":              {[]simulated{first, second}, note},
		"one of two is allowed": {[]simulated{first, {Object: "pod/web-1", Code: http.StatusTooManyRequests}}, ""},
		"two Deployments":       {[]simulated{{Object: "deployment/web", Allowed: true}, {Object: "deployment/api", Allowed: true}}, ""},
	} {
		var out, errOut bytes.Buffer
		_ = (&app{IOStreams: genericiooptions.IOStreams{Out: &out, ErrOut: &errOut}}).printSimulated("", tc.all) // the error is the exit code
		if got := errOut.String(); got != tc.want {
			t.Errorf("%s: printed %q, want %q", name, got, tc.want)
		}
	}
}
