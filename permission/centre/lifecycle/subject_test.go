package lifecycle_test

import (
	"strings"
	"testing"

	"github.com/breakwater-dev/breakwater/permission/api"
	"github.com/breakwater-dev/breakwater/permission/centre/provider"
	"github.com/breakwater-dev/breakwater/permission/centre/store"
)

// Replicas of the version before may run beside this one, and compare only grants with the same subject.
func TestAGrantHasTheSubjectThatTheVersionBeforeCompares(t *testing.T) {
	for typ, want := range map[api.ProviderType]string{api.ProviderHTTP: "db", api.ProviderMySQL: "user app"} {
		t.Run(string(typ), func(t *testing.T) {
			f := newSetsFixture(t, provider.Done)
			f.updateProvider(func(p *api.Provider) { p.Type = typ })
			updateObject(t, f.Store, store.KindPermission, "db", func(p *api.Permission) { p.Parameters = map[string]string{"user": "app"} })
			f.request("web")
			var rows strings.Builder
			if err := f.Store.Export(t.Context(), &rows); err != nil {
				t.Fatal(err)
			}
			if !strings.Contains(rows.String(), `"subject":"`+want+`"`) {
				t.Errorf("no grant has subject %q", want)
			}
		})
	}
}
