package main

import (
	"context"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	cehttp "github.com/cloudevents/sdk-go/v2/protocol/http"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
	"github.com/breakwater-dev/breakwater/events"
	"github.com/breakwater-dev/breakwater/functions"
	ft "github.com/breakwater-dev/breakwater/functions/functionstest"
	"github.com/breakwater-dev/breakwater/internal/eventsigning"
	"github.com/breakwater-dev/breakwater/internal/process"
	double "github.com/breakwater-dev/breakwater/test/altershielddouble"
)

// slowServer is a server that keeps finishes waiting.
type slowServer struct {
	http.Handler
	// asked is closed when the server received a finish, which it answers after answer is closed.
	asked, answer chan struct{}
}

// ServeHTTP implements http.Handler.
func (s *slowServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if strings.HasSuffix(r.URL.Path, "/submitChangeFinishNotify") {
		close(s.asked)
		<-s.answer
	}
	s.Handler.ServeHTTP(w, r)
}

// startedBatch returns a cluster with a batch that was started at a slow server, and its node.
func startedBatch(t *testing.T) (*ft.Cluster, *slowServer, string) {
	t.Helper()
	c := ft.New(t, ft.NewRelease())
	d := double.NewDouble(double.Options{Tokens: map[string]string{"breakwater": ft.Token}})
	slow := &slowServer{Handler: d.Handler(), asked: make(chan struct{}), answer: make(chan struct{})}
	server := httptest.NewServer(slow)
	t.Cleanup(func() { server.Close(); d.Close() })
	c.Configure(server.URL, ft.Token)
	node := (&ft.ServerDouble{Double: d, Clients: functions.NewClientSource(c.Kube)}).NewNode(t)
	key := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: v1alpha1.SystemNamespace, Name: eventsigning.VerdictSecretName},
		Data:       map[string][]byte{eventsigning.CurrentKey: ft.Keys().Current},
	}
	if err := c.Kube.Tracker().Add(key); err != nil {
		t.Fatal(err)
	}
	if err := c.Change.Tracker().Add(ft.NewBatch(1, []string{"a"}, ft.Started(node, 0))); err != nil {
		t.Fatal(err)
	}
	return c, slow, node
}

// postPREPass sends the PRE pass of the batch to a function.
func postPREPass(ctx context.Context, t *testing.T, url, node string) {
	e, err := events.New(events.ChangePodVerdict{
		Namespace: ft.Namespace, Name: ft.BatchName(1), UID: "batch-1", ChangeWorkload: ft.Release, Version: ft.Version,
		BizExecOrderID: ft.OrderID, NodeID: node, Stage: v1alpha1.StagePre, Verdict: "pass", Time: metav1.NewMicroTime(ft.Now()),
	})
	if err != nil {
		t.Error(err)
		return
	}
	request, err := cehttp.NewHTTPRequestFromEvent(ctx, url, ft.SignedVerdict(t, e))
	if err != nil {
		t.Error(err)
		return
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Error(err)
		return
	}
	_ = response.Body.Close()
	if response.StatusCode >= http.StatusMultipleChoices {
		t.Errorf("status %d", response.StatusCode)
	}
}

func TestAnAnswerThatComesWhileFunctionVerdictEndsIsStored(t *testing.T) {
	for name, answeredFirst := range map[string]bool{
		"while the verdict waits for the call": false,
		"after the verdict was answered":       true, // the call takes longer than function verdict waits for it
	} {
		t.Run(name, func(t *testing.T) {
			c, slow, node := startedBatch(t)
			ctx, stop := context.WithCancel(t.Context())
			defer stop()
			parts, err := buildVerdict(ctx, process.Clients{Kube: c.Kube, Change: c.Change})
			if err != nil {
				t.Fatal(err)
			}
			ended := make(chan struct{})
			background := parts.Background[0]
			parts.Background[0] = func(ctx context.Context) error {
				defer close(ended)
				return background(ctx)
			}
			listener, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			served, answered := make(chan error), make(chan struct{})
			go func() { served <- process.Serve(ctx, listener, "verdict", parts) }()
			go func() {
				defer close(answered)
				postPREPass(t.Context(), t, "http://"+listener.Addr().String(), node)
			}()
			select {
			case <-slow.asked:
			case <-answered:
				t.Fatal("the finish was not called")
			}
			if answeredFirst {
				<-answered
			}
			stop()
			<-ended
			close(slow.answer)
			if err := <-served; err != nil {
				t.Fatal(err)
			}
			<-answered
			if s := c.ChangePod(ft.BatchName(1)).Status.SubmissionOf(v1alpha1.StagePost); s == nil || s.AnsweredTime == nil {
				t.Errorf("the finish is %+v, want an answer", s)
			}
		})
	}
}
