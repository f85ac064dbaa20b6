//go:build bench

package perf

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"os/exec"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrs "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/breakwater-dev/breakwater/permission/podmeta"
	"github.com/breakwater-dev/breakwater/test/provider/setup"
)

const (
	// starts is the number of pods of each kind.
	starts = 20
	// benchStarts is the namespace of the pods.
	benchStarts = "bench-starts"
	// startLimit is the time limit of one start.
	startLimit = time.Minute
)

// TestPermission measures by how much the wait for permissions delays the start of a pod.
func TestPermission(t *testing.T) {
	b, ctx := newBenchmark(t)
	var output bytes.Buffer
	c, err := setup.Install(ctx, b.kube, "../..", &output)
	if err != nil {
		t.Fatalf("%v: %s", err, output.String())
	}
	if err := c.Register(ctx, setup.WebObjects()...); err != nil {
		t.Fatal(err)
	}
	if err := b.namespace(ctx, benchStarts); err != nil {
		t.Fatal(err)
	}
	if err := setup.Kubectl(ctx, "label", "namespace", benchStarts, podmeta.Label+"="+podmeta.LabelEnabled); err != nil {
		t.Fatal(err)
	}
	m := permissions{Machine: machine()}
	s := b.listenForPods(ctx, t)
	_, first := s.start(ctx, t, "first", "web") // it also pulls images and fills caches
	m.Image = b.imageSize(ctx, t, first)
	alternate := func(kind string, bare, authorized, server *[]time.Duration) {
		for i := range b.count(starts, 5) {
			without, _ := s.start(ctx, t, fmt.Sprintf("bare-%s-%d", kind, i), "")
			with, p := s.start(ctx, t, fmt.Sprintf("%s-%d", kind, i), "web")
			*bare, *authorized, *server = append(*bare, without), append(*authorized, with), append(*server, callTime(t, p))
			t.Logf("%s: bare %s, authorized %s, the call %s", kind, without.Round(time.Millisecond), with.Round(time.Millisecond), callTime(t, p))
		}
	}
	// An interrupted run may have left the setting.
	if err := c.IgnoreAnnouncements(ctx, "../.."); err != nil {
		t.Fatal(err)
	}
	alternate("reported", &m.Bare, &m.Authorized, &m.Server)
	t.Cleanup(func() {
		if err := c.IgnoreAnnouncements(context.Background(), "../.."); err != nil {
			t.Error(err)
		}
	})
	if err := c.UseAnnouncements(ctx, "../.."); err != nil {
		t.Fatal(err)
	}
	alternate("announced", &m.BareAnnounced, &m.Announced, &m.ServerAnnounced)
	if b.Quick {
		b.keep(t, sectionPermission, m.markdown(), m.figures())
		return
	}
	out, err := exec.CommandContext(ctx, "go", "test", "-run", "^$", "-bench", "Applications", "-benchtime", "3x", "../../permission/centre").CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	if m.Rates, err = parseRates(string(out)); err != nil {
		t.Fatal(err)
	}
	b.keep(t, sectionPermission, m.markdown(), m.figures())
}

// starter starts pods. The app container of a pod sends it an HTTP request.
type starter struct {
	*benchmark
	address string
	// running receives the name of each pod whose app container runs.
	running chan string
}

// listenForPods receives the requests of app containers at the address of the
// real node.
func (b *benchmark) listenForPods(ctx context.Context, t *testing.T) *starter {
	t.Helper()
	nodes, err := b.kube.CoreV1().Nodes().List(ctx, metav1.ListOptions{LabelSelector: "type!=kwok"})
	if err != nil || len(nodes.Items) == 0 {
		t.Fatalf("there is no real node: %v", err)
	}
	var host string
	for _, a := range nodes.Items[0].Status.Addresses {
		if a.Type == corev1.NodeInternalIP {
			host = a.Address
		}
	}
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", net.JoinHostPort(host, "0"))
	if err != nil {
		t.Fatal(err)
	}
	s := &starter{b, listener.Addr().String(), make(chan string, 2*starts)}
	server := &http.Server{ReadHeaderTimeout: startLimit, Handler: http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		s.running <- strings.TrimPrefix(r.URL.Path, "/")
	})}
	go func() { _ = server.Serve(listener) }()
	t.Cleanup(func() { _ = server.Close() })
	return s
}

// start starts a pod with permission sets, or a bare one if there are none. It
// returns the duration and the running pod, which is removed on return.
func (s *starter) start(ctx context.Context, t *testing.T, name, sets string) (time.Duration, *corev1.Pod) {
	t.Helper()
	ctx, cancel := context.WithTimeout(ctx, startLimit)
	defer cancel()
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: benchStarts, Annotations: map[string]string{}},
		Spec: corev1.PodSpec{TerminationGracePeriodSeconds: new(int64(1)), Containers: []corev1.Container{{Name: "app", Image: "busybox",
			Command: []string{"/bin/sh", "-c", "wget -q -O - http://" + s.address + "/" + name + "; exec sleep infinity"}}}}}
	if sets == "" {
		p.Spec.InitContainers = []corev1.Container{{Name: "bare", Image: "busybox", Command: []string{"/bin/true"}}}
	} else {
		p.Annotations[podmeta.PermissionSetAnnotation] = sets
	}
	pods := s.kube.CoreV1().Pods(benchStarts)
	// The kubelet checks containers once per second. A random delay distributes
	// the starts evenly between two checks.
	time.Sleep(rand.N(time.Second))
	began := time.Now()
	if _, err := pods.Create(ctx, p, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	select {
	case pod := <-s.running:
		if pod != name {
			t.Fatalf("%s runs instead of %s", pod, name)
		}
	case <-ctx.Done():
		t.Fatalf("%s does not run after %s", name, startLimit)
	}
	took := time.Since(began)
	p, err := pods.Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if err := pods.Delete(ctx, name, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	if err := s.await(ctx, name+" is removed", func(ctx context.Context) (bool, error) {
		_, err := pods.Get(ctx, name, metav1.GetOptions{})
		if apierrs.IsNotFound(err) {
			return true, nil
		}
		return false, err
	}); err != nil {
		t.Fatal(err)
	}
	return took, p
}

// callTime returns the duration of the init container's call, from the message
// of the pod's condition.
func callTime(t *testing.T, p *corev1.Pod) time.Duration {
	t.Helper()
	c := podmeta.Condition(p, podmeta.ConditionAuthorized)
	if c == nil || c.Status != corev1.ConditionTrue {
		t.Fatalf("%s is not authorized: %+v", p.Name, c)
	}
	took, err := time.ParseDuration(c.Message[strings.LastIndex(c.Message, " ")+1:])
	if err != nil {
		t.Fatal(err)
	}
	return took
}

// imageSize returns the compressed size of the image of init-action-client, from
// its manifest in the registry.
func (b *benchmark) imageSize(ctx context.Context, t *testing.T, p *corev1.Pod) (size int64) {
	t.Helper()
	host, rest, _ := strings.Cut(podmeta.InitContainer(p).Image, "/")
	repository, digest, _ := strings.Cut(rest, "@")
	repository, _, _ = strings.Cut(repository, ":")
	for digest != "" {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+host+"/v2/"+repository+"/manifests/"+digest, nil)
		if err != nil {
			t.Fatal(err)
		}
		for _, kind := range []string{"application/vnd.oci.image.index.v1+json", "application/vnd.oci.image.manifest.v1+json",
			"application/vnd.docker.distribution.manifest.list.v2+json", "application/vnd.docker.distribution.manifest.v2+json"} {
			req.Header.Add("Accept", kind)
		}
		res, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		var manifest struct {
			Config struct{ Size int64 }
			Layers []struct{ Size int64 }
			// Manifests is set in an index only.
			Manifests []struct{ Digest string }
		}
		err = json.NewDecoder(res.Body).Decode(&manifest)
		_ = res.Body.Close()
		if err != nil {
			t.Fatal(err)
		}
		size = manifest.Config.Size
		for _, layer := range manifest.Layers {
			size += layer.Size
		}
		if digest = ""; len(manifest.Manifests) > 0 {
			digest = manifest.Manifests[0].Digest
		}
	}
	return size
}
