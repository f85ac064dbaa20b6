//go:build e2e

package e2e

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrs "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/restmapper"

	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
)

// kindsNotInstalled are kinds of overlays that the embedded cluster does not
// have. test/overlays has their schemas.
var kindsNotInstalled = []string{"RabbitmqBrokerConfig"}

// validOverlays validates each object of each overlay with the API server and
// the webhooks of Knative, one overlay after the other: another spec runs beside it.
// Most objects are the same in all overlays; these are validated once.
func validOverlays(t *testing.T, e *environment) {
	groups, err := restmapper.GetAPIGroupResources(e.kube.Discovery())
	if err != nil {
		t.Fatal(err)
	}
	mapper := restmapper.NewDiscoveryRESTMapper(groups)
	folders, err := os.ReadDir(filepath.Join("..", "..", "config", "overlays"))
	if err != nil {
		t.Fatal(err)
	}
	n := e.notOptedInNamespace(t)
	accepted := map[string]bool{} // by content
	for _, f := range folders {
		t.Run(f.Name(), func(t *testing.T) {
			manifests := n.run(t, "kustomize", filepath.Join("..", "..", "config", "overlays", f.Name()))
			objects := n.readManifests(t, mapper, manifests)
			if len(objects) < 40 {
				t.Errorf("%d objects, want at least 40", len(objects))
			}
			for _, o := range objects {
				if o.GetKind() == "ServiceAccount" {
					// Knative creates the pods of a Service with a dry run, which needs its ServiceAccount.
					n.createAccount(t, o.GetName())
				}
			}
			for _, o := range objects {
				if o.GetKind() == "EventPolicy" {
					continue // Knative does not accept it until OIDC is enabled; TestTheBrokerAcceptsOnlyNamedSendersWithOIDC applies it
				}
				if o.GetKind() == "ValidatingAdmissionPolicyBinding" {
					// An apply to the installed object would keep the actions of its field manager: they are a set.
					o.SetName(o.GetName() + "-overlay")
				}
				content, err := o.MarshalJSON()
				if err != nil {
					t.Fatal(err)
				}
				if accepted[string(content)] {
					continue
				}
				_, err = o.client.Apply(t.Context(), o.GetName(), o.Unstructured,
					metav1.ApplyOptions{FieldManager: "overlay-test", Force: true, DryRun: []string{metav1.DryRunAll}})
				if err != nil {
					t.Errorf("%s %s: %v", o.GetKind(), o.GetName(), err)
					continue
				}
				accepted[string(content)] = true
			}
		})
	}
}

// createAccount creates a ServiceAccount unless it exists.
func (n *namespace) createAccount(t *testing.T, name string) {
	t.Helper()
	_, err := n.kube.CoreV1().ServiceAccounts(n.name).Create(t.Context(),
		&corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{})
	if err != nil && !apierrs.IsAlreadyExists(err) {
		t.Fatal(err)
	}
}

type overlayObject struct {
	*unstructured.Unstructured
	client dynamic.ResourceInterface
}

// image matches the references that ko replaces by images.
var image = regexp.MustCompile(`ko://\S+`)

// readManifests parses manifests. It moves namespaced objects to the namespace
// of the test, because the class of an existing Broker is immutable.
// OpsConfigInfos stay, because they are valid in the system namespace only.
func (n *namespace) readManifests(t *testing.T, mapper meta.RESTMapper, manifests string) []overlayObject {
	t.Helper()
	manifests = image.ReplaceAllString(manifests, "localhost:5000/base:latest")
	documents := yaml.NewDocumentDecoder(io.NopCloser(strings.NewReader(manifests)))
	var out []overlayObject
	for {
		raw := make([]byte, len(manifests))
		size, err := documents.Read(raw)
		if errors.Is(err, io.EOF) {
			return out
		} else if err != nil {
			t.Fatal(err)
		}
		u := read(t, raw[:size])
		gvk := u.GroupVersionKind()
		mapping, err := mapper.RESTMapping(gvk.GroupKind(), gvk.Version)
		if meta.IsNoMatchError(err) {
			if !slices.Contains(kindsNotInstalled, gvk.Kind) {
				t.Errorf("kind %s is not installed", gvk)
			}
			continue
		} else if err != nil {
			t.Fatal(err)
		}
		resource := n.dynamic.Resource(mapping.Resource)
		switch {
		case mapping.Scope.Name() != meta.RESTScopeNameNamespace:
			out = append(out, overlayObject{u, resource})
		case gvk.Group == v1alpha1.SchemeGroupVersion.Group:
			out = append(out, overlayObject{u, resource.Namespace(system)})
		default:
			moved := bytes.ReplaceAll(raw[:size], []byte(system), []byte(n.name))
			out = append(out, overlayObject{read(t, moved), resource.Namespace(n.name)})
		}
	}
}

func read(t *testing.T, raw []byte) *unstructured.Unstructured {
	t.Helper()
	u := &unstructured.Unstructured{}
	if err := yaml.Unmarshal(raw, &u.Object); err != nil {
		t.Fatal(err)
	}
	return u
}
