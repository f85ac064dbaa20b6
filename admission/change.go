package admission

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"

	admissionv1 "k8s.io/api/admission/v1"
	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/utils/ptr"

	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
)

// Change is one creation or update of a Deployment.
type Change struct {
	// Old is nil on creation.
	Old *appsv1.Deployment
	New *appsv1.Deployment
	// TemplateChanged: the update is a release. False on creation.
	TemplateChanged bool
	// User is the name under which the API server knows the author.
	User string
	// DryRun: the change will not be stored.
	DryRun bool
}

// ReadChange reads a request for a Deployment.
func ReadChange(req *admissionv1.AdmissionRequest) (Change, error) {
	c := Change{New: &appsv1.Deployment{}, User: req.UserInfo.Username, DryRun: ptr.Deref(req.DryRun, false)}
	if err := json.Unmarshal(req.Object.Raw, c.New); err != nil {
		return Change{}, fmt.Errorf("decode Deployment: %w", err)
	}
	if len(req.OldObject.Raw) == 0 {
		return c, nil
	}
	c.Old = &appsv1.Deployment{}
	if err := json.Unmarshal(req.OldObject.Raw, c.Old); err != nil {
		return Change{}, fmt.Errorf("decode old Deployment: %w", err)
	}
	var err error
	c.TemplateChanged, err = templateChanged(req)
	return c, err
}

// templateChanged compares the templates as they came: a newer API server may
// know fields that our types do not, and a change of one is a release too. One
// writer encoded both, so equal templates are equal bytes.
func templateChanged(req *admissionv1.AdmissionRequest) (bool, error) {
	type deployment struct {
		Spec struct {
			Template json.RawMessage `json:"template"`
		} `json:"spec"`
	}
	var before, after deployment
	if err := json.Unmarshal(req.OldObject.Raw, &before); err != nil {
		return false, fmt.Errorf("decode old template: %w", err)
	}
	if err := json.Unmarshal(req.Object.Raw, &after); err != nil {
		return false, fmt.Errorf("decode template: %w", err)
	}
	return !bytes.Equal(before.Spec.Template, after.Spec.Template), nil
}

// OldRelease returns the release that the Deployment was at. False: it was not
// stamped, or what stood there cannot be ours; the release is the zero one.
func (c Change) OldRelease() (v1alpha1.Release, bool) {
	if c.Old == nil {
		return v1alpha1.Release{}, false
	}
	r, ok := v1alpha1.ReleaseOf(c.Old.Annotations)
	// The version becomes part of names: nothing but a hash may.
	if hash, err := hex.DecodeString(r.Version); !ok || err != nil || len(hash) != versionBytes {
		return v1alpha1.Release{}, false
	}
	return r, true
}

// versionBytes is how many bytes of a hash v1alpha1.TemplateVersion writes.
const versionBytes = 16

// ByController says whether our controller made the change.
func (c Change) ByController() bool { return c.User == v1alpha1.ControllerUser }

// Touch says whether this is the controller's empty update: it asks to do what
// an update that did not pass the webhook left undone. What the answer to it
// writes does not count, so that it is a touch when it is asked again.
func (c Change) Touch() bool {
	return c.Old != nil && c.ByController() && !c.TemplateChanged &&
		maps.Equal(others(c.Old.Labels), others(c.New.Labels)) &&
		maps.Equal(others(c.Old.Annotations), others(c.New.Annotations)) &&
		equality.Semantic.DeepEqual(c.Old.Spec, c.New.Spec)
}

// others are the labels or annotations that do not name the release.
func others(m map[string]string) map[string]string {
	rest := maps.Clone(m)
	delete(rest, v1alpha1.VersionKey)
	delete(rest, v1alpha1.AttemptAnnotation)
	return rest
}
