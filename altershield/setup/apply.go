package setup

import (
	"context"
	"errors"
	"fmt"
)

// See reads what the server has of what is wanted.
func (a *Admin) See(ctx context.Context, w Want) (Seen, error) {
	seen := Seen{Types: map[string]bool{}, Scenes: map[string]*SeenScene{}}
	var err error
	if seen.Platforms, err = a.platforms(ctx); err != nil {
		return seen, fmt.Errorf("list the platforms of the server: %w", err)
	}
	for _, category := range categories {
		if seen.Types[category], err = a.hasType(ctx, category, w.TargetType); err != nil {
			return seen, fmt.Errorf("read the types of change of the server: %w", err)
		}
	}
	for _, want := range w.Scenes {
		s, err := a.scene(ctx, want.Key)
		if err != nil {
			return seen, fmt.Errorf("read scene %s of the server: %w", want.Key, err)
		}
		if s != nil {
			seen.Scenes[want.Key] = s
		}
	}
	return seen, nil
}

// Apply performs the actions of a plan. After an error, See and Decide return the actions that are left.
func (a *Admin) Apply(ctx context.Context, w Want, p Plan, token string) error {
	if p.CreatePlatform {
		if p.CreateSequence {
			if err := a.createSequence(ctx); err != nil {
				return fmt.Errorf("create the sequence of ids: %w", err)
			}
		}
		if err := a.createPlatform(ctx, w.Platform, w.Owner, token); err != nil {
			return fmt.Errorf("create platform %s: %w", w.Platform, err)
		}
	}
	for _, category := range p.Types {
		if err := a.createType(ctx, category, w.TargetType); err != nil {
			return fmt.Errorf("create type of change %s (%s): %w", w.TargetType, category, err)
		}
	}
	for _, s := range p.Create {
		if err := a.createScene(ctx, w, s); err != nil {
			return fmt.Errorf("create scene %s: %w", s.Key, err)
		}
	}
	for _, s := range p.Configure {
		// The server made the ids of the steps.
		seen, err := a.scene(ctx, s.Key)
		if err == nil && seen == nil {
			err = errors.New("the server does not list it")
		}
		if err == nil {
			err = a.configureScene(ctx, seen, s)
		}
		if err != nil {
			return fmt.Errorf("configure scene %s: %w", s.Key, err)
		}
	}
	return nil
}
