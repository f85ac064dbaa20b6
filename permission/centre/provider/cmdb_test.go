package provider

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/breakwater-dev/breakwater/permission/api"
	double "github.com/breakwater-dev/breakwater/test/provider"
)

func TestACMDBRegistersAndDeletesAnAddress(t *testing.T) {
	stub := double.New(time.Now)
	c := newClient(t, stub.ServeHTTP, func(p *api.Provider) { p.Type, p.HTTP = api.ProviderCMDB, nil })
	call := Call{Op: Grant, Key: "k", IPs: []string{"fd00::1"}, Pod: api.ApplicationRequest{PodUID: "u1", Pod: "p", Namespace: "n"}}
	for range 2 {
		if r := c.Call(t.Context(), call); r.Outcome != Done {
			t.Fatalf("register: %+v", r)
		}
	}
	if diff := cmp.Diff([]double.Entry{{IP: "fd00::1", Permission: "cmdb", Pod: "u1"}}, stub.Stats().Current); diff != "" {
		t.Error(diff)
	}
	call.Op, call.Key = Revoke, "k-revoke"
	for range 2 {
		if r := c.Call(t.Context(), call); r.Outcome != Done {
			t.Fatalf("delete: %+v", r)
		}
	}
	if b := stub.Stats(); len(b.Current) != 0 || b.Duplicates != 0 {
		t.Errorf("stats of the CMDB: %+v", b)
	}
}
