package setup

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// Generations of scenes.
const (
	// Generation1: the server answers a check synchronously (release checks).
	Generation1 = "G1"
	// Generation2: the server calls back. Orders and batches are checked.
	Generation2 = "G2"
)

// DefaultCheckTimeout is the time limit of a check of a new scene. The server's own defaults, 1s and 10s, are
// shorter than most rules, and a check that exceeds it is called back as a pass.
const DefaultCheckTimeout = time.Minute

// batchSuffix ends the key of the step of batches.
const batchSuffix = "._batch"

// categories are the categories of types of change that a scene needs.
var categories = []string{"contentType", "effectiveTargetType", "changeTargetType"}

// Want is what a cluster needs at the server.
type Want struct {
	// Platform is the name of the platform.
	Platform string
	// Owner is the owner of what is created.
	Owner string
	// Tenant is the tenant of the scenes.
	Tenant string
	// TargetType is the type of change: what a batch consists of.
	TargetType string
	Scenes     []Scene
	// Replace: the callback URL of an existing scene may be replaced.
	Replace bool
}

// Scene is a wanted scene.
type Scene struct {
	Key  string
	Name string
	// Generation is Generation1 or Generation2.
	Generation string
	// Callback is the callback URL of Generation2.
	Callback string
	// Pre and Post are the time limits of a check. 0 keeps those of a released scene, and means
	// DefaultCheckTimeout for a new one.
	Pre, Post time.Duration
}

// Seen is what the server has.
type Seen struct {
	Platforms []string
	// Types are the existing types of change, by category.
	Types map[string]bool
	// Scenes are the existing scenes, by key.
	Scenes map[string]*SeenScene
}

// SeenScene is an existing scene.
type SeenScene struct {
	ID, Platform, Generation string
	// Released: the scene is complete.
	Released bool
	Callback string
	Steps    []SceneStep
}

// SceneStep is a step of a scene: the order, or the batches.
type SceneStep struct {
	ID, Key, Name string
	Pre, Post     time.Duration
}

// Plan has the missing actions of a setup.
type Plan struct {
	// CreateSequence: the sequence of ids may be missing. Only a server without platforms may lack it.
	CreateSequence bool
	// CreatePlatform: the platform is missing.
	CreatePlatform bool
	// Types are the missing categories.
	Types []string
	// Create has the missing scenes. Configure has these too, and the existing scenes that are not
	// released or whose settings differ.
	Create, Configure []Scene
}

// Done reports whether nothing is missing.
func (p Plan) Done() bool {
	return !p.CreatePlatform && len(p.Types)+len(p.Create)+len(p.Configure) == 0
}

// Conflict says why an existing object at the server cannot be used. Field is the flag whose value
// names the object.
type Conflict struct{ Field, Message string }

// Error implements error.
func (c Conflict) Error() string { return c.Field + ": " + c.Message }

// Decide returns the missing actions. The error is a Conflict.
func Decide(w Want, seen Seen) (Plan, error) {
	p := Plan{CreatePlatform: !slices.Contains(seen.Platforms, w.Platform), CreateSequence: len(seen.Platforms) == 0}
	for _, category := range categories {
		if !seen.Types[category] {
			p.Types = append(p.Types, category)
		}
	}
	for _, want := range w.Scenes {
		s := seen.Scenes[want.Key]
		if s == nil {
			p.Create = append(p.Create, want)
			p.Configure = append(p.Configure, want)
			continue
		}
		if c := conflict(w, s, want); c != nil {
			return Plan{}, *c
		}
		if !s.Released || differs(s, want) {
			p.Configure = append(p.Configure, want)
		}
	}
	return p, nil
}

// conflict returns why an existing scene cannot be used, or nil.
func conflict(w Want, s *SeenScene, want Scene) *Conflict {
	field := "--scene"
	if want.Generation == Generation1 {
		field = "--release-check-scene"
	}
	switch {
	case s.Platform != w.Platform:
		return &Conflict{field, fmt.Sprintf("scene %s belongs to platform %s at the server, not to %s: choose another scene, or that platform with --platform", want.Key, s.Platform, w.Platform)}
	case s.Generation != want.Generation:
		return &Conflict{field, fmt.Sprintf("scene %s has generation %s at the server, and %s is needed: choose another scene", want.Key, s.Generation, want.Generation)}
	case want.Generation == Generation2 && (!s.has(want.Key) || !s.has(want.Key+batchSuffix)):
		return &Conflict{field, fmt.Sprintf("scene %s has no step for the order or for the batches at the server: choose another scene", want.Key)}
	case want.Generation == Generation2 && s.Released && s.Callback != "" && s.Callback != want.Callback && !w.Replace:
		return &Conflict{field, fmt.Sprintf("scene %s calls back to %s at the server, not to %s; a scene has one callback URL, so another cluster may use it: choose another scene, or replace the URL with --replace", want.Key, s.Callback, want.Callback)}
	}
	return nil
}

func (s *SeenScene) has(key string) bool {
	return slices.ContainsFunc(s.Steps, func(step SceneStep) bool { return step.Key == key })
}

// differs reports whether settings of a released scene differ from the wanted ones.
func differs(s *SeenScene, want Scene) bool {
	if want.Generation == Generation1 {
		return false // the server does not set these
	}
	return s.Callback != want.Callback || slices.ContainsFunc(s.Steps, func(step SceneStep) bool {
		pre, post := checkTimeoutsOf(s, step, want)
		return pre != step.Pre || post != step.Post
	})
}

// checkTimeoutsOf returns the time limits of the checks of a step.
func checkTimeoutsOf(s *SeenScene, step SceneStep, want Scene) (pre, post time.Duration) {
	pre, post = step.Pre, step.Post
	if !s.Released {
		pre, post = DefaultCheckTimeout, DefaultCheckTimeout
	}
	if want.Pre > 0 {
		pre = want.Pre
	}
	if want.Post > 0 {
		post = want.Post
	}
	return pre, post
}

// CheckTimeouts returns the longest time limits of checks that the steps of a scene have after a setup.
func (want Scene) CheckTimeouts(seen Seen) (pre, post time.Duration) {
	s := seen.Scenes[want.Key]
	if s == nil {
		return checkTimeoutsOf(&SeenScene{}, SceneStep{}, want)
	}
	for _, step := range s.Steps {
		stepPre, stepPost := checkTimeoutsOf(s, step, want)
		pre, post = max(pre, stepPre), max(post, stepPost)
	}
	return pre, post
}

// Lines describe the actions for people.
func (p Plan) Lines(w Want) (lines []string) {
	if p.CreatePlatform {
		lines = append(lines, "create platform "+w.Platform)
	}
	if len(p.Types) > 0 {
		lines = append(lines, fmt.Sprintf("create type of change %s (%s)", w.TargetType, strings.Join(p.Types, ", ")))
	}
	for _, s := range p.Create {
		lines = append(lines, fmt.Sprintf("create scene %s of generation %s", s.Key, s.Generation))
	}
	for _, s := range p.Configure {
		if s.Generation == Generation2 {
			lines = append(lines, fmt.Sprintf("set the callback URL of scene %s to %s, and the time limits of its checks", s.Key, s.Callback))
		}
	}
	return lines
}
