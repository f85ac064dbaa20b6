package opsconfig

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"

	"github.com/breakwater-dev/breakwater/admission"
	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
	listers "github.com/breakwater-dev/breakwater/client/listers/change/v1alpha1"
	"github.com/breakwater-dev/breakwater/test/builder"
)

func request(t *testing.T, spec v1alpha1.OpsConfigInfoSpec) *admissionv1.AdmissionRequest {
	t.Helper()
	c := &v1alpha1.OpsConfigInfo{ObjectMeta: metav1.ObjectMeta{Name: "branch", Namespace: v1alpha1.SystemNamespace}, Spec: spec}
	return &admissionv1.AdmissionRequest{
		Operation: admissionv1.Create,
		Object:    builder.Raw(t, c),
	}
}

func TestSpacesAreTrimmed(t *testing.T) {
	for name, tc := range map[string]struct {
		in   v1alpha1.OpsConfigInfoSpec
		want string
	}{
		"both":    {v1alpha1.OpsConfigInfoSpec{Type: " isBranch", Content: "10 "}, `[{"op":"replace","path":"/spec/type","value":"isBranch"},{"op":"replace","path":"/spec/content","value":"10"}]`},
		"content": {v1alpha1.OpsConfigInfoSpec{Type: "isBranch", Content: "10\n"}, `[{"op":"replace","path":"/spec/content","value":"10"}]`},
		"neither": {v1alpha1.OpsConfigInfoSpec{Type: "isBranch", Content: "10"}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			answer := Trimmer{}.Admit(t.Context(), request(t, tc.in))
			if !answer.Response.Allowed || answer.Decision != Trimmed {
				t.Errorf("got %+v", answer)
			}
			if diff := cmp.Diff(tc.want, string(answer.Response.Patch)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// validator returns the webhook in a cluster with these settings.
func validator(t *testing.T, all ...*v1alpha1.OpsConfigInfo) Validator {
	t.Helper()
	indexer := cache.NewIndexer(cache.MetaNamespaceKeyFunc, cache.Indexers{})
	for _, c := range all {
		if err := indexer.Add(c); err != nil {
			t.Fatal(err)
		}
	}
	return Validator{Lister: listers.NewOpsConfigInfoLister(indexer)}
}

func TestTheValidatorWarnsAboutADuplicate(t *testing.T) {
	object := func(name string, minute int, kind v1alpha1.ConfigType) *v1alpha1.OpsConfigInfo {
		return &v1alpha1.OpsConfigInfo{ObjectMeta: metav1.ObjectMeta{Namespace: v1alpha1.SystemNamespace, Name: name,
			CreationTimestamp: metav1.NewTime(time.Date(2026, 1, 1, 0, minute, 0, 0, time.UTC))}, Spec: v1alpha1.OpsConfigInfoSpec{Type: kind, Enable: true}}
	}
	warning := []string{"this OpsConfigInfo has no effect: blocking is older and has the same type isBlockingUp: change blocking instead"}
	for name, tc := range map[string]struct {
		all  []*v1alpha1.OpsConfigInfo
		in   *v1alpha1.OpsConfigInfo
		want []string
	}{
		"the first of its type":         {nil, object("blocking", 1, v1alpha1.ConfigBlocking), nil},
		"a change of the first":         {[]*v1alpha1.OpsConfigInfo{object("blocking", 1, v1alpha1.ConfigBlocking)}, object("blocking", 1, v1alpha1.ConfigBlocking), nil},
		"the second of its type":        {[]*v1alpha1.OpsConfigInfo{object("blocking", 1, v1alpha1.ConfigBlocking)}, object("second", 2, v1alpha1.ConfigBlocking), warning},
		"of another type":               {[]*v1alpha1.OpsConfigInfo{object("blocking", 1, v1alpha1.ConfigBlocking)}, object("second", 2, v1alpha1.ConfigShadow), nil},
		"an older one changes its type": {[]*v1alpha1.OpsConfigInfo{object("blocking", 1, v1alpha1.ConfigBlocking), object("old", 0, v1alpha1.ConfigShadow)}, object("old", 0, v1alpha1.ConfigBlocking), nil},
		"a newer one changes its type":  {[]*v1alpha1.OpsConfigInfo{object("blocking", 1, v1alpha1.ConfigBlocking), object("new", 2, v1alpha1.ConfigShadow)}, object("new", 2, v1alpha1.ConfigBlocking), warning},
	} {
		t.Run(name, func(t *testing.T) {
			req := &admissionv1.AdmissionRequest{Object: builder.Raw(t, tc.in)}
			if diff := cmp.Diff(tc.want, validator(t, tc.all...).Admit(t.Context(), req).Response.Warnings); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestTheValidatorNamesTheField(t *testing.T) {
	for name, tc := range map[string]struct {
		in   v1alpha1.OpsConfigInfoSpec
		want *metav1.StatusCause
	}{
		"a good one is admitted": {in: v1alpha1.OpsConfigInfoSpec{Type: v1alpha1.ConfigBatch, Content: "10", Enable: true}},
		"an unknown type": {
			in: v1alpha1.OpsConfigInfoSpec{Type: "isBranche"},
			want: &metav1.StatusCause{
				Type: metav1.CauseTypeFieldValueInvalid, Field: "spec.type",
				Message: `unknown type "isBranche": known types are ` + strings.Join(v1alpha1.ConfigTypes(), ", "),
			},
		},
		"a content that cannot be understood": {
			in: v1alpha1.OpsConfigInfoSpec{Type: v1alpha1.ConfigBatch, Content: "ten"},
			want: &metav1.StatusCause{
				Type: metav1.CauseTypeFieldValueInvalid, Field: "spec.content",
				Message: `invalid content for type isBranch: "ten" is not a percentage of the replicas: write a whole number from 1 to 100`,
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			answer := validator(t).Admit(t.Context(), request(t, tc.in))
			if tc.want == nil {
				if !answer.Response.Allowed || answer.Decision != admission.DecisionAdmitted {
					t.Errorf("got %+v", answer)
				}
				return
			}
			result := answer.Response.Result
			if answer.Response.Allowed || result.Code != http.StatusUnprocessableEntity || result.Reason != metav1.StatusReasonInvalid {
				t.Errorf("got %+v", result)
			}
			if diff := cmp.Diff([]metav1.StatusCause{*tc.want}, result.Details.Causes); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestTheValidatorWarnsAboutJudgesThatNeedAKey(t *testing.T) {
	for name, tc := range map[string]struct {
		in   v1alpha1.OpsConfigInfoSpec
		want []string
	}{
		"judges of Breakwater":  {v1alpha1.OpsConfigInfoSpec{Type: v1alpha1.ConfigJudges, Content: "server, metrics", Enable: true}, nil},
		"a setting that is off": {v1alpha1.OpsConfigInfoSpec{Type: v1alpha1.ConfigJudges, Content: "metricks"}, nil},
		"a judge of the user's own": {v1alpha1.OpsConfigInfoSpec{Type: v1alpha1.ConfigJudges, Content: "server, metricks", Enable: true},
			[]string{"judges of your own: metricks; each needs its key in Secret external-judge-keys, or batches that wait for it stay unjudged"}},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, validator(t).Admit(t.Context(), request(t, tc.in)).Response.Warnings); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestAnUnparsableOpsConfigInfoIsDeniedByTheValidatorOnly(t *testing.T) {
	req := request(t, v1alpha1.OpsConfigInfoSpec{})
	req.Object.Raw = []byte("{")
	if answer := (Trimmer{}).Admit(t.Context(), req); !answer.Response.Allowed || answer.Decision != admission.DecisionError {
		t.Errorf("got %+v", answer)
	}
	if answer := validator(t).Admit(t.Context(), req); answer.Response.Allowed || answer.Decision != admission.DecisionError {
		t.Errorf("got %+v", answer)
	}
}
