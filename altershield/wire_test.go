package altershield

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/breakwater-dev/breakwater/internal/text"
)

// TestRequestsHaveTheFieldsOfTheProtocol compares the received requests with the
// protocol, field by field.
func TestRequestsHaveTheFieldsOfTheProtocol(t *testing.T) {
	ctx, at := t.Context(), time.UnixMilli(1700000000123)
	const identity = `"tenantCode":"tenant","changeSceneKey":"scene","bizExecOrderId":"o","platform":"breakwater"`
	const order = identity + `,"changeTitle":"t","changeUrl":"http://u","creator":"breakwater","changeScenarioCode":"00",` +
		`"changePhases":["prod_phase"],"changeContents":[{"contentType":{"typeName":"Deployment"},"instanceName":"default/sleep"}],` +
		`"changeParamJson":"{\"image\":\"busybox\"}","changeApps":["sleep"]`
	contents := []Content{{Type: "Deployment", Name: "default/sleep"}}
	params := map[string]string{"image": "busybox"}
	for name, tc := range map[string]struct {
		call func(*Client) error
		want string
	}{
		actionOpenOrder: {func(c *Client) error {
			_, err := c.OpenOrder(ctx, OpenOrder{OrderID: "o", Title: "t", URL: "http://u", Apps: []string{"sleep"}, Contents: contents, Params: params})
			return err
		}, `{` + order + `}`},
		actionEvent: {func(c *Client) error {
			_, err := c.SubmitEvent(ctx, SubmitEvent{
				OrderID: "o", Title: "t", URL: "http://u", Apps: []string{"sleep"}, Contents: contents, Params: params,
				StartTime: at, FinishTime: at, ExtensionInfo: map[string][]string{"state": {"Running"}},
			})
			return err
		}, `{` + order + `,"executor":"breakwater","startTime":1700000000123,"finishTime":1700000000123,"extensionInfo":{"state":["Running"]}}`},
		actionStartOrder: {func(c *Client) error {
			_, err := c.StartOrder(ctx, StartOrder{OrderID: "o", StartTime: at, Emergency: true})
			return err
		}, `{` + identity + `,"executor":"breakwater","startTime":1700000000123,"emergency":true}`},
		actionStartBatch: {func(c *Client) error {
			_, err := c.StartBatch(ctx, StartBatch{OrderID: "o", BatchNo: 2, TotalBatches: 5, StartTime: at, Info: BatchInfo{
				Namespace: "default", WorkloadType: "Deployment", WorkloadName: "sleep", Pods: []string{"a", "b"}, Revision: "1",
			}})
			return err
		}, `{` + identity + `,"executor":"breakwater","startTime":1700000000123,"batchNo":2,"totalBatchNum":5,"totalBatchNumInChangePhase":5,` +
			`"isLastBatchTag":"not_last","isLastBatchInChangePhaseTag":"not_last","changePhase":"prod_phase","effectiveTargetType":"pod",` +
			`"effectiveTargetLocations":["a","b"],"extInfo":{"namespace":"default","workloadType":"Deployment","workloadName":"sleep","pods":["a","b"],"revision":"1"}}`},
		actionFinish: {func(c *Client) error {
			_, err := c.Finish(ctx, Finish{OrderID: "o", NodeID: "n", Message: "m", Result: []int{1}, FinishTime: at, Pods: []string{"a"}})
			return err
		}, `{` + identity + `,"nodeId":"n","success":true,"msg":"m","serviceResult":"[1]","changeResultJsn":"[1]","finishTime":1700000000123,"effectiveTargetLocations":["a"]}`},
		actionRetrieve: {func(c *Client) error {
			_, err := c.Retrieve(ctx, Retrieve{OrderID: "o", NodeID: "n", Stage: "POST"})
			return err
		}, `{` + identity + `,"nodeId":"n","defenseStage":"POST"}`},
		actionCloseOrder: {func(c *Client) error {
			return c.CloseOrder(ctx, CloseOrder{OrderID: "o", State: CloseSuccess, Message: "m", FinishTime: at})
		}, `{` + identity + `,"finishState":"SUCCESS","msg":"m","finishTime":1700000000123}`},
	} {
		t.Run(name, func(t *testing.T) {
			w := newFixture(t, nil)
			_ = tc.call(w.client) // most are rejected: the order is unknown
			call := w.double.Log().Calls[0]
			if call.Action != name || call.Code == codeBad {
				t.Errorf("%s was answered %s: %s", call.Action, call.Code, call.Msg)
			}
			var want, got any
			if err := json.Unmarshal([]byte(tc.want), &want); err != nil {
				t.Fatal(err)
			}
			if err := json.Unmarshal(call.Body, &got); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("-want +got: %s", diff)
			}
		})
	}
}

// codeBad is the result code for an invalid signature.
const codeBad = CodeSignature

func TestRequestsRespectTheServersLimits(t *testing.T) {
	c := New(Config{})
	long := strings.Repeat("变", 6000)
	got, err := c.order(actionOpenOrder, OpenOrder{OrderID: "o", Title: long, URL: "http://" + long, Emergency: true})
	if err != nil {
		t.Fatal(err)
	}
	if len(got.ChangeTitle) != 255 || got.ChangeURL != "" || got.ChangeParamJSON != "{}" || len(got.ChangeContents) != 1 ||
		got.ChangeScenarioCode != "01" {
		t.Errorf("%+v", got)
	}
	if got, _ := c.order(actionOpenOrder, OpenOrder{OrderID: "o"}); got.ChangeTitle != "o" {
		t.Errorf("the server would reject the title: %+v", got)
	}
	if got := text.Truncate(long, maxMsg); len(got) != 16383 {
		t.Errorf("%d bytes", len(got))
	}
}

func TestAnUnmarshalableResultIsAnErrorBeforeTheCall(t *testing.T) {
	w := newFixture(t, nil)
	_, err := w.client.Finish(t.Context(), Finish{OrderID: "o", NodeID: "n", Result: func() {}})
	if err == nil || MayHaveTakenEffect(err) {
		t.Errorf("%v", err)
	}
	_, order := w.client.OpenOrder(t.Context(), OpenOrder{OrderID: "o", Params: func() {}})
	_, event := w.client.SubmitEvent(t.Context(), SubmitEvent{OrderID: "o", Params: func() {}})
	_, check := w.client.CheckRelease(t.Context(), CheckRelease{OrderID: "o", Params: func() {}})
	for action, err := range map[string]error{actionOpenOrder: order, actionEvent: event, actionCheckRelease: check} {
		if err == nil || !strings.HasPrefix(err.Error(), "altershield "+action+": params: ") {
			t.Errorf("%s: %v", action, err)
		}
	}
	if n := len(w.double.Log().Calls); n != 0 {
		t.Errorf("%d calls", n)
	}
}

func TestTheTotalOfBatchesIncludesTheBatch(t *testing.T) {
	w := newFixture(t, nil)
	w.open(t)
	if _, err := w.client.StartBatch(t.Context(), StartBatch{OrderID: "o", BatchNo: 7, Last: true}); err != nil {
		t.Fatal(err)
	}
	body := string(w.double.Log().Calls[1].Body)
	for _, want := range []string{`"totalBatchNum":8`, `"isLastBatchTag":"last"`, `"isLastBatchInChangePhaseTag":"last"`, `"effectiveTargetLocations":[]`} {
		if !strings.Contains(body, want) {
			t.Errorf("%s is not in %s", want, body)
		}
	}
}
