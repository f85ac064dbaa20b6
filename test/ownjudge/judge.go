// Package ownjudge is the example of docs/judge/your-own.md: a judge outside Breakwater. Like
// the judge of a user, it imports nothing of Breakwater.
package ownjudge

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"time"

	cloudevents "github.com/cloudevents/sdk-go/v2"
)

// Judge returns a function that answers a wake-up with a signed verdict. decide gets the
// namespace and the name of the ChangePod. The Broker takes the reply as an event.
func Judge(key []byte, decide func(namespace, name string) (verdict, message string)) func(context.Context, cloudevents.Event) (*cloudevents.Event, error) {
	return func(_ context.Context, ready cloudevents.Event) (*cloudevents.Event, error) {
		var d map[string]any // the fields of the wake-up stay
		if err := ready.DataAs(&d); err != nil {
			return nil, err
		}
		verdict, message := decide(d["namespace"].(string), d["name"].(string))
		d["verdict"], d["message"], d["time"] = verdict, message, time.Now().UTC().Format("2006-01-02T15:04:05.000000Z")
		e := cloudevents.NewEvent()
		e.SetType("dev.breakwater.changepod.verdict.v1")
		e.SetSource(ready.Source())
		e.SetID(ready.ID() + "/" + verdict)
		err := e.SetData(cloudevents.ApplicationJSON, d)
		mac := hmac.New(sha256.New, key) // of type, id and data, each after its length
		for _, part := range [][]byte{[]byte(e.Type()), []byte(e.ID()), e.Data()} {
			mac.Write(binary.BigEndian.AppendUint64(nil, uint64(len(part))))
			mac.Write(part)
		}
		e.SetExtension("signature", hex.EncodeToString(mac.Sum(nil)))
		return &e, err
	}
}
