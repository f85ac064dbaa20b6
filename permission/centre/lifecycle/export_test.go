package lifecycle

import "context"

// RunStep runs a step of a provider that is due, and reports whether there was one that
// could be started or decided.
func (e *Engine) RunStep(ctx context.Context, provider string) (bool, error) {
	return e.RunSteps(ctx, provider, 1, func(int) {})
}

// RunSteps is RunStep for n steps that are started in one transaction. It calls before with the
// number of steps that follow, before it runs a step.
func (e *Engine) RunSteps(ctx context.Context, provider string, n int, before func(following int)) (bool, error) {
	b, err := e.startSteps(ctx, provider, n)
	if err != nil {
		return false, err
	}
	for i, s := range b.steps {
		before(len(b.steps) - 1 - i)
		if stepErr := e.run(ctx, ctx, b.provider, s, newProviderDispatch(1)); err == nil {
			err = stepErr
		}
	}
	return err != nil || b.dueCount > 0 && b.wait == 0, err
}

// ErrStaleStep is returned if another run has taken the step over.
var ErrStaleStep = errStaleStep
