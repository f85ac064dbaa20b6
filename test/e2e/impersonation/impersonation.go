// Package impersonation tests what a ServiceAccount of Breakwater may write, with the
// permissions that RBAC gives it and the policies that restrict them.
package impersonation

import (
	"context"
	"fmt"
	"os/exec"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
)

// timeout bounds the time until a new policy is enforced.
const timeout = 30 * time.Second

// Expect runs kubectl as a ServiceAccount, as a dry run. The answer must be a denial by a
// policy of Breakwater that contains want, or no error if want is empty.
func Expect(t *testing.T, account, want string, args ...string) {
	t.Helper()
	args = append(args, "--dry-run=server", "--as", user(account))
	expect(t, "kubectl "+strings.Join(args, " "), want, func(ctx context.Context) error {
		out, err := exec.CommandContext(ctx, "kubectl", args...).CombinedOutput()
		if err != nil {
			return fmt.Errorf("%w: %s", err, out)
		}
		return nil
	})
}

// ExpectPatch is as Expect for a patch of a pod. kubectl reads the subresource before, which
// the ServiceAccounts may not.
func ExpectPatch(t *testing.T, account, want, namespace, pod, patch string, subresources ...string) {
	t.Helper()
	config, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(clientcmd.NewDefaultClientConfigLoadingRules(), nil).ClientConfig()
	if err != nil {
		t.Fatal(err)
	}
	config.Impersonate.UserName = user(account)
	kube, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	expect(t, fmt.Sprintf("%s patches pod%v with %s", account, subresources, patch), want, func(ctx context.Context) error {
		_, err := kube.CoreV1().Pods(namespace).Patch(ctx, pod, types.StrategicMergePatchType, []byte(patch),
			metav1.PatchOptions{DryRun: []string{metav1.DryRunAll}}, subresources...)
		return err
	})
}

func user(account string) string {
	return "system:serviceaccount:" + v1alpha1.SystemNamespace + ":" + account
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
