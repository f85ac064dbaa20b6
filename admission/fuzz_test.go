package admission_test

import (
	"bytes"
	"encoding/json"
	"testing"

	jsonpatch "github.com/evanphx/json-patch/v5"
	"github.com/google/go-cmp/cmp"
	admissionv1 "k8s.io/api/admission/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/breakwater-dev/breakwater/admission"
	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
	kind "github.com/breakwater-dev/breakwater/internal/workload"
)

// FuzzReadChange reads updates of workloads and writes labels and annotations. Equal
// objects have no changed template; templates of different versions are a change. The
// patch sets one label and one annotation, and nothing else.
func FuzzReadChange(f *testing.F) {
	const template = `"template":{"spec":{"containers":[{"name":"a","image":"a:1"}]}}`
	plain := []byte(`{"metadata":{"name":"w","labels":{"a":"b"}},"spec":{` + template + `,"paused":true}}`)
	f.Add(plain, plain, "key", "value")
	f.Add(plain, []byte(`{"metadata":{"name":"w"},"spec":{"template":{"unknownField":1}}}`), "a/b~c", "")
	f.Add(plain, []byte(`{"metadata":{"labels":null,"annotations":{}},"spec":null}`), "", "\x00")
	f.Add([]byte(``), []byte(`{"metadata":{"annotations":{"`+v1alpha1.AttemptAnnotation+`":"9223372036854775808"}}}`), "a\"b\\", "\u2028")
	f.Add([]byte(`{"spec":{"template":[]}}`), []byte(`{"spec":{"Template":{},"template":{}}}`), "x", "y")
	f.Fuzz(func(t *testing.T, before, after []byte, key, value string) {
		req := &admissionv1.AdmissionRequest{
			Object: runtime.RawExtension{Raw: after}, OldObject: runtime.RawExtension{Raw: before},
			UserInfo: authenticationv1.UserInfo{Username: v1alpha1.ControllerUser},
		}
		c, err := admission.ReadChange(kind.Deployment, req)
		if err != nil {
			if c.New != nil || len(err.Error()) > 2048 {
				t.Errorf("%+v with an error of %d bytes: %.200v", c, len(err.Error()), err)
			}
			return
		}
		if (c.Old == nil) != (len(before) == 0) || c.New == nil {
			t.Fatalf("%+v", c)
		}
		if bytes.Equal(before, after) && (c.TemplateChanged || !c.Readmission()) {
			t.Errorf("equal objects are a change: %s", after)
		}
		if c.Old != nil && !c.TemplateChanged && versionOf(t, c.Old) != versionOf(t, c.New) {
			t.Errorf("another template is no change: %s", cmp.Diff(c.Old.Template, c.New.Template))
		}
		if release, ok := c.OldRelease(); ok && (!v1alpha1.IsTemplateVersion(release.Version) || release.Attempt < 0) {
			t.Errorf("%+v", release)
		}
		checkMutation(t, c.New, after, key, value)
	})
}

func versionOf(t *testing.T, w *kind.Workload) string {
	t.Helper()
	version, err := kind.Version(w.Kind, &w.Template)
	if err != nil {
		t.Fatal(err)
	}
	return version
}

func checkMutation(t *testing.T, w *kind.Workload, raw []byte, key, value string) {
	t.Helper()
	m := admission.NewMutation(w)
	if patch, err := m.Patch(w); err != nil || patch != nil {
		t.Errorf("a mutation without changes: %s, %v", patch, err)
	}
	m.SetLabel(key, value)
	m.SetAnnotation(key, value)
	patch, err := m.Patch(w)
	if err != nil {
		t.Fatal(err)
	}
	var object map[string]any
	if json.Unmarshal(raw, &object) != nil || object["metadata"] == nil {
		return // the API server sends metadata
	}
	if patch != nil {
		decoded, err := jsonpatch.DecodePatch(patch)
		if err != nil {
			t.Fatalf("%v: %s", err, patch)
		}
		if raw, err = decoded.Apply(raw); err != nil {
			t.Fatalf("apply %s: %v", patch, err)
		}
	}
	got, err := kind.Read(w.Kind, raw)
	if err != nil {
		t.Fatalf("%v: %s", err, raw)
	}
	want := *w
	want.Labels, want.Annotations = stored(t, m.Labels), stored(t, m.Annotations)
	if !cmp.Equal(want.ObjectMeta, got.ObjectMeta) || !cmp.Equal(want.Template, got.Template) {
		t.Errorf("by %s (-want +got):\n%s", patch, cmp.Diff(want.ObjectMeta, got.ObjectMeta))
	}
}

// stored returns a map as JSON stores it, with valid UTF-8.
func stored(t *testing.T, m map[string]string) map[string]string {
	t.Helper()
	raw, err := json.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	var out map[string]string
	if err := json.Unmarshal(raw, &out); err != nil {
		t.Fatal(err)
	}
	return out
}
