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
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrs "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/breakwater-dev/breakwater/permission/podmeta"
	"github.com/breakwater-dev/breakwater/test/provider/setup"
)

const (
	// starts is how many pods of each kind are started.
	starts = 20
	// benchStarts is their namespace.
	benchStarts = "bench-starts"
	// startLimit bounds one.
	startLimit = time.Minute
)

// TestPermission measures how much later a pod starts that waits for permissions.
func TestPermission(t *testing.T) {
	b, ctx := newBed(t)
	var said bytes.Buffer
	c, err := setup.Install(ctx, b.kube, "../..", &said)
	if err != nil {
		t.Fatalf("%v: %s", err, said.String())
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
	m := permissions{Machine: machine(), Rates: map[string]float64{}}
	s := b.listen(ctx, t)
	for i := range starts + 1 {
		bare, _ := s.start(ctx, t, fmt.Sprintf("bare-%d", i), "")
		authorized, p := s.start(ctx, t, fmt.Sprintf("authorized-%d", i), "web")
		if i == 0 {
			m.Image = b.imageSize(ctx, t, p)
			continue // images and caches are there from now on
		}
		m.Bare, m.Authorized, m.Server = append(m.Bare, bare), append(m.Authorized, authorized), append(m.Server, called(t, p))
		t.Logf("bare %s, authorised %s, the call %s", bare.Round(time.Millisecond), authorized.Round(time.Millisecond), called(t, p))
	}
	out, err := exec.CommandContext(ctx, "go", "test", "-run", "^$", "-bench", "Applications", "-benchtime", "1x", "../../permission/centre").CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	for _, found := range regexp.MustCompile(`(?m)^BenchmarkApplications/(\w+?)(?:-\d+)?\s.*\s([0-9.]+) applications/s`).FindAllStringSubmatch(string(out), -1) {
		if m.Rates[found[1]], err = strconv.ParseFloat(found[2], 64); err != nil {
			t.Fatal(err)
		}
	}
	b.keep(t, sectionPermission, m.markdown())
}

// starter starts pods, whose app containers tell it that they run.
type starter struct {
	*bed
	address string
	runs    chan string
}

// listen waits for app containers at the address of the real node.
func (b *bed) listen(ctx context.Context, t *testing.T) *starter {
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
		s.runs <- strings.TrimPrefix(r.URL.Path, "/")
	})}
	go func() { _ = server.Serve(listener) }()
	t.Cleanup(func() { _ = server.Close() })
	return s
}

// start starts a pod, authorised for the sets or bare, and returns how long that
// took, and the pod as it was then. It is gone afterwards.
func (s *starter) start(ctx context.Context, t *testing.T, name, sets string) (time.Duration, *corev1.Pod) {
	t.Helper()
	ctx, cancel := context.WithTimeout(ctx, startLimit)
	defer cancel()
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: benchStarts, Annotations: map[string]string{}},
		Spec: corev1.PodSpec{TerminationGracePeriodSeconds: ptr.To(int64(1)), Containers: []corev1.Container{{Name: "app", Image: "busybox",
			Command: []string{"/bin/sh", "-c", "wget -q -O - http://" + s.address + "/" + name + "; exec sleep infinity"}}}}}
	if sets == "" {
		p.Spec.InitContainers = []corev1.Container{{Name: "bare", Image: "busybox", Command: []string{"/bin/true"}}}
	} else {
		p.Annotations[podmeta.SetAnnotation] = sets
	}
	pods := s.kube.CoreV1().Pods(benchStarts)
	// The kubelet looks once a second: a pod may come at any time between two looks.
	time.Sleep(rand.N(time.Second))
	began := time.Now()
	if _, err := pods.Create(ctx, p, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	select {
	case who := <-s.runs:
		if who != name {
			t.Fatalf("%s runs instead of %s", who, name)
		}
	case <-ctx.Done():
		t.Fatalf("%s does not run within %s", name, startLimit)
	}
	took := time.Since(began)
	p, err := pods.Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if err := pods.Delete(ctx, name, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	if err := s.await(ctx, name+" is gone", func(ctx context.Context) (bool, error) {
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

// called is how long the call of the init container took, as its condition says.
func called(t *testing.T, p *corev1.Pod) time.Duration {
	t.Helper()
	c := podmeta.Condition(p, podmeta.ConditionAuthorized)
	if c == nil || c.Status != corev1.ConditionTrue {
		t.Fatalf("%s is not authorised: %+v", p.Name, c)
	}
	took, err := time.ParseDuration(c.Message[strings.LastIndex(c.Message, " ")+1:])
	if err != nil {
		t.Fatal(err)
	}
	return took
}

// imageSize asks the registry for the size of the init-action-client, as it is pulled.
func (b *bed) imageSize(ctx context.Context, t *testing.T, p *corev1.Pod) (size int64) {
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
			// Manifests are those of an index.
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
