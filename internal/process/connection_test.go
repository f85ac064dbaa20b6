package process

import (
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// losingProxy forwards connections to an address. The connections that it has when lose is called stay open and
// carry nothing more, as those to a node without power; later ones work.
type losingProxy struct {
	net.Listener
	to string
	// current is closed when its connections are lost.
	current chan chan struct{}
}

func newLosingProxy(t *testing.T, to string) *losingProxy {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	p := &losingProxy{Listener: l, to: to, current: make(chan chan struct{}, 1)}
	p.current <- make(chan struct{})
	go p.serve(t)
	return p
}

func (p *losingProxy) serve(t *testing.T) {
	for {
		client, err := p.Accept()
		if err != nil {
			return
		}
		server, err := net.Dial("tcp", p.to)
		if err != nil {
			_ = client.Close()
			continue
		}
		t.Cleanup(func() { _, _ = client.Close(), server.Close() })
		lost := <-p.current
		p.current <- lost
		for _, pair := range [][2]net.Conn{{client, server}, {server, client}} {
			go func() { _, _ = io.Copy(pair[0], untilLost{pair[1], lost}) }()
		}
	}
}

func (p *losingProxy) lose() {
	close(<-p.current)
	p.current <- make(chan struct{})
}

// untilLost reads from a connection until it is lost; then it blocks.
type untilLost struct {
	io.Reader
	lost <-chan struct{}
}

func (r untilLost) Read(b []byte) (int, error) {
	n, err := r.Reader.Read(b)
	select {
	case <-r.lost:
		select {} // nothing arrives, and nothing says so
	default:
		return n, err
	}
}

func TestALostConnectionToTheAPIServerIsReplacedInSeconds(t *testing.T) {
	t.Parallel()
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"kind":"Namespace","apiVersion":"v1","metadata":{"name":"kube-system"}}`)
	}))
	server.EnableHTTP2 = true
	server.StartTLS()
	t.Cleanup(server.Close)
	proxy := newLosingProxy(t, server.Listener.Addr().String())

	kubeconfig := filepath.Join(t.TempDir(), "kubeconfig")
	config := clientcmdapi.NewConfig()
	config.Clusters["c"] = &clientcmdapi.Cluster{Server: "https://" + proxy.Addr().String(), InsecureSkipTLSVerify: true}
	config.Contexts["c"] = &clientcmdapi.Context{Cluster: "c"}
	config.CurrentContext = "c"
	if err := clientcmd.WriteToFile(*config, kubeconfig); err != nil {
		t.Fatal(err)
	}
	clients, err := NewClients(kubeconfig, "test")
	if err != nil {
		t.Fatal(err)
	}
	get := func() error {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err := clients.Kube.CoreV1().Namespaces().Get(ctx, "kube-system", metav1.GetOptions{})
		return err
	}
	if err := get(); err != nil {
		t.Fatal(err)
	}
	proxy.lose()
	began := time.Now()
	for err := get(); err != nil; err = get() {
		if time.Since(began) > 20*time.Second {
			t.Fatalf("no request succeeded within 20 s (%s): %v", os.Getenv("HTTP2_READ_IDLE_TIMEOUT_SECONDS"), err)
		}
	}
	t.Logf("requests succeed again after %s", time.Since(began).Round(100*time.Millisecond))
}
