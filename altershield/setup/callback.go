package setup

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/breakwater-dev/breakwater/altershield"
)

// configTimeout is how long ProveCallback waits until function callback has read its configuration.
const configTimeout = 15 * time.Second

// ErrRejected is a callback that rejects the token.
var ErrRejected = errors.New("the callback rejects the token of the platform")

// ProveCallback sends a signed verdict to function callback. Its order does not exist, so the verdict
// has no effect. The error is ErrRejected, or why the URL cannot be reached from here: the server may
// still reach it. pause is the pause between attempts while the callback has not read its
// configuration.
func ProveCallback(ctx context.Context, c altershield.Config, address string, pause time.Duration) error {
	body, err := json.Marshal(map[string]any{
		"changeCheckType": string(altershield.CheckOrder),
		"callbackRequest": map[string]any{
			"bizExecOrderId": connectOrder(c), "changeSceneKey": c.ChangeSceneKey, "nodeId": "connect", "defenseStageEnum": "PRE",
			"verdict": map[string]any{"verdict": "pass", "checkPass": true, "rules": []any{}},
		},
	})
	if err != nil {
		return err
	}
	var last error
	err = wait.PollUntilContextTimeout(ctx, pause, configTimeout, true, func(ctx context.Context) (bool, error) {
		status, err := postCallback(ctx, c, address, body)
		switch {
		case err != nil && last != nil && ctx.Err() != nil: // the deadline interrupted the call
			return false, last
		case err != nil:
			last = err
			return false, last
		case status == http.StatusOK:
			last = nil
			return true, nil
		case status == http.StatusUnauthorized:
			last = ErrRejected
		default:
			last = fmt.Errorf("POST %s: status %d", address, status)
		}
		return false, nil
	})
	if last != nil {
		return last // more specific than the end of the wait
	}
	return err
}

func postCallback(ctx context.Context, c altershield.Config, address string, body []byte) (int, error) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, address, bytes.NewReader(body))
	if err != nil {
		return 0, err
	}
	request.Header.Set("Content-Type", "application/json")
	altershield.SignHeader(request.Header, c.HeaderPrefix, c.Platform, body, c.Token, time.Now())
	response, err := newHTTPClient().Do(request)
	if err != nil {
		return 0, err
	}
	_, _ = io.Copy(io.Discard, io.LimitReader(response.Body, maxAnswer)) // only the status counts
	return response.StatusCode, response.Body.Close()
}
