package workload

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/yaml"
)

// ConfigMapName is the name of the ConfigMap with more kinds of workloads.
const ConfigMapName = "config-workloads"

// KindsKey is its key with the list of kinds.
const KindsKey = "kinds"

// maxKinds is the maximum length of the list, because each kind costs watches
// and webhooks.
const maxKinds = 16

// kindEntry is one entry of the list.
type kindEntry struct {
	// APIVersion is group and version, such as apps.kruise.io/v1alpha1.
	APIVersion string `json:"apiVersion"`
	// Kind is the kind, such as CloneSet.
	Kind string `json:"kind"`
	// Resource is the plural. Default: the kind in lower case with an s.
	Resource string `json:"resource"`
	// Revisions is ReplicaSet or ControllerRevision.
	Revisions Revisions `json:"revisions"`
	// Pause is the path of the bool that pauses a rollout if it is true.
	// Default: spec.paused.
	Pause string `json:"pause"`
}

// Kinds returns the built-in kinds and those of the ConfigMap's data. An error
// names the entry, the field and the fix; only the built-in kinds are returned
// then.
func Kinds(data map[string]string) ([]Kind, error) {
	kinds := BuiltIn()
	var entries []kindEntry
	if err := yaml.UnmarshalStrict([]byte(data[KindsKey]), &entries); err != nil {
		return kinds, fmt.Errorf("%s: %w", KindsKey, err)
	}
	if len(entries) > maxKinds {
		return kinds, fmt.Errorf("%s: %d entries, but at most %d are watched", KindsKey, len(entries), maxKinds)
	}
	more := slices.Clone(kinds)
	for i, e := range entries {
		k, err := e.kind()
		if err != nil {
			return kinds, fmt.Errorf("%s[%d]%w", KindsKey, i, err)
		}
		// Names of webhooks are in lower case.
		if slices.ContainsFunc(more, func(o Kind) bool { return o.Group == k.Group && strings.EqualFold(o.Kind, k.Kind) }) {
			return kinds, fmt.Errorf("%s[%d].kind: %s of %s exists already: remove the entry", KindsKey, i, k.Kind, k.Group)
		}
		// Policy breakwater-webhook-configurations denies webhooks of such a group, and with it a new
		// CA for the webhooks of all other kinds.
		if !strings.Contains(k.Group, ".") || strings.HasSuffix(k.Group, ".k8s.io") {
			return kinds, fmt.Errorf("%s[%d].apiVersion: group %s is of Kubernetes: write a custom resource, for example apps.kruise.io/v1alpha1", KindsKey, i, k.Group)
		}
		more = append(more, k)
	}
	return more, nil
}

// maxNames is the space for kind and group in the names of their webhooks, which have at
// most 253 bytes: m<kind>.<group>.kb.io.
const maxNames = 253 - len("m..kb.io")

var kindName = regexp.MustCompile(`^[A-Z][A-Za-z0-9-]*$`)

var fieldName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_-]*$`)

func notFieldName(name string) bool { return !fieldName.MatchString(name) }

func (e kindEntry) kind() (Kind, error) {
	gv, err := schema.ParseGroupVersion(e.APIVersion)
	// Both become part of the names and rules of webhooks. The API server rejects all
	// webhooks of a configuration if one of them is invalid.
	if err != nil || len(validation.IsDNS1123Subdomain(gv.Group)) > 0 || len(validation.IsDNS1035Label(gv.Version)) > 0 {
		return Kind{}, fmt.Errorf(".apiVersion: %q is not group/version: write for example apps.kruise.io/v1alpha1", e.APIVersion)
	}
	// strings.ToLower maps some non-ASCII letters to ASCII (the Kelvin sign becomes k),
	// so the kind is checked before.
	if !kindName.MatchString(e.Kind) || len(validation.IsDNS1035Label(strings.ToLower(e.Kind))) > 0 {
		return Kind{}, fmt.Errorf(".kind: %q is not a kind: write for example CloneSet", e.Kind)
	}
	if n := len(e.Kind) + len(gv.Group); n > maxNames {
		return Kind{}, fmt.Errorf(".apiVersion: group and kind have %d bytes: webhooks need names of at most %d", n, maxNames)
	}
	resource := e.Resource
	if resource == "" {
		resource = strings.ToLower(e.Kind) + "s"
	}
	if len(validation.IsDNS1035Label(resource)) > 0 {
		return Kind{}, fmt.Errorf(".resource: %q is not a resource: write the plural, for example clonesets", e.Resource)
	}
	if e.Revisions != ReplicaSets && e.Revisions != ControllerRevisions {
		return Kind{}, fmt.Errorf(".revisions: %q is not known: write %s or %s", e.Revisions, ReplicaSets, ControllerRevisions)
	}
	pause := e.Pause
	if pause == "" {
		pause = "spec.paused"
	}
	path := strings.Split(pause, ".")
	// The path becomes part of webhook expressions, so only plain names are
	// allowed.
	if path[0] != "spec" || len(path) < 2 || slices.ContainsFunc(path, notFieldName) {
		return Kind{}, fmt.Errorf(".pause: %q is not a path below spec: write for example spec.updateStrategy.paused", e.Pause)
	}
	return Kind{
		GroupVersionKind: gv.WithKind(e.Kind), Resource: resource, Revisions: e.Revisions,
		PauseField: Field{Path: path, Paused: true}, Counts: CountReplicas,
	}, nil
}
