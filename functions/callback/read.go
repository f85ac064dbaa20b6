package callback

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"mime"
	"net/http"
	"strings"

	"github.com/cloudevents/sdk-go/v2/binding"
	"github.com/cloudevents/sdk-go/v2/event"
	cehttp "github.com/cloudevents/sdk-go/v2/protocol/http"

	"github.com/breakwater-dev/breakwater/altershield"
	"github.com/breakwater-dev/breakwater/events"
)

// form is the encoding of a callback, and a metric label.
type form string

// The forms.
const (
	formJSON       form = "json"
	formBinary     form = "binary"
	formStructured form = "structured"
	formBatch      form = "batch"
)

// formOf returns the form, from the CloudEvents headers alone. Requests without them
// are the server's JSON. Its content type is `application/json;UTF-8`, which is no
// valid media type, so it is not checked.
func formOf(header http.Header) form {
	contentType := strings.ToLower(header.Get(cehttp.ContentType))
	switch {
	case strings.HasPrefix(contentType, event.ApplicationCloudEventsBatchJSON):
		return formBatch
	case strings.HasPrefix(contentType, event.ApplicationCloudEventsJSON):
		return formStructured
	case header.Get("Ce-Specversion") != "":
		return formBinary
	default:
		return formJSON
	}
}

// verdict is a verdict of any form.
type verdict struct {
	data events.ExternalVerdict
	// withoutRules marks a pass without rules.
	withoutRules bool
	// check is empty for a CloudEvent.
	check altershield.CheckType
}

// read returns the verdicts in the body. Only the body is signed, so the headers of
// binary mode are used only to recognize an event.
func read(f form, header http.Header, body []byte) ([]verdict, error) {
	if f == formJSON {
		c, err := altershield.ParseCallback(body)
		return []verdict{{
			data: events.ExternalVerdict{
				BizExecOrderID: c.BizExecOrderID, NodeID: c.NodeID, Stage: c.Stage,
				Verdict: c.Verdict, Message: c.Message,
			},
			withoutRules: c.Unconfirmed,
			check:        c.CheckType,
		}}, err
	}
	received, err := readEvents(f, header, body)
	if err != nil {
		return nil, fmt.Errorf("decode CloudEvent: %w", err)
	}
	var out []verdict
	for _, e := range received {
		data, err := events.ParseExternalVerdict(e)
		if err != nil {
			return nil, err
		}
		out = append(out, verdict{data: data}) // the node identifies a batch or the order
	}
	return out, nil
}

func readEvents(f form, header http.Header, body []byte) ([]event.Event, error) {
	header = header.Clone()
	header.Set(cehttp.ContentType, contentTypeOf(f, header))
	message := cehttp.NewMessage(header, io.NopCloser(bytes.NewReader(body)))
	var received []event.Event
	var err error
	if f == formBatch {
		received, err = binding.ToEvents(context.Background(), message, message.BodyReader)
	} else {
		var one *event.Event
		if one, err = binding.ToEvent(context.Background(), message); err == nil {
			received = []event.Event{*one}
		}
	}
	if err != nil {
		return nil, err
	}
	for _, e := range received {
		if err := e.Validate(); err != nil {
			return nil, err
		}
	}
	return received, nil
}

// contentTypeOf replaces an invalid content type by a valid one.
func contentTypeOf(f form, header http.Header) string {
	contentType := header.Get(cehttp.ContentType)
	switch f {
	case formBatch:
		return event.ApplicationCloudEventsBatchJSON
	case formStructured:
		return event.ApplicationCloudEventsJSON
	}
	if _, _, err := mime.ParseMediaType(contentType); err != nil {
		return event.ApplicationJSON
	}
	return contentType
}
