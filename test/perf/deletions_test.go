//go:build bench

package perf

import (
	"context"
	"fmt"
	"net"
	"sync"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrs "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

// deleters returns that many clients, each with its own connection. Their user
// may delete pods and is not in the group system:masters, because API Priority
// and Fairness exempts that group.
func (b *benchmark) deleters(ctx context.Context, namespace string, many int) ([]kubernetes.Interface, error) {
	const user = "deleter"
	if _, err := b.kube.CoreV1().ServiceAccounts(namespace).Create(ctx,
		&corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: user}}, metav1.CreateOptions{}); err != nil && !apierrs.IsAlreadyExists(err) {
		return nil, err
	}
	if _, err := b.kube.RbacV1().Roles(namespace).Create(ctx, &rbacv1.Role{
		ObjectMeta: metav1.ObjectMeta{Name: user},
		Rules:      []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"pods"}, Verbs: []string{"get", "delete"}}},
	}, metav1.CreateOptions{}); err != nil && !apierrs.IsAlreadyExists(err) {
		return nil, err
	}
	if _, err := b.kube.RbacV1().RoleBindings(namespace).Create(ctx, &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: user},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: user},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Name: user, Namespace: namespace}},
	}, metav1.CreateOptions{}); err != nil && !apierrs.IsAlreadyExists(err) {
		return nil, err
	}
	token, err := b.kube.CoreV1().ServiceAccounts(namespace).CreateToken(ctx, user,
		&authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: new(int64(3600))}}, metav1.CreateOptions{})
	if err != nil {
		return nil, err
	}
	clients := make([]kubernetes.Interface, many)
	for i := range clients {
		config := rest.AnonymousClientConfig(b.config)
		config.BearerToken, config.QPS = token.Status.Token, -1
		config.WarningHandler = rest.NoWarnings{}
		// Each client has its own dialer, so that clients do not share a connection.
		config.Dial = (&net.Dialer{Timeout: 10 * time.Second}).DialContext
		if clients[i], err = kubernetes.NewForConfig(config); err != nil {
			return nil, err
		}
	}
	return clients, b.connect(ctx, namespace, clients)
}

// connect opens the connection of each client. The first requests may be
// denied until the API server has the user's role.
func (b *benchmark) connect(ctx context.Context, namespace string, clients []kubernetes.Interface) error {
	errs := make([]error, len(clients))
	var wg sync.WaitGroup
	for i, c := range clients {
		wg.Go(func() {
			errs[i] = b.await(ctx, "the role of the deleting user takes effect", func(ctx context.Context) (bool, error) {
				_, err := c.CoreV1().Pods(namespace).Get(ctx, "none", metav1.GetOptions{})
				return apierrs.IsNotFound(err), nil
			})
		})
	}
	wg.Wait()
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// podLabel is a label whose value is the name of the pod.
const podLabel = "pod"

// pods creates simulated pods without a controller and waits until they are
// Ready. Each pod name is used once, because kwok may remove an earlier pod late.
func (b *benchmark) pods(ctx context.Context, namespace string, many int) ([]string, error) {
	b.podRuns++
	names := make([]string, many)
	errs := make(chan error, many)
	semaphore := make(chan struct{}, 20)
	for i := range many {
		names[i] = fmt.Sprintf("web-%d-%04d", b.podRuns, i)
		semaphore <- struct{}{}
		go func() {
			defer func() { <-semaphore }()
			_, err := b.kube.CoreV1().Pods(namespace).Create(ctx, &corev1.Pod{
				ObjectMeta: metav1.ObjectMeta{Name: names[i], Labels: map[string]string{"app": name, podLabel: names[i]}},
				Spec: corev1.PodSpec{
					NodeSelector: map[string]string{"type": "kwok"},
					Tolerations:  []corev1.Toleration{{Key: "kwok.x-k8s.io/node", Operator: corev1.TolerationOpExists}},
					Containers:   []corev1.Container{{Name: "sleep", Image: "busybox"}},
					// Removing a pod costs CPU too, at any time within its grace period. With
					// the default of 30 s, slow runs included removals and fast ones did not.
					TerminationGracePeriodSeconds: new(int64(1)),
				},
			}, metav1.CreateOptions{})
			errs <- err
		}()
	}
	for range many {
		if err := <-errs; err != nil {
			return nil, err
		}
	}
	return names, b.await(ctx, "the pods are Ready", func(ctx context.Context) (bool, error) {
		list, err := b.kube.CoreV1().Pods(namespace).List(ctx, metav1.ListOptions{ResourceVersion: "0"})
		if err != nil {
			return false, err
		}
		ready := 0
		for i := range list.Items {
			for _, c := range list.Items[i].Status.Conditions {
				if c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue {
					ready++
				}
			}
		}
		return ready == many, nil
	})
}

// removePods deletes the remaining pods and waits until they are removed.
func (b *benchmark) removePods(ctx context.Context, namespace string) error {
	now := metav1.DeleteOptions{GracePeriodSeconds: new(int64)}
	return b.await(ctx, "the pods are removed", func(ctx context.Context) (bool, error) {
		if err := b.kube.CoreV1().Pods(namespace).DeleteCollection(ctx, now, metav1.ListOptions{}); err != nil {
			return false, err
		}
		list, err := b.kube.CoreV1().Pods(namespace).List(ctx, metav1.ListOptions{})
		return err == nil && len(list.Items) == 0, err
	})
}

// deleteSequentially deletes the pods with all clients. Each client waits for an
// answer before its next request (closed loop).
func deleteSequentially(ctx context.Context, clients []kubernetes.Interface, namespace string, names []string) *deletions {
	jobs := make(chan string, len(names))
	for _, n := range names {
		jobs <- n
	}
	close(jobs)
	d := &deletions{}
	var wg sync.WaitGroup
	began := time.Now()
	for _, c := range clients {
		wg.Go(func() {
			for n := range jobs {
				at := time.Now()
				d.count(c.CoreV1().Pods(namespace).Delete(ctx, n, metav1.DeleteOptions{}), time.Since(at))
			}
		})
	}
	wg.Wait()
	d.Took = time.Since(began)
	return d
}

// deleteAtRate deletes that many pods per second, independently of the answers
// (open loop). The latency of a request includes its wait for a free client.
func deleteAtRate(ctx context.Context, clients []kubernetes.Interface, namespace string, names []string, rate int) *deletions {
	type job struct {
		name string
		due  time.Time
	}
	jobs := make(chan job, len(names))
	d := &deletions{}
	var wg sync.WaitGroup
	for _, c := range clients {
		wg.Go(func() {
			for j := range jobs {
				d.count(c.CoreV1().Pods(namespace).Delete(ctx, j.name, metav1.DeleteOptions{}), time.Since(j.due))
			}
		})
	}
	began := time.Now()
	for i, n := range names {
		due := began.Add(time.Duration(i) * time.Second / time.Duration(rate))
		time.Sleep(time.Until(due)) // the pace is the measurement
		jobs <- job{n, due}
	}
	close(jobs)
	wg.Wait()
	d.Took = time.Since(began)
	return d
}
