package main

import (
	"reflect"
	"strconv"
	"strings"

	"github.com/breakwater-dev/breakwater/permission/api"
)

// operation is one method of one path.
type operation struct {
	method, path, id, summary string
	// query are its parameters beside those in the path.
	query []string
	body  reflect.Type
	// answers are what it is answered by, with the types of their bodies.
	answers map[int]reflect.Type
	// ifMatch and etag: it takes, or gives, a version.
	ifMatch, etag bool
}

// queries say what a parameter is for.
var queries = map[string]string{
	"limit": "at most so many, 1 to 500; 100 unless told", "continue": "what the page before gave", "search": "a part of name, owner or description",
	"wait": "answer when the version is above the given one, or after this time, at most 60s", "version": "the version that is known",
	"cluster": "of this cluster", "namespace": "of this namespace", "pod": "of pods of this name", "podUID": "of this pod", "ip": "with this address",
	"set": "for this set", "state": "in these states, with commas", "kind": "of this kind", "name": "of this name", "who": "by this user",
}

func operations() []operation {
	var all []operation
	for _, r := range []struct {
		path, one string
		body      reflect.Type
		list      reflect.Type
	}{
		{"providers", "provider", reflect.TypeFor[api.Provider](), reflect.TypeFor[api.List[api.Provider]]()},
		{"permissions", "permission", reflect.TypeFor[api.Permission](), reflect.TypeFor[api.List[api.Permission]]()},
		{"permissionsets", "permission set", reflect.TypeFor[api.PermissionSet](), reflect.TypeFor[api.List[api.PermissionSet]]()},
	} {
		id := r.body.Name()
		all = append(all,
			operation{method: "get", path: "/v1/" + r.path, id: "list" + id, summary: "List " + r.one + "s.", query: []string{"limit", "continue", "search"},
				answers: map[int]reflect.Type{200: r.list}},
			operation{method: "post", path: "/v1/" + r.path, id: "create" + id, summary: "Register a " + r.one + ".", body: r.body,
				answers: map[int]reflect.Type{201: r.body}, etag: true},
			operation{method: "get", path: "/v1/" + r.path + "/{name}", id: "get" + id, summary: "Read a " + r.one + ".",
				answers: map[int]reflect.Type{200: r.body}, etag: true},
			operation{method: "put", path: "/v1/" + r.path + "/{name}", id: "update" + id, summary: "Replace a " + r.one + ".", body: r.body,
				answers: map[int]reflect.Type{200: r.body}, etag: true, ifMatch: true},
			operation{method: "delete", path: "/v1/" + r.path + "/{name}", id: "delete" + id, summary: "Delete a " + r.one + "; 409 while others need it.",
				answers: map[int]reflect.Type{204: nil}, ifMatch: true})
	}
	application := reflect.TypeFor[api.Application]()
	return append(all,
		operation{method: "get", path: "/v1/audit", id: "listAudit", summary: "Who changed what, newest first; for admins.",
			query: []string{"kind", "name", "who", "limit", "continue"}, answers: map[int]reflect.Type{200: reflect.TypeFor[api.List[api.AuditEntry]]()}},
		operation{method: "get", path: "/v1/applications", id: "listApplication", summary: "List applications that you may see.",
			query:   []string{"cluster", "namespace", "pod", "podUID", "ip", "set", "state", "limit", "continue"},
			answers: map[int]reflect.Type{200: reflect.TypeFor[api.ApplicationList]()}},
		operation{method: "post", path: "/v1/applications", id: "ask", summary: "Ask for a set for a pod; asking again finds the same application, and after Denied or Failed begins a new attempt.",
			body: reflect.TypeFor[api.ApplicationRequest](), answers: map[int]reflect.Type{200: application, 201: application, 202: application}, etag: true},
		operation{method: "post", path: "/v1/applications/revoke", id: "revokePod", summary: "Revoke all applications of a pod.",
			body: reflect.TypeFor[api.RevokeRequest](), answers: map[int]reflect.Type{200: reflect.TypeFor[api.ApplicationList]()}},
		operation{method: "get", path: "/v1/applications/{id}", id: "getApplication", summary: "Read an application, when it has changed if you like.",
			query: []string{"wait", "version"}, answers: map[int]reflect.Type{200: application}, etag: true},
		operation{method: "get", path: "/v1/applications/{id}/history", id: "getHistory", summary: "Read what happened to an application, oldest first.",
			answers: map[int]reflect.Type{200: reflect.TypeFor[api.History]()}},
		operation{method: "post", path: "/v1/applications/{id}/revoke", id: "revoke", summary: "Revoke an application; 200 when that is over, 202 while it is not.",
			answers: map[int]reflect.Type{200: application, 202: application}, etag: true},
		operation{method: "post", path: "/v1/applications/{id}/reset", id: "reset", summary: "Begin a new attempt of what was Denied or Failed.",
			answers: map[int]reflect.Type{200: application, 202: application}, etag: true},
		operation{method: "post", path: "/v1/clusters/{cluster}/pods/reconcile", id: "reconcile", summary: "Report a page of living pods; what the others of its range hold is revoked.",
			body: reflect.TypeFor[api.PodReport](), answers: map[int]reflect.Type{200: reflect.TypeFor[api.PodReportResult]()}})
}

// build makes the document.
func build(s *schemas) object {
	paths := object{}
	for _, op := range operations() {
		if paths[op.path] == nil {
			paths[op.path] = object{}
		}
		paths[op.path].(object)[op.method] = op.describe(s)
	}
	return object{
		"openapi": "3.0.3",
		"info": object{"title": "Breakwater permission centre", "version": "v1",
			"description": "What may be granted to pods, who asked for it, and what became of it. Written by make generate from permission/api."},
		"paths":    paths,
		"security": []any{object{"bearer": []any{}}},
		"components": object{"schemas": s.all, "securitySchemes": object{"bearer": object{"type": "http", "scheme": "bearer",
			"description": "A Kubernetes token of audience permission-centre, an OIDC token, or a static one."}}},
	}
}

func (op operation) describe(s *schemas) object {
	var parameters []any
	for segment := range strings.SplitSeq(op.path, "/") {
		if name, ok := strings.CutPrefix(segment, "{"); ok {
			parameters = append(parameters, object{"name": strings.TrimSuffix(name, "}"), "in": "path", "required": true, "schema": object{"type": "string"}})
		}
	}
	for _, name := range op.query {
		parameters = append(parameters, object{"name": name, "in": "query", "description": queries[name], "allowEmptyValue": true, "schema": object{"type": "string"}})
	}
	if op.ifMatch {
		// Not required, so that leaving it out is answered by 428 and not by a client.
		parameters = append(parameters, object{"name": "If-Match", "in": "header", "description": "the ETag of the object as it was read", "schema": object{"type": "string"}})
	}
	responses := object{"default": object{"description": "A refusal.", "content": content(s.of(reflect.TypeFor[api.Error]()))}}
	for status, t := range op.answers {
		answer := object{"description": map[int]string{200: "As it is.", 201: "New.", 202: "Begun.", 204: "Gone."}[status]}
		if t != nil {
			answer["content"] = content(s.of(t))
		}
		if op.etag {
			answer["headers"] = object{"ETag": object{"description": "The version.", "schema": object{"type": "string"}}}
		}
		responses[strconv.Itoa(status)] = answer
	}
	d := object{"operationId": op.id, "summary": op.summary, "responses": responses}
	if parameters != nil {
		d["parameters"] = parameters
	}
	if op.body != nil {
		d["requestBody"] = object{"required": true, "content": content(s.of(op.body))}
	}
	return d
}

func content(schema object) object { return object{"application/json": object{"schema": schema}} }
