// Package setup installs the test double of a provider in a cluster with the
// permission centre, allows the centre to call it, and registers objects for
// tests, the benchmark and the demo. The process must reach the Services of the
// cluster.
package setup

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"

	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/breakwater-dev/breakwater/internal/servingcert"
	"github.com/breakwater-dev/breakwater/permission/api"
	"github.com/breakwater-dev/breakwater/permission/podmeta"
	"github.com/breakwater-dev/breakwater/test/e2e/kubectl"
	"github.com/breakwater-dev/breakwater/test/provider"
)

const (
	// System is the namespace of Breakwater.
	System = "altershieldoperator-system"
	// Namespace is the namespace of the double.
	Namespace = "permission-provider"
	// Host is the DNS name of the double.
	Host = "provider." + Namespace + ".svc.cluster.local"
	// Owner is the owner of the registered objects.
	Owner = "team-db"
)

// Cluster is a cluster with the double and the centre.
type Cluster struct {
	Kube kubernetes.Interface
	// Centre, Server and Double are base URLs.
	Centre, Server, Double string
	// Token is the token of an admin of the centre.
	Token string
	http  *http.Client
}

// Install builds and installs the double and restarts the centre with the
// double as allowed host. root is the root of the repository; out receives the
// output of ko.
func Install(ctx context.Context, kube kubernetes.Interface, root string, out io.Writer) (*Cluster, error) {
	root, err := filepath.Abs(root)
	if err != nil {
		return nil, err
	}
	ko := exec.CommandContext(ctx, "ko", "apply", "--sbom=none", "-Rf", "test/provider/config")
	ko.Dir, ko.Env = root, append(os.Environ(), "KO_CONFIG_PATH="+filepath.Join(root, "ko.yaml"))
	ko.Stdout, ko.Stderr = out, out
	if err := ko.Run(); err != nil {
		return nil, fmt.Errorf("ko apply: %w", err)
	}
	for _, args := range [][]string{
		{"-n", System, "patch", "configmap", "permission-centre", "--type=merge", "-p", `{"data":{"provider-hosts":"` + Host + `"}}`},
		{"-n", System, "rollout", "restart", "deployment", "permission-centre"},
		{"-n", System, "rollout", "status", "deployment", "permission-centre", "--timeout=120s"},
		{"-n", Namespace, "rollout", "status", "deployment", "provider", "--timeout=120s"},
	} {
		if err := Kubectl(ctx, args...); err != nil {
			return nil, err
		}
	}
	const domain = "." + System + ".svc.cluster.local"
	c := &Cluster{Kube: kube, Centre: "https://permission-centre" + domain, Server: "https://init-action-server" + domain, Double: "http://" + Host}
	ca, err := kube.CoreV1().ConfigMaps(System).Get(ctx, podmeta.BundleName, metav1.GetOptions{})
	if err != nil {
		return nil, err
	}
	trust, transport := &servingcert.Bundle{}, &http.Transport{}
	trust.Update(ca.Data)
	trust.Trust(transport)
	c.http = &http.Client{Transport: transport}
	if c.Token, err = c.TokenOf(ctx, System, "permission-centre-admin", nil, "permission-centre"); err != nil {
		return nil, err
	}
	return c, nil
}

// Kubectl runs kubectl; a non-zero exit code is an error.
func Kubectl(ctx context.Context, args ...string) error {
	_, err := kubectl.Kubectl{}.Output(ctx, "", args...)
	return err
}

// TokenOf returns a token of a ServiceAccount, bound to a pod if one is given.
func (c *Cluster) TokenOf(ctx context.Context, namespace, account string, bound *authenticationv1.BoundObjectReference, audience string) (string, error) {
	request := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: new(int64(3600)), BoundObjectRef: bound}}
	if audience != "" {
		request.Spec.Audiences = []string{audience}
	}
	t, err := c.Kube.CoreV1().ServiceAccounts(namespace).CreateToken(ctx, account, request, metav1.CreateOptions{})
	if err != nil {
		return "", err
	}
	return t.Status.Token, nil
}

// Provider returns the registration of the double.
func Provider() api.Provider {
	p := provider.Registration("double", "http://"+Host, Owner)
	p.RateLimit = api.RateLimit{PerSecond: 200, Burst: 50}
	p.Retry = api.Retry{MaxCalls: 2, BackoffSeconds: 0.2, PollSeconds: 0.2}
	return p
}
