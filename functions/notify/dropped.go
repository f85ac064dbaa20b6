package notify

import (
	"context"
	"fmt"
	"time"

	"knative.dev/pkg/logging"
)

// reportTimeout limits a report of dropped messages: two reads of the API server and a call of the webhook.
const reportTimeout = callTimeout + 5*time.Second

// Run reports dropped messages that no further message reports, when the limit allows a message: one
// interval of the rate after the last drop. Each drop restarts the interval, so that the report does not
// use up the limit for a message while events arrive. With the default rate, the interval is shorter than
// the idle time after which the only pod is scaled to zero.
func (n *Notifier) Run(ctx context.Context) error {
	timer := time.NewTimer(0)
	timer.Stop()
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case interval := <-n.drops:
			timer.Reset(interval)
		case <-timer.C:
			n.reportDropped(ctx, n.limiter.AllowN)
		}
	}
}

// AfterDrain reports dropped messages when the process ends, also above the limit, because no later message
// can report them. It must be called after the last event was handled.
func (n *Notifier) AfterDrain(ctx context.Context) {
	n.reportDropped(ctx, func(time.Time, int) bool { return true })
}

// reportDropped sends one message with the number of dropped messages, if there are any and allow
// allows it. It is not repeated: after an error the next message, or the end of the process, reports them.
func (n *Notifier) reportDropped(ctx context.Context, allow func(time.Time, int) bool) {
	dropped := n.takeDropped(allow)
	if dropped == 0 {
		return
	}
	// The end of the process does not interrupt a report: whether it arrived would be unknown.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), reportTimeout)
	defer cancel()
	config, err := ReadConfig(ctx, n.core)
	if err == nil && config.URL != "" {
		err = n.post(ctx, config.URL, fmt.Sprintf("%d messages about releases were above the limit and were not sent.", dropped))
	}
	if err != nil {
		n.restore(dropped)
		logging.FromContext(ctx).Warnw("Could not report dropped messages to the webhook", "messages", dropped, "error", err)
	}
}

// takeDropped returns how many messages were dropped since the last message, or 0 if allow does not
// allow a message about them.
func (n *Notifier) takeDropped(allow func(time.Time, int) bool) int {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.dropped == 0 || !allow(n.clock.Now(), 1) {
		return 0
	}
	dropped := n.dropped
	n.dropped = 0
	return dropped
}
