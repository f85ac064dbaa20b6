package altershielddouble

import (
	"context"
	"strings"
	"time"
)

// check is the check of a node in one stage. Its behavior decides how it runs,
// ends and is called back.
type check struct {
	node      *node
	stage     Stage
	pods      []string
	behaviour Behaviour
	timeout   time.Duration
	url       string
	// since is when the call was answered; it is set before answered is closed. Delays begin then: a
	// test may move the clock before run gets to its timer.
	since time.Time
	// answered is closed when the call that started the check is answered.
	answered chan struct{}
	// delivered is closed after the delivery of an early callback.
	delivered chan struct{}
}

// newCheck returns a check with the behavior of the script. If the script sets no
// verdict, Options.Rules decide it. d.mu is held.
func (d *Double) newCheck(n *node, stage Stage) *check {
	b := d.script.behaviour(d.progress, n.facts(stage))
	if b.Verdict == "" && d.options.Rules != nil && b.Ending != TimedOut && b.Ending != Threw {
		b.Rules = d.options.Rules(n.ruleInput(stage))
		b.NoRules = len(b.Rules) == 0
		b.Verdict = verdictOf(b.Rules)
	}
	if b.Verdict == "" {
		b.Verdict = "pass"
	}
	if b.Ending == "" {
		b.Ending = Judged
	}
	url, timeout := d.target(n, stage)
	c := &check{
		node: n, stage: stage, pods: n.pods(), behaviour: b, timeout: timeout, url: url,
		since: d.options.Clock.Now(), answered: make(chan struct{}), delivered: make(chan struct{}),
	}
	if d.script.CheckTimeout.Duration > 0 {
		c.timeout = d.script.CheckTimeout.Duration
	}
	if d.script.CallbackURL != "" {
		c.url = d.script.CallbackURL
	}
	n.due = stage
	return c
}

func verdictOf(rules []Rule) string {
	for _, r := range rules {
		if strings.EqualFold(r.Verdict, "FAIL") && !r.Ignored {
			return "fail"
		}
	}
	return "pass"
}

// run runs a check to its end, after the answer to its call unless the
// behavior is early.
func (d *Double) run(ctx context.Context, c *check) {
	b := c.behaviour
	if b.Early {
		d.end(c, b.Ending)
		d.callBack(ctx, c, b.Ending)
		close(c.delivered)
		return
	}
	close(c.delivered)
	select {
	case <-c.answered:
	case <-ctx.Done():
		return
	}
	if b.Forgotten || b.SkipCheck {
		d.forgetCheck(c)
		return
	}
	d.takeUp(c)
	if b.Never {
		return
	}
	takes, late := b.Delay.Duration, time.Duration(0)
	how := b.Ending
	if c.timeout > 0 && takes >= c.timeout && how == Judged {
		takes, late, how = c.timeout, takes-c.timeout, TimedOut
	}
	if b.Premature {
		// The server's poll reads the state from before the call: a pass without rules.
		d.callBack(ctx, c, Threw)
	}
	ends := c.since.Add(takes)
	if !d.waitUntil(ctx, ends) {
		return
	}
	d.end(c, how)
	called := ends
	if !b.Premature {
		if called = ends.Add(b.Lag.Duration); d.waitUntil(ctx, called) {
			d.callBack(ctx, c, how)
		}
	}
	if how != b.Ending && d.waitUntil(ctx, called.Add(late)) {
		d.lateEnd(c)
	}
}

// TakeUp begins the forgotten check of a node, as a slow server does.
func (d *Double) TakeUp(node string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	n, exists := d.nodes[node]
	if !exists {
		return
	}
	stage, submitted := map[State]Stage{PreSubmit: Pre, PostSubmit: Post}[n.state]
	if !submitted {
		return
	}
	c := d.newCheck(n, stage)
	close(c.answered) // the call was answered when the check was submitted
	d.background(func(ctx context.Context) { d.run(ctx, c) })
}

// takeUp begins the check.
func (d *Double) takeUp(c *check) {
	d.mu.Lock()
	defer d.mu.Unlock()
	c.node.state = runningState(c.stage)
	d.keepNode(c.node)
}

// forgetCheck ends a check that never begins, also after a restart.
func (d *Double) forgetCheck(c *check) {
	d.mu.Lock()
	defer d.mu.Unlock()
	c.node.due = ""
	d.keepNode(c.node)
}

func (d *Double) end(c *check, how Ending) {
	d.mu.Lock()
	defer d.mu.Unlock()
	c.node.state = endOf(c.stage, how)
	if how == Judged {
		c.node.passed[c.stage] = passes(c.behaviour.Verdict)
	}
	if c.silent() {
		c.node.due = ""
	}
	d.keepNode(c.node)
}

// lateEnd stores the judgement of a check that had timed out.
func (d *Double) lateEnd(c *check) {
	d.mu.Lock()
	defer d.mu.Unlock()
	c.node.state = lateEndOf(c.stage, c.node.state)
	c.node.passed[c.stage] = passes(c.behaviour.Verdict)
	d.keepNode(c.node)
}

func passes(verdict string) bool { return strings.EqualFold(verdict, "pass") }

// silent reports whether no callback is sent.
func (c *check) silent() bool { return c.behaviour.Lost || c.url == "" }

// callBack sends the callback and its copies. It never retries.
func (d *Double) callBack(ctx context.Context, c *check, how Ending) {
	if c.silent() {
		return
	}
	for i := range max(1, c.behaviour.Copies) {
		if i > 0 && !d.wait(ctx, c.behaviour.CopyEvery.Duration) {
			return
		}
		d.deliver(ctx, c, d.compose(c, how))
	}
}
