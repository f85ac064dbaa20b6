package altershield

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"time"

	"github.com/breakwater-dev/breakwater/internal/text"
)

// emergencyScenario is the changeScenarioCode of an emergency.
const emergencyScenario = "01"

// EventOrderID returns the id of the order of an event about a release. It
// differs from the id of the release's order and between events. It has at most
// 128 bytes; a longer id is shortened with a hash.
func EventOrderID(orderID, event string) string {
	id := orderID + "#" + event
	if len(id) <= maxOrderID {
		return id
	}
	sum := sha256.Sum256([]byte(id))
	hash := hex.EncodeToString(sum[:16])
	return text.Truncate(id, maxOrderID-len(hash)-1) + "-" + hash
}

func (c *Client) identity(orderID string) identity {
	return identity{
		TenantCode: c.config.TenantCode, ChangeSceneKey: c.config.ChangeSceneKey,
		BizExecOrderID: orderID, Platform: c.config.Platform,
	}
}

func (c *Client) order(action string, in OpenOrder) (order, error) {
	params, err := jsonString(in.Params)
	if err != nil {
		return order{}, fmt.Errorf("altershield %s: params: %w", action, err)
	}
	out := order{
		identity:           c.identity(in.OrderID),
		ChangeTitle:        text.Truncate(in.Title, maxTitle),
		ChangeURL:          in.URL,
		Creator:            c.config.Creator,
		ChangeScenarioCode: c.config.ChangeScenarioCode,
		ChangePhases:       []string{c.config.ChangePhase},
		ChangeContents:     []changeContent{},
		ChangeParamJSON:    params,
		ChangeApps:         in.Apps,
	}
	out.ChangeTitle = cmp.Or(out.ChangeTitle, text.Truncate(in.OrderID, maxTitle))
	out.ChangeParamJSON = cmp.Or(out.ChangeParamJSON, "{}") // the server rejects an empty string
	if len(in.URL) > maxURL {
		out.ChangeURL = "" // a truncated link would be broken
	}
	if in.Emergency {
		out.ChangeScenarioCode = emergencyScenario
	}
	contents := in.Contents
	if len(contents) == 0 { // the server rejects an empty list
		contents = []Content{{Type: c.config.EffectiveTargetType, Name: out.ChangeTitle}}
	}
	for _, content := range contents {
		out.ChangeContents = append(out.ChangeContents, changeContent{
			ContentType: contentType{TypeName: content.Type}, InstanceName: content.Name,
		})
	}
	return out, nil
}

func (c *Client) startOf(orderID string, at time.Time, emergency bool, extension map[string][]string) start {
	return start{
		identity: c.identity(orderID), Executor: c.config.Creator, StartTime: c.millis(at),
		Emergency: emergency, ExtensionInfo: extension,
	}
}

func (c *Client) millis(t time.Time) int64 {
	if t.IsZero() {
		t = c.caller.clock.Now()
	}
	return t.UnixMilli()
}

func lastTag(last bool) string {
	if last {
		return "last"
	}
	return "not_last"
}

// jsonString returns a value for a field with JSON in a string; nil becomes the
// empty string.
func jsonString(v any) (string, error) {
	if v == nil {
		return "", nil
	}
	raw, err := json.Marshal(v)
	return string(raw), err
}
