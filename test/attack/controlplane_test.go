//go:build controlplane

package attack

import (
	"context"
	"os"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	admission "github.com/breakwater-dev/breakwater/admission/change"
	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
	"github.com/breakwater-dev/breakwater/events/delivery/broker"
	"github.com/breakwater-dev/breakwater/reconciler/change"
	"github.com/breakwater-dev/breakwater/test/controlplane"
	"github.com/breakwater-dev/breakwater/test/e2e/clients"
	runner "github.com/breakwater-dev/breakwater/test/e2e/kubectl"
	"github.com/breakwater-dev/breakwater/test/e2e/testnamespace"
)

func TestMain(m *testing.M) {
	os.Exit(controlplane.Main(m, func(ctx context.Context) (*controlplane.ControlPlane, error) {
		p, err := controlplane.StartPart(ctx, controlplane.Part{
			Manifests: "config/core", Configs: "config",
			Webhooks: admission.Options(), Configuration: admission.Configuration,
			Component: change.Component, Controllers: change.Controllers(&broker.SharedSender{}),
		})
		if err != nil {
			return nil, err
		}
		// The other parts are not started: their policies need no process.
		for _, part := range []string{"config/permission", "config/protection", "config/judge"} {
			if err := p.Install(ctx, part); err != nil {
				return p, err
			}
		}
		return p, nil
	}))
}

// attacker is a user with role edit in the namespaces of a test, and with all rights to
// write ControllerRevisions and finalizers.
const attacker = "mallory"

// fixture has a namespace that is opted in.
type fixture struct {
	*clients.Clients
	namespace string
}

func newFixture(t *testing.T) fixture {
	t.Helper()
	f := fixture{Clients: clients.Require(t)}
	f.namespace = f.newNamespace(t, map[string]string{v1alpha1.NamespaceLabel: v1alpha1.NamespaceEnabled})
	return f
}

// newNamespace returns a namespace with labels in which attacker has rights.
func (f fixture) newNamespace(t *testing.T, labels map[string]string) string {
	t.Helper()
	n, err := testnamespace.Create(t.Context(), f.Kube, metav1.ObjectMeta{GenerateName: "attack-", Labels: labels})
	if err != nil {
		t.Fatal(err)
	}
	kubectl(t, "", "create", "rolebinding", "edit", "-n", n.Name, "--clusterrole=edit", "--user="+attacker)
	kubectl(t, "", "create", "role", "more", "-n", n.Name, "--verb=get,create,patch,update", "--resource=controllerrevisions.apps,pods,pods/status")
	kubectl(t, "", "create", "rolebinding", "more", "-n", n.Name, "--role=more", "--user="+attacker)
	return n.Name
}

// save saves a template as the controller does.
func (f fixture) save(t *testing.T, namespace string) {
	t.Helper()
	kubectl(t, saved, "create", "-n", namespace, "-f", "-", "--as=system:serviceaccount:altershieldoperator-system:controller", "--as-group=breakwater:controlplane")
}

// kubectl runs kubectl with the manifest as its input, and returns its stdout.
var kubectl = runner.Kubectl{}.Require
