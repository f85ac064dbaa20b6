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

// kindsNotInstalled are the kinds of overlays that the embedded cluster does not
// have. test/overlays knows their schema.
var kindsNotInstalled = []string{"RabbitmqBrokerConfig"}

// TestOverlays has the API server, and the webhooks of Knative, validate every
// object of every overlay.
func TestOverlays(t *testing.T) {
	e := newEnvironment(t)
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
	for _, f := range folders {
		t.Run(f.Name(), func(t *testing.T) {
			made := n.run(t, "kustomize", filepath.Join("..", "..", "config", "overlays", f.Name()))
			objects := n.readManifests(t, mapper, made)
			if len(objects) < 40 {
				t.Errorf("only %d objects", len(objects))
			}
			for _, o := range objects {
				if o.GetKind() == "ServiceAccount" {
					// Knative tries the pods of a Service, and they need theirs.
					n.createAccount(t, o.GetName())
				}
			}
			for _, o := range objects {
				_, err := o.client.Apply(t.Context(), o.GetName(), o.Unstructured,
					metav1.ApplyOptions{FieldManager: "overlay-test", Force: true, DryRun: []string{metav1.DryRunAll}})
				if err != nil {
					t.Errorf("%s %s: %v", o.GetKind(), o.GetName(), err)
				}
			}
		})
	}
}

// createAccount creates a ServiceAccount that an overlay before may have had.
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

// image is what ko puts a real image for.
var image = regexp.MustCompile(`ko://\S+`)

// readManifests reads manifests. What is in a namespace comes into that of the
// test, where it is created: a Broker that is there cannot get another class.
// Settings count in one namespace only, and are validated there.
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
				t.Errorf("nobody here knows %s", gvk)
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
