//go:build controlplane

package change

import (
	"context"
	"fmt"
	"net"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"go.opentelemetry.io/otel/metric/noop"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/utils/clock"

	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
	"github.com/breakwater-dev/breakwater/client/clientset/versioned"
	"github.com/breakwater-dev/breakwater/functions/rollbackapi"
	"github.com/breakwater-dev/breakwater/internal/servingcert"
	"github.com/breakwater-dev/breakwater/test/docs/commands"
	kubeconfig "github.com/breakwater-dev/breakwater/test/e2e/kubectl"
)

// The commands run as on the page, in one shell, with the certificate that the webhook issued. They
// call localhost, as with kubectl port-forward.
func TestTheCommandsOfThePageRequestARollback(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	w := f.createHeld(t)

	kubectl(t, "", "-n", f.namespace, "create", "serviceaccount", "ann")
	for _, role := range []string{"view", "breakwater-rollback"} {
		kubectl(t, "", "-n", f.namespace, "create", "rolebinding", role, "--clusterrole="+role, "--serviceaccount="+f.namespace+":ann")
	}
	k, err := kubeconfig.In(f.namespace, t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	out, err := commandsOfRequests(t).Run(t.Context(), t.TempDir(), k.Config(),
		"https://openapi.altershieldoperator-system.svc.cluster.local", f.serveRollbackAPI(t),
		"<service account>", "ann", "<namespace>", f.namespace, "namespace=default", "namespace="+f.namespace, `"default"`, `"`+f.namespace+`"`)
	if err != nil {
		t.Fatal(err)
	}
	if strings.Count(out, `"code":0`) != 2 || !strings.Contains(out, `"hasSuccessVersion":true`) {
		t.Fatalf("the answers are %s", out)
	}
	w.checkComplete(t, "v1", 3)
}

// commandsOfRequests returns the commands of the page as one script.
func commandsOfRequests(t *testing.T) commands.Command {
	t.Helper()
	const page = "docs/change/rollback.md"
	text, err := os.ReadFile("../../" + page)
	if err != nil {
		t.Fatal(err)
	}
	all, _, err := commands.Of(page, string(text))
	if err != nil {
		t.Fatal(err)
	}
	begins := func(with string) int {
		return slices.IndexFunc(all, func(c commands.Command) bool { return strings.HasPrefix(c.Text, with) })
	}
	first, last := begins("kubectl -n altershieldoperator-system get configmap openapi-ca "), begins("curl -X PUT ")
	if first < 0 || last-first != 4 {
		t.Fatalf("%s has the commands %d to %d, want 5", page, first, last)
	}
	script := commands.Command{Page: page, Line: all[first].Line}
	for _, c := range all[first : last+1] {
		script.Source += c.Source + "\n"
	}
	return script
}

// serveRollbackAPI serves service openapi and returns its URL.
func (f fixture) serveRollbackAPI(t *testing.T) string {
	t.Helper()
	config := plane.As("openapi")
	kube, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	objects, err := dynamic.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	change, err := versioned.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	folder := t.TempDir()
	await(t, "the certificate of openapi is issued", func(ctx context.Context) error {
		secret, err := f.Kube.CoreV1().Secrets(v1alpha1.SystemNamespace).Get(ctx, "openapi-certs", metav1.GetOptions{})
		if err == nil && len(secret.Data[corev1.TLSPrivateKeyKey]) == 0 {
			err = fmt.Errorf("%s has no key", secret.Name)
		}
		if err != nil {
			return err
		}
		for name, data := range secret.Data {
			if err := os.WriteFile(filepath.Join(folder, name), data, 0o600); err != nil {
				return err
			}
		}
		return nil
	})
	server := httptest.NewUnstartedServer(rollbackapi.New(rollbackapi.Options{
		Kube: kube, Dynamic: objects, Change: change, Clock: clock.RealClock{}, Meter: noop.Meter{},
	}))
	server.TLS = servingcert.ServerConfig(filepath.Join(folder, corev1.TLSCertKey), filepath.Join(folder, corev1.TLSPrivateKeyKey))
	server.StartTLS()
	t.Cleanup(server.Close)
	_, port, err := net.SplitHostPort(server.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	return "https://localhost:" + port
}
