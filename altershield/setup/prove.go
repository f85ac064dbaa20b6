package setup

import (
	"context"
	"errors"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/breakwater-dev/breakwater/altershield"
	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
)

// sceneTimeout is how long Prove waits until the server knows a new scene. The published server reads
// its scenes every 10s.
const sceneTimeout = 20 * time.Second

// Prove makes a signed call: it opens an order, as each release does, and cancels it without a check. A
// repeated proof finds the same order.
// checked is false if the server accepts calls with a wrong signature, too: then nothing proves the
// token. pause is the pause between attempts while the server does not know the scene.
func Prove(ctx context.Context, c altershield.Config, pause time.Duration) (checked bool, err error) {
	client := altershield.New(c)
	defer client.Close()
	order := altershield.OpenOrder{OrderID: connectOrder(c), Title: "Breakwater connects cluster " + c.ClusterName}
	var last error
	var answer altershield.OrderAnswer
	err = wait.PollUntilContextTimeout(ctx, pause, sceneTimeout, true, func(ctx context.Context) (bool, error) {
		var err error
		answer, err = client.OpenOrder(ctx, order)
		if err == nil || last == nil || ctx.Err() == nil { // the deadline may interrupt a call
			last = err
		}
		if altershield.IsArgument(last) { // the scene may be unknown
			return false, nil
		}
		return true, last
	})
	switch {
	case last != nil:
		return false, last // more specific than the end of the wait
	case err != nil:
		return false, err
	case !answer.Existed:
		if err := client.CloseOrder(ctx, altershield.CloseOrder{OrderID: order.OrderID, State: altershield.CloseCancel}); err != nil {
			return false, err
		}
	}
	return checksSignatures(ctx, c)
}

// connectOrder returns the id of the order of a proof. No release has it.
func connectOrder(c altershield.Config) string {
	return altershield.EventOrderID(c.ClusterName+"/"+c.ChangeSceneKey, "connect")
}

// checksSignatures reports whether the server rejects a wrong signature. The call reads an order node
// that does not exist.
func checksSignatures(ctx context.Context, c altershield.Config) (bool, error) {
	c.Token += "-wrong"
	client := altershield.New(c)
	defer client.Close()
	_, err := client.Retrieve(ctx, altershield.Retrieve{OrderID: "none", NodeID: "none", Stage: v1alpha1.StagePre})
	if err != nil && !errors.As(err, new(*altershield.ResultError)) {
		return false, fmt.Errorf("find out whether the server checks signatures: %w", err)
	}
	return altershield.IsSignature(err), nil
}
