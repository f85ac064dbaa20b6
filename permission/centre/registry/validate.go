// Package registry stores the registered objects: providers, permissions and
// permission sets. It validates them, keeps the references between them, and
// writes an audit entry for each change.
package registry

import (
	"fmt"
	"maps"
	"math"
	"net/url"
	"path"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/breakwater-dev/breakwater/permission/api"
	"github.com/breakwater-dev/breakwater/permission/centre/provider"
)

// Invalid names an invalid field and says what is valid.
type Invalid struct{ Field, Message string }

func (i Invalid) Error() string { return i.Field + ": " + i.Message }

// Limits of registered objects: bytes, or number of items.
const (
	maxDescription = 1000
	maxParameters  = 50
	maxParameter   = 4096
	maxMembers     = 50
)

// anyOwner in owners of a provider matches every owner.
const anyOwner = "*"

// checkMeta validates the fields that all kinds have.
func checkMeta(m api.Meta) error {
	if problems := validation.IsDNS1123Subdomain(m.Name); len(problems) > 0 {
		return Invalid{"name", fmt.Sprintf("%q: %s", m.Name, strings.Join(problems, "; "))}
	}
	if m.Owner == "" || len(m.Owner) > maxDescription || strings.TrimSpace(m.Owner) != m.Owner {
		return Invalid{"owner", fmt.Sprintf("required: the responsible group or user, at most %d bytes, without leading or trailing blanks", maxDescription)}
	}
	if len(m.Description) > maxDescription {
		return Invalid{"description", fmt.Sprintf("has %d bytes; must have at most %d", len(m.Description), maxDescription)}
	}
	return nil
}

// setProviderDefaults sets the defaults of empty fields.
func setProviderDefaults(p *api.Provider) {
	set := func(v *float64, to float64) {
		if *v == 0 {
			*v = to
		}
	}
	setInt := func(v *int, to int) {
		if *v == 0 {
			*v = to
		}
	}
	set(&p.RateLimit.PerSecond, 10)
	setInt(&p.RateLimit.Burst, 1)
	setInt(&p.TimeoutSeconds, 10)
	setInt(&p.Retry.MaxCalls, 5)
	set(&p.Retry.BackoffSeconds, 2)
	set(&p.Retry.PollSeconds, 2)
	set(&p.Retry.PollTimeoutSeconds, 600)
	if p.Type == api.ProviderMySQL && p.MySQL != nil && len(p.MySQL.Privileges) == 0 {
		p.MySQL.Privileges = []string{"SELECT", "INSERT", "UPDATE", "DELETE"}
	}
}

// checkProvider validates a provider that has its defaults.
func checkProvider(p api.Provider, f provider.Factory) error {
	if err := checkMeta(p.Meta); err != nil {
		return err
	}
	for _, c := range []struct {
		field       string
		value       float64
		least, most float64
	}{
		{"rateLimit.perSecond", p.RateLimit.PerSecond, 0.001, 10000},
		{"rateLimit.burst", float64(p.RateLimit.Burst), 1, 10000},
		{"timeoutSeconds", float64(p.TimeoutSeconds), 1, 30},
		{"retry.maxCalls", float64(p.Retry.MaxCalls), 1, 20},
		{"retry.backoffSeconds", p.Retry.BackoffSeconds, 0.01, 600},
		{"retry.pollSeconds", p.Retry.PollSeconds, 0.05, 600},
		{"retry.pollTimeoutSeconds", p.Retry.PollTimeoutSeconds, 1, 86400},
	} {
		if c.value < c.least || c.value > c.most || math.IsNaN(c.value) {
			return Invalid{c.field, fmt.Sprintf("is %v; must be from %v to %v", c.value, c.least, c.most)}
		}
	}
	if err := checkOwnerParameters(p); err != nil {
		return err
	}
	if p.CredentialsRef != "" {
		if err := f.Credentials.CheckName(p.CredentialsRef); err != nil {
			return Invalid{"credentialsRef", err.Error()}
		}
	}
	if p.Type == api.ProviderMySQL && p.HTTP != nil {
		return Invalid{"http", "must be empty for a provider of type mysql"}
	}
	if p.Type != api.ProviderMySQL && p.MySQL != nil {
		return Invalid{"mysql", "must be empty unless type is mysql"}
	}
	if _, err := f.New(p); err != nil {
		field, message, _ := strings.Cut(err.Error(), ": ")
		return Invalid{field, message}
	}
	if endpoint, err := url.Parse(p.Endpoint); p.CredentialsRef != "" && !p.AllowHTTP && err == nil && endpoint.Scheme == "http" {
		return Invalid{"endpoint", fmt.Sprintf("%q has no TLS, so credential %s could be read on the network; use https, or set allowHTTP to true if the network is trusted", p.Endpoint, p.CredentialsRef)}
	}
	return nil
}

// checkPermission validates a permission of a provider.
func checkPermission(p api.Permission, of api.Provider, f provider.Factory) error {
	if err := checkMeta(p.Meta); err != nil {
		return err
	}
	if len(p.Parameters) > maxParameters {
		return Invalid{"parameters", fmt.Sprintf("has %d items; must have at most %d", len(p.Parameters), maxParameters)}
	}
	for name, value := range p.Parameters {
		if name == "" || len(name) > 253 || len(value) > maxParameter {
			return Invalid{"parameters." + name, fmt.Sprintf("a name must have 1 to 253 bytes and a value at most %d", maxParameter)}
		}
	}
	if err := checkOwner(p, of); err != nil {
		return err
	}
	if err := f.Check(of, p.Parameters); err != nil {
		field, message, _ := strings.Cut(err.Error(), ": ")
		return Invalid{"parameters." + field, message}
	}
	return nil
}

// checkOwner checks that the provider lists the owner, and that the parameters match the
// owner's patterns.
func checkOwner(p api.Permission, of api.Provider) error {
	if !slices.Contains(of.Owners, p.Owner) && !slices.Contains(of.Owners, anyOwner) {
		owners := strings.Join(of.Owners, ", ")
		if owners == "" {
			owners = "nobody, because its field owners is empty"
		}
		return Invalid{"provider", fmt.Sprintf("%s accepts only permissions of %s; change owner or provider, or ask an admin to add %s to owners of the provider", of.Name, owners, p.Owner)}
	}
	patterns := of.OwnerParameters[p.Owner]
	for _, name := range slices.Sorted(maps.Keys(patterns)) {
		value, ok := p.Parameters[name]
		matches := func(pattern string) bool {
			matched, err := path.Match(pattern, value)
			return matched && err == nil
		}
		if !ok || !slices.ContainsFunc(patterns[name], matches) {
			return Invalid{"parameters." + name, fmt.Sprintf("is %q; provider %s allows permissions of %s only with a value that matches %s", value, of.Name, p.Owner, strings.Join(patterns[name], ", "))}
		}
	}
	return nil
}

// checkOwnerParameters validates the patterns of the owners of a provider.
func checkOwnerParameters(p api.Provider) error {
	for _, owner := range slices.Sorted(maps.Keys(p.OwnerParameters)) {
		field := "ownerParameters." + owner
		if !slices.Contains(p.Owners, owner) {
			return Invalid{field, "the owner is not listed in owners; add it, or remove its patterns"}
		}
		for _, name := range slices.Sorted(maps.Keys(p.OwnerParameters[owner])) {
			for i, pattern := range p.OwnerParameters[owner][name] {
				if _, err := path.Match(pattern, ""); err != nil {
					return Invalid{fmt.Sprintf("%s.%s[%d]", field, name, i), fmt.Sprintf("%q is not a valid pattern; use * and ? as wildcards", pattern)}
				}
			}
		}
	}
	return nil
}

// checkSet validates a set without its permissions.
func checkSet(s api.PermissionSet) error {
	if err := checkMeta(s.Meta); err != nil {
		return err
	}
	if len(s.Permissions) == 0 || len(s.Permissions) > maxMembers {
		return Invalid{"permissions", fmt.Sprintf("has %d items; must have 1 to %d", len(s.Permissions), maxMembers)}
	}
	for i, p := range s.Pods {
		if p.Namespace == "" {
			return Invalid{fmt.Sprintf("pods[%d].namespace", i), "required: the namespace of the pods; * allows every namespace"}
		}
		for field, pattern := range map[string]string{"cluster": p.Cluster, "namespace": p.Namespace, "serviceAccount": p.ServiceAccount} {
			if _, err := path.Match(pattern, ""); err != nil {
				return Invalid{fmt.Sprintf("pods[%d].%s", i, field), fmt.Sprintf("%q is not a valid pattern; use * and ? as wildcards", pattern)}
			}
		}
	}
	seen := map[string]bool{}
	for i, name := range s.Permissions {
		if seen[name] {
			return Invalid{fmt.Sprintf("permissions[%d]", i), name + " is listed twice; list it once"}
		}
		seen[name] = true
	}
	return nil
}
