package provider

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/breakwater-dev/breakwater/permission/api"
	double "github.com/breakwater-dev/breakwater/test/provider"
)

func TestACMDBIsToldOfAnAddressAndForgetsIt(t *testing.T) {
	books := double.New(time.Now)
	c := caller(t, books.ServeHTTP, func(p *api.Provider) { p.Type, p.HTTP = api.ProviderCMDB, nil })
	call := Call{Op: Grant, Key: "k", IPs: []string{"fd00::1"}, Pod: api.ApplicationRequest{PodUID: "u1", Pod: "p", Namespace: "n"}}
	for range 2 {
		if r := c.Call(t.Context(), call); r.Outcome != Done {
			t.Fatalf("register: %+v", r)
		}
	}
	if diff := cmp.Diff([]double.Entry{{IP: "fd00::1", Permission: "cmdb", Pod: "u1"}}, books.Stats().Held); diff != "" {
		t.Error(diff)
	}
	call.Op, call.Key = Revoke, "k-revoke"
	for range 2 {
		if r := c.Call(t.Context(), call); r.Outcome != Done {
			t.Fatalf("forget: %+v", r)
		}
	}
	if b := books.Stats(); len(b.Held) != 0 || b.Duplicates != 0 {
		t.Errorf("books: %+v", b)
	}
}
