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
	// query lists the query parameters.
	query []string
	body  reflect.Type
	// responses maps a status to the type of the body.
	responses map[int]reflect.Type
	// ifMatch: header If-Match is required; etag: the response has header ETag.
	ifMatch, etag bool
}

// queries describes the query parameters.
var queries = map[string]string{
	"limit": "maximum number of items, 1 to 500; default 100", "continue": "value of continue in the previous page", "search": "part of the name, owner or description",
	"wait": "duration such as 30s, at most 60s: answer when the version is above version, or after this time", "version": "last known version",
	"cluster": "cluster of the pod", "namespace": "namespace of the pod", "pod": "name of the pod", "podUID": "UID of the pod", "ip": "address of the pod",
	"set": "name of the permission set", "state": "states, separated by commas; an unknown state is answered 400", "kind": "kind of the object", "name": "name of the object", "who": "user who made the change",
	"clusterUID": "UID of namespace kube-system of the cluster; 403 if the name of the cluster belongs to another one",
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
				responses: map[int]reflect.Type{200: r.list}},
			operation{method: "post", path: "/v1/" + r.path, id: "create" + id, summary: "Register a " + r.one + ".", body: r.body,
				responses: map[int]reflect.Type{201: r.body}, etag: true},
			operation{method: "get", path: "/v1/" + r.path + "/{name}", id: "get" + id, summary: "Read a " + r.one + ".",
				responses: map[int]reflect.Type{200: r.body}, etag: true},
			operation{method: "put", path: "/v1/" + r.path + "/{name}", id: "update" + id, summary: "Replace a " + r.one + ".", body: r.body,
				responses: map[int]reflect.Type{200: r.body}, etag: true, ifMatch: true},
			operation{method: "delete", path: "/v1/" + r.path + "/{name}", id: "delete" + id, summary: "Delete a " + r.one + "; 409 while it is in use.",
				responses: map[int]reflect.Type{204: nil}, ifMatch: true})
	}
	application := reflect.TypeFor[api.Application]()
	return append(all,
		operation{method: "get", path: "/v1/audit", id: "listAudit", summary: "List changes of registered objects, newest first; requires an admin.",
			query: []string{"kind", "name", "who", "limit", "continue"}, responses: map[int]reflect.Type{200: reflect.TypeFor[api.List[api.AuditEntry]]()}},
		operation{method: "get", path: "/v1/applications", id: "listApplication", summary: "List the applications that the user may view.",
			query:     []string{"cluster", "namespace", "pod", "podUID", "ip", "set", "state", "limit", "continue"},
			responses: map[int]reflect.Type{200: reflect.TypeFor[api.ApplicationList]()}},
		operation{method: "post", path: "/v1/applications", id: "createApplication", summary: "Request a permission set for a pod. A repeated request returns the same application; after Denied, Failed, Revoked or Leaked it begins a new attempt.",
			query: []string{"clusterUID"}, body: reflect.TypeFor[api.ApplicationRequest](), responses: map[int]reflect.Type{200: application, 201: application, 202: application}, etag: true},
		operation{method: "post", path: "/v1/applications/revoke", id: "revokePod", summary: "Revoke the applications of a pod.",
			body: reflect.TypeFor[api.RevokeRequest](), responses: map[int]reflect.Type{200: reflect.TypeFor[api.RevokeResult]()}},
		operation{method: "get", path: "/v1/applications/{id}", id: "getApplication", summary: "Read an application; with wait, when it has changed.",
			query: []string{"wait", "version"}, responses: map[int]reflect.Type{200: application}, etag: true},
		operation{method: "get", path: "/v1/applications/{id}/history", id: "getApplicationHistory", summary: "Read the state changes of an application, oldest first.",
			responses: map[int]reflect.Type{200: reflect.TypeFor[api.History]()}},
		operation{method: "post", path: "/v1/applications/{id}/revoke", id: "revokeApplication", summary: "Revoke an application; 202 while it is being revoked, 200 when it is Revoked or Leaked.",
			responses: map[int]reflect.Type{200: application, 202: application}, etag: true},
		operation{method: "post", path: "/v1/applications/{id}/reset", id: "resetApplication", summary: "Begin a new attempt of a Denied or Failed application.",
			responses: map[int]reflect.Type{200: application, 202: application}, etag: true},
		operation{method: "post", path: "/v1/applications/{id}/acknowledge", id: "acknowledgeApplication",
			summary:   "State that the leaked grants of an application no longer exist; requires a user who belongs to each owner of the permissions, or an admin. They are Revoked and are not retried.",
			responses: map[int]reflect.Type{200: application}, etag: true},
		operation{method: "post", path: "/v1/providers/{name}/acknowledge", id: "acknowledgeProvider",
			summary:   "State that the leaked grants of a provider no longer exist, except those for which it is being called; requires an admin.",
			responses: map[int]reflect.Type{200: reflect.TypeFor[api.AcknowledgeResult]()}},
		operation{method: "post", path: "/v1/clusters/{cluster}/pods/reconcile", id: "reconcilePods", summary: "Report a page of existing pods; applications of other pods in its range are revoked, or need a confirmation if they are too many.",
			body: reflect.TypeFor[api.PodReport](), responses: map[int]reflect.Type{200: reflect.TypeFor[api.PodReportResult]()}},
		operation{method: "get", path: "/v1/clusters/{cluster}", id: "getCluster", summary: "Read the state of the reports of a cluster.",
			responses: map[int]reflect.Type{200: reflect.TypeFor[api.Cluster]()}},
		operation{method: "post", path: "/v1/clusters/{cluster}/pods/confirm", id: "confirmReport",
			summary: "Confirm how many applications a report may revoke, or that another cluster has the name now; requires an admin.",
			body:    reflect.TypeFor[api.ReportConfirmation](), responses: map[int]reflect.Type{200: reflect.TypeFor[api.Cluster]()}})
}

// build returns the document.
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
			"description": "Permissions that pods can request, and the applications for them. Generated from permission/api by make generate."},
		"paths":    paths,
		"security": []any{object{"bearer": []any{}}},
		"components": object{"schemas": s.all, "securitySchemes": object{"bearer": object{"type": "http", "scheme": "bearer",
			"description": "A Kubernetes token of audience permission-centre, an OIDC token or a static token."}}},
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
		// Not marked as required: a generated client would reject the request itself,
		// and the server could not answer 428.
		parameters = append(parameters, object{"name": "If-Match", "in": "header", "description": "the ETag of the object that was read", "schema": object{"type": "string"}})
	}
	responses := object{"default": object{"description": "Error.", "content": content(s.of(reflect.TypeFor[api.Error]()))}}
	for status, t := range op.responses {
		response := object{"description": map[int]string{200: "OK.", 201: "Created.", 202: "Accepted.", 204: "Deleted."}[status]}
		if t != nil {
			response["content"] = content(s.of(t))
		}
		if op.etag {
			response["headers"] = object{"ETag": object{"description": "The version.", "schema": object{"type": "string"}}}
		}
		responses[strconv.Itoa(status)] = response
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
