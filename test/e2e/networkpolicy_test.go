//go:build e2e

package e2e

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrs "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/breakwater-dev/breakwater/test/networkpolicy"
)

// connection is a port of a component, and who may connect to it.
type connection struct {
	target
	networkpolicy.Probe
}

// another is networkpolicy.Another.
func another() target { return target{Namespace: system, Selector: testLabel + "=another"} }

// connections are the ports of the components of the manifests.
func connections(t *testing.T) (all []connection, functions []string) {
	t.Helper()
	components, _, err := networkpolicy.Components(filepath.Join("..", "..", "config"))
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range append(components, networkpolicy.Another) {
		probes, err := networkpolicy.Probes(c)
		if err != nil {
			t.Fatal(err)
		}
		of := component(c.Name)
		switch {
		case c.Function:
			of, functions = function(c.Name), append(functions, c.Name)
		case c == networkpolicy.Another:
			of = another()
		}
		for _, probe := range probes {
			all = append(all, connection{of, probe})
		}
	}
	return all, functions
}

// acceptedConnections: the other specs show that the components reach each other, because TestMain
// enforces the NetworkPolicies. test/networkpolicy checks that each line of each policy has its probes.
func acceptedConnections(t *testing.T, e *environment) {
	all, functions := connections(t)
	e.runPod(t, system, map[string]string{testLabel: "another"}, "trap exit TERM; while true; do sleep 1; done")
	e.keepAwake(t, functions)
	const attempts = 4
	for range attempts {
		pods, targets := e.targets(t, all)
		got, unknown := e.connectFrom(t, all, targets)
		if replaced := e.replaced(t, pods); len(replaced) > 0 {
			t.Logf("connecting again: pods were replaced, by tests of other packages or by Knative: %v", replaced)
			continue
		}
		for _, line := range unknown {
			t.Error(line)
		}
		for i, c := range all {
			for place, connected := range got {
				if want := slices.Contains(c.From, place); connected[targets[i]] != want {
					t.Errorf("%s connects to port %d of %v: %t, want %t", place, c.Port, c.target, connected[targets[i]], want)
				}
			}
		}
		return
	}
	t.Fatalf("pods were replaced during each of %d attempts", attempts)
}

// connectFrom connects from each place to all targets at once, and returns what was accepted, and
// the answers that mean neither, for example of the address of a pod that was replaced.
func (e *environment) connectFrom(t *testing.T, all []connection, targets []string) (got map[networkpolicy.Place]map[string]bool, unknown []string) {
	t.Helper()
	own := map[string]string{"app.kubernetes.io/part-of": "breakwater"}
	places := map[networkpolicy.Place]struct {
		namespace string
		labels    map[string]string
	}{
		// The label of Breakwater counts in its own namespace only.
		networkpolicy.Elsewhere: {e.notOptedInNamespace(t).name, own},
		networkpolicy.Knative:   {"knative-serving", nil},
		networkpolicy.Beside:    {system, nil},
		networkpolicy.Own:       {system, own},
	}
	pods := map[networkpolicy.Place]*corev1.Pod{}
	for place, from := range places {
		var open []string
		for i, c := range all {
			if slices.Contains(c.From, place) {
				open = append(open, targets[i])
			}
		}
		pods[place] = e.runPod(t, from.namespace, from.labels, connectScript(targets, open))
	}
	got = map[networkpolicy.Place]map[string]bool{}
	for place, pod := range pods {
		connected, lines := e.connected(t, pod, len(targets))
		got[place], unknown = connected, append(unknown, lines...)
	}
	return got, unknown
}

// keepAwake sends requests to functions until the test ends, so that Knative keeps a pod of each.
func (e *environment) keepAwake(t *testing.T, functions []string) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	var all sync.WaitGroup
	t.Cleanup(func() { cancel(); all.Wait() })
	for _, name := range functions {
		all.Go(func() {
			for ctx.Err() == nil {
				request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+name+"."+system+".svc.cluster.local/", http.NoBody)
				if err != nil {
					t.Error(err)
					return
				}
				if response, err := http.DefaultClient.Do(request); err == nil {
					_ = response.Body.Close() // any answer
				}
				select {
				case <-ctx.Done():
				case <-time.After(awakeInterval):
				}
			}
		})
	}
}

// awakeInterval is less than the time after which Knative scales to zero.
const awakeInterval = 5 * time.Second

// targets returns a pod and an address for each of connections. The node is not restricted:
// it can connect to each address, except where nothing listens.
func (e *environment) targets(t *testing.T, all []connection) (pods []corev1.Pod, targets []string) {
	t.Helper()
	await(t, rolloutTimeout, "each component listens", func(ctx context.Context) error {
		pods, targets = nil, nil
		for _, c := range all {
			candidates, err := e.pods(ctx, c.target)
			if err != nil {
				return err
			}
			i := slices.IndexFunc(candidates, func(p corev1.Pod) bool { return p.DeletionTimestamp == nil && p.Status.PodIP != "" })
			if i < 0 {
				return fmt.Errorf("%v has no pod", c.target)
			}
			address := net.JoinHostPort(candidates[i].Status.PodIP, strconv.Itoa(int(c.Port)))
			connected, err := (&net.Dialer{Timeout: 5 * time.Second}).DialContext(ctx, "tcp", address)
			if err == nil {
				_ = connected.Close()
			}
			if c.Silent == (err == nil) || c.Silent && !errors.Is(err, syscall.ECONNREFUSED) {
				return fmt.Errorf("port %d of %v: want that it listens: %t; error %w", c.Port, c.target, !c.Silent, err)
			}
			pods, targets = append(pods, candidates[i]), append(targets, address)
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

// connectScript connects to targets and prints the result of each. It waits up to a minute until
// all of open accept connections, because policies follow the address of a new pod with a delay. A
// target that was replaced meanwhile does not accept any.
// The policies drop what they do not accept; a pod refuses what it does not listen to.
func connectScript(targets, open []string) string {
	return fmt.Sprintf(`
connects() { answer=$(nc -w 3 ${1%%:*} ${1##*:} </dev/null 2>&1 >/dev/null); case "$answer" in
  *"timed out"*) return 1;; ""|*refused*) return 0;; *) echo "$1: unknown answer: $answer" >&2; return 1;; esac; }
end=$(($(date +%%s)+60)); for t in %s; do until connects $t || [ $(date +%%s) -ge $end ]; do sleep 2; done; done
for t in %s; do if connects $t; then echo $t open; else echo $t closed; fi & done; wait
`, strings.Join(open, " "), strings.Join(targets, " "))
}

// runPod runs a script in a pod until the test ends.
func (e *environment) runPod(t *testing.T, namespace string, labels map[string]string, script string) *corev1.Pod {
	t.Helper()
	no, nobody, at := false, int64(65534), int64(0)
	pods := e.kube.CoreV1().Pods(namespace)
	pod, err := pods.Create(t.Context(), &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{GenerateName: "connect-", Labels: labels},
		Spec: corev1.PodSpec{
			RestartPolicy: corev1.RestartPolicyNever, AutomountServiceAccountToken: &no,
			SecurityContext: &corev1.PodSecurityContext{
				RunAsUser: &nobody, RunAsNonRoot: new(true), SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault},
			},
			Containers: []corev1.Container{{
				Name: "connect", Image: "busybox", Command: []string{"/bin/sh", "-c", script},
				SecurityContext: &corev1.SecurityContext{AllowPrivilegeEscalation: &no, Capabilities: &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}}},
			}},
		},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := pods.Delete(context.Background(), pod.Name, metav1.DeleteOptions{GracePeriodSeconds: &at}); err != nil && !apierrs.IsNotFound(err) {
			t.Error(err)
		}
	})
	return pod
}

// connected waits until a pod with connectScript has ended, and returns to which targets it
// could connect, and its other lines.
func (e *environment) connected(t *testing.T, pod *corev1.Pod, targets int) (result map[string]bool, others []string) {
	t.Helper()
	pods := e.kube.CoreV1().Pods(pod.Namespace)
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
	result = map[string]bool{}
	for line := range strings.Lines(string(log)) {
		target, state, _ := strings.Cut(strings.TrimSpace(line), " ")
		switch state {
		case "open", "closed":
			result[target] = state == "open"
		default:
			others = append(others, strings.TrimSpace(line))
		}
	}
	if len(result) != targets {
		t.Fatalf("%d of %d results:\n%s", len(result), targets, log)
	}
	return result, others
}
