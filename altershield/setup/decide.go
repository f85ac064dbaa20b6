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

// Desired is what a cluster needs at the server.
type Desired struct {
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

// Scene is a desired scene.
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

// Observed is what the server has.
type Observed struct {
	Platforms []string
	// Types are the existing types of change, by category.
	Types map[string]bool
	// Scenes are the existing scenes, by key.
	Scenes map[string]*ObservedScene
}

// ObservedScene is an existing scene.
type ObservedScene struct {
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
func Decide(d Desired, observed Observed) (Plan, error) {
	p := Plan{CreatePlatform: !slices.Contains(observed.Platforms, d.Platform), CreateSequence: len(observed.Platforms) == 0}
	for _, category := range categories {
		if !observed.Types[category] {
			p.Types = append(p.Types, category)
		}
	}
	for _, scene := range d.Scenes {
		existing := observed.Scenes[scene.Key]
		if existing == nil {
			p.Create = append(p.Create, scene)
			p.Configure = append(p.Configure, scene)
			continue
		}
		if c := conflict(d, existing, scene); c != nil {
			return Plan{}, *c
		}
		if !existing.Released || differs(existing, scene) {
			p.Configure = append(p.Configure, scene)
		}
	}
	return p, nil
}

// conflict returns why an existing scene cannot be used, or nil.
func conflict(d Desired, existing *ObservedScene, scene Scene) *Conflict {
	field := "--scene"
	if scene.Generation == Generation1 {
		field = "--release-check-scene"
	}
	switch {
	case existing.Platform != d.Platform:
		return &Conflict{field, fmt.Sprintf("scene %s belongs to platform %s at the server, not to %s: choose another scene, or that platform with --platform", scene.Key, existing.Platform, d.Platform)}
	case existing.Generation != scene.Generation:
		return &Conflict{field, fmt.Sprintf("scene %s has generation %s at the server, and %s is needed: choose another scene", scene.Key, existing.Generation, scene.Generation)}
	case scene.Generation == Generation2 && (!existing.has(scene.Key) || !existing.has(scene.Key+batchSuffix)):
		return &Conflict{field, fmt.Sprintf("scene %s has no step for the order or for the batches at the server: choose another scene", scene.Key)}
	case scene.Generation == Generation2 && existing.Released && existing.Callback != "" && existing.Callback != scene.Callback && !d.Replace:
		return &Conflict{field, fmt.Sprintf("scene %s calls back to %s at the server, not to %s; a scene has one callback URL, so another cluster may use it: choose another scene, or replace the URL with --replace", scene.Key, existing.Callback, scene.Callback)}
	}
	return nil
}

func (s *ObservedScene) has(key string) bool {
	return slices.ContainsFunc(s.Steps, func(step SceneStep) bool { return step.Key == key })
}

// differs reports whether settings of a released scene differ from the desired ones.
func differs(existing *ObservedScene, scene Scene) bool {
	if scene.Generation == Generation1 {
		return false // the server does not set these
	}
	return existing.Callback != scene.Callback || slices.ContainsFunc(existing.Steps, func(step SceneStep) bool {
		pre, post := checkTimeoutsOf(existing, step, scene)
		return pre != step.Pre || post != step.Post
	})
}

// checkTimeoutsOf returns the time limits of the checks of a step.
func checkTimeoutsOf(existing *ObservedScene, step SceneStep, scene Scene) (pre, post time.Duration) {
	pre, post = step.Pre, step.Post
	if !existing.Released {
		pre, post = DefaultCheckTimeout, DefaultCheckTimeout
	}
	if scene.Pre > 0 {
		pre = scene.Pre
	}
	if scene.Post > 0 {
		post = scene.Post
	}
	return pre, post
}

// CheckTimeouts returns the longest time limits of checks that the steps of a scene have after a setup.
func (s Scene) CheckTimeouts(observed Observed) (pre, post time.Duration) {
	existing := observed.Scenes[s.Key]
	if existing == nil {
		return checkTimeoutsOf(&ObservedScene{}, SceneStep{}, s)
	}
	for _, step := range existing.Steps {
		stepPre, stepPost := checkTimeoutsOf(existing, step, s)
		pre, post = max(pre, stepPre), max(post, stepPost)
	}
	return pre, post
}

// Lines describe the actions for people.
func (p Plan) Lines(d Desired) (lines []string) {
	if p.CreatePlatform {
		lines = append(lines, "create platform "+d.Platform)
	}
	if len(p.Types) > 0 {
		lines = append(lines, fmt.Sprintf("create type of change %s (%s)", d.TargetType, strings.Join(p.Types, ", ")))
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
