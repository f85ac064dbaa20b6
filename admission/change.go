package admission

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"

	admissionv1 "k8s.io/api/admission/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	"k8s.io/utils/ptr"

	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
	"github.com/breakwater-dev/breakwater/internal/workload"
)

// Change is one creation or update of a workload.
type Change struct {
	// Old is nil on creation.
	Old *workload.Workload
	New *workload.Workload
	// TemplateChanged: the update is a release. False on creation.
	TemplateChanged bool
	// User is the author, as the API server knows it.
	User authenticationv1.UserInfo
	// DryRun: the change will not be stored.
	DryRun bool
	// specChanged: the update changes anything of spec. False on creation.
	specChanged bool
}

// ReadChange reads a request for a workload of the kind.
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
		return Change{}, fmt.Errorf("what there was: %w", err)
	}
	return c, c.compare(req)
}

// compare compares the specs as they came: a newer API server may know fields
// that our types do not, and a change of one in the template is a release too.
// One writer encoded both, so equal parts are equal bytes.
func (c *Change) compare(req *admissionv1.AdmissionRequest) error {
	before, err := specOf(req.OldObject.Raw)
	if err != nil {
		return err
	}
	after, err := specOf(req.Object.Raw)
	if err != nil {
		return err
	}
	c.TemplateChanged = !bytes.Equal(before.Template, after.Template)
	c.specChanged = !bytes.Equal(before.raw, after.raw)
	return nil
}

// spec is a workload's spec as it came.
type spec struct {
	raw      json.RawMessage
	Template json.RawMessage `json:"template"`
}

func specOf(raw []byte) (spec, error) {
	var object struct {
		Spec json.RawMessage `json:"spec"`
	}
	if err := json.Unmarshal(raw, &object); err != nil {
		return spec{}, fmt.Errorf("decode spec: %w", err)
	}
	s := spec{raw: object.Spec}
	if len(s.raw) == 0 {
		return s, nil // of a kind whose objects may do without
	}
	if err := json.Unmarshal(s.raw, &s); err != nil {
		return spec{}, fmt.Errorf("decode template: %w", err)
	}
	return s, nil
}

// OldRelease returns the release that the workload was at. False: it was not
// stamped, or what stood there cannot be ours; the release is the zero one.
func (c Change) OldRelease() (v1alpha1.Release, bool) {
	if c.Old == nil {
		return v1alpha1.Release{}, false
	}
	r, ok := v1alpha1.ReleaseOf(c.Old.Annotations)
	// The version becomes part of names: nothing but a hash may.
	if !ok || !v1alpha1.IsTemplateVersion(r.Version) {
		return v1alpha1.Release{}, false
	}
	return r, true
}

// ByController says whether our controller made the change.
func (c Change) ByController() bool { return c.User.Username == v1alpha1.ControllerUser }

// Readmission says whether this is the controller's empty update: it asks to do what
// an update that did not pass the webhook left undone. What the answer to it
// writes does not count, so that it is a touch when it is asked again.
func (c Change) Readmission() bool {
	return c.Old != nil && c.ByController() && !c.specChanged &&
		maps.Equal(others(c.Old.Labels), others(c.New.Labels)) &&
		maps.Equal(others(c.Old.Annotations), others(c.New.Annotations))
}

// others are the labels or annotations that do not name the release.
func others(m map[string]string) map[string]string {
	rest := maps.Clone(m)
	delete(rest, v1alpha1.VersionKey)
	delete(rest, v1alpha1.AttemptAnnotation)
	return rest
}
