package podlist_test

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"

	"github.com/breakwater-dev/breakwater/internal/budget"
	"github.com/breakwater-dev/breakwater/internal/pagedlist"
	"github.com/breakwater-dev/breakwater/internal/podlist"
)

// server is an API server with pods in each namespace.
type server struct {
	pods []corev1.Pod
	// expired makes each page but the first expire.
	expired bool
	mu      sync.Mutex
	// busy are the lists in progress by namespace, and mostBusy is the most of one namespace.
	busy     map[string]int
	mostBusy int
	// mostBytes is the most that the client read of an answer.
	mostBytes int
}

func (s *server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	namespace := strings.Split(r.URL.Path, "/")[4]
	from, _ := strconv.Atoi(r.URL.Query().Get("continue"))
	limit, _ := strconv.Atoi(r.URL.Query().Get("limit"))
	if s.expired && from > 0 {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusGone)
		_ = json.NewEncoder(w).Encode(metav1.Status{TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}, Status: "Failure", Reason: metav1.StatusReasonExpired, Code: http.StatusGone})
		return
	}
	to := min(from+cmp.Or(limit, len(s.pods)), len(s.pods))
	page := corev1.PodList{TypeMeta: metav1.TypeMeta{Kind: "PodList", APIVersion: "v1"}, ListMeta: metav1.ListMeta{ResourceVersion: "7"}, Items: s.pods[from:to]}
	if to < len(s.pods) {
		page.Continue = strconv.Itoa(to)
	}
	s.mu.Lock()
	s.busy[namespace]++
	s.mostBusy = max(s.mostBusy, s.busy[namespace])
	s.mu.Unlock()
	time.Sleep(time.Millisecond) // so long that lists at the same time would overlap; nothing waits for it
	s.mu.Lock()
	s.busy[namespace]--
	s.mu.Unlock()
	w.Header().Set("Content-Type", runtime.ContentTypeProtobuf)
	_ = protobuf.NewSerializer(scheme.Scheme, scheme.Scheme).Encode(&page, w)
}

// start returns a Lister that reads from the server.
func (s *server) start(t *testing.T) *podlist.Lister {
	t.Helper()
	s.busy = map[string]int{}
	api := httptest.NewServer(s)
	t.Cleanup(api.Close)
	config := &rest.Config{Host: api.URL, QPS: -1, ContentConfig: rest.ContentConfig{ContentType: runtime.ContentTypeProtobuf}, WrapTransport: func(next http.RoundTripper) http.RoundTripper { return counted{next, s} }}
	pagedlist.LimitPages(config)
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	return podlist.New(client.CoreV1(), pagedlist.MaxKept, budget.TrimPod)
}

// counted counts the bytes that the client reads of each answer.
type counted struct {
	http.RoundTripper
	server *server
}

func (c counted) RoundTrip(r *http.Request) (*http.Response, error) {
	response, err := c.RoundTripper.RoundTrip(r)
	if err == nil {
		response.Body = &countedBody{response.Body, 0, c.server}
	}
	return response, err
}

type countedBody struct {
	io.ReadCloser
	bytes  int
	server *server
}

func (b *countedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	b.bytes += n
	b.server.mu.Lock()
	b.server.mostBytes = max(b.server.mostBytes, b.bytes)
	b.server.mu.Unlock()
	return n, err
}

func pods(n int, change func(*corev1.Pod)) []corev1.Pod {
	all := make([]corev1.Pod, n)
	for i := range all {
		all[i].Name = fmt.Sprintf("pod-%d", i)
		change(&all[i])
	}
	return all
}

// Role edit suffices for many pods of 1.5 MiB: whole lists would exceed the memory of the process.
func TestLargePodsAreListedInSmallPagesAndOneListOfANamespaceAtATime(t *testing.T) {
	s := &server{pods: pods(70, func(p *corev1.Pod) {
		p.Spec.Containers = []corev1.Container{{Name: "a", Env: []corev1.EnvVar{{Name: "A", Value: strings.Repeat("x", 100<<10)}}}}
	})}
	lister := s.start(t)
	var lists sync.WaitGroup
	for i := range 6 {
		lists.Go(func() {
			got, version, err := lister.List(t.Context(), fmt.Sprint("ns-", i%2), "app=x")
			if err != nil || len(got) != 70 || version != "7" {
				t.Errorf("%d pods of version %q, %v", len(got), version, err)
				return
			}
			if slices.ContainsFunc(got, func(p *corev1.Pod) bool { return p.Size() > 1<<10 }) {
				t.Errorf("a pod has %d bytes", got[0].Size())
			}
		})
	}
	lists.Wait()
	if s.mostBytes > 4<<20+1 || s.mostBusy > 1 {
		t.Errorf("pages of up to %d bytes, up to %d lists of a namespace at a time", s.mostBytes, s.mostBusy)
	}
}

func TestAPodThatIsLargerThanAPageIsListed(t *testing.T) {
	s := &server{pods: pods(3, func(p *corev1.Pod) { p.Annotations = map[string]string{"a": strings.Repeat("x", 5<<20)} })}
	if got, _, err := s.start(t).List(t.Context(), "ns", ""); err != nil || len(got) != 3 {
		t.Errorf("%d pods, %v", len(got), err)
	}
}

// stuck does not answer.
type stuck struct{ corev1client.PodInterface }

func (s stuck) Pods(string) corev1client.PodInterface { return s }

func (s stuck) List(ctx context.Context, _ metav1.ListOptions) (*corev1.PodList, error) {
	<-ctx.Done()
	return nil, ctx.Err()
}

func TestAListReturnsItsPlaceInTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		_, _, err := podlist.New(stuck{}, pagedlist.MaxKept, budget.TrimPod).List(t.Context(), "ns", "")
		if took := time.Since(start); !errors.Is(err, context.DeadlineExceeded) || took != 10*time.Second {
			t.Errorf("%v after %v", err, took)
		}
	})
}

func TestAListThatIsNotCompleteIsAnError(t *testing.T) {
	for name, tc := range map[string]struct {
		server *server
		want   string
	}{
		"the kept fields are too large": {&server{pods: pods(9, func(p *corev1.Pod) { p.Labels = map[string]string{"a": strings.Repeat("x", 1<<20)} })},
			"list pods of namespace ns: the first 8 of them have more than 8 MiB, the limit"},
		"a page has expired": {&server{pods: pods(140, func(*corev1.Pod) {}), expired: true}, "list pods of namespace ns: "},
	} {
		t.Run(name, func(t *testing.T) {
			got, _, err := tc.server.start(t).List(t.Context(), "ns", "")
			if got != nil || !strings.HasPrefix(fmt.Sprint(err), tc.want) {
				t.Errorf("%d pods, error %v", len(got), err)
			}
			if tc.server.expired && !apierrors.IsResourceExpired(err) {
				t.Errorf("error %v, want that the page has expired", err)
			}
		})
	}
}
