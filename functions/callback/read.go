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

// form is how a verdict is written down.
type form string

// The forms.
const (
	formJSON       form = "json"
	formBinary     form = "binary"
	formStructured form = "structured"
	formBatch      form = "batch"
)

// formOf looks at the CloudEvents headers alone. Whatever has none is the
// server's JSON: the server sends it as `application/json;UTF-8`, which is no
// media type, so the content type decides nothing else.
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

// verdict is what was said, whatever the form.
type verdict struct {
	said events.ExternalVerdict
	// unjudged: a pass that came with no rule.
	unjudged bool
	// check is empty in a CloudEvent.
	check altershield.CheckType
}

// read returns what the body says. Only the body is signed, so the headers of
// binary mode are believed in nothing but that the body is an event.
func read(f form, header http.Header, body []byte) ([]verdict, error) {
	if f == formJSON {
		said, err := altershield.ParseCallback(body)
		return []verdict{{
			said: events.ExternalVerdict{
				BizExecOrderID: said.BizExecOrderID, NodeID: said.NodeID, Stage: said.Stage,
				Verdict: said.Verdict, Message: said.Message,
			},
			unjudged: said.Unjudged,
			check:    said.CheckType,
		}}, err
	}
	received, err := readEvents(f, header, body)
	if err != nil {
		return nil, fmt.Errorf("read the CloudEvent: %w", err)
	}
	var out []verdict
	for _, e := range received {
		said, err := events.ParseExternalVerdict(e)
		if err != nil {
			return nil, err
		}
		out = append(out, verdict{said: said}) // the node tells a batch from the order
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

// contentTypeOf mends a content type that no parser takes.
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
