package provider

import (
	"net/http"

	"github.com/breakwater-dev/breakwater/permission/api"
)

// Registration returns the double as a provider of a permission centre. A
// permission whose parameter wrong is "true" is denied.
func Registration(name, endpoint, owner string) api.Provider {
	return api.Provider{
		Meta: api.Meta{Name: name, Owner: owner}, Type: api.ProviderHTTP, Endpoint: endpoint, CanRevoke: true, Owners: []string{"*"},
		HTTP: &api.HTTPCalls{
			Grant: api.HTTPCall{Path: "/grants", Pending: "status == 202",
				Body: map[string]any{"ip": "${ip}", "permission": "${parameters['name']}", "pod": "${pod.uid}",
					"wrong": "${'wrong' in parameters && parameters.wrong == 'true'}"},
				Message: "has(body.error) ? body.error : ''", Keep: map[string]string{"ticket": "has(body.ticket) ? body.ticket : ''"}},
			Poll: &api.HTTPCall{Method: http.MethodGet, Path: "/tickets/${kept.ticket}", Granted: "body.state == 'granted'", Pending: "body.state == 'pending'", Denied: "body.state == 'denied'"},
			Revoke: &api.HTTPCall{Method: http.MethodDelete, Path: "/grants?ip=${ip}&permission=${parameters['name']}&pod=${pod.uid}",
				Granted: "status == 200 || status == 404 && body.error == '" + noGrant + "'"},
		},
	}
}
