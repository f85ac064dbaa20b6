package setup

import (
	"context"
	"errors"
	"fmt"
)

// Observe reads what the server has of what is desired.
func (a *Admin) Observe(ctx context.Context, d Desired) (Observed, error) {
	observed := Observed{Types: map[string]bool{}, Scenes: map[string]*ObservedScene{}}
	var err error
	if observed.Platforms, err = a.platforms(ctx); err != nil {
		return observed, fmt.Errorf("list the platforms of the server: %w", err)
	}
	for _, category := range categories {
		if observed.Types[category], err = a.hasType(ctx, category, d.TargetType); err != nil {
			return observed, fmt.Errorf("read the types of change of the server: %w", err)
		}
	}
	for _, scene := range d.Scenes {
		existing, err := a.scene(ctx, scene.Key)
		if err != nil {
			return observed, fmt.Errorf("read scene %s of the server: %w", scene.Key, err)
		}
		if existing != nil {
			observed.Scenes[scene.Key] = existing
		}
	}
	return observed, nil
}

// Apply performs the actions of a plan. After an error, Observe and Decide return the actions that are left.
func (a *Admin) Apply(ctx context.Context, d Desired, p Plan, token string) error {
	if p.CreatePlatform {
		if p.CreateSequence {
			if err := a.createSequence(ctx); err != nil {
				return fmt.Errorf("create the sequence of ids: %w", err)
			}
		}
		if err := a.createPlatform(ctx, d.Platform, d.Owner, token); err != nil {
			return fmt.Errorf("create platform %s: %w", d.Platform, err)
		}
	}
	for _, category := range p.Types {
		if err := a.createType(ctx, category, d.TargetType); err != nil {
			return fmt.Errorf("create type of change %s (%s): %w", d.TargetType, category, err)
		}
	}
	for _, s := range p.Create {
		if err := a.createScene(ctx, d, s); err != nil {
			return fmt.Errorf("create scene %s: %w", s.Key, err)
		}
	}
	for _, s := range p.Configure {
		// The server made the ids of the steps.
		existing, err := a.scene(ctx, s.Key)
		if err == nil && existing == nil {
			err = errors.New("the server does not list it")
		}
		if err == nil {
			err = a.configureScene(ctx, existing, s)
		}
		if err != nil {
			return fmt.Errorf("configure scene %s: %w", s.Key, err)
		}
	}
	return nil
}
