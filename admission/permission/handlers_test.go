package permission

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/client-go/kubernetes/fake"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/tools/cache"

	"github.com/breakwater-dev/breakwater/admission"
	"github.com/breakwater-dev/breakwater/permission/api"
	"github.com/breakwater-dev/breakwater/permission/centreclient"
	"github.com/breakwater-dev/breakwater/permission/initaction/protocol"
	"github.com/breakwater-dev/breakwater/permission/podmeta"
	"github.com/breakwater-dev/breakwater/permission/requiredsets"
	"github.com/breakwater-dev/breakwater/permission/settings"
)

// sets are the sets of the centre; nil means that the centre is unreachable.
type sets map[string]bool

func (s sets) PermissionSet(_ context.Context, name string) (api.PermissionSet, error) {
	if s == nil {
		return api.PermissionSet{}, errors.New("the proxy says:\nconnection refused")
	}
	nodes, ok := s[name]
	if !ok {
		return api.PermissionSet{}, &centreclient.StatusError{Status: http.StatusNotFound, Detail: api.Error{Reason: "NotFound"}}
	}
	return api.PermissionSet{NodeScoped: nodes}, nil
}

// ownerAnnotation is the annotation in the owner chain.
type ownerAnnotation struct {
	value string
	ok    bool
	err   error
}

func (a ownerAnnotation) Annotation(context.Context, string, []metav1.OwnerReference, string) (string, bool, error) {
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

func setAnnotation(value string) map[string]string {
	return map[string]string{podmeta.PermissionSetAnnotation: value}
}

func TestPodsAreInjectedByTheNearestAnnotation(t *testing.T) {
	registered := sets{"web": false, "nodes": true}
	for name, tc := range map[string]struct {
		pod       func(*corev1.Pod)
		owner     ownerAnnotation
		namespace map[string]string
		centre    sets
		want      string
		sets      string
	}{
		"no annotation":                          {want: DecisionNoPermissionSet},
		"annotation of the pod":                  {pod: func(p *corev1.Pod) { p.Annotations = setAnnotation("web") }, want: DecisionInjected, sets: "web"},
		"annotation of the workload":             {owner: ownerAnnotation{value: "web", ok: true}, want: DecisionInjected, sets: "web"},
		"annotation of the namespace":            {namespace: setAnnotation("web"), want: DecisionInjected, sets: "web"},
		"the workload overrides the namespace":   {owner: ownerAnnotation{value: "web", ok: true}, namespace: setAnnotation("nodes"), want: DecisionInjected, sets: "web"},
		"the pod overrides the workload":         {pod: func(p *corev1.Pod) { p.Annotations = setAnnotation("nodes") }, owner: ownerAnnotation{value: "web", ok: true}, want: DecisionInjected, sets: "nodes"},
		"an empty annotation of the pod":         {pod: func(p *corev1.Pod) { p.Annotations = setAnnotation("") }, namespace: setAnnotation("web"), want: DecisionNoPermissionSet},
		"the centre is unreachable":              {namespace: setAnnotation("web"), want: DecisionInjected, sets: "web"},
		"an unknown set":                         {namespace: setAnnotation("new"), centre: registered, want: DecisionInjected, sets: "new"},
		"error reading the workload":             {owner: ownerAnnotation{err: errors.New("timeout")}, want: admission.DecisionError},
		"an invalid value":                       {namespace: setAnnotation("Not_A_Name"), want: DecisionInvalid},
		"hostNetwork, pod-scoped set":            {pod: hostNetwork, namespace: setAnnotation("web"), centre: registered, want: DecisionHostNetwork},
		"hostNetwork, node-scoped set":           {pod: hostNetwork, namespace: setAnnotation("nodes"), centre: registered, want: DecisionInjected, sets: "nodes"},
		"hostNetwork, one set of each scope":     {pod: hostNetwork, namespace: setAnnotation("nodes,web"), centre: registered, want: DecisionHostNetwork},
		"hostNetwork, the centre is unreachable": {pod: hostNetwork, namespace: setAnnotation("nodes"), want: DecisionHostNetwork},
		"hostNetwork, unknown set":               {pod: hostNetwork, namespace: setAnnotation("new"), centre: registered, want: DecisionHostNetwork},
		"hostNetwork without sets":               {pod: hostNetwork, centre: registered, want: DecisionNoPermissionSet},
		"Linux":                                  {pod: onOS(corev1.Linux), namespace: setAnnotation("web"), want: DecisionInjected, sets: "web"},
		"Windows":                                {pod: onOS(corev1.Windows), namespace: setAnnotation("web"), want: DecisionWindows},
		"a node selector for Linux":              {pod: selectsOS("linux"), namespace: setAnnotation("web"), want: DecisionInjected, sets: "web"},
		"a node selector for Windows":            {pod: selectsOS("windows"), namespace: setAnnotation("web"), want: DecisionWindows},
		"Windows without sets":                   {pod: onOS(corev1.Windows), want: DecisionNoPermissionSet},
	} {
		t.Run(name, func(t *testing.T) {
			p := pod(tc.pod)
			namespaces := cache.NewIndexer(cache.MetaNamespaceKeyFunc, cache.Indexers{})
			if err := namespaces.Add(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "default", Annotations: tc.namespace,
				Labels: map[string]string{podmeta.Label: podmeta.LabelEnabled}}}); err != nil {
				t.Fatal(err)
			}
			find := requiredsets.Resolver{Owners: tc.owner, Namespaces: corelisters.NewNamespaceLister(namespaces), Client: fake.NewClientset().CoreV1().Namespaces()}
			h := Pods{RequiredSets: find, SetChecker: NewSetChecker(tc.centre), Settings: settings.Default, Image: "client:1", LimitRanges: noLimitRanges(), Bundle: func() string { return "certificates" }}
			answer := h.Admit(t.Context(), request(t, p))
			if answer.Decision != tc.want {
				t.Fatalf("%s, want %s: %+v", answer.Decision, tc.want, answer.Response.Result)
			}
			if allowed := tc.want == DecisionInjected || tc.want == DecisionNoPermissionSet; answer.Response.Allowed != allowed {
				t.Errorf("allowed is %v", answer.Response.Allowed)
			}
			if tc.want != admission.DecisionError {
				checkForbidden(t, answer)
			}
			if tc.want != DecisionInjected {
				return
			}
			got := applyPatch(t, p, answer.Response.Patch)
			if strings.Join(podmeta.Sets(got), ",") != tc.sets {
				t.Errorf("the pod requests %v", podmeta.Sets(got))
			}
			again := h.Admit(t.Context(), request(t, got))
			if again.Decision != DecisionAlreadyInjected || len(again.Response.Patch) > 0 {
				t.Errorf("second admission: %+v", again)
			}
		})
	}
}

func noLimitRanges() corelisters.LimitRangeLister {
	return corelisters.NewLimitRangeLister(cache.NewIndexer(cache.MetaNamespaceKeyFunc, cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc}))
}

func TestAPodIsNotCreatedWithAnInitContainerThatCannotVerifyTheServer(t *testing.T) {
	outside := settings.Default()
	outside.InitActionServerURL = "https://permissions.example.com"
	for name, tc := range map[string]struct {
		settings settings.Settings
		bundle   string
		want     string
	}{
		"no certificates yet":         {settings.Default(), "", admission.DecisionError},
		"certificates":                {settings.Default(), "certificates", DecisionInjected},
		"a server outside of cluster": {outside, "", DecisionInjected},
	} {
		h := Pods{RequiredSets: requiredsets.Resolver{}, SetChecker: NewSetChecker(sets{"web": false}), Image: "client:1", LimitRanges: noLimitRanges(),
			Settings: func() settings.Settings { return tc.settings }, Bundle: func() string { return tc.bundle }}
		p := pod(func(p *corev1.Pod) { p.Annotations = setAnnotation("web") })
		answer := h.Admit(t.Context(), request(t, p))
		if answer.Decision != tc.want {
			t.Errorf("%s: %s, want %s: %+v", name, answer.Decision, tc.want, answer.Response.Result)
		}
		if tc.want == admission.DecisionError && !strings.Contains(answer.Response.Result.Message, podmeta.ErrNoBundle.Error()) {
			t.Errorf("%s: the message does not say what to do: %s", name, answer.Response.Result.Message)
		}
		if tc.want == DecisionInjected && podmeta.InitContainer(applyPatch(t, p, answer.Response.Patch)).Env[1] != (corev1.EnvVar{Name: protocol.EnvCA, Value: tc.bundle}) {
			t.Errorf("%s: the init container does not have the certificates", name)
		}
	}
}

func hostNetwork(p *corev1.Pod) { p.Spec.HostNetwork = true }

func onOS(name corev1.OSName) func(*corev1.Pod) {
	return func(p *corev1.Pod) { p.Spec.OS = &corev1.PodOS{Name: name} }
}

func selectsOS(name string) func(*corev1.Pod) {
	return func(p *corev1.Pod) { p.Spec.NodeSelector = map[string]string{corev1.LabelOSStable: name} }
}

func TestUnknownSetsOfWorkloadsAreDenied(t *testing.T) {
	registered, unreachable := sets{"web": false, "nodes": true}, sets(nil)
	object := func(metadata, template string) string {
		return `{"metadata":{` + metadata + `},"spec":{"template":{` + template + `}}}`
	}
	cron := func(metadata, job, template string) string {
		return `{"metadata":{` + metadata + `},"spec":{"jobTemplate":{"metadata":{` + job + `},"spec":{"template":{` + template + `}}}}}`
	}
	const web, unknown = `"annotations":{"stke.io/permission-set":"web"}`, `"annotations":{"stke.io/permission-set":"web,unknown"}`
	const none, nodes = `"annotations":{"stke.io/permission-set":""}`, `"annotations":{"stke.io/permission-set":"nodes"}`
	const windows = `"spec":{"os":{"name":"windows"}}`
	for name, tc := range map[string]struct {
		object string
		centre Centre
		want   string
		warns  bool
	}{
		"a workload without sets":                             {object("", ""), registered, DecisionNoPermissionSet, false},
		"a known set":                                         {object(web, ""), registered, admission.DecisionAdmitted, false},
		"an unknown set":                                      {object(unknown, ""), registered, DecisionUnknownSet, false},
		"an unknown set in the template":                      {object("", `"metadata":{`+unknown+`}`), registered, DecisionUnknownSet, false},
		"an unknown set in a CronJob":                         {`{"spec":{"jobTemplate":{"spec":{"template":{"metadata":{` + unknown + `}}}}}}`, registered, DecisionUnknownSet, false},
		"an unknown set in the Jobs of a CronJob":             {cron("", unknown, ""), registered, DecisionUnknownSet, false},
		"the centre is unreachable":                           {object(unknown, ""), unreachable, DecisionUnchecked, true},
		"the proxy of the centre answers 404":                 {object(unknown, ""), proxy(t), DecisionUnchecked, true},
		"an invalid name":                                     {object(`"annotations":{"stke.io/permission-set":"a b"}`, ""), registered, DecisionInvalid, false},
		"hostNetwork":                                         {object(web, `"spec":{"hostNetwork":true}`), registered, DecisionHostNetwork, false},
		"hostNetwork, the centre is unreachable":              {object(web, `"spec":{"hostNetwork":true}`), unreachable, DecisionUnchecked, true},
		"hostNetwork, the template requests no sets":          {object(web, `"metadata":{`+none+`},"spec":{"hostNetwork":true}`), registered, admission.DecisionAdmitted, false},
		"hostNetwork, the template has a node-scoped set":     {object(web, `"metadata":{`+nodes+`},"spec":{"hostNetwork":true}`), registered, admission.DecisionAdmitted, false},
		"hostNetwork, only the object has a node-scoped set":  {object(nodes, `"metadata":{`+web+`},"spec":{"hostNetwork":true}`), registered, DecisionHostNetwork, false},
		"hostNetwork, an unknown set of the object":           {object(unknown, `"metadata":{`+none+`},"spec":{"hostNetwork":true}`), registered, DecisionUnknownSet, false},
		"hostNetwork, set of a CronJob":                       {cron(web, "", `"spec":{"hostNetwork":true}`), registered, DecisionHostNetwork, false},
		"hostNetwork, set of the Jobs of a CronJob":           {cron(nodes, web, `"spec":{"hostNetwork":true}`), registered, DecisionHostNetwork, false},
		"hostNetwork, a CronJob whose Jobs have no sets":      {cron(web, none, `"spec":{"hostNetwork":true}`), registered, admission.DecisionAdmitted, false},
		"hostNetwork, a CronJob without sets in its template": {cron(web, "", `"metadata":{`+none+`},"spec":{"hostNetwork":true}`), registered, admission.DecisionAdmitted, false},
		"Windows":                                {object(web, windows), registered, DecisionWindows, false},
		"Windows, the centre is unreachable":     {object(web, windows), unreachable, DecisionWindows, false},
		"Windows, a node selector":               {object("", `"metadata":{`+web+`},"spec":{"nodeSelector":{"kubernetes.io/os":"windows"}}`), registered, DecisionWindows, false},
		"Windows, a CronJob":                     {cron("", web, windows), registered, DecisionWindows, false},
		"Windows, the template requests no sets": {object(web, `"metadata":{`+none+`},`+windows), registered, admission.DecisionAdmitted, false},
		"Windows without sets":                   {object("", windows), registered, DecisionNoPermissionSet, false},
		"Linux":                                  {object(web, `"spec":{"os":{"name":"linux"},"nodeSelector":{"kubernetes.io/os":"linux"}}`), registered, admission.DecisionAdmitted, false},
	} {
		t.Run(name, func(t *testing.T) {
			req := request(t, json.RawMessage(tc.object))
			answer := Workloads{NewSetChecker(tc.centre)}.Admit(t.Context(), req)
			if answer.Decision != tc.want || (len(answer.Response.Warnings) > 0) != tc.warns {
				t.Errorf("%s, want %s: %+v", answer.Decision, tc.want, answer.Response)
			}
			for _, w := range answer.Response.Warnings {
				if _, err := utilnet.NewWarningHeader(299, "-", w); err != nil {
					t.Error(err)
				}
			}
			denied := tc.want == DecisionUnknownSet || tc.want == DecisionInvalid || tc.want == DecisionHostNetwork || tc.want == DecisionWindows
			if answer.Response.Allowed == denied {
				t.Errorf("allowed is %v", answer.Response.Allowed)
			}
			checkForbidden(t, answer)
		})
	}
}

// checkForbidden checks that a denial has a status for which no tool deletes the object to create it again,
// as for 409 and 422.
func checkForbidden(t *testing.T, answer admission.Answer) {
	t.Helper()
	if result := answer.Response.Result; !answer.Response.Allowed && (result.Code != http.StatusForbidden || result.Reason != metav1.StatusReasonForbidden) {
		t.Errorf("denied with %d %s, want 403 Forbidden", result.Code, result.Reason)
	}
}

// proxy returns the client of a centre whose proxy answers 404.
func proxy(t *testing.T) Centre {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusNotFound)
		_, _ = io.WriteString(w, "<html>")
	}))
	t.Cleanup(server.Close)
	return centreclient.New(centreclient.Options{URL: func() string { return server.URL }})
}
