package setup

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

var wanted = Desired{
	Platform: "breakwater", Owner: "breakwater", Tenant: "default", TargetType: "pod",
	Scenes: []Scene{{Key: "rollout", Name: "rollout", Generation: Generation2, Callback: "https://callback"}},
}

// complete returns a server that lacks nothing.
func complete() Observed {
	return Observed{
		Platforms: []string{"other", "breakwater"},
		Types:     map[string]bool{"contentType": true, "effectiveTargetType": true, "changeTargetType": true},
		Scenes: map[string]*ObservedScene{
			"rollout": {ID: "1", Platform: "breakwater", Generation: Generation2, Released: true, Callback: "https://callback", Steps: []SceneStep{
				{ID: "2", Key: "rollout", Pre: time.Second, Post: 10 * time.Second},
				{ID: "3", Key: "rollout._batch", Pre: time.Second, Post: 10 * time.Second},
			}},
		},
	}
}

func TestASetupPlansWhatTheServerLacks(t *testing.T) {
	withScene := func(change func(*ObservedScene)) Observed {
		s := complete()
		change(s.Scenes["rollout"])
		return s
	}
	withWanted := func(change func(*Desired, *Scene)) Desired {
		w := wanted
		w.Scenes = slices.Clone(wanted.Scenes)
		change(&w, &w.Scenes[0])
		return w
	}
	limits := withWanted(func(_ *Desired, s *Scene) { s.Post = time.Minute })
	for name, tc := range map[string]struct {
		want     Desired
		observed Observed
		plan     Plan
		err      string
	}{
		"nothing exists": {wanted, Observed{}, Plan{
			CreateSequence: true, CreatePlatform: true, Types: categories, Create: wanted.Scenes, Configure: wanted.Scenes,
		}, ""},
		"another platform exists":  {wanted, Observed{Platforms: []string{"other"}}, Plan{CreatePlatform: true, Types: categories, Create: wanted.Scenes, Configure: wanted.Scenes}, ""},
		"everything exists":        {wanted, complete(), Plan{}, ""},
		"a type is missing":        {wanted, func() Observed { s := complete(); s.Types["contentType"] = false; return s }(), Plan{Types: []string{"contentType"}}, ""},
		"a scene is not complete":  {wanted, withScene(func(s *ObservedScene) { s.Released, s.Callback = false, "" }), Plan{Configure: wanted.Scenes}, ""},
		"a scene has no callback":  {wanted, withScene(func(s *ObservedScene) { s.Callback = "" }), Plan{Configure: wanted.Scenes}, ""},
		"limits are not wanted":    {wanted, withScene(func(s *ObservedScene) { s.Steps[0].Pre = time.Hour }), Plan{}, ""},
		"limits differ":            {limits, complete(), Plan{Configure: limits.Scenes}, ""},
		"limits are equal":         {limits, withScene(func(s *ObservedScene) { s.Steps[0].Post, s.Steps[1].Post = time.Minute, time.Minute }), Plan{}, ""},
		"limits of batches differ": {limits, withScene(func(s *ObservedScene) { s.Steps[0].Post = time.Minute }), Plan{Configure: limits.Scenes}, ""},
		"another callback":         {wanted, withScene(func(s *ObservedScene) { s.Callback = "https://other" }), Plan{}, "--scene: scene rollout calls back to https://other"},
		"a replaced callback": {
			withWanted(func(w *Desired, _ *Scene) { w.Replace = true }), withScene(func(s *ObservedScene) { s.Callback = "https://other" }), Plan{Configure: wanted.Scenes}, "",
		},
		"a scene of another platform":    {wanted, withScene(func(s *ObservedScene) { s.Platform = "other" }), Plan{}, "--scene: scene rollout belongs to platform other"},
		"a scene of generation 1":        {wanted, withScene(func(s *ObservedScene) { s.Generation = Generation1 }), Plan{}, "--scene: scene rollout has generation G1"},
		"a scene without batches":        {wanted, withScene(func(s *ObservedScene) { s.Steps = s.Steps[:1] }), Plan{}, "--scene: scene rollout has no step"},
		"a release check needs no limit": {withWanted(func(_ *Desired, s *Scene) { s.Generation, s.Callback = Generation1, "" }), withScene(func(s *ObservedScene) { s.Generation = Generation1 }), Plan{}, ""},
		"a release check of generation 2": {
			withWanted(func(_ *Desired, s *Scene) { s.Generation = Generation1 }), complete(), Plan{}, "--release-check-scene: scene rollout has generation G2",
		},
	} {
		t.Run(name, func(t *testing.T) {
			plan, err := Decide(tc.want, tc.observed)
			var c Conflict
			if (err == nil) != (tc.err == "") || err != nil && (!errors.As(err, &c) || !strings.HasPrefix(err.Error(), tc.err)) {
				t.Errorf("error is %v, want %q", err, tc.err)
			}
			if diff := cmp.Diff(tc.plan, plan); diff != "" {
				t.Error("(-want +got)", diff)
			}
			if empty := len(plan.Lines(tc.want)) == 0; err == nil && empty != plan.Done() {
				t.Errorf("done is %t, lines are %q", plan.Done(), plan.Lines(tc.want))
			}
		})
	}
}

func TestTheLimitsOfASceneAreWantedKeptOrTheDefault(t *testing.T) {
	step := SceneStep{Pre: time.Second, Post: 10 * time.Second}
	for name, tc := range map[string]struct {
		released  bool
		want      Scene
		pre, post time.Duration
	}{
		"a new scene has the default":   {false, Scene{}, DefaultCheckTimeout, DefaultCheckTimeout},
		"a new scene has wanted limits": {false, Scene{Pre: time.Hour}, time.Hour, DefaultCheckTimeout},
		"a released scene keeps its":    {true, Scene{}, time.Second, 10 * time.Second},
		"a wanted limit replaces it":    {true, Scene{Post: time.Hour}, time.Second, time.Hour},
	} {
		t.Run(name, func(t *testing.T) {
			if pre, post := checkTimeoutsOf(&ObservedScene{Released: tc.released}, step, tc.want); pre != tc.pre || post != tc.post {
				t.Errorf("got %s, %s", pre, post)
			}
		})
	}
}
