package altershielddouble

import (
	"slices"
	"time"
)

const (
	generation1 = "G1"
	generation2 = "G2"
	batchSuffix = "._batch"
)

// admin is the metadata that the admin API writes. The double keeps it in its state file.
type admin struct {
	// Sequence: ids can be made. Without it, nothing can be created.
	Sequence bool `json:"sequence"`
	// Platforms maps platforms to their tokens.
	Platforms map[string]string `json:"platforms"`
	// Types has a key category/type for each type of change.
	Types  map[string]bool `json:"types"`
	Scenes []*scene        `json:"scenes"`
}

// scene is a change scene.
type scene struct {
	ID         string    `json:"id"`
	Key        string    `json:"key"`
	Name       string    `json:"name"`
	Platform   string    `json:"platform"`
	Generation string    `json:"generation"`
	Released   bool      `json:"released"`
	Callback   string    `json:"callback"`
	Created    time.Time `json:"created"`
	Steps      []*step   `json:"steps"`
}

// step is a step of a scene: the order, or the batches. Timeouts are in milliseconds.
type step struct {
	ID              string `json:"id"`
	Key             string `json:"key"`
	Name            string `json:"name"`
	PreCheckTimeout int64  `json:"preCheckTimeout"`
	PostTimeout     int64  `json:"postCheckTimeout"`
}

func newAdmin() admin { return admin{Platforms: map[string]string{}, Types: map[string]bool{}} }

// scene returns the scene with a key or an id, or nil. d.mu is held.
func (d *Double) scene(ref string) *scene {
	if i := slices.IndexFunc(d.admin.Scenes, func(s *scene) bool { return s.Key == ref || s.ID == ref }); i >= 0 {
		return d.admin.Scenes[i]
	}
	return nil
}

// knowsScene reports whether calls can use a scene. d.mu is held.
func (d *Double) knowsScene(key string) bool {
	if s := d.scene(key); s != nil {
		return d.options.Clock.Since(s.Created) >= d.options.SceneCache
	}
	return !d.options.Empty && (d.options.Scene == "" || key == d.options.Scene || key == d.options.Generation1Scene)
}

// isGeneration1 reports whether the orders of a scene are checked synchronously. d.mu is held.
func (d *Double) isGeneration1(key string) bool {
	if s := d.scene(key); s != nil {
		return s.Generation == generation1
	}
	return d.options.Generation1Scene != "" && key == d.options.Generation1Scene
}

// target returns the callback URL and the timeout of a check. d.mu is held.
func (d *Double) target(n *node, stage Stage) (url string, timeout time.Duration) {
	s := d.scene(n.order.scene)
	if s == nil {
		return d.options.CallbackURL, d.options.CheckTimeout
	}
	key := s.Key
	if n.step == stepBatch {
		key += batchSuffix
	}
	for _, each := range s.Steps {
		if each.Key == key {
			ms := each.PreCheckTimeout
			if stage == Post {
				ms = each.PostTimeout
			}
			return s.Callback, time.Duration(ms) * time.Millisecond
		}
	}
	return s.Callback, 0
}

// tokenOf returns the token of a platform.
func (d *Double) tokenOf(platform string) (string, bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if token, created := d.admin.Platforms[platform]; created {
		return token, true
	}
	token, known := d.options.Tokens[platform]
	return token, known
}
