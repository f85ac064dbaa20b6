package settings

import (
	"os"
	"testing"
)

// domain is the DNS domain of the cluster. It is read once per process.
const domain = "example.org"

func TestMain(m *testing.M) {
	if err := os.Setenv("CLUSTER_DOMAIN", domain); err != nil {
		panic(err)
	}
	os.Exit(m.Run())
}

func TestTheDefaultURLsHaveTheDomainOfTheCluster(t *testing.T) {
	s := Default()
	for got, want := range map[string]string{
		s.CentreURL:           "https://permission-centre.altershieldoperator-system.svc." + domain,
		s.InitActionServerURL: "https://init-action-server.altershieldoperator-system.svc." + domain,
	} {
		if got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}
