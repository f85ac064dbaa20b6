package admission

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"

	admissionv1 "k8s.io/api/admission/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	kubejson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/utils/ptr"

	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
	"github.com/breakwater-dev/breakwater/internal/workload"
)

// Change is one creation or update of a workload.
type Change struct {
	// Old is nil on creation.
	Old *workload.Workload
	New *workload.Workload
	// TemplateChanged reports whether an update changes the pod template.
	TemplateChanged bool
	// User is the authenticated user of the request.
	User authenticationv1.UserInfo
	// DryRun reports that the change is not stored.
	DryRun bool
	// specChanged reports whether an update changes spec.
	specChanged bool
}

// ReadChange decodes an admission request for a workload of the kind.
func ReadChange(kind workload.Kind, req *admissionv1.AdmissionRequest) (Change, error) {
	after, err := workload.Read(kind, req.Object.Raw)
	if err != nil {
		return Change{}, err
	}
	c := Change{New: after, User: req.UserInfo, DryRun: ptr.Deref(req.DryRun, false)}
	if len(req.OldObject.Raw) == 0 {
		return c, nil
	}
	if c.Old, err = workload.Read(kind, req.OldObject.Raw); err != nil {
		return Change{}, fmt.Errorf("read old object: %w", err)
	}
	return c, c.compare(req)
}

// compare compares the templates by their meaning, and the specs as raw JSON.
func (c *Change) compare(req *admissionv1.AdmissionRequest) error {
	before, err := specOf(req.OldObject.Raw)
	if err != nil {
		return err
	}
	after, err := specOf(req.Object.Raw)
	if err != nil {
		return err
	}
	for _, s := range []*spec{&before, &after} {
		if s.Template, err = c.New.Kind.ReleaseTemplate(s.Template); err != nil {
			return err
		}
	}
	same, err := workload.SameTemplate(before.Template, after.Template)
	if err != nil {
		return err
	}
	c.TemplateChanged = !same
	c.specChanged, err = specChanged(c.New.Kind, before.raw, after.raw)
	return err
}

// specChanged compares specs as raw JSON. Of the template of a Knative Service, its name and Breakwater's annotations are
// not compared: the first response to a readmission writes the annotations, and the request is sent again.
func specChanged(kind workload.Kind, before, after json.RawMessage) (bool, error) {
	if bytes.Equal(before, after) {
		return false, nil
	}
	if kind.Revisions != workload.KnativeRevisions {
		return true, nil
	}
	var specs [2]map[string]json.RawMessage
	for i, raw := range []json.RawMessage{before, after} {
		if err := kubejson.Unmarshal(raw, &specs[i]); err != nil {
			return false, fmt.Errorf("decode spec: %w", err)
		}
		template, err := kind.SavedTemplate(specs[i]["template"])
		if err != nil {
			return false, err
		}
		specs[i]["template"] = template
	}
	return !reflect.DeepEqual(specs[0], specs[1]), nil
}

// spec is a workload's spec as raw JSON.
type spec struct {
	raw      json.RawMessage
	Template json.RawMessage `json:"template"`
}

func specOf(raw []byte) (spec, error) {
	var object struct {
		Spec json.RawMessage `json:"spec"`
	}
	if err := kubejson.Unmarshal(raw, &object); err != nil {
		return spec{}, fmt.Errorf("decode spec: %w", err)
	}
	s := spec{raw: object.Spec}
	if len(s.raw) == 0 {
		return s, nil // spec is optional in some kinds
	}
	if err := kubejson.Unmarshal(s.raw, &s); err != nil {
		return spec{}, fmt.Errorf("decode template: %w", err)
	}
	return s, nil
}

// OldRelease returns the release of the old object. It returns false, and the zero
// release, if the release annotations are missing or invalid.
func (c Change) OldRelease() (v1alpha1.Release, bool) {
	if c.Old == nil {
		return v1alpha1.Release{}, false
	}
	r, ok := v1alpha1.ReleaseOf(c.Old.Annotations)
	// The version becomes part of object names, so only a hash is valid.
	if !ok || !v1alpha1.IsTemplateVersion(r.Version) {
		return v1alpha1.Release{}, false
	}
	return r, true
}

// ByController reports whether our controller made the change.
func (c Change) ByController() bool { return c.User.Username == v1alpha1.ControllerUser }

// Readmission reports whether this is a readmission: the update without a change that the
// controller makes after the webhook missed an update. The release labels and annotations and label ignored-suspend are
// not compared, and the record of a rollback may be missing: the first response sets or removes
// them, and the request may be sent again.
func (c Change) Readmission() bool {
	if c.Old == nil || !c.ByController() || c.specChanged {
		return false
	}
	before, after := withoutRelease(c.Old.Annotations), withoutRelease(c.New.Annotations)
	if _, recorded := after[v1alpha1.RollbackAnnotation]; !recorded {
		delete(before, v1alpha1.RollbackAnnotation)
	}
	return maps.Equal(before, after) && maps.Equal(withoutRelease(c.Old.Labels), withoutRelease(c.New.Labels))
}

// withoutRelease returns the labels or annotations without those that the first response to a readmission changes. After
// it, Serving records who has changed the spec.
func withoutRelease(m map[string]string) map[string]string {
	rest := maps.Clone(m)
	delete(rest, workload.KnativeLastModifierAnnotation)
	delete(rest, v1alpha1.IgnoredSuspendLabel)
	delete(rest, v1alpha1.VersionKey)
	delete(rest, v1alpha1.AttemptAnnotation)
	return rest
}
