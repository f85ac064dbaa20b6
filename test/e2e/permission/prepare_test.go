//go:build e2e

package permission

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/utils/ptr"

	"github.com/breakwater-dev/breakwater/permission/api"
	"github.com/breakwater-dev/breakwater/test/provider"
)

const (
	providerNamespace = "permission-provider"
	providerHost      = "provider.permission-provider.svc.cluster.local"
	// owner is whom a user is told to ask.
	owner = "team-db"
)

// bed is what the tests share.
var bed struct {
	kube   kubernetes.Interface
	config *rest.Config
	// centre, server and double are base URLs: the test runs on the node.
	centre, server, double string
	// token is one of an admin of the centre.
	token string
}

// prepare installs the provider's double, lets the centre call it, and registers
// what the tests ask for: set "web" is granted, "wrong" denied.
func prepare(ctx context.Context) error {
	config, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(clientcmd.NewDefaultClientConfigLoadingRules(), nil).ClientConfig()
	if err != nil {
		return err
	}
	config.QPS, config.Burst = -1, 0
	config.WarningHandler = rest.NoWarnings{}
	bed.config, bed.kube = config, kubernetes.NewForConfigOrDie(config)
	if err := install(ctx); err != nil {
		return err
	}
	if err := configure(ctx, hurried); err != nil {
		return err
	}
	for _, s := range []struct {
		namespace, name string
		to              *string
	}{{system, "permission-centre", &bed.centre}, {system, "init-action-server", &bed.server}, {providerNamespace, "provider", &bed.double}} {
		service, err := bed.kube.CoreV1().Services(s.namespace).Get(ctx, s.name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		*s.to = "http://" + service.Spec.ClusterIP
	}
	if bed.token, err = tokenOf(ctx, system, "permission-centre-admin", nil, "permission-centre"); err != nil {
		return err
	}
	return register(ctx)
}

// install builds the double and lets the centre call it.
func install(ctx context.Context) error {
	root, err := filepath.Abs("../../..")
	if err != nil {
		return err
	}
	ko := exec.CommandContext(ctx, "ko", "apply", "--sbom=none", "-Rf", "test/provider/config")
	ko.Dir, ko.Env = root, append(os.Environ(), "KO_CONFIG_PATH="+filepath.Join(root, "ko.yaml"))
	if out, err := ko.CombinedOutput(); err != nil {
		return fmt.Errorf("ko apply: %w: %s", err, out)
	}
	for _, args := range [][]string{
		{"-n", system, "patch", "configmap", "permission-centre", "--type=merge", "-p", `{"data":{"provider-hosts":"` + providerHost + `"}}`},
		{"-n", system, "rollout", "restart", "deployment", "permission-centre"},
		{"-n", system, "rollout", "status", "deployment", "permission-centre", "--timeout=120s"},
		{"-n", providerNamespace, "rollout", "status", "deployment", "provider", "--timeout=120s"},
	} {
		if err := command(ctx, args...); err != nil {
			return err
		}
	}
	return nil
}

func register(ctx context.Context) error {
	p := provider.Registered("double", "http://"+providerHost, owner)
	p.RateLimit = api.RateLimit{PerSecond: 200, Burst: 50}
	p.Retry = api.Retry{MaxCalls: 2, BackoffSeconds: 0.2, PollSeconds: 0.2}
	meta := func(name string) api.Meta { return api.Meta{Name: name, Owner: owner} }
	for _, o := range []struct {
		path string
		body any
	}{
		{"providers", p},
		{"permissions", api.Permission{Meta: meta("orders-db"), Provider: "double", Parameters: map[string]string{"name": "orders-db"}}},
		{"permissions", api.Permission{Meta: meta("no-such-table"), Provider: "double", Parameters: map[string]string{"name": "no-such-table", "wrong": "true"}}},
		{"permissionsets", api.PermissionSet{Meta: meta("web"), Permissions: []string{"orders-db"}}},
		{"permissionsets", api.PermissionSet{Meta: meta("wrong"), Permissions: []string{"no-such-table"}}},
	} {
		status, raw, err := ask(ctx, http.MethodPost, bed.centre+"/v1/"+o.path, bed.token, o.body)
		if err != nil || (status != http.StatusCreated && status != http.StatusConflict) {
			return fmt.Errorf("register %+v: %d %s: %w", o.body, status, raw, err)
		}
	}
	return nil
}

// ask sends a request; a connection that is refused is tried again for a while:
// the Service learns of a pod a moment after the Deployment does.
func ask(ctx context.Context, method, url, token string, body any) (int, []byte, error) {
	var last error
	for until := time.Now().Add(20 * time.Second); time.Now().Before(until); {
		status, raw, err := askOnce(ctx, method, url, token, body)
		if err == nil {
			return status, raw, nil
		}
		last = err
		select {
		case <-ctx.Done():
			return 0, nil, ctx.Err()
		case <-time.After(200 * time.Millisecond):
		}
	}
	return 0, nil, last
}

func askOnce(ctx context.Context, method, url, token string, body any) (int, []byte, error) {
	raw, err := json.Marshal(body)
	if err != nil {
		return 0, nil, err
	}
	req, err := http.NewRequestWithContext(ctx, method, url, bytes.NewReader(raw))
	if err != nil {
		return 0, nil, err
	}
	req.Header.Set("Content-Type", "application/json")
	if token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0, nil, err
	}
	defer func() { _ = res.Body.Close() }()
	raw, err = io.ReadAll(res.Body)
	return res.StatusCode, raw, err
}

// tokenOf returns a token of an account, bound to a pod if one is given.
func tokenOf(ctx context.Context, namespace, account string, bound *authenticationv1.BoundObjectReference, audience string) (string, error) {
	request := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: ptr.To(int64(3600)), BoundObjectRef: bound}}
	if audience != "" {
		request.Spec.Audiences = []string{audience}
	}
	t, err := bed.kube.CoreV1().ServiceAccounts(namespace).CreateToken(ctx, account, request, metav1.CreateOptions{})
	if err != nil {
		return "", err
	}
	return t.Status.Token, nil
}
