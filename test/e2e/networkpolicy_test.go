//go:build e2e

package e2e

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrs "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
)

// connection is a port of a component, and who may connect to it.
type connection struct {
	component target
	port      int
	// Own are pods of Breakwater; strangers are pods of any other namespace.
	strangers, own bool
}

// connections are the TCP ports on which the components listen. Port 8080 of a controller or
// webhook is for probes of the kubelet, which policies do not restrict.
func connections() []connection {
	all := []connection{
		{function("callback"), 8012, true, true},   // queue-proxy
		{function("callback"), 9090, false, false}, // queue-proxy, for the autoscaler
		{function("callback"), 9095, true, true},   // metrics
		{function("callback"), 8080, false, false}, // behind the queue-proxy
		{component("openapi"), 8443, true, true},
		{component("init-action-server"), 8443, true, true},
		{component("permission-centre"), 8443, false, true},
	}
	for _, name := range []string{"webhook", "protection-webhook", "permission-webhook"} {
		all = append(all, connection{component(name), 8443, true, true}, connection{component(name), 8080, false, false})
	}
	for _, name := range []string{"controller", "protection-controller", "permission-controller"} {
		all = append(all, connection{component(name), 8080, false, false})
	}
	for _, name := range []string{"webhook", "openapi", "protection-webhook", "permission-webhook", "controller", "protection-controller",
		"permission-controller", "init-action-server", "permission-centre"} {
		all = append(all, connection{component(name), 9090, true, true}) // metrics
	}
	return all
}

// The other tests of this package show that the components reach each other: TestMain enforces
// the NetworkPolicies.
func TestEachComponentAcceptsOnlyTheConnectionsThatItsPolicyNames(t *testing.T) {
	e := newEnvironment(t)
	const attempts = 4
	for range attempts {
		pods, targets := e.targets(t)
		open := func(of func(connection) bool) (open []string) {
			for i, c := range connections() {
				if of(c) {
					open = append(open, targets[i])
				}
			}
			return open
		}
		stranger := e.connect(t, e.notOptedInNamespace(t).name, nil, targets, open(func(c connection) bool { return c.strangers }))
		own := e.connect(t, v1alpha1.SystemNamespace, map[string]string{"app.kubernetes.io/part-of": "breakwater"}, targets, open(func(c connection) bool { return c.own }))
		if replaced := e.replaced(t, pods); len(replaced) > 0 {
			t.Logf("connecting again: tests of other packages replaced %v", replaced)
			continue
		}
		for i, c := range connections() {
			if stranger[targets[i]] != c.strangers {
				t.Errorf("a pod of another namespace connects to port %d of %v: %t, want %t", c.port, c.component, stranger[targets[i]], c.strangers)
			}
			if own[targets[i]] != c.own {
				t.Errorf("a pod of Breakwater connects to port %d of %v: %t, want %t", c.port, c.component, own[targets[i]], c.own)
			}
		}
		return
	}
	t.Fatalf("pods were replaced during each of %d attempts", attempts)
}

// targets returns a pod and an address for each of connections. The node is not restricted,
// and can connect to each address.
func (e *environment) targets(t *testing.T) (pods []corev1.Pod, targets []string) {
	t.Helper()
	await(t, rolloutTimeout, "each component listens", func(ctx context.Context) error {
		pods, targets = nil, nil
		for _, c := range connections() {
			all, err := e.pods(ctx, c.component)
			if err != nil {
				return err
			}
			i := slices.IndexFunc(all, func(p corev1.Pod) bool { return p.DeletionTimestamp == nil && p.Status.PodIP != "" })
			if i < 0 {
				return fmt.Errorf("%v has no pod", c.component)
			}
			address := net.JoinHostPort(all[i].Status.PodIP, strconv.Itoa(c.port))
			connected, err := (&net.Dialer{Timeout: 5 * time.Second}).DialContext(ctx, "tcp", address)
			if err != nil {
				return fmt.Errorf("%v does not listen: %w", c.component, err)
			}
			_ = connected.Close()
			pods, targets = append(pods, all[i]), append(targets, address)
		}
		return nil
	})
	return pods, targets
}

// replaced returns the names of those pods that were deleted or restarted.
func (e *environment) replaced(t *testing.T, pods []corev1.Pod) (names []string) {
	t.Helper()
	for i := range pods {
		p := &pods[i]
		now, err := e.kube.CoreV1().Pods(p.Namespace).Get(t.Context(), p.Name, metav1.GetOptions{})
		if err != nil && !apierrs.IsNotFound(err) {
			t.Fatal(err)
		}
		if err != nil || now.UID != p.UID || now.DeletionTimestamp != nil || restarts(now) != restarts(p) {
			names = append(names, p.Name)
		}
	}
	return slices.Compact(names)
}

func restarts(p *corev1.Pod) (n int32) {
	for _, c := range p.Status.ContainerStatuses {
		n += c.RestartCount
	}
	return n
}

// connect runs a pod that connects to targets, and returns to which it could. The pod waits
// up to a minute until all of open can be connected to, because policies follow the address
// of a new pod with a delay.
func (e *environment) connect(t *testing.T, namespace string, labels map[string]string, targets, open []string) map[string]bool {
	t.Helper()
	var script strings.Builder
	script.WriteString("connects() { nc -w 2 ${1%:*} ${1##*:} </dev/null >/dev/null 2>&1; }\n")
	_, _ = fmt.Fprintf(&script, "n=0; for t in %s; do until connects $t || [ $n = 30 ]; do n=$((n+1)); sleep 2; done; done\n", strings.Join(open, " "))
	_, _ = fmt.Fprintf(&script, "for t in %s; do if connects $t; then echo $t open; else echo $t closed; fi & done; wait\n", strings.Join(targets, " "))
	no, nobody := false, int64(65534)
	pods := e.kube.CoreV1().Pods(namespace)
	pod, err := pods.Create(t.Context(), &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{GenerateName: "connect-", Labels: labels},
		Spec: corev1.PodSpec{
			RestartPolicy: corev1.RestartPolicyNever, AutomountServiceAccountToken: &no,
			SecurityContext: &corev1.PodSecurityContext{
				RunAsUser: &nobody, RunAsNonRoot: new(true), SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault},
			},
			Containers: []corev1.Container{{
				Name: "connect", Image: "busybox", Command: []string{"/bin/sh", "-c", script.String()},
				SecurityContext: &corev1.SecurityContext{AllowPrivilegeEscalation: &no, Capabilities: &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}}},
			}},
		},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := pods.Delete(context.Background(), pod.Name, metav1.DeleteOptions{}); err != nil && !apierrs.IsNotFound(err) {
			t.Error(err)
		}
	})
	await(t, rolloutTimeout, "the pod has connected", func(ctx context.Context) error {
		p, err := pods.Get(ctx, pod.Name, metav1.GetOptions{})
		if err == nil && p.Status.Phase != corev1.PodSucceeded {
			err = errors.New("the pod is " + string(p.Status.Phase))
		}
		return err
	})
	log, err := pods.GetLogs(pod.Name, &corev1.PodLogOptions{}).DoRaw(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	result := map[string]bool{}
	for line := range strings.Lines(string(log)) {
		if target, state, ok := strings.Cut(strings.TrimSpace(line), " "); ok {
			result[target] = state == "open"
		}
	}
	if len(result) != len(targets) {
		t.Fatalf("%d of %d results:\n%s", len(result), len(targets), log)
	}
	return result
}
