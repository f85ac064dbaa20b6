package lifecycle

import "context"

// RunStep runs a step of a provider that is due, and reports whether there was one that
// could be started or decided.
func (e *Engine) RunStep(ctx context.Context, provider string) (bool, error) {
	b, err := e.startSteps(ctx, provider, 1)
	if err != nil {
		return false, err
	}
	for _, s := range b.steps {
		if err := e.run(ctx, ctx, b.provider, s); err != nil {
			return true, err
		}
	}
	return b.due > 0 && b.wait == 0, nil
}

// ErrStaleStep is returned if another worker has taken the step over.
var ErrStaleStep = errStaleStep
