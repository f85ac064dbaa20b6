package altershielddouble

import (
	"encoding/json"
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func empty(o *Options) { o.Empty = true }

// administer posts a body to the admin API, or reads if the body is empty.
func (f *fixture) administer(t *testing.T, path, body string) answer {
	t.Helper()
	method := http.MethodPost
	if body == "" {
		method = http.MethodGet
	}
	status, raw := f.callControl(t, method, path, body)
	out := answer{status: status, raw: raw}
	_ = json.Unmarshal([]byte(raw), &out.result) // some domains are no objects
	return out
}

const (
	createPlatform = `{"platformName":"breakwater","owner":"o","token":"token"}`
	createType     = `{"category":"contentType","type":"pod","name":"pod","description":"pod"}`
	sceneFields    = `"name":"n","owner":"o","platformName":"breakwater","changeTargetType":"pod"`
	createScene    = `{"changeSceneKey":"scene","generation":"G2",` + sceneFields + `,"changeEffectiveConfig":{"changeProgress":{"enableBatchStep":true,"enableOrderStep":true}}}`
)

func TestTheAdminAPIAnswersAsTheServer(t *testing.T) {
	f := newFixture(t, empty)
	for _, tc := range []struct {
		name, path, body string
		status           int
		code, has        string
	}{
		{"an empty server has no platform", "/meta/platform/queryAllPlatform", "", 200, "000", `"domain":[]`},
		{"without the sequence no platform can be created", "/meta/platform/create", createPlatform, 500, "", "Internal Server Error"},
		{"without the sequence no type can be created", "/meta/change_type/insert", createType, 200, "901", ""},
		{"without the sequence no scene can be created", "/meta/change_scene/create/standard", createScene, 200, "901", ""},
		{"the sequence is created without an answer", "/meta/platform/createSequence", "{}", 200, "", ""},
		{"the sequence is created once", "/meta/platform/createSequence", "{}", 500, "", ""},
		{"a token is too long", "/meta/platform/create", `{"platformName":"breakwater","owner":"o","token":"` + strings.Repeat("x", 33) + `"}`, 500, "", ""},
		{"a platform is created", "/meta/platform/create", createPlatform, 200, "000", "platform-"},
		{"a platform is created once", "/meta/platform/create", createPlatform, 500, "", ""},
		{"a platform is listed", "/meta/platform/queryAllPlatform", "", 200, "000", `["breakwater"]`},
		{"a type is missing", "/meta/change_type/query", `{"category":"contentType","type":"pod"}`, 200, "000", `"domain":[]`},
		{"a type needs a description", "/meta/change_type/insert", `{"category":"contentType","type":"pod","name":"pod"}`, 200, "101", "description"},
		{"a type is created", "/meta/change_type/insert", createType, 200, "000", "type-"},
		{"a type is created once", "/meta/change_type/insert", createType, 200, "901", ""},
		{"a type exists", "/meta/change_type/query", `{"category":"contentType","type":"pod"}`, 200, "000", `"type":"pod"`},
		{"a standard scene needs its effects", "/meta/change_scene/create/standard", `{"changeSceneKey":"scene","generation":"G2",` + sceneFields + `}`, 200, "101", "changeEffectiveConfig"},
		{"a key has a dash", "/meta/change_scene/create/base", `{"changeSceneKey":"a-b","generation":"G1",` + sceneFields + `}`, 200, "101", "changeSceneKey"},
		{"a scene is created", "/meta/change_scene/create/standard", createScene, 200, "000", "scene-"},
		{"a scene is created once", "/meta/change_scene/create/standard", createScene, 200, "101", "exists"},
		{"a scene is listed by a part of its key", "/meta/change_scene/list", `{"changeSceneKey":"cen"}`, 200, "000", `"status":"TEMP"`},
		{"a scene is not listed by another key", "/meta/change_scene/list", `{"changeSceneKey":"other"}`, 200, "000", `"domain":[]`},
		{"an unknown scene", "/meta/change_scene/get?id=other", "", 200, "101", ""},
		{"an unknown scene cannot be configured", "/meta/change_scene/create2/standard", `{"id":"other"}`, 200, "101", ""},
		{"a body is not JSON", "/meta/change_scene/list", `{`, 400, "", ""},
	} {
		if got := f.administer(t, tc.path, tc.body); got.status != tc.status || got.code() != tc.code || !strings.Contains(got.raw, tc.has) {
			t.Errorf("%s: %d %s", tc.name, got.status, got.raw)
		}
	}
	if log, err := json.Marshal(f.Log()); err != nil || strings.Contains(string(log), `\"token\"`) || strings.Contains(string(log), `"token"`) {
		t.Errorf("the log has the token: %s, %v", log, err)
	}
}

// setUp creates a platform and a scene of each generation.
func (f *fixture) setUp(t *testing.T) {
	t.Helper()
	for _, call := range [][2]string{
		{"/meta/platform/createSequence", "{}"},
		{"/meta/platform/create", createPlatform},
		{"/meta/change_scene/create/standard", createScene},
		{"/meta/change_scene/create/base", `{"changeSceneKey":"release","generation":"G1",` + sceneFields + `}`},
	} {
		if got := f.administer(t, call[0], call[1]); got.status != 200 || got.code() == "101" {
			t.Fatal(got.raw)
		}
	}
	id := f.scene("scene").ID
	if got := f.administer(t, "/meta/change_scene/create2/standard", `{"id":"`+id+`","callbackConfig":{"callbackConfig":{"DEFAULT":"`+f.options.CallbackURL+`"}}}`); got.code() != "000" {
		t.Fatal(got.raw)
	}
}

func TestASceneOfTheAdminAPIIsUsedByCalls(t *testing.T) {
	f := newFixture(t, func(o *Options) { o.Empty = true })
	if got := f.call(t, actionOpenOrder, orderBody(nil)); got.code() != "102" {
		t.Errorf("an empty server has a platform: %s", got.raw)
	}
	f.setUp(t)
	f.setScript(t, `{"default":{"never":true}}`)
	f.started(t)
	if f.checked(t, syncTimeout, map[string]any{"checkTimeout": 0, "bizExecOrderId": "sync"}).code() != "000" {
		t.Error("the scene of generation 1 has no synchronous checks")
	}
	f.setScript(t, `{}`)
	f.call(t, actionStartBatch, batch(nil))
	f.await(t)
	if got := f.bodies(t); len(got) != 1 || got[0].CallbackRequest.ChangeSceneKey != "scene" {
		t.Errorf("callbacks are %+v", got)
	}
	if got := f.call(t, actionOpenOrder, orderBody(map[string]any{"changeSceneKey": "other", "bizExecOrderId": "p"})); got.code() != "101" {
		t.Errorf("an unknown scene: %s", got.raw)
	}
}

func TestTheAdminAPIsMetadataSurvivesAKill(t *testing.T) {
	file := filepath.Join(t.TempDir(), "state")
	first := persistent(t, file, empty)
	first.setUp(t)
	second := persistent(t, killed(t, file), empty)
	if diff := cmp.Diff(first.admin, second.admin); diff != "" {
		t.Error("(-was +is)", diff)
	}
}
