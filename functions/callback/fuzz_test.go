package callback

import (
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
	"github.com/breakwater-dev/breakwater/events"
)

// FuzzRead reads callbacks in all forms. A verdict that is read names an order, a node
// and a stage, and can be sent as an event and stored in an inbox.
func FuzzRead(f *testing.F) {
	const (
		verdict = `{"bizExecOrderId":"o","nodeId":"n","stage":"POST","verdict":"fail","message":"5xx","podResults":[{"pod":"a","verdict":"fail"}]}`
		cloud   = `{"specversion":"1.0","id":"1","source":"/s","type":"` + events.TypeChangePodVerdict + `","datacontenttype":"application/json","data":` + verdict + `}`
	)
	f.Add("application/json;UTF-8", "", "", []byte(`{"callbackRequest":{"bizExecOrderId":"o","defenseStageEnum":"POST","nodeId":"n","verdict":{"rules":[{"verdict":"FAIL"}],"verdict":"fail"}}}`))
	f.Add("application/json", "1.0", events.TypeChangePodVerdict, []byte(verdict))
	f.Add("application/cloudevents+json", "", "", []byte(cloud))
	f.Add("application/cloudevents-batch+json; charset=utf-8", "", "", []byte(`[`+cloud+`,`+cloud+`]`))
	f.Add("application/cloudevents-batch+json", "", "", []byte(`[]`))
	f.Add("application/cloudevents-batch+json", "", "", []byte(`[null]`))
	f.Add("application/cloudevents+json", "", "", []byte(strings.Replace(cloud, `"data":`, `"data_base64":"bm90IGpzb24=","unused":`, 1)))
	f.Add("text/plain", "0.3", "other", []byte("\x00\xff"))
	f.Fuzz(func(t *testing.T, contentType, specVersion, eventType string, body []byte) {
		header := http.Header{}
		for name, value := range map[string]string{"Content-Type": contentType, "Ce-Specversion": specVersion, "Ce-Type": eventType, "Ce-Id": "1", "Ce-Source": "/s"} {
			if value != "" {
				header.Set(name, value)
			}
		}
		before := header.Clone()
		form := formOf(header)
		got, err := read(form, header, body)
		if diff := cmp.Diff(before, header); diff != "" {
			t.Errorf("the header changed: %s", diff)
		}
		if err != nil {
			return
		}
		if len(got) > len(body) || (form != formBatch && len(got) != 1) {
			t.Errorf("%d verdicts of %d bytes in form %s", len(got), len(body), form)
		}
		r := &receiver{Options: Options{Clock: clocktesting.NewFakePassiveClock(time.Unix(1700000000, 0))}}
		of := release{namespace: "ns", name: "release", uid: "uid", version: "0123456789"}
		for _, v := range got {
			if v.data.BizExecOrderID == "" || v.data.NodeID == "" || (v.data.Stage != v1alpha1.StagePre && v.data.Stage != v1alpha1.StagePost) {
				t.Errorf("about nothing: %+v", v)
			}
			data := r.batchVerdict(v, of)
			data.Name, data.UID = "batch", "uid"
			for _, data := range []verdictData{data, r.orderVerdict(v, of)} {
				checkLetter(t, data)
			}
		}
	})
}

// checkLetter checks that a verdict is bounded as an event and as an entry of an inbox.
func checkLetter(t *testing.T, data verdictData) {
	t.Helper()
	e, err := events.New(data)
	var tooLarge *events.TooLargeError
	if errors.As(err, &tooLarge) {
		return
	}
	if err != nil {
		t.Fatalf("a verdict that was read cannot be sent: %v\n%+v", err, data)
	}
	if len(e.Data()) > events.MaxData {
		t.Errorf("an event of %d bytes", len(e.Data()))
	}
	truncated, err := events.Truncated(data)
	if err != nil {
		t.Fatal(err)
	}
	entry := truncated.Inbox()
	if raw, err := json.Marshal(entry); err != nil || len(raw) > events.MaxData || entry.ID != data.ID() || len(entry.Message) > events.MaxText {
		t.Errorf("entry %+v of %s with %d bytes: %v", entry, data.ID(), len(raw), err)
	}
}
