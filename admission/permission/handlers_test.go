package permission

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/tools/cache"

	"github.com/breakwater-dev/breakwater/admission"
	"github.com/breakwater-dev/breakwater/permission/api"
	"github.com/breakwater-dev/breakwater/permission/centreclient"
	"github.com/breakwater-dev/breakwater/permission/podmeta"
	"github.com/breakwater-dev/breakwater/permission/requiredsets"
	"github.com/breakwater-dev/breakwater/permission/settings"
)

// sets are what the centre has; nil: it cannot be reached.
type sets map[string]bool

func (s sets) PermissionSet(_ context.Context, name string) (api.PermissionSet, error) {
	if s == nil {
		return api.PermissionSet{}, errors.New("connection refused")
	}
	nodes, ok := s[name]
	if !ok {
		return api.PermissionSet{}, &centreclient.StatusError{Status: http.StatusNotFound}
	}
	return api.PermissionSet{NodeScoped: nodes}, nil
}

// above is the annotation of an owner.
type above struct {
	value string
	ok    bool
	err   error
}

func (a above) Annotation(context.Context, string, []metav1.OwnerReference, string) (string, bool, error) {
	return a.value, a.ok, a.err
}

func request(t *testing.T, object any) *admissionv1.AdmissionRequest {
	t.Helper()
	raw, err := json.Marshal(object)
	if err != nil {
		t.Fatal(err)
	}
	return &admissionv1.AdmissionRequest{UID: "request", Namespace: "default", Operation: admissionv1.Create, Object: runtime.RawExtension{Raw: raw}}
}

func annotated(value string) map[string]string {
	return map[string]string{podmeta.SetAnnotation: value}
}

func TestWhichPodsAreInjected(t *testing.T) {
	registered := sets{"web": false, "nodes": true}
	for name, tc := range map[string]struct {
		pod       func(*corev1.Pod)
		owner     above
		namespace map[string]string
		centre    sets
		want      string
		sets      string
	}{
		"nothing asks":                            {want: DecisionNoPermissionSet},
		"the pod asks":                            {pod: func(p *corev1.Pod) { p.Annotations = annotated("web") }, want: DecisionInjected, sets: "web"},
		"its workload asks":                       {owner: above{value: "web", ok: true}, want: DecisionInjected, sets: "web"},
		"its namespace asks":                      {namespace: annotated("web"), want: DecisionInjected, sets: "web"},
		"the workload before the namespace":       {owner: above{value: "web", ok: true}, namespace: annotated("nodes"), want: DecisionInjected, sets: "web"},
		"the pod before all":                      {pod: func(p *corev1.Pod) { p.Annotations = annotated("nodes") }, owner: above{value: "web", ok: true}, want: DecisionInjected, sets: "nodes"},
		"the pod asks for none":                   {pod: func(p *corev1.Pod) { p.Annotations = annotated("") }, namespace: annotated("web"), want: DecisionNoPermissionSet},
		"the centre is away":                      {namespace: annotated("web"), want: DecisionInjected, sets: "web"},
		"the set is not known yet":                {namespace: annotated("new"), centre: registered, want: DecisionInjected, sets: "new"},
		"the workload cannot be read":             {owner: above{err: errors.New("timeout")}, want: admission.DecisionError},
		"a value that means nothing":              {namespace: annotated("Not_A_Name"), want: DecisionInvalid},
		"hostNetwork, granted to pods":            {pod: hostNetwork, namespace: annotated("web"), centre: registered, want: DecisionHostNetwork},
		"hostNetwork, granted to nodes":           {pod: hostNetwork, namespace: annotated("nodes"), centre: registered, want: DecisionInjected, sets: "nodes"},
		"hostNetwork, granted to both":            {pod: hostNetwork, namespace: annotated("nodes,web"), centre: registered, want: DecisionHostNetwork},
		"hostNetwork, and the centre is away":     {pod: hostNetwork, namespace: annotated("nodes"), want: DecisionHostNetwork},
		"hostNetwork, and there is no such set":   {pod: hostNetwork, namespace: annotated("new"), centre: registered, want: DecisionHostNetwork},
		"hostNetwork of a pod that asks for none": {pod: hostNetwork, centre: registered, want: DecisionNoPermissionSet},
	} {
		t.Run(name, func(t *testing.T) {
			p := pod(tc.pod)
			namespaces := cache.NewIndexer(cache.MetaNamespaceKeyFunc, cache.Indexers{})
			if err := namespaces.Add(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "default", Annotations: tc.namespace,
				Labels: map[string]string{podmeta.Label: podmeta.LabelEnabled}}}); err != nil {
				t.Fatal(err)
			}
			find := requiredsets.Resolver{Owners: tc.owner, Namespaces: corelisters.NewNamespaceLister(namespaces), Client: fake.NewClientset().CoreV1().Namespaces()}
			h := Pods{RequiredSets: find, SetChecker: NewSetChecker(tc.centre), Settings: settings.Default, Image: "client:1"}
			answer := h.Admit(t.Context(), request(t, p))
			if answer.Decision != tc.want {
				t.Fatalf("%s, want %s: %+v", answer.Decision, tc.want, answer.Response.Result)
			}
			if allowed := tc.want == DecisionInjected || tc.want == DecisionNoPermissionSet; answer.Response.Allowed != allowed {
				t.Errorf("allowed is %v", answer.Response.Allowed)
			}
			if tc.want != DecisionInjected {
				return
			}
			got := patched(t, p, answer.Response.Patch)
			if strings.Join(podmeta.Sets(got), ",") != tc.sets {
				t.Errorf("asks for %v", podmeta.Sets(got))
			}
			again := h.Admit(t.Context(), request(t, got))
			if again.Decision != DecisionAlreadyInjected || len(again.Response.Patch) > 0 {
				t.Errorf("a second time: %+v", again)
			}
		})
	}
}

func hostNetwork(p *corev1.Pod) { p.Spec.HostNetwork = true }

func TestSetsAreCheckedWhereTheyAreWrittenDown(t *testing.T) {
	registered := sets{"web": false, "nodes": true}
	object := func(metadata, template string) string {
		return `{"metadata":{` + metadata + `},"spec":{"template":{` + template + `}}}`
	}
	const web, unknown = `"annotations":{"stke.io/permission-set":"web"}`, `"annotations":{"stke.io/permission-set":"web,unknown"}`
	for name, tc := range map[string]struct {
		object string
		centre sets
		want   string
		warns  bool
	}{
		"a workload without sets":          {object("", ""), registered, DecisionNoPermissionSet, false},
		"a set that exists":                {object(web, ""), registered, admission.DecisionAdmitted, false},
		"one that does not":                {object(unknown, ""), registered, DecisionUnknownSet, false},
		"one that does not, in a template": {object("", `"metadata":{`+unknown+`}`), registered, DecisionUnknownSet, false},
		"one that does not, in a CronJob":  {`{"spec":{"jobTemplate":{"spec":{"template":{"metadata":{` + unknown + `}}}}}}`, registered, DecisionUnknownSet, false},
		"the centre is away":               {object(unknown, ""), nil, DecisionUnchecked, true},
		"no name":                          {object(`"annotations":{"stke.io/permission-set":"a b"}`, ""), registered, DecisionInvalid, false},
		"hostNetwork":                      {object(web, `"spec":{"hostNetwork":true}`), registered, DecisionHostNetwork, false},
		"hostNetwork, centre away":         {object(web, `"spec":{"hostNetwork":true}`), nil, DecisionUnchecked, true},
	} {
		t.Run(name, func(t *testing.T) {
			req := request(t, json.RawMessage(tc.object))
			answer := Workloads{NewSetChecker(tc.centre)}.Admit(t.Context(), req)
			if answer.Decision != tc.want || (len(answer.Response.Warnings) > 0) != tc.warns {
				t.Errorf("%s, want %s: %+v", answer.Decision, tc.want, answer.Response)
			}
			refused := tc.want == DecisionUnknownSet || tc.want == DecisionInvalid || tc.want == DecisionHostNetwork
			if answer.Response.Allowed == refused {
				t.Errorf("allowed is %v", answer.Response.Allowed)
			}
		})
	}
}
