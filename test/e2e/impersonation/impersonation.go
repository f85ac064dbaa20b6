// Package impersonation tests what a ServiceAccount of Breakwater may write, with a token of the
// ServiceAccount, the rights that RBAC gives it and the policies that restrict them.
package impersonation

import (
	"context"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
)

// timeout bounds the time until a new policy is enforced.
const timeout = 30 * time.Second

// Expect runs kubectl with a token of a ServiceAccount, as a dry run. The answer must be a denial
// by a policy of Breakwater that contains want, or no error if want is empty.
func Expect(t *testing.T, account, want string, args ...string) {
	t.Helper()
	expectKubectl(t, want, "", append(args, "--kubeconfig", kubeconfig(t, withToken(t, account))))
}

// ExpectBy is like Expect, for a user and with an input for kubectl.
func ExpectBy(t *testing.T, by, want, input string, args ...string) {
	t.Helper()
	expectKubectl(t, want, input, append(args, "--as", by))
}

func expectKubectl(t *testing.T, want, input string, args []string) {
	t.Helper()
	args = append(args, "--dry-run=server")
	expect(t, "kubectl "+strings.Join(args, " "), want, func(ctx context.Context) error {
		command := exec.CommandContext(ctx, "kubectl", args...)
		command.Stdin = strings.NewReader(input)
		if out, err := command.CombinedOutput(); err != nil {
			return fmt.Errorf("%w: %s", err, out)
		}
		return nil
	})
}

// ExpectPatch is like Expect, for a patch of a pod. It does not use kubectl, which first reads
// the subresource: the ServiceAccounts may not read it.
func ExpectPatch(t *testing.T, account, want, namespace, pod, patch string, subresources ...string) {
	t.Helper()
	expectPatch(t, account, withToken(t, account), want, namespace, pod, patch, subresources)
}

// ExpectPatchBy is like ExpectPatch, for a user.
func ExpectPatchBy(t *testing.T, by, want, namespace, pod, patch string, subresources ...string) {
	t.Helper()
	expectPatch(t, by, impersonated(t, by), want, namespace, pod, patch, subresources)
}

// ExpectCallBy is like ExpectBy, for a call of the client.
func ExpectCallBy(t *testing.T, by, want, what string, call func(context.Context, kubernetes.Interface) error) {
	t.Helper()
	kube, err := kubernetes.NewForConfig(impersonated(t, by))
	if err != nil {
		t.Fatal(err)
	}
	expect(t, by+" "+what, want, func(ctx context.Context) error { return call(ctx, kube) })
}

func expectPatch(t *testing.T, by string, config *rest.Config, want, namespace, pod, patch string, subresources []string) {
	t.Helper()
	kube, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	expect(t, fmt.Sprintf("%s patches pod%v with %s", by, subresources, patch), want, func(ctx context.Context) error {
		_, err := kube.CoreV1().Pods(namespace).Patch(ctx, pod, types.StrategicMergePatchType, []byte(patch), dryRun, subresources...)
		return err
	})
}

// ExpectStatusPatch is like Expect, for a merge patch of the status of an object of
// Breakwater.
func ExpectStatusPatch(t *testing.T, account, want, resource, namespace, name, patch string) {
	t.Helper()
	client, err := dynamic.NewForConfig(withToken(t, account))
	if err != nil {
		t.Fatal(err)
	}
	expect(t, fmt.Sprintf("%s patches %s with %s", account, resource, patch), want, func(ctx context.Context) error {
		_, err := client.Resource(v1alpha1.SchemeGroupVersion.WithResource(resource)).Namespace(namespace).
			Patch(ctx, name, types.MergePatchType, []byte(patch), dryRun, "status")
		return err
	})
}

// ExpectConfigurationPatch is like Expect, for a patch of a webhook configuration. It does not
// use kubectl, which first reads the object: the ServiceAccounts may only list them.
func ExpectConfigurationPatch(t *testing.T, account, want, resource, name string, kind types.PatchType, patch []byte) {
	t.Helper()
	client, err := dynamic.NewForConfig(withToken(t, account))
	if err != nil {
		t.Fatal(err)
	}
	options := dryRun
	if kind == types.ApplyPatchType {
		options.FieldManager, options.Force = account, new(true)
	}
	expect(t, fmt.Sprintf("%s patches %s/%s with %s", account, resource, name, patch), want, func(ctx context.Context) error {
		_, err := client.Resource(admissionregistrationv1.SchemeGroupVersion.WithResource(resource)).Patch(ctx, name, kind, patch, options)
		return err
	})
}

// dryRun writes nothing.
var dryRun = metav1.PatchOptions{DryRun: []string{metav1.DryRunAll}}

func impersonated(t *testing.T, by string) *rest.Config {
	t.Helper()
	config := admin(t)
	config.Impersonate.UserName = by
	return config
}

// withTokens has the results of withToken by ServiceAccount; a token lasts an hour.
var withTokens = struct {
	sync.Mutex
	of map[string]*rest.Config
}{of: map[string]*rest.Config{}}

// withToken returns a configuration with a token of a ServiceAccount, and no other credential.
func withToken(t *testing.T, account string) *rest.Config {
	t.Helper()
	withTokens.Lock()
	defer withTokens.Unlock()
	if config, known := withTokens.of[account]; known {
		return config
	}
	kube, err := kubernetes.NewForConfig(admin(t))
	if err != nil {
		t.Fatal(err)
	}
	token, err := kube.CoreV1().ServiceAccounts(v1alpha1.SystemNamespace).CreateToken(t.Context(), account, &authenticationv1.TokenRequest{}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	config := rest.AnonymousClientConfig(admin(t))
	config.BearerToken = token.Status.Token
	withTokens.of[account] = config
	return config
}

// admin returns the configuration of the tests.
func admin(t *testing.T) *rest.Config {
	t.Helper()
	config, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(clientcmd.NewDefaultClientConfigLoadingRules(), nil).ClientConfig()
	if err != nil {
		t.Fatal(err)
	}
	config.QPS = -1 // a repeated request does not wait
	return config
}

// kubeconfig writes a configuration with a token to a file.
func kubeconfig(t *testing.T, of *rest.Config) string {
	t.Helper()
	config := clientcmdapi.NewConfig()
	config.Clusters["c"] = &clientcmdapi.Cluster{Server: of.Host, CertificateAuthority: of.CAFile, CertificateAuthorityData: of.CAData}
	config.AuthInfos["u"] = &clientcmdapi.AuthInfo{Token: of.BearerToken}
	config.Contexts["x"] = &clientcmdapi.Context{Cluster: "c", AuthInfo: "u"}
	config.CurrentContext = "x"
	file := filepath.Join(t.TempDir(), "kubeconfig")
	if err := clientcmd.WriteToFile(*config, file); err != nil {
		t.Fatal(err)
	}
	return file
}

// expect repeats a request until it has the answer.
func expect(t *testing.T, what, want string, send func(context.Context) error) {
	t.Helper()
	var last error
	err := wait.PollUntilContextTimeout(t.Context(), 250*time.Millisecond, timeout, true, func(ctx context.Context) (bool, error) {
		answer := send(ctx)
		denied := answer != nil && strings.Contains(answer.Error(), "ValidatingAdmissionPolicy 'breakwater-") && strings.Contains(answer.Error(), want)
		if ctx.Err() == nil {
			last = answer
		}
		return want == "" && answer == nil || want != "" && denied, nil
	})
	if err != nil {
		t.Errorf("%s: answer %v; want %q", what, last, want)
	}
}
