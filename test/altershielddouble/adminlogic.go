package altershielddouble

import (
	"cmp"
	"regexp"
	"slices"
	"strings"
)

// Limits of columns of the server's database, in bytes. A longer value fails.
const (
	maxPlatformName  = 64
	maxPlatformToken = 32
)

// Default limits of the steps of a new scene, in milliseconds.
const (
	defaultPreTimeout  = 1000
	defaultPostTimeout = 10000
	syncStepTimeout    = 10000
)

func (d *Double) platforms() []string {
	all := []string{}
	for name := range d.admin.Platforms {
		all = append(all, name)
	}
	if !d.options.Empty {
		for name := range d.options.Tokens {
			all = append(all, name)
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// createSequence answers with an empty body, and fails if the sequence exists.
func (d *Double) createSequence(form) (any, error) {
	if d.admin.Sequence {
		return nil, errFailed
	}
	d.admin.Sequence = true
	return nil, nil
}

// createPlatform fails outside of the server's error handling: it answers every fault with HTTP 500.
func (d *Double) createPlatform(in form) (any, error) {
	name, token := in.text("platformName"), in.text("token")
	if !d.hasSequence() || name == "" || in.text("owner") == "" || len(name) > maxPlatformName || len(token) > maxPlatformToken ||
		slices.Contains(d.platforms(), name) {
		return nil, errFailed
	}
	d.admin.Platforms[name] = token
	return done("create success", d.newID("platform")), nil
}

// hasSequence reports whether ids can be made. Only an empty server has no sequence.
func (d *Double) hasSequence() bool { return d.admin.Sequence || !d.options.Empty }

func (d *Double) queryType(in form) (any, error) {
	found := []map[string]string{}
	if d.admin.Types[in.text("category")+"/"+in.text("type")] {
		found = append(found, map[string]string{"category": in.text("category"), "type": in.text("type")})
	}
	return done("success", found), nil
}

func (d *Double) insertType(in form) (any, error) {
	key := in.text("category") + "/" + in.text("type")
	if !d.hasSequence() || d.admin.Types[key] {
		return rejected(codeInternal, "could not insert the type "+key), nil
	}
	d.admin.Types[key] = true
	return done("success", d.newID("type")), nil
}

// sceneKey is the pattern of keys of scenes.
var sceneKey = regexp.MustCompile(`^[a-zA-Z][a-zA-Z0-9._]*[a-zA-Z0-9]$`)

func (d *Double) createScene(in form) (any, error) {
	key := in.text("changeSceneKey")
	switch {
	case !sceneKey.MatchString(key):
		return rejected(codeArgument, "changeSceneKey has characters other than letters, digits, dots and underscores"), nil
	case d.scene(key) != nil:
		return rejected(codeArgument, "change scene "+key+" exists"), nil
	case !d.hasSequence():
		return rejected(codeInternal, "no id could be made"), nil
	}
	s := &scene{
		ID: d.newID("scene"), Key: key, Name: in.text("name"), Platform: in.text("platformName"), Generation: in.text("generation"),
		Created: d.options.Clock.Now(),
	}
	progress, _ := in.object("changeEffectiveConfig")["changeProgress"].(map[string]any)
	if s.Generation == generation1 {
		s.Steps = append(s.Steps, &step{d.newID("step"), key, s.Name + " order", syncStepTimeout, syncStepTimeout})
	}
	if s.Generation == generation2 && progress["enableOrderStep"] == true {
		s.Steps = append(s.Steps, &step{d.newID("step"), key, s.Name + " order", defaultPreTimeout, defaultPostTimeout})
	}
	if s.Generation == generation2 && progress["enableBatchStep"] == true {
		s.Steps = append(s.Steps, &step{d.newID("step"), key + batchSuffix, s.Name + " batch", defaultPreTimeout, defaultPostTimeout})
	}
	d.admin.Scenes = append(d.admin.Scenes, s)
	return done("create changeScene Success", map[string]string{"id": s.ID}), nil
}

// configureScene sets the callback and the timeouts of a scene, except for generation 1, and releases
// the scene. It ignores steps that it does not know.
func (d *Double) configureScene(in form) (any, error) {
	s := d.scene(in.text("id"))
	if s == nil || s.ID != in.text("id") {
		return rejected(codeArgument, "change scene not found"), nil
	}
	s.Released = true
	if s.Generation == generation1 {
		return done("create changeScene Success", true), nil
	}
	urls, _ := in.object("callbackConfig")["callbackConfig"].(map[string]any)
	if url, ok := urls["DEFAULT"].(string); ok {
		s.Callback = url
	}
	configs, _ := in["defenceConfigs"].([]any)
	for _, each := range configs {
		config, _ := each.(map[string]any)
		for _, known := range s.Steps {
			if config["id"] == known.ID {
				pre, preOK := whole(config["preCheckTimeout"])
				post, postOK := whole(config["postCheckTimeout"])
				if !preOK || !postOK || pre < 1 || post < 1 {
					return rejected(codeArgument, "defenceConfigs: a timeout is less than 1"), nil
				}
				known.PreCheckTimeout, known.PostTimeout = pre, post
			}
		}
	}
	return done("create changeScene Success", true), nil
}

// listScenes returns one page of the scenes whose key contains a text.
func (d *Double) listScenes(in form) (any, error) {
	matches := []map[string]any{}
	for _, s := range slices.Backward(d.admin.Scenes) {
		if strings.Contains(s.Key, in.text("changeSceneKey")) {
			status := "TEMP"
			if s.Released {
				status = "RELEASE"
			}
			matches = append(matches, map[string]any{
				"id": s.ID, "changeSceneKey": s.Key, "name": s.Name, "platformName": s.Platform, "generation": s.Generation, "status": status,
			})
		}
	}
	current, size := max(in.num("current"), 1), cmp.Or(in.num("pageSize"), 10)
	from := min((current-1)*size, int64(len(matches)))
	to := min(from+size, int64(len(matches)))
	return map[string]any{
		"success": true, "resultCode": codeOK, "msg": nil, "domain": matches[from:to], "current": current, "pageSize": size, "total": len(matches),
	}, nil
}

func (d *Double) getScene(in form) (any, error) {
	s := d.scene(in.text("id"))
	if s == nil || s.ID != in.text("id") {
		return rejected(codeArgument, "change scene not found["+in.text("id")+"]"), nil
	}
	steps := []map[string]any{}
	for _, each := range s.Steps {
		steps = append(steps, map[string]any{
			"id": each.ID, "changeKey": each.Key, "changeStepName": each.Name, "interfaceType": "async", "displayOnly": false, "canConfig": true,
			"preCheckTimeout": each.PreCheckTimeout, "postCheckTimeout": each.PostTimeout,
		})
	}
	var callback map[string]string
	if s.Callback != "" {
		callback = map[string]string{"DEFAULT": s.Callback}
	}
	return doneWithoutCode(map[string]any{
		"changeSceneId": s.ID, "generation": s.Generation, "metaChangeInterfaceVOList": steps, "callbackConfig": callback,
	}), nil
}
