package altershielddouble

import (
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"slices"
	"strings"
)

// errFailed is a call that the server's framework answers with HTTP 500.
var errFailed = errors.New("the server failed")

// adminAPI adds the admin API of the server. It has no authentication.
func (d *Double) adminAPI() {
	type handler func(form) (any, error)
	handle := func(pattern string, fields []field, h handler) {
		d.mux.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) { d.serveAdmin(w, r, fields, h) })
	}
	handle("GET /meta/platform/queryAllPlatform", nil, func(form) (any, error) { return done("query success", d.platforms()), nil })
	handle("POST /meta/platform/createSequence", nil, d.createSequence)
	handle("POST /meta/platform/create", unchecked("platformName", "owner", "token"), d.createPlatform)
	handle("POST /meta/change_type/query", []field{required("category", 0), required("type", 0)}, d.queryType)
	handle("POST /meta/change_type/insert", []field{required("category", 20), required("type", 128), required("name", 128), required("description", 1024)}, d.insertType)
	base := []field{
		required("changeSceneKey", 200), required("name", 256), required("owner", 512), required("platformName", 128), required("generation", 12),
		required("changeTargetType", 56), {name: "changeContentType", limit: 56}, {name: "effectiveTargetType", limit: 4096},
		{name: "tenantCode", limit: 64}, {name: "serverTenantCode", limit: 4096}, {name: "changeEffectiveConfig", kind: kindMap},
	}
	handle("POST /meta/change_scene/create/base", base, d.createScene)
	standard := slices.Clone(base)
	standard[len(standard)-1].required = true
	handle("POST /meta/change_scene/create/standard", standard, d.createScene)
	handle("POST /meta/change_scene/create2/standard", []field{required("id", 0), {name: "callbackConfig", kind: kindMap}, {name: "defenceConfigs", kind: kindObjects}}, d.configureScene)
	handle("POST /meta/change_scene/list", []field{{name: "changeSceneKey"}, {name: "current", kind: kindInt}, {name: "pageSize", kind: kindInt}}, d.listScenes)
	handle("GET /meta/change_scene/get", []field{required("id", 0)}, d.getScene)
}

func required(name string, limit int) field { return field{name: name, required: true, limit: limit} }

// unchecked are texts that the server does not validate.
func unchecked(names ...string) []field {
	var out []field
	for _, name := range names {
		out = append(out, field{name: name})
	}
	return out
}

// serveAdmin binds a call and answers it: violations with 101, errFailed with HTTP 500, no answer with
// an empty body.
func (d *Double) serveAdmin(w http.ResponseWriter, r *http.Request, fields []field, handle func(form) (any, error)) {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
	if err != nil {
		http.Error(w, "body is too long or incomplete", http.StatusBadRequest)
		return
	}
	entry := CallEntry{Time: d.options.Clock.Now(), Action: r.URL.Path}
	if json.Valid(body) && r.URL.Path != "/meta/platform/create" { // the log has no tokens
		entry.Body = body
	}
	if r.Method == http.MethodGet {
		body, err = json.Marshal(map[string]string{"id": r.URL.Query().Get("id")})
	} else if len(fields) == 0 {
		body = []byte("{}")
	}
	in, wrong, bindErr := bind(fields, body)
	out := reply{status: http.StatusOK}
	switch {
	case err != nil || bindErr != nil:
		out = statusReply(http.StatusBadRequest, r.URL.Path)
	case len(wrong) > 0:
		out = resultReply(rejected(codeArgument, strings.Join(wrong, "\n")))
	default:
		out = d.administer(r.URL.Path, in, handle)
	}
	entry.Status, entry.Code, entry.Done = out.status, out.result.code(), d.options.Clock.Now()
	d.recordCall(entry)
	out.write(w)
}

// administer executes a call and stores the metadata.
func (d *Double) administer(path string, in form, handle func(form) (any, error)) reply {
	d.mu.Lock()
	defer d.mu.Unlock()
	answer, err := handle(in)
	if err != nil {
		return statusReply(http.StatusInternalServerError, path)
	}
	d.keep(record{Admin: &d.admin})
	switch a := answer.(type) {
	case nil:
		return reply{status: http.StatusOK}
	case result:
		return resultReply(a)
	default:
		raw, err := json.Marshal(a)
		if err != nil { // cannot fail: strings, numbers and maps of them
			panic(err)
		}
		return reply{status: http.StatusOK, body: raw}
	}
}
