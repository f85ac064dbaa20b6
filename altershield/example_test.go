package altershield_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"time"

	"github.com/breakwater-dev/breakwater/altershield"
	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
)

// A client opens the order of a release and starts the PRE check of its first batch.
// The verdict follows in a callback.
func ExampleClient_StartBatch() {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		domain := `{"orderId":"order-1"}`
		if strings.HasSuffix(r.URL.Path, "BatchStartNotify") {
			domain = `{"nodeId":"node-1","skipCheck":false}`
		}
		_, _ = fmt.Fprintf(w, `{"success":true,"resultCode":"000","domain":%s}`, domain)
	}))
	defer server.Close()

	client := altershield.New(altershield.Config{
		BaseURL: server.URL, Platform: "breakwater", Token: "secret",
		TenantCode: "tenant", ChangeSceneKey: "scene", ClusterName: "one",
	})
	defer client.Close()

	ctx := context.Background()
	ref := v1alpha1.WorkloadRef{Kind: "Deployment", Name: "sleep"}
	id := v1alpha1.OrderID("one", "default", ref, "5d41402a", 1)
	if _, err := client.OpenOrder(ctx, altershield.OpenOrder{OrderID: id, Title: "sleep", Apps: []string{"sleep"}}); err != nil {
		fmt.Println(err)
		return
	}
	started, err := client.StartBatch(ctx, altershield.StartBatch{
		OrderID: id, BatchNo: 0, TotalBatches: 1, Last: true,
		Info: altershield.BatchInfo{Namespace: "default", WorkloadType: "Deployment", WorkloadName: "sleep", Pods: []string{"sleep-1"}},
	})
	if altershield.MayHaveTakenEffect(err) {
		fmt.Println("the server may have created a node; start again and drop its callbacks")
		return
	}
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println("node:", started.NodeID)
	// Output:
	// node: node-1
}

// A receiver verifies the signature of a callback before it parses the body.
func ExampleParseCallback() {
	now := time.UnixMilli(1767323045000)
	receive := func(r *http.Request) {
		body, err := io.ReadAll(io.LimitReader(r.Body, 1<<20))
		if err != nil {
			fmt.Println(err)
			return
		}
		if err := altershield.Verify(r.Header, altershield.DefaultHeaderPrefix, "breakwater", body, "secret", now, 0); err != nil {
			fmt.Println(err) // answer 401
			return
		}
		c, err := altershield.ParseCallback(body)
		if err != nil {
			fmt.Println(err) // answer 400
			return
		}
		fmt.Printf("%s of node %s: %s\n", c.Stage, c.NodeID, c.Verdict)
		fmt.Println("failed:", c.Message)
	}

	body := `{"callbackRequest":{"bizExecOrderId":"o","defenseStageEnum":"POST","nodeId":"node-1",` +
		`"verdict":{"verdict":"fail","rules":[{"name":"error rate","verdict":"FAIL","msg":"5xx above 1 %"}]}},` +
		`"changeCheckType":"CHANGE_BATCH"}`
	request := httptest.NewRequest(http.MethodPost, "/", strings.NewReader(body))
	altershield.SignHeader(request.Header, altershield.DefaultHeaderPrefix, "breakwater", []byte(body), "secret", now)
	receive(request)
	// Output:
	// POST of node node-1: fail
	// failed: error rate: 5xx above 1 %
}
