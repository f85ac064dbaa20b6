package events

import (
	"strings"
	"unicode/utf8"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
)

// Limits of fields, in bytes: those of the server and of the status fields that
// the values are copied to.
const (
	maxUID       = 128
	maxOrderID   = 128
	maxName      = 253 // of an object
	maxNodeID    = 128
	maxShortText = 63 // a phase, a verdict
	maxReason    = 128
	maxUser      = 512
)

// Workload references a workload in the event's namespace.
type Workload struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Name       string `json:"name"`
}

func (w Workload) check(c *checker) {
	c.conforms("workload.apiVersion", w.APIVersion, validation.IsQualifiedName)
	c.conforms("workload.kind", w.Kind, validation.IsCIdentifier)
	c.name("workload.name", w.Name)
}

// source returns the workload's path at the API server.
func (w Workload) source(namespace string) string {
	gvr, _ := meta.UnsafeGuessKindToResource(schema.FromAPIVersionAndKind(w.APIVersion, w.Kind))
	return path(gvr, namespace, w.Name)
}

// pathOfChange returns the path of an object of API group apis/change: of a ChangeWorkload or ChangePod.
func pathOfChange(plural, namespace, name string) string {
	return path(v1alpha1.SchemeGroupVersion.WithResource(plural), namespace, name)
}

// clusterPath returns the path of a cluster-scoped object.
func clusterPath(gvr schema.GroupVersionResource, name string) string {
	if gvr.Group == "" {
		return "/api/" + gvr.Version + "/" + gvr.Resource + "/" + name
	}
	return "/apis/" + gvr.Group + "/" + gvr.Version + "/" + gvr.Resource + "/" + name
}

// path returns the path of a namespaced object.
func path(gvr schema.GroupVersionResource, namespace, name string) string {
	root := "/apis/" + gvr.Group + "/"
	if gvr.Group == "" {
		root = "/api/"
	}
	return root + gvr.Version + "/namespaces/" + namespace + "/" + gvr.Resource + "/" + name
}

// idSafe reports whether s can be part of an id and of an HTTP header unchanged.
func idSafe(s string) bool {
	return s != "" && strings.IndexFunc(s, func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && !strings.ContainsRune("._-", r)
	}) < 0
}

// checker collects the validation errors of a struct's fields, by JSON name.
type checker struct{ errs field.ErrorList }

func (c *checker) required(name, value string, limit int) {
	if value == "" {
		c.errs = append(c.errs, field.Required(field.NewPath(name), ""))
	}
	c.optional(name, value, limit)
}

// conforms requires a value that passes a check of package validation.
func (c *checker) conforms(name, value string, check func(string) []string) {
	if value == "" {
		c.errs = append(c.errs, field.Required(field.NewPath(name), ""))
		return
	}
	for _, why := range check(value) {
		c.invalid(name, value, why)
	}
}

// Object names become part of API paths and HTTP headers, so their syntax is
// checked.

func (c *checker) namespace(value string) {
	c.conforms("namespace", value, validation.IsDNS1123Label)
}

func (c *checker) name(name, value string) { c.conforms(name, value, validation.IsDNS1123Subdomain) }

func (c *checker) version(value string) {
	c.conforms("version", value, validation.IsValidLabelValue)
}

func (c *checker) uid(name string, uid types.UID) {
	c.required(name, string(uid), maxUID)
	if uid != "" && !idSafe(string(uid)) {
		c.invalid(name, string(uid), "must consist of letters, digits, '.', '_' and '-'")
	}
}

func (c *checker) optional(name, value string, limit int) {
	if len(value) > limit {
		c.errs = append(c.errs, field.TooLong(field.NewPath(name), "", limit))
	}
	if !utf8.ValidString(value) {
		c.invalid(name, value, "must be UTF-8")
	}
}

func (c *checker) invalid(name string, value any, why string) {
	c.errs = append(c.errs, field.Invalid(field.NewPath(name), value, why))
}

func (c *checker) attempt(n int64) {
	if n < 0 {
		c.invalid("attempt", n, "must not be negative")
	}
}

func (c *checker) stage(s v1alpha1.Stage) {
	if s != v1alpha1.StagePre && s != v1alpha1.StagePost {
		c.errs = append(c.errs, field.NotSupported(field.NewPath("stage"), s,
			[]v1alpha1.Stage{v1alpha1.StagePre, v1alpha1.StagePost}))
	}
}

func (c *checker) err() error { return c.errs.ToAggregate() }
