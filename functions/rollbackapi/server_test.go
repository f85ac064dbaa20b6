package rollbackapi

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.opentelemetry.io/otel/metric/noop"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	appsv1 "k8s.io/api/apps/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	apierrs "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"
	dynamicfake "k8s.io/client-go/dynamic/fake"
	kubefake "k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/kubernetes/scheme"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/client-go/util/flowcontrol"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
	"github.com/breakwater-dev/breakwater/client/clientset/versioned"
	"github.com/breakwater-dev/breakwater/client/clientset/versioned/fake"
	changev1alpha1 "github.com/breakwater-dev/breakwater/client/clientset/versioned/typed/change/v1alpha1"
	"github.com/breakwater-dev/breakwater/internal/fairsemaphore"
	"github.com/breakwater-dev/breakwater/internal/savedtemplate"
	"github.com/breakwater-dev/breakwater/internal/workload"
	"github.com/breakwater-dev/breakwater/test/builder"
)

const (
	list = "/openapi/altershield/suspend/deployment"
	back = "/openapi/altershield/deployment/rollback"
)

// cluster is a fake API server with a suspended Deployment web in namespace default,
// its ReplicaSets and the saved template of its earlier version.
type cluster struct {
	*dynamicfake.FakeDynamicClient
	kube *kubefake.Clientset
	// allowed are the permissions of user ann, whose token is "good": verb and resource.
	allowed []string
	handler http.Handler
	metrics *sdkmetric.ManualReader
	// good and bad are versions.
	good, bad string
}

func newCluster(t *testing.T, allowed ...string) *cluster {
	t.Helper()
	at := func(marker string, attempt int64) (*appsv1.Deployment, string) {
		d := builder.Deployment("web", 2, builder.Release(marker))
		d.Namespace, d.UID = "default", "u1"
		version, err := workload.Version(workload.Deployment, &d.Spec.Template)
		if err != nil {
			t.Fatal(err)
		}
		d.Annotations = map[string]string{v1alpha1.VersionKey: version, v1alpha1.AttemptAnnotation: fmt.Sprint(attempt)}
		return d, version
	}
	before, good := at("v1", 1)
	now, bad := at("v2", 2)
	now.Labels = map[string]string{v1alpha1.SuspendLabel: "1700000000", v1alpha1.VersionKey: bad}
	idle := builder.Deployment("idle", 1)
	idle.Namespace, idle.UID = "default", "u2"
	saved, err := savedtemplate.Build(&workload.Workload{Kind: workload.Deployment, ObjectMeta: before.ObjectMeta},
		v1alpha1.Release{Version: good, Attempt: 1}, json.RawMessage(`{"spec":{}}`))
	if err != nil {
		t.Fatal(err)
	}
	c := &cluster{
		FakeDynamicClient: dynamicfake.NewSimpleDynamicClient(scheme.Scheme, now, idle,
			replicaSet(now, "web-2", "2"), replicaSet(before, "web-1", "1")),
		kube: kubefake.NewClientset(saved, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{
			Name: "default", Labels: map[string]string{v1alpha1.NamespaceLabel: v1alpha1.NamespaceEnabled}}}),
		allowed: allowed, good: good, bad: bad, metrics: sdkmetric.NewManualReader(),
	}
	c.kube.PrependReactor("create", "tokenreviews", func(a clienttesting.Action) (bool, runtime.Object, error) {
		review := a.(clienttesting.CreateAction).GetObject().(*authenticationv1.TokenReview).DeepCopy()
		if strings.HasPrefix(review.Spec.Token, "good") && slices.Contains(review.Spec.Audiences, Audience) || review.Spec.Token == "api-server" && len(review.Spec.Audiences) == 0 {
			review.Status = authenticationv1.TokenReviewStatus{Authenticated: true, Audiences: review.Spec.Audiences, User: authenticationv1.UserInfo{Username: "ann", Groups: []string{"people"}}}
		}
		return true, review, nil
	})
	c.kube.PrependReactor("create", "subjectaccessreviews", func(a clienttesting.Action) (bool, runtime.Object, error) {
		review := a.(clienttesting.CreateAction).GetObject().(*authorizationv1.SubjectAccessReview).DeepCopy()
		do := review.Spec.ResourceAttributes
		requested := strings.TrimSpace(fmt.Sprintf("%s %s.%s %s %s", do.Verb, do.Resource, do.Group, do.Namespace, do.Name))
		for _, may := range c.allowed {
			review.Status.Allowed = review.Status.Allowed || review.Spec.User == "ann" && may == requested
		}
		return true, review, nil
	})
	c.handler = New(Options{Kube: c.kube, Dynamic: c, Change: fake.NewSimpleClientset(),
		Clock: clocktesting.NewFakePassiveClock(time.Unix(1_700_000_100, 0)), Meter: sdkmetric.NewMeterProvider(sdkmetric.WithReader(c.metrics)).Meter("test")})
	return c
}

func replicaSet(d *appsv1.Deployment, name, number string) *appsv1.ReplicaSet {
	rs := &appsv1.ReplicaSet{ObjectMeta: metav1.ObjectMeta{
		Name: name, Namespace: d.Namespace, Labels: d.Spec.Selector.MatchLabels,
		Annotations:     map[string]string{"deployment.kubernetes.io/revision": number},
		OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(d, workload.Deployment.GroupVersionKind)},
	}}
	rs.Spec.Template = *d.Spec.Template.DeepCopy()
	rs.Spec.Template.Labels = map[string]string{"app": "web", appsv1.DefaultDeploymentUniqueLabelKey: name}
	return rs
}

// send sends a request and returns the status and the answer.
func (c *cluster) send(t *testing.T, method, path, token, body string) (int, map[string]any) {
	t.Helper()
	r := httptest.NewRequestWithContext(t.Context(), method, path, strings.NewReader(body))
	if token != "" {
		r.Header.Set("Authorization", "Bearer "+token)
	}
	w := httptest.NewRecorder()
	c.handler.ServeHTTP(w, r)
	var out map[string]any
	if err := json.Unmarshal(w.Body.Bytes(), &out); err != nil {
		t.Fatalf("%d %s: %v", w.Code, w.Body, err)
	}
	if w.Code == http.StatusUnauthorized && w.Header().Get("WWW-Authenticate") == "" {
		t.Error("a 401 has no header WWW-Authenticate")
	}
	return w.Code, out
}

// request returns the request recorded on the Deployment.
func (c *cluster) request(t *testing.T) *v1alpha1.RollbackRequest {
	t.Helper()
	u, err := c.Resource(workload.Deployment.GroupVersionResource()).Namespace("default").Get(t.Context(), "web", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return v1alpha1.RollbackRequestOf(u.GetAnnotations())
}

func TestSuspendedWorkloadsAreListed(t *testing.T) {
	c := newCluster(t, "list deployments.apps default")
	status, got := c.send(t, "GET", list+"?namespace=default", "good", "")
	want := map[string]any{"code": 0.0, "message": "1 suspended", "deployments": []any{map[string]any{
		"deploymentName": "web", "namespace": "default", "nowReplicaSet": "web-2",
		"hasSuccessVersion": true, "successReplicaSet": "web-1", "successVersion": c.good,
	}}}
	if diff := cmp.Diff(want, got); diff != "" || status != 200 {
		t.Error(status, diff)
	}
}

// slowChange is a client whose lists of ChangeWorkloads take listTime.
type slowChange struct{ versioned.Interface }

type slowAPI struct {
	changev1alpha1.AppV1alpha1Interface
}

type slowWorkloads struct {
	changev1alpha1.ChangeWorkloadInterface
}

const listTime = 100 * time.Millisecond

func (s slowChange) AppV1alpha1() changev1alpha1.AppV1alpha1Interface {
	return slowAPI{s.Interface.AppV1alpha1()}
}

func (s slowAPI) ChangeWorkloads(namespace string) changev1alpha1.ChangeWorkloadInterface {
	return slowWorkloads{s.AppV1alpha1Interface.ChangeWorkloads(namespace)}
}

func (s slowWorkloads) List(ctx context.Context, options metav1.ListOptions) (*v1alpha1.ChangeWorkloadList, error) {
	time.Sleep(listTime)
	return s.ChangeWorkloadInterface.List(ctx, options)
}

// Otherwise a list of many, after a bad change of a base image, would not be complete within the timeout.
func TestManySuspendedWorkloadsAreReadConcurrently(t *testing.T) {
	const workloads = 200
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, "list deployments.apps default")
		for i := range workloads {
			d := builder.Deployment(fmt.Sprintf("also-%03d", i), 1)
			d.Namespace, d.UID, d.Labels = "default", types.UID(fmt.Sprint(i)), map[string]string{v1alpha1.SuspendLabel: "1700000000"}
			d.TypeMeta = metav1.TypeMeta{APIVersion: "apps/v1", Kind: "Deployment"}
			content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(d)
			if err != nil {
				t.Fatal(err)
			}
			if err := c.Tracker().Add(&unstructured.Unstructured{Object: content}); err != nil {
				t.Fatal(err)
			}
		}
		c.handler = New(Options{Kube: c.kube, Dynamic: c, Change: slowChange{fake.NewSimpleClientset()},
			Clock: clocktesting.NewFakePassiveClock(time.Unix(1_700_000_100, 0)), Meter: noop.Meter{}})
		began := time.Now()
		status, got := c.send(t, "GET", list+"?namespace=default", "good", "")
		took := time.Since(began)
		listed, _ := got["deployments"].([]any)
		if status != 200 || len(listed) != workloads+1 || took > workloads*listTime/10 {
			t.Fatalf("%d %v: %d after %s", status, got["message"], len(listed), took)
		}
		for i, w := range listed[:workloads] { // the order is that of the API server
			if name := w.(map[string]any)["deploymentName"]; name != fmt.Sprintf("also-%03d", i) {
				t.Fatalf("workload %d is %v", i, name)
			}
		}
	})
}

// Who gets hold of a token of a request must not be able to use it at the API server.
func TestATokenForTheAPIServerIsRejected(t *testing.T) {
	c := newCluster(t, "list deployments.apps default")
	status, got := c.send(t, "GET", list+"?namespace=default", "api-server", "")
	if message, _ := got["message"].(string); status != http.StatusUnauthorized || !strings.Contains(message, "--audience "+Audience) {
		t.Errorf("%d %v, want 401 with the audience", status, got)
	}
}

func TestWithoutSuspendedWorkloadsTheListIsEmptyAndNotNull(t *testing.T) {
	c := newCluster(t, "list daemonsets.apps default")
	status, got := c.send(t, "GET", list+"?namespace=default&kind=daemonset", "good", "")
	if diff := cmp.Diff(map[string]any{"code": 0.0, "message": "0 suspended", "deployments": []any{}}, got); diff != "" || status != 200 {
		t.Error(status, diff)
	}
}

func TestARollbackRequestIsRecordedWithItsUser(t *testing.T) {
	for name, may := range map[string]string{
		"user may update the workload": "update deployments.apps default web",
		"user may only roll back":      "rollback changeworkloads.app.ops.cloud.alipay.com default",
	} {
		t.Run(name, func(t *testing.T) {
			c := newCluster(t, may)
			status, got := c.send(t, "PUT", back, "good", `{"namespace":"default","deploymentName":"web"}`)
			if status != 200 || got["code"] != 0.0 || got["toVersion"] != c.good || got["fromVersion"] != c.bad || got["attempt"] != 2.0 {
				t.Errorf("%d %v", status, got)
			}
			want := &v1alpha1.RollbackRequest{User: "ann", Attempt: 2, Version: c.good}
			request := c.request(t)
			if request == nil || request.Time.Unix() != 1_700_000_100 {
				t.Fatalf("got %+v", request)
			}
			request.Time = metav1.Time{}
			if diff := cmp.Diff(want, request); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// A suspended workload cannot be resumed before the rollback.
func TestARollbackOfAPausedDeployment(t *testing.T) {
	const recorded, resume = "recorded: deployment web will be rolled back to version ", "; a user has paused it, so resume it then: kubectl rollout resume deployment/web"
	const paused = "deployment web is paused, so it would not roll back: kubectl rollout resume deployment/web"
	for name, tc := range map[string]struct {
		hold      string // empty if there is none
		suspended bool
		status    int
		message   func(to string) string
	}{
		"held":                             {`{"attempt":2}`, true, 200, func(to string) string { return recorded + to }},
		"paused before it was held":        {`{"attempt":2,"former":true}`, true, 200, func(to string) string { return recorded + to + resume }},
		"paused and suspended by a person": {"", true, 200, func(to string) string { return recorded + to + resume }},
		"paused by a person":               {"", false, 409, func(string) string { return paused }},
		"paused before it was unjudged":    {`{"attempt":2,"former":true,"unjudged":true}`, false, 409, func(string) string { return paused }},
		"held because pods are unjudged":   {`{"attempt":2,"unjudged":true}`, false, 200, func(to string) string { return recorded + to }},
	} {
		t.Run(name, func(t *testing.T) {
			c := newCluster(t, "update deployments.apps default web")
			deployments := c.Resource(workload.Deployment.GroupVersionResource()).Namespace("default")
			patch := []workload.Operation{{Op: "add", Path: "/spec/paused", Value: true}}
			if tc.hold != "" {
				patch = append(patch, workload.Operation{Op: "add", Path: workload.Annotation(v1alpha1.HoldAnnotation), Value: tc.hold})
			}
			if !tc.suspended {
				patch = append(patch, workload.Operation{Op: "remove", Path: workload.Label(v1alpha1.SuspendLabel)})
			}
			body, err := json.Marshal(patch)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := deployments.Patch(t.Context(), "web", types.JSONPatchType, body, metav1.PatchOptions{}); err != nil {
				t.Fatal(err)
			}
			status, got := c.send(t, "PUT", back, "good", `{"namespace":"default","deploymentName":"web"}`)
			if want := tc.message(c.good); status != tc.status || got["message"] != want {
				t.Errorf("%d %v, want %d %q", status, got["message"], tc.status, want)
			}
		})
	}
}

func TestADryRunRecordsNothing(t *testing.T) {
	c := newCluster(t, "update deployments.apps default web")
	var dry []string
	c.PrependReactor("patch", "deployments", func(a clienttesting.Action) (bool, runtime.Object, error) {
		dry = a.(clienttesting.PatchActionImpl).PatchOptions.DryRun
		return true, nil, nil
	})
	status, got := c.send(t, "PUT", back+"?dryRun=All", "good", `{"namespace":"default","deploymentName":"web"}`)
	if status != 200 || got["dryRun"] != true || got["toVersion"] != c.good {
		t.Errorf("%d %v", status, got)
	}
	if want := "dry run: the request would be recorded; deployment web would be rolled back to version " + c.good; got["message"] != want {
		t.Errorf("message is %q, want %q", got["message"], want)
	}
	if diff := cmp.Diff([]string{"All"}, dry); diff != "" {
		t.Error(diff)
	}
}

func TestInvalidAndUnauthorizedRequestsAreRejected(t *testing.T) {
	const web = `{"namespace":"default","deploymentName":"web"}`
	update := []string{"update deployments.apps default web", "update deployments.apps default gone"}
	for name, tc := range map[string]struct {
		allowed             []string
		method, path, token string
		body                string
		status              int
		field, says         string
	}{
		"list without a token":                          {nil, "GET", list + "?namespace=default", "", "", 401, "", "send a Kubernetes token"},
		"list with an invalid token":                    {nil, "GET", list + "?namespace=default", "bad", "", 401, "", "unknown to this cluster"},
		"list without the right":                        {update, "GET", list + "?namespace=default", "good", "", 403, "", "ann may not list deployments.apps in namespace default"},
		"list of all namespaces with the right for one": {[]string{"list deployments.apps default"}, "GET", list, "good", "", 403, "", "?namespace="},
		"list of an unknown kind":                       {update, "GET", list + "?kind=CloneSet", "good", "", 422, "kind", "write Deployment, StatefulSet, DaemonSet"},
		"list with an invalid namespace":                {update, "GET", list + "?namespace=..", "good", "", 422, "namespace", "write the name of a namespace"},

		"rollback without a token":                 {update, "PUT", back, "", web, 401, "", "send a Kubernetes token"},
		"rollback without the right":               {[]string{"list deployments.apps default"}, "PUT", back, "good", web, 403, "", "bind ClusterRole breakwater-rollback"},
		"rollback with the right for another name": {update, "PUT", back, "good", `{"namespace":"default","deploymentName":"idle"}`, 403, "", "ann may neither"},
		"rollback of a deleted workload":           {update, "PUT", back, "good", `{"namespace":"default","deploymentName":"gone"}`, 404, "", "no deployment gone in namespace default"},
		"malformed rollback request":               {update, "PUT", back, "good", `{`, 400, "", "is malformed"},
		"rollback without a name":                  {update, "PUT", back, "good", `{"namespace":"default"}`, 422, "deploymentName", "write the name"},
		"rollback without a namespace":             {update, "PUT", back, "good", `{"deploymentName":"web"}`, 422, "namespace", "write the name"},
		"rollback with a parameter in the body":    {update, "PUT", back, "good", `{"namespace":"default","deploymentName":"web","dryRun":true}`, 422, "dryRun", "?dryRun=true"},
		"rollback with a field of the answer":      {update, "PUT", back, "good", `{"namespace":"default","deploymentName":"web","toVersion":"v"}`, 422, "toVersion", "not a field"},
		"rollback with an unknown field":           {update, "PUT", back, "good", `{"namespace":"default","deploymentName":"web","attempts":7}`, 422, "attempts", "not a field"},
		"rollback to an invalid version": {update, "PUT", back, "good", `{"namespace":"default","deploymentName":"web","version":"v1"}`,
			422, "version", "32 hexadecimal digits"},
		"rollback of an earlier attempt": {update, "PUT", back, "good", `{"namespace":"default","deploymentName":"web","attempt":1}`,
			409, "", "is at attempt 2"},
		"rollback request over 16 KiB": {update, "PUT", back, "good", `{"namespace":"` + strings.Repeat("a", 17<<10) + `"}`, 413, "", ""},
		"unknown route":                {update, "GET", "/", "good", "", 404, "", ""},
		"unknown method":               {update, "POST", back, "good", web, 405, "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			c := newCluster(t, tc.allowed...)
			status, got := c.send(t, tc.method, tc.path, tc.token, tc.body)
			message, _ := got["message"].(string)
			field, _ := got["field"].(string)
			if status != tc.status || got["code"] != float64(tc.status) || field != tc.field || !strings.Contains(message, tc.says) {
				t.Errorf("%d %v", status, got)
			}
			if request := c.request(t); request != nil {
				t.Errorf("recorded %+v", request)
			}
		})
	}
}

// A policy may deny with the same status as a test of the patch that fails.
func TestAWorkloadThatChangedConcurrentlyIsAConflict(t *testing.T) {
	c := newCluster(t, "update deployments.apps default web")
	c.PrependReactor("patch", "deployments", func(clienttesting.Action) (bool, runtime.Object, error) {
		return true, nil, apierrs.NewInvalid(schema.GroupKind{Group: "apps", Kind: "Deployment"}, "web",
			field.ErrorList{field.Forbidden(field.NewPath("metadata"), "policy p denies it")})
	})
	status, got := c.send(t, "PUT", back, "good", `{"namespace":"default","deploymentName":"web"}`)
	message, _ := got["message"].(string)
	if status != 409 || !strings.Contains(message, "has changed since") || !strings.Contains(message, "policy p denies it") {
		t.Errorf("%d %v", status, got)
	}
}

func TestOnlyAFailureOfTheAPIServerIsAnswered503(t *testing.T) {
	refused := &url.Error{Op: "Post", URL: "https://10.0.0.1", Err: &net.OpError{Op: "dial", Net: "tcp", Err: syscall.ECONNREFUSED}}
	limiter := flowcontrol.NewTokenBucketRateLimiter(0.01, 1)
	limiter.Accept()
	soon, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	limited := limiter.Wait(soon)
	for name, tc := range map[string]struct {
		resource string
		err      error // nil is a panic
		want     int
	}{
		"unavailable":                  {"tokenreviews", apierrs.NewServiceUnavailable("secret"), 503},
		"an error":                     {"tokenreviews", apierrs.NewInternalError(errors.New("secret: etcdserver: leader changed")), 503},
		"unreachable":                  {"tokenreviews", fmt.Errorf("secret: %w", refused), 503},
		"no answer in time":            {"tokenreviews", fmt.Errorf("secret: %w", context.DeadlineExceeded), 503},
		"no request in time":           {"tokenreviews", fmt.Errorf("secret: %w", limited), 503},
		"an unexpected error":          {"tokenreviews", errors.New("secret"), 500},
		"a panic":                      {"tokenreviews", nil, 500},
		"a panic in a concurrent read": {"controllerrevisions", nil, 500},
	} {
		t.Run(name, func(t *testing.T) {
			c := newCluster(t, "list deployments.apps default")
			c.kube.PrependReactor("*", tc.resource, func(clienttesting.Action) (bool, runtime.Object, error) {
				if tc.err == nil {
					panic("secret")
				}
				return true, nil, tc.err
			})
			status, got := c.send(t, "GET", list+"?namespace=default", "good", "")
			message, _ := got["message"].(string)
			if status != tc.want || strings.Contains(message, "secret") || strings.Contains(message, "API server") != (status == 503) {
				t.Errorf("%d %v, want %d", status, got, tc.want)
			}
			if counted := c.counted(t); counted != fmt.Sprint(tc.want) {
				t.Errorf("status %s is counted, want %d", counted, tc.want)
			}
		})
	}
}

// Otherwise the first user would be told that the rollback is recorded, and another one is made.
func TestOfTwoRequestsAtOnceOneIsAConflict(t *testing.T) {
	for name, before := range map[string]string{
		"no request":                      "",
		"a request for another attempt":   `{"user":"bob","attempt":1,"version":"v"}`,
		"a request that cannot be parsed": "{",
	} {
		t.Run(name, func(t *testing.T) {
			c := newCluster(t, "update deployments.apps default web")
			deployments := c.Resource(workload.Deployment.GroupVersionResource()).Namespace("default")
			write := func(request string) {
				patch := fmt.Sprintf(`{"metadata":{"annotations":{%q:%q}}}`, v1alpha1.RollbackRequestAnnotation, request)
				if _, err := deployments.Patch(t.Context(), "web", types.MergePatchType, []byte(patch), metav1.PatchOptions{}); err != nil {
					t.Error(err)
				}
			}
			if before != "" {
				write(before)
			}
			apply := clienttesting.ObjectReaction(c.Tracker())
			c.PrependReactor("patch", "deployments", func(a clienttesting.Action) (bool, runtime.Object, error) {
				handled, after, err := apply(a)
				if err != nil { // as the API server answers a test that fails
					err = apierrs.NewInvalid(schema.GroupKind{Group: "apps", Kind: "Deployment"}, "web", field.ErrorList{field.Invalid(nil, nil, err.Error())})
				}
				return handled, after, err
			})
			c.kube.PrependReactor("get", "namespaces", func(clienttesting.Action) (bool, runtime.Object, error) {
				write(`{"user":"eve","attempt":2,"version":"other"}`) // after the workload was read
				return false, nil, nil
			})
			status, got := c.send(t, "PUT", back, "good", `{"namespace":"default","deploymentName":"web"}`)
			if request := c.request(t); status != 409 || request == nil || request.User != "eve" {
				t.Errorf("%d %v, recorded %+v; want 409 and the request of eve", status, got, request)
			}
		})
	}
}

// counted returns the status of the request that is counted.
func (c *cluster) counted(t *testing.T) string {
	t.Helper()
	var all metricdata.ResourceMetrics
	if err := c.metrics.Collect(t.Context(), &all); err != nil {
		t.Fatal(err)
	}
	for _, scope := range all.ScopeMetrics {
		for _, m := range scope.Metrics {
			if sum, ok := m.Data.(metricdata.Sum[int64]); ok && m.Name == "breakwater_rollback_api_requests_total" && len(sum.DataPoints) == 1 {
				status, _ := sum.DataPoints[0].Attributes.Value("status")
				return status.AsString()
			}
		}
	}
	return ""
}

// sendFrom sends a list request of an address, and returns the status.
func (c *cluster) sendFrom(t *testing.T, address, token string) int {
	t.Helper()
	r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, list+"?namespace=default", nil)
	r.RemoteAddr = address
	r.Header.Set("Authorization", "Bearer "+token)
	w := httptest.NewRecorder()
	c.handler.ServeHTTP(w, r)
	return w.Code
}

func TestRejectedTokensOfAnAddressCostFewTokenReviews(t *testing.T) {
	c := newCluster(t, "list deployments.apps default")
	for i := range 1000 {
		status := c.sendFrom(t, fmt.Sprintf("10.0.0.1:%d", 1024+i), fmt.Sprintf("guessed-%d", i))
		if status != http.StatusUnauthorized && status != http.StatusTooManyRequests {
			t.Fatalf("request %d: status %d", i, status)
		}
	}
	reviews := 0
	for _, a := range c.kube.Actions() {
		if a.Matches("create", "tokenreviews") {
			reviews++
		}
	}
	if reviews > 60 {
		t.Errorf("1000 rejected tokens cost %d TokenReviews, want at most 60", reviews)
	}
	if status := c.sendFrom(t, "10.0.0.2:1024", "good"); status != http.StatusOK {
		t.Errorf("a valid token of another address: status %d", status)
	}
}

// The memory of the process has room for a page of large workloads or ReplicaSets.
func TestSuspendedWorkloadsAreReadInSmallPages(t *testing.T) {
	c := newCluster(t, "list deployments.apps default")
	if status, got := c.send(t, "GET", list+"?namespace=default", "good", ""); status != 200 {
		t.Fatal(status, got)
	}
	lists := 0
	for _, a := range slices.Concat(c.Actions(), c.kube.Actions()) {
		l, ok := a.(clienttesting.ListActionImpl)
		if !ok {
			continue
		}
		lists++
		if l.ListOptions.Limit == 0 || l.ListOptions.Limit > 20 {
			t.Errorf("the list of %s has limit %d", l.Resource.Resource, l.ListOptions.Limit)
		}
	}
	if lists < 3 {
		t.Errorf("%d lists, want at least 3: workloads, saved templates, ReplicaSets", lists)
	}
}

func TestTooLargeSelectorsAreAnError(t *testing.T) {
	c := newCluster(t, "list deployments.apps default")
	d := builder.Deployment("large", 1)
	d.Namespace, d.Labels = "default", map[string]string{v1alpha1.SuspendLabel: "1700000000"}
	d.TypeMeta = metav1.TypeMeta{APIVersion: "apps/v1", Kind: "Deployment"}
	d.Spec.Selector.MatchLabels["large"] = strings.Repeat("x", maxListed)
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(d)
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Tracker().Add(&unstructured.Unstructured{Object: content}); err != nil {
		t.Fatal(err)
	}
	status, got := c.send(t, "GET", list+"?namespace=default", "good", "")
	if want := "the selectors and annotations of the suspended deployments have more than 1 MiB: create them again with shorter selectors"; status != 422 || got["message"] != want {
		t.Errorf("%d %v", status, got["message"])
	}
}

// Each request costs a TokenReview and a SubjectAccessReview, also if it is forbidden: other users would wait for them.
func TestAUserWithTooManyRequestsCostsNoFurtherReviews(t *testing.T) {
	c := newCluster(t)
	for range requestsPerMinute {
		if status, got := c.send(t, "GET", list, "good", ""); status != 403 {
			t.Fatal(status, got)
		}
	}
	reviews := len(c.kube.Actions())
	if status, got := c.send(t, "GET", list, "good", ""); status != 429 || len(c.kube.Actions()) != reviews {
		t.Errorf("with the same token: %d %v, %d reviews", status, got["message"], len(c.kube.Actions())-reviews)
	}
	for range 2 {
		if status, got := c.send(t, "GET", list, "good-2", ""); status != 429 || len(c.kube.Actions()) != reviews+1 {
			t.Errorf("with another token: %d %v, %d reviews", status, got["message"], len(c.kube.Actions())-reviews)
		}
	}
}

func TestServiceAccountsOfANamespaceAreLimitedTogether(t *testing.T) {
	for user, want := range map[string]string{
		"ann":                          "ann",
		"system:serviceaccount:team:a": "system:serviceaccounts:team",
		"system:serviceaccount:team:b": "system:serviceaccounts:team",
		"system:serviceaccount:te:a":   "system:serviceaccounts:te",
	} {
		if got := limitKey(user); got != want {
			t.Errorf("%s: %s, want %s", user, got, want)
		}
	}
}

// A workload may have 1.5 MiB, and many requests may come at once.
func TestTheWorkloadOfARequestIsReadInTurnAndTrimmed(t *testing.T) {
	s := &service{Options: Options{Dynamic: newCluster(t)}, lists: fairsemaphore.New(1)}
	asked := rollbackBody{Namespace: "default", DeploymentName: "web"}
	w, err := s.workload(t.Context(), workload.Deployment, asked)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(map[string]string{v1alpha1.SuspendLabel: "1700000000"}, w.Labels); diff != "" || len(w.Template.Spec.Containers) > 0 {
		t.Errorf("labels (-want +got):\n%s\ntemplate %+v", diff, w.Template)
	}
	if err := s.lists.Acquire(t.Context(), "other"); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	if _, err := s.workload(ctx, workload.Deployment, asked); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("while another is read: %v", err)
	}
}
